/* What the engine tells whoever traces a static chain while its code runs: every operation,
 * every array that is made, and whatever else the code could see or do.  Nothing is copied for
 * it: the traced call is an ordinary call.
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

/** How an array without inputs got its numbers. */
typedef enum
{
  TD_ARRAY_FILL,   /**< every element is a */
  TD_ARRAY_ARANGE, /**< a, a + b ... */
  TD_ARRAY_UPLOAD, /**< numbers of the program's own */
  TD_ARRAY_RANDOM  /**< from the engine's stream */
} TdArrayOrigin;
typedef struct TdTraceArray
{
  TdArrayOrigin origin;
  double a, b;
  int random_kind;
  TdRngKey key;
} TdTraceArray;

/** Something to do again at every replay, with the numbers of v (NULL: none). */
typedef struct TdTraceEffect
{
  const char *name;
  void (*run) (void *data, TdVar *v);
  void (*free) (void *data); /**< may be NULL */
  void *data;
  bool (*same) (const void *a, const void *b); /**< do both do the same?  NULL: by run alone */
} TdTraceEffect;

typedef struct TdTracer TdTracer;
struct TdTracer
{
  void (*op) (TdTracer *t, const TdTraceOp *op);
  void (*array) (TdTracer *t, TdVar *v, const TdTraceArray *how);
  /** n numbers of the stream were given out, from offset on. */
  void (*random) (TdTracer *t, uint64_t offset, uint64_t n_taken);
  void (*host_read) (TdTracer *t, const TdVar *v, const TdSite *site);
  void (*effect) (TdTracer *t, const TdTraceEffect *effect, TdVar *v);
  void (*link) (TdTracer *t, bool enter, const TdPath *path, const TdSite *site, void *self,
                size_t self_bytes);
  void (*scope) (TdTracer *t, bool open, const TdScope *scope);
  /** What a schedule cannot hold: "a host write". */
  void (*refuse) (TdTracer *t, const char *what, const TdSite *site);
  /** A backward asks for the next kernel to add to the gradient of its operation's input. */
  void (*into) (TdTracer *t, struct TdNode *node);
};

/* static/, called only while TdEngine.traces is set */
/** Backward comes to op with these gradients; sets TdEngine.tracer where op is traced.  wanted
 * says which nodes want a gradient in this walk.  Says whether op is traced. */
bool td__trace_step_begin (const struct TdOp *op, TdVar *const *gy,
                           bool (*wanted) (const void *walk, const struct TdNode *n),
                           const void *walk);
/** Backward of op made gx for its input i, which is collected now unless (into) a kernel has
 * added it already. */
void td__trace_gradient (const struct TdOp *op, int i, TdVar *gx, bool into);
void td__trace_collected (const struct TdOp *op, int i);
void td__trace_step_end (TdStatus status);
/** A td_backward is over. */
void td__trace_backward_end (TdStatus status);
void td__statics_finish (void); /**< td_finish: free what is left */
/** Verify the next replay of every chain; says how many there are. */
int td__statics_verify_next (void);
/** Take "as-is", "off", "verify" or "verify=K"; says false for anything else. */
bool td__static_option (const char *value);
/** s belongs to whoever has this pointer to it, which is set to NULL when s is freed. */
void td__static_owned (TdStatic *s, TdStatic **owner);
