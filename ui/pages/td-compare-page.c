/* The compare page (td-compare-page.ui). One picture is of the window's session, the other of a
 * session of one iteration, made whenever another one is chosen; td-compare-sync.c keeps them
 * together. SPDX-License-Identifier: MIT */
#include "pages/td-compare-page-private.h"

#include <adwaita.h>
#include <glib/gi18n-lib.h>

#include "settings/td-tip.h"

enum
{
  ANNOUNCE,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdComparePage, td_compare_page, ADW_TYPE_BIN)

/* ---- choosing ---- */

static void
row_chosen (GtkWidget *widget, guint row, TdComparePage *self)
{
  td__compare_page_show_row (self, row);
}

static void
layer_chosen (GtkWidget *widget, guint row, TdComparePage *self)
{
  td__compare_page_show_layer (self, row);
}

static void
limits_changed (GtkWidget *limits, TdComparePage *self)
{
  td__compare_page_check_again (self);
}

static void
names_asked (GtkWidget *limits, TdComparePage *self)
{
  td_compare_page_edit_names (self);
}

/* A low window has room for the pictures, or for the layers. */
static void
show_halves (TdComparePage *self)
{
  const gboolean layers
      = g_strcmp0 (gtk_stack_get_visible_child_name (self->views), "by-layer") == 0;
  gtk_widget_set_visible (self->lower, !self->low || layers);
  gtk_widget_set_visible (self->upper, !self->low || !layers);
}

static void
view_changed (GObject *views, GParamSpec *property, TdComparePage *self)
{
  show_halves (self);
  td__compare_page_check_port (self);
}

static void
layers_mapped (GtkWidget *layers, TdComparePage *self)
{
  td__compare_page_check_port (self);
}

static void
buffer_pressed (GtkWidget *buffers, int side, guint64 key, TdComparePage *self)
{
  td_session_select (td__compare_page_session_of (self, (TdSide)side), key);
}

/* ---- comparing ---- */

/* Operations of a program and layers of a reference are not each other's differences. */
static void
show_marks (TdComparePage *self)
{
  const gboolean by_layer = td__compare_page_has_reference (self);
  TdCompare *c = by_layer ? NULL : self->compare;
  TdSession *const sessions[] = { td__compare_page_session_of (self, TD_SIDE_A),
                                  td__compare_page_session_of (self, TD_SIDE_B) };
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      TdGraphView *view = td_compare_side_get_view (self->sides[side]);
      guint8 *const *marks = c ? (self->numbers ? c->numbers : c->marks) : NULL;
      td_graph_view_set_marks (view, marks ? marks[side] : NULL,
                               c ? td_iteration_get_n_events (c->of[side]) : 0);
    }
  td_compare_list_set_compare (self->list, c, sessions, self->numbers);
  gtk_widget_set_visible (GTK_WIDGET (self->list), !by_layer);
}

static void
forget_shown (TdComparePage *self)
{
  td_graph_view_set_session (td_compare_side_get_view (self->sides[1 - self->mine]), NULL);
  if (self->shown)
    g_signal_handlers_disconnect_by_data (self->shown, self);
  g_clear_object (&self->shown);
}

static void
forget_compare (TdComparePage *self)
{
  TdCompare *old = g_steal_pointer (&self->compare); /* shown until all have let it go */
  td__compare_page_cancel (self);
  td__compare_page_forget_port (self);
  td_compare_snapshots_set (self->snapshots, NULL, NULL, NULL);
  td_compare_table_set_compare (self->table, NULL, NULL);
  td_compare_buffers_set_compare (self->buffers, NULL, NULL);
  show_marks (self);
  forget_shown (self);
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      td_compare_side_state (self->sides[side], NULL);
      g_clear_pointer (&self->of[side], td_iteration_unref);
    }
  g_clear_pointer (&old, td_compare_free);
}

static void
show_reason (TdComparePage *self, const char *reason)
{
  forget_compare (self);
  g_autofree char *escaped = g_markup_escape_text (reason, -1);
  g_free (self->reason);
  self->reason = g_strdup (reason);
  adw_status_page_set_description (self->empty, escaped);
  gtk_stack_set_visible_child_name (self->stack, "empty");
}

