/* The parser of the layout helper's answers: good ones, every truncation of one, many damaged
 * ones. Built with -DTD_LIBFUZZER it is a libFuzzer target instead.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-reply.h"

#include <math.h>
#include <string.h>

static const char good[] = "ok 3 2\nn 50.00 17.00\nn 50.5 75\nn 50.00 -131.25\n"
                           "e 4 50.00 34.20 50.00 38.34 50.00 42.91 60.00 47.42\ne 0\nend\n";

/* Whatever comes in: either a whole answer with finite numbers, or one line that says no. */
static TdLayoutReply *
parse (const char *text, gsize n, char *what, gsize n_what)
{
  TdLayoutReply *reply = td__layout_reply_parse (text, n, 3, 2, what, n_what);

  if (reply)
    {
      for (guint i = 0; i < 3; i++)
        g_assert_true (isfinite (reply->x[i]) && isfinite (reply->y[i]));
      for (guint i = 0; i < 2; i++)
        {
          g_assert_cmpuint (reply->first_point[i], <=, reply->first_point[i + 1]);
          g_assert_true (isfinite (td__layout_reply_pass (reply, i, 40, 7)));
        }
    }
  else
    {
      g_assert_cmpuint (strlen (what), >, 0);
      g_assert_null (strchr (what, '\n'));
    }
  return reply;
}

#ifdef TD_LIBFUZZER

int LLVMFuzzerTestOneInput (const guint8 *data, gsize n);

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize n)
{
  char what[300] = "";
  TdLayoutReply *reply = parse ((const char *)data, n, what, sizeof what);

  if (reply)
    td__layout_reply_unref (reply);
  return 0;
}

#else

#include "td-test.h"

static void
reply__is_read_as_it_is_written (void **state)
{
  char what[300] = "";
  TdLayoutReply *reply = parse (good, strlen (good), what, sizeof what);

  assert_non_null (reply);
  assert_true (reply->x[1] == 50.5 && reply->y[2] == -131.25);
  assert_int_equal (reply->first_point[1], 4);
  assert_int_equal (reply->first_point[2], 4);
  /* half way between (50, 42.91) and (60, 47.42) */
  assert_true (fabs (td__layout_reply_pass (reply, 0, 45.165, 0) - 55) < 0.01);
  assert_true (td__layout_reply_pass (reply, 0, 1000, 7) == 7);
  assert_true (td__layout_reply_pass (reply, 1, 40, 7) == 7);
  td__layout_reply_unref (reply);
  (void)state;
}

static void
reply__is_whole_only_at_its_end (void **state)
{
  char what[300] = "";

  for (gsize n = 0; n < strlen (good); n++)
    {
      /* memory of exactly that size: reading on is an error that sanitizers see */
      char *part = g_memdup2 (good, n);

      assert_false (td__layout_reply_is_whole (part, n));
      assert_null (parse (part, n, what, sizeof what));
      g_free (part);
    }
  assert_true (td__layout_reply_is_whole (good, strlen (good)));
  (void)state;
}

static void
reply__refuses_other_sizes_and_odd_numbers (void **state)
{
  static const char *const bad[] = {
    "ok 4 2\n",
    "ok 3 99999999999999999999\n",
    "ok 3 2\nn nan 1\n",
    "ok 3 2\nn 1e9 1\n",
    "ok 3 2\nn 99999999999999 1\n",
    "ok 3 2\nn 1 1\nn 1 1\nn 1 1\ne 4294967295 1 1\n",
    "ok 3 2\nn  1\n",
    "",
    "error ",
  };
  char what[300] = "";

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    assert_null (parse (bad[i], strlen (bad[i]), what, sizeof what));
  assert_null (parse ("error no luck\nmore", 18, what, sizeof what));
  assert_string_equal (what, "the layout helper says: no luck");
  (void)state;
}

static void
reply__survives_damage (void **state)
{
  GRand *random = g_rand_new_with_seed (20261120);
  char what[300] = "";
  guint accepted = 0;

  for (guint round = 0; round < 20000; round++)
    {
      gsize n = (gsize)g_rand_int_range (random, 1, (gint32)strlen (good) + 1);
      char *text = g_memdup2 (good, n);
      TdLayoutReply *reply;

      for (gint flips = g_rand_int_range (random, 1, 4); flips > 0; flips--)
        text[g_rand_int_range (random, 0, (gint32)n)]
            ^= (char)(1 << g_rand_int_range (random, 0, 8));
      reply = parse (text, n, what, sizeof what);
      accepted += reply != NULL;
      g_clear_pointer (&reply, td__layout_reply_unref);
      g_free (text);
    }
  /* some only change a digit */
  assert_in_range (accepted, 1, 2000);
  g_rand_free (random);
  (void)state;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (reply__is_read_as_it_is_written),
    td_test (reply__is_whole_only_at_its_end),
    td_test (reply__refuses_other_sizes_and_odd_numbers),
    td_test (reply__survives_damage),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}

#endif
