/* Traces: from parts to iterations of a tape, a step of the training each.
 * SPDX-License-Identifier: MIT */
#include "tape-trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_EVENTS ((uint64_t)1 << 20) /* of one iteration */

enum
{
  MAX_NAME = 96 /* bytes of an operation's */
};

typedef struct
{
  TapeTrace *t;
  TdTapeEvent *events;
  uint64_t *start_ns, *duration_ns;
  TdTapeDeviceTime *times;
  TapeMap places, opdefs;
  uint32_t *counts; /* how often each place was met in the iteration */
  uint32_t *orders; /* how many backward ones each event has */
  uint64_t number;  /* of the iteration */
  uint64_t base_ns; /* where the tape begins */
  uint64_t n_iterations, n_steps, n_late;
  bool cancelled;
} Write;

/* ---------------------------------------------------------------------------- operations */

/* "void at::native::add_kernel<4, float>(int, float*)" is at::native::add_kernel: what is in
 * brackets goes, but for namespaces without a name. */
static size_t
shorten (const char *name, char *out, size_t size)
{
  static const char ANONYMOUS[] = "(anonymous namespace)";
  size_t n = 0;
  unsigned depth = 0;

  if (strncmp (name, "void ", 5) == 0)
    name += 5;
  for (; *name != '\0' && n + 1 < size; name++)
    {
      if (depth == 0 && strncmp (name, ANONYMOUS, sizeof ANONYMOUS - 1) == 0)
        {
          name += sizeof ANONYMOUS - 2;
          n -= n > 1 && out[n - 1] == ':' ? 2 : 0; /* nor is that worth its place */
          continue;
        }
      if (*name == '<' || *name == '(')
        depth++;
      else if (depth > 0 && (*name == '>' || *name == ')'))
        depth--;
      else if (depth == 0)
        out[n++] = *name;
    }
  out[n] = '\0';
  return n;
}

/* Kernels of matrix products have all their parameters in their names. */
static void
cut (char *text)
{
  size_t n = MAX_NAME;

  while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
    n--;
  snprintf (text + n, 4, "…");
}

static const char *
group_of (const TapeTraceSlice *s)
{
  static const char *const groups[]
      = { [TAPE_TRACE_OP] = "operation",  [TAPE_TRACE_LAYER] = "annotation",
          [TAPE_TRACE_PYTHON] = "python", [TAPE_TRACE_CALL] = "call",
          [TAPE_TRACE_DEVICE] = "kernel", [TAPE_TRACE_NOTHING] = "" };

  return groups[s->kind];
}

static uint32_t
opdef_of (Write *b, const TapeTraceSlice *s)
{
  const uint64_t hash = td_tape_hash (s->kind, s->name);
  const char *name = td__tape_trace_text (b->t, s->name);
  uint32_t id = td__tape_map_find (&b->opdefs, hash, NULL, NULL);
  char text[512];

  if (id != 0)
    return id;
  /* Copies say in brackets from where and to where. */
  if (s->kind == TAPE_TRACE_DEVICE && strncmp (name, "Mem", 3) != 0)
    shorten (name, text, sizeof text);
  else
    snprintf (text, sizeof text, "%s", name);
  if (strlen (text) > MAX_NAME)
    cut (text);
  id = td_tape_writer_opdef (
      b->t->w,
      &(TdTapeOpdef){ .name = td_tape_writer_string (b->t->w, text[0] != '\0' ? text : "?"),
                      .group = td_tape_writer_string (b->t->w, group_of (s)),
                      .formula
                      = strcmp (name, text) != 0 ? td_tape_writer_string (b->t->w, name) : 0,
                      .n_in = -1,
                      .n_out = -1 });
  td__tape_map_add (&b->opdefs, hash, id);
  return id;
}

static uint32_t
attrs_of (Write *b, const TapeTracePart *p, const TapeTraceSlice *s)
{
  const char *words = td__tape_trace_text (b->t, s->attrs);
  char text[512];

  if (p->nth == 0 || p->device != 0)
    return td_tape_writer_string (b->t->w, words);
  snprintf (text, sizeof text, "part=%" PRIu32, p->nth + 1);
  return td_tape_writer_string (b->t->w, text);
}

/* The key of the k-th of its kind, at its place: the same in another step, and in another trace
 * of the same program. */
static uint64_t
key_of (Write *b, const TdTapeEvent *e, const TapeTraceSlice *what, const char *path)
{
  const char *name = td__tape_trace_text (b->t, what->name);
  const uint64_t place = td_tape_hash (td_tape_hash_bytes (e->site, path, strlen (path)),
                                       td_tape_hash_bytes (e->phase, name, strlen (name)));
  uint32_t at = td__tape_map_find (&b->places, place, NULL, NULL);

  if (at == 0)
    {
      at = b->places.n + 1;
      if (!td__tape_map_add (&b->places, place, at))
        return 0; /* the writer makes one */
    }
  return td_tape_event_key (0, place, 0, b->counts[at - 1]++, e->phase);
}

