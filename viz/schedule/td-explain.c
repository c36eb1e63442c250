/*
 * Rows of what explains a static function: calls by their reason, breaks, differences, lines
 * that ran once, guards by line; the passes are in td-explain-passes.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-explain-private.h"

#include <string.h>

TdExplainRow *
td__explain_add (GArray *rows, const TdStatics *all, TdExplainSection section, guint function,
                 guint32 site, char *text)
{
  const TdTapeSite *at = site ? td_tape_reader_site (all->reader, site) : NULL;
  TdExplainRow row
      = { .section = section,
          .function = function,
          .guard = "",
          .title = "",
          .advice = "",
          .text = text,
          .file = g_strdup (at ? td_tape_reader_string (all->reader, at->file) : ""),
          .line = at ? at->line : 0,
          .first = -1,
          .last = -1,
          .step = TD_PANEL_NO_STEP };

  g_array_append_val (rows, row);
  return &g_array_index (rows, TdExplainRow, rows->len - 1);
}

/* The row of that cause and line, or a new one: `since` is the first that can be it. */
static TdExplainRow *
find_row (GArray *rows, guint since, const TdStatics *all, TdExplainSection section,
          guint function, const char *guard, const char *text, guint32 site)
{
  const TdExplainCause *cause = td__explain_cause (guard, text);
  TdExplainRow *row = td__explain_add (rows, all, section, function, site, g_strdup (text));

  row->guard = guard;
  row->title = cause->title ? cause->title : guard;
  row->advice = cause->advice;
  for (guint i = since; i + 1 < rows->len; i++)
    {
      TdExplainRow *known = &g_array_index (rows, TdExplainRow, i);

      if (known->section != section || strcmp (known->guard, guard) != 0
          || known->title != row->title || known->line != row->line
          || strcmp (known->file, row->file) != 0)
        continue;
      g_free (row->text);
      g_free (row->file);
      g_array_set_size (rows, rows->len - 1);
      return known;
    }
  return row;
}

static void
note_iteration (TdExplainRow *row, gint64 iteration)
{
  row->first = row->first < 0 ? iteration : MIN (row->first, iteration);
  row->last = MAX (row->last, iteration);
}

/* ---- calls ---- */

/* What a verified call costs more is the run of its code; of others it is compared. */
static void
add_cost (TdExplainRow *row, const TdExplainCall *call, const TdExplainHistory *history)
{
  double replay = td__explain_replay_ns (history, call->schedule);

  if (!call->timed)
    return;
  if (strcmp (call->guard, TD_EXPLAIN_VERIFIED) == 0)
    replay = 0;
  else if (replay <= 0)
    return;
  row->cost_ns += (double)call->ns - replay;
  row->n_timed++;
}

static int
by_cost (gconstpointer a, gconstpointer b)
{
  const TdExplainRow *x = a, *y = b;

  if (x->cost_ns > y->cost_ns || x->cost_ns < y->cost_ns)
    return x->cost_ns < y->cost_ns ? 1 : -1;
  return x->n != y->n ? (x->n < y->n) - (x->n > y->n)
                      : (x->first > y->first) - (x->first < y->first);
}

static void
add_reasons (TdExplain *e, GArray *rows, guint function, TdExplainRuns *runs)
{
  const TdStatics *all = e->statics;
  const TdStaticsFunction *c = &all->functions[function];
  TdExplainCalls *calls = &e->calls[function];
  TdExplainHistory history;
  guint since = rows->len;

  td__explain_history_fill (&history, all, function, runs);
  for (guint i = 0; i < history.calls->len; i++)
    {
      const TdExplainCall *call = &g_array_index (history.calls, TdExplainCall, i);

      if (!call->guard)
        continue;
      TdExplainRow *row = find_row (rows, since, all, TD_EXPLAIN_REASON, function, call->guard,
                                    call->text ? call->text : "", call->site);
      row->n++;
      row->n_traced += call->kind == TD_TAPE_RUN_TRACED;
      row->n_code += call->kind == TD_TAPE_RUN_CODE;
      calls->n_explained += strcmp (call->guard, TD_EXPLAIN_VERIFIED) != 0;
      note_iteration (row, call->iteration);
      add_cost (row, call, &history);
    }
  calls->n_replayed = c->state.all_replays;
  calls->n_code = c->state.all_dynamic;
  calls->n_replays_timed = history.all_replays->len;
  calls->replay_ns = td__explain_replay_ns (&history, 0);
  td__explain_history_clear (&history);
  qsort (&g_array_index (rows, TdExplainRow, since), rows->len - since, sizeof (TdExplainRow),
         by_cost);
}

