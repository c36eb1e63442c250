/*
 * The calls of a static function one after the other, each with why it ran the code: events say
 * it, and runs say how long it took. Both are on the tape in the order in which they were; the
 * clock tells which event came before which run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-explain-private.h"

#include <string.h>

/* Iterations that are read: the first and the newest, and those in which something happened. */
#define FIRST_ONES 64
#define NEWEST_ONES 256
#define MOST_WITH_EVENTS 512

/* ---- runs of iterations ---- */

struct TdExplainRuns
{
  TdTapeReader *reader;
  GHashTable *by_iteration; /* GArray of TdExplainRun; an empty one: it is not there */
};

static void
runs_unref (gpointer runs)
{
  g_array_unref (runs);
}

TdExplainRuns *
td_explain_runs_new (TdTapeReader *reader)
{
  TdExplainRuns *runs = g_new (TdExplainRuns, 1);

  *runs = (TdExplainRuns){ reader, g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free,
                                                          runs_unref) };
  return runs;
}

void
td_explain_runs_free (TdExplainRuns *runs)
{
  if (!runs)
    return;
  g_hash_table_unref (runs->by_iteration);
  g_free (runs);
}

/* Runs begin in order: those that are not over when one begins are a stack. */
static void
leave_runs (GArray *open, const TdTapeIteration *it, const TdTapeRun *run)
{
  while (open->len > 0
         && it->runs[g_array_index (open, guint, open->len - 1)].end <= run->begin)
    g_array_set_size (open, open->len - 1);
}

/* Another function's code was running: it was called by that. */
static gboolean
is_nested (const GArray *open, const TdTapeIteration *it, const TdTapeRun *run)
{
  const TdTapeRun *outer
      = open->len > 0 ? &it->runs[g_array_index (open, guint, open->len - 1)] : NULL;

  return outer && outer->chain != run->chain && outer->end >= run->end && outer->ns >= run->ns;
}

static GArray *
read_runs (const TdTapeIteration *it)
{
  GArray *runs = g_array_new (FALSE, TRUE, sizeof (TdExplainRun));
  g_autoptr (GArray) open = g_array_new (FALSE, FALSE, sizeof (guint));

  for (guint k = 0; it && k < it->n_runs; k++)
    {
      const TdTapeRun *run = &it->runs[k];
      TdExplainRun one = { .chain = run->chain,
                           .schedule = run->schedule,
                           .kind = run->kind,
                           .discarded = (run->flags & TD_TAPE_RUN_DISCARDED) != 0,
                           .ns = run->ns,
                           .start_ns = it->start_ns + it->duration_ns };

      if (run->list != 0 || (run->flags & TD_TAPE_RUN_OPEN))
        continue;
      leave_runs (open, it, run);
      one.nested = is_nested (open, it, run);
      if (run->kind != TD_TAPE_RUN_REPLAYED)
        g_array_append_val (open, k);
      if (it->event_start_ns && run->begin < it->n_events)
        one.start_ns = it->start_ns + it->event_start_ns[run->begin];
      g_array_append_val (runs, one);
    }
  return runs;
}

const GArray *
td__explain_runs_get (TdExplainRuns *runs, gint64 iteration)
{
  GArray *known = g_hash_table_lookup (runs->by_iteration, &iteration);
  char error[160];

  if (known)
    return known;
  const TdTapeIteration *it
      = td_tape_iteration_load (runs->reader, (guint64)iteration, error, sizeof error);
  known = read_runs (it);
  /* one that goes on is read anew: its entry is replaced when it is asked for next */
  if (it && (it->flags & TD_TAPE_ITERATION_PARTIAL))
    {
      gint64 *old = g_new (gint64, 1);
      *old = -1;
      g_hash_table_insert (runs->by_iteration, old, known);
    }
  else
    g_hash_table_insert (runs->by_iteration, g_memdup2 (&iteration, sizeof iteration), known);
  td_tape_iteration_free (it);
  return known;
}

/* ---- a function's calls ---- */

typedef struct
{
  TdExplainHistory *history;
  TdTapeReader *reader;
  const TdStaticsFunction *c;
  guint next;                       /* event */
  const TdTapeStaticEvent *miss;    /* of the call that comes */
  const TdTapeStaticEvent *refusal; /* the function has no schedule since */
  const TdTapeStaticEvent *aside;   /* said before the call that comes, or an earlier one */
  gint last;                        /* call that events behind it are about; -1: none */
  gint traced;                      /* the last one that was traced; -1: none */
  gboolean by_events;               /* the iteration's runs are not on the tape */
  gboolean waits, doubts;           /* for a backward; after a difference */
} Walk;

static TdExplainCall *
call_at (Walk *w, gint i)
{
  return i < 0 ? NULL : &g_array_index (w->history->calls, TdExplainCall, i);
}

static TdExplainCall *
add_call (Walk *w, gint64 iteration, guint8 kind)
{
  TdExplainCall call = { .iteration = iteration, .kind = kind };

  g_array_append_val (w->history->calls, call);
  w->last = (gint)w->history->calls->len - 1;
  return call_at (w, w->last);
}

