/*
 * What the page Growth says: order, titles and sentences.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-growth.h"

gint64
td_growth_bytes (const TdHolders *self, const TdHolder *h)
{
  return (gint64)h->bytes[self->n_marks - 1] - (gint64)h->bytes[0];
}

static int
most_grown_first (gconstpointer a, gconstpointer b, gpointer data)
{
  const TdHolders *self = data;
  const TdHolder *x = &self->holders[*(const guint *)a], *y = &self->holders[*(const guint *)b];
  gint64 x_bytes = td_growth_bytes (self, x), y_bytes = td_growth_bytes (self, y);

  if (x->grows != y->grows)
    return x->grows ? -1 : 1;
  return (x_bytes < y_bytes) - (x_bytes > y_bytes);
}

guint *
td_growth_order (const TdHolders *self)
{
  guint *order = g_new (guint, self->n_holders + 1);

  for (guint i = 0; i < self->n_holders; i++)
    order[i] = i;
  if (self->n_holders > 0)
    g_qsort_with_data (order, (int)self->n_holders, sizeof *order, most_grown_first,
                       (gpointer)self);
  return order;
}

static char *
place (const TdHolders *self, guint32 site)
{
  char text[320];

  if (!td_tape_reader_site (self->reader, site))
    return g_strdup ("");
  td_tape_reader_site_text (self->reader, site, text, sizeof text);
  return g_path_get_basename (text);
}

char *
td_growth_dup_title (const TdHolders *self, const TdRetained *retained, const TdHolder *h)
{
  gint row = retained && self->by == TD_HOLDERS_BY_HOLDER ? td_retained_find (retained, h) : -1;
  guint32 site = self->by == TD_HOLDERS_BY_SITE ? h->site
                 : h->holder_site != 0          ? h->holder_site
                                                : h->held_site;
  g_autofree char *at = place (self, site);
  const char *op = td_tape_reader_opdef (self->reader, h->opdef)
                       ? td_tape_reader_op_name (self->reader, h->opdef)
                       : NULL;
  GString *out;

  if (h->others)
    return g_strdup ("all smaller groups");
  if (h->together)
    return g_strdup ("all together");
  if (row >= 0)
    return td_retained_dup_title (retained, (guint)row);
  out = g_string_new (self->by == TD_HOLDERS_BY_SITE ? td_tape_category_name (h->category)
                                                     : td_tape_holder_name (h->kind));
  if (self->by == TD_HOLDERS_BY_SITE && op)
    g_string_append_printf (out, " of %s", op);
  if (*at)
    g_string_append_printf (out, " (%s)", at);
  return g_string_free (out, FALSE);
}

char *
td_growth_describe (const TdHolders *self, const TdRetained *retained, const TdHolder *h)
{
  g_autofree char *title = td_growth_dup_title (self, retained, h);
  char now[TD_FORMAT_SIZE], rate[TD_FORMAT_SIZE];

  return g_strdup_printf (
      "%s: %s in %u %s of %u%s %s, +%s per iteration%s", title,
      td_format_bytes (now, h->bytes[self->n_marks - 1]), h->n_objects[self->n_marks - 1],
      td_plural (h->n_objects[self->n_marks - 1], "array", "arrays"), h->n_iterations,
      h->n_iterations >= TD_TAPE_MAX_HELD_ITERATIONS ? " or more" : "",
      td_plural (h->n_iterations, "iteration", "iterations"),
      td_format_bytes (rate, (guint64)h->bytes_per_iteration), h->grows ? "; it grows" : "");
}

char *
td_growth_headline (const TdHolders *self, const TdRetained *retained)
{
  g_autofree guint *order = td_growth_order (self);
  const TdHolder *h = self->n_holders > 0 ? &self->holders[order[0]] : NULL;
  const TdHoldersMark *mark = &self->marks[self->n_marks - 1];
  const TdHolder *young = td_holders_find_young (self);
  char bytes[TD_FORMAT_SIZE];
  gint row;

  if (young)
    {
      g_autofree char *title = td_growth_dup_title (self, retained, young);

      return g_strdup_printf ("Too early to say that memory grows: after iteration "
                              "%" G_GINT64_FORMAT " %s keeps %s of %u iterations, more at "
                              "every look so far.",
                              mark->iteration, title,
                              td_format_bytes (bytes, young->bytes[self->n_marks - 1]),
                              young->n_iterations);
    }
  if (self->together.grows && (!h || !h->grows))
    return td_holders_sentence (self, &self->together);
  if (!h || !h->grows)
    return g_strdup_printf ("Nothing grows. After iteration %" G_GINT64_FORMAT
                            ", %s of earlier work are still there.",
                            mark->iteration, td_format_bytes (bytes, mark->bytes));
  row = retained && self->by == TD_HOLDERS_BY_HOLDER ? td_retained_find (retained, h) : -1;
  if (row < 0)
    return td_holders_sentence (self, h);
  g_autofree char *sentence = td_retained_sentence (retained, (guint)row);
  return g_strdup_printf ("After iteration %" G_GINT64_FORMAT ": %s.", retained->iteration,
                          sentence);
}
