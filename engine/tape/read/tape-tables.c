/* What a reader knows of a tape: texts, operations, sites, paths, sources, parameters,
 * summaries and curves, filled frame by frame and looked up by id. SPDX-License-Identifier: MIT
 */
#include "tape-oom.h"

#include <stdlib.h>
#include <string.h>

void *
td__tape_array_at (TapeArray *a, uint32_t index, size_t size)
{
  if (index >= a->room)
    {
      uint32_t room = a->room ? a->room : 16;
      char *items;

      while (room <= index)
        room *= 2;
      items = realloc (a->items, room * size);
      if (items == NULL)
        return NULL;
      a->items = items;
      a->room = room;
    }
  if (index >= a->n)
    {
      /* not all of the room at once: what is not used takes no memory */
      memset ((char *)a->items + a->n * size, 0, (index + 1 - a->n) * size);
      a->n = index + 1;
    }
  return (char *)a->items + index * size;
}

static const void *
array_get (const TapeArray *a, uint32_t index, size_t size)
{
  return index < a->n ? (const char *)a->items + index * size : NULL;
}

/* An id the file could have room for: each definition takes a frame. */
static bool
id_plausible (const TdTapeReader *r, uint32_t id)
{
  return id != 0 && id <= r->file_bytes / sizeof (TdTapeFrame) + 1 && id < UINT32_MAX / 4;
}

static char *
keep_text (TdTapeReader *r, const char *bytes, size_t n)
{
  char **slot = td__tape_array_at (&r->texts, r->texts.n, sizeof *slot);
  char *text = malloc (n + 1);

  if (slot == NULL || text == NULL)
    {
      free (text);
      return NULL;
    }
  memcpy (text, bytes, n);
  text[n] = '\0';
  *slot = text;
  return text;
}

static void
take_string (TdTapeReader *r, const char *bytes, size_t n)
{
  TdTapeStringRecord record;
  TdTapeText *text;

  td__tape_take (&record, sizeof record, bytes, n);
  if (!id_plausible (r, record.id) || n < sizeof record || record.length > n - sizeof record)
    return;
  text = td__tape_array_at (&r->strings, record.id - 1, sizeof *text);
  if (text != NULL && text->text == NULL)
    {
      text->text = keep_text (r, bytes + sizeof record, record.length);
      text->length = text->text ? record.length : 0;
    }
}

static void
take_by_id (TdTapeReader *r, TapeArray *a, const char *bytes, size_t n, size_t size)
{
  uint32_t id;
  void *slot;

  td__tape_take (&id, sizeof id, bytes, n);
  slot = id_plausible (r, id) ? td__tape_array_at (a, id - 1, size) : NULL;
  if (slot != NULL)
    td__tape_take (slot, size, bytes, n);
}

static void
take_next (TapeArray *a, const char *bytes, size_t n, size_t size)
{
  void *slot = td__tape_array_at (a, a->n, size);

  if (slot != NULL)
    td__tape_take (slot, size, bytes, n);
}

static void
take_source (TdTapeReader *r, const char *bytes, size_t n)
{
  TdTapeSourceRecord record;
  TdTapeSource *source;

  td__tape_take (&record, sizeof record, bytes, n);
  if (n < sizeof record || record.bytes > n - sizeof record)
    return;
  source = td__tape_array_at (&r->sources, r->sources.n, sizeof *source);
  if (source == NULL)
    return;
  source->path = td_tape_reader_string (r, record.path);
  source->text = keep_text (r, bytes + sizeof record, (size_t)record.bytes);
  source->bytes = source->text ? (size_t)record.bytes : 0;
  if (source->text == NULL)
    source->text = "";
}

/* The newest shape of a parameter counts. */
static void
take_parameter (TdTapeReader *r, const char *bytes, size_t n)
{
  TdTapeParameter record, *all = r->parameters.items;

  td__tape_take (&record, sizeof record, bytes, n);
  if (record.ndim > TD_TAPE_MAX_NDIM)
    return;
  for (uint32_t i = 0; i < r->parameters.n; i++)
    if (all[i].path == record.path)
      {
        all[i] = record;
        return;
      }
  take_next (&r->parameters, bytes, n, sizeof record);
}

