/* The tree behind the outline: layers and operations of one iteration, rows made on demand.
 * An operation's own children are what goes in and what comes out, so that the whole graph can
 * be walked in the list.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-session.h"
#include "graph/td-graph.h"

#define TD_TYPE_OUTLINE_MODEL (td_outline_model_get_type ())
G_DECLARE_FINAL_TYPE (TdOutlineModel, td_outline_model, TD, OUTLINE_MODEL, GObject)

#define TD_TYPE_OUTLINE_ROW (td_outline_row_get_type ())
G_DECLARE_FINAL_TYPE (TdOutlineRow, td_outline_row, TD, OUTLINE_ROW, GObject)

typedef enum
{
  TD_OUTLINE_GROUP,
  TD_OUTLINE_EVENT,
  TD_OUTLINE_SPAN, /* some of very many that are not in layers of their own */
  TD_OUTLINE_IN,
  TD_OUTLINE_OUT
} TdOutlineKind;

/** Create the tree of `iteration`. Owner: caller. */
TdOutlineModel *td_outline_model_new (TdIteration *iteration);

/** Show the same structure with the numbers of another iteration. Return FALSE if its structure
 *  differs; then nothing was changed. */
gboolean td_outline_model_update (TdOutlineModel *self, TdIteration *iteration);

TdIteration *td_outline_model_get_iteration (TdOutlineModel *self);

/** Return the rows at the top. Owner: caller. */
GListModel *td_outline_model_get_roots (TdOutlineModel *self);

/** Return the rows below `row`, NULL when there are none. Owner: caller. */
GListModel *td_outline_row_get_children (TdOutlineRow *row);

TdOutlineKind td_outline_row_get_kind (TdOutlineRow *row);
/** Return the key that a click on the row selects. */
guint64 td_outline_row_get_key (TdOutlineRow *row);
/** Return the event of an operation's row, the first one of a layer; -1 if there is none. */
gint td_outline_row_get_event (TdOutlineRow *row);
/** Return the last event of a layer's row; the event itself of an operation's. */
gint td_outline_row_get_last_event (TdOutlineRow *row);
/** Write the columns of the row. Owner: caller. */
char *td_outline_row_dup_name (TdOutlineRow *row);
char *td_outline_row_dup_bytes (TdOutlineRow *row);
char *td_outline_row_dup_time (TdOutlineRow *row);

/** Return positions, level by level, of the row that shows `event`. Owner: caller, of guint. */
GArray *td_outline_model_find_event (TdOutlineModel *self, gint event);
/** The same for a group. */
GArray *td_outline_model_find_group (TdOutlineModel *self, gint group);
