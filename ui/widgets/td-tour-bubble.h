/* The bubble of a lesson: title, text, what is to be tried, and the buttons that go on. It
 * stands beside the place it points at, never over it, where the window has most room.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#define TD_TYPE_TOUR_BUBBLE (td_tour_bubble_get_type ())
G_DECLARE_FINAL_TYPE (TdTourBubble, td_tour_bubble, TD, TOUR_BUBBLE, GtkPopover)

/** What a step says. */
typedef struct
{
  const char *title, *text;
  guint step, n_steps; /* from 0 */
  gboolean is_task;    /* the user is to do something first */
} TdTourWords;

/** Create the bubble of `parent`, which it is placed in; its buttons do win.lesson-next,
 * lesson-back and lesson-close. Owner: `parent`; unparent it before that dies. */
TdTourBubble *td_tour_bubble_new (GtkWidget *parent);

/** Show a step. */
void td_tour_bubble_set_words (TdTourBubble *self, const TdTourWords *words);

/** Say that the user has done it. */
void td_tour_bubble_set_done (TdTourBubble *self, const char *text);

/** Give the keyboard to the button that goes on. */
void td_tour_bubble_take_focus (TdTourBubble *self);

/** Point at a place of the parent; NULL: at nothing in particular. */
void td_tour_bubble_point_at (TdTourBubble *self, const GdkRectangle *place);
