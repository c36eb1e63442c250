/* What all optimizers share: their parameters, states, hooks and the update itself.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer.h"

#include <stdlib.h>

static TdOpt *
inert_opt (void)
{
  static TdOpt inert = { .inert = true };

  return &inert;
}

static bool
opt_usable (const TdOpt *opt, const char *call, const TdSite *site)
{
  if (opt != NULL && !opt->inert)
    return true;
  td__fail (TD_ERR_STATE, call, site, "%s",
            opt == NULL ? "the optimizer is NULL"
                        : "the optimizer is inert: its constructor failed before");
  return false;
}

static void
slot_clear (TdOptSlot *slot)
{
  if (slot->param != NULL)
    td__var_unref (slot->param, TD_HOLD_OPTIMIZER);
  for (int i = 0; i < TD_OPT_MAX_STATES; i++)
    if (slot->states[i] != NULL)
      td__var_unref (slot->states[i], TD_HOLD_OPTIMIZER);
}

static void
hook_free (void *object)
{
  free (object);
}

static void
opt_free (void *object)
{
  TdOpt *opt = object;

  for (int i = 0; i < opt->n_slots; i++)
    slot_clear (&opt->slots[i]);
  while (opt->hooks != NULL)
    {
      TdOptHook *hook = opt->hooks;

      opt->hooks = hook->next;
      hook_free (hook);
    }
  free (opt->slots);
  free (opt);
}

void
td_opt_free (TdOpt *opt)
{
  if (opt == NULL || opt->inert || !td__engine.started)
    return;
  td__object_remove (&opt->object);
  opt_free (opt);
}

TdOpt *
td__opt_make (const TdOptClass *cls, TdLink *target, const TdUpdate *u, const TdSite *site)
{
  TdOpt *opt;

  if (!td__ensure_started () || !td__link_usable (target, cls->name, site))
    return inert_opt ();
  opt = td__xcalloc (1, sizeof *opt);
  opt->cls = cls;
  opt->u = *u;
  opt->target = target;
  opt->target_id = target->id;
  td__object_add (&opt->object, opt_free);
  return opt;
}

/* --- the parameters of the target, looked up again when links have changed --- */

typedef struct
{
  TdOpt *opt;
  TdOptSlot *slots;
  int n;
} Gather;

/* An array that is shared by two links is updated once, as in Chainer. */
static void
gather_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  Gather *g = user;
  TdOptSlot *slot;

  (void)key;
  if (param->kind != TD_PARAM_TRAINED || param->var == NULL)
    return;
  for (int i = 0; i < g->n; i++)
    if (g->slots[i].param == param->var)
      return;
  g->slots = td__xrealloc (g->slots, (size_t)(g->n + 1) * sizeof *g->slots);
  slot = &g->slots[g->n++];
  *slot = (TdOptSlot){ .param_id = param->id,
                       .param = td__var_ref (param->var, TD_HOLD_OPTIMIZER),
                       .path = owner->path };
  for (int i = 0; i < g->opt->n_slots; i++)
    if (g->opt->slots[i].param_id == param->id)
      {
        TdOptSlot *old = &g->opt->slots[i];

        slot->t = old->t;
        for (int s = 0; s < TD_OPT_MAX_STATES; s++)
          {
            slot->states[s] = old->states[s];
            old->states[s] = NULL;
          }
      }
}

static TdStatus
look_again (TdOpt *opt, const TdSite *site)
{
  Gather g = { opt, NULL, 0 };

  if (opt->generation == td__links_generation)
    return TD_OK;
  opt->target = td__link_by_id (opt->target_id);
  if (opt->target == NULL)
    return td__fail (TD_ERR_STATE, opt->cls->name, site, "its link was freed");
  td__link_visit (opt->target, gather_one, &g);
  for (int i = 0; i < opt->n_slots; i++)
    slot_clear (&opt->slots[i]);
  free (opt->slots);
  opt->slots = g.slots;
  opt->n_slots = g.n;
  opt->generation = td__links_generation;
  return TD_OK;
}

TdVar *
td__opt_state (TdDtype dtype, const TdShape *shape, TdDevice *device, const TdSite *site)
{
  TdVar *v = td__var_leaf (dtype, shape, device, TD_MEM_OPTIMIZER, site);

  if (v == NULL)
    return NULL;
  v->flags |= TD_VAR_PERSISTENT;
  if (device->computes)
    device->ops->zero (device, v->buffer->data, v->buffer->bytes);
  return td__var_ref (v, TD_HOLD_OPTIMIZER);
}

