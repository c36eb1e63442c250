/* The passes of static schedules: each alone and all together give what define-by-run gives,
 * bit for bit, and each can be seen at work.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/cpu/cpu.h"
#include "static/entry.h"
#include "static/pass.h"
#include "static-rig.h"

enum
{
  N_PROGRAMS = 60,
  N_CALLS = 3,
  MAX_POOL = 40,
  MAX_OUT = 4
};

/* --- plans under the microscope --- */

/* Who wrote each word of the arena last, while a plan is played. */
typedef struct
{
  const TdPlan *p;
  uint32_t *owner; /* value + 1 */
} Arena;

static size_t
words (const TdPlan *p, uint32_t value)
{
  return (p->s->values[value].bytes + 3) / 4;
}

/* Call f for a value, or for each of those that it is made of. */
static void
for_parts (Arena *a, uint32_t value, void (*f) (Arena *a, uint32_t value))
{
  const TdPlan *p = a->p;
  const uint32_t b = td__plan_block (p, value);
  size_t bytes = 0;

  if (p->s->values[value].kind != TD_VALUE_INTERIOR)
    return;
  if (b == TD_ABSENT || !td__plan_covers (p, value))
    {
      f (a, value);
      return;
    }
  for (uint32_t k = 0; k < p->blocks[b].n_parts; k++)
    if (td__plan_covers_part (p, value, k))
      {
        assert_int_equal (p->offsets[p->blocks[b].parts[k]], p->offsets[value] + bytes);
        bytes += p->s->values[p->blocks[b].parts[k]].bytes;
        f (a, p->blocks[b].parts[k]);
      }
  assert_int_equal (bytes, p->s->values[value].bytes);
}

static void
check_read (Arena *a, uint32_t value)
{
  assert_true (a->p->offsets[value] != SIZE_MAX);
  for (size_t k = 0; k < words (a->p, value); k++)
    assert_int_equal (a->owner[a->p->offsets[value] / 4 + k], value + 1);
}

static void
write_value (Arena *a, uint32_t value)
{
  const TdPlan *p = a->p;

  assert_true (p->offsets[value] != SIZE_MAX);
  assert_true (p->offsets[value] + p->s->values[value].bytes <= p->arena_bytes);
  for (size_t k = 0; k < words (p, value); k++)
    a->owner[p->offsets[value] / 4 + k] = value + 1;
}

static bool
overlap (const TdPlan *p, uint32_t a, uint32_t b)
{
  return p->offsets[a] != SIZE_MAX && p->offsets[b] != SIZE_MAX
         && p->offsets[a] < p->offsets[b] + p->s->values[b].bytes
         && p->offsets[b] < p->offsets[a] + p->s->values[a].bytes;
}

/* Inputs are whole when they are read; results do not lie on inputs, but exactly in place. */
static void
replay_step (Arena *a, const TdStep *step)
{
  const TdSchedule *s = a->p->s;

  for (uint32_t k = 0; k < step->n_in; k++)
    for_parts (a, s->nodes[td__step_in (s, step, k)].value, check_read);
  for (uint32_t k = 0; k < step->n_out; k++)
    for (uint32_t i = 0; i < step->n_in; i++)
      {
        const uint32_t in = s->nodes[td__step_in (s, step, i)].value;
        const uint32_t out = s->nodes[td__step_out (s, step, k)].value;

        if (in != out && overlap (a->p, in, out))
          assert_int_equal (a->p->offsets[in], a->p->offsets[out]);
      }
  for (uint32_t k = 0; k < step->n_out; k++)
    for_parts (a, s->nodes[td__step_out (s, step, k)].value, write_value);
}

static void
replay_list (Arena *a, uint32_t list)
{
  const TdSteps *steps = td__plan_list (a->p, list);

  for (uint32_t i = 0; i < steps->n; i++)
    if (td__step_computes (&steps->steps[i]))
      replay_step (a, &steps->steps[i]);
}

