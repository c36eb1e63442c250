/* Control of a program that writes its tape by this library: td_producer_gate, where it waits.
 * SPDX-License-Identifier: MIT */
#include "producer-private.h"
#include "../agent/control.h"
#include "../agent/graph-watch.h"
#include "../ring.h"
#include "dtype.h"
#include "json-line.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct ProducerLive ProducerLive;
struct ProducerLive
{
  TdControl control; /* first */
  TdProducer *p;
  TdRing *ring; /* only its first page is used */
  TdProducerCalls calls;
  TdProducerMoment moment;
  TdControlPlace place; /* of the moment */
  bool stands;
  TdGraphWatch graphs;
  bool in_iteration; /* an event of it was looked at */
  int64_t iteration, ended;
  uint64_t live_bytes, live_at_end; /* at the last event; at the end of iteration `ended` */
  char reason[600];
};

/* ------------------------------------------------------------------------- commands */

static void
refuse_command (TdControl *c, const char *tag, const char *rest)
{
  (void)rest;
  td__control_answer_error (c, tag, "this is for programs of the engine");
}

/* Its bytes, if they are as many as its dimensions say. */
static bool
is_whole (const TdProducerArray *a)
{
  uint64_t n = 1;

  if (a->dtype >= TD__N_DTYPES || a->ndim > TD_TAPE_MAX_NDIM)
    return false;
  for (uint32_t d = 0; d < a->ndim; d++)
    if (a->dims[d] < 0 || __builtin_mul_overflow (n, (uint64_t)a->dims[d], &n))
      return false;
  return !__builtin_mul_overflow (n, (uint64_t)td__dtype_sizes[a->dtype], &n) && n == a->bytes
         && (n == 0 || a->data != NULL);
}

static bool
read_variable (ProducerLive *l, uint64_t id, TdProducerArray *array)
{
  const ProducerVar *v;

  if (!l->stands)
    l->calls.flush (l->calls.user);
  v = td__producer_var (l->p, id);
  *array = (TdProducerArray){ .size = sizeof *array };
  if (v == NULL || v->dtype >= TD__N_DTYPES)
    return false;
  array->dtype = v->dtype;
  array->ndim = v->ndim;
  memcpy (array->dims, v->dims, v->ndim * sizeof *v->dims);
  return l->calls.read (l->calls.user, id, array) != 0 && is_whole (array);
}

static void
command_read (TdControl *c, const char *tag, const char *rest)
{
  ProducerLive *l = (ProducerLive *)c;
  char error[80];
  uint64_t id, most;
  TdProducerArray array;

  if (!td__control_parse_read (rest, &id, &most))
    {
      td__control_answer_error (c, tag, TD_CONTROL_WRONG_READ);
      return;
    }
  if (read_variable (l, id, &array))
    {
      const size_t bytes = td__control_part (array.bytes, most);

      td__control_answer_array (c->fd, tag,
                                &(TdControlArray){ .id = id,
                                                   .dtype = td__dtype_short_names[array.dtype],
                                                   .ndim = array.ndim,
                                                   .dims = array.dims,
                                                   .bytes = bytes,
                                                   .total = array.bytes,
                                                   .version = array.version },
                                td__control_copy (array.data, bytes));
      return;
    }
  snprintf (error, sizeof error, "array %" PRIu64 " is no longer there", id);
  td__control_answer_error (c, tag, error);
}

/* The tape ends here, as that of a program which tapedeck has ended. */
static void
end_tape (ProducerLive *l)
{
  const TdAssembler *a = l->p->a;
  const TdRingNow *last = &l->ring->shared->now;

  td__producer_end (l->p, (TdTapeEnd){ .status = -1,
                                       .signal = SIGKILL,
                                       .by = 1,
                                       .last_op = td__alias (&a->opdefs, last->opdef).id,
                                       .last_site = td__alias (&a->sites, last->site).id,
                                       .last_path = td__alias (&a->paths, last->path).id,
                                       .last_phase = last->phase,
                                       .last_event = last->event,
                                       .iteration = last->iteration });
}

/* The supervisor alone says so: nobody waits for a program that has stopped. */
static void
command_end (TdControl *c, const char *tag, const char *rest)
{
  ProducerLive *l = (ProducerLive *)c;

  (void)rest;
  if (strcmp (tag, "#0") != 0)
    {
      td__control_answer_error (c, tag, "no such command");
      return;
    }
  if (td__producer_ready (l->p) == TD_PRODUCER_OK)
    end_tape (l);
  kill (getpid (), SIGKILL);
}

