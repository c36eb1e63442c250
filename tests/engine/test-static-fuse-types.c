/* Random chains of element-by-element operations over arrays of several types: halves, casts,
 * dropout, choices by conditions of any width.  Fused they give the code's bits: outputs,
 * gradients, and the place in the random stream.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"
#include "static/entry.h"

#include <stdio.h>
#include <string.h>

#ifndef CHAINS /* where each kernel is compiled: fewer, and small ones */
#define FIRST_CHAIN 0
#define CHAINS 500
#define N_SIZES 5
#endif

enum
{
  MAX_STEPS = 14,
  N_IN = 5,
  N_ITERATIONS = 3
};

typedef struct
{
  unsigned seed;
  uint32_t state; /* of the generator */
} Chain;

/* What was found in the groups of all chains. */
typedef struct
{
  unsigned n_fused, n_left, n_groups;
  unsigned casts, dropouts, choices, halves, narrow_conditions, of_several_types, of_integers;
} Found;

static Found found;

static unsigned
draw (Chain *c, unsigned below)
{
  c->state = c->state * 1664525u + 1013904223u;
  return (c->state >> 12) % below;
}

static TdDtype
draw_float (Chain *c)
{
  static const TdDtype floats[] = { TD_BF16, TD_F32, TD_F16, TD_BF16, TD_F32, TD_F64 };

  return floats[draw (c, sizeof floats / sizeof floats[0])];
}

static TdDtype
draw_whole (Chain *c)
{
  static const TdDtype whole[] = { TD_BOOL, TD_U8, TD_I32, TD_I64 };

  return whole[draw (c, 4)];
}

static TdVar *
as (TdVar *x, TdDtype dtype)
{
  return td_dtype (x) == dtype ? x : td_cast (x, dtype);
}

/* --- the chain's code --- */

static TdVar *
unary (Chain *c, TdVar *x)
{
  switch (draw (c, 12))
    {
    case 0:
      return td_relu (x);
    case 1:
      return td_tanh (x);
    case 2:
      return td_sigmoid (x);
    case 3:
      return td_neg (x);
    case 4:
      return td_mul_scalar (x, 0.3 + draw (c, 50) / 64.0);
    case 5:
      return td_leaky_relu (x, .slope = 0.2);
    case 6:
      return td_gelu (x);
    case 7:
      return td_clip (x, -0.7, 0.4);
    case 8:
      return td_softplus (x);
    case 9:
      return td_add_scalar (x, -0.25);
    case 10:
      return td_square (td_sin (x));
    default:
      return td_silu (x);
    }
}

static TdVar *
binary (Chain *c, TdVar *a, TdVar *b)
{
  switch (draw (c, 5))
    {
    case 0:
      return td_add (td_tanh (a), b);
    case 1:
      return td_sub (a, td_sigmoid (b));
    case 2:
      return td_mul (td_tanh (a), b);
    case 3:
      return td_maximum (a, b);
    default:
      return td_minimum (b, a);
    }
}

/* Numbers of any type, or whole ones made from numbers, as wide as those are or not. */
static TdVar *
condition (Chain *c, TdVar *x, TdVar *given)
{
  switch (draw (c, 4))
    {
    case 0:
      return td_relu (x);
    case 1:
      return td_cast (td_mul_scalar (x, 3), draw_whole (c));
    default:
      return given;
    }
}

/* Integers wrap: the last of these do. */
static TdVar *
whole (Chain *c, TdVar *x)
{
  TdVar *y = td_add_scalar (x, draw (c, 7) - 3.0);

  switch (draw (c, 6))
    {
    case 0:
      return td_add (td_mul_scalar (x, 3), y);
    case 1:
      return td_sub (td_maximum (x, y), td_neg (y));
    case 2:
      return td_mul (td_minimum (x, y), x);
    case 3:
      return td_minimum (td_square (y), td_mul (x, y));
    case 4:
      return td_neg (td_add (x, y));
    default:
      return td_square (td_mul_scalar (td_square (y), 123456));
    }
}

/* There and back; no gradient comes through. */
static TdVar *
through_whole (Chain *c, TdVar *x)
{
  const TdDtype dtype = draw_whole (c);
  TdVar *w = td_cast (td_mul_scalar (x, 5), dtype);

  if (dtype == TD_I32 || dtype == TD_I64)
    w = whole (c, w);
  return td_cast (w, td_dtype (x));
}

