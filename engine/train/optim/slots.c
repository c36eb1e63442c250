/* The parameters of an optimizer's target with their states, and float32 copies of those in
 * half precision.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer.h"
#include "host-memory.h"

#include "compute/core/copies.h"

#include <stdlib.h>
#include <string.h>

/* --- in[0] = in[1], converted: how copies and parameters follow each other --- */

static TdStatus
copy_infer (TdOpCall *call)
{
  return td_shape_equal (call->in[0].shape, call->in[1].shape)
             ? TD_OK
             : td_op_fail_operands (call, TD_ERR_SHAPE, "operands of one shape expected");
}

static TdStatus
copy_forward (TdOpCall *call)
{
  TdTensor to = call->in[0];

  return call->device->ops->cast (call->device, &call->in[1], &to);
}

static const char *const copy_names[] = { "to", "from" };
const TdOpClass td__opt_copy_class = { .name = "copy_converted",
                                       .label = "CopyConverted",
                                       .group = "optimizer",
                                       .formula = "to = from, in the dtype of to",
                                       .n_in_min = 2,
                                       .n_in_max = 2,
                                       .flags = TD_OP_STATEFUL | TD_OP_NO_GRAD | TD_OP_FILLS,
                                       .writes = 1,
                                       .in_names = copy_names,
                                       .infer = copy_infer,
                                       .forward = copy_forward };

static TdStatus
copy (TdVar *to, TdVar *from, const TdPath *path, const TdSite *site)
{
  TdVar *in[] = { to, from };

  td__engine.path = path;
  return td__apply_update (&td__opt_copy_class, NULL, in, 2, site);
}

/* --- slots --- */

static void
give_up (TdVar **v)
{
  if (*v != NULL)
    td__var_unref (*v, TD_HOLD_OPTIMIZER);
  *v = NULL;
}

void
td__opt_state_drop (TdVar **state)
{
  give_up (state);
}

static void
slot_clear (TdOptSlot *slot)
{
  td__opt_slot_end (slot);
  give_up (&slot->param);
  give_up (&slot->master);
  for (int i = 0; i < TD_OPT_MAX_STATES; i++)
    give_up (&slot->states[i]);
  free (slot->key);
}

void
td__opt_slots_clear (TdOpt *opt)
{
  for (int i = 0; i < opt->n_slots; i++)
    slot_clear (&opt->slots[i]);
  free (opt->slots);
  opt->slots = NULL;
  opt->n_slots = 0;
}

void
td__opt_loaded_clear (TdOptLoaded *loaded)
{
  for (int i = 0; i < TD_OPT_MAX_STATES; i++)
    free (loaded->states[i].data);
  free (loaded->master.data);
  memset (loaded, 0, sizeof *loaded);
}

typedef struct
{
  TdOpt *opt;
  TdOptSlot *slots;
  int n;
} Gather;

static void
take_over (TdOptSlot *slot, TdOptSlot *old)
{
  slot->t = old->t;
  slot->n_overflows = old->n_overflows;
  slot->master = old->master;
  slot->master_version = old->master_version;
  old->master = NULL;
  for (int s = 0; s < TD_OPT_MAX_STATES; s++)
    {
      slot->states[s] = old->states[s];
      old->states[s] = NULL;
    }
}

/* An array that is shared by two links is updated once, as in Chainer. */
static void
gather_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  Gather *g = user;
  TdOptSlot *slot;

  if (param->kind != TD_PARAM_TRAINED || param->var == NULL)
    return;
  for (int i = 0; i < g->n; i++)
    if (g->slots[i].param == param->var)
      return;
  g->slots = td__xrealloc (g->slots, (size_t)(g->n + 1) * sizeof *g->slots);
  slot = &g->slots[g->n++];
  *slot = (TdOptSlot){ .param_id = param->id,
                       .param = td__var_ref (param->var, TD_HOLD_OPTIMIZER),
                       .path = owner->path,
                       .key = td__xstrdup (key) };
  for (int i = 0; i < g->opt->n_slots; i++)
    if (g->opt->slots[i].param_id == param->id)
      take_over (slot, &g->opt->slots[i]);
}

/* --- states from a file --- */

static TdStatus
state_of (TdVar **state, const TdRecord *value, const TdOptSlot *slot, TdDtype dtype,
          const TdSite *site)
{
  const TdNode *p = slot->param->node;
  char a[160], b[160];

  if (!td_shape_equal (&value->shape, &p->shape))
    return td__fail (TD_ERR_SHAPE, "td_opt_update", site,
                     "the loaded state of %s has shape %s, the parameter %s", slot->key,
                     td_shape_text (&value->shape, a, sizeof a),
                     td_shape_text (&p->shape, b, sizeof b));
  give_up (state);
  *state = td__opt_state (dtype, &p->shape, p->device, site);
  return *state != NULL ? td__write_for (TD_COPY_LOAD, *state, value->data, value->bytes, site)
                        : td__engine.error.status;
}

