/* The keyboard table and what is bound by it: accelerators and single keys. F-keys follow GNOME
 * Builder, letters gdb's single-key mode, capitals go backwards.
 * SPDX-License-Identifier: MIT */
#include "settings/td-keys.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "settings/td-tip.h"

#define STEPPING N_ ("Stepping")
#define MOVING N_ ("Moving in Time")
#define GRAPH N_ ("Graph")
#define WINDOW N_ ("Window")

// clang-format off
/* Every accelerator is given for its shifted keyval and its keypad twin too. */
static const TdKey keys[] = {
  { "win.play", N_ ("Continue"), STEPPING, "F5", "c" },
  { "win.play-pause", N_ ("Continue or pause"), STEPPING, "F6", "space" },
  { "win.continue-back", N_ ("Play backwards"), STEPPING, "<Control>F5", "<Shift>c" },
  { "win.step-over", N_ ("Step over layer"), STEPPING, "F7", "n" },
  { "win.reverse-step-over", N_ ("Step back over layer"), STEPPING, "<Control>F7", "<Shift>n" },
  { "win.step-into", N_ ("Step into"), STEPPING, "F8", "s" },
  { "win.reverse-step-into", N_ ("Step back into"), STEPPING, "<Control>F8", "<Shift>s" },
  { "win.step-out", N_ ("Step out"), STEPPING, "<Shift>F8", "f" },
  { "win.reverse-step-out", N_ ("Step back out"), STEPPING, "<Control><Shift>F8", "<Shift>f" },
  { "win.step-op", N_ ("Step one operation"), STEPPING, "F12", "period i" },
  { "win.reverse-step-op", N_ ("Step one operation back"), STEPPING, "<Shift>F12", "comma <Shift>i" },
  { "win.record", N_ ("Recording level up or down"), STEPPING, "<Control>r", "" },
  { "win.toggle-breakpoint", N_ ("Breakpoint on selection"), STEPPING, "<Control>b", "b" },
  { "win.break-when", N_ ("Break when…"), STEPPING, "<Control><Shift>b", "" },
  { "win.next-iteration", N_ ("Next iteration"), MOVING, "<Alt>Page_Down <Alt>KP_Page_Down", "bracketright" },
  { "win.previous-iteration", N_ ("Previous iteration"), MOVING, "<Alt>Page_Up <Alt>KP_Page_Up", "bracketleft" },
  { "win.first-event", N_ ("First event"), MOVING, "<Alt>Home <Alt>KP_Home", "Home" },
  { "win.last-event", N_ ("Last event"), MOVING, "<Alt>End <Alt>KP_End", "End" },
  { "win.next-anomaly", N_ ("Next anomaly"), MOVING, "F4", "a" },
  { "win.previous-anomaly", N_ ("Previous anomaly"), MOVING, "<Shift>F4", "<Shift>a" },
  { "win.next-difference", N_ ("Next difference"), MOVING, "F3", "d" },
  { "win.previous-difference", N_ ("Previous difference"), MOVING, "<Shift>F3", "<Shift>d" },
  { "win.where-from", N_ ("Where from?"), MOVING, "<Alt><Shift>Left <Alt><Shift>KP_Left", "less" },
  { "win.where-used", N_ ("Where used?"), MOVING, "<Alt><Shift>Right <Alt><Shift>KP_Right", "greater" },
  { "win.back", N_ ("Back in history"), MOVING, "<Alt>Left <Alt>KP_Left", "" },
  { "win.forward", N_ ("Forward in history"), MOVING, "<Alt>Right <Alt>KP_Right", "" },
  { "win.range-from-here", N_ ("Show iterations from here on only"), MOVING, "<Alt><Shift>Home <Alt><Shift>KP_Home", "" },
  { "win.range-to-here", N_ ("Show iterations up to here only"), MOVING, "<Alt><Shift>End <Alt><Shift>KP_End", "" },
  { "win.clear-range", N_ ("Show the whole run again"), MOVING, "<Alt><Shift>Delete <Alt><Shift>KP_Delete", "" },
  { "win.next-rank", N_ ("Next rank"), MOVING, "<Control>F12", "" },
  { "win.previous-rank", N_ ("Previous rank"), MOVING, "<Control><Shift>F12", "" },
  { "win.follow", N_ ("Follow the program"), MOVING, "<Control>l", "" },
  { "win.expand", N_ ("Expand node"), GRAPH, "", "plus KP_Add" },
  { "win.collapse", N_ ("Collapse node"), GRAPH, "", "minus KP_Subtract" },
  { "win.expand-all", N_ ("Expand everything"), GRAPH, "<Control>e", "" },
  { "win.expand-to::1", N_ ("Expand to a depth, 1 to 9"), GRAPH, "", "1 KP_1" },
  { "win.expand-to::2", NULL, GRAPH, "", "2 KP_2" },
  { "win.expand-to::3", NULL, GRAPH, "", "3 KP_3" },
  { "win.expand-to::4", NULL, GRAPH, "", "4 KP_4" },
  { "win.expand-to::5", NULL, GRAPH, "", "5 KP_5" },
  { "win.expand-to::6", NULL, GRAPH, "", "6 KP_6" },
  { "win.expand-to::7", NULL, GRAPH, "", "7 KP_7" },
  { "win.expand-to::8", NULL, GRAPH, "", "8 KP_8" },
  { "win.expand-to::9", NULL, GRAPH, "", "9 KP_9" },
  { "win.twin", N_ ("Twin, forward or backward"), GRAPH, "<Control>t", "t" },
  { "win.path", N_ ("Path between selection and playhead, or to the loss"), GRAPH, "<Control><Shift>p", "p" },
  { "win.holders", N_ ("Who keeps it"), GRAPH, "<Control>h", "h" },
  { "win.next-function", N_ ("Next static function"), GRAPH, "<Control>k", "k" },
  { "win.previous-function", N_ ("Previous static function"), GRAPH, "<Control><Shift>k", "<Shift>k" },
  { "win.next-schedule", N_ ("Next schedule of the function"), GRAPH, "", "e" },
  { "win.previous-schedule", N_ ("Previous schedule of the function"), GRAPH, "", "<Shift>e" },
  { "win.explain", N_ ("Why static functions ran their code"), GRAPH, "<Control>y", "y" },
  { "win.flame::time", N_ ("What layers cost in time"), GRAPH, "<Control><Shift>t", "" },
  { "win.flame::bytes", N_ ("What layers cost in bytes"), GRAPH, "<Control><Shift>y", "" },
  { "win.zoom-in", N_ ("Zoom in"), GRAPH, "<Control>plus <Control>equal <Control>KP_Add", "" },
  { "win.zoom-out", N_ ("Zoom out"), GRAPH, "<Control>minus <Control>KP_Subtract", "" },
  { "win.zoom-normal", N_ ("Zoom to 100 %"), GRAPH, "<Control>0 <Control>KP_0", "" },
  { "win.fit", N_ ("Fit the graph"), GRAPH, "<Control>9 <Control>KP_9", "z" },
  { "win.find", N_ ("Find"), GRAPH, "<Control>f", "slash KP_Divide" },
  { "win.filter", N_ ("Filter operations"), GRAPH, "<Control><Shift>f", "" },
  { "win.toggle-outline", N_ ("Outline"), WINDOW, "F9", "" },
  { "win.toggle-inspector", N_ ("Inspector"), WINDOW, "<Control>F9", "" },
  { "win.toggle-dock", N_ ("Dock"), WINDOW, "<Control>j", "" },
  { "win.show-page::debug", N_ ("Debug"), WINDOW, "<Alt>1 <Alt>KP_1", "" },
  { "win.show-page::memory", N_ ("Memory"), WINDOW, "<Alt>2 <Alt>KP_2", "" },
  { "win.show-page::compare", N_ ("Compare"), WINDOW, "<Alt>3 <Alt>KP_3", "" },
  { "win.compare", N_ ("Compare with…"), WINDOW, "<Control>d", "" },
  { "win.note", N_ ("Note at the playhead"), WINDOW, "<Control>m", "m" },
  { "win.watch", N_ ("Watch the selection"), WINDOW, "<Control><Shift>w", "w" },
  { "win.slice", N_ ("Slice of the tensor"), WINDOW, "<Control>i", "" },
  { "win.evaluate", N_ ("Evaluate an expression"), WINDOW, "<Control><Shift>x", "" },
  { "win.copy-values", N_ ("Copy the values on show"), WINDOW, "<Control><Shift>c", "" },
  { "win.export-values", N_ ("Save the values on show"), WINDOW, "<Control><Shift>v", "" },
  { "win.go-to-place", N_ ("Go to"), WINDOW, "<Control>g", "g" },
  { "win.copy-link", N_ ("Copy a link to this moment"), WINDOW, "<Control><Shift>l", "" },
  { "win.save-copy", N_ ("Save a copy"), WINDOW, "<Control><Shift>s", "" },
  { "win.export", N_ ("Export"), WINDOW, "<Control><Shift>e", "" },
  { "win.export-panel", N_ ("Export the picture or table that has the keyboard"), WINDOW, "<Control><Shift>g", "" },
  { "win.lesson-next", N_ ("Next step of the lesson"), WINDOW, "<Control>Page_Down <Control>KP_Page_Down", "" },
  { "win.lesson-back", N_ ("Step of the lesson before"), WINDOW, "<Control>Page_Up <Control>KP_Page_Up", "" },
  { "win.close", N_ ("Close window"), WINDOW, "<Control>w", "" },
  { "win.cancel", NULL, WINDOW, "Escape", "" },
  { "app.open", N_ ("Open"), WINDOW, "<Control>o", "" },
  { "app.record", N_ ("Record a program"), WINDOW, "<Control>n", "" },
  { "app.preferences", N_ ("Preferences"), WINDOW, "<Control>comma", "" },
  { "app.help", N_ ("Help"), WINDOW, "F1", "" },
  { "win.page-keys", N_ ("Keys of the page"), WINDOW, "<Control>F1", "" },
  { "win.show-help-overlay", N_ ("Keyboard shortcuts"), WINDOW, "<Control>question", "" },
  { "app.quit", N_ ("Quit"), WINDOW, "<Control>q", "" },
};
// clang-format on