/* A reference runs no operations: how they differ and what they cost is no question. */
static void
show_found (TdComparePage *self)
{
  const TdCompare *c = self->compare;
  const gboolean by_layer = td__compare_page_has_reference (self);
  const gboolean known = by_layer ? !self->port_job : c != NULL;
  g_autofree char *sentence = by_layer ? td__compare_page_dup_sentence (self)
                              : c      ? td_diff_sentence (c->diff)
                                       : g_strdup ("Comparing…");
  g_autofree char *cost = c && !by_layer ? td_compare_cost (c) : g_strdup ("");
  g_autofree char *valid = g_utf8_make_valid (sentence, -1);
  gtk_label_set_text (self->sentence, valid);
  gtk_label_set_text (self->cost, cost);
  gtk_widget_set_visible (GTK_WIDGET (self->cost), *cost != '\0' || !by_layer);
  td_tip_set (GTK_WIDGET (self->sentence), valid);
  gtk_spinner_set_spinning (self->spinner, !known);
  gtk_widget_set_visible (GTK_WIDGET (self->spinner), !known);
}

/* What each side is, how they differ and what they cost, as far as that is known. */
static void
show_heads (TdComparePage *self)
{
  TdSession *sources[TD_N_SIDES];
  TdCompare *c = self->compare;
  sources[self->mine] = self->session;
  sources[1 - self->mine] = td__compare_page_source (self);
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      g_autofree char *title = g_strdup_printf ("Iteration %" G_GINT64_FORMAT,
                                                td_iteration_get_number (self->of[side]));
      td_compare_side_set_head (
          self->sides[side], title, td_session_get_name (sources[side]),
          c && !td_session_is_reference (sources[side]) ? &c->diff->totals[side] : NULL);
    }
  show_found (self);
}

static TdGraphView *
view_of (TdComparePage *self, TdSide side)
{
  return td_compare_side_get_view (self->sides[side]);
}

/* The window's iteration moves with the deck. */
static void
show_steps (TdComparePage *self)
{
  td_compare_side_set_steps (self->sides[self->mine], "win.previous-iteration",
                             "win.next-iteration");
  td_compare_side_set_steps (self->sides[1 - self->mine], "win.compare-previous",
                             "win.compare-next");
}

/* The window's picture goes to a side; the other one keeps to its places. */
static void
set_mine (TdComparePage *self, TdSide mine)
{
  if (self->mine == mine)
    return;
  td_graph_view_set_session (view_of (self, self->mine), NULL);
  self->mine = mine;
  td__compare_page_forget_names (self); /* their columns are the sides */
  td_graph_view_pair (view_of (self, mine), view_of (self, 1 - mine));
  td_graph_view_set_session (view_of (self, mine), self->session);
  show_steps (self);
}

/* The other picture is that of a session with one iteration: nothing else of its recording is
 * looked at here. */
static void
show_other (TdComparePage *self, TdIteration *iteration)
{
  TdIteration *one[] = { td_iteration_ref (iteration) };
  self->shown = td_session_new_for_iterations (one, 1);
  td__compare_page_follow_theirs (self);
  td_graph_view_set_session (view_of (self, 1 - self->mine), self->shown);
}

/* There is little room side by side: updates are on show when something about them differs. */
#define USUAL_LANES (TD_VIEW_FORWARD | TD_VIEW_BACKWARD)

static TdViewLanes
find_lanes (const TdCompare *c)
{
  TdViewLanes lanes = USUAL_LANES;
  for (guint i = 0; i < c->n_rows; i++)
    if (c->rows[i].phase == TD_TAPE_PHASE_UPDATE && c->rows[i].item >= 0
        && c->rows[i].mark != TD_MARK_NUMBERS)
      lanes = TD_VIEW_ALL;
  return lanes;
}

static void
show_kinds (TdComparePage *self)
{
  TdSession *sources[TD_N_SIDES];
  char *titles[TD_N_SIDES];
  sources[self->mine] = self->session;
  sources[1 - self->mine] = td__compare_page_source (self);
  for (int side = 0; side < TD_N_SIDES; side++)
    titles[side] = g_strdup_printf ("%s: %s, iteration %" G_GINT64_FORMAT, side ? "B" : "A",
                                    td_session_get_name (sources[side]),
                                    td_iteration_get_number (self->of[side]));
  g_autoptr (TdKinds) kinds
      = td_kinds_new (self->compare, td_session_get_reader (sources[TD_SIDE_A]),
                      td_session_get_reader (sources[TD_SIDE_B]));
  td_kinds_view_show (self->kinds, kinds, titles[TD_SIDE_A], titles[TD_SIDE_B]);
  for (int side = 0; side < TD_N_SIDES; side++)
    g_free (titles[side]);
}

