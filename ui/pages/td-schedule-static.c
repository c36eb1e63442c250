/* The bar above the picture of static functions: which function, which of its schedules,
 * whether it is verified, and what the running program can be asked to do.
 * SPDX-License-Identifier: MIT */
#include "pages/td-schedule-static.h"

#include <glib/gi18n-lib.h>

#include "settings/td-keys.h"
#include "settings/td-tip.h"

typedef struct
{
  TdPage *page;         /* weak */
  TdScheduleData *data; /* of the page */
  GtkDropDown *functions, *schedules;
  GtkLabel *state;
  GArray *ids;      /* of the schedules in the list */
  gboolean filling; /* the lists are being set from the moment */
} Bar;

static void
bar_free (gpointer data)
{
  Bar *bar = data;
  g_clear_weak_pointer (&bar->page);
  g_array_unref (bar->ids);
  g_free (bar);
}

/* ---- choosing ---- */

static void
function_chosen (GtkDropDown *list, GParamSpec *pspec, Bar *bar)
{
  guint function, i = gtk_drop_down_get_selected (list);
  TdStatics *statics
      = bar->filling || !bar->page ? NULL : td__schedule_get_statics (bar->data, &function);
  if (statics && i < statics->n_functions && i != function)
    td__schedule_choose (bar->data, statics->functions[i].function->id, 0);
}

static void
schedule_chosen (GtkDropDown *list, GParamSpec *pspec, Bar *bar)
{
  guint function, i = gtk_drop_down_get_selected (list);
  TdStatics *statics
      = bar->filling || !bar->page ? NULL : td__schedule_get_statics (bar->data, &function);
  if (!statics || i >= bar->ids->len)
    return;
  guint id = g_array_index (bar->ids, guint, i);
  if (id != statics->functions[function].schedule)
    td__schedule_choose (bar->data, statics->functions[function].function->id, id);
}

/* ---- what the moment has ---- */

static void
fill_list (GtkDropDown *list, GPtrArray *texts, guint selected)
{
  GtkStringList *model = GTK_STRING_LIST (gtk_drop_down_get_model (list));
  guint n = g_list_model_get_n_items (G_LIST_MODEL (model));
  gboolean same = n == texts->len;
  for (guint i = 0; same && i < n; i++)
    same = g_str_equal (gtk_string_list_get_string (model, i), g_ptr_array_index (texts, i));
  g_ptr_array_add (texts, NULL);
  if (!same)
    gtk_string_list_splice (model, 0, n, (const char *const *)texts->pdata);
  if (gtk_drop_down_get_selected (list) != selected)
    gtk_drop_down_set_selected (list, selected);
  gtk_widget_set_visible (GTK_WIDGET (list), texts->len > 2);
}

static char *
state_text (const TdStaticsFunction *c)
{
  if (c->state.unverified_since > 0)
    return g_strdup_printf ("⚠ Unverified since iteration %" G_GUINT64_FORMAT,
                            c->state.unverified_since - 1);
  if (c->state.verified_at > 0)
    return g_strdup_printf ("✓ Verified in iteration %" G_GUINT64_FORMAT,
                            c->state.verified_at - 1);
  return g_strdup (c->state.all_replays > 0 ? "Replayed, never verified"
                                            : _ ("Not replayed yet"));
}

void
td__static_bar_update (GtkWidget *widget)
{
  GtkWidget *parent = gtk_widget_get_parent (widget);
  Bar *bar = g_object_get_data (G_OBJECT (widget), "bar");
  if (!bar->page || !parent || !gtk_widget_get_mapped (parent))
    return;
  guint function = 0, at = GTK_INVALID_LIST_POSITION;
  TdStatics *statics = td__schedule_get_statics (bar->data, &function);
  gtk_widget_set_visible (widget, statics != NULL);
  if (!statics)
    return;
  const TdStaticsFunction *c = &statics->functions[function];
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) keys = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *state = state_text (c);
  for (guint i = 0; i < statics->n_functions; i++)
    g_ptr_array_add (names, g_utf8_make_valid (statics->functions[i].name, -1));
  g_array_unref (bar->ids);
  bar->ids = td_statics_list_schedules (c);
  for (guint i = 0; i < bar->ids->len; i++)
    {
      guint id = g_array_index (bar->ids, guint, i);
      g_autofree char *key = td_statics_key_of (statics->reader, id);
      g_ptr_array_add (keys, g_strdup_printf (_ ("Schedule %u: %s"), id, key));
      if (id == c->schedule)
        at = i;
    }
  bar->filling = TRUE;
  fill_list (bar->functions, names, function);
  fill_list (bar->schedules, keys, at);
  bar->filling = FALSE;
  gtk_label_set_text (bar->state, state);
  td_tip_set (GTK_WIDGET (bar->state), state);
}