static uint64_t
from (uint64_t ns, uint64_t start_ns)
{
  return ns > start_ns ? ns - start_ns : 0;
}

static void
add_event (Write *b, TdTapeIteration *it, uint64_t first, uint64_t i, uint64_t start_ns)
{
  const TapeTrace *t = b->t;
  const TapeTracePart *p = &t->parts[i];
  const TapeTraceSlice *host = &t->slices[p->slice];
  const TapeTraceSlice *what = p->device != 0 ? &t->slices[p->device - 1] : host;
  const char *path = td__tape_trace_text (t, host->path);
  const uint32_t k = it->n_events++;
  TdTapeEvent *e = &b->events[k];

  *e = (TdTapeEvent){ .opdef = opdef_of (b, what),
                      .site = host->site,
                      .path = td_tape_writer_path (t->w, path, ""),
                      .attrs = attrs_of (b, p, what),
                      .twin = -1,
                      .span = TD_TAPE_NONE,
                      .phase = host->phase };
  b->orders[k] = 0;
  if (p->forward > first)
    {
      e->twin = (int32_t)(p->forward - 1 - first);
      e->order = (uint16_t)b->orders[e->twin];
      b->orders[e->twin] += b->orders[e->twin] < 0x7fff;
      e->key = td_tape_twin_key (b->events[e->twin].key, e->phase, b->orders[e->twin]);
    }
  else
    e->key = key_of (b, e, what, path);
  b->start_ns[k] = from (p->start_ns, start_ns);
  b->duration_ns[k] = p->end_ns - p->start_ns;
  if (p->device == 0)
    return;
  b->n_late += what->start_ns < p->start_ns;
  b->times[it->n_device_times++]
      = (TdTapeDeviceTime){ .start_ns = from (what->start_ns, start_ns),
                            .duration_ns = what->end_ns - what->start_ns,
                            .event = k,
                            .device = what->device,
                            .stream = what->stream,
                            .kind = TD_TAPE_DEVICE_TIME_EXACT };
}

/* ---------------------------------------------------------------------------- iterations */

static void
name_device (const TapeTrace *t, const TapeTraceDevice *d, char text[256])
{
  snprintf (text, 256, "gpu:%" PRIu64 "%s%s", d->id, d->name != 0 ? " " : "",
            td__tape_trace_text (t, d->name));
}

static uint32_t
list_devices (const TapeTrace *t, TdTapeDevice *devices)
{
  uint32_t n = 0;
  char text[256];

  for (uint64_t i = 0; i < t->n_devices; i++)
    if (t->devices[i].used)
      {
        name_device (t, &t->devices[i], text);
        devices[n++] = (TdTapeDevice){ .total_bytes = t->devices[i].total_bytes,
                                       .device = (uint32_t)i + 1,
                                       .name = td_tape_writer_string (t->w, text) };
      }
  return n;
}

/* Parts [first, end) as one iteration; of a step, unless that is NULL. */
static void
write_iteration (Write *b, uint64_t first, uint64_t end, const TapeTraceStep *step)
{
  TapeTrace *t = b->t;
  TdTapeDevice devices[256];
  const uint64_t start_ns = step != NULL ? step->start_ns : t->parts[first].start_ns;
  uint64_t end_ns = step != NULL ? step->end_ns : start_ns;
  TdTapeIteration it
      = { .size = sizeof it,
          .number = b->number,
          .label = TD_TAPE_LABEL_NUMBER | (uint32_t)b->number,
          .flags = t->n_steps > 0 && step == NULL ? TD_TAPE_ITERATION_OUTSIDE : 0,
          .start_ns = start_ns - b->base_ns,
          .events = b->events,
          .event_start_ns = b->start_ns,
          .event_duration_ns = b->duration_ns,
          .device_times = b->times,
          .devices = devices };

  if (step != NULL && step->number < TD_TAPE_LABEL_NUMBER)
    it.label = TD_TAPE_LABEL_NUMBER | (uint32_t)step->number;
  memset (b->counts, 0, (b->places.n + (end - first)) * sizeof *b->counts);
  for (uint64_t i = first; i < end; i++)
    {
      add_event (b, &it, first, i, start_ns);
      end_ns = t->parts[i].end_ns > end_ns ? t->parts[i].end_ns : end_ns;
    }
  it.duration_ns = end_ns - start_ns;
  it.n_devices = list_devices (t, devices);
  td_tape_writer_whole (t->w, &it);
  b->number++;
  b->n_iterations++;
  b->n_steps += step != NULL;
}

