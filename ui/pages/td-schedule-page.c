/* The pictures of the page; its models are in td-schedule-data.c, its lists in
 * td-schedule-rows.c, the bars above them in td-schedule-static.c and td-schedule-flame.c.
 * SPDX-License-Identifier: MIT */
#include "pages/td-schedule-page.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "pages/td-schedule-explain.h"
#include "pages/td-schedule-flame.h"
#include "pages/td-schedule-rows.h"
#include "pages/td-schedule-static.h"
#include "scene/td-sink.h"
#include "schedule/td-advice-scene.h"

/* The pictures that have a bar above them. */
enum
{
  BAR_STATIC,
  BAR_EXPLAIN,
  BAR_FLAME,
  N_BARS
};

static const struct
{
  const char *picture;
  GtkWidget *(*make) (TdScheduleData *data);
  void (*update) (GtkWidget *bar);
} bars[N_BARS] = {
  [BAR_STATIC] = { "static", td__static_bar_new, td__static_bar_update },
  [BAR_EXPLAIN] = { "explain", td__static_bar_new, td__static_bar_update },
  [BAR_FLAME] = { "flame", td__flame_bar_new, td__flame_bar_update },
};

struct _TdSchedulePage
{
  TdPage parent;
  TdScheduleData data;
  GtkWidget *bars[N_BARS]; /* weak; NULL: nobody shows that picture */
  GtkWidget *flame;        /* the flame graph, weak */
};

G_DEFINE_FINAL_TYPE (TdSchedulePage, td_schedule_page, TD_TYPE_PAGE)

static TdScheduleData *
data_of (TdPage *page)
{
  return &TD_SCHEDULE_PAGE (page)->data;
}

/* ---- pictures ---- */

static TdScene *
make_order (TdPage *page, const TdPanelView *view)
{
  TdScheduleData *data = data_of (page);
  TdSchedule *schedule = td__schedule_get_schedule (data);
  return schedule ? td_schedule_scene (schedule, data->advice, view) : NULL;
}

static TdScene *
make_static (TdPage *page, const TdPanelView *view)
{
  guint function;
  TdStatics *statics = td__schedule_get_statics (data_of (page), &function);

  return statics ? td_statics_scene (statics, function, view)
                 : td_panel_message (view, _ ("No static function"),
                                     _ ("td_static_new makes one; its schedule appears here."));
}

static TdScene *
make_explain (TdPage *page, const TdPanelView *view)
{
  TdPanelView with_cursor = *view;
  return td__explain_make (data_of (page), &with_cursor);
}

static TdPress
press_explain (TdPage *page, const char *name, const TdSceneHit *hit, GtkWidget *view)
{
  return td__explain_press (data_of (page), hit, view) ? TD_PRESS_TAKEN : TD_PRESS_FOLLOW;
}

static char *
move_explain (TdPage *page, const char *name, int delta, GtkWidget *view)
{
  return td__explain_move (data_of (page), delta, view);
}

static TdScene *
make_timeline (TdPage *page, const TdPanelView *view)
{
  return td_timeline_scene (td_page_get_iteration (page), view);
}

static TdScene *
make_flame (TdPage *page, const TdPanelView *view)
{
  return td__flame_make (data_of (page), view);
}

static TdPress
press_flame (TdPage *page, const char *name, const TdSceneHit *hit, GtkWidget *view)
{
  td__flame_press (data_of (page), hit);
  return TD_PRESS_TAKEN;
}

static char *
walk_flame (TdPage *page, const char *name, TdSceneWay way, GtkWidget *view)
{
  return td__flame_walk (data_of (page), way);
}

static void
open_flame (TdPage *page, const char *name, const TdSceneHit *hit)
{
  td__flame_open (data_of (page), hit);
}

static TdScene *
make_advice (TdPage *page, const TdPanelView *view)
{
  TdStaticness *staticness = td__schedule_get_staticness (data_of (page));
  return staticness ? td_advice_scene (staticness, view) : NULL;
}

static TdScene *
make_buffers (TdPage *page, const TdPanelView *view)
{
  return td_gantt_scene (td__schedule_get_gantt (data_of (page)), 0, view);
}

static TdPress
press_row (TdPage *page, const char *name, const TdSceneHit *hit, GtkWidget *view)
{
  return td__schedule_pick (data_of (page), name, hit) ? TD_PRESS_TAKEN : TD_PRESS_FOLLOW;
}

static char *
move_row (TdPage *page, const char *name, int delta, GtkWidget *view)
{
  return td__schedule_move (data_of (page), name, delta);
}

/* What has no rows, as buffers over the events, is no table. */
static char *
dup_csv (TdPage *page, const char *name)
{
  TdScheduleData *data = data_of (page);
  TdSink sink = { 0 };
  guint function;
  if (g_str_equal (name, "static"))
    {
      TdStatics *statics = td__schedule_get_statics (data, &function);
      return statics ? td_statics_print (statics, (gint)function, "csv") : NULL;
    }
  if (g_str_equal (name, "explain"))
    {
      TdExplain *explain = td__schedule_get_explain (data, &function);
      return explain ? td_explain_print (explain, (gint)function, "csv") : NULL;
    }
  TdFlame *flame = g_str_equal (name, "flame") ? td__schedule_get_flame (data) : NULL;
  TdSchedule *schedule = g_str_equal (name, "order") || g_str_equal (name, "timeline")
                             ? td__schedule_get_schedule (data)
                             : NULL;
  if (!flame && !schedule)
    return NULL;
  sink.text = g_string_new (NULL);
  if (flame)
    td_flame_print (flame, data->flame_size, "csv", &sink);
  else
    td_schedule_print (schedule, data->advice, NULL, "csv", &sink);
  return g_string_free (sink.text, FALSE);
}

