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

TdTensorMatrix td__tensor_matrix (const TdTensor *tensor, const TdTensorSlice *slice);

G_END_DECLS