const TdKey *
td_keys_table (guint *n_keys)
{
  *n_keys = G_N_ELEMENTS (keys);
  return keys;
}

static char **
split_keys (const char *text)
{
  return *text ? g_strsplit (text, " ", -1) : g_new0 (char *, 1);
}

void
td_keys_bind_accels (GtkApplication *app)
{
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      g_auto (GStrv) accels = split_keys (keys[i].accels);
      if (accels[0])
        gtk_application_set_accels_for_action (app, keys[i].action,
                                               (const char *const *)accels);
    }
}

/* A single key typed with Shift arrives as the shifted keyval on every layout ("C", "<"), so a
 * letter is bound as its capital and punctuation as itself, with and without the modifier. */
static void
add_single (GtkEventController *controller, const char *trigger, const char *action)
{
  guint keyval;
  GdkModifierType modifiers;
  if (!gtk_accelerator_parse (trigger, &keyval, &modifiers))
    return;
  GtkShortcutTrigger *made = gtk_keyval_trigger_new (keyval, modifiers);
  if (!modifiers && !g_unichar_isalpha (gdk_keyval_to_unicode (keyval)))
    made = gtk_alternative_trigger_new (made, gtk_keyval_trigger_new (keyval, GDK_SHIFT_MASK));
  g_autofree char *name = NULL;
  g_autoptr (GVariant) target = NULL;
  g_action_parse_detailed_name (action, &name, &target, NULL);
  GtkShortcut *shortcut = gtk_shortcut_new (made, gtk_named_action_new (name));
  gtk_shortcut_set_arguments (shortcut, target);
  gtk_shortcut_controller_add_shortcut (GTK_SHORTCUT_CONTROLLER (controller), shortcut);
}