static const TdControlCommand commands[] = {
  { "read ", command_read },    { "end", command_end },       { "level", refuse_command },
  { "static", refuse_command }, { "inside", refuse_command }, { NULL, NULL },
};

static void
now (TdControl *c, TdControlPlace *place, int64_t *iteration)
{
  const ProducerLive *l = (const ProducerLive *)c;

  *place = l->place;
  *iteration = (int64_t)l->moment.iteration;
}

/* The program tests one word: what is wanted of it stands there. */
static void
changed (TdControl *c)
{
  _Atomic uint32_t *word = &c->page->attention;
  const uint32_t all = TD_ATTENTION_EVENTS | TD_ATTENTION_VALUES;
  const uint32_t wanted = (c->alert ? (uint32_t)TD_ATTENTION_EVENTS : 0u)
                          | (c->needs_values ? (uint32_t)TD_ATTENTION_VALUES : 0u);

  atomic_fetch_and (word, ~all | wanted);
  atomic_fetch_or (word, wanted);
}

static bool
refuses (const TdBreak *b, char *error, size_t size)
{
  const char *word = td__break_of_engine (b);

  if (word != NULL)
    snprintf (error, size, "breakpoint: %s is for programs of the engine", word);
  return word != NULL;
}

static const TdControlKind kind
    = { .commands = commands, .now = now, .changed = changed, .refuses = refuses };

/* ---------------------------------------------------------------------------- stops */

static void
feed_stopped (TdProducer *p, unsigned type, const char *reason, uint32_t place)
{
  const uint32_t text = reason != NULL ? td__producer_text_n (p, reason, strlen (reason)) : 0;
  TdRawStopped *raw = td__producer_record (p, type, 0, sizeof *raw);

  if (raw == NULL)
    return;
  raw->reason = text;
  raw->site = place;
  td__producer_feed (p, raw);
  td_assembler_show_live_at (p->a, td__producer_ticks (0));
  td_tape_writer_flush (p->w);
}

static void
resume (ProducerLive *l)
{
  l->stands = false;
  if (td__producer_ready (l->p) == TD_PRODUCER_OK)
    feed_stopped (l->p, TD_RAW_RESUMED, NULL, 0);
  td__control_resumes (&l->control);
}

/* Stand here until somebody says go. */
static TdProducerStatus
stand (ProducerLive *l)
{
  if (td__control_wait (&l->control, true) == TD_CONTROL_INTERRUPTED)
    return TD_PRODUCER_INTERRUPTED;
  resume (l);
  return TD_PRODUCER_OK;
}

/* Who looks at the tape sees everything up to here. */
static TdProducerStatus
stop (ProducerLive *l, TdBreak *by, const char *what)
{
  if (by != NULL)
    {
      td__break_hit (by);
      snprintf (l->reason, sizeof l->reason, "%.300s (breakpoint %d: %s)", what,
                td__break_id (by), td__break_text (by));
    }
  else
    snprintf (l->reason, sizeof l->reason, "%s", what);
  l->stands = true;
  l->calls.flush (l->calls.user);
  if (td__producer_ready (l->p) == TD_PRODUCER_OK)
    feed_stopped (l->p, TD_RAW_STOPPED, l->reason, l->moment.place);
  td__control_stops (&l->control, &(TdControlStop){ .reason = l->reason,
                                                    .place = &l->place,
                                                    .iteration = (int64_t)l->moment.iteration,
                                                    .at = l->moment.n_events,
                                                    .by = by });
  return stand (l);
}

/* ---------------------------------------------------------------------------- gates */

static TdBreakMoment
break_moment (const ProducerLive *l)
{
  return (TdBreakMoment){ .place = &l->place,
                          .iteration = (int64_t)l->moment.iteration,
                          .live_bytes = l->moment.live_bytes };
}

/* Nobody says that an iteration ends: the first event of another one shows it. */
static TdBreak *
iteration_ended (ProducerLive *l, char *what, size_t size)
{
  TdBreakMoment m = break_moment (l);
  TdBreak *b;
  const bool known = l->ended >= 0 && l->ended + 1 == l->iteration;

  m.when = TD_BREAK_AT_END;
  m.iteration = l->iteration;
  m.live_bytes = l->live_bytes;
  m.changed = td__graph_watch_end (&l->graphs, what, size);
  m.grows_known = known;
  m.grown_bytes = (int64_t)(l->live_bytes - l->live_at_end);
  l->ended = l->iteration;
  l->live_at_end = l->live_bytes;
  b = td__control_holds (&l->control, &m, false);
  if (b != NULL && !(m.changed && td__break_compares_graphs (b)))
    td__control_describe_growth (&m, what, size);
  return b;
}

