/* What differs inside a fused group is named as it is between the same programs without one.
 *
 * SPDX-License-Identifier: MIT */
#include <glib.h>
#include <string.h>
#include <sys/wait.h>

#include "diff/td-diff.h"
#include "td-session.h"
#include "td-test.h"

#define N_WHICH 9 /* of members-program.c */
#define REPLAYED 5

static TdSession *
record (gboolean is_static, guint which)
{
  g_autofree char *text = g_strdup_printf ("%u", which),
                  *name = g_strdup_printf ("%d-%u.tdtape", is_static, which);
  const char *argv[]
      = { td_test_build ("tests/viz/diff/members-program"), is_static ? "1" : "0", text, NULL };
  const char *path = td_test_tmp (name);
  g_auto (GStrv) environment = g_environ_setenv (g_get_environ (), "TAPEDECK_TAPE", path, TRUE);
  TdSession *session;
  int status = 0;

  remove (path);
  assert_true (g_spawn_sync (NULL, (char **)argv, environment, G_SPAWN_DEFAULT, NULL, NULL,
                             NULL, NULL, &status, NULL));
  assert_int_equal (status, 0);
  session = td_session_open (path, NULL);
  assert_non_null (session);
  return session;
}

static TdDiff *
compare (TdSession *a, TdSession *b)
{
  g_autoptr (TdIteration) x = td_session_load_iteration (a, REPLAYED, NULL);
  g_autoptr (TdIteration) y = td_session_load_iteration (b, REPLAYED, NULL);

  assert_non_null (x);
  assert_non_null (y);
  return td_diff_new (x, y, td_session_get_reader (a), td_session_get_reader (b));
}

static void
assert_same_difference (guint which, const TdDiff *got, const TdDiff *code)
{
  const TdDiffPair *p = NULL, *wanted = &code->pairs[code->items[0]];
  g_autofree char *wanted_what = td_diff_dup_what (code, wanted),
                  *wanted_site = td_diff_dup_site (code, wanted, TD_DIFF_B),
                  *wanted_title = td_diff_dup_title (code, wanted),
                  *sentence = td_diff_sentence (got);
  g_autofree char *begin = g_strdup_printf ("%s in ", wanted_title);

  print_message ("%u: %s\n", which, sentence);
  assert_int_equal (code->n_items, 1);
  for (guint i = 0; i < got->n_items && !p; i++)
    if (got->pairs[got->items[i]].aspects & (TD_DIFF_ATTRIBUTES | TD_DIFF_INPUTS))
      p = &got->pairs[got->items[i]];
  assert_non_null (p);
  assert_true (p->aspects & wanted->aspects & (TD_DIFF_ATTRIBUTES | TD_DIFF_INPUTS));
  g_autofree char *what = td_diff_dup_what (got, p), *title = td_diff_dup_title (got, p),
                  *site = td_diff_dup_site (got, p, TD_DIFF_B);

  assert_true (g_str_has_prefix (title, begin));
  assert_true (g_str_has_prefix (sentence, begin));
  assert_string_equal (site, wanted_site);
  if (wanted->aspects & TD_DIFF_ATTRIBUTES)
    assert_true (g_str_has_prefix (what, wanted_what));
  else
    {
      g_autofree char *call = g_strdup_printf ("%s (", wanted_title);

      assert_true (g_str_has_prefix (what, call) || g_str_has_prefix (what, wanted_what));
    }
}

static void
diff__names_what_differs_inside_a_group (void **state)
{
  g_autoptr (TdSession) code = record (FALSE, 0);
  g_autoptr (TdSession) fused = record (TRUE, 0);

  (void)state;
  for (guint which = 1; which <= N_WHICH; which++)
    {
      g_autoptr (TdSession) other_code = record (FALSE, which);
      g_autoptr (TdSession) other = record (TRUE, which);
      g_autoptr (TdDiff) of_code = compare (code, other_code);
      g_autoptr (TdDiff) d = compare (fused, other);
      g_autoptr (TdDiff) back = compare (other, fused);

      assert_same_difference (which, d, of_code);
      assert_int_equal (back->n_items, d->n_items);
      if (!(of_code->pairs[of_code->items[0]].aspects & TD_DIFF_ATTRIBUTES))
        continue; /* of code against a group only numbers that it computes with count */
      g_autoptr (TdDiff) mixed = compare (code, other);
      assert_same_difference (which, mixed, of_code);
    }
}

static void
diff__of_equal_groups_finds_nothing (void **state)
{
  g_autoptr (TdSession) code = record (FALSE, 0);
  g_autoptr (TdSession) a = record (TRUE, 0);
  g_autoptr (TdSession) b = record (TRUE, 0);
  g_autoptr (TdDiff) same = compare (a, b);
  g_autoptr (TdDiff) mixed = compare (code, a);

  (void)state;
  assert_true (td_diff_is_same_structure (same));
  assert_true (mixed->n_items > 0);
  for (guint i = 0; i < mixed->n_items; i++)
    assert_false (mixed->pairs[mixed->items[i]].aspects & ~(guint)TD_DIFF_MODE);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (diff__names_what_differs_inside_a_group),
    td_test (diff__of_equal_groups_finds_nothing),
  };

  return cmocka_run_group_tests_name ("members", tests, NULL, NULL);
}
