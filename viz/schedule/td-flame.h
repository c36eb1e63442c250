/*
 * What an iteration cost, layer by layer: the tree of its groups (links, scopes, loops) in each
 * of forward, backward and update, with the operations as leaves; how long they took, and how
 * many bytes they made. A node's children are in the order in which they began, and together
 * they are what the node is.
 *
 * Of a memory snapshot it is a tree of calls, with the blocks that they allocated: how many
 * bytes of them are there at one moment, and bytes times time, how much they were there over
 * the whole trace. The largest of a node's children comes first.
 *
 * Time is the device's where the tape knows it, else the host's: of an operation that a device
 * ran untimed it is how long the host took to issue it, and is marked so.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "graph/td-graph.h"
#include "scene/td-panel.h"
#include "scene/td-sink.h"

G_BEGIN_DECLS

typedef enum
{
  TD_FLAME_LAYERS, /* of an iteration */
  TD_FLAME_PEAK,   /* calls of a snapshot, with what is there at its peak */
  TD_FLAME_END,    /* and at its end */
  TD_N_FLAME_KINDS
} TdFlameKind;

typedef enum
{
  TD_FLAME_TIME,  /* ns; of calls bytes times ms */
  TD_FLAME_BYTES, /* of outputs; of a view as many as it shows; of calls: of blocks */
  TD_N_FLAME_SIZES
} TdFlameSize;

/* The lane of the iteration itself, which is node 0. */
#define TD_FLAME_ALL TD_N_LANES

typedef struct
{
  gint32 parent;                /* -1: it is the iteration */
  gint32 end;                   /* after the last node below it: those are [i + 1, end) */
  gint32 depth;                 /* 0: the iteration, 1: its lanes */
  guint lane;                   /* TdLane, or TD_FLAME_ALL */
  guint64 key;                  /* what a click selects: a group, an operation; 0: nothing */
  gint32 event;                 /* the operation, or the first of them */
  gboolean is_op;               /* one operation */
  guint32 n_ops;                /* in it; of calls: blocks that are there at the moment */
  guint32 n_sampled, n_untimed; /* of these: timed only now and then, not on their device */
  const char *name, *path;
  guint64 size[TD_N_FLAME_SIZES];
  guint64 start[TD_N_FLAME_SIZES]; /* from the left end */
} TdFlameNode;

typedef struct
{
  TdFlameKind kind;
  TdIteration *iteration; /* owned */
  guint n;
  TdFlameNode *nodes; /* parents first, in order of beginning */
  GStringChunk *strings;
} TdFlame;

/** Add up an iteration. Owner: the caller. */
TdFlame *td_flame_new (TdIteration *iteration);
/** The same of the calls of a memory snapshot. NULL: the tape has no stacks. */
TdFlame *td_flame_stacks_new (TdIteration *iteration, TdFlameKind kind);
void td_flame_free (TdFlame *flame);

/** Find the node that stands for a key in a lane (TD_FLAME_ALL: in the first that has it), key
 * 0: for the lane; of a variable what made it. -1: there is none. */
gint td_flame_find (const TdFlame *flame, guint64 key, guint lane);
/** Return what it is called: "time", "bytes". */
const char *td_flame_size_name (TdFlameSize size);
/** Find what is called so. FALSE: nothing is. */
gboolean td_flame_size_find (const char *name, TdFlameSize *size);

typedef enum
{
  TD_FLAME_OUT,  /* to what it is in */
  TD_FLAME_IN,   /* to the first in it */
  TD_FLAME_LEFT, /* to what is beside it, as deep as it is */
  TD_FLAME_RIGHT,
  TD_FLAME_FIRST, /* as deep as it is, of all */
  TD_FLAME_LAST,
  TD_N_FLAME_STEPS
} TdFlameStep;

/** Return the node one step on from `at`, within `zoom`; -1: there is none. What has no size is
 * passed over. */
gint td_flame_step (const TdFlame *flame, TdFlameSize size, gint zoom, gint at,
                    TdFlameStep step);

/** Say what a node is in one line: its path, share and numbers. Owner: the caller. */
char *td_flame_describe (const TdFlame *flame, gint node, TdFlameSize size);
/** Say what is shown when a node fills the picture. Owner: the caller. */
char *td_flame_title (const TdFlame *flame, gint zoom, TdFlameSize size);

typedef struct
{
  TdFlameSize size;
  gint zoom;      /* the node that is as wide as the picture */
  gint cursor;    /* the node that the keyboard stands on; -1: none */
  gboolean title; /* above the boxes */
} TdFlameLook;

/** Draw it from the top down. Boxes are TD_TAG_ROW, their data is the node. */
TdScene *td_flame_scene (const TdFlame *flame, const TdFlameLook *look,
                         const TdPanelView *view);
/** format: "text", "csv", "json", or "folded": a line for each stack, "a;b;c 12", which
 * flamegraph.pl and speedscope read. */
void td_flame_print (const TdFlame *flame, TdFlameSize size, const char *format, TdSink *sink);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdFlame, td_flame_free)

G_END_DECLS
