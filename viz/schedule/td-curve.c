/*
 * Report curves as pyramids: level 0 is the values, each further level the minimum and maximum
 * of two entries of the one below. Appending costs O(1) on average, a range query O(log n).
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "scene/td-json.h"
#include "td-curve.h"

typedef struct
{
  float lo, hi; /* of the finite values; lo > hi when there is none */
  guint32 not_finite;
} Extent;

/* Beyond its limit a curve is folded: an entry then stands for `stride` values, and of those
 * only the first iteration and the extent are left. */
typedef struct
{
  char *key;
  GArray *iteration; /* gint64, of the first value of each entry */
  GArray *value;     /* double; NULL once it was folded */
  GPtrArray *levels; /* GArray of Extent; level k holds one for each 2^(k+1) entries, whole ones
                        only. Once folded, level 0 is the entries themselves */
  guint64 stride;
  guint64 n_open; /* values in `open`, fewer than the stride */
  Extent open;
  gint64 open_iteration;
} Curve;

struct _TdCurves
{
  GPtrArray *curves;
  guint64 n_seen; /* reports of the reader taken in */
  guint limit;    /* of entries of a curve; 0: none */
};

static void
curve_free (gpointer data)
{
  Curve *c = data;

  g_free (c->key);
  g_array_unref (c->iteration);
  g_clear_pointer (&c->value, g_array_unref);
  g_ptr_array_unref (c->levels);
  g_free (c);
}

TdCurves *
td_curves_new (void)
{
  TdCurves *s = g_new0 (TdCurves, 1);

  s->curves = g_ptr_array_new_with_free_func (curve_free);
  return s;
}

void
td_curves_free (TdCurves *curves)
{
  if (curves)
    g_ptr_array_unref (curves->curves);
  g_free (curves);
}

static Extent
extent_of (double v)
{
  if (isfinite (v))
    return (Extent){ (float)v, (float)v, 0 };
  return (Extent){ INFINITY, -INFINITY, 1 };
}

static Extent
join (Extent a, Extent b)
{
  return (Extent){ MIN (a.lo, b.lo), MAX (a.hi, b.hi), a.not_finite + b.not_finite };
}

static Curve *
curve_for (TdCurves *s, const char *key)
{
  for (guint i = 0; i < s->curves->len; i++)
    {
      Curve *c = g_ptr_array_index (s->curves, i);

      if (g_str_equal (c->key, key))
        return c;
    }
  Curve *c = g_new0 (Curve, 1);
  c->key = g_strdup (key);
  c->iteration = g_array_new (FALSE, FALSE, sizeof (gint64));
  c->value = g_array_new (FALSE, FALSE, sizeof (double));
  c->stride = 1;
  c->levels = g_ptr_array_new_with_free_func ((GDestroyNotify)g_array_unref);
  g_ptr_array_add (s->curves, c);
  return c;
}

/* ---- entries ---- */

static guint
n_entries (const Curve *c)
{
  return c->iteration->len;
}

/* Level k of the pyramid above the entries: extents of 2^(k+1) of them. */
static GArray *
level_of (const Curve *c, guint k)
{
  k += c->value ? 0 : 1;
  return k < c->levels->len ? g_ptr_array_index (c->levels, k) : NULL;
}

static Extent
entry_extent (const Curve *c, guint i)
{
  if (c->value)
    return extent_of (g_array_index (c->value, double, i));
  return g_array_index ((GArray *)g_ptr_array_index (c->levels, 0), Extent, i);
}

static void
append_extent (Curve *c, guint level, Extent e)
{
  while (level >= c->levels->len)
    g_ptr_array_add (c->levels, g_array_new (FALSE, FALSE, sizeof (Extent)));
  g_array_append_val ((GArray *)g_ptr_array_index (c->levels, level), e);
}

