/* Transport and scrubber. The buttons come from a table; the scrubber's strips are scenes
 * wrapped in one widget with the role and the value text of a slider.
 *
 * SPDX-License-Identifier: MIT */
#include "pages/td-deck.h"

#include "settings/td-keys.h"

#define LABEL_WIDTH 84

struct _TdDeck
{
  GtkWidget parent;
  GtkWidget *box;
  GtkWidget *play, *play_icon, *play_label;
  GtkWidget *scrubber;
  GtkSpinButton *iteration, *event;
  GtkLabel *n_iterations, *n_events, *status, *events_of, *spoken;
  GtkWidget *follow, *run_to;
  GtkWidget *step_back, *step, *unit; /* the buttons, and the choice of what they move by */
  GtkLabel *unit_label;
  TdSession *session;
  gboolean syncing;
};

G_DEFINE_FINAL_TYPE (TdDeck, td_deck, GTK_TYPE_WIDGET)

typedef struct
{
  const char *icon, *action, *words;
} Item;

static const Item back_items[] = {
  { "media-skip-backward-symbolic", "win.first-event", "First event" },
  { "media-seek-backward-symbolic", "win.previous-iteration", "Previous iteration" },
  { "td-step-back-symbolic", "win.reverse-step-op", "Step one operation back" },
  { NULL, NULL, NULL },
};
static const Item forward_items[] = {
  { "td-step-symbolic", "win.step-op", "Step one operation" },
  { "media-seek-forward-symbolic", "win.next-iteration", "Next iteration" },
  { "media-skip-forward-symbolic", "win.last-event", "Last event" },
  { NULL, NULL, NULL },
};
static const Item step_items[] = {
  { "td-step-over-symbolic", "win.step-over", "Step over layer" },
  { "td-step-into-symbolic", "win.step-into", "Step into" },
  { "td-step-out-symbolic", "win.step-out", "Step out" },
  { NULL, NULL, NULL },
};

static void
set_words (GtkWidget *widget, const char *action, const char *words)
{
  g_autofree char *key = td_keys_get_label (action);
  g_autofree char *tip = key ? g_strdup_printf ("%s (%s)", words, key) : g_strdup (words);
  gtk_widget_set_tooltip_text (widget, tip);
  gtk_accessible_update_property (GTK_ACCESSIBLE (widget), GTK_ACCESSIBLE_PROPERTY_LABEL, words,
                                  -1);
}

static GtkWidget *
new_group (const Item *items)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  gtk_widget_add_css_class (box, "linked");
  for (; items->icon; items++)
    {
      GtkWidget *button = gtk_button_new_from_icon_name (items->icon);
      gtk_actionable_set_action_name (GTK_ACTIONABLE (button), items->action);
      set_words (button, items->action, items->words);
      gtk_box_append (GTK_BOX (box), button);
    }
  return box;
}

static GtkWidget *
new_run_to (void)
{
  static const struct
  {
    const char *label, *action;
  } items[] = { { "_Selection", "win.run-to-cursor" },
                { "_Loss", "win.run-to-loss" },
                { "Start of _Backward", "win.run-to-backward" },
                { "_Update", "win.run-to-update" },
                { "Next _Anomaly", "win.next-anomaly" } };
  GMenu *menu = g_menu_new ();
  for (guint i = 0; i < G_N_ELEMENTS (items); i++)
    g_menu_append (menu, items[i].label, items[i].action);
  GtkWidget *button = gtk_menu_button_new ();
  GtkWidget *content = adw_button_content_new ();
  adw_button_content_set_icon_name (ADW_BUTTON_CONTENT (content), "td-run-to-symbolic");
  adw_button_content_set_label (ADW_BUTTON_CONTENT (content), "Run To");
  gtk_menu_button_set_child (GTK_MENU_BUTTON (button), content);
  gtk_menu_button_set_menu_model (GTK_MENU_BUTTON (button), G_MENU_MODEL (menu));
  gtk_menu_button_set_direction (GTK_MENU_BUTTON (button), GTK_ARROW_UP);
  gtk_widget_set_tooltip_text (button, "Run to a place in the iteration");
  g_object_unref (menu);
  return button;
}

