/* The graph of one iteration. TdVizGraph has everything, unfolded, with its tree of groups
 * (link, scope, loop, step of a loop). TdVizView is what is visible under a fold state: nodes,
 * open groups, edges between them. Layout and scenes work on a view. Both are immutable and
 * reference-counted.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-iteration.h"

G_BEGIN_DECLS

typedef struct TdVizGraph TdVizGraph;

typedef enum
{
  TD_LANE_FORWARD,
  TD_LANE_BACKWARD,
  TD_LANE_UPDATE,
  TD_N_LANES,
} TdLane;

typedef enum
{
  TD_GROUP_ROOT,
  TD_GROUP_LINK,
  TD_GROUP_SCOPE,
  TD_GROUP_LOOP, /* ×n; its children are steps, or the repeated layers or operations
                    themselves; turns that differ from the others are among the n, and named */
  TD_GROUP_STEP,
  TD_GROUP_SECTION, /* of more operations than a picture has room for, in a row */
} TdGroupKind;

/** A group. Its three facets (one per lane) fold together and share its key; facet keys differ.
 */
typedef struct
{
  TdGroupKind kind;
  guint64 key;        /* hash of (scope path, instance, repeat range): for fold states */
  gint32 parent;      /* -1 for the root, which is group 0 */
  gint32 depth;       /* 0 for the root */
  const char *name;   /* "block2", "lstm ×35", "h0…h11 ×12, first differs" */
  guint32 odd_length; /* of what its end says about turns that differ */
  const char *detail; /* second line: "conv, relu, max_pool" or "6 ops" */
  const char *path;   /* "lenet/block2" */
  guint32 n_repeats;  /* of a loop, and of a call that is one; else 0 */
  guint32 n_ops[TD_N_LANES];
  guint64 saved_bytes; /* saved for backward by its forward operations */
  guint64 time_ns;     /* of all its operations, all lanes */
  guint64 lane_time_ns[TD_N_LANES];
} TdVizGroup;

/** Return the graph of an iteration, built at the first call (any thread). Owner: borrowed. */
TdVizGraph *td_iteration_get_graph (TdIteration *iteration);
/** Take and drop a reference to the iteration that owns the graph. */
TdVizGraph *td_viz_graph_ref (TdVizGraph *self);
void td_viz_graph_unref (TdVizGraph *self);

/** Return the iteration it was made from. Owner: borrowed. */
TdIteration *td_viz_graph_get_iteration (TdVizGraph *self);
const TdVizGroup *td_viz_graph_get_groups (TdVizGraph *self, guint *n);
/** Return the innermost group of an event. */
gint td_viz_graph_get_event_group (TdVizGraph *self, guint event);
TdLane td_viz_graph_get_event_lane (TdVizGraph *self, guint event);
/** Return the group with this key, or -1. */
gint td_viz_graph_find_group (TdVizGraph *self, guint64 key);
/** Return the bytes that a forward operation keeps for backward: values, each once. What is
 * there anyway, a parameter, is none of them, as in saved_bytes of its group. */
guint64 td_viz_graph_get_saved_bytes (const TdVizGraph *self, guint event);
/** List the events in a group and below, in one lane, in order of running. Owner: borrowed. */
const gint32 *td_viz_graph_get_members (TdVizGraph *self, guint group, TdLane lane, guint *n);
/** Count how many of them have run once `event` has. */
guint td_viz_graph_count_run (TdVizGraph *self, guint group, TdLane lane, gint event);

/* ---- folding ---- */

/** The set of expanded groups, by key; may hold keys of groups that this iteration has not. */
typedef struct TdFold TdFold;
/** Make the default state: expanded until about `max_visible` (0: 40) nodes would be visible,
 * level by level, so that small graphs open whole. Owner: the caller. */
TdFold *td_fold_new_default (TdVizGraph *graph, guint max_visible);
/** The same, but what hides `event` comes first; -1: nothing does. */
TdFold *td_fold_new_near (TdVizGraph *graph, guint max_visible, gint event);
/** Expand every group down to this depth; 0 only the root's children are seen, -1 everything.
 */
TdFold *td_fold_new_depth (TdVizGraph *graph, gint depth);
void td_fold_free (TdFold *self);
gboolean td_fold_is_expanded (const TdFold *self, guint64 group_key);
/** Say whether the same groups are expanded. */
gboolean td_fold_equal (const TdFold *self, const TdFold *other);
void td_fold_set_expanded (TdFold *self, guint64 group_key, gboolean expanded);
/** Expand whatever hides this event. Return TRUE if that changed anything. */
gboolean td_fold_reveal (TdFold *self, TdVizGraph *graph, guint event);

/* ---- what is visible ---- */

typedef enum
{
  TD_VIZ_OP,    /* one event */
  TD_VIZ_GROUP, /* a folded group's facet in one lane */
  TD_VIZ_STUB,  /* a parameter: one small copy for each user */
  TD_VIZ_INPUT, /* data from outside: x, t */
} TdVizNodeKind;

