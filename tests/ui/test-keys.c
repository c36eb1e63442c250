/* Every row of the keyboard table, pressed as a key event of X on three keyboard layouts: the
 * window is the real one, its actions only say that they were reached.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <gdk/x11/gdkx.h>
#include <string.h>

#include "settings/td-keys.h"

static GString *reached; /* the actions that keys led to, one a line */

static void
say (GSimpleAction *action, GVariant *parameter, gpointer prefix)
{
  const char *name = g_action_get_name (G_ACTION (action));
  if (parameter)
    g_string_append_printf (reached, "%s%s::%s\n", (const char *)prefix, name,
                            g_variant_get_string (parameter, NULL));
  else
    g_string_append_printf (reached, "%s%s\n", (const char *)prefix, name);
}

static void
replace_actions (void)
{
  guint n;
  const TdKey *keys = td_keys_table (&n);
  for (guint i = 0; i < n; i++)
    {
      g_autofree char *name = NULL;
      g_autoptr (GVariant) target = NULL;
      gboolean app = g_str_has_prefix (keys[i].action, "app.");
      assert_true (g_action_parse_detailed_name (keys[i].action, &name, &target, NULL));
      GActionMap *map = app ? G_ACTION_MAP (ui_test_app ()) : G_ACTION_MAP (ui_test_window ());
      g_autoptr (GSimpleAction) action
          = g_simple_action_new (name + 4, target ? g_variant_get_type (target) : NULL);
      g_signal_connect (action, "activate", G_CALLBACK (say),
                        (gpointer)(app ? "app." : "win."));
      g_action_map_add_action (map, G_ACTION (action));
    }
}

/* ---- the keyboard ---- */

static void
child_ended (GObject *child, GAsyncResult *result, gpointer done)
{
  assert_true (g_subprocess_wait_check_finish (G_SUBPROCESS (child), result, NULL));
  *(gboolean *)done = TRUE;
}

/* Run a command while the window goes on. */
static void
run (const char *const *argv)
{
  gboolean done = FALSE;
  g_autoptr (GSubprocess) child = g_subprocess_newv (argv, G_SUBPROCESS_FLAGS_NONE, NULL);
  assert_non_null (child);
  g_subprocess_wait_async (child, NULL, child_ended, &done);
  while (!done)
    g_main_context_iteration (NULL, TRUE);
}

/* Where a US keyboard has Q and Y. */
#define KEYCODE_Q 24
#define KEYCODE_Y 29

static const struct
{
  const char *name;
  guint q, y;
} layouts[] = { { "us", 'q', 'y' }, { "de", 'q', 'z' }, { "fr", 'a', 'y' } };

static gboolean
has_layout (gpointer row)
{
  guint i = GPOINTER_TO_UINT (row), q = 0, y = 0;
  GdkDisplay *display = gdk_display_get_default ();
  return gdk_display_translate_key (display, KEYCODE_Q, 0, 0, &q, NULL, NULL, NULL)
         && gdk_display_translate_key (display, KEYCODE_Y, 0, 0, &y, NULL, NULL, NULL)
         && q == layouts[i].q && y == layouts[i].y;
}

static void
set_layout (guint i)
{
  run ((const char *const[]){ "setxkbmap", layouts[i].name, NULL });
  ui_test_wait ("the keyboard layout", has_layout, GUINT_TO_POINTER (i));
}

static gboolean
has_focus (gpointer unused)
{
  return gtk_window_is_active (GTK_WINDOW (ui_test_window ()));
}

static void
take_focus (void)
{
  GdkSurface *surface = gtk_native_get_surface (GTK_NATIVE (ui_test_window ()));
  g_autofree char *id = g_strdup_printf ("%lu", (gulong)gdk_x11_surface_get_xid (surface));
  run ((const char *const[]){ "xdotool", "windowfocus", "--sync", id, NULL });
  ui_test_wait ("the keyboard", has_focus, NULL);
  TdGraphPage *pane = td_workspace_get_graph (ui_test_workspace ());
  gtk_widget_grab_focus (GTK_WIDGET (td_graph_page_get_view (pane)));
}

