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

/* What a run of the program printed: argv0.. are what comes before it, words what comes after
 * its sizes, each list to NULL. */
static char *
lines_of (const char *const *before, const char *const *words)
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
  td_test_child_clear (&child);
  return out;
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NONE ((const char *const[]){ NULL })

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
  char *plain = lines_of (NONE, NONE);

  (void)state;
  for (int i = 0; i < 3; i++)
    check_equal (plain, lines_of (WORDS (tapedeck (), "run", "--quiet", "-f", "--level",
                                         (const char *[]){ "graph", "stats", "values" }[i],
                                         "-o", td_test_tmp ("t.tdtape")),
                                  NONE));
  free (plain);
}

static void
static_functions__give_the_codes_bits (void **state)
{
  char *plain = lines_of (NONE, NONE);

  (void)state;
  check_equal (plain, lines_of (NONE, WORDS ("static=1", "batch=0")));
  for (int i = 0; i < 4; i++)
    check_equal (plain,
                 lines_of (WORDS (tapedeck (), "run", "--quiet", "--static",
                                  (const char *[]){ "off", "auto", "as-is", "verify=1" }[i]),
                           WORDS ("static=1", "batch=0")));
  free (plain);
}

/* With joined products the losses have other last bits, and no more. */
static void
static_functions__with_joined_products_stay_within_1e_6 (void **state)
{
  char *plain = lines_of (NONE, NONE), *joined = lines_of (NONE, WORDS ("static=1"));
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
  free (plain);
  free (joined);
}

static void
saved_and_loaded__goes_on_bit_for_bit (void **state)
{
  char *plain = lines_of (NONE, NONE), save[4200], load[4200], from[32], end[32];
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
  free (plain);
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
