/* From bytes to TdTapeIteration: sections, the parts that iterations share.  What passes its
 * checks can be used without further ones.
 * SPDX-License-Identifier: MIT */
#include "../format/tape-pack.h"
#include "reader-private.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Records of memory are copied for each iteration, with its own ids: more of them than this are
 * not kept beside the copy, but become it. */
#define TAPE_MANY_MEMORY 65536

struct TapePart
{
  atomic_int refs;
  uint32_t id;
  bool shared;        /* the cache has it, too: it must not be changed */
  TdTapeIteration it; /* only the fields of this part are set */
  void *arrays[8];
  unsigned n_arrays;
};

/** An iteration and what it owns. */
typedef struct
{
  TdTapeIteration it; /* first: it is what callers hold */
  TapePart *structure, *memory;
  void *arrays[TD_TAPE_N_SECTIONS]; /* of sections, and what changes have made of some */
  unsigned n_arrays;
} Loaded;

void
td__tape_part_unref (TapePart *part)
{
  if (part == NULL || atomic_fetch_sub (&part->refs, 1) != 1)
    return;
  for (unsigned i = 0; i < part->n_arrays; i++)
    free (part->arrays[i]);
  free (part);
}

void
td_tape_iteration_free (const TdTapeIteration *it)
{
  Loaded *l = (Loaded *)(uintptr_t)it;

  if (l == NULL)
    return;
  td__tape_part_unref (l->structure);
  td__tape_part_unref (l->memory);
  for (unsigned i = 0; i < l->n_arrays; i++)
    free (l->arrays[i]);
  free (l);
}

/* A packed section that asks for more than it can have is not there. */
static void
view_packed (TapeSections *sections, const char *bytes, uint64_t n)
{
  TapePackedHead head;

  if (n < sizeof head)
    return;
  memcpy (&head, bytes, sizeof head);
  if (head.kind == TD_TAPE_SECTION_PACKED || head.kind >= TD_TAPE_N_SECTIONS || head.stride < 4
      || head.stride % 4 != 0 || head.stride > TAPE_PACK_MAX_STRIDE
      || head.count >= TD_TAPE_NONE || head.count > n * TAPE_PACK_MOST / head.stride)
    return;
  sections->at[head.kind] = (TapeSectionView){ .bytes = bytes + sizeof head,
                                               .count = head.count,
                                               .stride = head.stride,
                                               .packed = n - sizeof head };
}

bool
td__tape_find_sections (const char *bytes, size_t n, size_t head, TapeSections *sections)
{
  size_t at = head;

  memset (sections, 0, sizeof *sections);
  if (n < head)
    return false;
  while (n - at >= sizeof (TdTapeSection))
    {
      TdTapeSection s;
      uint64_t padded;

      memcpy (&s, bytes + at, sizeof s);
      at += sizeof s;
      /* A stride under 4 would let few bytes ask for much memory. */
      if (s.stride < 4 || s.count > (n - at) / s.stride || s.count >= TD_TAPE_NONE)
        return false;
      padded = TAPE_ALIGN (s.stride * s.count);
      if (s.kind == TD_TAPE_SECTION_PACKED)
        view_packed (sections, bytes + at, s.stride * s.count);
      else if (s.kind < TD_TAPE_N_SECTIONS)
        sections->at[s.kind]
            = (TapeSectionView){ .bytes = bytes + at, .count = s.count, .stride = s.stride };
      at = padded < n - at ? at + (size_t)padded : n;
    }
  return true;
}

static char *
unpack (const TapeSectionView *view)
{
  char *elements = malloc (view->count * view->stride);

  if (elements != NULL
      && td__tape_unpack (view->bytes, view->packed, view->stride, view->count, elements))
    return elements;
  free (elements);
  return NULL;
}

