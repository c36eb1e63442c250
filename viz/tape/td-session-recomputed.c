/* Iterations that were run again: each is a tape of its own, with all values, of the structure
 * that it has in the session's.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-session-private.h"

typedef struct
{
  TdTapeHandle *tape;
  TdIteration *iteration;
} Recomputed;

static void
recomputed_free (gpointer data)
{
  Recomputed *r = data;

  td_iteration_unref (r->iteration);
  td__tape_handle_unref (r->tape);
  g_free (r);
}

gboolean
td_session_take_recomputed (TdSession *self, const char *path, GError **error)
{
  TdTapeHandle *tape = td__tape_handle_open (path, 0, error);
  const TdTapeIteration *it = NULL;
  TdTapeSummaries all;
  char text[256] = "it has no iteration";

  if (!tape)
    return FALSE;
  td_tape_reader_poll (tape->reader);
  all = td_tape_reader_summaries (tape->reader);
  if (all.n > 0)
    it = td_tape_iteration_load (tape->reader, all.rows[0].number, text, sizeof text);
  if (!it)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: %s", path, text);
      td__tape_handle_unref (tape);
      return FALSE;
    }
  if (!self->recomputed)
    self->recomputed = g_ptr_array_new_with_free_func (recomputed_free);
  Recomputed *r = g_new (Recomputed, 1);
  *r = (Recomputed){ tape, td__iteration_new_from_handle (tape, it) };
  g_ptr_array_insert (self->recomputed, 0, r);
  return TRUE;
}

TdIteration *
td_session_get_recomputed (TdSession *self, gint64 number, TdTapeReader **reader)
{
  for (guint i = 0; self->recomputed && i < self->recomputed->len; i++)
    {
      const Recomputed *r = g_ptr_array_index (self->recomputed, i);

      if (td_iteration_get_number (r->iteration) != number)
        continue;
      *reader = r->tape->reader;
      return r->iteration;
    }
  return NULL;
}