static TdVar *
next (Chain *c, TdVar *a, TdVar *b, TdVar *const *in)
{
  const TdDtype dtype = td_dtype (a);

  switch (draw (c, 10))
    {
    case 0:
    case 1:
      return binary (c, a, as (b, dtype));
    case 2:
    case 3:
      return td_cast (a, draw_float (c));
    case 4:
      return td_dropout (a, 0.1 + 0.2 * draw (c, 4));
    case 5:
      return td_where (condition (c, b, in[2]), a, as (b, dtype));
    case 6:
      return td_where (condition (c, a, in[2]), as (b, dtype), as (in[4], dtype));
    case 7:
      return draw (c, 2) > 0 ? td_mul (a, as (in[3], dtype)) : td_add (as (in[3], dtype), a);
    case 8:
      return draw (c, 3) > 0 ? unary (c, a) : td_add (a, through_whole (c, as (b, dtype)));
    default:
      return unary (c, a);
    }
}

static void
chain (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Chain *c = self;
  TdVar *made[MAX_STEPS + 2] = { in[0], in[1] };
  int n = 2, end;

  (void)n_in;
  c->state = 747796405u * (c->seed + 3);
  for (end = 6 + (int)draw (c, MAX_STEPS - 6 + 1); n < end; n++)
    made[n] = next (c, made[n - 1 - (int)draw (c, 2)], made[draw (c, (unsigned)n)], in);
  out[0] = td_add_scalar (made[n - 1], 0.125);
  if (n_out > 1)
    out[1] = td_tanh (made[n - 2]);
}

/* --- one scenario --- */

static const TdShape sizes[] = { TD_SHAPE (3, 7), TD_SHAPE (9, 31), TD_SHAPE (2, 513),
                                 TD_SHAPE (70, 65), TD_SHAPE (300, 131) };

static TdVar *
of_type (Chain *c, TdShape shape, unsigned seed, TdDtype dtype)
{
  return td_cast (some (shape, c->seed * 13 + seed), dtype);
}

static unsigned
bytes_of (TdDtype dtype)
{
  return (unsigned)td_dtype_bytes (dtype);
}

static void
look_at_group (const TdSchedule *s, const TdGroup *g)
{
  bool several = false, random = false;

  found.n_groups++;
  found.n_fused += g->n_members;
  for (uint32_t k = 0; k < g->n_members; k++)
    {
      const TdStep *m = &g->members[k];
      const TdNodeInfo *first = &s->nodes[td__step_in (s, m, 0)];
      const TdNodeInfo *out
          = &s->nodes[m->n_out > 0 ? td__step_out (s, m, 0) : td__step_in (s, m, 0)];

      found.casts += strcmp (m->cls->name, "cast") == 0;
      found.dropouts += strcmp (m->cls->name, "dropout") == 0;
      found.halves += out->dtype == TD_F16 || out->dtype == TD_BF16;
      found.of_integers += (out->dtype == TD_I32 || out->dtype == TD_I64)
                           && first->dtype == out->dtype && m->n_in + m->n_out > 1;
      random |= m->random;
      several |= first->dtype != out->dtype;
      if (strcmp (m->cls->name, "where") == 0)
        {
          found.choices++;
          found.narrow_conditions
              += bytes_of ((TdDtype)first->dtype) < bytes_of ((TdDtype)out->dtype);
        }
    }
  found.of_several_types += several && random;
}

static void
look_at (TdStatic *s)
{
  const TdPlan *p = s->entries->plan;

  for (uint32_t k = 0; k < p->n_groups; k++)
    look_at_group (p->s, &p->groups[k]);
  for (uint32_t list = 0; list <= p->s->n_backwards; list++)
    for (uint32_t k = 0; k < td__plan_list (p, list)->n; k++)
      {
        const TdStep *step = &td__plan_list (p, list)->steps[k];

        found.n_left += step->kind == TD_STEP_OP && (step->cls->flags & TD_OP_ELEMENTWISE)
                        && td__size (&p->s->nodes[td__step_in (p->s, step, 0)].shape) > 700;
      }
}

/* One call of the chain and its backward: outputs, then gradients; NULL where there are none.
 */
