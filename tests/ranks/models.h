/* Small models that ranks train, and what must be said of their numbers.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "ranks.h"

enum
{
  MOST = 8,    /* ranks */
  ROOM = 4096, /* numbers of a model */
  BATCH = 6
};

/** All parameters of a model, one after the other. */
typedef struct
{
  float numbers[ROOM];
  size_t n;
} Numbers;

/** 8 to 16 to 4, by weights of this seed. */
TdLink *mlp (const char *name, int64_t in_size, unsigned seed);
Numbers params_of (TdLink *link);
/** Fail unless all ranks have the same bits. */
void assert_params_same_on_all_ranks (TdLink *link);
void assert_params_near (TdLink *a, TdLink *b, double tolerance);
/** One update by the batches of the ranks first .. end - 1. */
void train_step (TdLink *model, TdOpt *opt, int first, int end, int step);
