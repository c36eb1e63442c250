/*
 * Rules for gradients find what was planted, in the parameter it was planted in, and nothing
 * else.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "gradient/td-gradient-private.h"
#include "gradient/td-gradient-rules.h"
#include "td-test.h"

#define ELEMENTS 64

typedef struct
{
  guint n_rows, n_iterations;
  gint rule; /* that one row breaks; -1: none */
  guint row, from;
} Plan;

static double
norm_of (const Plan *plan, GRand *random, guint row, guint iteration)
{
  /* healthy ones are within two decades of each other, and move by a factor of 4 */
  double norm = pow (10, (row * 7 % 20) / 10.0) * pow (4, g_rand_double (random));

  if (row != plan->row)
    return norm;
  if (plan->rule == TD_RULE_VANISHING)
    return norm * 1e-8;
  if (plan->rule == TD_RULE_EXPLODING && iteration >= plan->from)
    return norm * 1e6;
  return plan->rule == TD_RULE_DEAD && iteration >= plan->from ? 0 : norm;
}

static void
add_column (TdGradientTable *table, const Plan *plan, GRand *random, guint iteration)
{
  TdGradientColumn *c = g_new0 (TdGradientColumn, 1);
  gint64 number = iteration;

  c->n = plan->n_rows;
  c->updated = TRUE;
  c->norm = g_new0 (double, c->n);
  c->cell = g_new0 (guint8, c->n);
  c->missing = g_new0 (guint8, c->n);
  c->n_elements = g_new0 (guint64, c->n);
  c->born = g_new0 (double, c->n);
  c->born_cell = g_new0 (guint8, c->n);
  c->rounding = g_new0 (guint8, c->n);
  for (guint row = 0; row < c->n; row++)
    {
      TdMissing missing = row != plan->row                    ? TD_MISSING_NO
                          : plan->rule == TD_RULE_MISSING     ? TD_MISSING_CUT
                          : plan->rule == TD_RULE_NOT_UPDATED ? TD_MISSING_UNHELD
                                                              : TD_MISSING_NO;

      c->born[row] = norm_of (plan, random, row, iteration);
      c->norm[row] = 1; /* as if hooks had made all alike */
      c->n_elements[row] = ELEMENTS;
      c->cell[row] = c->born_cell[row]
          = missing != TD_MISSING_NO ? TD_CELL_MISSING : TD_CELL_VALUE;
      c->missing[row] = missing;
    }
  g_hash_table_replace (table->columns, g_memdup2 (&number, sizeof number), c);
}

static TdGradientTable *
make_table (const Plan *plan, GRand *random)
{
  TdGradientTable *table = td_gradient_table_new (NULL);

  for (guint row = 0; row < plan->n_rows; row++)
    {
      g_autofree char *path = g_strdup_printf ("net/l%u/W", row);

      td__gradient_row (table, path, 1000 + row);
      g_array_append_val (table->order, row);
    }
  for (guint i = 0; i < plan->n_iterations; i++)
    add_column (table, plan, random, i);
  return table;
}

static GArray *
find (const TdGradientTable *table, const Plan *plan, const char *text)
{
  TdGradientRules rules;
  TdGradientRange range = { 0, plan->n_iterations - 1, plan->n_iterations };

  assert_true (td_gradient_rules_parse (text, &rules, NULL));
  return td_gradient_find (table, &range, &rules);
}

/* ---- random tables with one planted fault, or none ---- */

static void
rules__find_what_was_planted_and_nothing_else (void **state)
{
  for (guint seed = 0; seed < 500; seed++)
    {
      GRand *random = g_rand_new_with_seed (seed);
      Plan plan = { .n_rows = (guint)g_rand_int_range (random, 2, 40),
                    .n_iterations = (guint)g_rand_int_range (random, 12, 50),
                    .rule = g_rand_int_range (random, -1, TD_N_RULES) };

      plan.row = (guint)g_rand_int_range (random, 0, (gint)plan.n_rows);
      plan.from = (guint)g_rand_int_range (random, 3, (gint)plan.n_iterations - 5);
      TdGradientTable *table = make_table (&plan, random);
      g_autoptr (GArray) found = find (table, &plan, "");

      if (found->len != (plan.rule >= 0))
        fail_msg ("seed %u: %u findings with rule %d planted", seed, found->len, plan.rule);
      if (plan.rule >= 0)
        {
          const TdGradientFinding *f = &g_array_index (found, TdGradientFinding, 0);

          if (f->rule != (TdGradientRule)plan.rule || f->row != plan.row
              || (plan.rule == TD_RULE_EXPLODING && f->iteration != plan.from))
            fail_msg ("seed %u: rule %d in row %u instead of %d in %u", seed, f->rule, f->row,
                      plan.rule, plan.row);
        }
      td_gradient_table_free (table);
      g_rand_free (random);
    }
  (void)state;
}