void *
td__tape_copy_section (const TapeSections *sections, unsigned kind, size_t size,
                       uint32_t *count)
{
  const TapeSectionView *view = &sections->at[kind];
  char *array, *unpacked = NULL;
  const char *from = view->bytes;

  *count = 0;
  if (view->count == 0 || (view->packed && (from = unpacked = unpack (view)) == NULL))
    return NULL;
  if (unpacked != NULL && view->stride == size)
    {
      *count = (uint32_t)view->count;
      return unpacked;
    }
  array = malloc (view->count * size);
  for (uint64_t i = 0; array != NULL && view->stride != size && i < view->count; i++)
    td__tape_take (array + i * size, size, from + i * view->stride, view->stride);
  if (array != NULL && view->stride == size)
    memcpy (array, from, view->count * size);
  *count = array != NULL ? (uint32_t)view->count : 0;
  free (unpacked);
  return array;
}

#define COPY(owner, field, n_field, KIND)                                                      \
  ((owner)->arrays[(owner)->n_arrays++]                                                        \
   = (void *)((owner)->it.field                                                                \
              = td__tape_copy_section (sections, TD_TAPE_SECTION_##KIND,                       \
                                       sizeof *(owner)->it.field, &(owner)->it.n_field)))

/* --------------------------------------------------------------------------- parts */

static bool
take_structure (TapePart *part, const TapeSections *sections)
{
  COPY (part, events, n_events, EVENTS);
  COPY (part, ins, n_ins, INS);
  COPY (part, outs, n_outs, OUTS);
  COPY (part, vars, n_vars, VARS);
  COPY (part, dims, n_dims, DIMS);
  COPY (part, spans, n_spans, SPANS);
  COPY (part, grads, n_grads, GRADS);
  return td__tape_structure_ok (&part->it);
}

static bool
take_memory (TapePart *part, const TapeSections *sections)
{
  const TapeSectionView *view = &sections->at[TD_TAPE_SECTION_TOTALS];
  TdTapeTotals totals = { 0 };

  if (view->count > 0 && !view->packed)
    td__tape_take (&totals, sizeof totals, view->bytes, view->stride);
  memcpy (part->it.start_bytes, totals.start_bytes, sizeof totals.start_bytes);
  part->it.peak_bytes = totals.peak_bytes;
  part->it.end_bytes = totals.end_bytes;
  COPY (part, memory, n_memory, MEMORY);
  COPY (part, blocks, n_blocks, BLOCKS);
  return true;
}

typedef bool (*TakePart) (TapePart *part, const TapeSections *sections);

enum
{
  PART_STRUCTURE,
  PART_MEMORY
};

static const struct
{
  unsigned frame;
  size_t head;
  TakePart take;
} part_kinds[] = {
  { TD_TAPE_FRAME_STRUCTURE, sizeof (TdTapeStructureHead), take_structure },
  { TD_TAPE_FRAME_MEMORY, sizeof (TdTapeMemoryHead), take_memory },
};

static TapePart *
part_new (unsigned kind, uint32_t id, const TapeSections *sections)
{
  TapePart *part = calloc (1, sizeof *part);

  if (part == NULL)
    return NULL;
  atomic_init (&part->refs, 1);
  part->id = id;
  if (!part_kinds[kind].take (part, sections))
    {
      td__tape_part_unref (part);
      return NULL;
    }
  return part;
}

void
td_tape_reader_skip_memory (TdTapeReader *r, bool skips)
{
  r->skips_memory = skips;
}

/* What the reader does not want is not there. */
static bool
find_wanted (const TdTapeReader *r, const char *bytes, size_t n, size_t head,
             TapeSections *sections)
{
  if (!td__tape_find_sections (bytes, n, head, sections))
    return false;
  if (r->skips_memory)
    sections->at[TD_TAPE_SECTION_MEMORY].count = sections->at[TD_TAPE_SECTION_BLOCKS].count
        = sections->at[TD_TAPE_SECTION_ADDRESSES].count = 0;
  return true;
}

