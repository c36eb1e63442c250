/*
 * Expressions over recorded values at a moment: conv2/W[0, :, 1] - 2 * mean (x), norm (W.grad).
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

/** Compute an expression with the values as they are after `event` of the iteration (-1: at its
 * end). Owner: the caller; a number is a tensor without axes. Errors: NULL and one line with
 * the character it is about. */
TdTensor *td_evaluate (const char *text, TdTapeReader *reader, const TdIteration *iteration,
                       gint event, GError **error);
/** Write a result on one line: a number with its digits, a tensor by its shape, range and first
 * elements. Owner: the caller. */
char *td_evaluate_print (const TdTensor *result);

G_END_DECLS
