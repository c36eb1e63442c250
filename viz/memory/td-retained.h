/*
 * What would be freed if somebody let go: dominators over what refers to what (the sections
 * OBJECTS and REFERENCES of a tape), by handles that were made at one place and are held at one
 * place; and the way of references from such a handle to an array, in words.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "memory/td-holders.h"

G_BEGIN_DECLS

/* Handles of one place together, or what no group of them keeps alone. */
typedef struct
{
  gboolean shared;   /* kept by several groups: none of them alone frees it */
  guint first;       /* object: the newest handle of the group; of what is shared the top */
  guint n;           /* handles of the group, or objects that are shared */
  guint n_sharers;   /* of what is shared: handles that reach it; 0: not counted */
  guint64 own;       /* bytes of arrays that the handles refer to themselves */
  guint64 retained;  /* bytes that are freed when all of the handles are given up */
  guint64 elsewhere; /* bytes that something else, which is not told, keeps as well */
  guint n_nodes;     /* operations that go with them */
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
  TdRetainedRow *rows; /* by what they retain, the most first */
  guint *above;        /* by object: the one that refers to it, nearer to a handle; G_MAXUINT */
  guint *row_of;       /* by object: whose it is; G_MAXUINT: not reached */
  guint64 *retained;   /* by object: what it alone keeps, and its own bytes */
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

/** Say what keeps an array, reference by reference from a handle on. Owner: the caller. */
char *td_retained_way (const TdRetained *self, guint object);
/** Say who keeps what, in how many nodes of which iterations, and what to do. Owner: the
 * caller. */
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