static void
rules__say_what_they_found (void **state)
{
  static const char *const texts[TD_N_RULES] = {
    [TD_RULE_VANISHING] = "in 20 of 20 iterations; least at ",
    [TD_RULE_EXPLODING] = " iterations; at 9: ",
    [TD_RULE_DEAD] = "0 in the last 5 iterations, from 15 on",
    [TD_RULE_MISSING]
    = "in 20 iterations: used, but no gradient reached it: the path from the loss is cut",
    [TD_RULE_NOT_UPDATED] = "in 20 iterations: no optimizer updated it",
  };

  for (gint rule = 0; rule < TD_N_RULES; rule++)
    {
      GRand *random = g_rand_new_with_seed (1);
      Plan plan = { 6, 20, rule, 2, 9 };
      TdGradientTable *table = make_table (&plan, random);
      g_autoptr (GArray) found = find (table, &plan, "");

      assert_int_equal (found->len, 1);
      g_autofree char *text
          = td_gradient_finding_text (table, &g_array_index (found, TdGradientFinding, 0));
      if (!strstr (text, texts[rule]))
        fail_msg ("%s", text);
      td_gradient_table_free (table);
      g_rand_free (random);
    }
  (void)state;
}

/* One that is not finite is found whatever was before; another rule's limit leaves it alone. */
static void
rule__is_off_where_it_says_so (void **state)
{
  GRand *random = g_rand_new_with_seed (1);
  Plan plan = { 6, 20, TD_RULE_VANISHING, 2, 9 };
  TdGradientTable *table = make_table (&plan, random);
  gint64 number = 1;
  TdGradientColumn *second = g_hash_table_lookup (table->columns, &number);
  g_autoptr (GArray) off = find (table, &plan, "vanishing off, dead off");
  g_autoptr (GArray) low = find (table, &plan, " vanishing  1e-12 ,");

  assert_int_equal (off->len, 0);
  assert_int_equal (low->len, 0);
  second->born_cell[5] = TD_CELL_NAN;
  g_autoptr (GArray) nan = find (table, &plan, "vanishing off");
  assert_int_equal (nan->len, 1);
  assert_true (g_array_index (nan, TdGradientFinding, 0).is_infinite);
  assert_int_equal (g_array_index (nan, TdGradientFinding, 0).iteration, 1);
  td_gradient_table_free (table);
  g_rand_free (random);
  (void)state;
}

static void
rules__that_cannot_be_read_say_what_is_wrong (void **state)
{
  static const struct
  {
    const char *text, *error;
  } wrong[] = {
    { "vanish 1", "There is no rule \"vanish\"" },
    { "vanishing", "\"\" is no limit for vanishing" },
    { "vanishing 2", "from 1e-300 to 1, on or off" },
    { "vanishing nan", "\"nan\" is no limit" },
    { "missing 3", "\"3\" is no limit for missing: it is on or off" },
    { "dead 2.5", "a whole number from 1 to 1e+06" },
    { "dead -1", "\"-1\" is no limit for dead" },
    { "exploding 1e999", "\"1e999\" is no limit" },
    { "dead 5 exploding 3", "\"5 exploding 3\" is no limit for dead" },
    { "missing 3", "\"3\" is no limit for missing" },
  };
  TdGradientRules rules = { { 7, 7, 7, 7 } };

  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autoptr (GError) error = NULL;

      assert_false (td_gradient_rules_parse (wrong[i].text, &rules, &error));
      if (!strstr (error->message, wrong[i].error))
        fail_msg ("%s: %s", wrong[i].text, error->message);
      assert_true (rules.limit[0] == 7); /* nothing of it is kept */
    }
  (void)state;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (rules__find_what_was_planted_and_nothing_else),
    cmocka_unit_test (rules__say_what_they_found),
    cmocka_unit_test (rule__is_off_where_it_says_so),
    cmocka_unit_test (rules__that_cannot_be_read_say_what_is_wrong),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
