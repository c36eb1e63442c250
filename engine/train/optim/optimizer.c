/* What all optimizers share: their making and freeing, and the order of things in an update.
 *
 * The scale of the loss is taken off before any hook sees a gradient, and only off gradients
 * that were scaled: hooks, clipping thresholds and gradients set by hand mean the same with and
 * without loss scaling.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer.h"
#include "host-memory.h"

#include "compute/core/walk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TdOpt *
td__opt_inert (void)
{
  static TdOpt inert = { .inert = true };

  return &inert;
}

bool (td__opt_usable) (const TdOpt *opt, const char *call, const TdSite *site)
{
  if (td__stranger (call))
    return false;
  if (opt != NULL && !opt->inert)
    return true;
  td__fail (TD_ERR_STATE, call, site, "%s",
            opt == NULL         ? "the optimizer is NULL"
            : opt->object.freed ? "the optimizer was freed"
                                : "the optimizer is inert: its constructor failed before");
  return false;
}

const TdOptWatch *td__opt_watch;

static void
opt_free (void *object)
{
  TdOpt *opt = object;

  if (opt->share != NULL)
    opt->share->free (opt);
  if (opt->watched != NULL)
    td__opt_watch->free (opt);
  td__opt_async_end (opt);
  td__opt_repeat_free (opt);
  td__opt_slots_clear (opt);
  td__opt_hooks_free (opt->hooks);
  for (int i = 0; i < opt->n_rules; i++)
    td__opt_hooks_free (opt->rules[i].hooks);
  for (int i = 0; i < opt->n_loaded; i++)
    td__opt_loaded_clear (&opt->loaded[i]);
  free (opt->rules);
  free (opt->loaded);
  *opt = (TdOpt){ .inert = true, .object.freed = true };
  td__shell_keep (opt);
}

void
td_opt_free (TdOpt *opt)
{
  if (td__stranger ("td_opt_free") || opt == NULL || opt->inert || !td__engine.started)
    return;
  td__object_remove (&opt->object);
  opt_free (opt);
}

/* A number that is none would spoil every parameter at once. */
static bool
hyper_ok (const TdOptClass *cls, const TdUpdate *u, const TdSite *site)
{
  for (int i = 0; i < cls->op->n_attrs; i++)
    {
      const TdAttr *a = &cls->op->attrs[i];
      double value = 0;

      if (a->kind == TD_ATTR_DOUBLE)
        memcpy (&value, (const char *)u + a->offset, sizeof value);
      if (!isfinite (value))
        {
          td__fail (TD_ERR_ARG, cls->name, site, "a finite %s expected, got %g", a->name,
                    value);
          return false;
        }
    }
  return true;
}

static unsigned n_made;

TdOpt *
td__opt_make (const TdOptClass *cls, TdLink *target, const TdUpdate *u, const TdSite *site)
{
  TdOpt *opt;

  if (!td__ensure_started () || !td__link_usable (target, cls->name, site)
      || !hyper_ok (cls, u, site))
    return td__opt_inert ();
  opt = td__xcalloc (1, sizeof *opt);
  opt->cls = cls;
  opt->number = (uint16_t)(1 + n_made++ % (TD_SCALED_BY_SEVERAL - 1));
  opt->site = site;
  opt->u = *u;
  opt->initial_lr = u->lr;
  opt->target = target;
  opt->target_id = target->id;
  opt->scale = opt->pending_scale = 1;
  td__object_add (&opt->object, opt_free);
  return opt;
}

/* What an update overwrites must be there, of one shape and dtype. */
TdStatus
td__opt_infer (TdOpCall *call)
{
  for (int i = 1; i < call->n_in; i++)
    if (!td_shape_equal (call->in[0].shape, call->in[i].shape)
        || call->in[0].dtype != call->in[i].dtype)
      return td_op_fail_operands (call, TD_ERR_SHAPE, "operands of one shape expected");
  if (call->in[0].dtype > TD_BF16)
    return td_op_fail_operands (call, TD_ERR_DTYPE, "floating point expected");
  return TD_OK;
}

