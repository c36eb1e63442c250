/*
 * Who holds memory and what grows, as sentences, tables, CSV and JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "scene/td-json.h"
#include "td-holders.h"
#include "td-retained.h"

#define SITE_SIZE 320

/* "file:line", or NULL where it is not known. */
static const char *
site_text (const TdHolders *self, guint32 site, char out[SITE_SIZE])
{
  return td_tape_reader_site (self->reader, site)
             ? td_tape_reader_site_text (self->reader, site, out, SITE_SIZE)
             : NULL;
}

static const char *
op_text (const TdHolders *self, guint32 opdef)
{
  return td_tape_reader_opdef (self->reader, opdef)
             ? td_tape_reader_op_name (self->reader, opdef)
             : NULL;
}

/* Where a holder took hold; a link's attribute and a gradient are where their variable was
 * made. */
static const char *
holder_site (const TdHolders *self, const TdHolder *h, char out[SITE_SIZE])
{
  return site_text (self, h->holder_site != 0 ? h->holder_site : h->held_site, out);
}

const char *
td_holder_advice (guint kind, gboolean in_graph)
{
  switch (kind)
    {
    case TD_TAPE_HOLDER_HANDLE:
      return in_graph ? "Take the number (td_item), or cut the graph off (td_unchain, "
                        "td_unchain_backward)"
                      : "Give up what is no longer needed (td_release)";
    case TD_TAPE_HOLDER_LINK:
      return in_graph
                 ? "Cut the state off where a sequence ends (td_unchain_backward), or reset it"
                 : "Let the link keep less, or make it once and give it up (td_link_free)";
    case TD_TAPE_HOLDER_OPTIMIZER:
      return "Make the optimizer once, or give it up (td_opt_free)";
    case TD_TAPE_HOLDER_SCOPE:
      return "Make it inside TD_ITERATION or a scope of its own";
    case TD_TAPE_HOLDER_GRADIENT:
      return "Clear gradients in every iteration (td_cleargrads), and build their graph only "
             "if "
             "it is needed";
    case TD_TAPE_HOLDER_REPORTER:
      return "Report the number (td_item), not the variable";
    default:
      return "See the view holders";
    }
}

/* For a tape that another program than ours wrote: in its words, where they are known. */
static const char *
foreign_advice (const char *producer)
{
  return g_str_equal (producer, "PyTorch")
             ? "Keep the number (item ()) or what is cut off the graph (detach ()), or give it "
               "up (del)"
             : "Give up what is no longer needed";
}

static const char *
advice (const TdHolders *self, const TdHolder *h)
{
  const char *producer = td_tape_reader_info (self->reader, "producer");

  if (h->others)
    return "They are too small one by one to be named";
  if (h->together)
    return "See the views holders and growth";
  if (*producer != '\0')
    return foreign_advice (producer);
  return td_holder_advice (h->largest.holder, (h->largest.flags & TD_TAPE_HELD_IN_GRAPH) != 0);
}

static void
append_holder (GString *out, const TdHolders *self, const TdHolder *h)
{
  char at[SITE_SIZE], made[SITE_SIZE];
  const char *op = op_text (self, h->largest.opdef), *name = NULL, *where;

  g_string_append_printf (out, "kept by %s", td_tape_holder_name (h->kind));
  if (h->name != 0)
    name = td_tape_reader_string (self->reader, h->name);
  if (name && *name)
    g_string_append_printf (out, " '%s'", name);
  where = holder_site (self, h, at);
  if (where)
    g_string_append_printf (out, " at %s", where);
  where = site_text (self, h->held_site, at);
  if (where && h->holder_site != 0)
    {
      const char *by = op_text (self, h->held_opdef);

      g_string_append_printf (out, " (made%s%s at %s)", by ? " by " : "", by ? by : "", where);
    }
  where = site_text (self, h->largest.site, made);
  g_string_append_printf (out, "; most of it: %s%s%s%s%s",
                          td_tape_category_name (h->largest.category), op ? " of " : "",
                          op ? op : "", where ? " at " : "", where ? where : "");
}

static void
append_site (GString *out, const TdHolders *self, const TdHolder *h)
{
  char at[SITE_SIZE], made[SITE_SIZE];
  const char *op = op_text (self, h->opdef), *where = site_text (self, h->site, made);
  guint32 held = h->largest.holder_site != 0 ? h->largest.holder_site : h->largest.held_site;

  g_string_append_printf (out, "%s%s%s%s%s", td_tape_category_name (h->category),
                          op ? " of " : "", op ? op : "", where ? " at " : "",
                          where ? where : "");
  where = site_text (self, held, at);
  g_string_append_printf (out, "; most of it kept by %s%s%s",
                          td_tape_holder_name (h->largest.holder), where ? " at " : "",
                          where ? where : "");
}