static void
take_structure (TdTapeReader *r, const char *bytes, size_t n, TapeSpot spot)
{
  TdTapeStructureHead head;
  TdTapeStructure *structure;
  TapeSpot *where;

  td__tape_take (&head, sizeof head, bytes, n);
  if (!id_plausible (r, head.id))
    return;
  structure = td__tape_array_at (&r->structures, head.id - 1, sizeof *structure);
  where = td__tape_array_at (&r->structure_spots, head.id - 1, sizeof *where);
  if (structure == NULL || where == NULL)
    return;
  *where = spot;
  structure->id = head.id;
  structure->n_events = head.n_events;
  structure->n_vars = head.n_vars;
  structure->fingerprint = head.fingerprint;
  structure->fingerprint_dims = head.fingerprint_dims;
}

static void
take_memory (TdTapeReader *r, const char *bytes, size_t n, TapeSpot spot)
{
  TdTapeMemoryHead head;
  TapeSpot *where;

  td__tape_take (&head, sizeof head, bytes, n);
  where = id_plausible (r, head.id)
              ? td__tape_array_at (&r->memory_spots, head.id - 1, sizeof *where)
              : NULL;
  if (where != NULL)
    *where = spot;
}

static void
take_schedule (TdTapeReader *r, const char *bytes, size_t n, TapeSpot spot)
{
  TdTapeScheduleHead head;
  TapeSpot *where;

  td__tape_take (&head, sizeof head, bytes, n);
  where = id_plausible (r, head.id)
              ? td__tape_array_at (&r->schedule_spots, head.id - 1, sizeof *where)
              : NULL;
  if (where != NULL)
    *where = spot;
}

/* Rows that are said again are known, except to those who come now or stayed away for long. */
static void
take_summaries (TdTapeReader *r, const char *bytes, size_t n, bool again)
{
  TdTapeSummary row;

  r->said_again = r->said_again || again;
  for (; n >= sizeof row; n -= sizeof row, bytes += sizeof row)
    {
      memcpy (&row, bytes, sizeof row);
      if (!again || row.number >= r->known_through)
        take_next (&r->summaries, bytes, sizeof row, sizeof row);
    }
}

static void
take_reports (TdTapeReader *r, const char *bytes, size_t n, bool again)
{
  TdTapeReport row;

  for (; n >= sizeof row; n -= sizeof row, bytes += sizeof row)
    {
      memcpy (&row, bytes, sizeof row);
      if (!again || row.iteration >= r->reported_through)
        take_next (&r->reports, bytes, sizeof row, sizeof row);
    }
}

static void
take_fault (TdTapeReader *r, const char *bytes, size_t n)
{
  const TdTapeFault *all;
  uint32_t i = r->faults.n;

  take_next (&r->faults, bytes, n, sizeof *all);
  all = r->faults.items;
  if (i > 0 && r->faults.n > i && all[i].iteration < all[i - 1].iteration)
    r->faults_sorted = false;
}

/* Not trusted: sizes and counts are those that the frame can back. */
static void
take_oom (TdTapeReader *r, const char *bytes, size_t n)
{
  const char *end = bytes + n;
  TdTapeOomHead head;
  TdTapeOom oom;

  td__tape_take (&head, sizeof head, bytes, n);
  if (n < sizeof head || head.oom_bytes > n - sizeof head || head.holder_bytes == 0
      || head.n_holders > TD_TAPE_MAX_OOM_HOLDERS || r->ooms.n >= TD_TAPE_MAX_OOMS
      || (uint64_t)head.n_holders * head.holder_bytes > n - sizeof head - head.oom_bytes)
    return;
  bytes += sizeof head;
  td__tape_take (&oom, sizeof oom, bytes, head.oom_bytes);
  bytes += head.oom_bytes;
  oom.n_holders = 0;
  oom.first_holder = r->oom_holders.n;
  for (uint32_t i = 0; i < head.n_holders; i++, bytes += head.holder_bytes)
    {
      TdTapeOomHolder *h = td__tape_array_at (&r->oom_holders, r->oom_holders.n, sizeof *h);

      if (h == NULL)
        break;
      td__tape_take (h, sizeof *h, bytes, head.holder_bytes);
      oom.n_holders++;
    }
  if (oom.n_holders == head.n_holders)
    td__tape_take_oom_links (&r->oom_links, bytes, (size_t)(end - bytes), head.n_holders,
                             oom.first_holder);
  take_next (&r->ooms, (const char *)&oom, sizeof oom, sizeof oom);
}

static void
take_end (TdTapeReader *r, const char *bytes, size_t n)
{
  td__tape_take (&r->end, sizeof r->end, bytes, n);
  r->has_end = true;
}

