/* Evaluating a line (td-evaluate-page.ui), and its history: Up and Down go through what was
 * typed, and come back to what was begun. Where the program stands at the playhead its arrays
 * are read, one after the other as the line asks for them, and the line is evaluated again with
 * each. SPDX-License-Identifier: MIT */
#include "pages/td-evaluate-page.h"

#include <glib/gi18n-lib.h>

#include "gradient/td-evaluate.h"

/* Older answers, and older lines, are dropped. */
#define MOST 200
#define PULSE_MS 200

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
  char *pending;      /* the line whose arrays are being read, or NULL */
  TdMoment asked_at;  /* where the playhead and the program were then */
  guint pulse;        /* of the line while it waits */
  guint64 missing;    /* the array that is waited for; 0: none */
  GHashTable *arrays; /* guint64 *: Array *, of the pending line */
  guint n_read;       /* of them, for the newest answer */
};

/* One that was read, or why it could not be. */
typedef struct
{
  TdTensor *tensor;
  char *error;
} Array;

enum
{
  READ,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

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

/* Those that came. */
static guint
count_read (TdEvaluatePage *self)
{
  GHashTableIter iter;
  gpointer array;
  self->n_read = 0;
  g_hash_table_iter_init (&iter, self->arrays);
  while (g_hash_table_iter_next (&iter, NULL, &array))
    self->n_read += ((const Array *)array)->tensor != NULL;
  return self->n_read;
}

static void
answer (TdEvaluatePage *self, const char *text, const TdTensor *result, const char *error)
{
  TdMoment at = self->asked_at;
  gboolean live = count_read (self) > 0;
  g_free (self->answer);
  self->answer = result ? td_evaluate_print (result) : g_strdup (error);
  g_autofree char *moment
      = g_strdup_printf ("it. %" G_GINT64_FORMAT ", ev. %d", at.iteration, at.event);
  g_autofree char *when = live ? g_strdup_printf (_ ("%s, live"), moment) : NULL;
  add_row (self, text, live ? when : moment, result != NULL);
  remember (self, text);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->line),
                                  GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, self->answer, -1);
  if (result)
    set_text (self, ""); /* else it stays to be mended */
  g_idle_add_full (G_PRIORITY_LOW, scroll_down, g_object_ref (self), g_object_unref);
}

/* ---- arrays of the program ---- */

static void
array_free (gpointer data)
{
  Array *array = data;
  td_tensor_free (array->tensor);
  g_free (array->error);
  g_free (array);
}

static gboolean
is_same_moment (TdMoment a, TdMoment b)
{
  return a.iteration == b.iteration && a.event == b.event;
}

/* Elsewhere its arrays are of another moment. */
static gboolean
stands_at_playhead (TdEvaluatePage *self)
{
  return td_session_get_state (self->session) == TD_PROGRAM_PAUSED
         && is_same_moment (td_session_get_head (self->session),
                            td_session_get_moment (self->session));
}

/* A TdEvaluateRead. */
static TdTensor *
find_array (guint64 id, gpointer data, GError **error)
{
  TdEvaluatePage *self = data;
  const Array *array = g_hash_table_lookup (self->arrays, &id);
  if (array && array->tensor)
    return td_tensor_ref (array->tensor);
  if (!array && self->missing == 0)
    self->missing = id;
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_PENDING, array ? array->error : "");
  return NULL;
}

static void
forget_pending (TdEvaluatePage *self)
{
  g_clear_pointer (&self->pending, g_free);
  g_hash_table_remove_all (self->arrays);
  self->missing = 0;
  g_clear_handle_id (&self->pulse, g_source_remove);
  gtk_entry_set_progress_fraction (self->line, 0);
}

static gboolean
pulse (gpointer data)
{
  TdEvaluatePage *self = data;
  gtk_entry_progress_pulse (self->line);
  return G_SOURCE_CONTINUE;
}

/* With the arrays that are there; the first that is not is asked for. */
static void
evaluate (TdEvaluatePage *self)
{
  g_autoptr (TdIteration) iteration = td_session_get_current (self->session);
  g_autoptr (GError) error = NULL;
  TdEvaluateSource source
      = { td_session_get_reader (self->session), iteration, self->asked_at.event,
          stands_at_playhead (self) ? find_array : NULL, self };
  TdTensor *result = iteration ? td_evaluate (self->pending, &source, &error) : NULL;
  if (self->missing != 0)
    g_signal_emit (self, signals[READ], 0, self->missing);
  else if (iteration)
    {
      g_autofree char *text = g_steal_pointer (&self->pending);
      answer (self, text, result, error ? error->message : NULL);
      forget_pending (self);
    }
  td_tensor_free (result);
}

void
td_evaluate_page_take_array (TdEvaluatePage *self, guint64 id, TdTensor *tensor,
                             const char *error)
{
  if (!self->pending || id != self->missing)
    {
      td_tensor_free (tensor);
      return;
    }
  if (!stands_at_playhead (self)
      || !is_same_moment (td_session_get_moment (self->session), self->asked_at))
    {
      g_autofree char *text = g_steal_pointer (&self->pending);
      td_tensor_free (tensor);
      g_hash_table_remove_all (self->arrays);
      answer (self, text, NULL,
              _ ("the program or the playhead went on before the values were read"));
      forget_pending (self);
      return;
    }
  Array *array = g_new (Array, 1);
  *array = (Array){ tensor, g_strdup (error ? error : "") };
  guint64 *key = g_new (guint64, 1);
  *key = id;
  g_hash_table_insert (self->arrays, key, array);
  self->missing = 0;
  evaluate (self);
}

static void
entered (TdEvaluatePage *self)
{
  g_autofree char *text
      = g_strstrip (g_strdup (gtk_editable_get_text (GTK_EDITABLE (self->line))));
  if (!*text || !self->session || self->pending)
    return;
  self->asked_at = td_session_get_moment (self->session);
  self->pending = g_steal_pointer (&text);
  self->pulse = g_timeout_add (PULSE_MS, pulse, self);
  evaluate (self);
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

guint
td_evaluate_page_get_n_read (TdEvaluatePage *self)
{
  return self->n_read;
}

gboolean
td_evaluate_page_is_reading (TdEvaluatePage *self)
{
  return self->pending != NULL;
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
  forget_pending (self);
}

/* ---- building ---- */

static void
td_evaluate_page_dispose (GObject *object)
{
  TdEvaluatePage *self = TD_EVALUATE_PAGE (object);
  g_clear_object (&self->session);
  g_clear_handle_id (&self->pulse, g_source_remove);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  G_OBJECT_CLASS (td_evaluate_page_parent_class)->dispose (object);
}

static void
td_evaluate_page_finalize (GObject *object)
{
  TdEvaluatePage *self = TD_EVALUATE_PAGE (object);
  g_ptr_array_unref (self->history);
  g_hash_table_unref (self->arrays);
  g_free (self->pending);
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
  signals[READ] = g_signal_new ("read", TD_TYPE_EVALUATE_PAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                NULL, G_TYPE_NONE, 1, G_TYPE_UINT64);
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
  self->arrays = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, array_free);
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
