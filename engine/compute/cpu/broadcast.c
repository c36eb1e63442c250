/* Walking several arrays over one broadcast shape.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"

/* Strides of `x` as seen from `out`: 0 where x is repeated. */
static void
operand_strides (const TdShape *x, const TdShape *out, int64_t *stride)
{
  int64_t step = 1;

  for (int i = out->ndim - 1; i >= 0; i--)
    {
      int j = i - (out->ndim - x->ndim);

      if (j < 0 || x->dim[j] == 1)
        stride[i] = 0;
      else
        stride[i] = step;
      if (j >= 0)
        step *= x->dim[j];
    }
}

void
td__walk_init (TdWalk *w, const TdShape *out, const TdTensor *const *operands, int n)
{
  int64_t stride[3][TD_MAX_DIMS];
  int last = -1; /* newest merged axis, outermost first */

  for (int k = 0; k < n; k++)
    operand_strides (operands[k]->shape, out, stride[k]);
  w->n = n;
  for (int i = 0; i < out->ndim; i++)
    {
      bool merge = last >= 0;

      if (out->dim[i] == 1)
        continue;
      for (int k = 0; k < n && merge; k++)
        merge = w->stride[k][last] == stride[k][i] * out->dim[i];
      if (merge)
        w->dim[last] *= out->dim[i];
      else
        w->dim[++last] = out->dim[i];
      for (int k = 0; k < n; k++)
        w->stride[k][last] = stride[k][i];
    }
  if (last < 0)
    {
      w->dim[++last] = 1;
      for (int k = 0; k < n; k++)
        w->stride[k][0] = 0;
    }
  w->ndim = last + 1;
}

void
td__walk_row (const TdWalk *w, int64_t row, int64_t offset[3])
{
  for (int k = 0; k < w->n; k++)
    offset[k] = 0;
  for (int i = w->ndim - 2; i >= 0; i--)
    {
      int64_t at = row % w->dim[i];

      row /= w->dim[i];
      for (int k = 0; k < w->n; k++)
        offset[k] += at * w->stride[k][i];
    }
}
