/* Hyperparameters: the optimizer's, and those that single parameters have of their own.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer.h"
#include "host-memory.h"

#include <math.h>
#include <string.h>

TdOptRule *
td__opt_rule (const TdOpt *opt, uint64_t param_id)
{
  for (int i = 0; i < opt->n_rules; i++)
    if (opt->rules[i].param_id == param_id)
      return &opt->rules[i];
  return NULL;
}

TdOptRule *
td__opt_rule_make (TdOpt *opt, uint64_t param_id)
{
  TdOptRule *rule = td__opt_rule (opt, param_id);

  if (rule != NULL)
    return rule;
  opt->rules = td__xrealloc (opt->rules, (size_t)(opt->n_rules + 1) * sizeof *opt->rules);
  rule = &opt->rules[opt->n_rules++];
  memset (rule, 0, sizeof *rule);
  rule->param_id = param_id;
  return rule;
}

/* --- finding parameters by key --- */

typedef struct
{
  TdOpt *opt;
  const char *key;
  void (*visit) (TdOpt *opt, const TdParam *param, void *user);
  void *user;
  int n;
} Find;

static void
find_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  Find *f = user;
  size_t n = strlen (f->key);

  (void)owner;
  if (param->kind != TD_PARAM_TRAINED || strncmp (key, f->key, n) != 0
      || (n > 0 && key[n] != '\0' && key[n] != '/'))
    return;
  f->n++;
  f->visit (f->opt, param, f->user);
}

bool
td__opt_each_param (TdOpt *opt, const char *key, const char *call,
                    void (*visit) (TdOpt *opt, const TdParam *param, void *user), void *user)
{
  Find f = { opt, key, visit, user, 0 };
  TdLink *target = td__link_by_id (opt->target_id);

  if (target != NULL)
    td__link_visit (target, find_one, &f);
  if (f.n == 0)
    td__fail (target != NULL ? TD_ERR_ARG : TD_ERR_STATE, call, NULL,
              target != NULL ? "%s has no parameter %.200s" : "%s: its link was freed",
              target != NULL ? target->path->text : opt->cls->name, key);
  return f.n > 0;
}

/* --- values --- */

static int
hyper_index (const TdOptClass *cls, const char *name)
{
  if (name != NULL && cls->lr_alias != NULL && strcmp (name, cls->lr_alias) == 0)
    name = "lr";
  for (int i = 0; name != NULL && i < cls->op->n_attrs; i++)
    if (strcmp (cls->op->attrs[i].name, name) == 0)
      return i;
  return -1;
}

double
td__opt_hyper_get (const TdUpdate *u, const TdAttr *a)
{
  double value;

  if (a->kind == TD_ATTR_BOOL)
    return *((const bool *)u + a->offset);
  memcpy (&value, (const char *)u + a->offset, sizeof value);
  return value;
}

static void
set (TdUpdate *u, const TdAttr *a, double value)
{
  if (a->kind == TD_ATTR_BOOL)
    *((bool *)u + a->offset) = value != 0;
  else
    memcpy ((char *)u + a->offset, &value, sizeof value);
}

TdUpdate
td__opt_hyper_of (const TdOpt *opt, uint64_t param_id)
{
  const TdOptRule *rule = td__opt_rule (opt, param_id);
  TdUpdate u = opt->u;

  for (int i = 0; rule != NULL && i < opt->cls->op->n_attrs; i++)
    if (rule->own >> i & 1)
      set (&u, &opt->cls->op->attrs[i], td__opt_hyper_get (&rule->u, &opt->cls->op->attrs[i]));
  return u;
}

/* --- the public functions --- */

typedef struct
{
  int index;
  double value;
} Own;

static void
set_own (TdOpt *opt, const TdParam *param, void *user)
{
  const Own *own = user;
  TdOptRule *rule = td__opt_rule_make (opt, param->id);

  rule->own |= 1u << own->index;
  set (&rule->u, &opt->cls->op->attrs[own->index], own->value);
}

