/* A user who does anything at any time: actions of the window and of the app, pages, keys, the
 * pointer, sizes, dialogs opened and closed, while a program runs, stands, is killed or is let
 * go. Nothing may be critical or a warning, and what a round leaves behind is nothing.
 * A round is a number of things done, from a seed that is printed, so that one can be done
 * again: TD_SOAK_SEED says the first. `test-soak SECONDS` or TD_SOAK_SECONDS says for how long;
 * else there are a few rounds. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <execinfo.h>
#include <gdk/x11/gdkx.h>
#include <malloc.h>
#include <pango/pangofc-fontmap.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings/td-keys.h"

#define ROUNDS 5
#define THINGS 60 /* done in a round */
#define TURNS 16  /* of the main loop between two actions, at most */
/* What GTK keeps of fonts, icons and styles grows in the first rounds. */
#define WARM_ROUNDS 10
#define GROWN_BYTES (24 << 20)
/* Of one window after the other. */
#define WARM_WINDOWS 5
#define WINDOWS 20
#define WINDOW_BYTES (16 << 10)

typedef struct
{
  GRand *random;
  GOutputStream *pointer; /* to xdotool; NULL: there is none */
  guint n_actions, n_keys, n_moves, n_sizes, n_dialogs, n_programs, n_rounds;
} Soak;

static gboolean verbose;
static int seconds; /* 0: ROUNDS rounds */
static guint n_warnings;
/* GTK 4.8's own, of sizes between two frames. */
static const char *const forgiven[] = { "reported min width", "without a current allocation" };

/* The entry of GTK's window of keys loses the keyboard to the button beside it without hearing
 * of it, and its cursor blinks once more. */
static gboolean
is_of_keys (const char *text)
{
  g_autoptr (GList) windows = gtk_window_list_toplevels ();
  gboolean shown = FALSE;
  if (!strstr (text, "GtkText - did not receive a focus-out event"))
    return FALSE;
  for (GList *l = windows; l; l = l->next)
    {
      if (TD_IS_WINDOW (l->data) && GTK_IS_TEXT (gtk_window_get_focus (l->data)))
        return FALSE;
      shown |= GTK_IS_SHORTCUTS_WINDOW (l->data) && gtk_widget_get_realized (l->data);
    }
  return shown;
}

/* Where the keyboard is, in every window: what GTK says of a focus names no widget. */
static void
print_focus (void)
{
  g_autoptr (GList) windows = gtk_window_list_toplevels ();
  for (GList *l = windows; l; l = l->next)
    {
      fprintf (stderr, "%s%s:", G_OBJECT_TYPE_NAME (l->data),
               gtk_window_is_active (l->data) ? " (active)" : "");
      for (GtkWidget *at = gtk_window_get_focus (l->data); at; at = gtk_widget_get_parent (at))
        fprintf (stderr, " %s%s%s", G_OBJECT_TYPE_NAME (at),
                 gtk_widget_get_mapped (at) ? "" : " (not mapped)",
                 gtk_widget_is_sensitive (at) ? "" : " (insensitive)");
      fputc ('\n', stderr);
    }
}

/* Whether a widget's popover points to a place that is on no monitor. */
static gboolean
points_beyond (GtkWidget *popover, GtkWidget *widget, GtkWidget *window,
               const GdkRectangle *monitor)
{
  GdkRectangle to = { 0, 0, gtk_widget_get_width (widget), gtk_widget_get_height (widget) };
  double x, y;
  if (!GTK_IS_POPOVER (popover) || !gtk_widget_get_visible (popover))
    return FALSE;
  gtk_popover_get_pointing_to (GTK_POPOVER (popover), &to);
  if (!gtk_widget_translate_coordinates (widget, window, to.x, to.y, &x, &y))
    return FALSE;
  to.x = (int)x;
  to.y = (int)y;
  return !gdk_rectangle_intersect (&to, monitor, NULL);
}

