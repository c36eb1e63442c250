/* Memory of a tape as a snapshot of PyTorch's: the pickle that pytorch.org/memory_viz opens.
 *
 * A pickle of protocol 2, written from beginning to end, of dictionaries, lists, texts and
 * integers only: a reader that runs no code can read it.
 *
 * SPDX-License-Identifier: MIT */
#include "../read/tape-oom.h"
#include "td-tape-import.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAP ((uint64_t)2 << 20) /* larger ones lie between segments */

typedef struct
{
  TdTapeReader *r;
  FILE *out;
  const TdTapeIteration *it;
  uint32_t device;
  uint32_t n_listed; /* items since the list's last mark */
  bool is_import;    /* the tape was made of a snapshot */
} Snapshot;

/* ------------------------------------------------------------------------------ pickle */

static void
put_u32 (FILE *out, uint32_t x)
{
  for (int i = 0; i < 4; i++)
    fputc ((int)(x >> 8 * i & 0xff), out);
}

static void
put_text (FILE *out, const char *text)
{
  const size_t n = strlen (text);

  fputc ('X', out);
  put_u32 (out, (uint32_t)n);
  fwrite (text, 1, n, out);
}

/* BININT has a sign and 4 bytes, LONG1 as many as it says. */
static void
put_int (FILE *out, uint64_t x)
{
  if (x <= INT32_MAX)
    {
      fputc ('J', out);
      put_u32 (out, (uint32_t)x);
      return;
    }
  int n = 4; /* bytes with the sign's bit */

  while (n <= 8 && x >> (8 * n - 1) != 0)
    n++;
  fputc (0x8a, out);
  fputc (n, out);
  for (int i = 0; i < n; i++)
    fputc (i < 8 ? (int)(x >> 8 * i & 0xff) : 0, out);
}

static void
begin_dict (FILE *out)
{
  fputs ("}(", out);
}

static void
begin_list (FILE *out)
{
  fputs ("](", out);
}

static void
member_int (FILE *out, const char *key, uint64_t x)
{
  put_text (out, key);
  put_int (out, x);
}

static void
member_text (FILE *out, const char *key, const char *text)
{
  put_text (out, key);
  put_text (out, text);
}

static void
end_dict (FILE *out)
{
  fputc ('u', out);
}

static void
end_list (FILE *out)
{
  fputc ('e', out);
}

/* Long lists come in parts, as Python writes them: the viewer's stack is not endless. */
static void
listed (Snapshot *s)
{
  if (++s->n_listed < 1000)
    return;
  s->n_listed = 0;
  fputs ("e(", s->out);
}

/* ------------------------------------------------------------------------------ frames */

/* What is not UTF-8 would end the reader. */
static void
valid_text (char *text)
{
  size_t n = strlen (text), length;

  for (; n > 0; text += length, n -= length)
    {
      length = td__utf8_length (text, n);
      if (length > 0)
        continue;
      *text = '?';
      length = 1;
    }
}

static void
put_frame (Snapshot *s, const char *file, uint64_t line, const char *name)
{
  char text[512];

  begin_dict (s->out);
  snprintf (text, sizeof text, "%s", file);
  valid_text (text);
  member_text (s->out, "filename", text);
  member_int (s->out, "line", line);
  snprintf (text, sizeof text, "%s", name);
  valid_text (text);
  member_text (s->out, "name", text);
  end_dict (s->out);
}

/* The calls of a stack that a snapshot had, innermost first. */
static void
put_stack (Snapshot *s, uint32_t stack)
{
  for (; stack > 0; stack = s->it->stack_frames[stack - 1].outer)
    {
      const TdTapeSite *site = td_tape_reader_site (s->r, s->it->stack_frames[stack - 1].site);

      put_frame (s, site != NULL ? td_tape_reader_string (s->r, site->file) : "??",
                 site != NULL ? site->line : 0,
                 site != NULL ? td_tape_reader_string (s->r, site->function) : "");
    }
}

static uint32_t
stack_of (const Snapshot *s, uint32_t event, uint32_t var)
{
  const TdTapeVar *v = var < s->it->n_vars ? &s->it->vars[var] : NULL;

  if (event < s->it->n_event_stacks)
    return s->it->event_stacks[event];
  return v != NULL && (v->flags & TD_TAPE_VAR_EXTERNAL) && v->id < s->it->n_external_stacks
             ? s->it->external_stacks[v->id]
             : 0;
}

