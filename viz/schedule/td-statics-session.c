/*
 * The static functions at a session's moment, collected once for all that show them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-statics-session.h"

typedef struct
{
  TdIteration *of;
  TdStatics *statics; /* NULL: there are none */
} Kept;

static void
kept_free (gpointer data)
{
  Kept *kept = data;

  td_statics_free (kept->statics);
  td_iteration_unref (kept->of);
  g_free (kept);
}

TdStatics *
td_session_get_statics (TdSession *session)
{
  TdTapeReader *reader = td_session_get_reader (session);
  g_autoptr (TdIteration) now = reader ? td_session_get_current (session) : NULL;
  Kept *kept = g_object_get_data (G_OBJECT (session), "td-statics");

  if (!now)
    return NULL;
  if (!kept || kept->of != now)
    {
      kept = g_new (Kept, 1);
      *kept = (Kept){ td_iteration_ref (now), td_statics_new (reader, now) };
      g_object_set_data_full (G_OBJECT (session), "td-statics", kept, kept_free);
    }
  return kept->statics;
}
