/* Members of a fused group, and the value of the chosen one. SPDX-License-Identifier: MIT */
#include "pages/td-inside-page.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "widgets/td-hover-row.h"
#include "widgets/td-panel-view.h"
#include "widgets/td-scene-view.h"
#include "settings/td-tip.h"

#define MAX_LISTED 8    /* rows on show at once */
#define MAX_COMPUTED 24 /* members whose numbers are asked for unasked */
#define VALUE_HEIGHT 250

/* What the page is about; as long as it stays, what was read stays. */
typedef struct
{
  gint64 iteration, head_iteration;
  guint64 key;
  gint event, head_event;
  guint n_run;
  TdProgramState state;
} Subject;
G_STATIC_ASSERT (sizeof (Subject) == 40); /* compared as bytes: nothing lies between */

struct _TdInsidePage
{
  GtkWidget parent;
  GtkWidget *scroller;
  GtkLabel *title, *says, *facts;
  GtkWidget *run_to;
  TdSceneView *list, *value;
  TdSession *session;
  TdIteration *iteration;
  TdInside *inside; /* NULL: there is none */
  Subject subject;
  gboolean selected; /* the group is what is selected */
  gboolean stands;   /* the program was heard to stand at it */
  guint chosen;
  guint token; /* of what is waited for: changes with the subject */
  guint asked; /* members whose numbers were asked for */
  TdTensor *tensor;
};

enum
{
  LOOK,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdInsidePage, td_inside_page, GTK_TYPE_WIDGET)

static const char stands_text[]
    = "The program stands at it: computed separately, nothing of the run changes.";

/* ---- what is said ---- */

static void
say (TdInsidePage *self, const char *text, gboolean can_run_to)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  gtk_label_set_text (self->says, valid);
  gtk_widget_set_visible (self->run_to, can_run_to);
}

static gboolean
is_live (const Subject *s)
{
  return s->state == TD_PROGRAM_RUNNING || s->state == TD_PROGRAM_PAUSED;
}

static void
say_not_there (TdInsidePage *self)
{
  if (!is_live (&self->subject))
    say (self,
         "What stays inside a group is not recorded: run the program and stop it at the group "
         "to "
         "look inside.",
         FALSE);
  else
    say (self,
         self->subject.state == TD_PROGRAM_PAUSED
             ? "The program does not stand at this group: run to it to look inside."
             : "The program is running: run to the group to look inside.",
         self->inside->key != 0);
}

static void
show_facts (TdInsidePage *self)
{
  const TdInsideMember *m = &self->inside->members[self->chosen];
  g_autofree char *text = g_strdup_printf (
      "#%u  %s%s%s%s%s%s%s", self->chosen + 1, m->call, *m->formula ? ":  " : "", m->formula,
      *m->layer || *m->site ? "\n" : "", m->layer, *m->layer && *m->site ? ", " : "", m->site);
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  gtk_label_set_text (self->facts, valid);
}

static void
redraw (TdInsidePage *self)
{
  td_scene_view_invalidate (self->list);
  td_scene_view_invalidate (self->value);
}

/* ---- values ---- */

/* Load what the recording has; returns FALSE where it has nothing. */
static gboolean
load_recorded (TdInsidePage *self, guint k, gboolean show)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  TdTensor *tensor = td_inside_load (self->inside, k, reader, self->iteration);
  gboolean whole = tensor && tensor->values;
  if (!tensor)
    return FALSE;
  td_inside_take (self->inside, k, tensor);
  if (!show)
    {
      td_tensor_free (tensor);
      return whole;
    }
  g_clear_pointer (&self->tensor, td_tensor_free);
  *tensor->title = '\0'; /* the page says it */
  self->tensor = tensor;
  return whole;
}

static void
look (TdInsidePage *self, int k)
{
  g_signal_emit (self, signals[LOOK], 0, k, self->token);
}

