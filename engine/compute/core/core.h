/* The engine's own view of itself: handles, nodes, operations, buffers and the one engine
 * state.
 *
 * Chainer's split is kept, because it makes graphs die early: a TdVar (the user's handle) holds
 * a TdNode (shape, creator, array only if an operation retained it), which holds the TdOp that
 * made it, which holds its input nodes strongly and its output nodes weakly.  Gradients hang on
 * handles, so double backprop leaves no cycle.  Counts are not atomic: one thread owns the
 * engine.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <pthread.h>

#define TD_NO_SITES
#include "tapedeck.h"
#include "dtype.h"
#include "tapedeck-op.h"
#include "../device.h"
#include "../alloc/pool.h"
#include "hook-table.h"
#include "observer.h"
#include "tracer.h"

#define TD_LIKELY(x) __builtin_expect (!!(x), 1)
#define TD_UNLIKELY(x) __builtin_expect (!!(x), 0)

typedef struct TdNode TdNode;
typedef struct TdOp TdOp;
typedef struct TdBuffer TdBuffer;

/** Who holds a handle: each reference is taken and given up under a kind. */
typedef enum
{
  TD_HOLD_SCOPE,
  TD_HOLD_USER,
  TD_HOLD_LINK,
  TD_HOLD_GRADIENT,
  TD_HOLD_OPTIMIZER,
  TD_HOLD_ENGINE, /**< backward's own tables, hooks, reporter, batches */
  TD_HOLD_N
} TdHold;

enum
{
  TD_VAR_FREE,
  TD_VAR_LIVE,
  TD_VAR_DEAD,  /**< quarantined: use is caught and explained */
  TD_VAR_POISON /**< the result of a failed call */
};

/** Memory on a device, counted by the handles, nodes and views that use it. */
struct TdBuffer
{
  uint32_t refs;
  uint32_t version; /**< bumped by every in-place write */
  TdBlock *block;
  void *data;
  size_t bytes;
  TdDevice *device;
  uint64_t id;
  const TdSite *writer;    /**< of the last in-place write */
  uint32_t n_saved;        /**< how many operations retain it for backward */
  uint32_t copied_version; /**< that was copied to the devices of copied_to */
  uint16_t copied_to;      /**< bit i: device number i */
  uint8_t
      origin; /**< number of the device that it was copied from at first, plus one; 0: none */
  uint8_t category;
};

/** The user's handle.  Slots are type-stable: a dead handle can be recognised. */
struct TdVar
{
  TdVar *next; /**< free and quarantine lists; first, so that a free slot keeps its state */
  uint8_t state;
  uint8_t flags;
  uint16_t scaled_by;        /**< a TdScaledBy */
  uint32_t holds[TD_HOLD_N]; /**< by kind; refs is their sum */
  uint32_t refs;
  uint32_t died_iteration;
  TdNode *node;
  TdBuffer *buffer;
  TdVar *grad;
  const char *name; /**< interned */
  const TdSite *site;
  const TdSite *retained_site; /**< of the newest td_retain, or td_link_set_attr where no
                                  handle holds it; of the scope's end once dead */
  int64_t scope_index;
};
enum
{
  TD_VAR_YIELDED = 1,
  TD_VAR_NAMED = 2,
  TD_VAR_PERSISTENT = 4, /**< a link's parameter or state */
  TD_VAR_FIXED = 8,      /**< a parameter whose update is switched off */
  TD_VAR_FINISHED = 16,  /**< its engine has ended: free */
  TD_VAR_ADDED_TO = 64   /**< a gradient: an operation of this backward step added to it */
};
/** By which loss scale numbers are too large: that of the optimizer with this number, by whose
 * td_opt_backward they came, or that they were computed from. */
typedef enum
{
  TD_SCALED_BY_NONE = 0,
  TD_SCALED_BY_SEVERAL = 0xffff /**< or a sum with others that are not */
} TdScaledBy;

/** What an observer that counts numbers knows of a value's: nothing, what they are, or that the
 * program wrote others since. */
typedef enum
{
  TD_COUNTED_NOT,
  TD_COUNTED,
  TD_COUNTED_WRITTEN,
} TdCounted;