/* States appear with the first update, and follow their parameter to another device. */
static TdStatus
start_states (TdOpt *opt, TdOptSlot *slot, const TdSite *site)
{
  const TdNode *p = slot->param->node;
  int n = opt->cls->n_states (&opt->u);

  for (int i = 0; i < n; i++)
    if (slot->states[i] == NULL)
      {
        slot->states[i] = td__opt_state ((TdDtype)p->dtype, &p->shape, p->device, site);
        if (slot->states[i] == NULL)
          return td__engine.error.status;
      }
    else if (td__var_move (slot->states[i], p->device) != TD_OK)
      return td__engine.error.status;
  return TD_OK;
}

/* Chainer's rule: a parameter without a gradient has a gradient of zeros. */
static TdStatus
zero_missing_gradients (TdOpt *opt, const TdSite *site)
{
  for (int i = 0; i < opt->n_slots; i++)
    {
      TdVar *p = opt->slots[i].param, *g;
      TdDevice *d = p->node->device;

      if (p->grad != NULL)
        continue;
      g = td__var_leaf ((TdDtype)p->node->dtype, &p->node->shape, d, TD_MEM_GRADIENT, site);
      if (g == NULL)
        return td__engine.error.status;
      td__var_ref (g, TD_HOLD_ENGINE);
      if (d->computes)
        d->ops->zero (d, g->buffer->data, g->buffer->bytes);
      td_set_grad (p, g);
      td__var_unref (g, TD_HOLD_ENGINE);
    }
  return TD_OK;
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

static TdStatus
update_slot (TdOpt *opt, TdOptSlot *slot, const TdSite *site)
{
  TdVar *in[2 + TD_OPT_MAX_STATES] = { slot->param, slot->param->grad };
  int n = 2, n_states = opt->cls->n_states (&opt->u);
  TdUpdate u = opt->u;
  TdStatus status = TD_OK;

  if (slot->param->flags & TD_VAR_FIXED) /* td_link_disable_update */
    return TD_OK;
  status = start_states (opt, slot, site);
  if (status != TD_OK)
    return status;
  for (int i = 0; i < n_states; i++)
    in[n++] = slot->states[i];
  slot->t++;
  if (opt->cls->prepare != NULL)
    opt->cls->prepare (&u, slot->t);
  td__engine.path = slot->path;
  return td__apply_update (opt->cls->op, &u, in, n, site);
}

static TdStatus
update_all (TdOpt *opt, const TdSite *site)
{
  TdStatus status = look_again (opt, site);

  if (status == TD_OK)
    status = zero_missing_gradients (opt, site);
  for (TdOptHook *hook = opt->hooks; hook != NULL && status == TD_OK; hook = hook->next)
    status = hook->call (hook, opt, site);
  if (status != TD_OK)
    return status;
  opt->t++;
  for (int i = 0; i < opt->n_slots && status == TD_OK; i++)
    status = update_slot (opt, &opt->slots[i], site);
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

  if (e->has_error) /* healthy weights stay healthy */
    return e->error.status;
  if (!opt_usable (opt, "td_opt_update", site) || td__check_thread ("td_opt_update") != TD_OK)
    return e->has_error ? e->error.status : TD_ERR_STATE;
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

TdStatus
td_opt_add_hook (TdOpt *opt, TdOptHook *hook)
{
  TdOptHook **last;

  if (!opt_usable (opt, "td_opt_add_hook", NULL))
    return td__engine.error.status;
  if (hook == NULL || hook->inert || hook->owner != NULL)
    return td__fail (TD_ERR_STATE, "td_opt_add_hook", NULL, "%s",
                     hook != NULL && hook->owner != NULL
                         ? "the hook belongs to an optimizer already"
                         : "the hook is inert");
  td__object_remove (&hook->object);
  hook->owner = opt;
  for (last = &opt->hooks; *last != NULL; last = &(*last)->next)
    continue;
  *last = hook;
  return TD_OK;
}

void
td_opt_set_lr (TdOpt *opt, double lr)
{
  if (!opt_usable (opt, "td_opt_set_lr", NULL))
    return;
  if (!(lr >= 0))
    td__fail (TD_ERR_ARG, "td_opt_set_lr", NULL,
              "a learning rate of 0 or more expected, got %g", lr);
  else
    opt->u.lr = lr;
}

double
td_opt_lr (const TdOpt *opt)
{
  return opt != NULL ? opt->u.lr : 0;
}

int64_t
td_opt_count (const TdOpt *opt)
{
  return opt != NULL ? opt->t : 0;
}
