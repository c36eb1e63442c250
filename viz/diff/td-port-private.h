/*
 * What the files of a port check share.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-port.h"

G_BEGIN_DECLS

/** An array of a side, as far as it is known. */
typedef struct
{
  gint var;                      /* -1: none */
  gint event;                    /* that made it; -1: none did */
  const TdTapeStats *stats;      /* NULL: none */
  const TdTapeTensorRef *tensor; /* its elements; NULL: not recorded */
} TdPortArray;

/** What is known of a parameter's gradient. */
typedef enum
{
  TD_PORT_GRADIENT_OPEN,  /* nobody says whether there is one */
  TD_PORT_GRADIENT_FOUND, /* by the graph */
  TD_PORT_GRADIENT_TAKEN, /* by an optimizer */
  TD_PORT_GRADIENT_NONE,  /* an optimizer has the parameter, and found no gradient */
  TD_PORT_GRADIENT_LEFT   /* optimizers took others; there may be one */
} TdPortKnown;

/** A parameter of a layer. */
typedef struct
{
  char *name; /* the last part of its path */
  guint ndim;
  gint64 dims[TD_TAPE_MAX_NDIM];
  TdPortArray gradient;
  TdPortKnown known;
} TdPortParameter;

/** A layer that was called. */
typedef struct
{
  char *path;
  guint last;      /* its last forward event: the iteration's order is that of layers' ends */
  guint n_calls;   /* 0: not known */
  TdPortArray out; /* what it returned */
  TdPortArray gradient; /* of that */
  GArray *parameters;   /* TdPortParameter: its own, not those of layers within */
} TdPortLayer;

typedef struct
{
  TdPortSource source;
  const TdTapeIteration *tape;
  const TdTapeStats **stats;       /* by variable, as after the event that made it */
  const TdTapeTensorRef **tensors; /* the same */
  GPtrArray *layers;               /* TdPortLayer, in the order of their ends */
} TdPortSide;

/** The gradient of a parameter; or one that only a side has. */
typedef struct
{
  gint parameter[2]; /* of the layers; -1: none */
  TdPortNumbers numbers;
} TdPortGradient;

typedef struct
{
  guint layer[2];
  TdPortNumbers out, gradient;
  GArray *gradients; /* TdPortGradient */
} TdPortPair;

/** How a pair was found. */
typedef enum
{
  TD_PORT_BY_TABLE,
  TD_PORT_BY_NAME,
  TD_PORT_BY_ORDER,  /* and the sizes of parameters */
  TD_PORT_BY_WITHIN, /* they hold the same layers */
  TD_PORT_BY_SHAPE   /* of what they return, as many as there are on the other side */
} TdPortHow;

struct TdPort
{
  TdPortSide side[2];
  TdPortTolerance tolerance;
  GArray *pairs;          /* TdPortPair */
  gint *partner[2];       /* by layer: of the other side, -1 */
  TdPortHow *how;         /* by layer of A that has a partner */
  gint forward, backward; /* the first pair that differs, in either direction; -1: none */
  GPtrArray *notes;       /* strings, NULL behind the last */
};

/** A layer of a side. */
TdPortLayer *td__port_layer (const TdPort *self, guint side, guint layer);
const TdPortPair *td__port_get_pair (const TdPort *self, guint i);
/** Parameter `i` of a side's layer of a pair; NULL: `i` is -1. */
const TdPortParameter *td__port_parameter (const TdPort *self, const TdPortPair *p, guint side,
                                           gint i);
/** The name of a parameter of a pair; NULL: that side has none. */
const char *td__port_parameter_name (const TdPort *self, const TdPortPair *p,
                                     const TdPortGradient *g, guint side);
/** Has a layer parameters and no partner, though the other side should have one? */
gboolean td__port_is_alone (const TdPort *self, guint side, guint layer);

/* td-port-side.c */
void td__port_side_read (TdPortSide *side, const TdPortSource *source);
void td__port_side_clear (TdPortSide *side);
/** Say where an array was made. Owner: the caller. */
char *td__port_source (const TdPortSide *side, const TdPortArray *array);

/** No array. */
TdPortArray td__port_no_array (void);
/** A variable, as the event that made it left it. */
TdPortArray td__port_array (const TdPortSide *side, guint32 var);

/* td-port-gradient.c */
/** Ask the graph which variable is whose gradient: path of a parameter -> 1 + variable. Owner:
 * the caller. */
GHashTable *td__port_infer_gradients (const TdPortSide *side);
/** Find the gradient of a parameter, by the optimizers or by what the graph said. */
void td__port_find_gradient (const TdPortSide *side, GHashTable *inferred, const char *path,
                             TdPortParameter *of);
/** Find the gradient of what a layer returned. */
TdPortArray td__port_gradient_of_out (const TdPortSide *side, guint32 var);

/* td-port-match.c */
/** Find partners by names, order and shapes. */
void td__port_guess (TdPort *self);
/** Find them in a table. */
gboolean td__port_take_names (TdPort *self, const char *names, GError **error);
/** Say whether two layers can be one: their largest parameters have the same sizes, in
 * whatever order, or one of them has none; or, where a side is a reference, one of its
 * parameters has a counterpart. */
gboolean td__port_may_pair (const TdPort *self, guint a, guint b);
/** Return a number that largest parameters of the same sizes have in common. */
guint64 td__port_signature (const TdPortLayer *layer);
/** In words, as behind the # of a table. */
const char *td__port_how (TdPortHow how);

/* td-port-fit.c */
/** Count the elements. */
guint64 td__port_count (const TdPortParameter *p);
/** Count parameters of A's layer that have one as large in B's. */
guint td__port_fitting (const TdPort *self, guint a, guint b);
/** Align layers of which one side may name only some parameters. FALSE: they are too many. */
gboolean td__port_align_fitting (TdPort *self, const GArray *const units[2]);

/* td-port-guess.c */
/** Pair those of these layers that are called alike below what all of `roots` have in common;
 * `all`: all of the side that has fewer, or none, and FALSE. */
gboolean td__port_pair_names (TdPort *self, const GArray *const units[2],
                              const GArray *const roots[2], gboolean all);
/** Pair layers without parameters by what they return, where both sides have as many of a size.
 */
void td__port_pair_shapes (TdPort *self);
void td__port_pair (TdPort *self, guint a, guint b, TdPortHow how);

/* td-port-elements.c */
/** Compare element by element; `numbers` has what statistics say. `may_turn`: axes of one size
 * may stand for each other. */
void td__port_compare_elements (const TdPort *self, const TdPortArray *a, const TdPortArray *b,
                                gboolean may_turn, TdPortNumbers *numbers);

/* td-port-notes.c */
void td__port_note (TdPort *self);

G_END_DECLS
