/* What is predicted for layers that are computed again in backward is what comes when they are:
 * a GPT, and nets of random blocks, each recorded as it is and with td_forget around some of
 * them.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "td-test.h"

#ifndef N_SEEDS
#define N_SEEDS 25
#endif

enum
{
  N_BLOCKS = 8
};

static const char *
tape (const char *name)
{
  return td_test_tmp (name);
}

static void
record (const char *to, const char *program, const char *first, const char *second)
{
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "-o", to,
                                   program, first, second);

  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static double
number (const char *json, const char *before, const char *key)
{
  const char *at = strstr (json, before);

  at = at ? strstr (at, key) : NULL;
  if (at == NULL)
    fail_msg ("no %s in:\n%s", key, json);
  return strtod (strchr (at, ':') + 1, NULL);
}

typedef struct
{
  double recorded, predicted, measured;
} Peaks;

static Peaks
ask (const char *layers, const char *plain, const char *changed)
{
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", plain, "--view", "what-if",
                     "--recompute", layers, "--against", changed, "--format", "json");
  Peaks p;

  assert_child_status (child, 0);
  p.recorded = number (child.out, "", "\"recorded_peak_bytes\"");
  p.predicted = number (child.out, "", "\"predicted_peak_bytes\"");
  p.measured = number (child.out, "\"measured\"", "\"peak_bytes\"");
  td_test_child_clear (&child);
  return p;
}

static void
gpt__needs_what_was_predicted (void **state)
{
  static const struct
  {
    const char *forget, *layers;
  } cases[] = { { "forget=12", "gpt/h*" }, { "forget=4", "h0,h1,h2,gpt/h3" } };
  const char *program = td_test_program ("tests/life/l03-gpt");
  const char *plain = tape ("plain.tdtape"), *changed = tape ("changed.tdtape");

  td_test_program ("app/tapedeck-viz");
  record (plain, program, "iterations=3", "forget=0");
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      record (changed, program, "iterations=3", cases[i].forget);
      Peaks p = ask (cases[i].layers, plain, changed);

      printf ("# %s: peak %.0f recorded, %.0f predicted, %.0f measured\n", cases[i].forget,
              p.recorded, p.predicted, p.measured);
      assert_true (p.measured < p.recorded);
      if (fabs (p.predicted / p.measured - 1) > 0.05)
        fail_msg ("predicted %.0f, measured %.0f", p.predicted, p.measured);
    }
  (void)state;
}

/* Which of the blocks keep anything for backward, as a mask. */
static unsigned
find_blocks (const char *plain)
{
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", plain, "--view",
                                   "what-if", "--format", "csv");
  unsigned mask = 0;

  assert_child_status (child, 0);
  for (unsigned k = 0; k < N_BLOCKS; k++)
    {
      char line[16];

      snprintf (line, sizeof line, "\nb%u,", k);
      mask |= strstr (child.out, line) != NULL ? 1u << k : 0;
    }
  td_test_child_clear (&child);
  return mask;
}

static void
random_nets__need_what_was_predicted (void **state)
{
  const char *program = td_test_program ("tests/life/model-forgets");
  const char *plain = tape ("plain.tdtape"), *changed = tape ("changed.tdtape");
  unsigned n_tried = 0;
  double off = 0;

  srand (7);
  for (unsigned seed = 0; seed < N_SEEDS; seed++)
    {
      char first[16], second[16], layers[64] = "";
      unsigned mask = (unsigned)rand () % (1u << N_BLOCKS);

      snprintf (first, sizeof first, "%u", seed);
      record (plain, program, first, "0");
      mask &= find_blocks (plain);
      if (mask == 0)
        continue;
      for (unsigned k = 0; k < N_BLOCKS; k++)
        if (mask >> k & 1)
          snprintf (layers + strlen (layers), sizeof layers - strlen (layers), "%sb%u",
                    layers[0] ? "," : "", k);
      snprintf (second, sizeof second, "%u", mask);
      record (changed, program, first, second);
      Peaks p = ask (layers, plain, changed);

      n_tried++;
      off += fabs (p.predicted / p.measured - 1);
      if (fabs (p.predicted / p.measured - 1) > 0.1)
        fail_msg ("seed %u, %s: recorded %.0f, predicted %.0f, measured %.0f", seed, layers,
                  p.recorded, p.predicted, p.measured);
    }
  printf ("# %u nets, %.2f %% off on average\n", n_tried, 100 * off / n_tried);
  assert_true (n_tried > N_SEEDS / 2);
  assert_true (off / n_tried < 0.02);
  (void)state;
}

static void
trouble (const char *says, const char *to, const char *option, const char *value)
{
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", to, "--view",
                                   "what-if", option, value);

  assert_child_status (child, 2);
  assert_contains (child.err, says);
  td_test_child_clear (&child);
}

static void
wrong_questions__get_a_line (void **state)
{
  const char *program = td_test_program ("tests/life/model-forgets");
  const char *plain = tape ("plain.tdtape");
  TdTestChild child;

  record (plain, program, "3", "0");
  trouble ("--recompute b77: no layer that keeps anything for backward is called so", plain,
           "--recompute", "b0,b77");
  trouble ("--against /dev/null/no.tdtape: ", plain, "--against", "/dev/null/no.tdtape");
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", plain, "--view", "memory",
                       "--recompute", "b0");
  assert_child_status (child, 2);
  assert_contains (child.err, "--recompute is for the view what-if only");
  td_test_child_clear (&child);
  (void)state;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (gpt__needs_what_was_predicted),
    td_test (random_nets__need_what_was_predicted),
    td_test (wrong_questions__get_a_line),
  };

  return cmocka_run_group_tests_name ("what-if", tests, NULL, NULL);
}