/* The part with this id, from the cache or the file. */
static TapePart *
part_get (TdTapeReader *r, unsigned kind, uint32_t id)
{
  TapePart **cached = &r->cache[kind][id % TAPE_CACHE], *part = NULL;
  const bool is_without_memory = kind == PART_MEMORY && r->skips_memory;
  const TapeArray *spots = kind == PART_STRUCTURE ? &r->structure_spots : &r->memory_spots;
  const TapeSpot *spot = id <= spots->n ? (const TapeSpot *)spots->items + (id - 1) : NULL;
  TdTapeFrame frame;
  TapeSections sections;
  char *bytes;

  if (*cached == NULL || (*cached)->id != id || is_without_memory)
    {
      if (spot == NULL || spot->len == 0)
        return NULL;
      bytes = td__tape_read_frame (r->fd, spot->offset, spot->len, part_kinds[kind].frame,
                                   &frame);
      if (bytes == NULL)
        return NULL;
      if (find_wanted (r, bytes, frame.len - sizeof frame, part_kinds[kind].head, &sections))
        part = part_new (kind, id, &sections);
      if (part != NULL && kind == PART_STRUCTURE)
        {
          TdTapeStructureHead head;

          memcpy (&head, bytes, sizeof head);
          part->it.fingerprint = head.fingerprint;
          part->it.fingerprint_dims = head.fingerprint_dims;
        }
      free (bytes);
      if (part == NULL || part->it.n_memory > TAPE_MANY_MEMORY || is_without_memory)
        return part;
      part->shared = true;
      td__tape_part_unref (*cached);
      *cached = part;
    }
  atomic_fetch_add (&(*cached)->refs, 1);
  return *cached;
}

static void
share_structure (Loaded *l)
{
  const TdTapeIteration *from = &l->structure->it;
  TdTapeIteration *it = &l->it;

  it->events = from->events;
  it->n_events = from->n_events;
  it->ins = from->ins;
  it->n_ins = from->n_ins;
  it->outs = from->outs;
  it->n_outs = from->n_outs;
  it->vars = from->vars;
  it->n_vars = from->n_vars;
  it->dims = from->dims;
  it->n_dims = from->n_dims;
  it->spans = from->spans;
  it->n_spans = from->n_spans;
  it->grads = from->grads;
  it->n_grads = from->n_grads;
  if (it->structure != 0)
    {
      it->fingerprint = from->fingerprint;
      it->fingerprint_dims = from->fingerprint_dims;
    }
}

/* ------------------------------------------------------------- variables of memory */

typedef struct
{
  uint64_t id;
  uint32_t var;
} IdOf;

static int
by_id (const void *a, const void *b)
{
  const IdOf *x = a, *y = b;

  return x->id < y->id ? -1 : x->id > y->id;
}

/* The variables by their ids; NULL: no memory. Owner: the caller. */
static IdOf *
sort_ids (const TdTapeIteration *it)
{
  IdOf *ids = malloc ((it->n_vars + 1) * sizeof *ids);
  bool sorted = true; /* they are, but for those of other iterations */

  for (uint32_t i = 0; ids != NULL && i < it->n_vars; i++)
    {
      ids[i] = (IdOf){ .id = td_tape_var_id (it, i), .var = i };
      sorted = sorted && (i == 0 || ids[i - 1].id <= ids[i].id);
    }
  if (ids != NULL && !sorted)
    qsort (ids, it->n_vars, sizeof *ids, by_id);
  return ids;
}

/* Where the memory records of the iteration go: to a copy of those that others share. */
static TdTapeMemory *
own_memory (Loaded *l)
{
  const TdTapeIteration *from = &l->memory->it;

  if (!l->memory->shared)
    return (TdTapeMemory *)(uintptr_t)from->memory;
  return l->arrays[l->n_arrays++] = malloc (from->n_memory * sizeof *from->memory);
}