/** A value's place in the graph; outlives the handle while an operation needs it. */
struct TdNode
{
  uint32_t refs;
  uint32_t retained_version;
  TdOp *creator;      /**< strong */
  TdVar *var;         /**< weak: the handle, while it lives */
  TdBuffer *retained; /**< the array, if an operation kept it for backward */
  uint32_t n_retains;
  uint16_t out_index;
  uint8_t dtype;
  uint8_t layout; /**< a TdLayout: the order of its elements in memory */
  bool requires_grad;
  bool is_leaf_known; /**< the observer has been told about this leaf */
  uint8_t counted;    /**< a TdCounted: and knows its numbers, as they are now */
  uint8_t category;
  uint32_t mark; /**< of the traversal that visited it last */
  uint64_t id;
  TdVar *acc; /**< gradient collected so far, during backward */
  const char *name;
  const TdPath *path; /**< the link whose parameter it is, or NULL */
  TdDevice *device;
  TdShape shape;
};

#define TD_OP_INLINE_IN 4
#define TD_OP_INLINE_ATTRS 64
/** One operation that ran with its graph kept. */
struct TdOp
{
  uint32_t refs; /**< one per output node */
  uint32_t mark;
  uint64_t id; /**< in order of creation, so ids are a topological order */
  const TdOpClass *cls;
  const TdSite *site;
  const TdPath *path;
  void *attrs;
  int n_in, n_out;
  TdNode **in;                        /**< strong */
  TdNode **out;                       /**< weak */
  uint32_t retained_in, retained_out; /**< what this one really keeps */
  uint32_t
      orphans; /**< outputs whose node has no holder but is kept for their retained array */
  TdOp *next;  /**< release worklist, free list */
  uint32_t *in_versions; /**< buffer versions of retained inputs */
  TdNode *in_inline[TD_OP_INLINE_IN], *out_inline[2];
  uint32_t versions_inline[TD_OP_INLINE_IN];
  _Alignas(16) char attrs_inline[TD_OP_INLINE_ATTRS];
};

struct TdScope
{
  const char *name;
  const TdSite *site;
  size_t start; /**< first entry of the engine's scope stack that is ours */
  int depth;
  bool is_iteration, is_link;
  uint64_t instance;
  TdScope *outer;
};

enum
{
  TD_SLAB_ITEMS = 512 /**< of one chunk */
};
typedef struct TdSlab
{
  void *free;
  void **chunks;
  size_t n_chunks, item_bytes;
  int64_t live;
} TdSlab;

/** The engine: one per process, owned by the thread of td_init. */
typedef struct TdEngine
{
  bool started;
  pthread_t thread;
  const char *thread_mark;  /**< td__thread_mark of that thread; NULL: none yet */
  TdObserver *observer;     /**< NULL when nobody records: one predictable branch per event */
  const TdHookTable *hooks; /**< NULL when none is registered, and while one runs */
  TdConfig config;
  TdDevice *device;
  TdVar **scope_vars;
  size_t n_scope_vars, scope_capacity;
  TdScope *scope;
  TdScope root_scope;
  const TdSite *site;      /**< innermost user site, for operations made inside the engine */
  const TdSite *call_site; /**< of the call in progress, for messages */
  const TdPath *path;      /**< link path we are in, or NULL */
  TdPhase phase;
  const TdOp *twin; /**< the forward operation whose backward is running */
  uint64_t twin_id;
  uint32_t order;        /**< of the next backward operation of the twin */
  TdVar *into;           /**< accumulation target of the next call, or NULL */
  uint64_t next_id;      /* of operations: one per event, recorded or not */
  uint64_t next_node_id; /* of nodes */
  uint64_t next_buffer_id, next_scope_id;
  int64_t iteration; /**< engine number, -1 before the first */
  int64_t n_iterations;
  bool in_iteration;
  const TdSite *iteration_site;
  uint64_t iteration_node; /**< the last node before the iteration */
  int64_t iteration_limit; /**< behind so many, finish and exit; 0: no limit */
  int (*finish) (void);    /**< td_finish, where there is a limit */
  uint32_t mark;
  TdError error;
  bool has_error, error_asked;
  uint16_t loss_scaled_by;   /**< a TdScaledBy, of the backward that runs */
  bool has_scaled;           /**< some variable was scaled_by once */
  bool recording_failed;     /**< which was said then; the program's status is not 0 */
  const TdAsyncFault *fault; /**< of which an error is being reported, or NULL */
  TdSlab vars, nodes, ops, buffers;
  TdVar *quarantine_head, *quarantine_tail; /**< oldest first */
  size_t n_quarantined;
  uint64_t rng_seed, rng_offset;
  const TdOpClass *no_backward; /**< of the program's own: called, and has no backward */
  bool capturing;   /**< what is launched becomes a CUDA graph: workspace is the graphs' own */
  bool recomputing; /**< td_forget runs its function again: statistics stay as they are */
  TdOp *dying;      /**< release worklist */
  bool releasing;
  TdTracer *tracer;                    /**< NULL unless a static function's code is running */
  const TdOpClass *const *updates;     /**< the classes of optimizers, ended by NULL */
  struct TdTrace *traces;              /**< forward traces that wait for their backward */
  const TdTraceTable *trace_table;     /**< set where traces is */
  const struct TdStaticTable *statics; /**< inside.h: what others ask; NULL: nothing */
  bool inside_wanted; /**< somebody may stop behind a fused group because of what is in it: what
                         the group overwrites is kept till it is over, on devices that compute
                         in the host's memory */
  int static_verify;  /**< every so many calls of each; 0: as the functions say; -1: never */
  uint64_t state_generation; /**< bumped when a link's recurrent state is set or dropped */
  uint64_t state_reads;      /**< and when somebody asked for one */
  const struct TdWalkWatch *walk_watch; /**< who looks on while a backward runs, or NULL */
} TdEngine;

