/* The ranks of one run: a folder of their recordings is opened on the first of them and the
 * page that compares them, and the window goes from one rank to another. It stays where it was,
 * the iteration, the operation and what is selected; to programs that still run it connects.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "ranks/td-rank-files.h"
#include "whereabouts.h"

/* The socket of the supervisor that writes this tape, by the file in which ranks say where they
 * are. Owner: the caller. NULL: none runs, or not on this machine. */
static char *
find_address (const char *tape, guint rank, guint n_ranks)
{
  g_autofree char *folder = g_path_get_dirname (tape);
  g_autofree char *board = g_build_filename (folder, TD_WHERE_NAME, NULL);
  char *address = NULL;
  TdWhere where;
  if (!g_file_test (board, G_FILE_TEST_IS_REGULAR)
      || !td__where_open_at (&where, board, -1, (int)n_ranks, false))
    return NULL;
  if ((int)rank < where.n)
    {
      TdWherePage *page = td__where_page (&where, (int)rank);
      if (page->abi == TD_WHERE_ABI && td__where_is_here (&where, page)
          && atomic_load (&page->supervisor) != 0)
        address = g_strndup (page->address, sizeof page->address);
    }
  td__where_close (&where);
  if (address && !*address)
    g_clear_pointer (&address, g_free);
  return address;
}

/* Breakpoints of this window are of all ranks: they stay its own. */
static void
connect_to_rank (TdWindow *self, const char *tape, guint rank, guint n_ranks)
{
  g_autofree char *address = find_address (tape, rank, n_ranks);
  GPtrArray *own = g_steal_pointer (&self->own_breaks);
  self->own_breaks = g_ptr_array_new_with_free_func (g_free);
  td__window_disconnect (self);
  if (address)
    td__window_connect (self, address);
  g_ptr_array_unref (self->own_breaks);
  self->own_breaks = own;
}

static gboolean
open_rank (TdWindow *self, const char *tape, guint n_ranks)
{
  if (!td__window_open_tape (self, tape))
    return FALSE;
  connect_to_rank (self, tape, td__window_get_rank (self), n_ranks);
  td_session_set_attached (self->session, self->control != NULL);
  td__window_update_title (self);
  td__window_update_actions (self);
  return TRUE;
}

gboolean
td__window_open_ranks (TdWindow *self, const char *folder)
{
  guint n_ranks;
  g_autofree char *tape = td_rank_files_find_first (folder, &n_ranks);
  if (!tape)
    {
      g_autofree char *text = g_strdup_printf (
          _ ("%s holds no recording of a program that ran as several ranks."), folder);
      td_window_show_message (self, "dialog-warning-symbolic", _ ("No Ranks in This Folder"),
                              text, NULL);
      return FALSE;
    }
  if (!open_rank (self, tape, n_ranks))
    return FALSE;
  td_workspace_show_finding (self->workspace);
  return TRUE;
}

/* The keys of what ran are the same on all ranks that ran the same. */
static void
go_on_there (TdWindow *self, TdMoment moment, guint64 selected)
{
  if (td_session_get_state (self->session) <= TD_PROGRAM_PAUSED)
    return; /* it is followed to its own newest */
  td_session_set_moment (self->session, moment.iteration, moment.event);
  if (selected)
    td_session_select (self->session, selected);
}

static void
show_rank (TdWindow *self, guint rank)
{
  guint n_ranks, n_selected;
  TdMoment moment = td_session_get_moment (self->session);
  const guint64 *keys = td_session_get_selection (self->session, &n_selected);
  guint64 selected = n_selected ? keys[0] : 0;
  g_autofree char *tape
      = td_rank_files_find (td_session_get_path (self->session), rank, &n_ranks);
  if (tape && open_rank (self, tape, n_ranks))
    {
      go_on_there (self, moment, selected);
      return;
    }
  if (!tape)
    {
      g_autofree char *text = g_strdup_printf (_ ("Rank %u has no recording here"), rank);
      td__window_toast (self, text);
    }
  td__window_update_rank_list (self);
}

void
td__run_rank (TdWindow *self, const char *parameter)
{
  char *end;
  guint64 rank = g_ascii_strtoull (parameter, &end, 10);
  guint n = td__window_get_n_ranks (self);
  if (!*parameter || *end || rank >= n)
    td__window_toast (self,
                      n < 2 ? _ ("This recording has one rank") : _ ("There is no such rank"));
  else if (rank != td__window_get_rank (self))
    show_rank (self, (guint)rank);
}

static void
go_by (TdWindow *self, guint step)
{
  guint n = td__window_get_n_ranks (self);
  if (n > 1)
    show_rank (self, (td__window_get_rank (self) + step) % n);
  else
    td__window_toast (self, _ ("This recording has one rank"));
}

void
td__run_next_rank (TdWindow *self, const char *parameter)
{
  go_by (self, 1);
}

void
td__run_previous_rank (TdWindow *self, const char *parameter)
{
  go_by (self, td__window_get_n_ranks (self) - 1);
}
