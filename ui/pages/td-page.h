/* The frame that pages share: a page has pictures (scenes of viz), and drops what it has
 * computed for them when the session's moment moves. Clicks, keys and hovering mean the same on
 * every page; a page says only what is its own. All show the session's one moment and
 * selection. SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "scene/td-panel.h"
#include "td-session.h"
#include "widgets/td-scene-view.h"

#define TD_TYPE_PAGE (td_page_get_type ())
G_DECLARE_DERIVABLE_TYPE (TdPage, td_page, TD, PAGE, GObject)

/** What a page does with a click on one of its pictures. */
typedef enum
{
  TD_PRESS_TAKEN,  /* it did what there was to do */
  TD_PRESS_FOLLOW, /* go to what was hit, as on every page */
  TD_PRESS_AXIS    /* go to the place along the x axis */
} TdPress;

typedef enum
{
  TD_AXIS_ITERATIONS,
  TD_AXIS_EVENTS,
  TD_AXIS_TIME /* no place to go to */
} TdPageAxis;

/** One picture of a page; a page has a table of them. */
typedef struct
{
  const char *name, *title, *label; /* for actions, for the switcher, for screen readers */
  TdScene *(*make) (TdPage *self, const TdPanelView *view);
  /* NULL: TD_PRESS_FOLLOW */
  TdPress (*press) (TdPage *self, const char *name, const TdSceneHit *hit, GtkWidget *view);
  /* Go `delta` rows on, with 0 to what the row stands for. Returns what the row says, NULL:
   * there is none. Owner: the caller. NULL: the picture has no rows. */
  char *(*move) (TdPage *self, const char *name, int delta, GtkWidget *view);
  /* The same for a way (TdSceneWay) that a key goes, of pictures without rows. */
  char *(*walk) (TdPage *self, const char *name, TdSceneWay way, GtkWidget *view);
  /* The wheel at a place along the axis, away from the user below 0; NULL: it means nothing. */
  void (*zoom) (TdPage *self, double place, double delta);
  /* A double click, on nothing too (NULL); NULL: nothing more than two. */
  void (*open) (TdPage *self, const char *name, const TdSceneHit *hit);
  TdPageAxis axis; /* what a place along the x axis is */
  gboolean spans;  /* Shift and a drag along its axis of iterations is a range of them */
  gboolean named;  /* the widget carries the picture's name */
  gboolean still;  /* it is the same wherever the playhead is in an iteration */
} TdPicture;

struct _TdPageClass
{
  GObjectClass parent_class;
  const char *name, *title; /* of the page */
  const TdPicture *pictures;
  guint n_pictures;
  /* All may be NULL. */
  void (*forget_moment) (TdPage *self);
  void (*forget_session) (TdPage *self);
  void (*session_changed) (TdPage *self); /* another is open, or none */
  void (*moment_shown) (TdPage *self);    /* the moment or what the tape has changed */
  void (*playhead_moved) (TdPage *self);  /* before it is shown */
  void (*selection_changed) (TdPage *self);
  /* Return the key that a hit stands for, where it does not carry it itself; 0: none. */
  guint64 (*key_of) (TdPage *self, const TdSceneHit *hit);
  /* Write what a picture shows as comma-separated values; NULL: it is no table. Owner: the
   * caller. */
  char *(*dup_csv) (TdPage *self, const char *name);
  /* Say more of what a picture is drawn with. */
  void (*place) (TdPage *self, const char *name, TdPanelView *view);
  /* Put something around a picture in the panel; returns the picture itself or what holds it.
   */
  GtkWidget *(*wrap) (TdPage *self, const char *name, GtkWidget *view);
};

void td_page_set_session (TdPage *self, TdSession *session);
/** Return the session; NULL: none is open. Owner: the page. */
TdSession *td_page_get_session (TdPage *self);
/** Return the tape of the session; NULL: there is none. Owner: the session. */
TdTapeReader *td_page_get_reader (TdPage *self);
/** Return the iteration at the playhead, and the same with what is to come; NULL: none. Owner:
 * the page. */
TdIteration *td_page_get_iteration (TdPage *self);
TdIteration *td_page_get_expected (TdPage *self);

/** Have every picture of the page drawn anew. */
void td_page_invalidate (TdPage *self);
/** The same, with what stands around the pictures. */
void td_page_refresh (TdPage *self);

/** Build one picture of the page; `name` is one of its table. Owner: floating. */
GtkWidget *td_page_new_picture (TdPage *self, const char *name);

/** Build the panel of the dock: the page's pictures as a stack, and (through `controls`, NULL
 * for one picture) the switcher between them. Owner: floating. */
GtkWidget *td_page_new_panel (TdPage *self, GtkWidget **controls);
/** Show a picture of the panel that was built. FALSE: there is none such. */
gboolean td_page_show_picture (TdPage *self, const char *name);
/** Return which of its pictures is in front; NULL: it was not built. Owner: the panel. */
const char *td_page_get_picture (TdPage *self);

const char *td_page_get_name (TdPage *self);
const char *td_page_get_title (TdPage *self);
