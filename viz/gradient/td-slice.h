/*
 * Which part of a tensor is looked at, written as NumPy writes it: [0, :, 3:7], negative
 * indices, steps, an ellipsis.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

#include "td-tape.h"

G_BEGIN_DECLS

/* One axis of the tensor. */
typedef struct
{
  gint64 start, step, n; /* elements start, start + step, ...: n of them */
  gboolean dropped;      /* a single index: the part has no such axis */
} TdSliceAxis;

typedef struct
{
  guint ndim; /* of the tensor */
  TdSliceAxis axes[TD_TAPE_MAX_NDIM];
} TdSlice;

/** Return the slice that is all of a tensor. */
TdSlice td_slice_whole (guint ndim, const gint64 *dims);
/** Read a slice of a tensor with these dimensions. Brackets may be left out, axes at the end
 * too; "" is all of it. Ranges end where the axis does, as in NumPy, and may be empty; an index
 * has to be there. `at` (may be NULL) gets the character that an error is about, from 0 on.
 * Errors: one line that names the place. */
gboolean td_slice_parse (const char *text, guint ndim, const gint64 *dims, TdSlice *slice,
                         guint *at, GError **error);
/** Say whether the slice leaves out nothing and turns nothing around. */
gboolean td_slice_is_whole (const TdSlice *slice, const gint64 *dims);
/** Find the place in the tensor of element `i` of the part, counted row by row. */
void td_slice_locate (const TdSlice *slice, guint64 i, gint64 index[TD_TAPE_MAX_NDIM]);
/** Write an index as "[3, 17]". Owner: the caller. */
char *td_slice_dup_index (guint ndim, const gint64 *index);

G_END_DECLS