static void
blame (Walk *w, TdExplainCall *call, const TdTapeStaticEvent *e)
{
  call->guard = td__explain_guard_of (w->reader, e);
  call->text = td_tape_reader_string (w->reader, e->text);
  call->site = e->site;
}

static void
say (TdExplainCall *call, const char *guard, const char *text)
{
  call->guard = guard;
  call->text = text;
}

/* A guard that fails is said before the code runs; in a verified call, after it. */
static void
missed (Walk *w, const TdTapeStaticEvent *e)
{
  TdExplainCall *last = call_at (w, w->last);

  w->aside = NULL; /* a schedule was asked for */
  if (!w->by_events && last && last->kind == TD_TAPE_RUN_VERIFICATION && !last->guard)
    blame (w, last, e);
  else if (w->by_events)
    {
      blame (w, add_call (w, (gint64)e->iteration, TD_TAPE_RUN_CODE), e);
      w->miss = e; /* the trace that may follow is of this call */
    }
  else
    w->miss = e;
}

static void
traced (Walk *w, const TdTapeStaticEvent *e)
{
  TdExplainCall *last = call_at (w, w->last);

  w->waits = TRUE;
  w->refusal = NULL;
  if (!w->by_events)
    return;
  if (w->miss || (w->doubts && last))
    last->kind = TD_TAPE_RUN_TRACED;
  else
    say (add_call (w, (gint64)e->iteration, TD_TAPE_RUN_TRACED), TD_EXPLAIN_FIRST, "");
  w->miss = NULL;
  w->traced = w->last;
}

static void
refused (Walk *w, const TdTapeStaticEvent *e)
{
  TdExplainCall *last = w->by_events && !w->miss
                            ? add_call (w, (gint64)e->iteration, TD_TAPE_RUN_TRACED)
                            : call_at (w, w->last);

  w->refusal = e;
  w->miss = NULL;
  if (last && (!last->guard || strcmp (last->guard, TD_EXPLAIN_FIRST) == 0))
    blame (w, last, e);
}

static void
differs (Walk *w, const TdTapeStaticEvent *e)
{
  TdExplainCall *last = w->by_events ? add_call (w, (gint64)e->iteration, TD_TAPE_RUN_CODE)
                                     : call_at (w, w->last);

  w->doubts = TRUE;
  if (last && last->iteration == (gint64)e->iteration)
    blame (w, last, e);
}

static void
scheduled (Walk *w, const TdTapeStaticEvent *e)
{
  w->waits = w->doubts = FALSE;
  for (gint i = w->traced; i >= 0 && i < (gint)w->history->calls->len; i++)
    if (call_at (w, i)->schedule == 0)
      call_at (w, i)->schedule = e->schedule;
  w->traced = -1;
}

static void
happened (Walk *w, const TdTapeStaticEvent *e)
{
  switch (e->what)
    {
    case TD_TAPE_STATIC_MISSED:
      missed (w, e);
      break;
    case TD_TAPE_STATIC_TRACED:
      traced (w, e);
      break;
    case TD_TAPE_STATIC_REFUSED:
      refused (w, e);
      break;
    case TD_TAPE_STATIC_DIFFERS:
      differs (w, e);
      break;
    case TD_TAPE_STATIC_ASIDE:
      w->aside = e;
      break;
    case TD_TAPE_STATIC_SCHEDULED:
      scheduled (w, e);
      break;
    default:
      break;
    }
}

/* What happened up to a moment of the tape's clock in an iteration, or before it. */
static void
go_to (Walk *w, gint64 iteration, guint64 time_ns)
{
  for (; w->next < w->c->n_events; w->next++)
    {
      const TdTapeStaticEvent *e = w->c->events[w->next];

      if ((gint64)e->iteration > iteration
          || ((gint64)e->iteration == iteration && e->time_ns > time_ns))
        break;
      happened (w, e);
    }
}

static void
add_replay (TdExplainHistory *h, const TdExplainRun *run)
{
  GArray *of = g_hash_table_lookup (h->replays, GUINT_TO_POINTER (run->schedule));

  if (!of)
    {
      of = g_array_new (FALSE, FALSE, sizeof (guint64));
      g_hash_table_insert (h->replays, GUINT_TO_POINTER (run->schedule), of);
    }
  g_array_append_val (of, run->ns);
  g_array_append_val (h->all_replays, run->ns);
}

/* Why code ran that no event is about. */
static void
find_reason (Walk *w, TdExplainCall *call, const TdExplainRun *run)
{
  if (run->nested)
    say (call, TD_EXPLAIN_NESTED, "");
  else if (w->miss)
    blame (w, call, w->miss);
  else if (w->aside && call->kind == TD_TAPE_RUN_CODE)
    blame (w, call, w->aside);
  else if (w->doubts)
    say (call, TD_EXPLAIN_DOUBT, "");
  else if (call->kind == TD_TAPE_RUN_TRACED)
    say (call, TD_EXPLAIN_FIRST, "");
  else if (w->waits)
    say (call, TD_EXPLAIN_WAITS, "");
  else if (w->refusal)
    blame (w, call, w->refusal);
  else
    say (call, TD_EXPLAIN_ASIDE, "");
}

