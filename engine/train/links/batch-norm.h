/* What links of batch normalization have in common, whichever examples their moments are of.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "link.h"

/** What such a link keeps, or begins with. */
typedef struct
{
  double decay, eps;
} TdBatchNorm;

/** Places of its parameters. */
enum
{
  TD_BATCH_NORM_GAMMA,
  TD_BATCH_NORM_BETA,
  TD_BATCH_NORM_MEAN, /**< running; and */
  TD_BATCH_NORM_VAR
};

/** Make a link of such a class, whose self begins with a TdBatchNorm. *Errors*: inert after
 * td__fail. */
TdLink *td__batch_norm_make (const TdLinkClass *cls, TdLink *parent, const char *name,
                             int64_t size, const TdBatchNormLinkOpt *options,
                             const TdSite *site);
/** Sizes that wait come from the first input's channels: TdLinkClass.prepare. */
TdStatus td__batch_norm_prepare (TdLink *link, void *self, TdVar *const *in, int n_in);
/** What forward does outside training: by the running statistics. */
TdVar *td__batch_norm_fixed (TdLink *link, TdVar *x);