/* The breakpoint at the end of the iteration before, or NULL. */
static TdBreak *
watch (ProducerLive *l, char *what, size_t size)
{
  const TdProducerMoment *m = &l->moment;
  const int64_t number = (int64_t)m->iteration;
  const bool begins = !l->in_iteration || l->iteration != number;
  TdBreak *b = NULL;
  uint64_t hash = m->kind;

  if (begins && l->in_iteration)
    b = iteration_ended (l, what, size);
  if (begins && m->n_events == 0)
    td__graph_watch_begin (&l->graphs, number);
  hash = td__graph_watch_mix (hash, m->layer);
  hash = td__graph_watch_mix (hash, m->phase);
  td__graph_watch_add (&l->graphs, (TdWatchedOp){ .hash = hash,
                                                  .op = l->place.op,
                                                  .file = l->place.file,
                                                  .line = l->place.line });
  l->in_iteration = true;
  l->iteration = number;
  l->live_bytes = m->live_bytes;
  return b;
}

static TdProducerStatus
gate_before (ProducerLive *l)
{
  const TdBreakMoment m = break_moment (l);
  char what[300];
  TdBreak *b
      = l->control.asked_at & 1u << TD_BREAK_AT_END ? watch (l, what, sizeof what) : NULL;

  if (b != NULL)
    return stop (l, b, what);
  b = td__control_holds (&l->control, &m, false);
  if (b == NULL && !td__control_step_ends (&l->control, &l->place, m.iteration))
    return TD_PRODUCER_OK;
  snprintf (what, sizeof what, "before %.280s", l->place.op);
  return stop (l, b, what);
}

static TdProducerStatus
gate_after (ProducerLive *l)
{
  TdBreakMoment m = break_moment (l);
  TdProducerArray array = { .size = sizeof array };
  TdBreak *b;
  char what[300];

  if (!td__control_may_hold (&l->control, &m))
    return TD_PRODUCER_OK;
  m.after = m.measured = true;
  for (uint32_t i = 0; l->calls.output (l->calls.user, i, &array) != 0; i++)
    {
      TdTapeStats s;

      if (array.dtype <= TD_TAPE_BF16 && is_whole (&array))
        {
          td_tape_measure (array.data, (uint8_t)array.dtype,
                           array.bytes / td__dtype_sizes[array.dtype], 0, &s);
          m.n_nan += s.n_nan;
          m.n_inf += s.n_pos_inf + s.n_neg_inf;
          m.norm = s.l2 > m.norm ? s.l2 : m.norm;
        }
      array = (TdProducerArray){ .size = sizeof array };
    }
  b = td__control_holds (&l->control, &m, true);
  if (b == NULL)
    return TD_PRODUCER_OK;
  td__control_describe (b, &m, l->place.op, what, sizeof what);
  return stop (l, b, what);
}

static TdProducerStatus
gate_failed (ProducerLive *l)
{
  TdBreakMoment m = break_moment (l);
  TdBreak *b;

  b = td__control_fails (&l->control, &m);
  return b != NULL ? stop (l, b, l->moment.error != NULL ? l->moment.error : "an error")
                   : TD_PRODUCER_OK;
}

static TdProducerStatus (*const gates[]) (ProducerLive *l) = {
  [TD_PRODUCER_BEFORE] = gate_before,
  [TD_PRODUCER_AFTER] = gate_after,
  [TD_PRODUCER_FAILED] = gate_failed,
};

/* The names behind the moment's numbers, for breakpoints and for whoever asks. */
static void
find_place (ProducerLive *l)
{
  const TdProducerMoment *m = &l->moment;
  const TdProducer *p = l->p;
  const uint32_t path = m->layer != 0 && m->layer <= p->layer_paths.n
                            ? ((const uint32_t *)p->layer_paths.items)[m->layer - 1]
                            : 0;
  uint32_t line;
  const char *op = td__assembler_op (p->a, m->kind);
  const char *file = td__assembler_place (p->a, m->place, &line);
  TdRingNow *now = &l->ring->shared->now;
  TdControlPage *page = l->control.page;

  l->place = (TdControlPlace){ .op = *op != '\0' ? op : "?",
                               .path = td__assembler_text (p->a, path),
                               .file = *file != '\0' ? file : NULL,
                               .line = (int)line,
                               .phase = m->phase };
  now->opdef = m->kind;
  now->site = m->place;
  now->path = m->layer;
  now->phase = m->phase;
  now->event = m->n_events;
  now->iteration = m->iteration;
  td_assembler_describe (p->a, now, page->op, sizeof page->op, page->where, sizeof page->where);
}

