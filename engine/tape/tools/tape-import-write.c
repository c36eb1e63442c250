/* Snapshots of PyTorch's memory: from entries and blocks to the one iteration of a tape.
 *
 * The trace is gone through twice.  First to find what it gives back without having taken it:
 * that was there before, as were blocks at the end that the trace never speaks of.  Then to
 * make events, variables and records of memory. SPDX-License-Identifier: MIT */
#include "tape-import.h"
#include "../read/tape-oom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const entry_names[TAPE_N_ENTRIES] = {
  [TAPE_ENTRY_ALLOC] = "alloc",
  [TAPE_ENTRY_FREE_REQUESTED] = "free_requested",
  [TAPE_ENTRY_FREE] = "free",
  [TAPE_ENTRY_SEGMENT_ALLOC] = "segment_alloc",
  [TAPE_ENTRY_SEGMENT_FREE] = "segment_free",
  [TAPE_ENTRY_SEGMENT_MAP] = "segment_map",
  [TAPE_ENTRY_SEGMENT_UNMAP] = "segment_unmap",
  [TAPE_ENTRY_SNAPSHOT] = "snapshot",
  [TAPE_ENTRY_OOM] = "out_of_memory",
  [TAPE_ENTRY_OTHER] = "other",
  [TAPE_ENTRY_ANNOTATION] = "annotation",
};

/* A block that was there before the trace. */
typedef struct
{
  uint64_t at, bytes, requested;
  TapePlace place;
  uint8_t device;
} StartBlock;

/* An entry that says that memory ran out, and its event. */
typedef struct
{
  TapeEntry entry;
  uint32_t event;
} Oom;

typedef struct
{
  TapeSnapshot *s;
  TdTapeImport *what;
  TapeAddresses live;
  StartBlock *starts;
  uint64_t n_starts, room_starts;

  TdTapeEvent *events;
  TdTapeVar *vars;
  TdTapeMemory *memory;
  TdTapeBlock *blocks;
  uint64_t *start_ns, *duration_ns, *externals;
  uint32_t *event_stacks, *external_stacks;
  uint32_t *ins, *outs, *counts; /* how often each site was met, by kind */
  uint32_t *record;              /* of each variable: its ALLOC, TD_TAPE_NONE: at the start */
  int64_t *dims;
  TdTapeDevice devices[UINT8_MAX + 1];
  uint32_t n_devices, n_ooms;
  Oom *ooms;
  uint64_t n_noted, room_noted; /* of them */
  TdTapeIteration it;
} Build;

/* A snapshot has numbers for them, and no names. */
static const char *
device_name (unsigned device, char name[32])
{
  snprintf (name, 32, "device:%u", device - 1);
  return name;
}

/* What the first walk knows of an address. */
enum
{
  STATE_LIVE = 1,
  STATE_FREE
};

static uint32_t *
place (Build *b, unsigned device, uint64_t at)
{
  return td__tape_address (&b->live, at ^ (uint64_t)device << 56);
}

/* ------------------------------------------------------------------------------- order */

static uint64_t
end_of_device (const TapeSnapshot *s, uint64_t from)
{
  uint64_t to = from;

  while (to < s->n_entries && s->entries[to].device == s->entries[from].device)
    to++;
  return to;
}

/* Traces of several devices as one, by their times.  Within a device the order is the trace's.
 */
static bool
merge (TapeSnapshot *s)
{
  uint64_t next[UINT8_MAX + 1], end[UINT8_MAX + 1], n = 0;
  TapeEntry *merged;

  for (uint64_t from = 0; from < s->n_entries; from = end[n++])
    {
      next[n] = from;
      end[n] = end_of_device (s, from);
    }
  if (n < 2 || !s->timed)
    return true;
  merged = malloc (s->n_entries * sizeof *merged);
  if (merged == NULL)
    return false;
  for (uint64_t k = 0; k < s->n_entries; k++)
    {
      uint64_t best = n;

      for (uint64_t i = 0; i < n; i++)
        if (next[i] < end[i]
            && (best == n || s->entries[next[i]].time_us < s->entries[next[best]].time_us))
          best = i;
      merged[k] = s->entries[next[best]++];
    }
  free (s->entries);
  s->entries = merged;
  s->room_entries = s->n_entries;
  return true;
}

