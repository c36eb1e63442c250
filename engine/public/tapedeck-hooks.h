/* Hooks: functions of the program's own, called at operations and at links while they run
 * forward and backward.  Included by tapedeck.h.
 *
 * A hook is an object of a TdHookClass.  It is registered for everything (td_hook_add), for a
 * block (TD_WITH_HOOK), for one kind of operation, for the operation that made a variable, or
 * for a link.  What a hook computes is no part of the model's graph, is not hooked itself, and
 * dies when the hook returns.  With no hook registered each operation pays one branch.
 *
 * *Source*: chainer.FunctionHook, chainer.LinkHook; backward hooks of links are ours.
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

typedef struct TdHook TdHook;

/** One operation at one of its four moments. */
typedef struct TdFunctionCall
{
  const TdOpClass *cls;
  const char *name;  /**< "relu" */
  const char *label; /**< Chainer's, "ReLU" */
  const void *attrs; /**< of the class's own kind */
  const char *path;  /**< of the link that it runs in, "" outside any */
  const TdSite *site;
  uint64_t id;      /**< of the operation; 0 in forward_preprocess */
  TdStatus status;  /**< of what ran, in both postprocess */
  bool in_backward; /**< a forward moment of an operation that backward itself is made of */
  int n_in, n_out;
  TdVar *const *in;  /**< backward: NULL where the array was not kept for it */
  TdVar *const *out; /**< forward_postprocess of a call that succeeded, else NULL */
  TdVar *const *gy;  /**< backward: gradients of the outputs, NULL where none arrived */
  TdVar *const *gx;  /**< backward_postprocess: gradients of the inputs, NULL where none */
} TdFunctionCall;

/** One call of a link at one of its four moments.  Backward begins when the gradients of its
 * outputs are complete, and ends when all operations of the call are through. */
typedef struct TdLinkCall
{
  TdLink *link;
  const char *path;
  const TdSite *site;
  TdStatus status;
  int n_in, n_out;
  TdVar *const *in;  /**< forward only */
  TdVar *const *out; /**< forward_postprocess of a call that succeeded, else NULL */
  TdVar *const *gy;  /**< backward: gradients of the outputs, NULL where none arrived */
  TdVar *const *gx;  /**< backward_postprocess: what this call adds to its inputs' gradients */
} TdLinkCall;

enum
{
  TD_HOOK_GRAPH = 1 /**< what it computes in link_forward_preprocess belongs to the graph */
};

/** A kind of hook.  Every function may be NULL. */
typedef struct TdHookClass
{
  size_t size;       /**< sizeof (TdHookClass) */
  const char *name;  /**< unique at each place where it is registered */
  size_t self_bytes; /**< memory of its own, zeroed, given to the functions below */
  unsigned flags;
  /** Registered or unregistered; link is NULL unless it was for a link. */
  void (*added) (TdHook *hook, void *self, TdLink *link);
  void (*deleted) (TdHook *hook, void *self, TdLink *link);
  void (*forward_preprocess) (TdHook *hook, void *self, const TdFunctionCall *call);
  void (*forward_postprocess) (TdHook *hook, void *self, const TdFunctionCall *call);
  void (*backward_preprocess) (TdHook *hook, void *self, const TdFunctionCall *call);
  void (*backward_postprocess) (TdHook *hook, void *self, const TdFunctionCall *call);
  void (*link_forward_preprocess) (TdHook *hook, void *self, const TdLinkCall *call);
  void (*link_forward_postprocess) (TdHook *hook, void *self, const TdLinkCall *call);
  void (*link_backward_preprocess) (TdHook *hook, void *self, const TdLinkCall *call);
  void (*link_backward_postprocess) (TdHook *hook, void *self, const TdLinkCall *call);
  /** Release what self holds. */
  void (*free) (void *self);
} TdHookClass;

/** Make a hook; it does nothing until it is registered.  *Owner*: the caller, td_hook_free or
 * td_finish.  Never NULL. */
TD_API TdHook *td_hook_new (const TdHookClass *cls);
/** Unregister a hook everywhere and release it.  NULL is allowed. */
TD_API void td_hook_free (TdHook *hook);
/** Borrow the hook's own memory (TdHookClass.self_bytes). */
TD_API void *td_hook_self (TdHook *hook);
TD_API const char *td_hook_name (const TdHook *hook);
/** Register for every operation and every link.  *Errors*: TD_ERR_ARG when a hook of that name
 * is registered there already (so for all that follow). */
TD_API TdStatus td_hook_add (TdHook *hook);
/** Register for the operations of one name: "relu". */
TD_API TdStatus td_hook_add_to_op (TdHook *hook, const char *op_name);
/** Register for the operation that made y: its backward is still to come.  *Errors*:
 * TD_ERR_ARG when none did, or no graph was kept. */
