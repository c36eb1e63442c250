/* Snapshots of PyTorch's memory: from values of a pickle to entries and blocks.  Where what is
 * needed is missing the import ends with a line that says where; what is not known is passed
 * by. SPDX-License-Identifier: MIT */
#include "tape-import.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES 254                 /* 0 is the host */
#define MAX_ENTRIES ((uint64_t)1 << 24) /* newer ones, of longer traces */
#define MAX_ADDRESS ((uint64_t)1 << 56)
#define MAX_FRAMES 4096   /* of one stack that are looked at */
#define MAX_METADATA 1024 /* bytes of a text that the program gave */
#define SEGMENTS_A_TEXT 256

typedef enum
{
  KEY_SEGMENTS,
  KEY_TRACES,
  KEY_SETTINGS,
  KEY_CONF,
  KEY_DEVICE,
  KEY_ADDRESS,
  KEY_TOTAL,
  KEY_STREAM,
  KEY_POOL,
  KEY_BLOCKS,
  KEY_SIZE,
  KEY_REQUESTED,
  KEY_STATE,
  KEY_FRAMES,
  KEY_HISTORY,
  KEY_REAL_SIZE,
  KEY_ACTION,
  KEY_ADDR,
  KEY_DEVICE_FREE,
  KEY_TIME,
  KEY_FILE,
  KEY_LINE,
  KEY_NAME,
  KEY_METADATA,
  KEY_ANNOTATIONS,
  KEY_STAGE,
  KEY_TYPE,
  N_KEYS
} Key;

