/*
 * Opening the tapes of a run, if they are of one run, and the scan over them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include <gio/gio.h>

#include "td-rank-files.h"
#include "td-ranks-private.h"
#include "td-session.h"

#define SUFFIX ".tdtape"
#define MOST_RANKS 65536 /* more are a mistake on a tape */

static void
clear_finding (gpointer data)
{
  TdRanksFinding *f = data;

  g_free (f->ranks);
  g_free (f->label);
  g_free (f->array);
  g_free (f->site);
  g_free (f->sentence);
  g_free (f->advice);
}

static void
free_group (gpointer data)
{
  TdRankGroup *group = data;

  g_free (group->places);
  g_free (group);
}

static void
clear_tape (TdRankTape *tape)
{
  g_clear_pointer (&tape->now, td__rank_iteration_free);
  g_clear_pointer (&tape->texts, g_ptr_array_unref);
  g_clear_pointer (&tape->updates, g_hash_table_unref);
  g_clear_pointer (&tape->attrs, g_hash_table_unref);
  g_clear_pointer (&tape->left_out, g_array_unref);
  g_clear_pointer (&tape->idle, g_array_unref);
  g_clear_pointer (&tape->handle, td__tape_handle_unref);
  g_free (tape->own_path);
  g_free (tape->open.end);
}

void
td_ranks_free (TdRanks *self)
{
  for (guint i = 0; i < self->n; i++)
    clear_tape (&self->tapes[i]);
  g_free (self->tapes);
  g_hash_table_unref (self->rungs);
  g_ptr_array_unref (self->fresh);
  g_queue_free_full (self->done, g_free);
  g_hash_table_unref (self->groups);
  g_array_unref (self->findings);
  g_string_chunk_free (self->chunk);
  g_free (self->more_updates);
  g_clear_pointer (&self->averaged, g_ptr_array_unref);
  g_clear_pointer (&self->updated_before, g_ptr_array_unref);
  g_free (self);
}

/* ---- opening ---- */

static gboolean G_GNUC_PRINTF (2, 3) fail (GError **error, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  g_propagate_error (error,
                     g_error_new_valist (G_IO_ERROR, G_IO_ERROR_INVALID_DATA, format, args));
  va_end (args);
  return FALSE;
}

static gboolean
open_tape (TdRankTape *tape, const char *path, GError **error)
{
  const TdTapeHeader *header;

  tape->handle = td__tape_handle_open (path, 0, error);
  if (!tape->handle)
    return FALSE;
  tape->reader = tape->handle->reader;
  td_tape_reader_skip_memory (tape->reader, true);
  header = td_tape_reader_header (tape->reader);
  tape->own_path = g_strdup (path);
  tape->texts = g_ptr_array_new ();
  tape->updates = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  tape->attrs = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  tape->left_out = g_array_new (FALSE, FALSE, sizeof (gint64));
  tape->idle = g_array_new (FALSE, FALSE, sizeof (TdRankIdle));
  tape->open.rank = header->rank;
  tape->open.path = tape->own_path;
  tape->open.host = td_tape_reader_info (tape->reader, "host");
  tape->open.device = td_tape_reader_info (tape->reader, "device");
  tape->open.pid = header->pid;
  tape->open.n_iterations = td_tape_reader_thinning (tape->reader).n_iterations;
  tape->last_number = tape->last_of_loop = tape->first_update = -1;
  tape->least_offset = G_MININT64;
  tape->most_offset = G_MAXINT64;
  return TRUE;
}

/* What `tapedeck run -n 1` leaves: a run like others, which has nothing to be compared with. */
static gboolean
is_rank_alone (const char *path, guint n_paths)
{
  g_autofree char *name = g_path_get_basename (path);

  return n_paths == 1 && g_str_equal (name, "rank-0" SUFFIX);
}

/* A folder may have tapes of other programs beside those of the ranks. */
static gboolean
open_all (TdRanks *self, const GPtrArray *paths, gboolean is_folder, GError **error)
{
  for (guint i = 0; i < paths->len; i++)
    {
      TdRankTape *tape = &self->tapes[self->n];
      const TdTapeHeader *header;

      if (!open_tape (tape, g_ptr_array_index (paths, i), error))
        return FALSE;
      header = td_tape_reader_header (tape->reader);
      if (is_folder && header->n_ranks < 2 && !is_rank_alone (tape->own_path, paths->len))
        {
          clear_tape (tape);
          memset (tape, 0, sizeof *tape);
          continue;
        }
      self->n++;
      self->n_started = MAX (self->n_started, header->n_ranks);
    }
  return TRUE;
}

static int
by_rank (const void *a, const void *b)
{
  const TdRankTape *x = a, *y = b;

  return x->open.rank < y->open.rank ? -1 : x->open.rank > y->open.rank;
}

/* Tapes that say nothing of it are of an older recorder, or of another program. */
static gboolean
is_of_another_run (const TdRankTape *a, const TdRankTape *b)
{
  const char *x = td_tape_reader_info (a->reader, "run"),
             *y = td_tape_reader_info (b->reader, "run");

  return *x && *y && strcmp (x, y) != 0;
}