static void
show_chosen (TdInsidePage *self)
{
  g_clear_pointer (&self->tensor, td_tensor_free);
  show_facts (self);
  if (!load_recorded (self, self->chosen, TRUE) && self->stands)
    look (self, (int)self->chosen);
  redraw (self);
}

/* Ask for the numbers of the next member that has none; one question at a time. */
static void
ask_next (TdInsidePage *self)
{
  while (self->asked < self->inside->n && self->inside->members[self->asked].known)
    self->asked++;
  if (self->stands && self->asked < self->inside->n && self->inside->n <= MAX_COMPUTED)
    look (self, (int)self->asked++);
}

void
td_inside_page_take (TdInsidePage *self, guint token, guint k, TdTensor *tensor)
{
  if (token != self->token || !self->inside || k >= self->inside->n)
    {
      td_tensor_free (tensor);
      return;
    }
  td_inside_take (self->inside, k, tensor);
  if (k == self->chosen)
    {
      *tensor->title = '\0';
      g_clear_pointer (&self->tensor, td_tensor_free);
      self->tensor = tensor;
    }
  else
    td_tensor_free (tensor);
  redraw (self);
  ask_next (self);
}

void
td_inside_page_take_error (TdInsidePage *self, guint token, const char *text)
{
  if (token != self->token || !self->inside)
    return;
  self->stands = FALSE;
  g_autofree char *first = g_utf8_strup (text, 1);
  g_autofree char *sentence
      = g_strdup_printf ("%s%s.", *text ? first : "", *text ? g_utf8_next_char (text) : "");
  say (self, sentence, self->inside->key != 0);
  redraw (self);
}

/* ---- which group ---- */

/* What the program stands at is the program's to say. */
static gboolean
is_group (const TdInside *inside, const char *const *ops, guint n_ops, guint n)
{
  if (!inside || inside->n != n)
    return FALSE;
  for (guint k = 0; k < n_ops && k < n; k++)
    if (strcmp (inside->members[k].op, ops[k]) != 0)
      return FALSE;
  return TRUE;
}

static void set_inside (TdInsidePage *self, TdInside *inside, TdIteration *iteration);

void
td_inside_page_take_group (TdInsidePage *self, guint token, const char *const *ops, guint n_ops,
                           guint n, gboolean ran)
{
  if (token != self->token || !self->inside)
    return;
  const gint at = self->subject.head_event + (ran ? 0 : 1);
  if (!self->selected && ran && self->inside->event != at && at >= 0)
    { /* it stands behind one, and what comes next is one as well */
      g_autoptr (TdIteration) now = td_session_get_current (self->session);
      TdInside *behind
          = now ? td_inside_new (td_session_get_reader (self->session), now, (guint)at) : NULL;
      if (behind)
        set_inside (self, behind, now);
    }
  self->stands = self->inside->event == at && is_group (self->inside, ops, n_ops, n);
  if (!self->stands)
    {
      say_not_there (self);
      return;
    }
  say (self, stands_text, FALSE);
  self->asked = 0;
  show_chosen (self);
  ask_next (self);
}

/* The group that a key stands for, of what has run or of what is to come. */
static TdInside *
find_selected (TdSession *session, guint64 key, TdIteration *now, TdIteration *expected,
               TdIteration **of)
{
  TdTapeReader *reader = td_session_get_reader (session);
  TdIteration *both[] = { now, expected };
  for (guint i = 0; i < G_N_ELEMENTS (both); i++)
    {
      gint event = both[i] ? td_iteration_find_event (both[i], key) : -1;
      if (event < 0)
        continue;
      *of = both[i];
      return td_inside_new (reader, both[i], (guint)event);
    }
  return NULL;
}

