/* The frame of pages: pictures in a stack, and one answer to clicks, keys and the session's
 * signals. SPDX-License-Identifier: MIT */
#include "pages/td-page.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "widgets/td-csv.h"
#include "widgets/td-panel-view.h"
#include "widgets/td-stack-switcher.h"

typedef struct
{
  TdSession *session;
  TdIteration *iteration; /* at the playhead */
  TdIteration *expected;  /* the same, with what is to come */
  GPtrArray *views;       /* of TdSceneView, not owned */
  GtkWidget *stack;       /* weak; NULL: nobody shows the panel */
  gboolean at_selection;  /* lists stand at the selection, not at the playhead */
} TdPagePrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (TdPage, td_page, G_TYPE_OBJECT)

static TdPagePrivate *
get (TdPage *self)
{
  return td_page_get_instance_private (self);
}

TdSession *
td_page_get_session (TdPage *self)
{
  return get (self)->session;
}

TdTapeReader *
td_page_get_reader (TdPage *self)
{
  TdSession *session = get (self)->session;
  return session ? td_session_get_reader (session) : NULL;
}

TdIteration *
td_page_get_iteration (TdPage *self)
{
  return get (self)->iteration;
}

TdIteration *
td_page_get_expected (TdPage *self)
{
  return get (self)->expected;
}

const char *
td_page_get_name (TdPage *self)
{
  return TD_PAGE_GET_CLASS (self)->name;
}

const char *
td_page_get_title (TdPage *self)
{
  return _ (TD_PAGE_GET_CLASS (self)->title);
}

void
td_page_invalidate (TdPage *self)
{
  GPtrArray *views = get (self)->views;
  for (guint i = 0; i < views->len; i++)
    td_scene_view_invalidate (g_ptr_array_index (views, i));
}

static void
show_around (TdPage *self)
{
  if (TD_PAGE_GET_CLASS (self)->moment_shown)
    TD_PAGE_GET_CLASS (self)->moment_shown (self);
}

void
td_page_refresh (TdPage *self)
{
  show_around (self);
  td_page_invalidate (self);
}

/* ---- pictures ---- */

typedef struct
{
  TdPage *page;
  const TdPicture *picture;
} PictureData;

static TdScene *
make_picture (gpointer data, double width, double height)
{
  PictureData *picture = data;
  TdPage *self = picture->page;
  TdPagePrivate *p = get (self);
  if (!p->session || !p->iteration)
    return NULL;
  TdPanelView view = td_panel_view_new (p->session, width, height);
  view.at_selection = p->at_selection;
  if (TD_PAGE_GET_CLASS (self)->place)
    TD_PAGE_GET_CLASS (self)->place (self, picture->picture->name, &view);
  return picture->picture->make (self, &view);
}

/* In a plot without a mark under the pointer, the place along the x axis is meant; in a heat
 * map whose columns are iterations, the one that the column shows. */
static void
follow_axis (TdPage *self, TdSceneView *view, const TdPicture *picture, const TdSceneHit *hit,
             double x)
{
  TdSession *session = get (self)->session;
  TdScene *scene = td_scene_view_get_scene (view);
  if (!scene || !td_scene_axes (scene))
    return;
  TdMoment moment = td_session_get_moment (session);
  if (hit && hit->tag == TD_TAG_CELL && hit->row >= 0)
    {
      if (hit->number >= 0)
        td_session_set_moment (session, hit->number, moment.event);
      return;
    }
  gint64 place = td_scene_axis_place (scene, x);
  if (picture->axis == TD_AXIS_EVENTS)
    td_session_set_moment (session, moment.iteration, (gint)place);
  else if (picture->axis == TD_AXIS_ITERATIONS)
    td_session_set_moment (session, place, moment.event);
}

