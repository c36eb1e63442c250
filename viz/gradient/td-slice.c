/*
 * Reading slices: one pass over the characters, whose first mistake is reported with its place.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gradient/td-slice.h"

#include <errno.h>
#include <gio/gio.h>

/* What stands between two commas. */
typedef struct
{
  enum
  {
    INDEX,
    RANGE,
    ELLIPSIS
  } kind;
  gboolean has[3]; /* start, end, step */
  gint64 value[3]; /* of an index the first */
  guint at;        /* its first character */
} Item;

typedef struct
{
  const char *text, *p;
  guint at; /* of the mistake */
  GError **error;
} Reader;

static guint
place_of (const Reader *r, const char *p)
{
  return (guint)g_utf8_pointer_to_offset (r->text, p);
}

/* Always FALSE: what a reader returns that could not go on. */
G_GNUC_PRINTF (3, 4)
static gboolean
mistake (Reader *r, guint at, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  r->at = at;
  g_set_error (r->error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "slice, character %u: %s",
               at + 1, what);
  return FALSE;
}

static void
skip_spaces (Reader *r)
{
  while (g_ascii_isspace (*r->p))
    r->p++;
}

/* FALSE with a mistake; `has` says whether a number was there. */
static gboolean
read_number (Reader *r, gboolean *has, gint64 *value)
{
  const char *begin = r->p;
  char *end;

  *has = g_ascii_isdigit (*r->p)
         || ((*r->p == '-' || *r->p == '+') && g_ascii_isdigit (r->p[1]));
  if (!*has)
    return TRUE;
  errno = 0;
  *value = g_ascii_strtoll (begin, &end, 10);
  r->p = end;
  if (errno != 0)
    return mistake (r, place_of (r, begin), "the number is too large");
  skip_spaces (r);
  return TRUE;
}

static gboolean
read_item (Reader *r, Item *item)
{
  guint colons = 0;

  *item = (Item){ .kind = INDEX, .at = place_of (r, r->p) };
  if (g_str_has_prefix (r->p, "..."))
    {
      item->kind = ELLIPSIS;
      r->p += 3;
      skip_spaces (r);
      return TRUE;
    }
  if (!read_number (r, &item->has[0], &item->value[0]))
    return FALSE;
  while (*r->p == ':')
    {
      if (++colons > 2)
        return mistake (r, place_of (r, r->p), "a range has two colons at most");
      item->kind = RANGE;
      r->p++;
      skip_spaces (r);
      if (!read_number (r, &item->has[colons], &item->value[colons]))
        return FALSE;
    }
  if (item->kind == INDEX && !item->has[0])
    return *r->p ? mistake (r, item->at, "an index or a range is wanted before “%.*s”",
                            (int)(g_utf8_next_char (r->p) - r->p), r->p)
                 : mistake (r, item->at, "an index or a range is missing");
  return TRUE;
}

/* As Python's slice.indices (): ends outside are moved to the ends of the axis. */
static gboolean
set_range (Reader *r, const Item *item, gint64 dim, TdSliceAxis *axis)
{
  gint64 step = item->has[2] ? item->value[2] : 1;
  gint64 lowest = step > 0 ? 0 : -1, highest = step > 0 ? dim : dim - 1;
  gint64 ends[2] = { step > 0 ? lowest : highest, step > 0 ? highest : lowest };

  if (step == 0)
    return mistake (r, item->at, "the step is 0");
  for (int k = 0; k < 2; k++)
    if (item->has[k])
      {
        gint64 v = item->value[k];
        if (v < 0) /* from the end; never past G_MININT64 */
          v = v < -dim ? G_MININT64 : v + dim;
        ends[k] = CLAMP (v, lowest, highest);
      }
  gint64 span = step > 0 ? ends[1] - ends[0] : ends[0] - ends[1];
  guint64 stride = step > 0 ? (guint64)step : -(guint64)step;
  axis->start = ends[0];
  axis->n = span > 0 ? 1 + (gint64)((guint64)(span - 1) / stride) : 0;
  axis->step = axis->n > 1 ? step : 1; /* no other element is asked for */
  axis->dropped = FALSE;
  return TRUE;
}

static gboolean
set_index (Reader *r, const Item *item, guint k, gint64 dim, TdSliceAxis *axis)
{
  gint64 v = item->value[0];

  if (v >= dim || v < -dim)
    return mistake (r, item->at,
                    "index %" G_GINT64_FORMAT
                    " is outside of axis %u, which has %" G_GINT64_FORMAT " element%s",
                    v, k, dim, dim == 1 ? "" : "s");
  *axis = (TdSliceAxis){ v < 0 ? v + dim : v, 1, 1, TRUE };
  return TRUE;
}

