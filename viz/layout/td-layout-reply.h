/* What the layout helper answers, read with distrust: it may have been killed in mid-line, or
 * be another program altogether.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

#define TD_REPLY_MAX_POINTS 4000000 /* of all edges of one graph */

typedef struct
{
  guint n_nodes, n_edges;
  double *x, *y;        /* per node */
  guint32 *first_point; /* per edge, n_edges + 1: into points */
  double *points;       /* x, y; x, y; ... */
} TdLayoutReply;

/** Parse an answer for a graph of that size. Errors: NULL, `what` (of `n_what` bytes) set to
 * one line. Owner: the caller, td__layout_reply_unref(). */
TdLayoutReply *td__layout_reply_parse (const char *text, gsize n_text, guint n_nodes,
                                       guint n_edges, char *what, gsize n_what);
TdLayoutReply *td__layout_reply_ref (TdLayoutReply *self);
void td__layout_reply_unref (TdLayoutReply *self);

/** Say whether `text` holds a whole answer, so that reading can stop. */
gboolean td__layout_reply_is_whole (const char *text, gsize n_text);
/** Where edge `edge` crosses height `y`: between its control points. `fallback` if it does not.
 */
double td__layout_reply_pass (const TdLayoutReply *self, guint edge, double y, double fallback);