static void
pressed (TdSceneView *view, TdSceneHit *hit, double x, double y, PictureData *data)
{
  TdSession *session = get (data->page)->session;
  const TdPicture *picture = data->picture;
  if (!session)
    return;
  TdPress press = picture->press
                      ? picture->press (data->page, picture->name, hit, GTK_WIDGET (view))
                      : TD_PRESS_FOLLOW;
  gboolean anything = hit && hit->tag != TD_TAG_PLAYHEAD && hit->tag != TD_TAG_HEAD;
  if (press == TD_PRESS_TAKEN)
    return;
  if (press == TD_PRESS_FOLLOW && anything)
    td_panel_view_follow (session, hit);
  else
    follow_axis (data->page, view, picture, hit, x);
}

static void
dragged (TdSceneView *view, TdSceneHit *hit, double x, double y, PictureData *data)
{
  if (get (data->page)->session)
    follow_axis (data->page, view, data->picture, hit, x);
}

static void
spanned (TdSceneView *view, double a, double z, PictureData *data)
{
  TdSession *session = get (data->page)->session;
  TdScene *scene = td_scene_view_get_scene (view);
  if (!session || !scene || !td_scene_axes (scene))
    return;
  TdRange range = { td_scene_axis_place (scene, MIN (a, z)),
                    td_scene_axis_place (scene, MAX (a, z)) + 1 };
  td_session_set_range (session, range);
}

static gboolean
scrolled (TdSceneView *view, double x, double delta, PictureData *data)
{
  TdScene *scene = td_scene_view_get_scene (view);
  if (!get (data->page)->session || !data->picture->zoom || !scene || !td_scene_axes (scene))
    return FALSE;
  data->picture->zoom (data->page, td_scene_axis_value (scene, x), delta);
  return TRUE;
}

/* ---- hovering ---- */

static guint64
key_of_event (TdPage *self, gint64 event)
{
  TdIteration *iteration = get (self)->expected;
  return iteration && event >= 0 && event < td_iteration_get_n_events (iteration)
             ? td_iteration_get_tape (iteration)->events[event].key
             : 0;
}

static guint64
hovered_key (TdPage *self, const TdPicture *picture, TdSceneView *view, const TdSceneHit *hit,
             double x)
{
  TdPageClass *class = TD_PAGE_GET_CLASS (self);
  TdScene *scene = td_scene_view_get_scene (view);
  guint64 key = hit ? hit->key : 0;
  if (key == 0 && hit && class->key_of)
    key = class->key_of (self, hit);
  if (key == 0 && hit && hit->tag == TD_TAG_EVENT)
    key = key_of_event (self, hit->data);
  if (key == 0 && picture->axis == TD_AXIS_EVENTS && scene && td_scene_axes (scene) && x >= 0)
    key = key_of_event (self, td_scene_axis_place (scene, x));
  return key;
}

static void
hovered (TdSceneView *view, TdSceneHit *hit, double x, double y, PictureData *data)
{
  TdSession *session = get (data->page)->session;
  if (session)
    td_session_set_hover (session, hovered_key (data->page, data->picture, view, hit, x));
}

/* The scenes stay: what is hovered is drawn over them. */
static void
show_hover (TdPage *self)
{
  TdPagePrivate *p = get (self);
  guint64 key = td_session_get_hover (p->session);
  gint event = key && p->expected ? td_iteration_find_event (p->expected, key) : -1;
  for (guint i = 0; i < p->views->len; i++)
    {
      GObject *view = g_ptr_array_index (p->views, i);
      PictureData *data = g_object_get_data (view, "picture");
      td_scene_view_set_hover (TD_SCENE_VIEW (view), key,
                               data->picture->axis == TD_AXIS_EVENTS ? event : -1);
    }
}

/* What a key led to, for who does not see it. FALSE: to nothing. */
static gboolean
say_where (TdSceneView *view, const char *words)
{
  g_autofree char *valid = words ? g_utf8_make_valid (words, -1) : NULL;
  if (valid)
    gtk_accessible_update_property (GTK_ACCESSIBLE (view), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                    valid, -1);
  return valid != NULL;
}

/* A key went `delta` rows on; 0: to the row's moment. */
static gboolean
moved (TdSceneView *view, int delta, PictureData *data)
{
  const TdPicture *picture = data->picture;
  g_autofree char *words
      = get (data->page)->session && picture->move
            ? picture->move (data->page, picture->name, delta, GTK_WIDGET (view))
            : NULL;
  return say_where (view, words);
}