/* A free that was requested and completes at once is one event. */
static void
join_frees (TapeSnapshot *s)
{
  uint64_t kept = 0;

  for (uint64_t i = 0; i < s->n_entries; i++)
    {
      const TapeEntry *e = &s->entries[i], *after = e + 1;

      if (e->kind == TAPE_ENTRY_FREE_REQUESTED && i + 1 < s->n_entries
          && after->kind == TAPE_ENTRY_FREE && after->at == e->at && after->device == e->device)
        continue;
      s->entries[kept++] = *e;
    }
  s->n_entries = kept;
}

/* -------------------------------------------------------------------------- first walk */

static bool
add_start (Build *b, const StartBlock *block)
{
  if (!td__tape_reserve (&b->starts, &b->room_starts, b->n_starts + 1, sizeof *b->starts))
    return false;
  b->starts[b->n_starts++] = *block;
  return true;
}

static bool
find_starts (Build *b)
{
  const TapeSnapshot *s = b->s;

  for (uint64_t i = 0; i < s->n_entries; i++)
    {
      const TapeEntry *e = &s->entries[i];
      uint32_t *state;

      if (e->kind != TAPE_ENTRY_ALLOC && e->kind != TAPE_ENTRY_FREE)
        continue;
      state = place (b, e->device, e->at);
      /* Who allocated it, the trace does not say. */
      if (e->kind == TAPE_ENTRY_FREE && *state == UINT32_MAX
          && !add_start (b, &(StartBlock){ .at = e->at,
                                           .bytes = e->bytes,
                                           .requested = e->bytes,
                                           .place.category = e->place.category,
                                           .device = e->device }))
        return false;
      *state = e->kind == TAPE_ENTRY_ALLOC ? STATE_LIVE : STATE_FREE;
    }
  for (uint64_t i = 0; i < s->n_blocks; i++)
    {
      const TapeEndBlock *k = &s->blocks[i];
      uint32_t *state = place (b, k->device, k->at);

      if (*state == UINT32_MAX
          && !add_start (b, &(StartBlock){ .at = k->at,
                                           .bytes = k->bytes,
                                           .requested = k->requested,
                                           .place = k->place,
                                           .device = k->device }))
        return false;
      b->what->n_unmatched += *state == STATE_FREE;
      *state = STATE_LIVE; /* the same address twice: once is enough */
    }
  return true;
}

/* ------------------------------------------------------------------------- second walk */

static bool
take_room (Build *b)
{
  const uint64_t n = b->s->n_entries, starts = b->n_starts;
  uint64_t allocs = 0;

  for (uint64_t i = 0; i < n; i++)
    allocs += b->s->entries[i].kind == TAPE_ENTRY_ALLOC;
  b->events = calloc (n + 1, sizeof *b->events);
  b->start_ns = calloc (n + 1, sizeof *b->start_ns);
  b->duration_ns = calloc (n + 1, sizeof *b->duration_ns);
  b->memory = calloc (n + allocs + 1, sizeof *b->memory); /* an alloc may free first */
  b->event_stacks = calloc (n + 1, sizeof *b->event_stacks);
  b->external_stacks = calloc (starts + 1, sizeof *b->external_stacks);
  b->ins = calloc (n + 1, sizeof *b->ins);
  b->outs = calloc (n + 1, sizeof *b->outs);
  b->vars = calloc (starts + allocs + 1, sizeof *b->vars);
  b->dims = calloc (starts + allocs + 1, sizeof *b->dims);
  b->record = calloc (starts + allocs + 1, sizeof *b->record);
  b->blocks = calloc (starts + 1, sizeof *b->blocks);
  b->externals = calloc (starts + 1, sizeof *b->externals);
  b->counts = calloc ((b->s->room_sites + 1) * TAPE_N_ENTRIES, sizeof *b->counts);
  return b->event_stacks != NULL && b->external_stacks != NULL && b->events != NULL
         && b->start_ns != NULL && b->duration_ns != NULL && b->memory != NULL && b->ins != NULL
         && b->outs != NULL && b->vars != NULL && b->dims != NULL && b->record != NULL
         && b->blocks != NULL && b->externals != NULL && b->counts != NULL;
}

