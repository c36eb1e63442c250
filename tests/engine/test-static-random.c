/* 200 random programs: loops, branches on numbers that are read, reuse, several results, state
 * changed in place, dropout, views, gradients that add up, several calls before one backward.
 * Code and schedule agree in values, gradients and state, and a change that is planted in each
 * is caught at the first wrong call.
 *
 * A program is a list of instructions drawn from a seed; registers hold arrays (ROWS, COLUMNS).
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef PROGRAMS /* slower devices: fewer */
#define FIRST_PROGRAM 0
#define PROGRAMS 200
#endif

enum
{
  ROWS = 4,
  COLUMNS = 6,
  MAX_INSTRUCTIONS = 24,
  MAX_RESULTS = 4,
  N_PROGRAMS = PROGRAMS,
  N_ITERATIONS = 7
};

typedef enum
{
  UNARY,
  BINARY,
  LAYER,
  NORMALIZE,
  DROPOUT,
  VIEW,
  CONCAT,
  LOOP,
  BRANCH,
  CAPTURED,
  REDUCE,
  BROUGHT,
  FLAGGED,
  N_KINDS
} Kind;

typedef struct
{
  Kind kind;
  unsigned a, b, which; /* registers as counted from the newest */
} Instruction;

typedef struct
{
  unsigned seed;
  bool passes;
  int verify;
  bool hides;     /* what is planted is a variable that no guard sees */
  uint32_t state; /* of the generator */
  Instruction list[MAX_INSTRUCTIONS];
  int n_instructions, n_results, n_loops;
  unsigned results[MAX_RESULTS];
  int32_t flag; /* watched */
  int32_t hidden;
  TdLink *root, *layers[3], *bn;
  TdVar *captured;
} Program;

static unsigned
draw (Program *p, unsigned below)
{
  p->state = p->state * 1664525u + 1013904223u;
  return (p->state >> 10) % below;
}

static void
generate (Program *p)
{
  p->state = 747796405u * (p->seed + 1);
  p->n_instructions = 3 + (int)draw (p, MAX_INSTRUCTIONS - 3);
  p->n_loops = 0;
  for (int i = 0; i < p->n_instructions; i++)
    {
      p->list[i]
          = (Instruction){ (Kind)draw (p, N_KINDS), draw (p, 8), draw (p, 8), draw (p, 64) };
      if (i == p->n_instructions / 2)
        p->list[i].kind = FLAGGED; /* what is planted is read by each */
    }
  p->n_results = 1 + (int)draw (p, MAX_RESULTS);
  for (int k = 0; k < p->n_results; k++)
    p->results[k] = k == 0 ? 0 : draw (p, 10);
}

/* --- running one --- */

static TdVar *
unary (TdVar *x, unsigned which)
{
  switch (which % 7)
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
      return td_mul_scalar (x, 0.5 + which / 64.0);
    case 5:
      return td_softmax (x);
    default:
      return td_leaky_relu (x, .slope = 0.2);
    }
}

static TdVar *
binary (TdVar *a, TdVar *b, unsigned which)
{
  switch (which % 4)
    {
    case 0:
      return td_add (a, b);
    case 1:
      return td_sub (a, b);
    case 2:
      return td_mul (td_tanh (a), td_sigmoid (b));
    default:
      return td_maximum (a, b);
    }
}

static TdVar *
columns (TdVar *x, int64_t from, int64_t to)
{
  TdSlice slices[] = { { 0, TD_END, 1, 0 }, { from, to, 1, 0 } };

  return td_get_item (x, slices, 2);
}

static TdVar *
reshaped (TdVar *x, unsigned which)
{
  TdShape shape = td_shape (x), flat = TD_SHAPE (shape.dim[0] * shape.dim[1]);

  switch (which % 3)
    {
    case 0:
      return td_reshape (td_reshape (x, flat), shape);
    case 1:
      return td_transpose (td_transpose (x, NULL), NULL);
    default:
      return td_reshape (td_tanh (td_reshape (x, flat)), shape);
    }
}

static TdVar *
joined (TdVar *a, TdVar *b)
{
  TdVar *both[] = { columns (a, 0, 2), columns (b, 2, COLUMNS) };

  return td_concat (both, 2, 1);
}