static gboolean
has_popover_beyond (GtkWidget *widget, GtkWidget *window, const GdkRectangle *monitor)
{
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    if (points_beyond (child, widget, window, monitor)
        || has_popover_beyond (child, window, monitor))
      return TRUE;
  return FALSE;
}

/* GTK 4.8 asks no monitor for its size where a popover's button is on none: a window that is
 * partly beyond the screen, and a menu opened there by a key.  Nothing comes of it. */
static gboolean
is_beyond_the_screen (const char *text)
{
  g_autoptr (GList) windows = gtk_window_list_toplevels ();
  Display *display = gdk_x11_display_get_xdisplay (gdk_display_get_default ());
  if (!strstr (text, "gdk_monitor_get_geometry: assertion 'GDK_IS_MONITOR"))
    return FALSE;
  for (GList *l = windows; l; l = l->next)
    {
      GdkSurface *surface = gtk_native_get_surface (l->data);
      GdkRectangle monitor = { 0, 0, DisplayWidth (display, 0), DisplayHeight (display, 0) };
      Window child;
      if (!surface || !gtk_widget_get_mapped (l->data))
        continue;
      XTranslateCoordinates (display, DefaultRootWindow (display),
                             gdk_x11_surface_get_xid (surface), 0, 0, &monitor.x, &monitor.y,
                             &child);
      if (has_popover_beyond (l->data, l->data, &monitor))
        return TRUE;
    }
  return FALSE;
}

/* Each comes with where it came from. What is critical ends the test there, a warning at its
 * end. */
static GLogWriterOutput
count_warning (GLogLevelFlags level, const GLogField *fields, gsize n, gpointer data)
{
  if (level & (G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING | G_LOG_LEVEL_ERROR))
    {
      void *frames[40];
      g_autofree char *text = g_log_writer_format_fields (level, fields, n, FALSE);
      for (guint i = 0; i < G_N_ELEMENTS (forgiven); i++)
        if (strstr (text, forgiven[i]))
          return G_LOG_WRITER_HANDLED;
      if (is_of_keys (text) || is_beyond_the_screen (text))
        return G_LOG_WRITER_HANDLED;
      fprintf (stderr, "%s\n", text);
      print_focus ();
      backtrace_symbols_fd (frames, backtrace (frames, G_N_ELEMENTS (frames)), STDERR_FILENO);
      if (!(level & G_LOG_LEVEL_WARNING))
        abort ();
      n_warnings++;
      return G_LOG_WRITER_HANDLED;
    }
  return g_log_writer_default (level, fields, n, data);
}

static int
below (Soak *soak, int n)
{
  return n > 0 ? g_rand_int_range (soak->random, 0, n) : 0;
}

static void
note (const char *what, const char *detail)
{
  if (verbose)
    g_printerr ("%s %s\n", what, detail ? detail : "");
}

/* ---- what a user does ---- */

static const struct
{
  const char *action;
  const char *parameters[15];
} parameters[] = {
  { "set-level", { "graph", "stats", "values", "much" } },
  { "go-to", { "i=0&e=0", "i=3&e=7", "i=58", "i=1000000&e=9", "i=-4&e=-9", "tapedeck:?i=7" } },
  { "expand-to", { "0", "1", "9", "-1", "x" } },
  { "select", { "relu", "", "conv", "0123456789abcdef", "nothing of that name" } },
  { "show-page",
    { "debug", "memory", "gradients", "schedule", "curves", "compare", "filter", "source",
      "log", "notes", "evaluate", "life", "timeline", "advice", "nowhere" } },
  { "range", { "0..5", "3..3", "9..2", "", "x", "7..99999" } },
  { "flame", { "time", "bytes", "", "colour" } },
  { "show-source", { "train.c:20", "train.c:0", "", "x" } },
};