/* The unit that the two step buttons beside Continue move by. */
static const struct
{
  const char *title, *back, *forward, *words;
} units[] = { { "Op", "win.reverse-step-op", "win.step-op", "operation" },
              { "Layer", "win.reverse-step-over", "win.step-over", "layer" },
              { "Out", "win.reverse-step-out", "win.step-out", "rest of the layer" },
              { "Iteration", "win.previous-iteration", "win.next-iteration", "iteration" } };

static void
choose_unit (GtkButton *button, TdDeck *self)
{
  guint i = GPOINTER_TO_UINT (g_object_get_data (G_OBJECT (button), "unit"));
  g_autofree char *back = g_strdup_printf ("Step one %s back", units[i].words);
  g_autofree char *forward = g_strdup_printf ("Step one %s", units[i].words);
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->step_back), units[i].back);
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->step), units[i].forward);
  set_words (self->step_back, units[i].back, back);
  set_words (self->step, units[i].forward, forward);
  gtk_label_set_text (self->unit_label, units[i].title);
  gtk_menu_button_popdown (GTK_MENU_BUTTON (self->unit));
}

static GtkWidget *
new_unit (TdDeck *self)
{
  GtkWidget *content = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *title = gtk_label_new ("Step");
  gtk_widget_add_css_class (title, "dim-label");
  self->unit_label = GTK_LABEL (gtk_label_new (units[0].title));
  gtk_box_append (GTK_BOX (content), title);
  gtk_box_append (GTK_BOX (content), GTK_WIDGET (self->unit_label));
  gtk_box_append (GTK_BOX (content), gtk_image_new_from_icon_name ("pan-down-symbolic"));
  self->unit = gtk_menu_button_new ();
  gtk_menu_button_set_child (GTK_MENU_BUTTON (self->unit), content);
  gtk_menu_button_set_direction (GTK_MENU_BUTTON (self->unit), GTK_ARROW_UP);
  gtk_widget_set_tooltip_text (self->unit, "What the step buttons move by");
  GtkWidget *list = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  for (guint i = 0; i < G_N_ELEMENTS (units); i++)
    {
      GtkWidget *button = gtk_button_new_with_label (units[i].title);
      gtk_widget_add_css_class (button, "flat");
      g_object_set_data (G_OBJECT (button), "unit", GUINT_TO_POINTER (i));
      g_signal_connect (button, "clicked", G_CALLBACK (choose_unit), self);
      gtk_box_append (GTK_BOX (list), button);
    }
  GtkWidget *popover = gtk_popover_new ();
  gtk_popover_set_child (GTK_POPOVER (popover), list);
  gtk_menu_button_set_popover (GTK_MENU_BUTTON (self->unit), popover);
  return self->unit;
}

static GtkWidget *
new_play (TdDeck *self)
{
  self->play = gtk_button_new ();
  GtkWidget *content = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  self->play_icon = gtk_image_new_from_icon_name ("media-playback-start-symbolic");
  self->play_label = gtk_label_new ("Continue");
  gtk_box_append (GTK_BOX (content), self->play_icon);
  gtk_box_append (GTK_BOX (content), self->play_label);
  gtk_button_set_child (GTK_BUTTON (self->play), content);
  gtk_widget_add_css_class (self->play, "suggested-action");
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->play), "win.play");
  return self->play;
}

/* ---- where the playhead is ---- */

static void
number_changed (GtkSpinButton *spin, TdDeck *self)
{
  if (self->syncing || !self->session)
    return;
  TdMoment moment = td_session_get_moment (self->session);
  if (spin == self->iteration)
    td_session_set_moment (self->session, gtk_spin_button_get_value_as_int (spin),
                           moment.event);
  else
    td_session_set_moment (self->session, moment.iteration,
                           gtk_spin_button_get_value_as_int (spin));
}

static GtkSpinButton *
new_number (TdDeck *self, const char *words)
{
  GtkWidget *spin = gtk_spin_button_new_with_range (0, 1, 1);
  gtk_widget_add_css_class (spin, "numeric");
  gtk_widget_add_css_class (spin, "td-number");
  gtk_editable_set_width_chars (GTK_EDITABLE (spin), 5);
  gtk_editable_set_alignment (GTK_EDITABLE (spin), 1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (spin), GTK_ACCESSIBLE_PROPERTY_LABEL, words,
                                  -1);
  for (GtkWidget *child = gtk_widget_get_first_child (spin); child;
       child = gtk_widget_get_next_sibling (child))
    if (GTK_IS_BUTTON (child)) /* the arrow keys and the wheel do the same */
      gtk_widget_set_visible (child, FALSE);
  g_signal_connect (spin, "value-changed", G_CALLBACK (number_changed), self);
  return GTK_SPIN_BUTTON (spin);
}

