/* Snapshots of PyTorch's memory: from values of a pickle to entries and blocks.  Where what is
 * needed is missing the import ends with a line that says where; what is not known is passed
 * by. SPDX-License-Identifier: MIT */
#include "tape-import-take.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES 254                 /* 0 is the host */
#define MAX_ENTRIES ((uint64_t)1 << 24) /* newer ones, of longer traces */
#define MAX_ADDRESS ((uint64_t)1 << 56)
#define TRACE_SLACK ((uint64_t)1 << 20) /* entries that go at once when there are more */
#define MAX_METADATA 1024               /* bytes of a text that the program gave */
#define SEGMENTS_A_TEXT 256

static const char *const key_texts[TAPE_N_KEYS] = {
  [TAPE_KEY_SEGMENTS] = "segments",
  [TAPE_KEY_TRACES] = "device_traces",
  [TAPE_KEY_SETTINGS] = "allocator_settings",
  [TAPE_KEY_CONF] = "PYTORCH_CUDA_ALLOC_CONF",
  [TAPE_KEY_DEVICE] = "device",
  [TAPE_KEY_ADDRESS] = "address",
  [TAPE_KEY_TOTAL] = "total_size",
  [TAPE_KEY_STREAM] = "stream",
  [TAPE_KEY_POOL] = "segment_pool_id",
  [TAPE_KEY_BLOCKS] = "blocks",
  [TAPE_KEY_SIZE] = "size",
  [TAPE_KEY_REQUESTED] = "requested_size",
  [TAPE_KEY_STATE] = "state",
  [TAPE_KEY_FRAMES] = "frames",
  [TAPE_KEY_HISTORY] = "history",
  [TAPE_KEY_REAL_SIZE] = "real_size",
  [TAPE_KEY_ACTION] = "action",
  [TAPE_KEY_ADDR] = "addr",
  [TAPE_KEY_DEVICE_FREE] = "device_free",
  [TAPE_KEY_TIME] = "time_us",
  [TAPE_KEY_FILE] = "filename",
  [TAPE_KEY_LINE] = "line",
  [TAPE_KEY_NAME] = "name",
  [TAPE_KEY_METADATA] = "user_metadata",
  [TAPE_KEY_ANNOTATIONS] = "external_annotations",
  [TAPE_KEY_STAGE] = "stage",
  [TAPE_KEY_TYPE] = "segment_type",
};

static const struct
{
  const char *text;
  TapeEntryKind kind;
} actions[] = {
  { "alloc", TAPE_ENTRY_ALLOC },
  { "free_requested", TAPE_ENTRY_FREE_REQUESTED },
  { "free_completed", TAPE_ENTRY_FREE },
  { "free", TAPE_ENTRY_FREE },
  { "segment_alloc", TAPE_ENTRY_SEGMENT_ALLOC },
  { "segment_free", TAPE_ENTRY_SEGMENT_FREE },
  { "segment_map", TAPE_ENTRY_SEGMENT_MAP },
  { "segment_unmap", TAPE_ENTRY_SEGMENT_UNMAP },
  { "snapshot", TAPE_ENTRY_SNAPSHOT },
  { "oom", TAPE_ENTRY_OOM },
};

static_assert (sizeof actions / sizeof *actions == TAPE_N_ACTIONS, "a text for each action");

bool
td__tape_take_fail (TapeSnapshotTake *m, const char *format, ...)
{
  char what[128], inner[64] = "";
  va_list args;

  va_start (args, format);
  vsnprintf (what, sizeof what, format, args);
  va_end (args);
  if (m->inner >= 0)
    snprintf (inner, sizeof inner, m->in_trace ? "[%" PRId64 "]" : ".blocks[%" PRId64 "]",
              m->inner);
  snprintf (m->error, m->n_error, "%s[%" PRId64 "]%s: %s",
            m->in_trace ? "device_traces" : "segments", m->outer, inner, what);
  return false;
}

/* Parts that are shared could be looked at more often than the file is long. */
static bool
look (TapeSnapshotTake *m)
{
  return m->n_looked++ <= m->p->n_read
         || td__tape_take_fail (m, "more than the file has room for");
}

bool
td__tape_reserve (void *array, uint64_t *room, uint64_t n, size_t size)
{
  uint64_t wanted = *room < 64 ? 64 : *room;
  void *old, *bigger;

  if (n <= *room)
    return true;
  while (wanted < n)
    wanted += wanted / 2;
  memcpy (&old, array, sizeof old);
  bigger = wanted > SIZE_MAX / size ? NULL : realloc (old, wanted * size);
  if (bigger == NULL)
    return false;
  memcpy (array, &bigger, sizeof bigger);
  *room = wanted;
  return true;
}