/* Nothing that is still read is overwritten, in forward and then in each backward. */
static void
check_plan (const TdPlan *p)
{
  const size_t bytes = (p->arena_bytes / 4 + 1) * sizeof (uint32_t);
  Arena a = { p, calloc (1, bytes) };
  uint32_t *forward = malloc (bytes);

  assert_non_null (a.owner);
  assert_non_null (forward);
  if (p->n_blocks == 0)
    assert_null (td__schedule_verify (p->s));
  assert_true (p->lower_bound <= p->arena_bytes);
  replay_list (&a, 0);
  memcpy (forward, a.owner, bytes);
  for (uint32_t list = 1; list <= p->s->n_backwards; list++)
    {
      memcpy (a.owner, forward, bytes);
      replay_list (&a, list);
    }
  free (a.owner);
  free (forward);
}

/* --- random programs --- */

typedef struct
{
  unsigned seed;
  TdVar *w, *row, *one; /* captured: (8, 8), (8), one number */
  int64_t rows;
} Program;

static unsigned
draw (unsigned *state, unsigned n)
{
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 16) % n;
}

static TdVar *
unary (unsigned which, TdVar *x)
{
  switch (which)
    {
    case 0:
      return td_tanh (x);
    case 1:
      return td_relu (x);
    case 2:
      return td_sigmoid (x);
    case 3:
      return td_mul_scalar (x, 0.5);
    case 4:
      return td_sub_scalar (x, 0.25);
    case 5:
      return td_neg (x);
    case 6:
      return td_square (td_mul_scalar (x, 0.5));
    case 7:
      return td_leaky_relu (x, .slope = 0.1);
    case 8:
      return td_gelu (x);
    default:
      return td_dropout (x, 0.25);
    }
}

static TdVar *
binary (unsigned which, TdVar *x, TdVar *y)
{
  switch (which)
    {
    case 0:
      return td_add (x, y);
    case 1:
      return td_sub (x, y);
    case 2:
      return td_maximum (x, y);
    default:
      return td_mul (td_tanh (x), y);
    }
}

/* Operations over arrays of one shape, with products, sums, what is made twice, what nobody
 * uses and what is made of constants between them. */
static void
program (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Program *p = self;
  unsigned state = p->seed;
  TdVar *pool[MAX_POOL] = { in[0], in[1] };
  int n = 2, n_steps = 6 + (int)draw (&state, 26);

  (void)n_in;
  for (int i = 0; i < n_steps; i++)
    {
      TdVar *x = pool[draw (&state, (unsigned)n)], *y = pool[draw (&state, (unsigned)n)];

      switch (draw (&state, 12))
        {
        case 0:
          x = td_linear (x, p->w, p->row);
          break;
        case 1:
          x = td_add (x, p->row); /* every row */
          break;
        case 2:
          x = td_mul (x, p->one);
          break;
        case 3:
          x = td_mul (td_exp (td_full (TD_F32, TD_SHAPE (1), -0.5)), x);
          break;
        case 4:
          x = td_add (td_tanh (x), td_tanh (x));
          break;
        case 5:
          td_softplus (td_mul (x, y), .beta = 1); /* nobody's */
          continue;
        case 6:
          x = td_sub (x, td_mean_axes (x, (const int[]){ 0 }, 1, true));
          break;
        case 7:
        case 8:
          x = binary (draw (&state, 4), x, y);
          break;
        default:
          x = unary (draw (&state, 10), x);
        }
      pool[n++] = x;
    }
  for (int k = 0; k < n_out; k++)
    out[k] = k == 0 ? td_mean (pool[n - 1]) : pool[n - 1 - (int)draw (&state, (unsigned)n - 2)];
}

