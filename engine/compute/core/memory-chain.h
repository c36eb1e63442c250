/* By way of what an array is kept: from a handle that somebody holds, operation by operation,
 * to the one that keeps it for backward.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "memory-report.h"

enum
{
  TD_MEM_LINKS = 8 /* that are shown of a chain; of a longer one those at both ends */
};

/** A link of the chain; one of them is set. */
typedef struct
{
  const TdVar *var; /**< a handle: the root, or the gradient of one */
  const TdOp *op;
} TdMemLink;

/** The shortest ways from live handles to all nodes.  *Owner*: the caller; NULL: no host memory
 * for it, and no chain is known. */
TdMemChains *td__mem_chains_new (void);
void td__mem_chains_free (TdMemChains *chains);
/** Find the way to a group's largest array, the root first.  left_out: links in the middle that
 * are not shown.  Returns how many there are; 0: none is known. */
uint32_t td__mem_chain (const TdMemChains *chains, const TdMemHolder *holder,
                        TdMemLink links[TD_MEM_LINKS], uint32_t *left_out);
