/* What is selected, hovered or at the playhead on one side of the compare page is so on the
 * other, by way of the comparison.
 * SPDX-License-Identifier: MIT */
#include "pages/td-compare-page-private.h"

#include <glib/gi18n-lib.h>

#include "tape/td-navigate.h"

static guint64
key_of (TdIteration *iteration, gint event)
{
  return event >= 0 ? td_iteration_get_tape (iteration)->events[event].key : 0;
}

TdSession *
td__compare_page_session_of (TdComparePage *self, TdSide side)
{
  return side == self->mine ? self->session : self->shown;
}

/* State on a side that it has nothing for an event of the other one. */
static void
state_missing (TdComparePage *self, TdSide side, gint event)
{
  g_autofree char *text = NULL;
  if (event >= 0)
    {
      TdIteration *other = self->compare->of[1 - side];
      g_autofree char *op
          = g_utf8_make_valid (td_iteration_get_op_name (other, (guint)event), -1);
      text = g_strdup_printf (_ ("No counterpart of %s, event %d"), op, event);
    }
  td_compare_side_state (self->sides[side], text);
}

static void
show_row (TdComparePage *self, gint row)
{
  const gint none[TD_N_SIDES] = { -1, -1 };
  const gint *event = row >= 0 ? self->compare->rows[row].event : none;
  for (int side = 0; side < TD_N_SIDES; side++)
    state_missing (self, (TdSide)side, row >= 0 && event[side] < 0 ? event[1 - side] : -1);
  td_compare_list_select (self->list, row);
  td_compare_table_select (self->table, row);
  td_compare_buffers_invalidate (self->buffers);
}

/* The counterpart of a variable: the same output of the counterpart of what made it; what comes
 * from outside (parameters, inputs) has the same key. */
static guint64
find_variable (TdComparePage *self, TdSide side, guint var)
{
  const TdTapeIteration *here = td_iteration_get_tape (self->compare->of[side]),
                        *there = td_iteration_get_tape (self->compare->of[1 - side]);
  gint producer = here->vars[var].producer;
  if (producer < 0)
    return td_iteration_find_var (self->compare->of[1 - side], here->vars[var].key) >= 0
               ? here->vars[var].key
               : 0;
  gint event = td_compare_counterpart (self->compare, side, producer);
  const TdTapeEvent *made = &here->events[producer];
  for (guint k = 0; event >= 0 && k < MIN (made->n_out, there->events[event].n_out); k++)
    if (here->outs[made->first_out + k] == var)
      return there->vars[there->outs[there->events[event].first_out + k]].key;
  return 0;
}

/* What an operation, variable or layer (0: nothing) of one side is on the other, and its row; 0
 * and -1: there is none. */
static guint64
find_counterpart (TdComparePage *self, TdSide side, guint64 key, gint *row)
{
  const TdCompare *c = self->compare;
  gint event = key ? td_iteration_find_event (c->of[side], key) : -1;
  gint var = key && event < 0 ? td_iteration_find_var (c->of[side], key) : -1;
  *row = event >= 0 ? td_compare_find_row (c, side, event) : -1;
  if (*row >= 0)
    return key_of (c->of[1 - side], c->rows[*row].event[1 - side]);
  if (var >= 0)
    {
      *row = td_compare_find_row (c, side,
                                  td_iteration_get_tape (c->of[side])->vars[var].producer);
      return find_variable (self, side, (guint)var);
    }
  return key ? td_graph_view_get_peer_key (td_compare_side_get_view (self->sides[side]), key)
             : 0;
}

/* What is selected on one side becomes selected on the other. */
static void
follow_selection (TdComparePage *self, TdSide side)
{
  TdSession *from = td__compare_page_session_of (self, side),
            *to = td__compare_page_session_of (self, 1 - side);
  guint n;
  gint row;
  const guint64 *keys = td_session_get_selection (from, &n);
  if (self->syncing || !self->compare || !to)
    return;
  guint64 key = find_counterpart (self, side, n ? keys[0] : 0, &row);
  self->syncing = TRUE;
  td_session_select (to, key);
  show_row (self, row);
  self->syncing = FALSE;
}

/* What is hovered on one side is so on the other. */
static void
follow_hover (TdComparePage *self, TdSide side)
{
  TdSession *from = td__compare_page_session_of (self, side),
            *to = td__compare_page_session_of (self, 1 - side);
  gint row;
  if (self->syncing || !self->compare || !to)
    return;
  self->syncing = TRUE;
  td_session_set_hover (to, find_counterpart (self, side, td_session_get_hover (from), &row));
  self->syncing = FALSE;
}

static void
mine_selected (TdComparePage *self)
{
  follow_selection (self, self->mine);
}

static void
theirs_selected (TdComparePage *self)
{
  follow_selection (self, 1 - self->mine);
}

static void
mine_hovered (TdComparePage *self)
{
  follow_hover (self, self->mine);
}

static void
theirs_hovered (TdComparePage *self)
{
  follow_hover (self, 1 - self->mine);
}

