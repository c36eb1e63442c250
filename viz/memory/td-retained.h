/*
 * Retained sizes: what would be freed if the variables that were made at one line, and are held
 * at one line, were released.  Computed by dominators of the graph of references (the sections
 * OBJECTS and REFERENCES of a tape); also the path of references to an array, in words.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "memory/td-holders.h"

G_BEGIN_DECLS

/* A group of handles of one place, or objects that no single group keeps alive. */
typedef struct
{
  gboolean shared; /* kept alive by several groups: releasing one of them does not free it */
  guint first;     /* object: the newest handle of the group, or the top of what is shared */
  guint n;         /* handles of the group, or objects that are shared */
  gboolean several_names; /* of its handles: none of them is the group's */
  guint n_sharers;        /* if shared: the handles that reach it; 0: not counted */
  guint64 own;            /* bytes of arrays that the handles refer to themselves */
  guint64 retained;       /* bytes that are freed when all handles are released */
  guint64 elsewhere;      /* bytes of it that something not recorded keeps alive as well */
  guint n_nodes;          /* operations that would be freed */
  guint n_arrays;
  gint64 oldest, newest; /* iterations that made the arrays; -1: none */
  guint n_iterations;
  guint top; /* in the tree of dominators */
} TdRetainedRow;

/* Arrays of a row that were made at one place. */
typedef struct
{
  guint32 site, opdef;
  guint category, n;
  guint64 bytes;
  guint object; /* the largest of them */
} TdRetainedSite;

typedef struct _TdRetained
{
  TdTapeReader *reader; /* borrowed */
  const TdTapeIteration *tape;
  gint64 iteration;
  gboolean cut; /* there were more objects than a tape takes */
  guint n_rows;
  TdRetainedRow *rows; /* by retained bytes, the most first */
  guint *above; /* by object: the one that refers to it on the path to a handle; or G_MAXUINT */
  guint *row_of;     /* by object: its row; G_MAXUINT: not reached */
  guint64 *retained; /* by object: its retained size, own bytes included */
} TdRetained;

/** Read the newest objects up to iteration `last` (-1: all). Owner: the caller. *Errors*: NULL
 * when the tape has none. */
TdRetained *td_retained_new (TdTapeReader *reader, gint64 last);
/** Return the iteration that td_retained_new would read; -1: none. */
gint64 td_retained_find_iteration (TdTapeReader *reader, gint64 last);
void td_retained_free (TdRetained *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdRetained, td_retained_free)

/** Find the row of a holder of the same tape; -1: it has none. */
gint td_retained_find (const TdRetained *self, const TdHolder *holder);
/** List where a row's arrays were made, the most bytes first. Owner: the caller. */
GArray *td_retained_list_sites (const TdRetained *self, guint row);

/** Describe the path of references that keeps an array, from a handle on. Owner: the caller. */
char *td_retained_way (const TdRetained *self, guint object);
/** Say in a sentence who keeps what, through how many operations of which iterations, and what
 * to do about it. Owner: the caller. */
char *td_retained_sentence (const TdRetained *self, guint row);
/** Return what the program calls a handle, from the recorded source ("losses[i]") or its name;
 * NULL: not known. Owner: the caller. */
char *td_retained_dup_handle (const TdRetained *self, guint object);
/** Return a row in few words: "handle total_loss, train.c:52". Owner: the caller. */
char *td_retained_dup_title (const TdRetained *self, guint row);

/** Find the operation that made an object. FALSE: its iteration or the event is not on the
 * tape. */
gboolean td_retained_locate (const TdRetained *self, guint object, gint64 *iteration,
                             guint64 *key);

/** All rows. format: "text", "csv" or "json". Owner: the caller. */
char *td_retained_print (const TdRetained *self, const char *format);

G_END_DECLS
