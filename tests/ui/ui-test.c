/* The in-process harness (PLATFORM.md 2c): real widgets, real drawing, no pointer.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <execinfo.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings/td-settings.h"
#include "window/td-window-private.h"

static TdApplication *app;
static TdWindow *window;

/* Where something was critical. */
static void
print_where (int signal_number)
{
  void *frames[40];
  backtrace_symbols_fd (frames, backtrace (frames, G_N_ELEMENTS (frames)), STDERR_FILENO);
  signal (signal_number, SIG_DFL);
  raise (signal_number);
}

void
ui_test_init (int *argc, char ***argv)
{
  g_setenv ("GTK_A11Y", "none", FALSE);
  g_setenv ("GSETTINGS_BACKEND", "memory", TRUE);
  g_setenv ("GSETTINGS_SCHEMA_DIR", td_test_build ("data"), TRUE);
  /* What is critical ends a test; G_DEBUG was read before main. */
  g_log_set_always_fatal (G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL);
  signal (SIGTRAP, print_where);
  if (g_getenv ("TD_TEST_FILTER"))
    cmocka_set_test_filter (g_getenv ("TD_TEST_FILTER"));
  td_application_prepare_environment ();
  if (!gtk_init_check ())
    exit (77);
  g_object_set (gtk_settings_get_default (), "gtk-font-name", "Cantarell 11",
                "gtk-decoration-layout", ":close", "gtk-enable-animations", FALSE, NULL);
  app = td_application_new ();
  g_application_set_flags (G_APPLICATION (app), g_application_get_flags (G_APPLICATION (app))
                                                    | G_APPLICATION_NON_UNIQUE);
  g_application_register (G_APPLICATION (app), NULL, NULL);
}

/* What one test leaves behind is nothing to the next. */
static void
reset_settings (void)
{
  static const char *const keys[]
      = { "perspective",     "show-outline",     "show-inspector",    "show-dock",
          "dock-panels",     "window-width",     "window-height",     "window-maximized",
          "level",           "runs-kept",        "tape-budget",       "runs-budget",
          "record-program",  "record-arguments", "record-directory",  "record-environment",
          "record-device",   "record-stop",      "record-iterations", "record-seed",
          "record-keyframes" };
  for (guint i = 0; td_settings_get () && i < G_N_ELEMENTS (keys); i++)
    g_settings_reset (td_settings_get (), keys[i]);
}

int
ui_test_setup (void **state)
{
  int status = td_test_setup (state);
  reset_settings ();
  window = td_window_new (GTK_APPLICATION (app));
  gtk_window_set_decorated (GTK_WINDOW (window), TRUE);
  gtk_window_present (GTK_WINDOW (window));
  ui_test_settle ();
  return status;
}

int
ui_test_teardown (void **state)
{
  gtk_window_destroy (GTK_WINDOW (window));
  window = NULL;
  while (g_main_context_iteration (NULL, FALSE))
    ;
  return td_test_teardown (state);
}

void
ui_test_forget_window (void)
{
  window = NULL;
}

void
ui_test_new_window (void)
{
  if (window)
    gtk_window_destroy (GTK_WINDOW (window));
  window = td_window_new (GTK_APPLICATION (app));
  gtk_window_present (GTK_WINDOW (window));
  ui_test_settle ();
}

static gboolean
wake (gpointer data)
{
  return G_SOURCE_CONTINUE;
}

void
ui_test_wait (const char *what, gboolean (*met) (gpointer data), gpointer data)
{
  gint64 until = g_get_monotonic_time () + td_test_patience_ms () * (gint64)1000;
  guint timer = g_timeout_add (100, wake, NULL); /* so that the deadline is noticed */
  while (!met (data))
    {
      if (g_get_monotonic_time () > until)
        fail_msg ("waited in vain for: %s (page %s)", what, ui_test_page ());
      g_main_context_iteration (NULL, TRUE);
    }
  g_source_remove (timer);
}

TdApplication *
ui_test_app (void)
{
  return app;
}

TdWindow *
ui_test_window (void)
{
  return window;
}

TdSession *
ui_test_session (void)
{
  return td_window_get_session (window);
}

TdWorkspace *
ui_test_workspace (void)
{
  return window->workspace;
}

static gboolean
drawn (GtkWidget *widget, GdkFrameClock *clock, gpointer data)
{
  gboolean *done = data;
  *done = TRUE;
  return G_SOURCE_REMOVE;
}

