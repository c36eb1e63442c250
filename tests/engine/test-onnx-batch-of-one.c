/* Random programs that ran with a batch of 1, or of a size that their other sizes have too, as
 * ONNX files: with another batch a file computes what the program does, or has said which
 * number it took for what.
 *
 * A program is made of steps that a fixed stream of numbers chooses; shapes are kept as
 * multiples of the batch, so that the same program is run with either.  Each goes out as the
 * graph that ran and, but for gradients, as a static function.  Its arguments: how many
 * programs, and from which number on.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "onnx-run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MOST_DIMS = 4,
  MOST_STEPS = 5
};

/* One size: so many, times the batch or not. */
typedef struct
{
  int64_t k;
  bool by_batch;
} Size;

typedef struct
{
  uint64_t random;
  int64_t n;           /* the batch */
  bool is_one;         /* that of the file is 1 */
  TdVar *const *given; /* inputs, where the caller has them */
  bool has_gradient;
  TdVar *x, *v, *param;
  TdVar *other;             /* a second input, of x's shape; NULL until a step uses it */
  Size size[MOST_DIMS + 1]; /* of v */
  int ndim;
} Program;

static int n_programs = 600;
static unsigned first_program = 1;

static unsigned
draw (Program *p, unsigned below)
{
  p->random = p->random * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(p->random >> 33) % below;
}

static int64_t
value (const Program *p, Size s)
{
  return s.by_batch ? s.k * p->n : s.k;
}

static TdShape
shape_of (const Program *p, const Size *sizes, int ndim)
{
  TdShape shape = { ndim, { 0 } };

  for (int d = 0; d < ndim; d++)
    shape.dim[d] = value (p, sizes[d]);
  return shape;
}

/* Numbers by their place: those of the first row are the same whatever the batch is. */
static TdVar *
array (Program *p, const Size *sizes, int ndim, unsigned seed, bool uniform)
{
  const TdShape shape = shape_of (p, sizes, ndim);
  int64_t n = 1;
  float *numbers;
  TdVar *v;

  for (int d = 0; d < ndim; d++)
    n *= shape.dim[d];
  numbers = calloc ((size_t)n + 1, sizeof *numbers);
  for (int64_t i = 0; i < n; i++)
    numbers[i] = uniform ? 0.5f : (float)((i * 37 + seed * 11) % 29) / 15 - 0.9f;
  v = td_tensor (TD_F32, shape, numbers);
  free (numbers);
  return v;
}

static void
take (Program *p, TdVar *v, const Size *sizes, int ndim)
{
  p->v = v;
  memmove (p->size, sizes, sizeof *sizes * (size_t)ndim);
  p->ndim = ndim;
}

/* --- steps --- */

static void
map (Program *p)
{
  const unsigned drawn = draw (p, 6);
  const unsigned kind = !p->is_one && (drawn == 2 || drawn == 3) ? 4 : drawn; /* not seen */
  const double n = (double)p->n;

  p->v = kind == 0   ? td_tanh (p->v)
         : kind == 1 ? td_relu (p->v)
         : kind == 2 ? td_mul_scalar (p->v, 1 / n)
         : kind == 3 ? td_div_scalar (p->v, n)
         : kind == 4 ? td_mul_scalar (p->v, 0.7)
                     : td_square (p->v);
}

/* With an array of the code: as large as v, or of 1 in some of its axes, or of fewer axes; made
 * for the batch, or not. */
static void
with_array (Program *p)
{
  const bool uniform = draw (p, 2), is_param = draw (p, 4) == 0;
  const int skipped = p->ndim > 1 && draw (p, 3) == 0;
  const unsigned kind = draw (p, 4), seed = draw (p, 9);
  Size sizes[MOST_DIMS];
  TdVar *a;

  for (int d = skipped; d < p->ndim; d++)
    {
      sizes[d] = draw (p, 2) ? p->size[d] : (Size){ 1, false };
      if (is_param) /* has the sizes that it was made with */
        sizes[d] = (Size){ sizes[d].by_batch ? 1 : sizes[d].k, false };
    }
  a = array (p, sizes + skipped, p->ndim - skipped, seed, uniform);
  if (is_param && p->param == NULL)
    p->param = a;
  p->v = kind == 0   ? td_add (p->v, a)
         : kind == 1 ? td_mul (p->v, a)
         : kind == 2 ? td_maximum (a, p->v)
                     : td_where (td_greater (a, td_zeros (TD_F32, TD_SCALAR)), p->v, a);
}

