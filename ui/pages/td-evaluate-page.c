/* Evaluating a line (td-evaluate-page.ui), and its history: Up and Down go through what was
 * typed, and come back to what was begun. SPDX-License-Identifier: MIT */
#include "pages/td-evaluate-page.h"

#include <glib/gi18n-lib.h>

#include "gradient/td-evaluate.h"

/* Older answers, and older lines, are dropped. */
#define MOST 200

struct _TdEvaluatePage
{
  GtkWidget parent;
  GtkWidget *box;
  GtkScrolledWindow *scroller;
  GtkListBox *list;
  GtkEntry *line;
  TdSession *session;
  GPtrArray *history; /* of char *, oldest first */
  guint at;           /* in the history; its length: what is being typed */
  char *begun;        /* that, while the history is looked at */
  char *answer;
  guint n_rows;
};

G_DEFINE_FINAL_TYPE (TdEvaluatePage, td_evaluate_page, GTK_TYPE_WIDGET)

/* ---- the line ---- */

static void
set_text (TdEvaluatePage *self, const char *text)
{
  gtk_editable_set_text (GTK_EDITABLE (self->line), text);
  gtk_editable_set_position (GTK_EDITABLE (self->line), -1);
}

static void
remember (TdEvaluatePage *self, const char *text)
{
  const char *last = self->history->len > 0
                         ? g_ptr_array_index (self->history, self->history->len - 1)
                         : NULL;
  if (g_strcmp0 (last, text) != 0)
    g_ptr_array_add (self->history, g_strdup (text));
  if (self->history->len > MOST)
    g_ptr_array_remove_index (self->history, 0);
  self->at = self->history->len;
  g_clear_pointer (&self->begun, g_free);
}

static void
recall (TdEvaluatePage *self, int by)
{
  guint to = (guint)CLAMP ((int)self->at + by, 0, (int)self->history->len);
  if (to == self->at)
    return;
  if (self->at == self->history->len)
    {
      g_free (self->begun);
      self->begun = g_strdup (gtk_editable_get_text (GTK_EDITABLE (self->line)));
    }
  self->at = to;
  set_text (self, to < self->history->len ? (const char *)g_ptr_array_index (self->history, to)
                                          : self->begun);
}

static gboolean
key_pressed (GtkEventControllerKey *keys, guint keyval, guint code, GdkModifierType modifiers,
             TdEvaluatePage *self)
{
  gboolean up = keyval == GDK_KEY_Up || keyval == GDK_KEY_KP_Up;
  gboolean down = keyval == GDK_KEY_Down || keyval == GDK_KEY_KP_Down;
  if ((!up && !down) || modifiers & (GDK_CONTROL_MASK | GDK_ALT_MASK | GDK_SHIFT_MASK))
    return FALSE;
  recall (self, up ? -1 : 1);
  return TRUE;
}

/* ---- answers ---- */

static GtkWidget *
new_text (const char *text, const char *style)
{
  GtkWidget *label = gtk_label_new (text);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_wrap (GTK_LABEL (label), TRUE);
  gtk_label_set_wrap_mode (GTK_LABEL (label), PANGO_WRAP_WORD_CHAR);
  gtk_widget_set_hexpand (label, TRUE);
  gtk_widget_add_css_class (label, style);
  return label;
}

static void
add_row (TdEvaluatePage *self, const char *text, const char *moment, gboolean good)
{
  GtkWidget *row = gtk_list_box_row_new ();
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  GtkWidget *head = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *when = gtk_label_new (moment);
  gtk_widget_add_css_class (when, "td-chip");
  gtk_widget_add_css_class (when, "numeric");
  gtk_widget_set_valign (when, GTK_ALIGN_START);
  gtk_box_append (GTK_BOX (head), new_text (text, "dim-label"));
  gtk_box_append (GTK_BOX (head), when);
  gtk_box_append (GTK_BOX (box), head);
  gtk_box_append (GTK_BOX (box), new_text (self->answer, good ? "numeric" : "error"));
  gtk_list_box_row_set_child (GTK_LIST_BOX_ROW (row), box);
  gtk_widget_set_tooltip_text (row, _ ("Enter takes it back into the line"));
  g_object_set_data_full (G_OBJECT (row), "expression", g_strdup (text), g_free);
  gtk_list_box_append (self->list, row);
  if (++self->n_rows > MOST)
    {
      gtk_list_box_remove (self->list,
                           GTK_WIDGET (gtk_list_box_get_row_at_index (self->list, 0)));
      self->n_rows--;
    }
}