static Program
program_new (unsigned seed, int64_t rows)
{
  Program p = { .seed = seed * 7919 + 17, .rows = rows };

  p.w = td_variable (td_retain (some (TD_SHAPE (8, 8), seed)), "w");
  p.row = td_variable (td_retain (some (TD_SHAPE (8), seed + 1)), "row");
  p.one = td_variable (td_retain (some (TD_SHAPE (1), seed + 2)), "one");
  return p;
}

static void
program_free (Program *p)
{
  td_release (p->w);
  td_release (p->row);
  td_release (p->one);
}

/* One call and its backward; everything that comes out, in `results`. */
static int
step (Program *p, TdStatic *s, int call, TdVar **results)
{
  TdVar *in[2], *out[MAX_OUT];
  TdVar *leaves[] = { NULL, NULL, p->w, p->row, p->one };
  const int n_out = 1 + (int)(p->seed % 3);
  int n = 0;

  td_set_seed ((uint64_t)(500 + call));
  for (int k = 0; k < 2; k++)
    in[k] = leaves[k]
        = td_variable (some (TD_SHAPE (p->rows, 8), (unsigned)(10 * call + k)), "x");
  for (int k = 2; k < 5; k++)
    td_cleargrad (leaves[k]);
  if (s != NULL)
    assert_int_equal (td_static_call (s, in, 2, out, n_out), TD_OK);
  else
    program (p, in, 2, out, n_out);
  td_backward (out[0], 0);
  for (int k = 0; k < n_out; k++)
    results[n++] = out[k];
  for (int k = 0; k < 5; k++)
    results[n++] = td_grad (leaves[k]);
  return n;
}

static void
assert_near (TdVar *a, TdVar *b, int ulps, unsigned seed)
{
  size_t bytes;
  char *x, *y;

  assert_int_equal (a == NULL, b == NULL);
  if (a == NULL)
    return;
  assert_int_equal (td_size (a), td_size (b));
  bytes = (size_t)td_size (a) * td_dtype_bytes (td_dtype (a));
  x = malloc (bytes);
  y = malloc (bytes);
  assert_int_equal (td_read (a, x, bytes), TD_OK);
  assert_int_equal (td_read (b, y, bytes), TD_OK);
  if (ulps == 0 && memcmp (x, y, bytes) != 0)
    fail_msg ("program %u differs", seed);
  for (size_t k = 0; k < bytes / sizeof (float) && ulps > 0; k++)
    assert_float_equal (((float *)(void *)x)[k], ((float *)(void *)y)[k],
                        ulps * 6e-8 * fmax (1, fabs (((float *)(void *)y)[k])));
  free (x);
  free (y);
}

/* Programs under these switches; adds up what the passes did. */
static TdStaticInfo
run_programs (TdStaticOpt options, unsigned first, unsigned n, int64_t rows)
{
  TdStaticInfo sum = { 0 };

  for (unsigned k = first; k < first + n; k++)
    {
      Program dynamic = program_new (k, rows), p = program_new (k, rows);
      TdStatic *s = td_static_new_at (program, &p, options, NULL);
      TdStaticInfo info;

      TD_ITERATIONS (i, N_CALLS)
        {
          TdVar *a[MAX_OUT + 5], *b[MAX_OUT + 5];
          const int n_results = step (&dynamic, NULL, i, a);

          assert_int_equal (step (&p, s, i, b), n_results);
          for (int r = 0; r < n_results; r++)
            assert_near (a[r], b[r], options.batch && options.fuse ? 64 : 0, k);
        }
      info = td_static_info (s);
      assert_int_equal (info.n_replays, N_CALLS - 1);
      check_plan (plan_of (s));
      assert_int_equal (info.bytes, info.planned_bytes);
      sum.n_pruned += info.n_pruned;
      sum.n_folded += info.n_folded;
      sum.n_merged += info.n_merged;
      sum.n_batched += info.n_batched;
      sum.n_fused += info.n_fused;
      sum.n_in_place += info.n_in_place;
      sum.planned_bytes += info.planned_bytes;
      sum.lower_bound_bytes += info.lower_bound_bytes;
      td_static_free (s);
      program_free (&dynamic);
      program_free (&p);
    }
  return sum;
}

