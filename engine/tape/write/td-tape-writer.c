/* The writer's tables: texts, operations, sites, paths, structures and memory profiles, each
 * stored once; and the small records around them.
 * SPDX-License-Identifier: MIT */
#include "writer-private.h"

#include "td-tape-oom-way.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_VALUES_BYTES (256ull << 20)
#define SCRATCH_STAYS (4ull << 20) /* of one large iteration it does not */
#define MIN_BUDGET_BYTES (256ull << 10)

/* Entry `value` of a table is the one that is looked for when its second hash agrees too. */
typedef struct
{
  const TapeTable *table;
  uint64_t check;
} Wanted;

static bool
same_entry (const void *user, uint32_t value)
{
  const Wanted *wanted = user;

  return wanted->table->check[value - 1] == wanted->check;
}

uint32_t
td__tape_table_intern (TapeTable *t, uint64_t hash, uint64_t check, bool *is_new)
{
  Wanted wanted = { .table = t, .check = check };
  uint32_t id = td__tape_map_find (&t->map, hash, same_entry, &wanted);

  *is_new = false;
  if (id != 0)
    return id;
  if (t->n == t->room)
    {
      uint32_t room = t->room ? t->room * 2 : 64;
      uint64_t *more = realloc (t->check, room * sizeof *more);

      if (more == NULL)
        return 0;
      t->check = more;
      t->room = room;
    }
  if (!td__tape_map_add (&t->map, hash, t->n + 1))
    return 0;
  t->check[t->n++] = check;
  *is_new = true;
  return t->n;
}

/* Intern by content.  The two hashes together are what identifies an entry. */
static uint32_t
intern (TdTapeWriter *w, unsigned table, const void *bytes, size_t n, bool *is_new)
{
  return td__tape_table_intern (&w->tables[table], td_tape_hash_bytes (1, bytes, n),
                                td_tape_hash_bytes (2, bytes, n), is_new);
}