static void
reduce (Program *p)
{
  const int axis = (int)draw (p, (unsigned)p->ndim);
  const bool keep = draw (p, 2);
  Size sizes[MOST_DIMS];
  int n = 0;

  if (p->ndim == 0 || (p->ndim == 1 && !keep))
    return;
  for (int d = 0; d < p->ndim; d++)
    if (d != axis)
      sizes[n++] = p->size[d];
    else if (keep)
      sizes[n++] = (Size){ 1, false };
  take (p,
        draw (p, 2) ? td_sum_axes (p->v, &axis, 1, keep) : td_mean_axes (p->v, &axis, 1, keep),
        sizes, n);
}

/* The shape by what the code knows: of all sizes as they are, of an axis of 1 more, of two axes
 * joined, of one left open. */
static void
reshape (Program *p)
{
  const unsigned kind = draw (p, 4), open = draw (p, 3);
  const int at = (int)draw (p, (unsigned)p->ndim + 1);
  Size sizes[MOST_DIMS + 1];
  TdShape shape;
  int n = p->ndim;

  memcpy (sizes, p->size, sizeof sizes);
  if (kind == 0 && n < MOST_DIMS)
    {
      memmove (sizes + at + 1, sizes + at, sizeof *sizes * (size_t)(n - at));
      sizes[at] = (Size){ 1, false };
      n++;
    }
  else if (kind == 1 && at + 1 < n && !(sizes[at].by_batch && sizes[at + 1].by_batch))
    {
      sizes[at].by_batch |= sizes[at + 1].by_batch;
      sizes[at].k *= sizes[at + 1].k;
      memmove (sizes + at + 1, sizes + at + 2, sizeof *sizes * (size_t)(n - at - 2));
      n--;
    }
  else if (kind == 2 && n == 2) /* dealt out anew */
    {
      const Size first = sizes[0];

      sizes[0] = sizes[1];
      sizes[1] = first;
    }
  shape = shape_of (p, sizes, n);
  if (open == 0 && at < n)
    shape.dim[at] = -1;
  else if (open == 1 && n > 0) /* a row of all, whatever there is */
    {
      Size all = { 1, false };

      for (int d = 0; d < n; d++)
        {
          if (all.by_batch && sizes[d].by_batch)
            return;
          all.k *= sizes[d].k;
          all.by_batch |= sizes[d].by_batch;
        }
      sizes[0] = (Size){ 1, false };
      sizes[1] = all;
      n = 2;
      shape = TD_SHAPE (1, -1);
    }
  take (p, td_reshape (p->v, shape), sizes, n);
}

/* All elements in another shape, by any divisors of their number, with the batch anywhere. */
static void
deal (Program *p)
{
  const int n = 2 + (int)draw (p, 2), by_batch = (int)draw (p, (unsigned)n),
            open = (int)draw (p, 3 * (unsigned)n);
  Size sizes[MOST_DIMS];
  int64_t rest = 1;
  int n_batches = 0;
  TdShape shape;

  for (int d = 0; d < p->ndim; d++)
    {
      rest *= p->size[d].k;
      n_batches += p->size[d].by_batch;
    }
  if (n_batches > 1)
    return;
  for (int d = 0; d < n; d++)
    {
      int64_t k = d < n - 1 ? 1 + draw (p, 6) : rest;

      while (rest % k != 0)
        k--;
      sizes[d] = (Size){ k, n_batches == 1 && d == by_batch };
      rest /= k;
    }
  shape = shape_of (p, sizes, n);
  if (open < n && (n_batches == 0 || open == by_batch || sizes[by_batch].k == 1))
    shape.dim[open]
        = -1; /* a -1 that is a number beside "5 times the batch" is taken to follow */
  take (p, td_reshape (p->v, shape), sizes, n);
}

