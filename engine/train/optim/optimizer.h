/* Optimizers from the inside: one class per kind, one slot per parameter, one rule for each
 * parameter that has something of its own.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../links/link.h"
#include "../serial/serializer.h"

enum
{
  TD_OPT_MAX_STATES = 3
};

/** A kind of optimizer. */
typedef struct TdOptClass
{
  const char *name;
  /** In-place update of p from g and the states; attributes TdUpdate, whose table is that of
   * the hyperparameters. */
  const TdOpClass *op;
  const char *states[TD_OPT_MAX_STATES]; /**< names in files */
  double first;                          /**< what states[0] starts with; the others with 0 */
  int (*n_states) (const TdUpdate *u);   /**< NULL: all that have a name */
  /** Set what the update of step t (1, 2 ...) uses; initial_lr is that of the constructor. */
  void (*prepare) (TdUpdate *u, int64_t t, double initial_lr);
  const char *lr_alias; /**< Chainer's name of lr, or NULL */
  bool uses_eps;
} TdOptClass;

/** A parameter with its states; all held by the optimizer. */
typedef struct TdOptSlot
{
  uint64_t param_id;
  TdVar *param;
  const TdPath *path;
  char *key; /**< in files: "l1/W" */
  TdVar *states[TD_OPT_MAX_STATES];
  TdVar *master;           /**< float32 copy of a half precision parameter, or NULL */
  uint32_t master_version; /**< of the parameter when both were equal last */
  int64_t t;
  uint32_t tried;      /**< updates that it was part of, of those not known to be done */
  bool overflowed;     /**< this gradient is not finite */
  int64_t n_overflows; /**< updates of which it was the first that was not */
  TdVar *at, *g;       /**< what this update works on: param and its gradient, or the copies */
  bool updated;        /**< at is of this update, and the parameter is to follow it */
} TdOptSlot;

/** What one parameter has of its own. */
typedef struct TdOptRule
{
  uint64_t param_id;
  uint32_t own; /**< bit i: hyperparameter i of the class's table */
  TdUpdate u;
  bool disabled;
  TdOptHook *hooks;
} TdOptRule;

/** States from a file that wait for their slot. */
typedef struct TdOptLoaded
{
  uint64_t param_id;
  int64_t t;
  TdRecord states[TD_OPT_MAX_STATES], master;
} TdOptLoaded;

/** What a hook is called with: the slots of an optimizer, or the one of a rule. */
typedef struct TdOptHookCall
{
  TdOpt *opt;
  TdOptSlot *slots;
  int n;
  const TdSite *site;
} TdOptHookCall;

struct TdOptHook
{
  TdObject object;
  char *name;
  TdStatus (*call) (TdOptHook *hook, const TdOptHookCall *call);
  bool whole; /**< sees all parameters together: not for a rule */
  bool post;
  bool decided; /**< does nothing where the device decides that nothing is updated */
  double value[3];
  TdOptHookFn user_call;
  void *user;
  TdOpt *owner;
  TdOptHook *next;
  bool inert;
};

/** What several processes do together with an update; ranks fills it. */
typedef struct TdOptShare
{
  /** Before the update, when gradients are there: give it those of all.  so_far: an error for
   * which there will be no update; the others hear of it.  Returns the status of all. */
  TdStatus (*gradients) (TdOpt *opt, TdStatus so_far, const TdSite *site);
  /** After it, with the status of this process. */
  void (*updated) (TdOpt *opt, TdStatus status, const TdSite *site);
  void (*free) (TdOpt *opt);
} TdOptShare;

/** Who looks at the updates of a process's own optimizers; ranks fills it. */
typedef struct TdOptWatch
{
  /** Before the update, when gradients are there. */
  TdStatus (*before) (TdOpt *opt, const TdSite *site);
  /** After it, with its status. */
  void (*after) (TdOpt *opt, TdStatus status, const TdSite *site);
  /** Of one that has opt->watched. */
  void (*free) (TdOpt *opt);
} TdOptWatch;

/** NULL: nobody. */
extern const TdOptWatch *td__opt_watch;

typedef struct TdOptAsync TdOptAsync;
enum
{
  TD_OPT_SCALE_OF_DEVICE = 0 /* a pending_scale: that which the device has now */
};

struct TdOpt
{
  TdObject object;
  const TdOptClass *cls;
  const TdSite *site; /**< where the program made it */
  uint16_t number;    /**< TdScaledBy of its gradients */
  TdUpdate u;
  double initial_lr;
  uint64_t target_id;
  TdLink *target;
  uint64_t generation; /**< of the links when the slots were made */
  TdOptSlot *slots;
  int n_slots;
  TdOptRule *rules;
  int n_rules;
  TdOptLoaded *loaded;
  int n_loaded;
  TdOptHook *hooks;
  int64_t t, epoch, n_skipped;
  bool fp32_update;
  bool dynamic; /**< the scale changes by itself */
  bool seen_overflow;
  uint64_t overflow_id; /**< the parameter of the last overflow; 0: there was none */
  double scale, growth; /**< of the loss; 1: none */
  TdOptAsync *async;    /**< the device decides; NULL: the host does, and waits */
  double pending_scale; /**< of the gradients that are there: the scale of their backward */
  TdRepeat *repeat;     /**< of the launches of updates; the device's, NULL till it has one */
  TdDevice *repeats_on;
  const TdOptShare *share; /**< NULL: a process's own optimizer */
  void *shared;            /**< what share keeps */
  void *watched;           /**< what td__opt_watch keeps, or NULL */
  bool nothing_yet;        /**< by which share would have this update made: it is left out */
  bool inert;
};

/* optimizer.c */
TdOpt *td__opt_make (const TdOptClass *cls, TdLink *target, const TdUpdate *u,
                     const TdSite *site);