static gboolean
walked (TdSceneView *view, int way, PictureData *data)
{
  const TdPicture *picture = data->picture;
  g_autofree char *words
      = get (data->page)->session && picture->walk
            ? picture->walk (data->page, picture->name, (TdSceneWay)way, GTK_WIDGET (view))
            : NULL;
  return say_where (view, words);
}

static void
opened (TdSceneView *view, TdSceneHit *hit, double x, double y, PictureData *data)
{
  if (get (data->page)->session && data->picture->open)
    data->picture->open (data->page, data->picture->name, hit);
}

/* ---- building ---- */

static void
view_gone (gpointer views, GObject *view)
{
  g_ptr_array_remove_fast (views, view);
}

static char *
dup_csv (gpointer data)
{
  const PictureData *picture = data;
  return TD_PAGE_GET_CLASS (picture->page)->dup_csv (picture->page, picture->picture->name);
}

static GtkWidget *
new_view (TdPage *self, const TdPicture *picture)
{
  PictureData *data = g_new (PictureData, 1);
  GPtrArray *views = get (self)->views;
  *data = (PictureData){ self, picture };
  GtkWidget *view = td_scene_view_new (_ (picture->label), make_picture, data);
  g_object_set_data_full (G_OBJECT (view), "picture", data, g_free);
  if (TD_PAGE_GET_CLASS (self)->dup_csv)
    td_csv_provide (view, dup_csv, data);
  g_signal_connect (view, "pressed", G_CALLBACK (pressed), data);
  g_signal_connect (view, "dragged", G_CALLBACK (dragged), data);
  g_signal_connect (view, "scrolled", G_CALLBACK (scrolled), data);
  if (picture->spans)
    g_signal_connect (view, "spanned", G_CALLBACK (spanned), data);
  g_signal_connect (view, "hovered", G_CALLBACK (hovered), data);
  g_signal_connect (view, "moved", G_CALLBACK (moved), data);
  g_signal_connect (view, "walked", G_CALLBACK (walked), data);
  g_signal_connect (view, "opened", G_CALLBACK (opened), data);
  gtk_widget_set_hexpand (view, TRUE);
  if (picture->named)
    gtk_widget_set_name (view, picture->name);
  g_ptr_array_add (views, view);
  g_object_weak_ref (G_OBJECT (view), view_gone, views);
  return view;
}

GtkWidget *
td_page_new_picture (TdPage *self, const char *name)
{
  TdPageClass *class = TD_PAGE_GET_CLASS (self);
  for (guint i = 0; i < class->n_pictures; i++)
    if (strcmp (class->pictures[i].name, name) == 0)
      return new_view (self, &class->pictures[i]);
  g_return_val_if_reached (NULL);
}

GtkWidget *
td_page_new_panel (TdPage *self, GtkWidget **controls)
{
  TdPageClass *class = TD_PAGE_GET_CLASS (self);
  GtkWidget *stack = gtk_stack_new ();
  for (guint i = 0; i < class->n_pictures; i++)
    {
      const TdPicture *picture = &class->pictures[i];
      GtkWidget *view = new_view (self, picture);
      GtkWidget *child = class->wrap ? class->wrap (self, picture->name, view) : view;
      gtk_stack_add_titled (GTK_STACK (stack), child, picture->name, _ (picture->title));
    }
  gtk_widget_set_name (stack, class->name);
  g_set_weak_pointer (&get (self)->stack, stack);
  *controls = NULL;
  if (class->n_pictures > 1)
    *controls = td_stack_switcher_new (GTK_STACK (stack));
  return stack;
}

gboolean
td_page_show_picture (TdPage *self, const char *name)
{
  GtkWidget *stack = get (self)->stack;
  if (!stack || !gtk_stack_get_child_by_name (GTK_STACK (stack), name))
    return FALSE;
  gtk_stack_set_visible_child_name (GTK_STACK (stack), name);
  return TRUE;
}

const char *
td_page_get_picture (TdPage *self)
{
  GtkWidget *stack = get (self)->stack;
  return stack ? gtk_stack_get_visible_child_name (GTK_STACK (stack)) : NULL;
}