static GtkLabel *
new_label (const char *text, const char *style)
{
  GtkWidget *label = gtk_label_new (text);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_widget_add_css_class (label, "numeric");
  if (style)
    gtk_widget_add_css_class (label, style);
  return GTK_LABEL (label);
}

char *
td_deck_dup_value_text (TdDeck *self)
{
  static const char *const phases[] = { "forward", "backward", "accumulation", "update" };
  if (!self->session)
    return g_strdup ("");
  TdMoment moment = td_session_get_moment (self->session);
  TdIteration *iteration = td_session_get_current (self->session);
  if (!iteration)
    return g_strdup ("no iteration yet");
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  const char *phase = moment.event >= 0 && (guint32)moment.event < tape->n_events
                          ? phases[MIN (tape->events[moment.event].phase, 3)]
                          : "before the first event";
  guint n = td_session_get_n_iterations (self->session);
  gint64 last = n ? td_session_get_iteration_number (self->session, n - 1) : 0;
  char *text = g_strdup_printf (
      "iteration %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT ", event %d of %u, %s",
      moment.iteration, last, moment.event, tape->n_events ? tape->n_events - 1 : 0, phase);
  td_iteration_unref (iteration);
  return text;
}

/* What is there to look at in this iteration: of a program recorded with values not every
 * iteration has them. */
static const char *
level_of (TdIteration *iteration)
{
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  return tape->n_tensors > 0 ? "values" : tape->n_stats > 0 ? "stats" : "graph";
}

/* Of a long run on a small budget: from which iteration on there is more than a summary. */
static char *
dup_thinning (TdDeck *self)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  TdTapeThinning t = { 0 };

  if (reader)
    t = td_tape_reader_thinning (reader);
  if (!reader || t.n_whole >= t.n_summaries || t.first_whole == G_MAXUINT64)
    return g_strdup ("");
  return g_strdup_printf (" · whole from %" G_GUINT64_FORMAT " on", t.first_whole);
}

static void
show_state (TdDeck *self, TdIteration *iteration)
{
  static const char *const states[] = { "running", "paused", "ended", "crashed" };
  TdProgramState state = td_session_get_state (self->session);
  gboolean running = state == TD_PROGRAM_RUNNING;
  const char *action = running ? "win.pause" : "win.play";
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->play), action);
  gtk_image_set_from_icon_name (GTK_IMAGE (self->play_icon),
                                running ? "media-playback-pause-symbolic"
                                        : "media-playback-start-symbolic");
  gtk_label_set_text (GTK_LABEL (self->play_label), running                      ? "Pause"
                                                    : state == TD_PROGRAM_PAUSED ? "Continue"
                                                                                 : "Play");
  set_words (self->play, running ? "win.play-pause" : action, running ? "Pause" : "Continue");
  g_autofree char *thinning = dup_thinning (self);
  g_autofree char *text
      = iteration ? g_strdup_printf ("%s · %s%s", level_of (iteration), states[state], thinning)
                  : g_strconcat (states[state], thinning, NULL);
  gtk_label_set_text (self->status, text);
  gboolean live = state == TD_PROGRAM_RUNNING || state == TD_PROGRAM_PAUSED;
  gtk_widget_set_visible (self->follow, live);
  if (td_session_get_follow (self->session))
    gtk_widget_add_css_class (self->follow, "accent");
  else
    gtk_widget_remove_css_class (self->follow, "accent");
}

static void
show_numbers (TdDeck *self, TdIteration *iteration)
{
  TdMoment moment = td_session_get_moment (self->session);
  guint n = td_session_get_n_iterations (self->session);
  gint64 first = n ? td_session_get_iteration_number (self->session, 0) : 0;
  gint64 last = n ? td_session_get_iteration_number (self->session, n - 1) : 0;
  guint n_events = iteration ? td_iteration_get_n_events (iteration) : 0;
  gtk_spin_button_set_range (self->iteration, (double)first, (double)last);
  gtk_spin_button_set_value (self->iteration, (double)moment.iteration);
  guint n_run = iteration ? td_iteration_get_n_run (iteration) : 0;
  gtk_spin_button_set_range (self->event, -1, n_run ? (double)n_run - 1 : 0);
  gtk_spin_button_set_value (self->event, moment.event);
  g_autofree char *iterations = g_strdup_printf ("of %" G_GINT64_FORMAT, last);
  g_autofree char *events = g_strdup_printf ("of %u", n_events ? n_events - 1 : 0);
  g_autofree char *of = g_strdup_printf ("it. %" G_GINT64_FORMAT, moment.iteration);
  gtk_label_set_text (self->n_iterations, iterations);
  gtk_label_set_text (self->n_events, events);
  gtk_label_set_text (self->events_of, of);
}