TapeValue
td__tape_take_member (const TapeSnapshotTake *m, TapeValue dict, TapeKey key)
{
  return td__tape_member (m->p, dict, m->keys[key]);
}

bool
td__tape_take_number (const TapeSnapshotTake *m, TapeValue dict, TapeKey key, uint64_t *out)
{
  return td__tape_value_unsigned (m->p, td__tape_take_member (m, dict, key), out);
}

/* An address, or a number of bytes. */
static bool
need_number (TapeSnapshotTake *m, TapeValue dict, TapeKey key, uint64_t *out)
{
  *out = 0;
  return (td__tape_take_number (m, dict, key, out) && *out < MAX_ADDRESS)
         || td__tape_take_fail (m, "no %s, or none that can be", key_texts[key]);
}

/* --------------------------------------------------------------------------- segments */

/* The pool of a device, of those that a tape tells apart. */
static TdTapePool *
pool_of (TapeSnapshotTake *m, uint32_t device, TapeValue id)
{
  TapeSnapshot *s = m->s;
  unsigned kind = TD_TAPE_POOL_DEFAULT;
  uint64_t x;

  for (TapeItems i = td__tape_items (m->p, id); td__tape_next (m->p, &i);)
    if (td__tape_value_unsigned (m->p, i.value, &x) && x != 0)
      kind = TD_TAPE_POOL_PRIVATE;
  for (uint64_t i = 0; i < s->n_pools; i++)
    if (s->pools[i].device == device && s->pools[i].kind == kind)
      return &s->pools[i];
  if (!td__tape_reserve (&s->pools, &s->room_pools, s->n_pools + 1, sizeof *s->pools))
    return NULL;
  s->pools[s->n_pools] = (TdTapePool){ .device = device, .kind = (uint8_t)kind };
  return &s->pools[s->n_pools++];
}

/* Before frames and requested sizes were the block's own they were in its history. */
static TapeValue
newest_history (const TapeSnapshotTake *m, TapeValue block)
{
  TapeItems i = td__tape_items (m->p, td__tape_take_member (m, block, TAPE_KEY_HISTORY));

  return td__tape_next (m->p, &i) ? i.value : 0;
}

static bool
take_block (TapeSnapshotTake *m, TapeValue dict, uint32_t device, uint64_t *at, TdTapePool *in)
{
  TapeSnapshot *s = m->s;
  const char *state
      = td__tape_value_text (m->p, td__tape_take_member (m, dict, TAPE_KEY_STATE), NULL);
  const TapeValue history = newest_history (m, dict);
  const bool pending = strcmp (state, "active_pending_free") == 0
                       || strcmp (state, "active_awaiting_free") == 0;
  TapeEndBlock b = { .device = (uint8_t)device };
  uint64_t given;

  if (!need_number (m, dict, TAPE_KEY_SIZE, &b.bytes))
    return false;
  if (td__tape_take_number (m, dict, TAPE_KEY_ADDRESS, &given) && given < MAX_ADDRESS)
    *at = given;
  b.at = *at;
  *at += b.bytes;
  if (*at >= MAX_ADDRESS)
    return td__tape_take_fail (m, "its end is no address");
  if (!pending && strcmp (state, "active_allocated") != 0)
    {
      if (b.bytes > in->largest_free_bytes)
        in->largest_free_bytes = b.bytes;
      in->split_bytes += b.bytes; /* taken back where the segment has nothing in use */
      return true;
    }
  *(pending ? &in->pending_bytes : &in->live_bytes) += b.bytes;
  if (!td__tape_take_number (m, dict, TAPE_KEY_REQUESTED, &b.requested)
      && !td__tape_take_number (m, history, TAPE_KEY_REAL_SIZE, &b.requested))
    b.requested = b.bytes;
  if (b.requested > b.bytes)
    b.requested = b.bytes;
  if (!td__tape_take_frames (
          m, td__tape_take_member (m, dict, TAPE_KEY_FRAMES) != 0 ? dict : history, &b.place))
    return false;
  if (b.bytes == 0)
    return true;
  if (!td__tape_reserve (&s->blocks, &s->room_blocks, s->n_blocks + 1, sizeof *s->blocks))
    return td__tape_take_fail (m, "no memory");
  s->blocks[s->n_blocks++] = b;
  return true;
}