/* ---- session ---- */

static void
forget_moment (TdPage *self)
{
  TdPagePrivate *p = get (self);
  if (TD_PAGE_GET_CLASS (self)->forget_moment)
    TD_PAGE_GET_CLASS (self)->forget_moment (self);
  g_clear_pointer (&p->iteration, td_iteration_unref);
  g_clear_pointer (&p->expected, td_iteration_unref);
}

/* The playhead or the program is at another event of the same iteration. */
static void
invalidate_moving (TdPage *self)
{
  GPtrArray *views = get (self)->views;
  for (guint i = 0; i < views->len; i++)
    {
      PictureData *data = g_object_get_data (views->pdata[i], "picture");
      if (!data->picture->still)
        td_scene_view_invalidate (views->pdata[i]);
    }
}

static void
show_moment (TdPage *self)
{
  TdPagePrivate *p = get (self);
  g_autoptr (TdIteration) iteration = td_session_get_current (p->session);
  g_autoptr (TdIteration) expected = td_session_get_expected (p->session);
  if (iteration == p->iteration && expected == p->expected)
    {
      show_around (self);
      invalidate_moving (self);
      return;
    }
  forget_moment (self);
  p->iteration = g_steal_pointer (&iteration);
  p->expected = g_steal_pointer (&expected);
  td_page_refresh (self);
}

/* The playhead moved: lists follow it again. */
static void
moment_changed (TdPage *self)
{
  get (self)->at_selection = FALSE;
  if (TD_PAGE_GET_CLASS (self)->playhead_moved)
    TD_PAGE_GET_CLASS (self)->playhead_moved (self);
  show_moment (self);
}

static void
selection_changed (TdPage *self)
{
  get (self)->at_selection = TRUE;
  if (TD_PAGE_GET_CLASS (self)->selection_changed)
    TD_PAGE_GET_CLASS (self)->selection_changed (self);
  td_page_invalidate (self);
}

void
td_page_set_session (TdPage *self, TdSession *session)
{
  TdPagePrivate *p = get (self);
  if (p->session)
    g_signal_handlers_disconnect_by_data (p->session, self);
  forget_moment (self);
  if (TD_PAGE_GET_CLASS (self)->forget_session)
    TD_PAGE_GET_CLASS (self)->forget_session (self);
  p->at_selection = FALSE;
  g_set_object (&p->session, session);
  if (TD_PAGE_GET_CLASS (self)->session_changed)
    TD_PAGE_GET_CLASS (self)->session_changed (self);
  if (!session)
    return;
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (moment_changed), self);
  g_signal_connect_swapped (session, "iterations-changed", G_CALLBACK (show_moment), self);
  g_signal_connect_swapped (session, "selection-changed", G_CALLBACK (selection_changed), self);
  g_signal_connect_swapped (session, "range-changed", G_CALLBACK (td_page_refresh), self);
  g_signal_connect_swapped (session, "head-changed", G_CALLBACK (invalidate_moving), self);
  g_signal_connect_swapped (session, "hover-changed", G_CALLBACK (show_hover), self);
  show_moment (self);
}

static void
td_page_dispose (GObject *object)
{
  td_page_set_session (TD_PAGE (object), NULL);
  G_OBJECT_CLASS (td_page_parent_class)->dispose (object);
}

static void
td_page_finalize (GObject *object)
{
  TdPagePrivate *p = get (TD_PAGE (object));
  for (guint i = 0; i < p->views->len; i++)
    g_object_weak_unref (g_ptr_array_index (p->views, i), view_gone, p->views);
  g_ptr_array_unref (p->views);
  g_clear_weak_pointer (&p->stack);
  G_OBJECT_CLASS (td_page_parent_class)->finalize (object);
}

static void
td_page_class_init (TdPageClass *class)
{
  G_OBJECT_CLASS (class)->dispose = td_page_dispose;
  G_OBJECT_CLASS (class)->finalize = td_page_finalize;
}

static void
td_page_init (TdPage *self)
{
  get (self)->views = g_ptr_array_new ();
}