static uint64_t
clock_ns (clockid_t clock)
{
  struct timespec t;

  clock_gettime (clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
fill_header (TdTapeWriter *w, const TdTapeWriterOptions *options)
{
  TdTapeHeader *h = &w->header;
  uint64_t mono = clock_ns (CLOCK_MONOTONIC), wall = clock_ns (CLOCK_REALTIME);

  memcpy (h->magic, TD_TAPE_MAGIC, sizeof h->magic);
  h->major = TD_TAPE_MAJOR;
  h->minor = TD_TAPE_MINOR;
  h->header_bytes = TD_TAPE_TAIL_OFFSET;
  if (getrandom (h->uuid, sizeof h->uuid, 0) != (ssize_t)sizeof h->uuid)
    memcpy (h->uuid, &wall, sizeof wall);
  h->uuid[6] = (h->uuid[6] & 0x0f) | 0x40;
  h->uuid[8] = (h->uuid[8] & 0x3f) | 0x80;
  h->mono_ns = options->mono_ns ? options->mono_ns : mono;
  h->wall_ns = wall - (mono - h->mono_ns);
  h->ticks = options->ticks;
  h->ns_per_tick = options->ns_per_tick;
  h->pid = options->pid ? options->pid : (int32_t)getpid ();
  h->rank = options->rank;
  h->n_ranks = options->n_ranks ? options->n_ranks : 1;
  h->level = options->level;
  h->budget_bytes = options->budget_bytes;
  if (h->budget_bytes != 0 && h->budget_bytes < MIN_BUDGET_BYTES)
    h->budget_bytes = MIN_BUDGET_BYTES;
  h->values_bytes = options->values_bytes ? options->values_bytes : DEFAULT_VALUES_BYTES;
}

TdTapeWriter *
td_tape_writer_new (const TdTapeWriterOptions *options, char *error, size_t n)
{
  TdTapeWriter *w = calloc (1, sizeof *w);
  TdTapeWriterOptions known = { 0 };

  memcpy (&known, options, options->size < sizeof known ? options->size : sizeof known);
  if (w == NULL)
    {
      snprintf (error, n, "no memory");
      return NULL;
    }
  w->fd = td__tape_open (known.path, known.overwrite, error, n);
  if (w->fd < 0)
    {
      free (w);
      return NULL;
    }
  fill_header (w, &known);
  w->rate_bytes = known.rate_bytes;
  w->start_bytes = known.start_bytes != 0 ? known.start_bytes : TD_TAPE_START_BYTES;
  if (!td__tape_segments_start (w))
    {
      snprintf (error, n, "%s", w->error);
      td_tape_writer_free (w);
      return NULL;
    }
  return w;
}

void
td_tape_writer_free (TdTapeWriter *w)
{
  if (w == NULL)
    return;
  td_tape_writer_flush (w);
  close (w->fd);
  td__tape_segments_free (w);
  for (unsigned t = 0; t < N_TABLES; t++)
    {
      td__tape_map_clear (&w->tables[t].map);
      free (w->tables[t].check);
    }
  free (w->opdef_hash);
  free (w->path_hash);
  free (w->scratch.bytes);
  td__tape_index_free (w);
  free (w);
}

const char *
td_tape_writer_error (const TdTapeWriter *w)
{
  return w->failed ? w->error : NULL;
}

uint64_t
td_tape_writer_bytes (const TdTapeWriter *w)
{
  return w->state.end;
}

static bool
put_def (TdTapeWriter *w, unsigned type, const void *a, size_t n_a, const void *b, size_t n_b)
{
  return td__tape_append (w, TD_TAPE_SEGMENT_DEFS, type, a, n_a, b, n_b, 0, NULL);
}

uint32_t
td_tape_writer_string_n (TdTapeWriter *w, const char *text, size_t n)
{
  bool is_new;
  uint32_t id;

  if (n == 0 || w->failed || n > UINT32_MAX / 4)
    return 0;
  if (w->kind_bytes[TD_TAPE_SEGMENT_DEFS] > td__tape_share (w, 3) / 2)
    {
      /* Texts that never repeat must not eat the budget: known ones go on, new ones do not. */
      Wanted wanted
          = { .table = &w->tables[TABLE_STRINGS], .check = td_tape_hash_bytes (2, text, n) };

      return td__tape_map_find (&wanted.table->map, td_tape_hash_bytes (1, text, n), same_entry,
                                &wanted);
    }
  id = intern (w, TABLE_STRINGS, text, n, &is_new);
  if (is_new)
    {
      TdTapeStringRecord record = { .id = id, .length = (uint32_t)n };

      put_def (w, TD_TAPE_FRAME_STRING, &record, sizeof record, text, n);
    }
  return id;
}

uint32_t
td_tape_writer_string (TdTapeWriter *w, const char *text)
{
  return text ? td_tape_writer_string_n (w, text, strlen (text)) : 0;
}

/* Remember the hash of a name, so that fingerprints agree between tapes. */
void
td__tape_remember_hash (uint64_t **hashes, uint32_t id, uint64_t hash)
{
  uint32_t room = 64;
  uint64_t *more = *hashes;

  while (room < id)
    room *= 2;
  if (more == NULL || id > room / 2)
    more = realloc (more, room * sizeof *more);
  if (more == NULL)
    return;
  *hashes = more;
  more[id - 1] = hash;
}

uint32_t
td_tape_writer_opdef (TdTapeWriter *w, const TdTapeOpdef *opdef)
{
  TdTapeOpdef record = *opdef;
  bool is_new;

  record.id = 0;
  record.reserved = 0;
  record.id = intern (w, TABLE_OPDEFS, &record, sizeof record, &is_new);
  if (is_new)
    {
      uint64_t name = record.name && record.name <= w->tables[TABLE_STRINGS].n
                          ? w->tables[TABLE_STRINGS].check[record.name - 1]
                          : 0;

      td__tape_remember_hash (&w->opdef_hash, record.id, name);
      put_def (w, TD_TAPE_FRAME_OPDEF, &record, sizeof record, NULL, 0);
    }
  return record.id;
}

uint32_t
td_tape_writer_site (TdTapeWriter *w, const char *file, uint32_t line, const char *function)
{
  TdTapeSite record = { .file = td_tape_writer_string (w, file),
                        .function = td_tape_writer_string (w, function),
                        .line = line };
  bool is_new;

  if (record.file == 0)
    return 0;
  record.id = intern (w, TABLE_SITES, &record, sizeof record, &is_new);
  if (is_new)
    put_def (w, TD_TAPE_FRAME_SITE, &record, sizeof record, NULL, 0);
  return record.id;
}

uint32_t
td_tape_writer_path (TdTapeWriter *w, const char *path, const char *link_class)
{
  TdTapePath record = { .path = td_tape_writer_string (w, path),
                        .link_class = td_tape_writer_string (w, link_class) };
  bool is_new;

  if (record.path == 0)
    return 0;
  record.id = intern (w, TABLE_PATHS, &record, sizeof record, &is_new);
  if (is_new)
    {
      td__tape_remember_hash (&w->path_hash, record.id,
                              td_tape_hash_bytes (2, path, strlen (path)));
      put_def (w, TD_TAPE_FRAME_PATH, &record, sizeof record, NULL, 0);
    }
  return record.id;
}

void
td_tape_writer_info (TdTapeWriter *w, const char *key, const char *value)
{
  TdTapeInfo record
      = { .key = td_tape_writer_string (w, key), .value = td_tape_writer_string (w, value) };

  put_def (w, TD_TAPE_FRAME_INFO, &record, sizeof record, NULL, 0);
}

void
td_tape_writer_source (TdTapeWriter *w, const char *path, const char *text, size_t n)
{
  TdTapeSourceRecord record = { .path = td_tape_writer_string (w, path), .bytes = n };

  put_def (w, TD_TAPE_FRAME_SOURCE, &record, sizeof record, text, n);
}

void
td_tape_writer_parameter (TdTapeWriter *w, const TdTapeParameter *parameter)
{
  put_def (w, TD_TAPE_FRAME_PARAMETER, parameter, sizeof *parameter, NULL, 0);
}

void
td_tape_writer_alias (TdTapeWriter *w, unsigned kind, uint32_t foreign, uint32_t id)
{
  TdTapeAlias record = { .kind = kind, .foreign = foreign, .id = id };

  put_def (w, TD_TAPE_FRAME_ALIAS, &record, sizeof record, NULL, 0);
}

void
td_tape_writer_notice (TdTapeWriter *w, const TdTapeNotice *notice)
{
  put_def (w, TD_TAPE_FRAME_NOTICE, notice, sizeof *notice, NULL, 0);
}

void
td_tape_writer_fault (TdTapeWriter *w, const TdTapeFault *fault)
{
  put_def (w, TD_TAPE_FRAME_FAULT, fault, sizeof *fault, NULL, 0);
}

void
td_tape_writer_oom (TdTapeWriter *w, const TdTapeOom *oom, const TdTapeOomHolder *holders,
                    uint32_t n)
{
  td_tape_writer_oom_ways (w, oom, holders, n, NULL, 0);
}

/* A full disk: say so where there is room left, with a text of its own. */
static void
put_failure (TdTapeWriter *w)
{
  TdTapeStringRecord text
      = { .id = w->tables[TABLE_STRINGS].n + 1, .length = (uint32_t)strlen (w->error) };
  TdTapeNotice notice = { .iteration = w->n_iterations,
                          .event = TD_TAPE_NONE,
                          .kind = TD_TAPE_NOTICE_RECORDING,
                          .status = TD_TAPE_NOTICE_LOST,
                          .text = text.id };

  td__tape_append_tail (w, TD_TAPE_FRAME_STRING, &text, sizeof text, w->error, text.length);
  td__tape_append_tail (w, TD_TAPE_FRAME_NOTICE, &notice, sizeof notice, NULL, 0);
}

static void
report_once (TdTapeWriter *w, bool *reported, const char *text)
{
  TdTapeNotice notice = { .iteration = w->tally.newest,
                          .event = TD_TAPE_NONE,
                          .kind = TD_TAPE_NOTICE_RECORDING,
                          .text = td_tape_writer_string (w, text) };

  *reported = true;
  if (notice.text != 0)
    td_tape_writer_notice (w, &notice);
}

void
td_tape_writer_limit (TdTapeWriter *w, uint64_t bytes)
{
  w->limit_bytes = bytes;
}

/* Once each: how far it went is in the tally. */
static void
report_thinning (TdTapeWriter *w)
{
  if (w->has_thinned && !w->reported_thinning[0])
    report_once (
        w, &w->reported_thinning[0],
        td__tape_is_limited (w)
            ? "all runs have together what their budget allows: from here on older iterations "
              "become summaries"
        : td__tape_allowance (w) == w->header.budget_bytes
            ? "the tape has all that its budget allows: from here on older iterations become "
              "summaries"
            : "the program is faster than anybody looks: from here on older iterations become "
              "summaries before the tape's budget is used up");
  if (w->index_stride > 1 && !w->reported_thinning[1])
    report_once (
        w, &w->reported_thinning[1],
        "the tape's budget is small for so many iterations: of the older ones not all keep "
        "a summary, all are counted");
}

void
td_tape_writer_flush (TdTapeWriter *w)
{
  td__tape_put_index (w);
  report_thinning (w);
  td__tape_flush_segments (w);
  if (w->scratch.room > SCRATCH_STAYS)
    {
      free (w->scratch.bytes);
      w->scratch = (TapeBuffer){ 0 };
    }
  if (w->failed && !w->reported_failure)
    {
      w->reported_failure = true;
      put_failure (w);
    }
}

void
td_tape_writer_end (TdTapeWriter *w, const TdTapeEnd *end)
{
  td_tape_writer_flush (w);
  if (!w->failed)
    td__tape_look_at_all (w);
  td__tape_append_tail (w, TD_TAPE_FRAME_END, end, sizeof *end, NULL, 0);
}
