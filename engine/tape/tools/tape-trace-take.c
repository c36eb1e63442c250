/* Traces: from JSON to slices.  What is not known is counted and passed by; a time that cannot
 * be ends the import.
 * SPDX-License-Identifier: MIT */
#include "tape-trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SLICES ((uint64_t)1 << 24)
#define MAX_TEXTS ((uint64_t)256 << 20) /* bytes */
#define MAX_NS ((uint64_t)1 << 62)
#define MAX_DEVICES 254

enum
{
  MAX_NAME = 4096,
  MAX_WORDS = 200 /* bytes of an attribute */
};

/** What an event says that is of use. */
typedef struct
{
  char name[MAX_NAME], category[64], phase;
  char pid[64], tid[64], stream[32], device[32], shapes[MAX_WORDS];
  uint64_t start_ns, duration_ns, correlation, sequence, bytes;
  bool has_start, has_duration, has_correlation, has_sequence, has_bytes, has_device;
  bool is_backward; /* says which thread its node was made on */
} Event;

/** A slice that has begun, by an event of its own. */
typedef struct
{
  uint64_t slice;
  uint32_t track;
} Open;

typedef struct
{
  TapeTrace *t;
  TapeTraceFile *f;
  Event e;
  Open *open;
  uint64_t n_open, room_open;
} Take;