/* Of what is on show. Owner: takes it. */
static void
take (TdComparePage *self, TdCompare *compare)
{
  TdSession *const sessions[] = { td__compare_page_session_of (self, TD_SIDE_A),
                                  td__compare_page_session_of (self, TD_SIDE_B) };
  self->compare = compare;
  td_compare_table_set_compare (self->table, compare, sessions);
  for (int side = 0; side < TD_N_SIDES; side++)
    td_graph_view_set_lanes (view_of (self, (TdSide)side), find_lanes (compare));
  show_marks (self);
  show_heads (self);
  show_kinds (self);
  td_compare_buffers_set_compare (self->buffers, compare, sessions);
  td__compare_page_follow_playhead (self);
  td__compare_page_show_selected (self);
  td__compare_page_open (self);
}

/* Both pictures are shown at once, how they differ as soon as it is known. */
static void
show_pair (TdComparePage *self, TdIteration *mine, TdIteration *theirs)
{
  forget_compare (self);
  set_mine (self,
            !self->other && td_iteration_get_number (theirs) < td_iteration_get_number (mine)
                ? TD_SIDE_B
                : TD_SIDE_A);
  self->of[self->mine] = td_iteration_ref (mine);
  self->of[1 - self->mine] = td_iteration_ref (theirs);
  g_clear_pointer (&self->reason, g_free);
  show_other (self, theirs);
  gtk_stack_set_visible_child_name (self->stack, "pictures");
  td__compare_page_run (self, self->of, take);
  td__compare_page_check_port (self);
  show_heads (self);
}

/* ---- memory snapshots ---- */

/* They have no graphs: which blocks are new, by what allocated them, is all that there is. */
static void
say_snapshots (TdComparePage *self)
{
  const TdMemoryCompare *c = td_compare_snapshots_get (self->snapshots);
  g_autofree char *sentence = c ? td_memory_compare_sentence (c) : g_strdup ("Comparing…");
  g_autofree char *names = g_strdup_printf (
      "A %s · B %s · %s", td_session_get_name (self->session),
      td_session_get_name (self->other),
      !c || c->by_stack ? "new is what B alone has, by the stack that allocated it"
                        : "new is what B alone has, by place: one has no stacks");
  g_autofree char *valid = g_utf8_make_valid (names, -1);
  gtk_label_set_text (self->sentence, sentence);
  gtk_label_set_text (self->cost, valid);
  gtk_widget_set_visible (GTK_WIDGET (self->cost), TRUE);
  td_tip_set (GTK_WIDGET (self->sentence), sentence);
  gtk_spinner_set_spinning (self->spinner, c == NULL);
  gtk_widget_set_visible (GTK_WIDGET (self->spinner), c == NULL);
}

static void
snapshots_found (GtkWidget *snapshots, TdComparePage *self)
{
  if (td_compare_snapshots_is_set (self->snapshots))
    say_snapshots (self);
}

static void
show_snapshots (TdComparePage *self, gboolean shown)
{
  gtk_widget_set_visible (self->paned, !shown);
  gtk_widget_set_visible (GTK_WIDGET (self->snapshots), shown);
}

static gboolean
is_snapshot (TdSession *session)
{
  return session && td_session_is_snapshot (session);
}

/* FALSE: neither side is one. Owner: takes nothing. */
static gboolean
compare_snapshots (TdComparePage *self, TdIteration *mine)
{
  g_autoptr (GError) error = NULL;
  if (!is_snapshot (self->session) && !is_snapshot (self->other))
    {
      show_snapshots (self, FALSE);
      return FALSE;
    }
  g_autoptr (TdIteration) theirs = is_snapshot (self->session) && is_snapshot (self->other)
                                       ? td__compare_page_find_other (self, mine, &error)
                                       : NULL;
  if (!theirs)
    {
      show_reason (self, error ? error->message
                         : self->other
                             ? _ ("A memory snapshot is compared with another one only.")
                             : _ ("Another snapshot beside this one shows which blocks "
                                  "are new in it, and which stacks allocated them."));
      return TRUE;
    }
  if (!td_compare_snapshots_is_set (self->snapshots))
    forget_compare (self);
  g_clear_pointer (&self->reason, g_free);
  show_snapshots (self, TRUE);
  gtk_stack_set_visible_child_name (self->stack, "pictures");
  td_compare_snapshots_set (self->snapshots, mine, theirs, self->session);
  say_snapshots (self);
  return TRUE;
}

