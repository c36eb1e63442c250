/* Which iteration of which recording stands beside that at the playhead.
 * SPDX-License-Identifier: MIT */
#include "pages/td-compare-page-private.h"

#include <string.h>

#include "schedule/td-schedule.h"

TdSession *
td__compare_page_source (TdComparePage *self)
{
  return self->other ? self->other : self->session;
}

static gboolean
is_listed (TdSession *session, gint64 number)
{
  g_autoptr (TdIteration) iteration = td_session_load_iteration (session, number, NULL);
  return iteration != NULL;
}

void
td__compare_page_forget_names (TdComparePage *self)
{
  g_clear_pointer (&self->port_names, g_free);
}

static gboolean
open_other (TdComparePage *self, const char *path, GError **error)
{
  g_autoptr (TdSession) other = td_session_open_bounded (path, error);
  if (!other)
    return FALSE;
  if (td_session_get_n_iterations (other) == 0)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: holds no iteration", path);
      return FALSE;
    }
  g_set_object (&self->other, other);
  td__compare_page_forget_names (self);
  self->choice = TD_CHOICE_SAME;
  return TRUE;
}

gboolean
td__compare_page_choose (TdComparePage *self, const char *what, GError **error)
{
  static const struct
  {
    const char *name;
    TdCompareChoice choice;
    gboolean of_this; /* recording */
  } names[] = { { "previous", TD_CHOICE_PREVIOUS, TRUE },
                { "structure", TD_CHOICE_STRUCTURE, TRUE },
                { "schedule", TD_CHOICE_SCHEDULE, TRUE },
                { "code", TD_CHOICE_CODE, TRUE },
                { "same", TD_CHOICE_SAME, FALSE } };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (what, names[i].name) == 0)
      {
        if (names[i].of_this)
          {
            g_clear_object (&self->other);
            td__compare_page_forget_names (self);
          }
        self->choice = names[i].choice;
        return TRUE;
      }
  char *end;
  gint64 number = g_ascii_strtoll (what, &end, 10);
  if (!*what || *end)
    return open_other (self, what, error);
  if (!is_listed (td__compare_page_source (self), number))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                   "There is no iteration %" G_GINT64_FORMAT " to compare with", number);
      return FALSE;
    }
  self->choice = TD_CHOICE_NUMBER;
  self->number = number;
  return TRUE;
}

/* ---- finding it ---- */

/* The nearest iteration of another graph, earlier ones first; -1: all are alike. */
static gint64
find_structure (TdSession *session, TdIteration *a)
{
  TdTapeReader *reader = td_session_get_reader (session);
  const TdTapeIteration *tape = td_iteration_get_tape (a);
  TdTapeSummaries s = { 0 };
  gint64 later = -1;
  if (reader)
    s = td_tape_reader_summaries (reader);
  for (guint32 i = s.n; i-- > 0;)
    {
      gboolean other
          = s.rows[i].structure != tape->structure
            && td_schedule_graph_of (reader, s.rows[i].structure) != tape->fingerprint_dims;
      if (!other || (s.rows[i].flags & TD_TAPE_ITERATION_NOT_STORED))
        continue;
      if (s.rows[i].number < tape->number)
        return (gint64)s.rows[i].number;
      later = (gint64)s.rows[i].number;
    }
  return later;
}

/* Its place in the list; where it would be, if it is not in it. */
static gint64
find_place (TdSession *session, gint64 number)
{
  guint i = 0;
  while (i < td_session_get_n_iterations (session)
         && td_session_get_iteration_number (session, i) < number)
    i++;
  return i;
}

/* What is looked for: an iteration of which more (less) was replayed. */
typedef struct
{
  guint n_replayed;
  gboolean more;
  TdIteration *alike; /* of the shapes of this one; NULL: of whichever */
} Wanted;

/* Its number; -1: it is not what is wanted. It has to be loaded to know. */
static gint64
take_wanted (TdSession *session, gint64 place, const Wanted *wanted)
{
  if (place < 0 || place >= td_session_get_n_iterations (session))
    return -1;
  gint64 number = td_session_get_iteration_number (session, (guint)place);
  g_autoptr (TdIteration) there = td_session_load_iteration (session, number, NULL);
  if (!there || (wanted->alike && !td_schedule_same_shapes (there, wanted->alike)))
    return -1;
  guint n = td_schedule_count_replayed (there);
  return (wanted->more ? n > wanted->n_replayed : n < wanted->n_replayed) ? number : -1;
}

