/*
 * Collecting what is known of one tensor: bytes from the tape or the live program, statistics.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-tensor-private.h"

/* No more is read for a picture than this; the rest is said to be cut. */
#define MAX_BYTES ((guint64)256 << 20)

static double
half_to_double (guint16 h)
{
  int exponent = (h >> 10) & 31, mantissa = h & 1023;
  double sign = h & 0x8000 ? -1 : 1;

  if (exponent == 31)
    return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0)
    return sign * ldexp (mantissa, -24);
  return sign * ldexp (1024 + mantissa, exponent - 25);
}

/* Returns element i of an array of the given type. */
static double
element (const guint8 *data, guint dtype, guint64 i)
{
  union
  {
    float f32;
    double f64;
    guint16 u16;
    gint32 i32;
    gint64 i64;
    guint32 u32;
  } u;
  gsize size = td_tape_dtype_bytes (dtype);

  memcpy (&u, data + i * size, MIN (size, sizeof u));
  switch (dtype)
    {
    case TD_TAPE_F32:
      return (double)u.f32;
    case TD_TAPE_F64:
      return u.f64;
    case TD_TAPE_F16:
      return half_to_double (u.u16);
    case TD_TAPE_BF16:
      u.u32 = (guint32)u.u16 << 16;
      return (double)u.f32;
    case TD_TAPE_I32:
      return u.i32;
    case TD_TAPE_I64:
      return (double)u.i64;
    default:
      return data[i];
    }
}

TdTensor *
td__tensor_new_empty (void)
{
  TdTensor *t = g_new0 (TdTensor, 1);

  g_atomic_ref_count_init (&t->refs);
  return t;
}

static void
decode (TdTensor *t)
{
  gsize n_bytes, size = td_tape_dtype_bytes (t->dtype);
  const guint8 *data = g_bytes_get_data (t->raw, &n_bytes);

  t->n_values = size > 0 ? MIN (n_bytes / size, t->n_total) : 0;
  t->values = g_new (double, MAX (t->n_values, 1));
  for (guint64 i = 0; i < t->n_values; i++)
    t->values[i] = element (data, t->dtype, i);
}

static guint64
count (guint ndim, const gint64 *dims)
{
  guint64 n = 1;

  for (guint k = 0; k < ndim; k++)
    if (dims[k] < 0 || (dims[k] > 0 && n > G_MAXINT64 / (guint64)dims[k]))
      return 0;
    else
      n *= (guint64)dims[k];
  return n;
}

static void
read_bytes (TdTensor *t, TdTapeReader *reader, const TdTapeTensorRef *ref)
{
  TdTapeTensorRecord record;
  guint64 max = MIN (ref->bytes, MAX_BYTES);
  guint8 *data = g_try_malloc (MAX (max, 1));

  if (!data)
    return;
  gint64 n = td_tape_tensor_read (reader, ref, &record, data, 0, max);
  if (n < 0)
    {
      g_free (data);
      return;
    }
  t->raw = g_bytes_new_take (data, (gsize)n);
  decode (t);
}

static void
describe (TdTensor *t, const TdIteration *iteration, const TdTapeVar *v, guint var)
{
  const char *name = td_iteration_get_var_name (iteration, var);
  const char *path = td_iteration_get_path_name (iteration, v->path);
  g_autofree char *shape = td_iteration_dup_shape (iteration, var, TRUE);
  char bytes[TD_FORMAT_SIZE];

  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  for (guint i = 0; i < it->n_grads && !t->title; i++)
    if (it->grads[i].gradient == var)
      t->title
          = g_strconcat (td_iteration_get_string (iteration, it->grads[i].path), ".grad", NULL);
  if (t->title)
    ;
  else if (*path && *name)
    t->title = g_strdup_printf ("%s/%s", path, name);
  else if (*name)
    t->title = g_strdup (name);
  else if (v->producer >= 0)
    t->title = g_strdup (td_iteration_get_op_name (iteration, (guint)v->producer));
  else
    t->title = g_strdup ("input");
  td_format_bytes (bytes, v->bytes);
  if (v->producer >= 0)
    t->subtitle = g_strdup_printf (
        "%s · %s · %s", td_iteration_get_op_name (iteration, (guint)v->producer), shape, bytes);
  else
    t->subtitle = g_strdup_printf ("%s · %s", shape, bytes);
}