static void
sum_down (Program *p)
{
  Size sizes[MOST_DIMS + 1];

  for (int d = 0; d < p->ndim; d++)
    sizes[d] = draw (p, 3) == 0 ? (Size){ 1, false } : p->size[d];
  take (p, td_sum_to (p->v, shape_of (p, sizes, p->ndim)), sizes, p->ndim);
}

static void
largest (Program *p)
{
  const int axis = (int)draw (p, (unsigned)p->ndim);
  Size sizes[MOST_DIMS + 1];
  int n = 0;

  if (p->ndim < 2)
    return;
  for (int d = 0; d < p->ndim; d++)
    if (d != axis)
      sizes[n++] = p->size[d];
  take (p, td_cast (td_argmin (p->v, axis), TD_F32), sizes, n);
}

/* The second input: beside all, its first row, its rows by number. */
static void
with_other (Program *p)
{
  static const Size sizes[] = { { 1, true }, { 6, false } };
  const unsigned kind = draw (p, 4);
  TdVar *both[2], *a;

  if (p->ndim != 2 || p->size[0].k != 1 || !p->size[0].by_batch || p->size[1].k != 6
      || p->size[1].by_batch)
    return;
  if (p->other == NULL)
    p->other = p->given != NULL ? p->given[1] : array (p, sizes, 2, 5, false);
  a = td_get_item (p->other, (TdSlice[]){ TD_RANGE (0, 1) }, 1);
  both[0] = p->v;
  both[1] = kind == 1 ? a : p->other;
  if (kind == 0)
    p->v = td_add (p->v, a);
  else if (kind == 3)
    p->v = td_mul (p->v, p->other);
  else
    take (p, td_concat (both, 2, 0),
          kind == 1 ? (Size[]){ { 0, false }, sizes[1] } : (Size[]){ { 2, true }, sizes[1] },
          2);
  if (kind == 1) /* batch + 1, which no Size is */
    take (p, td_sum_axes (p->v, (int[]){ 0 }, 1, false), sizes + 1, 1);
}

static void
turn (Program *p)
{
  const int from = (int)draw (p, (unsigned)p->ndim + 1),
            to = (int)draw (p, (unsigned)p->ndim + 1);
  Size sizes[MOST_DIMS + 1];

  if (from >= p->ndim || to >= p->ndim)
    return;
  memcpy (sizes, p->size, sizeof sizes);
  sizes[from] = p->size[to];
  sizes[to] = p->size[from];
  take (p, td_swapaxes (p->v, from, to), sizes, p->ndim);
}

static void
repeat (Program *p)
{
  const unsigned kind = draw (p, 3), by_batch = draw (p, 2);
  const int axis = (int)draw (p, (unsigned)p->ndim + 1);
  const int times = by_batch ? (int)p->n : 1;
  Size sizes[MOST_DIMS + 1];
  int reps[MOST_DIMS];

  if (axis >= p->ndim || (by_batch && p->size[axis].by_batch))
    return;
  memcpy (sizes, p->size, sizeof sizes);
  sizes[axis].by_batch |= by_batch;
  for (int d = 0; d < p->ndim; d++)
    reps[d] = d == axis ? times : 1;
  if (kind == 2 && p->size[axis].k == 1 && !p->size[axis].by_batch)
    take (p, td_broadcast_to (p->v, shape_of (p, sizes, p->ndim)), sizes, p->ndim);
  else
    take (p, kind == 0 ? td_tile (p->v, reps, p->ndim) : td_repeat (p->v, &times, 1, axis),
          sizes, p->ndim);
}

/* Beside rows of the code's, along an axis. */
static void
beside (Program *p)
{
  const int axis = (int)draw (p, (unsigned)p->ndim + 1);
  const bool uniform = draw (p, 2), for_each = draw (p, 2);
  Size sizes[MOST_DIMS + 1];
  TdVar *both[2] = { p->v, NULL };

  if (axis >= p->ndim || (for_each && !p->size[axis].by_batch)
      || (!for_each && p->size[axis].by_batch))
    return;
  memcpy (sizes, p->size, sizeof sizes);
  sizes[axis].k = 1;
  both[1] = array (p, sizes, p->ndim, 3, uniform);
  sizes[axis].k = p->size[axis].k + 1;
  take (p, td_concat (both, 2, axis), sizes, p->ndim);
}