static bool fail (TapeTrace *t, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

static bool
fail (TapeTrace *t, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  vsnprintf (t->error, t->n_error, format, args);
  va_end (args);
  return false;
}

/* ------------------------------------------------------------------------------- texts */

const char *
td__tape_trace_text (const TapeTrace *t, uint32_t text)
{
  return t->texts != NULL ? t->texts + text : "";
}

typedef struct
{
  const TapeTrace *t;
  const char *text;
  size_t n;
} Wanted;

static bool
same_text (const void *user, uint32_t value)
{
  const Wanted *w = user;
  const char *known = w->t->texts + value;

  return strncmp (known, w->text, w->n) == 0 && known[w->n] == '\0';
}

bool
td__tape_trace_name (TapeTrace *t, const char *text, size_t n, uint32_t *number)
{
  const uint64_t hash = td_tape_hash_bytes (0, text, n);

  *number = 0;
  if (n == 0)
    return true;
  *number = td__tape_map_find (&t->text_map, hash, same_text, &(Wanted){ t, text, n });
  if (*number != 0)
    return true;
  if (t->n_texts == 0)
    t->n_texts = 1; /* "" */
  if (t->n_texts + n + 1 > MAX_TEXTS)
    return fail (t, "its names take more than 256 MB");
  if (!td__tape_reserve (&t->texts, &t->room_texts, t->n_texts + n + 1, 1)
      || !td__tape_map_add (&t->text_map, hash, (uint32_t)t->n_texts))
    return fail (t, "no memory");
  *number = (uint32_t)t->n_texts;
  t->texts[0] = '\0';
  memcpy (t->texts + t->n_texts, text, n);
  t->n_texts += n;
  t->texts[t->n_texts++] = '\0';
  return true;
}

/* ----------------------------------------------------------------------------- numbers */

/* Microseconds with digits behind the point, as nanoseconds: a double has not enough digits for
 * times since 1970.  -1: below 0. */
static int
take_time (const TdJsonReader *r, uint64_t *ns)
{
  const char *at = r->text, *end = at + r->n;
  uint64_t whole = 0, part = 0, unit = 100;
  double value;

  if (r->token != TD_JSON_NUMBER)
    return 0;
  if (memchr (at, 'e', r->n) != NULL || memchr (at, 'E', r->n) != NULL)
    {
      if (!td__json_number (r, &value) || value >= (double)MAX_NS / 1000)
        return 0;
      *ns = value >= 0 ? (uint64_t)(value * 1000 + 0.5) : 0;
      return value >= 0 ? 1 : -1;
    }
  if (*at == '-')
    return td__json_number (r, &value) && value == 0 ? (*ns = 0, 1) : -1;
  for (; at < end && *at != '.'; at++)
    {
      whole = whole * 10 + (uint64_t)(*at - '0');
      if (whole >= MAX_NS / 1000)
        return 0;
    }
  for (at++; at < end && unit > 0; at++, unit /= 10)
    part += unit * (uint64_t)(*at - '0');
  *ns = whole * 1000 + part;
  return 1;
}

/* A number or a text as a text. */
static void
take_label (const TdJsonReader *r, char *out, size_t size)
{
  out[0] = '\0';
  if (r->token == TD_JSON_STRING)
    td__json_text (r, out, size);
  else if (r->token == TD_JSON_NUMBER)
    snprintf (out, size, "%.*s", (int)(r->n < 60 ? r->n : 60), r->text);
}

/* A whole number, also in quotes, as some profilers have it. */
static bool
take_number (const TdJsonReader *r, uint64_t *out)
{
  char text[32], *end;

  if (td__json_whole (r, out))
    return true;
  take_label (r, text, sizeof text);
  *out = strtoull (text, &end, 0);
  return r->token == TD_JSON_STRING && end != text && *end == '\0' && text[0] != '-';
}

/* "[[128, 64], [64]]" as "[128,64],[64]": attributes of a tape have no blanks. */
static bool
take_shapes (TdJsonReader *r, char *out)
{
  const char *from = r->text;
  size_t n = 0;

  if (r->token != TD_JSON_ARRAY)
    return td__json_skip (r);
  from = r->at;
  if (!td__json_skip (r))
    return false;
  for (; from < r->at - 1 && n + 1 < MAX_WORDS; from++)
    if (*from > ' ' && *from < 0x7f && *from != '"')
      out[n++] = *from;
  out[n] = '\0';
  if (strspn (out, "[],") == n)
    out[0] = '\0'; /* no shape at all */
  return true;
}

/* ------------------------------------------------------------------------------ events */

static bool
take_argument (Event *e, TdJsonReader *r, const char *key)
{
  uint64_t x;

  if (strcmp (key, "Input Dims") == 0 || strcmp (key, "Input dims") == 0)
    return take_shapes (r, e->shapes);
  if (r->token == TD_JSON_OBJECT || r->token == TD_JSON_ARRAY)
    return td__json_skip (r);
  if (strcmp (key, "correlation") == 0)
    e->has_correlation = take_number (r, &e->correlation);
  else if (strcmp (key, "Sequence number") == 0)
    e->has_sequence = take_number (r, &e->sequence);
  else if (strcmp (key, "Fwd thread id") == 0)
    e->is_backward = take_number (r, &x) && x != 0;
  else if (strcmp (key, "stream") == 0)
    take_label (r, e->stream, sizeof e->stream);
  else if (strcmp (key, "device") == 0)
    {
      take_label (r, e->device, sizeof e->device);
      e->has_device = e->device[0] != '\0';
    }
  else if (strcmp (key, "bytes") == 0 || strcmp (key, "size") == 0)
    e->has_bytes = take_number (r, &e->bytes);
  return true;
}

static bool
take_arguments (Event *e, TdJsonReader *r)
{
  char key[64];

  while (td__json_next (r) == TD_JSON_KEY)
    {
      td__json_text (r, key, sizeof key);
      td__json_next (r);
      if (!take_argument (e, r, key))
        return false;
    }
  return r->token == TD_JSON_OBJECT_END;
}

/* One member of an event.  0: it is no JSON; -1: a time that cannot be. */
static int
take_member (Event *e, TdJsonReader *r, const char *key)
{
  char text[8];
  int taken;

  if (strcmp (key, "args") == 0 && r->token == TD_JSON_OBJECT)
    return take_arguments (e, r);
  if (r->token == TD_JSON_OBJECT || r->token == TD_JSON_ARRAY)
    return td__json_skip (r);
  if (strcmp (key, "name") == 0)
    take_label (r, e->name, sizeof e->name);
  else if (strcmp (key, "cat") == 0)
    take_label (r, e->category, sizeof e->category);
  else if (strcmp (key, "pid") == 0)
    take_label (r, e->pid, sizeof e->pid);
  else if (strcmp (key, "tid") == 0)
    take_label (r, e->tid, sizeof e->tid);
  else if (strcmp (key, "ph") == 0)
    {
      take_label (r, text, sizeof text);
      e->phase = text[1] == '\0' ? text[0] : '\0';
    }
  else if (strcmp (key, "ts") == 0 || strcmp (key, "dur") == 0)
    {
      taken = take_time (r, key[0] == 't' ? &e->start_ns : &e->duration_ns);
      *(key[0] == 't' ? &e->has_start : &e->has_duration) = taken == 1;
      if (taken < 0)
        return -1;
    }
  return r->token != TD_JSON_WRONG;
}

/* False with a line that names the event. */
static bool
take_event (Take *k, TdJsonReader *r)
{
  Event *e = &k->e;
  char key[64];
  int taken = 1;

  e->name[0] = e->category[0] = e->phase = e->pid[0] = e->tid[0] = '\0';
  e->stream[0] = e->device[0] = e->shapes[0] = '\0';
  e->has_start = e->has_duration = e->has_correlation = e->has_sequence = e->has_bytes = false;
  e->has_device = e->is_backward = false;
  if (td__json_next (r) != TD_JSON_OBJECT)
    return fail (k->t, "event %" PRIu64 ": %s", td__tape_trace_count (k->f),
                 r->token == TD_JSON_WRONG ? "no JSON" : "an object expected");
  while (taken == 1 && td__json_next (r) == TD_JSON_KEY)
    {
      td__json_text (r, key, sizeof key);
      td__json_next (r);
      taken = take_member (e, r, key);
    }
  if (taken < 0)
    return fail (k->t, "event %" PRIu64 " (%.100s): a time below 0",
                 td__tape_trace_count (k->f), e->name);
  if (taken == 0 || r->token != TD_JSON_OBJECT_END || td__json_next (r) != TD_JSON_END)
    return fail (k->t, "event %" PRIu64 ": no JSON", td__tape_trace_count (k->f));
  return true;
}

/* ---------------------------------------------------------------------------- devices */

/* The number of a device on the tape; 0: there are too many. */
static unsigned
device_of (TapeTrace *t, uint64_t id)
{
  for (uint64_t i = 0; i < t->n_devices; i++)
    if (t->devices[i].id == id)
      return (unsigned)i + 1;
  if (t->n_devices >= MAX_DEVICES
      || !td__tape_reserve (&t->devices, &t->room_devices, t->n_devices + 1,
                            sizeof *t->devices))
    return 0;
  t->devices[t->n_devices] = (TapeTraceDevice){ .id = id };
  return (unsigned)++t->n_devices;
}

static uint8_t
stream_of (TapeTraceDevice *d, uint64_t stream)
{
  uint32_t i = 0;

  while (i < d->n_streams && d->streams[i] != stream)
    i++;
  if (i == d->n_streams && i < sizeof d->streams / sizeof *d->streams)
    d->streams[d->n_streams++] = stream;
  return (uint8_t)i; /* 255: one of those that are too many */
}

/* "deviceProperties" of Kineto's traces. */
static bool
take_device (TapeTrace *t, TdJsonReader *r)
{
  uint64_t id = 0, total = 0;
  char key[64], name[200] = "";
  unsigned device;
  uint32_t text;

  while (td__json_next (r) == TD_JSON_KEY)
    {
      td__json_text (r, key, sizeof key);
      td__json_next (r);
      if (r->token == TD_JSON_OBJECT || r->token == TD_JSON_ARRAY)
        td__json_skip (r);
      else if (strcmp (key, "id") == 0)
        take_number (r, &id);
      else if (strcmp (key, "name") == 0)
        take_label (r, name, sizeof name);
      else if (strcmp (key, "totalGlobalMem") == 0)
        take_number (r, &total);
    }
  if (r->token != TD_JSON_OBJECT_END || !td__tape_trace_name (t, name, strlen (name), &text))
    return false;
  device = device_of (t, id);
  if (device == 0)
    return true;
  t->devices[device - 1].name = text;
  t->devices[device - 1].total_bytes = total;
  return true;
}

static bool
take_devices (TapeTrace *t, TdJsonReader *r)
{
  if (r->token != TD_JSON_ARRAY)
    return td__json_skip (r);
  while (td__json_next (r) == TD_JSON_OBJECT)
    if (!take_device (t, r))
      return false;
  return r->token == TD_JSON_ARRAY_END;
}

/* ------------------------------------------------------------------------------ slices */

static const struct
{
  const char *category;
  TapeTraceKind kind;
} kinds[] = {
  { "cpu_op", TAPE_TRACE_OP },
  { "user_annotation", TAPE_TRACE_LAYER },
  { "python_function", TAPE_TRACE_PYTHON },
  { "cuda_runtime", TAPE_TRACE_CALL },
  { "cuda_driver", TAPE_TRACE_CALL },
  { "hip_runtime", TAPE_TRACE_CALL },
  { "xpu_runtime", TAPE_TRACE_CALL },
  { "Runtime", TAPE_TRACE_CALL },
  { "kernel", TAPE_TRACE_DEVICE },
  { "gpu_memcpy", TAPE_TRACE_DEVICE },
  { "gpu_memset", TAPE_TRACE_DEVICE },
  { "Kernel", TAPE_TRACE_DEVICE },
  { "Memcpy", TAPE_TRACE_DEVICE },
  { "Memset", TAPE_TRACE_DEVICE },
  /* the host waits: its call is there, too */
  { "cuda_sync", TAPE_TRACE_NOTHING },
  /* an annotation around kernels; the host's is there, too */
  { "gpu_user_annotation", TAPE_TRACE_NOTHING },
  { "Trace", TAPE_TRACE_NOTHING },
  { "overhead", TAPE_TRACE_NOTHING },
};

static TapeTraceKind
kind_of (const char *category)
{
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp (category, kinds[i].category) == 0)
      return kinds[i].kind;
  return TAPE_TRACE_OP;
}

