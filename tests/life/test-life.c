/* A program of real size gives the same losses, gradients and weights, bit for bit, however it
 * is run: recorded or not, as code or through static functions, in one go or gone on with from
 * files in another process; and no leak is found in it.
 *
 *     test-life PROGRAM NAME=VALUE...
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum
{
  MOST_WORDS = 16,
  MOST_BYTES = 1 << 20
};

static const char *program;
static const char *const *sizes; /* to NULL */
static int n_sizes;

/* Of row 5 of the table of programs: what has no part that comes again as it is. */
static const char *const no_sense[][2] = {
  { "l05-seq2seq", "sentences of other lengths in each iteration: no graph comes twice" },
  { "l07-dcgan",
    "spectral normalisation is a hook, and with hooks static functions run their code" },
  { "l11-experts",
    "the host reads which expert takes which row: other numbers in each iteration" },
};

static const char *
why_not_static (void)
{
  for (size_t k = 0; k < sizeof no_sense / sizeof *no_sense; k++)
    if (strstr (program, no_sense[k][0]) != NULL)
      return no_sense[k][1];
  return NULL;
}

/* What a run of the program printed: argv0.. are what comes before it, words what comes after
 * its sizes, each list to NULL.  said: what it said on stderr, or NULL. */
static char *
lines_and_said (const char *const *before, const char *const *words, char **said)
{
  const char *argv[3 * MOST_WORDS];
  int n = 0;
  TdTestChild child;
  char *out;

  for (; *before != NULL; before++)
    argv[n++] = *before;
  argv[n++] = program;
  for (int i = 0; i < n_sizes; i++)
    argv[n++] = sizes[i];
  argv[n++] = "hash=1";
  for (; *words != NULL; words++)
    argv[n++] = *words;
  argv[n] = NULL;
  child = td_test_run (argv, NULL, NULL);
  assert_child_status (child, 0);
  out = strdup (child.out);
  assert_non_null (out);
  assert_true (strlen (out) > 0);
  if (said != NULL)
    *said = strdup (child.err);
  td_test_child_clear (&child);
  return out;
}

static char *
lines_of (const char *const *before, const char *const *words)
{
  return lines_and_said (before, words, NULL);
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NONE ((const char *const[]){ NULL })

/* Of the program as code, not recorded: one run for all tests. */
static const char *
plain_lines (void)
{
  static char *plain;

  if (plain == NULL)
    plain = lines_of (NONE, NONE);
  return plain;
}

static const char *
tapedeck (void)
{
  return td_test_program ("app/tapedeck");
}

static void
check_equal (const char *expected, char *lines)
{
  assert_string_equal (lines, expected);
  free (lines);
}

static void
recording__changes_no_bit (void **state)
{
  const char *plain = plain_lines ();

  (void)state;
  for (int i = 0; i < 3; i++)
    check_equal (plain, lines_of (WORDS (tapedeck (), "run", "--quiet", "-f", "--level",
                                         (const char *[]){ "graph", "stats", "values" }[i],
                                         "-o", td_test_tmp ("t.tdtape")),
                                  NONE));
}

static void
static_functions__give_the_codes_bits (void **state)
{
  const char *plain = plain_lines ();

  (void)state;
  for (int i = 0; i < 4; i++)
    check_equal (plain,
                 lines_of (WORDS (tapedeck (), "run", "--quiet", "--static",
                                  (const char *[]){ "off", "auto", "as-is", "verify=1" }[i]),
                           WORDS ("static=1", "batch=0")));
}

/* In a program for which static functions make sense there is one, and it is replayed. */
static void
static_functions__are_replayed_where_that_has_sense (void **state)
{
  const char *why = why_not_static ();
  char *said = NULL;
  const char *at;

  (void)state;
  check_equal (plain_lines (), lines_and_said (NONE, WORDS ("static=1", "batch=0"), &said));
  assert_non_null (said);
  at = strstr (said, " replays\n");
  assert_non_null (at);
  while (at > said && at[-1] >= '0' && at[-1] <= '9')
    at--;
  printf ("%s x static: %s%s%s%lu replays\n", strrchr (program, '/') + 1,
          why != NULL ? "no sense: " : "", why != NULL ? why : "", why != NULL ? "; " : "",
          strtoul (at, NULL, 10));
  if (why == NULL)
    assert_true (strtoul (at, NULL, 10) > 0);
  free (said);
}

static void
recorded_static_functions__give_the_codes_bits (void **state)
{
  (void)state;
  check_equal (plain_lines (), lines_of (WORDS (tapedeck (), "run", "--quiet", "-f", "--level",
                                                "values", "-o", td_test_tmp ("t.tdtape")),
                                         WORDS ("static=1", "batch=0")));
}

/* The same iteration of two recordings is the same, and one with other numbers is another. */
static void
diff__is_empty_for_equal_iterations_only (void **state)
{
  const char *names[] = { "a.tdtape", "b.tdtape" };
  char at[3][4200];
  TdTestChild child;

  (void)state;
  (void)td_test_program ("app/tapedeck-viz");
  for (int i = 0; i < 2; i++)
    free (lines_of (WORDS (tapedeck (), "run", "--quiet", "-f", "--level", "stats", "-o",
                           td_test_tmp (names[i])),
                    NONE));
  snprintf (at[0], sizeof at[0], "%s:2", td_test_tmp (names[0]));
  snprintf (at[1], sizeof at[1], "%s:2", td_test_tmp (names[1]));
  snprintf (at[2], sizeof at[2], "%s:3", td_test_tmp (names[1]));
  child = TD_TEST_RUN (tapedeck (), "diff", at[0], at[1]);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "diff", at[0], at[2]);
  assert_child_status (child, 1);
  td_test_child_clear (&child);
}

