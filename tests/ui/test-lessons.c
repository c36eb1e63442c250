/* Every lesson, from its card on the start page to its last step: each step points at something
 * that is there and is not covered, each task is done by the keys or actions that a user has,
 * and what the words claim is held against the recordings.
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <gdk/x11/gdkx.h>
#include <string.h>

#include "pages/td-lesson-picture.h"
#include "pages/td-lesson.h"
#include "widgets/td-tour-bubble.h"
#include "window/td-window-private.h"

/* ---- the bubble ---- */

static GtkWidget *
find_mapped (GtkWidget *widget, const char *name)
{
  GtkWidget *found = gtk_widget_get_mapped (widget) ? ui_test_find_named (widget, name) : NULL;
  return found && gtk_widget_get_mapped (found) ? found : NULL;
}

static GtkPopover *
bubble (void)
{
  GtkWidget *found = find_mapped (GTK_WIDGET (ui_test_window ()), "tour");
  return found ? GTK_POPOVER (found) : NULL;
}

static gboolean
is_on_show (gpointer unused)
{
  return bubble () != NULL;
}

static gboolean
has_text (GtkWidget *widget, const char *text)
{
  if (GTK_IS_LABEL (widget) && gtk_widget_get_visible (widget)
      && strstr (gtk_label_get_text (GTK_LABEL (widget)), text))
    return TRUE;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    if (gtk_widget_get_visible (child) && has_text (child, text))
      return TRUE;
  return FALSE;
}

static gboolean
says (gpointer text)
{
  return bubble () && has_text (GTK_WIDGET (bubble ()), text);
}

/* Where the bubble is, in pixels of the widget it is placed in. */
static GdkRectangle
find_bubble (void)
{
  GtkNative *native = GTK_NATIVE (bubble ());
  GdkPopup *popup = GDK_POPUP (gtk_native_get_surface (native));
  GtkWidget *parent = gtk_widget_get_parent (GTK_WIDGET (bubble ()));
  double x, y, left, top;
  gtk_native_get_surface_transform (GTK_NATIVE (ui_test_window ()), &x, &y);
  gtk_native_get_surface_transform (native, &left, &top);
  graphene_rect_t all; /* without its shadow */
  graphene_point_t at;
  GtkWidget *contents = gtk_widget_get_first_child (GTK_WIDGET (native));
  assert_true (gtk_widget_compute_bounds (contents, GTK_WIDGET (native), &all));
  graphene_point_init (&at, (float)(gdk_popup_get_position_x (popup) - x + left),
                       (float)(gdk_popup_get_position_y (popup) - y + top));
  assert_true (gtk_widget_compute_point (GTK_WIDGET (ui_test_window ()), parent, &at, &at));
  return (GdkRectangle){ (int)(at.x + all.origin.x), (int)(at.y + all.origin.y),
                         (int)all.size.width, (int)all.size.height };
}

static void add_fault (GString *faults, const TdLesson *lesson, guint step, const char *format,
                       ...) G_GNUC_PRINTF (4, 5);

static void
add_fault (GString *faults, const TdLesson *lesson, guint step, const char *format, ...)
{
  va_list list;
  va_start (list, format);
  g_string_append_printf (faults, "\n%s, step %u: ", lesson->name, step + 1);
  g_string_append_vprintf (faults, format, list);
  va_end (list);
}

/* It points at something that is in sight, covers none of it, and stands in the window. */
static void
judge_place (const TdLesson *lesson, guint step, GString *faults)
{
  GdkRectangle target, here = find_bubble (), both;
  GtkWidget *parent = gtk_widget_get_parent (GTK_WIDGET (bubble ()));
  GdkRectangle all = { 0, 0, gtk_widget_get_width (parent), gtk_widget_get_height (parent) };
  if (!gtk_popover_get_has_arrow (bubble ()))
    {
      add_fault (faults, lesson, step, "there is no %s", lesson->steps[step].target);
      return;
    }
  assert_true (gtk_popover_get_pointing_to (bubble (), &target));
  if (target.width <= 1 || target.height <= 1)
    add_fault (faults, lesson, step, "points at %d x %d pixels", target.width, target.height);
  if (gdk_rectangle_intersect (&target, &here, &both) && both.width > 1 && both.height > 1)
    add_fault (faults, lesson, step, "covers %d x %d of what it points at", both.width,
               both.height);
  if (here.x < -1 || here.y < -1 || here.x + here.width > all.width + 1
      || here.y + here.height > all.height + 1)
    add_fault (faults, lesson, step, "stands at %d, %d with %d x %d pixels", here.x, here.y,
               here.width, here.height);
}