/* Of no single place; the largest group says where to begin. */
static void
append_together (GString *out, const TdHolders *self, const TdHolder *h)
{
  TdHolder largest = { .kind = h->largest.holder,
                       .holder_site = h->largest.holder_site,
                       .held_site = h->largest.held_site,
                       .name = h->largest.name,
                       .site = h->largest.site,
                       .opdef = h->largest.opdef,
                       .category = h->largest.category,
                       .largest = h->largest };

  g_string_append (out, "in groups none of which grows steadily by itself");
  if (h->largest.n_objects == 0)
    return;
  g_string_append (out, "; the largest of them: ");
  if (self->by == TD_HOLDERS_BY_SITE)
    append_site (out, self, &largest);
  else
    append_holder (out, self, &largest);
}

/* What a row is kept by; the sum of several has no holder. */
static const char *
holder_name (const TdHolder *h)
{
  return h->others     ? "others"
         : h->together ? "all together"
                       : td_tape_holder_name (h->largest.holder);
}

char *
td_holders_sentence (const TdHolders *self, const TdHolder *h)
{
  guint last = self->n_marks - 1;
  char rate[TD_FORMAT_SIZE], now[TD_FORMAT_SIZE];
  GString *out = g_string_new (NULL);

  g_string_append_printf (out, "+%s per iteration: %u %s of %u%s %s, %s, ",
                          td_format_bytes (rate, (guint64)h->bytes_per_iteration),
                          h->n_objects[last], td_plural (h->n_objects[last], "array", "arrays"),
                          h->n_iterations,
                          h->n_iterations >= TD_TAPE_MAX_HELD_ITERATIONS ? " or more" : "",
                          td_plural (h->n_iterations, "iteration", "iterations"),
                          td_format_bytes (now, h->bytes[last]));
  if (h->others)
    g_string_append (out, "in many small groups");
  else if (h->together)
    append_together (out, self, h);
  else if (self->by == TD_HOLDERS_BY_SITE)
    append_site (out, self, h);
  else
    append_holder (out, self, h);
  g_string_append_printf (out, ". %s.", advice (self, h));
  return g_string_free (out, FALSE);
}

/* ---- one mark ---- */

static void
json_site (TdJson *j, const TdHolders *self, const char *key, guint32 site)
{
  char text[SITE_SIZE];
  const char *at = site_text (self, site, text);

  td_json_key (j, key);
  if (at)
    td_json_string (j, at);
  else
    td_json_null (j);
}

static const char *
kind_of (const TdTapeHeld *row)
{
  return row->flags & TD_TAPE_HELD_OTHERS ? "others" : td_tape_holder_name (row->holder);
}

static gboolean
is_shown (const TdTapeHeld *row)
{
  return row->n_objects > 0;
}

static char *
holders_json (const TdHolders *self, const TdHoldersMark *mark)
{
  GString *out = g_string_new (NULL);
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_member_int (&j, "iteration", mark->iteration);
  td_json_member_int (&j, "bytes", (gint64)mark->bytes);
  td_json_member_int (&j, "objects", (gint64)mark->n_objects);
  td_json_key (&j, "holders");
  td_json_begin_array (&j);
  for (guint i = 0; i < mark->n_rows; i++)
    {
      const TdTapeHeld *row = &mark->rows[i];

      if (!is_shown (row))
        continue;
      td_json_begin_object (&j);
      td_json_member_string (&j, "holder", kind_of (row));
      json_site (&j, self, "holder_site", row->holder_site);
      json_site (&j, self, "held_site", row->held_site);
      json_site (&j, self, "site", row->site);
      td_json_member_string (&j, "op", op_text (self, row->opdef));
      td_json_member_string (&j, "category", td_tape_category_name (row->category));
      td_json_member_int (&j, "bytes", (gint64)row->bytes);
      td_json_member_int (&j, "objects", row->n_objects);
      td_json_member_int (&j, "iterations", row->n_iterations);
      td_json_member_int (&j, "oldest", (gint64)row->oldest);
      td_json_member_bool (&j, "in_graph", (row->flags & TD_TAPE_HELD_IN_GRAPH) != 0);
      td_json_end_object (&j);
    }
  td_json_end_array (&j);
  td_json_end_object (&j);
  return g_string_free (out, FALSE);
}

static void
csv_text (GString *out, const char *text)
{
  g_string_append_c (out, ',');
  if (text)
    td_csv_append (out, text);
}