/* A block as a variable: bytes, that is all that is known of what is in it. */
static uint32_t
add_var (Build *b, uint64_t requested, const TapePlace *where, unsigned device)
{
  const uint32_t k = b->it.n_vars++;

  b->dims[k] = (int64_t)requested;
  b->vars[k] = (TdTapeVar){ .bytes = requested,
                            .producer = -1,
                            .path = where->path,
                            .site = where->site,
                            .first_dim = k,
                            .dtype = TD_TAPE_U8,
                            .ndim = 1,
                            .category = (uint8_t)where->category,
                            .device = (uint8_t)device };
  b->record[k] = TD_TAPE_NONE;
  return k;
}

static void
add_starts (Build *b)
{
  for (uint64_t i = 0; i < b->n_starts; i++)
    {
      const StartBlock *s = &b->starts[i];
      const uint32_t k = add_var (b, s->requested, &s->place, s->device);
      TdTapeVar *v = &b->vars[k];

      v->flags = TD_TAPE_VAR_EXTERNAL;
      v->id = (uint32_t)i;
      v->key = td_tape_hash (td_tape_hash_bytes (0, "start", 5),
                             s->at ^ (uint64_t)s->device << 56);
      b->externals[i] = i + 1;
      b->external_stacks[i] = s->place.stack;
      b->blocks[i] = (TdTapeBlock){ .address = s->at,
                                    .bytes = s->bytes,
                                    .key = v->key,
                                    .category = s->place.category,
                                    .device = s->device };
      b->it.start_bytes[s->place.category] += s->bytes;
      *place (b, s->device, s->at) = k;
    }
  b->it.n_externals = b->it.n_blocks = (uint32_t)b->n_starts;
  b->it.first_id = b->it.first_buffer = b->n_starts + 1;
}

/* Ids on tape are relative to the iteration's first; those from before it are below. */
static uint64_t
relative_id (const Build *b, uint32_t var)
{
  const TdTapeVar *v = &b->vars[var];

  return (v->flags & TD_TAPE_VAR_EXTERNAL) ? b->externals[v->id] - b->it.first_id : v->id;
}

static void
add_record (Build *b, unsigned kind, uint32_t var, uint64_t at, uint64_t bytes)
{
  b->memory[b->it.n_memory++] = (TdTapeMemory){ .address = at,
                                                .bytes = bytes,
                                                .buffer = relative_id (b, var),
                                                .variable = relative_id (b, var),
                                                .event = b->it.n_events,
                                                .var = var,
                                                .site = b->vars[var].site,
                                                .kind = (uint8_t)kind,
                                                .category = b->vars[var].category,
                                                .device = b->vars[var].device };
}

static uint64_t
bytes_of (const Build *b, uint32_t var)
{
  return b->record[var] != TD_TAPE_NONE ? b->memory[b->record[var]].bytes
                                        : b->blocks[b->vars[var].id].bytes;
}

static void
give_back (Build *b, uint32_t var, uint64_t at)
{
  add_record (b, TD_TAPE_MEMORY_FREE, var, at, bytes_of (b, var));
}