static int
by_start (const void *a, const void *b)
{
  const TapeTraceStep *x = a, *y = b;

  return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Parts that begin before `limit_ns`, no more than an iteration may have. */
static uint64_t
end_before (const TapeTrace *t, uint64_t first, uint64_t limit_ns)
{
  uint64_t end = first;

  while (end < t->n_parts && end - first < MAX_EVENTS && t->parts[end].start_ns < limit_ns)
    end++;
  return end;
}

static bool
write_all (Write *b)
{
  TapeTrace *t = b->t;
  uint64_t step = 0;

  for (uint64_t first = 0, end; first < t->n_parts; first = end)
    {
      const TapeTraceStep *in = NULL;
      uint64_t limit_ns = UINT64_MAX;

      while (step < t->n_steps && t->parts[first].start_ns >= t->steps[step].end_ns)
        step++;
      if (step < t->n_steps && t->parts[first].start_ns >= t->steps[step].start_ns)
        in = &t->steps[step];
      if (step < t->n_steps)
        limit_ns = in != NULL ? in->end_ns : t->steps[step].start_ns;
      end = end_before (t, first, limit_ns);
      /* places grow by one for each event at most */
      uint32_t *counts = realloc (b->counts, (b->places.n + (end - first)) * sizeof *b->counts);

      if (counts == NULL)
        return false;
      b->counts = counts;
      write_iteration (b, first, end, in);
      b->cancelled = !td__tape_import_step (t->watch, TD_TAPE_IMPORT_WRITING, end, t->n_parts);
      if (b->cancelled || td_tape_writer_error (t->w) != NULL)
        return true;
    }
  td_tape_writer_end (t->w, &(TdTapeEnd){ .status = -1,
                                          .iteration = b->number - 1,
                                          .time_ns = t->last_ns - b->base_ns });
  return true;
}

static bool
take_room (Write *b)
{
  const uint64_t n = b->t->n_parts < MAX_EVENTS ? b->t->n_parts : MAX_EVENTS;

  b->events = malloc (n * sizeof *b->events);
  b->start_ns = malloc (n * sizeof *b->start_ns);
  b->duration_ns = malloc (n * sizeof *b->duration_ns);
  b->times = malloc (n * sizeof *b->times);
  b->orders = malloc (n * sizeof *b->orders);
  return b->events != NULL && b->start_ns != NULL && b->duration_ns != NULL && b->times != NULL
         && b->orders != NULL;
}

/* --------------------------------------------------------------------- what is to be said */

static void
notice (TapeTrace *t, uint64_t n, const char *text)
{
  char line[256];

  if (n == 0)
    return;
  snprintf (line, sizeof line, "%" PRIu64 " %s", n, text);
  td_tape_writer_notice (t->w, &(TdTapeNotice){ .kind = TD_TAPE_NOTICE_TEXT,
                                                .event = TD_TAPE_NONE,
                                                .text = td_tape_writer_string (t->w, line) });
}

static void
put_info (const TapeTrace *t)
{
  for (uint64_t i = 0; i < t->n_devices; i++)
    if (t->devices[i].used)
      {
        char text[256];

        name_device (t, &t->devices[i], text);
        td_tape_writer_info (t->w, "device", text);
        return;
      }
  td_tape_writer_info (t->w, "device", "cpu");
}

bool
td__tape_trace_write (TapeTrace *t, TdTapeImport *what)
{
  Write b = { .t = t, .base_ns = t->first_ns };
  const char *wrong;
  bool whole;

  if (t->n_steps > 1)
    qsort (t->steps, t->n_steps, sizeof *t->steps, by_start);
  for (uint64_t i = 0; i < t->n_steps; i++)
    if (t->steps[i].start_ns < b.base_ns)
      b.base_ns = t->steps[i].start_ns;
  put_info (t);
  whole = take_room (&b) && write_all (&b);
  wrong = b.cancelled ? "cancelled" : td_tape_writer_error (t->w);
  notice (t, t->n_unissued,
          "slices of devices are shown without the host's call, which the trace does not have");
  notice (t, b.n_late, "slices of devices begin before they were issued");
  notice (t, t->n_cut, "slices reach beyond the one that they begin in, and are cut there");
  what->n_slices = t->n_slices + t->n_steps;
  what->n_events = t->n_parts;
  what->n_iterations = b.n_iterations;
  what->n_steps = b.n_steps;
  what->n_left_out = t->n_left_out;
  for (uint64_t i = 0; i < t->n_devices; i++)
    what->n_devices += t->devices[i].used;
  td__tape_map_clear (&b.places);
  td__tape_map_clear (&b.opdefs);
  free (b.events);
  free (b.start_ns);
  free (b.duration_ns);
  free (b.times);
  free (b.orders);
  free (b.counts);
  if (whole && wrong == NULL)
    return true;
  snprintf (t->error, t->n_error, "%s", wrong != NULL ? wrong : "no memory");
  return false;
}