static const char *const key_texts[N_KEYS] = {
  [KEY_SEGMENTS] = "segments",
  [KEY_TRACES] = "device_traces",
  [KEY_SETTINGS] = "allocator_settings",
  [KEY_CONF] = "PYTORCH_CUDA_ALLOC_CONF",
  [KEY_DEVICE] = "device",
  [KEY_ADDRESS] = "address",
  [KEY_TOTAL] = "total_size",
  [KEY_STREAM] = "stream",
  [KEY_POOL] = "segment_pool_id",
  [KEY_BLOCKS] = "blocks",
  [KEY_SIZE] = "size",
  [KEY_REQUESTED] = "requested_size",
  [KEY_STATE] = "state",
  [KEY_FRAMES] = "frames",
  [KEY_HISTORY] = "history",
  [KEY_REAL_SIZE] = "real_size",
  [KEY_ACTION] = "action",
  [KEY_ADDR] = "addr",
  [KEY_DEVICE_FREE] = "device_free",
  [KEY_TIME] = "time_us",
  [KEY_FILE] = "filename",
  [KEY_LINE] = "line",
  [KEY_NAME] = "name",
  [KEY_METADATA] = "user_metadata",
  [KEY_ANNOTATIONS] = "external_annotations",
  [KEY_STAGE] = "stage",
  [KEY_TYPE] = "segment_type",
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

enum
{
  N_ACTIONS = sizeof actions / sizeof *actions
};

typedef struct
{
  TapeSnapshot *s;
  const TapePickle *p;
  TapeValue keys[N_KEYS], actions[N_ACTIONS];
  TapeMap stacks; /* hash of a list of frames -> its place's index + 1 */
  TapePlace *places;
  TapeValue *lists; /* whose places they are */
  uint64_t n_places, room_places, room_lists;
  bool in_trace;
  int64_t outer,
      inner; /* what is looked at: segment and block, or device and entry; -1: none */
  uint64_t n_looked;
  char *error;
  size_t n_error;
} Import;

static bool fail (Import *m, const char *format, ...) __attribute__ ((format (printf, 2, 3)));

static bool
fail (Import *m, const char *format, ...)
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
look (Import *m)
{
  return m->n_looked++ <= m->p->n_words || fail (m, "more than the file has room for");
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

static TapeValue
member (const Import *m, TapeValue dict, Key key)
{
  return td__tape_member (m->p, dict, m->keys[key]);
}

static bool
get_number (const Import *m, TapeValue dict, Key key, uint64_t *out)
{
  return td__tape_value_unsigned (m->p, member (m, dict, key), out);
}

/* An address, or a number of bytes. */
static bool
need_number (Import *m, TapeValue dict, Key key, uint64_t *out)
{
  *out = 0;
  return (get_number (m, dict, key, out) && *out < MAX_ADDRESS)
         || fail (m, "no %s, or none that can be", key_texts[key]);
}

/* ----------------------------------------------------------------------------- frames */

/* Libraries are where a program's own lines are not. */
static bool
is_own_file (const char *file)
{
  static const char *const libraries[]
      = { "/site-packages/", "/dist-packages/", "/lib/python", "<frozen" };
  const size_t n = strlen (file);

  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
    if (strstr (file, libraries[i]) != NULL)
      return false;
  return n > 3 && strcmp (file + n - 3, ".py") == 0;
}

/* How well a frame tells where: the program's Python, any Python, anything with a file. */
int
td__tape_rank_of_file (const char *file)
{
  const size_t n = strlen (file);

  if (n == 0 || strcmp (file, "??") == 0)
    return 0;
  if (is_own_file (file))
    return 3;
  return n > 3 && strcmp (file + n - 3, ".py") == 0 ? 2 : 1;
}

/* Texts of a tape are shown: bytes that are no UTF-8 become question marks. */
static const char *
clean (const char *text, char *out, size_t size)
{
  size_t n = 0;

  while (*text != '\0' && n + 5 < size)
    {
      const uint8_t c = (uint8_t)*text;
      const int more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : 3;
      bool good = c < 0x80 || (c >= 0xc2 && c < 0xf5);

      for (int i = 1; good && i <= more; i++)
        good = ((uint8_t)text[i] & 0xc0) == 0x80;
      if (good
          && ((c == 0xe0 && (uint8_t)text[1] < 0xa0) || (c == 0xed && (uint8_t)text[1] > 0x9f)
              || (c == 0xf0 && (uint8_t)text[1] < 0x90)
              || (c == 0xf4 && (uint8_t)text[1] > 0x8f)))
        good = false;
      if (!good || c < 0x20 || c == 0x7f)
        {
          out[n++] = '?';
          text++;
          continue;
        }
      memcpy (out + n, text, (size_t)more + 1);
      n += (size_t)more + 1;
      text += more + 1;
    }
  out[n] = '\0';
  return out;
}

static bool
make_site (Import *m, TapeValue frame, uint32_t *site)
{
  char file[1024], name[512];
  uint64_t line = 0;

  clean (td__tape_value_text (m->p, member (m, frame, KEY_FILE), NULL), file, sizeof file);
  clean (td__tape_value_text (m->p, member (m, frame, KEY_NAME), NULL), name, sizeof name);
  if (!get_number (m, frame, KEY_LINE, &line) || line > INT32_MAX)
    line = 0;
  *site = td_tape_writer_site (m->s->w, file, (uint32_t)line, name);
  if (!td__tape_reserve (&m->s->site_hash, &m->s->room_sites, *site + 1ull, sizeof (uint64_t)))
    return false;
  m->s->site_hash[*site] = td_tape_hash (td_tape_hash_bytes (line, file, strlen (file)),
                                         td_tape_hash_bytes (0, name, strlen (name)));
  return true;
}

/* Tapedeck's own snapshots end their stacks with frames that are none: link and category. */
static void
take_mark (Import *m, TapeValue frame, TapePlace *place)
{
  const char *file = td__tape_value_text (m->p, member (m, frame, KEY_FILE), NULL);
  const char *name = td__tape_value_text (m->p, member (m, frame, KEY_NAME), NULL);
  char path[1024];

  if (strcmp (file, "link") == 0)
    place->path = td_tape_writer_path (m->s->w, clean (name, path, sizeof path), "");
  if (strcmp (file, "category") == 0)
    for (unsigned c = 0; c < TD_TAPE_N_CATEGORIES; c++)
      if (strcmp (name, td_tape_category_name (c)) == 0)
        place->category = c;
}

static bool
place_of (Import *m, TapeValue frames, TapePlace *place)
{
  TapeValue best = 0;
  unsigned n = 0;
  int rank = 0;

  *place = (TapePlace){ .category = TD_TAPE_CATEGORY_OTHER };
  for (TapeItems i = td__tape_items (m->p, frames);
       n++ < MAX_FRAMES && td__tape_next (m->p, &i);)
    {
      const char *file = td__tape_value_text (m->p, member (m, i.value, KEY_FILE), NULL);
      uint64_t line = 1;

      get_number (m, i.value, KEY_LINE, &line);
      if (line == 0 && (strcmp (file, "link") == 0 || strcmp (file, "category") == 0))
        take_mark (m, i.value, place);
      else if (td__tape_rank_of_file (file) > rank)
        {
          best = i.value;
          rank = td__tape_rank_of_file (file);
        }
    }
  return best == 0 || make_site (m, best, &place->site);
}

typedef struct
{
  const Import *m;
  TapeValue list;
} WantedStack;

static bool
same_stack (const void *user, uint32_t value)
{
  const WantedStack *wanted = user;

  return wanted->m->lists[value - 1] == wanted->list;
}

/* Most stacks are shared: one list for many blocks. */
static bool
take_frames (Import *m, TapeValue dict, TapePlace *place)
{
  const TapeValue list = member (m, dict, KEY_FRAMES);
  const uint64_t hash = td_tape_hash (0, list);
  uint32_t known;

  *place = (TapePlace){ .category = TD_TAPE_CATEGORY_OTHER };
  if (td__tape_value_length (m->p, list) == 0)
    return true;
  known = td__tape_map_find (&m->stacks, hash, same_stack, &(WantedStack){ m, list });
  if (known == 0)
    {
      if (!td__tape_reserve (&m->places, &m->room_places, m->n_places + 1, sizeof *m->places)
          || !td__tape_reserve (&m->lists, &m->room_lists, m->n_places + 1, sizeof *m->lists)
          || !place_of (m, list, &m->places[m->n_places])
          || !td__tape_map_add (&m->stacks, hash, (uint32_t)m->n_places + 1))
        return fail (m, "no memory");
      m->lists[m->n_places++] = list;
      known = (uint32_t)m->n_places;
    }
  *place = m->places[known - 1];
  return true;
}

/* --------------------------------------------------------------------------- segments */

/* The pool of a device, of those that a tape tells apart. */
static TdTapePool *
pool_of (Import *m, uint32_t device, TapeValue id)
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
newest_history (const Import *m, TapeValue block)
{
  TapeItems i = td__tape_items (m->p, member (m, block, KEY_HISTORY));

  return td__tape_next (m->p, &i) ? i.value : 0;
}

static bool
take_block (Import *m, TapeValue dict, uint32_t device, uint64_t *at, TdTapePool *in)
{
  TapeSnapshot *s = m->s;
  const char *state = td__tape_value_text (m->p, member (m, dict, KEY_STATE), NULL);
  const TapeValue history = newest_history (m, dict);
  const bool pending = strcmp (state, "active_pending_free") == 0
                       || strcmp (state, "active_awaiting_free") == 0;
  TapeEndBlock b = { .device = (uint8_t)device };
  uint64_t given;

  if (!need_number (m, dict, KEY_SIZE, &b.bytes))
    return false;
  if (get_number (m, dict, KEY_ADDRESS, &given) && given < MAX_ADDRESS)
    *at = given;
  b.at = *at;
  *at += b.bytes;
  if (*at >= MAX_ADDRESS)
    return fail (m, "its end is no address");
  if (!pending && strcmp (state, "active_allocated") != 0)
    {
      if (b.bytes > in->largest_free_bytes)
        in->largest_free_bytes = b.bytes;
      in->split_bytes += b.bytes; /* taken back where the segment has nothing in use */
      return true;
    }
  *(pending ? &in->pending_bytes : &in->live_bytes) += b.bytes;
  if (!get_number (m, dict, KEY_REQUESTED, &b.requested)
      && !get_number (m, history, KEY_REAL_SIZE, &b.requested))
    b.requested = b.bytes;
  if (b.requested > b.bytes)
    b.requested = b.bytes;
  if (!take_frames (m, member (m, dict, KEY_FRAMES) != 0 ? dict : history, &b.place))
    return false;
  if (b.bytes == 0)
    return true;
  if (!td__tape_reserve (&s->blocks, &s->room_blocks, s->n_blocks + 1, sizeof *s->blocks))
    return fail (m, "no memory");
  s->blocks[s->n_blocks++] = b;
  return true;
}

static bool
take_segment (Import *m, TapeValue dict, uint64_t k)
{
  uint64_t device = 0, at, total, n = 0;
  TdTapePool inside = { 0 }, *pool;

  m->outer = (int64_t)k;
  m->inner = -1;
  if (td__tape_value_kind (dict) != TAPE_VALUE_DICT)
    return fail (m, "a dictionary expected");
  if (!need_number (m, dict, KEY_ADDRESS, &at) || !need_number (m, dict, KEY_TOTAL, &total))
    return false;
  if (member (m, dict, KEY_DEVICE) != 0
      && (!get_number (m, dict, KEY_DEVICE, &device) || device >= MAX_DEVICES))
    return fail (m, "no device that can be");
  m->s->used[device + 1] = true;
  for (TapeItems i = td__tape_items (m->p, member (m, dict, KEY_BLOCKS));
       td__tape_next (m->p, &i); n++)
    {
      m->inner = (int64_t)n;
      if (m->s->n_blocks >= MAX_ENTRIES)
        return fail (m, "more than %" PRIu64 " blocks", MAX_ENTRIES);
      if (!look (m) || !take_block (m, i.value, (uint32_t)device + 1, &at, &inside))
        return false;
    }
  m->inner = -1;
  pool = pool_of (m, (uint32_t)device + 1, member (m, dict, KEY_POOL));
  if (pool == NULL)
    return fail (m, "no memory");
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
kind_of (const Import *m, TapeValue action)
{
  for (int i = 0; i < N_ACTIONS; i++)
    if (action != 0 && m->actions[i] == action)
      return actions[i].kind;
  return TAPE_ENTRY_OTHER;
}

/* The default stream goes without saying.  What the program has said comes last: it may be any
 * text. */
static uint32_t
attrs_text (Import *m, TapeValue dict)
{
  const char *said = td__tape_value_text (m->p, member (m, dict, KEY_METADATA), NULL);
  char text[40 + MAX_METADATA], cleaned[MAX_METADATA];
  uint64_t stream;
  int n = 0;

  if (get_number (m, dict, KEY_STREAM, &stream) && stream != 0)
    n = snprintf (text, sizeof text, stream < 4096 ? "stream=%" PRIu64 : "stream=0x%" PRIx64,
                  stream);
  if (*said != '\0')
    n += snprintf (text + n, sizeof text - (size_t)n, "%s" TD_TAPE_IMPORT_METADATA "%s",
                   n > 0 ? " " : "", clean (said, cleaned, sizeof cleaned));
  return n > 0 ? td_tape_writer_string (m->s->w, text) : 0;
}

static bool
take_entry (Import *m, TapeValue dict, uint32_t device)
{
  TapeSnapshot *s = m->s;
  const TapeEntryKind kind = kind_of (m, member (m, dict, KEY_ACTION));
  TapeEntry e = { .device = (uint8_t)device, .kind = (uint8_t)kind };

  if (td__tape_value_kind (dict) != TAPE_VALUE_DICT)
    return fail (m, "a dictionary expected");
  if (kind == TAPE_ENTRY_OOM || kind >= TAPE_ENTRY_SNAPSHOT)
    {
      get_number (m, dict, KEY_DEVICE_FREE, &e.at);
      get_number (m, dict, KEY_SIZE, &e.bytes);
    }
  else if (!need_number (m, dict, KEY_ADDR, &e.at)
           || !need_number (m, dict, KEY_SIZE, &e.bytes))
    return false;
  if (!get_number (m, dict, KEY_TIME, &e.time_us) || e.time_us > INT64_MAX / 1000)
    s->timed = false;
  if (!take_frames (m, dict, &e.place))
    return false;
  e.attrs = attrs_text (m, dict);
  if (!td__tape_reserve (&s->entries, &s->room_entries, s->n_entries + 1, sizeof *s->entries))
    return fail (m, "no memory");
  s->entries[s->n_entries++] = e;
  return true;
}

/* Devices of the traces have as many entries each as the oldest of one may have to go for. */
static bool
take_trace (Import *m, TapeValue list, uint32_t device, uint64_t most)
{
  const uint64_t n = td__tape_value_length (m->p, list), skip = n > most ? n - most : 0;
  uint64_t k = 0;

  m->outer = device - 1;
  for (TapeItems i = td__tape_items (m->p, list); td__tape_next (m->p, &i); k++)
    {
      if (k < skip)
        continue;
      m->inner = (int64_t)k;
      if (!look (m) || !take_entry (m, i.value, device))
        return false;
    }
  m->s->n_dropped += skip;
  m->s->used[device] |= n > 0;
  return true;
}

static bool
take_traces (Import *m, TapeValue traces)
{
  uint32_t device = 1, n = 0;

  for (TapeItems i = td__tape_items (m->p, traces); td__tape_next (m->p, &i);)
    n += td__tape_value_length (m->p, i.value) > 0;
  m->in_trace = true;
  m->outer = MAX_DEVICES;
  m->inner = -1;
  if (td__tape_value_length (m->p, traces) > MAX_DEVICES)
    return fail (m, "more than %d devices", MAX_DEVICES);
  for (TapeItems i = td__tape_items (m->p, traces); td__tape_next (m->p, &i); device++)
    if (!take_trace (m, i.value, device, MAX_ENTRIES / (n > 0 ? n : 1)))
      return false;
  return true;
}

/* ------------------------------------------------------------------------ annotations */

static bool
take_annotation (Import *m, TapeValue dict, TapeEntry *e)
{
  const char *name = td__tape_value_text (m->p, member (m, dict, KEY_NAME), NULL);
  const char *stage = td__tape_value_text (m->p, member (m, dict, KEY_STAGE), NULL);
  char text[2 * MAX_METADATA], cleaned[MAX_METADATA], cleaned_stage[64];
  uint64_t device = 0;

  if (member (m, dict, KEY_DEVICE) != 0 && !get_number (m, dict, KEY_DEVICE, &device))
    return false;
  if (device >= MAX_DEVICES || !get_number (m, dict, KEY_TIME, &e->time_us)
      || e->time_us > INT64_MAX / 1000)
    return false;
  e->device = (uint8_t)(device + 1);
  snprintf (text, sizeof text, "device=%" PRIu64 " stage=%s name=%s", device,
            clean (stage, cleaned_stage, sizeof cleaned_stage),
            clean (name, cleaned, sizeof cleaned));
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
put_annotations (Import *m, TapeEntry *found, uint64_t n)
{
  TapeSnapshot *s = m->s;
  TapeEntry *all = malloc ((s->n_entries + n + 1) * sizeof *all);
  uint64_t k = 0, n_all = 0;

  if (all == NULL)
    return fail (m, "no memory");
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
take_annotations (Import *m)
{
  const TapeValue list = member (m, m->p->root, KEY_ANNOTATIONS);
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
say_segments (Import *m, TapeValue segments)
{
  static const char *const types[] = { "large", "small" };
  char text[SEGMENTS_A_TEXT * 80], key[48];
  unsigned n = 0, n_texts = 0;
  size_t used = 0;

  for (TapeItems i = td__tape_items (m->p, segments); td__tape_next (m->p, &i);)
    {
      const char *type = td__tape_value_text (m->p, member (m, i.value, KEY_TYPE), NULL);
      uint64_t device = 0, at = 0, total = 0, stream = 0;

      get_number (m, i.value, KEY_DEVICE, &device);
      get_number (m, i.value, KEY_ADDRESS, &at);
      get_number (m, i.value, KEY_TOTAL, &total);
      get_number (m, i.value, KEY_STREAM, &stream);
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
take_settings (Import *m)
{
  const TapeValue settings = member (m, m->p->root, KEY_SETTINGS);
  const char *conf = td__tape_value_text (m->p, member (m, settings, KEY_CONF), NULL);
  char text[1024];

  if (*conf != '\0')
    td_tape_writer_info (m->s->w, "allocator", clean (conf, text, sizeof text));
}

/* A snapshot is a dictionary; older ones are its segments. */
static bool
take_all (Import *m)
{
  const TapeValue root = m->p->root;
  const bool old = td__tape_value_kind (root) == TAPE_VALUE_LIST;
  const TapeValue segments = old ? root : member (m, root, KEY_SEGMENTS);
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
  return old || (take_traces (m, member (m, root, KEY_TRACES)) && take_annotations (m));
}

bool
td__tape_snapshot_take (TapeSnapshot *s, const TapePickle *p, char *error, size_t n)
{
  Import m = { .s = s, .p = p, .error = error, .n_error = n };
  bool whole;

  s->timed = true;
  for (int k = 0; k < N_KEYS; k++)
    m.keys[k] = td__tape_key (p, key_texts[k]);
  for (int i = 0; i < N_ACTIONS; i++)
    m.actions[i] = td__tape_key (p, actions[i].text);
  whole = take_all (&m);
  td__tape_map_clear (&m.stacks);
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
}