/* The last entry is there: the levels above it get what became whole. */
static void
raise_levels (Curve *c, Extent e)
{
  guint above = c->value ? 0 : 1;

  /* an entry of level k is whole when the number of entries is a multiple of 2^(k+1) */
  for (guint k = 0, n = n_entries (c); n && n % 2 == 0; k++, n /= 2)
    {
      if (k == 0)
        e = join (entry_extent (c, n_entries (c) - 2), e);
      else
        {
          GArray *below = level_of (c, k - 1);

          e = join (g_array_index (below, Extent, below->len - 2),
                    g_array_index (below, Extent, below->len - 1));
        }
      append_extent (c, k + above, e);
    }
}

/* Two entries become one: the first level becomes the entries. Their number is even. */
static void
fold (Curve *c)
{
  guint n = n_entries (c) / 2;

  for (guint i = 0; i < n; i++)
    g_array_index (c->iteration, gint64, i) = g_array_index (c->iteration, gint64, 2 * i);
  g_array_set_size (c->iteration, n);
  if (c->value)
    g_clear_pointer (&c->value, g_array_unref);
  else
    g_ptr_array_remove_index (c->levels, 0);
  c->stride *= 2;
}

static void
append (Curve *c, gint64 iteration, double value, guint limit)
{
  if (c->n_open == 0)
    c->open_iteration = iteration;
  c->open = c->n_open ? join (c->open, extent_of (value)) : extent_of (value);
  if (++c->n_open < c->stride)
    return;
  c->n_open = 0;
  g_array_append_val (c->iteration, c->open_iteration);
  if (c->value)
    g_array_append_val (c->value, value);
  else
    append_extent (c, 0, c->open);
  raise_levels (c, c->open);
  if (limit && n_entries (c) >= limit && n_entries (c) % 2 == 0)
    fold (c);
}

void
td_curves_append (TdCurves *curves, const char *key, gint64 iteration, double value)
{
  append (curve_for (curves, key), iteration, value, curves->limit);
}

void
td_curves_set_limit (TdCurves *curves, guint limit)
{
  curves->limit = limit;
}

void
td_curves_take (TdCurves *curves, TdTapeReader *reader)
{
  td_curves_update (curves, reader);
  td_tape_reader_forget_reports (reader);
  curves->n_seen = 0;
}

gboolean
td_curves_update (TdCurves *curves, TdTapeReader *reader)
{
  guint64 n, before = curves->n_seen;
  const TdTapeReport *reports = td_tape_reader_reports (reader, &n);
  guint32 last_key = 0;
  Curve *last = NULL;

  for (; curves->n_seen < n; curves->n_seen++)
    {
      const TdTapeReport *r = &reports[curves->n_seen];

      if (!last || r->key != last_key)
        last = curve_for (curves, td_tape_reader_string (reader, r->key));
      last_key = r->key;
      append (last, (gint64)r->iteration, r->value, curves->limit);
    }
  return curves->n_seen != before;
}

guint
td_curves_n (const TdCurves *curves)
{
  return curves->curves->len;
}

#define CURVE(s, i) ((Curve *)g_ptr_array_index ((s)->curves, (i)))

const char *
td_curves_key (const TdCurves *curves, guint curve)
{
  return CURVE (curves, curve)->key;
}

/* The entry that is not whole yet counts. */
guint
td_curves_length (const TdCurves *curves, guint curve)
{
  return n_entries (CURVE (curves, curve)) + (CURVE (curves, curve)->n_open > 0);
}

void
td_curves_get (const TdCurves *curves, guint curve, guint i, gint64 *iteration, double *value)
{
  const Curve *c = CURVE (curves, curve);
  gboolean whole = i < n_entries (c);
  Extent e = whole ? (Extent){ 0 } : c->open;

  *iteration = whole ? g_array_index (c->iteration, gint64, i) : c->open_iteration;
  if (whole && c->value)
    {
      *value = g_array_index (c->value, double, i);
      return;
    }
  if (whole)
    e = entry_extent (c, i);
  *value = e.lo <= e.hi ? ((double)e.lo + (double)e.hi) / 2 : NAN;
}