static bool
take_segment (TapeSnapshotTake *m, TapeValue dict, uint64_t k)
{
  uint64_t device = 0, at, total, n = 0;
  TdTapePool inside = { 0 }, *pool;

  m->outer = (int64_t)k;
  m->inner = -1;
  if (td__tape_value_kind (dict) != TAPE_VALUE_DICT)
    return td__tape_take_fail (m, "a dictionary expected");
  if (!need_number (m, dict, TAPE_KEY_ADDRESS, &at)
      || !need_number (m, dict, TAPE_KEY_TOTAL, &total))
    return false;
  if (td__tape_take_member (m, dict, TAPE_KEY_DEVICE) != 0
      && (!td__tape_take_number (m, dict, TAPE_KEY_DEVICE, &device) || device >= MAX_DEVICES))
    return td__tape_take_fail (m, "no device that can be");
  m->s->used[device + 1] = true;
  for (TapeItems i = td__tape_items (m->p, td__tape_take_member (m, dict, TAPE_KEY_BLOCKS));
       td__tape_next (m->p, &i); n++)
    {
      m->inner = (int64_t)n;
      if (m->s->n_blocks >= MAX_ENTRIES)
        return td__tape_take_fail (m, "more than %" PRIu64 " blocks", MAX_ENTRIES);
      if (!look (m) || !take_block (m, i.value, (uint32_t)device + 1, &at, &inside))
        return false;
    }
  m->inner = -1;
  pool = pool_of (m, (uint32_t)device + 1, td__tape_take_member (m, dict, TAPE_KEY_POOL));
  if (pool == NULL)
    return td__tape_take_fail (m, "no memory");
  pool->reserved_bytes += total;
  pool->live_bytes += inside.live_bytes;
  pool->pending_bytes += inside.pending_bytes;
  if (inside.live_bytes + inside.pending_bytes > 0)
    pool->split_bytes += inside.split_bytes;
  if (inside.largest_free_bytes > pool->largest_free_bytes)
    pool->largest_free_bytes = inside.largest_free_bytes;
  return true;
}

/* ----------------------------------------------------------------------------- traces */

static TapeEntryKind
kind_of (const TapeSnapshotTake *m, TapeValue action)
{
  for (int i = 0; i < TAPE_N_ACTIONS; i++)
    if (action != 0 && m->actions[i] == action)
      return actions[i].kind;
  return TAPE_ENTRY_OTHER;
}

/* The default stream goes without saying.  What the program has said comes last: it may be any
 * text. */
static uint32_t
attrs_text (TapeSnapshotTake *m, TapeValue dict)
{
  const char *said
      = td__tape_value_text (m->p, td__tape_take_member (m, dict, TAPE_KEY_METADATA), NULL);
  char text[40 + MAX_METADATA], cleaned[MAX_METADATA];
  uint64_t stream;
  int n = 0;

  if (td__tape_take_number (m, dict, TAPE_KEY_STREAM, &stream) && stream != 0)
    n = snprintf (text, sizeof text, stream < 4096 ? "stream=%" PRIu64 : "stream=0x%" PRIx64,
                  stream);
  if (*said != '\0')
    n += snprintf (text + n, sizeof text - (size_t)n, "%s" TD_TAPE_IMPORT_METADATA "%s",
                   n > 0 ? " " : "", td__tape_clean (said, cleaned, sizeof cleaned));
  return n > 0 ? td_tape_writer_string (m->s->w, text) : 0;
}

/* A free that was requested and completes at once is one. */
static bool
join_free (TapeSnapshot *s, const TapeEntry *e)
{
  TapeEntry *before = s->n_entries > 0 ? &s->entries[s->n_entries - 1] : NULL;

  if (before == NULL || e->kind != TAPE_ENTRY_FREE || before->at != e->at
      || before->kind != TAPE_ENTRY_FREE_REQUESTED || before->device != e->device)
    return false;
  *before = *e;
  before->is_joined = true;
  s->n_joined++;
  return true;
}

/* Let the first `n` entries from `from` on go. */
static void
drop (TapeSnapshot *s, uint64_t from, uint64_t n)
{
  for (uint64_t i = from; i < from + n; i++)
    {
      s->n_dropped += 1 + s->entries[i].is_joined;
      s->n_joined -= s->entries[i].is_joined;
    }
  memmove (&s->entries[from], &s->entries[from + n],
           (s->n_entries - from - n) * sizeof *s->entries);
  s->n_entries -= n;
}