/* ---- breaks and differences ---- */

static void
add_step_break (GArray *rows, guint since, const TdStatics *all, guint function,
                const TdTapeStep *t, const char *guard, const char *title, const char *text,
                const char *advice)
{
  TdExplainRow *row
      = find_row (rows, since, all, TD_EXPLAIN_BREAK, function, guard, text, t->site);

  row->title = title;
  row->advice = advice;
  row->n++;
}

static void
add_event_row (GArray *rows, guint since, const TdStatics *all, guint function,
               const TdTapeStaticEvent *e, TdExplainSection section)
{
  const char *guard = td__explain_guard_of (all->reader, e);
  TdExplainRow *row = find_row (rows, since, all, section, function, guard,
                                td_tape_reader_string (all->reader, e->text), e->site);

  row->n++;
  note_iteration (row, (gint64)e->iteration);
  if (e->what == TD_TAPE_STATIC_CAPTURED)
    {
      row->title = "launched outside of CUDA graphs";
      row->advice = "What the host has to look at in every call is launched alone.";
    }
}

static void
add_breaks (GArray *rows, const TdStatics *all, guint function)
{
  const TdStaticsFunction *c = &all->functions[function];
  guint since = rows->len;

  for (guint i = 0; i < c->n_events; i++)
    if (c->events[i]->what == TD_TAPE_STATIC_REFUSED
        || c->events[i]->what == TD_TAPE_STATIC_CAPTURED)
      add_event_row (rows, since, all, function, c->events[i], TD_EXPLAIN_BREAK);
  for (guint i = 0; i < c->n_rows; i++)
    {
      const TdTapeStep *t = c->rows[i].tape;

      if (t->kind == TD_TAPE_STEP_HOST_READ)
        add_step_break (rows, since, all, function, t, "host read",
                        "numbers that the code reads", "a replay stops here and compares them",
                        "Keep td_item, td_read and branches on them outside of the function.");
      else if (t->kind == TD_TAPE_STEP_EFFECT)
        add_step_break (rows, since, all, function, t, "effect", "code that a replay runs too",
                        td_tape_reader_string (all->reader, t->text),
                        "It runs at every call, as it should; keep it short.");
    }
}

static void
add_differences (GArray *rows, const TdStatics *all, guint function)
{
  const TdStaticsFunction *c = &all->functions[function];
  guint since = rows->len;

  for (guint i = 0; i < c->n_events; i++)
    if (c->events[i]->what == TD_TAPE_STATIC_DIFFERS)
      add_event_row (rows, since, all, function, c->events[i], TD_EXPLAIN_DIFFERENCE);
}

/* ---- lines ---- */

static void
add_once (GArray *rows, const TdStatics *all, guint function)
{
  const TdRanOnce *once = all->functions[function].ran_once;

  for (guint i = 0; once && i < once->n; i++)
    {
      const TdRanOnceRow *found = &once->rows[i];
      TdExplainRow *row
          = td__explain_add (rows, all, TD_EXPLAIN_ONCE, function, 0, td_ran_once_text (found));

      g_free (row->file);
      row->file = g_strdup (found->file);
      row->line = found->line;
      row->guard = found->is_write ? "write" : "call";
      row->title = found->is_write ? "written while tracing only" : "ran while tracing only";
      row->advice = found->is_write
                        ? "td_static_code sets it at every call; td_static_watch guards it."
                        : "td_static_code runs it at every call.";
      row->n = 1;
      if (found->proved_in >= 0)
        note_iteration (row, found->proved_in);
    }
}

/* Guards without a line are those of the function: they stand where it was made. */
static TdExplainRow *
guard_row (GArray *rows, guint since, const TdStatics *all, guint function, guint32 site)
{
  const TdStaticsFunction *c = &all->functions[function];
  TdExplainRow *row = td__explain_add (rows, all, TD_EXPLAIN_GUARD, function,
                                       site ? site : c->function->site, NULL);

  for (guint i = since; i + 1 < rows->len; i++)
    {
      TdExplainRow *known = &g_array_index (rows, TdExplainRow, i);

      if (known->line != row->line || strcmp (known->file, row->file) != 0)
        continue;
      g_free (row->file);
      g_array_set_size (rows, rows->len - 1);
      return known;
    }
  return row;
}

static int
by_place (gconstpointer a, gconstpointer b)
{
  const TdExplainRow *x = a, *y = b;
  int files = strcmp (x->file, y->file);

  return files ? files : (x->line > y->line) - (x->line < y->line);
}

