/* Gradients on their way to their mean: packed into buckets of one layout on all ranks, which
 * are summed at once.
 *
 * A gradient that is missing is packed as zeros, so that layouts never differ; one number more
 * for each array counts the ranks that have it, and the last one those whose gradients were not
 * finite before they were sent.
 *
 * Gradients that lie on the communicator's devices are packed there and go between these
 * (far-buckets.c); the numbers behind them go by the host all the same, for they are what it
 * asks for.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "sums.h"
#include "teams.h"

enum
{
  TD_MEAN_BUCKET = 1 << 18 /**< TdMean.bucket where nobody chooses one */
};

/** How a mean is taken; the same on all ranks. */
typedef struct TdMean
{
  TdDtype sent_as;   /**< TD_F16, TD_BF16; TD_F32: as they are summed, in floats or doubles */
  int64_t bucket;    /**< numbers that are summed at once, unless one array has more */
  bool may_overflow; /**< a dynamic loss scale looks for what did not fit 16 bits */
  TdFar *far;        /**< the team by which they go; NULL: through the host */
  uint64_t turn;     /**< which elements are told of */
} TdMean;

/** Arrays first .. end - 1 of a list. */
typedef struct TdBucket
{
  int first, end;
  TdDtype dtype, sent_as; /**< what is summed, in memory and on the way */
  int64_t n;              /**< numbers of all arrays, without those behind them */
  int64_t n_here;         /**< of these, in memory of the host: all or none */
  int64_t n_far;          /**< on the device, where each array begins anew */
  TdFar *far;             /**< by which they go; NULL: through the host */
  TdVar *room, *thin;     /**< on the device: n_far numbers, and what is sent of 16 bits */
  TdTeamMark *mark;       /**< their sum is on its way */
  char *numbers, *sent;   /**< one array, unless it is sent in 16 bits; NULL: it is not open */
  TdRankSum *told;        /**< of each array; NULL: nobody wants to know */
  TdWireSum *sum;         /**< on its way, or NULL */
} TdBucket;

/** Numbers of an array that has a gradient at all; 0: it is in no bucket. */
int64_t td__bucket_size_of (const TdVar *v);
/** Lay a list out, from its end, as backward comes to it.  *Owner*: the caller, free (). */
TdBucket *td__buckets_of (const TdCommon *common, const TdMean *how, int *n);
/** Make room, with no gradient in it; told: who records wants sums. */
void td__bucket_open (TdBucket *b, bool told, const TdSite *site);
/** Put in the gradient of array i; NULL: there is none.  left_out: this rank has one, which
 * does not count. */
TdStatus td__bucket_put (TdBucket *b, const TdCommon *common, int i, const TdVar *gradient,
                         bool left_out, uint64_t turn, const TdSite *site);
/** Begin the sum.  False: *why. */
bool td__bucket_send (TdBucket *b, TdComm *comm, TdWire *wire, char *why);
/** Go on with it.  Is there nothing left to wait for? */
bool td__bucket_test (const TdBucket *b, const TdTransport *transport);
/** Wait for it. */
bool td__bucket_receive (TdBucket *b, const TdComm *comm, char *why);
/** How many bytes go. */
size_t td__bucket_bytes (const TdBucket *b);
/** Put means over n_counting ranks, times factor, in place of the gradients. *Errors*:
 * TD_ERR_NUMERIC where a sum did not fit 16 bits, on all ranks. */
TdStatus td__bucket_take (TdBucket *b, TdComm *comm, const TdCommon *common, const TdMean *how,
                          int n_counting, float factor, const TdSite *site);
/** Put means in place of the gradients, over the n_counting ranks that count; lists with one
 * digest of shapes. (gradients.c) */
TdStatus td__common_mean_gradients (TdComm *comm, const TdCommon *common, const TdMean *how,
                                    bool counts, int n_counting, const TdSite *site);
/** Give up its room.  A sum that nobody waits for is left to the transport; the team of one
 * has been given up before. */
void td__bucket_close (TdBucket *b, const TdTransport *transport);

/* far-buckets.c: the same of numbers on a device */
/** How many that is, of these arrays. */
int64_t td__far_bucket_room (const TdCommon *common, int first, int end);
/** *Errors*: of memory; what is put in fails then. */
void td__far_bucket_open (TdBucket *b, const TdSite *site);
/** Copy between a gradient and the place of array i. */
TdStatus td__far_bucket_copy (const TdBucket *b, const TdCommon *common, int i, const TdVar *g,
                              bool pack, const TdSite *site);
/** Read the place of array i, in its numbers, to the host. */
TdStatus td__far_bucket_read (const TdBucket *b, const TdCommon *common, int i, void *host,
                              const TdSite *site);
TdStatus td__far_bucket_send (TdBucket *b, const TdSite *site);
TdStatus td__far_bucket_receive (TdBucket *b);
/** Make means of what has come; *lost: the first array whose sum did not fit 16 bits, on all
 * ranks, or -1. */
TdStatus td__far_bucket_mean (TdBucket *b, TdComm *comm, const TdCommon *common,
                              const TdMean *how, int n_counting, float factor, int *lost,
                              const TdSite *site);
void td__far_bucket_close (TdBucket *b);
