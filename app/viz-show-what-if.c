/*
 * tapedeck show --view what-if: memory if layers were computed again.
 *
 * SPDX-License-Identifier: MIT
 */
#include "memory/td-what-if.h"
#include "viz-show.h"

/* A number is so many of the list. */
static gboolean
choose (TdWhatIf *w, const char *words, GError **error)
{
  gint64 n = 0;

  if (!words)
    return TRUE;
  if (!g_ascii_string_to_signed (words, 10, 0, w->n_layers, &n, NULL))
    return td_what_if_choose (w, words, error);
  td_what_if_choose_first (w, (guint)n);
  return TRUE;
}

/* The last iteration of the other tape that is whole. */
static TdIteration *
load_measured (const char *path, GError **error)
{
  g_autoptr (TdSession) session = td_session_open (path, error);
  gint64 last = session ? td_session_get_last_complete (session) : -1;
  TdIteration *it = NULL;

  if (session && last < 0)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "no iteration of it has ended");
  else if (session)
    it = td_session_load_iteration (session, last, error);
  if (it && td_iteration_get_tape (it)->n_memory == 0)
    {
      td__show_trouble (error, "it has no allocation records");
      g_clear_pointer (&it, td_iteration_unref);
    }
  if (!it)
    g_prefix_error (error, "--against %s: ", path);
  return it;
}

/* FALSE: an error is set. */
static gboolean
prepare (Show *s, TdWhatIf **w, TdIteration **measured, GError **error)
{
  *measured = NULL;
  *w = td_what_if_new (s->it, error);
  if (*w && choose (*w, s->recompute, error)
      && (!s->against || (*measured = load_measured (s->against, error))))
    return TRUE;
  g_clear_pointer (w, td_what_if_free);
  return FALSE;
}

char *
td__show_what_if_print (Show *s, GError **error)
{
  g_autoptr (TdWhatIf) w = NULL;
  g_autoptr (TdIteration) measured = NULL;

  return prepare (s, &w, &measured, error) ? td_what_if_print (w, measured, s->format) : NULL;
}

TdScene *
td__show_what_if_draw (Show *s, GError **error)
{
  g_autoptr (TdWhatIf) w = NULL;
  g_autoptr (TdIteration) measured = NULL;

  return prepare (s, &w, &measured, error) ? td_what_if_scene (w, measured, &s->panel) : NULL;
}
