/*
 * A tensor as text, JSON, CSV and .npy, and its numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "scene/td-json.h"
#include "td-tensor-private.h"

TdTensorNumbers
td__tensor_numbers (const TdTensor *t)
{
  TdTensorNumbers n = { .honesty = TD_HONEST_MISSING };
  guint64 finite = 0;
  double m2 = 0, square = 0;

  if (t->has_stats)
    {
      const TdTapeStats *s = &t->stats;
      guint64 n_finite = s->n - s->n_nan - s->n_pos_inf - s->n_neg_inf;

      return (TdTensorNumbers){ TD_HONEST_EXACT,
                                s->min,
                                s->max,
                                s->mean,
                                n_finite > 0 ? sqrt (s->m2 / (double)n_finite) : NAN,
                                n_finite > 0 || s->n == 0 ? s->l2 : NAN,
                                s->n,
                                s->n_zero,
                                s->n_nan,
                                s->n_pos_inf,
                                s->n_neg_inf };
    }
  if (!t->values)
    return n;
  n.honesty = t->n_values == t->n_total ? TD_HONEST_EXACT : TD_HONEST_SAMPLED;
  n.n = t->n_values;
  n.min = INFINITY;
  n.max = -INFINITY;
  for (guint64 i = 0; i < t->n_values; i++)
    {
      double v = t->values[i], d;

      n.zero += v == 0;
      n.nan += isnan (v) != 0;
      n.plus_inf += isinf (v) && v > 0;
      n.minus_inf += isinf (v) && v < 0;
      if (!isfinite (v))
        continue;
      n.min = MIN (n.min, v);
      n.max = MAX (n.max, v);
      /* Welford's update: sums of squares of large means lose all digits */
      d = v - n.mean;
      n.mean += d / (double)++finite;
      m2 += d * (v - n.mean);
      square += v * v;
    }
  if (finite == 0)
    n.min = n.max = n.mean = NAN;
  n.sigma = finite > 0 ? sqrt (m2 / (double)finite) : NAN;
  n.l2 = finite > 0 || t->n_values == 0 ? sqrt (square) : NAN;
  return n;
}

TdTensorMatrix
td__tensor_matrix (const TdTensor *t, const TdTensorView *how)
{
  gint64 stride[TD_TAPE_MAX_NDIM + 1];
  TdTensorMatrix m = { 1, 1, 0, 0, 1 };
  gint r = how->row_axis, c = how->col_axis;

  stride[t->ndim] = 1;
  for (gint k = (gint)t->ndim - 1; k >= 0; k--)
    stride[k] = stride[k + 1] * t->dims[k];
  if (r >= 0 && c >= 0 && r < (gint)t->ndim && c < (gint)t->ndim && r != c)
    {
      for (guint k = 0; k < t->ndim; k++)
        if ((gint)k != r && (gint)k != c)
          m.origin += CLAMP (how->index[k], 0, MAX (t->dims[k] - 1, 0)) * stride[k + 1];
      m.rows = t->dims[r];
      m.cols = t->dims[c];
      m.row_stride = stride[r + 1];
      m.col_stride = stride[c + 1];
      return m;
    }
  /* all of it: the first axis downwards, the rest in a row; (1, 1, 28, 28) is a 28 x 28 image
   */
  guint first = td__tensor_row_axis (t);
  if (t->ndim - first >= 2)
    {
      m.rows = t->dims[first];
      m.cols = m.rows > 0 ? (gint64)t->n_total / m.rows : 0;
    }
  else
    m.cols = (gint64)t->n_total;
  m.row_stride = m.cols;
  return m;
}

static const char *const number_names[] = { "min", "max", "mean", "sigma", "l2" };

static void
print_json (const TdTensor *t, const TdTensorNumbers *n, GString *out)
{
  const double values[] = { n->min, n->max, n->mean, n->sigma, n->l2 };
  static const char *const honesty[] = { "exact", "sampled", "missing", "recomputed" };
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_member_string (&j, "name", t->title);
  td_json_member_string (&j, "dtype", td_tape_dtype_name (t->dtype));
  td_json_key (&j, "shape");
  td_json_begin_array (&j);
  for (guint k = 0; k < t->ndim; k++)
    td_json_int (&j, t->dims[k]);
  td_json_end_array (&j);
  td_json_member_string (&j, "numbers", honesty[n->honesty]);
  for (gsize i = 0; i < G_N_ELEMENTS (values); i++)
    {
      td_json_key (&j, number_names[i]);
      if (n->honesty == TD_HONEST_MISSING)
        td_json_null (&j);
      else
        td_json_double (&j, values[i]);
    }
  td_json_member_int (&j, "n", (gint64)t->n_total);
  if (n->honesty != TD_HONEST_MISSING)
    {
      td_json_member_int (&j, "zeros", (gint64)n->zero);
      td_json_member_int (&j, "nan", (gint64)n->nan);
      td_json_member_int (&j, "pos_inf", (gint64)n->plus_inf);
      td_json_member_int (&j, "neg_inf", (gint64)n->minus_inf);
    }
  td_json_key (&j, "values");
  if (t->values && t->n_values == t->n_total)
    {
      td_json_begin_array (&j);
      for (guint64 i = 0; i < t->n_values; i++)
        td_json_double (&j, t->values[i]);
      td_json_end_array (&j);
    }
  else
    td_json_null (&j);
  td_json_end_object (&j);
}