static void
update (TdComparePage *self)
{
  if (!gtk_widget_get_mapped (GTK_WIDGET (self)))
    {
      self->dirty = TRUE;
      return;
    }
  self->dirty = FALSE;
  if (!self->session)
    return;
  if (!self->drawn)
    td_graph_view_set_session (view_of (self, self->mine), self->session);
  self->drawn = TRUE;
  g_autoptr (GError) error = NULL;
  g_autoptr (TdIteration) mine = td_session_get_current (self->session);
  if (mine && compare_snapshots (self, mine))
    return;
  g_autoptr (TdIteration) theirs
      = mine ? td__compare_page_find_other (self, mine, &error) : NULL;
  if (!mine || !theirs)
    show_reason (self, error ? error->message : _ ("Nothing was recorded yet."));
  else if (self->of[self->mine] != mine || self->of[1 - self->mine] != theirs)
    show_pair (self, mine, theirs);
  else
    td__compare_page_follow_playhead (self);
}

gboolean
td_compare_page_move_other (TdComparePage *self, int direction, GError **error)
{
  if (!self->session || !td__compare_page_move (self, direction, error))
    return FALSE;
  update (self);
  return TRUE;
}

gboolean
td_compare_page_compare_with (TdComparePage *self, const char *what, GError **error)
{
  if (!self->session || !td__compare_page_choose (self, what, error))
    return FALSE;
  /* between iterations of one run numbers move always */
  self->numbers = self->other != NULL;
  update (self);
  if (self->choice == TD_CHOICE_SCHEDULE || self->choice == TD_CHOICE_CODE)
    td_compare_page_show_view (self, "dynamic-static");
  else if (td__compare_page_has_reference (self))
    td_compare_page_show_view (self, "by-layer");
  return TRUE;
}

void
td_compare_page_set_session (TdComparePage *self, TdSession *session)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  forget_compare (self);
  g_clear_object (&self->other);
  td__compare_page_forget_names (self);
  self->choice = TD_CHOICE_PREVIOUS;
  self->numbers = FALSE;
  g_set_object (&self->session, session);
  td_graph_view_set_session (view_of (self, self->mine), NULL);
  self->drawn = FALSE;
  if (!session)
    return;
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (update), self);
  g_signal_connect_swapped (session, "iterations-changed", G_CALLBACK (update), self);
  td__compare_page_follow_mine (self);
  update (self);
}

void
td_compare_page_pick (TdComparePage *self)
{
  gtk_menu_button_popup (
      GTK_MENU_BUTTON (self->of[TD_SIDE_A] ? self->picker : self->empty_picker));
}

gboolean
td_compare_page_show_view (TdComparePage *self, const char *name)
{
  if (!gtk_stack_get_child_by_name (self->views, name))
    return FALSE;
  gtk_stack_set_visible_child_name (self->views, name);
  return TRUE;
}

/* ---- asking ---- */

const TdCompare *
td_compare_page_get (TdComparePage *self)
{
  return self->compare;
}

const char *
td_compare_page_get_reason (TdComparePage *self)
{
  return self->reason ? self->reason : "";
}

const char *
td_compare_page_get_sentence (TdComparePage *self)
{
  return gtk_label_get_text (self->sentence);
}

TdCompareSnapshots *
td_compare_page_get_snapshots (TdComparePage *self)
{
  return td_compare_snapshots_is_set (self->snapshots) ? self->snapshots : NULL;
}

gboolean
td_compare_page_step (TdComparePage *self, int direction)
{
  if (td_compare_snapshots_is_set (self->snapshots))
    return td_compare_snapshots_step (self->snapshots, direction);
  return td_compare_list_step (self->list, direction);
}

guint
td_compare_page_get_position (TdComparePage *self, guint *n)
{
  if (td_compare_snapshots_is_set (self->snapshots))
    {
      const TdMemoryCompare *c = td_compare_snapshots_get (self->snapshots);
      *n = c ? c->n : 0;
      return td_compare_snapshots_get_position (self->snapshots);
    }
  *n = td_compare_list_get_n (self->list);
  return td_compare_list_get_position (self->list);
}

gboolean
td_compare_page_get_numbers (TdComparePage *self)
{
  return self->numbers;
}

void
td_compare_page_set_numbers (TdComparePage *self, gboolean numbers)
{
  self->numbers = numbers;
  show_marks (self);
  if (self->compare)
    td__compare_page_show_selected (self);
}

void
td_compare_page_set_low (TdComparePage *self, gboolean low)
{
  self->low = low;
  show_halves (self);
}