static uint64_t
begin_of_device (const TapeSnapshot *s, uint64_t end)
{
  uint64_t from = end;

  while (from > 0 && s->entries[from - 1].device == s->entries[end - 1].device)
    from--;
  return from;
}

static bool
take_entry (TapeSnapshotTake *m, TapeValue dict, uint32_t device)
{
  TapeSnapshot *s = m->s;
  const TapeEntryKind kind = kind_of (m, td__tape_take_member (m, dict, TAPE_KEY_ACTION));
  TapeEntry e = { .device = (uint8_t)device, .kind = (uint8_t)kind };

  if (td__tape_value_kind (dict) != TAPE_VALUE_DICT)
    return td__tape_take_fail (m, "a dictionary expected");
  if (kind == TAPE_ENTRY_OOM || kind >= TAPE_ENTRY_SNAPSHOT)
    {
      td__tape_take_number (m, dict, TAPE_KEY_DEVICE_FREE, &e.at);
      td__tape_take_number (m, dict, TAPE_KEY_SIZE, &e.bytes);
    }
  else if (!need_number (m, dict, TAPE_KEY_ADDR, &e.at)
           || !need_number (m, dict, TAPE_KEY_SIZE, &e.bytes))
    return false;
  if (!td__tape_take_number (m, dict, TAPE_KEY_TIME, &e.time_us)
      || e.time_us > INT64_MAX / 1000)
    s->timed = false;
  if (!td__tape_take_frames (m, dict, &e.place))
    return false;
  e.attrs = attrs_text (m, dict);
  if (join_free (s, &e))
    return true;
  if (!td__tape_reserve (&s->entries, &s->room_entries, s->n_entries + 1, sizeof *s->entries))
    return td__tape_take_fail (m, "no memory");
  s->entries[s->n_entries++] = e;
  return true;
}

/* Entries come device by device.  A trace that never ends takes no more memory than one of
 * MAX_ENTRIES. */
static bool
take_next (TapeSnapshotTake *m, TapeValue dict, uint32_t device)
{
  TapeSnapshot *s = m->s;

  const int64_t newest = s->n_entries > 0 ? s->entries[s->n_entries - 1].device - 1 : -1;

  m->in_trace = true;
  m->outer = device;
  m->inner = -1;
  if (newest > (int64_t)device)
    return td__tape_take_fail (m, "it comes after those of other devices");
  if (newest != (int64_t)device)
    m->n_of_device = m->n_in_device = 0;
  m->inner = (int64_t)m->n_of_device++;
  if (device >= MAX_DEVICES)
    return td__tape_take_fail (m, "more than %d devices", MAX_DEVICES);
  m->s->used[device + 1] = true;
  if (m->n_in_device++ == MAX_ENTRIES + TRACE_SLACK)
    {
      const uint64_t from = begin_of_device (s, s->n_entries);

      m->n_in_device = MAX_ENTRIES;
      if (s->n_entries - from > MAX_ENTRIES)
        drop (s, from, s->n_entries - from - MAX_ENTRIES);
    }
  return take_entry (m, dict, device + 1);
}

/* What could not be taken while it was read: a trace that is no list. */
static bool
take_rest (TapeSnapshotTake *m, TapeValue traces)
{
  uint32_t device = 0;

  for (TapeItems i = td__tape_items (m->p, traces); td__tape_next (m->p, &i); device++)
    for (TapeItems k = td__tape_items (m->p, i.value); td__tape_next (m->p, &k);)
      if (!look (m) || !take_next (m, k.value, device))
        return false;
  return true;
}

/* Devices of the traces have as many entries each as the oldest of one may have to go for. */
static void
drop_oldest (TapeSnapshot *s)
{
  uint64_t n = 0;

  for (uint64_t end = s->n_entries; end > 0; end = begin_of_device (s, end))
    n++;
  for (uint64_t end = s->n_entries; end > 0;)
    {
      const uint64_t from = begin_of_device (s, end);

      if (end - from > MAX_ENTRIES / n)
        drop (s, from, end - from - MAX_ENTRIES / n);
      end = from;
    }
}

/* ------------------------------------------------------------------------ annotations */