TdStatus
td__opt_run (TdOpCall *call, TdUpdateKind kind)
{
  TdTensor arrays[2 + TD_OPT_MAX_STATES], *pointers[2 + TD_OPT_MAX_STATES];

  for (int i = 0; i < call->n_in; i++)
    {
      arrays[i] = call->in[i];
      pointers[i] = &arrays[i];
    }
  return call->device->ops->update (call->device, kind, call->attrs, pointers, call->n_in);
}

/* Chainer refuses an eps that is 0 in the arithmetic of the parameter: it would divide by 0. */
static TdStatus
check_eps (const TdOpt *opt, const TdOptSlot *slot, const TdUpdate *u, const TdSite *site)
{
  if (!opt->cls->uses_eps || u->eps == 0 || slot->at->node->dtype == TD_F64
      || (float)u->eps != 0)
    return TD_OK;
  return td__fail (TD_ERR_ARG, opt->cls->name, site, "eps = %g of %s is 0 in float32", u->eps,
                   slot->key);
}

/* Config debug: what a parameter is updated by is finite, wherever it comes from. */
static TdStatus
debug_gradient (const TdOptSlot *slot, const TdSite *site)
{
  char what[300];

  snprintf (what, sizeof what, "the gradient of %.250s", slot->key);
  return slot->g != NULL ? td__debug_gradient (slot->g, "td_opt_update", site, what) : TD_OK;
}

static TdStatus
update_slot (TdOpt *opt, TdOptSlot *slot, const TdSite *site)
{
  TdOptRule *rule = td__opt_rule (opt, slot->param_id);
  TdOptHookCall call = { opt, slot, 1, site };
  TdVar *in[2 + TD_OPT_MAX_STATES] = { slot->at, slot->g };
  int n = 2, n_states = td__opt_n_states (opt);
  TdUpdate u = td__opt_hyper_of (opt, slot->param_id);
  TdStatus status;

  if ((slot->param->flags & TD_VAR_FIXED) /* td_link_disable_update */
      || (rule != NULL && rule->disabled))
    return TD_OK;
  status = check_eps (opt, slot, &u, site);
  if (status == TD_OK)
    status = td__opt_start_states (opt, slot, site);
  if (status != TD_OK)
    return status;
  slot->t++;
  if (rule != NULL)
    status = td__opt_run_hooks (rule->hooks, false, &call);
  rule = td__opt_rule (opt, slot->param_id); /* a hook may have made rules */
  for (int i = 0; i < n_states; i++)
    in[n++] = slot->states[i];
  td__opt_async_step (opt, slot, &u);
  if (opt->cls->prepare != NULL)
    opt->cls->prepare (&u, slot->t, opt->initial_lr);
  td__engine.path = slot->path;
  in[1] = slot->g; /* a hook may have put another in its place */
  if (TD_UNLIKELY (td__engine.config.debug) && rule != NULL && status == TD_OK)
    status = debug_gradient (slot, site);
  if (status == TD_OK)
    status = td__apply_update (opt->cls->op, &u, in, n, site);
  slot->updated = status == TD_OK;
  return status == TD_OK && rule != NULL ? td__opt_run_hooks (rule->hooks, true, &call)
                                         : status;
}

/* Devices that collect updates begin with them now. */
static void
updates_end (const TdOpt *opt)
{
  TdDevice *last = NULL;

  for (int i = 0; i < opt->n_slots; i++)
    {
      TdDevice *d = opt->slots[i].at != NULL && opt->slots[i].at->buffer != NULL
                        ? opt->slots[i].at->buffer->device
                        : last;

      if (d != last && d->ops->updates_end != NULL)
        d->ops->updates_end (d);
      last = d;
    }
}