/* Two frames: the first lays out what the second draws. */
void
ui_test_settle (void)
{
  gint64 until = g_get_monotonic_time () + td_test_patience_ms () * (gint64)1000;
  for (int frame = 0; frame < 2; frame++)
    {
      gboolean done = FALSE;
      guint id = gtk_widget_add_tick_callback (GTK_WIDGET (window), drawn, &done, NULL);
      gtk_widget_queue_draw (GTK_WIDGET (window));
      while (!done && g_get_monotonic_time () < until)
        g_main_context_iteration (NULL, TRUE);
      if (!done)
        gtk_widget_remove_tick_callback (GTK_WIDGET (window), id);
      assert_true (done);
    }
  while (g_main_context_pending (NULL) && g_get_monotonic_time () < until)
    g_main_context_iteration (NULL, FALSE);
}

static gboolean
is_open (gpointer unused)
{
  return !window->import && !window->loading;
}

void
ui_test_open (const char *path)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  td_window_open (window, file);
  ui_test_wait ("the file's tape", is_open, NULL);
  ui_test_settle ();
}

#define OF_TORCH "torch-"

/* What is run: one of ours, or a script, for which `python` is said. */
static char *
dup_life_program (const char *name, const char **python)
{
  g_autofree char *program = NULL;
  *python = NULL;
  if (!g_str_has_prefix (name, OF_TORCH))
    {
      program = g_build_filename ("tests/life", name, NULL);
      return g_strdup (td_test_build (program));
    }
  *python = td_test_python ("torch");
  program = g_strdup_printf ("tests/models/life/torch/%s.py", name + strlen (OF_TORCH));
  return g_strdup (td_test_source (program));
}

