/*
 * Expressions over values at a moment, of a recording or of the program that stands there:
 * conv2/W[0, :, 1] - 2 * mean (x), norm (W.grad).
 *
 *   name, "any name", #12     a variable by name or by the end of its path (with .grad: its
 *                             gradient), the first output of event 12
 *   name[0, :, 3:7]           a slice of it
 *   + - * / and brackets      of numbers, of tensors of one shape, of both
 *   abs sqrt exp log          of each element
 *   sum mean min max norm     of all of them
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "gradient/td-tensor.h"

G_BEGIN_DECLS

/** Ask the program that stands at the moment for an array, by the number that it has there.
 * Owner: whoever evaluates. Errors: NULL and one line. */
typedef TdTensor *(*TdEvaluateRead) (guint64 id, gpointer data, GError **error);

/* Whose values an expression has. */
typedef struct
{
  TdTapeReader *reader;
  const TdIteration *iteration;
  gint event;          /* as they are after it; -1: at the iteration's end */
  TdEvaluateRead read; /* is asked before the recording is; NULL: no program stands there */
  gpointer data;       /* of `read` */
} TdEvaluateSource;

/** Compute an expression. Owner: the caller; a number is a tensor without axes. Errors: NULL
 * and one line with the character it is about. */
TdTensor *td_evaluate (const char *text, const TdEvaluateSource *source, GError **error);
/** Write a result on one line: a number with its digits, a tensor by its shape, range and first
 * elements. Owner: the caller. */
char *td_evaluate_print (const TdTensor *result);

G_END_DECLS