/* Give a slot the states that were loaded for it. */
static TdStatus
take_loaded (TdOptSlot *slot, TdOptLoaded *loaded, const TdSite *site)
{
  TdDtype dtype = (TdDtype)slot->param->node->dtype;
  TdStatus status = TD_OK;

  slot->t = loaded->t;
  give_up (&slot->master);
  if (loaded->master.data != NULL)
    {
      dtype = TD_F32;
      status = state_of (&slot->master, &loaded->master, slot, TD_F32, site);
      slot->master_version = slot->param->buffer->version - 1; /* compared before it is used */
    }
  for (int i = 0; i < TD_OPT_MAX_STATES && status == TD_OK; i++)
    if (loaded->states[i].data != NULL)
      status = state_of (&slot->states[i], &loaded->states[i], slot,
                         dtype == TD_F32 ? TD_F32 : loaded->states[i].dtype, site);
    else
      give_up (&slot->states[i]);
  td__opt_loaded_clear (loaded);
  return status;
}

static TdStatus
take_all_loaded (TdOpt *opt, const TdSite *site)
{
  int left = 0;
  TdStatus status = TD_OK;

  for (int i = 0; i < opt->n_loaded; i++)
    {
      TdOptSlot *slot = NULL;

      for (int k = 0; k < opt->n_slots && slot == NULL; k++)
        if (opt->slots[k].param_id == opt->loaded[i].param_id)
          slot = &opt->slots[k];
      if (slot == NULL || status != TD_OK)
        opt->loaded[left++] = opt->loaded[i];
      else
        status = take_loaded (slot, &opt->loaded[i], site);
    }
  opt->n_loaded = left;
  return status;
}

TdStatus
td__opt_look_again (TdOpt *opt, const TdSite *site)
{
  Gather g = { opt, NULL, 0 };

  if (opt->generation == td__links_generation)
    return TD_OK;
  opt->target = td__link_by_id (opt->target_id);
  if (opt->target == NULL)
    return td__fail (TD_ERR_STATE, opt->cls->name, site, "its link was freed");
  td__link_visit (opt->target, gather_one, &g);
  td__opt_slots_clear (opt);
  opt->slots = g.slots;
  opt->n_slots = g.n;
  opt->generation = td__links_generation;
  return take_all_loaded (opt, site);
}

/* --- states --- */

TdVar *
td__opt_room (TdDtype dtype, const TdShape *shape, TdDevice *device, TdMemCategory category,
              const TdSite *site)
{
  TdVar *v = td__var_leaf (dtype, shape, device, category, site);

  if (v == NULL)
    return NULL;
  v->flags |= TD_VAR_PERSISTENT;
  return td__var_ref (v, TD_HOLD_OPTIMIZER);
}

TdVar *
td__opt_state (TdDtype dtype, const TdShape *shape, TdDevice *device, const TdSite *site)
{
  TdVar *v = td__opt_room (dtype, shape, device, TD_MEM_OPTIMIZER, site);

  if (v != NULL && device->computes)
    device->ops->zero (device, v->buffer->data, v->buffer->bytes);
  return v;
}

int
td__opt_n_states (const TdOpt *opt)
{
  int n = 0;

  if (opt->cls->n_states != NULL)
    return opt->cls->n_states (&opt->u);
  while (n < TD_OPT_MAX_STATES && opt->cls->states[n] != NULL)
    n++;
  return n;
}

static TdStatus
fill (TdVar *v, double value)
{
  TdDevice *d = v->node->device;
  TdTensor t = { v->buffer->data, &v->node->shape, td_shape_size (&v->node->shape),
                 (TdDtype)v->node->dtype };

  return d->computes ? d->ops->fill (d, &t, value) : TD_OK;
}

/* A state of the optimizer, which is found by the line that made that. */
static TdVar *
state_for (const TdOpt *opt, const TdNode *p, TdDtype dtype, const TdSite *site)
{
  TdVar *v = td__opt_state (dtype, &p->shape, p->device, site);

  if (v != NULL)
    v->retained_site = opt->site;
  return v;
}

TdStatus
td__opt_start_states (TdOpt *opt, TdOptSlot *slot, const TdSite *site)
{
  const TdNode *p = slot->at->node;
  int n = td__opt_n_states (opt);

  for (int i = 0; i < n; i++)
    {
      /* fp32_update was switched: the states are in the other dtype */
      if (slot->states[i] != NULL && slot->states[i]->node->dtype != p->dtype)
        {
          TdVar *old = slot->states[i];

          slot->states[i] = state_for (opt, p, (TdDtype)p->dtype, site);
          if (slot->states[i] == NULL || td__var_move (old, p->device) != TD_OK
              || copy (slot->states[i], old, slot->path, site) != TD_OK)
            return td__error_status ();
          give_up (&old);
        }
      if (slot->states[i] != NULL && td__var_move (slot->states[i], p->device) != TD_OK)
        return td__error_status ();
      if (slot->states[i] != NULL)
        continue;
      slot->states[i] = state_for (opt, p, (TdDtype)p->dtype, site);
      if (slot->states[i] == NULL
          || (i == 0 && opt->cls->first != 0
              && fill (slot->states[i], opt->cls->first) != TD_OK))
        return td__error_status ();
    }
  return TD_OK;
}

