/* Comparisons of random programs with mutants of themselves: whatever differs, every event has
 * its place, causes exist, and nothing is said of what is the same.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "diff/td-diff.h"
#include "td-synthetic.h"
#include "td-test.h"

#define MAX_OPS 40

/* One operation of a program: what, where, in which layer, reading which earlier ones. */
typedef struct
{
  guint op, line, layer, in[2], n_in;
  gint size;
} Op;

static const char *const ops[] = { "relu", "tanh", "sigmoid", "add", "mul", "relu + tanh" };
static const char *const layers[] = { "", "net/a", "net/b" };

static guint
make_program (GRand *rand, Op *program)
{
  guint n = (guint)g_rand_int_range (rand, 0, MAX_OPS / 2);

  for (guint i = 0; i < n; i++)
    program[i] = (Op){ .op = (guint)g_rand_int_range (rand, 0, G_N_ELEMENTS (ops)),
                       .line = (guint)g_rand_int_range (rand, 1, 12),
                       .layer = (guint)g_rand_int_range (rand, 0, 3),
                       .in = { (guint)g_rand_int (rand), (guint)g_rand_int (rand) },
                       .n_in = (guint)g_rand_int_range (rand, 1, 3),
                       .size = 4 };
  return n;
}

/* Puts in, leaves out, exchanges or changes some operations. */
static guint
mutate (GRand *rand, Op *program, guint n)
{
  for (gint k = g_rand_int_range (rand, 0, 5); k > 0; k--)
    {
      guint at = n > 0 ? (guint)g_rand_int_range (rand, 0, (gint)n) : 0;
      Op other;

      switch (g_rand_int_range (rand, 0, 5))
        {
        case 0:
          if (n == MAX_OPS)
            break;
          memmove (program + at + 1, program + at, (n - at) * sizeof *program);
          program[at] = (Op){ .op = (guint)g_rand_int_range (rand, 0, 6),
                              .line = 20,
                              .n_in = 1,
                              .in = { (guint)g_rand_int (rand) },
                              .size = 4 };
          n++;
          break;
        case 1:
          if (n == 0)
            break;
          memmove (program + at, program + at + 1, (n - at - 1) * sizeof *program);
          n--;
          break;
        case 2:
          if (n < 2)
            break;
          other = program[at];
          program[at] = program[(at + 1) % n];
          program[(at + 1) % n] = other;
          break;
        case 3:
          program[at].op = (program[at].op + 1) % G_N_ELEMENTS (ops);
          break;
        default:
          program[at].size++;
          break;
        }
    }
  return n;
}

static TdIteration *
run (const Op *program, guint n)
{
  TdSynthetic *s = td_synthetic_new (1);
  guint vars[MAX_OPS + 1];

  vars[0] = td_synthetic_input (s, "x", TD_SHAPE (4, 4));
  for (guint i = 0; i < n; i++)
    {
      const Op *o = &program[i];
      guint in[2] = { vars[o->in[0] % (i + 1)], vars[o->in[1] % (i + 1)] };

      if (o->layer > 0)
        td_synthetic_enter_link (s, layers[o->layer], 5);
      vars[i + 1]
          = td_synthetic_op (s, ops[o->op], o->line, TD_SHAPE (4, o->size), in, o->n_in);
      if (o->layer > 0)
        td_synthetic_leave (s);
    }
  if (n > 0)
    td_synthetic_backward (s, vars[n]);
  return td_synthetic_finish (s);
}

static void
assert_sound (const TdDiff *d)
{
  guint seen[2] = { 0, 0 }, item = 0, kinds = 0;

  for (guint i = 0; i < d->n_pairs; i++)
    {
      const TdDiffPair *p = &d->pairs[i];

      for (guint s = 0; s < 2; s++)
        {
          guint n;
          const guint32 *events = td_diff_get_events (d, p, s, &n);

          for (guint k = 0; k < n; k++)
            assert_int_equal (td_diff_get_pair (d, s, (gint)events[k]), i);
          seen[s] += n;
          assert_true ((n > 0) == (p->event[s] >= 0));
        }
      if (p->cause >= 0)
        {
          /* it follows from an item before it */
          assert_true ((guint)p->cause < i);
          assert_true (td_diff_get_item (d, (gint)i) >= 0);
          assert_true (d->pairs[p->cause].cause < 0);
        }
      else if (p->kind != TD_DIFF_SAME)
        {
          assert_int_equal (d->items[item], i);
          assert_int_equal (td_diff_get_item (d, (gint)i), item);
          item++;
        }
      g_autofree char *what = td_diff_dup_what (d, p), *title = td_diff_dup_title (d, p);
      assert_true (*title != '\0');
      if (p->cause < 0 && p->kind != TD_DIFF_SAME)
        {
          if (!*what)
            print_message ("kind %d aspects %u of %s\n", (int)p->kind, p->aspects, title);
          assert_true (*what != 0);
        }
    }
  assert_int_equal (item, d->n_items);
  for (guint k = 1; k < TD_DIFF_N_KINDS; k++)
    kinds += d->n_kind[k];
  assert_int_equal (kinds, d->n_items);
  for (guint s = 0; s < 2; s++)
    assert_int_equal (seen[s], td_iteration_get_n_events (d->side[s]));
}

static void
diff__of_any_two_programs_is_sound (void **state)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (17);
  guint n_same = 0;

  for (guint round = 0; round < 3000; round++)
    {
      Op program[MAX_OPS + 1] = { { 0 } }, mutant[MAX_OPS + 1];
      guint n = make_program (rand, program), m;

      memcpy (mutant, program, sizeof mutant);
      m = round % 10 == 0 ? make_program (rand, mutant) : mutate (rand, mutant, n);
      g_autoptr (TdIteration) a = run (program, n);
      g_autoptr (TdIteration) b = run (mutant, m);
      g_autoptr (TdDiff) d = td_diff_new (a, b, NULL, NULL);
      g_autoptr (TdDiff) self = td_diff_new (b, b, NULL, NULL);
      g_autofree char *text = td_diff_print (d, "text"), *json = td_diff_print (d, "json");

      assert_sound (d);
      assert_sound (self);
      assert_true (td_diff_is_same (self));
      assert_true (*text && *json);
      if (n == m && memcmp (program, mutant, n * sizeof *program) == 0)
        {
          assert_true (td_diff_is_same (d));
          n_same++;
        }
    }
  assert_true (n_same > 100 && n_same < 2000);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (diff__of_any_two_programs_is_sound),
  };

  return cmocka_run_group_tests_name ("random", tests, NULL, NULL);
}
