/* Models of the peer workloads, and the numbers that they are made of.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck.h"

enum
{
  POOL = 4,  /* batches, used in rotation */
  STEPS = 50 /* of the recurrent network */
};

typedef struct
{
  TdLink *root, *layer[40];
  int n_layers;
  TdOpt *opt;
  TdVar *x[POOL][STEPS], *t[POOL][STEPS];
  TdVar *zero; /* first h and c of the recurrent network */
  TdVar *ids;  /* 0 .. 63, the places of the transformer */
} Model;

typedef struct
{
  const char *name;
  void (*make) (Model *m);
  TdVar *(*loss) (Model *m, int k);
} PeerModel;
extern const PeerModel peer_models[];
extern const int n_peer_models;

/** n numbers, uniform in [-scale, scale).  *Owner*: the caller. */
float *peer_numbers (int64_t n, uint32_t seed, float scale);
/** The same as a variable.  *Owner*: the caller. */
TdVar *peer_array (TdShape shape, uint32_t seed, float scale);
