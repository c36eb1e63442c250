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
/** Place of a word among choices (NULL: the first), or -1. */
int td__choice (const char *const *choices, const char *word);
/** Fail for a word that is none of the choices: "reduce is mean or no, got ...".  Returns
 * poison. */
TdVar *td__choice_fail (const char *op, const char *option, const char *const *choices,
                        const char *word, const TdSite *site);