static void
print_text (const TdTensor *t, const TdTensorNumbers *n, GString *out)
{
  const double values[] = { n->min, n->max, n->mean, n->sigma, n->l2 };
  char text[TD_FORMAT_SIZE];

  g_string_append_printf (out, "%s\n%s\n", t->title, t->subtitle);
  for (gsize i = 0; i < G_N_ELEMENTS (values); i++)
    g_string_append_printf (out, "%s %s  ", number_names[i],
                            td_format_honest (text, values[i], n->honesty));
  if (n->honesty == TD_HONEST_MISSING)
    g_string_append (out,
                     "\nnothing recorded of its values: record with --level stats or values\n");
  else
    g_string_append_printf (out,
                            "\nn %" G_GUINT64_FORMAT "  zero %" G_GUINT64_FORMAT
                            "  nan %" G_GUINT64_FORMAT "  +inf %" G_GUINT64_FORMAT
                            "  -inf %" G_GUINT64_FORMAT "\n",
                            n->n, n->zero, n->nan, n->plus_inf, n->minus_inf);
}

/* Digits that give the same value back, with a point whatever the language is. */
static void
append_value (const TdTensor *t, double value, GString *out)
{
  static const char *const formats[TD_TAPE_N_DTYPES]
      = { [TD_TAPE_F64] = "%.17g", [TD_TAPE_I32] = "%.17g", [TD_TAPE_I64] = "%.17g" };
  const char *format = t->dtype < TD_TAPE_N_DTYPES ? formats[t->dtype] : NULL;
  char number[G_ASCII_DTOSTR_BUF_SIZE];

  g_string_append (out,
                   g_ascii_formatd (number, sizeof number, format ? format : "%.9g", value));
}

static void
print_csv (const TdTensor *t, GString *out)
{
  TdTensorView all = TD_TENSOR_VIEW_DEFAULT;
  TdTensorMatrix m = td__tensor_matrix (t, &all);

  for (gint64 r = 0; r < m.rows; r++)
    for (gint64 c = 0; c < m.cols; c++)
      {
        guint64 i = (guint64)(m.origin + r * m.row_stride + c * m.col_stride);

        if (i < t->n_values)
          append_value (t, t->values[i], out);
        g_string_append_c (out, c + 1 < m.cols ? ',' : '\n');
      }
}

char *
td_tensor_print (const TdTensor *tensor, const char *format)
{
  TdTensorNumbers n = td__tensor_numbers (tensor);
  GString *out = g_string_new (NULL);

  if (g_str_equal (format, "json"))
    print_json (tensor, &n, out);
  else if (g_str_equal (format, "csv"))
    print_csv (tensor, out);
  else
    print_text (tensor, &n, out);
  return g_string_free (out, FALSE);
}

GBytes *
td_tensor_to_npy (const TdTensor *t)
{
  static const char *const descr[TD_TAPE_N_DTYPES] = {
    [TD_TAPE_F32] = "<f4", [TD_TAPE_F64] = "<f8", [TD_TAPE_F16] = "<f2", [TD_TAPE_BF16] = "<f4",
    [TD_TAPE_I32] = "<i4", [TD_TAPE_I64] = "<i8", [TD_TAPE_U8] = "|u1",  [TD_TAPE_BOOL] = "|b1",
  };
  GByteArray *out;
  GString *header;

  if (!t->raw || t->n_values != t->n_total || t->dtype >= TD_TAPE_N_DTYPES)
    return NULL;
  header = g_string_new (NULL);
  g_string_append_printf (header, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                          descr[t->dtype]);
  for (guint k = 0; k < t->ndim; k++)
    g_string_append_printf (header, "%" G_GINT64_FORMAT ",%s", t->dims[k],
                            k + 1 < t->ndim ? " " : "");
  g_string_append (header, "), }");
  /* magic (6), version (2), length (2), header: a multiple of 64 with the newline at its end */
  while ((10 + header->len + 1) % 64 != 0)
    g_string_append_c (header, ' ');
  g_string_append_c (header, '\n');
  out = g_byte_array_new ();
  guint8 head[10] = {
    0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (guint8)(header->len & 255), (guint8)(header->len >> 8)
  };
  g_byte_array_append (out, head, sizeof head);
  g_byte_array_append (out, (const guint8 *)header->str, (guint)header->len);
  g_string_free (header, TRUE);
  if (t->dtype == TD_TAPE_BF16) /* NumPy has no bfloat16: every one is a float32 exactly */
    for (guint64 i = 0; i < t->n_values; i++)
      {
        float f = (float)t->values[i];
        g_byte_array_append (out, (const guint8 *)&f, sizeof f);
      }
  else
    g_byte_array_append (out, g_bytes_get_data (t->raw, NULL),
                         (guint)(t->n_values * td_tape_dtype_bytes (t->dtype)));
  return g_byte_array_free_to_bytes (out);
}
