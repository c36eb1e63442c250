/* What the steps of a layout share. A *box* is an open group; a *unit* is what stands in one
 * row of a box: a forward node with its backward twins, or a whole box. Inside the engine
 * positions are `along` the ranks and `across` them; only the last step knows x and y.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "layout/td-layering.h"
#include "layout/td-layout.h"

/* Measures, in points. */
#define TD_NODE_WIDTH 172
#define TD_NODE_HEIGHT 34
#define TD_NODE_HEIGHT_2 44 /* with a second line */
#define TD_FUSED_LINE 20    /* each further operation of a fused node */
#define TD_FUSED_LINES 6    /* at most */
#define TD_TWIN_WIDTH 80    /* three or more twins side by side */
#define TD_TWIN_GAP 8
#define TD_STUB_WIDTH 28
#define TD_STUB_HEIGHT 20
#define TD_INPUT_WIDTH 124
#define TD_INPUT_HEIGHT 22
#define TD_ACROSS_GAP 16
#define TD_RANK_GAP 24
#define TD_PASS_WIDTH 6 /* half of what a passing edge takes */
#define TD_INSET 8
#define TD_GROUP_HEADER 30
#define TD_LANE_HEADER 30
#define TD_LANE_PAD 12
#define TD_SAVED_GAP 94 /* between forward and backward */
#define TD_LANE_GAP 26
#define TD_PILL_WIDTH 52
#define TD_PILL_HEIGHT 18
#define TD_MAX_TRACKS 4

/* How far something reaches from its anchor, across: itself, and with what hangs beside it. */
typedef struct
{
  float left, right;           /* everything */
  float body_left, body_right; /* what a box is drawn around */
} TdReach;

typedef struct
{
  gint32 node;                /* the leader; -1 for a box */
  gint32 child;               /* the box; -1 for a node */
  gint32 box;                 /* the box it stands in */
  gint32 first_twin, n_twins; /* backward nodes in its row: into twins */
  gint64 base, sub;           /* order: everything flows from lower to higher */
  gint32 local;               /* index within its box, by that order */
  double length;              /* along */
  gboolean in_lane[2];
  TdReach reach[2]; /* forward and backward */
  double along;     /* centre (node) or start (box), within its box */
  double across[2]; /* anchor, within its box's lane */
} TdUnit;

typedef struct
{
  gint32 parent; /* -1 for the root */
  gint32 unit;   /* which stands for it in the parent; -1 for the root */
  gint32 depth;
  gint32 first_unit, n_units;     /* into sorted_units: by order */
  gint32 first_rec, n_recs;       /* into recs */
  gint32 first_update, n_updates; /* into updates: nodes of the update lane */
  TdLayering *layering;
  double length; /* of the content, along, without header and inset */
  gboolean in_lane[TD_N_LANES];
  TdReach reach[TD_N_LANES];        /* with insets; around the content's own zero */
  double along, across[TD_N_LANES]; /* absolute, of the content's zero */
  double *rank_start, *rank_length; /* per rank, within the content */
  double *slot_across;              /* per slot of the layering */
} TdBox;

/* The part of an edge's way that lies in one box. */
typedef struct
{
  gint32 box;
  gint32 from, to; /* units, pointing down; -1: outside */
  gint32 edge;     /* of the view */
  gint32 trunk;
} TdRec;

typedef struct
{
  TdVizView *view;
  TdOrientation orientation;
  gboolean tb;
  TdUnit *units;
  guint n_units;
  gint32 *sorted_units;
  gint32 *twins;              /* view nodes */
  gint32 *unit_of;            /* per view node; -1: none */
  gint32 *stub_first, *stubs; /* per view node: its stubs */
  gint32 *updates;
  double *width, *height; /* per view node, on screen */
  guint8 *from_right;     /* per backward node: how many stand to its right in its row */
  double *cell_along, *cell_across; /* per backward node: centre, from its unit's; updates:
                                     * within the box */
  TdBox *boxes;
  guint n_boxes;
  TdRec *recs; /* in order of edges; by box through box_recs */
  guint n_recs;
  gint32 *box_recs;
  guint32
      *edge_first_rec; /* per edge, n_edges + 1: inner source ... common box ... inner target */
  double stub_gap;
  gboolean all_by_graphviz;
} TdLayoutBuild;

/** Find who orders the things of a box: NULL to have it done here. */
typedef TdLayering *(*TdLayeringFunc) (gpointer data, TdLayoutBuild *build, gint box,
                                       TdLayerEdge *edges, guint n_edges);

/** Make boxes, units and the parts of edges. */
void td__layout_collect (TdLayoutBuild *b);
void td__layout_build_clear (TdLayoutBuild *b);
/** Size the units and boxes from the inside out, with `func` for the order. */
void td__layout_measure (TdLayoutBuild *b, TdLayeringFunc func, gpointer data);
/** Write rectangles, then routes, of the finished layout. */
void td__layout_place (TdLayoutBuild *b, TdLayout *layout);
void td__layout_route (TdLayoutBuild *b, TdLayout *layout);
/** Compute the across positions of the slots of one lane: near their neighbours, never closer
 * than their reaches and `gap`. */
void td__layout_align (const TdLayering *layering, guint lane, const guint8 *in_lane,
                       const double *left, const double *right, double gap, double *across);
/** Make chains straight: tie slots that follow one another, without crossing, into columns, and
 * give each column one position near those of its members. */
void td__layout_make_columns (const TdLayering *layering, guint lane, const guint8 *in_lane,
                              const double *left, const double *right, double gap,
                              double *across);
/** Move what `old`, another iteration's picture, has as well to where it is there. */
void td__layout_keep (TdLayout *self, const TdLayout *old);

/** Run every step. Owner: the caller. */
TdLayout *td__layout_run (TdVizView *view, const TdLayoutOptions *options, TdLayout *previous,
                          TdLayeringFunc func, gpointer data);

/** How much a box adds around its content. */
double td__layout_pad_along (const TdLayoutBuild *b);
double td__layout_pad_across (const TdLayoutBuild *b);
