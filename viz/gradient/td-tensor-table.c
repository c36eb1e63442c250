/*
 * A tensor as a table: which element a cell is, what it says, and what rows and columns are
 * called. Places are those in the variable, whatever slice of it is shown.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-tensor-private.h"

void
td_tensor_get_table (const TdTensor *t, gint64 *rows, gint64 *cols)
{
  TdTensorView all = TD_TENSOR_VIEW_DEFAULT;
  TdTensorMatrix m = td__tensor_matrix (t, &all);

  *rows = m.cols > 0 ? m.rows : 0;
  *cols = m.rows > 0 ? m.cols : 0;
}

guint64
td_tensor_get_element (const TdTensor *t, gint64 row, gint64 col)
{
  TdTensorView all = TD_TENSOR_VIEW_DEFAULT;
  TdTensorMatrix m = td__tensor_matrix (t, &all);

  return (guint64)(m.origin + row * m.row_stride + col * m.col_stride);
}

guint
td__tensor_axes (const TdTensor *t, guint axes[TD_TAPE_MAX_NDIM])
{
  guint n = 0;

  for (guint k = 0; k < t->slice.ndim; k++)
    if (!t->slice.axes[k].dropped)
      axes[n++] = k;
  return n;
}

guint
td__tensor_row_axis (const TdTensor *t)
{
  guint first = 0;

  while (first + 2 < t->ndim && t->dims[first] == 1)
    first++;
  return first;
}

char *
td_tensor_dup_row_label (const TdTensor *t, gint64 row)
{
  guint axes[TD_TAPE_MAX_NDIM];

  if (t->ndim < 2)
    return g_strdup ("");
  td__tensor_axes (t, axes);
  const TdSliceAxis *axis = &t->slice.axes[axes[td__tensor_row_axis (t)]];
  return g_strdup_printf ("%" G_GINT64_FORMAT, axis->start + row * axis->step);
}

char *
td_tensor_dup_column_label (const TdTensor *t, gint64 col)
{
  gint64 index[TD_TAPE_MAX_NDIM];
  guint axes[TD_TAPE_MAX_NDIM], n = td__tensor_axes (t, axes);
  g_autoptr (GString) text = g_string_new (NULL);

  td_slice_locate (&t->slice, (guint64)col, index);
  for (guint k = t->ndim < 2 ? 0 : td__tensor_row_axis (t) + 1; k < n; k++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT, text->len > 0 ? ", " : "",
                            index[axes[k]]);
  return g_strdup (text->str);
}

static gboolean
is_whole_numbers (const TdTensor *t)
{
  return t->dtype >= TD_TAPE_I32 && t->dtype < TD_TAPE_N_DTYPES;
}

char *
td_tensor_dup_cell (const TdTensor *t, guint64 i)
{
  char text[TD_FORMAT_SIZE];

  if (!t->values || i >= t->n_values)
    return g_strdup ("—");
  return g_strdup (td_format_digits (text, t->values[i], is_whole_numbers (t) ? 15 : 4));
}

char *
td_tensor_dup_read_out (const TdTensor *t, guint64 i)
{
  gint64 index[TD_TAPE_MAX_NDIM];
  char text[TD_FORMAT_SIZE];

  if (i >= t->n_total)
    return g_strdup ("");
  td_slice_locate (&t->slice, i, index);
  g_autofree char *place = td_slice_dup_index (t->slice.ndim, index);
  if (!t->values || i >= t->n_values)
    return g_strdup_printf ("%s  — not recorded", place);
  return g_strdup_printf (
      "%s  %s", place,
      td_format_digits (text, t->values[i],
                        t->dtype == TD_TAPE_F64 || is_whole_numbers (t) ? 15 : 9));
}

char *
td_tensor_dup_extent (const TdTensor *t)
{
  char some[TD_FORMAT_SIZE], all[TD_FORMAT_SIZE];

  if (t->n_total == 0)
    return g_strdup ("Nothing is in this slice.");
  if (!t->values)
    return t->has_stats ? g_strdup ("Values not recorded at this moment.") : NULL;
  if (t->n_values == t->n_total)
    return NULL;
  return g_strdup_printf ("Only the first %s of %s values are there.",
                          td_format_count (some, (gint64)t->n_values),
                          td_format_count (all, (gint64)t->n_total));
}
