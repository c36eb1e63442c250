/* What the files of cuDNN share: its functions, graphs being built, plans by key.  Its types
 * are in these files (cudnn*.c) alone.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "cudnn.h"

#include <cudnn_graph.h>

#define TD_DNN_FUNCTIONS(X)                                                                    \
  X (cudnnCreate)                                                                              \
  X (cudnnDestroy)                                                                             \
  X (cudnnSetStream)                                                                           \
  X (cudnnGetVersion)                                                                          \
  X (cudnnGetErrorString)                                                                      \
  X (cudnnGetLastErrorString)                                                                  \
  X (cudnnBackendCreateDescriptor)                                                             \
  X (cudnnBackendDestroyDescriptor)                                                            \
  X (cudnnBackendFinalize)                                                                     \
  X (cudnnBackendSetAttribute)                                                                 \
  X (cudnnBackendGetAttribute)                                                                 \
  X (cudnnBackendExecute)

typedef cudnnBackendDescriptor_t TdDnn;

/** Its functions; to be used after td__dnn_load has said that they are here. */
extern struct TdDnnApi
{
  bool tried, here;
  void *library;
#define TD_DNN_FIELD(name) __typeof__ (name) *name;
  TD_DNN_FUNCTIONS (TD_DNN_FIELD)
#undef TD_DNN_FIELD
} td__dnn;

bool td__dnn_load (void);

enum
{
  TD_DNN_MADE = 96,       /* descriptors of a graph */
  TD_DNN_KEY_WORDS = 32,  /* of the largest key, in 8 bytes */
  TD_DNN_MAX_TENSORS = 16 /* that a graph reads and writes */
};

/** A graph being built: the first thing that goes wrong stays. */
typedef struct TdDnnGraph
{
  TdDnn made[TD_DNN_MADE]; /**< freed with the graph */
  int n;
  cudnnStatus_t status;
} TdDnnGraph;

TdDnn td__dnn_add (TdDnnGraph *g, cudnnBackendDescriptorType_t type);
void td__dnn_set (TdDnnGraph *g, TdDnn d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t n, const void *values);
/** Set one descriptor as an attribute of another. */
void td__dnn_link (TdDnnGraph *g, TdDnn d, cudnnBackendAttributeName_t name, TdDnn part);
void td__dnn_finalize (TdDnnGraph *g, TdDnn d);
void td__dnn_clear (TdDnnGraph *g);
/** Make a graph of n operations, finalised. */
TdDnn td__dnn_operation_graph (TdDnnGraph *g, const TdDnn *operations, int n,
                               cudnnHandle_t handle);

/** The names of a dtype; known: it has them. */
typedef struct TdDnnType
{
  bool known;
  cudnnDataType_t type, compute;
} TdDnnType;
extern const TdDnnType td__dnn_types[8];

/** A kind of graph, made from a key that holds all it depends on. */
typedef struct TdDnnKind
{
  const char *what; /**< in errors */
  size_t key_bytes;
  TdDnn (*graph) (TdDnnGraph *g, const void *key, cudnnHandle_t handle);
  /** May an engine compute on tensor cores? */
  bool (*tensor_cores) (const void *key);
  /** May it run twice on the same memory and leave the same there? */
  bool (*repeats) (const void *key);
} TdDnnKind;
extern const TdDnnKind td__dnn_conv, td__dnn_attention;

enum
{
  TD_DNN_RIVALS = 8
};

/** Plans for one key, best first by the heuristics. */
typedef struct TdDnnRivals
{
  int n, wanted;
  TdDnn plan[TD_DNN_RIVALS];
  int64_t workspace_bytes[TD_DNN_RIVALS];
} TdDnnRivals;

/** The plan of one key; none: cuDNN knows no way.  More than one: the first call times them. */
typedef struct TdDnnPlan
{
  const TdDnnKind *kind;
  uint64_t key[TD_DNN_KEY_WORDS];
  bool tuned; /**< it is, or will be, the fastest */
  bool tried; /**< its relu lets NaN pass */
  TdDnnRivals rivals;
} TdDnnPlan;

enum
{
  TD_DNN_PLANS = 256
};

typedef struct TdCudnn
{
  TdCuda *of;
  cudnnHandle_t handle;
  char *properties; /**< of the device, for the key of what is kept on disk; may be NULL */
  TdDnnPlan plans[TD_DNN_PLANS];
  struct TdDnnRnn *rnn; /**< NULL till the first recurrent layers */
} TdCudnn;

void td__dnn_rnn_close (TdCudnn *own);

/** The device's handle; NULL: none to be had, *status TD_OK where that is no error. */
TdCudnn *td__dnn_of (TdCuda *c, TdStatus *status);
/** Do without this plan from here on: its key has none. */
void td__dnn_refuse (TdDnnPlan *p);
/** The plan of a key, made if need be. */
TdDnnPlan *td__dnn_plan (TdCudnn *own, const TdDnnKind *kind, const void *key);
/** Put the plan on the stream; ids and data are its tensors'. */
TdStatus td__dnn_execute (TdCuda *c, TdDnnPlan *p, const int64_t *ids, void *const *data,
                          int n);
/** Turn what cuDNN returned into an error. */
TdStatus td__dnn_fail (TdCuda *c, cudnnStatus_t result, const char *what);
/** Keep a plan on disk. */
void td__dnn_keep (TdDnn plan, const TdDnnKind *kind, const void *key, const char *properties,
                   bool tuned);