static void
settle (void)
{
  for (int i = 0; i < 3; i++)
    ui_test_settle ();
  ui_test_wait_for_layout ();
}

/* ---- what users do ---- */

typedef struct
{
  const char *what;   /* of the deed */
  const char *action; /* done until the deed is */
  const char *parameter;
} Way;

/* The way to each deed that the lessons ask for. */
static const Way ways[] = {
  { "operation mean_squared_error", "step-op", NULL },
  { "operation tanh", "step-op", NULL },
  { "phase backward", "step-op", NULL },
  { "phase forward", "reverse-step-op", NULL },
  { "page memory", "show-page", "memory" },
  { "page compare", "show-page", "compare" },
  { "operation mul", "where-from", NULL },
  { "operation log", "reverse-step-op", NULL },
  { "event 4", "step-op", NULL },
  { "iteration 7", "next-iteration", NULL },
};

#define MOST_TRIES 60

static void
do_task (const TdLesson *lesson, guint i, GString *faults)
{
  const TdLessonStep *step = &lesson->steps[i];
  g_autofree char *what
      = g_strdup_printf ("%s %s", td_lesson_deed_names[step->deed], step->what);
  const Way *way = NULL;
  for (guint k = 0; k < G_N_ELEMENTS (ways); k++)
    if (strcmp (ways[k].what, what) == 0)
      way = &ways[k];
  if (!way)
    {
      add_fault (faults, lesson, i, "nobody tried: %s", what);
      return;
    }
  if (says (step->done))
    add_fault (faults, lesson, i, "is done before anything was");
  if (!ui_test_find_button (GTK_WIDGET (bubble ()), "_Skip"))
    add_fault (faults, lesson, i, "does not offer to skip it");
  for (int k = 0; k < MOST_TRIES && !says (step->done); k++)
    {
      ui_test_do (way->action, way->parameter);
      settle ();
    }
  if (!says (step->done))
    add_fault (faults, lesson, i, "is not done by %s", way->action);
}

/* A button that is pressed by a key stays down for a while. */
static gboolean
has_gone_on (gpointer step)
{
  return ui_test_window ()->lesson_step != GPOINTER_TO_INT (step);
}

/* Through the lesson by the button that has the keyboard. */
static void
walk (const TdLesson *lesson, const char *look, GString *faults)
{
  for (guint i = 0; i < lesson->n_steps; i++)
    {
      settle ();
      assert_int_equal (ui_test_window ()->lesson_step, (int)i);
      g_autofree char *count = g_strdup_printf ("%u of %u", i + 1, lesson->n_steps);
      if (!says (lesson->steps[i].title) || !says (lesson->steps[i].text) || !says (count))
        add_fault (faults, lesson, i, "does not say its words");
      judge_place (lesson, i, faults);
      g_autofree char *name
          = g_strdup_printf ("lesson-%s-%u-%s.png", lesson->name, i + 1, look);
      ui_test_save_picture (name);
      if (lesson->steps[i].deed != TD_DEED_NONE)
        do_task (lesson, i, faults);
      GtkWidget *focus = gtk_root_get_focus (GTK_ROOT (ui_test_window ()));
      if (!focus || !gtk_widget_is_ancestor (focus, GTK_WIDGET (bubble ())))
        add_fault (faults, lesson, i, "the keyboard is not in the bubble");
      gtk_widget_activate (focus);
      ui_test_wait ("the next step", has_gone_on, GUINT_TO_POINTER (i));
    }
  settle ();
  if (bubble ())
    add_fault (faults, lesson, lesson->n_steps - 1, "is not the end");
}

static void
start (const TdLesson *lesson)
{
  ui_test_new_window ();
  GtkWidget *card = ui_test_find_named (GTK_WIDGET (ui_test_start_page ()), lesson->name);
  assert_non_null (card);
  assert_true (gtk_widget_grab_focus (card));
  assert_true (gtk_widget_activate (card));
  ui_test_wait ("the lesson", is_on_show, NULL);
}

/* ---- the tests ---- */

static void
with_all (void (*f) (const TdLesson *lesson, GString *faults))
{
  g_auto (GStrv) files = td_lesson_list_files ();
  g_autoptr (GString) faults = g_string_new (NULL);
  assert_non_null (files[0]);
  for (guint i = 0; files[i]; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (TdLesson) lesson = td_lesson_load (files[i], &error);
      if (!lesson)
        fail_msg ("%s", error->message);
      f (lesson, faults);
    }
  if (faults->len)
    fail_msg ("%s", faults->str);
}

