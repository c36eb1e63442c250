/* A lesson in the window: opens its recordings, does what its steps say, points at what they
 * name, and notices when the user has done what was asked.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "pages/td-lesson.h"
#include "widgets/td-tour-bubble.h"

struct _TdTour
{
  TdLesson *lesson;
  TdTourBubble *bubble;
  GtkWidget *target;    /* that the step points at, weak; NULL: it is not found yet */
  TdSession *session;   /* of the step's recording */
  TdMoment begun;       /* where the playhead was when the step began */
  gboolean done;        /* what the step asks for */
  gboolean is_in_sight; /* what the step points at was brought there */
  GdkFrameClock *clock;
};

static const TdLessonStep *
get_step (TdWindow *self)
{
  return &self->tour->lesson->steps[self->lesson_step];
}

/* ---- what is pointed at ---- */

static gboolean
is_called (GtkWidget *widget, const char *name)
{
  const char *id = gtk_buildable_get_buildable_id (GTK_BUILDABLE (widget));
  if (GTK_IS_ACTIONABLE (widget)
      && g_strcmp0 (gtk_actionable_get_action_name (GTK_ACTIONABLE (widget)), name) == 0)
    return TRUE;
  return strcmp (gtk_widget_get_name (widget), name) == 0 || g_strcmp0 (id, name) == 0;
}

static GtkWidget *
find_widget (GtkWidget *widget, const char *name)
{
  if (!gtk_widget_get_mapped (widget) || TD_IS_TOUR_BUBBLE (widget))
    return NULL;
  if (is_called (widget, name))
    return widget;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    {
      GtkWidget *found = find_widget (child, name);
      if (found)
        return found;
    }
  return NULL;
}

/* The widget of that name: it is looked for when the one that was found is gone, or is on show
 * no more. */
static GtkWidget *
get_target (TdWindow *self, const char *name)
{
  TdTour *tour = self->tour;
  if (!tour->target || !gtk_widget_get_mapped (tour->target))
    g_set_weak_pointer (&tour->target, find_widget (GTK_WIDGET (self->toasts), name));
  return tour->target;
}

/* Bring a widget that was scrolled away back into sight. */
static void
scroll_to (GtkWidget *widget)
{
  GtkWidget *view = gtk_widget_get_ancestor (widget, GTK_TYPE_VIEWPORT);
  graphene_rect_t at;
  if (!view || !gtk_widget_compute_bounds (widget, view, &at))
    return;
  GtkAdjustment *down = gtk_scrollable_get_vadjustment (GTK_SCROLLABLE (view));
  double top = gtk_adjustment_get_value (down) + at.origin.y;
  gtk_adjustment_clamp_page (down, top, top + at.size.height);
}

/* What is seen of a rectangle of a widget, in the parent of the bubble. */
static gboolean
clip (GtkWidget *widget, GtkWidget *parent, graphene_rect_t *at)
{
  for (; widget; widget = gtk_widget_get_parent (widget))
    {
      graphene_rect_t all;
      if (!gtk_widget_compute_bounds (widget, parent, &all)
          || !graphene_rect_intersection (at, &all, at))
        return FALSE;
      if (widget == parent)
        return TRUE;
    }
  return FALSE;
}

/* The rectangle of the step's target in the parent of the bubble. */
static gboolean
find_target (TdWindow *self, GdkRectangle *place)
{
  const char *target = get_step (self)->target;
  GtkWidget *parent = GTK_WIDGET (self->toasts);
  graphene_rect_t at;
  if (strcmp (target, "playhead") == 0)
    {
      TdGraphView *view = td_graph_page_get_view (td_workspace_get_graph (self->workspace));
      TdSceneRect box;
      graphene_rect_t all;
      if (!gtk_widget_get_mapped (GTK_WIDGET (view)) || !td_graph_view_get_playhead (view, &box)
          || !gtk_widget_compute_bounds (GTK_WIDGET (view), parent, &all))
        return FALSE;
      graphene_rect_init (&at, (float)box.x + all.origin.x, (float)box.y + all.origin.y,
                          (float)box.width, (float)box.height);
      if (!clip (GTK_WIDGET (view), parent, &at))
        return FALSE;
    }
  else
    {
      GtkWidget *widget = get_target (self, target);
      if (!widget || !gtk_widget_compute_bounds (widget, parent, &at))
        return FALSE;
      if (!self->tour->is_in_sight)
        scroll_to (widget);
      self->tour->is_in_sight = TRUE;
      if (!clip (widget, parent, &at))
        return FALSE;
    }
  *place = (GdkRectangle){ (int)at.origin.x, (int)at.origin.y, (int)at.size.width,
                           (int)at.size.height };
  return TRUE;
}