static bool
take_annotation (TapeSnapshotTake *m, TapeValue dict, TapeEntry *e)
{
  const char *name
      = td__tape_value_text (m->p, td__tape_take_member (m, dict, TAPE_KEY_NAME), NULL);
  const char *stage
      = td__tape_value_text (m->p, td__tape_take_member (m, dict, TAPE_KEY_STAGE), NULL);
  char text[2 * MAX_METADATA], cleaned[MAX_METADATA], cleaned_stage[64];
  uint64_t device = 0;

  if (td__tape_take_member (m, dict, TAPE_KEY_DEVICE) != 0
      && !td__tape_take_number (m, dict, TAPE_KEY_DEVICE, &device))
    return false;
  if (device >= MAX_DEVICES || !td__tape_take_number (m, dict, TAPE_KEY_TIME, &e->time_us)
      || e->time_us > INT64_MAX / 1000)
    return false;
  e->device = (uint8_t)(device + 1);
  snprintf (text, sizeof text, "device=%" PRIu64 " stage=%s name=%s", device,
            td__tape_clean (stage, cleaned_stage, sizeof cleaned_stage),
            td__tape_clean (name, cleaned, sizeof cleaned));
  e->attrs = td_tape_writer_string (m->s->w, text);
  return true;
}

static int
by_time (const void *a, const void *b)
{
  const TapeEntry *x = a, *y = b;

  if (x->time_us != y->time_us)
    return x->time_us < y->time_us ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at; /* the order of the file */
}

/* Each comes before the first entry of its device that is not older.  Of a device without a
 * trace, and where the trace has no times, it has no place. */
static bool
put_annotations (TapeSnapshotTake *m, TapeEntry *found, uint64_t n)
{
  TapeSnapshot *s = m->s;
  TapeEntry *all = malloc ((s->n_entries + n + 1) * sizeof *all);
  uint64_t k = 0, n_all = 0;

  if (all == NULL)
    return td__tape_take_fail (m, "no memory");
  if (n > 1)
    qsort (found, n, sizeof *found, by_time);
  for (uint64_t i = 0; i < s->n_entries; i++)
    {
      const TapeEntry *e = &s->entries[i];

      if (i == 0 || e->device != e[-1].device)
        k = 0;
      for (; k < n && found[k].time_us <= e->time_us; k++)
        if (found[k].device == e->device)
          all[n_all++] = found[k];
      all[n_all++] = *e;
      if (i + 1 == s->n_entries || e[1].device != e->device)
        for (; k < n; k++)
          if (found[k].device == e->device)
            all[n_all++] = found[k];
    }
  for (uint64_t i = s->n_entries; i < n_all; i++)
    s->n_annotations--;
  for (uint64_t i = 0; i < n_all; i++)
    if (all[i].kind == TAPE_ENTRY_ANNOTATION)
      all[i].at = 0;
  free (s->entries);
  s->entries = all;
  s->n_entries = n_all;
  s->room_entries = s->n_entries;
  return true;
}

static bool
take_annotations (TapeSnapshotTake *m)
{
  const TapeValue list = td__tape_take_member (m, m->p->root, TAPE_KEY_ANNOTATIONS);
  const uint64_t n = td__tape_value_length (m->p, list);
  TapeEntry *found = n > 0 && n <= MAX_ENTRIES ? malloc (n * sizeof *found) : NULL;
  uint64_t n_found = 0;
  bool done = true;

  m->s->n_annotations = n;
  for (TapeItems i = td__tape_items (m->p, list); found != NULL && td__tape_next (m->p, &i);)
    {
      found[n_found] = (TapeEntry){ .kind = TAPE_ENTRY_ANNOTATION,
                                    .at = n_found,
                                    .place = { .category = TD_TAPE_CATEGORY_OTHER } };
      n_found += take_annotation (m, i.value, &found[n_found]);
    }
  if (n_found > 0 && m->s->timed)
    done = put_annotations (m, found, n_found);
  free (found);
  return done;
}

/* ------------------------------------------------------------------------ everything */