static char *
dup_parameter (Soak *soak, const char *action)
{
  for (guint i = 0; i < G_N_ELEMENTS (parameters); i++)
    {
      int n = 0;
      if (strcmp (action, parameters[i].action) != 0)
        continue;
      while (n < (int)G_N_ELEMENTS (parameters[i].parameters) && parameters[i].parameters[n])
        n++;
      return g_strdup (parameters[i].parameters[below (soak, n)]);
    }
  if (strcmp (action, "save-values") == 0)
    return g_strdup (td_test_tmp (below (soak, 2) ? "soak.npy" : "soak.csv"));
  if (strcmp (action, "save-picture") == 0)
    return g_strdup (td_test_tmp (below (soak, 2) ? "soak.svg" : "no-folder/soak.png"));
  return g_strdup (td_test_tmp (below (soak, 2) ? "sample.tdtape" : "none.tdtape"));
}

/* Files are chosen by the desktop's dialog, which is not ours; the program ends with the test.
 */
static gboolean
is_left_alone (const char *action)
{
  static const char *const names[] = {
    "quit",       "close", "open", "export", "export-values", "save-copy", "compare-recording",
    "show-folder"
  };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (names[i], action) == 0)
      return TRUE;
  return FALSE;
}

static void
do_action (Soak *soak, GActionGroup *group)
{
  g_auto (GStrv) names = g_action_group_list_actions (group);
  const char *name = names[below (soak, (int)g_strv_length (names))];
  const GVariantType *type = g_action_group_get_action_parameter_type (group, name);
  if (is_left_alone (name) || !g_action_group_get_action_enabled (group, name)
      || (type && !g_variant_type_equal (type, G_VARIANT_TYPE_STRING)))
    return;
  g_autofree char *parameter = type ? dup_parameter (soak, name) : NULL;
  note (name, parameter);
  g_action_group_activate_action (group, name,
                                  parameter ? g_variant_new_string (parameter) : NULL);
  soak->n_actions++;
}

G_GNUC_PRINTF (2, 3)
static void
tell_xdotool (Soak *soak, const char *format, ...)
{
  va_list list;
  if (!soak->pointer)
    return;
  va_start (list, format);
  g_autofree char *line = g_strdup_vprintf (format, list);
  va_end (list);
  note ("xdotool", line);
  g_output_stream_write_all (soak->pointer, line, strlen (line), NULL, NULL, NULL);
}

static void
move_pointer (Soak *soak)
{
  GtkWidget *window = GTK_WIDGET (ui_test_window ());
  GdkSurface *surface = gtk_native_get_surface (GTK_NATIVE (window));
  int x = below (soak, gtk_widget_get_width (window));
  int y = below (soak, gtk_widget_get_height (window));
  if (surface)
    tell_xdotool (soak, "mousemove --window %lu %d %d\n",
                  (gulong)gdk_x11_surface_get_xid (surface), x, y);
  if (y > 50 && below (soak, 3) == 0) /* not on what closes the window */
    tell_xdotool (soak, "click %d\n", 1 + below (soak, 7));
  soak->n_moves++;
}

static void
press_key (Soak *soak)
{
  static const char *const others[]
      = { "Escape",    "Tab",  "Return", "Down", "Up", "Left", "Right",
          "Page_Down", "Home", "End",    "a",    "7",  "space" };
  guint n, keyval;
  GdkModifierType modifiers;
  const TdKey *row = &td_keys_table (&n)[below (soak, (int)n)];
  g_auto (GStrv) words = g_strsplit (below (soak, 2) ? row->accels : row->single, " ", -1);
  const char *word
      = g_strv_length (words) ? words[below (soak, (int)g_strv_length (words))] : "";
  const char *name = strrchr (row->action, '.');
  if (!*word || below (soak, 3) == 0)
    tell_xdotool (soak, "key %s\n", others[below (soak, G_N_ELEMENTS (others))]);
  else if (name && !is_left_alone (name + 1)
           && gtk_accelerator_parse (word, &keyval, &modifiers))
    tell_xdotool (soak, "key %s%s%s%s\n", modifiers & GDK_CONTROL_MASK ? "ctrl+" : "",
                  modifiers & GDK_ALT_MASK ? "alt+" : "",
                  modifiers & GDK_SHIFT_MASK ? "shift+" : "", gdk_keyval_name (keyval));
  soak->n_keys++;
}

