/* GradientClipping: the norm of all gradients together, and their scaling.
 *
 * Both are operations in place, on the device and without a host read, so that they are seen
 * and stepped over like any other.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer.h"
#include "host-memory.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  double threshold;
  bool decided; /* the last input is TdScaleNumber of the device */
} Attrs;
static const TdAttr clip_attrs[]
    = { { "threshold", TD_ATTR_DOUBLE, offsetof (Attrs, threshold), 0, 0, NULL } };

static TdStatus
norm_infer (TdOpCall *call)
{
  return call->in[0].dtype == TD_F64 && call->in[0].size == 1
             ? TD_OK
             : td_op_fail_operands (call, TD_ERR_DTYPE, "an f64 scalar for the norm expected");
}

/* Gradients stay as they are where the device decides that nothing is updated. */
static TdStatus
one_if_skipped (TdOpCall *call, TdTensor one)
{
  TdDevice *d = call->device;
  TdTensor rate = call->in[0], skips = one;
  TdStatus status = d->ops->fill (d, &one, 1);

  skips.data = (double *)call->in[call->n_in - 1].data + TD_SCALE_SKIPS;
  return status == TD_OK ? d->ops->select (d, &skips, &one, &rate, &rate) : status;
}

/* sum = the squares of n arrays, one array after the other; room: of two scalars. */
static TdStatus
sum_one_by_one (TdDevice *d, const TdTensor *x, int n, TdTensor *sum, char *room)
{
  const TdDeviceOps *ops = d->ops;
  TdTensor part = *sum, part64 = *sum;
  TdStatus status = ops->fill (d, sum, 0);

  part.data = room;
  part64.data = room + sizeof (double);
  for (int i = 0; i < n && status == TD_OK; i++)
    {
      const TdTensor *g = &x[i];
      bool wide = g->dtype == TD_F64;

      part.dtype = g->dtype;
      if (g->size == 0)
        continue;
      status
          = ops->reduce (d, TD_REDUCE_SUM_SQUARES, (1u << g->shape->ndim) - 1, g, &part, false);
      if (status == TD_OK && !wide)
        status = ops->cast (d, &part, &part64);
      if (status == TD_OK)
        status = ops->binary (d, TD_BINARY_ADD, sum, wide ? &part : &part64, sum, false);
    }
  return status;
}

/* in[0] (f64 scalar) = min (1, threshold / sqrt (sum of squares of the others)) */
static TdStatus
norm_forward (TdOpCall *call)
{
  TdDevice *d = call->device;
  const TdDeviceOps *ops = d->ops;
  TdTensor rate = call->in[0], part64 = rate;
  char *work = td_op_workspace (call, 2 * sizeof (double));
  const bool decided = ((const Attrs *)call->attrs)->decided;
  const int n = call->n_in - 1 - decided;
  TdStatus status;

  if (work == NULL)
    return TD_ERR_MEMORY;
  part64.data = work + sizeof (double);
  status = ops->sum_squares != NULL ? ops->sum_squares (d, call->in + 1, n, &rate)
                                    : sum_one_by_one (d, call->in + 1, n, &rate, work);
  if (status == TD_OK)
    status = ops->unary (d, TD_UNARY_SQRT, 0, 0, &rate, &rate);
  if (status == TD_OK)
    status = ops->unary (d, TD_UNARY_RDIV_SCALAR, ((const Attrs *)call->attrs)->threshold, 0,
                         &rate, &rate);
  if (status == TD_OK)
    status = ops->unary (d, TD_UNARY_CLIP, 0, 1, &rate, &rate);
  return status == TD_OK && decided ? one_if_skipped (call, part64) : status;
}

static TdStatus
clip_infer (TdOpCall *call)
{
  return call->in[0].dtype <= TD_BF16 && call->in[1].dtype == TD_F64 && call->in[1].size == 1
             ? TD_OK
             : td_op_fail_operands (call, TD_ERR_DTYPE, "a gradient and an f64 rate expected");
}

static TdStatus
clip_forward (TdOpCall *call)
{
  TdDevice *d = call->device;
  TdTensor g = call->in[0], rate = call->in[1], *arrays[] = { &g };
  const TdUpdate u = { .by = rate.data };
  TdStatus status;

  if (g.dtype == TD_F32 || g.dtype == TD_F64)
    return d->ops->update (d, TD_UPDATE_CLIP, &u, arrays, 1);
  rate.data = td_op_workspace (call, sizeof (double)); /* halves round the rate first */
  rate.dtype = g.dtype;
  status = rate.data != NULL ? d->ops->cast (d, &call->in[1], &rate) : TD_ERR_MEMORY;
  return status == TD_OK ? d->ops->binary (d, TD_BINARY_MUL, &g, &rate, &g, false) : status;
}

static const char *const clip_names[] = { "grad", "rate" };
const TdOpClass td__gradient_norm_class
    = { .name = "gradient_norm",
        .label = "GradientNorm",
        .group = "optimizer",
        .formula = "rate = min (1, threshold / sqrt (sum of all g g))",
        .n_in_min = 1,
        .n_in_max = -1,
        .flags = TD_OP_STATEFUL | TD_OP_NO_GRAD | TD_OP_FILLS,
        .writes = 1,
        .attrs_size = sizeof (Attrs),
        .attrs = clip_attrs,
        .n_attrs = 1,
        .infer = norm_infer,
        .forward = norm_forward };
const TdOpClass td__gradient_clipping_class = { .name = "gradient_clipping",
                                                .label = "GradientClipping",
                                                .group = "optimizer",
                                                .formula = "g *= rate",
                                                .n_in_min = 2,
                                                .n_in_max = 2,
                                                .flags = TD_OP_STATEFUL | TD_OP_NO_GRAD,
                                                .writes = 1,
                                                .in_names = clip_names,
                                                .infer = clip_infer,
                                                .forward = clip_forward };

static TdStatus
clipping_call (TdOptHook *hook, const TdOptHookCall *c)
{
  static const TdShape scalar = { 0, { 0 } };
  TdVar **in, *rate, *numbers = td__opt_numbers (c->opt);
  Attrs attrs;
  TdStatus status;

  if (c->n == 0)
    return TD_OK;
  rate = td__opt_room (TD_F64, &scalar, c->slots[0].g->node->device, TD_MEM_OPTIMIZER, c->site);
  if (rate == NULL)
    return td__error_status ();
  memset (&attrs, 0, sizeof attrs); /* its bytes are hashed */
  attrs.threshold = hook->value[0];
  attrs.decided = numbers != NULL;
  in = td__xcalloc ((size_t)c->n + 2, sizeof *in);
  in[c->n + 1] = numbers;
  in[0] = rate;
  for (int i = 0; i < c->n; i++)
    in[i + 1] = c->slots[i].g;
  td__engine.path = c->opt->target->path;
  status = td__apply_update (&td__gradient_norm_class, &attrs, in, c->n + 1 + attrs.decided,
                             c->site);
  for (int i = 0; i < c->n && status == TD_OK; i++)
    {
      TdVar *pair[] = { c->slots[i].g, rate };

      td__engine.path = c->slots[i].path;
      status = td__apply_update (&td__gradient_clipping_class, NULL, pair, 2, c->site);
    }
  free (in);
  td__var_unref (rate, TD_HOLD_OPTIMIZER);
  return status;
}

TdOptHook *
td_gradient_clipping_new (double threshold)
{
  TdOptHook *hook
      = td__opt_hook_make ("GradientClipping", clipping_call, threshold > 0, threshold, 0, 0);

  if (!hook->inert)
    hook->whole = hook->decided = true;
  return hook;
}