static void
add_alloc (Build *b, TdTapeEvent *event, const TapeEntry *e)
{
  uint32_t *live = place (b, e->device, e->at), var;

  if (*live != UINT32_MAX)
    { /* its free was lost */
      b->what->n_unmatched++;
      give_back (b, *live, e->at);
    }
  var = add_var (b, e->bytes, &e->place, e->device);
  b->vars[var].producer = (int32_t)b->it.n_events;
  b->vars[var].id = var - (uint32_t)b->n_starts;
  b->vars[var].key = td_tape_output_key (event->key, 0);
  b->record[var] = b->it.n_memory;
  *live = var;
  add_record (b, TD_TAPE_MEMORY_ALLOC, var, e->at, e->bytes);
  b->outs[b->it.n_outs++] = var;
  event->n_out = 1;
}

static void
add_free (Build *b, TdTapeEvent *event, const TapeEntry *e)
{
  uint32_t *live = place (b, e->device, e->at);

  if (*live == UINT32_MAX)
    {
      b->what->n_unmatched += e->kind == TAPE_ENTRY_FREE;
      return;
    }
  b->ins[b->it.n_ins++] = *live;
  event->n_in = 1;
  if (e->kind != TAPE_ENTRY_FREE)
    return;
  give_back (b, *live, e->at);
  *live = UINT32_MAX;
}

/* A key is what the same entry of another run has: kind, place, and how many there were. */
static uint64_t
key_of (Build *b, const TapeEntry *e)
{
  const uint32_t site = e->place.site;
  const uint64_t hash = site < b->s->room_sites && site != 0 ? b->s->site_hash[site] : 0;
  uint32_t *count = &b->counts[(uint64_t)site * TAPE_N_ENTRIES + e->kind];

  return td_tape_event_key (e->kind + 1u, e->device, hash, (*count)++, TD_TAPE_PHASE_FORWARD);
}

static bool
note_oom (Build *b, const TapeEntry *e)
{
  if (!td__tape_reserve (&b->ooms, &b->room_noted, b->n_noted + 1, sizeof *b->ooms))
    return false;
  b->ooms[b->n_noted++] = (Oom){ *e, b->it.n_events };
  return true;
}

/* The newest comes first then: an array gives memory back at its end. */
static void
turn_round (TapeSnapshot *s)
{
  for (uint64_t i = 0; i < s->n_entries / 2; i++)
    {
      const TapeEntry e = s->entries[i];

      s->entries[i] = s->entries[s->n_entries - 1 - i];
      s->entries[s->n_entries - 1 - i] = e;
    }
}

/* Take the oldest entry.  There are many, and their events take more room than they did. */
static TapeEntry
pop_entry (TapeSnapshot *s)
{
  const TapeEntry e = s->entries[--s->n_entries];
  TapeEntry *smaller;

  if (s->n_entries % 65536 != 0 || s->n_entries == 0)
    return e;
  smaller = realloc (s->entries, s->n_entries * sizeof *smaller);
  if (smaller != NULL)
    {
      s->entries = smaller;
      s->room_entries = s->n_entries;
    }
  return e;
}

static bool
add_events (Build *b)
{
  TapeSnapshot *s = b->s;
  const uint64_t n = s->n_entries, first_us = n > 0 ? s->entries[0].time_us : 0;
  uint64_t before = 0;

  turn_round (s);
  for (uint64_t i = 0; i < n; i++)
    {
      const TapeEntry e = pop_entry (s);
      TdTapeEvent *event = &b->events[i];

      *event = (TdTapeEvent){ .key = key_of (b, &e),
                              .opdef = s->opdefs[e.kind],
                              .site = e.place.site,
                              .path = e.place.path,
                              .attrs = e.attrs,
                              .twin = -1,
                              .span = TD_TAPE_NONE,
                              .first_in = b->it.n_ins,
                              .first_out = b->it.n_outs };
      b->event_stacks[i] = e.place.stack;
      if (s->timed)
        {
          const uint64_t us = e.time_us - first_us;

          before = e.time_us > first_us && us * 1000 > before ? us * 1000 : before;
          b->start_ns[i] = before;
        }
      if (e.kind == TAPE_ENTRY_ALLOC)
        add_alloc (b, event, &e);
      else if (e.kind == TAPE_ENTRY_FREE || e.kind == TAPE_ENTRY_FREE_REQUESTED)
        add_free (b, event, &e);
      else if (e.kind == TAPE_ENTRY_OOM)
        event->flags = TD_TAPE_EVENT_FAILED;
      if (e.kind == TAPE_ENTRY_OOM && !note_oom (b, &e))
        return false;
      b->it.n_events++;
    }
  b->it.duration_ns = before;
  return true;
}

