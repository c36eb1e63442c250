/* The assembler: raw records in, iterations out.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define LIVE_AFTER_NS 100000000u

typedef void (*Feed) (TdAssembler *a, const TdRawHead *head);

static uint64_t
clock_now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t
td__assembler_ns (const TdAssembler *a, uint64_t ticks)
{
  return ticks > a->ticks0 ? (uint64_t)((double)(ticks - a->ticks0) * a->ns_per_tick) : 0;
}

/* The longer the run, the better the rate is known. */
static void
calibrate (TdAssembler *a)
{
  uint64_t ns = clock_now (), ticks = td_ring_ticks ();

  if (ns - a->mono0 < a->next_calibration_ns || ticks <= a->ticks0)
    return;
  a->ns_per_tick = (double)(ns - a->mono0) / (double)(ticks - a->ticks0);
  a->next_calibration_ns = (ns - a->mono0) * 2;
}

TdAssembler *
td_assembler_new (TdTapeWriter *w, const TdRingShared *clock)
{
  TdAssembler *a = calloc (1, sizeof *a);

  if (a == NULL)
    return NULL;
  a->stats = td_tape_rows_new (sizeof (TdTapeStats));
  if (a->stats == NULL)
    {
      free (a);
      return NULL;
    }
  a->w = w;
  a->largest = TD_SHAPE_LARGEST;
  a->ticks0 = clock->ticks;
  a->mono0 = clock->mono_ns;
  a->ns_per_tick = clock->ns_per_tick;
  /* A clock that counts nanoseconds needs none. */
  a->next_calibration_ns = a->ns_per_tick == 1.0 ? UINT64_MAX : 20000000;
  a->values_bytes = clock->values_bytes ? clock->values_bytes : 256u << 20;
  return a;
}

void
td_assembler_free (TdAssembler *a)
{
  if (a == NULL)
    return;

  TdList *lists[]
      = { &a->strings,    &a->opdefs,       &a->sites,     &a->paths,   &a->raw,
          &a->start,      &a->duration,     &a->memory,    &a->reads,   &a->stats_of,
          &a->tensors,    &a->notices,      &a->metas,     &a->blocks,  &a->free_blocks,
          &a->bound,      &a->attr_changes, &a->addresses, &a->devices, &a->device_times,
          &a->queue,      &a->pools,        &a->copies,    &a->calls,   &a->call_words,
          &a->rank_waits, &a->rank_sums };

  for (uint32_t i = 0; i < a->texts.n; i++)
    free (((char **)a->texts.items)[i]);
  td_tape_rows_free (a->stats);
  td__large_free (a);
  td__list_clear (&a->texts);
  td__list_clear (&a->op_names);
  td__list_clear (&a->places);
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    td__list_clear (lists[i]);
  for (unsigned i = 0; i < MAX_SHAPES; i++)
    td__shape_free (a->shapes[i]);
  for (unsigned i = 0; i < MAX_PROFILES; i++)
    free (a->profiles[i].records);
  td__id_map_clear (&a->meta_at);
  td__id_map_clear (&a->outside_counts);
  td__id_map_clear (&a->block_at);
  td__id_map_clear (&a->schedules);
  td__list_clear (&a->statics);
  td__list_clear (&a->runs);
  td__list_clear (&a->traced);
  td__list_clear (&a->held);
  td__list_clear (&a->objects);
  td__list_clear (&a->references);
  free (a->schedule);
  free (a->tensor_bytes);
  free (a->source);
  free (a);
}

/* ------------------------------------------------------------------------ iterations */

/* All that is about operations. */
static void
clear_operations (TdAssembler *a)
{
  a->state.n_events = 0;
  a->n_records = 0;
  a->raw.n = a->start.n = a->duration.n = a->memory.n = 0;
  a->memory_is_relative = false;
  /* What one very large iteration took is not kept for those after it. */
  td__large_free (a);
  if (a->memory.room > TD_SHAPE_LARGEST / sizeof (TdTapeMemory))
    td__list_clear (&a->memory);
  td_tape_rows_clear (a->stats);
  a->reads.n = a->stats_of.n = a->tensors.n = 0;
  a->runs.n = a->traced.n = 0;
  a->held.n = a->objects.n = a->references.n = 0;
  a->device_times.n = a->copies.n = 0;
  a->rank_waits.n = a->rank_sums.n = 0;
  a->calls.n = a->call_words.n = 0;
}

