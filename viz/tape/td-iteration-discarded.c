/* An iteration without what verified calls have discarded: the code that a schedule was
 * compared with, or the schedule if it differed. The tape has both; views show the program as
 * if each call had run once.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-iteration-private.h"

#include <string.h>

/* New indices of what stays; NONE: left out. */
typedef struct
{
  const TdTapeIteration *from;
  guint32 *event; /* n_events + 1 entries; of what is left out: that of the next which stays */
  guint8 *event_gone;
  guint32 *var, *span;
} Map;

typedef struct
{
  TdTapeIteration it; /* first member: freed by its address */
  const TdTapeIteration *from;
  void (*free_from) (const TdTapeIteration *);
  GPtrArray *arrays;
} Without;

static void
without_free (const TdTapeIteration *it)
{
  Without *w = (Without *)(uintptr_t)it;

  g_ptr_array_unref (w->arrays);
  if (w->free_from)
    w->free_from (w->from);
  g_free (w);
}

/* Room for n items, freed with the iteration. */
static gpointer
room (Without *w, guint n, gsize size)
{
  gpointer items = g_malloc0_n (MAX (n, 1), size);

  g_ptr_array_add (w->arrays, items);
  return items;
}

/* ---- what is left out ---- */

static void
map_events (Map *m)
{
  const TdTapeIteration *it = m->from;
  guint32 n = 0;

  m->event = g_new (guint32, it->n_events + 1);
  m->event_gone = g_new0 (guint8, it->n_events + 1);
  for (guint i = 0; i < it->n_runs; i++)
    if (it->runs[i].flags & TD_TAPE_RUN_DISCARDED)
      memset (m->event_gone + it->runs[i].begin, 1, it->runs[i].end - it->runs[i].begin);
  for (guint i = 0; i <= it->n_events; i++)
    {
      m->event[i] = n;
      n += i < it->n_events && !m->event_gone[i];
    }
}

enum
{
  USED_BY_WHAT_STAYS = 1,
  USED_BY_WHAT_GOES = 2
};

/* Leave out variables that only discarded events have made and read. */
static void
map_vars (Map *m)
{
  const TdTapeIteration *it = m->from;
  g_autofree guint8 *used = g_new0 (guint8, it->n_vars + 1);
  guint32 n = 0;

  for (guint e = 0; e < it->n_events; e++)
    {
      const TdTapeEvent *event = &it->events[e];
      guint8 by = m->event_gone[e] ? USED_BY_WHAT_GOES : USED_BY_WHAT_STAYS;

      for (guint k = 0; k < event->n_in; k++)
        used[it->ins[event->first_in + k]] |= by;
      for (guint k = 0; k < event->n_out; k++)
        used[it->outs[event->first_out + k]] |= by;
    }
  for (guint i = 0; i < it->n_grads; i++)
    {
      used[it->grads[i].parameter] |= USED_BY_WHAT_STAYS;
      if (it->grads[i].gradient != TD_TAPE_NONE)
        used[it->grads[i].gradient] |= USED_BY_WHAT_STAYS;
    }
  m->var = g_new (guint32, it->n_vars + 1);
  for (guint v = 0; v < it->n_vars; v++)
    m->var[v] = used[v] == USED_BY_WHAT_GOES ? TD_TAPE_NONE : n++;
}

/* Leave out spans that contain only discarded events. */
static void
map_spans (Map *m)
{
  const TdTapeIteration *it = m->from;
  guint32 n = 0;

  m->span = g_new (guint32, it->n_spans + 1);
  for (guint s = 0; s < it->n_spans; s++)
    {
      const TdTapeSpan *span = &it->spans[s];
      gboolean empty = m->event[span->begin] == m->event[span->end];

      m->span[s] = empty && span->begin < span->end ? TD_TAPE_NONE : n++;
    }
}

/* ---- what stays ---- */

static guint32
event_at (const Map *m, guint32 event)
{
  return event <= m->from->n_events ? m->event[event] : event;
}

static guint32
span_at (const Map *m, guint32 span)
{
  while (span != TD_TAPE_NONE && m->span[span] == TD_TAPE_NONE)
    span = m->from->spans[span].parent;
  return span != TD_TAPE_NONE ? m->span[span] : span;
}