/* The nearest one of those around; else of the first ones, whose code was traced. */
static gint64
find_wanted (TdSession *session, gint64 here, const Wanted *wanted)
{
  enum
  {
    AROUND = 64,
    FIRST = 8
  };
  gint64 found = -1;
  for (gint64 d = 1; d <= AROUND && found < 0; d++)
    {
      found = take_wanted (session, here - d, wanted);
      if (found < 0)
        found = take_wanted (session, here + d, wanted);
    }
  for (gint64 i = 0; i < FIRST && found < 0; i++)
    found = take_wanted (session, i, wanted);
  return found;
}

/* The schedule of this code or the code of this schedule: better of the same shapes. */
static gint64
find_replayed (TdSession *session, TdIteration *a, gboolean more)
{
  Wanted wanted = { td_schedule_count_replayed (a), more, a };
  gint64 here = find_place (session, td_iteration_get_number (a));
  gint64 found = find_wanted (session, here, &wanted);
  wanted.alike = NULL;
  return found >= 0 ? found : find_wanted (session, here, &wanted);
}

static gint64
find_next (TdSession *session, gint64 number)
{
  for (guint i = 0; i < td_session_get_n_iterations (session); i++)
    if (td_session_get_iteration_number (session, i) > number)
      return td_session_get_iteration_number (session, i);
  return -1;
}

static gint64
find_previous (TdSession *session, gint64 number)
{
  for (guint i = td_session_get_n_iterations (session); i-- > 0;)
    if (td_session_get_iteration_number (session, i) < number)
      return td_session_get_iteration_number (session, i);
  return -1;
}

static gint64
find_number (TdComparePage *self, TdIteration *a, GError **error)
{
  TdSession *source = td__compare_page_source (self);
  gint64 here = td_iteration_get_number (a), found = -1;
  const char *why = "";
  switch (self->choice)
    {
    case TD_CHOICE_PREVIOUS:
      found = find_previous (source, here);
      why = "comes first: nothing was recorded before it.";
      break;
    case TD_CHOICE_STRUCTURE:
      found = find_structure (source, a);
      why = "has the graph that all iterations of this recording have.";
      break;
    case TD_CHOICE_SCHEDULE:
      found = find_replayed (source, a, TRUE);
      why = td_schedule_count_replayed (a) > 0
                ? "ran from schedules already, and no iteration near it ran more from them."
                : "has no counterpart near it that ran from a static schedule.";
      break;
    case TD_CHOICE_CODE:
      found = find_replayed (source, a, FALSE);
      why = td_schedule_count_replayed (a) > 0 ? "has no counterpart near it that ran by code."
                                               : "ran by code itself.";
      break;
    case TD_CHOICE_SAME:
      found = is_listed (source, here) ? here : td_session_get_last_complete (source);
      why = "has no counterpart: the other recording has no complete iteration.";
      break;
    case TD_CHOICE_NUMBER:
    default:
      return self->number;
    }
  if (found < 0)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "Iteration %" G_GINT64_FORMAT " %s",
                 here, why);
  return found;
}

TdIteration *
td__compare_page_find_other (TdComparePage *self, TdIteration *a, GError **error)
{
  gint64 number = find_number (self, a, error);
  if (number < 0)
    return NULL;
  return td_session_load_iteration (td__compare_page_source (self), number, error);
}

gboolean
td__compare_page_move (TdComparePage *self, int direction, GError **error)
{
  TdSession *source = td__compare_page_source (self);
  gint64 from = self->compare ? td_iteration_get_number (self->compare->of[1 - self->mine])
                              : td_session_get_moment (self->session).iteration;
  gint64 to = direction > 0 ? find_next (source, from) : find_previous (source, from);
  if (to < 0)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                   "Iteration %" G_GINT64_FORMAT " is the %s one", from,
                   direction > 0 ? "last" : "first");
      return FALSE;
    }
  self->choice = TD_CHOICE_NUMBER;
  self->number = to;
  return TRUE;
}
