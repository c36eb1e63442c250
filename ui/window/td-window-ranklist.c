/* The list of ranks in the header bar, where the recording on show is of one of several.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>

#include "settings/td-tip.h"

static void
rank_chosen (GtkDropDown *list, GParamSpec *pspec, TdWindow *self)
{
  guint rank = gtk_drop_down_get_selected (list);
  if (!self->session || self->filling_ranks || rank == td__window_get_rank (self))
    return;
  g_autofree char *text = g_strdup_printf ("%u", rank);
  gtk_widget_activate_action (GTK_WIDGET (self), "win.rank", "s", text);
}

GtkWidget *
td__window_new_rank_list (TdWindow *self)
{
  self->ranks = GTK_DROP_DOWN (gtk_drop_down_new (NULL, NULL));
  gtk_widget_set_name (GTK_WIDGET (self->ranks), "rank-list");
  gtk_widget_set_valign (GTK_WIDGET (self->ranks), GTK_ALIGN_CENTER);
  td_tip_set (GTK_WIDGET (self->ranks), _ ("Which rank of the run is on show"));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->ranks), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Rank on show"), -1);
  g_signal_connect (self->ranks, "notify::selected", G_CALLBACK (rank_chosen), self);
  gtk_widget_set_visible (GTK_WIDGET (self->ranks), FALSE);
  return GTK_WIDGET (self->ranks);
}

guint
td__window_get_n_ranks (TdWindow *self)
{
  TdTapeReader *reader = self->session ? td_session_get_reader (self->session) : NULL;
  return reader ? td_tape_reader_header (reader)->n_ranks : 0;
}

guint
td__window_get_rank (TdWindow *self)
{
  TdTapeReader *reader = self->session ? td_session_get_reader (self->session) : NULL;
  return reader ? td_tape_reader_header (reader)->rank : 0;
}

static void
fill (TdWindow *self, guint n)
{
  GtkStringList *texts = gtk_string_list_new (NULL);
  for (guint r = 0; r < n; r++)
    {
      g_autofree char *text = g_strdup_printf (_ ("Rank %u of %u"), r, n);
      gtk_string_list_append (texts, text);
    }
  gtk_drop_down_set_model (self->ranks, G_LIST_MODEL (texts));
  g_object_unref (texts);
}

void
td__window_update_rank_list (TdWindow *self)
{
  guint n = td__window_get_n_ranks (self);
  GListModel *model = gtk_drop_down_get_model (self->ranks);
  gtk_widget_set_visible (GTK_WIDGET (self->ranks), n > 1);
  if (n < 2)
    return;
  self->filling_ranks = TRUE;
  if (!model || g_list_model_get_n_items (model) != n)
    fill (self, n);
  gtk_drop_down_set_selected (self->ranks, td__window_get_rank (self));
  self->filling_ranks = FALSE;
}
