/* Going on with a tape that exists: the writer's tables are made anew from what the reader
 * finds. SPDX-License-Identifier: MIT */
#include "../read/reader-private.h"
#include "writer-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Entry `id` of a table, with the hashes that the writer would give it; NULL: a gap. */
static void
adopt (TdTapeWriter *w, unsigned table, uint32_t id, const void *bytes, size_t n)
{
  TapeTable *t = &w->tables[table];
  bool is_new;

  if (bytes != NULL)
    td__tape_table_intern (t, td_tape_hash_bytes (1, bytes, n),
                           td_tape_hash_bytes (2, bytes, n), &is_new);
  /* A gap, or a content that is there twice: the number is taken nevertheless. */
  while (t->n < id)
    td__tape_table_intern (t, td_tape_hash (0x676170, id), t->n, &is_new);
}

static void
adopt_names (TdTapeWriter *w, const TdTapeReader *r)
{
  for (uint32_t i = 1; i <= r->strings.n; i++)
    {
      TdTapeText text = td_tape_reader_text (r, i);

      adopt (w, TABLE_STRINGS, i, text.length ? text.text : NULL, text.length);
    }
  for (uint32_t i = 1; i <= td_tape_reader_n_sites (r); i++)
    {
      const TdTapeSite *site = td_tape_reader_site (r, i);
      TdTapeSite bare = site ? *site : (TdTapeSite){ 0 };

      bare.id = 0;
      adopt (w, TABLE_SITES, i, site ? &bare : NULL, sizeof bare);
    }
}

static void
adopt_classes (TdTapeWriter *w, const TdTapeReader *r)
{
  for (uint32_t i = 1; i <= td_tape_reader_n_opdefs (r); i++)
    {
      const TdTapeOpdef *def = td_tape_reader_opdef (r, i);
      TdTapeOpdef bare = def ? *def : (TdTapeOpdef){ 0 };
      TdTapeText name = td_tape_reader_text (r, bare.name);

      bare.id = 0;
      adopt (w, TABLE_OPDEFS, i, def ? &bare : NULL, sizeof bare);
      td__tape_remember_hash (&w->opdef_hash, i,
                              td_tape_hash_bytes (2, name.text, name.length));
    }
  for (uint32_t i = 1; i <= td_tape_reader_n_paths (r); i++)
    {
      const TdTapePath *path = td_tape_reader_path (r, i);
      TdTapePath bare = path ? *path : (TdTapePath){ 0 };
      TdTapeText text = td_tape_reader_text (r, bare.path);

      bare.id = 0;
      adopt (w, TABLE_PATHS, i, path ? &bare : NULL, sizeof bare);
      td__tape_remember_hash (&w->path_hash, i, td_tape_hash_bytes (2, text.text, text.length));
    }
}

static bool
adopt_tape (TdTapeWriter *w, const TdTapeReader *r)
{
  w->header = r->header;
  w->state = r->state;
  w->state.n_segments++;
  w->tally = r->tally;
  if (w->tally.n_iterations < r->summaries.n)
    w->tally.n_iterations = r->summaries.n;
  w->n_iterations = w->tally.n_iterations;
  w->has_first = w->n_iterations > 0;
  w->index_stride = w->tally.stride;
  for (uint32_t i = 0; i < r->n_seen; i++)
    if ((i > 0 && r->seen[i].offset != r->seen[i - 1].offset + r->seen[i - 1].head.capacity)
        || !td__tape_adopt_segment (w, r->seen[i].offset, &r->seen[i].head))
      return false;
  if (w->header.budget_bytes != 0 && td__tape_own_bytes (w) > w->header.budget_bytes)
    {
      w->must_bytes = td__tape_own_bytes (w) - w->header.budget_bytes;
      w->must_kept = w->must_bytes; /* as if all of it were the first iteration's */
      if (w->must_kept > w->kind_bytes[TD_TAPE_SEGMENT_KEPT])
        w->must_kept = w->kind_bytes[TD_TAPE_SEGMENT_KEPT];
    }
  adopt_names (w, r);
  adopt_classes (w, r);
  /* Structures and profiles keep their numbers; equal ones are stored again, once. */
  adopt (w, TABLE_STRUCTURES, r->structures.n, NULL, 0);
  adopt (w, TABLE_MEMORY, r->memory_spots.n, NULL, 0);
  adopt (w, TABLE_SCHEDULES, r->schedule_spots.n, NULL, 0);
  return w->tail.offset != 0;
}

TdTapeWriter *
td_tape_writer_continue (const char *path, char *error, size_t n)
{
  TdTapeReader *r = td_tape_reader_open (path, error, n);
  TdTapeWriter *w = r ? calloc (1, sizeof *w) : NULL;

  if (w == NULL)
    {
      td_tape_reader_free (r);
      return NULL;
    }
  w->fd = open (path, O_RDWR | O_CLOEXEC);
  if (w->fd < 0 || !adopt_tape (w, r))
    {
      snprintf (error, n, "%s", w->fd < 0 ? strerror (errno) : "cannot go on with this tape");
      w->failed = w->reported_failure = true;
      td_tape_writer_free (w);
      w = NULL;
    }
  td_tape_reader_free (r);
  return w;
}