static TdStaticOpt
no_passes (void)
{
  TdStaticOpt o = td_static_options ();

  o.prune = o.fold = o.cse = o.batch = o.fuse = o.in_place = o.plan = false;
  return o;
}

/* All that leave every bit as it is. */
static TdStaticOpt
same_bits (void)
{
  TdStaticOpt o = td_static_options ();

  o.batch = false;
  return o;
}

static void
passes__each_alone_gives_the_bits_of_define_by_run (void **state)
{
  TdStaticInfo none, alone;
  TdStaticOpt o = no_passes ();

  (void)state;
  none = run_programs (o, 0, N_PROGRAMS / 3, 5);
  assert_int_equal (
      none.n_pruned + none.n_folded + none.n_merged + none.n_fused + none.n_in_place, 0);
  o.prune = true;
  alone = run_programs (o, 0, N_PROGRAMS / 3, 5);
  assert_true (alone.n_pruned > 10);
  assert_true (alone.planned_bytes < none.planned_bytes);
  o = no_passes ();
  o.fold = true;
  assert_true (run_programs (o, 0, N_PROGRAMS / 3, 5).n_folded > 10);
  o = no_passes ();
  o.cse = true;
  assert_true (run_programs (o, 0, N_PROGRAMS / 3, 5).n_merged > 10);
  o = no_passes ();
  o.fuse = true;
  assert_true (run_programs (o, 0, N_PROGRAMS / 3, 5).n_fused > 100 || !td_test_on_cpu ());
  o = no_passes ();
  o.in_place = true;
  assert_true (run_programs (o, 0, N_PROGRAMS / 3, 5).n_in_place > 50 || !td_test_on_cpu ());
  o = no_passes ();
  o.plan = true;
  alone = run_programs (o, 0, N_PROGRAMS / 3, 5);
  assert_true (alone.planned_bytes < none.planned_bytes);
}

static void
passes__all_together_give_the_bits_of_define_by_run (void **state)
{
  TdStaticInfo all;

  (void)state;
  all = run_programs (same_bits (), 0, N_PROGRAMS, 5);
  assert_true (all.n_pruned > 0 && all.n_folded > 0 && all.n_merged > 0);
  assert_true ((all.n_fused > 0 && all.n_in_place > 0) || !td_test_on_cpu ());
  assert_true ((double)all.planned_bytes <= 1.05 * (double)all.lower_bound_bytes);
}

/* Arrays of many tiles, and of several pieces of work. */
static void
passes__large_arrays_give_the_same_bits_on_one_thread_and_two (void **state)
{
  const int threads = td__cpu_threads ();

  (void)state;
  for (int n = 1; n <= 2; n++)
    {
      td__cpu_set_threads (n);
      run_programs (same_bits (), 100, 8, 700);
      run_programs (same_bits (), 200, 5, 12345);
    }
  td__cpu_set_threads (threads);
}

static void
passes__batches_of_random_programs_are_near (void **state)
{
  (void)state;
  assert_true (run_programs (td_static_options (), 300, 2 * N_PROGRAMS, 5).n_batched > 10);
}

/* --- what each does --- */

static void
wasteful (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *x = in[0], *c;

  (void)self;
  (void)n_in;
  (void)n_out;
  td_tanh (td_exp (x));                                         /* two that nobody uses */
  c = td_sqrt (td_full (TD_F32, TD_SHAPE (4), 9));              /* a constant of two steps */
  out[0] = td_add (td_matmul (x, td_sigmoid (x), false, true),  /* the same sigmoid ... */
                   td_matmul (td_sigmoid (x), x, false, true)); /* ... twice */
  out[0] = td_add (out[0], c);
}

