/* The tape that recomputing writes: the tables of the first tape under the same ids, and the
 * one iteration, with the values that came out.
 *
 * SPDX-License-Identifier: MIT */
#include "recompute-private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ids are given in the order in which things are said, each once: what is said in the order of
 * its ids keeps them. */
static bool
copy_tables (TdTapeReader *r, TdTapeWriter *w)
{
  bool same = true;
  TdTapeText text;

  for (uint32_t id = 1; (text = td_tape_reader_text (r, id)).length > 0; id++)
    same = td_tape_writer_string_n (w, text.text, text.length) == id && same;
  for (uint32_t id = 1; id <= td_tape_reader_n_opdefs (r); id++)
    same = td_tape_writer_opdef (w, td_tape_reader_opdef (r, id)) == id && same;
  for (uint32_t id = 1; id <= td_tape_reader_n_sites (r); id++)
    {
      const TdTapeSite *s = td_tape_reader_site (r, id);

      same = td_tape_writer_site (w, td_tape_reader_string (r, s->file), s->line,
                                  td_tape_reader_string (r, s->function))
                 == id
             && same;
    }
  for (uint32_t id = 1; id <= td_tape_reader_n_paths (r); id++)
    {
      const TdTapePath *p = td_tape_reader_path (r, id);

      same = td_tape_writer_path (w, td_tape_reader_string (r, p->path),
                                  td_tape_reader_string (r, p->link_class))
                 == id
             && same;
    }
  return same;
}

static void
copy_run (TdRecompute *c)
{
  static const char *const keys[] = {
    "program",      "device",           "argv",        "cwd", "host", "model", "version.engine",
    "version.blas", "version.compiler", "version.libc"
  };
  TdTapeReader *r = c->r;
  TdTapeWriter *w = c->out.w;
  const TdTapeEnd *end = td_tape_reader_end (r);

  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
    if (td_tape_reader_info (r, keys[k])[0] != '\0')
      td_tape_writer_info (w, keys[k], td_tape_reader_info (r, keys[k]));
  td_tape_writer_info (w, "recomputed.from", c->options->tape);
  for (uint32_t i = 0; i < td_tape_reader_n_sources (r); i++)
    {
      TdTapeSource s = td_tape_reader_source (r, i);

      td_tape_writer_source (w, s.path, s.text, s.bytes);
    }
  for (uint32_t i = 0; i < td_tape_reader_n_parameters (r); i++)
    td_tape_writer_parameter (w, td_tape_reader_parameter (r, i));
  for (uint32_t i = 0; i < c->it->n_reports; i++)
    td_tape_writer_report (w, &c->it->reports[i]);
  if (end != NULL)
    td_tape_writer_end (w, end);
}

bool
td__recompute_open (TdRecompute *c)
{
  const TdRecomputeOptions *o = c->options;
  TdTapeWriterOptions options = { .size = sizeof options,
                                  .level = TD_TAPE_LEVEL_VALUES,
                                  .path = c->out.path,
                                  .values_bytes = (uint64_t)1 << 50,
                                  .pid = td_tape_reader_header (c->r)->pid };
  char error[256];

  if (access (o->out, F_OK) == 0 && !o->overwrite)
    return td__recompute_refuse (c, "%.300s: %s", o->out, strerror (EEXIST));
  if (!td_tape_may_replace (o->out, error, sizeof error))
    return td__recompute_refuse (c, "%.300s: %s", o->out, error);
  if ((size_t)snprintf (c->out.path, sizeof c->out.path, "%s.%ld.part", o->out, (long)getpid ())
      >= sizeof c->out.path)
    return td__recompute_refuse (c, "%.300s: %s", o->out, strerror (ENAMETOOLONG));
  c->out.w = td_tape_writer_new (&options, error, sizeof error);
  if (c->out.w == NULL)
    return td__recompute_refuse (c, "%.300s: %s", o->out, error);
  if (copy_tables (c->r, c->out.w))
    {
      copy_run (c);
      return true;
    }
  if (td_tape_writer_error (c->out.w) != NULL)
    td__recompute_refuse (c, "%.300s: %s", o->out, td_tape_writer_error (c->out.w));
  td__recompute_refuse (c, "%.300s: its tables are damaged", o->tape);
  return td__recompute_close (c, false);
}

