/* Iterations on their way to the tape: structures and memory profiles stored once, iterations
 * with what differs, summaries, reports and the live frame.
 * SPDX-License-Identifier: MIT */
#include "tape-pack.h"
#include "writer-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FINDINGS                                                                               \
  (TD_TAPE_ITERATION_NAN | TD_TAPE_ITERATION_INF | TD_TAPE_ITERATION_ERROR                     \
   | TD_TAPE_ITERATION_NEW_GRAPH)

#define PUT(b, KIND, array, n)                                                                 \
  td__tape_buffer_section (b, TD_TAPE_SECTION_##KIND, sizeof *(array), n, array)

static void
put_packed_structure (TapeBuffer *b, const TdTapePacked *p)
{
  td__tape_put_rows (b, p->events, TD_TAPE_SECTION_EVENTS);
  td__tape_put_rows (b, p->ins, TD_TAPE_SECTION_INS);
  td__tape_put_rows (b, p->outs, TD_TAPE_SECTION_OUTS);
  td__tape_put_rows (b, p->vars, TD_TAPE_SECTION_VARS);
  td__tape_put_rows (b, p->dims, TD_TAPE_SECTION_DIMS);
}

static void
put_plain_structure (TapeBuffer *b, const TdTapeIteration *it)
{
  PUT (b, EVENTS, it->events, it->n_events);
  PUT (b, INS, it->ins, it->n_ins);
  PUT (b, OUTS, it->outs, it->n_outs);
  PUT (b, VARS, it->vars, it->n_vars);
  PUT (b, DIMS, it->dims, it->n_dims);
}

void
td__tape_put_structure (TapeBuffer *b, const TdTapeIteration *it)
{
  if (it->packed != NULL)
    put_packed_structure (b, it->packed);
  else
    put_plain_structure (b, it);
  PUT (b, SPANS, it->spans, it->n_spans);
  PUT (b, GRADS, it->grads, it->n_grads);
}

static void
put_memory (TapeBuffer *b, const TdTapeIteration *it)
{
  TdTapeTotals totals = { .peak_bytes = it->peak_bytes, .end_bytes = it->end_bytes };

  memcpy (totals.start_bytes, it->start_bytes, sizeof totals.start_bytes);
  PUT (b, TOTALS, &totals, 1);
  if (it->packed != NULL)
    td__tape_put_rows (b, it->packed->memory, TD_TAPE_SECTION_MEMORY);
  else
    PUT (b, MEMORY, it->memory, it->n_memory);
  PUT (b, BLOCKS, it->blocks, it->n_blocks);
}

/* Where the times of an iteration lie. */
typedef struct
{
  const TdTapePacked *packed; /* NULL: in arrays */
  const uint64_t *start, *duration;
} Times;

static Times
times_of (const TdTapeIteration *it)
{
  return (Times){ it->packed, it->event_start_ns, it->event_duration_ns };
}

static inline void
time_at (Times times, uint32_t event, uint64_t *start, uint64_t *duration)
{
  if (times.packed == NULL)
    {
      *start = times.start[event];
      *duration = times.duration[event];
    }
  else
    td_tape_packed_time (times.packed, event, start, duration);
}

enum
{
  MOST_SHIFT = 31 /* that readers take; times beyond 292 years are cut to what fits then */
};

/* The smallest shift with which every time fits 32 bits. */
static uint32_t
time_shift (const TdTapeIteration *it)
{
  uint64_t all = 0, before = 0, start, duration;
  const Times times = times_of (it);
  uint32_t shift = 0;

  for (uint32_t i = 0; i < it->n_events; i++)
    {
      time_at (times, i, &start, &duration);
      all |= (start > before ? start - before : 0) | duration;
      before = start > before ? start : before;
    }
  while (shift < MOST_SHIFT && all >> shift > UINT32_MAX)
    shift++;
  return shift;
}

static inline uint32_t
fit (uint64_t time)
{
  return time < UINT32_MAX ? (uint32_t)time : UINT32_MAX;
}

/* Deltas are of rounded starts, so that rounding never adds up. */
static inline TdTapeTime
next_time (Times times, uint32_t event, uint32_t shift, uint64_t *before)
{
  uint64_t start, duration;
  TdTapeTime time;

  time_at (times, event, &start, &duration);
  start >>= shift;
  time.delta = start > *before ? fit (start - *before) : 0;
  time.duration = fit (duration >> shift);
  *before += time.delta;
  return time;
}

/* Packed from TAPE_PACK_FROM bytes on, as any section, and made a block at a time then: those
 * of a very large iteration would take more memory than all that is kept of it. */
static void
put_times (TapeBuffer *b, const TdTapeIteration *it, uint32_t shift)
{
  const bool packed = (uint64_t)it->n_events * sizeof (TdTapeTime) >= TAPE_PACK_FROM;
  const uint32_t room = packed ? TAPE_PACK_BLOCK : it->n_events;
  TdTapeTime *rows = malloc ((room + 1) * sizeof *rows);
  const size_t place = packed ? td__tape_pack_begin (b) : b->n;
  const Times times = times_of (it);
  uint64_t before = 0;
  uint32_t n = 0;
  bool done = rows != NULL;

  for (uint32_t i = 0; done && i < it->n_events; i += n)
    {
      n = it->n_events - i < room ? it->n_events - i : room;
      for (uint32_t k = 0; k < n; k++)
        rows[k] = next_time (times, i + k, shift, &before);
      done = !packed || td__tape_pack_block (b, sizeof *rows, rows, n);
    }
  if (done && packed)
    td__tape_pack_end (b, place, TD_TAPE_SECTION_TIMES, sizeof *rows, it->n_events);
  else if (done)
    PUT (b, TIMES, rows, n);
  b->failed = b->failed || !done;
  free (rows);
}

void
td__tape_put_instance (TapeBuffer *b, const TdTapeIteration *it, unsigned extra_flags)
{
  TdTapeIterationHead head = { .number = it->number,
                               .start_ns = it->start_ns,
                               .duration_ns = it->duration_ns,
                               .first_id = it->first_id,
                               .first_buffer = it->first_buffer,
                               .label = it->label,
                               .flags = it->flags | extra_flags,
                               .structure = it->structure,
                               .memory = it->memory_profile,
                               .time_shift = time_shift (it) };

  if (it->structure == 0)
    {
      head.fingerprint = it->fingerprint;
      head.fingerprint_dims = it->fingerprint_dims;
    }
  td__tape_buffer_put (b, &head, sizeof head);
  put_times (b, it, head.time_shift);
  PUT (b, EXTERNALS, it->externals, it->n_externals);
  PUT (b, HOST_READS, it->host_reads, it->n_host_reads);
  if (it->stats_rows != NULL)
    td__tape_put_stats (b, it->stats_rows, it->stats_vars);
  else
    PUT (b, STATS, it->stats, it->n_stats);
  PUT (b, TENSORS, it->tensors, it->n_tensors);
  PUT (b, NOTICES, it->notices, it->n_notices);
  if (it->memory_profile != 0 && it->n_addresses > 0)
    {
      PUT (b, ADDRESSES, it->addresses, it->n_addresses);
      PUT (b, BLOCKS, it->blocks, it->n_blocks);
    }
  PUT (b, ATTRS, it->attr_changes, it->n_attr_changes);
  PUT (b, STATICS, it->statics, it->n_statics);
  PUT (b, RUNS, it->runs, it->n_runs);
  PUT (b, TRACED, it->traced, it->n_traced);
  PUT (b, HELD, it->held, it->n_held);
  PUT (b, DEVICES, it->devices, it->n_devices);
  PUT (b, DEVICE_TIMES, it->device_times, it->n_device_times);
  PUT (b, OBJECTS, it->objects, it->n_objects);
  PUT (b, REFERENCES, it->references, it->n_references);
  PUT (b, POOLS, it->pools, it->n_pools);
  PUT (b, COPIES, it->copies, it->n_copies);
  PUT (b, CALLS, it->calls, it->n_calls);
  PUT (b, CALL_WORDS, it->call_words, it->n_call_words);
  PUT (b, COLLECTIVES, it->collectives, it->n_collectives);
  PUT (b, RANK_SUMS, it->rank_sums, it->n_rank_sums);
  PUT (b, STACK_FRAMES, it->stack_frames, it->n_stack_frames);
  PUT (b, EVENT_STACKS, it->event_stacks, it->n_event_stacks);
  PUT (b, EXTERNAL_STACKS, it->external_stacks, it->n_external_stacks);
  if (it->stop.stopped)
    PUT (b, STOP, &it->stop, 1);
  if (it->structure == 0)
    td__tape_put_structure (b, it);
  if (it->memory_profile == 0)
    put_memory (b, it);
}

uint32_t
td__tape_put_once (TdTapeWriter *w, unsigned table, unsigned type, bool *is_new)
{
  TapeBuffer *b = &w->scratch;
  uint64_t hash, check;
  TapeTable *t = &w->tables[table];
  uint32_t id;

  if (b->failed)
    {
      td__tape_fail (w, "recording stopped", ENOMEM);
      return 0;
    }
  hash = td_tape_hash_bytes (3, b->bytes, b->n);
  check = td_tape_hash_bytes (4, b->bytes, b->n);
  if (w->kind_bytes[TD_TAPE_SEGMENT_DEFS] > td__tape_share (w, 1)
      || b->n > td__tape_share (w, 1) / 4)
    {
      *is_new = true; /* as far as anybody can know */
      return 0;
    }
  id = td__tape_table_intern (t, hash, check, is_new);
  if (id != 0 && *is_new)
    {
      memcpy (b->bytes, &id, sizeof id);
      if (!td__tape_append (w, TD_TAPE_SEGMENT_DEFS, type, b->bytes, b->n, NULL, 0, 0, NULL))
        return 0;
    }
  return id;
}

uint32_t
td_tape_writer_structure (TdTapeWriter *w, const TdTapeIteration *it, bool *is_new)
{
  TdTapeStructureHead head = { .n_events = it->n_events,
                               .n_vars = it->n_vars,
                               .fingerprint = it->fingerprint,
                               .fingerprint_dims = it->fingerprint_dims };
  bool unused;

  w->scratch.n = 0;
  td__tape_buffer_put (&w->scratch, &head, sizeof head);
  td__tape_put_structure (&w->scratch, it);
  return td__tape_put_once (w, TABLE_STRUCTURES, TD_TAPE_FRAME_STRUCTURE,
                            is_new ? is_new : &unused);
}

uint32_t
td_tape_writer_memory (TdTapeWriter *w, const TdTapeIteration *it)
{
  TdTapeMemoryHead head = { 0 };
  bool is_new;

  w->scratch.n = 0;
  td__tape_buffer_put (&w->scratch, &head, sizeof head);
  put_memory (&w->scratch, it);
  return td__tape_put_once (w, TABLE_MEMORY, TD_TAPE_FRAME_MEMORY, &is_new);
}

static bool
is_discarded (const TdTapeIteration *it, uint32_t event)
{
  for (uint32_t i = 0; i < it->n_runs; i++)
    if ((it->runs[i].flags & TD_TAPE_RUN_DISCARDED) && event >= it->runs[i].begin
        && event < it->runs[i].end)
      return true;
  return false;
}

/* What was recorded in all, whatever is left of it later. */
static void
count (TdTapeWriter *w, const TdTapeIteration *it, bool stored)
{
  TdTapeTally *t = &w->tally;

  t->n_iterations++;
  t->n_operations += td__tape_count_events (it);
  t->newest = it->number;
  t->n_not_stored += !stored;
  if (it->structure > 0 && it->structure <= TD_TAPE_TALLY_STRUCTURES)
    t->structures[it->structure - 1]++;
}

static void
put_summary (TdTapeWriter *w, const TdTapeIteration *it, const TapePlace *place, unsigned flags)
{
  TdTapeSummary row = { .number = it->number,
                        .offset = place->offset,
                        .seq = place->seq,
                        .structure = it->structure,
                        .start_ns = it->start_ns,
                        .duration_ns = it->duration_ns,
                        .peak_bytes = it->peak_bytes,
                        .label = it->label,
                        .n_events = td__tape_count_events (it),
                        .flags = it->flags | flags,
                        .memory = it->memory_profile };

  td__tape_put_summary (w, &row, (flags & TD_TAPE_ITERATION_KEPT) != 0);
}

void
td_tape_writer_iteration (TdTapeWriter *w, const TdTapeIteration *it)
{
  bool keep = w->n_iterations < TAPE_KEPT_FIRST || (it->flags & FINDINGS) != 0;
  unsigned flags = 0;
  TapePlace place = { 0 };
  bool stored;

  if (w->failed)
    return;
  w->now_ns
      = it->start_ns + it->duration_ns > w->now_ns ? it->start_ns + it->duration_ns : w->now_ns;
  flags |= it->n_stats ? TD_TAPE_ITERATION_STATS : 0;
  flags |= it->n_tensors ? TD_TAPE_ITERATION_VALUES : 0;
  w->scratch.n = 0;
  td__tape_put_instance (&w->scratch, it, flags);
  if (w->scratch.failed)
    {
      td__tape_fail (w, "recording stopped", ENOMEM);
      return;
    }
  w->must = !w->has_first && !(it->flags & TD_TAPE_ITERATION_OUTSIDE);
  w->has_first = w->has_first || w->must; /* and is not thinned later, either: it is kept */
  keep = w->must
         || (keep
             && w->kind_bytes[TD_TAPE_SEGMENT_KEPT] - w->must_kept + w->scratch.n
                    <= td__tape_share (w, 1) / 2);
  if (keep)
    {
      flags |= TD_TAPE_ITERATION_KEPT;
      memcpy (w->scratch.bytes + offsetof (TdTapeIterationHead, flags),
              &(uint32_t){ it->flags | flags }, sizeof (uint32_t));
    }
  stored = td__tape_append (w, keep ? TD_TAPE_SEGMENT_KEPT : TD_TAPE_SEGMENT_RECENT,
                            TD_TAPE_FRAME_ITERATION, w->scratch.bytes, w->scratch.n, NULL, 0,
                            it->number, &place);
  w->must = false;
  if (!stored)
    flags = (flags & ~(unsigned)TD_TAPE_ITERATION_KEPT) | TD_TAPE_ITERATION_NOT_STORED;
  put_summary (w, it, &place, flags);
  count (w, it, stored);
  w->n_iterations++;
}

void
td_tape_writer_live (TdTapeWriter *w, const TdTapeIteration *it)
{
  TdTapeIteration whole = *it;

  if (w->failed)
    return;
  whole.structure = whole.memory_profile = 0;
  w->scratch.n = 0;
  td__tape_put_instance (&w->scratch, &whole, TD_TAPE_ITERATION_PARTIAL);
  if (!w->scratch.failed)
    td__tape_append_live (w, w->scratch.bytes, w->scratch.n, it->number);
}

bool
td_tape_writer_tensor (TdTapeWriter *w, const TdTapeTensorRecord *record, const void *data,
                       TdTapeTensorRef *ref)
{
  TapePlace place;

  if (!td__tape_append (w, TD_TAPE_SEGMENT_VALUES, TD_TAPE_FRAME_TENSOR, record, sizeof *record,
                        data, (size_t)record->bytes, record->iteration, &place))
    return false;
  ref->offset = place.offset;
  ref->seq = place.seq;
  ref->bytes = record->bytes;
  ref->event = record->event;
  return true;
}

/* The two fingerprints: the second is of dimensions too. */
static void
mix (uint64_t h[2], uint64_t value)
{
  h[0] = td_tape_hash (h[0], value);
  h[1] = td_tape_hash (h[1], value);
}

/* Mix a variable in: by the order in which events first met it, so that variables nobody uses
 * and the order of definitions do not count; at its first meeting with its type and shape. */
static void
hash_var (uint64_t h[2], const TdTapeIteration *it, uint32_t var, uint32_t *met)
{
  const TdTapePacked *p = it->packed;
  const int64_t *shape;
  unsigned dtype, ndim;

  if (met[var + 1] != 0)
    {
      mix (h, met[var + 1]);
      return;
    }
  met[var + 1] = ++met[0];
  if (p != NULL)
    {
      shape = p->type_words + p->types[var] + 1;
      dtype = (unsigned)(shape[-1] >> 8);
      ndim = (unsigned)(shape[-1] & 255);
    }
  else
    {
      shape = it->n_dims > 0 ? it->dims + it->vars[var].first_dim : NULL;
      dtype = it->vars[var].dtype;
      ndim = it->vars[var].ndim;
    }
  mix (h, met[0]);
  mix (h, (uint64_t)dtype << 8 | ndim);
  for (unsigned d = 0; d < ndim; d++)
    h[1] = td_tape_hash (h[1], (uint64_t)shape[d]);
}

static uint64_t
hash_of (const uint64_t *hashes, const TapeTable *table, uint32_t id)
{
  return id != 0 && id <= table->n ? hashes[id - 1] : 0;
}

static const TdTapeEvent *
event_at (const TdTapeIteration *it, uint32_t event)
{
  return it->packed != NULL ? td_tape_rows_at (it->packed->events, event) : &it->events[event];
}

/* They are asked for in the order in which they lie: few are unpacked for it. */
static void
hash_vars (uint64_t h[2], const TdTapeIteration *it, TdTapeRows *packed, const uint32_t *vars,
           uint32_t first, uint32_t n, uint32_t *met)
{
  for (uint32_t i = first; i < first + n; i++)
    {
      const uint32_t *var = packed != NULL ? td_tape_rows_at (packed, i) : &vars[i];

      if (var != NULL)
        hash_var (h, it, *var, met);
    }
}

void
td_tape_writer_fingerprint (const TdTapeWriter *w, const TdTapeIteration *it,
                            uint64_t *fingerprint, uint64_t *fingerprint_dims)
{
  const TdTapePacked *p = it->packed;
  const bool all = td__tape_count_events (it) == it->n_events;
  uint32_t *met = calloc (it->n_vars + 1, sizeof *met);
  uint64_t h[2] = { 1, 2 };

  for (uint32_t e = 0; met != NULL && e < it->n_events; e++)
    {
      const TdTapeEvent *event = event_at (it, e);

      if (event == NULL || (!all && is_discarded (it, e)))
        continue;
      mix (h, hash_of (w->opdef_hash, &w->tables[TABLE_OPDEFS], event->opdef));
      mix (h, hash_of (w->path_hash, &w->tables[TABLE_PATHS], event->path));
      mix (h, (uint64_t)event->phase << 32 | event->n_in);
      hash_vars (h, it, p != NULL ? p->ins : NULL, it->ins, event->first_in, event->n_in, met);
      hash_vars (h, it, p != NULL ? p->outs : NULL, it->outs, event->first_out, event->n_out,
                 met);
    }
  free (met);
  *fingerprint = h[0];
  *fingerprint_dims = h[1];
}