/* With joined products the losses have other last bits, and no more. */
static void
static_functions__with_joined_products_stay_within_1e_6 (void **state)
{
  const char *plain = plain_lines ();
  char *joined = lines_of (NONE, WORDS ("static=1"));
  const char *a = plain, *b = joined;
  int n = 0;

  (void)state;
  while ((a = strstr (a, " loss ")) != NULL && (b = strstr (b, " loss ")) != NULL)
    {
      double x = strtod (a += 6, NULL), y = strtod (b += 6, NULL);

      /* Training carries a difference on: the first iterations are what the pass answers for.
       */
      if (n < 3 && !(fabs (x - y) <= 1e-6 * fmax (1, fabs (x))))
        fail_msg ("iteration %d: %.9g as code, %.9g with joined products", n, x, y);
      n++;
    }
  assert_true (n > 0);
  free (joined);
}

static void
saved_and_loaded__goes_on_bit_for_bit (void **state)
{
  const char *plain = plain_lines ();
  char save[4200], load[4200], from[32], end[32];
  const char *folder = td_test_tmp ("saved"), *rest = plain;
  int n = 0, half;

  (void)state;
  for (const char *at = plain; (at = strchr (at, '\n')) != NULL; at++)
    n++;
  half = n / 2;
  for (int i = 0; i < half; i++)
    rest = strchr (rest, '\n') + 1;
  assert_int_equal (mkdir (folder, 0700), 0);
  snprintf (save, sizeof save, "save=%s", folder);
  snprintf (load, sizeof load, "load=%s", folder);
  snprintf (from, sizeof from, "from=%d", half);
  snprintf (end, sizeof end, "iterations=%d", half);

  /* The first of two equal names counts, so the sizes give way to `end`. */
  const char *const *all = sizes;
  int n_all = n_sizes;
  const char *shorter[MOST_WORDS] = { end };
  for (int i = 0; i < n_all; i++)
    shorter[i + 1] = all[i];
  sizes = shorter;
  n_sizes = n_all + 1;
  free (lines_of (NONE, WORDS (save)));
  sizes = all;
  n_sizes = n_all;
  check_equal (rest, lines_of (NONE, WORDS (load, from)));
}

static void
leaks__finds_none (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  TdTestChild child;

  (void)state;
  (void)td_test_program ("app/tapedeck-viz");
  free (lines_of (WORDS (tapedeck (), "run", "--quiet", "-f", "-o", tape), NONE));
  child = TD_TEST_RUN (tapedeck (), "leaks", tape);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "check", tape);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

int
main (int argc, char **argv)
{
  static char path[512];
  const struct CMUnitTest tests[] = {
    td_test (recording__changes_no_bit),
    td_test (static_functions__give_the_codes_bits),
    td_test (static_functions__are_replayed_where_that_has_sense),
    td_test (recorded_static_functions__give_the_codes_bits),
    td_test (diff__is_empty_for_equal_iterations_only),
    td_test (static_functions__with_joined_products_stay_within_1e_6),
    td_test (saved_and_loaded__goes_on_bit_for_bit),
    td_test (leaks__finds_none),
  };

  if (argc < 2 || argc > MOST_WORDS)
    {
      fprintf (stderr, "usage: test-life PROGRAM NAME=VALUE...\n");
      return 2;
    }
  snprintf (path, sizeof path, "tests/life/%s", argv[1]);
  program = td_test_build (path);
  program = strdup (program);
  sizes = (const char *const *)argv + 2;
  n_sizes = argc - 2;
  return cmocka_run_group_tests_name (argv[1], tests, NULL, NULL);
}