static const char *
wrong_in_moment (const TdProducer *p, const TdProducerMoment *m)
{
  if (m->when > TD_PRODUCER_FAILED)
    return "there is no such time";
  if (m->kind == 0 || m->kind > p->n_kinds || m->kind > p->a->op_names.n)
    return "there is no such kind";
  if (m->phase >= TD_TAPE_N_PHASES)
    return "there is no such phase";
  if (m->place > p->n_places || m->place > p->a->places.n)
    return "there is no such place";
  if (m->layer > p->n_layers)
    return "there is no such layer";
  return NULL;
}

TdProducerStatus
td_producer_gate (TdProducer *p, const TdProducerMoment *moment)
{
  ProducerLive *l = p != NULL ? p->live : NULL;
  TdProducerMoment m;
  const char *wrong;

  if (p == NULL)
    return TD_PRODUCER_WRONG;
  if (l == NULL)
    return TD_PRODUCER_OK;
  if (moment == NULL)
    {
      if (l->stands)
        resume (l);
      return TD_PRODUCER_OK;
    }
  wrong = td__producer_take (&m, sizeof m, moment, sizeof m);
  if (wrong == NULL)
    wrong = wrong_in_moment (p, &m);
  if (wrong != NULL)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "gate: %s", wrong);
  if (l->stands)
    return stand (l);
  l->moment = m;
  find_place (l);
  td__control_take (&l->control);
  return gates[m.when](l);
}

/* -------------------------------------------------------------------- beginning and end */

static ProducerLive *
live_new (TdProducer *p, const TdProducerCalls *calls)
{
  const int ring_fd = td__control_take_fd ("TAPEDECK_RING"),
            fd = td__control_take_fd ("TAPEDECK_CONTROL");
  char error[256] = "?";
  TdRing *ring = fd >= 0 && ring_fd >= 0 ? td_ring_claim (ring_fd, error, sizeof error) : NULL;
  ProducerLive *l = ring != NULL ? calloc (1, sizeof *l) : NULL;

  if (l != NULL)
    {
      l->p = p;
      l->ring = ring;
      l->calls = *calls;
      l->place = (TdControlPlace){ .op = "", .path = "" };
      l->ended = -1;
      td__control_begin (&l->control, &kind,
                         (TdControlPage *)(void *)((char *)ring->shared + TD_CONTROL_OFFSET),
                         fd, getenv ("TAPEDECK_BREAK"));
    }
  else if (ring != NULL || *error == '\0') /* else it is the program's own */
    {
      td_ring_free (ring);
      close (fd);
    }
  unsetenv ("TAPEDECK_BREAK");
  unsetenv ("TAPEDECK_RECORD");
  return l;
}

const volatile uint32_t *
td_producer_live (TdProducer *p, const TdProducerCalls *given)
{
  TdProducerCalls calls;
  const char *wrong;

  if (td__producer_ready (p) != TD_PRODUCER_OK)
    return NULL;
  wrong = td__producer_take (&calls, sizeof calls, given, sizeof calls);
  if (wrong == NULL && (calls.flush == NULL || calls.read == NULL || calls.output == NULL))
    wrong = "a call-back is missing";
  if (wrong == NULL && p->live != NULL)
    wrong = "it listens already";
  if (wrong != NULL)
    {
      td__producer_refuse (p, TD_PRODUCER_WRONG, "live: %s", wrong);
      return NULL;
    }
  p->live = live_new (p, &calls);
  return p->live != NULL ? (const volatile uint32_t *)(const volatile void *)&p->live->control
                               .page->attention
                         : NULL;
}

void
td__producer_live_end (TdProducer *p)
{
  ProducerLive *l = p->live;

  if (l == NULL)
    return;
  p->live = NULL;
  td__control_end (&l->control);
  td_ring_free (l->ring);
  td__graph_watch_clear (&l->graphs);
  free (l);
}