extern TdEngine td__engine;
/** Bumped whenever a link or parameter appears, gets its shape or another array, or goes:
 * optimizers look again, static schedules are made again. */
extern uint64_t td__links_generation;
/** Bump it, and remember whose path the last change was at. */
void td__links_changed (const TdPath *path, const TdSite *site);
/** *Owner*: static; "" before any change. */
const char *td__links_last (const TdSite **site);

/* life (engine.c) */
/** Its address is another one in every thread: asked for without a call. */
extern __thread char td__thread_mark __attribute__ ((tls_model ("initial-exec")));
static inline bool
td__on_engine_thread (void)
{
  return td__engine.thread_mark == &td__thread_mark;
}
TdStatus td__check_thread (const char *call);
/** Say once that another thread has called, and remember it for the exit status. */
void td__say_stranger (const char *what);
/** Another thread than the engine's calls: say so, once, and refuse.  Where nothing has begun
 * there is no such thread. */
static inline bool
td__stranger (const char *call)
{
  return TD_UNLIKELY (!td__on_engine_thread ()) && td__engine.started
         && td__check_thread (call) != TD_OK;
}
/** td__stranger, for a call that returns what changes while a program runs and no guard sees: a
 * static function whose code asks for that is none. */
static inline bool
td__asked (const char *call)
{
  if (td__stranger (call))
    return true;
  if (TD_UNLIKELY (td__engine.tracer != NULL))
    td__engine.tracer->asked (td__engine.tracer, call);
  return false;
}
/** Start it, with its defaults, unless it runs: programs may leave td_init out. */
bool td__ensure_started (void);
/** td_finish begins: every scope is closed, an error that nobody asked about is printed.
 * Returns the exit status so far. */
int td__engine_close (void);
/** The end, when every part has freed what it had.  Returns the exit status, which is not 0
 * when the recording is not whole, too. */
int td__engine_end (int status);

/* devices (device.c) */
TdDevice *td__devices_start (void); /**< the default one */
void td__devices_finish (void);
/** Add a device (tests, gpu/).  *Owner*: the registry takes it; it must stay valid till
 * td_finish. */
TdStatus td__device_register (TdDevice *device);
/** Open "cuda:N" of the module and register it.  *Errors*: NULL after td__fail. (module.c) */
TdDevice *td__cuda_device (const char *name);
/** Where a module of the engine is: what the environment says (given), or the first place, from
 * the folder of the engine's own object, that has it.  False: nowhere. (module.c) */
bool td__module_find (const char *name, const char *given, const char *const *where,
                      int n_where, char *path, size_t size);
/** Which of the processes that were started together on this machine is this one, and how many
 * are they?  0 and 1 where nobody says so. (module.c) */
