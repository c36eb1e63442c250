/*
 * What the tape says of static functions, collected for one moment.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-statics-times.h"
#include "td-statics-rows.h"
#include "td-tape-writer.h"

/* ---- schedules ---- */

static guint64
output_bytes (const TdTapeSchedule *s, const TdTapeStep *t)
{
  guint64 bytes = 0;

  for (guint k = 0; k < t->n_out; k++)
    bytes += s->values[s->nodes[s->operands[t->first_out + k]].value].bytes;
  return bytes;
}

static void
fill_rows (const TdStatics *all, TdStaticsFunction *c)
{
  const TdTapeSchedule *s = c->tape;
  char site[512];

  c->n_rows = s->n_steps;
  c->rows = g_new0 (TdStaticsRow, MAX (s->n_steps, 1));
  for (guint i = 0; i < s->n_steps; i++)
    {
      const TdTapeStep *t = &s->steps[i];
      TdStaticsRow *row = &c->rows[i];

      td_tape_reader_site_text (all->reader, t->site, site, sizeof site);
      *row = (TdStaticsRow){ .step = i,
                             .tape = t,
                             .op = t->opdef  ? td_tape_reader_op_name (all->reader, t->opdef)
                                   : t->text ? td_tape_reader_string (all->reader, t->text)
                                             : td_tape_step_kind_name (t->kind),
                             .site = g_strdup (site),
                             .layer = td_tape_reader_path_text (all->reader, t->path),
                             .why = td_tape_reader_string (all->reader, t->why),
                             .bytes = output_bytes (s, t) };
      if (t->fate == TD_TAPE_FATE_RUNS
          && (t->kind == TD_TAPE_STEP_GROUP
              || (t->group == TD_TAPE_NO_GROUP && t->kind <= TD_TAPE_STEP_EFFECT)))
        c->n_calls++;
    }
  td__statics_fill_leaders (c);
}

/* The k-th replayed event of a run is the k-th call of its list. */
static void
rows_of_run (const TdStaticsFunction *c, const TdTapeIteration *it, const TdTapeRun *run,
             gint *row_of_event)
{
  guint e = run->begin;

  for (guint i = 0; i < c->n_rows && e < run->end; i++)
    {
      const TdTapeStep *t = c->rows[i].tape;

      if (t->list != run->list || t->fate != TD_TAPE_FATE_RUNS
          || (t->kind != TD_TAPE_STEP_GROUP
              && (t->kind != TD_TAPE_STEP_OP || t->group != TD_TAPE_NO_GROUP)))
        continue;
      while (e < run->end && !(it->events[e].flags & TD_TAPE_EVENT_REPLAYED))
        e++; /* gradients that are collected meanwhile */
      if (e < run->end)
        row_of_event[e++] = (gint)i;
    }
}

/* Without runs, as older tapes are, events follow the steps in order: the next step of the same
 * operation and place is theirs. */
gint *
td__statics_rows_of_events (const TdStaticsFunction *c, const TdTapeIteration *it)
{
  gint *row_of_event = g_new (gint, MAX (it->n_events, 1));
  guint at = 0;

  for (guint e = 0; e < it->n_events; e++)
    row_of_event[e] = -1;
  for (guint i = 0; i < it->n_runs; i++)
    if (it->runs[i].kind == TD_TAPE_RUN_REPLAYED && it->runs[i].chain == c->function->id
        && it->runs[i].schedule == c->schedule && !(it->runs[i].flags & TD_TAPE_RUN_DISCARDED))
      rows_of_run (c, it, &it->runs[i], row_of_event);
  if (it->n_runs > 0)
    return row_of_event;
  for (guint e = 0; e < it->n_events && c->n_rows > 0; e++)
    {
      const TdTapeEvent *event = &it->events[e];

      if (!(event->flags & TD_TAPE_EVENT_REPLAYED) || !it->event_duration_ns)
        continue;
      for (guint k = 0; k < c->n_rows; k++)
        {
          const TdStaticsRow *row = &c->rows[(at + k) % c->n_rows];

          if (row->tape->opdef != event->opdef || row->tape->site != event->site
              || row->tape->path != event->path || row->tape->fate != TD_TAPE_FATE_RUNS
              || (row->tape->list != 0) != (event->phase != TD_TAPE_PHASE_FORWARD))
            continue;
          row_of_event[e] = (gint)row->step;
          at = row->step + 1;
          break;
        }
    }
  return row_of_event;
}