static void *
grow (void *items, uint32_t n, uint32_t *room, size_t size)
{
  void *larger = items;

  if (n < *room)
    return items;
  *room = *room > 0 ? 2 * *room : 256;
  larger = realloc (items, *room * size);
  return larger;
}

bool
td__recompute_put (TdRecompute *c, uint32_t var, uint32_t event, uint32_t flags,
                   const TdTapeStats *stats)
{
  TdRecomputeOut *out = &c->out;
  const TdTapeVar *v = &c->it->vars[var];
  TdTapeTensorRecord record = { .iteration = c->it->number,
                                .variable = td_tape_var_id (c->it, var),
                                .bytes = td__recompute_bytes (c->it, var),
                                .event = event,
                                .dtype = v->dtype,
                                .ndim = v->ndim };
  TdTapeTensorRef ref;
  void *larger;

  for (unsigned d = 0; d < v->ndim; d++)
    record.dims[d] = c->it->dims[v->first_dim + d];
  larger = grow (out->tensors, out->n_tensors, &out->room_tensors, sizeof *out->tensors);
  if (larger == NULL)
    return td__recompute_refuse (c, "no memory");
  out->tensors = larger;
  larger = grow (out->stats, out->n_stats, &out->room_stats, sizeof *out->stats);
  if (larger == NULL)
    return td__recompute_refuse (c, "no memory");
  out->stats = larger;
  if (!td_tape_writer_tensor (out->w, &record, c->host, &ref))
    return td__recompute_refuse (c, "%.300s: %s", c->options->out,
                                 td_tape_writer_error (out->w) != NULL
                                     ? td_tape_writer_error (out->w)
                                     : "no room for an array");
  ref.var = var;
  ref.flags = flags;
  out->tensors[out->n_tensors++] = ref;
  if (stats != NULL)
    out->stats[out->n_stats++] = *stats;
  return true;
}

/* Relative to the iteration's first ids, as writers want them. */
static TdTapeMemory *
relative_memory (const TdTapeIteration *it)
{
  TdTapeMemory *memory = malloc ((it->n_memory + 1u) * sizeof *memory);

  for (uint32_t i = 0; memory != NULL && i < it->n_memory; i++)
    {
      TdTapeMemory *m = &memory[i];

      *m = it->memory[i];
      m->buffer = m->buffer == 0 ? TD_TAPE_NO_ID : m->buffer - it->first_buffer;
      m->variable = m->variable == 0 ? TD_TAPE_NO_ID : m->variable - it->first_id;
    }
  return memory;
}

static void
write_iteration (TdRecompute *c)
{
  const TdRecomputeOut *out = &c->out;
  TdTapeIteration it = *c->it;
  TdTapeMemory *memory = relative_memory (c->it);
  bool is_new;

  it.flags |= TD_TAPE_ITERATION_STATS | TD_TAPE_ITERATION_VALUES | TD_TAPE_ITERATION_RECOMPUTED;
  it.stats = out->stats;
  it.n_stats = out->n_stats;
  it.tensors = out->tensors;
  it.n_tensors = out->n_tensors;
  it.memory = memory;
  it.n_addresses = it.n_attr_changes = 0;     /* they have been applied */
  it.n_statics = it.n_runs = it.n_traced = 0; /* no function of theirs is here */
  it.structure = td_tape_writer_structure (out->w, &it, &is_new);
  it.memory_profile = td_tape_writer_memory (out->w, &it);
  td_tape_writer_iteration (out->w, &it);
  free (memory);
}

bool
td__recompute_close (TdRecompute *c, bool whole)
{
  TdRecomputeOut *out = &c->out;

  if (whole)
    {
      write_iteration (c);
      td_tape_writer_flush (out->w);
    }
  if (whole && td_tape_writer_error (out->w) != NULL)
    whole = td__recompute_refuse (c, "%.300s: %s", c->options->out,
                                  td_tape_writer_error (out->w));
  td_tape_writer_free (out->w);
  out->w = NULL;
  free (out->stats);
  free (out->tensors);
  if (whole && rename (out->path, c->options->out) != 0)
    whole = td__recompute_refuse (c, "%.300s: %s", c->options->out, strerror (errno));
  if (!whole)
    unlink (out->path);
  return whole;
}
