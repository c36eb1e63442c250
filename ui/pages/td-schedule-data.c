/* The models of the Schedule page, each computed at most once per change and only when a
 * picture asks for it. SPDX-License-Identifier: MIT */
#include "pages/td-schedule-data.h"

static void
forget_statics (TdScheduleData *data)
{
  g_clear_pointer (&data->explain, td_explain_free);
  g_clear_pointer (&data->statics, td_statics_free);
  data->explain_cursor = 0;
}

void
td__schedule_forget (TdScheduleData *data, gboolean all)
{
  g_clear_pointer (&data->schedule, td_schedule_free);
  g_clear_pointer (&data->advice, g_free);
  forget_statics (data);
  g_clear_pointer (&data->gantt, td_gantt_free);
  g_clear_pointer (&data->flame, td_flame_free);
  if (!all)
    return;
  g_clear_pointer (&data->staticness, td_staticness_free);
  g_clear_pointer (&data->explain_runs, td_explain_runs_free);
  data->staticness_n = 0;
  data->function_id = data->schedule_id = data->cursor = 0;
  data->flame_zoom = (TdFlamePlace){ 0, TD_FLAME_ALL };
  data->flame_walked = FALSE;
}

TdSchedule *
td__schedule_get_schedule (TdScheduleData *data)
{
  TdTapeReader *reader = td_page_get_reader (data->page);
  TdIteration *iteration = td_page_get_iteration (data->page);
  if (!data->schedule && iteration)
    {
      data->schedule = td_schedule_new (td_page_get_expected (data->page));
      if (reader)
        data->advice = td_schedule_advice (reader, td_iteration_get_number (iteration),
                                           td_schedule_count_replayed (iteration));
    }
  return data->schedule;
}

TdStatics *
td__schedule_get_statics (TdScheduleData *data, guint *function)
{
  TdTapeReader *reader = td_page_get_reader (data->page);
  TdIteration *iteration = td_page_get_iteration (data->page);

  if (!data->statics && reader && iteration)
    data->statics = td_statics_new (reader, iteration);
  if (!data->statics)
    return NULL;
  *function = td_statics_busiest (data->statics);
  for (guint i = 0; i < data->statics->n_functions; i++)
    if (data->statics->functions[i].function->id == data->function_id)
      *function = i;
  if (data->schedule_id > 0)
    td_statics_choose (data->statics, *function, data->schedule_id);
  return data->statics;
}

TdExplain *
td__schedule_get_explain (TdScheduleData *data, guint *function)
{
  TdStatics *statics = td__schedule_get_statics (data, function);

  if (statics && !data->explain)
    {
      if (!data->explain_runs)
        data->explain_runs = td_explain_runs_new (statics->reader);
      data->explain = td_explain_new (statics, data->explain_runs);
    }
  return data->explain;
}

/* While a program runs the advice is made anew when a tenth has come to it: it reads structures
 * of the whole tape. */
TdStaticness *
td__schedule_get_staticness (TdScheduleData *data)
{
  TdTapeReader *reader = td_page_get_reader (data->page);
  guint n = td_session_get_n_iterations (td_page_get_session (data->page));
  TdRange range = td_session_get_range (td_page_get_session (data->page));
  if (reader
      && (!data->staticness || !td_range_equal (data->staticness_range, range)
          || n > data->staticness_n + data->staticness_n / 10))
    {
      g_clear_pointer (&data->staticness, td_staticness_free);
      data->staticness = td_staticness_new_in (reader, range);
      data->staticness_range = range;
      data->staticness_n = n;
    }
  return data->staticness;
}

TdGantt *
td__schedule_get_gantt (TdScheduleData *data)
{
  TdIteration *iteration = td_page_get_iteration (data->page);
  if (!data->gantt && iteration)
    data->gantt = td_gantt_new (iteration);
  return data->gantt;
}

TdFlame *
td__schedule_get_flame (TdScheduleData *data)
{
  TdIteration *iteration = td_page_get_iteration (data->page);
  if (!data->flame && iteration)
    {
      data->flame = td_flame_stacks_new (iteration, TD_FLAME_PEAK); /* a snapshot's */
      if (!data->flame_sized)
        data->flame_size = data->flame ? TD_FLAME_BYTES : TD_FLAME_TIME;
      if (!data->flame)
        data->flame = td_flame_new (iteration);
    }
  return data->flame;
}

/* ---- which function is on show ---- */

void
td__schedule_choose (TdScheduleData *data, guint function_id, guint schedule_id)
{
  data->function_id = function_id;
  data->schedule_id = schedule_id;
  data->cursor = 0;
  forget_statics (data);
  td_page_refresh (data->page);
}

gboolean
td__schedule_step_function (TdScheduleData *data, int direction)
{
  guint function;
  TdStatics *statics = td__schedule_get_statics (data, &function);
  if (!statics || statics->n_functions < 2)
    return FALSE;
  guint next
      = (function + statics->n_functions + (direction < 0 ? -1u : 1u)) % statics->n_functions;
  td__schedule_choose (data, statics->functions[next].function->id, 0);
  return TRUE;
}

gboolean
td__schedule_step_schedule (TdScheduleData *data, int direction)
{
  guint function, at = 0;
  TdStatics *statics = td__schedule_get_statics (data, &function);
  if (!statics)
    return FALSE;
  g_autoptr (GArray) ids = td_statics_list_schedules (&statics->functions[function]);
  if (ids->len < 2)
    return FALSE;
  while (at < ids->len
         && g_array_index (ids, guint, at) != statics->functions[function].schedule)
    at++;
  guint next = at >= ids->len ? 0 : (at + ids->len + (direction < 0 ? -1u : 1u)) % ids->len;
  td__schedule_choose (data, statics->functions[function].function->id,
                       g_array_index (ids, guint, next));
  return TRUE;
}

void
td__schedule_follow (TdScheduleData *data)
{
  guint n, function;
  TdIteration *iteration = td_page_get_iteration (data->page);
  const guint64 *keys = td_session_get_selection (td_page_get_session (data->page), &n);
  gint event = n && iteration ? td_iteration_find_event (iteration, keys[0]) : -1;
  const TdReplayed *replayed
      = event >= 0 ? td_iteration_get_replayed (iteration, (guint)event) : NULL;
  TdStatics *statics = replayed ? td__schedule_get_statics (data, &function) : NULL;
  if (statics
      && (statics->functions[function].function->id != replayed->function
          || statics->functions[function].schedule != replayed->schedule))
    td__schedule_choose (data, replayed->function, replayed->schedule);
}
