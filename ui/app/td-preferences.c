/* Rows from two tables, switches and choices, bound to GSettings.
 * SPDX-License-Identifier: MIT */
#include "app/td-preferences.h"

#include "live/td-runs.h"

static const struct
{
  const char *key, *title, *subtitle;
  const char *choices[4]; /* nicks are the values of the enumeration, in order */
} choices[] = {
  { "color-scheme", "Style", NULL, { "System", "Light", "Dark", NULL } },
  { "graph-orientation", "Graph runs", NULL, { "Top to bottom", "Left to right", NULL } },
  { "level",
    "Detail of recordings",
    "For models started from the window",
    { "Graph", "Statistics", "Values", NULL } },
};

static const struct
{
  const char *key, *title, *subtitle;
} switches[] = {
  { "single-key-shortcuts", "Single-key shortcuts",
    "Letters step and navigate while graph, outline or deck has the focus" },
  { "break-on-error", "Stop at the first error", "For models started from the window" },
  { "follow", "Follow a running program", "New recordings open at the newest iteration" },
};

void
td_preferences_apply_scheme (GSettings *settings)
{
  static const AdwColorScheme schemes[]
      = { ADW_COLOR_SCHEME_DEFAULT, ADW_COLOR_SCHEME_FORCE_LIGHT, ADW_COLOR_SCHEME_FORCE_DARK };
  int chosen = settings ? g_settings_get_enum (settings, "color-scheme") : 0;
  if (chosen >= 0 && chosen < (int)G_N_ELEMENTS (schemes))
    adw_style_manager_set_color_scheme (adw_style_manager_get_default (), schemes[chosen]);
}

static void
choice_changed (AdwComboRow *row, GParamSpec *pspec, GSettings *settings)
{
  const char *key = g_object_get_data (G_OBJECT (row), "key");
  g_settings_set_enum (settings, key, (int)adw_combo_row_get_selected (row));
  if (g_str_equal (key, "color-scheme"))
    td_preferences_apply_scheme (settings);
}

static GtkWidget *
new_choice (GSettings *settings, guint i)
{
  GtkWidget *row = adw_combo_row_new ();
  GtkStringList *list = gtk_string_list_new (choices[i].choices);
  adw_preferences_row_set_title (ADW_PREFERENCES_ROW (row), choices[i].title);
  if (choices[i].subtitle)
    adw_action_row_set_subtitle (ADW_ACTION_ROW (row), choices[i].subtitle);
  adw_combo_row_set_model (ADW_COMBO_ROW (row), G_LIST_MODEL (list));
  g_object_unref (list);
  adw_combo_row_set_selected (ADW_COMBO_ROW (row),
                              (guint)g_settings_get_enum (settings, choices[i].key));
  g_object_set_data (G_OBJECT (row), "key", (gpointer)choices[i].key);
  g_signal_connect_object (row, "notify::selected", G_CALLBACK (choice_changed), settings, 0);
  return row;
}

static GtkWidget *
new_switch (GSettings *settings, guint i)
{
  GtkWidget *row = adw_action_row_new ();
  GtkWidget *toggle = gtk_switch_new ();
  adw_preferences_row_set_title (ADW_PREFERENCES_ROW (row), switches[i].title);
  adw_action_row_set_subtitle (ADW_ACTION_ROW (row), switches[i].subtitle);
  gtk_widget_set_valign (toggle, GTK_ALIGN_CENTER);
  adw_action_row_add_suffix (ADW_ACTION_ROW (row), toggle);
  adw_action_row_set_activatable_widget (ADW_ACTION_ROW (row), toggle);
  g_settings_bind (settings, switches[i].key, toggle, "active", G_SETTINGS_BIND_DEFAULT);
  return row;
}

static GtkWidget *
new_number (const char *title, const char *subtitle, double most, double step)
{
  GtkWidget *row = adw_action_row_new ();
  GtkWidget *number = gtk_spin_button_new_with_range (0, most, step);
  adw_preferences_row_set_title (ADW_PREFERENCES_ROW (row), title);
  adw_action_row_set_subtitle (ADW_ACTION_ROW (row), subtitle);
  gtk_widget_set_valign (number, GTK_ALIGN_CENTER);
  adw_action_row_add_suffix (ADW_ACTION_ROW (row), number);
  adw_action_row_set_activatable_widget (ADW_ACTION_ROW (row), number);
  gtk_accessible_update_property (GTK_ACCESSIBLE (number), GTK_ACCESSIBLE_PROPERTY_LABEL, title,
                                  -1);
  return row;
}