static TdVar *
step (Program *p, const Instruction *i, TdVar *a, TdVar *b, TdVar *gate)
{
  static const float numbers[COLUMNS] = { 0.5f, -1, 2, 0.25f, -0.75f, 1 };

  switch (i->kind)
    {
    case UNARY:
      return unary (a, i->which);
    case BINARY:
      return binary (a, b, i->which);
    case LAYER:
      return td_link (p->layers[i->which % 3], a);
    case NORMALIZE:
      return td_link (p->bn, a);
    case DROPOUT:
      return td_dropout (a, 0.1 + 0.1 * (i->which % 5));
    case VIEW:
      return reshaped (a, i->which);
    case CONCAT:
      return joined (a, b);
    case LOOP:
      for (unsigned k = 0; k < 1 + i->which % 3; k++)
        a = td_tanh (td_add (td_link (p->layers[i->which % 2], a), b));
      return a;
    case BRANCH:
      return td_item (gate) > (double)(i->which % 3) - 1 ? td_relu (a) : td_mul (a, b);
    case CAPTURED:
      return td_add (a, p->captured);
    case REDUCE:
      return td_add (b, td_mul_scalar (td_sum (a), 0.01));
    case BROUGHT:
      return td_mul (a, td_tensor (TD_F32, TD_SHAPE (COLUMNS), numbers));
    case FLAGGED:
      return p->flag || p->hidden ? td_neg (a) : td_sigmoid (a);
    default:
      return a;
    }
}

static void
program (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Program *p = self;
  TdVar *registers[MAX_INSTRUCTIONS + 2] = { in[0], in[1] };
  int n = 2;

  (void)n_in;
  for (int i = 0; i < p->n_instructions; i++, n++)
    registers[n] = step (p, &p->list[i], registers[n - 1 - (int)p->list[i].a % n],
                         registers[n - 1 - (int)p->list[i].b % n], in[2]);
  for (int k = 0; k < n_out; k++)
    out[k] = registers[n - 1 - (int)p->results[k] % n];
}

/* --- one scenario --- */

static void
prepare (Program *p)
{
  char name[8];

  generate (p);
  p->flag = p->hidden = 0;
  p->root = td_chain_new ("random");
  for (int k = 0; k < 3; k++)
    {
      snprintf (name, sizeof name, "l%d", k);
      p->layers[k] = td_linear_new (p->root, name, COLUMNS, COLUMNS);
    }
  p->bn = td_batch_normalization_new (p->root, "bn", COLUMNS);
  fill_params (p->root, p->seed);
  TD_SCOPE ("captured")
    p->captured = td_retain (some (TD_SHAPE (COLUMNS), p->seed + 7));
}

/* Something that was traced changes. */
static void
plant (Program *p, int64_t *rows)
{
  switch (p->seed % 5)
    {
    case 0:
      p->flag = 1;
      break;
    case 1:
      *rows = ROWS + 1;
      break;
    case 2:
      td_config_set (train, 0);
      break;
    case 3:
      td_linear_new (p->root, "more", 2, 2);
      td_write (td_link_param (p->root, "more/W"), (float[]){ 1, 2, 3, 4 }, 16);
      break;
    default:
      td_link_disable_update (p->root);
      p->flag = -1;
    }
}

static TdVar *
loss_of (TdVar **y, int n, TdVar *so_far)
{
  for (int k = 0; k < n; k++)
    {
      TdVar *one = td_sum (td_mul (td_tanh (y[k]), some (td_shape (y[k]), 40 + (unsigned)k)));

      so_far = so_far == NULL ? one : td_add (so_far, one);
    }
  return so_far;
}

static void
iterate (Program *p, TdStatic *s, int i, int64_t rows, bool *gate)
{
  unsigned calls = p->seed % 3 == 0 ? 1 + (unsigned)i % 3 : 1,
           seed = p->seed * 31 + (unsigned)i;
  TdVar *loss = NULL, *x[3];

  for (unsigned c = 0; c < calls; c++)
    {
      TdVar *in[3], *y[MAX_RESULTS];
      float decides = *gate ? 1.5f : -0.5f;

      in[0] = x[c] = td_variable (some (TD_SHAPE (rows, COLUMNS), seed + c), "x");
      in[1] = some (TD_SHAPE (rows, COLUMNS), seed + 100 + c);
      in[2] = td_tensor (TD_F32, TD_SHAPE (1), &decides);
      assert_int_equal (td_static_call (s, in, 3, y, p->n_results), TD_OK);
      for (int k = 0; k < p->n_results; k++)
        note (y[k]);
      loss = loss_of (y, p->n_results, loss);
    }
  if (p->seed % 7 == 3 && i % 2 == 1) /* no backward of this one */
    return;
  if (p->seed % 4 != 1)
    td_cleargrads (p->root);
  assert_int_equal (td_backward (loss, 0), TD_OK);
  for (unsigned c = 0; c < calls; c++)
    note (td_grad (x[c]));
  note (loss);
}