static void
clear_iteration (TdAssembler *a)
{
  clear_operations (a);
  a->state.in_iteration = false;
  a->flags = 0;
  a->full = false;
  a->notices.n = a->statics.n = a->devices.n = a->pools.n = 0;
  a->stop = (TdTapeStop){ 0 };
  a->shown_events = 0;
  a->shown_stopped = false;
  a->next_live_ns = 0;
}

/* There is no memory to make anything of the open iteration: all that is left of it is what it
 * did to memory that others go on with.  NULL: not even for that. */
static TdShape *
lose_all (TdAssembler *a)
{
  const TdShape none = { 0 };
  TdTapeIteration unused = { 0 };

  td__lose_rest (a);
  td__memory_absolute (a);
  td__memory_replay (a, &none, &unused);
  clear_operations (a);
  return td__shape_build (a);
}

/* What was discarded makes another structure, but no other graph. */
static bool
is_known_graph (const TdAssembler *a, const TdShape *s)
{
  for (unsigned i = 0; i < MAX_SHAPES; i++)
    if (a->shapes[i] != NULL && a->shapes[i]->it.fingerprint_dims == s->it.fingerprint_dims)
      return true;
  return false;
}

/* The shape of the open iteration: one seen before, or a new one. */
static TdShape *
find_shape (TdAssembler *a, bool *repeat)
{
  TdShape *s = a->large == NULL ? td__shape_match (a) : NULL;
  bool is_new = false;

  *repeat = s != NULL;
  if (s != NULL)
    return s;
  a->attr_changes.n = 0;
  s = a->large == NULL ? td__shape_build (a) : td__build_end (a->large->build);
  if (s == NULL)
    s = lose_all (a);
  if (s == NULL)
    return NULL;
  s->it.structure = td_tape_writer_structure (a->w, &s->it, &is_new);
  if (is_new && !a->full && !is_known_graph (a, s))
    a->flags |= TD_TAPE_ITERATION_NEW_GRAPH;
  td__shape_keep (a, s);
  td__shape_slim (s);
  return s;
}

/* One that was cut off says nothing of how the graph goes on. */
static void
note_graph (TdAssembler *a, const TdShape *s)
{
  if (a->state.n_iterations > 0 && s->it.fingerprint_dims != a->last_structure)
    a->flags |= TD_TAPE_ITERATION_GRAPH_CHANGED;
  a->last_structure = s->it.fingerprint_dims;
}

void
td__finish_iteration (TdAssembler *a, uint64_t end_ticks)
{
  TdTapeIteration it;
  TdResolved r = { 0 };
  bool repeat;
  TdShape *s;
  TdRecent *recent;

  if (!a->state.in_iteration)
    return;
  calibrate (a);
  s = find_shape (a, &repeat);
  if (s != NULL)
    {
      if (!a->full)
        note_graph (a, s);
      td__resolve (a, s, td__assembler_ns (a, end_ticks), &it, &r, true);
      td__memory_finish (a, s, &it, &r.records, &r.blocks, true);
      td_tape_writer_iteration (a->w, &it);
      td__large_leave (s);
      recent = &a->recent[a->next_recent++ % MAX_RECENT];
      *recent = (TdRecent){ .first_id = a->begin.first_id, .end_id = UINT64_MAX, .shape = s };
      a->next_recent %= MAX_RECENT;
    }
  td__resolved_clear (&r);
  if (a->full)
    td__tell_lost (a, s != NULL ? s->n_events : 0);
  a->state.n_iterations++;
  a->state.n_repeats += repeat;
  clear_iteration (a);
}

/* A picture of the open iteration takes as long as its end: of a very large one there is none,
 * except where the program stands. */
static bool
may_be_shown (const TdAssembler *a)
{
  return a->large == NULL || a->stop.stopped || a->shown_stopped;
}

