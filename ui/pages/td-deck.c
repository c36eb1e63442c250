/* Transport and scrubber (td-deck.ui). The scrubber's strips are scenes wrapped in one widget
 * with the role and the value text of a slider.
 *
 * SPDX-License-Identifier: MIT */
#include "pages/td-deck.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "scene/td-format.h"
#include "settings/td-keys.h"
#include "settings/td-tip.h"

#define FEWEST_CHARS 5 /* of an entry with a number */

struct _TdDeck
{
  GtkWidget parent;
  GtkWidget *box;
  GtkWidget *transport, *play, *play_icon, *play_label;
  GtkWidget *scrubber;
  GtkBox *iterations_row, *events_row;
  GtkSpinButton *iteration, *event;
  GtkLabel *n_iterations, *n_events, *status, *events_of, *spoken;
  GtkWidget *follow, *range;
  GtkLabel *range_label;
  AdwButtonContent *run_to_content;
  GtkWidget *step_back, *step, *unit; /* the buttons, and the choice of what they move by */
  GtkLabel *unit_label;
  GtkBox *unit_list;
  TdSession *session;
  TdCost cost; /* of the recording while the program runs; nothing: not known */
  gboolean syncing, narrow;
};

G_DEFINE_FINAL_TYPE (TdDeck, td_deck, GTK_TYPE_WIDGET)

/* The unit that the two step buttons beside Continue move by. */
static const struct
{
  const char *title, *back, *forward, *words;
} units[]
    = { { N_ ("Op"), "win.reverse-step-op", "win.step-op", "operation" },
        { N_ ("Layer"), "win.reverse-step-over", "win.step-over", "layer" },
        { N_ ("Out"), "win.reverse-step-out", "win.step-out", N_ ("rest of the layer") },
        { N_ ("Iteration"), "win.previous-iteration", "win.next-iteration", "iteration" } };

static void
choose_unit (GtkButton *button, TdDeck *self)
{
  guint i = GPOINTER_TO_UINT (g_object_get_data (G_OBJECT (button), "unit"));
  g_autofree char *back = g_strdup_printf (_ ("Step one %s back"), _ (units[i].words));
  g_autofree char *forward = g_strdup_printf (_ ("Step one %s"), _ (units[i].words));
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->step_back), units[i].back);
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->step), units[i].forward);
  td_keys_set_words (self->step_back, units[i].back, back);
  td_keys_set_words (self->step, units[i].forward, forward);
  gtk_label_set_text (self->unit_label, _ (units[i].title));
  gtk_menu_button_popdown (GTK_MENU_BUTTON (self->unit));
}

static void
add_units (TdDeck *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (units); i++)
    {
      GtkWidget *button = gtk_button_new_with_label (_ (units[i].title));
      gtk_widget_add_css_class (button, "flat");
      g_object_set_data (G_OBJECT (button), "unit", GUINT_TO_POINTER (i));
      g_signal_connect (button, "clicked", G_CALLBACK (choose_unit), self);
      gtk_box_append (self->unit_list, button);
    }
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

/* Before the first event nothing has run, which is no number; who types one may type -1. */
static gboolean
show_event (GtkSpinButton *spin, TdDeck *self)
{
  if (gtk_spin_button_get_value_as_int (spin) >= 0)
    return FALSE;
  gtk_editable_set_text (GTK_EDITABLE (spin), "-");
  return TRUE;
}

static gint
take_event (GtkSpinButton *spin, double *value, TdDeck *self)
{
  *value = -1;
  return strcmp (gtk_editable_get_text (GTK_EDITABLE (spin)), "-") == 0;
}