static char *
holders_csv (const TdHolders *self, const TdHoldersMark *mark)
{
  GString *out = g_string_new ("bytes,objects,iterations,oldest,category,holder,holder_site,"
                               "held_site,op,site\n");
  char text[SITE_SIZE];

  for (guint i = 0; i < mark->n_rows; i++)
    {
      const TdTapeHeld *row = &mark->rows[i];

      if (!is_shown (row))
        continue;
      g_string_append_printf (out, "%" G_GUINT64_FORMAT ",%u,%u,%" G_GUINT64_FORMAT, row->bytes,
                              row->n_objects, row->n_iterations, row->oldest);
      csv_text (out, td_tape_category_name (row->category));
      csv_text (out, kind_of (row));
      csv_text (out, site_text (self, row->holder_site, text));
      csv_text (out, site_text (self, row->held_site, text));
      csv_text (out, op_text (self, row->opdef));
      csv_text (out, site_text (self, row->site, text));
      g_string_append_c (out, '\n');
    }
  return g_string_free (out, FALSE);
}

static char *
holders_text (const TdHolders *self, const TdHoldersMark *mark)
{
  GString *out = g_string_new (NULL);
  char bytes[TD_FORMAT_SIZE], at[SITE_SIZE], made[SITE_SIZE];

  g_string_append_printf (
      out, "after iteration %" G_GINT64_FORMAT ": %" G_GUINT64_FORMAT " %s, %s\n",
      mark->iteration, mark->n_objects,
      td_plural (mark->n_objects, "array outlived the iteration that made it",
                 "arrays outlived the iteration that made them"),
      td_format_bytes (bytes, mark->bytes));
  for (guint i = 0; i < mark->n_rows; i++)
    {
      const TdTapeHeld *row = &mark->rows[i];
      const char *where, *op = op_text (self, row->opdef);

      if (!is_shown (row))
        continue;
      g_string_append_printf (
          out, "%9s  %5u of %2u%s %-10s  %-12s", td_format_bytes (bytes, row->bytes),
          row->n_objects, row->n_iterations,
          row->n_iterations >= TD_TAPE_MAX_HELD_ITERATIONS ? " or more" : "",
          td_plural (row->n_iterations, "iteration", "iterations"),
          td_tape_category_name (row->category));
      where = site_text (self, row->site, made);
      g_string_append_printf (out, " %s%s%s", op ? op : "", where ? " at " : "",
                              where ? where : "");
      where = site_text (self, row->holder_site != 0 ? row->holder_site : row->held_site, at);
      g_string_append_printf (out, "  <- %s%s%s%s\n",
                              row->flags & TD_TAPE_HELD_IN_GRAPH ? "graph of " : "",
                              kind_of (row), where ? " at " : "", where ? where : "");
    }
  return g_string_free (out, FALSE);
}

char *
td_holders_print (const TdHolders *self, const char *format)
{
  const TdHoldersMark *mark = &self->marks[self->n_marks - 1];

  if (g_str_equal (format, "json"))
    return holders_json (self, mark);
  if (g_str_equal (format, "csv"))
    return holders_csv (self, mark);
  return holders_text (self, mark);
}

/* ---- growth ---- */

/* The members of one entry of `growing`. */
static void
json_leak (TdJson *j, const TdHolders *self, const TdHolder *h)
{
  char text[SITE_SIZE];
  guint32 held = h->largest.holder_site != 0 ? h->largest.holder_site : h->largest.held_site;
  const char *at = site_text (self, held, text);

  json_site (j, self, "site", h->largest.site != 0 ? h->largest.site : h->held_site);
  td_json_member_string (j, "category", td_tape_category_name (h->largest.category));
  td_json_member_double (j, "bytes_per_iteration", h->bytes_per_iteration);
  td_json_member_string (j, "holder", holder_name (h));
  td_json_key (j, "holder_site");
  if (at)
    td_json_string (j, at);
  else
    td_json_null (j);
  td_json_member_int (j, "retained_bytes", (gint64)h->bytes[self->n_marks - 1]);
  td_json_member_int (j, "objects", h->n_objects[self->n_marks - 1]);
  td_json_member_int (j, "iterations", h->n_iterations);
}

static void
growth_json (const TdHolders *self, GString *out)
{
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_key (&j, "holders");
  td_json_begin_array (&j);
  for (guint i = 0; i < self->n_holders; i++)
    {
      const TdHolder *h = &self->holders[i];

      td_json_begin_object (&j);
      json_leak (&j, self, h);
      td_json_member_bool (&j, "grows", h->grows);
      td_json_key (&j, "series"); /* iteration, bytes, objects */
      td_json_begin_array (&j);
      for (guint m = 0; m < self->n_marks; m++)
        {
          td_json_begin_array (&j);
          td_json_int (&j, self->marks[m].iteration);
          td_json_int (&j, (gint64)h->bytes[m]);
          td_json_int (&j, h->n_objects[m]);
          td_json_end_array (&j);
        }
      td_json_end_array (&j);
      td_json_end_object (&j);
    }
  td_json_end_array (&j);
  td_json_end_object (&j);
}

