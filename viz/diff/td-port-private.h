/*
 * What the files of a port check share.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-port.h"

G_BEGIN_DECLS

/** A parameter of a layer. */
typedef struct
{
  const char *name; /* the last part of its path; borrowed of the tape */
  guint ndim;
  gint64 dims[TD_TAPE_MAX_NDIM];
  const TdTapeStats *gradient; /* NULL: none was recorded, or none with numbers */
} TdPortParameter;

/** A layer that was called. */
typedef struct
{
  char *path;
  guint last; /* its last forward event: the iteration's order is that of layers' ends */
  gint out;   /* the variable that it returned; -1: none */
  const TdTapeStats *stats;
  GArray *parameters; /* TdPortParameter: its own, not those of layers within */
} TdPortLayer;

typedef struct
{
  TdIteration *iteration;
  const TdTapeIteration *tape;
  const TdTapeStats **stats; /* by variable, as after the event that made it */
  GPtrArray *layers;         /* TdPortLayer, in the order of their ends */
} TdPortSide;

typedef enum
{
  TD_PORT_UNKNOWN, /* a side has no numbers */
  TD_PORT_SAME,
  TD_PORT_DIFFERS
} TdPortVerdict;

/** Two statistics. */
typedef struct
{
  TdPortVerdict verdict;
  const char *what; /* that is farthest apart for its tolerance: "l2" */
  double value[2];
  double apart; /* relative to the size of what it is of */
} TdPortNumbers;

/** The gradient of a parameter; or one that only a side has. */
typedef struct
{
  gint parameter[2]; /* of the layers; -1: none */
  TdPortNumbers numbers;
  gboolean transposed;
} TdPortGradient;

typedef struct
{
  guint layer[2];
  TdPortNumbers out;
  GArray *gradients; /* TdPortGradient */
} TdPortPair;

struct TdPort
{
  TdPortSide side[2];
  TdPortTolerance tolerance;
  GArray *pairs;          /* TdPortPair, in the order of A's layers */
  gint *partner[2];       /* by layer: of the other side, -1 */
  gint forward, backward; /* the first pair that differs, in either direction; -1: none */
};

/** A layer of a side. */
TdPortLayer *td__port_layer (const TdPort *self, guint side, guint layer);

/* td-port-side.c */
void td__port_side_read (TdPortSide *side, TdIteration *iteration, TdTapeReader *reader);
void td__port_side_clear (TdPortSide *side);

/* td-port-match.c */
/** Find partners by order and shapes. */
void td__port_guess (TdPort *self);
/** Find them in a table. */
gboolean td__port_take_names (TdPort *self, const char *names, GError **error);

G_END_DECLS
