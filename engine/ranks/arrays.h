/* The arrays of a link that ranks have in common, by their keys, and what is done with all of
 * them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "comm.h"

typedef struct TdCommonArray
{
  TdParam *param;
  char *key;
} TdCommonArray;

/** In order of creation, each array once; begins as zeros. */
typedef struct TdCommon
{
  TdCommonArray *of;
  int n;
} TdCommon;

/** List the parameters below a link, with persistents or without.  *Owner*: the caller,
 * td__common_clear. */
TdCommon td__common_of (TdLink *link, bool persistents);
void td__common_clear (TdCommon *common);
/** Of names and dtypes, and of shapes if they are to be the same, too. */
uint64_t td__common_digest (const TdCommon *common, bool shapes);
/** Digests differ: find the first array that does, and fail on all ranks by its name; or by
 * what the arrays are of, if that differs.  of: NULL where it needs no words. */
TdStatus td__common_explain (TdComm *comm, const TdCommon *common, const char *of,
                             TdMeetKind kind, const TdSite *site);
/** Do all of them lie on the communicator's device? */
bool td__common_is_far (const TdComm *comm, const TdCommon *common);
/** Of the numbers of parameters, as they are on the host. */
uint64_t td__common_numbers (const TdCommon *common, const TdSite *site);
/** Give all ranks rank 0's arrays, of lists with one td__common_digest; *same: this rank had
 * those numbers of parameters already. */
TdStatus td__common_bcast (TdComm *comm, const TdCommon *common, TdMeetKind kind, bool *same,
                           const TdSite *site);
/** Give all ranks rank 0's random state.  (random.c) */
TdStatus td__random_share (TdComm *comm, const TdSite *site);
/** Give all ranks rank 0's array of these bytes: v has room for it.  *same becomes false where
 * the numbers were others. */
TdStatus td__bcast_var (TdComm *comm, TdVar *v, bool *same, const TdSite *site);