static void
change_size (Soak *soak)
{
  GtkWindow *window = GTK_WINDOW (ui_test_window ());
  int kind = below (soak, 8);
  if (kind == 0)
    gtk_window_maximize (window);
  else if (kind == 1)
    gtk_window_unmaximize (window);
  else if (kind == 2)
    gtk_window_fullscreen (window);
  else if (kind == 3)
    gtk_window_unfullscreen (window);
  else
    gtk_window_set_default_size (window, 1024 + below (soak, 500), 600 + below (soak, 400));
  note ("size", NULL);
  soak->n_sizes++;
}

/* Every window but the test's own: dialogs, preferences, new windows. */
static void
close_others (Soak *soak)
{
  g_autoptr (GList) windows = gtk_window_list_toplevels ();
  for (GList *l = windows; l; l = l->next)
    if (l->data != ui_test_window () && gtk_widget_get_mapped (l->data))
      {
        note ("close", G_OBJECT_TYPE_NAME (l->data));
        if (gtk_window_get_hide_on_close (l->data))
          gtk_window_close (l->data);
        else
          gtk_window_destroy (l->data);
        soak->n_dialogs++;
        return; /* it may have had others with it */
      }
}

/* One that has ended has left its number, which may be somebody else's by now. */
static gboolean
is_model (const char *pid, const char *file)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/cmdline", atoi (pid));
  g_autofree char *words = NULL;
  gsize n = 0;
  return g_file_get_contents (path, &words, &n, NULL)
         && memmem (words, n, file, strlen (file) + 1) != NULL;
}

static void
kill_models (void)
{
  g_autoptr (GDir) dir = g_dir_open (td_test_tmp (""), 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name (dir)))
    if (g_str_has_prefix (name, "pid-"))
      {
        g_autofree char *path = g_build_filename (td_test_tmp (""), name, NULL);
        g_autofree char *text = NULL;
        if (g_file_get_contents (path, &text, NULL, NULL) && atoi (text) > 1
            && is_model (text, path))
          kill (atoi (text), SIGKILL);
        unlink (path);
      }
}

static void
start_model (Soak *soak)
{
  static const char *const ends[] = { NULL, NULL, NULL, NULL, "exit3", "abort", "nan" };
  g_autofree char *pid = g_strdup_printf ("pid-%u", soak->n_programs++);
  const char *args[] = { td_test_tmp (pid), ends[below (soak, G_N_ELEMENTS (ends))], NULL };
  g_autoptr (GFile) file = g_file_new_for_path (td_test_source ("tests/ui/models/train.c"));
  g_auto (GStrv) environment = g_get_environ ();
  kill_models ();
  note ("start", args[1]);
  td_window_set_launch (ui_test_window (), (const char *const *)environment, td_test_tmp (""));
  td_window_run (ui_test_window (), file, args);
}

static void
do_something (Soak *soak)
{
  int kind = below (soak, 100);
  if (kind < 50)
    do_action (soak, G_ACTION_GROUP (ui_test_window ()));
  else if (kind < 53)
    do_action (soak, G_ACTION_GROUP (ui_test_app ()));
  else if (kind < 70)
    move_pointer (soak);
  else if (kind < 85)
    press_key (soak);
  else if (kind < 90)
    change_size (soak);
  else if (kind < 98)
    close_others (soak);
  else if (kind < 99)
    start_model (soak);
  else
    {
      note ("kill", NULL);
      kill_models ();
    }
}

