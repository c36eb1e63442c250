/* Between a session and the scenes of viz: the moment and selection that a scene is made for,
 * and what a click on a scene means. SPDX-License-Identifier: MIT */
#pragma once

#include "scene/td-panel.h"
#include "td-session.h"

/** Describe the session's moment and selection for a scene of this size. Owner: the selection
 * is borrowed from the session until it changes. */
TdPanelView td_panel_view_new (TdSession *session, double width, double height);

/** Do what a click on a scene means: move the playhead, or select. */
void td_panel_view_follow (TdSession *session, const TdSceneHit *hit);
