/* Texts of one iteration, found once.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-names.h"
#include "tape/td-iteration-private.h"

#include <gio/gio.h>

typedef struct
{
  const char *file;
  guint32 line;
  const char *function;
} Site;

typedef struct
{
  TdTapeHandle *handle;
  GHashTable *strings, *ops, *paths; /* id -> text */
  GHashTable *sites;                 /* id -> Site *, owned */
} Names;

/* ---- the reader ---- */

TdTapeHandle *
td__tape_handle_open (const char *path, guint max_summaries, GError **error)
{
  char what[256] = "";
  TdTapeReader *reader = td_tape_reader_open_bounded (path, max_summaries, what, sizeof what);
  TdTapeHandle *self;

  if (!reader)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: %s", path,
                   *what ? what : "cannot be read");
      return NULL;
    }
  self = g_new0 (TdTapeHandle, 1);
  self->ref_count = 1;
  self->reader = reader;
  g_mutex_init (&self->lock);
  return self;
}

TdTapeHandle *
td__tape_handle_ref (TdTapeHandle *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
td__tape_handle_unref (TdTapeHandle *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  td_tape_reader_free (self->reader);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* ---- the texts ---- */

static void
add_string (Names *names, guint32 id)
{
  if (id && !g_hash_table_contains (names->strings, GUINT_TO_POINTER (id)))
    g_hash_table_insert (names->strings, GUINT_TO_POINTER (id),
                         (gpointer)td_tape_reader_string (names->handle->reader, id));
}

static void
add_op (Names *names, guint32 id)
{
  if (!g_hash_table_contains (names->ops, GUINT_TO_POINTER (id)))
    g_hash_table_insert (names->ops, GUINT_TO_POINTER (id),
                         (gpointer)td_tape_reader_op_name (names->handle->reader, id));
}

static void
add_path (Names *names, guint32 id)
{
  if (id && !g_hash_table_contains (names->paths, GUINT_TO_POINTER (id)))
    g_hash_table_insert (names->paths, GUINT_TO_POINTER (id),
                         (gpointer)td_tape_reader_path_text (names->handle->reader, id));
}

static void
add_site (Names *names, guint32 id)
{
  const TdTapeSite *on_tape;
  Site *site;

  if (!id || g_hash_table_contains (names->sites, GUINT_TO_POINTER (id)))
    return;
  on_tape = td_tape_reader_site (names->handle->reader, id);
  site = g_new0 (Site, 1);
  if (on_tape)
    {
      site->file = td_tape_reader_string (names->handle->reader, on_tape->file);
      site->line = on_tape->line;
      site->function = td_tape_reader_string (names->handle->reader, on_tape->function);
    }
  g_hash_table_insert (names->sites, GUINT_TO_POINTER (id), site);
}

static void
collect (Names *names, const TdTapeIteration *t)
{
  add_string (names, t->label);
  for (guint i = 0; i < t->n_events; i++)
    {
      const TdTapeEvent *e = &t->events[i];

      add_op (names, e->opdef);
      add_site (names, e->site);
      add_path (names, e->path);
      add_string (names, e->attrs);
    }
  for (guint i = 0; i < t->n_vars; i++)
    {
      add_string (names, t->vars[i].name);
      add_path (names, t->vars[i].path);
      add_site (names, t->vars[i].site);
    }
  for (guint i = 0; i < t->n_spans; i++)
    {
      add_string (names, t->spans[i].name);
      add_path (names, t->spans[i].path);
      add_site (names, t->spans[i].site);
    }
  for (guint i = 0; i < t->n_grads; i++)
    add_string (names, t->grads[i].path);
  for (guint i = 0; i < t->n_memory; i++)
    add_site (names, t->memory[i].site);
  for (guint i = 0; i < t->n_host_reads; i++)
    add_site (names, t->host_reads[i].site);
  for (guint i = 0; i < t->n_copies; i++)
    add_site (names, t->copies[i].site);
  for (guint i = 0; i < t->n_collectives; i++)
    {
      add_site (names, t->collectives[i].site);
      add_string (names, t->collectives[i].call);
    }
  for (guint i = 0; i < t->n_rank_sums; i++)
    add_string (names, t->rank_sums[i].path);
  for (guint i = 0; i < t->n_reports; i++)
    add_string (names, t->reports[i].key);
  for (guint i = 0; i < t->n_notices; i++)
    {
      add_string (names, t->notices[i].text);
      add_string (names, t->notices[i].op);
      add_site (names, t->notices[i].site);
    }
  for (guint i = 0; i < t->n_faults; i++)
    add_string (names, t->faults[i].operand);
  for (guint i = 0; i < t->n_devices; i++)
    add_string (names, t->devices[i].name);
  for (guint i = 0; i < t->n_stack_frames; i++)
    add_site (names, t->stack_frames[i].site);
  add_string (names, t->stop.reason);
  add_site (names, t->stop.site);
}

static void
names_free (gpointer data)
{
  Names *names = data;

  g_hash_table_unref (names->strings);
  g_hash_table_unref (names->ops);
  g_hash_table_unref (names->paths);
  g_hash_table_unref (names->sites);
  td__tape_handle_unref (names->handle);
  g_free (names);
}

static const char *
get_string (gpointer data, guint32 id)
{
  return g_hash_table_lookup (((Names *)data)->strings, GUINT_TO_POINTER (id));
}

static const char *
get_op (gpointer data, guint32 id)
{
  return g_hash_table_lookup (((Names *)data)->ops, GUINT_TO_POINTER (id));
}

static const char *
get_path (gpointer data, guint32 id)
{
  return g_hash_table_lookup (((Names *)data)->paths, GUINT_TO_POINTER (id));
}

static const char *
get_site (gpointer data, guint32 id, guint32 *line)
{
  const Site *site = g_hash_table_lookup (((Names *)data)->sites, GUINT_TO_POINTER (id));

  if (!site)
    return NULL;
  *line = site->line;
  return site->file;
}

static const char *
get_function (gpointer data, guint32 id)
{
  const Site *site = g_hash_table_lookup (((Names *)data)->sites, GUINT_TO_POINTER (id));

  return site ? site->function : NULL;
}

static const TdNamesClass names_class
    = { get_string, get_op, get_path, get_site, get_function };

TdIteration *
td__iteration_new_from_handle (TdTapeHandle *handle, const TdTapeIteration *tape)
{
  Names *names = g_new0 (Names, 1);

  names->handle = td__tape_handle_ref (handle);
  names->strings = g_hash_table_new (NULL, NULL);
  names->ops = g_hash_table_new (NULL, NULL);
  names->paths = g_hash_table_new (NULL, NULL);
  names->sites = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  collect (names, tape);
  return handle->whole
             ? td__iteration_new_whole (&names_class, names, names_free, tape,
                                        td_tape_iteration_free)
             : td_iteration_new (&names_class, names, names_free, tape, td_tape_iteration_free);
}