/* -------------------------------------------------------------------------------- sums */

/* What is there at the end has the bytes of its block, with what rounding added. */
static void
take_end_bytes (Build *b)
{
  for (uint64_t i = 0; i < b->s->n_blocks; i++)
    {
      const TapeEndBlock *k = &b->s->blocks[i];
      const uint32_t var = *place (b, k->device, k->at);

      if (var == UINT32_MAX || b->record[var] == TD_TAPE_NONE)
        continue;
      b->memory[b->record[var]].bytes = k->bytes;
      b->vars[var].bytes = k->requested;
      b->dims[b->vars[var].first_dim] = (int64_t)k->requested;
    }
}

/* Which variables are there after so many records. */
static bool *
find_alive (const Build *b, uint32_t n_memory)
{
  bool *alive = calloc (b->it.n_vars + 1ull, sizeof *alive);

  for (uint64_t i = 0; alive != NULL && i < b->n_starts; i++)
    alive[i] = true; /* starts are the first variables */
  for (uint32_t i = 0; alive != NULL && i < n_memory; i++)
    alive[b->memory[i].var] = b->memory[i].kind == TD_TAPE_MEMORY_ALLOC;
  return alive;
}

static void
add_to_group (const Build *b, TdTapeOomHolder *group, uint32_t var)
{
  const TdTapeVar *v = &b->vars[var];
  const uint64_t bytes = bytes_of (b, var);

  if (bytes > group->largest_bytes)
    {
      group->largest_bytes = bytes;
      group->dims[0] = b->dims[v->first_dim];
      group->category = v->category;
      group->path = v->path;
    }
  group->site = v->site;
  group->bytes += bytes;
  group->n++;
  group->flags |= (v->flags & TD_TAPE_VAR_EXTERNAL) ? TD_TAPE_OOM_HOLDER_BEFORE : 0;
}

static int
larger_first (const void *a, const void *b)
{
  const TdTapeOomHolder *x = a, *y = b;

  if (x->bytes != y->bytes)
    return x->bytes < y->bytes ? 1 : -1;
  return (x->site > y->site) - (x->site < y->site);
}

/* Blocks of a device by the place that allocated them, the most bytes first.  Who keeps them
 * nobody said.  Returns how many groups there are; NULL in `*groups` where there is no memory.
 */
static uint32_t
group_alive (const Build *b, uint32_t n_memory, unsigned device, TdTapeOomHolder **groups)
{
  const uint64_t n_sites = b->s->room_sites + 1;
  const uint32_t op = td_tape_writer_string (b->s->w, entry_names[TAPE_ENTRY_ALLOC]);
  bool *alive = find_alive (b, n_memory);
  uint32_t n = 0;

  *groups = calloc (n_sites, sizeof **groups);
  for (uint32_t v = 0; alive != NULL && *groups != NULL && v < b->it.n_vars; v++)
    if (alive[v] && b->vars[v].device == device)
      add_to_group (b, &(*groups)[b->vars[v].site], v);
  free (alive);
  for (uint64_t i = 0; *groups != NULL && i < n_sites; i++)
    if ((*groups)[i].n > 0)
      {
        TdTapeOomHolder *g = &(*groups)[n++];

        *g = (*groups)[i];
        g->op = op;
        g->holder = UINT8_MAX;
        g->dtype = TD_TAPE_U8;
        g->ndim = 1;
      }
  if (n > 1)
    qsort (*groups, n, sizeof **groups, larger_first);
  return n;
}