/* Take the memory records: engine ids instead of relative ones, and the variable's index. */
static bool
take_over_memory (Loaded *l)
{
  const TdTapeIteration *from = &l->memory->it;
  TdTapeIteration *it = &l->it;
  TdTapeMemory *memory;
  IdOf *ids;

  if (it->n_addresses == 0) /* else blocks came with the addresses */
    {
      it->blocks = from->blocks;
      it->n_blocks = from->n_blocks;
    }
  it->peak_bytes = from->peak_bytes;
  it->end_bytes = from->end_bytes;
  memcpy (it->start_bytes, from->start_bytes, sizeof it->start_bytes);
  if (from->n_memory == 0)
    return true;
  memory = own_memory (l);
  ids = sort_ids (it);
  if (memory == NULL || ids == NULL)
    {
      free (ids);
      return false;
    }
  for (uint32_t i = 0; i < from->n_memory; i++)
    {
      TdTapeMemory *m = &memory[i];
      IdOf *found, wanted;

      *m = from->memory[i];
      if (i < it->n_addresses)
        m->address = it->addresses[i];
      m->buffer = m->buffer == TD_TAPE_NO_ID ? 0 : m->buffer + it->first_buffer;
      m->variable = m->variable == TD_TAPE_NO_ID ? 0 : m->variable + it->first_id;
      wanted.id = m->variable;
      found = m->variable ? bsearch (&wanted, ids, it->n_vars, sizeof *ids, by_id) : NULL;
      m->var = found ? found->var : TD_TAPE_NONE;
    }
  free (ids);
  it->memory = memory;
  it->n_memory = from->n_memory;
  return true;
}

/* ----------------------------------------------------------------------- iterations */

static bool
take_times (Loaded *l, const TapeSections *sections, uint32_t shift)
{
  TdTapeIteration *it = &l->it;
  uint64_t *start, *duration, at = 0;
  TdTapeTime *times;
  uint32_t n;

  if (it->n_events == 0)
    return true;
  start = calloc (it->n_events, sizeof *start);
  duration = calloc (it->n_events, sizeof *duration);
  l->arrays[l->n_arrays++] = start;
  l->arrays[l->n_arrays++] = duration;
  if (start == NULL || duration == NULL || shift > 31)
    return false;
  times = td__tape_copy_section (sections, TD_TAPE_SECTION_TIMES, sizeof *times, &n);
  for (uint32_t i = 0; i < it->n_events; i++)
    {
      const TdTapeTime time = i < n ? times[i] : (TdTapeTime){ 0 };

      at += time.delta;
      start[i] = at << shift;
      duration[i] = (uint64_t)time.duration << shift;
    }
  free (times);
  it->event_start_ns = start;
  it->event_duration_ns = duration;
  return true;
}

/* The reports of this iteration, out of the curves. */
static void
take_reports (TdTapeReader *r, Loaded *l)
{
  const TdTapeReport *all = r->reports.items;
  uint32_t lo = 0, hi = r->reports.n, n = 0;
  TdTapeReport *own;

  while (r->reports_sorted && lo < hi)
    {
      uint32_t mid = lo + (hi - lo) / 2;

      if (all[mid].iteration < l->it.number)
        lo = mid + 1;
      else
        hi = mid;
    }
  for (uint32_t i = lo; i < r->reports.n; i++)
    if (all[i].iteration == l->it.number)
      n++;
    else if (r->reports_sorted)
      break;
  if (n == 0 || (own = malloc (n * sizeof *own)) == NULL)
    return;
  l->arrays[l->n_arrays++] = own;
  l->it.reports = own;
  for (uint32_t i = lo; i < r->reports.n && l->it.n_reports < n; i++)
    if (all[i].iteration == l->it.number)
      own[l->it.n_reports++] = all[i];
}

/* Events are shared with other iterations: those that differ, in attributes or by an error that
 * was found later, are a copy. */