void td__process_number (long *number, long *n);
/** The device of that number; NULL: none. */
TdDevice *td__device_at (int number);
/** td_mem_info, for the engine's own. */
TdMemInfo td__mem_info_whole (TdDevice *device);
/** td_mem_info without what only the device's driver knows, and without counts of objects. */
void td__mem_info (TdDevice *d, TdMemInfo *info);
/** Tell d of links and operations from here on, where it asks for that (ranges.c). */
void td__ranges_start (TdDevice *d);
/** "cuda:0 NVIDIA H200". */
const char *td__device_text (const TdDevice *device);
/** Before and after the pool of d is freed; nothing for a device that is not the module's. */
void td__cuda_end (TdDevice *d);
void td__cuda_close (TdDevice *d);
extern const TdDeviceOps td__cpu_ops; /**< engine/compute/cpu/device.c */
/** What BLAS there is and how it was built. */
const char *td__cpu_blas_version (void); /* engine/compute/cpu/gemm-blas.c */

/* errors (error.c): record the first one; returns status.  One of another thread is said there
 * and then: the engine's state is not that thread's. */
TdStatus (td__fail) (TdStatus status, const char *op, const TdSite *site, const char *format,
                     ...) __attribute__ ((format (printf, 4, 5)));
TdStatus td__fail_call (const TdOpCall *call, TdStatus status, bool operands,
                        const char *format, va_list args)
    __attribute__ ((format (printf, 4, 0)));
/** Of the error that is kept; TD_ERR_STATE where none is: another thread's. */
static inline TdStatus
td__error_status (void)
{
  return td__engine.has_error && td__on_engine_thread () ? td__engine.error.status
                                                         : TD_ERR_STATE;
}
/** Is there a list of n?  False after td__fail. */
bool td__list_there (const void *list, int64_t n, const char *call, const TdSite *site);
/** The same, and not below 0, which in lists of axes means all of them. */
bool td__list_whole (const void *list, int64_t n, const char *call, const TdSite *site);
TdVar *td__poison (void);
/** td_poisoned without a call. */
static inline bool
td__dead (const TdVar *v)
{
  return v == NULL || v->state != TD_VAR_LIVE;
}
/* Out of memory: what was asked for, what is live and in which categories, the limit. */
TdStatus (td__fail_memory) (TdDevice *device, size_t bytes, const char *op, const TdSite *site);
/* The same of an array of that shape. */
TdStatus (td__fail_memory_of) (TdDevice *device, const TdShape *shape, TdDtype dtype,
                               const char *op, const TdSite *site);

/* shells (shell.c) */
/** What was freed stays as a shell, so that one that is used all the same is recognised, also
 * after td_finish.  *Owner*: the list, which gives the oldest beyond many back. */
void td__shell_keep (void *shell);

/* slabs (slab.c) */
void td__slab_init (TdSlab *slab, size_t item_bytes);
void *td__slab_refill (TdSlab *slab);
void td__slab_finish (TdSlab *slab);
/** item_bytes: of what the slab holds, a constant. */
static inline void *
td__slab_take (TdSlab *slab, size_t item_bytes)
{
  void **item = slab->free;

  slab->live++;
  if (TD_UNLIKELY (item == NULL))
    return td__slab_refill (slab);
  slab->free = *item;
  /* A graph outgrows the first cache: ask for the next slot while this one is filled. */
  for (size_t line = 0; slab->free != NULL && line < item_bytes; line += 64)
    __builtin_prefetch ((const char *)slab->free + line, 1);
  return item;
}
static inline void
td__slab_release (TdSlab *slab, void *item)
{
  *(void **)item = slab->free;
  slab->free = item;
  slab->live--;
}

/* buffers (buffer.c) */
TdBuffer *td__buffer_new (TdDevice *device, size_t bytes, TdMemCategory category);
/** The same for the output of an operation, which the observer's after_op reports. */
TdBuffer *td__buffer_take (TdDevice *device, size_t bytes, TdMemCategory category);
/** The same of a block that was taken before. *Owner*: the buffer takes the block. */
TdBuffer *td__buffer_of (TdDevice *device, struct TdBlock *block, size_t bytes);
void td__buffer_free (TdBuffer *b);
static inline TdBuffer *
td__buffer_ref (TdBuffer *b)
{
  b->refs++;
  return b;
}
static inline void
td__buffer_unref (TdBuffer *b)
{
  if (b != NULL && --b->refs == 0)
    td__buffer_free (b);
}
void td__buffer_written (TdBuffer *b, const TdSite *site);