static void
add_oom (Build *b, const Oom *noted, uint32_t n_memory, uint64_t live_bytes)
{
  const TapeEntry *e = &noted->entry;
  const uint32_t event = noted->event;
  TdTapeOomHolder *groups = NULL;
  TdTapeOom oom = { .time_ns = b->start_ns[event],
                    .asked_bytes = e->bytes,
                    .live_bytes = live_bytes,
                    .unnamed_bytes = live_bytes,
                    .event = event,
                    .n_memory = n_memory,
                    .device = e->device,
                    .op = td_tape_writer_string (b->s->w, entry_names[TAPE_ENTRY_ALLOC]),
                    .site = e->place.site,
                    .path = e->place.path,
                    .ndim = UINT8_MAX,
                    .flags = TD_TAPE_OOM_ITERATION | TD_TAPE_OOM_IMPORTED };
  uint32_t n;
  char name[32];

  if (b->n_ooms++ >= TD_TAPE_MAX_OOMS)
    return;
  oom.device_name = td_tape_writer_string (b->s->w, device_name (e->device, name));
  oom.n_groups = group_alive (b, n_memory, e->device, &groups);
  n = oom.n_groups < TD_TAPE_MAX_OOM_HOLDERS ? oom.n_groups : TD_TAPE_MAX_OOM_HOLDERS;
  for (uint32_t i = 0; i < oom.n_groups; i++)
    oom.category_bytes[groups[i].category] += groups[i].bytes;
  for (uint32_t i = 0; i < n; i++)
    oom.unnamed_bytes -= groups[i].bytes;
  td_tape_writer_oom (b->s->w, &oom, groups, n);
  free (groups);
}

static void
sum_up (Build *b)
{
  uint64_t now = 0, of_device[UINT8_MAX + 1] = { 0 };
  uint64_t k = 0;
  uint32_t m = 0;

  for (uint32_t i = 0; i < b->it.n_blocks; i++)
    {
      now += b->blocks[i].bytes;
      of_device[b->blocks[i].device] += b->blocks[i].bytes;
    }
  b->it.peak_bytes = now;
  for (uint32_t e = 0; e < b->it.n_events; e++)
    {
      for (; m < b->it.n_memory && b->memory[m].event <= e; m++)
        {
          const uint64_t bytes = b->memory[m].bytes;
          const bool alloc = b->memory[m].kind == TD_TAPE_MEMORY_ALLOC;

          now += alloc ? bytes : -bytes;
          of_device[b->memory[m].device] += alloc ? bytes : -bytes;
          if (now > b->it.peak_bytes)
            b->it.peak_bytes = now;
        }
      if (k < b->n_noted && b->ooms[k].event == e)
        {
          add_oom (b, &b->ooms[k], m, of_device[b->ooms[k].entry.device]);
          k++;
        }
    }
  b->it.end_bytes = now;
}

static void
list_devices (Build *b)
{
  for (uint32_t d = 1; d <= UINT8_MAX; d++)
    if (b->s->used[d])
      {
        TdTapeDevice *device = &b->devices[b->n_devices++];
        char name[32];

        *device
            = (TdTapeDevice){ .device = d,
                              .name = td_tape_writer_string (b->s->w, device_name (d, name)) };
        for (uint64_t i = 0; i < b->s->n_pools; i++)
          if (b->s->pools[i].device == d)
            {
              device->reserved_bytes += b->s->pools[i].reserved_bytes;
              device->live_bytes += b->s->pools[i].live_bytes;
            }
      }
}