static void
apply_changes (const TdTapeReader *r, Loaded *l)
{
  TdTapeFault *faults = td__tape_copy_faults (r, l->it.number, &l->it.n_faults);
  TdTapeEvent *events;

  l->arrays[l->n_arrays++] = faults;
  l->it.faults = faults;
  if (l->it.n_faults > 0)
    l->it.flags |= TD_TAPE_ITERATION_ERROR;
  if ((l->it.n_attr_changes == 0 && l->it.n_faults == 0) || l->it.n_events == 0
      || (events = malloc (l->it.n_events * sizeof *events)) == NULL)
    return;
  memcpy (events, l->it.events, l->it.n_events * sizeof *events);
  for (uint32_t i = 0; i < l->it.n_attr_changes; i++)
    if (l->it.attr_changes[i].event < l->it.n_events)
      events[l->it.attr_changes[i].event].attrs = l->it.attr_changes[i].attrs;
  for (uint32_t i = 0; i < l->it.n_faults; i++)
    if (faults[i].event < l->it.n_events)
      events[faults[i].event].flags |= TD_TAPE_EVENT_FAILED | TD_TAPE_EVENT_FAULT;
  l->arrays[l->n_arrays++] = events;
  l->it.events = events;
}

static void
take_stop (Loaded *l, const TapeSections *sections)
{
  const TapeSectionView *view = &sections->at[TD_TAPE_SECTION_STOP];

  if (view->count > 0 && !view->packed)
    td__tape_take (&l->it.stop, sizeof l->it.stop, view->bytes, view->stride);
}

/* A walk over objects must not need to look where it goes.  What is broken is not there. */
static void
drop_broken_objects (TdTapeIteration *it)
{
  bool good = true;

  for (uint32_t i = 0; good && i < it->n_objects; i++)
    good
        = it->objects[i].kind < TD_TAPE_N_OBJECTS
          && it->objects[i].first_reference <= it->n_references
          && it->objects[i].first_reference >= (i > 0 ? it->objects[i - 1].first_reference : 0);
  for (uint32_t i = 0; good && i < it->n_references; i++)
    good = it->references[i] < it->n_objects;
  if (!good)
    it->n_objects = it->n_references = 0;
}

static bool
fill (TdTapeReader *r, Loaded *l, const TdTapeIterationHead *head, const TapeSections *sections)
{
  l->it = (TdTapeIteration){ .size = sizeof l->it,
                             .flags = head->flags,
                             .number = head->number,
                             .label = head->label,
                             .structure = head->structure,
                             .memory_profile = head->memory,
                             .fingerprint = head->fingerprint,
                             .fingerprint_dims = head->fingerprint_dims,
                             .start_ns = head->start_ns,
                             .duration_ns = head->duration_ns,
                             .first_id = head->first_id,
                             .first_buffer = head->first_buffer };
  l->structure = head->structure ? part_get (r, PART_STRUCTURE, head->structure)
                                 : part_new (PART_STRUCTURE, 0, sections);
  l->memory = head->memory ? part_get (r, PART_MEMORY, head->memory)
                           : part_new (PART_MEMORY, 0, sections);
  if (l->structure == NULL || l->memory == NULL)
    return false;
  share_structure (l);
  COPY (l, externals, n_externals, EXTERNALS);
  COPY (l, host_reads, n_host_reads, HOST_READS);
  COPY (l, stats, n_stats, STATS);
  COPY (l, tensors, n_tensors, TENSORS);
  COPY (l, notices, n_notices, NOTICES);
  COPY (l, addresses, n_addresses, ADDRESSES);
  if (l->it.n_addresses > 0)
    COPY (l, blocks, n_blocks, BLOCKS);
  COPY (l, attr_changes, n_attr_changes, ATTRS);
  COPY (l, statics, n_statics, STATICS);
  COPY (l, runs, n_runs, RUNS);
  COPY (l, traced, n_traced, TRACED);
  COPY (l, held, n_held, HELD);
  COPY (l, devices, n_devices, DEVICES);
  COPY (l, device_times, n_device_times, DEVICE_TIMES);
  COPY (l, objects, n_objects, OBJECTS);
  COPY (l, references, n_references, REFERENCES);
  drop_broken_objects (&l->it);
  COPY (l, pools, n_pools, POOLS);
  COPY (l, copies, n_copies, COPIES);
  COPY (l, calls, n_calls, CALLS);
  COPY (l, call_words, n_call_words, CALL_WORDS);
  COPY (l, collectives, n_collectives, COLLECTIVES);
  COPY (l, rank_sums, n_rank_sums, RANK_SUMS);
  COPY (l, stack_frames, n_stack_frames, STACK_FRAMES);
  COPY (l, event_stacks, n_event_stacks, EVENT_STACKS);
  COPY (l, external_stacks, n_external_stacks, EXTERNAL_STACKS);
  apply_changes (r, l);
  take_stop (l, sections);
  take_reports (r, l);
  return take_times (l, sections, head->time_shift) && take_over_memory (l)
         && td__tape_instance_ok (&l->it);
}

