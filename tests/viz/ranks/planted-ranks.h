/* Tapes of the ranks of a small run, made by hand: two layers, one mean a step, everything as
 * it should be; a fault is planted by changing what one rank writes in a step.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "ranks/td-ranks.h"
#include "td-synthetic-tape.h"

#define PLANTED_MOST_RANKS 8
#define PLANTED_MOST_ROWS 32
#define PLANTED_STEP_NS 1000000u

typedef struct PlantedRun PlantedRun;

/** What one rank does in one step, before it is written. */
typedef struct
{
  PlantedRun *run;
  TdTapeWriter *w;
  guint rank;
  gint64 iteration;
  /* operations */
  gint64 batch;      /* rows of x */
  gboolean other_op; /* sigmoid at model.c:88 where the others have relu at model.c:12 */
  gboolean adds;     /* the loss is a sum over examples, and not their mean */
  guint doubled;     /* times, of a term of the loss that is made of weights alone */
  gboolean unused;   /* the layer l2 */
  gboolean no_update, no_backward, updates_twice;
  gboolean nan;           /* exp at model.c:88 makes one; statistics are recorded */
  double input_mean;      /* of x; 0: no statistics */
  const char *attrs;      /* of relu; NULL: none */
  gboolean received;      /* before it, at model.c:11, comm_allreduce brings a NaN */
  gboolean summed;        /* comm_allreduce is there without one */
  gboolean clips;         /* the gradient of l2/W at model.c:22 */
  gboolean reads;         /* and makes nothing of it, at model.c:23 */
  gboolean clips_in_vain; /* it makes the same, and updates with what was before */
  gint64 evaluated;       /* rows of an evaluation after the update; 0: none */
  /* sums */
  TdTapeRankSum sums[PLANTED_MOST_ROWS];
  guint n_sums;
  TdTapeCollective waits[PLANTED_MOST_ROWS];
  guint n_waits;
  gboolean is_live, is_left_out; /* the tape does not have it at all */
} PlantedStep;

struct PlantedRun
{
  guint n_ranks, n_steps;
  void (*plant) (PlantedStep *step); /* NULL: nothing */
  /* the rank's clock runs so much ahead of the true time; its machine */
  gint64 clock_ns[PLANTED_MOST_RANKS];
  guint64 start_ns[PLANTED_MOST_RANKS]; /* its tape begins so much after the run */
  const char *host[PLANTED_MOST_RANKS];
  const char *device[PLANTED_MOST_RANKS], *uuid[PLANTED_MOST_RANKS];
  const char *of_run[PLANTED_MOST_RANKS]; /* what the tape says of it; NULL: nothing */
  guint64 late_ns[PLANTED_MOST_RANKS];    /* it comes to each meeting */
  TdTapeEnd end[PLANTED_MOST_RANKS];
  const char *note[PLANTED_MOST_RANKS]; /* a text before the end; NULL: none */
  gboolean no_end[PLANTED_MOST_RANKS], no_tape[PLANTED_MOST_RANKS];
  gboolean half; /* means are of half precision */
};

/** Write the tapes to the test's folder and look at them. Owner: the caller. */
TdRanks *planted_look (PlantedRun *run);
/** The same without looking; returns the folder. Owner: the test. */
const char *planted_write (PlantedRun *run);

/** Find a sum of a step; fails the test when there is none. */
TdTapeRankSum *planted_sum (PlantedStep *step, guint kind, const char *path);
/** Find a finding by its cause; NULL: there is none. */
const TdRanksFinding *planted_find (const TdRanks *ranks, TdRanksCause cause);

/** Look at four ranks, six steps, with this planted. Owner: the caller. */
TdRanks *planted_look_at (void (*plant) (PlantedStep *step));
/** Fail unless nothing at all is said, notes included; the same of such a run. */
void planted_assert_nothing (TdRanks *ranks);
void planted_assert_cured (void (*plant) (PlantedStep *step));
/** Fail unless this was found there, and is the only fault. Owner: borrowed. */
const TdRanksFinding *planted_assert_found (const TdRanks *ranks, TdRanksCause cause,
                                            TdRanksLevel level, gint64 iteration);
/** Fail unless the finding is of these ranks. */
void planted_assert_ranks (const TdRanksFinding *f, guint n, const guint *ranks);
#define ASSERT_RANKS(f, ...)                                                                   \
  planted_assert_ranks ((f), G_N_ELEMENTS (((const guint[]){ __VA_ARGS__ })),                  \
                        (const guint[]){ __VA_ARGS__ })
