/* The panels of the dock and of the memory page: scenes of viz with the numbers they need, made
 * when they are looked at. All of them show the session's one moment and selection.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "tape/td-notebook.h"
#include "td-session.h"

#define TD_TYPE_PANELS (td_panels_get_type ())
G_DECLARE_FINAL_TYPE (TdPanels, td_panels, TD, PANELS, GObject)

typedef enum
{
  TD_PANEL_MEMORY,
  TD_PANEL_GRADIENTS,
  TD_PANEL_SCHEDULE,
  TD_PANEL_CURVES,
  TD_N_PANELS
} TdPanel;

/** Create the panels. Owner: caller. */
TdPanels *td_panels_new (void);

void td_panels_set_session (TdPanels *self, TdSession *session);

/** Show the notes of a notebook as flags on the strip of iterations; NULL: none. */
void td_panels_set_notebook (TdPanels *self, TdNotebook *notebook);

/** Return the name for actions and the title for people. */
const char *td_panel_name (TdPanel panel);
const char *td_panel_title (TdPanel panel);

/** Build a panel: its pages, and (through `controls`) the switcher between them. Owner:
 * floating. */
GtkWidget *td_panels_new_panel (TdPanels *self, TdPanel panel, GtkWidget **controls);

/** Build one page of a panel alone; NULL if there is none such. Owner: floating. */
GtkWidget *td_panels_new_page (TdPanels *self, TdPanel panel, const char *page);

/** Build what stands at the top of the Memory page: the sentence that says where memory ran out
 * and what grows, who keeps it and what to do. Owner: floating. */
GtkWidget *td_panels_new_growth_bar (TdPanels *self);
/** Build what stands below it where memory ran out: figures, who held what, what would help.
 * Owner: floating. */
GtkWidget *td_panels_new_oom_card (TdPanels *self);
/** The Memory page is on show now: look again. */
void td_panels_look (TdPanels *self);
/** Build the controls of the page "growth" or "holders". Owner: floating. */
GtkWidget *td_panels_new_held_controls (TdPanels *self, const char *page);

/** Show a page of a panel that was built. FALSE: there is none such. */
gboolean td_panels_show_page (TdPanels *self, TdPanel panel, const char *page);

/** Show the next (direction 1) or previous (-1) static chain, or schedule of the chain on show.
 * FALSE: there is one at most. */
gboolean td_panels_step_chain (TdPanels *self, int direction);
gboolean td_panels_step_schedule (TdPanels *self, int direction);

/** Build the two strips of the deck. Owner: floating. */
GtkWidget *td_panels_new_strip (TdPanels *self, gboolean events);