const TdTapeIteration *
td__tape_iteration_from (TdTapeReader *r, const char *bytes, size_t n, char *error,
                         size_t n_error)
{
  Loaded *l = calloc (1, sizeof *l);
  TdTapeIterationHead head;
  TapeSections sections;

  td__tape_take (&head, sizeof head, bytes, n);
  if (l != NULL && find_wanted (r, bytes, n, sizeof head, &sections)
      && fill (r, l, &head, &sections))
    return &l->it;
  snprintf (error, n_error, l ? "the record of this iteration is damaged" : "no memory");
  td_tape_iteration_free (l ? &l->it : NULL);
  return NULL;
}

/* The payload of an iteration's frame; NULL when it is gone, with the reason. Owner: the
 * caller.
 */
static char *
read_payload (TdTapeReader *r, const TdTapeSummary *s, size_t *n_bytes, char *error, size_t n)
{
  TdTapeFrame frame;
  char *bytes = NULL;

  if (s->offset <= r->file_bytes && !(s->flags & TD_TAPE_ITERATION_NOT_STORED))
    bytes = td__tape_read_frame (r->fd, s->offset, r->file_bytes - s->offset,
                                 TD_TAPE_FRAME_ITERATION, &frame);
  if (bytes == NULL || frame.seq != s->seq || !td__tape_frame_is_current (r, s->offset, &frame))
    {
      td__tape_say_gone (r, s, error, n);
      free (bytes);
      return NULL;
    }
  *n_bytes = frame.len - sizeof frame;
  return bytes;
}

static const TdTapeIteration *
load_frame (TdTapeReader *r, const TdTapeSummary *s, char *error, size_t n)
{
  const TdTapeIteration *it;
  size_t n_bytes;
  char *bytes = read_payload (r, s, &n_bytes, error, n), what[80];

  if (bytes == NULL)
    return NULL;
  it = td__tape_iteration_from (r, bytes, n_bytes, what, sizeof what);
  if (it == NULL)
    snprintf (error, n, "iteration %llu: %s", (unsigned long long)s->number, what);
  free (bytes);
  return it;
}

const TdTapeIteration *
td_tape_iteration_load_end (TdTapeReader *r, const TdTapeSummary *row, char *error, size_t n)
{
  size_t n_bytes;
  char *bytes = read_payload (r, row, &n_bytes, error, n);
  Loaded *l = bytes ? calloc (1, sizeof *l) : NULL;
  TapeSections found;
  const TapeSections *sections = &found;

  if (bytes == NULL)
    return NULL;
  if (l != NULL
      && td__tape_find_sections (bytes, n_bytes, sizeof (TdTapeIterationHead), &found))
    {
      l->it.size = sizeof l->it;
      l->it.flags = row->flags;
      l->it.number = row->number;
      COPY (l, held, n_held, HELD);
      COPY (l, devices, n_devices, DEVICES);
      COPY (l, objects, n_objects, OBJECTS);
      COPY (l, references, n_references, REFERENCES);
      COPY (l, pools, n_pools, POOLS);
      drop_broken_objects (&l->it);
      free (bytes);
      return &l->it;
    }
  snprintf (error, n, l ? "the record of this iteration is damaged" : "no memory");
  free (l);
  free (bytes);
  return NULL;
}