static GtkWidget *
new_runs_kept (GSettings *settings)
{
  GtkWidget *row = new_number ("Runs that are kept",
                               "Older recordings and logs of models started from the window "
                               "are cleared away; 0 keeps all",
                               1000, 1);
  g_settings_bind (settings, "runs-kept",
                   adw_action_row_get_activatable_widget (ADW_ACTION_ROW (row)), "value",
                   G_SETTINGS_BIND_DEFAULT);
  return row;
}

#define GB 1e9

static gboolean
bytes_to_gb (GValue *value, GVariant *variant, gpointer data)
{
  g_value_set_double (value, (double)g_variant_get_uint64 (variant) / GB);
  return TRUE;
}

static GVariant *
gb_to_bytes (const GValue *value, const GVariantType *type, gpointer data)
{
  return g_variant_new_uint64 ((guint64)(g_value_get_double (value) * GB + 0.5));
}

static GtkWidget *
new_runs_budget (GSettings *settings)
{
  guint64 bytes;
  guint n = td_runs_measure (&bytes);
  g_autofree char *size = g_format_size (bytes);
  g_autofree char *subtitle = g_strdup_printf (
      "%u run%s %s %s now. The oldest are cleared away first, never one that "
      "is open or runs; 0 is no limit",
      n, n == 1 ? "" : "s", n == 1 ? "takes" : "take", size);
  GtkWidget *row = new_number ("Gigabytes of all runs together", subtitle, 10000, 0.5);
  GtkWidget *number = adw_action_row_get_activatable_widget (ADW_ACTION_ROW (row));
  gtk_spin_button_set_digits (GTK_SPIN_BUTTON (number), 1);
  g_settings_bind_with_mapping (settings, "runs-budget", number, "value",
                                G_SETTINGS_BIND_DEFAULT, bytes_to_gb, gb_to_bytes, NULL, NULL);
  return row;
}

/* AdwPreferencesWindow keeps its groups for its search, and for ever. */
static GtkWidget *
new_window (GtkWindow *parent, AdwPreferencesPage *page)
{
  GtkWidget *window = adw_window_new ();
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  GtkEventController *keys = gtk_shortcut_controller_new ();
  gtk_shortcut_controller_add_shortcut (
      GTK_SHORTCUT_CONTROLLER (keys),
      gtk_shortcut_new (gtk_keyval_trigger_new (GDK_KEY_Escape, 0),
                        gtk_named_action_new ("window.close")));
  gtk_widget_add_controller (window, keys);
  gtk_widget_set_vexpand (GTK_WIDGET (page), TRUE);
  gtk_box_append (GTK_BOX (box), adw_header_bar_new ());
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (page));
  adw_window_set_content (ADW_WINDOW (window), box);
  gtk_window_set_title (GTK_WINDOW (window), "Preferences");
  gtk_window_set_default_size (GTK_WINDOW (window), 640, 700);
  gtk_window_set_transient_for (GTK_WINDOW (window), parent);
  gtk_window_set_modal (GTK_WINDOW (window), TRUE);
  return window;
}

GtkWidget *
td_preferences_new (GtkWindow *parent, GSettings *settings)
{
  AdwPreferencesPage *page = ADW_PREFERENCES_PAGE (adw_preferences_page_new ());
  AdwPreferencesGroup *group = ADW_PREFERENCES_GROUP (adw_preferences_group_new ());
  if (settings)
    {
      for (guint i = 0; i < G_N_ELEMENTS (choices); i++)
        adw_preferences_group_add (group, new_choice (settings, i));
      for (guint i = 0; i < G_N_ELEMENTS (switches); i++)
        adw_preferences_group_add (group, new_switch (settings, i));
      adw_preferences_group_add (group, new_runs_kept (settings));
      adw_preferences_group_add (group, new_runs_budget (settings));
    }
  else
    adw_preferences_group_set_description (group, "The settings schema is not installed.");
  adw_preferences_page_add (page, group);
  return new_window (parent, page);
}
