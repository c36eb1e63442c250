/* Tapedeck: the C API that models are written against; the only header a model includes.
 *
 * A model is an ordinary C program.  Calls build the graph that really ran; td_backward walks
 * it. Every function that returns a TdVar returns one owned by the innermost open scope:
 * td_retain makes it yours.  A call that fails returns a poisoned variable, never NULL;
 * td_error () holds the first failure, and operations on poison return poison, so calls nest
 * without checks. Functions (relu, linear ...) are in tapedeck-functions.h, links in
 * tapedeck-links.h, optimizers in tapedeck-optim.h, files in tapedeck-serial.h, data in
 * tapedeck-data.h, training in tapedeck-train.h, in several processes in
 * tapedeck-ranks.h: all are included here.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For C++: C linkage, without a brace that would indent the header. */
#ifdef __cplusplus
#define TD_BEGIN_DECLS                                                                         \
  extern "C"                                                                                   \
  {
#define TD_END_DECLS }
#else
#define TD_BEGIN_DECLS
#define TD_END_DECLS
#endif

TD_BEGIN_DECLS

#ifndef TD_API
#define TD_API __attribute__ ((visibility ("default")))
#endif

#define TD_MAX_DIMS 8

typedef struct TdVar TdVar;
typedef struct TdScope TdScope;
typedef struct TdLink TdLink;
typedef struct TdOpt TdOpt;
typedef struct TdOptHook TdOptHook;
typedef struct TdDataset TdDataset;
typedef struct TdIter TdIter;
typedef struct TdDevice TdDevice;
typedef struct TdOpClass TdOpClass;

/** Element types of arrays. */
typedef enum
{
  TD_F32,
  TD_F64,
  TD_F16,
  TD_BF16,
  TD_I32,
  TD_I64,
  TD_U8,
  TD_BOOL
} TdDtype;

/** What a call came to; negative is failure. */
typedef enum
{
  TD_OK,
  TD_ERR_SHAPE = -1,
  TD_ERR_DTYPE = -2,
  TD_ERR_DEVICE = -3,
  TD_ERR_MEMORY = -4,
  TD_ERR_NUMERIC = -5,
  TD_ERR_STATE = -6,
  TD_ERR_IO = -7,
  TD_ERR_ARG = -8
} TdStatus;

/** Sizes of an array, row-major; ndim 0 is a scalar, at most 8 dimensions. */
typedef struct
{
  int ndim;
  int64_t dim[TD_MAX_DIMS];
} TdShape;

/** A place in the user's program. */
typedef struct TdSite
{
  const char *file;
  const char *func;
  int line;
} TdSite;

/** The first failure: its kind, the operation, the place, and one line of text. */
typedef struct TdError
{
  TdStatus status;
  const char *op;
  const TdSite *site;
  char message[1024];
} TdError;

/* --- Call sites.  A call's site is one static object, made outside the user's arguments, so
 * that nested calls on several lines keep their own lines.  Engine code defines TD_NO_SITES:
 * its operations take the innermost user site.
 * ------------------------------------------------- */
#define TD_HERE                                                                                \
  (__extension__({                                                                             \
    static const TdSite td_site_ = { __FILE__, __func__, __LINE__ };                           \
    &td_site_;                                                                                 \
  }))

#define TD_CAT_(a, b) a##b
#define TD_CAT(a, b) TD_CAT_ (a, b)
#define TD_CLEANUP_(fn) __attribute__ ((unused, cleanup (fn)))
#if defined(__clang__)
#define TD_OVERRIDES_BEGIN_                                                                    \
  _Pragma ("clang diagnostic push")                                                            \
      _Pragma ("clang diagnostic ignored \"-Winitializer-overrides\"")
#define TD_OVERRIDES_END_ _Pragma ("clang diagnostic pop")
#else
#define TD_OVERRIDES_BEGIN_                                                                    \
  _Pragma ("GCC diagnostic push") _Pragma ("GCC diagnostic ignored \"-Woverride-init\"")
#define TD_OVERRIDES_END_ _Pragma ("GCC diagnostic pop")
#endif
/* Named options: an options struct by value whose defaults the caller's designators override.
 * What comes without a name stands behind the last member: compilers say that it is too many.
 */
#define TD_OPTIONS_(Type, defaults, ...)                                                       \
  (__extension__(Type){ defaults, .end_ = 0, __VA_ARGS__ })
/* The same of options that may come in their order, without names, as well. */
#define TD_OPTIONS_IN_ORDER_(Type, ...) (__extension__(Type){ __VA_ARGS__ })
/* A call with such options.  The call stands in the block of the options, so that arrays and
 * structs which are written in place, .axes = (int[]){ 0 }, live until it returns. */
#define TD_CALL_(...)                                                                          \
  (__extension__({                                                                             \
    TD_OVERRIDES_BEGIN_ __VA_ARGS__;                                                           \
    TD_OVERRIDES_END_                                                                          \
  }))

#define TD_NARGS_(...) (int)(sizeof ((int64_t[]){ __VA_ARGS__ }) / sizeof (int64_t))
/** A shape from its sizes: TD_SHAPE (2, 3).  TD_SCALAR has no dimensions. */
#define TD_SHAPE(...) (__extension__(TdShape){ TD_NARGS_ (__VA_ARGS__), { __VA_ARGS__ } })
#define TD_SCALAR (__extension__(TdShape){ 0, { 0 } })

/* --- life --------------------------------------------------------------------------------- */
/** Start the engine; takes --td-... options out of the arguments and attaches to tapedeck if
 * it started this program.  *Errors*: TD_ERR_ARG for an unknown --td-... option (printed,
 * exit 2). */
TD_API TdStatus td_init (int *argc, char ***argv);
/** End: release everything, print the first error that nobody asked about; 0, or 1 on error.
 */
TD_API int td_finish (void);
/** Borrow the first error since the last td_error_clear, or NULL. */
TD_API const TdError *td_error (void);
TD_API void td_error_clear (void);
/** Say whether a variable came from a failed call. */
TD_API bool td_poisoned (const TdVar *v);
/** The version, "X.Y.Z". */
TD_API const char *td_version (void);
/** A name for a status: "shape", "dtype" ... */
TD_API const char *td_status_name (TdStatus status);

/* --- scopes ------------------------------------------------------------------------------- */
TD_API TdScope *td_scope_open_at (const char *name, const TdSite *site);
TD_API TdScope *td_scope_open (const char *name); /**< Variables from here on are its own. */
TD_API void td_scope_close (TdScope *scope);      /**< Frees them, once. */
/** Hand a variable of the innermost scope to the scope outside it.  Returns v. */
TD_API TdVar *td_scope_yield (TdVar *v);
/** Make v yours until td_release.  Returns v. */
TD_API TdVar *td_retain_at (TdVar *v, const TdSite *site);
TD_API TdVar *td_retain (TdVar *v);
/** Give up what td_retain gave; outside any scope's ownership the variable dies. */
TD_API void td_release (TdVar *v);
TD_API void td__scope_cleanup (TdScope **scope);
TD_API TdScope *td__iteration_open (int64_t label, const TdSite *site);
TD_API bool td__iteration_step (TdScope **scope, int64_t i, int64_t n, const TdSite *site);

#define TD_BLOCK_(n, open)                                                                     \
  for (TdScope * TD_CAT (td_scope_, n) TD_CLEANUP_ (td__scope_cleanup) = (open),               \
                                                   *TD_CAT (td_once_, n)                       \
                                                   = TD_CAT (td_scope_, n);                    \
       TD_CAT (td_once_, n) != NULL; TD_CAT (td_once_, n) = NULL)
#define TD_ITERATIONS_(n, i, count)                                                            \
  for (TdScope * TD_CAT (td_scope_, n) TD_CLEANUP_ (td__scope_cleanup) = NULL,                 \
                                                   *TD_CAT (td_once_, n)                       \
                                                   = (TdScope *)&TD_CAT (td_scope_, n);        \
       TD_CAT (td_once_, n) != NULL; TD_CAT (td_once_, n) = NULL)                              \
    for (int i = 0; td__iteration_step (&TD_CAT (td_scope_, n), i, (count), TD_HERE); i++)

/** A block whose variables die at its end, however it is left. */
#define TD_SCOPE(name) TD_BLOCK_ (__COUNTER__, td_scope_open_at (name, TD_HERE))
/** A declaration: a scope that lasts to the end of the enclosing block. */
#define TD_SCOPE_HERE(name)                                                                    \
  TdScope *TD_CAT (td_scope_here_, __LINE__) TD_CLEANUP_ (td__scope_cleanup)                   \
      = td_scope_open_at (name, TD_HERE)
/** One iteration, as a block; label is the user's own number for it.  Iterations do not nest.
 */
#define TD_ITERATION(label) TD_BLOCK_ (__COUNTER__, td__iteration_open ((label), TD_HERE))
/** The loop itself: declares int i, runs the block n times; break ends the loop. */
#define TD_ITERATIONS(i, n) TD_ITERATIONS_ (__COUNTER__, i, n)

/* --- arrays ------------------------------------------------------------------------------- */
/** Copy host data into a new array (NULL: zeros); it gets no gradient. */
TD_API TdVar *td_tensor_at (TdDtype dtype, TdShape shape, const void *host, const TdSite *site);
TD_API TdVar *td_tensor (TdDtype dtype, TdShape shape, const void *host);
TD_API TdVar *td_zeros (TdDtype dtype, TdShape shape);
TD_API TdVar *td_ones (TdDtype dtype, TdShape shape);
/** An array of one number.  *Errors*: TD_ERR_ARG where a dtype of whole numbers does not reach
 * it (300 in u8); what is behind the point is cut off.  *Source*: numpy.full, td_arange alike.
 */
TD_API TdVar *td_full (TdDtype dtype, TdShape shape, double value);
TD_API TdVar *td_zeros_like (TdVar *v);
TD_API TdVar *td_arange (TdDtype dtype, double start, double stop, double step);
/** Normal (0, 1) numbers, from the engine's Philox stream. */
TD_API TdVar *td_randn (TdDtype dtype, TdShape shape);
/** Uniform [0, 1) numbers, from the engine's Philox stream. */
TD_API TdVar *td_rand (TdDtype dtype, TdShape shape);
/** Make v a leaf that wants a gradient from here on, and name it.  Returns v. */
TD_API TdVar *td_variable_at (TdVar *v, const char *name, const TdSite *site);
TD_API TdVar *td_variable (TdVar *v, const char *name);
/** Name v (shown in graphs).  Returns v. */
TD_API TdVar *td_name (TdVar *v, const char *name);
TD_API TdShape td_shape (const TdVar *v);
TD_API int td_ndim (const TdVar *v);
TD_API int64_t td_size (const TdVar *v);
TD_API TdDtype td_dtype (const TdVar *v);
TD_API TdDevice *td_device (const TdVar *v);
/** The one number of a one-element array.  *Errors*: NaN on poison.  *Sync*: blocks;
 * recorded. */
TD_API double td_item_at (const TdVar *v, const TdSite *site);
TD_API double td_item (const TdVar *v);
/** The mean over all elements.  *Sync*: blocks; recorded. */
TD_API double td_mean_of_at (const TdVar *v, const TdSite *site);
TD_API double td_mean_of (const TdVar *v);
/** Copy a whole array to the host; bytes must be its exact size.  *Sync*: blocks; recorded.
 */
TD_API TdStatus td_read_at (const TdVar *v, void *host, size_t bytes, const TdSite *site);
TD_API TdStatus td_read (const TdVar *v, void *host, size_t bytes);
/** Overwrite a whole array in place; bumps its version. */
TD_API TdStatus td_write_at (TdVar *v, const void *host, size_t bytes, const TdSite *site);
TD_API TdStatus td_write (TdVar *v, const void *host, size_t bytes);
TD_API size_t td_dtype_bytes (TdDtype dtype);
TD_API const char *td_dtype_name (TdDtype dtype);

/* --- gradients ---------------------------------------------------------------------------- */
enum
{
  TD_DOUBLE_BACKPROP = 1, /**< gradients get graphs of their own */
  TD_RETAIN_GRADS = 2     /**< keep the gradients of intermediate variables */
};
/** Back-propagate from y; the seed is y's gradient, or 1 for one element (Chainer's
 * backward). */
TD_API TdStatus td_backward_at (TdVar *y, unsigned flags, const TdSite *site);
TD_API TdStatus td_backward (TdVar *y, unsigned flags);
/** Several roots at once; gys may be NULL, or hold NULLs for roots of one element. */
TD_API TdStatus td_backward_all (TdVar *const *ys, int n_y, TdVar *const *gys, unsigned flags);
/** Gradients of ys in xs without touching any variable's own gradient (chainer.grad).
 * gxs[i] is NULL where no path leads to xs[i]. */
TD_API TdStatus td_grad_of (TdVar *const *ys, int n_y, TdVar *const *xs, int n_x,
                            TdVar *const *gys, unsigned flags, TdVar **gxs);
/** Borrow v's gradient, or NULL. */
TD_API TdVar *td_grad (const TdVar *v);
/** Put a gradient in place, or take it away (NULL).  *Errors*: TD_ERR_STATE where the one that
 * is there is times a loss scale (td_opt_backward), or g is computed from one: nobody knows
 * whether to divide it.  A hook of the optimizer sees gradients divided. */
TD_API TdStatus td_set_grad (TdVar *v, TdVar *g);
TD_API void td_cleargrad (TdVar *v);
/** Drop the gradients of all parameters below a link. */
TD_API void td_cleargrads (TdLink *link);
/** Cut v from the operation that made it. */
TD_API void td_unchain (TdVar *v);
/** Cut every operation that v was made by, back to the leaves. */
TD_API void td_unchain_backward (TdVar *v);
/** Write the graph behind y as DOT (.dot), or drawn (.png, .svg, .pdf) through tapedeck-viz. */
typedef struct
{
  const char *rankdir;                         /**< "TB", "BT", "LR" or "RL" */
  bool remove_variable;                        /**< operations only */
  bool show_name;                              /**< names of variables in their labels */
  const char *variable_style, *function_style; /**< DOT attributes, NULL for Chainer's */
  bool rich; /**< ports per argument, clusters per link, bytes */
} TdDotOpt;
TD_API TdDotOpt td_dot_options (void);
TD_API TdStatus td_save_dot (TdVar *y, const char *path, const TdDotOpt *options);
/** The same of all that is behind n_y roots, what they share once.  *Errors*: TD_ERR_ARG for
 * another extension. */
TD_API TdStatus td_save_dot_all (TdVar *const *ys, int n_y, const char *path,
                                 const TdDotOpt *options);

/* --- config ------------------------------------------------------------------------------- */
/** The engine's settings (Chainer's configuration).  Read through td_config (); changed
 * through TD_USING and td_config_set, so that a change is an event. */
typedef struct TdConfig
{
  int train;
  int enable_backprop;
  int debug;
  int type_check;
  int dtype; /**< a TdDtype: what links make their parameters of */
  int use_cudnn;
  int autotune;
  int cudnn_deterministic;
  int tf32;
  int use_static_graph;
  int keep_graph_on_report;
  int lazy_grad_sum;
  int warn_nondeterministic;
  int stale_retained; /**< TD_STALE_ERROR or TD_STALE_WARN */
  int channels_last; /**< images (n, c, h, w) lie as (n, h, w, c) where the device likes that */
  int keep_graph; /**< every operation keeps its graph, also one whose inputs want no gradient
                     and without enable_backprop; of backward, those with TD_DOUBLE_BACKPROP;
                     backward goes where it does without.  For td_save_onnx */
} TdConfig;
enum
{
  TD_STALE_ERROR,
  TD_STALE_WARN
};
typedef struct
{
  size_t offset;
  int old_value;
  int armed;
} TdConfigSave;
TD_API const TdConfig *td_config (void); /**< The settings as they are now. */
TD_API TdConfigSave td__config_push (size_t offset, int value);
TD_API void td__config_pop (TdConfigSave *save);
#define td_config_set(field, value)                                                            \
  ((void)td__config_push (offsetof (TdConfig, field), (value)))
#define TD_USING_(n, field, value)                                                             \
  for (TdConfigSave TD_CAT (td_save_, n) TD_CLEANUP_ (td__config_pop)                          \
       = td__config_push (offsetof (TdConfig, field), (value)),                                \
       TD_CAT (td_once_, n) = { 0, 0, 1 };                                                     \
       TD_CAT (td_once_, n).armed; TD_CAT (td_once_, n).armed = 0)
/** A block in which one setting has another value. */
#define TD_USING(field, value) TD_USING_ (__COUNTER__, field, value)
/** A block that builds no graph. */
#define TD_NO_BACKPROP TD_USING (enable_backprop, 0)
/** Seed the engine's random stream (Philox4x32-10). */
TD_API void td_set_seed (uint64_t seed);

/* --- devices and memory ------------------------------------------------------------------- */
/** Find "cpu", "cuda:0" or "null"; "cuda": the GPU of this process's number among the ranks of
 * its machine, cuda:0 of a process alone.  NULL and an error if there is none; of "cuda" also
 * where there are fewer GPUs than ranks, unless CUDA_VISIBLE_DEVICES shows each rank one of its
 * own alone, or TAPEDECK_SHARE_DEVICES=1 lets them share. */
TD_API TdDevice *td_device_get (const char *name);
TD_API const char *td_device_name (const TdDevice *device);
/** Say in one line which devices this machine offers, and why no GPU is among them.
 * *Owner*: the engine, until the next call. */
TD_API const char *td_device_backends (void);
/** The device of every creator and link from here on. */
TD_API TdStatus td_device_use (TdDevice *device);
/** Copy an array to another device; v itself where it is there already.  *Sync*. */
TD_API TdVar *td_to_device (TdVar *v, TdDevice *device);
TD_API TdVar *td_to_device_at (TdVar *v, TdDevice *device, const TdSite *site);
TD_API void td_device_synchronize (TdDevice *device);
/** Give cached memory back.  *Units*: returns bytes. */
TD_API size_t td_pool_trim (TdDevice *device);
/** Refuse allocations beyond this many live bytes, as a device would; 0: no limit. */
TD_API void td_set_mem_limit (size_t bytes);

/** What memory is for, given by the caller at allocation. */
typedef enum
{
  TD_MEM_PARAMETER,
  TD_MEM_GRADIENT,
  TD_MEM_ACTIVATION,
  TD_MEM_OPTIMIZER,
  TD_MEM_INPUT,
  TD_MEM_BUFFER,
  TD_MEM_WORKSPACE,
  TD_MEM_COMMUNICATION,
  TD_MEM_STATIC,
  TD_MEM_OTHER,
  TD_MEM_N_CATEGORIES
} TdMemCategory;
TD_API const char *td_mem_category_name (TdMemCategory category); /**< "gradient" ... */
/** The pools of a device: what has a life of its own lies in segments of its own. */
typedef enum
{
  TD_MEM_POOL_DEFAULT,
  TD_MEM_POOL_WORKSPACE, /**< what kernels need while they run */
  TD_MEM_POOL_STATIC,    /**< planned blocks of static schedules */
  TD_MEM_POOL_GRAPH,     /**< what captured CUDA graphs refer to, as long as they are there */
  TD_MEM_POOL_CAPTURE,   /**< a recording's own, which counts as nobody's */
  TD_MEM_POOL_UPLOAD,    /**< large inputs, which are copied while earlier work runs */
  TD_MEM_N_POOLS
} TdMemPool;
/** "default", "workspace", "static", "graph-private", "capture", "upload". */
TD_API const char *td_mem_pool_name (TdMemPool pool);
typedef struct
{
  size_t live_bytes, peak_bytes, reserved_bytes, cached_bytes, largest_free_bytes;
  size_t category_bytes[TD_MEM_N_CATEGORIES];
  uint64_t n_allocs;
  int64_t live_vars, live_nodes, live_ops; /**< engine objects, all devices */
  size_t pending_bytes; /**< given back, but another stream still uses them */
  size_t device_bytes;  /**< the device's memory; 0: not known */
  size_t outside_bytes; /**< of it, in use by others: libraries, other processes */
  size_t pool_bytes[TD_MEM_N_POOLS], pool_reserved_bytes[TD_MEM_N_POOLS]; /**< live, reserved */
  size_t pool_pending_bytes[TD_MEM_N_POOLS], pool_largest_free_bytes[TD_MEM_N_POOLS];
  size_t pool_split_bytes[TD_MEM_N_POOLS]; /**< free beside blocks in use: holes */
} TdMemInfo;
TD_API TdMemInfo td_mem_info (TdDevice *device);
/** A result of an operation that is still held, with its graph behind it. */
typedef struct
{
  TdVar *v;
  const char *op;        /**< that made it */
  const TdSite *made;    /**< where; NULL: not known */
  const char *holder;    /**< "td_retain", "link", "report", "gradient", "optimizer", "scope" */
  const TdSite *held_at; /**< of td_retain; else NULL */
  size_t bytes;
} TdHeld;
/** Visit every intermediate result that lives: between iterations, what the program stored.
 * visit may be NULL.  *Units*: returns how many. */
TD_API int64_t td_held_intermediates (void (*visit) (const TdHeld *held, void *user),
                                      void *user);

#if !defined(TD_NO_SITES)
#define td_retain(...) td_retain_at (__VA_ARGS__, TD_HERE)
#define td_scope_open(...) td_scope_open_at (__VA_ARGS__, TD_HERE)
#define td_tensor(...) td_tensor_at (__VA_ARGS__, TD_HERE)
#define td_variable(...) td_variable_at (__VA_ARGS__, TD_HERE)
#define td_item(...) td_item_at (__VA_ARGS__, TD_HERE)
#define td_mean_of(...) td_mean_of_at (__VA_ARGS__, TD_HERE)
#define td_read(...) td_read_at (__VA_ARGS__, TD_HERE)
#define td_write(...) td_write_at (__VA_ARGS__, TD_HERE)
#define td_backward(...) td_backward_at (__VA_ARGS__, TD_HERE)
#define td_to_device(...) td_to_device_at (__VA_ARGS__, TD_HERE)
#endif

TD_END_DECLS

#include "tapedeck-functions.h"
#include "tapedeck-links.h"
#include "tapedeck-optim.h"
#include "tapedeck-serial.h"
#include "tapedeck-data.h"
#include "tapedeck-train.h"
#include "tapedeck-extensions.h"
#include "tapedeck-hooks.h"
#include "tapedeck-ranks.h"
#include "tapedeck-layers.h"
#include "tapedeck-recurrent.h"
#include "tapedeck-nets.h"
#include "tapedeck-static.h"
#include "tapedeck-onnx.h"