static void
growth_csv (const TdHolders *self, GString *out)
{
  char text[SITE_SIZE];

  g_string_append (out, "iteration,bytes,objects,category,site,holder,holder_site,grows\n");
  for (guint m = 0; m < self->n_marks; m++)
    for (guint i = 0; i < self->n_holders; i++)
      {
        const TdHolder *h = &self->holders[i];

        g_string_append_printf (out, "%" G_GINT64_FORMAT ",%" G_GUINT64_FORMAT ",%u",
                                self->marks[m].iteration, h->bytes[m], h->n_objects[m]);
        csv_text (out, td_tape_category_name (h->largest.category));
        csv_text (out, site_text (self, h->largest.site, text));
        guint32 held
            = h->largest.holder_site != 0 ? h->largest.holder_site : h->largest.held_site;

        csv_text (out, holder_name (h));
        csv_text (out, site_text (self, held, text));
        g_string_append_printf (out, ",%d\n", h->grows);
      }
}

static void
print_nothing (const TdHolders *self, GString *out)
{
  const TdHolder *young = td_holders_find_young (self);

  if (young)
    {
      g_autofree char *sentence = td_holders_sentence (self, young);

      g_string_append_printf (out, "too early to say that something grows; so far %s\n",
                              sentence);
    }
  else
    g_string_append (out, "nothing grows\n");
}

static void
growth_text (const TdHolders *self, GString *out)
{
  char bytes[TD_FORMAT_SIZE];

  for (guint i = 0; i < td_holders_n_growing (self); i++)
    {
      g_autofree char *sentence = td_holders_sentence (self, td_holders_get_growing (self, i));

      g_string_append_printf (out, "%u: %s\n", i + 1, sentence);
    }
  if (td_holders_n_growing (self) == 0)
    print_nothing (self, out);
  g_string_append_printf (out, "%9s  %9s  %9s\n", "iteration", "bytes", "arrays");
  for (guint m = 0; m < self->n_marks; m++)
    g_string_append_printf (
        out, "%9" G_GINT64_FORMAT "  %9s  %9" G_GUINT64_FORMAT "\n", self->marks[m].iteration,
        td_format_bytes (bytes, self->marks[m].bytes), self->marks[m].n_objects);
}

char *
td_growth_print (const TdHolders *self, const char *format)
{
  GString *out = g_string_new (NULL);

  if (g_str_equal (format, "json"))
    growth_json (self, out);
  else if (g_str_equal (format, "csv"))
    growth_csv (self, out);
  else
    growth_text (self, out);
  return g_string_free (out, FALSE);
}

/* The first sentence: who keeps how much through which graph. NULL: nothing says so. */
static char *
retained_sentence (const TdRetained *retained, const TdHolders *self, const TdHolder *h)
{
  gint row = retained && self->by == TD_HOLDERS_BY_HOLDER ? td_retained_find (retained, h) : -1;

  return row >= 0 ? td_retained_sentence (retained, (guint)row) : NULL;
}

static void
leaks_text (const TdHolders *self, const TdRetained *retained, GString *out)
{
  guint n = td_holders_n_growing (self);

  for (guint i = 0; i < n; i++)
    {
      const TdHolder *h = td_holders_get_growing (self, i);
      g_autofree char *first = retained_sentence (retained, self, h);
      g_autofree char *sentence = td_holders_sentence (self, h);

      if (first)
        g_string_append_printf (out, "After iteration %" G_GINT64_FORMAT ": %s.\n  ",
                                retained->iteration, first);
      g_string_append_printf (out, "%s\n", sentence);
    }
  if (n == 0)
    print_nothing (self, out);
}

char *
td_leaks_print (const TdHolders *self, const TdRetained *retained, const char *format)
{
  GString *out = g_string_new (NULL);
  guint n = td_holders_n_growing (self);
  TdJson j;

  if (!g_str_equal (format, "json"))
    {
      leaks_text (self, retained, out);
      return g_string_free (out, FALSE);
    }
  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_key (&j, "growing");
  td_json_begin_array (&j);
  for (guint i = 0; i < n; i++)
    {
      const TdHolder *h = td_holders_get_growing (self, i);
      g_autofree char *first = retained_sentence (retained, self, h);

      td_json_begin_object (&j);
      json_leak (&j, self, h);
      td_json_member_string (&j, "sentence", first);
      td_json_end_object (&j);
    }
  td_json_end_array (&j);
  td_json_end_object (&j);
  return g_string_free (out, FALSE);
}
