/* Loss scaling: gradients that are too small for half precision are computed of a larger loss,
 * and divided again before anything else is done with them.
 *
 * The scale is multiplied into the gradient that backward starts with, so everything that is
 * computed on the way (and recomputed: td_forget) is scaled alike, whoever set that gradient.
 * Gradients of a plain td_backward are not scaled, and so not divided.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer.h"
#include "host-memory.h"

#include "compute/core/copies.h"
#include "compute/scalar-updates.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  double scale;
} Attrs;
static const TdAttr attrs_table[]
    = { { "scale", TD_ATTR_DOUBLE, offsetof (Attrs, scale), 0, 0, NULL } };

static TdStatus
unscale_forward (TdOpCall *call)
{
  TdTensor g = call->in[0];

  return call->device->ops->unary (call->device, TD_UNARY_DIV_SCALAR,
                                   ((const Attrs *)call->attrs)->scale, 0, &call->in[0], &g);
}

static const char *const names[] = { "grad" };
const TdOpClass td__unscale_class = { .name = "unscale",
                                      .label = "Unscale",
                                      .group = "optimizer",
                                      .formula = "g /= scale",
                                      .n_in_min = 1,
                                      .n_in_max = 1,
                                      .flags = TD_OP_STATEFUL | TD_OP_NO_GRAD,
                                      .writes = 1,
                                      .in_names = names,
                                      .attrs_size = sizeof (Attrs),
                                      .attrs = attrs_table,
                                      .n_attrs = 1,
                                      .infer = td__opt_infer,
                                      .forward = unscale_forward };

/* Whether the dynamic scale was too large is read back: a wait for the device, where it cannot
 * decide by itself (scaling-async.c). */
static TdStatus
check_finite (TdOptSlot *slot, const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdVar *g = slot->g;
  TdDevice *d = g->node->device;
  TdTensor t = { g->buffer->data, &g->node->shape, td_shape_size (&g->node->shape),
                 (TdDtype)g->node->dtype };
  TdStats stats;
  TdStatus status;

  if (!d->computes || t.size == 0)
    return TD_OK;
  if (e->observer != NULL)
    e->observer->host_read (e->observer, g->node, site);
  status = d->ops->stats (d, &t, 1, 0, &stats);
  if (status != TD_OK)
    return td__fail (status, "td_opt_update", site, "the gradient of %s cannot be checked",
                     slot->key);
  slot->overflowed = stats.n_nan + stats.n_pos_inf + stats.n_neg_inf > 0;
  return TD_OK;
}

/* --- on a device that computes by itself --- */

enum
{
  PLACE = 8 /* bytes for one number of any type */
};

static bool
is_finite (const void *number, TdDtype dtype)
{
  const uint64_t exponent = td__infinity_bits (dtype);
  uint64_t bits;

  memcpy (&bits, number, sizeof bits);
  return (bits & exponent) != exponent;
}

/* The largest and the smallest number of a gradient, both of which a NaN is. */
static TdStatus
put_extremes (TdDevice *d, const TdVar *g, char *places)
{
  static const TdReduceKind kinds[] = { TD_REDUCE_MAX, TD_REDUCE_MIN };
  TdShape scalar = { 0 };
  TdTensor x = { g->buffer->data, &g->node->shape, td_shape_size (&g->node->shape),
                 (TdDtype)g->node->dtype };
  TdStatus status = TD_OK;

  for (int k = 0; k < 2 && status == TD_OK; k++)
    {
      TdTensor y = { places + k * PLACE, &scalar, 1, x.dtype };

      status = d->ops->reduce (d, kinds[k], (1u << x.shape->ndim) - 1, &x, &y, false);
    }
  return status;
}

static bool
is_there (const TdOptSlot *slot, const TdDevice *d)
{
  return slot->g->node->device == d && td_shape_size (&slot->g->node->shape) > 0;
}

