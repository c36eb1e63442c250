/*
 * A model and its port to another framework, layer by layer: what each layer returned, the
 * gradient of that, and the gradients of its parameters; element by element where both sides
 * have them, else by their statistics. Layers of the two sides have other names and other
 * operations inside, so they are paired by a table of names, given or guessed from names, from
 * the order and from the shapes of parameters.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-tape-reader.h"
#include "tape/td-iteration.h"

G_BEGIN_DECLS

/** How far numbers may lie apart: by `atol` and `rtol` times the size of what they are of,
 * which for an element is the larger of its own and the root of the mean square of its array.
 */
typedef struct
{
  double rtol, atol;
} TdPortTolerance;

/** One side: a tape's iteration, and what is known of its file. */
typedef struct
{
  TdIteration *iteration;
  TdTapeReader *reader;
  gboolean is_reference; /* arrays of td-tape-import.h: no lines of a program */
} TdPortSource;

typedef enum
{
  TD_PORT_UNKNOWN, /* a side has no numbers */
  TD_PORT_SAME,
  TD_PORT_DIFFERS
} TdPortVerdict;

/** What became of the elements. */
typedef enum
{
  TD_PORT_NO_NUMBERS, /* there are not even statistics, or a side has no such array */
  TD_PORT_COMPARED,
  TD_PORT_MISSING_A, /* A has statistics alone */
  TD_PORT_MISSING_B,
  TD_PORT_MISSING_BOTH,
  TD_PORT_OTHER_SHAPES, /* nobody knows which element is which */
  TD_PORT_N_ELEMENTS
} TdPortElements;

/** Two arrays against each other. */
typedef struct
{
  TdPortVerdict verdict;
  TdPortElements elements;
  const char *what; /* that is farthest apart for its tolerance: "element", "l2"; or why the
                     * verdict needs no numbers: "only in A" */
  double value[2];
  double apart;                      /* relative to the size of what it is of */
  gint64 index[2][TD_TAPE_MAX_NDIM]; /* of the worst element */
  guint ndim[2];
  guint64 n, n_beyond; /* elements, and those beyond the tolerance */
  gboolean turned;     /* A's axes are B's in another order */
  char *source[2];     /* where each was made: "net.py:12 matmul", "ref.npz: fc/out" */
} TdPortNumbers;

/** A pair of layers. */
typedef struct
{
  const char *path[2];
  const char *how; /* they were paired: "name" */
  gint event[2];   /* that made what the layer returned; -1: none */
  const TdPortNumbers *out;
  const TdPortNumbers *backward; /* the worst gradient; NULL: there is none */
  const char *backward_of;       /* "output", or a parameter's name in A, else in B */
  gint backward_event[2];
  gboolean first_forward, first_backward; /* the first that differs */
} TdPortRow;

typedef struct TdPort TdPort;

/** Compare two iterations. `names`: the text of a table, a line a pair of paths, "-" for none;
 * NULL: it is guessed. Owner: the caller; readers are not kept. Errors: NULL where
 * the table is wrong, no layer of one side is one of the other, or none has numbers on both.
 * Sync: reads the elements of all layers. */
TdPort *td_port_new (const TdPortSource *a, const TdPortSource *b, const char *names,
                     TdPortTolerance tolerance, GError **error);
void td_port_free (TdPort *self);

/** Say whether something is known to differ. */
gboolean td_port_differs (const TdPort *self);
/** Count the pairs, in the order of A's layers; of B's where A is a reference. */
guint td_port_get_n_rows (const TdPort *self);
/** Write a pair. What it points to lives as long as the check. */
void td_port_get_row (const TdPort *self, guint i, TdPortRow *row);
/** Say of a row what differs, forward first, or else what it returned: "output: element ...",
 * "gradient of W: ...". Owner: the caller. */
char *td_port_dup_worst (const TdPortRow *row);
/** Say in a sentence what was found, forward first. Owner: the caller. */
char *td_port_dup_sentence (const TdPort *self);
/** Name the parameters of a pair whose gradients lie the other way round on the other side, but
 * for that of the row's `backward`, which says so itself: "W, b"; "" for none. Owner: the
 * caller. */
char *td_port_dup_turned (const TdPort *self, guint i);
/** List layers of side `side` that have parameters and no counterpart, NULL behind the last.
 * Owner: the caller of the list, g_free. */
const char **td_port_dup_alone (const TdPort *self, guint side);
/** List what is missing or was recorded only in part, a sentence each. Owner: borrowed. */
const char *const *td_port_get_notes (const TdPort *self);
/** Say in a line what was found in one direction, "forward" or "backward". Owner: the caller.
 */
char *td_port_dup_first (const TdPort *self, gboolean backward);
/** Say it of two arrays: "element (0, 3) 1.5, 1.25 (2.0e-01 apart), 3 of 64 beyond". Owner: the
 * caller. */
char *td_port_dup_numbers (const TdPortNumbers *numbers);
/** Return the table of names that was used, as a file that can be edited and given. Owner: the
 * caller. */
char *td_port_names (const TdPort *self);
/** Write it as "text" or "json". Owner: the caller. */
char *td_port_print (const TdPort *self, const char *format);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdPort, td_port_free)

G_END_DECLS
