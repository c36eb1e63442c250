/* The bar above the picture of static chains: which chain, which of its schedules, whether it
 * is verified, and what the running program can be asked to do.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-panels-private.h"

#include "td-keys.h"
#include "widgets/td-scene-view.h"

typedef struct
{
  TdPanels *panels; /* weak */
  GtkDropDown *chains, *schedules;
  GtkLabel *state;
  GArray *ids;      /* of the schedules in the list */
  gboolean filling; /* the lists are being set from the moment */
} Bar;

static void
bar_free (gpointer data)
{
  Bar *bar = data;
  g_clear_weak_pointer (&bar->panels);
  g_array_unref (bar->ids);
  g_free (bar);
}

static void
choose (TdPanels *self, guint chain_id, guint schedule_id)
{
  self->chain_id = chain_id;
  self->schedule_id = schedule_id;
  self->cursor = 0;
  g_clear_pointer (&self->statics, td_statics_free);
  td__panels_update_static_bar (self);
  for (guint i = 0; i < self->views->len; i++)
    td_scene_view_invalidate (g_ptr_array_index (self->views, i));
}

/* ---- choosing ---- */

static void
chain_chosen (GtkDropDown *list, GParamSpec *pspec, Bar *bar)
{
  guint chain, i = gtk_drop_down_get_selected (list);
  TdStatics *statics
      = bar->filling || !bar->panels ? NULL : td__panels_get_statics (bar->panels, &chain);
  if (statics && i < statics->n_chains && i != chain)
    choose (bar->panels, statics->chains[i].chain->id, 0);
}

static void
schedule_chosen (GtkDropDown *list, GParamSpec *pspec, Bar *bar)
{
  guint chain, i = gtk_drop_down_get_selected (list);
  TdStatics *statics
      = bar->filling || !bar->panels ? NULL : td__panels_get_statics (bar->panels, &chain);
  if (!statics || i >= bar->ids->len)
    return;
  guint id = g_array_index (bar->ids, guint, i);
  if (id != statics->chains[chain].schedule)
    choose (bar->panels, statics->chains[chain].chain->id, id);
}

gboolean
td_panels_step_chain (TdPanels *self, int direction)
{
  guint chain;
  TdStatics *statics = td__panels_get_statics (self, &chain);
  if (!statics || statics->n_chains < 2)
    return FALSE;
  guint next = (chain + statics->n_chains + (direction < 0 ? -1u : 1u)) % statics->n_chains;
  choose (self, statics->chains[next].chain->id, 0);
  return TRUE;
}

gboolean
td_panels_step_schedule (TdPanels *self, int direction)
{
  guint chain, at = 0;
  TdStatics *statics = td__panels_get_statics (self, &chain);
  if (!statics)
    return FALSE;
  g_autoptr (GArray) ids = td_statics_list_schedules (&statics->chains[chain]);
  if (ids->len < 2)
    return FALSE;
  while (at < ids->len && g_array_index (ids, guint, at) != statics->chains[chain].schedule)
    at++;
  guint next = at >= ids->len ? 0 : (at + ids->len + (direction < 0 ? -1u : 1u)) % ids->len;
  choose (self, statics->chains[chain].chain->id, g_array_index (ids, guint, next));
  return TRUE;
}