static void
announce (TdComparePage *self, guint row)
{
  g_autofree char *name = td_compare_row_name (self->compare, row),
                  *events = td_compare_row_events (self->compare, row);
  g_autofree char *text = g_strdup_printf (
      _ ("Difference %u of %u: %s, %s, %s"), td_compare_list_get_position (self->list),
      td_compare_list_get_n (self->list), td_mark_looks[self->compare->rows[row].mark].name,
      name, events);
  g_signal_emit_by_name (self, "announce", text);
}

/* What stands side by side where a row is shown: what both have of it, else what both have last
 * before it. */
static void
find_beside (const TdCompare *c, gint row, gint beside[TD_N_SIDES])
{
  while (row >= 0 && (c->rows[row].event[TD_SIDE_A] < 0 || c->rows[row].event[TD_SIDE_B] < 0))
    row--;
  for (int side = 0; side < TD_N_SIDES; side++)
    beside[side] = row >= 0 ? c->rows[row].event[side] : -1;
}

void
td__compare_page_open (TdComparePage *self)
{
  const TdCompare *c = self->compare;
  const gint first = td_compare_list_get_first (self->list);
  gint event[TD_N_SIDES], beside[TD_N_SIDES];
  find_beside (c, first, beside);
  for (int side = 0; side < TD_N_SIDES; side++)
    event[side] = first >= 0 ? c->rows[first].event[side] : td_navigate_loss (c->of[side]);
  td_graph_view_open_at (td_compare_side_get_view (self->sides[TD_SIDE_A]), event[TD_SIDE_A],
                         event[TD_SIDE_B], beside[TD_SIDE_A], beside[TD_SIDE_B]);
}

/* Both sides have one of these selected, and show it; the row -1: it is none. */
static void
select_events (TdComparePage *self, const gint event[TD_N_SIDES], gint row)
{
  TdGraphView *view = td_compare_side_get_view (self->sides[TD_SIDE_A]);
  gint beside[TD_N_SIDES];
  self->syncing = TRUE;
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      td_graph_view_reveal (td_compare_side_get_view (self->sides[side]), event[side]);
      td_session_select (td__compare_page_session_of (self, (TdSide)side),
                         key_of (self->of[side], event[side]));
    }
  self->syncing = FALSE;
  if (row >= 0)
    {
      find_beside (self->compare, row, beside);
      td_graph_view_align (view, event[TD_SIDE_A], event[TD_SIDE_B], beside[TD_SIDE_A],
                           beside[TD_SIDE_B]);
    }
  td_graph_view_show_events (view, event[TD_SIDE_A], event[TD_SIDE_B]);
}

/* Somebody chose a row: both sides select what they have of it and show it. */
void
td__compare_page_show_row (TdComparePage *self, guint row)
{
  const TdCompare *c = self->compare;
  if (!c || row >= c->n_rows)
    return;
  select_events (self, c->rows[row].event, (gint)row);
  self->syncing = TRUE;
  show_row (self, (gint)row);
  self->syncing = FALSE;
  announce (self, row);
}

void
td__compare_page_show_events (TdComparePage *self, const gint event[TD_N_SIDES])
{
  gint row = -1;
  select_events (self, event, -1);
  for (int side = 0; side < TD_N_SIDES && self->compare && row < 0; side++)
    row = event[side] >= 0 ? td_compare_find_row (self->compare, (TdSide)side, event[side])
                           : -1;
  for (int side = 0; side < TD_N_SIDES; side++)
    td_compare_side_state (self->sides[side], NULL);
  self->syncing = TRUE;
  td_compare_list_select (self->list, row);
  td_compare_table_select (self->table, row);
  td_compare_buffers_invalidate (self->buffers);
  self->syncing = FALSE;
}

/* The other playhead is the counterpart of the window's. */
void
td__compare_page_follow_playhead (TdComparePage *self)
{
  TdMoment moment = td_session_get_moment (self->session);
  if (!self->compare || !self->shown || self->syncing)
    return;
  self->syncing = TRUE;
  td_session_set_moment (self->shown,
                         td_iteration_get_number (self->compare->of[1 - self->mine]),
                         td_compare_counterpart (self->compare, self->mine, moment.event));
  self->syncing = FALSE;
  td_compare_buffers_invalidate (self->buffers);
}

static void
theirs_moved (TdComparePage *self)
{
  TdMoment there = td_session_get_moment (self->shown);
  gint event = td_compare_counterpart (self->compare, 1 - self->mine, there.event);
  if (self->syncing || event < 0)
    return;
  self->syncing = TRUE;
  td_session_set_moment (self->session, td_session_get_moment (self->session).iteration, event);
  self->syncing = FALSE;
}

void
td__compare_page_follow_mine (TdComparePage *self)
{
  g_signal_connect_swapped (self->session, "selection-changed", G_CALLBACK (mine_selected),
                            self);
  g_signal_connect_swapped (self->session, "hover-changed", G_CALLBACK (mine_hovered), self);
}

void
td__compare_page_follow_theirs (TdComparePage *self)
{
  g_signal_connect_swapped (self->shown, "selection-changed", G_CALLBACK (theirs_selected),
                            self);
  g_signal_connect_swapped (self->shown, "hover-changed", G_CALLBACK (theirs_hovered), self);
  g_signal_connect_swapped (self->shown, "moment-changed", G_CALLBACK (theirs_moved), self);
}

void
td__compare_page_show_selected (TdComparePage *self)
{
  mine_selected (self);
}