/* The operation at its place, the link it is of, the category: as a stack has them. */
static void
put_frames (Snapshot *s, uint32_t event, uint32_t var, unsigned category)
{
  const TdTapeEvent *e = event < s->it->n_events ? &s->it->events[event] : NULL;
  const uint32_t place = e != NULL && e->site != 0 ? e->site
                         : var < s->it->n_vars     ? s->it->vars[var].site
                                                   : 0;
  const TdTapeSite *site = td_tape_reader_site (s->r, place);
  const uint32_t stack = stack_of (s, event, var);
  char name[200] = "";

  put_text (s->out, "frames");
  begin_list (s->out);
  put_stack (s, stack);
  if (e != NULL)
    snprintf (name, sizeof name, "%s %.150s", td_tape_phase_name (e->phase),
              td_tape_reader_op_name (s->r, e->opdef));
  if (stack == 0)
    put_frame (s, site != NULL ? td_tape_reader_string (s->r, site->file) : "??",
               site != NULL ? site->line : 0, name);
  if (e != NULL && e->path != 0)
    put_frame (s, "link", 0, td_tape_reader_path_text (s->r, e->path));
  put_frame (s, "category", 0, td_tape_category_name (category));
  end_list (s->out);
}

/* ------------------------------------------------------------------------------- trace */

static void
put_entry (Snapshot *s, const char *action, const char *where, uint64_t at, uint64_t bytes,
           uint64_t ns)
{
  begin_dict (s->out);
  member_text (s->out, "action", action);
  member_int (s->out, where, at);
  member_int (s->out, "size", bytes);
  member_int (s->out, "stream", 0);
  member_int (s->out, "time_us", ns / 1000);
}

static uint64_t
time_of (const TdTapeIteration *it, uint32_t event)
{
  return it->start_ns + (event < it->n_events ? it->event_start_ns[event] : it->duration_ns);
}

/* Memory that ran out after so many records of the iteration. */
static void
put_ooms (Snapshot *s, uint32_t n_memory)
{
  for (uint32_t i = 0; i < td_tape_reader_n_ooms (s->r); i++)
    {
      const TdTapeOom *o = td_tape_reader_oom (s->r, i);
      const uint64_t capacity = td__tape_oom_capacity (o),
                     used = o->live_bytes + o->pending_bytes;

      if (!(o->flags & TD_TAPE_OOM_ITERATION) || o->iteration != s->it->number
          || o->n_memory != n_memory || o->device != s->device)
        continue;
      put_entry (s, "oom", "device_free", capacity > used ? capacity - used : 0, o->asked_bytes,
                 o->time_ns);
      put_frames (s, o->event, TD_TAPE_NONE, TD_TAPE_CATEGORY_OTHER);
      end_dict (s->out);
    }
}

/* What follows `name` in the attributes of an event; "": nothing. */
static const char *
attr_of (const Snapshot *s, uint32_t event, const char *name)
{
  const char *attrs
      = event < s->it->n_events ? td_tape_reader_string (s->r, s->it->events[event].attrs) : "";
  const char *at = strstr (attrs, name);

  return at != NULL && (at == attrs || at[-1] == ' ') ? at + strlen (name) : "";
}

static void
put_member_text (Snapshot *s, const char *key, const char *text)
{
  char valid[1100];

  snprintf (valid, sizeof valid, "%s", text);
  valid_text (valid);
  member_text (s->out, key, valid);
}

static void
put_change (Snapshot *s, const TdTapeMemory *m, const char *action)
{
  const char *said = s->is_import ? attr_of (s, m->event, TD_TAPE_IMPORT_METADATA) : "";

  put_entry (s, action, "addr", m->address, m->bytes, time_of (s->it, m->event));
  if (*said != '\0')
    put_member_text (s, "user_metadata", said);
  put_frames (s, m->event, m->var, m->category);
  end_dict (s->out);
  listed (s);
}

static void
put_trace (Snapshot *s)
{
  s->n_listed = 0;
  put_ooms (s, 0);
  for (uint32_t i = 0; i < s->it->n_memory; i++)
    {
      const TdTapeMemory *m = &s->it->memory[i];

      if (m->device == s->device && m->kind <= TD_TAPE_MEMORY_FREE)
        {
          const bool alloc = m->kind == TD_TAPE_MEMORY_ALLOC;

          if (!alloc)
            put_change (s, m, "free_requested");
          put_change (s, m, alloc ? "alloc" : "free_completed");
        }
      put_ooms (s, i + 1);
    }
}