/* Say why there is not even a summary: it ran and was thinned, or it never was on the tape. */
static void
say_missing (TdTapeReader *r, uint64_t number, char *error, size_t n)
{
  const TdTapeSummary *rows = r->summaries.items;
  const TdTapeThinning t = td_tape_reader_thinning (r);
  const uint32_t n_rows = r->summaries.n;
  const uint64_t last = n_rows > 0 ? rows[n_rows - 1].number : 0,
                 first = r->thinned || n_rows == 0 ? r->first_number : rows[0].number;

  if (td__tape_say_damage (r, number, error, n))
    return;
  if (n_rows == 0)
    snprintf (error, n, "no iteration %llu: the tape has none", (unsigned long long)number);
  else if (number > first && number < last && t.stride <= 1 && !r->thinned
           && t.n_iterations <= n_rows) /* all that were recorded have one */
    snprintf (error, n, "iteration %llu was not recorded: of %llu to %llu the tape has %lu",
              (unsigned long long)number, (unsigned long long)first, (unsigned long long)last,
              (unsigned long)n_rows);
  else if (number > first && number < last)
    snprintf (error, n,
              "iteration %llu ran, and was thinned: nothing of it was kept, of the older ones "
              "one in %llu has a summary",
              (unsigned long long)number, (unsigned long long)t.stride);
  else
    snprintf (error, n, "no iteration %llu: those of the tape are %llu to %llu",
              (unsigned long long)number, (unsigned long long)first, (unsigned long long)last);
}

const TdTapeIteration *
td_tape_iteration_load (TdTapeReader *r, uint64_t number, char *error, size_t n)
{
  int64_t i = td_tape_reader_find (r, number);
  const TdTapeIteration *live;

  if (i >= 0)
    return load_frame (r, (const TdTapeSummary *)r->summaries.items + i, error, n);
  live = td_tape_reader_live (r);
  if (live != NULL && live->number == number)
    return live;
  td_tape_iteration_free (live);
  say_missing (r, number, error, n);
  return NULL;
}

const TdTapeIteration *
td_tape_iteration_load_row (TdTapeReader *r, const TdTapeSummary *row, char *error, size_t n)
{
  return load_frame (r, row, error, n);
}

const TdTapeIteration *
td_tape_iteration_load_structure (TdTapeReader *r, uint32_t structure, char *error, size_t n)
{
  const TdTapeSummary *rows = r->summaries.items;

  for (uint32_t i = 0; i < r->summaries.n; i++)
    if (rows[i].structure == structure && td_tape_reader_stored (r, i))
      return load_frame (r, &rows[i], error, n);
  snprintf (error, n, "no iteration with structure %u is kept", structure);
  return NULL;
}

int64_t
td_tape_tensor_read (TdTapeReader *r, const TdTapeTensorRef *ref, TdTapeTensorRecord *record,
                     void *data, uint64_t offset, uint64_t max_bytes)
{
  TdTapeFrame frame;
  uint64_t start = ref->offset + sizeof frame + sizeof *record, bytes;

  if (ref->offset > r->file_bytes || !td__tape_pread (r->fd, &frame, sizeof frame, ref->offset)
      || frame.seq != ref->seq || frame.type != TD_TAPE_FRAME_TENSOR
      || frame.len < sizeof frame + sizeof *record
      || !td__tape_pread (r->fd, record, sizeof *record, ref->offset + sizeof frame)
      || record->bytes > frame.len - sizeof frame - sizeof *record
      || record->ndim > TD_TAPE_MAX_NDIM)
    return -1;
  if (offset >= record->bytes)
    return 0;
  bytes = record->bytes - offset < max_bytes ? record->bytes - offset : max_bytes;
  if (!td__tape_pread (r->fd, data, (size_t)bytes, start + offset))
    return -1;
  /* Was it recycled while it was read, or is it damaged? */
  if (!td__tape_pread (r->fd, &frame, sizeof frame, ref->offset) || frame.seq != ref->seq
      || (offset == 0 && !td__tape_tensor_valid (&frame, record, data, bytes)))
    return -1;
  return (int64_t)bytes;
}
