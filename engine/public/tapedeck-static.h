/* Static functions: code whose graph is the same at every call is traced once and replayed from
 * then on.  Included by tapedeck.h.
 *
 * The first call runs the code as usual and is that call's result; a schedule is written
 * beside.  Later calls check guards - everything the trace depended on that the engine can see:
 * arguments, settings, links, parameters, registered host memory, numbers that were read - and
 * run the schedule.  When a guard does not hold, the code runs again and the reason is kept.
 * What no guard can see (C variables that were not registered) is what `verify` is for.
 *
 * *Source*: chainer.graph_optimizations.static_graph.
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/** A static function and its cache of schedules. */
typedef struct TdStatic TdStatic;
/** The code of a static function: makes out[0 .. n_out - 1] from in, by operations and links.
 * Anything else in it runs only while it is traced, unless td_static_code wraps it. */
typedef void (*TdStaticFn) (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out);

/** Options of td_static_new. */
typedef struct TdStaticOpt
{
  int begin_;
  bool minimize_cache_size;      /**< keep one schedule; other arguments or modes replace it */
  bool force_test_define_by_run; /**< without train or enable_backprop, run the code always */
  int verbosity_level;           /**< 0 warnings, 1 new schedules, 2 every call; on stderr */
  bool enable_double_backprop;   /**< gradients of gradients through the function */
  int verify; /**< every so many calls (1: all) the code runs first, then the schedule;
                 operations, values, state and random numbers are compared, and when backward
                 runs its gradients.  They agree: the schedule's results are handed out.  Else
                 the code's are, the schedule is dropped, and a line on stderr says what is
                 another.  0: never: the code runs once.  -1, the default: by itself, at calls
                 2, 3, 5, 9, 17, 33 ... of each schedule; call 2 in full if its arrays, which
                 are kept twice, take less than 64 MB, the others by their operations and what
                 the code brings.  Where an operation of the program's own has a backward, which
                 may read C variables as well, each of these calls is followed into backward:
                 its gradients are compared, beyond 64 MB its operations and what it brings.  At
                 the first difference the code's results are handed out, and it runs at each
                 call until it has been the same again for a while.  Side effects of the code's
                 own, in C, show again in each of these calls */
  bool prune, fold, cse, fuse, in_place, plan, cuda_graph; /**< passes */
  bool batch;         /**< one more, if fuse is on too: sums get other last bits by it */
  bool strict;        /**< a static function inside another is an error, not inlined */
  const char *name;   /**< NULL: "static" and a number */
  size_t self_bytes;  /**< guard that much of self; 0: none */
  size_t cache_bytes; /**< drop the oldest schedules beyond this; 0: no limit */
  int end_;
} TdStaticOpt;
#define TD_STATIC_DEFAULTS                                                                     \
  .minimize_cache_size = true, .force_test_define_by_run = false, .verbosity_level = 0,        \
  .enable_double_backprop = false, .verify = -1, .prune = true, .fold = true, .cse = true,     \
  .batch = true, .fuse = true, .in_place = true, .plan = true, .cuda_graph = true,             \
  .strict = false, .name = (const char *)0, .self_bytes = 0, .cache_bytes = 0, .begin_ = 0

/** What a static function does at the moment. */
typedef enum
{
  TD_STATIC_OFF,     /**< runs its code: config use_static_graph is 0, or it cannot be traced */
  TD_STATIC_TRACING, /**< the trace waits for its first backward */
  TD_STATIC_STATIC   /**< replays */
} TdStaticState;
/** Counters since td_static_new. */
typedef struct TdStaticInfo
{
  TdStaticState state;
  uint64_t n_calls, n_traces, n_replays, n_dynamic, n_misses, n_evictions;
  uint64_t n_verified, n_differences;
  int64_t unverified_since; /**< iteration of the last verification, -1: never */
  uint32_t n_schedules, n_instances;
  uint32_t n_instances_awaiting;           /**< whose backward may still come */
  size_t bytes;                            /**< memory of its instances */
  size_t planned_bytes, lower_bound_bytes; /**< of the newest plan */
  uint32_t n_steps, n_backward_steps;      /**< of the newest schedule */
  uint32_t n_pruned, n_folded, n_merged, n_batched, n_fused, n_in_place;
  uint64_t n_captures;       /**< times that steps became a CUDA graph, or one was made anew */
  uint64_t n_graph_launches; /**< and times that one was launched */
  uint64_t n_alone;          /**< steps launched by themselves, where there could be graphs */
} TdStaticInfo;

/** Make a static function of fn.  *Owner*: the engine, until td_static_free. */
TD_API TdStatic *td_static_new_at (TdStaticFn fn, void *self, TdStaticOpt options,
                                   const TdSite *site);
TD_API TdStaticOpt td_static_options (void);
/** Call it: the code, or its schedule.  *Owner*: out belong to the innermost scope.
 * *Errors*: out are poisoned. */
TD_API TdStatus td_static_call_at (TdStatic *s, TdVar *const *in, int n_in, TdVar **out,
                                   int n_out, const TdSite *site);
TD_API TdStatus td_static_call (TdStatic *s, TdVar *const *in, int n_in, TdVar **out,
                                int n_out);
/** One input, one output. */
TD_API TdVar *td_static_call1_at (TdStatic *s, TdVar *x, const TdSite *site);
TD_API TdVar *td_static_call1 (TdStatic *s, TdVar *x);
/** Run fn now and, inside a static function, at every replay at this place.  Guarded memory
 * that it sets is as it should be in a replay, and no reason to run the code again: if the code
 * itself reads it, only a verified call sees that its value is another (TdStaticOpt.verify;
 * with verify = 0 none does, and the value of the trace stays). */