static void
walk_it (const TdLesson *lesson, GString *faults)
{
  start (lesson);
  ui_test_resize (1440, 900);
  walk (lesson, "light", faults);
}

static void
lesson__is_walked_through_by_the_keyboard (void **state)
{
  with_all (walk_it);
}

static void
walk_small (const TdLesson *lesson, GString *faults)
{
  start (lesson);
  ui_test_resize (900, 600);
  walk (lesson, "small", faults);
}

static void
lesson__has_room_in_a_small_window (void **state)
{
  with_all (walk_small);
}

static void
walk_large (const TdLesson *lesson, GString *faults)
{
  start (lesson);
  ui_test_resize (1440, 900);
  walk (lesson, "text-200", faults);
}

static void
lesson__has_room_with_text_twice_as_large (void **state)
{
  g_object_set (gtk_settings_get_default (), "gtk-xft-dpi", 192 * 1024, NULL);
  with_all (walk_large);
  g_object_set (gtk_settings_get_default (), "gtk-xft-dpi", 96 * 1024, NULL);
}

/* ---- what is damaged ---- */

static void
copy_lesson (const char *folder, const char *file, const char *text)
{
  g_autofree char *path = g_build_filename (folder, file, NULL);
  assert_true (g_file_set_contents (path, text, -1, NULL));
}

#define GOOD "[Lesson]\nTitle=Good\nSummary=S\nPicture=chain\n"
#define STEP "[Step 1]\nTitle=T\nText=X\nTarget=playhead\n"

static gboolean
has_toast (gpointer text)
{
  return has_text (GTK_WIDGET (ui_test_window ()), text);
}

static void
lesson__that_is_damaged_is_one_line_and_the_rest_stays (void **state)
{
  g_autofree char *folder = g_strdup (td_test_tmp ("lessons"));
  assert_int_equal (g_mkdir_with_parents (folder, 0700), 0);
  copy_lesson (folder, "1-bad.lesson", GOOD);
  copy_lesson (folder, "2-good.lesson", GOOD STEP "Recording=none\n");
  g_setenv ("TAPEDECK_LESSONS", folder, TRUE);
  ui_test_new_window ();
  GtkWidget *page = GTK_WIDGET (ui_test_start_page ());
  assert_true (has_text (page, "1-bad.lesson: [Lesson] has no steps"));
  assert_null (ui_test_find_named (page, "bad"));
  assert_non_null (ui_test_find_named (page, "good"));
  /* its recording is not there */
  ui_test_do ("lesson", "good");
  assert_true (has_toast ((gpointer) "none.tdtape, which this lesson shows, is not installed"));
  assert_null (bubble ());
  assert_string_equal (ui_test_page (), "start");
  ui_test_do ("lesson", "other");
  ui_test_wait ("what is missing", has_toast, (gpointer) "There is no lesson called other.");
  /* nor is it a recording */
  copy_lesson (folder, "none.tdtape", "no tape");
  ui_test_do ("lesson", "good");
  assert_null (bubble ());
  assert_string_equal (ui_test_message_title (), "Not a Recording");
  g_unsetenv ("TAPEDECK_LESSONS");
  ui_test_new_window ();
  ui_test_do ("lesson", "first-network");
  ui_test_wait ("the lesson", is_on_show, NULL);
}

/* ---- beside the user ---- */

static void
lesson__is_closed_by_escape_and_leaves_the_recording (void **state)
{
  ui_test_do ("lesson", "first-network");
  ui_test_wait ("the lesson", is_on_show, NULL);
  GActionGroup *actions = G_ACTION_GROUP (ui_test_window ());
  assert_true (g_action_group_get_action_enabled (actions, "lesson-next"));
  assert_false (g_action_group_get_action_enabled (actions, "lesson-back"));
  ui_test_do ("lesson-next", NULL);
  ui_test_do ("lesson-back", NULL);
  assert_int_equal (ui_test_window ()->lesson_step, 0);
  ui_test_do ("cancel", NULL);
  assert_null (bubble ());
  assert_string_equal (ui_test_page (), "workspace");
  assert_false (g_action_group_get_action_enabled (actions, "lesson-next"));
}

/* As if it had been pressed on the keyboard. */
static void
press (const char *key)
{
  GdkSurface *surface = gtk_native_get_surface (GTK_NATIVE (ui_test_window ()));
  g_autofree char *id = g_strdup_printf ("%lu", (gulong)gdk_x11_surface_get_xid (surface));
  const char *const argv[]
      = { "xdotool", "windowfocus", "--sync", id, "key", "--clearmodifiers", key, NULL };
  g_autoptr (GSubprocess) child = g_subprocess_newv (argv, G_SUBPROCESS_FLAGS_NONE, NULL);
  assert_non_null (child);
  assert_true (g_subprocess_wait_check (child, NULL, NULL));
}

