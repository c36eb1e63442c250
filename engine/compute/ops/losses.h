/* What losses and scores share: arrays in a call's workspace, and words for options.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compose.h"
#include "layers.h"

/** Memory for n arrays of this call: shape, size and dtype are set, data is filled in.  Once a
 * call.  *Errors*: TD_ERR_MEMORY. */
TdStatus td__carve (TdOpCall *call, TdTensor *parts, int n);
/** An array as x, without memory. */
TdTensor td__carve_like (const TdTensor *x);
/** A number, without memory. */
TdTensor td__carve_number (TdDtype dtype);

/* "mean", "no" */
extern const char *const td__reduce_mean_no[];
/** Output 0 is the loss, of x's dtype: a number, or with `each` (reduce "no") one for every
 * element of input i. */
TdStatus td__out_loss (TdOpCall *call, bool each, int i);
/** infer of the gradient of such a loss, once x (or y) and t are checked: input 2 is the loss'
 * gradient, a number or with `each` of t's shape; the output is as input 0. */
TdStatus td__infer_loss_grad (TdOpCall *call, bool each);
/** Place of a word among choices (NULL: the first), or -1. */
int td__choice (const char *const *choices, const char *word);
/** Fail for a word that is none of the choices: "reduce is mean or no, got ...".  Returns
 * poison. */
TdVar *td__choice_fail (const char *op, const char *option, const char *const *choices,
                        const char *word, const TdSite *site);