/* One answer for all gradients that lie there, instead of one for each. */
static TdStatus
check_together (const TdOpt *opt, TdDevice *d, const TdSite *site)
{
  size_t bytes = (size_t)opt->n_slots * 2 * PLACE;
  TdBlock *block = td__pool_take (d->pool, bytes, TD_MEM_WORKSPACE);
  char *host = calloc (1, bytes);
  TdStatus status
      = block != NULL && host != NULL ? d->ops->zero (d, block->address, bytes) : TD_ERR_MEMORY;

  for (int i = 0; i < opt->n_slots && status == TD_OK; i++)
    if (is_there (&opt->slots[i], d))
      status = put_extremes (d, opt->slots[i].g, (char *)block->address + i * 2 * PLACE);
  if (status == TD_OK)
    status = td__copy_out (d, host, block->address, bytes, TD_COPY_READ, NULL, site);
  for (int i = 0; i < 2 * opt->n_slots && status == TD_OK; i++)
    if (is_there (&opt->slots[i / 2], d)
        && !is_finite (host + i * PLACE, (TdDtype)opt->slots[i / 2].g->node->dtype))
      opt->slots[i / 2].overflowed = true;
  if (block != NULL)
    td__pool_release (block);
  free (host);
  if (status != TD_OK && !td__engine.has_error)
    return td__fail (status, "td_opt_update", site, "the gradients on %s cannot be checked",
                     d->name);
  return status;
}

void
td__opt_overflowed (TdOpt *opt, TdOptSlot *slot)
{
  char *key;

  slot->n_overflows++;
  opt->overflow_id = slot->param_id;
  if (td__engine.observer == NULL)
    return;
  key = td__xcalloc (1, sizeof "overflows/" + strlen (slot->key));
  sprintf (key, "overflows/%s", slot->key);
  td__engine.observer->report (td__engine.observer, key, (double)slot->n_overflows);
  free (key);
}

/* The gradient that backward made first tells where it began: buffers are numbered as they are
 * made.  *finite is false when there is one. */
static void
find_first (TdOpt *opt, bool *finite)
{
  TdOptSlot *first = NULL;

  for (int i = 0; i < opt->n_slots; i++)
    {
      TdOptSlot *slot = &opt->slots[i];

      if (slot->overflowed
          && (first == NULL || slot->param->grad->buffer->id < first->param->grad->buffer->id))
        first = slot;
    }
  if (first == NULL)
    return;
  *finite = false;
  td__opt_overflowed (opt, first);
}

static TdStatus
check_all (TdOpt *opt, bool *finite, const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdDevice *together = NULL;
  TdStatus status = TD_OK;

  for (int i = 0; i < opt->n_slots; i++)
    opt->slots[i].overflowed = false;
  for (int i = 0; i < opt->n_slots && status == TD_OK; i++)
    {
      TdDevice *d = opt->slots[i].g->node->device;

      if (d->ops->poll_async == NULL || !d->computes)
        status = check_finite (&opt->slots[i], site);
      else if (together != d)
        {
          if (e->observer != NULL)
            e->observer->host_read (e->observer, opt->slots[i].g->node, site);
          status = check_together (opt, d, site);
          together = d;
        }
    }
  if (status == TD_OK)
    find_first (opt, finite);
  return status;
}

/* Whether the gradient that is there now came through td_opt_backward. */
static bool
is_scaled (const TdOptSlot *slot)
{
  return slot->param->grad != NULL && slot->param->grad->scaled_by != TD_SCALED_BY_NONE;
}

/* A gradient that is scaled, though no td_opt_backward of this optimizer waits for its update,
 * or by another, is times a scale that nobody knows any more. */
static TdStatus
refuse_foreign (const TdOpt *opt, const char *call, const TdSite *site)
{
  for (int i = 0; i < opt->n_slots; i++)
    if (is_scaled (&opt->slots[i])
        && (opt->pending_scale == 1 || opt->slots[i].param->grad->scaled_by != opt->number))
      return td__fail (TD_ERR_STATE, call, site,
                       "the gradient of %s is times the loss scale of another optimizer, or of "
                       "an update that is over: clear it before (td_cleargrads)",
                       opt->slots[i].key);
  return TD_OK;
}

/* Of a half precision parameter with a float32 copy only the copy is divided: the gradient
 * stays as it is, and refuse_foreign keeps it from being added to. */
static TdStatus
unscale_slot (TdOpt *opt, TdOptSlot *slot, bool async, const TdSite *site)
{
  Attrs attrs = { opt->pending_scale };

  td__engine.path = slot->path;
  slot->g->scaled_by = TD_SCALED_BY_NONE;
  return async ? td__opt_async_unscale (opt, slot, site)
               : td__apply_update (&td__unscale_class, &attrs, &slot->g, 1, site);
}

TdStatus
td__opt_unscale (TdOpt *opt, bool *safe, const TdSite *site)
{
  TdStatus status = refuse_foreign (opt, "td_opt_update", site);
  bool async;

  if (status != TD_OK)
    return status;
  async = td__opt_async_begin (opt, site);
  if (async)
    status = td__opt_async_decide (opt, site);
  else if (opt->dynamic)
    status = check_all (opt, safe, site);
  for (int i = 0; i < opt->n_slots && status == TD_OK; i++)
    if (opt->pending_scale != 1 && is_scaled (&opt->slots[i]))
      status = unscale_slot (opt, &opt->slots[i], async, site);
  opt->pending_scale = 1;
  return status;
}