static void
pick (Program *p)
{
  const unsigned kind = draw (p, 3);
  Size sizes[MOST_DIMS + 1];

  if (p->ndim < 2)
    return;
  memcpy (sizes, p->size, sizeof sizes);
  if (kind == 0)
    take (p, td_get_item (p->v, (TdSlice[]){ TD_AT (0) }, 1), p->size + 1, p->ndim - 1);
  else if (kind == 1)
    {
      sizes[0] = (Size){ 1, false };
      take (p, td_get_item (p->v, (TdSlice[]){ TD_RANGE (0, 1) }, 1), sizes, p->ndim);
    }
  else if (sizes[0].by_batch && sizes[0].k == 1)
    take (p, td_get_item (p->v, (TdSlice[]){ TD_RANGE (0, p->n) }, 1), sizes, p->ndim);
}

/* With arrays that the code makes from nothing, for the batch or for a length of its own, which
 * may be as large, or a multiple: of a mean for each row. */
static void
made (Program *p)
{
  const unsigned kind = draw (p, 7);
  const int64_t n = p->n, length = 1 + draw (p, 8);
  const Size rows = { 1, true };
  TdVar *m, *a;
  Size sizes[2] = { rows, { length, false } };

  if (p->ndim != 2 || p->size[0].k != 1 || !p->size[0].by_batch)
    return;
  m = td_mean_axes (p->v, (int[]){ 1 }, 1, true);
  if (kind == 0 || kind == 1) /* twice as long */
    {
      a = kind == 0 ? td_ones (TD_F32, TD_SHAPE (n, length))
                    : td_exp (td_mul_scalar (td_arange (TD_F32, 0, (double)length, 1), -0.2));
      sizes[1].k *= 2;
      a = td_concat ((TdVar *[]){ a, kind == 0 ? a : td_square (a) }, 2, kind == 0);
      a = kind == 0 ? a : td_broadcast_to (a, TD_SHAPE (n, 2 * length));
      take (p, td_mul (a, td_broadcast_to (m, TD_SHAPE (n, 2 * length))), sizes, 2);
      return;
    }
  a = td_mul_scalar (td_arange (TD_F32, 0, (double)length, 1), 0.2);
  if (kind == 2)
    take (p, td_sin (td_mul (m, td_expand_dims (a, 0))), sizes, 2);
  else if (kind == 3)
    {
      a = td_broadcast_to (td_expand_dims (a, 0), TD_SHAPE (n, length));
      a = td_square (td_sub (td_broadcast_to (m, TD_SHAPE (n, length)), a));
      take (p, td_exp (td_neg (a)), sizes, 2);
    }
  else if (kind == 4) /* where the batch is 1, it becomes the length */
    p->v = td_add (p->v, td_full (TD_F32, TD_SHAPE (p->is_one ? 1 : length, 1), 2));
  else if (kind == 5)
    take (p, td_mul (m, td_sum (td_ones (TD_F32, TD_SHAPE (draw (p, 2) ? length : 2 * n)))),
          (Size[]){ rows, { 1, false } }, 2);
  else
    take (p, td_squeeze (m), (Size[]){ rows }, td_ndim (m) > 0 && n > 1 ? 1 : 0);
}

/* Every row with every other. */
static void
product (Program *p)
{
  const Size rows = p->size[0];

  if (p->ndim == 2)
    take (p, td_tanh (td_matmul (p->v, p->v, false, true)), (Size[]){ rows, rows }, 2);
}

static void
loss (Program *p)
{
  const Size rows = p->ndim == 2 ? p->size[0] : (Size){ 0, false };
  int32_t labels[64] = { 0 };

  if (p->ndim != 2 || p->size[1].by_batch || value (p, rows) > 60)
    return;
  for (int64_t i = 0; i < value (p, rows); i++)
    labels[i] = (int32_t)((i + 1) % p->size[1].k);
  take (p,
        td_softmax_cross_entropy (p->v, td_tensor (TD_I32, TD_SHAPE (value (p, rows)), labels)),
        p->size, 0);
}

