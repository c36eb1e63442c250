/* Those whose first picture waits, in order.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-draw-later.h"

#define AFTER_FRAMES (GDK_PRIORITY_REDRAW + 10) /* and before what is idle */

typedef struct
{
  GtkWidget *widget; /* owned */
  void (*make) (GtkWidget *widget);
} Waiting;

static GQueue waiting = G_QUEUE_INIT;

static gboolean
make_next (gpointer unused)
{
  Waiting *next = g_queue_pop_head (&waiting);
  if (!next) /* what was being made had another one wait, which had its turn already */
    return G_SOURCE_REMOVE;
  if (gtk_widget_get_mapped (next->widget))
    next->make (next->widget);
  gtk_widget_queue_draw (next->widget);
  g_object_unref (next->widget);
  g_free (next);
  return g_queue_is_empty (&waiting) ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

void
td_draw_later (GtkWidget *widget, void (*make) (GtkWidget *widget))
{
  for (GList *l = waiting.head; l; l = l->next)
    if (((Waiting *)l->data)->widget == widget)
      return;
  Waiting *one = g_new (Waiting, 1);
  *one = (Waiting){ g_object_ref (widget), make };
  if (g_queue_is_empty (&waiting))
    g_idle_add_full (AFTER_FRAMES, make_next, NULL, NULL);
  g_queue_push_tail (&waiting, one);
}
