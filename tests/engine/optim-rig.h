/* What the tests of optimizers share: a parameter W of a few elements, gradients for it, and a
 * walk of 50 steps beside a formula in double precision.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck.h>

#include "td-test.h"

enum
{
  RIG_N = 7,
  RIG_STEPS = 50,
  RIG_OPTS = 10 /* kinds of rig_opt_new */
};

/** The formula's own numbers; a rule uses of them what it needs. */
typedef struct
{
  double p[RIG_N], s[3][RIG_N];
} RigState;
/** One step t (1, 2 ...) of the formula, written for one gradient. */
typedef void (*RigRule) (RigState *state, const double *g, int t);

extern TdLink *rig_chain;
extern TdVar *rig_W;

/** The optimizer of one of RIG_OPTS kinds, Adam the last, with its default settings. */
TdOpt *rig_opt_new (int kind, TdLink *link);
/** Start the engine with W of this dtype, the key "W". */
void rig_start (TdDtype dtype);
void rig_put (TdVar *v, const double *values);
void rig_get (TdVar *v, double *values);
/** The gradient of step t: smooth, of mixed sign, and not small. */
void rig_gradient (int t, double *g);
/** Make g the gradient of v. */
void rig_give_gradient (TdVar *v, const double *g);
/** Both side by side for 50 steps; differences stay within tolerance, relative to 1 or the
 * value.  Ends the engine. */
void rig_follow (TdOpt *opt, RigRule rule, RigState first, double tolerance);
