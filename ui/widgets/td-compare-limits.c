/* Two fields with numbers, and a button.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-compare-limits.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "settings/td-tip.h"

#define N_FIELDS 2

struct _TdCompareLimits
{
  GtkWidget parent;
  GtkWidget *box;
  GtkEntry *entries[N_FIELDS];
  double limits[N_FIELDS];
};

enum
{
  CHANGED,
  NAMES,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdCompareLimits, td_compare_limits, GTK_TYPE_WIDGET)

typedef struct
{
  const char *label, *name, *tip;
  double usual;
} Field;

static const Field fields[N_FIELDS] = {
  { "rtol", N_ ("Relative tolerance"),
    N_ ("How far numbers may lie apart, as part of their size or of their array's"), 1e-4 },
  { "atol", N_ ("Absolute tolerance"),
    N_ ("How far numbers may lie apart, whatever their size"), 0 },
};

/* --- fields --- */

static void
show_wrong (TdCompareLimits *self, guint i, gboolean wrong)
{
  GtkWidget *entry = GTK_WIDGET (self->entries[i]);
  if (wrong)
    gtk_widget_add_css_class (entry, "error");
  else
    gtk_widget_remove_css_class (entry, "error");
  td_tip_set (entry, wrong ? _ ("A number that is not below 0") : _ (fields[i].tip));
}

/* What was typed counts when it is entered, or when the field is left. */
static void
take (TdCompareLimits *self, guint i)
{
  const char *text = gtk_editable_get_text (GTK_EDITABLE (self->entries[i]));
  char *end;
  const double value = g_ascii_strtod (text, &end);
  const gboolean wrong = end == text || *end || !(value >= 0) || !isfinite (value);
  show_wrong (self, i, wrong);
  if (wrong || value == self->limits[i])
    return;
  self->limits[i] = value;
  g_signal_emit (self, signals[CHANGED], 0);
}

static void
entered (GtkEntry *entry, TdCompareLimits *self)
{
  take (self, entry == self->entries[1]);
}

static void
left (GtkEventController *controller, TdCompareLimits *self)
{
  take (self, gtk_event_controller_get_widget (controller) == GTK_WIDGET (self->entries[1]));
}

static void
names_pressed (GtkButton *button, TdCompareLimits *self)
{
  g_signal_emit (self, signals[NAMES], 0);
}

TdPortTolerance
td_compare_limits_get (TdCompareLimits *self)
{
  return (TdPortTolerance){ .rtol = self->limits[0], .atol = self->limits[1] };
}

void
td_compare_limits_type (TdCompareLimits *self, guint field, const char *text)
{
  gtk_editable_set_text (GTK_EDITABLE (self->entries[field]), text);
  take (self, field);
}

gboolean
td_compare_limits_is_wrong (TdCompareLimits *self, guint field)
{
  return gtk_widget_has_css_class (GTK_WIDGET (self->entries[field]), "error");
}

/* --- building --- */

static void
add_field (TdCompareLimits *self, guint i)
{
  GtkWidget *label = gtk_label_new (_ (fields[i].label));
  GtkWidget *entry = gtk_entry_new ();
  GtkEventController *focus = gtk_event_controller_focus_new ();
  g_autofree char *text = g_strdup_printf ("%g", fields[i].usual);
  self->entries[i] = GTK_ENTRY (entry);
  self->limits[i] = fields[i].usual;
  gtk_widget_add_css_class (label, "dim-label");
  gtk_editable_set_text (GTK_EDITABLE (entry), text);
  gtk_editable_set_width_chars (GTK_EDITABLE (entry), 7);
  gtk_editable_set_max_width_chars (GTK_EDITABLE (entry), 7);
  gtk_accessible_update_property (GTK_ACCESSIBLE (entry), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ (fields[i].name), -1);
  td_tip_set (entry, _ (fields[i].tip));
  g_signal_connect (entry, "activate", G_CALLBACK (entered), self);
  g_signal_connect (focus, "leave", G_CALLBACK (left), self);
  gtk_widget_add_controller (entry, focus);
  gtk_box_append (GTK_BOX (self->box), label);
  gtk_box_append (GTK_BOX (self->box), entry);
}

static void
td_compare_limits_dispose (GObject *object)
{
  g_clear_pointer (&TD_COMPARE_LIMITS (object)->box, gtk_widget_unparent);
  G_OBJECT_CLASS (td_compare_limits_parent_class)->dispose (object);
}

static void
td_compare_limits_class_init (TdCompareLimitsClass *klass)
{
  static const char *const names[N_SIGNALS] = { "changed", "names" };
  G_OBJECT_CLASS (klass)->dispose = td_compare_limits_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
  for (guint i = 0; i < N_SIGNALS; i++)
    signals[i] = g_signal_new (names[i], TD_TYPE_COMPARE_LIMITS, G_SIGNAL_RUN_LAST, 0, NULL,
                               NULL, NULL, G_TYPE_NONE, 0);
}

static void
td_compare_limits_init (TdCompareLimits *self)
{
  GtkWidget *names = gtk_button_new_with_label (_ ("Names…"));
  self->box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  for (guint i = 0; i < N_FIELDS; i++)
    add_field (self, i);
  td_tip_set (names, _ ("Which layer of A is which of B: a table to be edited"));
  g_signal_connect (names, "clicked", G_CALLBACK (names_pressed), self);
  gtk_box_append (GTK_BOX (self->box), names);
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
}

GtkWidget *
td_compare_limits_new (void)
{
  return g_object_new (TD_TYPE_COMPARE_LIMITS, NULL);
}