/* The arrow keys and the wheel do the same as its buttons. */
static void
hide_buttons (GtkSpinButton *spin)
{
  for (GtkWidget *child = gtk_widget_get_first_child (GTK_WIDGET (spin)); child;
       child = gtk_widget_get_next_sibling (child))
    if (GTK_IS_BUTTON (child))
      gtk_widget_set_visible (child, FALSE);
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

static double
percent_of (const TdCost *cost)
{
  return 100 * (double)cost->cost_ns / (double)cost->ran_ns;
}

/* " · recording 2 %", and what is worse: that the program waits for it, or has none any more.
 */
static char *
dup_cost (TdDeck *self)
{
  const TdCost *cost = &self->cost;
  GString *text = g_string_new (NULL);
  if (cost->is_lost)
    g_string_append_printf (text, " · %s", _ ("recording lost"));
  else if (cost->ran_ns)
    {
      double percent = percent_of (cost);
      g_string_append (text, " · ");
      g_string_append_printf (text, _ ("recording %.*f %%"), percent < 9.95 ? 1 : 0, percent);
    }
  if (cost->n_waits)
    g_string_append_printf (
        text, ngettext (" · waited once", " · waited %u times", (gulong)cost->n_waits),
        (guint)cost->n_waits);
  return g_string_free (text, FALSE);
}

/* The same in sentences, with all that is left out of the line. */
static char *
dup_cost_sentences (TdDeck *self)
{
  const TdCost *cost = &self->cost;
  GString *text = g_string_new (NULL);
  char bytes[TD_FORMAT_SIZE], ns[TD_FORMAT_SIZE];
  g_autofree char *thinning = dup_thinning (self);
  if (cost->ran_ns)
    g_string_append_printf (text, _ ("Recording takes about %.1f %% of the program's time.\n"),
                            percent_of (cost));
  if (cost->n_waits)
    g_string_append_printf (
        text,
        ngettext ("The program has waited once for the recorder: %s.\n",
                  "The program has waited several times for the recorder: %s.\n",
                  (gulong)cost->n_waits),
        td_format_ns (ns, cost->waited_ns));
  else if (cost->ran_ns)
    g_string_append (text, _ ("The program has never waited for the recorder.\n"));
  g_string_append_printf (text, _ ("The tape has %s.\n"),
                          td_format_bytes (bytes, cost->tape_bytes));
  if (*thinning)
    g_string_append (text, _ ("Of older iterations it has summaries only.\n"));
  g_string_append (text, cost->is_lost ? _ ("Nothing is recorded any more.")
                                       : _ ("No record was lost."));
  return g_string_free (text, FALSE);
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
  gtk_label_set_text (GTK_LABEL (self->play_label), running ? _ ("Pause")
                                                    : state == TD_PROGRAM_PAUSED
                                                        ? _ ("Continue")
                                                        : _ ("Play"));
  td_keys_set_words (self->play, running ? "win.play-pause" : action,
                     running ? "Pause" : "Continue");
  g_autofree char *thinning = dup_thinning (self);
  g_autofree char *cost = dup_cost (self);
  g_autofree char *text
      = g_strconcat (iteration ? level_of (iteration) : "", iteration ? " · " : "",
                     states[state], cost, thinning, NULL);
  g_autofree char *sentences = self->cost.tape_bytes ? dup_cost_sentences (self) : NULL;
  td_tip_set (GTK_WIDGET (self->status), sentences);
  gtk_label_set_text (self->status, text);
  gboolean live = state == TD_PROGRAM_RUNNING || state == TD_PROGRAM_PAUSED;
  gtk_widget_set_visible (self->follow, live);
  if (td_session_get_follow (self->session))
    gtk_widget_add_css_class (self->follow, "accent");
  else
    gtk_widget_remove_css_class (self->follow, "accent");
}

/* The entry has room for the last number there is: one that is cut reads as another one. */
static void
set_last (GtkSpinButton *spin, gint64 last)
{
  int digits = 1;

  for (gint64 above = last / 10; above > 0; above /= 10)
    digits++;
  gtk_editable_set_width_chars (GTK_EDITABLE (spin), MAX (digits, FEWEST_CHARS));
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
  set_last (self->iteration, last);
  set_last (self->event, n_events ? n_events - 1 : 0);
  g_autofree char *iterations = g_strdup_printf ("of %" G_GINT64_FORMAT, last);
  g_autofree char *events
      = n_events ? g_strdup_printf ("of %u", n_events - 1) : g_strdup ("of none");
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

#define MOST_CHIP_CHARS 24

/* Every panel over the run shows less than all of it: that is said where it is seen. */
static void
show_range (TdDeck *self)
{
  TdRange range = td_session_get_range (self->session);
  g_autofree char *words = td_range_describe (range);
  words[0] = g_ascii_toupper (words[0]);
  const char *shown = self->narrow ? strpbrk (words, "0123456789") : NULL;
  shown = shown ? shown : words;
  gtk_label_set_text (self->range_label, shown);
  gtk_label_set_width_chars (self->range_label,
                             (int)MIN (g_utf8_strlen (shown, -1), MOST_CHIP_CHARS));
  gtk_widget_set_visible (self->range, !td_range_is_all (range));
  g_autofree char *label = g_strdup_printf (_ ("%s: show the whole run again"), words);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->range), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  label, -1);
}

void
td_deck_set_cost (TdDeck *self, const TdCost *cost)
{
  self->cost = cost ? *cost : (TdCost){ 0 };
  if (self->session)
    show_moment (self);
}

void
td_deck_set_narrow (TdDeck *self, gboolean narrow)
{
  adw_button_content_set_label (self->run_to_content, narrow ? "" : _ ("Run To"));
  gtk_widget_set_visible (self->play_label, !narrow);
  gtk_widget_set_visible (self->unit, !narrow);
  gtk_widget_set_visible (GTK_WIDGET (self->n_iterations), !narrow);
  self->narrow = narrow;
  if (self->session)
    show_range (self);
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
  g_signal_connect_swapped (session, "range-changed", G_CALLBACK (show_range), self);
  show_moment (self);
  show_range (self);
}

/* ---- building ---- */

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
  gtk_widget_class_set_template_from_resource (widget_class,
                                               "/io/github/tapedeck/Tapedeck/pages/td-deck.ui");
  gtk_widget_class_bind_template_child (widget_class, TdDeck, box);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, transport);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, play);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, play_icon);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, play_label);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, scrubber);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, iterations_row);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, events_row);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, iteration);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, event);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, n_iterations);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, n_events);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, status);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, events_of);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, spoken);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, follow);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, range);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, range_label);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, run_to_content);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, step_back);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, step);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, unit);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, unit_label);
  gtk_widget_class_bind_template_child (widget_class, TdDeck, unit_list);
  gtk_widget_class_bind_template_callback (widget_class, number_changed);
  gtk_widget_class_bind_template_callback (widget_class, show_event);
  gtk_widget_class_bind_template_callback (widget_class, take_event);
}

static void
td_deck_init (TdDeck *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  td_keys_name_buttons (self->transport);
  add_units (self);
  hide_buttons (self->iteration);
  hide_buttons (self->event);
}

GtkWidget *
td_deck_new (GtkWidget *iterations, GtkWidget *events)
{
  TdDeck *self = g_object_new (TD_TYPE_DECK, NULL);
  gtk_widget_add_css_class (iterations, "td-iterations-strip");
  gtk_widget_add_css_class (events, "td-events-strip");
  gtk_box_append (self->iterations_row, iterations);
  gtk_box_append (self->events_row, events);
  return GTK_WIDGET (self);
}