/* A layout has a key when some combination with Shift or AltGr gives its symbol. */
static gboolean
is_on_layout (guint keyval)
{
  g_autofree GdkKeymapKey *keys = NULL;
  int n;
  return gdk_display_map_keyval (gdk_display_get_default (), keyval, &keys, &n) && n > 0;
}

static char *
xdotool_name (guint keyval, GdkModifierType modifiers)
{
  return g_strdup_printf ("%s%s%s%s", modifiers & GDK_CONTROL_MASK ? "ctrl+" : "",
                          modifiers & GDK_ALT_MASK ? "alt+" : "",
                          modifiers & GDK_SHIFT_MASK ? "shift+" : "", gdk_keyval_name (keyval));
}

static gboolean
wake (gpointer data)
{
  return G_SOURCE_CONTINUE;
}

static gboolean
num_lock_is_off (gpointer unused)
{
  GdkSeat *seat = gdk_display_get_default_seat (gdk_display_get_default ());
  return !gdk_device_get_num_lock_state (gdk_seat_get_keyboard (seat));
}

/* xdotool presses Num Lock for a digit of the keypad, and leaves it on. */
static void
release_num_lock (void)
{
  if (num_lock_is_off (NULL))
    return;
  run ((const char *const[]){ "xdotool", "key", "Num_Lock", NULL });
  ui_test_wait ("Num Lock to go off", num_lock_is_off, NULL);
}

static void
press (const char *key)
{
  release_num_lock ();
  g_string_truncate (reached, 0);
  run ((const char *const[]){ "xdotool", "key", key, NULL });
  gint64 until = g_get_monotonic_time () + td_test_patience_ms () * (gint64)1000;
  guint timer = g_timeout_add (100, wake, NULL);
  while (!reached->len && g_get_monotonic_time () < until)
    g_main_context_iteration (NULL, TRUE);
  g_source_remove (timer);
}

/* Press each of the row's `keys` that the layout has; returns how many there were. */
static guint
press_all (const TdKey *row, const char *keys, const char *layout)
{
  g_auto (GStrv) words = g_strsplit (keys, " ", -1);
  guint n = 0;
  for (char **word = words; *word; word++)
    {
      guint keyval;
      GdkModifierType modifiers;
      if (!**word)
        continue;
      assert_true (gtk_accelerator_parse (*word, &keyval, &modifiers));
      if (!is_on_layout (keyval))
        continue;
      g_autofree char *key = xdotool_name (keyval, modifiers);
      g_autofree char *wanted = g_strconcat (row->action, "\n", NULL);
      press (key);
      if (strcmp (reached->str, wanted) != 0)
        fail_msg ("%s on %s: %s expected, %s came", key, layout, row->action,
                  reached->len ? reached->str : "nothing");
      n++;
    }
  return n;
}

static void
check_layout (guint i_layout)
{
  guint n;
  const char *layout = layouts[i_layout].name;
  const TdKey *keys = td_keys_table (&n);
  ui_test_open_sample (NULL);
  set_layout (i_layout);
  take_focus ();
  replace_actions ();
  for (guint i = 0; i < n; i++)
    {
      if (press_all (&keys[i], keys[i].accels, layout) == 0 && *keys[i].accels)
        fail_msg ("%s cannot be typed on %s", keys[i].action, layout);
      if (press_all (&keys[i], keys[i].single, layout) == 0 && *keys[i].single)
        fail_msg ("the single key of %s cannot be typed on %s", keys[i].action, layout);
    }
}

static void
keys__every_row_works_on_us (void **state)
{
  check_layout (0);
}

static void
keys__every_row_works_on_de (void **state)
{
  check_layout (1);
}

static void
keys__every_row_works_on_fr (void **state)
{
  check_layout (2);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (keys__every_row_works_on_us),
    ui_test (keys__every_row_works_on_de),
    ui_test (keys__every_row_works_on_fr),
  };
  g_autofree char *xdotool = g_find_program_in_path ("xdotool");
  g_autofree char *setxkbmap = g_find_program_in_path ("setxkbmap");
  if (!xdotool || !setxkbmap)
    return 77;
  ui_test_init (&argc, &argv);
  if (!GDK_IS_X11_DISPLAY (gdk_display_get_default ()))
    return 77;
  reached = g_string_new (NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