static void
fill_times (TdStaticsFunction *c, const TdTapeIteration *it)
{
  c->n_row_events = it->n_events;
  c->row_of_event = td__statics_rows_of_events (c, it);
  for (guint e = 0; e < it->n_events && it->event_duration_ns; e++)
    {
      TdStaticsRow *row = c->row_of_event[e] >= 0 ? &c->rows[c->row_of_event[e]] : NULL;

      if (row == NULL || (it->events[e].flags & TD_TAPE_EVENT_CAPTURED)) /* not measured */
        continue;
      row->ns += it->event_duration_ns[e];
      row->n_runs++;
      if (td__statics_is_member (row->tape))
        c->rows[row->tape->group].ns += it->event_duration_ns[e];
    }
}

/* Where and when a value begins, as one number. */
static guint64
begins_at (guint64 offset, guint step)
{
  return td_tape_hash (offset, step);
}

static GHashTable *
beginnings (const TdTapeSchedule *s)
{
  GHashTable *set = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);

  for (guint i = 0; i < s->n_values; i++)
    {
      guint64 at = begins_at (s->values[i].offset, s->values[i].first);

      g_hash_table_add (set, g_memdup2 (&at, sizeof at));
    }
  return set;
}

/* The arena's values as bars.  The last step that uses one is the last it lives in, unless that
 * step's output takes its place. */
static TdGantt *
gantt_of (TdTapeReader *reader, const TdTapeSchedule *s)
{
  g_autoptr (GArray) bars = g_array_new (FALSE, TRUE, sizeof (TdGanttBar));
  g_autoptr (GHashTable) begin = beginnings (s);
  g_autofree guint *node_of = g_new (guint, MAX (s->n_values, 1));
  gint first_backward = -1;

  for (guint i = 0; i < s->n_values; i++)
    node_of[i] = s->n_nodes; /* a value that passes left without a node has no bar */
  for (guint i = s->n_nodes; i-- > 0;)
    if (s->nodes[i].value < s->n_values)
      node_of[s->nodes[i].value] = i;
  for (guint i = 0; i < s->n_steps && first_backward < 0; i++)
    if (s->steps[i].list > 0)
      first_backward = (gint)i;
  for (guint i = 0; i < s->n_values; i++)
    {
      const TdTapeValue *v = &s->values[i];

      if (node_of[i] == s->n_nodes)
        continue;
      const TdTapeNode *node = &s->nodes[node_of[i]];
      TdGanttBar bar = { .from = v->first,
                         .to = v->last + 1,
                         .offset = v->offset,
                         .bytes = v->bytes,
                         .event = (gint)v->first,
                         .category = MIN (node->category, TD_TAPE_N_CATEGORIES - 1),
                         .name = td_tape_reader_string (reader, node->name) };

      if (v->offset == TD_TAPE_NO_OFFSET || v->first == TD_TAPE_NO_GROUP)
        continue;
      guint64 end = begins_at (v->offset, v->last);

      if (v->last > v->first && g_hash_table_contains (begin, &end))
        bar.to--;
      if (bar.category == TD_TAPE_CATEGORY_OTHER && s->steps[v->first].list > 0)
        bar.category = TD_TAPE_CATEGORY_GRADIENT;
      if (!*bar.name && s->steps[v->first].opdef)
        bar.name = td_tape_reader_op_name (reader, s->steps[v->first].opdef);
      g_array_append_val (bars, bar);
    }
  return td_gantt_new_planned (s->n_steps, (const TdGanttBar *)(gpointer)bars->data, bars->len,
                               s->head.arena_bytes, first_backward);
}

/* ---- functions ---- */

static void
fill_events (TdStatics *all, TdStaticsFunction *c)
{
  TdTapeReader *r = all->reader;
  guint n = td_tape_reader_n_static_events (r);

  c->events = g_new0 (const TdTapeStaticEvent *, MAX (n, 1));
  for (guint i = 0; i < n; i++)
    {
      const TdTapeStaticEvent *e = td_tape_reader_static_event (r, i);

      if (e->chain == c->function->id && (gint64)e->iteration <= all->iteration)
        {
          c->events[c->n_events++] = e;
          if (e->what == TD_TAPE_STATIC_SCHEDULED && c->state.schedule == 0)
            c->schedule = e->schedule;
        }
    }
}

