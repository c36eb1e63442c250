/* How many rows of the other list there are so far. What is inserted between rows is there at
 * once, what is appended comes with the turns.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-gradual-list.h"

#define FIRST 12      /* rows that are there at once */
#define STEP 12       /* rows more in a turn */
#define ALL_MADE 208u /* GTK makes no more widgets than for so many */

struct _TdGradualList
{
  GObject parent;
  GListModel *model;
  guint n; /* rows so far */
  guint source;
};

static GType
get_item_type (GListModel *list)
{
  return g_list_model_get_item_type (TD_GRADUAL_LIST (list)->model);
}

static guint
get_n_items (GListModel *list)
{
  return TD_GRADUAL_LIST (list)->n;
}

static gpointer
get_item (GListModel *list, guint position)
{
  TdGradualList *self = TD_GRADUAL_LIST (list);
  return position < self->n ? g_list_model_get_item (self->model, position) : NULL;
}

static void
list_iface_init (GListModelInterface *iface)
{
  iface->get_item_type = get_item_type;
  iface->get_n_items = get_n_items;
  iface->get_item = get_item;
}

G_DEFINE_FINAL_TYPE_WITH_CODE (TdGradualList, td_gradual_list, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, list_iface_init))

static void
grow (TdGradualList *self, guint n)
{
  guint old = self->n;
  self->n = n;
  g_list_model_items_changed (G_LIST_MODEL (self), old, 0, n - old);
}

static gboolean
grow_a_step (gpointer data)
{
  TdGradualList *self = data;
  guint n = g_list_model_get_n_items (self->model);
  gboolean last = self->n >= ALL_MADE || self->n + STEP >= n;
  if (last)
    self->source = 0;
  grow (self, last ? n : self->n + STEP);
  return last ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

static void
come_to_rest (TdGradualList *self)
{
  guint n = g_list_model_get_n_items (self->model);
  if (self->n >= n)
    g_clear_handle_id (&self->source, g_source_remove);
  else if (!self->source) /* after what is drawn */
    self->source = g_idle_add (grow_a_step, self);
}

static void
items_changed (GListModel *model, guint position, guint removed, guint added,
               TdGradualList *self)
{
  if (position <= self->n)
    {
      guint gone = MIN (removed, self->n - position);
      guint behind = self->n - position - gone;
      guint come = behind ? added : MIN (added, FIRST);
      self->n = position + come + behind;
      if (gone || come)
        g_list_model_items_changed (G_LIST_MODEL (self), position, gone, come);
    }
  come_to_rest (self);
}

void
td_gradual_list_reach (GtkSingleSelection *selection, guint position)
{
  TdGradualList *self = TD_GRADUAL_LIST (gtk_single_selection_get_model (selection));
  guint n = g_list_model_get_n_items (self->model);
  if (position < self->n || position >= n)
    return;
  grow (self, position + STEP < ALL_MADE ? MIN (n, position + STEP) : n);
  come_to_rest (self);
}

void
td_gradual_list_select (GtkSingleSelection *selection, guint position)
{
  td_gradual_list_reach (selection, position);
  gtk_single_selection_set_selected (selection, position);
}

static void
td_gradual_list_dispose (GObject *object)
{
  TdGradualList *self = TD_GRADUAL_LIST (object);
  g_clear_handle_id (&self->source, g_source_remove);
  if (self->model)
    g_signal_handlers_disconnect_by_data (self->model, self);
  self->n = 0;
  g_clear_object (&self->model);
  G_OBJECT_CLASS (td_gradual_list_parent_class)->dispose (object);
}

static void
td_gradual_list_class_init (TdGradualListClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_gradual_list_dispose;
}

static void
td_gradual_list_init (TdGradualList *self)
{
}

GListModel *
td_gradual_list_new (GListModel *model)
{
  TdGradualList *self = g_object_new (TD_TYPE_GRADUAL_LIST, NULL);
  self->model = model;
  g_signal_connect (model, "items-changed", G_CALLBACK (items_changed), self);
  items_changed (model, 0, 0, g_list_model_get_n_items (model), self);
  return G_LIST_MODEL (self);
}