static void
take_events (Without *w, const Map *m)
{
  const TdTapeIteration *it = m->from;
  TdTapeEvent *events = room (w, it->n_events, sizeof *events);
  guint64 *start = room (w, it->n_events, sizeof *start),
          *duration = room (w, it->n_events, sizeof *duration);
  guint32 *ins = room (w, it->n_ins, sizeof *ins), *outs = room (w, it->n_outs, sizeof *outs);
  guint n = 0, n_ins = 0, n_outs = 0;

  for (guint e = 0; e < it->n_events; e++)
    {
      TdTapeEvent *event = &events[n];

      if (m->event_gone[e])
        continue;
      *event = it->events[e];
      start[n] = it->event_start_ns ? it->event_start_ns[e] : 0;
      duration[n] = it->event_duration_ns ? it->event_duration_ns[e] : 0;
      for (guint k = 0; k < event->n_in; k++)
        ins[n_ins + k] = m->var[it->ins[event->first_in + k]];
      for (guint k = 0; k < event->n_out; k++)
        outs[n_outs + k] = m->var[it->outs[event->first_out + k]];
      event->first_in = n_ins;
      event->first_out = n_outs;
      n_ins += event->n_in;
      n_outs += event->n_out;
      event->span = span_at (m, event->span);
      if (event->twin >= 0)
        event->twin = m->event_gone[event->twin] ? -1 : (gint32)m->event[event->twin];
      n++;
    }
  w->it.events = events;
  w->it.n_events = n;
  w->it.event_start_ns = it->event_start_ns ? start : NULL;
  w->it.event_duration_ns = it->event_duration_ns ? duration : NULL;
  w->it.ins = ins;
  w->it.n_ins = n_ins;
  w->it.outs = outs;
  w->it.n_outs = n_outs;
}

static void
take_vars (Without *w, const Map *m)
{
  const TdTapeIteration *it = m->from;
  TdTapeVar *vars = room (w, it->n_vars, sizeof *vars);

  w->it.n_vars = 0;
  for (guint v = 0; v < it->n_vars; v++)
    if (m->var[v] != TD_TAPE_NONE)
      {
        TdTapeVar *var = &vars[w->it.n_vars++];

        *var = it->vars[v];
        if (var->producer >= 0)
          var->producer = m->event_gone[var->producer] ? -1 : (gint32)m->event[var->producer];
      }
  w->it.vars = vars;
}

static void
take_spans (Without *w, const Map *m)
{
  const TdTapeIteration *it = m->from;
  TdTapeSpan *spans = room (w, it->n_spans, sizeof *spans);

  w->it.n_spans = 0;
  for (guint s = 0; s < it->n_spans; s++)
    if (m->span[s] != TD_TAPE_NONE)
      {
        TdTapeSpan *span = &spans[w->it.n_spans++];

        *span = it->spans[s];
        span->begin = m->event[span->begin];
        span->end = m->event[span->end];
        span->parent = span_at (m, span->parent);
      }
  w->it.spans = spans;
}

/* Copy an array of records without those about discarded events or variables. */
#define TAKE(field, n_field, Type, gone, ...)                                                  \
  do                                                                                           \
    {                                                                                          \
      Type *to = room (w, it->n_field, sizeof *to);                                            \
                                                                                               \
      w->it.n_field = 0;                                                                       \
      for (guint i = 0; i < it->n_field; i++)                                                  \
        {                                                                                      \
          Type r = it->field[i];                                                               \
                                                                                               \
          if (gone)                                                                            \
            continue;                                                                          \
          __VA_ARGS__;                                                                         \
          to[w->it.n_field++] = r;                                                             \
        }                                                                                      \
      w->it.field = to;                                                                        \
    }                                                                                          \
  while (0)
#define EVENT_GONE (r.event < it->n_events && m->event_gone[r.event])
#define VAR_GONE (r.var < it->n_vars && m->var[r.var] == TD_TAPE_NONE)
#define MOVE_EVENT r.event = event_at (m, r.event)
#define MOVE_VAR r.var = r.var < it->n_vars ? m->var[r.var] : r.var

/* What the discarded code has read first is counted with it, and is what the replay reads. */
static gboolean
is_read_only (const Map *m, guint32 var, guint32 event)
{
  const TdTapeIteration *it = m->from;
  const TdTapeEvent *e = &it->events[event];

  for (guint k = 0; k < e->n_out; k++)
    if (it->outs[e->first_out + k] == var)
      return FALSE;
  return e->phase == TD_TAPE_PHASE_FORWARD
         && (it->vars[var].producer < 0 || !m->event_gone[it->vars[var].producer]);
}

/* The last event that stays and is not after this one. */
static guint32
last_event_at (const Map *m, guint32 event)
{
  if (event >= m->from->n_events || !m->event_gone[event])
    return event_at (m, event);
  return m->event[event] > 0 ? m->event[event] - 1 : TD_TAPE_NONE;
}

#define NUMBERS_GONE                                                                           \
  (VAR_GONE || (EVENT_GONE && !(r.var < it->n_vars && is_read_only (m, r.var, r.event))))
#define MOVE_LAST_EVENT r.event = last_event_at (m, r.event)