/* The gradient of what there is by the input, or by an array. */
static void
gradient (Program *p)
{
  TdVar *y = td_sum (p->v), *by = p->param != NULL && draw (p, 2) ? p->param : p->x, *g = NULL;
  const TdShape shape = td_shape (by);
  Size sizes[MOST_DIMS];

  for (int d = 0; d < shape.ndim; d++)
    sizes[d] = (Size){ by == p->x && d == 0 ? 1 : shape.dim[d], by == p->x && d == 0 };
  p->has_gradient = true;
  if (td_grad_of (&y, 1, &by, 1, NULL, TD_DOUBLE_BACKPROP, &g) == TD_OK && g != NULL)
    take (p, g, sizes, shape.ndim);
}

typedef struct
{
  unsigned seed;
  int64_t n;
  bool is_one;
  TdVar *in[2];
  int n_in;
  bool has_gradient;
} Run;

/* Run program r->seed with a batch of r->n; its inputs go to r->in, or are given. */
static TdVar *
run (Run *r, TdVar *const *given)
{
  static void (*const steps[]) (Program * p)
      = { map,  map,      with_array, with_array, with_array, reduce,  reshape, reshape,
          turn, repeat,   deal,       beside,     pick,       product, loss,    with_other,
          deal, sum_down, turn,       deal,       with_other, largest, made,    made,
          made, made,     made,       made,       made };
  static const Size inputs[][3] = { { { 1, true }, { 4, false } },
                                    { { 1, true }, { 1, false } },
                                    { { 1, true }, { 6, false } },
                                    { { 1, true }, { 2, false }, { 3, false } },
                                    { { 1, true }, { 1, false }, { 5, false } },
                                    { { 1, true }, { 6, false }, { 2, false } } };
  Program p = { .random = r->seed * 977u + 5, .n = r->n, .is_one = r->is_one, .given = given };
  const unsigned input = draw (&p, 6);
  const int n_steps = 1 + (int)draw (&p, MOST_STEPS);

  take (&p, NULL, inputs[input], input < 3 ? 2 : 3);
  p.v = p.x = given != NULL ? given[0] : array (&p, p.size, p.ndim, 1, false);
  for (int i = 0; i < n_steps && p.ndim > 0; i++)
    steps[draw (&p, sizeof steps / sizeof *steps)](&p);
  if (draw (&p, 6) == 0)
    gradient (&p);
  r->in[0] = p.x;
  r->in[1] = p.other;
  r->n_in = 1 + (p.other != NULL);
  r->has_gradient = p.has_gradient;
  return p.v;
}

static void
replayed (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Run again = *(const Run *)self;

  (void)n_in, (void)n_out;
  out[0] = run (&again, in);
}

/* --- as files --- */

static int n_said;

static void
hear (const char *line, void *user)
{
  (void)line, (void)user;
  n_said++;
}