void
td__tape_take_frame (TdTapeReader *r, const TdTapeFrame *frame, const char *bytes,
                     TapeSpot spot)
{
  size_t n = frame->len - sizeof *frame;

  switch (frame->type)
    {
    case TD_TAPE_FRAME_STRING:
      take_string (r, bytes, n);
      break;
    case TD_TAPE_FRAME_OPDEF:
      take_by_id (r, &r->opdefs, bytes, n, sizeof (TdTapeOpdef));
      break;
    case TD_TAPE_FRAME_SITE:
      take_by_id (r, &r->sites, bytes, n, sizeof (TdTapeSite));
      break;
    case TD_TAPE_FRAME_PATH:
      take_by_id (r, &r->paths, bytes, n, sizeof (TdTapePath));
      break;
    case TD_TAPE_FRAME_INFO:
      take_next (&r->infos, bytes, n, sizeof (TdTapeInfo));
      break;
    case TD_TAPE_FRAME_SOURCE:
      take_source (r, bytes, n);
      break;
    case TD_TAPE_FRAME_PARAMETER:
      take_parameter (r, bytes, n);
      break;
    case TD_TAPE_FRAME_STRUCTURE:
      take_structure (r, bytes, n, spot);
      break;
    case TD_TAPE_FRAME_MEMORY:
      take_memory (r, bytes, n, spot);
      break;
    case TD_TAPE_FRAME_SUMMARY:
      take_summaries (r, bytes, n, (frame->flags & TD_TAPE_FRAME_AGAIN) != 0);
      break;
    case TD_TAPE_FRAME_REPORT:
      take_reports (r, bytes, n, (frame->flags & TD_TAPE_FRAME_AGAIN) != 0);
      break;
    case TD_TAPE_FRAME_NOTICE:
      take_next (&r->notices, bytes, n, sizeof (TdTapeNotice));
      break;
    case TD_TAPE_FRAME_FAULT:
      take_fault (r, bytes, n);
      break;
    case TD_TAPE_FRAME_OOM:
      take_oom (r, bytes, n);
      break;
    case TD_TAPE_FRAME_END:
      take_end (r, bytes, n);
      break;
    case TD_TAPE_FRAME_ALIAS:
      take_next (&r->aliases, bytes, n, sizeof (TdTapeAlias));
      break;
    case TD_TAPE_FRAME_STATIC_CHAIN:
      take_by_id (r, &r->chains, bytes, n, sizeof (TdTapeChain));
      break;
    case TD_TAPE_FRAME_SCHEDULE:
      take_schedule (r, bytes, n, spot);
      break;
    case TD_TAPE_FRAME_STATIC_EVENT:
      take_next (&r->static_events, bytes, n, sizeof (TdTapeStaticEvent));
      break;
    default: /* a later minor version's: skipped */
      break;
    }
}

/* ------------------------------------------------------------------------ accessors */

const TdTapeHeader *
td_tape_reader_header (const TdTapeReader *r)
{
  return &r->header;
}

uint64_t
td_tape_reader_bytes (const TdTapeReader *r)
{
  return r->file_bytes;
}

TdTapeText
td_tape_reader_text (const TdTapeReader *r, uint32_t id)
{
  const TdTapeText *text = id ? array_get (&r->strings, id - 1, sizeof *text) : NULL;

  return text && text->text ? *text : (TdTapeText){ .text = "" };
}

const char *
td_tape_reader_string (const TdTapeReader *r, uint32_t id)
{
  return td_tape_reader_text (r, id).text;
}

/* Entry `id` of a table of records that begin with their id; NULL for a gap. */
static const void *
by_id (const TapeArray *a, uint32_t id, size_t size)
{
  const void *record = id ? array_get (a, id - 1, size) : NULL;

  return record && *(const uint32_t *)record == id ? record : NULL;
}

#define ACCESSORS(plural, singular, Type)                                                      \
  uint32_t td_tape_reader_n_##plural (const TdTapeReader *r)                                   \
  {                                                                                            \
    return r->plural.n;                                                                        \
  }                                                                                            \
  const Type *td_tape_reader_##singular (const TdTapeReader *r, uint32_t i)

ACCESSORS (opdefs, opdef, TdTapeOpdef)
{
  return by_id (&r->opdefs, i, sizeof (TdTapeOpdef));
}