TD_API void td_static_code (void (*fn) (void *user), void *user);
/** The forward passes so far are over and no backward of them will come: their instances may be
 * taken by later calls, and a backward after that is an error. */
TD_API void td_static_end_forward (TdStatic *s);
/** Verify the next call that would replay: see TdStaticOpt.verify. */
TD_API void td_static_verify_next (TdStatic *s);
/** Guard host memory that the code reads: when its bytes change, the code is run again.  Code
 * that changes them itself is run at every call: td_static_code does that in a replay. */
TD_API void td_static_watch_at (TdStatic *s, const char *name, const void *memory, size_t bytes,
                                const TdSite *site);
TD_API void td_static_watch (TdStatic *s, const char *name, const void *memory, size_t bytes);
/** Forget all schedules. */
TD_API void td_static_clear (TdStatic *s);
TD_API void td_static_free (TdStatic *s);
/** Mark a link: its calls go through a static function of its own, with these options and the
 * link's path as name, until the function is freed.  A second call replaces it by one with the
 * options that are given then.  *Owner*: the link. */
TD_API TdStatic *td_link_set_static_at (TdLink *link, TdStaticOpt options, const TdSite *site);
/** Borrow the static function of a marked link; NULL for others. */
TD_API TdStatic *td_link_static (TdLink *link);
/** Counters, states and sizes. */
TD_API TdStaticInfo td_static_info (const TdStatic *s);
/** Borrow one line on why the last replay could not be, or "". */
TD_API const char *td_static_last_miss (const TdStatic *s);

/** Borrow one line on which step is in no CUDA graph and why, the last one found, or "". */
TD_API const char *td_static_last_alone (const TdStatic *s);

/** Options of td_static_save. */
typedef struct TdStaticSaveOpt
{
  bool custom_domains; /**< .onnx: an operation that ONNX does not have becomes a node of the
                          domain org.tapedeck, which other programs do not know; false: it is an
                          error */
  bool weights_beside; /**< .c: numbers that are there before a call go to NAME.bin, which
                          NAME_load reads: before it has, NAME_run computes nothing and returns
                          -1; false: into the program, as constants.  .onnx: they go to
                          NAME.onnx.data; false: so they do where they are more than the 2 GB
                          that a file can have */
  int opset;           /**< .onnx: of the standard's operators, 17 to 21 */
  const char *axes;    /**< .onnx: axes of arguments whose size the file leaves open, as in
                          TdOnnxOpt; NULL: axis 0 of every argument is "batch"; "": none */
  void (*lack) (const char *line, void *user);  /**< hears of each operation that the format
                          does not have, with its line: "mine at net.c:12" */
  void (*fixed) (const char *line, void *user); /**< .onnx: hears of each axis that stays as it
                          was, and why: "batch stays 4: get_item at net.c:12 takes some of its
                          rows by number", which the file says in its metadata too */
  void (*assumed) (const char *line, void *user); /**< .onnx: hears of each number of the code
                          that may be the batch or not, and what it was taken for: "1 is a
                          number and not batch in the array (1, 4) of add at net.c:12", "2 is
                          batch and 6 is not in reshape at net.c:14", which the file says in its
                          metadata too; NULL: a line on stderr says how many there are of a
                          batch of 1 */
  void *user;
  int end_;
} TdStaticSaveOpt;
#define TD_STATIC_SAVE_DEFAULTS                                                                \
  .custom_domains = false, .weights_beside = false, .opset = 17, .axes = (const char *)0
TD_API TdStaticSaveOpt td_static_save_options (void);
/** Write the newest schedule's forward, with the present numbers of its parameters: a graph
 * (.dot), a model for other programs (.onnx), a C program without dependencies (NAME.c, with
 * NAME.h beside it), or the parameters alone (.npz).  What a C program draws at random are the
 * engine's own numbers, those of the traced call first.  *Errors*: TD_ERR_IO; TD_ERR_STATE
 * before the first call; TD_ERR_ARG for another opset, and naming the operations that the
 * format does not have, and numbers that the host drew (td_walker_alias_sample), which would be
 * those of one call for ever, with their lines, and no file is written. */
TD_API TdStatus td_static_save_at (TdStatic *s, const char *path, TdStaticSaveOpt options,
                                   const TdSite *site);
TD_API TdStatus td_static_save (TdStatic *s, const char *path);

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_static_new(...) td__static_new_x (__VA_ARGS__, .end_ = 0)
#define td__static_new_x(fn, self, ...) TD_CALL_ (td_static_new_at (fn, self, TD_OPTIONS_IN_ORDER_ (TdStaticOpt, TD_STATIC_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_link_set_static(...) td__link_set_static_x (__VA_ARGS__, .end_ = 0)
#define td__link_set_static_x(link, ...) TD_CALL_ (td_link_set_static_at (link, TD_OPTIONS_IN_ORDER_ (TdStaticOpt, TD_STATIC_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_static_call(...) td_static_call_at (__VA_ARGS__, TD_HERE)
#define td_static_call1(...) td_static_call1_at (__VA_ARGS__, TD_HERE)
#define td_static_save(s, ...) td__static_save_x (s, __VA_ARGS__, .end_ = 0)
#define td__static_save_x(s, path, ...) TD_CALL_ (td_static_save_at (s, path, TD_OPTIONS_ (TdStaticSaveOpt, TD_STATIC_SAVE_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_static_watch(...) td_static_watch_at (__VA_ARGS__, TD_HERE)
/* clang-format on */
#endif

TD_END_DECLS