void
td_assembler_show_live_at (TdAssembler *a, uint64_t ticks)
{
  TdTapeIteration it;
  TdResolved r = { 0 };
  uint64_t before = clock_now (), cost;
  TdShape *s;

  if (!a->state.in_iteration)
    return;
  s = a->large == NULL ? td__shape_build (a) : td__build_look (a->large->build);
  a->shown_events = a->state.n_events;
  a->shown_stopped = a->stop.stopped;
  if (s == NULL)
    {
      a->next_live_ns = clock_now () + LIVE_AFTER_NS;
      return;
    }
  a->attr_changes.n = 0;
  td__resolve (a, s, td__assembler_ns (a, ticks), &it, &r, false);
  td__memory_finish (a, s, &it, &r.records, &r.blocks, false);
  td_tape_writer_live (a->w, &it);
  td__memory_absolute (a);
  td__resolved_clear (&r);
  if (a->large == NULL)
    td__shape_free (s);
  else
    td__build_go_on (a->large->build);
  cost = clock_now () - before;
  a->next_live_ns
      = clock_now () + (cost * 8 > LIVE_AFTER_NS / 2 ? cost * 8 : LIVE_AFTER_NS / 2);
}

void
td_assembler_show_live (TdAssembler *a)
{
  td_assembler_show_live_at (a, td_ring_ticks ());
}

static void
feed_begin (TdAssembler *a, const TdRawHead *head)
{
  const TdRawIterationBegin *raw = (const TdRawIterationBegin *)head;
  TdRecent *last = &a->recent[(a->next_recent + MAX_RECENT - 1) % MAX_RECENT];

  if (a->state.in_iteration)
    {
      a->flags |= TD_TAPE_ITERATION_PARTIAL;
      td__finish_iteration (a, raw->ticks);
    }
  if (last->shape != NULL && last->end_id == UINT64_MAX)
    last->end_id = raw->first_id;
  a->begin = *raw;
  a->flags = (raw->head.flags & TD_RAW_OUTSIDE ? TD_TAPE_ITERATION_OUTSIDE : 0u)
             | (raw->head.flags & TD_RAW_KEYFRAME ? TD_TAPE_ITERATION_KEYFRAME : 0u);
  a->state.in_iteration = true;
  a->state.iteration = raw->number;
  a->iteration_at = a->fed;
  a->next_live_ns = clock_now () + LIVE_AFTER_NS;
}

/* Work outside any iteration that nobody announced. */
static void
begin_by_itself (TdAssembler *a, uint64_t ticks, uint64_t first_id)
{
  TdRawIterationBegin begin
      = { .head
          = { .size = sizeof begin, .type = TD_RAW_ITERATION_BEGIN, .flags = TD_RAW_OUTSIDE },
          .number = a->state.n_iterations ? a->state.iteration + 1 : 0,
          .first_id = first_id,
          .ticks = ticks };

  feed_begin (a, &begin.head);
}

static void
feed_iteration_end (TdAssembler *a, const TdRawHead *head)
{
  uint64_t ticks = ((const TdRawIterationEnd *)head)->ticks;

  if (a->state.in_iteration && (head->flags & TD_RAW_WAS_OUTSIDE) != 0)
    a->flags |= TD_TAPE_ITERATION_OUTSIDE;
  a->waits = a->state.in_iteration && (head->flags & TD_RAW_ANSWERS_TO_COME) != 0;
  a->waits_since = ticks;
  if (!a->waits)
    td__finish_iteration (a, ticks);
}

/* A record of a very large iteration, or the one that makes it so. */
static __attribute__ ((noinline)) bool
add_to_large (TdAssembler *a, const TdRawHead *head)
{
  const bool large = a->large != NULL || td__large_begin (a);

  a->n_records += large;
  if (large && td__build_record (a->large->build, head))
    return true;
  td__lose_rest (a);
  return false;
}

/* Returns false when there is no memory for it. */
static inline bool
add_raw (TdAssembler *a, const TdRawHead *head)
{
  char *to;

  if (a->large != NULL || head->size > a->largest - a->raw.n)
    return add_to_large (a, head);
  to = td__list_add_n (&a->raw, 1, head->size);
  if (to == NULL)
    {
      td__lose_rest (a);
      return false;
    }
  memcpy (to, head, head->size);
  /* Order is among the backward events of one forward event; without one it means nothing, and
   * must not make iterations differ. */
  if (head->type == TD_RAW_OP && ((const TdRawOp *)head)->twin_back == 0)
    ((TdRawOp *)(void *)to)->order &= TD_RAW_ORDER_APART;
  a->n_records++;
  return true;
}