/* Threads are told apart by the hash of what the trace calls them. */
static bool
track_of (TapeTrace *t, const Event *e, uint32_t *track)
{
  const uint64_t hash = td_tape_hash (td_tape_hash_bytes (1, e->pid, strlen (e->pid)),
                                      td_tape_hash_bytes (2, e->tid, strlen (e->tid)));

  *track = td__tape_map_find (&t->tracks, hash, NULL, NULL);
  if (*track != 0)
    return true;
  *track = ++t->n_tracks;
  return td__tape_map_add (&t->tracks, hash, *track) || fail (t, "no memory");
}

static bool
take_device_slice (TapeTrace *t, const Event *e, TapeTraceSlice *s)
{
  const char *device = e->has_device ? e->device : e->pid;
  const char *stream = e->stream[0] != '\0' ? e->stream : e->tid;
  const uint64_t id = strtoull (device, NULL, 0), of = strtoull (stream, NULL, 0);
  char words[2 * MAX_WORDS] = "";
  size_t n = 0;

  s->device = (uint8_t)device_of (t, id);
  if (s->device == 0)
    return fail (t, "more than %d devices", MAX_DEVICES);
  t->devices[s->device - 1].used = true;
  s->stream = stream_of (&t->devices[s->device - 1], of);
  n = (size_t)snprintf (words, sizeof words, "stream=%" PRIu64, of);
  if (e->has_bytes)
    n += (size_t)snprintf (words + n, sizeof words - n, " bytes=%" PRIu64, e->bytes);
  s->number = e->has_correlation && e->correlation < UINT64_MAX ? e->correlation + 1 : 0;
  return td__tape_trace_name (t, words, n, &s->attrs);
}

