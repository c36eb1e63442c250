/* BatchNormalization: normalise by the batch while training, by running statistics afterwards.
 *
 * SPDX-License-Identifier: MIT */
#include "batch-norm.h"

/* Sizes that wait come from the first input's channels. */
TdStatus
td__batch_norm_prepare (TdLink *link, void *self, TdVar *const *in, int n_in)
{
  TdShape size = { 1, { 0 } };
  TdStatus status = TD_OK;
  char text[160];

  (void)self;
  if (n_in != 1 || td_poisoned (in[0]) || link->params[TD_BATCH_NORM_VAR]->var != NULL)
    return TD_OK;
  if (in[0]->node->shape.ndim < 2)
    return td__fail (TD_ERR_SHAPE, link->cls->name, td__engine.site,
                     "x with two or more axes expected, got %s",
                     td_shape_text (&in[0]->node->shape, text, sizeof text));
  size.dim[0] = in[0]->node->shape.dim[1];
  for (int i = TD_BATCH_NORM_GAMMA; i <= TD_BATCH_NORM_VAR && status == TD_OK; i++)
    status = td__link_settle (link, i, size);
  return status;
}

TdVar *
td__batch_norm_fixed (TdLink *link, TdVar *x)
{
  TdParam **p = link->params;

  return td_fixed_batch_normalization (
      x, p[TD_BATCH_NORM_GAMMA]->var, p[TD_BATCH_NORM_BETA]->var, p[TD_BATCH_NORM_MEAN]->var,
      p[TD_BATCH_NORM_VAR]->var, ((const TdBatchNorm *)link->self)->eps);
}

static TdStatus
batch_norm_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out,
                    int n_out)
{
  const TdBatchNorm *bn = self;
  TdParam **p = link->params;
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);
  TdBatchNormOpt options = { .eps = bn->eps, .decay = bn->decay };

  if (status == TD_OK)
    status = td__batch_norm_prepare (link, self, in, n_in);
  options.running_mean = p[TD_BATCH_NORM_MEAN]->var;
  options.running_var = p[TD_BATCH_NORM_VAR]->var;
  if (status != TD_OK || options.running_var == NULL)
    return status != TD_OK ? status : TD_ERR_STATE;
  out[0] = td__engine.config.train ? td_batch_normalization_ (
               in[0], p[TD_BATCH_NORM_GAMMA]->var, p[TD_BATCH_NORM_BETA]->var, &options)
                                   : td__batch_norm_fixed (link, in[0]);
  return td_poisoned (out[0]) ? td__engine.error.status : TD_OK;
}

static const TdLinkClass batch_norm_class = { .size = sizeof (TdLinkClass),
                                              .name = "BatchNormalization",
                                              .self_bytes = sizeof (TdBatchNorm),
                                              .forward = batch_norm_forward,
                                              .prepare = td__batch_norm_prepare };

/* gamma or beta: trained, or a constant that stands in for it when it is switched off. */
static bool
add_scale (TdLink *link, const char *name, const TdShape *shape, bool trained, TdInit init,
           double value, TdDtype dtype, const TdSite *site)
{
  TdParam *p
      = td__param_add (link, name, shape, (int)dtype, init, td_init_constant (value), site);

  if (p == NULL)
    return false;
  if (!trained)
    {
      p->kind = TD_PARAM_ATTR;
      if (p->var != NULL)
        p->var->node->requires_grad = false;
    }
  return true;
}

static bool
add_statistic (TdLink *link, const char *name, const TdShape *shape, double value,
               TdDtype dtype, const TdSite *site)
{
  TdParam *p = td__param_add (link, name, shape, (int)dtype, td_init_constant (value),
                              td_init_zero (), site);

  if (p == NULL)
    return false;
  p->kind = TD_PARAM_PERSISTENT;
  if (p->var != NULL)
    p->var->node->requires_grad = false;
  td__param_announce (p); /* again: as what it is */
  return true;
}

TdLink *
td__batch_norm_make (const TdLinkClass *cls, TdLink *parent, const char *name, int64_t size,
                     const TdBatchNormLinkOpt *o, const TdSite *site)
{
  TdShape shape = { 1, { size } }, scalar = { 0, { 0 } };
  TdDtype dtype = (TdDtype)td__engine.config.dtype;
  TdLink *link;

  if (size < TD_INFER || size == 0 || !(o->eps > 0) || !(o->decay >= 0 && o->decay <= 1))
    {
      td__fail (TD_ERR_ARG, cls->name, site,
                "size above 0, eps above 0 and decay in 0..1 expected, got %lld, %g and %g",
                (long long)size, o->eps, o->decay);
      return td__link_inert ();
    }
  link = td__link_make (cls, parent, name, site);
  if (link->inert)
    return link;
  dtype = (TdDtype)td__engine.config.dtype; /* making the link may have started the engine */
  if (dtype == TD_F16 || dtype == TD_BF16) /* a running mean in halves would soon stand still */
    dtype = TD_F32;
  *(TdBatchNorm *)link->self = (TdBatchNorm){ o->decay, o->eps };
  if (!add_scale (link, "gamma", &shape, o->use_gamma, o->initial_gamma, 1, dtype, site)
      || !add_scale (link, "beta", &shape, o->use_beta, o->initial_beta, 0, dtype, site)
      || !add_statistic (link, "avg_mean", &shape, 0, dtype, site)
      || !add_statistic (link, "avg_var", &shape, 1, dtype, site)
      || !add_statistic (link, "N", &scalar, 0, TD_I64, site))
    return td__link_abandon (link);
  return link;
}

TdLink *
td_batch_normalization_new_at (TdLink *parent, const char *name, int64_t size,
                               TdBatchNormLinkOpt options, const TdSite *site)
{
  return td__batch_norm_make (&batch_norm_class, parent, name, size, &options, site);
}

TdLink *
td_batch_normalization_new_ (TdLink *parent, const char *name, int64_t size,
                             const TdBatchNormLinkOpt *options)
{
  static const TdBatchNormLinkOpt defaults = { TD_BATCH_NORM_LINK_DEFAULTS };

  return td_batch_normalization_new_at (parent, name, size,
                                        options != NULL ? *options : defaults, NULL);
}
