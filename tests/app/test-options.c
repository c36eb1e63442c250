/* Every option that takes a number, in every command, with numbers that it cannot mean: refused
 * in one line that names the option and says what is expected, and nothing is done. What it can
 * mean is taken.
 * SPDX-License-Identifier: MIT */
#include "td-tape.h"
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What no number of ours is. */
static const char *const junk[]
    = { "-1",   "-0",  "+1", " 1",  "1 ",  "",  "x",
        "1x",   "0x1", "1e", "nan", "inf", "-", "99999999999999999999",
        "1,000" };

typedef struct
{
  const char *command, *rest; /* with a tape, unless it is run */
  const char *option;
  const char *good[6], *bad[6];
} Row;

static const Row rows[] = {
  { "run",
    "",
    "--tape-budget",
    { "0", "1", "1.5M", "64k" },
    { "1e3", "5KB", "1.2.3", "K", "2000T" } },
  { "run", "", "--tape-rate", { "0", "1", "1.5M", "64k" }, { "1e3", "5KB", "1.2.3", "K" } },
  { "run", "", "--values-budget", { "0", "1", "1.5M", "64k" }, { "1e3", "5KB", "1.2.3", "K" } },
  { "run", "", "--runs-budget", { "0", "1", "1.5M", "64k" }, { "1e3", "5KB", "1.2.3", "K" } },
  { "run", "", "--mem-limit", { "0", "1G" }, { "1e3", "5KB", "1.2.3", "K" } },
  { "run", "", "--seed", { "0", "7" }, { "1.5" } },
  { "run", "", "--keyframes", { "0", "7" }, { "1.5" } },
  { "recompute", "-o none.tdtape", "--iteration", { NULL }, { "1.5", "1K" } },
  { "run", "", "--iterations", { "1", "7" }, { "0", "1.5" } },
  { "run", "", "--static", { "verify=1" }, { "verify=0", "verify=-1", "verify=x", "verify=" } },
  { "cat",
    "",
    "--iterations",
    { "0", "0:1", "0:", ":1", "1:99" },
    { "2:1", "a:b", "1:x", "-1:2", "1:-2", "1:2:3" } },
  { "export", "--format torch-snapshot -o -", "--iteration", { "0" }, { "1.5", "1K", "4096" } },
  { "export", "--format torch-snapshot -o -", "--device", { "0" }, { "1.5", "256" } },
#ifdef TD_WITH_VIZ
  { "show", "--view graph", "--iteration", { "0" }, { "1.5", "1K", "4096" } },
  { "show", "--view graph", "--event", { "0" }, { "1.5", "4096" } },
  { "show", "--view graph", "--fold", { "0", "3", "all" }, { "1.5", "1001", "ALL" } },
  { "show", "--view schedule", "--schedule", { NULL }, { "0", "1.5" } },
  { "show",
    "--view curves",
    "--range",
    { "0", "0:1", "0:", ":1", "0:99" },
    { "2:1", "a:b", "1:x", "-1:2", "1:-2" } },
  { "show", "--view gradients", "--newest", { NULL }, { "0", "1.5", "10001" } },
  { "show",
    "--view graph --format svg",
    "--scale",
    { "0.5", "2", "8" },
    { "0", "0.01", "9", "1.2.3" } },
  { "show", "--view graph --format svg", "--width", { "1", "800" }, { "0", "1.5", "20001" } },
  { "show", "--view graph --format svg", "--height", { "1", "800" }, { "0", "1.5", "20001" } },
  { "show", "--view graph", "--node", { "1e" }, { "g", "12345678901234567" } },
#endif
};

static TdTestChild
run (const Row *row, const char *value)
{
  const bool runs = strcmp (row->command, "run") == 0;

  return td_test_shell ("%s %s %s %s %s '%s' %s", td_test_program ("app/tapedeck"),
                        row->command,
                        runs ? "" : td_test_source ("tests/golden/tape-1.2.tdtape"), row->rest,
                        row->option, value, runs ? "--help" : "");
}

static bool
is_listed (const char *const *list, const char *value)
{
  for (int i = 0; i < 6 && list[i] != NULL; i++)
    if (strcmp (list[i], value) == 0)
      return true;
  return false;
}

/* One line, which names the option, and perhaps one of advice; no crash, no other trouble. */
static void
assert_refused (const Row *row, const char *value)
{
  TdTestChild c = run (row, value);
  const char *end = strchr (c.err, '\n');
  bool good = c.status == 2 && c.out[0] == '\0' && strncmp (c.err, "tapedeck: ", 10) == 0
              && end != NULL && (end[1] == '\0' || strstr (end, "--help says more\n") != NULL);

  /* an iteration, event or device that is not there is a number all the same */
  good = good
         && (strcmp (value, "4096") == 0
                 ? strstr (c.err, "4096") != NULL
                 : strstr (c.err, row->option) != NULL && strstr (c.err, "expected") != NULL);
  if (!good)
    fail_msg ("%s %s '%s': status %d, \"%s\"", row->command, row->option, value, c.status,
              c.err);
  td_test_child_clear (&c);
}

