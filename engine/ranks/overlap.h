/* Means of gradients that are on their way while the program does other things: behind the
 * backward that makes them, or behind the whole next iteration.
 *
 * Nobody meets for them: what goes, and in which order, was agreed with the list of arrays, and
 * a rank that has begun sends all of it, whatever comes between.  Only the next update waits,
 * after a meeting in which every rank has said whether it has begun.
 *
 * Between devices they need one order with all other exchanges (gpu/nccl.c).  A rank hears in
 * each meeting, which is before each of those, how far the others are, and sends what they have
 * sent, complete or not.  With the same graph on all ranks that is nothing.  Two optimizers
 * would have an order that nobody agrees on: only the first that was made begins in backward.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "buckets.h"

typedef struct TdOverlap TdOverlap;

/** For the gradients of an optimizer, which are listed in *common.  backward: begin in
 * backward, where that can be known; else td__overlap_begin does.  For all ranks.  NULL after
 * td__fail. */
TdOverlap *td__overlap_new (TdComm *comm, const TdCommon *common, const TdMean *how,
                            bool backward, const TdSite *site);
void td__overlap_free (TdOverlap *o);
/** All ranks have agreed on the list as it is now, and whether it lies on their devices. */
void td__overlap_lay_out (TdOverlap *o, bool far);
/** Which elements those that begin next tell of. */
void td__overlap_turn (TdOverlap *o, uint64_t turn);
/** Say in a meeting which gradients this rank sends behind a backward, from device to device,
 * and how many buckets have gone. */
void td__overlap_tell (TdMeet *mine);
/** After a meeting: let all ranks of its communicator have sent as many of them (of two
 * communicators that share some ranks nobody compares).  What is exchanged next has then
 * the same place among them on all ranks, as devices want it, which have one exchange after the
 * other. */
void td__overlap_catch_up (const TdComm *comm);
/** Begin with the gradients that are there, on all ranks now; counts: this rank's are some. */
TdStatus td__overlap_begin (TdOverlap *o, bool counts, int n_counting, float scale,
                            const TdSite *site);
/** What this rank has to say before an update: TD_MEET_ROUND, TD_MEET_STALE. */
uint32_t td__overlap_flags (const TdOverlap *o);
/** After the meeting, in which somebody had begun: wait for all of it, and hear whether it is
 * of any use. */
TdStatus td__overlap_wait (TdOverlap *o, const TdSite *site);
/** Has anything come that nobody has taken? */
bool td__overlap_has (const TdOverlap *o);
/** Put the means in place of the gradients.  scale: of the gradients that are there now; what
 * was begun with another is brought to it. */
TdStatus td__overlap_take (TdOverlap *o, const TdMean *how, float scale, const TdSite *site);
/** Forget them: they were of no use. */
void td__overlap_forget (TdOverlap *o);
/** An update is over: what is learned from the backwards before it. */
void td__overlap_updated (TdOverlap *o, bool useless, const TdSite *site);