/* handles (var.c) */
/** Copy the numbers of v into a buffer of another device; an event.  copy: the new variable
 * that has the buffer, or NULL where v itself moves.  *Errors*: after td__fail.  *Sync*. */
TdStatus td__transfer (TdVar *v, TdBuffer *to, TdVar *copy, const TdSite *site);
/** The number of a registered device, and the names by number, ended by NULL. */
int td__device_number (const TdDevice *device);
extern const char *td__device_names[];
/** A handle for a node; takes both references, and has no holder yet. */
static inline TdVar *
td__var_new (TdNode *node, TdBuffer *buffer, const TdSite *site)
{
  TdVar *v = td__slab_take (&td__engine.vars, sizeof *v);

  for (int i = 0; i < TD_HOLD_N; i++)
    v->holds[i] = 0;
  v->state = TD_VAR_LIVE;
  v->flags = 0;
  v->scaled_by = TD_SCALED_BY_NONE;
  v->refs = 0;
  v->node = node;
  v->buffer = buffer;
  v->grad = NULL;
  v->name = NULL;
  v->site = site;
  v->retained_site = NULL;
  v->scope_index = -1;
  node->var = v;
  return v;
}
TdVar *td__var_leaf (TdDtype dtype, const TdShape *shape, TdDevice *device,
                     TdMemCategory category,
                     const TdSite *site); /**< uninitialised memory; NULL after td__fail */
/** A leaf of a buffer that is there. *Owner*: the handle takes the caller's reference. */
TdVar *td__var_of (TdDtype dtype, const TdShape *shape, TdBuffer *buffer, const TdSite *site);
/** A new input of the innermost scope, whose numbers are in a block already, or are on their
 * way in the order of the device's work. *Owner*: the handle takes the block. */
TdVar *td__tensor_of_block (TdDtype dtype, const TdShape *shape, TdDevice *device,
                            struct TdBlock *block, const TdSite *site);
TdVar *td__var_ref (TdVar *v, TdHold hold);
/** Put a gradient in place, whatever it is scaled by: td_set_grad is the program's. */
TdStatus td__put_grad (TdVar *v, TdVar *g);
/** What a program computes from a gradient that is times a loss scale is that, too. */
void td__mark_scaled (TdVar *const *in, int n_in, TdVar *const *out, int n_out);
/** The mark of what two are added up to, or computed from. */
static inline uint16_t
td__scaled_by_both (uint16_t a, uint16_t b)
{
  return a == b ? a : TD_SCALED_BY_SEVERAL;
}
void td__var_unref (TdVar *v, TdHold hold);
bool (td__var_usable) (const TdVar *v, const char *call,
                       const TdSite *site); /**< live and not poison; fails else */
void td__quarantine_age (void);
/** The handles of an engine that begins, and ends. */
void td__vars_start (void);
void td__vars_finish (void);
const char *td__intern (const char *text);
double td__host_element (const void *host, TdDtype dtype, int64_t i);

/* nodes and operations (node.c) */
/** Bit i of what a class says of its operands; those from 32 on have none. */
static inline bool
td__bit (uint32_t mask, int i)
{
  return i < 32 && (mask >> i & 1);
}
static inline TdNode *
td__node_new (void)
{
  TdEngine *e = &td__engine;
  TdNode *n = td__slab_take (&e->nodes, sizeof *n);

  n->refs = 1;
  n->creator = NULL;
  n->var = NULL;
  n->retained = NULL;
  n->retained_version = 0;
  n->n_retains = 0;
  n->out_index = 0;
  n->layout = TD_ROW_MAJOR;
  n->requires_grad = false;
  n->is_leaf_known = false;
  n->counted = TD_COUNTED_NOT;
  n->category = TD_MEM_OTHER;
  n->mark = 0;
  n->acc = NULL;
  n->name = NULL;
  n->path = NULL;
  n->id = ++e->next_node_id;
  return n;
}
void td__node_free (TdNode *n);
static inline TdNode *
td__node_ref (TdNode *n)
{
  n->refs++;
  return n;
}
static inline void
td__node_unref (TdNode *n)
{
  if (--n->refs == 0)
    td__node_free (n);
}
TdNode *td__node_revive (TdNode *n); /**< a reference, also to an orphan */
void td__op_unref (TdOp *op);
void td__node_cut (TdNode *n); /**< take n from its creator: unchain one variable */
/** n is what `of` was to its creator, and to those of these operations that take it as input.
 * array: what they keep for backward from now on, as of that version; NULL: what they kept. */
