/* Optimizers from the inside: one class per kind, one slot per parameter.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../links/link.h"

enum
{
  TD_OPT_MAX_STATES = 3
};

/** A kind of optimizer. */
typedef struct TdOptClass
{
  const char *name;
  const TdOpClass *op; /**< in-place update of p from g and the states; attributes TdUpdate */
  int (*n_states) (const TdUpdate *u);
  /** What the update of step t (1, 2 ...) is told. */
  void (*prepare) (TdUpdate *u, int64_t t);
} TdOptClass;

/** A parameter with its states; all held by the optimizer. */
typedef struct TdOptSlot
{
  uint64_t param_id;
  TdVar *param;
  const TdPath *path;
  TdVar *states[TD_OPT_MAX_STATES];
  int64_t t;
} TdOptSlot;

struct TdOptHook
{
  TdObject object;
  const char *name;
  TdStatus (*call) (TdOptHook *hook, TdOpt *opt, const TdSite *site);
  double value;
  TdOpt *owner;
  TdOptHook *next;
  bool inert;
};

struct TdOpt
{
  TdObject object;
  const TdOptClass *cls;
  TdUpdate u;
  uint64_t target_id;
  TdLink *target;
  uint64_t generation; /**< of the links when the slots were made */
  TdOptSlot *slots;
  int n_slots;
  TdOptHook *hooks;
  int64_t t;
  bool inert;
};

TdOpt *td__opt_make (const TdOptClass *cls, TdLink *target, const TdUpdate *u,
                     const TdSite *site);
/** An operation that overwrites in[0] and has no output. */
TdStatus td__opt_infer (TdOpCall *call);
/** A scalar or array that the optimizer keeps: zeros, memory category optimizer. */
TdVar *td__opt_state (TdDtype dtype, const TdShape *shape, TdDevice *device,
                      const TdSite *site);

extern const TdOpClass td__sgd_class, td__momentum_sgd_class, td__adam_class;