static int
by_device (const void *a, const void *b)
{
  const TdTapePool *x = a, *y = b;

  return x->device != y->device ? (x->device > y->device ? 1 : -1) : (int)x->kind - y->kind;
}

static void
write_iteration (Build *b)
{
  TdTapeIteration *it = &b->it;
  TapeSnapshot *s = b->s;

  if (s->n_pools > 1)
    qsort (s->pools, s->n_pools, sizeof *s->pools, by_device);
  it->size = sizeof *it;
  it->flags = TD_TAPE_ITERATION_SNAPSHOT;
  it->events = b->events;
  it->event_start_ns = b->start_ns;
  it->event_duration_ns = b->duration_ns;
  it->ins = b->ins;
  it->outs = b->outs;
  it->vars = b->vars;
  it->dims = b->dims;
  it->n_dims = it->n_vars;
  it->externals = b->externals;
  it->memory = b->memory;
  it->stack_frames = s->frames;
  it->n_stack_frames = (uint32_t)s->n_frames;
  it->event_stacks = b->event_stacks;
  it->n_event_stacks = s->n_frames > 0 ? it->n_events : 0;
  it->external_stacks = b->external_stacks;
  it->n_external_stacks = s->n_frames > 0 ? it->n_externals : 0;
  it->blocks = b->blocks;
  it->devices = b->devices;
  it->n_devices = b->n_devices;
  it->pools = s->pools;
  it->n_pools = (uint32_t)s->n_pools;
  td_tape_writer_whole (s->w, it);
  td_tape_writer_end (s->w, &(TdTapeEnd){ .status = -1, .time_ns = it->duration_ns });
}

static void
define_entries (TapeSnapshot *s)
{
  for (int k = 0; k < TAPE_N_ENTRIES; k++)
    s->opdefs[k] = td_tape_writer_opdef (
        s->w, &(TdTapeOpdef){ .name = td_tape_writer_string (s->w, entry_names[k]),
                              .group = td_tape_writer_string (s->w, "memory"),
                              .n_in = -1,
                              .n_out = -1 });
}

static bool
build (Build *b)
{
  define_entries (b->s);
  if (!merge (b->s))
    return false;
  join_frees (b->s);
  if (!td__tape_addresses_init (&b->live, b->s->n_entries + b->s->n_blocks) || !find_starts (b))
    return false;
  td__tape_addresses_clear (&b->live);
  if (!td__tape_addresses_init (&b->live, b->s->n_entries + b->s->n_blocks) || !take_room (b))
    return false;
  add_starts (b);
  if (!add_events (b))
    return false;
  take_end_bytes (b);
  sum_up (b);
  list_devices (b);
  write_iteration (b);
  return true;
}

bool
td__tape_snapshot_write (TapeSnapshot *s, TdTapeImport *what, char *error, size_t n)
{
  Build b = { .s = s, .what = what };
  const uint64_t n_entries = s->n_entries + s->n_joined;
  const bool built = build (&b);
  const char *wrong = td_tape_writer_error (s->w);

  what->n_devices = b.n_devices;
  what->n_entries = n_entries;
  what->n_events = b.it.n_events;
  what->n_dropped = s->n_dropped;
  what->n_blocks = s->n_blocks;
  what->n_start = b.n_starts;
  what->peak_bytes = b.it.peak_bytes;
  what->end_bytes = b.it.end_bytes;
  if (!built || wrong != NULL)
    snprintf (error, n, "%s", built ? wrong : "no memory");
  td__tape_addresses_clear (&b.live);
  free (b.starts);
  free (b.events);
  free (b.start_ns);
  free (b.duration_ns);
  free (b.memory);
  free (b.ins);
  free (b.outs);
  free (b.vars);
  free (b.dims);
  free (b.record);
  free (b.blocks);
  free (b.externals);
  free (b.counts);
  free (b.event_stacks);
  free (b.external_stacks);
  free (b.ooms);
  return built && wrong == NULL;
}