ACCESSORS (sites, site, TdTapeSite)
{
  return by_id (&r->sites, i, sizeof (TdTapeSite));
}

ACCESSORS (paths, path, TdTapePath)
{
  return by_id (&r->paths, i, sizeof (TdTapePath));
}

ACCESSORS (parameters, parameter, TdTapeParameter)
{
  return array_get (&r->parameters, i, sizeof (TdTapeParameter));
}

ACCESSORS (notices, notice, TdTapeNotice)
{
  return array_get (&r->notices, i, sizeof (TdTapeNotice));
}

ACCESSORS (faults, fault, TdTapeFault)
{
  return array_get (&r->faults, i, sizeof (TdTapeFault));
}

ACCESSORS (ooms, oom, TdTapeOom)
{
  return array_get (&r->ooms, i, sizeof (TdTapeOom));
}

ACCESSORS (structures, structure, TdTapeStructure)
{
  return array_get (&r->structures, i, sizeof (TdTapeStructure));
}

const char *
td_tape_reader_op_name (const TdTapeReader *r, uint32_t opdef)
{
  const TdTapeOpdef *def = td_tape_reader_opdef (r, opdef);

  return def && def->name ? td_tape_reader_string (r, def->name) : "?";
}

const char *
td_tape_reader_path_text (const TdTapeReader *r, uint32_t path)
{
  const TdTapePath *p = td_tape_reader_path (r, path);

  return p ? td_tape_reader_string (r, p->path) : "";
}

const char *
td_tape_reader_site_text (const TdTapeReader *r, uint32_t site, char *out, size_t n)
{
  const TdTapeSite *s = td_tape_reader_site (r, site);

  if (s == NULL)
    snprintf (out, n, "%s", "");
  else
    snprintf (out, n, "%s:%u", td_tape_reader_string (r, s->file), s->line);
  return out;
}

const char *
td_tape_reader_info (const TdTapeReader *r, const char *key)
{
  const TdTapeInfo *infos = r->infos.items;

  for (uint32_t i = r->infos.n; i-- > 0;)
    if (strcmp (td_tape_reader_string (r, infos[i].key), key) == 0)
      return td_tape_reader_string (r, infos[i].value);
  return "";
}

uint32_t
td_tape_reader_n_sources (const TdTapeReader *r)
{
  return r->sources.n;
}

TdTapeSource
td_tape_reader_source (const TdTapeReader *r, uint32_t i)
{
  const TdTapeSource *source = array_get (&r->sources, i, sizeof *source);

  return source ? *source : (TdTapeSource){ .path = "", .text = "" };
}

const TdTapeAlias *
td_tape_reader_aliases (const TdTapeReader *r, uint32_t *n)
{
  *n = r->aliases.n;
  return r->aliases.items;
}

const TdTapeEnd *
td_tape_reader_end (const TdTapeReader *r)
{
  return r->has_end ? &r->end : NULL;
}

TdTapeSummaries
td_tape_reader_summaries (const TdTapeReader *r)
{
  return (TdTapeSummaries){ .n = r->summaries.n, .rows = r->summaries.items };
}

int64_t
td_tape_reader_find (const TdTapeReader *r, uint64_t number)
{
  const TdTapeSummary *rows = r->summaries.items;
  uint32_t lo = 0, hi = r->summaries.n;

  if (!r->summaries_sorted)
    {
      for (uint32_t i = r->summaries.n; i-- > 0;)
        if (rows[i].number == number)
          return i;
      return -1;
    }
  while (lo < hi)
    {
      uint32_t mid = lo + (hi - lo) / 2;

      if (rows[mid].number < number)
        lo = mid + 1;
      else
        hi = mid;
    }
  return lo < r->summaries.n && rows[lo].number == number ? (int64_t)lo : -1;
}

bool
td_tape_reader_stored (TdTapeReader *r, uint32_t index)
{
  const TdTapeSummary *s = array_get (&r->summaries, index, sizeof *s);
  TdTapeFrame frame;

  return s != NULL && !(s->flags & TD_TAPE_ITERATION_NOT_STORED)
         && td__tape_pread (r->fd, &frame, sizeof frame, s->offset) && frame.seq == s->seq
         && frame.type == TD_TAPE_FRAME_ITERATION
         && td__tape_frame_is_current (r, s->offset, &frame);
}

const TdTapeReport *
td_tape_reader_reports (const TdTapeReader *r, uint64_t *n)
{
  *n = r->reports.n;
  return r->reports.items;
}