static TdInside *
find_here (TdSession *session, TdIteration *now, TdIteration *expected, TdIteration **of)
{
  TdTapeReader *reader = td_session_get_reader (session);
  TdMoment moment = td_session_get_moment (session), head = td_session_get_head (session);
  TdInside *inside = NULL;
  *of = now;
  if (td_session_get_state (session) == TD_PROGRAM_PAUSED && head.iteration == moment.iteration
      && head.event == moment.event)
    {
      guint next = (guint)(head.event + 1);
      inside = td_inside_new_next (reader, now);
      if (!inside && expected && next >= td_iteration_get_n_run (expected)
          && next < td_iteration_get_n_events (expected))
        {
          *of = expected;
          inside = td_inside_new (reader, expected, next);
        }
      if (inside && inside->key == 0 && expected && next < td_iteration_get_n_events (expected))
        inside->key = td_iteration_get_tape (expected)->events[next].key;
    }
  if (!inside && moment.event >= 0)
    {
      *of = now;
      inside = td_inside_new (reader, now, (guint)moment.event);
    }
  return inside;
}

/* List and value are of one operation, the group. */
static void
set_hover (TdInsidePage *self)
{
  GtkWidget *views[] = { GTK_WIDGET (self->list), GTK_WIDGET (self->value) };
  for (guint i = 0; i < G_N_ELEMENTS (views); i++)
    td_hover_row_set (views[i], self->session, self->inside ? self->inside->key : 0, views[i]);
}

static void
set_inside (TdInsidePage *self, TdInside *inside, TdIteration *iteration)
{
  g_clear_pointer (&self->tensor, td_tensor_free);
  g_clear_pointer (&self->inside, td_inside_free);
  g_clear_pointer (&self->iteration, td_iteration_unref);
  self->inside = inside;
  self->iteration = inside ? td_iteration_ref (iteration) : NULL;
  self->stands = FALSE;
  self->asked = 0;
  set_hover (self);
  if (!inside)
    return;
  self->chosen = MIN (self->chosen, inside->n - 1);
  /* the inspector's heading is about what has run */
  gboolean to_come = inside->event >= self->subject.head_event + 1
                     && inside->iteration == self->subject.head_iteration
                     && is_live (&self->subject);
  g_autofree char *title
      = g_strdup_printf (_ ("Next: %s, event %d"), inside->name, inside->event);
  g_autofree char *valid = g_utf8_make_valid (title, -1);
  gtk_label_set_text (self->title, valid);
  td_tip_set (GTK_WIDGET (self->title), valid);
  gtk_widget_set_visible (GTK_WIDGET (self->title), to_come);
  gtk_widget_set_size_request (GTK_WIDGET (self->list), -1,
                               (int)(TD_INSIDE_ROW * MIN (inside->n, MAX_LISTED)));
  for (guint k = 0; k < inside->n; k++)
    load_recorded (self, k, FALSE);
}

/* Nobody can be at a group of which the program is not just before or behind it. */
static gboolean
may_stand (TdInsidePage *self)
{
  const Subject *s = &self->subject;
  return s->state == TD_PROGRAM_PAUSED && s->head_iteration == self->inside->iteration
         && (self->inside->event == s->head_event || self->inside->event == s->head_event + 1);
}

static void
choose_step (TdInsidePage *self)
{
  guint step = td_session_get_step (self->session);
  gint k = step != TD_SESSION_NO_STEP && self->selected
               ? td_inside_find_step (self->inside, step)
               : -1;
  if (k < 0 || (guint)k == self->chosen)
    return;
  self->chosen = (guint)k;
  show_chosen (self);
}