/* Reads up to the end; TD_TAPE_MAX_NDIM items and an ellipsis are the most. */
static gboolean
read_items (Reader *r, Item *items, guint *n)
{
  gboolean bracket;

  skip_spaces (r);
  bracket = *r->p == '[';
  if (bracket)
    r->p++;
  skip_spaces (r);
  *n = 0;
  while (*r->p && *r->p != ']')
    {
      if (*n > TD_TAPE_MAX_NDIM)
        return mistake (r, place_of (r, r->p), "there are too many indices");
      if (!read_item (r, &items[(*n)++]))
        return FALSE;
      if (*r->p != ',')
        break;
      r->p++;
      skip_spaces (r);
    }
  if (bracket && *r->p == ']')
    {
      r->p++;
      skip_spaces (r);
    }
  else if (bracket && !*r->p)
    return mistake (r, place_of (r, r->p), "the bracket is not closed");
  if (*r->p)
    return mistake (r, place_of (r, r->p), "“%.*s” is not understood here",
                    (int)(g_utf8_next_char (r->p) - r->p), r->p);
  return TRUE;
}

static gboolean
set_axes (Reader *r, const Item *items, guint n, const gint64 *dims, TdSlice *slice)
{
  guint n_axes = 0, axis = 0;
  gboolean ellipsis = FALSE;

  for (guint i = 0; i < n; i++)
    {
      if (items[i].kind == ELLIPSIS && ellipsis)
        return mistake (r, items[i].at, "one ellipsis is enough");
      ellipsis = ellipsis || items[i].kind == ELLIPSIS;
      n_axes += items[i].kind != ELLIPSIS;
      if (n_axes > slice->ndim)
        return mistake (r, items[i].at, "the tensor has %u %s, this is one more", slice->ndim,
                        slice->ndim == 1 ? "axis" : "axes");
    }
  for (guint i = 0; i < n; i++)
    if (items[i].kind == ELLIPSIS)
      axis += slice->ndim - n_axes;
    else if (items[i].kind == INDEX)
      {
        if (!set_index (r, &items[i], axis, dims[axis], &slice->axes[axis]))
          return FALSE;
        axis++;
      }
    else
      {
        if (!set_range (r, &items[i], dims[axis], &slice->axes[axis]))
          return FALSE;
        axis++;
      }
  return TRUE;
}

TdSlice
td_slice_whole (guint ndim, const gint64 *dims)
{
  TdSlice slice = { .ndim = ndim };

  for (guint k = 0; k < ndim; k++)
    slice.axes[k] = (TdSliceAxis){ 0, 1, dims[k], FALSE };
  return slice;
}

gboolean
td_slice_parse (const char *text, guint ndim, const gint64 *dims, TdSlice *slice, guint *at,
                GError **error)
{
  Reader r = { .text = text, .p = text, .error = error };
  Item items[TD_TAPE_MAX_NDIM + 2];
  guint n = 0;
  gboolean good;

  *slice = td_slice_whole (ndim, dims);
  good = g_utf8_validate (text, -1, NULL) ? read_items (&r, items, &n)
                                          : mistake (&r, 0, "the text is not UTF-8");
  good = good && set_axes (&r, items, n, dims, slice);
  if (at)
    *at = r.at;
  return good;
}

gboolean
td_slice_is_whole (const TdSlice *slice, const gint64 *dims)
{
  for (guint k = 0; k < slice->ndim; k++)
    if (slice->axes[k].dropped || slice->axes[k].start != 0 || slice->axes[k].step != 1
        || slice->axes[k].n != dims[k])
      return FALSE;
  return TRUE;
}

void
td_slice_locate (const TdSlice *slice, guint64 i, gint64 index[TD_TAPE_MAX_NDIM])
{
  for (guint k = slice->ndim; k-- > 0;)
    {
      guint64 n = (guint64)MAX (slice->axes[k].n, 1);

      index[k] = slice->axes[k].start + (gint64)(i % n) * slice->axes[k].step;
      i /= n;
    }
}

char *
td_slice_dup_index (guint ndim, const gint64 *index)
{
  GString *text = g_string_new ("[");

  for (guint k = 0; k < ndim; k++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT, k > 0 ? ", " : "", index[k]);
  g_string_append_c (text, ']');
  return g_string_free (text, FALSE);
}
