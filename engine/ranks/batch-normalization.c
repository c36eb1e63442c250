/* MultiNodeBatchNormalization: normalise by the mean and variance of the batches of all ranks.
 *
 * First the sum of all ranks' x, then that of the squares of what lies around the mean: sums of
 * squares alone would lose what is left of them after the mean is taken off.  Ranks count by
 * how many elements they have.  All of it is written in operations, so that gradients of every
 * order go through all ranks.
 *
 * *Source*: chainermn.links.MultiNodeBatchNormalization, which takes equal batches for granted.
 * SPDX-License-Identifier: MIT */
#include "comm.h"

#include "compute/ops/layers.h"
#include "train/links/batch-norm.h"

typedef struct
{
  TdBatchNorm norm; /* first */
  TdComm *comm;
} Norm;

/* --- the running statistics: an operation that overwrites them --- */

typedef struct
{
  double decay;
} RunningAttrs;

static const TdAttr running_attrs[] = {
  { "decay", TD_ATTR_DOUBLE, offsetof (RunningAttrs, decay), 0, 0, "0.9" },
};
static const char *const running_names[]
    = { "running_mean", "running_var", "mean", "var", "n" };

static TdStatus
running_infer (TdOpCall *call)
{
  for (int i = 1; i < 4; i++)
    if (!td_shape_equal (call->in[0].shape, call->in[i].shape)
        || call->in[0].dtype != call->in[i].dtype)
      return td_op_fail_operands (call, TD_ERR_SHAPE, "statistics of one kind expected");
  return TD_OK;
}

static double
number_at (const TdTensor *t, int64_t i)
{
  return t->dtype == TD_F64 ? ((const double *)t->data)[i]
                            : (double)((const float *)t->data)[i];
}

static void
move_towards (const TdTensor *t, int64_t i, double decay, double to)
{
  const double now = number_at (t, i) * decay + (1 - decay) * to;

  if (t->dtype == TD_F64)
    ((double *)t->data)[i] = now;
  else
    ((float *)t->data)[i] = (float)now;
}

/* The variance of all that was seen is larger than that of this sample: n / (n - 1). */
static TdStatus
running_forward (TdOpCall *call)
{
  const double decay = ((const RunningAttrs *)call->attrs)->decay;
  const double n = number_at (&call->in[4], 0), unbiased = n > 1 ? n / (n - 1) : 1;

  for (int64_t i = 0; i < call->in[0].size; i++)
    {
      move_towards (&call->in[0], i, decay, number_at (&call->in[2], i));
      move_towards (&call->in[1], i, decay, number_at (&call->in[3], i) * unbiased);
    }
  return TD_OK;
}

static const TdOpClass running_class = {
  .name = "comm_running_statistics",
  .label = "RunningStatistics",
  .group = "ranks",
  .formula = "decay running + (1 - decay) new, in place",
  .n_in_min = 5,
  .n_in_max = 5,
  .n_out = 0,
  .flags = TD_OP_HOST | TD_OP_STATEFUL | TD_OP_NO_GRAD,
  .writes = 1 | 2,
  .in_names = running_names,
  .attrs_size = sizeof (RunningAttrs),
  .attrs = running_attrs,
  .n_attrs = TD_ARRAY_LENGTH (running_attrs),
  .infer = running_infer,
  .forward = running_forward,
};

/* --- the link --- */

typedef struct
{
  TdVar *mean, *var, *n; /* n: elements of a channel, of all ranks */
} Moments;

/* Of all ranks' x, in no lower precision than float32. */
static Moments
moments_of (TdComm *comm, TdVar *x)
{
  const TdShape shape = td_shape (x);
  const TdDtype dtype = td__moments_dtype (td_dtype (x));
  const int64_t channels = shape.dim[1];
  const double own = channels > 0 ? (double)(td_size (x) / channels) : 0;
  TdVar *wide = td__in_dtype (x, dtype), *sums, *centred;
  TdVar *parts[] = { td__channel_sum (wide), td_full (dtype, TD_SHAPE (1), own) };
  Moments m = { td__poison (), td__poison (), td__poison () };

  sums = td_comm_allreduce (comm, td_concat (parts, 2, 0));
  if (td_poisoned (sums))
    return m;
  TD_NO_BACKPROP
    m.n = td_get_item (sums, &TD_RANGE (channels, channels + 1), 1);
  m.mean = td_div (td_get_item (sums, &TD_RANGE (0, channels), 1), m.n);
  centred = td_sub (wide, td__per_channel (m.mean, &shape));
  m.var = td_div (td_comm_allreduce (comm, td__channel_sum (td_square (centred))), m.n);
  return m;
}

static TdStatus
train_forward (TdLink *link, const Norm *norm, TdVar *x, TdVar **y)
{
  const RunningAttrs attrs = { norm->norm.decay };
  TdParam **p = link->params;
  const Moments m = moments_of (norm->comm, x);
  TdVar *written[]
      = { p[TD_BATCH_NORM_MEAN]->var, p[TD_BATCH_NORM_VAR]->var, m.mean, m.var, m.n };

  *y = td_fixed_batch_normalization (x, p[TD_BATCH_NORM_GAMMA]->var, p[TD_BATCH_NORM_BETA]->var,
                                     m.mean, m.var, norm->norm.eps);
  if (td_poisoned (*y))
    return td__error_status ();
  return td__engine.recomputing ? TD_OK
                                : td_apply (&running_class, &attrs, written, 5, NULL, 0);
}

static TdStatus
forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Norm *norm = self;
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);

  if (status == TD_OK)
    status = td__batch_norm_prepare (link, self, in, n_in);
  if (!td__engine.config.train && status == TD_OK)
    {
      out[0] = td__batch_norm_fixed (link, in[0]);
      return td__link_status (out[0]);
    }
  if (status == TD_OK && !td_poisoned (in[0]))
    return train_forward (link, norm, in[0], &out[0]);
  td_comm_allreduce (norm->comm, td__poison ()); /* the others wait: they hear why */
  return td__error_status ();
}

static const TdLinkClass norm_class = { .size = sizeof (TdLinkClass),
                                        .name = "MultiNodeBatchNormalization",
                                        .self_bytes = sizeof (Norm),
                                        .forward = forward,
                                        .prepare = td__batch_norm_prepare };

TdLink *
td_multi_node_batch_normalization_new_at (TdLink *parent, const char *name, int64_t size,
                                          TdComm *comm, TdBatchNormLinkOpt options,
                                          const TdSite *site)
{
  TdLink *link;

  if (!td__comm_usable (comm, norm_class.name, site))
    return td__link_inert ();
  link = td__batch_norm_make (&norm_class, parent, name, size, &options, site);
  if (!link->inert)
    ((Norm *)link->self)->comm = comm;
  return link;
}

TdLink *
td_multi_node_batch_normalization_new_ (TdLink *parent, const char *name, int64_t size,
                                        TdComm *comm, const TdBatchNormLinkOpt *options)
{
  const TdBatchNormLinkOpt defaults = { TD_BATCH_NORM_LINK_DEFAULTS };

  return td_multi_node_batch_normalization_new_at (parent, name, size, comm,
                                                   options != NULL ? *options : defaults, NULL);
}
