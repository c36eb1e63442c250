/* Dynamic loss scaling on the device: it tests whether the gradients are finite, decides
 * whether parameters are updated, and computes the next scale, without the host waiting for any
 * of that.
 *
 * The host gets each decision later and repeats the same arithmetic.  Whoever asks for the
 * scale, the counts or a parameter's step number waits for the decisions that are missing, and
 * so gets exact ones.  Until then the host assumes that updates were done.  Adam's correction
 * depends on the step number, so the host passes a value for each number of skipped updates
 * that is possible, and the device selects the right one.  A recording gets a decision with the
 * next update.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer.h"
#include "host-memory.h"

#include "compute/core/copies.h"
#include "compute/core/async-index.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum
{
  ROOM = TD_UPDATE_EARLIER + 1, /* decisions that the host may not know yet */
  FENCED = 4                    /* a fence after so many of them */
};

typedef struct
{
  int64_t run;
  uint64_t *params; /* in the order of the flags */
  int n;
} Decision;

struct TdOptAsync
{
  TdDevice *device;
  TdVar *numbers;
  int64_t *reports; /* pinned: for each place, what the kernel `decide` writes */
  Decision waiting[ROOM];
  int n; /* how many, the oldest first */
  int64_t runs;
  double n_known; /* TD_SCALE_SKIPPED after them */
  int n_slots;
  void *fence; /* passes after that decision; or NULL */
  int64_t fenced;
};

/* --- whether the device can decide --- */

static bool
hooks_fit (const TdOptHook *hooks)
{
  while (hooks != NULL && hooks->decided)
    hooks = hooks->next;
  return hooks == NULL;
}

/* The device of all parameters; NULL if it cannot decide, or an observer wants each operation.
 */
static TdDevice *
device_of (const TdOpt *opt)
{
  TdDevice *d = opt->n_slots > 0 ? opt->slots[0].param->node->device : NULL;

  if (d == NULL || !opt->dynamic || !d->computes || d->ops->scaling == NULL
      || d->ops->ahead == NULL || td__index_now || td__engine.config.debug
      || !hooks_fit (opt->hooks))
    return NULL;
  for (int i = 0; i < opt->n_rules; i++)
    if (!hooks_fit (opt->rules[i].hooks))
      return NULL;
  for (int i = 1; i < opt->n_slots; i++)
    if (opt->slots[i].param->node->device != d)
      return NULL;
  return d;
}

/* --- decisions that arrive --- */

static void
forget_first (TdOptAsync *l)
{
  free (l->waiting[0].params);
  l->n--;
  memmove (l->waiting, l->waiting + 1, (size_t)l->n * sizeof *l->waiting);
}

static const int64_t *
place_of (const TdOptAsync *l, int64_t run)
{
  return l->reports + 2 * (run % ROOM);
}

/* Take the oldest decision that is missing. */
static void
take (TdOpt *opt, TdOptAsync *l, int64_t first)
{
  const Decision *d = &l->waiting[0];
  const uint32_t bit = 1u << (d->run % ROOM);

  for (int i = 0; i < opt->n_slots; i++)
    {
      TdOptSlot *slot = &opt->slots[i];

      if (first >= 0 && (slot->tried & bit) != 0)
        slot->t--;
      slot->tried &= ~bit;
      if (first >= 0 && slot->param_id == d->params[first])
        td__opt_overflowed (opt, slot);
    }
  opt->n_skipped += first >= 0;
  l->n_known += first >= 0;
  td__opt_next_scale (opt, first < 0);
  forget_first (l);
}

/* Wait until at least one more decision has arrived. */
static void
wait_for (TdOptAsync *l)
{
  TdDevice *d = l->device;

  if (l->fence != NULL && l->fenced >= l->waiting[0].run)
    {
      d->ops->provider->fence_wait (d->priv, l->fence);
      l->fence = NULL;
    }
  else
    d->ops->synchronize (d);
}

void
td__opt_settle (const TdOpt *const_opt, int keep)
{
  TdOpt *opt = (TdOpt *)(uintptr_t)const_opt; /* only what it caches changes */
  TdOptAsync *l = opt != NULL ? opt->async : NULL;
  bool waited = false;

  while (l != NULL && l->n > 0)
    {
      const int64_t *report = place_of (l, l->waiting[0].run);

      if (__atomic_load_n (&report[1], __ATOMIC_ACQUIRE) == l->waiting[0].run)
        {
          take (opt, l, report[0]);
          waited = false;
        }
      else if (l->n <= keep)
        break;
      else if (!waited || l->fence != NULL)
        {
          wait_for (l);
          waited = true;
        }
      else
        forget_first (l); /* the device is lost, and that was reported */
    }
  if (l != NULL && l->fence != NULL && (l->n == 0 || l->fenced < l->waiting[0].run)
      && l->device->ops->provider->fence_passed (l->device->priv, l->fence))
    l->fence = NULL;
}