/* Annotations of a snapshot that was imported: "device=0 stage=START name=step 3". */
static void
put_annotations (Snapshot *s)
{
  s->n_listed = 0;
  for (uint32_t i = 0; s->is_import && i < s->it->n_events; i++)
    {
      const char *stage = attr_of (s, i, "stage="), *name = attr_of (s, i, "name=");
      const char *device = attr_of (s, i, "device=");
      char cut[64];

      if (strcmp (td_tape_reader_op_name (s->r, s->it->events[i].opdef), "annotation") != 0
          || strtoul (device, NULL, 10) + 1 != s->device)
        continue;
      snprintf (cut, sizeof cut, "%.*s", (int)strcspn (stage, " "), stage);
      begin_dict (s->out);
      put_member_text (s, "name", name);
      put_member_text (s, "stage", cut);
      member_int (s->out, "device", s->device);
      member_int (s->out, "time_us", time_of (s->it, i) / 1000);
      end_dict (s->out);
      listed (s);
    }
}

/* ---------------------------------------------------------------------------- segments */

static int
by_address (const void *a, const void *b)
{
  const TapeLive *x = a, *y = b;

  return (x->address > y->address) - (x->address < y->address);
}

static void
put_block (Snapshot *s, uint64_t address, uint64_t bytes, const TapeLive *of)
{
  const TdTapeVar *v = of != NULL && of->var < s->it->n_vars ? &s->it->vars[of->var] : NULL;

  begin_dict (s->out);
  member_int (s->out, "address", address);
  member_int (s->out, "size", bytes);
  member_int (s->out, "requested_size", v != NULL && v->bytes <= bytes ? v->bytes : bytes);
  member_text (s->out, "state", of != NULL ? "active_allocated" : "inactive");
  if (of != NULL)
    put_frames (s, v != NULL && v->producer >= 0 ? (uint32_t)v->producer : TD_TAPE_NONE,
                of->var, of->category);
  end_dict (s->out);
  listed (s);
}

/* A range of addresses. */
typedef struct
{
  uint64_t from, to, stream;
  bool known, small; /* a segment of a snapshot */
} Range;

/* A segment, its blocks [first, end) and what lies between them. */
static void
put_segment (Snapshot *s, Range r, const TapeLive *live, uint32_t first, uint32_t end)
{
  uint64_t active = 0, at = r.from;

  for (uint32_t i = first; i < end; i++)
    active += live[i].bytes;
  begin_dict (s->out);
  member_int (s->out, "device", s->device);
  member_int (s->out, "address", r.from);
  member_int (s->out, "total_size", r.to - r.from);
  member_int (s->out, "allocated_size", active);
  member_int (s->out, "active_size", active);
  member_int (s->out, "requested_size", active);
  member_int (s->out, "stream", r.stream);
  member_text (s->out, "segment_type", r.small ? "small" : "large");
  put_text (s->out, "segment_pool_id");
  begin_list (s->out);
  put_int (s->out, 0);
  put_int (s->out, 0);
  end_list (s->out);
  put_text (s->out, "frames");
  begin_list (s->out);
  end_list (s->out);
  put_text (s->out, "blocks");
  begin_list (s->out);
  s->n_listed = 0;
  for (uint32_t i = first; i < end; i++)
    {
      if (live[i].address > at)
        put_block (s, at, live[i].address - at, NULL);
      put_block (s, live[i].address, live[i].bytes, &live[i]);
      at = live[i].address + live[i].bytes;
    }
  if (r.to > at)
    put_block (s, at, r.to - at, NULL);
  end_list (s->out);
  end_dict (s->out);
}

static int
by_start (const void *a, const void *b)
{
  const Range *x = a, *y = b;

  return (x->from > y->from) - (x->from < y->from);
}

/* Segments that a snapshot had, which reach beyond what is used of them. */
static uint32_t
known_segments (const Snapshot *s, Range *ranges)
{
  uint32_t n = 0;
  char key[48];

  for (unsigned k = 0;; k++)
    {
      snprintf (key, sizeof key, TD_TAPE_IMPORT_SEGMENTS "%u", k);
      const char *text = s->is_import ? td_tape_reader_info (s->r, key) : "";

      if (*text == '\0')
        return n;
      while (*text != '\0')
        {
          uint64_t device, at, total, stream;
          char type[8];

          if (sscanf (text, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %5s", &device, &at,
                      &total, &stream, type)
                  == 5
              && device + 1 == s->device && at + total > at)
            {
              if (ranges != NULL)
                ranges[n] = (Range){ at, at + total, stream, true, type[0] == 's' };
              n++;
            }
          text += strcspn (text, ";");
          text += *text == ';';
        }
    }
}

/* Do two that stand one behind the other belong together? */
static bool
are_one (const Range *a, const Range *b)
{
  if (b->from < a->to)
    return true;
  return !a->known && !b->known && b->from < a->to + GAP;
}

/* Whatever was used at any time of the iteration, as ranges without large gaps: the viewer goes
 * back in time, and wants a segment around each block.  Returns how many there are. */