/* ---- rounds ---- */

/* Recordings and widgets that were there and are not gone, by their type. */
static GHashTable *alive;

static void
count (gpointer type, int change)
{
  int n = GPOINTER_TO_INT (g_hash_table_lookup (alive, type)) + change;
  g_hash_table_insert (alive, type, GINT_TO_POINTER (n));
}

static void
one_less (gpointer type)
{
  count (type, -1);
}

/* Not a weak reference: that is told of the dispose, and what holds the object goes on. */
static void
watch (gpointer object)
{
  gpointer type = (gpointer)G_OBJECT_TYPE_NAME (object);
  if (g_object_get_data (object, "soak") || !g_str_has_prefix (type, "Td"))
    return;
  g_object_set_data_full (object, "soak", type, one_less);
  count (type, 1);
}

static void
watch_all (GtkWidget *widget)
{
  watch (widget);
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    watch_all (child);
}

/* Returns how many there are, and says which. */
static guint
count_alive (void)
{
  GHashTableIter iter;
  gpointer type, n;
  guint sum = 0;
  g_hash_table_iter_init (&iter, alive);
  while (g_hash_table_iter_next (&iter, &type, &n))
    if (GPOINTER_TO_INT (n))
      {
        print_message ("  %d %s left\n", GPOINTER_TO_INT (n), (char *)type);
        sum += (guint)GPOINTER_TO_INT (n);
      }
  return sum;
}

static gboolean
wake (gpointer data)
{
  return G_SOURCE_CONTINUE;
}

static void
run_loop (Soak *soak)
{
  for (int i = below (soak, TURNS); i > 0; i--)
    g_main_context_iteration (NULL, below (soak, 4) == 0);
}

/* Cairo keeps the last 256 fonts that nobody uses any more, with the pictures of their letters:
 * fonts of which no letter was ever drawn take their places. */