static gboolean
is_at_step (gpointer step)
{
  return ui_test_window ()->lesson_step == GPOINTER_TO_INT (step);
}

static gboolean
is_at_event (gpointer event)
{
  return td_session_get_moment (ui_test_session ()).event == GPOINTER_TO_INT (event);
}

static void
lesson__leaves_the_keys_of_the_window_to_it (void **state)
{
  ui_test_do ("lesson", "first-network");
  ui_test_wait ("the lesson", is_on_show, NULL);
  settle ();
  press ("ctrl+Next");
  ui_test_wait ("the second step", is_at_step, GINT_TO_POINTER (1));
  press ("F12");
  ui_test_wait ("an operation", is_at_event, GINT_TO_POINTER (1));
  press ("ctrl+Prior");
  ui_test_wait ("the first step", is_at_step, GINT_TO_POINTER (0));
  press ("Escape");
  ui_test_wait ("the end", is_at_step, GINT_TO_POINTER (-1));
}

static gboolean
points (gpointer unused)
{
  return bubble () && gtk_popover_get_has_arrow (bubble ());
}

static gboolean
points_nowhere (gpointer unused)
{
  return bubble () && !gtk_popover_get_has_arrow (bubble ());
}

/* The widget that was found is pointed at, without looking for it in every frame; one that is
 * gone is not. */
static void
lesson__leaves_a_target_that_goes (void **state)
{
  g_autofree char *folder = g_strdup (td_test_tmp ("targets"));
  g_autofree char *sample = g_build_filename (folder, "sample.tdtape", NULL);
  const SampleOptions usual = { .n_iterations = 3, .nan_at = -1 };
  assert_int_equal (g_mkdir_with_parents (folder, 0700), 0);
  sample_tape_write (sample, &usual);
  copy_lesson (folder, "1-one.lesson",
               GOOD "[Step 1]\nTitle=T\nText=X\nRecording=sample\nTarget=own\n");
  g_setenv ("TAPEDECK_LESSONS", folder, TRUE);
  ui_test_do ("lesson", "one");
  ui_test_wait ("a bubble without a target", points_nowhere, NULL);
  GtkWidget *own = gtk_button_new_with_label ("Own");
  gtk_widget_set_name (own, "own");
  gtk_box_append (GTK_BOX (gtk_widget_get_first_child (GTK_WIDGET (ui_test_workspace ()))),
                  own);
  ui_test_wait ("one with it", points, NULL);
  gtk_widget_set_name (own, "another");
  settle ();
  assert_true (points (NULL));
  gtk_box_remove (GTK_BOX (gtk_widget_get_parent (own)), own);
  ui_test_wait ("one without it again", points_nowhere, NULL);
  ui_test_do ("cancel", NULL);
  g_unsetenv ("TAPEDECK_LESSONS");
}

static void
lesson__ends_when_something_else_is_opened (void **state)
{
  ui_test_do ("lesson", "first-network");
  ui_test_wait ("the lesson", is_on_show, NULL);
  ui_test_open_sample (NULL);
  ui_test_settle ();
  assert_null (bubble ());
  assert_int_equal (ui_test_window ()->lesson_step, -1);
  /* and takes nothing of the user's away */
  ui_test_do ("lesson", "first-network");
  assert_null (bubble ());
  assert_true (has_toast ((gpointer) "Lessons are shown in a window of their own"));
  assert_string_equal (td_session_get_name (ui_test_session ()), "lenet");
}

static void
lesson__dies_with_its_window (void **state)
{
  ui_test_do ("lesson", "first-network");
  ui_test_wait ("the lesson", is_on_show, NULL);
  ui_test_new_window ();
  assert_null (bubble ());
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (lesson__is_walked_through_by_the_keyboard),
    ui_test (lesson__has_room_in_a_small_window),
    ui_test (lesson__has_room_with_text_twice_as_large),
    ui_test (lesson__that_is_damaged_is_one_line_and_the_rest_stays),
    ui_test (lesson__is_closed_by_escape_and_leaves_the_recording),
    ui_test (lesson__leaves_the_keys_of_the_window_to_it),
    ui_test (lesson__leaves_a_target_that_goes),
    ui_test (lesson__ends_when_something_else_is_opened),
    ui_test (lesson__dies_with_its_window),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