/* Where segments are, with what is free at their ends: for who writes the snapshot again. */
static void
say_segments (TapeSnapshotTake *m, TapeValue segments)
{
  static const char *const types[] = { "large", "small" };
  char text[SEGMENTS_A_TEXT * 80], key[48];
  unsigned n = 0, n_texts = 0;
  size_t used = 0;

  for (TapeItems i = td__tape_items (m->p, segments); td__tape_next (m->p, &i);)
    {
      const char *type
          = td__tape_value_text (m->p, td__tape_take_member (m, i.value, TAPE_KEY_TYPE), NULL);
      uint64_t device = 0, at = 0, total = 0, stream = 0;

      td__tape_take_number (m, i.value, TAPE_KEY_DEVICE, &device);
      td__tape_take_number (m, i.value, TAPE_KEY_ADDRESS, &at);
      td__tape_take_number (m, i.value, TAPE_KEY_TOTAL, &total);
      td__tape_take_number (m, i.value, TAPE_KEY_STREAM, &stream);
      used += (size_t)snprintf (text + used, sizeof text - used,
                                "%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %s;", device,
                                at, total, stream, types[strcmp (type, "small") == 0]);
      if (++n < SEGMENTS_A_TEXT)
        continue;
      snprintf (key, sizeof key, TD_TAPE_IMPORT_SEGMENTS "%u", n_texts++);
      td_tape_writer_info (m->s->w, key, text);
      n = 0;
      used = 0;
    }
  snprintf (key, sizeof key, TD_TAPE_IMPORT_SEGMENTS "%u", n_texts);
  if (n > 0)
    td_tape_writer_info (m->s->w, key, text);
}

static void
take_settings (TapeSnapshotTake *m)
{
  const TapeValue settings = td__tape_take_member (m, m->p->root, TAPE_KEY_SETTINGS);
  const char *conf
      = td__tape_value_text (m->p, td__tape_take_member (m, settings, TAPE_KEY_CONF), NULL);
  char text[1024];

  if (*conf != '\0')
    td_tape_writer_info (m->s->w, "allocator", td__tape_clean (conf, text, sizeof text));
}

/* A snapshot is a dictionary; older ones are its segments. */
static bool
take_all (TapeSnapshotTake *m)
{
  const TapeValue root = m->p->root;
  const bool old = td__tape_value_kind (root) == TAPE_VALUE_LIST;
  const TapeValue segments = old ? root : td__tape_take_member (m, root, TAPE_KEY_SEGMENTS);
  uint64_t k = 0;

  if (td__tape_value_kind (segments) != TAPE_VALUE_LIST)
    return snprintf (m->error, m->n_error, "no memory snapshot: it has no list of segments"),
           false;
  for (TapeItems i = td__tape_items (m->p, segments); td__tape_next (m->p, &i); k++)
    if (!look (m) || !take_segment (m, i.value, k))
      return false;
  m->inner = -1;
  say_segments (m, segments);
  take_settings (m);
  if (old)
    return true;
  if (!take_rest (m, td__tape_take_member (m, root, TAPE_KEY_TRACES)))
    return false;
  drop_oldest (m->s);
  return take_annotations (m);
}

static bool
begin (void *user, TapePickle *p)
{
  TapeSnapshotTake *m = user;
  bool made = true;

  m->p = p;
  for (int k = 0; k < TAPE_N_KEYS; k++)
    made &= (m->keys[k] = td__tape_value_make_text (p, key_texts[k], strlen (key_texts[k])))
            != 0;
  for (int i = 0; i < TAPE_N_ACTIONS; i++)
    made &= (m->actions[i]
             = td__tape_value_make_text (p, actions[i].text, strlen (actions[i].text)))
            != 0;
  return made;
}

static bool
take (void *user, const TapePickle *p, uint32_t device, TapeValue dict, char *error, size_t n)
{
  return take_next (user, dict, device);
}

bool
td__tape_snapshot_read (TapeSnapshot *s, int fd, const TdTapeImportOptions *watch, char *error,
                        size_t n)
{
  TapeSnapshotTake m = { .s = s, .outer = -1, .inner = -1, .error = error, .n_error = n };
  TapePickle *p;
  bool whole;

  s->timed = true;
  p = td__tape_pickle_read (fd, watch, &(TapeEntries){ begin, take, &m }, error, n);
  m.in_trace = false;
  whole = p != NULL;
  if (whole && !td__tape_import_step (watch, TD_TAPE_IMPORT_ARRANGING, 0, 1))
    whole = (snprintf (error, n, "cancelled"), false);
  whole = whole && take_all (&m);
  td__tape_pickle_free (p);
  td__tape_map_clear (&m.stacks);
  td__tape_map_clear (&m.calls);
  td__tape_map_clear (&m.frame_sites);
  free (m.seen);
  free (m.seen_sites);
  free (m.places);
  free (m.lists);
  return whole;
}

void
td__tape_snapshot_clear (TapeSnapshot *s)
{
  free (s->entries);
  free (s->blocks);
  free (s->pools);
  free (s->site_hash);
  free (s->frames);
  td__tape_sources_clear (s);
}