/* Where the function stands, if the iteration says it. */
static void
fill_state (TdStaticsFunction *c, const TdTapeIteration *it)
{
  for (guint k = 0; it && !c->known && k < it->n_statics; k++)
    if (it->statics[k].chain == c->function->id)
      {
        c->known = TRUE;
        c->state = it->statics[k];
        c->schedule = c->state.schedule;
      }
}

/* Everything that depends on which schedule is shown. */
static void
load_schedule (const TdStatics *all, TdStaticsFunction *c, const TdTapeIteration *it)
{
  char text[512];

  c->tape = td_tape_schedule_load (all->reader, c->schedule, text, sizeof text);
  if (!c->tape)
    {
      c->error = g_strdup (text);
      return;
    }
  fill_rows (all, c);
  fill_times (c, it);
  c->gantt = gantt_of (all->reader, c->tape);
  c->ran_once = td_ran_once_new (all->reader, c->tape);
  td_ran_once_prove (c->ran_once, all->reader, c->function->id, all->iteration);
}

static void
clear_schedule (TdStaticsFunction *c)
{
  for (guint k = 0; k < c->n_rows; k++)
    g_free (c->rows[k].site);
  g_clear_pointer (&c->rows, g_free);
  g_clear_pointer (&c->row_of_event, g_free);
  g_clear_pointer (&c->error, g_free);
  g_clear_pointer (&c->gantt, td_gantt_free);
  g_clear_pointer (&c->ran_once, td_ran_once_free);
  g_clear_pointer (&c->tape, td_tape_schedule_free);
  c->n_rows = c->n_calls = c->n_row_events = 0;
}

static void
fill_function (TdStatics *all, TdStaticsFunction *c, const TdTapeIteration *it,
               const TdTapeIteration *before)
{
  char text[512];

  c->name = td_tape_reader_string (all->reader, c->function->name);
  c->site
      = g_strdup (td_tape_reader_site_text (all->reader, c->function->site, text, sizeof text));
  fill_state (c, it);
  fill_state (c, before);
  fill_events (all, c);
  c->traced = td_traced_new (all->reader, it, c->function->id);
  if (c->schedule > 0)
    load_schedule (all, c, it);
}

static guint64
measured (const TdTapeIteration *it)
{
  guint64 now = it->start_bytes[TD_TAPE_CATEGORY_STATIC], most = now;

  for (guint i = 0; i < it->n_memory; i++)
    {
      const TdTapeMemory *m = &it->memory[i];

      if (m->category != TD_TAPE_CATEGORY_STATIC)
        continue;
      if (m->kind == TD_TAPE_MEMORY_ALLOC)
        now += m->bytes;
      else if (m->kind == TD_TAPE_MEMORY_FREE)
        now -= MIN (now, m->bytes);
      most = MAX (most, now);
    }
  return most;
}

TdStatics *
td_statics_new (TdTapeReader *reader, TdIteration *iteration)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration), *before = NULL;
  guint n = td_tape_reader_n_chains (reader);
  char error[200];
  TdStatics *all;

  if (n == 0)
    return NULL;
  all = g_new0 (TdStatics, 1);
  all->reader = reader;
  all->it = td_iteration_ref (iteration);
  all->iteration = (gint64)it->number;
  all->measured_bytes = measured (it);
  all->peak_bytes = it->peak_bytes;
  all->functions = g_new0 (TdStaticsFunction, n);
  /* an iteration that runs says where those functions stand that changed: others as before */
  if (it->number > 0 && (it->n_statics == 0 || (it->flags & TD_TAPE_ITERATION_PARTIAL)))
    before = td_tape_iteration_load (reader, it->number - 1, error, sizeof error);
  for (guint id = 1; id <= n; id++)
    {
      const TdTapeChain *function = td_tape_reader_chain (reader, id);

      if (function)
        all->functions[all->n_functions++].function = function;
    }
  for (guint i = 0; i < all->n_functions; i++)
    fill_function (all, &all->functions[i], it, before);
  td_tape_iteration_free (before);
  td__statics_fill_steps (all);
  return all;
}

void
td_statics_free (TdStatics *statics)
{
  if (!statics)
    return;
  for (guint i = 0; i < statics->n_functions; i++)
    {
      TdStaticsFunction *c = &statics->functions[i];

      clear_schedule (c);
      td_traced_free (c->traced);
      g_free (c->site);
      g_free (c->events);
    }
  g_free (statics->functions);
  g_free (statics->steps);
  td_iteration_unref (statics->it);
  g_free (statics);
}

