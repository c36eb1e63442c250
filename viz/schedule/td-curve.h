/*
 * Curves of reported values over iterations, kept as pyramids of minima and maxima: drawing
 * costs as many steps as the picture has pixels, however long the run was.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-panel.h"

G_BEGIN_DECLS

typedef struct _TdCurves TdCurves;

/** Make an empty set. Owner: the caller. */
TdCurves *td_curves_new (void);
void td_curves_free (TdCurves *curves);
/** Take in what the tape reported since the last call; returns whether anything was new. */
gboolean td_curves_update (TdCurves *curves, TdTapeReader *reader);
/** The same, and have the reader forget them: for a tape that grows for ever. */
void td_curves_take (TdCurves *curves, TdTapeReader *reader);
/** Fold curves that get longer than `limit` entries (0, as at first: never): an entry then
 * stands for 2, 4, 8 ... values, of which the extent is kept. */
void td_curves_set_limit (TdCurves *curves, guint limit);
/** Append one value by hand. */
void td_curves_append (TdCurves *curves, const char *key, gint64 iteration, double value);

guint td_curves_n (const TdCurves *curves);
const char *td_curves_key (const TdCurves *curves, guint curve);
/** Count the entries of a curve: its values, as long as it was not folded. */
guint td_curves_length (const TdCurves *curves, guint curve);
/** Return an entry: of a folded one its first iteration and the middle of its extent. */
void td_curves_get (const TdCurves *curves, guint curve, guint i, gint64 *iteration,
                    double *value);
/** Find a curve by its key; -1: there is none. */
int td_curves_find (const TdCurves *curves, const char *key);
/** Return how far training is, as its progress bar reports it (0 to 1); -1: nobody said. */
double td_curves_progress (const TdCurves *curves);
/** Return the curve that the deck shows: "loss", else the first one that is no progress; -1:
 * none. */
int td_curves_main (const TdCurves *curves);
/** Find the smallest and largest finite value in [first, end); returns how many were not
 * finite. */
guint td_curves_range (const TdCurves *curves, guint curve, guint first, guint end, double *lo,
                       double *hi);

/** Draw the curves over iterations with a legend. */
TdScene *td_curves_scene (const TdCurves *curves, const TdPanelView *view);
/** format: "text", "csv" or "json". Owner: the caller. */
char *td_curves_print (const TdCurves *curves, TdRange range, const char *format);

/* The deck's strips. Both have axes: td_scene_axis_value turns x into an iteration or an event.
 */

/* A note at a moment: a flag on the strip. */
typedef struct
{
  gint64 iteration;
  const char *text;
} TdStripFlag;

/** Draw all iterations: the main curve, memory as an area, ticks for findings, a flag for each
 * note (TD_TAG_ROW, data: which). `from` and `to` zoom (equal: all). */
TdScene *td_deck_scene_iterations (const TdCurves *curves, TdTapeReader *reader, gint64 from,
                                   gint64 to, const TdStripFlag *flags, guint n_flags,
                                   const TdPanelView *view);
/** Draw the events `shown` (empty: all) of an iteration with zones forward, backward, update;
 * equal widths or by time. */
TdScene *td_deck_scene_events (const TdIteration *iteration, gboolean by_time, TdRange shown,
                               const TdPanelView *view);

G_END_DECLS