TdTensor *
td_tensor_new (TdTapeReader *reader, const TdIteration *iteration, guint var, gint event)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  TdTensor *t = td__tensor_new_empty ();
  const TdTapeVar *v;
  const TdTapeTensorRef *best = NULL;

  g_return_val_if_fail (var < it->n_vars, t);
  v = &it->vars[var];
  t->dtype = v->dtype;
  t->ndim = MIN (v->ndim, TD_TAPE_MAX_NDIM);
  for (guint k = 0; k < t->ndim; k++)
    t->dims[k] = it->dims[v->first_dim + k];
  t->n_total = count (t->ndim, t->dims);
  t->slice = td_slice_whole (t->ndim, t->dims);
  describe (t, iteration, v, var);
  /* the newest that is not later than the moment */
  for (guint i = 0; i < it->n_stats; i++)
    if (it->stats[i].var == var
        && (event < 0 || it->stats[i].event == TD_TAPE_NONE
            || it->stats[i].event <= (guint)event))
      {
        t->stats = it->stats[i];
        t->has_stats = TRUE;
      }
  for (guint i = 0; i < it->n_tensors; i++)
    if (it->tensors[i].var == var
        && (event < 0 || it->tensors[i].event == TD_TAPE_NONE
            || it->tensors[i].event <= (guint)event))
      best = &it->tensors[i];
  if (best && reader)
    read_bytes (t, reader, best);
  return t;
}

TdTensor *
td_tensor_new_live (const char *title, guint dtype, guint ndim, const gint64 *dims,
                    const void *data, gsize bytes)
{
  TdTensor *t = td__tensor_new_empty ();
  GString *shape = g_string_new ("(");
  char text[TD_FORMAT_SIZE];

  t->title = g_strdup (title);
  t->dtype = dtype;
  t->ndim = MIN (ndim, TD_TAPE_MAX_NDIM);
  for (guint k = 0; k < t->ndim; k++)
    {
      t->dims[k] = dims[k];
      g_string_append_printf (shape, k > 0 ? ", %" G_GINT64_FORMAT : "%" G_GINT64_FORMAT,
                              dims[k]);
    }
  t->n_total = count (t->ndim, t->dims);
  t->slice = td_slice_whole (t->ndim, t->dims);
  t->subtitle
      = g_strdup_printf ("%s) %s · %s", shape->str, td_tape_dtype_name (dtype),
                         td_format_bytes (text, t->n_total * td_tape_dtype_bytes (dtype)));
  g_string_free (shape, TRUE);
  t->raw = g_bytes_new (data, bytes);
  decode (t);
  return t;
}

TdTensor *
td_tensor_ref (TdTensor *t)
{
  g_atomic_ref_count_inc (&t->refs);
  return t;
}

void
td_tensor_free (TdTensor *t)
{
  if (!t || !g_atomic_ref_count_dec (&t->refs))
    return;
  g_free (t->title);
  g_free (t->subtitle);
  g_free (t->values);
  g_clear_pointer (&t->raw, g_bytes_unref);
  g_free (t);
}

gint
td_tensor_find_var (const TdIteration *iteration, guint64 key)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  gint event, var = td_iteration_find_var (iteration, key);

  if (var >= 0)
    return var;
  event = td_iteration_find_event (iteration, key);
  if (event < 0 || it->events[event].n_out == 0)
    return -1;
  return (gint)it->outs[it->events[event].first_out];
}