static void
add_guards (GArray *rows, const TdStatics *all, guint function)
{
  const TdStaticsFunction *c = &all->functions[function];
  guint since = rows->len;

  for (guint i = 0; c->tape && i < c->tape->n_guards; i++)
    {
      const TdTapeGuard *g = &c->tape->guards[i];
      const char *guard = td_tape_reader_string (all->reader, g->guard);
      const char *text = td_tape_reader_string (all->reader, g->text);
      TdExplainRow *row = guard_row (rows, since, all, function, g->site);
      char *all_texts
          = row->text ? g_strdup_printf ("%s; %s", row->text, text) : g_strdup (text);

      g_free (row->text);
      row->text = all_texts;
      row->title = row->n == 0 || strcmp (row->guard, guard) == 0 ? guard : "several";
      row->guard = row->n == 0 ? guard : row->title;
      row->n++;
    }
  for (guint i = 0; i < c->n_events; i++)
    if (c->events[i]->what == TD_TAPE_STATIC_MISSED && c->tape)
      {
        TdExplainRow *row = guard_row (rows, since, all, function, c->events[i]->site);

        row->n_misses++;
        if (!row->text) /* the guards of this schedule do not name the line */
          {
            row->guard = row->title = td__explain_guard_of (all->reader, c->events[i]);
            row->text = g_strdup (td_tape_reader_string (all->reader, c->events[i]->text));
          }
      }
  qsort (&g_array_index (rows, TdExplainRow, since), rows->len - since, sizeof (TdExplainRow),
         by_place);
}

/* ---- the whole ---- */

TdExplain *
td_explain_new (const TdStatics *statics, TdExplainRuns *runs)
{
  TdExplain *e = g_new0 (TdExplain, 1);
  g_autoptr (TdExplainRuns) own = runs ? NULL : td_explain_runs_new (statics->reader);
  GArray *rows = g_array_new (FALSE, TRUE, sizeof (TdExplainRow));

  e->statics = statics;
  e->calls = g_new0 (TdExplainCalls, MAX (statics->n_functions, 1));
  for (guint i = 0; i < statics->n_functions; i++)
    {
      add_reasons (e, rows, i, runs ? runs : own);
      add_breaks (rows, statics, i);
      add_differences (rows, statics, i);
      add_once (rows, statics, i);
      add_guards (rows, statics, i);
      td__explain_passes (rows, statics, i);
    }
  e->n_rows = rows->len;
  e->rows = (TdExplainRow *)(gpointer)g_array_free (rows, FALSE);
  return e;
}

static void
row_clear (gpointer data)
{
  TdExplainRow *row = data;

  g_free (row->text);
  g_free (row->file);
}

GArray *
td_explain_list_lines (const TdStatics *statics)
{
  GArray *rows = g_array_new (FALSE, TRUE, sizeof (TdExplainRow));

  for (guint i = 0; i < statics->n_functions; i++)
    {
      add_once (rows, statics, i);
      add_guards (rows, statics, i);
    }
  g_array_set_clear_func (rows, row_clear);
  return rows;
}

void
td_explain_free (TdExplain *e)
{
  if (!e)
    return;
  for (guint i = 0; i < e->n_rows; i++)
    row_clear (&e->rows[i]);
  g_free (e->rows);
  g_free (e->calls);
  g_free (e);
}

gboolean
td_explain_row_is_listed (const TdExplainRow *row, guint function, guint pass)
{
  return row->function == function && (row->section != TD_EXPLAIN_REMARK || row->pass == pass);
}

gint
td_explain_row_event (const TdExplain *e, const TdExplainRow *row)
{
  const TdStaticsFunction *c = &e->statics->functions[row->function];
  const TdTapeIteration *it = td_iteration_get_tape (e->statics->it);
  guint32 line;

  if (row->step != TD_PANEL_NO_STEP)
    return td_statics_row_event (c, row->step, -1);
  for (guint i = 0; row->line > 0 && i < it->n_events; i++)
    {
      const char *file = td_iteration_get_site (e->statics->it, it->events[i].site, &line);

      if (file && line == row->line && strcmp (file, row->file) == 0)
        return (gint)i;
    }
  return -1;
}

const char *
td_explain_section_title (TdExplainSection section)
{
  static const char *const titles[TD_EXPLAIN_N_SECTIONS]
      = { "Why its code ran",
          "Where the graph breaks",
          "Differences that verification found",
          "Ran only while tracing",
          "Guards by line",
          "Passes",
          "Passes" };

  return titles[MIN (section, TD_EXPLAIN_N_SECTIONS - 1)];
}