void
ui_test_record_life (const char *tape, char *const *arguments, const char *const *options)
{
  const char *python;
  g_autofree char *program = dup_life_program (arguments[0], &python);
  g_autofree char *with = g_strdup_printf ("TAPEDECK_PYTHON=%s", python ? python : "");
  const char *const environment[] = { with, "PYTHONDONTWRITEBYTECODE=1", NULL };
  const char *const run[]
      = { td_test_program ("app/tapedeck"), "run", "--quiet", "-f", "-o", tape, NULL };
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  for (guint i = 0; run[i]; i++)
    g_ptr_array_add (argv, (gpointer)run[i]);
  for (guint i = 0; options && options[i]; i++)
    g_ptr_array_add (argv, (gpointer)options[i]);
  g_ptr_array_add (argv, (gpointer) "--"); /* what follows is the program's */
  g_ptr_array_add (argv, program);
  for (guint i = 1; arguments[i]; i++)
    g_ptr_array_add (argv, arguments[i]);
  g_ptr_array_add (argv, NULL);
  TdTestChild child
      = td_test_run ((const char *const *)argv->pdata, NULL, python ? environment : NULL);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

void
ui_test_open_sample (const SampleOptions *options)
{
  const SampleOptions usual = { .n_iterations = SAMPLE_ITERATIONS, .nan_at = -1 };
  const char *path = td_test_tmp ("sample.tdtape");
  sample_tape_write (path, options ? options : &usual);
  ui_test_open (path);
  assert_string_equal (ui_test_page (), "workspace");
  assert_non_null (ui_test_session ());
}

void
ui_test_do (const char *action, const char *parameter)
{
  GActionGroup *group = G_ACTION_GROUP (window);
  if (!g_action_group_get_action_enabled (group, action))
    fail_msg ("action %s is disabled", action);
  g_action_group_activate_action (group, action,
                                  parameter ? g_variant_new_string (parameter) : NULL);
  ui_test_settle ();
}

char *
ui_test_state (const char *name)
{
  g_autoptr (GVariant) state = g_action_group_get_action_state (G_ACTION_GROUP (window), name);
  return g_variant_dup_string (state, NULL);
}

const char *
ui_test_page (void)
{
  return gtk_stack_get_visible_child_name (window->pages);
}

const char *
ui_test_message_title (void)
{
  return adw_status_page_get_title (window->message);
}

TdStartPage *
ui_test_start_page (void)
{
  return TD_START_PAGE (window->start_page);
}

const char *
ui_test_message_text (void)
{
  return adw_status_page_get_description (window->message);
}

gboolean
ui_test_has_info (gpointer text)
{
  return gtk_info_bar_get_revealed (GTK_INFO_BAR (window->info_bar))
         && strstr (gtk_label_get_text (window->info_label), text);
}

const char *
ui_test_info_text (void)
{
  assert_true (gtk_info_bar_get_revealed (GTK_INFO_BAR (window->info_bar)));
  return gtk_label_get_text (window->info_label);
}

char *
ui_test_dup_csv (GtkWidget *widget)
{
  const char *path = td_test_tmp ("table.csv");
  char *text = NULL;
  g_unlink (path);
  assert_true (gtk_widget_grab_focus (widget));
  ui_test_do ("save-panel", path);
  assert_true (g_file_get_contents (path, &text, NULL, NULL));
  return text;
}

void
ui_test_resize (int width, int height)
{
  int frame_width = 0, frame_height = 0;
  for (int i = 0; i < 2; i++)
    {
      gtk_window_set_default_size (GTK_WINDOW (window), width + frame_width,
                                   height + frame_height);
      for (int frame = 0; frame < 3; frame++)
        ui_test_settle ();
      frame_width += width - gtk_widget_get_width (GTK_WIDGET (window->toasts));
      frame_height += height - gtk_widget_get_height (GTK_WIDGET (window->toasts));
    }
}

void
ui_test_set_dark (gboolean dark)
{
  adw_style_manager_set_color_scheme (adw_style_manager_get_default (),
                                      dark ? ADW_COLOR_SCHEME_FORCE_DARK
                                           : ADW_COLOR_SCHEME_FORCE_LIGHT);
  ui_test_settle ();
}

/* A widget that was not drawn yet since its last change has no picture: draw again. */
static GskRenderNode *
take_node (GtkWidget *widget, graphene_size_t *size)
{
  GskRenderNode *node = NULL;
  for (int i = 0; i < 10 && !node; i++)
    {
      ui_test_settle ();
      g_autoptr (GdkPaintable) paintable = gtk_widget_paintable_new (widget);
      GtkSnapshot *snapshot = gtk_snapshot_new ();
      size->width = (float)gdk_paintable_get_intrinsic_width (paintable);
      size->height = (float)gdk_paintable_get_intrinsic_height (paintable);
      gdk_paintable_snapshot (paintable, snapshot, size->width, size->height);
      node = gtk_snapshot_free_to_node (snapshot);
    }
  assert_non_null (node);
  return node;
}

/* The bubble of a lesson has a surface of its own: it is drawn where it stands. */
static GskRenderNode *
add_bubble (GskRenderNode *node)
{
  GtkWidget *bubble = ui_test_find_named (GTK_WIDGET (window), "tour");
  if (!bubble || !gtk_widget_get_mapped (bubble))
    return node;
  double x, y, left, top;
  graphene_size_t size;
  GdkPopup *popup = GDK_POPUP (gtk_native_get_surface (GTK_NATIVE (bubble)));
  gtk_native_get_surface_transform (GTK_NATIVE (window), &x, &y);
  gtk_native_get_surface_transform (GTK_NATIVE (bubble), &left, &top);
  graphene_point_t at = { (float)(gdk_popup_get_position_x (popup) - x + left),
                          (float)(gdk_popup_get_position_y (popup) - y + top) };
  GskRenderNode *drawn = take_node (bubble, &size);
  GskRenderNode *moved = gsk_transform_node_new (drawn, gsk_transform_translate (NULL, &at));
  GskRenderNode *both = gsk_container_node_new ((GskRenderNode *[]){ node, moved }, 2);
  gsk_render_node_unref (drawn);
  gsk_render_node_unref (moved);
  gsk_render_node_unref (node);
  return both;
}

/* Without a window manager GTK draws a frame of equal width around the content: cut it off. */
static GdkTexture *
shoot (void)
{
  GtkWidget *widget = GTK_WIDGET (window), *content = GTK_WIDGET (window->toasts);
  int w = gtk_widget_get_width (content), h = gtk_widget_get_height (content);
  graphene_size_t all;
  g_autoptr (GskRenderNode) node = add_bubble (take_node (widget, &all));
  float left = (all.width - (float)w) / 2, top = (all.height - (float)h) / 2;
  GskRenderer *renderer = gtk_native_get_renderer (GTK_NATIVE (window));
  return gsk_renderer_render_texture (renderer, node,
                                      &GRAPHENE_RECT_INIT (left, top, (float)w, (float)h));
}

gboolean
ui_test_has_many_colours (guint n)
{
  g_autoptr (GdkTexture) texture = shoot ();
  int width = gdk_texture_get_width (texture), height = gdk_texture_get_height (texture);
  g_autofree guint32 *pixels = g_new (guint32, (gsize)width * (gsize)height);
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  gdk_texture_download (texture, (guchar *)pixels, (gsize)width * 4);
  for (int y = 60; y < height - 10; y += 2)
    for (int x = 10; x < width - 10; x += 2)
      g_hash_table_add (seen, GUINT_TO_POINTER (pixels[y * width + x] & 0xf0f0f0));
  return g_hash_table_size (seen) >= n;
}

void
ui_test_save_picture_at (const char *path)
{
  g_autoptr (GdkTexture) texture = shoot ();
  assert_true (gdk_texture_save_to_png (texture, path));
}

void
ui_test_save_picture (const char *name)
{
  g_autofree char *folder = g_strdup (td_test_build ("tests/ui/pictures"));
  g_autofree char *path = g_build_filename (folder, name, NULL);
  g_mkdir_with_parents (folder, 0755);
  ui_test_save_picture_at (path);
}

/* The mean over its pixels, 0 to 255. */
static guint
brightness (const char *name)
{
  g_autofree char *file = g_strdup_printf ("tests/ui/pictures/%s", name);
  g_autoptr (GdkPixbuf) picture = gdk_pixbuf_new_from_file (td_test_build (file), NULL);
  guint64 sum = 0, n = 0;
  assert_non_null (picture);
  for (int y = 0; y < gdk_pixbuf_get_height (picture); y++)
    {
      const guint8 *row = gdk_pixbuf_read_pixels (picture)
                          + (gsize)y * (gsize)gdk_pixbuf_get_rowstride (picture);
      for (int x = 0; x < gdk_pixbuf_get_width (picture); x++, n++)
        sum += row[x * gdk_pixbuf_get_n_channels (picture) + 1]; /* green alone will do */
    }
  return (guint)(sum / MAX (n, 1));
}

gboolean
ui_test_are_bright_and_dark (const char *bright, const char *dark)
{
  return brightness (bright) > 128 && brightness (dark) < 128;
}

static gboolean
is_settled (gpointer data)
{
  return !td_graph_view_is_laying_out (data);
}

static gboolean
has_name (GtkWidget *widget, const char *name)
{
  return strcmp (gtk_widget_get_name (widget), name) == 0;
}

static gboolean
has_label (GtkWidget *widget, const char *label)
{
  return GTK_IS_BUTTON (widget)
         && g_strcmp0 (gtk_button_get_label (GTK_BUTTON (widget)), label) == 0;
}

static GtkWidget *
find_widget (GtkWidget *widget, gboolean (*is) (GtkWidget *widget, const char *text),
             const char *text)
{
  GtkWidget *found = is (widget, text) ? widget : NULL;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child && !found;
       child = gtk_widget_get_next_sibling (child))
    found = find_widget (child, is, text);
  return found;
}

