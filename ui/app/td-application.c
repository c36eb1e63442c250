/* The application object: command line, opening files, `app.` actions, the about window.
 * SPDX-License-Identifier: MIT */
#include "app/td-application.h"

#include <glib/gi18n-lib.h>
#include <glib-unix.h>
#include <gtksourceview/gtksource.h>

#include "settings/td-keys.h"
#include "app/td-manual-window.h"
#include "app/td-preferences.h"
#include "app/td-gtk-amends.h"
#include "live/td-runner.h"
#include "settings/td-settings.h"
#include "window/td-window.h"

struct _TdApplication
{
  AdwApplication parent;
  GSettings *settings; /* NULL: the schema is nowhere; not owned */
};

G_DEFINE_FINAL_TYPE (TdApplication, td_application, ADW_TYPE_APPLICATION)

/* A machine without a render node draws through llvmpipe at 14 times the cost of Cairo. */
static gboolean
has_render_node (void)
{
  GDir *dir = g_dir_open ("/dev/dri", 0, NULL);
  gboolean found = FALSE;
  const char *name;
  while (dir && !found && (name = g_dir_read_name (dir)))
    found = g_str_has_prefix (name, "renderD");
  g_clear_pointer (&dir, g_dir_close);
  return found;
}

/* Without a session bus there is nothing to be unique on; asking would start one. */
static gboolean
has_session_bus (void)
{
  if (g_getenv ("DBUS_SESSION_BUS_ADDRESS"))
    return TRUE;
  g_autofree char *path = g_build_filename (g_get_user_runtime_dir (), "bus", NULL);
  return g_file_test (path, G_FILE_TEST_EXISTS);
}

void
td_application_prepare_environment (void)
{
  if (!g_getenv ("GSK_RENDERER") && !has_render_node ())
    g_setenv ("GSK_RENDERER", "cairo", TRUE);
}

static TdWindow *
get_window (TdApplication *self)
{
  GtkWindow *window = gtk_application_get_active_window (GTK_APPLICATION (self));
  return TD_IS_WINDOW (window) ? TD_WINDOW (window) : NULL;
}

/* For measurements: with TAPEDECK_EXIT_AFTER_FIRST_FRAME the app ends when it has drawn once.
 */
static void
quit_after_frame (TdApplication *self, GtkWindow *window)
{
  if (g_getenv ("TAPEDECK_EXIT_AFTER_FIRST_FRAME"))
    g_signal_connect_object (gtk_widget_get_frame_clock (GTK_WIDGET (window)), "after-paint",
                             G_CALLBACK (g_application_quit), self, G_CONNECT_SWAPPED);
}

/* A window that shows nothing yet is used before a second one is made. */
static TdWindow *
take_window (TdApplication *self)
{
  TdWindow *window = get_window (self);
  if (!window || !td_window_is_empty (window))
    window = td_window_new (GTK_APPLICATION (self));
  gtk_window_present (GTK_WINDOW (window));
  quit_after_frame (self, GTK_WINDOW (window));
  return window;
}

/* A link goes to the window that has its recording, so none is taken for it before. */
static void
open_one (TdApplication *self, GFile *file)
{
  g_autofree char *uri = g_file_get_uri (file);
  TdWindow *window = get_window (self);
  if (!td_link_is (uri))
    td_window_open (take_window (self), file);
  else if (!window)
    td_window_open_link (take_window (self), uri);
  else
    {
      gtk_window_present (GTK_WINDOW (window));
      td_window_open_link (window, uri);
    }
}

static void
td_application_activate (GApplication *app)
{
  TdApplication *self = TD_APPLICATION (app);
  TdWindow *window = get_window (self);
  gtk_window_present (GTK_WINDOW (window ? window : td_window_new (GTK_APPLICATION (self))));
}

static void
td_application_open (GApplication *app, GFile **files, int n_files, const char *hint)
{
  for (int i = 0; i < n_files; i++)
    open_one (TD_APPLICATION (app), files[i]);
}

static int
td_application_command_line (GApplication *app, GApplicationCommandLine *line)
{
  TdApplication *self = TD_APPLICATION (app);
  GVariantDict *options = g_application_command_line_get_options_dict (line);
  const char *attach = NULL;
  g_auto (GStrv) files = NULL;
  g_variant_dict_lookup (options, "attach", "&s", &attach);
  g_variant_dict_lookup (options, G_OPTION_REMAINING, "^aay", &files);
  if (!files || !files[0])
    {
      td_application_activate (app);
      return 0;
    }
  if (g_variant_dict_contains (options, "run"))
    {
      g_autoptr (GFile) model = g_application_command_line_create_file_for_arg (line, files[0]);
      TdWindow *window = take_window (self);
      td_window_set_launch (window, g_application_command_line_get_environ (line),
                            g_application_command_line_get_cwd (line));
      td_window_run (window, model, (const char *const *)files + 1);
      return 0;
    }
  for (char **path = files; *path; path++)
    {
      g_autoptr (GFile) file = g_application_command_line_create_file_for_arg (line, *path);
      if (td_link_is (*path))
        {
          open_one (self, file);
          continue;
        }
      TdWindow *window = take_window (self);
      td_window_set_launch (window, g_application_command_line_get_environ (line),
                            g_application_command_line_get_cwd (line));
      if (attach)
        td_window_attach (window, file, attach);
      else
        td_window_open (window, file);
    }
  return 0;
}