/* Curves of a recording: what the scale was, and how many steps it has cost so far. */
static void
report_scale (const TdOpt *opt)
{
  TdObserver *o = td__engine.observer;

  if (o == NULL)
    return;
  o->report (o, "loss_scale", opt->scale);
  o->report (o, "overflows", (double)opt->n_skipped);
}

void
td__opt_next_scale (TdOpt *opt, bool safe)
{
  if (!opt->dynamic)
    return;
  report_scale (opt);
  opt->seen_overflow = opt->seen_overflow || !safe;
  opt->scale *= !safe ? 0.5 : opt->seen_overflow ? opt->growth : 2;
  opt->scale = fmax (1, fmin (TD_SCALE_MOST, opt->scale));
}

TdStatus
td_opt_loss_scaling_at (TdOpt *opt, TdLossScalingOpt o, const TdSite *site)
{
  if (!td__opt_usable (opt, "td_opt_loss_scaling", site))
    return td__error_status ();
  if (o.interval < 1 || !(o.scale >= 0) || !isfinite (o.scale))
    return td__fail (TD_ERR_ARG, "td_opt_loss_scaling", site,
                     "an interval of 1 or more and a scale above 0 expected, got %lld and %g",
                     (long long)o.interval, o.scale);
  td__opt_async_end (opt);
  opt->dynamic = o.scale == 0;
  opt->scale = opt->dynamic ? 1 : o.scale;
  opt->growth = pow (2, 1 / (double)o.interval);
  opt->seen_overflow = false;
  /* from here on, not from the first scaled backward: a run that is resumed adds like another */
  td__engine.has_scaled = true;
  return TD_OK;
}

TdStatus
td_opt_loss_scaling_ (TdOpt *opt, const TdLossScalingOpt *options)
{
  static const TdLossScalingOpt defaults = { TD_LOSS_SCALING_DEFAULTS };

  return td_opt_loss_scaling_at (opt, options != NULL ? *options : defaults, NULL);
}

double
td_opt_loss_scale (const TdOpt *opt)
{
  if (td__asked ("td_opt_loss_scale"))
    return 1;
  td__opt_settle (opt, 0);
  return opt != NULL && !opt->inert ? opt->scale : 1;
}

int64_t
td_opt_skipped (const TdOpt *opt)
{
  if (td__asked ("td_opt_skipped"))
    return 0;
  td__opt_settle (opt, 0);
  return opt != NULL ? opt->n_skipped : 0;
}

const char *
td_opt_first_overflow (const TdOpt *opt)
{
  if (td__asked ("td_opt_first_overflow"))
    return NULL;
  td__opt_settle (opt, 0);
  for (int i = 0; opt != NULL && i < opt->n_slots; i++)
    if (opt->slots[i].param_id == opt->overflow_id)
      return opt->slots[i].key;
  return NULL;
}

/* The gradient that backward starts with, times the scale. */
static TdVar *
scaled_seed (TdOpt *opt, TdVar *loss, const TdSite *site)
{
  char text[160];

  if (loss->grad != NULL)
    {
      td__opt_settle (opt, 0); /* the number itself is multiplied by */
      return td_mul_scalar (loss->grad, opt->scale);
    }
  if (td_shape_size (&loss->node->shape) == 1)
    return opt->async != NULL
               ? td__opt_async_seed (opt, loss, site)
               : td_full ((TdDtype)loss->node->dtype, loss->node->shape, opt->scale);
  td__fail (TD_ERR_ARG, "td_opt_backward", site,
            "a root of one element expected, or a gradient set with td_set_grad: got %s",
            td_shape_text (&loss->node->shape, text, sizeof text));
  return td__poison ();
}

static bool
has_scaled (const TdOpt *opt)
{
  for (int i = 0; i < opt->n_slots; i++)
    if (is_scaled (&opt->slots[i]))
      return true;
  return false;
}

/* What is there already, of a plain backward or kept over an update, is brought to the scale of
 * what is added to it. */
