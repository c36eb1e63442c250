/* The rows of td-preferences.ui, bound to GSettings: what has the name of a setting shows it.
 * SPDX-License-Identifier: MIT */
#include "app/td-preferences.h"

#include <glib/gi18n-lib.h>

#include "gradient/td-gradient-rules.h"
#include "live/td-runs.h"

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
  const char *key = gtk_buildable_get_buildable_id (GTK_BUILDABLE (row));
  g_settings_set_enum (settings, key, (int)adw_combo_row_get_selected (row));
  if (g_str_equal (key, "color-scheme"))
    td_preferences_apply_scheme (settings);
}

/* Its strings are the values of the enumeration, in order. */
static void
bind_choice (GtkBuilder *builder, const char *key, GSettings *settings)
{
  AdwComboRow *row = ADW_COMBO_ROW (gtk_builder_get_object (builder, key));
  adw_combo_row_set_selected (row, (guint)g_settings_get_enum (settings, key));
  g_signal_connect_object (row, "notify::selected", G_CALLBACK (choice_changed), settings, 0);
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

static void
bind_runs_budget (GtkBuilder *builder, GSettings *settings)
{
  guint64 bytes;
  guint n = td_runs_measure (&bytes);
  g_autofree char *size = g_format_size (bytes);
  g_autofree char *subtitle = g_strdup_printf (
      ngettext (
          "%u run takes %s now. The oldest are cleared away first, never one that is open "
          "or runs; 0 is no limit",
          "%u runs take %s now. The oldest are cleared away first, never one that is open "
          "or runs; 0 is no limit",
          n),
      n, size);
  adw_action_row_set_subtitle (ADW_ACTION_ROW (gtk_builder_get_object (builder, "runs")),
                               subtitle);
  g_settings_bind_with_mapping (settings, "runs-budget",
                                gtk_builder_get_object (builder, "runs-budget"), "value",
                                G_SETTINGS_BIND_DEFAULT, bytes_to_gb, gb_to_bytes, NULL, NULL);
}

/* What cannot be read is not kept: the row says why, until it can be. */
static void
rules_applied (AdwEntryRow *row, GSettings *settings)
{
  const char *text = gtk_editable_get_text (GTK_EDITABLE (row));
  g_autoptr (GError) error = NULL;
  TdGradientRules rules;
  gboolean ok = td_gradient_rules_parse (text, &rules, &error);
  adw_preferences_row_set_title (ADW_PREFERENCES_ROW (row),
                                 ok ? _ ("Rules for gradients") : error->message);
  if (ok)
    {
      gtk_widget_remove_css_class (GTK_WIDGET (row), "error");
      g_settings_set_string (settings, "gradient-rules", text);
    }
  else
    gtk_widget_add_css_class (GTK_WIDGET (row), "error");
}

static void
bind_rules (GtkBuilder *builder, GSettings *settings)
{
  GObject *row = gtk_builder_get_object (builder, "gradient-rules");
  g_autofree char *text = g_settings_get_string (settings, "gradient-rules");
  gtk_editable_set_text (GTK_EDITABLE (row), text);
  g_signal_connect (row, "apply", G_CALLBACK (rules_applied), settings);
}

static void
bind_settings (GtkBuilder *builder, GSettings *settings)
{
  static const char *const choices[] = { "color-scheme", "graph-orientation", "level" };
  static const char *const switches[] = { "single-key-shortcuts", "break-on-error", "follow" };
  for (guint i = 0; i < G_N_ELEMENTS (choices); i++)
    bind_choice (builder, choices[i], settings);
  for (guint i = 0; i < G_N_ELEMENTS (switches); i++)
    g_settings_bind (settings, switches[i], gtk_builder_get_object (builder, switches[i]),
                     "active", G_SETTINGS_BIND_DEFAULT);
  g_settings_bind (settings, "runs-kept", gtk_builder_get_object (builder, "runs-kept"),
                   "value", G_SETTINGS_BIND_DEFAULT);
  bind_runs_budget (builder, settings);
  bind_rules (builder, settings);
}

GtkWidget *
td_preferences_new (GtkWindow *parent, GSettings *settings)
{
  g_autoptr (GtkBuilder) builder
      = gtk_builder_new_from_resource ("/io/github/tapedeck/Tapedeck/app/td-preferences.ui");
  GtkWidget *window = GTK_WIDGET (gtk_builder_get_object (builder, "window"));
  if (settings)
    bind_settings (builder, settings);
  gtk_widget_set_visible (GTK_WIDGET (gtk_builder_get_object (builder, "group")),
                          settings != NULL);
  gtk_widget_set_visible (GTK_WIDGET (gtk_builder_get_object (builder, "without")), !settings);
  gtk_window_set_transient_for (GTK_WINDOW (window), parent);
  return window;
}
