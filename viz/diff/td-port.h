/*
 * A model and its port to another framework, layer by layer: what each layer returned, and the
 * gradients of its parameters, by their statistics. Layers of the two sides have other names
 * and other operations inside, so they are paired by a table of names, given or guessed from
 * the order and the shapes of parameters.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-tape-reader.h"
#include "tape/td-iteration.h"

G_BEGIN_DECLS

/** How far statistics may lie apart: by `atol` and `rtol` times the size of what they are of.
 */
typedef struct
{
  double rtol, atol;
} TdPortTolerance;

typedef struct TdPort TdPort;

/** Compare two iterations. `names`: the text of a table, a line a pair of paths, "-" for none;
 * NULL: it is guessed. Owner: the caller. Errors: NULL where the table is wrong, no layer of
 * one side is one of the other, or none has statistics on both. */
TdPort *td_port_new (TdIteration *a, TdIteration *b, TdTapeReader *reader_a,
                     TdTapeReader *reader_b, const char *names, TdPortTolerance tolerance,
                     GError **error);
void td_port_free (TdPort *self);

/** Say whether something is known to differ. */
gboolean td_port_differs (const TdPort *self);
/** Return the table of names that was used, as a file that can be edited and given. Owner: the
 * caller. */
char *td_port_names (const TdPort *self);
/** Write it as "text" or "json". Owner: the caller. */
char *td_port_print (const TdPort *self, const char *format);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdPort, td_port_free)

G_END_DECLS