static bool
take_host_slice (TapeTrace *t, const Event *e, TapeTraceSlice *s)
{
  char words[MAX_WORDS + 8];

  if (s->kind == TAPE_TRACE_CALL && e->has_correlation && e->correlation < UINT64_MAX)
    s->number = e->correlation + 1;
  if (s->kind == TAPE_TRACE_OP && e->has_sequence && e->sequence < UINT64_MAX)
    {
      s->number = e->sequence + 1;
      s->flags |= e->is_backward ? TAPE_TRACE_BACKWARD : 0;
    }
  if (!track_of (t, e, &s->track))
    return false;
  if (e->shapes[0] == '\0')
    return true;
  return td__tape_trace_name (
      t, words, (size_t)snprintf (words, sizeof words, "in=%s", e->shapes), &s->attrs);
}

static bool
add_step (TapeTrace *t, const TapeTraceSlice *s, const char *name)
{
  if (!td__tape_reserve (&t->steps, &t->room_steps, t->n_steps + 1, sizeof *t->steps))
    return fail (t, "no memory");
  t->steps[t->n_steps++] = (TapeTraceStep){ .start_ns = s->start_ns,
                                            .end_ns = s->end_ns,
                                            .number = strtoull (name + 13, NULL, 10) };
  return true;
}

static bool
add_slice (Take *k, uint64_t end_ns)
{
  const Event *e = &k->e;
  TapeTrace *t = k->t;
  TapeTraceSlice s
      = { .start_ns = e->start_ns, .end_ns = end_ns, .kind = (uint8_t)kind_of (e->category) };

  if (s.kind == TAPE_TRACE_NOTHING && e->phase == 'X')
    return true;
  if (s.kind == TAPE_TRACE_NOTHING)
    s.kind = TAPE_TRACE_LAYER; /* its end will come */
  if (e->phase == 'X' && strncmp (e->name, "ProfilerStep#", 13) == 0
      && s.kind != TAPE_TRACE_DEVICE)
    return add_step (t, &s, e->name);
  if (t->n_slices >= MAX_SLICES)
    return fail (t, "more than %" PRIu64 " slices", MAX_SLICES);
  if (!td__tape_reserve (&t->slices, &t->room_slices, t->n_slices + 1, sizeof *t->slices))
    return fail (t, "no memory");
  if (!td__tape_trace_name (t, e->name, strlen (e->name), &s.name)
      || !(s.kind == TAPE_TRACE_DEVICE ? take_device_slice (t, e, &s)
                                       : take_host_slice (t, e, &s)))
    return false;
  if (t->n_slices == 0 || s.start_ns < t->first_ns)
    t->first_ns = s.start_ns;
  end_ns = end_ns < UINT64_MAX ? end_ns : s.start_ns;
  t->last_ns = end_ns > t->last_ns ? end_ns : t->last_ns;
  s.sequence = (uint32_t)t->n_slices;
  t->slices[t->n_slices++] = s;
  return true;
}