static void
keep_raw (TdAssembler *a, const TdRawHead *head)
{
  if (!a->full)
    add_raw (a, head);
}

/* The ticks of an operation. */
static bool
keep_time (TdAssembler *a, uint64_t start_ticks, uint64_t duration_ticks)
{
  const TdTapeTicks ticks = { start_ticks, duration_ticks };
  uint64_t *start, *duration;

  if (a->large != NULL)
    return td_tape_rows_add (a->large->times, &ticks);
  start = td__list_add (&a->start, sizeof *start);
  duration = td__list_add (&a->duration, sizeof *duration);
  if (start == NULL || duration == NULL)
    return false;
  *start = start_ticks;
  *duration = duration_ticks;
  return true;
}

static inline void
feed_op (TdAssembler *a, const TdRawHead *head)
{
  const TdRawOp *raw = (const TdRawOp *)head;

  if (!a->state.in_iteration)
    begin_by_itself (a, raw->start,
                     raw->n_out ? ((const TdRawOutput *)(raw->ids + raw->n_in))->variable : 0);
  if (raw->head.flags & TD_TAPE_EVENT_FAILED)
    a->flags |= TD_TAPE_ITERATION_ERROR;
  if (a->full)
    return;
  if (!keep_time (a, raw->start, raw->end > raw->start ? raw->end - raw->start : 0))
    td__lose_rest (a);
  else if (add_raw (a, head))
    a->state.n_events++;
}

/* Leaves made outside the iteration, and names there, go straight to what is known of
 * variables: a recorder may describe a variable at its first use, long after it was made. */
static void
feed_leaf (TdAssembler *a, const TdRawHead *head)
{
  const TdRawLeaf *raw = (const TdRawLeaf *)head;
  TdMeta meta;

  if (a->state.in_iteration && raw->var.variable >= a->begin.first_id)
    {
      keep_raw (a, head);
      return;
    }
  td__leaf_meta (a, raw, td__leaf_key (a, raw, 0, &a->outside_counts), &meta);
  td__meta_set (a, raw->var.variable, &meta);
}

static void
feed_name (TdAssembler *a, const TdRawHead *head)
{
  const TdRawName *raw = (const TdRawName *)head;
  TdMeta meta;

  if (a->state.in_iteration)
    {
      keep_raw (a, head);
      return;
    }
  if (head->type != TD_RAW_NAME || !td__meta_find (a, raw->variable, &meta))
    return;
  meta.name = td__alias (&a->strings, raw->name).id;
  meta.flags |= (uint8_t)raw->flags;
  td__meta_set (a, raw->variable, &meta);
}

static void
feed_inside (TdAssembler *a, const TdRawHead *head)
{
  if (a->state.in_iteration)
    keep_raw (a, head);
}

/* Keep what happened to memory before the event that comes next. */
static void
add_memory (TdAssembler *a, TdTapeMemory memory)
{
  TdTapeMemory *m;

  memory.event = a->state.n_events;
  memory.var = TD_TAPE_NONE;
  if (a->large != NULL)
    {
      if (!td__large_add_memory (a, &memory))
        td__lose_rest (a);
      return;
    }
  m = td__list_add (&a->memory, sizeof *m);
  if (m != NULL)
    *m = memory;
  else
    td__lose_rest (a);
}

static void
feed_memory (TdAssembler *a, const TdRawHead *head)
{
  const TdRawMemory *raw = (const TdRawMemory *)head;

  add_memory (a, (TdTapeMemory){ .address = raw->address,
                                 .bytes = raw->bytes,
                                 .buffer = raw->buffer,
                                 .variable = raw->variable,
                                 .site = td__alias (&a->sites, raw->site).id,
                                 .kind = (uint8_t)(head->flags & 255),
                                 .category = raw->category,
                                 .holder = raw->holder,
                                 .device = (uint8_t)raw->device });
}