static uint32_t
ranges_of (const Snapshot *s, Range *ranges)
{
  uint32_t n = known_segments (s, ranges), merged = 0;

  for (uint32_t i = 0; i < s->it->n_blocks; i++)
    if (s->it->blocks[i].device == s->device)
      ranges[n++] = (Range){ .from = s->it->blocks[i].address,
                             .to = s->it->blocks[i].address + s->it->blocks[i].bytes };
  for (uint32_t i = 0; i < s->it->n_memory; i++)
    if (s->it->memory[i].device == s->device && s->it->memory[i].kind <= TD_TAPE_MEMORY_FREE)
      ranges[n++] = (Range){ .from = s->it->memory[i].address,
                             .to = s->it->memory[i].address + s->it->memory[i].bytes };
  if (n > 1)
    qsort (ranges, n, sizeof *ranges, by_start);
  for (uint32_t i = 0; i < n; i++)
    if (merged > 0 && are_one (&ranges[merged - 1], &ranges[i]))
      {
        Range *into = &ranges[merged - 1];

        into->to = ranges[i].to > into->to ? ranges[i].to : into->to;
        into->stream = into->known ? into->stream : ranges[i].stream;
        into->small = into->known ? into->small : ranges[i].small;
        into->known = into->known || ranges[i].known;
      }
    else
      ranges[merged++] = ranges[i];
  return merged;
}

static bool
put_segments (Snapshot *s, TapeLive *live, uint32_t n)
{
  Range *ranges
      = malloc ((s->it->n_blocks + (size_t)s->it->n_memory + known_segments (s, NULL) + 1)
                * sizeof *ranges);
  uint32_t n_ranges, first = 0;

  if (ranges == NULL)
    return false;
  n_ranges = ranges_of (s, ranges);
  if (n > 1)
    qsort (live, n, sizeof *live, by_address);
  for (uint32_t i = 0; i < n_ranges; i++)
    {
      uint32_t end = first;

      while (end < n && live[end].address < ranges[i].to)
        end++;
      put_segment (s, ranges[i], live, first, end);
      first = end;
    }
  free (ranges);
  return true;
}

/* The host is always there; of the others some recorders tell only by what lies on them. */
static bool
has_device (const TdTapeIteration *it, uint32_t device)
{
  bool has = device == 0;

  for (uint32_t i = 0; i < it->n_devices && !has; i++)
    has = it->devices[i].device == device;
  for (uint32_t i = 0; i < it->n_blocks && !has; i++)
    has = it->blocks[i].device == device;
  for (uint32_t i = 0; i < it->n_memory && !has; i++)
    has = it->memory[i].device == device;
  return has;
}

/* The numbers of devices up to this one have a trace each, as they have with PyTorch. */
bool
td_tape_write_snapshot (TdTapeReader *r, uint64_t iteration, uint32_t device, FILE *out,
                        char *error, size_t n)
{
  Snapshot s
      = { .r = r,
          .out = out,
          .device = device,
          .is_import
          = strcmp (td_tape_reader_info (r, TD_TAPE_IMPORT_KEY), TD_TAPE_IMPORT_TORCH) == 0 };
  TapeLiveSet live;
  bool whole;

  s.it = td_tape_iteration_load (r, iteration, error, n);
  if (s.it == NULL)
    return false;
  if (!has_device (s.it, device))
    {
      snprintf (error, n, "iteration %" PRIu64 " has no device %u", iteration, device);
      td_tape_iteration_free (s.it);
      return false;
    }
  if (!td__tape_live_after (s.it, device, s.it->n_memory, &live))
    {
      snprintf (error, n, "no memory");
      td_tape_iteration_free (s.it);
      return false;
    }
  fputs ("\x80\x02", out);
  begin_dict (out);
  put_text (out, "segments");
  begin_list (out);
  whole = put_segments (&s, live.items, live.n);
  end_list (out);
  put_text (out, "device_traces");
  begin_list (out);
  for (uint32_t i = 0; i <= device; i++)
    {
      begin_list (out);
      if (i == device)
        put_trace (&s);
      end_list (out);
    }
  end_list (out);
  put_text (out, "allocator_settings");
  begin_dict (out);
  member_text (out, "PYTORCH_CUDA_ALLOC_CONF", "");
  end_dict (out);
  put_text (out, "external_annotations");
  begin_list (out);
  put_annotations (&s);
  end_list (out);
  end_dict (out);
  fputc ('.', out);
  free (live.items);
  td_tape_iteration_free (s.it);
  if (!whole)
    snprintf (error, n, "no memory");
  return whole;
}