static TdStaticInfo
wasteful_info (TdStaticOpt o)
{
  TdStatic *s;
  TdStaticInfo info;
  const TdPlan *p;

  o.name = "wasteful";
  s = td_static_new_at (wasteful, NULL, o, NULL);
  TD_ITERATIONS (i, 3)
    {
      TdVar *x = some (TD_SHAPE (4, 6), (unsigned)i), *want, *y;

      wasteful (NULL, &x, 1, &want, 1);
      y = td_static_call1 (s, x);
      assert_bits (want, y);
    }
  info = td_static_info (s);
  p = plan_of (s);
  assert_int_equal (p->n_notes, info.n_pruned + info.n_folded + info.n_merged + info.n_fused
                                    + info.n_in_place);
  for (uint32_t k = 0; k < p->n_notes; k++)
    if (p->notes[k].pass == TD_PASS_CSE)
      {
        const TdSteps *trace = &s->entries->schedule->forward;

        assert_string_equal (trace->steps[p->notes[k].step].cls->name, "sigmoid");
        assert_string_equal (trace->steps[p->notes[k].other].cls->name, "sigmoid");
      }
  info.n_steps = 0; /* what is left to run */
  for (uint32_t k = 0; k < p->s->forward.n; k++)
    info.n_steps += td__step_computes (&p->s->forward.steps[k]);
  td_static_free (s);
  return info;
}

static void
passes__prune_fold_and_merge_take_out_what_they_name (void **state)
{
  TdStaticOpt o = no_passes ();
  const uint32_t n = wasteful_info (o).n_steps;
  TdStaticInfo info;

  (void)state;
  assert_int_equal (n, 10);
  o.prune = true;
  info = wasteful_info (o);
  assert_int_equal (info.n_pruned, 2);
  assert_int_equal (info.n_steps, n - 2);
  o = no_passes ();
  o.fold = true;
  info = wasteful_info (o);
  assert_int_equal (info.n_folded, 2);
  assert_int_equal (info.n_steps, n - 2);
  o = no_passes ();
  o.cse = true;
  info = wasteful_info (o);
  assert_int_equal (info.n_merged, 1);
  assert_int_equal (info.n_steps, n - 1);
  info = wasteful_info (td_static_options ());
  assert_int_equal (info.n_pruned + info.n_folded + info.n_merged, 5);
}

static void
long_chain (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *y = in[0];

  (void)n_in;
  (void)n_out;
  for (int i = 0; i < *(int *)self; i++)
    y = i % 3 == 0 ? td_mul (y, in[1]) : i % 3 == 1 ? td_add (y, in[2]) : td_tanh (y);
  out[0] = y;
}

static void
passes__a_fused_chain_keeps_nothing_in_between (void **state)
{
  int n = 30;
  TdStatic *s = td_static_new (long_chain, &n);
  const TdPlan *p;

  td_test_needs_cpu ("it alone has kernels of fused groups");
  TD_ITERATIONS (i, 3)
    {
      TdVar *in[3], *want, *y;

      for (int k = 0; k < 3; k++)
        in[k] = some (TD_SHAPE (5000), (unsigned)(3 * i + k));
      long_chain (&n, in, 3, &want, 1);
      td_static_call (s, in, 3, &y, 1);
      assert_bits (want, y);
    }
  p = plan_of (s);
  assert_int_equal (p->n_groups, 1);
  assert_int_equal (p->groups[0].n_members, 30);
  assert_int_equal (p->groups[0].n_interior, 29);
  assert_int_equal (p->arena_bytes, 0);
  assert_true (td__tiles_length (p->groups[0].tiles) < 5000);
  td_static_free (s);
}

/* Gradients that nobody cleared, and a variable that is used at both ends of the group. */
static void
used_twice (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *y;

  (void)self;
  (void)n_in;
  (void)n_out;
  y = td_tanh (td_mul (td_tanh (td_mul (in[0], in[1])), in[0]));
  out[0] = td_mul (y, in[1]);
}