/* ---- pages ---- */

/* PAGE or PAGE/PICTURE. */
static void
show_page (TdWindow *self, const char *page)
{
  g_auto (GStrv) parts = g_strsplit (page, "/", 2);
  gtk_stack_set_visible_child (self->pages, GTK_WIDGET (self->workspace));
  td_workspace_show_page (self->workspace, "debug"); /* which most of them are a part of */
  if (parts[1])
    td_workspace_show_picture (self->workspace, parts[0], parts[1]);
  else
    td_workspace_show_page (self->workspace, page);
}

/* Memory is a view of the dock, too, which does not count. */
static gboolean
shows_page (TdWindow *self, const char *page)
{
  static const char *const perspectives[] = { "debug", "memory", "compare" };
  g_auto (GStrv) parts = g_strsplit (page, "/", 2);
  if (parts[1])
    return td_workspace_shows_picture (self->workspace, parts[0], parts[1]);
  for (guint i = 0; i < G_N_ELEMENTS (perspectives); i++)
    if (strcmp (perspectives[i], page) == 0)
      return strcmp (td_workspace_get_perspective (self->workspace), page) == 0;
  return td_dock_is_shown (td_workspace_get_dock (self->workspace), page);
}

/* ---- what the user is to do ---- */

static gboolean
selects (TdWindow *self, const char *name)
{
  guint n;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  g_autoptr (TdIteration) it = td_session_get_current (self->session);
  if (n == 0 || !it)
    return FALSE;
  gint event = td_iteration_find_event (it, keys[0]), var = td_iteration_find_var (it, keys[0]);
  if (event >= 0)
    return strcmp (td_iteration_get_op_name (it, (guint)event), name) == 0;
  return var >= 0 && g_strcmp0 (td_iteration_get_var_name (it, (guint)var), name) == 0;
}

static gboolean
is_at_operation (TdWindow *self, const char *name)
{
  g_autoptr (TdIteration) it = td_session_get_current (self->session);
  gint event = td_session_get_moment (self->session).event;
  return it && event >= 0 && (guint)event < td_iteration_get_n_events (it)
         && strcmp (td_iteration_get_op_name (it, (guint)event), name) == 0;
}

static gboolean
is_at_event (TdWindow *self, const char *number)
{
  return td_session_get_moment (self->session).event == g_ascii_strtoll (number, NULL, 10);
}

static gboolean
is_in_iteration (TdWindow *self, const char *number)
{
  return td_session_get_moment (self->session).iteration == g_ascii_strtoll (number, NULL, 10);
}

static gboolean
is_in_phase (TdWindow *self, const char *name)
{
  g_autoptr (TdIteration) it = td_session_get_current (self->session);
  gint event = td_session_get_moment (self->session).event;
  return it && event >= 0 && strcmp (td__window_phase_name (it, event), name) == 0;
}

static gboolean
went_back (TdWindow *self, const char *events)
{
  TdMoment now = td_session_get_moment (self->session), begun = self->tour->begun;
  return now.iteration < begun.iteration
         || (now.iteration == begun.iteration
             && begun.event - now.event >= g_ascii_strtoll (events, NULL, 10));
}

static gboolean (*const deeds[TD_N_DEEDS]) (TdWindow *self, const char *what) = {
  [TD_DEED_OPERATION] = is_at_operation,
  [TD_DEED_EVENT] = is_at_event,
  [TD_DEED_ITERATION] = is_in_iteration,
  [TD_DEED_PHASE] = is_in_phase,
  [TD_DEED_BACK] = went_back,
  [TD_DEED_SELECTED] = selects,
  [TD_DEED_PAGE] = shows_page,
};

/* ---- steps ---- */

static void look (TdWindow *self);

/* Also when the window is destroyed: the bubble is a child of what then goes first. */
static void
end_tour (TdWindow *self)
{
  TdTour *tour = g_steal_pointer (&self->tour);
  self->lesson_step = -1;
  if (!tour)
    return;
  g_signal_handlers_disconnect_by_func (self->toasts, end_tour, self);
  g_signal_handlers_disconnect_by_func (tour->clock, look, self);
  g_clear_object (&tour->clock);
  g_clear_object (&tour->session);
  g_clear_weak_pointer (&tour->target);
  gtk_widget_unparent (GTK_WIDGET (tour->bubble));
  td_lesson_free (tour->lesson);
  g_free (tour);
}

