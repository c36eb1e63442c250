/* LayerNormalization and GroupNormalization: statistics of one sample, gamma and beta trained.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

typedef struct
{
  int groups; /* 0: layer normalisation */
  double eps;
} Norm;

enum
{
  PARAM_GAMMA,
  PARAM_BETA
};

static TdStatus
norm_prepare (TdLink *link, void *self, TdVar *const *in, int n_in)
{
  const Norm *n = self;
  TdShape size = { 1, { 0 } };
  TdStatus status;
  char text[160];

  if (n_in != 1 || td_poisoned (in[0]) || link->params[PARAM_BETA]->var != NULL)
    return TD_OK;
  if (in[0]->node->shape.ndim < 2)
    return td__fail (TD_ERR_SHAPE, link->cls->name, td__engine.site,
                     "x with two or more axes expected, got %s",
                     td_shape_text (&in[0]->node->shape, text, sizeof text));
  size.dim[0] = in[0]->node->shape.dim[n->groups > 0 ? 1 : in[0]->node->shape.ndim - 1];
  status = td__link_settle (link, PARAM_GAMMA, size);
  return status != TD_OK ? status : td__link_settle (link, PARAM_BETA, size);
}

static TdStatus
norm_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Norm *n = self;
  TdNormOpt options = { .eps = n->eps };
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);
  TdVar *gamma, *beta;

  if (status == TD_OK)
    status = norm_prepare (link, self, in, n_in);
  gamma = link->params[PARAM_GAMMA]->var;
  beta = link->params[PARAM_BETA]->var;
  if (status != TD_OK || gamma == NULL || beta == NULL)
    return status != TD_OK ? status : TD_ERR_STATE;
  out[0] = n->groups > 0 ? td_group_normalization_ (in[0], n->groups, gamma, beta, &options)
                         : td_layer_normalization_ (in[0], gamma, beta, &options);
  return td__link_status (out[0]);
}

#define NORM_CLASS(text)                                                                       \
  {                                                                                            \
    .size = sizeof (TdLinkClass), .name = text, .self_bytes = sizeof (Norm),                   \
    .forward = norm_forward, .prepare = norm_prepare                                           \
  }
static const TdLinkClass layer_class = NORM_CLASS ("LayerNormalization");
static const TdLinkClass group_class = NORM_CLASS ("GroupNormalization");

static TdLink *
norm_new (const TdLinkClass *cls, TdLink *parent, const char *name, Norm norm, int64_t size,
          const TdNormLinkOpt *o, const TdSite *site)
{
  TdLink *link;

  if (size < TD_INFER || size == 0 || !(o->eps > 0))
    {
      td__fail (TD_ERR_ARG, cls->name, site, "size and eps above 0 expected, got %lld and %g",
                (long long)size, o->eps);
      return td__link_inert ();
    }
  if (cls == &group_class && (norm.groups <= 0 || (size > 0 && size % norm.groups != 0)))
    {
      td__fail (TD_ERR_ARG, cls->name, site,
                "groups that divide %lld channels expected, got %d", (long long)size,
                norm.groups);
      return td__link_inert ();
    }
  link = td__link_make (cls, parent, name, site);
  if (link->inert)
    return link;
  *(Norm *)link->self = norm;
  if (!td__link_add (link, "gamma", (TdShape){ 1, { size } }, o->initial_gamma, td_init_one (),
                     site)
      || !td__link_add (link, "beta", (TdShape){ 1, { size } }, o->initial_beta,
                        td_init_zero (), site))
    return td__link_abandon (link);
  return link;
}

TdLink *
td_layer_normalization_new_at (TdLink *parent, const char *name, int64_t size,
                               TdNormLinkOpt options, const TdSite *site)
{
  return norm_new (&layer_class, parent, name, (Norm){ 0, options.eps }, size, &options, site);
}

TdLink *
td_layer_normalization_new_ (TdLink *parent, const char *name, int64_t size,
                             const TdNormLinkOpt *options)
{
  static const TdNormLinkOpt defaults = { TD_LAYER_NORM_LINK_DEFAULTS };

  return td_layer_normalization_new_at (parent, name, size,
                                        options != NULL ? *options : defaults, NULL);
}

TdLink *
td_group_normalization_new_at (TdLink *parent, const char *name, int groups, int64_t size,
                               TdNormLinkOpt options, const TdSite *site)
{
  return norm_new (&group_class, parent, name, (Norm){ groups, options.eps }, size, &options,
                   site);
}

TdLink *
td_group_normalization_new_ (TdLink *parent, const char *name, int groups, int64_t size,
                             const TdNormLinkOpt *options)
{
  static const TdNormLinkOpt defaults = { TD_GROUP_NORM_LINK_DEFAULTS };

  return td_group_normalization_new_at (parent, name, groups, size,
                                        options != NULL ? *options : defaults, NULL);
}