void
td__opt_async_end (TdOpt *opt)
{
  TdOptAsync *l = opt->async;

  if (l == NULL)
    return;
  td__opt_settle (opt, 0);
  if (l->fence != NULL)
    l->device->ops->provider->fence_wait (l->device->priv, l->fence);
  l->device->ops->ahead->host_free (l->device, l->reports);
  td__var_unref (l->numbers, TD_HOLD_OPTIMIZER);
  free (l);
  opt->async = NULL;
  for (int i = 0; i < opt->n_slots; i++)
    opt->slots[i].tried = 0;
  if (opt->pending_scale == TD_OPT_SCALE_OF_DEVICE)
    opt->pending_scale = opt->scale;
}

/* --- beginning --- */

static void
begin (TdOpt *opt, TdDevice *d, const TdSite *site)
{
  const TdShape shape = { 1, { TD_SCALE_FLAGS + opt->n_slots } };
  const double numbers[TD_SCALE_FLAGS]
      = { [TD_SCALE_NEXT] = opt->scale, [TD_SCALE_SEEN] = opt->seen_overflow };
  TdOptAsync *l = td__xcalloc (1, sizeof *l);

  l->device = d;
  l->n_slots = opt->n_slots;
  l->reports = d->ops->ahead->host_new (d, 2 * ROOM * sizeof *l->reports);
  l->numbers = l->reports != NULL ? td__opt_state (TD_F64, &shape, d, site) : NULL;
  if (l->numbers != NULL
      && td__copy_in (d, l->numbers->buffer->data, numbers, sizeof numbers, TD_COPY_NEW,
                      l->numbers->node, site)
             == TD_OK)
    {
      memset (l->reports, 0, 2 * ROOM * sizeof *l->reports);
      opt->async = l;
      return;
    }
  if (l->numbers != NULL)
    td__var_unref (l->numbers, TD_HOLD_OPTIMIZER);
  if (l->reports != NULL)
    d->ops->ahead->host_free (d, l->reports);
  free (l);
}

bool
td__opt_async_begin (TdOpt *opt, const TdSite *site)
{
  TdDevice *d = device_of (opt);

  if (opt->async != NULL && (d != opt->async->device || opt->async->n_slots != opt->n_slots))
    td__opt_async_end (opt);
  if (d != NULL && opt->async == NULL
      && (opt->pending_scale == 1 || opt->pending_scale == opt->scale))
    {
      begin (opt, d, site);
      if (opt->async != NULL && opt->pending_scale != 1)
        opt->pending_scale = TD_OPT_SCALE_OF_DEVICE;
    }
  return opt->async != NULL;
}

TdVar *
td__opt_numbers (const TdOpt *opt)
{
  return opt->async != NULL ? opt->async->numbers : NULL;
}

/* --- an update --- */

static TdTensor
tensor_of (const TdVar *v)
{
  return (TdTensor){ v->buffer->data, &v->node->shape, td_shape_size (&v->node->shape),
                     (TdDtype)v->node->dtype };
}

/* In the order in which backward made the gradients: buffer numbers increase. */
static int
by_age (const void *a, const void *b)
{
  const TdOptSlot *x = *(TdOptSlot *const *)a, *y = *(TdOptSlot *const *)b;
  const uint64_t i = x->param->grad->buffer->id, k = y->param->grad->buffer->id;

  return i < k ? -1 : i > k;
}

TdStatus
td__opt_async_decide (TdOpt *opt, const TdSite *site)
{
  TdOptAsync *l = opt->async;
  const TdDevice *d = l->device;
  TdOptSlot **slots = td__xcalloc ((size_t)opt->n_slots, sizeof *slots);
  TdTensor *gradients = td__xcalloc ((size_t)opt->n_slots, sizeof *gradients);
  TdTensor numbers = tensor_of (l->numbers);
  Decision *w;
  TdStatus status;

  td__opt_settle (opt, td__engine.observer != NULL ? 0 : ROOM - 1);
  w = &l->waiting[l->n];
  *w = (Decision){ ++l->runs, td__xcalloc ((size_t)opt->n_slots, sizeof *w->params),
                   opt->n_slots };
  for (int i = 0; i < opt->n_slots; i++)
    slots[i] = &opt->slots[i];
  qsort (slots, (size_t)opt->n_slots, sizeof *slots, by_age);
  for (int i = 0; i < opt->n_slots; i++)
    {
      w->params[i] = slots[i]->param_id;
      gradients[i] = tensor_of (slots[i]->g);
    }
  status = d->ops->scaling->look (l->device, gradients, opt->n_slots, &numbers);
  if (status == TD_OK)
    status = d->ops->scaling->decide (l->device, opt->n_slots, opt->growth, &numbers,
                                      l->reports + 2 * (w->run % ROOM), w->run);
  l->n++;
  free (slots);
  free (gradients);
  if (status != TD_OK)
    free (l->waiting[--l->n].params);
  return status == TD_OK || td__engine.has_error
             ? status
             : td__fail (status, "td_opt_update", site, "the gradients on %s cannot be checked",
                         d->name);
}

