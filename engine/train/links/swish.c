/* Swish: x sigmoid (beta x) with a trained beta.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

static TdStatus
swish_prepare (TdLink *link, void *self, TdVar *const *in, int n_in)
{
  TdShape row = { 0, { 0 } };

  (void)self;
  if (link->params[0]->var != NULL || n_in != 1 || td_poisoned (in[0])
      || in[0]->node->shape.ndim < 1)
    return TD_OK;
  row.ndim = in[0]->node->shape.ndim - 1;
  for (int i = 0; i < row.ndim; i++)
    row.dim[i] = in[0]->node->shape.dim[i + 1];
  return td__link_settle (link, 0, row);
}

static TdStatus
swish_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);

  if (status == TD_OK)
    status = swish_prepare (link, self, in, n_in);
  if (status != TD_OK || link->params[0]->var == NULL)
    return status != TD_OK ? status : TD_ERR_STATE;
  out[0] = td_swish (in[0], link->params[0]->var);
  return td__link_status (out[0]);
}

static const TdLinkClass swish_class = { .size = sizeof (TdLinkClass),
                                         .name = "Swish",
                                         .forward = swish_forward,
                                         .prepare = swish_prepare };

TdLink *
td_swish_new_at (TdLink *parent, const char *name, TdShape beta_shape, TdSwishLinkOpt options,
                 const TdSite *site)
{
  static const TdShape waiting = { 1, { TD_INFER } };
  TdLink *link = td__link_make (&swish_class, parent, name, site);

  if (!link->inert
      && !td__link_add (link, "beta", beta_shape.ndim >= 0 ? beta_shape : waiting,
                        options.beta_init, td_init_one (), site))
    return td__link_abandon (link);
  return link;
}

TdLink *
td_swish_new_ (TdLink *parent, const char *name, TdShape beta_shape,
               const TdSwishLinkOpt *options)
{
  static const TdSwishLinkOpt defaults = { TD_SWISH_LINK_DEFAULTS };

  return td_swish_new_at (parent, name, beta_shape, options != NULL ? *options : defaults,
                          NULL);
}
