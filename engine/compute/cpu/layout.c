/* Channels-last operands of the slots that know them: the CPU's kernels are row-major, so that
 * it computes on copies.  Slower; what it is for is that every device can be compared with it.
 *
 * SPDX-License-Identifier: MIT */
#include "cpu.h"
#include "dtype.h"

#include <stdlib.h>

enum
{
  MAX_OPERANDS = 8
};

/* Operands of one call: as they are, and row-major. */
typedef struct
{
  const TdTensor *given[MAX_OPERANDS];
  TdTensor plain[MAX_OPERANDS];
  int n;
  bool failed;
} Copies;

static bool
must_copy (const TdTensor *t)
{
  return t->size > 0 && !td__layout_fits_both (t->shape);
}

static TdStatus
reorder (TdDevice *d, const TdTensor *from, TdLayout layout, TdTensor *to)
{
  TdShape x_sizes, y_sizes;
  const TdStrides walk = td__layout_walk (
      from->shape, layout, layout == TD_ROW_MAJOR ? TD_CHANNELS_LAST : TD_ROW_MAJOR, &x_sizes,
      &y_sizes);
  TdTensor x = *from, y = *to;

  x.shape = &x_sizes;
  y.shape = &y_sizes;
  return td__cpu_strided (d, TD_STRIDED_READ, &x, &walk, &y);
}

/* Row-major room for t; with its numbers, where they are read.  *Errors*: c->failed. */
static TdTensor *
add (TdDevice *d, Copies *c, const TdTensor *t, bool is_read)
{
  TdTensor *plain = &c->plain[c->n];

  c->given[c->n++] = t;
  *plain = *t;
  plain->layout = TD_ROW_MAJOR;
  if (!must_copy (t))
    return plain;
  plain->data = malloc ((size_t)t->size * td__dtype_sizes[t->dtype]);
  if (plain->data == NULL || (is_read && reorder (d, t, TD_CHANNELS_LAST, plain) != TD_OK))
    c->failed = true;
  return plain;
}

/* Bring the results, those from first on, to where they belong. */
static TdStatus
finish (TdDevice *d, Copies *c, int first, TdStatus status)
{
  for (int i = 0; i < c->n; i++)
    if (must_copy (c->given[i]))
      {
        TdTensor to = *c->given[i];

        if (status == TD_OK && i >= first)
          status = reorder (d, &c->plain[i], TD_ROW_MAJOR, &to);
        free (c->plain[i].data);
      }
  return status;
}

TdStatus
td__cpu_conv_any (TdDevice *d, TdConvKind kind, const TdConv *attrs, const TdTensor *in,
                  int n_in, TdTensor *out)
{
  Copies c = { .n = 0 };
  TdConv plain = *attrs;
  TdTensor *y;

  if (attrs->layout == TD_ROW_MAJOR)
    return td__cpu_conv (d, kind, attrs, in, n_in, out);
  plain.layout = TD_ROW_MAJOR;
  for (int i = 0; i < n_in; i++)
    add (d, &c, &in[i], true);
  if (attrs->end.added != NULL)
    plain.end.added = add (d, &c, attrs->end.added, true);
  if (attrs->end.above != NULL)
    plain.end.above = add (d, &c, attrs->end.above, true);
  y = add (d, &c, out, attrs->accumulate);
  return finish (d, &c, c.n - 1,
                 c.failed ? TD_ERR_MEMORY : td__cpu_conv (d, kind, &plain, c.plain, n_in, y));
}

TdStatus
td__cpu_pooling_any (TdDevice *d, TdPoolKind kind, const TdPooling *attrs, const TdTensor *in,
                     int n_in, TdTensor *out, TdTensor *out2)
{
  Copies c = { .n = 0 };
  TdPooling plain = *attrs;

  if (attrs->layout == TD_ROW_MAJOR)
    return td__cpu_pooling (d, kind, attrs, in, n_in, out, out2);
  plain.layout = TD_ROW_MAJOR;
  for (int i = 0; i < n_in; i++)
    add (d, &c, &in[i], true);
  add (d, &c, out, false);
  if (out2 != NULL)
    add (d, &c, out2, false);
  return finish (d, &c, n_in,
                 c.failed ? TD_ERR_MEMORY
                          : td__cpu_pooling (d, kind, &plain, c.plain, n_in, &c.plain[n_in],
                                             out2 != NULL ? &c.plain[n_in + 1] : NULL));
}

TdStatus
td__cpu_batch_norm_any (TdDevice *d, int kind, const double *params, const TdTensor *in,
                        int n_in, TdTensor *out, int n_out)
{
  Copies c = { .n = 0 };

  if (in[0].layout == TD_ROW_MAJOR)
    return td__cpu_batch_norm (d, kind, params, in, n_in, out, n_out);
  for (int i = 0; i < n_in; i++)
    add (d, &c, &in[i], true);
  for (int i = 0; i < n_out; i++)
    add (d, &c, &out[i], false);
  return finish (
      d, &c, n_in,
      c.failed ? TD_ERR_MEMORY
               : td__cpu_batch_norm (d, kind, params, c.plain, n_in, &c.plain[n_in], n_out));
}
