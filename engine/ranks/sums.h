/* Sums of what ranks have in common, for who records: 128 bits over the bytes of an array.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "arrays.h"
#include "optimizer-state.h"

/** 128 bits over the n bytes of an array: equal for equal bytes on every machine of one byte
 * order; and how many of its elements are not finite. */
void td__sum_array (TdDtype dtype, const void *bytes, size_t n, TdRankSum *to);
/** One step of such a sum: of different words, or of different lanes, comes a different one. */
uint64_t td__sum_mixed (uint64_t lane, uint64_t word);
/** For tests: without what some processors have more than others. */
void td__sum_only_plainly (bool plainly);

enum
{
  TD_SUM_BLOCK = 1024,
  TD_SUM_LANES = 8
};
/** The same in pieces, so that one can be summed while it is in the cache for another reason.
 */
typedef struct TdSummer
{
  TdDtype dtype;
  uint64_t lane[TD_SUM_LANES], not_finite;
  size_t n;
} TdSummer;

void td__summer_begin (TdSummer *s, TdDtype dtype);
/** All pieces but the last have a multiple of TD_SUM_BLOCK bytes. */
void td__summer_add (TdSummer *s, const void *bytes, size_t n);
/** The sum and the count, and nothing else of *to. */
void td__summer_end (const TdSummer *s, TdRankSum *to);

/** Of a gradient, or of the mean of them, by its n numbers, which s has summed; without its
 * path.  turn: which element is told of; the same on all ranks, and another one each time. */
TdRankSum td__sum_of_gradient (TdRankSumKind kind, const TdSummer *s, const void *numbers,
                               int64_t n, uint64_t turn);
/** The line that wrote to a variable last, or that made it. */
const TdSite *td__sum_maker (const TdVar *v);
/** Of a gradient that the program is going to average itself. */
TdStatus td__sum_of_own (const TdVar *gradient, TdRankSum *sum, const TdSite *site);
/** Tell who records. */
void td__tell_sum (const TdRankSum *sum);
/** The same of a number that all ranks must have in common. */
void td__tell_number (const char *name, double number);
/** An array as it was after an update, and what has written to it before the next one. */
typedef struct
{
  uint64_t buffer;
  uint32_t version;
  bool spoiled; /* what was written is not finite */
  const TdSite *wrote;
} TdSumMark;

/** What all ranks must have in common after an update: parameters, then the optimizer's states.
 * Begins as zeros. */
typedef struct TdSums
{
  uint64_t (*of)[2];
  int n, room;
  TdSumMark *marks; /**< of the update before, n_marks; they outlive the sums */
  int n_marks, n_old, room_marks;
  uint64_t root[2]; /**< the sum of all of them; 0: nobody wanted any */
} TdSums;

void td__sums_clear (TdSums *sums);
void td__sums_free (TdSums *sums);
/** An update begins: what has been written to since the one before?  The sums then say so. */
void td__sums_look (const TdCommon *all, const TdOpt *opt, TdSums *sums);
/** Tell of parameters, persistents, and what the optimizer has; those that are common go into
 * the list. */
TdStatus td__tell_updated (const TdCommon *all, TdOpt *opt, TdSums *sums, const TdSite *site);
/** Tell of the gradients that are there as of the means of so many ranks. */
TdStatus td__tell_means (const TdCommon *all, int n_averaged, const TdSite *site);
/** The same of parameters alone, as they are now. */
TdStatus td__tell_parameters (const TdCommon *all, TdSums *sums, const TdSite *site);
/** In the meeting that is just over, are there ranks with another root than rank 0's, and does
 * each have one? */
bool td__roots_differ (const TdComm *comm);
/** Roots differ: find which ranks have which array in another way, and say so to who records,
 * and on rank 0 to the user.  For all ranks. */
TdStatus td__say_parted (TdComm *comm, const TdCommon *all, const TdOpt *opt,
                         const TdSums *sums, const TdSite *site);
