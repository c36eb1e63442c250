/*
 * Where memory ran out. The facts and the estimates are those of `tapedeck info --oom`.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-oom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene/td-format.h"
#include "td-tape-oom-way.h"

static void
append_holder (GString *text, TdTapeReader *reader, const TdTapeOomHolder *h)
{
  const char *op = td_tape_reader_string (reader, h->op);
  g_autofree char *title = td_oom_dup_title (reader, h);
  char bytes[TD_FORMAT_SIZE], site[256];

  td_tape_reader_site_text (reader, h->site, site, sizeof site);
  g_string_append_printf (text, " The largest part is %s of %s",
                          td_format_bytes (bytes, h->bytes), title);
  if (*op)
    g_string_append_printf (text, ", made by %s", op);
  if (*site)
    g_string_append_printf (text, " at %s", site);
  g_string_append_c (text, '.');
}

char *
td_oom_headline (TdTapeReader *reader)
{
  const guint32 n = td_tape_reader_n_ooms (reader);
  const TdTapeOom *oom = n > 0 ? td_tape_reader_oom (reader, n - 1) : NULL;
  char sentence[700];
  TdTapeRemedy remedy;

  if (!oom)
    return NULL;
  GString *text = g_string_new ("Memory ran out in ");
  td_tape_oom_sentence (reader, n - 1, sentence, sizeof sentence);
  g_string_append_printf (text, "%s.", sentence);
  if (oom->n_holders > 0)
    append_holder (text, reader, td_tape_reader_oom_holders (reader, n - 1));
  if (td_tape_oom_remedies (reader, n - 1, &remedy, 1) > 0)
    g_string_append_printf (text, " Would help, as estimated: %s.", remedy.text);
  return g_string_free (text, FALSE);
}

/* ---- figures ---- */

/* What is shown where it is not 0. */
typedef struct
{
  const char *name, *before, *after;
  gsize at;
} Amount;

#define AMOUNT(field) offsetof (TdTapeOom, field)
static const Amount amounts[] = {
  { "Limit", "", "", AMOUNT (limit_bytes) },
  { "Device", "", "", AMOUNT (device_bytes) },
  { "Used by others", "", "", AMOUNT (outside_bytes) },
  { "Reserved", "", "", AMOUNT (reserved_bytes) },
  { "Allocated", "", "", AMOUNT (live_bytes) },
  { "Waiting", "", " still in use by copies", AMOUNT (pending_bytes) },
  { "In holes", "", "", AMOUNT (hole_bytes) },
  { "Largest free", "", "", AMOUNT (largest_free_bytes) },
};
static const Amount tries[] = {
  { "Tried", "gave back ", " that the pool had cached", AMOUNT (trimmed_bytes) },
  { "Tried", "gave back ", " that other pools had cached", AMOUNT (trimmed_others_bytes) },
  { "Tried", "waited for ", " that other work used", AMOUNT (waited_bytes) },
  { "Tried", "asked the device for ", ", which it refused", AMOUNT (refused_bytes) },
};

static void
clear_fact (gpointer fact)
{
  g_free (((TdOomFact *)fact)->text);
}

static void
add_fact (GArray *facts, const char *name, char *text)
{
  const TdOomFact fact = { name, text };

  g_array_append_val (facts, fact);
}

/* Returns how many there were. */
static guint
add_amounts (GArray *facts, const TdTapeOom *oom, const Amount *list, guint n)
{
  char bytes[TD_FORMAT_SIZE];
  guint found = 0;

  for (guint k = 0; k < n; k++)
    {
      guint64 amount;

      memcpy (&amount, (const char *)oom + list[k].at, sizeof amount);
      if (amount == 0)
        continue;
      add_fact (facts, list[k].name,
                g_strdup_printf ("%s%s%s", list[k].before, td_format_bytes (bytes, amount),
                                 list[k].after));
      found++;
    }
  return found;
}

static void
append_dims (GString *text, const gint64 *dims, guint ndim)
{
  g_string_append_c (text, '(');
  for (guint d = 0; d < ndim; d++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT, d ? ", " : "", dims[d]);
  g_string_append_c (text, ')');
}

static char *
dup_asked (const TdTapeOom *oom)
{
  char bytes[TD_FORMAT_SIZE];
  GString *text = g_string_new (td_format_bytes (bytes, oom->asked_bytes));

  if (oom->ndim <= TD_TAPE_MAX_NDIM)
    {
      g_string_append (text, " for ");
      append_dims (text, oom->dims, oom->ndim);
      g_string_append_printf (text, " %s", td_tape_dtype_name (oom->dtype));
    }
  return g_string_free (text, FALSE);
}

GArray *
td_oom_list_facts (TdTapeReader *reader, guint i)
{
  const TdTapeOom *oom = td_tape_reader_oom (reader, i);
  GArray *facts = g_array_new (FALSE, FALSE, sizeof (TdOomFact));

  g_array_set_clear_func (facts, clear_fact);
  if (!oom)
    return facts;
  add_fact (facts, "Asked", dup_asked (oom));
  add_amounts (facts, oom, amounts, G_N_ELEMENTS (amounts));
  if (add_amounts (facts, oom, tries, G_N_ELEMENTS (tries)) == 0
      && !(oom->flags & TD_TAPE_OOM_IMPORTED))
    add_fact (facts, "Tried",
              g_strdup (oom->flags & TD_TAPE_OOM_LIMITED
                            ? "nothing: the limit counts what is live, and that cannot be "
                              "given back"
                            : "nothing"));
  return facts;
}