static void
scenario (void *user)
{
  Program *p = user;
  TdStatic *s;
  bool gate = true;
  int64_t rows = ROWS;

  prepare (p);
  s = p->passes
          ? td_static_new (program, p, .minimize_cache_size = p->seed % 2, .verify = p->verify)
          : td_static_new (program, p, .minimize_cache_size = p->seed % 2, .prune = false,
                           .fold = false, .cse = false, .fuse = false, .in_place = false,
                           .plan = false, .verify = p->verify);
  td_static_watch (s, "flag", &p->flag, sizeof p->flag);
  for (int i = 0; i < N_ITERATIONS; i++)
    TD_SCOPE ("iteration")
      {
        uint64_t code;

        if (i == 5 && p->seed % 6 == 0)
          gate = false; /* the branch goes the other way, where there is one */
        if (i == 4 && p->hides)
          p->hidden = 1;
        else if (i == 4)
          plant (p, &rows);
        code = td_static_info (s).n_dynamic;
        iterate (p, s, i, rows, &gate);
        note_link (p->root);
        if (is_static_run () && i == 4 && td_static_info (s).n_dynamic == code)
          fail_msg ("what was planted was not caught");
        if (is_static_run () && i == 4 && p->hides && td_static_info (s).n_differences != 1)
          fail_msg ("the hidden variable was not caught");
        if (is_static_run () && i == 3 && td_static_info (s).n_replays == 0)
          fail_msg ("nothing was replayed: %s", td_static_last_miss (s));
      }
  if (is_static_run () && p->verify > 0
      && (td_static_info (s).n_differences != p->hides || td_static_info (s).n_verified == 0))
    fail_msg ("%llu verified: %s", (unsigned long long)td_static_info (s).n_verified,
              td_static_last_miss (s));
  td_config_set (train, 1);
  td_static_free (s);
  td_release (p->captured);
  td_link_free (p->root);
}

static void
random__programs_agree_bit_for_bit (void **state)
{
  Program p = { 0 };

  (void)state;
  for (p.seed = FIRST_PROGRAM; p.seed < N_PROGRAMS; p.seed++)
    {
      run_doing ("seed", (int)p.seed);
      run_both (scenario, &p);
    }
}

static void
random__programs_agree_with_every_pass (void **state)
{
  Program p = { .passes = true };

  (void)state;
  for (p.seed = FIRST_PROGRAM; p.seed < N_PROGRAMS; p.seed++)
    {
      run_doing ("seed", (int)p.seed);
      run_near (scenario, &p, MAX_INSTRUCTIONS);
    }
}

static void
random__verified_programs_show_no_difference (void **state)
{
  Program p = { .verify = 1 };

  (void)state;
  for (p.seed = FIRST_PROGRAM; p.seed < (FIRST_PROGRAM + N_PROGRAMS) / 2; p.seed++)
    {
      run_doing ("seed", (int)p.seed);
      p.passes = p.seed % 2 == 1;
      p.verify = 1 + (int)p.seed % 3;
      run_near (scenario, &p, p.passes ? MAX_INSTRUCTIONS : 0);
    }
}

static void
random__a_hidden_variable_is_caught_at_the_first_wrong_call (void **state)
{
  Program p = { .verify = 1, .hides = true };

  (void)state;
  for (p.seed = FIRST_PROGRAM; p.seed < N_PROGRAMS; p.seed++)
    {
      run_doing ("seed", (int)p.seed);
      run_both (scenario, &p);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (random__programs_agree_bit_for_bit),
    engine_test (random__programs_agree_with_every_pass),
    engine_test (random__verified_programs_show_no_difference),
    engine_test (random__a_hidden_variable_is_caught_at_the_first_wrong_call),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
