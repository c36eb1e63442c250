/* Rows of `tapedeck eval`: products with parameters, batch normalization.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <stddef.h>

/* Axes before n_batch_axes count as one. */
static void
call_linear (TdEval *e)
{
  int n = (int)td_eval_int (e, "n_batch_axes");
  TdShape shape = td_shape (e->in[0]), flat = { .ndim = 2, .dim = { 1, 1 } };
  TdVar *y, *b = td_eval_in (e, 2);

  if (n < 1 || (n > 1 && n >= shape.ndim))
    return td_eval_wrong (e, "n_batch_axes", "from 1 to x.ndim - 1 expected");
  if (n == 1)
    return td_eval_output (e, td_linear (e->in[0], e->in[1], b));
  for (int i = 0; i < shape.ndim; i++)
    flat.dim[i >= n] *= shape.dim[i];
  y = td_linear (td_reshape (e->in[0], flat), e->in[1], b);
  shape.ndim = n + 1;
  shape.dim[n] = td_ndim (y) == 2 ? td_shape (y).dim[1] : 0;
  td_eval_output (e, td_reshape (y, shape));
}

/* --- batch normalization over any axes: they become the first of two --- */

typedef struct
{
  int order[TD_MAX_DIMS], back[TD_MAX_DIMS]; /* reduced axes, then kept ones; and undone */
  TdShape moved, flat;
} BatchAxes;

/* False: the attribute is wrong. */
static bool
batch_axes (TdEval *e, const TdShape *x, BatchAxes *b)
{
  int axes[TD_MAX_DIMS], n = td_eval_ints (e, "axis", axes, TD_MAX_DIMS), at = 0;
  unsigned reduced = 0;

  for (int i = 0; i < n; i++)
    {
      axes[i] += axes[i] < 0 ? x->ndim : 0;
      if (axes[i] < 0 || axes[i] >= x->ndim || (reduced >> axes[i] & 1) != 0)
        return td_eval_wrong (e, "axis", "different axes of x expected"), false;
      reduced |= 1u << axes[i];
    }
  b->flat = (TdShape){ .ndim = 2, .dim = { 1, 1 } };
  b->moved.ndim = x->ndim;
  for (int kept = 0; kept < 2; kept++)
    for (int d = 0; d < x->ndim; d++)
      if ((int)(reduced >> d & 1) != kept)
        {
          b->order[at] = d;
          b->back[d] = at;
          b->moved.dim[at++] = x->dim[d];
          b->flat.dim[kept] *= x->dim[d];
        }
  return true;
}

/* With mean and var they are what is subtracted and divided by, as in evaluation. */
static void
batch_normalization (TdEval *e)
{
  TdVar *in[5] = { NULL }, *y;
  BatchAxes b;
  TdShape x = td_shape (e->in[0]);
  TdBatchNormOpt o = { .eps = td_eval_float (e, "eps"), .decay = 0.9 };
  bool moved = !td_eval_none (e, "axis");

  if (e->n_in == 4)
    return td_eval_wrong (e, "axis", "mean and var come together");
  for (int i = 0; i < e->n_in; i++)
    in[i] = e->in[i];
  if (moved)
    {
      if (!batch_axes (e, &x, &b))
        return;
      in[0] = td_reshape (td_transpose (in[0], b.order), b.flat);
      for (int i = 1; i < e->n_in; i++)
        in[i] = td_flatten (in[i]);
    }
  y = e->n_in == 5 ? td_fixed_batch_normalization (in[0], in[1], in[2], in[3], in[4], o.eps)
                   : td_batch_normalization_ (in[0], in[1], in[2], &o);
  td_eval_output (e, moved ? td_transpose (td_reshape (y, b.moved), b.back) : y);
}

/* --- */

static void
call_embed_id (TdEval *e)
{
  TdEmbedOpt o = { .ignore_label = TD_NONE };

  td_eval_tuple (e, "ignore_label", &o.ignore_label, 1);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_embed_id_ (e->in[0], e->in[1], &o));
}

/* clang-format off */
#define ROW(name, group, operands, attributes, formula)                                        \
  { #name, group, operands, attributes, formula, .call = call_##name }
const TdEvalFunction td_eval_layers[] = {
  ROW (linear, "connection", "x W [b]", "n_batch_axes:int=1", "x @ W.T + b"),
  ROW (embed_id, "connection", "x W", "ignore_label:int=None", "W[x]; zeros for ignore_label"),
  { "batch_normalization", "normalization", "x gamma beta [mean] [var]",
    "eps:float=2e-5 axis:ints=None",
    "gamma * (x - mean) / sqrt (var + eps) + beta; mean and var of the batch if not given",
    .call = batch_normalization },
  { "fixed_batch_normalization", "normalization", "x gamma beta mean var",
    "eps:float=2e-5 axis:ints=None", "gamma * (x - mean) / sqrt (var + eps) + beta",
    .call = batch_normalization },
  { .name = NULL },
};