gboolean
td_inside_page_show (TdInsidePage *self, TdSession *session)
{
  guint n = 0;
  const guint64 *keys = session ? td_session_get_selection (session, &n) : NULL;
  g_autoptr (TdIteration) now = session ? td_session_get_current (session) : NULL;
  g_autoptr (TdIteration) expected = now ? td_session_get_expected (session) : NULL;
  TdIteration *of = NULL;
  TdInside *inside = !now    ? NULL
                     : n > 0 ? find_selected (session, keys[0], now, expected, &of)
                             : find_here (session, now, expected, &of);
  g_set_object (&self->session, session);
  if (!inside)
    {
      self->token++;
      self->subject = (Subject){ .iteration = -1 };
      set_inside (self, NULL, NULL);
      return FALSE;
    }
  TdMoment head = td_session_get_head (session);
  Subject subject = { .iteration = inside->iteration,
                      .head_iteration = head.iteration,
                      .key = inside->key,
                      .event = inside->event,
                      .head_event = head.event,
                      .n_run = td_iteration_get_n_run (now),
                      .state = td_session_get_state (session) };
  self->selected = n > 0;
  if (self->inside && memcmp (&subject, &self->subject, sizeof subject) == 0)
    {
      td_inside_free (inside);
      choose_step (self);
      return TRUE;
    }
  self->token++;
  self->subject = subject;
  set_inside (self, inside, of);
  choose_step (self);
  say_not_there (self);
  show_chosen (self);
  if (may_stand (self))
    look (self, -1);
  return TRUE;
}

/* ---- pictures and rows ---- */

static TdScene *
make_list (gpointer data, double width, double height)
{
  TdInsidePage *self = data;
  if (!self->inside || !self->session)
    return NULL;
  TdPanelView view = td_panel_view_new (self->session, width, height);
  view.cursor = self->chosen + 1;
  return td_inside_scene (self->inside, &view);
}

static TdScene *
make_value (gpointer data, double width, double height)
{
  TdInsidePage *self = data;
  TdTensorView how = TD_TENSOR_VIEW_DEFAULT;
  how.floats = FALSE; /* there is no room for it */
  if (!self->inside || !self->session)
    return NULL;
  TdPanelView view = td_panel_view_new (self->session, width, height);
  if (!self->tensor)
    return td_panel_message (&view, self->stands ? _ ("Reading") : _ ("Not Recorded"),
                             self->stands ? _ ("The program computes it")
                                          : _ ("Run it to look inside"));
  return td_tensor_scene (self->tensor, &how, &view);
}

/* The selection follows, so that the schedule's list shows the same member. */
static void
choose (TdInsidePage *self, guint k)
{
  if (k != self->chosen)
    {
      self->chosen = k;
      show_chosen (self);
    }
  if (self->selected)
    td_session_set_step (self->session, self->inside->members[k].step);
  else if (self->inside->key != 0)
    td_session_select_step (self->session, self->inside->key, self->inside->members[k].step);
}

static void
pressed (TdSceneView *view, TdSceneHit *hit, double x, double y, TdInsidePage *self)
{
  if (hit && hit->tag == TD_TAG_ROW && self->inside && hit->data >= 0
      && (guint)hit->data < self->inside->n)
    choose (self, (guint)hit->data);
}

/* Return goes to the line that called it. */
static gboolean
moved (TdSceneView *view, int delta, TdInsidePage *self)
{
  if (!self->inside)
    return FALSE;
  gint last = (gint)self->inside->n - 1;
  choose (self, (guint)CLAMP ((gint)self->chosen + delta, 0, last));
  const TdInsideMember *m = &self->inside->members[self->chosen];
  if (delta == 0 && *m->site)
    {
      g_autofree char *site = g_utf8_make_valid (m->site, -1);
      gtk_widget_activate_action (GTK_WIDGET (self), "win.show-source", "s", site);
    }
  g_autofree char *words = td_inside_describe (self->inside, self->chosen);
  g_autofree char *valid = g_utf8_make_valid (words, -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (view), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                  valid, -1);
  return TRUE;
}

static void
run_to (GtkWidget *button, TdInsidePage *self)
{
  if (!self->inside || self->inside->key == 0)
    return;
  td_session_select (self->session, self->inside->key);
  gtk_widget_activate_action (GTK_WIDGET (self), "win.run-to-cursor", NULL);
}

const TdInside *
td_inside_page_get_inside (TdInsidePage *self)
{
  return self->inside;
}

guint
td_inside_page_get_chosen (TdInsidePage *self)
{
  return self->chosen;
}