static gboolean
check_all (const TdRanks *self, const char *what, gboolean is_folder, GError **error)
{
  if (self->n == 0)
    return fail (error, "%s: no tapes of ranks in it", what);
  for (guint i = 0; i < self->n; i++)
    {
      const TdRankTape *tape = &self->tapes[i];
      guint n_ranks = td_tape_reader_header (tape->reader)->n_ranks;

      if (is_folder && self->n_started < 2)
        return TRUE;
      if (n_ranks < 2)
        return fail (error, "%s: a recording of one rank: there is nothing to compare it with",
                     tape->own_path);
      if (n_ranks != self->n_started)
        return fail (error, "%s is of %u ranks, others are of %u: not of one run",
                     tape->own_path, n_ranks, self->n_started);
      if (i > 0 && self->tapes[i - 1].open.rank == tape->open.rank)
        return fail (error, "%s and %s are both of rank %u: not of one run",
                     self->tapes[i - 1].own_path, tape->own_path, tape->open.rank);
      if (is_of_another_run (&self->tapes[0], tape))
        return fail (error, "%s and %s are of different runs", self->tapes[0].own_path,
                     tape->own_path);
      if (tape->open.rank >= n_ranks || n_ranks > MOST_RANKS)
        return fail (error, "%s: it is of rank %u of %u, which cannot be", tape->own_path,
                     tape->open.rank, n_ranks);
    }
  if (self->n == 1)
    return fail (error,
                 "%s: the only tape here of a run of %u ranks: there is nothing to "
                 "compare it with",
                 self->tapes[0].own_path, self->n_started);
  return TRUE;
}

TdRanks *
td_ranks_open (const char *const *paths, guint n, GError **error)
{
  gboolean is_folder = n == 1 && g_file_test (paths[0], G_FILE_TEST_IS_DIR);
  g_autoptr (GPtrArray) files = td_rank_files_list (paths, n, error);
  g_autoptr (TdRanks) self = NULL;

  if (!files)
    return NULL;
  self = g_new0 (TdRanks, 1);
  self->uneven = self->not_averaged = self->before_averaged = self->steps_part = -1;
  self->chunk = g_string_chunk_new (4096);
  self->findings = g_array_new (FALSE, TRUE, sizeof (TdRanksFinding));
  g_array_set_clear_func (self->findings, clear_finding);
  self->rungs = g_hash_table_new_full (td__rung_hash, td__rung_equal, g_free, NULL);
  self->done = g_queue_new ();
  self->fresh = g_ptr_array_new ();
  self->groups = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, free_group);
  self->tapes = g_new0 (TdRankTape, files->len + 1);
  if (!open_all (self, files, is_folder, error))
    return NULL;
  qsort (self->tapes, self->n, sizeof *self->tapes, by_rank);
  if (!check_all (self, paths[0], is_folder, error))
    return NULL;
  return g_steal_pointer (&self);
}

guint
td_ranks_get_n_started (const TdRanks *self)
{
  return self->n_started;
}

guint
td_ranks_get_n (const TdRanks *self)
{
  return self->n;
}

const TdRank *
td_ranks_get (const TdRanks *self, guint i)
{
  return &self->tapes[i].open;
}

guint
td_ranks_get_n_findings (const TdRanks *self)
{
  return self->findings->len;
}

const TdRanksFinding *
td_ranks_get_finding (const TdRanks *self, guint i)
{
  return &g_array_index (self->findings, TdRanksFinding, i);
}

guint
td_ranks_count_faults (const TdRanks *self)
{
  guint n = 0;

  for (guint i = 0; i < self->findings->len; i++)
    n += td_ranks_get_finding (self, i)->level != TD_RANKS_NOTE;
  return n;
}

/* ---- the scan ---- */

static int
by_weight (gconstpointer a, gconstpointer b)
{
  const TdRanksFinding *x = a, *y = b;

  if (x->level != y->level)
    return x->level > y->level ? -1 : 1;
  if (x->iteration != y->iteration)
    return (guint64)x->iteration < (guint64)y->iteration ? -1 : 1; /* of the run: last */
  return x->cause < y->cause ? -1 : x->cause > y->cause;
}

/* It has come to its update, though it may not have come out of it. */
static gboolean
begins_update (TdRanks *self, guint place, const TdRankIteration *it)
{
  for (guint i = 0; i < it->n_waits; i++)
    if (g_str_equal (td__ranks_text (self, place, it->waits[i].call), "td_opt_update"))
      return TRUE;
  return it->n_update_events > 0;
}

/* A call in it failed, or was never left: what came after is not the program's will. */
static gboolean
is_broken_off (const TdRankIteration *it)
{
  for (guint i = 0; i < it->n_waits; i++)
    if ((it->waits[i].flags & TD_TAPE_COLLECTIVE_FAILED)
        || (it->waits[i].flags & (TD_TAPE_COLLECTIVE_WAITS | TD_TAPE_COLLECTIVE_BEHIND))
               == TD_TAPE_COLLECTIVE_WAITS)
      return TRUE;
  return it->is_live;
}

