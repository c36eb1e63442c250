/*
 * The difference of two tensors of one shape: a tensor, and where it is largest.
 *
 * SPDX-License-Identifier: MIT
 */
#include <gio/gio.h>
#include <math.h>

#include "td-tensor-private.h"

static gboolean
has_same_shape (const TdTensor *a, const TdTensor *b)
{
  if (a->ndim != b->ndim)
    return FALSE;
  for (guint k = 0; k < a->ndim; k++)
    if (a->dims[k] != b->dims[k])
      return FALSE;
  return TRUE;
}

TdTensor *
td_tensor_subtract (const TdTensor *a, const TdTensor *b, GError **error)
{
  TdTensor *d;

  if (!has_same_shape (a, b))
    {
      g_autofree char *of_a = td_slice_dup_index (a->ndim, a->dims);
      g_autofree char *of_b = td_slice_dup_index (b->ndim, b->dims);
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "its shape is %s here and %s there",
                   of_a, of_b);
      return NULL;
    }
  if (!a->values || !b->values)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "no values are recorded %s",
                   a->values ? "there" : "here");
      return NULL;
    }
  d = td__tensor_new_empty ();
  d->title = g_strdup (a->title);
  d->subtitle = g_strdup (a->subtitle);
  d->dtype = TD_TAPE_F64;
  d->ndim = a->ndim;
  for (guint k = 0; k < a->ndim; k++)
    d->dims[k] = a->dims[k];
  d->slice = a->slice;
  d->n_total = a->n_total;
  d->n_values = MIN (a->n_values, b->n_values);
  d->values = g_new (double, MAX (d->n_values, 1));
  /* infinities that are equal do not differ */
  for (guint64 i = 0; i < d->n_values; i++)
    d->values[i] = a->values[i] == b->values[i] ? 0 : a->values[i] - b->values[i];
  d->raw = g_bytes_new (d->values, d->n_values * sizeof (double));
  return d;
}

gboolean
td_tensor_find_largest (const TdTensor *t, guint64 *element)
{
  gboolean any = FALSE;

  for (guint64 i = 0; t->values && i < t->n_values; i++)
    {
      if (isnan (t->values[i]))
        {
          *element = i;
          return TRUE;
        }
      if (!any || fabs (t->values[i]) > fabs (t->values[*element]))
        *element = i;
      any = TRUE;
    }
  return any;
}
