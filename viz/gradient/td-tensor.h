/*
 * A tensor to look at: a 2-D slice as a heat map, its histogram, its numbers with their
 * honesty.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "gradient/td-slice.h"
#include "scene/td-panel.h"

G_BEGIN_DECLS

/* Whatever is known of one variable at one moment; any part may be missing. Whoever shares it
 * with a worker has a reference; it is not changed then. */
typedef struct
{
  gatomicrefcount refs;
  char *title;    /* "conv2/W.grad" */
  char *subtitle; /* "convolution_2d · (16, 6, 5, 5) f32 · 9.60 kB" */
  guint dtype, ndim;
  gint64 dims[TD_TAPE_MAX_NDIM];
  gboolean has_stats;
  TdTapeStats stats;         /* of the recorder, when has_stats */
  GBytes *raw;               /* as recorded, NULL when it was not */
  double *values;            /* as doubles, row-major, NULL when not recorded */
  guint64 n_values, n_total; /* fewer than there are when the tensor is larger than was read */
  TdSlice slice;             /* which elements of the variable these are */
} TdTensor;

/** Collect what the tape knows of variable `var` after `event` (-1: at the end). Owner: the
 * caller. */
TdTensor *td_tensor_new (TdTapeReader *reader, const TdIteration *iteration, guint var,
                         gint event);
/** Wrap values read from the live program; `data` is copied. Owner: the caller. */
TdTensor *td_tensor_new_live (const char *title, guint dtype, guint ndim, const gint64 *dims,
                              const void *data, gsize bytes);
/** Make the tensor a - b, of as many elements as both have. Owner: the caller. Errors: NULL and
 * one line where shapes differ or one has no values. */
TdTensor *td_tensor_subtract (const TdTensor *a, const TdTensor *b, GError **error);
/** Find the element of largest magnitude, or the first NaN. FALSE: there is none. */
gboolean td_tensor_find_largest (const TdTensor *tensor, guint64 *element);
TdTensor *td_tensor_ref (TdTensor *tensor);
/** Make a tensor of the elements of a slice; of all of them it is the tensor itself. The
 * recorder's numbers are of all of it, and no part has them. Owner: the caller. Errors: NULL
 * and one line; it needs elements in an order in which they are not recorded. */
TdTensor *td_tensor_take (TdTensor *tensor, const TdSlice *slice, GError **error);
/** Drop a reference; the last one frees. */
void td_tensor_free (TdTensor *tensor);
/** Return the variable that shows a key: the variable itself, or an event's first output; -1:
 * none. */
gint td_tensor_find_var (const TdIteration *iteration, guint64 key);

/** Tell the size of the tensor as a table: its first axis downwards, the others in a row. */
void td_tensor_get_table (const TdTensor *tensor, gint64 *rows, gint64 *cols);
/** Return which element a cell of the table is. */
guint64 td_tensor_get_element (const TdTensor *tensor, gint64 row, gint64 col);
/** Write the indices that a row, a column stands for: "3", "0, 4". Owner: the caller. */
char *td_tensor_dup_row_label (const TdTensor *tensor, gint64 row);
char *td_tensor_dup_column_label (const TdTensor *tensor, gint64 col);
/** Write an element in four digits, "—" where it is not there. Owner: the caller. */
char *td_tensor_dup_cell (const TdTensor *tensor, guint64 element);
/** Write where in the variable an element is and what it is, in all its digits. Owner: the
 * caller. */
char *td_tensor_dup_read_out (const TdTensor *tensor, guint64 element);
/** Say in a sentence which values are not there; NULL: all are, or nothing is known, which the
 * picture says itself. Owner: the caller. */
char *td_tensor_dup_extent (const TdTensor *tensor);

/* Rows and columns of the picture: which axes they are, and where the others are fixed. */
typedef struct
{
  gint row_axis, col_axis; /* -1: as many leading, trailing axes as make a matrix */
  gint64 index[TD_TAPE_MAX_NDIM];
  gboolean log, tiles; /* tiles: an image for each pair of the last two axes */
  gboolean floats;     /* say what narrow floats would lose */
  double percentile;   /* limits leave out this share at either end; 0: full */
} TdTensorView;

#define TD_TENSOR_VIEW_DEFAULT                                                                 \
  {                                                                                            \
    .row_axis = -1, .col_axis = -1, .floats = TRUE, .percentile = 0.01                         \
  }

/** Draw a tensor; NULL: as by default. The map gives way to a low view, down to a size at which
 * it can be read: the scene can be higher than that. */
TdScene *td_tensor_scene (const TdTensor *tensor, const TdTensorView *how,
                          const TdPanelView *view);
/** Say how high that scene is. */
double td_tensor_scene_height (const TdTensor *tensor, const TdTensorView *how,
                               const TdPanelView *view);
/** Say whether its last two axes are images. */
gboolean td_tensor_has_images (const TdTensor *tensor);
/** Find the element that the hit cell of the scene shows. Returns how many share the cell, of
 * which it is the largest; 0: none is there. */
guint64 td_tensor_find_hit (const TdTensor *tensor, const TdTensorView *how,
                            const TdSceneHit *hit, guint64 *element);
/** format: "text", "json" or "csv" (one row of the matrix a line). Owner: the caller. */
char *td_tensor_print (const TdTensor *tensor, const char *format);
/** Return the bytes of an .npy file with the values in their own dtype; NULL when they are not
 * recorded or cut. Owner: the caller. */
GBytes *td_tensor_to_npy (const TdTensor *tensor);

G_END_DECLS