char *
td_oom_dup_name (TdTapeReader *reader, guint i)
{
  const TdTapeOom *oom = td_tape_reader_oom (reader, i);
  const char *op = oom ? td_tape_reader_string (reader, oom->op) : "";

  if (!oom)
    return g_strdup ("");
  if (!(oom->flags & TD_TAPE_OOM_ITERATION))
    return g_strdup_printf ("before the first iteration: %s", op);
  if (oom->flags & TD_TAPE_OOM_IMPORTED)
    return g_strdup_printf ("entry %u: %s", oom->event, op);
  return g_strdup_printf ("iteration %" G_GUINT64_FORMAT ", event %u: %s %s", oom->iteration,
                          oom->event, td_tape_phase_name (oom->phase), op);
}

char *
td_oom_print (TdTapeReader *reader)
{
  char *raw = NULL;
  size_t n;
  FILE *out = open_memstream (&raw, &n);

  if (!out)
    return g_strdup ("");
  td_tape_oom_print (reader, out, false);
  fclose (out);
  char *text = g_utf8_make_valid (raw, -1);
  free (raw);
  return text;
}

/* ---- groups of arrays ---- */

char *
td_oom_dup_title (TdTapeReader *reader, const TdTapeOomHolder *h)
{
  const char *path = td_tape_reader_path_text (reader, h->path),
             *name = td_tape_reader_string (reader, h->name);

  return g_strdup_printf ("%s%s%s%s%s", td_tape_category_name (h->category),
                          *path || *name ? " " : "", path, *path && *name ? "/" : "", name);
}

char *
td_oom_dup_label (TdTapeReader *reader, const TdTapeOomHolder *h)
{
  g_autofree char *title = td_oom_dup_title (reader, h);
  GString *text = g_string_new (title);

  if (h->ndim <= TD_TAPE_MAX_NDIM)
    {
      g_string_append_c (text, ' ');
      append_dims (text, h->dims, h->ndim);
    }
  return g_string_free (text, FALSE);
}

char *
td_oom_describe (TdTapeReader *reader, guint i, guint row)
{
  const TdTapeOom *oom = td_tape_reader_oom (reader, i);
  const TdTapeOomHolder *h = &td_tape_reader_oom_holders (reader, i)[row];
  const char *op = td_tape_reader_string (reader, h->op);
  g_autofree char *title = td_oom_dup_title (reader, h);
  char bytes[TD_FORMAT_SIZE], site[256], way[1500];
  GString *text = g_string_new (NULL);

  g_string_append_printf (text, "%s of %s in %u array%s, %.0f %% of what was allocated",
                          td_format_bytes (bytes, h->bytes), title, h->n, h->n == 1 ? "" : "s",
                          100.0 * (double)h->bytes / (double)MAX (oom->live_bytes, 1));
  if (*op)
    g_string_append_printf (text, ", made by %s", op);
  if (*td_tape_reader_site_text (reader, h->site, site, sizeof site))
    g_string_append_printf (text, " at %s", site);
  if (h->flags & TD_TAPE_OOM_HOLDER_EARLIER)
    g_string_append_printf (text, " in iteration %" G_GUINT64_FORMAT "%s", h->oldest,
                            h->n > 1 ? " and later" : "");
  if (!(oom->flags & TD_TAPE_OOM_IMPORTED))
    g_string_append_printf (
        text, ", kept by %s",
        h->flags & TD_TAPE_OOM_HOLDER_GRAPH ? "the graph" : td_tape_holder_name (h->holder));
  if (*td_tape_reader_site_text (reader, h->holder_site, site, sizeof site))
    g_string_append_printf (text, " at %s", site);
  if (h->flags & TD_TAPE_OOM_HOLDER_SAVED)
    g_string_append (text, ", saved for backward");
  td_tape_oom_way (reader, i, row, way, sizeof way);
  if (*way)
    g_string_append_printf (text, ", by way of %s", way);
  return g_string_free (text, FALSE);
}

gint64
td_oom_holder_iteration (TdTapeReader *reader, guint i, guint row)
{
  const TdTapeOom *oom = td_tape_reader_oom (reader, i);
  const TdTapeOomHolder *h = &td_tape_reader_oom_holders (reader, i)[row];

  if (h->flags & TD_TAPE_OOM_HOLDER_EARLIER)
    return (gint64)h->oldest;
  return oom->flags & TD_TAPE_OOM_ITERATION ? (gint64)oom->iteration : -1;
}

/* What nobody named is known by its kind and shape. */
static gboolean
is_like (const TdTapeIteration *tape, const TdTapeVar *v, const TdTapeOomHolder *h)
{
  return v->producer < 0 && v->category == h->category && v->dtype == h->dtype
         && v->ndim == h->ndim && v->ndim <= TD_TAPE_MAX_NDIM
         && memcmp (tape->dims + v->first_dim, h->dims, v->ndim * sizeof *h->dims) == 0;
}

guint64
td_oom_find_key (TdTapeReader *reader, const TdTapeOomHolder *h, TdIteration *it)
{
  const TdTapeIteration *tape = td_iteration_get_tape (it);
  const char *op = td_tape_reader_string (reader, h->op),
             *name = td_tape_reader_string (reader, h->name),
             *path = td_tape_reader_path_text (reader, h->path);

  for (guint e = 0; h->op && e < tape->n_events; e++)
    if (tape->events[e].site == h->site && strcmp (td_iteration_get_op_name (it, e), op) == 0)
      return tape->events[e].key;
  for (guint v = 0; *name && v < tape->n_vars; v++)
    if (strcmp (td_iteration_get_var_name (it, v), name) == 0
        && strcmp (td_iteration_get_path_name (it, tape->vars[v].path), path) == 0)
      return tape->vars[v].key;
  for (guint v = 0; !h->op && !*name && v < tape->n_vars; v++)
    if (is_like (tape, &tape->vars[v], h))
      return tape->vars[v].key;
  return 0;
}
