/* A link's weight that is another variable for the length of one forward.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "hooks.h"
#include "../links/link.h"

typedef struct TdWeightSwap
{
  TdVar *original; /**< held while the other one is there, else NULL */
  uint64_t link_id;
} TdWeightSwap;

/** The parameter of that name, with a shape: asks the link to take it from its inputs.  NULL
 * after td__fail. */
TdParam *td__weight_find (TdLink *link, const char *name, const TdLinkCall *call,
                          const char *hook);
/** Put w in the weight's place until td__weight_restore. */
void td__weight_swap (TdWeightSwap *swap, TdLink *link, TdParam *param, TdVar *w);
void td__weight_restore (TdWeightSwap *swap, TdLink *link, const char *name);
/** Register on links only: false after td__fail. */
bool td__weight_link_ok (TdLink *link, const char *name, const char *hook);