static void
feed_alloc (TdAssembler *a, const TdRawHead *head)
{
  const TdRawAlloc *raw = (const TdRawAlloc *)head;

  add_memory (a, (TdTapeMemory){ .address = raw->address,
                                 .bytes = raw->bytes,
                                 .buffer = raw->buffer,
                                 .variable = raw->variable,
                                 .kind = TD_TAPE_MEMORY_ALLOC,
                                 .category = (uint8_t)head->flags,
                                 .device = (uint8_t)(head->flags >> 8) });
}

static void
feed_free (TdAssembler *a, const TdRawHead *head)
{
  const TdRawFree *raw = (const TdRawFree *)head;

  add_memory (a, (TdTapeMemory){ .address = raw->address,
                                 .bytes = raw->bytes,
                                 .buffer = raw->buffer,
                                 .kind = TD_TAPE_MEMORY_FREE,
                                 .category = (uint8_t)head->flags,
                                 .device = (uint8_t)(head->flags >> 8) });
}

static void
feed_report (TdAssembler *a, const TdRawHead *head)
{
  const TdRawReport *raw = (const TdRawReport *)head;
  TdTapeReport report = { .iteration = a->state.iteration,
                          .value = raw->value,
                          .key = td__alias (&a->strings, raw->key).id,
                          .event = a->state.n_events };

  td_tape_writer_report (a->w, &report);
}

void
td__add_stats (TdAssembler *a, uint64_t variable, uint32_t event, const TdTapeStats *stats)
{
  TdTapeStats one = *stats;
  uint64_t *of;

  if (!a->state.in_iteration)
    return;
  of = td__list_add (&a->stats_of, sizeof *of);
  one.event = event;
  one.var = 0; /* not known yet: packs to nothing */
  if (of == NULL || !td_tape_rows_add (a->stats, &one))
    {
      a->stats_of.n -= of != NULL;
      td__lose_rest (a);
      return;
    }
  *of = variable;
  a->flags |= stats->n_nan ? TD_TAPE_ITERATION_NAN : 0;
  a->flags |= stats->n_pos_inf || stats->n_neg_inf ? TD_TAPE_ITERATION_INF : 0;
}

static void
feed_stats (TdAssembler *a, const TdRawHead *head)
{
  const TdRawStats *raw = (const TdRawStats *)head;

  td__add_stats (a, raw->variable, a->state.n_events ? a->state.n_events - 1 : TD_TAPE_NONE,
                 &raw->stats);
}

static void
feed_host_read (TdAssembler *a, const TdRawHead *head)
{
  const TdRawHostRead *raw = (const TdRawHostRead *)head;
  TdPendingRead *read = a->state.in_iteration ? td__list_add (&a->reads, sizeof *read) : NULL;

  if (read != NULL)
    *read = (TdPendingRead){ .variable = raw->variable,
                             .read = { .event = a->state.n_events,
                                       .site = td__alias (&a->sites, raw->site).id } };
}

static void
feed_notice (TdAssembler *a, const TdRawHead *head)
{
  const TdRawNotice *raw = (const TdRawNotice *)head;
  TdTapeNotice notice = { .iteration = a->state.iteration,
                          .time_ns = td__assembler_ns (a, raw->ticks),
                          .event = a->state.n_events ? a->state.n_events - 1 : TD_TAPE_NONE,
                          .kind = head->flags,
                          .status = raw->status,
                          .text = td__alias (&a->strings, raw->text).id,
                          .op = td__alias (&a->strings, raw->op).id,
                          .site = td__alias (&a->sites, raw->site).id };
  TdTapeNotice *own = a->state.in_iteration ? td__list_add (&a->notices, sizeof *own) : NULL;

  if (own != NULL)
    *own = notice;
  if (notice.kind == TD_TAPE_NOTICE_ERROR)
    a->flags |= TD_TAPE_ITERATION_ERROR;
  /* Changes of the configuration come every iteration; they need no notice. */
  if (notice.kind != TD_TAPE_NOTICE_CONFIG || own == NULL)
    td_tape_writer_notice (a->w, &notice);
}

