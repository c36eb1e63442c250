/* What the tape of a rank says of the others: prose and records.  Included by td-tape.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdint.h>

/* Ranks are processes that run the same program, each with a tape of its own; the header says
 * which of them it is of.  Two sections of an iteration are about what they have in common.
 *
 * COLLECTIVES has one element for each time that the program waited for other ranks, in order.
 * A call of a collective is several of them: first the ranks meet (MEET) and tell each other
 * what they are about to do, then come the arrays (BCAST, SUM, GATHER, EXCHANGE); SEND and
 * RECEIVE are of two ranks.  All elements of one call have the same `comm` and `seq`, which are
 * the same on all its ranks: so they are put side by side.  `comm` is a number of its own for
 * each communicator; `seq` counts its calls from 1, and letters, SEND and RECEIVE, of each pair
 * of ranks and direction by themselves.  An element is written when the wait begins
 * and completed when it ends; one with the flag WAITS never ended, and has no duration.
 * One with the flag BEHIND is no wait: these bytes were on their way while the program did
 * something else, from their start, which may lie before the iteration, to when it saw that
 * they had come.  It is written at the update that takes them; what was waited for there is an
 * element of its own, of no bytes.  With WAITS, too, nobody saw that they had come.
 *
 * A program that no engine of ours runs may have no meetings of their own: its call of a
 * collective is one element, from when it came to it to when it went on, which is waiting for
 * others and bringing arrays in one; or one BEHIND and another for the wait.  Where each rank
 * needs the arrays of all (SUM, GATHER, EXCHANGE without a root) nobody leaves it before all
 * have come, either.  `dtype` is what the arrays are of, and `call` as the program calls it.
 *
 * `event` is the event that was next, or that of the operation itself.  Times count from the
 * tape's time 0, so that the clocks of two tapes can be held against each other: nobody leaves
 * a meeting before all have come.  What happened while no iteration was recorded belongs to the
 * one that follows, and has the flag BEFORE.
 *
 * RANK_SUMS has what ranks must have in common, or must not, as sums of 128 bits over the bytes
 * of an array, made by a multi-node optimizer in each update: of each gradient before and after
 * the mean, of each parameter, persistent and state after the update; and the optimizer's
 * numbers (learning rate, count of updates, loss scale), which stand as a double in sum[0].
 * td_comm_allreduce_grad makes those of gradients, and of parameters as they are then.  `path`
 * is the array's name in the optimizer, "l1/W", "l1/W/m".  `sample` is element `at` of a
 * gradient, the same element on all ranks, so that a mean can be held against what it is of.
 * Sums of gradients of half precision are of float32, to which they are widened to be added.
 * With double buffering gradients stand beside their mean, in the iteration after that which
 * made them; the number "staleness" is 1 then.
 *
 * Programs without ranks have neither, nor have tapes of earlier recorders. */

typedef enum
{
  TD_TAPE_WAIT_MEET,
  TD_TAPE_WAIT_BCAST,
  TD_TAPE_WAIT_SUM,
  TD_TAPE_WAIT_GATHER,
  TD_TAPE_WAIT_EXCHANGE,
  TD_TAPE_WAIT_SEND,
  TD_TAPE_WAIT_RECEIVE,
  TD_TAPE_N_WAITS
} TdTapeWait;

enum
{
  TD_TAPE_COLLECTIVE_BEFORE = 1 << 0, /* the iteration */
  TD_TAPE_COLLECTIVE_WAITS = 1 << 1,  /* it never ended */
  TD_TAPE_COLLECTIVE_FAILED = 1 << 2, /* ranks differ, or one of them could not take part */
  TD_TAPE_COLLECTIVE_WHOLE = 1 << 3,  /* of all ranks that were started */
  TD_TAPE_COLLECTIVE_BEHIND = 1 << 4  /* nobody waited: it ran behind other work */
};

/** COLLECTIVES: one time that this rank waited for others. */
typedef struct
{
  uint64_t comm, seq;
  uint64_t bytes;    /* of this rank's part; MEET: 0 */
  uint64_t start_ns; /* since the tape's time 0 */
  uint64_t duration_ns;
  uint32_t event; /* before this event, or of it */
  uint32_t site;
  uint32_t call;       /* string: "td_comm_allreduce" */
  uint32_t rank, size; /* of the communicator */
  int32_t peer;        /* root, or who it is sent to or received from; -1: none */
  uint8_t wait;        /* TdTapeWait */
  uint8_t flags;       /* TD_TAPE_COLLECTIVE_... */
  uint8_t dtype;       /* TdTapeDtype + 1; 0: not said */
  uint8_t reserved[5];
} TdTapeCollective;
static_assert (sizeof (TdTapeCollective) == 72, "TdTapeCollective changed size");

typedef enum
{
  TD_TAPE_SUM_PARAMETER, /* after the update */
  TD_TAPE_SUM_PERSISTENT,
  TD_TAPE_SUM_STATE,    /* of the optimizer */
  TD_TAPE_SUM_GRADIENT, /* this rank's own */
  TD_TAPE_SUM_MEAN,     /* the mean of all ranks' */
  TD_TAPE_SUM_NUMBER,   /* of the optimizer: sum[0] has the bits of a double */
  TD_TAPE_N_SUMS
} TdTapeSumKind;

enum
{
  TD_TAPE_SUM_ABSENT = 1 << 0,   /* this rank has no such gradient */
  TD_TAPE_SUM_LEFT_OUT = 1 << 1, /* and: it has one, of weights that were not rank 0's yet */
  TD_TAPE_SUM_HALF = 1 << 2,     /* MEAN: of gradients that were sent as 16 bits a number */
  TD_TAPE_SUM_SPOILED = 1 << 3   /* PARAMETER, STATE: what was written to it was not finite */
};

/** RANK_SUMS: one array, or number. */
typedef struct
{
  uint64_t sum[2];
  double sample;         /* GRADIENT, MEAN: element `at` */
  uint64_t at, size;     /* size: elements */
  uint64_t n_not_finite; /* NaN and infinite elements */
  uint32_t path;         /* string */
  uint32_t event;        /* before this event */
  uint8_t kind;          /* TdTapeSumKind */
  uint8_t flags;         /* TD_TAPE_SUM_... */
  uint8_t reserved[2];
  uint32_t n_averaged; /* MEAN: ranks that it is of; PARAMETER, STATE: site that wrote it before
                        * the update; GRADIENT that is not finite: site that made it */
} TdTapeRankSum;
static_assert (sizeof (TdTapeRankSum) == 64, "TdTapeRankSum changed size");