static void
count_begun (TdRanks *self, guint place, const TdRankIteration *it)
{
  TdRankTape *tape = &self->tapes[place];

  if (it->is_of_loop)
    tape->last_of_loop = it->number;
  if (begins_update (self, place, it) || (it->has_backward && is_broken_off (it)))
    tape->n_begun++; /* by hand it is on its way to one, in a call for all */
  else if (it->has_backward)
    g_array_append_val (tape->left_out, it->number);
  else if (!is_broken_off (it))
    g_array_append_val (tape->idle, ((TdRankIdle){ it->number, it->computes }));
}

/* Iterations outside any TD_ITERATION may have updates, too. */
static void
count (TdRankTape *tape, const TdRankIteration *it)
{
  tape->open.n_looked_at += !it->is_live;
  if (it->n_update_events == 0)
    return;
  tape->open.n_updating++;
  if (tape->first_update >= 0)
    return;
  tape->first_update = it->number;
  tape->update_site = it->update_site;
  tape->update_opdef = it->update_opdef;
}

/* What was given to all after the updates is of one model, whatever ranks had until then. */
static void
forget_persistents (TdRanks *self)
{
  for (guint i = self->findings->len; self->shares_persistents && i-- > 0;)
    if (g_array_index (self->findings, TdRanksFinding, i).cause == TD_RANKS_PERSISTENTS)
      g_array_remove_index (self->findings, i);
}

/* Rank 0's, or the means of all. */
static const char *const sharing_calls[]
    = { "td_comm_bcast_link", "td_comm_allreduce_persistent", NULL };

static void
look_for_sharing (TdRanks *self, guint place, const TdRankIteration *it)
{
  for (guint i = 0; i < it->n_waits && self->tapes[place].first_update >= 0; i++)
    self->shares_persistents
        = self->shares_persistents
          || g_strv_contains (sharing_calls, td__ranks_text (self, place, it->waits[i].call));
}

/* Of the ranks that have that step. */
static void
compare_counts (TdRanks *self, const TdRankRow *row)
{
  guint n = 0, n_updating = 0;

  for (guint i = 0; i < self->n; i++)
    {
      n += row->of[i] != NULL;
      n_updating += row->of[i] && row->of[i]->n_update_events > 0;
    }
  if (self->uneven < 0 && n_updating > 0 && n_updating < n)
    self->uneven = row->number;
}

/* The first step in which all update, and some do so more often. */
static void
compare_updates (TdRanks *self, const TdRankRow *row)
{
  gboolean differ = FALSE;

  for (guint i = 0; i < self->n; i++)
    {
      if (!row->of[i] || row->of[i]->n_update_events == 0 || is_broken_off (row->of[i]))
        return;
      differ = differ || row->of[i]->n_update_events != row->of[0]->n_update_events;
    }
  if (!differ || self->more_updates)
    return;
  self->more_updates = g_new (guint32, self->n);
  self->more_updates_in = row->number;
  for (guint i = 0; i < self->n; i++)
    self->more_updates[i] = row->of[i]->n_update_events;
}

void
td_ranks_look (TdRanks *self)
{
  TdRanksSteps *steps = td__ranks_steps_new (self);
  TdRanksParting *parting = td__ranks_parting_new (self);
  TdRanksGradients *gradients = td__ranks_gradients_new (self);
  TdRanksGraphs *graphs = td__ranks_graphs_new (self);
  TdRankRow *row = td__rank_row_new (self);

  while (td__ranks_next_row (self, row))
    {
      TdSumTable *table = td__sum_table_new (self, row);

      td__ranks_look_for_unshared (self, row);

      for (guint i = 0; i < self->n; i++)
        if (row->of[i])
          {
            td__ranks_take_waits (self, i, row->of[i]);
            look_for_sharing (self, i, row->of[i]);
            count (&self->tapes[i], row->of[i]);
            count_begun (self, i, row->of[i]);
          }
      td__ranks_count_waiting (self, row);
      compare_counts (self, row);
      compare_updates (self, row);
      td__ranks_steps_look (steps, self, row);
      td__ranks_parting_look (parting, self, row, table);
      td__ranks_gradients_look (gradients, self, row, table);
      td__ranks_graphs_look (graphs, self, row, table);
      td__sum_table_free (table);
      td__rank_row_clear (self, row);
    }
  td__rank_row_free (self, row);
  td__ranks_steps_free (steps);
  td__ranks_parting_free (parting);
  td__ranks_gradients_end (gradients, self);
  td__ranks_graphs_end (graphs, self);
  td__ranks_align_clocks (self);
  td__ranks_look_at_ends (self);
  td__ranks_look_at_run (self);
  forget_persistents (self);
  td__ranks_name_iterations (self);
  g_array_sort (self->findings, by_weight);
}