/* A slice that another event will end. */
static bool
begin_slice (Take *k)
{
  const uint64_t before = k->t->n_slices;

  if (!add_slice (k, UINT64_MAX))
    return false;
  if (!td__tape_reserve (&k->open, &k->room_open, k->n_open + 1, sizeof *k->open))
    return fail (k->t, "no memory");
  k->open[k->n_open++] = (Open){ before, k->t->slices[before].track };
  return true;
}

static bool
end_slice (Take *k)
{
  uint32_t track;
  uint64_t i = k->n_open;

  if (!track_of (k->t, &k->e, &track))
    return false;
  while (i > 0 && k->open[i - 1].track != track)
    i--;
  if (i == 0)
    {
      k->t->n_left_out++;
      return true;
    }
  TapeTraceSlice *s = &k->t->slices[k->open[i - 1].slice];

  if (k->e.start_ns < s->start_ns)
    return fail (k->t, "event %" PRIu64 ": it ends what begins later",
                 td__tape_trace_count (k->f));
  s->end_ns = k->e.start_ns;
  if (s->end_ns > k->t->last_ns)
    k->t->last_ns = s->end_ns;
  memmove (k->open + i - 1, k->open + i, (k->n_open - i) * sizeof *k->open);
  k->n_open--;
  return true;
}

static bool
use_event (Take *k)
{
  Event *e = &k->e;

  if (e->phase == 'B' && e->has_start)
    return begin_slice (k);
  if (e->phase == 'E' && e->has_start)
    return end_slice (k);
  if (e->phase == 'X' && e->has_start)
    return (e->has_duration && e->start_ns + e->duration_ns < MAX_NS)
               ? add_slice (k, e->start_ns + e->duration_ns)
               : fail (k->t, "event %" PRIu64 " (%.100s): no duration that can be",
                       td__tape_trace_count (k->f), e->name);
  if (e->phase == 'X' || e->phase == 'B' || e->phase == 'E')
    return fail (k->t, "event %" PRIu64 " (%.100s): no time that can be",
                 td__tape_trace_count (k->f), e->name);
  k->t->n_left_out += e->phase != 'M'; /* which only has names of threads */
  return true;
}

/* What has no end was going on when the trace ended. */
static void
end_open (Take *k)
{
  for (uint64_t i = 0; i < k->n_open; i++)
    k->t->slices[k->open[i].slice].end_ns = k->t->last_ns;
}

static bool
take_items (Take *k)
{
  TdJsonReader item;
  const char *key;

  while (td__tape_trace_next (k->f, &key, &item, k->t->error, k->t->n_error))
    {
      if (*key == '\0')
        {
          if (!take_event (k, &item) || !use_event (k))
            return false;
          continue;
        }
      td__json_next (&item);
      if (!(strcmp (key, "deviceProperties") == 0 ? take_devices (k->t, &item)
                                                  : td__json_skip (&item))
          || td__json_next (&item) != TD_JSON_END)
        return k->t->error[0] != '\0' ? false : fail (k->t, "\"%s\" is no JSON", key);
    }
  return k->t->error[0] == '\0';
}

bool
td__tape_trace_take (TapeTrace *t, TapeTraceFile *f)
{
  Take *k = calloc (1, sizeof *k); /* larger than a stack likes */
  bool whole;

  if (k == NULL)
    return fail (t, "no memory");
  k->t = t;
  k->f = f;
  whole = take_items (k);
  if (whole)
    end_open (k);
  free (k->open);
  free (k);
  if (whole && t->n_slices == 0)
    return fail (t, "no trace: it has no slice of time");
  return whole;
}

void
td__tape_trace_clear (TapeTrace *t)
{
  td__tape_map_clear (&t->text_map);
  td__tape_map_clear (&t->tracks);
  free (t->texts);
  free (t->slices);
  free (t->parts);
  free (t->devices);
  free (t->steps);
}
