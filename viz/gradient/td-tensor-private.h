/*
 * Numbers of a tensor, shared by its picture and its text.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-tensor.h"

G_BEGIN_DECLS

/* Each with what kind of number it is. */
typedef struct
{
  TdHonesty honesty;
  double min, max, mean, sigma, l2;
  guint64 n, zero, nan, plus_inf, minus_inf;
} TdTensorNumbers;

/** Take the recorder's numbers, else compute them from the values, else say that they are
 * missing. */
TdTensorNumbers td__tensor_numbers (const TdTensor *tensor);

/* A matrix view: rows x cols elements of the tensor. */
typedef struct
{
  gint64 rows, cols;
  gint64 origin, row_stride, col_stride; /* in elements */
} TdTensorMatrix;

TdTensorMatrix td__tensor_matrix (const TdTensor *tensor, const TdTensorView *how);

/** Say how high a map of this width is, of at most `most` (0: as it likes). */
double td__tensor_map_height (const TdTensor *tensor, const TdTensorView *how, double width,
                              double most);
/** Draw the map; its scale ends at `limit` and its negative. Returns where the cells are. */
TdSceneRect td__tensor_add_map (TdSceneBuilder *b, const TdTensor *tensor,
                                const TdTensorView *how, TdSceneRect box, double limit);

/** List which axes of the variable the tensor still has. Returns how many. */
guint td__tensor_axes (const TdTensor *tensor, guint axes[TD_TAPE_MAX_NDIM]);
/** Return which axis of the tensor goes downwards where it is a matrix. */
guint td__tensor_row_axis (const TdTensor *tensor);
/** Make a tensor with nothing in it. Owner: the caller. */
TdTensor *td__tensor_new_empty (void);

G_END_DECLS
