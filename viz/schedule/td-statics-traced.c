/*
 * A schedule as it grows.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-statics-traced.h"

static void
fill_row (TdTapeReader *reader, const TdTapeTraced *t, TdTracedRow *row)
{
  char site[512];

  td_tape_reader_site_text (reader, t->site, site, sizeof site);
  *row = (TdTracedRow){ .tape = *t,
                        .op = t->opdef  ? td_tape_reader_op_name (reader, t->opdef)
                              : t->text ? td_tape_reader_string (reader, t->text)
                                        : td_tape_step_kind_name (t->kind),
                        .site = g_strdup (site),
                        .layer = td_tape_reader_path_text (reader, t->path) };
}

TdTraced *
td_traced_new (TdTapeReader *reader, const TdTapeIteration *iteration, guint function)
{
  TdTraced *traced = g_new0 (TdTraced, 1);

  traced->running = (iteration->flags & TD_TAPE_ITERATION_PARTIAL) != 0;
  traced->rows = g_new0 (TdTracedRow, MAX (iteration->n_traced, 1));
  for (guint i = 0; i < iteration->n_traced; i++)
    if (iteration->traced[i].chain == function)
      fill_row (reader, &iteration->traced[i], &traced->rows[traced->n++]);
  return traced;
}

void
td_traced_free (TdTraced *traced)
{
  if (!traced)
    return;
  for (guint i = 0; i < traced->n; i++)
    g_free (traced->rows[i].site);
  g_free (traced->rows);
  g_free (traced);
}

/* Before an event stand the operations of earlier events, and what was traced up to it. */
guint
td_traced_count_at (const TdTraced *traced, gint event)
{
  guint n = 0;

  if (event < 0)
    return traced->n;
  for (guint i = 0; i < traced->n; i++)
    {
      const TdTapeTraced *t = &traced->rows[i].tape;

      n += t->kind == TD_TAPE_STEP_OP ? t->event < (guint)event : t->event <= (guint)event;
    }
  return n;
}

char *
td_traced_headline (const TdTraced *traced)
{
  return g_strdup_printf (traced->running ? "tracing: %u %s so far" : "traced: %u %s",
                          traced->n, traced->n == 1 ? "entry" : "entries");
}

void
td_traced_print_row (const TdTraced *traced, guint row, GString *out)
{
  const TdTracedRow *r = &traced->rows[row];
  g_autofree char *place = g_path_get_basename (r->site);

  g_string_append_printf (out, "%5u  %-10s %-28s %-20s %s\n", r->tape.number,
                          r->tape.list == 0 ? "forward" : "backward", r->op, r->layer,
                          *r->site ? place : "");
}
