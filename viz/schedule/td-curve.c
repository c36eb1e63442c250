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

typedef struct
{
  char *key;
  GArray *iteration; /* gint64 */
  GArray *value;     /* double */
  GPtrArray *
      levels; /* GArray of Extent; level k holds one for each 2^(k+1) values, whole ones only */
} Curve;

struct _TdCurves
{
  GPtrArray *curves;
  guint64 n_seen; /* reports of the reader taken in */
};

static void
curve_free (gpointer data)
{
  Curve *c = data;

  g_free (c->key);
  g_array_unref (c->iteration);
  g_array_unref (c->value);
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
  c->levels = g_ptr_array_new_with_free_func ((GDestroyNotify)g_array_unref);
  g_ptr_array_add (s->curves, c);
  return c;
}

static void
append (Curve *c, gint64 iteration, double value)
{
  Extent e = extent_of (value);

  g_array_append_val (c->iteration, iteration);
  g_array_append_val (c->value, value);
  /* an entry of level k is whole when the number of values is a multiple of 2^(k+1) */
  for (guint level = 0, n = c->value->len; n % 2 == 0; level++, n /= 2)
    {
      if (level == 0)
        e = join (extent_of (g_array_index (c->value, double, c->value->len - 2)), e);
      else
        {
          GArray *below = g_ptr_array_index (c->levels, level - 1);

          e = join (g_array_index (below, Extent, below->len - 2),
                    g_array_index (below, Extent, below->len - 1));
        }
      if (level == c->levels->len)
        g_ptr_array_add (c->levels, g_array_new (FALSE, FALSE, sizeof (Extent)));
      g_array_append_val ((GArray *)g_ptr_array_index (c->levels, level), e);
    }
}

void
td_curves_append (TdCurves *curves, const char *key, gint64 iteration, double value)
{
  append (curve_for (curves, key), iteration, value);
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
      append (last, (gint64)r->iteration, r->value);
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

guint
td_curves_length (const TdCurves *curves, guint curve)
{
  return CURVE (curves, curve)->value->len;
}

void
td_curves_get (const TdCurves *curves, guint curve, guint i, gint64 *iteration, double *value)
{
  *iteration = g_array_index (CURVE (curves, curve)->iteration, gint64, i);
  *value = g_array_index (CURVE (curves, curve)->value, double, i);
}

int
td_curves_main (const TdCurves *curves)
{
  for (guint i = 0; i < curves->curves->len; i++)
    if (g_str_equal (CURVE (curves, i)->key, "loss"))
      return (int)i;
  return curves->curves->len > 0 ? 0 : -1;
}

guint
td_curves_range (const TdCurves *curves, guint curve, guint first, guint end, double *lo,
                 double *hi)
{
  const Curve *c = CURVE (curves, curve);
  Extent e = { INFINITY, -INFINITY, 0 };

  end = MIN (end, c->value->len);
  while (first < end)
    {
      /* the largest whole entry that starts at `first` and does not reach beyond `end` */
      guint level = 0, size = 1;

      while (level < c->levels->len && first % (2 * size) == 0 && first + 2 * size <= end)
        {
          level++;
          size *= 2;
        }
      e = join (e, level == 0
                       ? extent_of (g_array_index (c->value, double, first))
                       : g_array_index ((GArray *)g_ptr_array_index (c->levels, level - 1),
                                        Extent, first / size));
      first += size;
    }
  *lo = (double)e.lo;
  *hi = (double)e.hi;
  return e.not_finite;
}

char *
td_curves_print (const TdCurves *curves, const char *format)
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