/* What td_ext_progress_bar reports under this key is no result of the model. */
#define PROGRESS "progress"

int
td_curves_find (const TdCurves *curves, const char *key)
{
  for (guint i = 0; i < curves->curves->len; i++)
    if (g_str_equal (CURVE (curves, i)->key, key))
      return (int)i;
  return -1;
}

double
td_curves_progress (const TdCurves *curves)
{
  int curve = td_curves_find (curves, PROGRESS);
  guint n = curve >= 0 ? td_curves_length (curves, (guint)curve) : 0;
  gint64 iteration;
  double rate;

  if (n == 0)
    return -1;
  td_curves_get (curves, (guint)curve, n - 1, &iteration, &rate);
  return isfinite (rate) ? CLAMP (rate, 0, 1) : -1;
}

int
td_curves_main (const TdCurves *curves)
{
  int loss = td_curves_find (curves, "loss");

  for (guint i = 0; i < curves->curves->len && loss < 0; i++)
    if (!g_str_equal (CURVE (curves, i)->key, PROGRESS))
      loss = (int)i;
  return loss;
}

guint
td_curves_range (const TdCurves *curves, guint curve, guint first, guint end, double *lo,
                 double *hi)
{
  const Curve *c = CURVE (curves, curve);
  Extent e = { INFINITY, -INFINITY, 0 };

  if (end > n_entries (c) && c->n_open > 0)
    e = c->open;
  end = MIN (end, n_entries (c));
  while (first < end)
    {
      /* the largest whole entry that starts at `first` and does not reach beyond `end` */
      guint level = 0, size = 1;

      while (level_of (c, level) && first % (2 * size) == 0 && first + 2 * size <= end)
        {
          level++;
          size *= 2;
        }
      e = join (e, level == 0 ? entry_extent (c, first)
                              : g_array_index (level_of (c, level - 1), Extent, first / size));
      first += size;
    }
  *lo = (double)e.lo;
  *hi = (double)e.hi;
  return e.not_finite;
}

char *
td_curves_print (const TdCurves *curves, TdRange range, const char *format)
{
  GString *out = g_string_new (NULL);
  gboolean json = g_str_equal (format, "json"), csv = g_str_equal (format, "csv");
  TdJson j;

  td_json_init (&j, out);
  if (json)
    {
      td_json_begin_object (&j);
      td_json_key (&j, "reports");
      td_json_begin_object (&j);
    }
  else
    g_string_append (out, csv ? "key,iteration,value\n" : "iteration  value\n");
  for (guint i = 0; i < curves->curves->len; i++)
    {
      if (json)
        {
          td_json_key (&j, td_curves_key (curves, i));
          td_json_begin_array (&j);
        }
      for (guint k = 0; k < td_curves_length (curves, i); k++)
        {
          gint64 iteration;
          double value;
          char text[G_ASCII_DTOSTR_BUF_SIZE];

          td_curves_get (curves, i, k, &iteration, &value);
          if (!td_range_has (range, iteration))
            continue;
          g_ascii_formatd (text, sizeof text, "%.9g", value);
          if (json)
            {
              td_json_begin_array (&j);
              td_json_int (&j, iteration);
              td_json_double (&j, value);
              td_json_end_array (&j);
            }
          else if (csv)
            {
              td_csv_append (out, td_curves_key (curves, i));
              g_string_append_printf (out, ",%" G_GINT64_FORMAT ",%s\n", iteration, text);
            }
          else
            g_string_append_printf (out, "%9" G_GINT64_FORMAT "  %s %s\n", iteration,
                                    td_curves_key (curves, i), text);
        }
      if (json)
        td_json_end_array (&j);
    }
  if (json)
    {
      td_json_end_object (&j);
      td_json_end_object (&j);
    }
  return g_string_free (out, FALSE);
}
