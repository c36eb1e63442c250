/* What the strips show, and the flags that go to notes. SPDX-License-Identifier: MIT */
#include "pages/td-strips.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "schedule/td-curve.h"

struct _TdStrips
{
  TdPage parent;
  TdNotebook *notebook;      /* NULL: none */
  TdRange zoom, events_zoom; /* iterations and events on the strips; empty: all */
  TdMoment followed;         /* of the playhead, that they went along with */
};

G_DEFINE_FINAL_TYPE (TdStrips, td_strips, TD_TYPE_PAGE)

static TdScene *
make_iterations (TdPage *page, const TdPanelView *view)
{
  TdNotebook *notebook = TD_STRIPS (page)->notebook;
  TdTapeReader *reader = td_page_get_reader (page);
  TdRange shown
      = td_range_is_all (TD_STRIPS (page)->zoom) ? (TdRange){ 0, 1 } : TD_STRIPS (page)->zoom;
  guint n = notebook ? td_notebook_get_n_notes (notebook) : 0;
  g_autofree TdStripFlag *flags = g_new (TdStripFlag, MAX (n, 1));

  for (guint i = 0; i < n; i++)
    {
      const TdNote *note = td_notebook_get_note (notebook, i);
      flags[i] = (TdStripFlag){ note->iteration, note->text };
    }
  return reader ? td_deck_scene_iterations (td_session_get_curves (td_page_get_session (page)),
                                            reader, shown.first, shown.end - 1, flags, n, view)
                : NULL;
}

static TdScene *
make_events (TdPage *page, const TdPanelView *view)
{
  return td_deck_scene_events (td_page_get_expected (page), FALSE,
                               TD_STRIPS (page)->events_zoom, view);
}

/* ---- zoom ---- */

#define LEAST_SHOWN 8 /* iterations, events */
#define ZOOM_STEP 1.25

static TdRange
all_iterations (TdPage *page)
{
  return td_session_get_run (td_page_get_session (page));
}

static TdRange
all_events (TdPage *page)
{
  TdIteration *iteration = td_page_get_expected (page);
  return (TdRange){ 0, iteration ? td_iteration_get_n_events (iteration) : 0 };
}

/* As many from `first` on as there are, and all where that is not fewer. */
static void
show_part (TdPage *page, TdRange *zoom, TdRange all, gint64 first, gint64 n)
{
  *zoom = (TdRange){ 0, 0 };
  if (n < all.end - all.first)
    {
      zoom->first = CLAMP (first, all.first, all.end - n);
      zoom->end = zoom->first + n;
    }
  td_page_invalidate (page);
}

/* What is under the pointer stays there. */
static void
zoom_part (TdPage *page, TdRange *zoom, TdRange all, double place, double delta)
{
  TdRange now = td_range_is_all (*zoom) ? all : *zoom;
  double n = (double)(now.end - now.first), wanted = n * pow (ZOOM_STEP, CLAMP (delta, -4, 4));
  if (all.end - all.first <= LEAST_SHOWN)
    return;
  wanted = CLAMP (delta < 0 ? floor (wanted) : ceil (wanted), LEAST_SHOWN,
                  (double)(all.end - all.first));
  show_part (page, zoom, all, (gint64)round (place - (place - (double)now.first) * wanted / n),
             (gint64)wanted);
}

/* The playhead is never outside of a strip: that goes along. */
static void
follow_part (TdPage *page, TdRange *zoom, TdRange all, gint64 at)
{
  if (!td_range_is_all (*zoom) && at >= 0 && !td_range_has (*zoom, at))
    show_part (page, zoom, all, at < zoom->first ? at : at - (zoom->end - zoom->first) + 1,
               zoom->end - zoom->first);
}

static void
zoom_iterations (TdPage *page, double place, double delta)
{
  zoom_part (page, &TD_STRIPS (page)->zoom, all_iterations (page), place, delta);
}

static void
zoom_events (TdPage *page, double place, double delta)
{
  zoom_part (page, &TD_STRIPS (page)->events_zoom, all_events (page), place, delta);
}

/* What is on show, for who does not see it. */
static char *
dup_part (TdRange part, const char *what)
{
  return g_strdup_printf ("%s %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, what, part.first,
                          part.end - 1);
}

/* The keys zoom at the playhead, or where it is not on show in the middle, and move by a
 * quarter of what is on show. */