static void
passes__a_group_adds_to_the_gradients_that_are_there (void **state)
{
  TdStatic *s = td_static_new (used_twice, NULL);
  TdVar *x[2][2];
  const TdPlan *p;
  uint32_t n_adding = 0;

  td_test_needs_cpu ("it alone has kernels of fused groups");
  for (int which = 0; which < 2; which++)
    for (int k = 0; k < 2; k++)
      x[which][k] = td_variable (td_retain (some (TD_SHAPE (3000), (unsigned)k)), "x");
  TD_ITERATIONS (i, 4)
    {
      TdVar *want, *got, *seed = some (TD_SHAPE (3000), (unsigned)(20 + i));

      used_twice (NULL, x[0], 2, &want, 1);
      td_static_call (s, x[1], 2, &got, 1);
      assert_bits (want, got);
      td_set_grad (want, seed);
      td_backward (want, 0);
      td_set_grad (got, seed);
      td_backward (got, 0);
      for (int k = 0; k < 2; k++)
        assert_bits (td_grad (x[0][k]), td_grad (x[1][k]));
    }
  p = plan_of (s);
  for (uint32_t g = 0; g < p->n_groups; g++)
    for (uint32_t j = 0; j < p->groups[g].n_members; j++)
      n_adding += p->groups[g].members[j].external != TD_ABSENT;
  assert_true (n_adding > 0);
  td_static_free (s);
  for (int k = 0; k < 4; k++)
    td_release (x[k / 2][k % 2]);
}

static void
passes__a_chain_in_place_needs_one_array (void **state)
{
  int n = 12;
  TdStatic *s = td_static_new (long_chain, &n, .fuse = false);
  const TdPlan *p;

  td_test_needs_cpu ("steps compute in place there only");
  TD_ITERATIONS (i, 3)
    {
      TdVar *in[3], *y;

      for (int k = 0; k < 3; k++)
        in[k] = some (TD_SHAPE (100), (unsigned)(3 * i + k));
      td_static_call (s, in, 3, &y, 1);
    }
  p = plan_of (s);
  assert_int_equal (p->n_in_place,
                    10); /* the first reads an argument, the last is the result */
  assert_int_equal (p->arena_bytes, 448);
  assert_int_equal (p->lower_bound, 448);
  td_static_free (s);
}

/* A parameter that is used at every step gets one gradient, added to in place. */
static void
recurrent (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = in[0];

  (void)n_in;
  (void)n_out;
  for (int i = 0; i < 6; i++)
    h = td_tanh (td_linear (h, self, NULL));
  out[0] = td_mean (h);
}

static void
passes__a_shared_weight_has_one_gradient_array (void **state)
{
  TdVar *w = td_variable (td_retain (some (TD_SHAPE (64, 64), 3)), "w");
  TdStatic *s = td_static_new (recurrent, w);
  TdMemInfo before, after;

  (void)state;
  TD_ITERATIONS (i, 4)
    {
      TdVar *x = some (TD_SHAPE (4, 64), (unsigned)i), *y;

      td_cleargrad (w);
      y = td_static_call1 (s, x);
      before = td_mem_info (td_device (w));
      td_backward (y, 0);
      after = td_mem_info (td_device (w));
    }
  /* One array for six products; and the gradient of y. */
  assert_in_range (after.n_allocs - before.n_allocs, 1, td_test_on_cpu () ? 3 : 20);
  assert_in_range (after.live_bytes - before.live_bytes, 64 * 64 * 4, 64 * 64 * 4 + 2048);
  td_static_free (s);
  td_release (w);
}

/* A recurrent net over six steps: projections of its inputs, states, and results of each. */
static void
unrolled (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *const *w = self; /* (16, 8), (16), (16, 16), (3, 16) */
  TdVar *h = NULL, *sum = NULL;

  (void)n_out;
  for (int i = 0; i < n_in; i++)
    {
      TdVar *a = td_linear (td_tanh (in[i]), w[0], w[1]), *y;

      h = td_tanh (h != NULL ? td_add (a, td_linear (h, w[2], NULL)) : a);
      y = td_mean (td_square (td_linear (h, w[3], NULL)));
      sum = sum != NULL ? td_add (sum, y) : y;
    }
  out[0] = sum;
}

