/*
 * A part of a tensor as a tensor of its own, so that whatever is made of a tensor (picture,
 * numbers, text, file) can be made of a slice.
 *
 * SPDX-License-Identifier: MIT
 */
#include <gio/gio.h>
#include <string.h>

#include "td-tensor-private.h"

static gboolean
steps_back (const TdSlice *slice)
{
  for (guint k = 0; k < slice->ndim; k++)
    if (slice->axes[k].step < 0)
      return TRUE;
  return FALSE;
}

static guint64
flat_of (const TdTensor *t, const gint64 *index)
{
  guint64 i = 0;

  for (guint k = 0; k < t->ndim; k++)
    i = i * (guint64)t->dims[k] + (guint64)index[k];
  return i;
}

/* Elements of a part that steps forwards come in the order of the tensor, so that of a tensor
 * that is recorded up to some element the part is, too. No more of them are there than of the
 * tensor, however large that says it is. */
static void
take_values (const TdTensor *t, TdTensor *part)
{
  gsize size = td_tape_dtype_bytes (t->dtype);
  const guint8 *from = t->raw ? g_bytes_get_data (t->raw, NULL) : NULL;
  guint64 most = MAX (MIN (part->n_total, t->n_values), 1);
  guint8 *to = from ? g_malloc (most * size) : NULL;
  gint64 index[TD_TAPE_MAX_NDIM];

  part->values = g_new (double, most);
  for (guint64 i = 0; i < part->n_total; i++)
    {
      td_slice_locate (&part->slice, i, index);
      guint64 k = flat_of (t, index);

      if (k >= t->n_values)
        break;
      part->values[i] = t->values[k];
      if (to)
        memcpy (to + i * size, from + k * size, size);
      part->n_values++;
    }
  if (to)
    part->raw = g_bytes_new_take (to, part->n_values * size);
}

TdTensor *
td_tensor_take (TdTensor *t, const TdSlice *slice, GError **error)
{
  TdTensor *part;

  if (td_slice_is_whole (slice, t->dims))
    return td_tensor_ref (t);
  if (t->values && t->n_values < t->n_total && steps_back (slice))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
                   "only the first %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                   " values are there: a slice of them cannot step back",
                   t->n_values, t->n_total);
      return NULL;
    }
  part = td__tensor_new_empty ();
  part->title = g_strdup (t->title);
  part->subtitle = g_strdup (t->subtitle);
  part->dtype = t->dtype;
  part->slice = *slice;
  part->n_total = t->n_total > 0; /* 0 where there are too many to count, too */
  for (guint k = 0; k < slice->ndim; k++)
    {
      part->n_total *= (guint64)slice->axes[k].n;
      if (!slice->axes[k].dropped)
        part->dims[part->ndim++] = slice->axes[k].n;
    }
  if (t->values)
    take_values (t, part);
  return part;
}