typedef struct
{
  TdVizNodeKind kind;
  TdLane lane;
  guint64 key;        /* of the event, of the group's facet, or of (variable, user) */
  guint64 select_key; /* what a click selects: event, group or variable key */
  gint32 event;       /* OP: the event; GROUP: its first; STUB, INPUT: the first reader */
  gint32 last_event;  /* GROUP: its last; else == event */
  gint32 group;       /* GROUP: the group it shows; else -1 */
  gint32 parent;      /* open group around it (index into `groups` of the view) */
  gint32 var;         /* STUB, INPUT: the variable; OP: its first output; -1 if none */
  gint32 user;        /* STUB, INPUT: the node it stands beside; -1: it stands by itself */
  gint32 twin;        /* visible forward node in whose row this one stands; -1 if none */
  guint32 n_hidden;   /* STUB: how many more parameters it stands for ("× 3") */
  guint32 n_fused;    /* OP: how many operations a schedule made one of, joined by + in the
                         label; 0: it is one */
  const char *label;  /* "convolution_2d", "block1", "W" */
  const char *detail; /* second line, or NULL */
  guint64 bytes; /* of the outputs (OP), saved for backward (GROUP), of the variable (STUB) */
  guint64 time_ns;
  gboolean failed;
} TdVizNode;

/** An open group, with one box per lane that it has members in. */
typedef struct
{
  gint32 group;  /* index into the graph's groups; the first open group is the root */
  gint32 parent; /* index into the view's groups, -1 for the root */
  guint64 facet_keys[TD_N_LANES];
} TdVizOpenGroup;

typedef enum
{
  TD_EDGE_DATA,  /* forward data, or gradient flowing in backward */
  TD_EDGE_SAVED, /* kept by the forward for the backward: dotted, with bytes, no say in the
                    layout */
  TD_EDGE_STUB,  /* parameter or input to its user */
  TD_EDGE_GRAD,  /* gradient into update */
} TdVizEdgeKind;

typedef struct
{
  TdVizEdgeKind kind;
  gint32 from, to;   /* nodes, in the direction in which the data go */
  gint32 var;        /* the first variable it carries, -1 */
  guint32 n_vars;    /* how many were merged into it */
  guint64 bytes;     /* of all of them */
  gint32 event;      /* first event that reads it */
  const char *label; /* "y (64, 6, 14, 14)" where it crosses a group's border, else NULL */
} TdVizEdge;

typedef struct
{
  TdVizGraph *graph; /* owned */
  guint n_nodes, n_groups, n_edges;
  TdVizNode *nodes; /* forward lane first, in order of running; then backward, update, stubs */
  TdVizOpenGroup *groups; /* parents first */
  TdVizEdge *edges;
  gboolean has_lane[TD_N_LANES];
  guint64 content_hash; /* of structure and keys: equal hash, equal layout */
  /*< private >*/
  gint ref_count;
  GStringChunk *strings;
  GHashTable *by_key;
  gint32 *node_of_event;
} TdVizView;

typedef enum
{
  TD_VIEW_FORWARD = 1 << TD_LANE_FORWARD,
  TD_VIEW_BACKWARD = 1 << TD_LANE_BACKWARD,
  TD_VIEW_UPDATE = 1 << TD_LANE_UPDATE,
  TD_VIEW_ALL = 7,
} TdViewLanes;

/** Apply a fold state. Owner: the caller, td_viz_view_unref(). */
TdVizView *td_viz_view_new (TdVizGraph *graph, const TdFold *fold, TdViewLanes lanes);
TdVizView *td_viz_view_ref (TdVizView *self);
void td_viz_view_unref (TdVizView *self);
/** Return the node with this key (node key or select key), or -1. */
gint td_viz_view_find (const TdVizView *self, guint64 key);
/** Return the node that shows this event: itself or the folded group around it; -1 if its lane
 * is hidden. */
gint td_viz_view_find_event (const TdVizView *self, guint event);
/** Print the view as text, for golden tests and people. Owner: the caller, g_free(). */
char *td_viz_view_to_text (const TdVizView *self);

/* ---- questions ---- */

/** Find events whose operation, layer, name or site contains the text, without regard to case;
 * by "(64, 6" or "float32" those with such an output.
 * Owner: the caller, g_array_unref(); of gint32 events. */
GArray *td_viz_graph_find_text (TdVizGraph *self, const char *text);

/** Mark the events that these keys stand for: of an event itself, of a variable what made it,
 * of a group all its events. NULL: none. Owner: the caller, g_free(); one byte per event. */
guint8 *td_viz_graph_mark_events (TdVizGraph *self, const guint64 *keys, guint n);

/* ---- DOT ---- */

/** Write the forward graph as Chainer's computational_graph does: variables and functions, its
 * labels and attributes (CHAINER.md 3.15), but escaped and in a fixed order. Owner: the caller,
 * g_free(). */
char *td_viz_graph_to_dot (TdVizGraph *self);
/** Write the visible graph with clusters, twins, saved edges, bytes and times. */
char *td_viz_view_to_dot (const TdVizView *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdVizGraph, td_viz_graph_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdVizView, td_viz_view_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdFold, td_fold_free)

G_END_DECLS