GtkWidget *
ui_test_find_named (GtkWidget *widget, const char *name)
{
  return find_widget (widget, has_name, name);
}

GtkWidget *
ui_test_find_button (GtkWidget *widget, const char *label)
{
  return find_widget (widget, has_label, label);
}

GtkWidget *
ui_test_named (const char *name)
{
  GtkWidget *widget = ui_test_find_named (GTK_WIDGET (ui_test_workspace ()), name);
  assert_non_null (widget);
  return widget;
}

void
ui_test_wait_for_layout (void)
{
  TdGraphPage *pane = td_workspace_get_graph (ui_test_workspace ());
  ui_test_wait ("a layout", is_settled, td_graph_page_get_view (pane));
  ui_test_settle ();
}

/* The first widget that matches, name and all. */
static GtkWidget *
find (GtkWidget *widget, gboolean (*matches) (GtkWidget *widget, const char *name),
      const char *name)
{
  if (matches (widget, name))
    return widget;
  for (GtkWidget *c = gtk_widget_get_first_child (widget); c;
       c = gtk_widget_get_next_sibling (c))
    {
      GtkWidget *found = find (c, matches, name);
      if (found)
        return found;
    }
  return NULL;
}

static gboolean
is_panel (GtkWidget *widget, const char *name)
{
  return GTK_IS_STACK (widget) && strcmp (gtk_widget_get_name (widget), name) == 0;
}

static gboolean
is_scene (GtkWidget *widget, const char *name)
{
  return TD_IS_SCENE_VIEW (widget);
}

GtkWidget *
ui_test_panel_page (const char *panel, const char *page)
{
  GtkWidget *stack = find (GTK_WIDGET (window), is_panel, panel);
  assert_non_null (stack);
  gtk_stack_set_visible_child_name (GTK_STACK (stack), page);
  ui_test_settle ();
  GtkWidget *child = gtk_stack_get_child_by_name (GTK_STACK (stack), page);
  assert_non_null (child);
  return child;
}

TdSceneView *
ui_test_panel_scene_view (const char *panel, const char *page)
{
  GtkWidget *view = find (ui_test_panel_page (panel, page), is_scene, NULL);
  assert_non_null (view);
  return TD_SCENE_VIEW (view);
}

gboolean
ui_test_press_key (GtkWidget *widget, guint keyval)
{
  g_autoptr (GListModel) all = gtk_widget_observe_controllers (widget);
  gboolean taken = FALSE;
  for (guint i = 0; !taken && i < g_list_model_get_n_items (all); i++)
    {
      g_autoptr (GtkEventController) one = g_list_model_get_item (all, i);
      if (GTK_IS_EVENT_CONTROLLER_KEY (one))
        g_signal_emit_by_name (one, "key-pressed", keyval, 0, 0, &taken);
    }
  ui_test_settle ();
  return taken;
}