static void
options__that_take_numbers_refuse_what_they_cannot_mean (void **state)
{
  int n = 0;

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    {
      for (size_t k = 0; k < sizeof junk / sizeof *junk; k++, n++)
        if (!is_listed (rows[i].good, junk[k]))
          assert_refused (&rows[i], junk[k]);
      for (int k = 0; k < 6 && rows[i].bad[k] != NULL; k++, n++)
        assert_refused (&rows[i], rows[i].bad[k]);
    }
  print_message ("%d values of %d options\n", n, (int)(sizeof rows / sizeof *rows));
}

static void
options__that_take_numbers_take_them (void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int k = 0; k < 6 && rows[i].good[k] != NULL; k++)
      {
        TdTestChild c = run (&rows[i], rows[i].good[k]);

        if (c.status != 0 || c.err[0] != '\0')
          fail_msg ("%s %s '%s': status %d, \"%s\"", rows[i].command, rows[i].option,
                    rows[i].good[k], c.status, c.err);
        td_test_child_clear (&c);
      }
}

/* 0 is no limit, of each of them: the tape's own head says what holds. */
static void
budgets__of_0_are_no_limit (void **state)
{
  const char *tape = td_test_tmp ("free.tdtape");
  TdTapeHeader head;
  TdTestChild c = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet",
                               "--tape-budget", "0", "--values-budget", "0", "--mem-limit", "0",
                               "-o", tape, td_test_program ("tests/app/model-one"));
  char *bytes;
  size_t n;

  (void)state;
  assert_child_status (c, 0);
  td_test_child_clear (&c);
  bytes = td_test_read_file (tape, &n);
  assert_true (n > sizeof head);
  memcpy (&head, bytes, sizeof head);
  assert_int_equal (head.budget_bytes, 0);
  assert_true (head.values_bytes >= (uint64_t)1 << 40);
  free (bytes);
}

/* The manual and --help say of each budget what 0 means. */
static void
budgets__of_0_are_in_the_manual (void **state)
{
  static const char *const names[] = { "tape", "values", "runs" };
  TdTestChild c = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--help");
  char *manual = td_test_read_file (td_test_source ("data/man/tapedeck-run.1"), NULL);
  char name[64];

  (void)state;
  assert_child_status (c, 0);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    {
      const char *at, *end;

      snprintf (name, sizeof name, "--%s-budget", names[i]);
      at = strstr (c.out, name);
      end = at != NULL ? strstr (at + 2, "  --") : NULL;
      assert_true (at != NULL && end != NULL);
      assert_true (memmem (at, (size_t)(end - at), "0: unlimited", 12) != NULL);
      snprintf (name, sizeof name, "\\-\\-%s\\-budget", names[i]);
      at = strstr (manual, name);
      end = at != NULL ? strstr (at, ".TP") : NULL;
      assert_true (at != NULL && end != NULL);
      assert_true (memmem (at, (size_t)(end - at), "0 is no limit", 13) != NULL);
    }
  free (manual);
  td_test_child_clear (&c);
}

#ifdef TD_WITH_VIZ
/* Of a long run in a small budget: each iteration is shown, or it is said in one clause that it
 * ran and why there is no more of it. */
static void
show__of_a_thinned_iteration_says_that_it_ran (void **state)
{
  const char *tape = td_test_tmp ("thin.tdtape"), *program = td_test_program ("app/tapedeck");
  TdTestChild c = TD_TEST_RUN (program, "run", "--quiet", "--tape-budget", "64K", "-o", tape,
                               td_test_program ("tests/app/model-train"), "4000");
  int n_gone = 0;

  (void)state;
  assert_child_status (c, 0);
  td_test_child_clear (&c);
  for (int i = 20; i < 4000; i += 97)
    {
      char number[16], ran[64];

      snprintf (number, sizeof number, "%d", i);
      c = TD_TEST_RUN (program, "show", tape, "--view", "memory", "--iteration", number);
      snprintf (ran, sizeof ran, ": iteration %d ran, and was thinned", i);
      if (c.status != 0)
        {
          assert_contains (c.err, ran);
          assert_not_contains (strstr (c.err, ran) + strlen (ran), number);
          n_gone++;
        }
      td_test_child_clear (&c);
    }
  assert_true (n_gone > 0);
  c = TD_TEST_RUN (program, "show", tape, "--view", "memory", "--iteration", "4000");
  assert_contains (c.err, "no iteration 4000: those of the tape are 0 to 3999");
  td_test_child_clear (&c);
}
#endif

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (options__that_take_numbers_refuse_what_they_cannot_mean),
    td_test (options__that_take_numbers_take_them),
    td_test (budgets__of_0_are_no_limit),
    td_test (budgets__of_0_are_in_the_manual),
#ifdef TD_WITH_VIZ
    td_test (show__of_a_thinned_iteration_says_that_it_ran),
#endif
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