/* ---- choosing ---- */

GArray *
td_statics_list_schedules (const TdStaticsFunction *c)
{
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (guint));

  for (guint i = 0; i < c->n_events; i++)
    {
      guint id = c->events[i]->what == TD_TAPE_STATIC_SCHEDULED ? c->events[i]->schedule : 0;
      gboolean seen = id == 0;

      for (guint k = 0; k < ids->len; k++)
        seen = seen || g_array_index (ids, guint, k) == id;
      if (!seen)
        g_array_append_val (ids, id);
    }
  return ids;
}

gboolean
td_statics_choose (TdStatics *all, guint function, guint schedule)
{
  TdStaticsFunction *c = function < all->n_functions ? &all->functions[function] : NULL;
  g_autoptr (GArray) ids = c ? td_statics_list_schedules (c) : NULL;

  for (guint i = 0; ids && i < ids->len; i++)
    if (g_array_index (ids, guint, i) == schedule)
      {
        if (c->schedule == schedule && c->tape)
          return TRUE;
        clear_schedule (c);
        c->schedule = schedule;
        load_schedule (all, c, td_iteration_get_tape (all->it));
        td__statics_fill_steps (all);
        return TRUE;
      }
  return FALSE;
}

gint
td_statics_find_function (const TdStatics *all, const char *text)
{
  guint64 number = 0;

  for (guint i = 0; i < all->n_functions; i++)
    if (g_str_equal (all->functions[i].name, text))
      return (gint)i;
  return g_ascii_string_to_unsigned (text, 10, 1, MAX (all->n_functions, 1), &number, NULL)
                 && number <= all->n_functions
             ? (gint)number - 1
             : -1;
}

guint
td_statics_busiest (const TdStatics *all)
{
  guint best = 0;

  for (guint i = 1; i < all->n_functions; i++)
    if (all->functions[i].state.n_replays > all->functions[best].state.n_replays)
      best = i;
  return best;
}

char *
td_statics_key_of (TdTapeReader *reader, guint schedule)
{
  char error[200];
  const TdTapeSchedule *s = td_tape_schedule_load (reader, schedule, error, sizeof error);
  char *text
      = s ? g_utf8_make_valid (td_tape_reader_string (reader, s->head.key), -1) : g_strdup ("");

  td_tape_schedule_free (s);
  return text;
}

char *
td_statics_headline (const TdStaticsFunction *c)
{
  GString *out = g_string_new (NULL);

  if (!c->known && c->traced->n > 0)
    {
      g_string_free (out, TRUE);
      return td_traced_headline (c->traced);
    }
  if (!c->known)
    return g_string_free (g_string_append (out, "not called yet"), FALSE);
  g_string_append_printf (
      out, "%s, %" G_GUINT64_FORMAT " %s replayed, %" G_GUINT64_FORMAT " by code",
      td_tape_chain_state_name (c->state.state), c->state.all_replays,
      td_plural (c->state.all_replays, "call", "calls"), c->state.all_dynamic);
  if (c->state.verified_at > 0)
    g_string_append_printf (out, ", verified in iteration %" G_GUINT64_FORMAT,
                            c->state.verified_at - 1);
  if (c->state.unverified_since > 0)
    g_string_append_printf (out, ", unverified since iteration %" G_GUINT64_FORMAT,
                            c->state.unverified_since - 1);
  return g_string_free (out, FALSE);
}

char *
td_statics_event_text (TdTapeReader *reader, const TdTapeStaticEvent *e)
{
  GString *out = g_string_new (td_tape_static_event_name (e->what));
  char site[512];

  if (e->guard)
    g_string_append_printf (out, " %s", td_tape_reader_string (reader, e->guard));
  if (e->text)
    g_string_append_printf (out, ": %s", td_tape_reader_string (reader, e->text));
  if (e->schedule && e->what != TD_TAPE_STATIC_MISSED)
    g_string_append_printf (out, " (schedule %u)", e->schedule);
  if (e->site)
    g_string_append_printf (out, " at %s",
                            td_tape_reader_site_text (reader, e->site, site, sizeof site));
  if (e->other_site)
    g_string_append_printf (
        out, " and %s", td_tape_reader_site_text (reader, e->other_site, site, sizeof site));
  return g_string_free (out, FALSE);
}