void td__node_take_place (TdNode *n, TdNode *of, TdBuffer *array, uint32_t version,
                          TdOp *const *ops, size_t n_ops);
void td__op_cut (TdOp *op); /**< drop its inputs and what it retains: unchain */

/* scopes (scope.c) */
void td__scope_grow (void);
/** Open an iteration. *Owner*: td_scope_close closes it; NULL after a call from the wrong
 * thread. */
TdScope *td__iteration_begin (int64_t label, const TdSite *site);
/** Enter v, of which the innermost scope has a reference. */
static inline void
td__scope_enter (TdVar *v)
{
  TdEngine *e = &td__engine;

  if (TD_UNLIKELY (e->n_scope_vars == e->scope_capacity))
    td__scope_grow ();
  v->scope_index = (int64_t)e->n_scope_vars;
  e->scope_vars[e->n_scope_vars++] = v;
}
/** Give the innermost scope one reference.  Returns v. */
static inline TdVar *
td__scope_add (TdVar *v)
{
  td__scope_enter (v);
  v->holds[TD_HOLD_SCOPE]++;
  v->refs++;
  return v;
}
/** Give the innermost scope the reference that the engine has. */
static inline void
td__scope_take (TdVar *v)
{
  td__scope_enter (v);
  v->holds[TD_HOLD_ENGINE]--;
  v->holds[TD_HOLD_SCOPE]++;
}
void td__scope_hand_out (TdVar *v);
/** Give up what the innermost scope got since it had `start` entries. */
void td__scope_unwind (size_t start);

/* calls (apply.c) */
/** What one call needs while it runs. */
typedef struct TdRun
{
  TdOpCall call; /**< first: kernels ask for workspace by it */
  TdVar *const *in;
  TdNode **nodes;     /**< of the outputs */
  TdBuffer **buffers; /**< of the outputs */
  const TdSite *site;
  TdDevice *device;
  bool wants_gradient; /**< some input does, and may have one */
  bool graph;
  uint8_t category; /**< of the outputs' memory */
  TdVar *into;
  TdBlock *workspace;
} TdRun;
/** Build the graph's record of a call whose nodes and buffers are there; its id is
 * TdEngine.next_id. */
TdOp *td__graph_keep (const TdRun *r, uint64_t id);
/** Config keep_graph: is the graph of this call kept, though no gradient goes through it?
 * (keep-graph.c) */
bool td__keeps_graph (const TdRun *r);
/** Of a call under keep_graph: arrays that it was given stay; where nothing wants a gradient,
 * results do not either.  Returns op. */
TdOp *td__keep_apart (const TdRun *r, TdOp *op);
/** Does this call's result want a gradient? */
bool td__wants_graph (const TdRun *r);
/** td_apply_at for the engine's own calls, whose classes compute by the device's kernels. */
TdStatus td__apply_at (const TdOpClass *cls, const void *attrs, TdVar *const *in, int n_in,
                       TdVar **out, int n_out, const TdSite *site);
TdVar *td__apply1 (const TdOpClass *cls, const void *attrs, const TdSite *site, TdVar *x);
TdVar *td__apply2 (const TdOpClass *cls, const void *attrs, const TdSite *site, TdVar *a,
                   TdVar *b);
TdVar *td__apply3 (const TdOpClass *cls, const void *attrs, const TdSite *site, TdVar *a,
                   TdVar *b, TdVar *c);
TdVar *td__applyn (const TdOpClass *cls, const void *attrs, const TdSite *site,
                   TdVar *const *in, int n_in);
/** Run an in-place update (optimizers): in[i] for i in cls->writes are overwritten; an event of
 * phase update, no graph. */
TdStatus td__apply_update (const TdOpClass *cls, const void *attrs, TdVar *const *in, int n_in,
                           const TdSite *site);
TdRngKey td__rng_take (uint64_t n_numbers); /**< a place in the stream for n numbers */

/* layouts (layout.c) */
/** v in that layout: v itself, or what a recorded operation makes of it.  *Owner*: the scope.
 */
TdVar *td__to_layout (TdVar *v, TdLayout layout, const TdSite *site);
/** Say in which layout this call is to be made, and bring its inputs there.  room: where the
 * new list of inputs goes; those that were made are held until td__layout_end. */