static void
weights_new (TdVar **w)
{
  const TdShape shapes[]
      = { TD_SHAPE (16, 8), TD_SHAPE (16), TD_SHAPE (16, 16), TD_SHAPE (3, 16) };

  for (unsigned k = 0; k < 4; k++)
    w[k] = td_variable (td_retain (some (shapes[k], k)), "w");
}

/* What was batched of the list: the members of the step of this class that wants `external`. */
static uint32_t
count_class (const TdPlan *p, uint32_t list, const char *name)
{
  const TdSteps *steps = td__plan_list (p, list);
  uint32_t n = 0;

  for (uint32_t k = 0; k < steps->n; k++)
    n += steps->steps[k].kind == TD_STEP_OP && strcmp (steps->steps[k].cls->name, name) == 0;
  return n;
}

static void
check_unrolled (TdStaticOpt o, uint32_t n_linear, uint32_t n_matmul, uint32_t n_sum)
{
  TdVar *a[4], *b[4];
  TdStatic *s;

  weights_new (a);
  weights_new (b);
  s = td_static_new_at (unrolled, b, o, NULL);
  TD_ITERATIONS (i, 4)
    {
      TdVar *in[6], *want, *got;

      for (int k = 0; k < 6; k++)
        in[k] = some (TD_SHAPE (4, 8), (unsigned)(10 * i + k));
      for (int k = 0; k < 4; k++)
        {
          td_cleargrad (a[k]);
          td_cleargrad (b[k]);
        }
      unrolled (a, in, 6, &want, 1);
      assert_int_equal (td_static_call (s, in, 6, &got, 1), TD_OK);
      assert_bits (want, got);
      td_backward (want, 0);
      td_backward (got, 0);
      for (int k = 0; k < 4; k++)
        assert_near (td_grad (a[k]), td_grad (b[k]), o.batch ? 16 : 0, (unsigned)k);
    }
  check_plan (plan_of (s));
  assert_int_equal (count_class (plan_of (s), 0, "linear"), n_linear);
  assert_int_equal (count_class (plan_of (s), 1, "matmul"), n_matmul);
  assert_int_equal (count_class (plan_of (s), 1, "sum"), n_sum);
  td_static_free (s);
  for (int k = 0; k < 4; k++)
    {
      td_release (a[k]);
      td_release (b[k]);
    }
}

static void
passes__a_recurrent_net_multiplies_all_steps_at_once (void **state)
{
  TdStaticOpt o = td_static_options ();

  (void)state;
  /* Forward: all inputs at once, all results at once, five times the state.  Backward: the
   * weights' gradients once each; the states' have to be made one after the other. */
  check_unrolled (o, 7, 3 + 5 + 6, 1);
  o.batch = false;
  check_unrolled (o, 6 + 5 + 6, 3 * 6 - 1 + 5 + 6, 6);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (passes__each_alone_gives_the_bits_of_define_by_run),
    engine_test (passes__all_together_give_the_bits_of_define_by_run),
    engine_test (passes__large_arrays_give_the_same_bits_on_one_thread_and_two),
    engine_test (passes__prune_fold_and_merge_take_out_what_they_name),
    engine_test (passes__a_fused_chain_keeps_nothing_in_between),
    engine_test (passes__a_group_adds_to_the_gradients_that_are_there),
    engine_test (passes__a_chain_in_place_needs_one_array),
    engine_test (passes__batches_of_random_programs_are_near),
    engine_test (passes__a_recurrent_net_multiplies_all_steps_at_once),
    engine_test (passes__a_shared_weight_has_one_gradient_array),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
