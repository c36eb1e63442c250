/* Two stacks, one below the other: the second one is there where a block was freed.
 * SPDX-License-Identifier: MIT */
#include "pages/td-stack-page.h"

#include <glib/gi18n-lib.h>

struct _TdStackPage
{
  GtkWidget parent;
  GtkWidget *box;
  GtkLabel *metadata;
  TdCallStack *made, *freed;
};

G_DEFINE_FINAL_TYPE (TdStackPage, td_stack_page, GTK_TYPE_WIDGET)

/* The last of what reads a block is its free; -1: it is there to the end. */
static gint
find_free (TdIteration *iteration, gint var)
{
  guint n = 0;
  const gint32 *readers
      = var >= 0 ? td_iteration_get_consumers (iteration, (guint)var, &n) : NULL;
  return n > 0 ? readers[n - 1] : -1;
}

static void
show_stack (TdCallStack *list, const char *title, TdIteration *iteration, guint32 stack,
            TdSession *session)
{
  g_autoptr (GArray) frames = td_stack_list (iteration, stack);
  td_call_stack_set (list, title, frames, session);
}

static void
show_metadata (TdStackPage *self, TdIteration *iteration, gint event)
{
  const char *said = event >= 0 ? td_stack_metadata (iteration, (guint)event) : "";
  g_autofree char *text = g_strdup_printf (_ ("The program said: %s"), said);
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  gtk_label_set_text (self->metadata, valid);
  gtk_widget_set_visible (GTK_WIDGET (self->metadata), *said != '\0');
}

gboolean
td_stack_page_show (TdStackPage *self, TdSession *session, TdIteration *iteration, gint event,
                    gint var)
{
  const TdTapeIteration *tape = iteration ? td_iteration_get_tape (iteration) : NULL;
  if (!tape || tape->n_stack_frames == 0)
    return FALSE;
  gint freed = find_free (iteration, var), made = var >= 0 ? tape->vars[var].producer : event;
  if (var >= 0)
    show_stack (self->made, "Allocated", iteration, td_stack_of_var (iteration, (guint)var),
                session);
  else
    show_stack (self->made, "Made", iteration,
                event >= 0 ? td_stack_of_event (iteration, (guint)event) : 0, session);
  show_stack (self->freed, "Freed", iteration,
              freed >= 0 ? td_stack_of_event (iteration, (guint)freed) : 0, session);
  gtk_widget_set_visible (GTK_WIDGET (self->freed), freed >= 0);
  show_metadata (self, iteration, made);
  return TRUE;
}

TdCallStack *
td_stack_page_get_stack (TdStackPage *self, gboolean freed)
{
  return freed ? self->freed : self->made;
}

static void
td_stack_page_dispose (GObject *object)
{
  g_clear_pointer (&TD_STACK_PAGE (object)->box, gtk_widget_unparent);
  G_OBJECT_CLASS (td_stack_page_parent_class)->dispose (object);
}

static void
td_stack_page_class_init (TdStackPageClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_stack_page_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
}

static void
td_stack_page_init (TdStackPage *self)
{
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 9);
  self->metadata = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_xalign (self->metadata, 0);
  gtk_label_set_wrap (self->metadata, TRUE);
  gtk_label_set_wrap_mode (self->metadata, PANGO_WRAP_WORD_CHAR);
  gtk_label_set_selectable (self->metadata, TRUE);
  gtk_widget_add_css_class (GTK_WIDGET (self->metadata), "caption");
  self->made = TD_CALL_STACK (td_call_stack_new ());
  self->freed = TD_CALL_STACK (td_call_stack_new ());
  gtk_widget_set_vexpand (GTK_WIDGET (self->made), TRUE);
  gtk_widget_set_vexpand (GTK_WIDGET (self->freed), TRUE);
  gtk_box_append (GTK_BOX (self->box), GTK_WIDGET (self->metadata));
  gtk_box_append (GTK_BOX (self->box), GTK_WIDGET (self->made));
  gtk_box_append (GTK_BOX (self->box), GTK_WIDGET (self->freed));
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
}

GtkWidget *
td_stack_page_new (void)
{
  return g_object_new (TD_TYPE_STACK_PAGE, NULL);
}