const TdTensor *
td_inside_page_get_tensor (TdInsidePage *self)
{
  return self->tensor;
}

const char *
td_inside_page_get_says (TdInsidePage *self)
{
  return gtk_label_get_text (self->says);
}

guint
td_inside_page_get_token (TdInsidePage *self)
{
  return self->token;
}

/* ---- building ---- */

static GtkLabel *
new_label (GtkWidget *box, gboolean selectable)
{
  GtkWidget *label = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_widget_add_css_class (label, "caption");
  if (selectable)
    {
      gtk_label_set_wrap (GTK_LABEL (label), TRUE);
      gtk_label_set_wrap_mode (GTK_LABEL (label), PANGO_WRAP_WORD_CHAR);
      gtk_label_set_selectable (GTK_LABEL (label), TRUE);
    }
  else
    gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_MIDDLE);
  gtk_box_append (GTK_BOX (box), label);
  return GTK_LABEL (label);
}

static void
td_inside_page_dispose (GObject *object)
{
  TdInsidePage *self = TD_INSIDE_PAGE (object);
  self->token++;
  set_inside (self, NULL, NULL);
  g_clear_object (&self->session);
  g_clear_pointer (&self->scroller, gtk_widget_unparent);
  G_OBJECT_CLASS (td_inside_page_parent_class)->dispose (object);
}

static void
td_inside_page_class_init (TdInsidePageClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_inside_page_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
  signals[LOOK] = g_signal_new ("look", TD_TYPE_INSIDE_PAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                NULL, G_TYPE_NONE, 2, G_TYPE_INT, G_TYPE_UINT);
}

static void
td_inside_page_init (TdInsidePage *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6);
  self->subject.iteration = -1;
  self->title = new_label (box, FALSE);
  gtk_widget_add_css_class (GTK_WIDGET (self->title), "dim-label");
  self->list = TD_SCENE_VIEW (
      td_scene_view_new (_ ("Operations inside the fused group"), make_list, self));
  gtk_widget_set_name (GTK_WIDGET (self->list), "inside");
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->list));
  self->facts = new_label (box, TRUE);
  gtk_widget_set_name (GTK_WIDGET (self->facts), "inside-facts");
  self->says = new_label (box, TRUE);
  gtk_widget_add_css_class (GTK_WIDGET (self->says), "dim-label");
  gtk_widget_set_name (GTK_WIDGET (self->says), "inside-says");
  self->run_to = gtk_button_new_with_label (_ ("Run to It"));
  gtk_widget_add_css_class (self->run_to, "td-small");
  gtk_widget_set_halign (self->run_to, GTK_ALIGN_START);
  gtk_widget_set_tooltip_text (self->run_to,
                               _ ("Let the program run until it stands before it"));
  g_signal_connect (self->run_to, "clicked", G_CALLBACK (run_to), self);
  gtk_box_append (GTK_BOX (box), self->run_to);
  self->value = TD_SCENE_VIEW (
      td_scene_view_new (_ ("Value of the operation's result"), make_value, self));
  gtk_widget_set_name (GTK_WIDGET (self->value), "inside-value");
  gtk_widget_set_size_request (GTK_WIDGET (self->value), -1, VALUE_HEIGHT);
  gtk_widget_set_vexpand (GTK_WIDGET (self->value), TRUE);
  gtk_widget_add_css_class (GTK_WIDGET (self->list), "td-subject");
  gtk_widget_add_css_class (GTK_WIDGET (self->value), "td-subject");
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->value));
  g_signal_connect (self->list, "pressed", G_CALLBACK (pressed), self);
  g_signal_connect (self->list, "moved", G_CALLBACK (moved), self);
  self->scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (self->scroller), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), box);
  gtk_widget_set_parent (self->scroller, GTK_WIDGET (self));
}

GtkWidget *
td_inside_page_new (void)
{
  return g_object_new (TD_TYPE_INSIDE_PAGE, NULL);
}