void
td_compare_page_set_narrow (TdComparePage *self, gboolean narrow)
{
  if (narrow)
    gtk_widget_add_css_class (GTK_WIDGET (self->list), "td-narrow");
  else
    gtk_widget_remove_css_class (GTK_WIDGET (self->list), "td-narrow");
}

gboolean
td_compare_page_is_by_layer (TdComparePage *self)
{
  return td__compare_page_has_reference (self);
}

TdCompareSide *
td_compare_page_get_side (TdComparePage *self, TdSide side)
{
  return self->sides[side];
}

TdScene *
td_compare_page_get_buffers (TdComparePage *self, TdSide side)
{
  return td_compare_buffers_get_scene (self->buffers, side);
}

TdSide
td_compare_page_get_mine (TdComparePage *self)
{
  return self->mine;
}

TdSession *
td_compare_page_get_other (TdComparePage *self)
{
  return self->shown;
}

gboolean
td_compare_page_has_other_recording (TdComparePage *self)
{
  return self->other != NULL;
}

/* ---- building ---- */

static void
add_sides (TdComparePage *self)
{
  static const char *const letters[TD_N_SIDES] = { "A", "B" };
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      self->sides[side] = TD_COMPARE_SIDE (td_compare_side_new (letters[side]));
      td_graph_view_set_lanes (view_of (self, side), USUAL_LANES);
      gtk_box_append (self->pair, GTK_WIDGET (self->sides[side]));
    }
  td_graph_view_pair (td_compare_side_get_view (self->sides[TD_SIDE_A]),
                      td_compare_side_get_view (self->sides[TD_SIDE_B]));
}

static void
td_compare_page_map (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (td_compare_page_parent_class)->map (widget);
  if (TD_COMPARE_PAGE (widget)->dirty)
    update (TD_COMPARE_PAGE (widget));
}

static void
td_compare_page_dispose (GObject *object)
{
  TdComparePage *self = TD_COMPARE_PAGE (object);
  if (self->stack)
    td_compare_page_set_session (self, NULL);
  g_clear_pointer (&self->reason, g_free);
  G_OBJECT_CLASS (td_compare_page_parent_class)->dispose (object);
}

static void
td_compare_page_class_init (TdComparePageClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = td_compare_page_dispose;
  widget_class->map = td_compare_page_map;
  g_type_ensure (TD_TYPE_COMPARE_LIST);
  g_type_ensure (TD_TYPE_COMPARE_TABLE);
  g_type_ensure (TD_TYPE_COMPARE_BUFFERS);
  g_type_ensure (TD_TYPE_KINDS_VIEW);
  g_type_ensure (TD_TYPE_COMPARE_LAYERS);
  g_type_ensure (TD_TYPE_COMPARE_SNAPSHOTS);
  gtk_widget_class_set_template_from_resource (
      widget_class, "/io/github/tapedeck/Tapedeck/pages/td-compare-page.ui");
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, stack);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, body);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, head);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, sentence);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, cost);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, spinner);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, picker);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, empty_picker);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, empty);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, list);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, pair);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, lower);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, views);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, table);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, buffers);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, kinds);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, layers);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, upper);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, paned);
  gtk_widget_class_bind_template_child (widget_class, TdComparePage, snapshots);
  gtk_widget_class_bind_template_callback (widget_class, row_chosen);
  gtk_widget_class_bind_template_callback (widget_class, buffer_pressed);
  gtk_widget_class_bind_template_callback (widget_class, layer_chosen);
  gtk_widget_class_bind_template_callback (widget_class, layers_mapped);
  gtk_widget_class_bind_template_callback (widget_class, view_changed);
  gtk_widget_class_bind_template_callback (widget_class, snapshots_found);
  signals[ANNOUNCE] = g_signal_new ("announce", TD_TYPE_COMPARE_PAGE, G_SIGNAL_RUN_LAST, 0,
                                    NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
}

static void
td_compare_page_init (TdComparePage *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  self->port_known = show_found;
  TdCompareLimits *limits = td_compare_layers_get_limits (self->layers);
  g_signal_connect_object (limits, "changed", G_CALLBACK (limits_changed), self, 0);
  g_signal_connect_object (limits, "names", G_CALLBACK (names_asked), self, 0);
  add_sides (self);
  gtk_box_insert_child_after (self->body, td__compare_page_new_find (self), self->head);
  show_steps (self);
}

GtkWidget *
td_compare_page_new (void)
{
  return g_object_new (TD_TYPE_COMPARE_PAGE, NULL);
}