static const TdPicture pictures[] = {
  { "order", N_ ("Order"), N_ ("Operations in order of execution"), make_order, press_row,
    move_row },
  { "static", N_ ("Static"), N_ ("The schedule of a static function"), make_static, press_row,
    move_row },
  { "explain", N_ ("Explain"), N_ ("Why static functions ran their code, by reason"),
    make_explain, press_explain, move_explain },
  { "timeline", N_ ("Timeline"), N_ ("Operations over time"), make_timeline, press_row,
    move_row, .axis = TD_AXIS_TIME },
  { "flame", N_ ("Flame"), N_ ("What layers cost, in time and in bytes"), make_flame,
    press_flame, .walk = walk_flame, .open = open_flame, .axis = TD_AXIS_TIME, .still = TRUE },
  { "advice", N_ ("Advice"), N_ ("What could be a static schedule"), make_advice, press_row,
    move_row },
  { "buffers", N_ ("Buffers"), N_ ("Buffers over the events, by address"), make_buffers,
    press_row, move_row, .axis = TD_AXIS_EVENTS },
};

static void
place (TdPage *page, const char *name, TdPanelView *view)
{
  td__schedule_place (data_of (page), name, view);
}

static void
update_bars (TdPage *page)
{
  TdSchedulePage *self = TD_SCHEDULE_PAGE (page);
  for (guint i = 0; i < N_BARS; i++)
    if (self->bars[i])
      bars[i].update (self->bars[i]);
}

static GtkWidget *
wrap (TdPage *page, const char *name, GtkWidget *view)
{
  TdSchedulePage *self = TD_SCHEDULE_PAGE (page);
  guint i = 0;
  while (i < N_BARS && strcmp (bars[i].picture, name) != 0)
    i++;
  if (i == N_BARS)
    return view;
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  g_set_weak_pointer (&self->bars[i], bars[i].make (&self->data));
  if (i == BAR_FLAME)
    g_set_weak_pointer (&self->flame, view);
  gtk_box_append (GTK_BOX (box), self->bars[i]);
  gtk_widget_set_vexpand (view, TRUE);
  gtk_box_append (GTK_BOX (box), view);
  g_signal_connect_object (box, "map", G_CALLBACK (update_bars), self,
                           G_CONNECT_SWAPPED | G_CONNECT_AFTER);
  return box;
}

gboolean
td_schedule_page_step_static (TdSchedulePage *self, gboolean schedules, int direction)
{
  return schedules ? td__schedule_step_schedule (&self->data, direction)
                   : td__schedule_step_function (&self->data, direction);
}

void
td_schedule_page_set_flame_size (TdSchedulePage *self, TdFlameSize size)
{
  td__flame_set_size (&self->data, size);
}

gboolean
td_schedule_page_leave (TdSchedulePage *self)
{
  return self->flame && gtk_widget_has_focus (self->flame) && td__flame_zoom_out (&self->data);
}

/* ---- session ---- */

static void
forget_moment (TdPage *page)
{
  td__schedule_forget (data_of (page), FALSE);
}

static void
forget_session (TdPage *page)
{
  td__schedule_forget (data_of (page), TRUE);
}

static void
playhead_moved (TdPage *page)
{
  data_of (page)->cursor = 0;
}

static void
selection_changed (TdPage *page)
{
  TdScheduleData *data = data_of (page);
  if (data->picking)
    return;
  data->flame_walked = FALSE;
  td__schedule_follow (data);
  data->cursor = td_session_get_step (td_page_get_session (page)) + 1; /* no step: no row */
}

static void
td_schedule_page_finalize (GObject *object)
{
  for (guint i = 0; i < N_BARS; i++)
    g_clear_weak_pointer (&TD_SCHEDULE_PAGE (object)->bars[i]);
  g_clear_weak_pointer (&TD_SCHEDULE_PAGE (object)->flame);
  G_OBJECT_CLASS (td_schedule_page_parent_class)->finalize (object);
}

static void
td_schedule_page_class_init (TdSchedulePageClass *klass)
{
  TdPageClass *class = TD_PAGE_CLASS (klass);
  G_OBJECT_CLASS (klass)->finalize = td_schedule_page_finalize;
  class->name = "schedule";
  class->title = N_ ("Schedule");
  class->dup_csv = dup_csv;
  class->pictures = pictures;
  class->n_pictures = G_N_ELEMENTS (pictures);
  class->forget_moment = forget_moment;
  class->forget_session = forget_session;
  class->moment_shown = update_bars;
  class->playhead_moved = playhead_moved;
  class->selection_changed = selection_changed;
  class->place = place;
  class->wrap = wrap;
}

static void
td_schedule_page_init (TdSchedulePage *self)
{
  self->data.page = TD_PAGE (self);
  self->data.flame_zoom.lane = TD_FLAME_ALL;
}

TdPage *
td_schedule_page_new (void)
{
  return g_object_new (TD_TYPE_SCHEDULE_PAGE, NULL);
}