GtkEventController *
td_keys_new_single_controller (void)
{
  GtkEventController *controller = gtk_shortcut_controller_new ();
  gtk_event_controller_set_propagation_phase (controller, GTK_PHASE_BUBBLE);
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      g_auto (GStrv) single = split_keys (keys[i].single);
      for (char **key = single; *key; key++)
        add_single (controller, *key, keys[i].action);
    }
  return controller;
}

char *
td_keys_get_label (const char *action)
{
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      if (strcmp (keys[i].action, action) != 0)
        continue;
      g_auto (GStrv) accels = split_keys (*keys[i].accels ? keys[i].accels : keys[i].single);
      guint keyval;
      GdkModifierType modifiers;
      if (accels[0] && gtk_accelerator_parse (accels[0], &keyval, &modifiers))
        return gtk_accelerator_get_label (keyval, modifiers);
    }
  return NULL;
}

void
td_keys_set_words (GtkWidget *button, const char *action, const char *words)
{
  g_autofree char *key = td_keys_get_label (action);
  g_autofree char *tip = key ? g_strdup_printf ("%s (%s)", words, key) : g_strdup (words);
  td_tip_set (button, tip);
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, words,
                                  -1);
}

void
td_keys_name_buttons (GtkWidget *box)
{
  for (GtkWidget *child = gtk_widget_get_first_child (box); child;
       child = gtk_widget_get_next_sibling (child))
    {
      const char *action = GTK_IS_BUTTON (child)
                               ? gtk_actionable_get_action_name (GTK_ACTIONABLE (child))
                               : NULL;
      g_autofree char *words = g_strdup (gtk_widget_get_tooltip_text (child));
      if (action && words)
        td_keys_set_words (child, action, words);
      else if (GTK_IS_BOX (child))
        td_keys_name_buttons (child);
    }
}
