/* `leaks` against random programs with one leak planted, and against the same programs cured:
 * every leak is found with its line, and nothing in what is sound
 * (tests/models/planted-leaks.c). PLANTED_FIRST and PLANTED_N look at other seeds and more of
 * them.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef N_SEEDS
#define N_SEEDS 40
#endif

typedef struct
{
  char kind[16], when[16], holder[32];
  int line;
} Planted;

/* Run the program of a seed. *Returns*: what leaks says, as JSON. */
static TdTestChild
look (int seed, const char *side, Planted *planted)
{
  const char *program = td_test_program ("app/tapedeck"), *tape = td_test_tmp ("leaks.tdtape");
  TdTestChild child;
  char text[16];

  td_test_program ("app/tapedeck-viz");
  snprintf (text, sizeof text, "%d", seed);
  child = TD_TEST_RUN (program, "run", "-f", "--quiet", "-o", tape,
                       td_test_build ("tests/app/model-planted-leaks"), text, side);
  assert_child_status (child, 0);
  assert_int_equal (sscanf (child.out, "%15s %15s %d %31[^\n]", planted->kind, planted->when,
                            &planted->line, planted->holder),
                    4);
  td_test_child_clear (&child);
  return TD_TEST_RUN (program, "leaks", tape, "--json");
}

static int
count (const char *text, const char *what)
{
  int n = 0;

  for (; (text = strstr (text, what)) != NULL; text++)
    n++;
  return n;
}

/* Whether something grows, and all that does is held from the planted line; where no place is
 * known, by a holder of none. */
static bool
is_found (const TdTestChild *child, const Planted *planted)
{
  char holder[64], site[64];
  int n = count (child->out, "\"holder_site\":");

  snprintf (holder, sizeof holder, "\"holder\": \"%s\"", planted->holder);
  if (planted->line == 0)
    snprintf (site, sizeof site, "\"holder_site\": null, \"retained_bytes\"");
  else
    snprintf (site, sizeof site, "planted-leaks.c:%d\", \"retained_bytes\"", planted->line);
  return child->status == 1 && n > 0 && count (child->out, holder) == n
         && count (child->out, site) == n;
}

static bool
is_clean (const TdTestChild *child)
{
  return child->status == 0 && strstr (child->out, "\"growing\": []") != NULL;
}

static void
leaks__finds_every_planted_leak_and_nothing_in_its_cured_twin (void **state)
{
  int first = (int)td_test_number ("PLANTED_FIRST", 1),
      n = (int)td_test_number ("PLANTED_N", N_SEEDS);
  int n_planted = 0, n_wrong = 0;

  for (int seed = first; seed < first + n; seed++)
    for (int cured = 0; cured < 2; cured++)
      {
        const char *side = cured ? "cured" : "leaking";
        Planted planted;
        TdTestChild child = look (seed, side, &planted);
        bool leaks = !cured && planted.line >= 0;

        n_planted += leaks;
        if (!(leaks ? is_found (&child, &planted) : is_clean (&child)))
          {
            print_message ("seed %d, %s (%s, %s, line %d, %s): status %d\n%s%s", seed, side,
                           planted.kind, planted.when, planted.line, planted.holder,
                           child.status, child.out, child.err);
            n_wrong++;
          }
        td_test_child_clear (&child);
      }
  print_message ("%d of %d programs are judged rightly, %d of them leak\n", 2 * n - n_wrong,
                 2 * n, n_planted);
  assert_int_equal (n_wrong, 0);
  assert_true (n_planted > n / 2);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (leaks__finds_every_planted_leak_and_nothing_in_its_cured_twin),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
