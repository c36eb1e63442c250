/* The verbs of the transport as plain functions over one iteration and an event: no session, no
 * display. `direction` is +1 forward in time, -1 back. A verb that has nowhere to go returns
 * the event it was given.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-iteration.h"

G_BEGIN_DECLS

/** Step one event; enters and leaves layers without notice. */
gint td_navigate_step_op (const TdIteration *iteration, gint event, gint direction);
/** Step over: a layer entered by the next event is passed whole, to its last event (back: to
 * its first event). */
gint td_navigate_step_over (const TdIteration *iteration, gint event, gint direction);
/** Step into: the first event inside the layer that comes next (back: the last of the one
 * before). */
gint td_navigate_step_into (const TdIteration *iteration, gint event, gint direction);
/** Step out: to the last (back: first) event of the enclosing layer; from there, of the layer
 * around it. */
gint td_navigate_step_out (const TdIteration *iteration, gint event, gint direction);

/** Return the range [*first, *end) of events, in one phase, that `event` shares a layer of
 * depth `depth` with. Return FALSE if the event is not that deep. */
gboolean td_navigate_layer_range (const TdIteration *iteration, gint event, gint depth,
                                  gint *first, gint *end);

/** Find the event of `other` with the key of `event`; else the nearest one that both have and
 * that ran before it. `exact` (may be NULL) says which. Return -1 if `other` has no events. */
gint td_navigate_same_event (const TdIteration *iteration, gint event, const TdIteration *other,
                             gboolean *exact);

/** Find the next anomaly after (before) `event`; -1 if there is none in this iteration. */
gint td_navigate_anomaly (const TdIteration *iteration, gint event, gint direction);

/** Find the last forward event (the loss), the first backward, the first update; -1 if none. */
gint td_navigate_loss (const TdIteration *iteration);
gint td_navigate_first_of_phase (const TdIteration *iteration, gint phase);

/** List the events that wrote what `event` reads, nearest first, through reshapes and casts to
 * where the value was computed when `skip_views`. Owner: the caller, g_array_unref(); of
 * gint32. */
GArray *td_navigate_where_from (const TdIteration *iteration, gint event, gboolean skip_views);
/** List the events that read what `event` wrote, in order. Owner: as above. */
GArray *td_navigate_where_used (const TdIteration *iteration, gint event);
/** List the events on the ways by which what `from` wrote reaches `to`, both of them included,
 * in order; none: it does not. Owner: as above. */
GArray *td_navigate_between (const TdIteration *iteration, gint from, gint to);
/** Return the twin: of a forward event its first backward event, of a backward event the
 * forward one, of an update the event that made the gradient; -1 if there is none. */
gint td_navigate_twin (const TdIteration *iteration, gint event);

G_END_DECLS