static void
take_records (Without *w, const Map *m)
{
  const TdTapeIteration *it = m->from;

  TAKE (host_reads, n_host_reads, TdTapeHostRead, VAR_GONE, MOVE_EVENT, MOVE_VAR);
  TAKE (copies, n_copies, TdTapeCopy, VAR_GONE || (r.why == TD_TAPE_COPY_OP && EVENT_GONE),
        MOVE_EVENT, MOVE_VAR);
  TAKE (stats, n_stats, TdTapeStats, NUMBERS_GONE, MOVE_LAST_EVENT, MOVE_VAR);
  TAKE (tensors, n_tensors, TdTapeTensorRef, NUMBERS_GONE, MOVE_LAST_EVENT, MOVE_VAR);
  TAKE (faults, n_faults, TdTapeFault, EVENT_GONE, MOVE_EVENT,
        r.found_event = event_at (m, r.found_event));
  TAKE (notices, n_notices, TdTapeNotice, FALSE, MOVE_EVENT);
  TAKE (reports, n_reports, TdTapeReport, FALSE, MOVE_EVENT);
  TAKE (grads, n_grads, TdTapeGrad, FALSE, MOVE_EVENT, r.parameter = m->var[r.parameter],
        r.gradient = r.gradient != TD_TAPE_NONE ? m->var[r.gradient] : r.gradient);
  TAKE (runs, n_runs, TdTapeRun, (r.flags & TD_TAPE_RUN_DISCARDED) != 0,
        r.begin = m->event[r.begin], r.end = m->event[r.end]);
  TAKE (traced, n_traced, TdTapeTraced, FALSE, MOVE_EVENT);
  TAKE (device_times, n_device_times, TdTapeDeviceTime, EVENT_GONE, MOVE_EVENT);
  TAKE (collectives, n_collectives, TdTapeCollective, FALSE, MOVE_EVENT);
  TAKE (rank_sums, n_rank_sums, TdTapeRankSum, FALSE, MOVE_EVENT);
  TAKE (attr_changes, n_attr_changes, TdTapeAttrs, EVENT_GONE, MOVE_EVENT);
  w->it.stop.event = event_at (m, it->stop.event);
}

/* ---- memory ---- */

/* Whether an allocation was made for something discarded: by its variable, or else by where it
 * stands. */
static gboolean
is_discarded (const Map *m, const TdTapeMemory *r)
{
  const TdTapeIteration *it = m->from;

  if (r->var < it->n_vars)
    return m->var[r->var] == TD_TAPE_NONE;
  return r->event < it->n_events && m->event_gone[r->event] && r->event > 0
         && m->event_gone[r->event - 1];
}

static void
take_memory (Without *w, const Map *m)
{
  const TdTapeIteration *it = m->from;
  g_autoptr (GHashTable) discarded = g_hash_table_new (g_int64_hash, g_int64_equal);
  TdTapeMemory *memory = room (w, it->n_memory, sizeof *memory);
  guint64 now = 0;

  for (guint c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    now += it->start_bytes[c];
  w->it.peak_bytes = now;
  w->it.n_memory = 0;
  for (guint i = 0; i < it->n_memory; i++)
    {
      const TdTapeMemory *r = &it->memory[i];
      gboolean freed = r->kind == TD_TAPE_MEMORY_FREE, gone = is_discarded (m, r);

      if (r->kind == TD_TAPE_MEMORY_ALLOC && gone)
        g_hash_table_add (discarded, (gpointer)&r->buffer);
      if (freed)
        gone = g_hash_table_contains (discarded, &r->buffer);
      if (gone)
        continue;
      if (r->kind == TD_TAPE_MEMORY_ALLOC)
        now += r->bytes;
      else if (freed)
        now -= MIN (now, r->bytes);
      w->it.peak_bytes = MAX (w->it.peak_bytes, now);
      memory[w->it.n_memory] = *r;
      memory[w->it.n_memory].event = event_at (m, r->event);
      if (r->var < it->n_vars)
        memory[w->it.n_memory].var = m->var[r->var];
      w->it.n_memory++;
    }
  w->it.memory = memory;
  w->it.end_bytes = now;
  w->it.addresses = NULL; /* applied already */
  w->it.n_addresses = 0;
}

static gboolean
has_discarded (const TdTapeIteration *it)
{
  for (guint i = 0; i < it->n_runs; i++)
    if (it->runs[i].flags & TD_TAPE_RUN_DISCARDED)
      return TRUE;
  return FALSE;
}

const TdTapeIteration *
td__iteration_without_discarded (const TdTapeIteration *it,
                                 void (**free_it) (const TdTapeIteration *))
{
  Map m = { .from = it };
  Without *w;

  if (!has_discarded (it))
    return it;
  w = g_new0 (Without, 1);
  w->it = *it;
  w->from = it;
  w->free_from = *free_it;
  w->arrays = g_ptr_array_new_with_free_func (g_free);
  map_events (&m);
  map_vars (&m);
  map_spans (&m);
  take_events (w, &m);
  take_vars (w, &m);
  take_spans (w, &m);
  take_records (w, &m);
  take_memory (w, &m);
  g_free (m.event);
  g_free (m.event_gone);
  g_free (m.var);
  g_free (m.span);
  *free_it = without_free;
  return &w->it;
}
