/* What scenes are told, and what their clicks do: one table over the tags of a hit.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-panel-view.h"

TdPanelView
td_panel_view_new (TdSession *session, double width, double height)
{
  TdMoment moment = td_session_get_moment (session);
  TdMoment head = td_session_get_head (session);
  TdProgramState state = td_session_get_state (session);
  TdPanelView view = { .width = width, .height = height };
  view.iteration = moment.iteration;
  view.event = moment.event;
  gboolean live = state == TD_PROGRAM_RUNNING || state == TD_PROGRAM_PAUSED;
  view.head = live && head.iteration == moment.iteration ? head.event : -1;
  view.range = td_session_get_range (session);
  view.selected = td_session_get_selection (session, &view.n_selected);
  return view;
}

static void
go_to_event (TdSession *session, const TdSceneHit *hit)
{
  td_session_set_moment (session, td_session_get_moment (session).iteration, (gint)hit->data);
}

static void
go_to_iteration (TdSession *session, const TdSceneHit *hit)
{
  td_session_set_moment (session, hit->data, td_session_get_moment (session).event);
  if (hit->key)
    td_session_select (session, hit->key);
}

static void
select_key (TdSession *session, const TdSceneHit *hit)
{
  if (hit->key)
    td_session_select (session, hit->key);
}

static void (*const follow[TD_N_TAGS]) (TdSession *session, const TdSceneHit *hit) = {
  [TD_TAG_NODE] = select_key,
  [TD_TAG_GROUP] = select_key,
  [TD_TAG_EDGE] = select_key,
  [TD_TAG_PILL] = select_key,
  [TD_TAG_STUB] = select_key,
  [TD_TAG_EVENT] = go_to_event,
  [TD_TAG_ITERATION] = go_to_iteration,
  [TD_TAG_PARAMETER] = select_key,
  [TD_TAG_ROW] = select_key,
};

void
td_panel_view_follow (TdSession *session, const TdSceneHit *hit)
{
  if (session && hit && hit->tag < TD_N_TAGS && follow[hit->tag])
    follow[hit->tag](session, hit);
}