static TdStatus
update_slots (TdOpt *opt, bool safe, const TdSite *site)
{
  TdOptHookCall call = { opt, opt->slots, opt->n_slots, site };
  TdStatus status = TD_OK;

  opt->t++;
  opt->n_skipped += !safe;
  if (!safe)
    return TD_OK;
  status = td__opt_run_hooks (opt->hooks, false, &call);
  for (int i = 0; i < opt->n_slots && status == TD_OK && td__engine.config.debug; i++)
    status = debug_gradient (&opt->slots[i], site);
  for (int i = 0; i < opt->n_slots && status == TD_OK; i++)
    status = update_slot (opt, &opt->slots[i], site);
  /* Only now, so that updates follow each other. */
  for (int i = 0; i < opt->n_slots; i++)
    {
      TdStatus finished = td__opt_slot_finish (&opt->slots[i], site);

      status = status == TD_OK ? finished : status;
    }
  return status == TD_OK ? td__opt_run_hooks (opt->hooks, true, &call) : status;
}

static TdStatus
update_all (TdOpt *opt, const TdSite *site)
{
  TdStatus status = td__opt_look_again (opt, site);
  bool safe = true, repeats;

  opt->nothing_yet = false;
  if (opt->share != NULL)
    status = opt->share->gradients (opt, status, site);
  else if (TD_UNLIKELY (td__opt_watch != NULL) && status == TD_OK)
    status = td__opt_watch->before (opt, site);
  if (opt->nothing_yet && status == TD_OK)
    {
      opt->share->updated (opt, status, site);
      return status;
    }
  repeats = status == TD_OK && td__opt_repeat_begin (opt);
  for (int i = 0; i < opt->n_slots && status == TD_OK; i++)
    status = td__opt_slot_begin (opt, &opt->slots[i], site);
  if (status == TD_OK)
    status = td__opt_unscale (opt, &safe, site);
  if (status == TD_OK)
    status = update_slots (opt, safe, site);
  updates_end (opt);
  if (repeats)
    {
      const TdStatus sent = td__opt_repeat_end (opt);

      status = status == TD_OK ? sent : status;
    }
  td__opt_async_sent (opt);
  for (int i = 0; i < opt->n_slots; i++)
    td__opt_slot_end (&opt->slots[i]);
  if (status == TD_OK && opt->async == NULL)
    td__opt_next_scale (opt, safe);
  if (opt->share != NULL)
    opt->share->updated (opt, status, site);
  else if (TD_UNLIKELY (opt->watched != NULL))
    td__opt_watch->after (opt, status, site);
  return status;
}

TdStatus
td_opt_update_at (TdOpt *opt, const TdSite *site)
{
  TdEngine *e = &td__engine;
  const TdPath *path = e->path;
  const TdSite *outer_site = e->site;
  TdScope *scope;
  TdStatus status;

  if (td__stranger ("td_opt_update"))
    return TD_ERR_STATE;
  if (e->has_error) /* healthy weights stay healthy */
    {
      status = e->error.status;
      return opt != NULL && opt->share != NULL ? opt->share->gradients (opt, status, site)
                                               : status;
    }
  if (!td__opt_usable (opt, "td_opt_update", site))
    return td__error_status ();
  if (site != NULL)
    e->site = site;
  scope = td_scope_open_at (NULL, e->site);
  status = update_all (opt, e->site);
  td_scope_close (scope);
  e->path = path;
  e->site = outer_site;
  return status;
}

TdStatus (td_opt_update) (TdOpt *opt)
{
  return td_opt_update_at (opt, NULL);
}

int64_t
td_opt_count (const TdOpt *opt)
{
  return td__asked ("td_opt_count") || opt == NULL ? 0 : opt->t;
}

int64_t
td_opt_epoch (const TdOpt *opt)
{
  return td__asked ("td_opt_epoch") || opt == NULL ? 0 : opt->epoch;
}

void
td_opt_new_epoch (TdOpt *opt)
{
  if (td__opt_usable (opt, "td_opt_new_epoch", NULL))
    opt->epoch++;
}

void
td_opt_use_fp32_update (TdOpt *opt, bool use)
{
  if (td__opt_usable (opt, "td_opt_use_fp32_update", NULL))
    opt->fp32_update = use;
}