TD_API TdStatus td_hook_add_to_creator (TdHook *hook, TdVar *y);
/** Register for one link: its calls alone, not those of the links in it. */
TD_API TdStatus td_link_add_hook (TdLink *link, TdHook *hook);
/** Unregister a hook from one link. */
TD_API TdStatus td_link_remove_hook (TdLink *link, TdHook *hook);
/** Unregister a hook everywhere. */
TD_API TdStatus td_hook_remove (TdHook *hook);
TD_API TdHook *td__hook_push (TdHook *hook);
TD_API void td__hook_pop (TdHook **hook);
#define TD_WITH_HOOK_(n, hook)                                                                 \
  for (TdHook * TD_CAT (td_hook_, n) TD_CLEANUP_ (td__hook_pop) = td__hook_push (hook),        \
                                                 *TD_CAT (td_once_, n)                         \
                                                 = (TdHook *)&TD_CAT (td_hook_, n);            \
       TD_CAT (td_once_, n) != NULL; TD_CAT (td_once_, n) = NULL)
/** A block in which a hook is registered for everything (Chainer's `with hook:`). */
#define TD_WITH_HOOK(hook) TD_WITH_HOOK_ (__COUNTER__, hook)

/** Call function before each forward of a link, with its inputs.  *Owner*: td_hook_free takes
 * it away again, or the link's end.  *Source*: torch.nn.Module.register_forward_pre_hook. */
TD_API TdHook *td_link_register_forward_pre_hook (
    TdLink *link, void (*function) (TdLink *link, TdVar *const *in, int n_in, void *user),
    void *user);

/* --- hooks that measure ------------------------------------------------------------------- */
/** What a kind of operation, or a link, took in one direction.  `self` is without what ran
 * inside of it and was measured too.  *Units*: seconds, bytes. */
typedef struct TdHookTotals
{
  int64_t n_calls;
  double seconds, self_seconds;
  int64_t used_bytes, self_used_bytes; /**< growth of live memory */
  int64_t acquired_bytes;              /**< growth of what is reserved from the device */
} TdHookTotals;
typedef struct TdHookRow
{
  const char *name; /**< label of the operation, or path of the link */
  TdHookTotals forward, backward;
} TdHookRow;
/** Time of each kind of operation.  *Source*: chainer.function_hooks.TimerHook. */
TD_API TdHook *td_timer_hook_new (void);
/** Time of each link, forward and backward.  *Source*: chainer.link_hooks.TimerHook. */
TD_API TdHook *td_link_timer_hook_new (void);
/** Memory that each kind of operation uses and acquires.  *Source*:
 * chainer.function_hooks.CupyMemoryProfileHook. */
TD_API TdHook *td_memory_hook_new (void);
/** Memory that each link uses and acquires, forward and backward. */
TD_API TdHook *td_link_memory_hook_new (void);
/** Number of rows that a measuring hook has, in order of first appearance. */
TD_API int td_hook_n_rows (const TdHook *hook);
TD_API TdHookRow td_hook_row (const TdHook *hook, int i);
/** Sum over the outermost calls (Chainer's total_time, total_used_bytes ...). */
TD_API TdHookTotals td_hook_totals (const TdHook *hook);
/** Forget what was measured. */
TD_API void td_hook_clear (TdHook *hook);
/** Print a measuring hook's rows as a table on standard output. */
TD_API void td_hook_print_report (const TdHook *hook);

/** Print every operation with its data on standard output: label, shapes, mean and extreme
 * values.  *Sync*: blocks.  *Source*: chainer.function_hooks.PrintHook. */
TD_API TdHook *td_print_hook_new (void);

/* --- hooks that change a link's weight for the length of its forward ---------------------- */
typedef struct
{
  int n_power_iteration;
  double eps, factor; /**< factor 0: none */
  bool use_gamma;
  const char *weight_name;
  int end_;
} TdSpectralNormOpt;
#define TD_SPECTRAL_NORM_DEFAULTS                                                              \
  .n_power_iteration = 1, .eps = 1e-6, .factor = 0, .use_gamma = false, .weight_name = "W"
/** Divide the weight by its largest singular value, which a power iteration follows; adds the
 * persistent W_u and, with use_gamma, the parameter gamma to the link.  One link per hook.
 * *Source*: chainer.link_hooks.SpectralNormalization, Miyato et al. 2018. */
TD_API TdHook *td_spectral_normalization_new_ (const TdSpectralNormOpt *options);
TD_API TdHook *td_spectral_normalization_new_at (TdSpectralNormOpt options, const TdSite *site);
typedef struct
{
  double eps;
  const char *weight_name;
  int end_;
} TdWeightStandardOpt;
#define TD_WEIGHT_STANDARD_DEFAULTS .eps = 1e-5, .weight_name = "W"
/** Give each output's weights mean 0 and variance 1.  *Source*:
 * chainer.link_hooks.WeightStandardization, Qiao et al. 2019. */
TD_API TdHook *td_weight_standardization_new_ (const TdWeightStandardOpt *options);
TD_API TdHook *td_weight_standardization_new_at (TdWeightStandardOpt options,
                                                 const TdSite *site);

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_spectral_normalization_new(...) TD_CALL_ (td_spectral_normalization_new_at (TD_OPTIONS_ (TdSpectralNormOpt, TD_SPECTRAL_NORM_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_weight_standardization_new(...) TD_CALL_ (td_weight_standardization_new_at (TD_OPTIONS_ (TdWeightStandardOpt, TD_WEIGHT_STANDARD_DEFAULTS, __VA_ARGS__), TD_HERE))
/* clang-format on */
#endif

TD_END_DECLS
