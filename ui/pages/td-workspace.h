/* The page of an open recording: perspectives (Debug, Memory, Compare) above the deck.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "pages/td-deck.h"
#include "pages/td-breaks-page.h"
#include "pages/td-compare-page.h"
#include "td-session.h"
#include "widgets/td-dock.h"
#include "pages/td-evaluate-page.h"
#include "pages/td-filter-page.h"
#include "pages/td-graph-page.h"
#include "pages/td-inspector.h"
#include "pages/td-iterations-page.h"
#include "pages/td-log-page.h"
#include "pages/td-notes-page.h"
#include "pages/td-outline-page.h"
#include "pages/td-source-page.h"
#include "schedule/td-flame.h"

#define TD_TYPE_WORKSPACE (td_workspace_get_type ())
G_DECLARE_FINAL_TYPE (TdWorkspace, td_workspace, TD, WORKSPACE, GtkWidget)

/** Parts that can be shown and hidden. */
typedef enum
{
  TD_PART_OUTLINE,
  TD_PART_INSPECTOR,
  TD_PART_DOCK,
  TD_N_PARTS
} TdWorkspacePart;

/** Create the page. Owner: floating. */
GtkWidget *td_workspace_new (void);

void td_workspace_set_session (TdWorkspace *self, TdSession *session);

/** Show what was written down about the session's recording; NULL: nothing can be. */
void td_workspace_set_notebook (TdWorkspace *self, TdSession *session, TdNotebook *notebook);
/** Show where the ranks of the session's run part, on their page and at the playhead. */
void td_workspace_show_finding (TdWorkspace *self);
/** Return the view of notes, or of watches. */
TdNotesPage *td_workspace_get_notes (TdWorkspace *self, gboolean watches);
/** Return the view of breakpoints. */
TdBreaksPage *td_workspace_get_breaks (TdWorkspace *self);

/** Build the switcher of perspectives for the header bar. Owner: floating. */
GtkWidget *td_workspace_new_switcher (TdWorkspace *self);

/** Bring a page to the front by name: debug, memory, compare, outline, iterations, a view of
 * the dock, or a page of the inspector. FALSE: there is none such. */
gboolean td_workspace_show_page (TdWorkspace *self, const char *name);

/** Show a picture of a page of the dock, in Debug. FALSE: there is none such. */
gboolean td_workspace_show_picture (TdWorkspace *self, const char *page, const char *picture);
/** Say whether it is on show. */
gboolean td_workspace_shows_picture (TdWorkspace *self, const char *page, const char *picture);

/** Show what the layers of the iteration cost. */
void td_workspace_show_flame (TdWorkspace *self, TdFlameSize size);
/** Go out of what the focused picture is zoomed into. FALSE: there is nothing such. */
gboolean td_workspace_leave (TdWorkspace *self);

/** Show the static function (or, with `schedules`, the schedule of that function) after or
 * before the one on show. FALSE: there is one at most. */
gboolean td_workspace_step_static (TdWorkspace *self, gboolean schedules, int direction);

void td_workspace_set_part_shown (TdWorkspace *self, TdWorkspacePart part, gboolean shown);
gboolean td_workspace_is_part_shown (TdWorkspace *self, TdWorkspacePart part);

/** Return the name of the perspective on show: debug, memory, compare. */
const char *td_workspace_get_perspective (TdWorkspace *self);
TdFilterPage *td_workspace_get_filter (TdWorkspace *self);
TdEvaluatePage *td_workspace_get_evaluate (TdWorkspace *self);
TdComparePage *td_workspace_get_compare (TdWorkspace *self);
TdDock *td_workspace_get_dock (TdWorkspace *self);
/** Show a toast where it does not cover the deck. Owner: takes it. */
void td_workspace_add_toast (TdWorkspace *self, AdwToast *toast);

/** Keep orientation and single keys as the settings say. */
void td_workspace_bind_settings (TdWorkspace *self, GSettings *settings);

/** Add a line to the log. */
void td_workspace_append_log (TdWorkspace *self, const char *line, gboolean is_stderr);

/** Say where a step went, for screen readers. */
void td_workspace_announce (TdWorkspace *self, const char *text);
/** Show what recording costs the program; NULL: nothing is known. */
void td_workspace_set_cost (TdWorkspace *self, const TdCost *cost);

/** Return parts, for actions and tests. Owner: the page. */
TdGraphPage *td_workspace_get_graph (TdWorkspace *self);
TdOutlinePage *td_workspace_get_outline (TdWorkspace *self);
TdIterationsPage *td_workspace_get_iterations (TdWorkspace *self);
TdInspector *td_workspace_get_inspector (TdWorkspace *self);
TdSourcePage *td_workspace_get_source (TdWorkspace *self);
TdLogPage *td_workspace_get_log (TdWorkspace *self);
/** Return the words a screen reader hears for the scrubber. Owner: caller. */
char *td_workspace_dup_scrubber_text (TdWorkspace *self);