static TdStatus
scale_waiting (TdOpt *opt, const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdStatus status = TD_OK;

  for (int i = 0; i < opt->n_slots && status == TD_OK; i++)
    {
      TdVar *param = opt->slots[i].param, *g = param->grad;

      if (g == NULL || is_scaled (&opt->slots[i]))
        continue;
      g = opt->async != NULL ? td_mul (g, td__opt_async_seed (opt, g, site))
                             : td_mul_scalar (g, opt->scale);
      status = td_poisoned (g) ? e->error.status : td__put_grad (param, g);
      if (status == TD_OK)
        param->grad->scaled_by = opt->number;
    }
  return status;
}

/* A scale that is none in the arithmetic of a dtype would make every gradient 0, infinite or
 * NaN; halves are divided as floats. */
static bool
scale_fits (double scale, TdDtype dtype)
{
  static const double most[] = { [TD_F64] = 0x1.fffffffffffffp1023,
                                 [TD_F32] = 0x1.fffffep127,
                                 [TD_F16] = 65504,
                                 [TD_BF16] = 0x1.fep127 };
  static const double least[]
      = { [TD_F64] = 0x1p-1074, [TD_F32] = 0x1p-149, [TD_F16] = 0x1p-24, [TD_BF16] = 0x1p-133 };

  return scale >= least[dtype] && scale <= most[dtype];
}

static TdStatus
check_scale (const TdOpt *opt, const TdVar *loss, const TdSite *site)
{
  const TdDtype dtype = (TdDtype)loss->node->dtype;

  if (opt->dynamic || dtype > TD_BF16)
    return TD_OK;
  if (!scale_fits (opt->scale, dtype))
    return td__fail (TD_ERR_ARG, "td_opt_backward", site,
                     "a loss scale of %g is no finite number above 0 in %s, the loss's dtype",
                     opt->scale, td_dtype_name (dtype));
  for (int i = 0; i < opt->n_slots; i++)
    if (!scale_fits (opt->scale, opt->slots[i].param->node->dtype == TD_F64 ? TD_F64 : TD_F32))
      return td__fail (TD_ERR_ARG, "td_opt_backward", site,
                       "a loss scale of %g is no finite number above 0 in %s, in which the "
                       "gradient of %s is divided",
                       opt->scale, opt->slots[i].param->node->dtype == TD_F64 ? "f64" : "f32",
                       opt->slots[i].key);
  return TD_OK;
}

static TdStatus
scaled_backward (TdOpt *opt, TdVar *loss, unsigned flags, const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdVar *seed = scaled_seed (opt, loss, site);
  TdStatus status;

  if (td_poisoned (seed))
    return e->error.status;
  e->has_scaled = true;
  e->loss_scaled_by = opt->number;
  status = td__backward_run (&loss, 1, &seed, NULL, 0, NULL, flags, site);
  e->loss_scaled_by = TD_SCALED_BY_NONE;
  return status;
}

TdStatus
td_opt_backward_at (TdOpt *opt, TdVar *loss, unsigned flags, const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdScope *scope;
  TdStatus status;

  if (!td__opt_usable (opt, "td_opt_backward", site)
      || !td__var_usable (loss, "td_opt_backward", site))
    return e->has_error ? e->error.status : TD_ERR_STATE;
  status = td__backward_check_scaled (loss, loss->grad, "td_opt_backward", site);
  if (status == TD_OK)
    status = refuse_foreign (opt, "td_opt_backward", site);
  if (status != TD_OK)
    return status;
  if (opt->dynamic && td__opt_look_again (opt, site) == TD_OK)
    td__opt_async_begin (opt, site);
  if (opt->async == NULL && opt->pending_scale != 1 && opt->pending_scale != opt->scale
      && has_scaled (opt))
    return td__fail (TD_ERR_STATE, "td_opt_backward", site,
                     "the scale was changed from %g to %g while gradients were waiting",
                     opt->pending_scale, opt->scale);
  if (opt->async == NULL && opt->scale == 1)
    return td_backward_at (loss, flags, site);
  status = td__opt_look_again (opt, site);
  if (status == TD_OK)
    status = check_scale (opt, loss, site);
  if (status != TD_OK)
    return status;
  scope = td_scope_open_at (NULL, site);
  TD_NO_BACKPROP
    status = scale_waiting (opt, site);
  if (status == TD_OK)
    status = scaled_backward (opt, loss, flags, site);
  td_scope_close (scope);
  opt->pending_scale = opt->async != NULL ? TD_OPT_SCALE_OF_DEVICE : opt->scale;
  return status;
}

TdStatus (td_opt_backward) (TdOpt *opt, TdVar *loss, unsigned flags)
{
  return td_opt_backward_at (opt, loss, flags, NULL);
}
