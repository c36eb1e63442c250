/* What the files of viz/graph share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "graph/td-graph.h"

/* Deeper nesting than this is shown flat: no screen and no reader has use for it. */
#define TD_MAX_GROUP_DEPTH 64

struct TdVizGraph
{
  TdIteration *iteration;   /* which owns this graph */
  GArray *groups;           /* TdVizGroup; parents first, in order of running */
  gint32 *event_group;      /* innermost, per event */
  GArray **members;         /* gint32 events, per group and lane: [group * TD_N_LANES + lane] */
  guint32 *saved_first;     /* per event (n_events + 1): into saved */
  GArray *saved;            /* gint32 variables that forward events keep for backward */
  gint32 *parameter_of;     /* per variable: the parameter it is the gradient of, -1 */
  GHashTable *group_by_key; /* guint64 * in the groups -> index + 1 */
  GStringChunk *strings;
};

/** Make the tree of groups from the calls and loops of the forward pass: fills groups (kind,
 * key, parent, depth, name, path, n_repeats) and event_group of forward events. */
void td__graph_build_groups (TdVizGraph *self);

/** Put the updates of a group that has many of them into a box for each layer. */
void td__graph_fold_updates (TdVizGraph *self);

/** Return the innermost group that both are in. */
gint td__graph_common_group (const TdVizGraph *self, gint a, gint b);

/** List the variables that forward event `event` keeps for its backward, parameters left out.
 */
const gint32 *td__graph_get_saved (const TdVizGraph *self, guint event, guint *n);

static inline const TdVizGroup *
td__graph_group (const TdVizGraph *self, gint group)
{
  return &g_array_index (self->groups, TdVizGroup, group);
}