/** The one that constructors return after an error. */
TdOpt *td__opt_inert (void);
bool (td__opt_usable) (const TdOpt *opt, const char *call, const TdSite *site);
#ifdef __clang_analyzer__
#define td__opt_usable(opt, ...) TD_USABLE (td__opt_usable, opt, __VA_ARGS__)
#endif
/** An operation that overwrites in[0] and has no output. */
TdStatus td__opt_infer (TdOpCall *call);
/** Let the device update in[0] from the others. */
TdStatus td__opt_run (TdOpCall *call, TdUpdateKind kind);

/* repeat.c */
/** Let the device take all that this update launches together, if it can. */
bool td__opt_repeat_begin (TdOpt *opt);
TdStatus td__opt_repeat_end (const TdOpt *opt);
void td__opt_repeat_free (TdOpt *opt);

/* slots.c */
/** Make the slots those of the target, if links have changed. */
TdStatus td__opt_look_again (TdOpt *opt, const TdSite *site);
void td__opt_slots_clear (TdOpt *opt);
/** Hold param and gradient, or float32 copies of them, in slot->at and slot->g. */
TdStatus td__opt_slot_begin (TdOpt *opt, TdOptSlot *slot, const TdSite *site);
/** After a user's hook: she may have cleared the gradient, or put another in its place. */
TdStatus td__opt_slot_refresh (TdOptSlot *slot, const TdSite *site);
/** Bring a copy's numbers back to the parameter. */
TdStatus td__opt_slot_finish (TdOptSlot *slot, const TdSite *site);
void td__opt_slot_end (TdOptSlot *slot);
/** States appear with the first update, and follow their parameter to another device. */
/** Give up a state, which may be NULL. */
void td__opt_state_drop (TdVar **state);
TdStatus td__opt_start_states (TdOpt *opt, TdOptSlot *slot, const TdSite *site);
int td__opt_n_states (const TdOpt *opt);
/** A scalar or array that the optimizer keeps: zeros, memory category optimizer. */
TdVar *td__opt_state (TdDtype dtype, const TdShape *shape, TdDevice *device,
                      const TdSite *site);
/** The same for what an operation overwrites before it is read: its numbers are any. */
TdVar *td__opt_room (TdDtype dtype, const TdShape *shape, TdDevice *device,
                     TdMemCategory category, const TdSite *site);
void td__opt_loaded_clear (TdOptLoaded *loaded);

/* rule.c */
/** The parameter's own rule, NULL if it has none. */
TdOptRule *td__opt_rule (const TdOpt *opt, uint64_t param_id);
/** The same, made if it is not there. */
TdOptRule *td__opt_rule_make (TdOpt *opt, uint64_t param_id);
/** One number of the class's table. */
double td__opt_hyper_get (const TdUpdate *u, const TdAttr *attr);
/** The hyperparameters of one parameter: its own, else the optimizer's. */
TdUpdate td__opt_hyper_of (const TdOpt *opt, uint64_t param_id);
/** Call visit for each trained parameter at or below key; false after td__fail if none is. */
bool td__opt_each_param (TdOpt *opt, const char *key, const char *call,
                         void (*visit) (TdOpt *opt, const TdParam *param, void *user),
                         void *user);

/* hook.c */
/** Run the hooks of a list that are due before (after) the update. */
TdStatus td__opt_run_hooks (TdOptHook *hooks, bool post, const TdOptHookCall *call);
void td__opt_hooks_free (TdOptHook *hooks);
/** A hook; the inert one unless ok, after td__fail. */
TdOptHook *td__opt_hook_make (const char *name,
                              TdStatus (*call) (TdOptHook *, const TdOptHookCall *), bool ok,
                              double a, double b, double c);

/* scaling.c */
/** Divide the gradients that were scaled by the scale of their backward; *safe is false when
 * one of them is not finite and the scale is dynamic. */
TdStatus td__opt_unscale (TdOpt *opt, bool *safe, const TdSite *site);
/** After an update, or one that was skipped: the next scale. */
void td__opt_next_scale (TdOpt *opt, bool safe);
/** The gradient of this parameter was the first that was not finite. */
void td__opt_overflowed (TdOpt *opt, TdOptSlot *slot);

/* scaling-async.c */
/** Let the device decide from here on, where it can and nobody must know at once; else
 * the host.  True: the device. */
bool td__opt_async_begin (TdOpt *opt, const TdSite *site);
void td__opt_async_end (TdOpt *opt);
/** Look at the gradients, of which later steps know whether they are finite. */
TdStatus td__opt_async_decide (TdOpt *opt, const TdSite *site);
/** All of this update has been issued. */
void td__opt_async_sent (TdOpt *opt);
/** This slot is updated by u, if the device decides so. */
void td__opt_async_step (TdOpt *opt, TdOptSlot *slot, TdUpdate *u);
/** The seed of a backward from a loss of one element. */
TdVar *td__opt_async_seed (TdOpt *opt, const TdVar *loss, const TdSite *site);
TdStatus td__opt_async_unscale (TdOpt *opt, TdOptSlot *slot, const TdSite *site);
/** TdScaleNumber of what the device decides; NULL: the host does. */
TdVar *td__opt_numbers (const TdOpt *opt);
/** Its memory, as TdUpdate has it. */
static inline const double *
td__opt_decided (const TdOpt *opt)
{
  return opt->async != NULL ? td__opt_numbers (opt)->buffer->data : NULL;
}
/** Take what was decided; wait till at most `keep` decisions are missing.  *Sync*: keep 0. */
void td__opt_settle (const TdOpt *opt, int keep);

/** in[0] = in[1], converted. */
extern const TdOpClass td__opt_copy_class;
