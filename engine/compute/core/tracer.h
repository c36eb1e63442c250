/* The tracer: call-backs by which a static function is traced while its code runs.  They report
 * every operation, every new array, and everything else by which the code could depend on its
 * surroundings or change them.  The traced call itself is an ordinary call.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "observer.h"

struct TdNode;
struct TdBuffer;
struct TdOp;

/** An operation that succeeded. */
typedef struct TdTraceOp
{
  const TdOpCall *call;
  TdVar *const *in;
  struct TdNode *const *nodes;     /**< of the outputs */
  struct TdBuffer *const *buffers; /**< of the outputs */
  const TdSite *site;
  const TdPath *path;
  bool graph;
  TdVar *into; /**< what it added to, where call->accumulate */
} TdTraceOp;

/** How an array that is no operation's output got its values. */
typedef enum
{
  TD_ARRAY_FILL,   /**< every element is a */
  TD_ARRAY_ARANGE, /**< a, a + b ... */
  TD_ARRAY_UPLOAD, /**< values from the program's memory */
  TD_ARRAY_RANDOM  /**< from the engine's random numbers */
} TdArrayOrigin;
typedef struct TdTraceArray
{
  TdArrayOrigin origin;
  double a, b;
  int random_kind;
  TdRngKey key;
  bool drawn; /**< of values from the program's memory: they come from the engine's random
                 numbers */
} TdTraceArray;

/** Code to run at every replay, with the values of v (NULL: none). */
typedef struct TdTraceEffect
{
  const char *name;
  void (*run) (void *data, TdVar *v);
  void (*free) (void *data); /**< may be NULL */
  void *data;
  bool (*same) (const void *a, const void *b); /**< NULL: by run alone */
} TdTraceEffect;

typedef struct TdTracer TdTracer;
struct TdTracer
{
  void (*op) (TdTracer *t, const TdTraceOp *op);
  void (*array) (TdTracer *t, TdVar *v, const TdTraceArray *how);
  /** n random numbers were drawn, from offset on. */
  void (*random) (TdTracer *t, uint64_t offset, uint64_t n_taken);
  void (*host_read) (TdTracer *t, const TdVar *v, const TdSite *site);
  /** The code asks for the shape of v, its dtype or its device. */
  void (*looked) (TdTracer *t, TdVar *v);
  /** It asks, by this call, for what changes while a program runs and no guard sees. */
  void (*asked) (TdTracer *t, const char *call);
  void (*effect) (TdTracer *t, const TdTraceEffect *effect, TdVar *v);
  void (*link) (TdTracer *t, bool enter, const TdPath *path, const TdSite *site, void *self,
                size_t self_bytes);
  void (*scope) (TdTracer *t, bool open, const TdScope *scope);
  /** The code did something that a schedule cannot contain: "a host write". */
  void (*refuse) (TdTracer *t, const char *what, const TdSite *site);
  /** A backward lets its next kernel accumulate into the gradient of an input. */
  void (*into) (TdTracer *t, struct TdNode *node);
};

/** How backward asks the traces that wait for it, called only while TdEngine.traces is set. */
typedef struct TdTraceTable
{
  /** Backward reaches op with these gradients.  If op belongs to a trace, set TdEngine.tracer
   * and return true.  wanted: the nodes that need a gradient in this walk. */
  bool (*step_begin) (const struct TdOp *op, TdVar *const *gy,
                      bool (*wanted) (const void *walk, const struct TdNode *n),
                      const void *walk);
  /** The backward of op made gx for its input i.  It is accumulated next, unless (into) a
   * kernel has done that already. */
  void (*gradient) (const struct TdOp *op, int i, TdVar *gx, bool into);
  void (*collected) (const struct TdOp *op, int i);
  void (*step_end) (TdStatus status);
  /** A td_backward is over. */
  void (*backward_end) (TdStatus status);
} TdTraceTable;