/* ---- building ---- */

static void
setup_short (GtkListItemFactory *factory, GtkListItem *item, gpointer data)
{
  GtkWidget *label = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_END);
  gtk_label_set_max_width_chars (GTK_LABEL (label), GPOINTER_TO_INT (data));
  gtk_list_item_set_child (item, label);
}

static void
bind_text (GtkListItemFactory *factory, GtkListItem *item, gpointer data)
{
  GtkStringObject *text = gtk_list_item_get_item (item);
  gtk_label_set_text (GTK_LABEL (gtk_list_item_get_child (item)),
                      gtk_string_object_get_string (text));
}

/* Short in the bar, whole in the list. */
static GtkListItemFactory *
new_factory (int width_chars)
{
  GtkListItemFactory *factory = gtk_signal_list_item_factory_new ();
  g_signal_connect (factory, "setup", G_CALLBACK (setup_short), GINT_TO_POINTER (width_chars));
  g_signal_connect (factory, "bind", G_CALLBACK (bind_text), NULL);
  return factory;
}

/* What is shown short in the bar and whole in its list; the tip has the key of its action. */
static GtkDropDown *
set_up_list (GtkBuilder *builder, const char *id, const char *action, GCallback chosen,
             Bar *bar)
{
  GtkDropDown *list = GTK_DROP_DOWN (gtk_builder_get_object (builder, id));
  g_autoptr (GtkListItemFactory) shorter = new_factory (12), whole = new_factory (60);
  g_autofree char *key = td_keys_get_label (action);
  g_autofree char *tip = g_strdup_printf (
      "%s (%s)", gtk_widget_get_tooltip_text (GTK_WIDGET (list)), key ? key : "");
  gtk_drop_down_set_factory (list, shorter);
  gtk_drop_down_set_list_factory (list, whole);
  gtk_widget_set_tooltip_text (GTK_WIDGET (list), tip);
  g_signal_connect (list, "notify::selected", chosen, bar);
  return list;
}

/* Of the two ways to run one is offered: the other one than was asked for last. */
static void
swap_buttons (GtkWidget *button, GtkWidget *other)
{
  gtk_widget_set_visible (button, FALSE);
  gtk_widget_set_visible (other, TRUE);
}

GtkWidget *
td__static_bar_new (TdScheduleData *data)
{
  g_autoptr (GtkBuilder) builder = gtk_builder_new_from_resource (
      "/io/github/tapedeck/Tapedeck/pages/td-schedule-static.ui");
  GtkWidget *widget = GTK_WIDGET (gtk_builder_get_object (builder, "bar"));
  GObject *dynamic = gtk_builder_get_object (builder, "dynamic");
  GObject *by_schedule = gtk_builder_get_object (builder, "by-schedule");
  Bar *bar = g_new0 (Bar, 1);
  g_set_weak_pointer (&bar->page, data->page);
  bar->data = data;
  bar->ids = g_array_new (FALSE, FALSE, sizeof (guint));
  bar->functions = set_up_list (builder, "functions", "win.next-function",
                                G_CALLBACK (function_chosen), bar);
  bar->schedules = set_up_list (builder, "schedules", "win.next-schedule",
                                G_CALLBACK (schedule_chosen), bar);
  bar->state = GTK_LABEL (gtk_builder_get_object (builder, "state"));
  g_signal_connect_object (dynamic, "clicked", G_CALLBACK (swap_buttons), by_schedule,
                           G_CONNECT_AFTER);
  g_signal_connect_object (by_schedule, "clicked", G_CALLBACK (swap_buttons), dynamic,
                           G_CONNECT_AFTER);
  g_object_set_data_full (G_OBJECT (widget), "bar", bar, bar_free);
  g_object_force_floating (g_object_ref (G_OBJECT (widget))); /* the builder goes */
  return widget;
}
