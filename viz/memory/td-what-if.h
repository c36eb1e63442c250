/*
 * What an iteration would have needed if some of its layers were not kept for backward, but
 * computed again there: `td_forget`, gradient checkpointing.  Predicted from what was recorded:
 * when each array was made and freed, which of them leave the layer, and how long its
 * operations took.  Nothing is run.
 *
 * Of a layer's call, whose operations are those from a to b, and whose backward is those from r
 * to z: what it made and what only it and its backward read is there from a to b and again from
 * r to z; what it hands on stays, and is there twice from r to z; its time is spent once more.
 *
 * *Source*: Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016;
 * chainer.functions.forget.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "memory/td-memory.h"

G_BEGIN_DECLS

/* Something that can be computed again: a group of the graph, with all its calls. */
typedef struct
{
  const char *path, *name; /* of the iteration's graph */
  const char *title;       /* that which tells it from others */
  gint32 event;            /* the first of its operations */
  guint n_ops, n_calls; /* in forward; a call is a run of operations without others between */
  guint64 held_bytes;   /* kept for its backward that would not be */
  guint64 time_ns;      /* to compute it again */
  gboolean chosen;
  guint first_change, n_changes; /* below */
} TdWhatIfLayer;

/* Bytes more (or fewer) after each of the events [from, to). */
typedef struct
{
  guint32 from, to;
  gint64 bytes;
  guint category;
} TdWhatIfChange;

typedef struct
{
  TdIteration *iteration;    /* owned */
  TdMemoryProfile *recorded; /* owned */
  guint n_layers;
  TdWhatIfLayer *layers; /* the most bytes for its time first */
  GArray *changes;       /* TdWhatIfChange */
  guint64 time_ns;       /* of all operations of the iteration, as recorded */
} TdWhatIf;

/** Look for what can be computed again. Owner: the caller. *Errors*: NULL for an iteration
 * without backward, without records of memory, or that a static schedule ran. */
TdWhatIf *td_what_if_new (TdIteration *iteration, GError **error);
void td_what_if_free (TdWhatIf *self);

/** Choose the first n layers and no others. */
void td_what_if_choose_first (TdWhatIf *self, guint n);
/** Choose the layers that words between commas name: paths, names, or either with * and ?.
 * *Errors*: FALSE with a word that names none, and nothing is changed then. */
gboolean td_what_if_choose (TdWhatIf *self, const char *words, GError **error);
/** Count the layers that are chosen. */
guint td_what_if_count_chosen (const TdWhatIf *self);

/* What would come of the choice. */
typedef struct
{
  guint64 peak_bytes;
  guint peak_event;
  guint64 more_ns; /* time that is spent once more */
} TdWhatIfForecast;

TdWhatIfForecast td_what_if_predict (const TdWhatIf *self);
/** The same over the events. Owner: the caller. */
TdMemoryProfile *td_what_if_predict_profile (const TdWhatIf *self);

/** Say in a sentence what the choice changes. Owner: the caller. */
char *td_what_if_sentence (const TdWhatIf *self);
/** Draw what is predicted, with what was recorded as a line; `measured` (may be NULL): an
 * iteration in which it was done, phase beside phase. */
TdScene *td_what_if_scene (const TdWhatIf *self, TdIteration *measured,
                           const TdPanelView *view);
/** The table twin. format: "text", "csv" or "json". Owner: the caller. */
char *td_what_if_print (TdWhatIf *self, TdIteration *measured, const char *format);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdWhatIf, td_what_if_free)

G_END_DECLS
