/*
 * tapedeck show: the order of execution, as it ran and as static functions have it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "schedule/td-explain.h"
#include "schedule/td-schedule.h"
#include "schedule/td-scope-times-print.h"
#include "schedule/td-statics.h"
#include "viz-show.h"

/* Static functions, where there are any, are the schedule; the timeline has events only. */
static gboolean
is_schedule (const Show *s)
{
  return strcmp (s->view, "schedule") == 0;
}

/* Finds the function that is asked for: -1 where none is. FALSE: there is no such. */
static gboolean
choose_function (Show *s, TdStatics *statics, gint *function, GError **error)
{
  *function = s->function && statics ? td_statics_find_function (statics, s->function) : -1;
  if (s->function && *function < 0)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
                   "iteration %" G_GINT64_FORMAT " has no static function \"%s\" (it has %u)",
                   s->iteration, s->function, statics ? statics->n_functions : 0);
      return FALSE;
    }
  if (s->schedule > 0
      && !(statics
           && td_statics_choose (
               statics, *function < 0 ? td_statics_busiest (statics) : (guint)*function,
               (guint)s->schedule)))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
                   "the function had no schedule %d up to iteration %" G_GINT64_FORMAT,
                   s->schedule, s->iteration);
      return FALSE;
    }
  return TRUE;
}

gboolean
td__show_schedule_write (Show *s, TdSink *sink, GError **error)
{
  g_autoptr (TdStatics) statics = is_schedule (s) ? td_statics_new (s->reader, s->it) : NULL;
  gint function;

  if (!choose_function (s, statics, &function, error))
    return FALSE;
  if (statics)
    {
      td_sink_take (sink, td_statics_print (statics, function, s->format));
      return TRUE;
    }
  /* first, for it loads iterations of its own */
  g_autoptr (TdStaticness) staticness
      = is_schedule (s) ? td_staticness_new (s->reader, s->discarded ? NULL : s->it) : NULL;
  TdSchedule *schedule = td_schedule_new (s->it);
  g_autofree char *advice
      = td_schedule_advice (s->reader, s->iteration, td_schedule_count_replayed (s->it));

  td_schedule_print (schedule, advice, staticness, s->format, sink);
  if (!is_schedule (s) && strcmp (s->format, "text") == 0)
    td_scope_times_print (schedule->scopes, sink->text);
  td_schedule_free (schedule);
  return TRUE;
}

TdScene *
td__show_schedule_draw (Show *s, GError **error)
{
  g_autoptr (TdStatics) statics = td_statics_new (s->reader, s->it);
  gint function;

  if (!choose_function (s, statics, &function, error))
    return NULL;
  if (statics)
    return td_statics_scene (
        statics, function < 0 ? td_statics_busiest (statics) : (guint)function, &s->panel);
  TdSchedule *schedule = td_schedule_new (s->it);
  g_autofree char *advice
      = td_schedule_advice (s->reader, s->iteration, td_schedule_count_replayed (s->it));
  TdScene *scene = td_schedule_scene (schedule, advice, &s->panel);

  td_schedule_free (schedule);
  return scene;
}

static TdExplain *
explain (Show *s, TdStatics **statics, gint *function, GError **error)
{
  *statics = td_statics_new (s->reader, s->it);
  if (!*statics)
    td__show_trouble (error, "no static function on this tape: nothing for the view explain");
  if (!*statics || !choose_function (s, *statics, function, error))
    return NULL;
  return td_explain_new (*statics, NULL);
}

char *
td__show_explain_print (Show *s, GError **error)
{
  g_autoptr (TdStatics) statics = NULL;
  gint function = -1;
  g_autoptr (TdExplain) e = explain (s, &statics, &function, error);

  return e ? td_explain_print (e, function, s->format) : NULL;
}

TdScene *
td__show_explain_draw (Show *s, GError **error)
{
  g_autoptr (TdStatics) statics = NULL;
  gint function = -1;
  g_autoptr (TdExplain) e = explain (s, &statics, &function, error);

  return e ? td_explain_scene (e, function < 0 ? td_statics_busiest (statics) : (guint)function,
                               &s->panel)
           : NULL;
}

TdScene *
td__show_timeline_draw (Show *s, GError **error)
{
  return td_timeline_scene (s->it, &s->panel);
}