static int
td_application_handle_local_options (GApplication *app, GVariantDict *options)
{
  if (g_variant_dict_contains (options, "version"))
    {
      g_print ("tapedeck %s\n", TD_VERSION);
      return 0;
    }
  return -1;
}

static void
open_file_response (GtkNativeDialog *dialog, int response, gpointer data)
{
  if (response == GTK_RESPONSE_ACCEPT)
    {
      g_autoptr (GFile) file = gtk_file_chooser_get_file (GTK_FILE_CHOOSER (dialog));
      g_application_open (G_APPLICATION (data), &file, 1, "");
    }
  g_object_unref (dialog);
}

static void
add_filter (GtkFileChooser *chooser, const char *name, const char *const *patterns)
{
  g_autoptr (GtkFileFilter) filter = gtk_file_filter_new ();
  gtk_file_filter_set_name (filter, name);
  for (; *patterns; patterns++)
    gtk_file_filter_add_pattern (filter, *patterns);
  gtk_file_chooser_add_filter (chooser, filter);
}

static void
show_dialog (TdApplication *self, GtkFileChooserNative *dialog)
{
  gtk_native_dialog_set_modal (GTK_NATIVE_DIALOG (dialog), TRUE);
  g_signal_connect (dialog, "response", G_CALLBACK (open_file_response), self);
  gtk_native_dialog_show (GTK_NATIVE_DIALOG (dialog));
}

static void
show_chooser (TdApplication *self, const char *title, const char *filter,
              const char *const *patterns)
{
  GtkFileChooserNative *dialog = gtk_file_chooser_native_new (
      title, gtk_application_get_active_window (GTK_APPLICATION (self)),
      GTK_FILE_CHOOSER_ACTION_OPEN, _ ("_Open"), _ ("_Cancel"));
  add_filter (GTK_FILE_CHOOSER (dialog), filter, patterns);
  add_filter (GTK_FILE_CHOOSER (dialog), _ ("All Files"), (const char *const[]){ "*", NULL });
  show_dialog (self, dialog);
}

static void
app_open (GSimpleAction *action, GVariant *parameter, gpointer self)
{
  show_chooser (self, _ ("Open Recording"),
                _ ("Recordings, Models, Pictures, Snapshots and Traces"),
                (const char *const[]){ "*.tdtape", "*.c", "*.py", "*.onnx", "*.png", "*.pickle",
                                       "*.pkl", "*.json", "*.json.gz", NULL });
}

static void
app_open_folder (GSimpleAction *action, GVariant *parameter, gpointer self)
{
  GtkFileChooserNative *dialog = gtk_file_chooser_native_new (
      _ ("Open a Folder of Ranks"), gtk_application_get_active_window (self),
      GTK_FILE_CHOOSER_ACTION_SELECT_FOLDER, _ ("_Open"), _ ("_Cancel"));
  show_dialog (self, dialog);
}

static void
app_record (GSimpleAction *action, GVariant *parameter, gpointer self)
{
  td_window_show_record (take_window (self));
}

static void
app_new_window (GSimpleAction *action, GVariant *parameter, gpointer self)
{
  gtk_window_present (GTK_WINDOW (td_window_new (GTK_APPLICATION (self))));
}

static void
app_help (GSimpleAction *action, GVariant *parameter, gpointer self)
{
  TdWindow *window = get_window (self);
  if (window)
    td_manual_window_show (GTK_WINDOW (window), td_window_get_help_topic (window));
}

/* Which devices there are, the engine says: it is linked by the command and not by the app.
 * Owner: the caller. */
static char *
dup_backends (void)
{
  g_autofree char *tapedeck = td_runner_find_executable ("tapedeck");
  g_autofree char *out = NULL;
  char option[] = "--version", *argv[] = { tapedeck, option, NULL };

  if (!tapedeck
      || !g_spawn_sync (NULL, argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL,
                        NULL, NULL))
    return g_strdup (_ ("backends: the tapedeck command is not there to ask\n"));
  return g_utf8_make_valid (out, -1);
}

static void
app_about (GSimpleAction *action, GVariant *parameter, gpointer self)
{
  g_autofree char *backends = dup_backends ();
  g_autofree char *debug = g_strdup_printf (
      "%s\nThe app %s\nGTK %u.%u.%u\nlibadwaita %u.%u.%u\nGLib %u.%u.%u\nRenderer: %s\n",
      backends, TD_VERSION, gtk_get_major_version (), gtk_get_minor_version (),
      gtk_get_micro_version (), adw_get_major_version (), adw_get_minor_version (),
      adw_get_micro_version (), glib_major_version, glib_minor_version, glib_micro_version,
      g_getenv ("GSK_RENDERER") ? g_getenv ("GSK_RENDERER") : "chosen by GTK");
  adw_show_about_window (
      gtk_application_get_active_window (self), "application-name", "Tapedeck",
      "application-icon", TD_APPLICATION_ID, "version", TD_VERSION, "developer-name",
      "The Tapedeck developers", "license-type", GTK_LICENSE_MIT_X11, "comments",
      "A debugger for neural networks: every training iteration is recorded, "
      "and time is a parameter of the question.",
      "debug-info", debug, "debug-info-filename", "tapedeck-versions.txt", NULL);
}