static void
row_activated (GtkListBox *list, GtkListBoxRow *row, TdEvaluatePage *self)
{
  set_text (self, g_object_get_data (G_OBJECT (row), "expression"));
  gtk_widget_grab_focus (GTK_WIDGET (self->line));
}

/* The newest is the last: it is scrolled to once it has its place. */
static gboolean
scroll_down (gpointer data)
{
  TdEvaluatePage *self = data;
  if (self->box)
    {
      GtkAdjustment *down = gtk_scrolled_window_get_vadjustment (self->scroller);
      gtk_adjustment_set_value (down, gtk_adjustment_get_upper (down));
    }
  return G_SOURCE_REMOVE;
}

static void
entered (TdEvaluatePage *self)
{
  g_autofree char *text
      = g_strstrip (g_strdup (gtk_editable_get_text (GTK_EDITABLE (self->line))));
  g_autoptr (TdIteration) iteration
      = self->session ? td_session_get_current (self->session) : NULL;
  g_autoptr (GError) error = NULL;
  if (!*text || !iteration)
    return;
  TdMoment moment = td_session_get_moment (self->session);
  TdTensor *result = td_evaluate (text, td_session_get_reader (self->session), iteration,
                                  moment.event, &error);
  g_free (self->answer);
  self->answer = result ? td_evaluate_print (result) : g_strdup (error->message);
  g_autofree char *when
      = g_strdup_printf ("it. %" G_GINT64_FORMAT ", ev. %d", moment.iteration, moment.event);
  add_row (self, text, when, result != NULL);
  remember (self, text);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->line),
                                  GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, self->answer, -1);
  if (result)
    set_text (self, ""); /* else it stays to be mended */
  td_tensor_free (result);
  g_idle_add_full (G_PRIORITY_LOW, scroll_down, g_object_ref (self), g_object_unref);
}

void
td_evaluate_page_enter (TdEvaluatePage *self, const char *text)
{
  set_text (self, text);
  entered (self);
}

const char *
td_evaluate_page_get_answer (TdEvaluatePage *self)
{
  return self->answer ? self->answer : "";
}

void
td_evaluate_page_focus (TdEvaluatePage *self)
{
  gtk_widget_grab_focus (GTK_WIDGET (self->line));
}

void
td_evaluate_page_set_session (TdEvaluatePage *self, TdSession *session)
{
  GtkListBoxRow *row;
  if (!g_set_object (&self->session, session))
    return;
  while ((row = gtk_list_box_get_row_at_index (self->list, 0)))
    gtk_list_box_remove (self->list, GTK_WIDGET (row));
  self->n_rows = 0;
  g_clear_pointer (&self->answer, g_free);
}

/* ---- building ---- */

static void
td_evaluate_page_dispose (GObject *object)
{
  TdEvaluatePage *self = TD_EVALUATE_PAGE (object);
  g_clear_object (&self->session);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  G_OBJECT_CLASS (td_evaluate_page_parent_class)->dispose (object);
}

static void
td_evaluate_page_finalize (GObject *object)
{
  TdEvaluatePage *self = TD_EVALUATE_PAGE (object);
  g_ptr_array_unref (self->history);
  g_free (self->begun);
  g_free (self->answer);
  G_OBJECT_CLASS (td_evaluate_page_parent_class)->finalize (object);
}

static void
td_evaluate_page_class_init (TdEvaluatePageClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = td_evaluate_page_dispose;
  G_OBJECT_CLASS (klass)->finalize = td_evaluate_page_finalize;
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_template_from_resource (
      widget_class, "/io/github/tapedeck/Tapedeck/pages/td-evaluate-page.ui");
  gtk_widget_class_bind_template_child (widget_class, TdEvaluatePage, box);
  gtk_widget_class_bind_template_child (widget_class, TdEvaluatePage, scroller);
  gtk_widget_class_bind_template_child (widget_class, TdEvaluatePage, list);
  gtk_widget_class_bind_template_child (widget_class, TdEvaluatePage, line);
  gtk_widget_class_bind_template_callback (widget_class, entered);
  gtk_widget_class_bind_template_callback (widget_class, row_activated);
}

static void
td_evaluate_page_init (TdEvaluatePage *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  self->history = g_ptr_array_new_with_free_func (g_free);
  GtkEventController *keys = gtk_event_controller_key_new ();
  gtk_event_controller_set_propagation_phase (keys, GTK_PHASE_CAPTURE);
  g_signal_connect (keys, "key-pressed", G_CALLBACK (key_pressed), self);
  gtk_widget_add_controller (GTK_WIDGET (self->line), keys);
}

GtkWidget *
td_evaluate_page_new (void)
{
  return g_object_new (TD_TYPE_EVALUATE_PAGE, NULL);
}
