/* The combinatorial half of a layered layout: things of one box put into ranks and, within a
 * rank, in order; edges that pass a rank get a slot there. No coordinates, no lanes' widths, no
 * view.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

/** An edge between things of a box, pointing down the ranks. -1: it enters from above, or
 * leaves below. Edges with the same source share their way: a trunk. */
typedef struct
{
  gint32 from, to;
  guint8 lane;
  gint32 source; /* any number that names where the data come from */
  gint32 trunk;  /* out: index into trunks */
} TdLayerEdge;

/** The common way of all edges of one source through a box: one slot in each of the ranks
 * lo ... hi (none if lo > hi). */
typedef struct
{
  gint32 source;
  gint32 lo, hi;
  guint32 first_slot; /* slot of rank r is first_slot + (r - lo) */
  guint8 lane;
} TdTrunk;

typedef struct
{
  guint n_things, n_slots, n_ranks, n_trunks, n_links;
  gint32 *rank;      /* per slot; slots below n_things are the things */
  guint8 *slot_lane; /* per passing slot (index - n_things) */
  TdTrunk *trunks;
  guint32 *rank_first; /* n_ranks + 1, into order */
  guint32 *order;      /* slots, rank after rank, as they stand side by side */
  /* links between slots of neighbouring ranks, as lists per slot */
  guint32 *up_first, *down_first; /* n_slots + 1 */
  guint32 *up, *down;
  guint8 *up_lane, *down_lane;
} TdLayering;

/** Rank, add passing slots, order: in time linear in the result. Things are numbered so that
 * every edge goes from a lower to a higher number. Owner: the caller, td__layering_free(). */
TdLayering *td__layering_new (guint n_things, TdLayerEdge *edges, guint n_edges);
/** The same from ranks and positions that someone else found. `across` is per thing;
 * `pass` (may be NULL) says where an edge passes a rank. */
typedef double (*TdPassFunc) (gpointer data, guint edge, gint rank);
TdLayering *td__layering_new_from (guint n_things, TdLayerEdge *edges, guint n_edges,
                                   const gint32 *ranks, const double *across, TdPassFunc pass,
                                   gpointer data);
void td__layering_free (TdLayering *self);
/** Count crossings of links, for tests and for choosing among orders. */
guint64 td__layering_count_crossings (const TdLayering *self);