static void
leave (TdWindow *self)
{
  end_tour (self);
  td__window_update_actions (self);
  gtk_widget_grab_focus (
      GTK_WIDGET (td_graph_page_get_view (td_workspace_get_graph (self->workspace))));
}

static void
look (TdWindow *self)
{
  TdTour *tour = self->tour;
  const TdLessonStep *step = get_step (self);
  GdkRectangle place;
  if (self->session != tour->session) /* the user has opened something else */
    {
      leave (self);
      return;
    }
  if (deeds[step->deed] && !tour->done && deeds[step->deed](self, step->what))
    {
      tour->done = TRUE;
      td_tour_bubble_set_done (tour->bubble, step->done);
      td_workspace_announce (self->workspace, step->done);
      td_tour_bubble_take_focus (tour->bubble);
    }
  gboolean found = find_target (self, &place);
  td_tour_bubble_point_at (tour->bubble, found ? &place : NULL);
}

/* What needs something that is not there is left out. */
static void
do_action (TdWindow *self, const char *detailed)
{
  g_autofree char *name = NULL;
  g_autoptr (GVariant) parameter = NULL;
  if (g_action_parse_detailed_name (detailed, &name, &parameter, NULL))
    gtk_widget_activate_action_variant (GTK_WIDGET (self), name, parameter);
}

/* FALSE: there is none, which is said. */
static gboolean
open_recording (TdWindow *self, const char *name)
{
  g_autofree char *path = td_lesson_find_recording (name);
  if (!path)
    {
      g_autofree char *text
          = g_strdup_printf (_ ("%s.tdtape, which this lesson shows, is not installed"), name);
      td__window_toast (self, text);
      return FALSE;
    }
  if (self->session && strcmp (td_session_get_path (self->session), path) == 0)
    return TRUE;
  return td__window_open_tape (self, path);
}

static gboolean
show_step (TdWindow *self, guint i)
{
  TdTour *tour = self->tour;
  self->lesson_step = (int)i;
  const TdLessonStep *step = get_step (self);
  const TdTourWords words
      = { step->title, step->text, i, tour->lesson->n_steps, step->deed != TD_DEED_NONE };
  if (!open_recording (self, step->recording))
    return FALSE;
  g_set_object (&tour->session, self->session);
  if (step->page)
    show_page (self, step->page);
  for (guint a = 0; step->actions[a]; a++)
    do_action (self, step->actions[a]);
  tour->begun = td_session_get_moment (self->session);
  tour->done = FALSE;
  tour->is_in_sight = FALSE;
  g_clear_weak_pointer (&tour->target);
  td_tour_bubble_set_words (tour->bubble, &words);
  td_workspace_announce (self->workspace, step->text);
  td_tour_bubble_take_focus (tour->bubble);
  td__window_update_actions (self);
  gtk_widget_queue_draw (GTK_WIDGET (self));
  return TRUE;
}

void
td__run_lesson (TdWindow *self, const char *name)
{
  if (!self->tour && !td_window_is_empty (self)) /* it would take the user's recording away */
    {
      td__window_toast (
          self, _ ("Lessons are shown in a window of their own: New Window, in the menu"));
      return;
    }
  g_autoptr (GError) error = NULL;
  TdLesson *lesson = td_lesson_find (name, &error);
  if (!lesson)
    {
      td__window_toast (self, error->message);
      return;
    }
  end_tour (self);
  TdTour *tour = self->tour = g_new0 (TdTour, 1);
  tour->lesson = lesson;
  tour->bubble = td_tour_bubble_new (GTK_WIDGET (self->toasts));
  tour->clock = g_object_ref (gtk_widget_get_frame_clock (GTK_WIDGET (self)));
  g_signal_connect_swapped (self->toasts, "destroy", G_CALLBACK (end_tour), self);
  g_signal_connect_swapped (tour->clock, "after-paint", G_CALLBACK (look), self);
  if (!show_step (self, 0))
    leave (self);
}

void
td__run_lesson_next (TdWindow *self, const char *parameter)
{
  guint next = (guint)self->lesson_step + 1;
  if (next == self->tour->lesson->n_steps || !show_step (self, next))
    leave (self);
}

void
td__run_lesson_back (TdWindow *self, const char *parameter)
{
  if (!show_step (self, (guint)self->lesson_step - 1))
    leave (self);
}

void
td__run_lesson_close (TdWindow *self, const char *parameter)
{
  leave (self);
}