static void
feed_stopped (TdAssembler *a, const TdRawHead *head)
{
  const TdRawStopped *raw = (const TdRawStopped *)head;

  a->state.stopped = head->type == TD_RAW_STOPPED;
  if (!a->state.stopped)
    a->stop = (TdTapeStop){ 0 };
  else
    a->stop = (TdTapeStop){ .stopped = 1,
                            .event = a->state.n_events,
                            .reason = td__alias (&a->strings, raw->reason).id,
                            .site = td__alias (&a->sites, raw->site).id };
}

static void
feed_exit (TdAssembler *a, const TdRawHead *head)
{
  const TdRawExit *raw = (const TdRawExit *)head;

  a->state.exited = true;
  a->state.exit_status = raw->status;
  a->flags |= a->flags & TD_TAPE_ITERATION_OUTSIDE ? 0 : TD_TAPE_ITERATION_PARTIAL;
  td__finish_iteration (a, raw->ticks);
}

static const Feed feeds[TD_RAW_N_TYPES] = {
  [TD_RAW_STRING] = td__feed_string,
  [TD_RAW_OPDEF] = td__feed_opdef,
  [TD_RAW_SITE] = td__feed_site,
  [TD_RAW_PATH] = td__feed_path,
  [TD_RAW_INFO] = td__feed_info,
  [TD_RAW_SOURCE] = td__feed_source,
  [TD_RAW_PARAMETER] = td__feed_parameter,
  [TD_RAW_ITERATION_BEGIN] = feed_begin,
  [TD_RAW_ITERATION_END] = feed_iteration_end,
  [TD_RAW_OP] = feed_op,
  [TD_RAW_LEAF] = feed_leaf,
  [TD_RAW_SCOPE_OPEN] = feed_inside,
  [TD_RAW_SCOPE_CLOSE] = feed_inside,
  [TD_RAW_LINK_ENTER] = feed_inside,
  [TD_RAW_LINK_LEAVE] = feed_inside,
  [TD_RAW_MEMORY] = feed_memory,
  [TD_RAW_GRAD] = feed_inside,
  [TD_RAW_NAME] = feed_name,
  [TD_RAW_UNCHAIN] = feed_name,
  [TD_RAW_REPORT] = feed_report,
  [TD_RAW_STATS] = feed_stats,
  [TD_RAW_TENSOR] = td__feed_tensor,
  [TD_RAW_HOST_READ] = feed_host_read,
  [TD_RAW_NOTICE] = feed_notice,
  [TD_RAW_STOPPED] = feed_stopped,
  [TD_RAW_RESUMED] = feed_stopped,
  [TD_RAW_EXIT] = feed_exit,
  [TD_RAW_ALLOC] = feed_alloc,
  [TD_RAW_FREE] = feed_free,
  [TD_RAW_STATIC_FUNCTION] = td__feed_function,
  [TD_RAW_SCHEDULE] = td__feed_schedule,
  [TD_RAW_STATIC_EVENT] = td__feed_static_event,
  [TD_RAW_STATIC] = td__feed_static,
  [TD_RAW_STATIC_RUN] = td__feed_static_run,
  [TD_RAW_STATIC_ENTRY] = td__feed_static_entry,
  [TD_RAW_HELD] = td__feed_held,
  [TD_RAW_ASYNC_STATS] = td__feed_async_stats,
  [TD_RAW_DEVICE_TIME] = td__feed_device_time,
  [TD_RAW_ANSWERED] = td__feed_answered,
  [TD_RAW_DEVICE] = td__feed_device,
  [TD_RAW_OBJECT] = td__feed_object,
  [TD_RAW_REFERENCES] = td__feed_references,
  [TD_RAW_POOL] = td__feed_pool,
  [TD_RAW_FAULT] = td__feed_fault,
  [TD_RAW_COPY] = td__feed_copy,
  [TD_RAW_OOM] = td__feed_oom,
  [TD_RAW_CALL] = td__feed_call,
  [TD_RAW_WAIT] = td__feed_wait,
  [TD_RAW_RANK_SUM] = td__feed_rank_sum,
};

/* Recovery: definitions count always, the rest only from the first whole iteration on that the
 * tape does not have. */