static void
show_moment (TdDeck *self)
{
  TdIteration *iteration = td_session_get_expected (self->session);
  self->syncing = TRUE;
  show_numbers (self, iteration);
  self->syncing = FALSE;
  g_autofree char *text = td_deck_dup_value_text (self);
  gtk_accessible_update_property (
      GTK_ACCESSIBLE (self->scrubber), GTK_ACCESSIBLE_PROPERTY_VALUE_NOW,
      (double)td_session_get_moment (self->session).event, GTK_ACCESSIBLE_PROPERTY_VALUE_MIN,
      -1.0, GTK_ACCESSIBLE_PROPERTY_VALUE_MAX,
      iteration ? (double)td_iteration_get_n_events (iteration) - 1 : 0.0,
      GTK_ACCESSIBLE_PROPERTY_VALUE_TEXT, text, -1);
  show_state (self, iteration);
  g_clear_pointer (&iteration, td_iteration_unref);
}

void
td_deck_set_narrow (TdDeck *self, gboolean narrow)
{
  GtkWidget *content = gtk_menu_button_get_child (GTK_MENU_BUTTON (self->run_to));
  adw_button_content_set_label (ADW_BUTTON_CONTENT (content), narrow ? "" : "Run To");
  gtk_widget_set_visible (self->play_label, !narrow);
  gtk_widget_set_visible (self->unit, !narrow);
  gtk_widget_set_visible (GTK_WIDGET (self->n_iterations), !narrow);
}

void
td_deck_announce (TdDeck *self, const char *text)
{
  gtk_label_set_text (self->spoken, text);
}

void
td_deck_set_session (TdDeck *self, TdSession *session)
{
  static const char *const names[]
      = { "moment-changed", "iterations-changed", "head-changed", "follow-changed" };
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  g_set_object (&self->session, session);
  if (!session)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    g_signal_connect_swapped (session, names[i], G_CALLBACK (show_moment), self);
  show_moment (self);
}

/* ---- building ---- */

static GtkWidget *
new_transport (TdDeck *self)
{
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  GtkWidget *run = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *back = new_group (back_items), *forward = new_group (forward_items);
  self->step_back = gtk_widget_get_last_child (back);
  self->step = gtk_widget_get_first_child (forward);
  gtk_box_append (GTK_BOX (run), back);
  gtk_box_append (GTK_BOX (run), new_play (self));
  gtk_box_append (GTK_BOX (run), forward);
  gtk_box_append (GTK_BOX (row), run);
  gtk_box_append (GTK_BOX (row), new_group (step_items));
  gtk_box_append (GTK_BOX (row), new_unit (self));
  self->run_to = new_run_to ();
  gtk_box_append (GTK_BOX (row), self->run_to);

  GtkWidget *where = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_widget_set_margin_start (where, 12);
  self->iteration = new_number (self, "Iteration");
  self->event = new_number (self, "Event");
  self->n_iterations = new_label ("of 0", "dim-label");
  self->n_events = new_label ("of 0", "dim-label");
  gtk_box_append (GTK_BOX (where), GTK_WIDGET (new_label ("Iteration", "dim-label")));
  gtk_box_append (GTK_BOX (where), GTK_WIDGET (self->iteration));
  gtk_box_append (GTK_BOX (where), GTK_WIDGET (self->n_iterations));
  GtkWidget *event_label = GTK_WIDGET (new_label ("Event", "dim-label"));
  gtk_widget_set_margin_start (event_label, 6);
  gtk_box_append (GTK_BOX (where), event_label);
  gtk_box_append (GTK_BOX (where), GTK_WIDGET (self->event));
  gtk_box_append (GTK_BOX (where), GTK_WIDGET (self->n_events));
  gtk_box_append (GTK_BOX (row), where);

  self->status = new_label ("", "caption");
  gtk_widget_set_name (GTK_WIDGET (self->status), "deck-status");
  gtk_widget_add_css_class (GTK_WIDGET (self->status), "dim-label");
  gtk_widget_set_hexpand (GTK_WIDGET (self->status), TRUE);
  gtk_label_set_xalign (self->status, 1);
  gtk_label_set_ellipsize (self->status, PANGO_ELLIPSIZE_END);
  gtk_box_append (GTK_BOX (row), GTK_WIDGET (self->status));
  self->follow = gtk_button_new ();
  GtkWidget *content = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *dot = gtk_image_new_from_icon_name ("media-record-symbolic");
  gtk_widget_add_css_class (dot, "td-live");
  gtk_box_append (GTK_BOX (content), dot);
  gtk_box_append (GTK_BOX (content), gtk_label_new ("Follow"));
  gtk_button_set_child (GTK_BUTTON (self->follow), content);
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->follow), "win.follow");
  gtk_widget_add_css_class (self->follow, "td-small");
  gtk_widget_set_valign (self->follow, GTK_ALIGN_CENTER);
  set_words (self->follow, "win.follow", "Follow the program");
  gtk_box_append (GTK_BOX (row), self->follow);
  return row;
}