static const char script[]
    = "import sys, glob, numpy, onnx, onnxruntime\n"
      "o = onnxruntime.SessionOptions ()\n"
      "o.log_severity_level = 4\n"
      "n = dict (models=0, open=0, right=0, other=0, told=0, silent=0)\n"
      "for path in sorted (glob.glob (sys.argv[1] + '/p*.onnx')):\n"
      "    n['models'] += 1\n"
      "    m = onnx.load (path)\n"
      "    said = {e.key: e.value for e in m.metadata_props}\n"
      "    s = onnxruntime.InferenceSession (path, o, providers=['CPUExecutionProvider'])\n"
      "    ins = list (m.graph.input)\n"
      "    dims = [i.type.tensor_type.shape.dim[0] for i in ins]\n"
      "    for k in (0, 1):\n"
      "        x = {i.name: numpy.load ('%s.%d.in%d.npy' % (path, k, j)) for j, i in enumerate "
      "(ins)}\n"
      "        if any (d.dim_param == '' and x[i.name].shape[0] != d.dim_value for d, i in zip "
      "(dims, ins)):\n"
      "            assert 'fixed' in said, path\n"
      "            continue\n"
      "        want = numpy.load ('%s.%d.out0.npy' % (path, k)) if glob.glob ('%s.%d.out0.npy' "
      "% (path, k)) else None\n"
      "        if want is None:\n"
      "            continue\n"
      "        why = ''\n"
      "        try:\n"
      "            got, = s.run (None, x)\n"
      "            same = got.shape == want.shape and numpy.allclose (got, want, 1e-4, 1e-4)\n"
      "            if not same: why = '%s, expected %s' % (got.shape, want.shape)\n"
      "        except Exception as e:\n"
      "            same, why = False, str (e)[:200]\n"
      "        assert same or k == 1, (path, why)\n"
      "        if k == 1:\n"
      "            n['open'] += 1\n"
      "            n['told'] += 'assumed' in said\n"
      "            n['right'] += same and 'assumed' not in said\n"
      "            n['other'] += not same\n"
      "            if not same and 'assumed' not in said:\n"
      "                n['silent'] += 1\n"
      "                print (path, why, [k.op_type for k in m.graph.node])\n"
      "print (n)\n"
      "assert n['right'] > n['models'] / 20 and n['other'] > n['models'] / 50, n\n"
      "sys.exit (n['silent'] != 0)\n";

/* Write it as what ran, or as a static function of its inputs. */
static bool
save_as (const char *path, Run *r, TdVar *y, bool is_static)
{
  TdStatic *s;
  bool saved;

  if (!is_static)
    return td_save_onnx (&y, 1, path, .in = r->in, .n_in = r->n_in, .assumed = hear) == TD_OK;
  if (r->has_gradient)
    return false;
  s = td_static_new (replayed, r);
  saved = td_static_call (s, r->in, r->n_in, &y, 1) == TD_OK
          && td_static_save (s, path, .assumed = hear) == TD_OK;
  td_static_free (s);
  return saved;
}

/* Save one that runs with both batches, and what it makes of them. */
static void
save_program (unsigned seed, bool is_static)
{
  static const int64_t saved_with[] = { 1, 2, 3, 6, 5 }, others[] = { 3, 5, 4, 4, 1 };
  const unsigned b = seed % 5;
  char name[40];

  snprintf (name, sizeof name, "p%u%s.onnx", seed, is_static ? "s" : "");
  TD_USING (keep_graph, !is_static)
    TD_SCOPE ("one")
      {
        Run r = { .seed = seed, .n = saved_with[b], .is_one = b == 0 };
        TdVar *y = run (&r, NULL);
        const bool saved
            = td_error () == NULL && save_as (td_test_tmp (name), &r, y, is_static);

        if (saved)
          keep_case (name, 0, r.in, r.n_in, &y, 1);
        td_error_clear ();
        if (saved)
          {
            r.n = others[b];
            y = run (&r, NULL);
            if (td_error () == NULL)
              keep_case (name, 1, r.in, r.n_in, &y, 1);
            else
              {
                td_error_clear ();
                keep_case (name, 1, r.in, r.n_in, NULL, 0);
              }
          }
      }
}

static void
out__of_random_programs_with_a_batch_like_other_sizes_computes_the_same_or_has_said_so (
    void **state)
{
  const char *python = td_test_python ("onnxruntime");
  TdTestChild child;

  (void)state;
  for (int i = 0; i < n_programs; i++)
    for (int is_static = 0; is_static < 2; is_static++)
      save_program (first_program + (unsigned)i, is_static);
  td_test_write_file (td_test_tmp ("search.py"), script, sizeof script - 1);
  child = td_test_shell ("'%s' '%s' '%s' 2>&1", python, td_test_tmp ("search.py"),
                         td_test_tmp ("."));
  fputs (child.out, stdout);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  assert_true (n_said > 0);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    engine_test (
        out__of_random_programs_with_a_batch_like_other_sizes_computes_the_same_or_has_said_so),
  };

  if (argc > 1)
    n_programs = atoi (argv[1]);
  if (argc > 2)
    first_program = (unsigned)atoi (argv[2]);
  return cmocka_run_group_tests_name ("onnx-batch-of-one", tests, NULL, NULL);
}