void
td__opt_async_sent (TdOpt *opt)
{
  TdOptAsync *l = opt->async;

  if (l == NULL || l->n == 0 || l->fence != NULL
      || (l->n < FENCED && td__engine.observer == NULL))
    return;
  l->fence = l->device->ops->provider->fence_new (l->device->priv);
  l->fenced = l->runs;
}

void
td__opt_async_step (TdOpt *opt, TdOptSlot *slot, TdUpdate *u)
{
  TdOptAsync *l = opt->async;
  uint32_t others = 0;

  if (l == NULL)
    return;
  for (int i = 0; i + 1 < l->n; i++)
    others |= 1u << (l->waiting[i].run % ROOM);
  if ((slot->tried & others) != others) /* it took part in some of them only */
    td__opt_settle (opt, 1);
  slot->tried |= 1u << (l->runs % ROOM);
  u->decided = l->numbers->buffer->data;
  u->n_known = l->n_known;
  for (int i = 0; i + 1 < l->n && opt->cls->prepare != NULL; i++)
    {
      TdUpdate before = *u;

      opt->cls->prepare (&before, slot->t - 1 - i > 0 ? slot->t - 1 - i : 1, opt->initial_lr);
      u->earlier[i] = (TdUpdateStep){ before.alpha_t, before.lower, before.upper };
    }
}

/* --- operations: the scaled seed of backward, and dividing gradients by the scale --- */

typedef struct
{
  TdShape shape;
  int dtype;
} SeedAttrs;
static const TdAttr seed_table[]
    = { { "dtype", TD_ATTR_DTYPE, offsetof (SeedAttrs, dtype), 0, 0, NULL } };

static TdStatus
seed_infer (TdOpCall *call)
{
  const SeedAttrs *a = call->attrs;

  return td_op_out (call, 0, (TdDtype)a->dtype, &a->shape);
}

static TdStatus
seed_forward (TdOpCall *call)
{
  TdShape scalar = { 0, { 0 } };
  const TdTensor scale = { (double *)call->in[0].data + TD_SCALE_NEXT, &scalar, 1, TD_F64 };
  TdTensor y = call->out[0];

  y.shape = &scalar;
  return call->device->ops->cast (call->device, &scale, &y);
}

static const char *const seed_names[] = { "numbers" };
static const TdOpClass seed_class = { .name = "loss_scale",
                                      .label = "LossScale",
                                      .group = "optimizer",
                                      .formula = "the scale that the device has found",
                                      .n_in_min = 1,
                                      .n_in_max = 1,
                                      .n_out = 1,
                                      .flags = TD_OP_NO_GRAD,
                                      .in_names = seed_names,
                                      .attrs_size = sizeof (SeedAttrs),
                                      .attrs = seed_table,
                                      .n_attrs = 1,
                                      .infer = seed_infer,
                                      .forward = seed_forward };

TdVar *
td__opt_async_seed (TdOpt *opt, const TdVar *loss, const TdSite *site)
{
  SeedAttrs attrs;

  memset (&attrs, 0, sizeof attrs); /* attributes are hashed as bytes, also padding */
  attrs.shape = loss->node->shape;
  attrs.dtype = loss->node->dtype;
  return td__apply1 (&seed_class, &attrs, site, opt->async->numbers);
}

static TdStatus
unscale_infer (TdOpCall *call)
{
  return call->in[0].dtype <= TD_BF16 && call->in[1].dtype == TD_F64
             ? TD_OK
             : td_op_fail_operands (call, TD_ERR_DTYPE, "a gradient and a scale expected");
}

static TdStatus
unscale_forward (TdOpCall *call)
{
  TdTensor g = call->in[0], *arrays[] = { &g };
  const TdUpdate u = { .decided = call->in[1].data };

  return call->device->ops->update (call->device, TD_UPDATE_UNSCALE, &u, arrays, 1);
}

static const char *const unscale_names[] = { "grad", "numbers" };
static const TdOpClass unscale_class = { .name = "unscale_decided",
                                         .label = "Unscale",
                                         .group = "optimizer",
                                         .formula = "g /= the scale that it was computed with",
                                         .n_in_min = 2,
                                         .n_in_max = 2,
                                         .flags = TD_OP_STATEFUL | TD_OP_NO_GRAD,
                                         .writes = 1,
                                         .in_names = unscale_names,
                                         .infer = unscale_infer,
                                         .forward = unscale_forward };

TdStatus
td__opt_async_unscale (TdOpt *opt, TdOptSlot *slot, const TdSite *site)
{
  TdVar *in[] = { slot->g, opt->async->numbers };

  return td__apply_update (&unscale_class, NULL, in, 2, site);
}