static void
add_run (Walk *w, gint64 iteration, const TdExplainRun *run)
{
  TdExplainCall *call = call_at (w, w->last);
  gboolean verifies
      = call && call->kind == TD_TAPE_RUN_VERIFICATION && call->iteration == iteration;

  if (run->kind != TD_TAPE_RUN_CODE)
    w->aside = NULL;
  if (run->kind == TD_TAPE_RUN_REPLAYED)
    {
      if (!run->discarded && !verifies)
        add_replay (w->history, run);
      w->last = verifies ? w->last : -1;
      w->doubts = FALSE;
      return;
    }
  call = add_call (w, iteration, run->kind);
  call->timed = TRUE;
  call->ns = run->ns;
  if (run->kind == TD_TAPE_RUN_VERIFICATION)
    {
      if (run->discarded) /* it agreed */
        say (call, TD_EXPLAIN_VERIFIED, "");
      return;
    }
  find_reason (w, call, run);
  if (run->kind == TD_TAPE_RUN_TRACED)
    w->traced = w->last;
  if (!run->nested)
    w->miss = NULL;
}

/* Which iterations are read. */
static gboolean
is_read (const TdStatics *all, gint64 iteration, gboolean has_events, guint *n_with_events)
{
  if (iteration < FIRST_ONES || iteration > all->iteration - NEWEST_ONES)
    return TRUE;
  return has_events && ++*n_with_events <= MOST_WITH_EVENTS;
}

static void
walk_iteration (Walk *w, const TdStatics *all, TdExplainRuns *runs, gint64 i,
                guint *n_with_events)
{
  gboolean has_events;
  const GArray *of;

  w->by_events = TRUE; /* iterations before, which are not listed */
  go_to (w, i - 1, G_MAXUINT64);
  has_events = w->next < w->c->n_events && (gint64)w->c->events[w->next]->iteration <= i;
  of = is_read (all, i, has_events, n_with_events) ? td__explain_runs_get (runs, i) : NULL;
  w->by_events = !of || of->len == 0;
  w->last = w->by_events ? w->last : -1;
  for (guint k = 0; of && k < of->len; k++)
    {
      const TdExplainRun *run = &g_array_index (of, TdExplainRun, k);

      if (run->chain != w->c->function->id)
        continue;
      go_to (w, i, run->start_ns);
      add_run (w, i, run);
    }
  go_to (w, i, G_MAXUINT64);
}

static int
by_size (gconstpointer a, gconstpointer b)
{
  guint64 x = *(const guint64 *)a, y = *(const guint64 *)b;
  return (x > y) - (x < y);
}

/* For their medians. */
static void
sort_replays (TdExplainHistory *h)
{
  GHashTableIter iter;
  gpointer of;

  g_array_sort (h->all_replays, by_size);
  g_hash_table_iter_init (&iter, h->replays);
  while (g_hash_table_iter_next (&iter, NULL, &of))
    g_array_sort (of, by_size);
}

void
td__explain_history_fill (TdExplainHistory *h, const TdStatics *all, guint function,
                          TdExplainRuns *runs)
{
  Walk w = { .history = h,
             .reader = all->reader,
             .c = &all->functions[function],
             .last = -1,
             .traced = -1 };
  const TdTapeSummaries rows = td_tape_reader_summaries (all->reader);
  guint n_with_events = 0;
  gint64 last = -1;

  h->calls = g_array_new (FALSE, TRUE, sizeof (TdExplainCall));
  h->replays = g_hash_table_new_full (NULL, NULL, NULL, runs_unref);
  h->all_replays = g_array_new (FALSE, FALSE, sizeof (guint64));
  for (guint k = 0; k < rows.n; k++)
    if ((gint64)rows.rows[k].number > last && (gint64)rows.rows[k].number <= all->iteration)
      walk_iteration (&w, all, runs, last = (gint64)rows.rows[k].number, &n_with_events);
  if (all->iteration > last) /* the one that runs */
    walk_iteration (&w, all, runs, all->iteration, &n_with_events);
  sort_replays (h);
}

void
td__explain_history_clear (TdExplainHistory *h)
{
  g_array_unref (h->calls);
  g_array_unref (h->all_replays);
  g_hash_table_unref (h->replays);
}

double
td__explain_replay_ns (const TdExplainHistory *h, guint schedule)
{
  const GArray *of
      = schedule ? g_hash_table_lookup (h->replays, GUINT_TO_POINTER (schedule)) : NULL;

  of = of ? of : h->all_replays;
  if (of->len == 0)
    return 0;
  return ((double)g_array_index (of, guint64, (of->len - 1) / 2)
          + (double)g_array_index (of, guint64, of->len / 2))
         / 2;
}