static GtkWidget *
new_strip_row (GtkWidget *strip, int height, const char *title, GtkLabel *second,
               gboolean vertical)
{
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *words = gtk_box_new (
      vertical ? GTK_ORIENTATION_VERTICAL : GTK_ORIENTATION_HORIZONTAL, vertical ? 0 : 6);
  gtk_widget_set_size_request (words, LABEL_WIDTH, -1);
  gtk_widget_set_valign (words, GTK_ALIGN_CENTER);
  gtk_box_append (GTK_BOX (words), GTK_WIDGET (new_label (title, "caption")));
  gtk_widget_add_css_class (GTK_WIDGET (second), "dim-label");
  gtk_box_append (GTK_BOX (words), GTK_WIDGET (second));
  gtk_box_append (GTK_BOX (row), words);
  gtk_widget_set_size_request (strip, -1, height);
  gtk_box_append (GTK_BOX (row), strip);
  return row;
}

static void
td_deck_dispose (GObject *object)
{
  TdDeck *self = TD_DECK (object);
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  g_clear_object (&self->session);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  if (self->spoken)
    gtk_widget_unparent (GTK_WIDGET (self->spoken));
  self->spoken = NULL;
  G_OBJECT_CLASS (td_deck_parent_class)->dispose (object);
}

static void
td_deck_class_init (TdDeckClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = td_deck_dispose;
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_TOOLBAR);
}

static void
td_deck_init (TdDeck *self)
{
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6);
  gtk_widget_add_css_class (self->box, "td-deck");
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
}

GtkWidget *
td_deck_new (GtkWidget *iterations, GtkWidget *events)
{
  TdDeck *self = g_object_new (TD_TYPE_DECK, NULL);
  gtk_box_append (GTK_BOX (self->box), new_transport (self));
  self->scrubber
      = g_object_new (GTK_TYPE_BOX, "orientation", GTK_ORIENTATION_VERTICAL, "spacing", 6,
                      "accessible-role", GTK_ACCESSIBLE_ROLE_SLIDER, NULL);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->scrubber),
                                  GTK_ACCESSIBLE_PROPERTY_LABEL, "Scrubber", -1);
  self->events_of = new_label ("", "caption");
  gtk_box_append (GTK_BOX (self->scrubber),
                  new_strip_row (iterations, 38, "Iterations",
                                 new_label ("loss, memory", "caption"), TRUE));
  gtk_box_append (GTK_BOX (self->scrubber),
                  new_strip_row (events, 24, "Events", self->events_of, FALSE));
  gtk_box_append (GTK_BOX (self->box), self->scrubber);
  self->spoken = GTK_LABEL (
      g_object_new (GTK_TYPE_LABEL, "accessible-role", GTK_ACCESSIBLE_ROLE_STATUS, NULL));
  gtk_label_set_ellipsize (self->spoken, PANGO_ELLIPSIZE_END);
  gtk_widget_set_can_target (GTK_WIDGET (self->spoken), FALSE);
  gtk_widget_add_css_class (GTK_WIDGET (self->spoken), "td-spoken");
  gtk_widget_set_parent (GTK_WIDGET (self->spoken), GTK_WIDGET (self));
  return GTK_WIDGET (self);
}