TdStatus
td_opt_set_hyper (TdOpt *opt, const char *key, const char *name, double value)
{
  Own own;

  if (!td__opt_usable (opt, "td_opt_set_hyper", NULL))
    return td__error_status ();
  own = (Own){ hyper_index (opt->cls, name), value };
  if (own.index < 0)
    return td__fail (TD_ERR_ARG, "td_opt_set_hyper", NULL, "%s has no hyperparameter %.100s",
                     opt->cls->name, name != NULL ? name : "(null)");
  if (!isfinite (value) || (own.index == hyper_index (opt->cls, "lr") && value < 0))
    return td__fail (TD_ERR_ARG, "td_opt_set_hyper", NULL, "a finite %s%s expected, got %g",
                     name, isfinite (value) ? " of 0 or more" : "", value);
  if (strcmp (opt->cls->op->attrs[own.index].name, "amsgrad") == 0)
    return td__fail (TD_ERR_ARG, "td_opt_set_hyper", NULL,
                     "amsgrad decides which states there are: it is set when %s is made",
                     opt->cls->name);
  if (key == NULL)
    set (&opt->u, &opt->cls->op->attrs[own.index], value);
  else if (!td__opt_each_param (opt, key, "td_opt_set_hyper", set_own, &own))
    return td__error_status ();
  return TD_OK;
}

static void
first_id (TdOpt *opt, const TdParam *param, void *user)
{
  uint64_t *id = user;

  (void)opt;
  if (*id == 0)
    *id = param->id;
}

double
td_opt_hyper (TdOpt *opt, const char *key, const char *name)
{
  uint64_t id = 0;
  TdUpdate u;
  int index;

  if (!td__opt_usable (opt, "td_opt_hyper", NULL) || td__asked ("td_opt_hyper"))
    return (double)NAN;
  index = hyper_index (opt->cls, name);
  if (index < 0)
    td__fail (TD_ERR_ARG, "td_opt_hyper", NULL, "%s has no hyperparameter %.100s",
              opt->cls->name, name != NULL ? name : "(null)");
  if (index < 0
      || (key != NULL && !td__opt_each_param (opt, key, "td_opt_hyper", first_id, &id)))
    return (double)NAN;
  u = td__opt_hyper_of (opt, id);
  return td__opt_hyper_get (&u, &opt->cls->op->attrs[index]);
}

static void
set_enabled (TdOpt *opt, const TdParam *param, void *user)
{
  td__opt_rule_make (opt, param->id)->disabled = !*(const bool *)user;
}

TdStatus
td_opt_set_enabled (TdOpt *opt, const char *key, bool enabled)
{
  if (!td__opt_usable (opt, "td_opt_set_enabled", NULL)
      || !td__opt_each_param (opt, key != NULL ? key : "", "td_opt_set_enabled", set_enabled,
                              &enabled))
    return td__error_status ();
  return TD_OK;
}

static const TdOptSlot *
find_slot (TdOpt *opt, const char *key)
{
  if (td__opt_look_again (opt, NULL) != TD_OK)
    return NULL;
  for (int i = 0; i < opt->n_slots; i++)
    if (strcmp (opt->slots[i].key, key) == 0)
      return &opt->slots[i];
  return NULL;
}

TdVar *
td_opt_state (TdOpt *opt, const char *key, const char *name)
{
  const TdOptSlot *slot;

  if (!td__opt_usable (opt, "td_opt_state", NULL) || td__asked ("td_opt_state"))
    return td__poison ();
  slot = key != NULL ? find_slot (opt, key) : NULL;
  if (slot != NULL && name != NULL && strcmp (name, "fp32_param") == 0)
    return slot->master;
  for (int i = 0; slot != NULL && name != NULL && i < TD_OPT_MAX_STATES; i++)
    if (opt->cls->states[i] != NULL && strcmp (opt->cls->states[i], name) == 0)
      return slot->states[i];
  td__fail (TD_ERR_ARG, "td_opt_state", NULL, "%s has no state %.100s of %.200s",
            opt->cls->name, name != NULL ? name : "(null)", key != NULL ? key : "(null)");
  return td__poison ();
}

int64_t
td_opt_count_of (TdOpt *opt, const char *key)
{
  const TdOptSlot *slot;

  if (!td__opt_usable (opt, "td_opt_count_of", NULL) || td__asked ("td_opt_count_of"))
    return 0;
  slot = key != NULL ? find_slot (opt, key) : NULL;
  td__opt_settle (opt, 0);
  return slot != NULL ? slot->t : 0;
}

void
td_opt_set_lr (TdOpt *opt, double lr)
{
  if (!td__opt_usable (opt, "td_opt_set_lr", NULL))
    return;
  if (hyper_index (opt->cls, "lr") < 0)
    td__fail (TD_ERR_ARG, "td_opt_set_lr", NULL, "%s has no learning rate", opt->cls->name);
  else if (!(lr >= 0) || !isfinite (lr))
    td__fail (TD_ERR_ARG, "td_opt_set_lr", NULL,
              "a learning rate of 0 or more expected, got %g", lr);
  else
    opt->u.lr = lr;
}

double
td_opt_lr (const TdOpt *opt)
{
  return td__asked ("td_opt_lr") || opt == NULL ? 0 : opt->u.lr;
}