TdStatus td__layout_begin (TdRun *r, TdVar **room);
void td__layout_end (const TdRun *r, TdVar *const *given);
/** After infer: the layout of the outputs of a call that is made in another than row-major. */
void td__layout_outputs (TdRun *r);
/** The layout of a call's operands, as its forward finds them. */
TdLayout td__call_layout (const TdOpCall *call);
/** Where an axis is among them. */
int td__layout_axis (int axis, int ndim, TdLayout layout);
/** Copy between two layouts of one shape. (to-layout.c) */
TdStatus td__layout_copy (TdDevice *d, const TdTensor *from, TdTensor *to);
/** The sizes in the order in which an array of that layout lies in memory. */
TdShape td__layout_sizes (const TdShape *shape, TdLayout layout);

/** What a call of an operation is to hooks, as far as its class says. */
TdFunctionCall td__function_call (const TdOpClass *cls, const void *attrs, const TdSite *site,
                                  const TdPath *path, char *label, size_t label_size);

/** Config debug: every output must be finite. */
TdStatus td__debug_check (const TdRun *r);

/* backward (backward.c) */
TdStatus td__backward_run (TdVar *const *ys, int n_y, TdVar *const *gys, TdVar *const *xs,
                           int n_x, TdVar **gxs, unsigned flags, const TdSite *site);
/** Fail for a root, or its gradient, that was computed from one that is times a loss scale. */
TdStatus td__backward_check_scaled (const TdVar *y, const TdVar *gy, const char *call,
                                    const TdSite *site);
/** Say whether the run that calls b is td_grad_of, which touches no variable's own gradient. */
bool td__backward_has_targets (const TdBackward *b);
/** The operation whose backward runs. */
TdOp *td__backward_op (const TdBackward *b);
bool td__backward_is_double (const TdBackward *b);
/** Say whether results of the operation keep their gradients: TD_RETAIN_GRADS, or td_grad_of
 * was asked for one. */
bool td__backward_wants_results (const TdBackward *b);
/** A gradient's memory that a kernel may add to for input i, or NULL: as td_backward_into. */
TdVar *td__backward_target (TdBackward *b, int i);
/** Borrow the gradient of input i that one given now would be added to, or NULL. */
TdVar *td__backward_collected (TdBackward *b, int i);
/** In which layout input i is, and its gradient will be. */
TdLayout td__backward_in_layout (const TdBackward *b, int i);
/** Hand on a gradient of input i now; accumulated: a kernel has added it to the target. */
TdStatus td__backward_propagate (TdBackward *b, int i, TdVar *g, bool accumulated);
/** Would a gradient given now be added to one that is there, by a kernel? */
bool td__backward_adds (const TdBackward *b, int i);
/** Go on through a graph that ends in ys, as if it had stood in place of this operation; gys
 * hold NULLs where no gradient arrived. */
TdStatus td__backward_splice (TdBackward *b, TdVar *const *ys, TdVar *const *gys, int n_y,
                              uint64_t first_id);

/* The operations that core makes itself: gradients are summed, and change their layout. */
extern const TdOpClass td__add_class, td__add_into_class, td__broadcast_to_class,
    td__sum_to_class, td__to_layout_class;

/** The name of the setting at this offset of TdConfig. */
const char *td__config_name (size_t offset);

/* shapes (shape.c) */
/** Elements of a shape whose bytes are known to be in range.  (Unsigned: before an axis of 0
 * the others may be of any size.) */
static inline int64_t
td__size (const TdShape *shape)
{
  uint64_t n = 1;

  for (int i = 0; i < shape->ndim; i++)
    n *= (uint64_t)shape->dim[i];
  return (int64_t)n;
}
/** td_shape_equal without a call. */
static inline bool
td__same_shape (const TdShape *a, const TdShape *b)
{
  bool same = a->ndim == b->ndim;

  for (int i = 0; same && i < a->ndim; i++)
    same = a->dim[i] == b->dim[i];
  return same;
}
bool td__shape_bytes (const TdShape *shape, TdDtype dtype,
                      size_t *bytes); /**< false on overflow */
bool td__shape_broadcast (const TdShape *a, const TdShape *b, TdShape *out);
int td__axis (int axis, int ndim); /**< normalised, or -1 */

#include "promises.h"

#define TD_ARRAY_LENGTH(a) (int)(sizeof (a) / sizeof ((a)[0]))