/* --- float32 copies --- */

/* The parameter was written by somebody else.  When its numbers are those of the copy, rounded,
 * the copy knows more of them (a snapshot brings both back); else it is outdated. */
static TdStatus
follow_param (TdOptSlot *slot, const TdSite *site)
{
  TdVar *p = slot->param, *again;
  size_t bytes = p->buffer->bytes;
  void *a = malloc (bytes + 1), *b = malloc (bytes + 1);
  TdStatus status = TD_ERR_MEMORY;

  again = td__opt_state ((TdDtype)p->node->dtype, &p->node->shape, p->node->device, site);
  if (again != NULL && a != NULL && b != NULL)
    status = copy (again, slot->master, slot->path, site);
  if (status == TD_OK)
    status = td_read_at (p, a, bytes, site);
  if (status == TD_OK)
    status = td_read_at (again, b, bytes, site);
  if (status == TD_OK && memcmp (a, b, bytes) != 0)
    status = copy (slot->master, p, slot->path, site);
  give_up (&again);
  free (a);
  free (b);
  return status;
}

static TdStatus
begin_copy (TdOptSlot *slot, const TdSite *site)
{
  TdVar *p = slot->param;
  const TdNode *n = p->node;
  TdStatus status = TD_OK;

  if (slot->master == NULL)
    {
      slot->master = td__opt_state (TD_F32, &n->shape, n->device, site);
      if (slot->master == NULL)
        return td__error_status ();
      status = copy (slot->master, p, slot->path, site);
    }
  else if (td__var_move (slot->master, n->device) != TD_OK)
    return td__error_status ();
  else if (n->device->computes && slot->master_version != p->buffer->version)
    status = follow_param (slot, site);
  slot->g = td__opt_room (TD_F32, &n->shape, n->device, TD_MEM_GRADIENT, site);
  if (slot->g == NULL)
    return td__error_status ();
  slot->at = td__var_ref (slot->master, TD_HOLD_OPTIMIZER);
  return status == TD_OK ? copy (slot->g, p->grad, slot->path, site) : status;
}

/* Chainer's rule: a parameter without a gradient has a gradient of zeros. */
static TdStatus
zero_missing_gradient (TdVar *p, const TdSite *site)
{
  TdDevice *d = p->node->device;
  TdVar *g;

  if (p->grad != NULL)
    return TD_OK;
  g = td__var_leaf ((TdDtype)p->node->dtype, &p->node->shape, d, TD_MEM_GRADIENT, site);
  if (g == NULL)
    return td__error_status ();
  td__var_ref (g, TD_HOLD_ENGINE);
  if (d->computes)
    d->ops->zero (d, g->buffer->data, g->buffer->bytes);
  td__put_grad (p, g);
  td__var_unref (g, TD_HOLD_ENGINE);
  return TD_OK;
}

TdStatus
td__opt_slot_refresh (TdOptSlot *slot, const TdSite *site)
{
  TdStatus status = zero_missing_gradient (slot->param, site);

  if (status != TD_OK || slot->at != slot->param || slot->g == slot->param->grad)
    return status;
  give_up (&slot->g);
  slot->g = td__var_ref (slot->param->grad, TD_HOLD_OPTIMIZER);
  return TD_OK;
}

TdStatus
td__opt_slot_begin (TdOpt *opt, TdOptSlot *slot, const TdSite *site)
{
  TdDtype dtype = (TdDtype)slot->param->node->dtype;
  TdStatus status = zero_missing_gradient (slot->param, site);

  if (status != TD_OK)
    return status;
  if (opt->fp32_update && (dtype == TD_F16 || dtype == TD_BF16))
    return begin_copy (slot, site);
  give_up (&slot->master);
  slot->at = td__var_ref (slot->param, TD_HOLD_OPTIMIZER);
  slot->g = td__var_ref (slot->param->grad, TD_HOLD_OPTIMIZER);
  return TD_OK;
}

TdStatus
td__opt_slot_finish (TdOptSlot *slot, const TdSite *site)
{
  const bool updated = slot->updated;
  TdStatus status;

  slot->updated = false;
  if (!updated || slot->at == slot->param)
    return TD_OK;
  status = copy (slot->param, slot->at, slot->path, site);
  slot->master_version = slot->param->buffer->version;
  return status;
}

void
td__opt_slot_end (TdOptSlot *slot)
{
  give_up (&slot->at);
  give_up (&slot->g);
}