static void
forget_letters (void)
{
  cairo_font_face_t *face
      = cairo_toy_font_face_create ("Sans", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  cairo_font_options_t *options = cairo_font_options_create ();
  cairo_matrix_t ctm, size;

  cairo_matrix_init_identity (&ctm);
  for (int i = 0; i < 256; i++)
    {
      cairo_matrix_init_scale (&size, 10 + i / 64.0, 10);
      cairo_scaled_font_destroy (cairo_scaled_font_create (face, &size, &ctm, options));
    }
  cairo_font_options_destroy (options);
  cairo_font_face_destroy (face);
}

/* What is on loan, not what the process has: pages between two pieces that live are no growth.
 * Nor is what Pango and Cairo keep of the last 256 sizes of letters, of which each zoom makes
 * some. */
static gsize
held_bytes (void)
{
  pango_fc_font_map_cache_clear (PANGO_FC_FONT_MAP (pango_cairo_font_map_get_default ()));
  forget_letters ();
  ui_test_settle ();
  struct mallinfo2 info = mallinfo2 ();
  return info.uordblks + info.hblkhd;
}

static void
do_round (Soak *soak, guint32 seed)
{
  g_rand_set_seed (soak->random, seed);
  ui_test_new_window ();
  if (below (soak, 2))
    start_model (soak);
  else
    ui_test_open_sample (NULL);
  for (int i = 0; i < THINGS; i++)
    {
      run_loop (soak);
      /* Alt+F4, or the answer to a question, has closed it */
      if (g_list_find (gtk_application_get_windows (GTK_APPLICATION (ui_test_app ())),
                       ui_test_window ())
          == NULL)
        {
          ui_test_forget_window ();
          return;
        }
      if (ui_test_session ())
        watch (ui_test_session ());
      do_something (soak);
    }
  tell_xdotool (soak, "key Escape\n");
  watch_all (GTK_WIDGET (ui_test_window ()));
}

/* The next round begins with nothing on the screen; what goes on in the background has ended.
 */
static void
close_all (void)
{
  gint64 until = g_get_monotonic_time () + G_USEC_PER_SEC / 2;
  g_autoptr (GList) windows
      = g_list_copy (gtk_application_get_windows (GTK_APPLICATION (ui_test_app ())));
  for (GList *l = windows; l; l = l->next)
    if (l->data != ui_test_window () && TD_IS_WINDOW (l->data))
      gtk_window_destroy (l->data);
  while (g_get_monotonic_time () < until)
    g_main_context_iteration (NULL, TRUE);
}

static GSubprocess *
start_xdotool (Soak *soak)
{
  GSubprocess *child
      = g_subprocess_new (G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDERR_SILENCE,
                          NULL, "xdotool", "-", NULL);
  soak->pointer = child ? g_subprocess_get_stdin_pipe (child) : NULL;
  return child;
}

static void
soak__nothing_is_critical_and_memory_is_flat (void **state)
{
  const char *first = g_getenv ("TD_SOAK_SEED");
  gint64 until = g_get_monotonic_time () + seconds * G_USEC_PER_SEC;
  guint32 seed = first ? (guint32)strtoul (first, NULL, 10) : 1;
  Soak soak = { .random = g_rand_new () };
  g_autoptr (GSubprocess) xdotool = start_xdotool (&soak);
  guint timer = g_timeout_add (10, wake, NULL);
  gsize warm = 0, held = 0;
  alive = g_hash_table_new (NULL, NULL);
  verbose = g_getenv ("TD_SOAK_VERBOSE") != NULL;
  for (; seconds ? g_get_monotonic_time () < until : soak.n_rounds < ROUNDS; seed++)
    {
      print_message ("round %u: seed %u\n", ++soak.n_rounds, seed);
      do_round (&soak, seed);
      kill_models ();
      close_all ();
      ui_test_new_window ();
      held = held_bytes ();
      if (verbose)
        count_alive ();
      print_message ("  %u actions, %u keys, %u moves, %u sizes, %u dialogs, %u programs; "
                     "%.1f MB\n",
                     soak.n_actions, soak.n_keys, soak.n_moves, soak.n_sizes, soak.n_dialogs,
                     soak.n_programs, (double)held / 1e6);
      if (soak.n_rounds == WARM_ROUNDS)
        warm = held;
    }
  g_source_remove (timer);
  if (warm)
    assert_in_range (held, 0, warm + GROWN_BYTES);
  assert_int_equal (n_warnings, 0);
  assert_int_equal (count_alive (), 0);
  g_hash_table_unref (alive);
  assert_true (soak.n_actions > 5);
  if (xdotool)
    g_subprocess_force_exit (xdotool);
  g_rand_free (soak.random);
}

/* ---- tooltips ---- */

static void
run_loop_for (int milliseconds)
{
  gint64 until = g_get_monotonic_time () + milliseconds * 1000;
  guint timer = g_timeout_add (10, wake, NULL);
  while (g_get_monotonic_time () < until)
    g_main_context_iteration (NULL, TRUE);
  g_source_remove (timer);
}

static gboolean
is_tooltip_due (gpointer which)
{
  GObject *display = G_OBJECT (gdk_display_get_default ());
  return (*(GObject **)which = g_object_get_data (display, "gdk-display-current-tooltip"))
         != NULL;
}

/* GTK asked a surface that was gone where the pointer is: gdk_surface_get_device_position. */
static void
tooltip__that_is_due_in_a_popover_that_goes_is_not_looked_for (void **state)
{
  Soak soak = { .pointer = NULL };
  g_autoptr (GSubprocess) xdotool = start_xdotool (&soak);
  GtkWidget *window = gtk_window_new (), *button = gtk_menu_button_new ();
  GtkWidget *label = gtk_label_new ("a label that is wide enough");
  g_autoptr (GtkWidget) popover = g_object_ref_sink (gtk_popover_new ());
  GObject *due = NULL;
  if (!xdotool)
    skip ();
  gtk_widget_set_tooltip_text (label, "what is due");
  gtk_popover_set_child (GTK_POPOVER (popover), label);
  gtk_menu_button_set_popover (GTK_MENU_BUTTON (button), popover);
  gtk_window_set_child (GTK_WINDOW (window), button);
  gtk_window_present (GTK_WINDOW (window));
  ui_test_settle ();
  gtk_menu_button_popup (GTK_MENU_BUTTON (button));
  ui_test_settle ();
  GdkSurface *surface = gtk_native_get_surface (GTK_NATIVE (popover));
  for (int x = 0; x < 2; x++) /* one motion is none, where the pointer was there */
    tell_xdotool (
        &soak, "mousemove --window %lu %d %d\n", (gulong)gdk_x11_surface_get_xid (surface),
        gdk_surface_get_width (surface) / 2 + x, gdk_surface_get_height (surface) / 2);
  ui_test_wait ("a tooltip that is due", is_tooltip_due, &due);
  g_object_add_weak_pointer (due, (gpointer *)&due);
  gtk_menu_button_set_popover (GTK_MENU_BUTTON (button), NULL);
  assert_null (due);
  run_loop_for (700); /* GTK's delay is 500 */
  gtk_window_destroy (GTK_WINDOW (window));
  g_subprocess_force_exit (xdotool);
}

/* ---- what windows leave behind ---- */

static void
leave_windows (int n, void (*use) (void))
{
  for (int i = 0; i < n; i++)
    {
      if (use)
        use ();
      ui_test_new_window ();
    }
}

static void
assert_gives_back (void (*use) (void))
{
  leave_windows (WARM_WINDOWS, use);
  gsize warm = held_bytes ();
  leave_windows (WINDOWS, use);
  gsize held = held_bytes ();
  print_message ("%.1f KB a window\n", ((double)held - (double)warm) / 1e3 / WINDOWS);
  assert_in_range (held, 0, warm + WINDOWS * WINDOW_BYTES);
}

/* 80 KB each were left: the sections of its menu, and the view of sources. */
static void
window__gives_back_its_memory_when_closed (void **state)
{
  assert_gives_back (NULL);
}

static void
close_help (void)
{
  ui_test_settle ();
  gtk_window_close (GTK_WINDOW (
      gtk_application_window_get_help_overlay (GTK_APPLICATION_WINDOW (ui_test_window ()))));
  ui_test_settle ();
}

static void
use_help (void)
{
  ui_test_do ("show-help-overlay", NULL);
  close_help ();
  ui_test_do ("page-keys", NULL);
  close_help ();
  ui_test_do ("page-keys", NULL);
  close_help ();
}

/* 1 MB each was left, and more. */
static void
window__gives_back_the_memory_of_its_help (void **state)
{
  assert_gives_back (use_help);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[]
      = { ui_test (window__gives_back_its_memory_when_closed),
          ui_test (window__gives_back_the_memory_of_its_help),
          ui_test (tooltip__that_is_due_in_a_popover_that_goes_is_not_looked_for),
          ui_test (soak__nothing_is_critical_and_memory_is_flat) };
  const char *wanted = g_getenv ("TD_SOAK_SECONDS");
  g_set_prgname ("tapedeck"); /* GTK writes it beside recent files */
  seconds = wanted ? atoi (wanted) : argc > 1 ? atoi (argv[1]) : 0;
  g_log_set_writer_func (count_warning, NULL, NULL);
  ui_test_init (&argc, &argv);
  g_log_set_always_fatal (
      G_LOG_FATAL_MASK); /* count_warning ends it, but for what it forgives */
  if (!GDK_IS_X11_DISPLAY (gdk_display_get_default ()))
    return 77;
  td_test_program ("app/tapedeck");
  return cmocka_run_group_tests (tests, NULL, NULL);
}