static void
app_preferences (GSimpleAction *action, GVariant *parameter, gpointer self)
{
  gtk_window_present (GTK_WINDOW (td_preferences_new (gtk_application_get_active_window (self),
                                                      TD_APPLICATION (self)->settings)));
}

/* Windows ask by themselves whether a program that still runs is stopped or left running. */
static void
app_quit (GSimpleAction *action, GVariant *parameter, gpointer self)
{
  GList *windows = g_list_copy (gtk_application_get_windows (self));
  for (GList *item = windows; item; item = item->next)
    gtk_window_close (item->data);
  g_list_free (windows);
}

/* Where no desktop says how to draw text, GTK takes medium hinting, which flattens the tops of
 * bold letters until they look cut off. Desktops say slight. */
static void
soften_hinting (void)
{
  GtkSettings *settings = gtk_settings_get_default ();
  g_autofree char *style = NULL;
  g_object_get (settings, "gtk-xft-hintstyle", &style, NULL);
  if (g_strcmp0 (style, "hintmedium") == 0)
    g_object_set (settings, "gtk-xft-hintstyle", "hintslight", NULL);
}

/* Ctrl+C in the terminal, its end, or somebody who wants the app gone. Programs hear none of
 * it, so their windows end them, but for those that were let go. */
static gboolean
interrupted (gpointer app)
{
  GList *windows = g_list_copy (gtk_application_get_windows (app));
  for (GList *item = windows; item; item = item->next)
    gtk_window_destroy (item->data);
  g_list_free (windows);
  return G_SOURCE_CONTINUE;
}

static void
td_application_startup (GApplication *app)
{
  static const GActionEntry entries[] = {
    { .name = "open", .activate = app_open },
    { .name = "open-folder", .activate = app_open_folder },
    { .name = "record", .activate = app_record },
    { .name = "help", .activate = app_help },
    { .name = "new-window", .activate = app_new_window },
    { .name = "about", .activate = app_about },
    { .name = "quit", .activate = app_quit },
    { .name = "preferences", .activate = app_preferences },
  };
  G_APPLICATION_CLASS (td_application_parent_class)->startup (app);
  gtk_source_init ();
  soften_hinting ();
  td_gtk_amend ();
  TD_APPLICATION (app)->settings = td_settings_get ();
  td_preferences_apply_scheme (TD_APPLICATION (app)->settings);
  g_action_map_add_action_entries (G_ACTION_MAP (app), entries, G_N_ELEMENTS (entries), app);
  td_keys_bind_accels (GTK_APPLICATION (app));
  g_unix_signal_add (SIGINT, interrupted, app);
  g_unix_signal_add (SIGHUP, interrupted, app);
  g_unix_signal_add (SIGTERM, interrupted, app);
}

static void
td_application_class_init (TdApplicationClass *klass)
{
  GApplicationClass *app_class = G_APPLICATION_CLASS (klass);
  app_class->startup = td_application_startup;
  app_class->activate = td_application_activate;
  app_class->open = td_application_open;
  app_class->command_line = td_application_command_line;
  app_class->handle_local_options = td_application_handle_local_options;
}

static void
td_application_init (TdApplication *self)
{
  static const GOptionEntry options[]
      = { { .long_name = "attach",
            .arg = G_OPTION_ARG_STRING,
            .description = N_ ("Control the running program behind SOCKET"),
            .arg_description = "SOCKET" },
          { .long_name = "run",
            .arg = G_OPTION_ARG_NONE,
            .description = N_ ("Run a model; what follows it are its arguments") },
          { .long_name = "version",
            .arg = G_OPTION_ARG_NONE,
            .description = N_ ("Print the version") },
          { .long_name = G_OPTION_REMAINING,
            .arg = G_OPTION_ARG_FILENAME_ARRAY,
            .arg_description = "[FILE…]" },
          { 0 } };
  g_application_add_main_option_entries (G_APPLICATION (self), options);
}

TdApplication *
td_application_new (void)
{
  GApplicationFlags flags = G_APPLICATION_HANDLES_OPEN | G_APPLICATION_HANDLES_COMMAND_LINE
                            | G_APPLICATION_SEND_ENVIRONMENT;
  if (!has_session_bus ())
    flags |= G_APPLICATION_NON_UNIQUE;
  return g_object_new (TD_TYPE_APPLICATION, "application-id", TD_APPLICATION_ID,
                       "resource-base-path", "/io/github/tapedeck/Tapedeck", "flags", flags,
                       NULL);
}
