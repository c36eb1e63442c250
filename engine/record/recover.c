/* When model and supervisor both died, what was recorded last is still in the ring's file: this
 * takes it out and appends it to a copy of the tape. SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include "td-tape-reader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Entry `id` of a table; ids come from a file, so a wild one is not believed. */
static void *
entry (TdList *table, uint32_t id, size_t size)
{
  if (id == 0 || id > 1u << 24)
    return NULL;
  while (table->n < id)
    {
      void *more = td__list_add (table, size);

      if (more == NULL)
        return NULL;
      memset (more, 0, size);
    }
  return (char *)table->items + (id - 1) * size;
}

static uint64_t
text_hash (const TdTapeReader *r, uint32_t id)
{
  TdTapeText text = td_tape_reader_text (r, id);

  return td_tape_hash_bytes (2, text.text, text.length);
}

static void
set (TdList *table, const TdTapeAlias *from, uint64_t hash)
{
  TdAlias *alias = entry (table, from->foreign, sizeof *alias);

  if (alias != NULL)
    *alias = (TdAlias){ .id = from->id, .hash = hash };
}

static void
adopt_alias (TdAssembler *a, const TdTapeReader *r, const TdTapeAlias *alias)
{
  const TdTapeOpdef *def = td_tape_reader_opdef (r, alias->id);
  const TdTapeSite *site = td_tape_reader_site (r, alias->id);
  const TdTapePath *path = td_tape_reader_path (r, alias->id);
  char **text;

  if (alias->kind == TD_TAPE_FRAME_STRING)
    {
      set (&a->strings, alias, text_hash (r, alias->id));
      text = entry (&a->texts, alias->foreign, sizeof *text);
      if (text != NULL && *text == NULL)
        *text = strdup (td_tape_reader_string (r, alias->id));
    }
  else if (alias->kind == TD_TAPE_FRAME_OPDEF && def != NULL)
    set (&a->opdefs, alias, text_hash (r, def->name));
  else if (alias->kind == TD_TAPE_FRAME_SITE && site != NULL)
    set (&a->sites, alias, td_tape_hash (text_hash (r, site->file), site->line));
  else if (alias->kind == TD_TAPE_FRAME_PATH && path != NULL)
    set (&a->paths, alias, text_hash (r, path->path));
}

/* Variables of the last stored iteration: parameters, state. */
static void
adopt_variables (TdAssembler *a, const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_vars; i++)
    {
      const TdTapeVar *v = &it->vars[i];
      TdMeta meta = { .key = v->key,
                      .bytes = v->bytes,
                      .name = v->name,
                      .path = v->path,
                      .site = v->site,
                      .dtype = v->dtype,
                      .ndim = v->ndim,
                      .category = v->category,
                      .flags = (uint8_t)(v->flags & ~TD_TAPE_VAR_EXTERNAL) };

      if (v->ndim > 0)
        memcpy (meta.dims, it->dims + v->first_dim, v->ndim * sizeof *meta.dims);
      td__meta_set (a, td_tape_var_id (it, i), &meta);
    }
}

static void
adopt_memory (TdAssembler *a, const TdTapeIteration *it)
{
  TdTapeIteration unused = { 0 };
  TdShape none = { 0 };

  for (uint32_t i = 0; i < it->n_blocks; i++)
    {
      TdTapeMemory *m = td__list_add (&a->memory, sizeof *m);

      if (m != NULL)
        *m = (TdTapeMemory){ .address = it->blocks[i].address,
                             .bytes = it->blocks[i].bytes,
                             .category = (uint8_t)it->blocks[i].category,
                             .device = (uint8_t)it->blocks[i].device };
    }
  for (uint32_t i = 0; i < it->n_memory; i++)
    {
      TdTapeMemory *m = td__list_add (&a->memory, sizeof *m);

      if (m != NULL)
        *m = it->memory[i];
    }
  td__memory_replay (a, &none, &unused);
  a->memory.n = 0;
}

static void
adopt_tape (TdAssembler *a, TdTapeReader *r)
{
  TdTapeSummaries s = td_tape_reader_summaries (r);
  uint32_t n;
  const TdTapeAlias *aliases = td_tape_reader_aliases (r, &n);
  char error[128];

  for (uint32_t i = 0; i < n; i++)
    adopt_alias (a, r, &aliases[i]);
  a->skip_to_begin = true;
  a->skip_through = s.n ? s.rows[s.n - 1].number + 1 : 0;
  if (s.n > 0)
    {
      const TdTapeIteration *it
          = td_tape_iteration_load (r, s.rows[s.n - 1].number, error, sizeof error);

      a->state.iteration = s.rows[s.n - 1].number;
      a->state.n_iterations = s.n;
      if (it != NULL)
        {
          adopt_variables (a, it);
          adopt_memory (a, it);
        }
      td_tape_iteration_free (it);
    }
}

/* Everything from the tail on; the ring's own positions stay, so that this can be done again.
 */
static void
feed_ring (TdAssembler *a, TdRing *ring)
{
  const void *bytes;
  size_t n;

  while ((n = td_ring_peek (ring, &bytes)) > 0)
    {
      td_assembler_feed (a, bytes, n);
      td_ring_take (ring, n);
    }
}

static bool
append_ring (const char *out, TdRing *ring, char *error, size_t n)
{
  TdTapeReader *r = td_tape_reader_open (out, error, n);
  TdTapeWriter *w = r ? td_tape_writer_continue (out, error, n) : NULL;
  TdAssembler *a = w ? td_assembler_new (w, ring->shared) : NULL;
  bool ok = a != NULL;

  if (ok && td_tape_reader_end (r) == NULL)
    {
      adopt_tape (a, r);
      feed_ring (a, ring);
      td_assembler_end (a, ring, a->state.exited ? (a->state.exit_status & 255) << 8 : -1,
                        false);
      if (td_tape_writer_error (w) != NULL)
        {
          snprintf (error, n, "%s", td_tape_writer_error (w));
          ok = false;
        }
    }
  td_assembler_free (a);
  td_tape_writer_free (w);
  td_tape_reader_free (r);
  return ok;
}

bool
td_assembler_recover (const char *tape, const char *ring_path, const char *out, char *error,
                      size_t n)
{
  char beside[4096];
  struct stat st;
  TdRing *ring;
  bool ok;

  if (ring_path == NULL)
    {
      snprintf (beside, sizeof beside, "%s.ring", tape);
      ring_path = beside;
    }
  if (!td_tape_repair (tape, out, error, n))
    return false;
  if (stat (ring_path, &st) != 0)
    return true; /* no ring was left: the tape is all there is */
  ring = td_ring_open (ring_path, error, n);
  if (ring == NULL)
    return false;
  ok = append_ring (out, ring, error, n);
  td_ring_free (ring);
  if (!ok)
    unlink (out); /* made by this call */
  return ok;
}