static bool
skipped (TdAssembler *a, const TdRawHead *head)
{
  if (!a->skip_to_begin || head->type < TD_RAW_ITERATION_BEGIN
      || head->type == TD_RAW_STATIC_FUNCTION || head->type == TD_RAW_SCHEDULE)
    return false;
  if (head->type == TD_RAW_ITERATION_BEGIN
      && ((const TdRawIterationBegin *)head)->number >= a->skip_through)
    a->skip_to_begin = false;
  return a->skip_to_begin && head->type != TD_RAW_EXIT;
}

void
td_assembler_feed (TdAssembler *a, const void *bytes, size_t n)
{
  const char *at = bytes, *end = at + n;

  while ((size_t)(end - at) >= sizeof (TdRawHead))
    {
      const TdRawHead *head = (const TdRawHead *)at;

      if (!td__raw_valid (head, (size_t)(end - at)))
        {
          a->state.n_bad++;
          a->flags |= TD_TAPE_ITERATION_LOST;
          a->fed += (uint64_t)(end - at);
          return;
        }
      if (a->waits && td__hold_keeps (a, head))
        ;
      else if (head->type < TD_RAW_N_TYPES && feeds[head->type] != NULL && !skipped (a, head))
        feeds[head->type](a, head);
      a->state.n_records++;
      a->fed += head->size;
      at += head->size;
    }
}

size_t
td_assembler_drain (TdAssembler *a, TdRing *ring)
{
  const void *bytes;
  size_t n, all = 0;

  while ((n = td_ring_peek (ring, &bytes)) > 0)
    {
      uint64_t keep;

      td_assembler_feed (a, bytes, n);
      td_ring_take (ring, n);
      all += n;
      /* The open iteration stays in the ring, so that nothing is lost when this process dies;
       * unless it is too large for that. */
      keep = a->state.in_iteration ? a->fed - a->iteration_at : 0;
      if (keep > ring->capacity / 2)
        {
          /* Each costs what the iteration is long: the next is worth it when that has doubled.
           */
          if (a->state.n_events >= 2 * a->shown_events && may_be_shown (a))
            td_assembler_show_live (a);
          keep = 0;
        }
      td_tape_writer_flush (a->w);
      if (a->state.n_iterations > 0)
        atomic_store (&ring->shared->n_taped,
                      a->state.iteration + (a->state.in_iteration ? 0 : 1));
      td_ring_release (ring, keep);
    }
  if (a->state.in_iteration && may_be_shown (a)
      && (a->stop.stopped != a->shown_stopped
          || (a->state.n_events != a->shown_events
              && (a->stop.stopped || clock_now () > a->next_live_ns))))
    {
      td_assembler_show_live (a);
      td_tape_writer_flush (a->w);
    }
  return all;
}

void
td_assembler_end (TdAssembler *a, const TdRing *ring, int status, bool by_tapedeck)
{
  const TdRingNow *now = ring ? &ring->shared->now : NULL;

  while (a->waits)
    td__hold_end (a, true);

  TdTapeEnd end = { .status = status, .by = by_tapedeck, .iteration = a->state.iteration };

  if (status >= 0 && WIFSIGNALED (status))
    {
      end.signal = WTERMSIG (status);
      end.status = -1;
    }
  else if (status >= 0)
    end.status = WEXITSTATUS (status);
  if (now != NULL)
    {
      end.last_op = td__alias (&a->opdefs, now->opdef).id;
      end.last_site = td__alias (&a->sites, now->site).id;
      end.last_path = td__alias (&a->paths, now->path).id;
      end.last_phase = now->phase;
      end.running = now->running && !a->state.exited;
      end.last_event = now->event;
      end.n_stalls = atomic_load (&ring->shared->n_stalls);
    }
  end.time_ns = td__assembler_ns (a, td_ring_ticks ());
  if (a->state.in_iteration)
    {
      a->flags |= TD_TAPE_ITERATION_PARTIAL;
      td__finish_iteration (a, td_ring_ticks ());
    }
  td_tape_writer_end (a->w, &end);
}

const TdAssemblerState *
td_assembler_state (const TdAssembler *a)
{
  return &a->state;
}
