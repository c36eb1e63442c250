/*
 * Buffers over the steps of an iteration: when each lives, and where. A recording gives the
 * measured one, by addresses; a static schedule's plan fills the same bars with its offsets.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-panel.h"

G_BEGIN_DECLS

typedef struct
{
  guint from, to; /* alive during the steps [from, to) */
  guint64 offset, bytes;
  guint category;    /* TdTapeCategory */
  guint64 key;       /* of the variable; 0: unknown */
  guint64 event_key; /* of what made it; 0: unknown */
  gint event;        /* that made it; -1: none of this iteration */
  const char *name;  /* "" unknown; owned by the gantt */
} TdGanttBar;

typedef struct
{
  guint n_steps; /* events, and one step after the last */
  guint n_bars;
  TdGanttBar *bars;   /* in order of beginning */
  guint64 extent;     /* where the highest one ends */
  guint64 most_alive; /* highest sum at one step: no plan needs less */
  guint most_alive_step;
  guint64 planned_bytes;    /* of the arena; 0: nothing was planned */
  guint64 bytes_throughout; /* of buffers that live before, during and after: not drawn */
  guint n_throughout;
  gint first_backward; /* step; -1: none */
} TdGantt;

/** Recount an iteration's allocations. Addresses that lie far apart are moved together. Owner:
 * the caller. */
TdGantt *td_gantt_new (TdIteration *iteration);
/** Make one of planned bars, in any order; names are copied. Owner: the caller. */
TdGantt *td_gantt_new_planned (guint n_steps, const TdGanttBar *bars, guint n_bars,
                               guint64 planned_bytes, gint first_backward);
void td_gantt_free (TdGantt *gantt);

/** Draw bytes (or offsets) up by steps to the right. `extent` (0: its own) is the top of the
 * axis, so that two can be looked at side by side. */
TdScene *td_gantt_scene (const TdGantt *gantt, guint64 extent, const TdPanelView *view);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdGantt, td_gantt_free)

G_END_DECLS