void
td__panels_follow_chain (TdPanels *self)
{
  guint n, chain;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  gint event = n && self->iteration ? td_iteration_find_event (self->iteration, keys[0]) : -1;
  const TdReplayed *replayed
      = event >= 0 ? td_iteration_get_replayed (self->iteration, (guint)event) : NULL;
  TdStatics *statics = replayed ? td__panels_get_statics (self, &chain) : NULL;
  if (statics
      && (statics->chains[chain].chain->id != replayed->chain
          || statics->chains[chain].schedule != replayed->schedule))
    choose (self, replayed->chain, replayed->schedule);
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
state_text (const TdStaticsChain *c)
{
  if (c->state.unverified_since > 0)
    return g_strdup_printf ("⚠ Unverified since iteration %" G_GUINT64_FORMAT,
                            c->state.unverified_since - 1);
  if (c->state.verified_at > 0)
    return g_strdup_printf ("✓ Verified in iteration %" G_GUINT64_FORMAT,
                            c->state.verified_at - 1);
  return g_strdup (c->state.all_replays > 0 ? "Replayed, never verified" : "Not replayed yet");
}

void
td__panels_update_static_bar (TdPanels *self)
{
  GtkWidget *page = self->static_bar ? gtk_widget_get_parent (self->static_bar) : NULL;
  if (!page || !gtk_widget_get_mapped (page))
    return;
  Bar *bar = g_object_get_data (G_OBJECT (self->static_bar), "bar");
  guint chain = 0, at = GTK_INVALID_LIST_POSITION;
  TdStatics *statics = self->iteration ? td__panels_get_statics (self, &chain) : NULL;
  gtk_widget_set_visible (self->static_bar, statics != NULL);
  if (!statics)
    return;
  const TdStaticsChain *c = &statics->chains[chain];
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) keys = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *state = state_text (c);
  for (guint i = 0; i < statics->n_chains; i++)
    g_ptr_array_add (names, g_utf8_make_valid (statics->chains[i].name, -1));
  g_array_unref (bar->ids);
  bar->ids = td_statics_list_schedules (c);
  for (guint i = 0; i < bar->ids->len; i++)
    {
      guint id = g_array_index (bar->ids, guint, i);
      g_autofree char *key = td_statics_key_of (statics->reader, id);
      g_ptr_array_add (keys, g_strdup_printf ("Schedule %u: %s", id, key));
      if (id == c->schedule)
        at = i;
    }
  bar->filling = TRUE;
  fill_list (bar->chains, names, chain);
  fill_list (bar->schedules, keys, at);
  bar->filling = FALSE;
  gtk_label_set_text (bar->state, state);
  gtk_widget_set_tooltip_text (GTK_WIDGET (bar->state), state);
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

static GtkDropDown *
new_list (const char *label, const char *action, GCallback chosen, Bar *bar)
{
  const char *const none[] = { NULL };
  GtkWidget *list = gtk_drop_down_new_from_strings (none);
  g_autoptr (GtkListItemFactory) shorter = new_factory (12), whole = new_factory (60);
  g_autofree char *key = td_keys_get_label (action);
  g_autofree char *tip = g_strdup_printf ("%s (%s)", label, key ? key : "");
  gtk_drop_down_set_factory (GTK_DROP_DOWN (list), shorter);
  gtk_drop_down_set_list_factory (GTK_DROP_DOWN (list), whole);
  gtk_widget_set_tooltip_text (list, tip);
  gtk_accessible_update_property (GTK_ACCESSIBLE (list), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  -1);
  gtk_widget_add_css_class (list, "td-small");
  gtk_widget_set_valign (list, GTK_ALIGN_CENTER);
  g_signal_connect (list, "notify::selected", chosen, bar);
  return GTK_DROP_DOWN (list);
}

/* Of the two ways to run one is offered: the other one than was asked for last. */
static void
swap_buttons (GtkWidget *button, GtkWidget *other)
{
  gtk_widget_set_visible (button, FALSE);
  gtk_widget_set_visible (other, TRUE);
}

static GtkWidget *
add_button (GtkWidget *row, const char *label, const char *action, const char *tip)
{
  GtkWidget *button = gtk_button_new_with_label (label);
  gtk_actionable_set_action_name (GTK_ACTIONABLE (button), action);
  gtk_widget_set_tooltip_text (button, tip);
  gtk_widget_add_css_class (button, "td-small");
  gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
  gtk_box_append (GTK_BOX (row), button);
  return button;
}

/* A narrow dock cuts the bar at its end instead of growing. */
GtkWidget *
td__panels_new_static_bar (TdPanels *self)
{
  Bar *bar = g_new0 (Bar, 1);
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *cut = gtk_scrolled_window_new ();
  g_set_weak_pointer (&bar->panels, self);
  bar->ids = g_array_new (FALSE, FALSE, sizeof (guint));
  bar->chains = new_list ("Static chain", "win.next-chain", G_CALLBACK (chain_chosen), bar);
  bar->schedules
      = new_list ("Its schedule", "win.next-schedule", G_CALLBACK (schedule_chosen), bar);
  bar->state = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_ellipsize (bar->state, PANGO_ELLIPSIZE_END);
  gtk_label_set_xalign (bar->state, 0);
  gtk_widget_set_hexpand (GTK_WIDGET (bar->state), TRUE);
  gtk_widget_add_css_class (GTK_WIDGET (bar->state), "caption");
  gtk_box_append (GTK_BOX (row), GTK_WIDGET (bar->chains));
  gtk_box_append (GTK_BOX (row), GTK_WIDGET (bar->schedules));
  gtk_box_append (GTK_BOX (row), GTK_WIDGET (bar->state));
  add_button (row, "Verify Now", "win.verify-static",
              "Run the code of the next call too, and compare");
  GtkWidget *dynamic = add_button (row, "Run Dynamically", "win.run-dynamically",
                                   "Run the code of all chains from the next call on");
  GtkWidget *by_schedule = add_button (row, "Run by Schedule", "win.run-statically",
                                       "Replay schedules as the program says");
  gtk_widget_set_visible (by_schedule, FALSE);
  g_signal_connect_object (dynamic, "clicked", G_CALLBACK (swap_buttons), by_schedule,
                           G_CONNECT_AFTER);
  g_signal_connect_object (by_schedule, "clicked", G_CALLBACK (swap_buttons), dynamic,
                           G_CONNECT_AFTER);
  gtk_widget_set_margin_start (row, 8);
  gtk_widget_set_margin_end (row, 8);
  gtk_widget_set_margin_bottom (row, 4);
  g_object_set_data_full (G_OBJECT (cut), "bar", bar, bar_free);
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (cut), GTK_POLICY_EXTERNAL,
                                  GTK_POLICY_NEVER);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (cut), row);
  g_set_weak_pointer (&self->static_bar, cut);
  return cut;
}