static char *
walk_part (TdPage *page, TdRange *zoom, TdRange all, gint64 at, TdSceneWay way,
           const char *what)
{
  gboolean is_part = !td_range_is_all (*zoom);
  TdRange now = is_part ? *zoom : all;
  gint64 n = now.end - now.first, step = MAX (n / 4, 1);
  double place
      = at >= now.first && at < now.end ? (double)at + 0.5 : (double)(now.first + now.end) / 2;
  if (way == TD_SCENE_LARGER || way == TD_SCENE_SMALLER)
    zoom_part (page, zoom, all, place, way == TD_SCENE_LARGER ? -1 : 1);
  else if (is_part && way == TD_SCENE_OUT)
    show_part (page, zoom, all, all.first, all.end - all.first);
  else if (is_part && (way == TD_SCENE_LEFT || way == TD_SCENE_RIGHT))
    show_part (page, zoom, all, now.first + (way == TD_SCENE_LEFT ? -step : step), n);
  else
    return NULL;
  return dup_part (td_range_is_all (*zoom) ? all : *zoom, what);
}

static char *
walk_iterations (TdPage *page, const char *name, TdSceneWay way, GtkWidget *view)
{
  return walk_part (page, &TD_STRIPS (page)->zoom, all_iterations (page),
                    td_session_get_moment (td_page_get_session (page)).iteration, way,
                    "iterations");
}

static char *
walk_events (TdPage *page, const char *name, TdSceneWay way, GtkWidget *view)
{
  return walk_part (page, &TD_STRIPS (page)->events_zoom, all_events (page),
                    td_session_get_moment (td_page_get_session (page)).event, way, "events");
}

static void
fit_iterations (TdPage *page, const char *name, const TdSceneHit *hit)
{
  TD_STRIPS (page)->zoom = (TdRange){ 0, 0 };
  td_page_invalidate (page);
}

static void
fit_events (TdPage *page, const char *name, const TdSceneHit *hit)
{
  TD_STRIPS (page)->events_zoom = (TdRange){ 0, 0 };
  td_page_invalidate (page);
}

/* Once the iteration of the moment is there: it may have fewer events than the one before. A
 * strip that shows another part stays there until the playhead moves. */
static void
follow_playhead (TdPage *page)
{
  TdStrips *self = TD_STRIPS (page);
  TdMoment moment = td_session_get_moment (td_page_get_session (page));
  gboolean elsewhere = moment.iteration != self->followed.iteration;
  if (elsewhere)
    follow_part (page, &self->zoom, all_iterations (page), moment.iteration);
  if (elsewhere || moment.event != self->followed.event)
    follow_part (page, &self->events_zoom, all_events (page), moment.event);
  self->followed = moment;
}

static void
forget_session (TdPage *page)
{
  TdStrips *self = TD_STRIPS (page);
  self->zoom = self->events_zoom = (TdRange){ 0, 0 };
  self->followed = (TdMoment){ -1, -1 };
}

static TdPress
press_iterations (TdPage *page, const char *name, const TdSceneHit *hit, GtkWidget *view)
{
  TdNotebook *notebook = TD_STRIPS (page)->notebook;
  if (!hit || hit->tag != TD_TAG_ROW)
    return TD_PRESS_FOLLOW;
  if (notebook && hit->data >= 0 && hit->data < td_notebook_get_n_notes (notebook))
    {
      const TdNote *note = td_notebook_get_note (notebook, (guint)hit->data);
      td_session_set_moment (td_page_get_session (page), note->iteration, note->event);
    }
  return TD_PRESS_TAKEN;
}

static const TdPicture pictures[] = {
  { "iterations-strip", N_ ("Iterations"), N_ ("Iterations, loss and memory"), make_iterations,
    press_iterations, .walk = walk_iterations, .zoom = zoom_iterations, .open = fit_iterations,
    .spans = TRUE, .named = TRUE },
  { "events-strip", N_ ("Events"), N_ ("Events of the iteration"), make_events,
    .walk = walk_events, .zoom = zoom_events, .open = fit_events, .axis = TD_AXIS_EVENTS,
    .named = TRUE },
};

void
td_strips_set_notebook (TdStrips *self, TdNotebook *notebook)
{
  if (self->notebook)
    g_signal_handlers_disconnect_by_data (self->notebook, self);
  if (g_set_object (&self->notebook, notebook) && notebook)
    g_signal_connect_swapped (notebook, "changed", G_CALLBACK (td_page_invalidate), self);
  td_page_invalidate (TD_PAGE (self));
}

static void
td_strips_dispose (GObject *object)
{
  td_strips_set_notebook (TD_STRIPS (object), NULL);
  G_OBJECT_CLASS (td_strips_parent_class)->dispose (object);
}

static void
td_strips_class_init (TdStripsClass *klass)
{
  TdPageClass *class = TD_PAGE_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = td_strips_dispose;
  class->name = "strips";
  class->title = N_ ("Strips");
  class->pictures = pictures;
  class->n_pictures = G_N_ELEMENTS (pictures);
  class->moment_shown = follow_playhead;
  class->forget_session = forget_session;
}

static void
td_strips_init (TdStrips *self)
{
}

TdStrips *
td_strips_new (void)
{
  return g_object_new (TD_TYPE_STRIPS, NULL);
}