static void
one_call (Chain *c, TdStatic *s, const TdDtype *dtype, int i, TdVar *made[4])
{
  const TdShape shape = sizes[c->seed % N_SIZES];
  const TdShape row = c->seed % 2 == 0 ? TD_SHAPE (shape.dim[1]) : TD_SHAPE (1, shape.dim[1]);
  const unsigned seed = (unsigned)i * 5;
  const int n_out = 1 + (int)(c->seed % 3 > 0);
  TdVar *in[N_IN], *y[2], *loss;

  td_set_seed (c->seed + seed);
  in[0] = td_variable (of_type (c, shape, seed, dtype[0]), "x");
  in[1] = td_variable (of_type (c, shape, seed + 1, dtype[1]), "w");
  in[2] = td_cast (td_mul_scalar (td_relu (some (shape, seed + 2)), 40), dtype[2]);
  in[3] = some (row, seed + 3);
  in[4] = some (TD_SHAPE (1), seed + 4);
  for (int k = 0; k < 2 && c->seed % 3 == 1; k++)
    td_set_grad (in[k], of_type (c, shape, seed + 7, dtype[k]));
  assert_int_equal (td_static_call (s, in, N_IN, y, n_out), TD_OK);
  made[0] = y[0];
  made[1] = n_out > 1 ? y[1] : NULL;
  loss = td_sum (as (y[0], TD_F32));
  if (n_out > 1)
    loss = td_add (loss, td_sum (as (td_mul_scalar (y[1], 0.5), TD_F32)));
  assert_int_equal (td_backward (loss, 0), TD_OK);
  made[2] = td_grad (in[0]);
  made[3] = td_grad (in[1]);
}

/* Against the code, and against a schedule that is not fused.  Whether a part of a gradient in
 * halves is rounded before it is added depends on who else holds what is added to: the
 * schedules must find it as the code does, with gradients there before (every third chain) and
 * without. */
static void
scenario (void *user)
{
  Chain *c = user;
  TdStatic *s = td_static_new (chain, c), *plain = td_static_new (chain, c, .fuse = false);
  TdDtype dtype[3];

  c->state = c->seed * 2654435761u + 17;
  for (int k = 0; k < 2; k++)
    dtype[k] = draw_float (c);
  dtype[2] = draw (c, 2) > 0 ? draw_whole (c) : draw_float (c);
  for (int i = 0; i < N_ITERATIONS; i++)
    TD_SCOPE ("iteration")
      {
        TdVar *made[4], *other[4];

        one_call (c, s, dtype, i, made);
        for (int k = 0; k < 4; k++)
          note (made[k]);
        if (!is_static_run ())
          continue;
        one_call (c, plain, dtype, i, other);
        for (int k = 0; k < 4; k++)
          if (made[k] != NULL && other[k] != NULL)
            assert_bits (made[k], other[k]);
          else
            assert_ptr_equal (made[k], other[k]);
      }
  if (is_static_run ())
    {
      if (td_static_info (s).n_replays != N_ITERATIONS - 1
          || td_static_info (plain).n_replays != N_ITERATIONS - 1)
        fail_msg ("chain %u: %llu replays: %s", c->seed,
                  (unsigned long long)td_static_info (s).n_replays, td_static_last_miss (s));
      look_at (s);
    }
  td_static_free (s);
  td_static_free (plain);
}

static void
fuse__random_chains_of_all_types_give_the_bits_of_the_code (void **state)
{
  Chain c = { 0 };

  (void)state;
  for (c.seed = FIRST_CHAIN; c.seed < FIRST_CHAIN + CHAINS; c.seed++)
    {
      run_doing ("chain", (int)c.seed);
      run_both (scenario, &c);
    }
  printf ("%d chains: %u operations in %u groups, %u outside; casts %u, dropout %u, choices %u "
          "(%u by narrower conditions), results in halves %u, groups that draw and cast %u, "
          "arithmetic of integers %u\n",
          CHAINS, found.n_fused, found.n_groups, found.n_left, found.casts, found.dropouts,
          found.choices, found.narrow_conditions, found.halves, found.of_several_types,
          found.of_integers);
  assert_true (found.n_fused > 8 * CHAINS);
  assert_true (found.casts > CHAINS && found.halves > 3 * CHAINS);
  assert_true (found.dropouts > CHAINS / 3 && found.choices > CHAINS / 3);
  assert_true (found.of_integers > CHAINS / 6);
  assert_true (found.narrow_conditions > CHAINS / 12 && found.of_several_types > CHAINS / 12);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (fuse__random_chains_of_all_types_give_the_bits_of_the_code),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
