/* Bias: x + b, b's axes lying anywhere in x.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

typedef struct
{
  int axis;
  bool own; /* b is a parameter, not an input */
} Bias;

static TdStatus
bias_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Bias *bias = self;
  TdStatus status = td__link_arity (link, n_in, bias->own ? 1 : 2, n_out, 1);

  if (status != TD_OK)
    return status;
  out[0] = td_bias_ (in[0], bias->own ? link->params[0]->var : in[1],
                     &(TdAxisOpt){ .axis = bias->axis });
  return td__link_status (out[0]);
}

static const TdLinkClass bias_class = { .size = sizeof (TdLinkClass),
                                        .name = "Bias",
                                        .self_bytes = sizeof (Bias),
                                        .forward = bias_forward };

TdLink *
td_bias_new_at (TdLink *parent, const char *name, TdBiasLinkOpt options, const TdSite *site)
{
  TdLink *link;

  if (options.axis < 0 || options.axis >= TD_MAX_DIMS)
    {
      td__fail (TD_ERR_ARG, "Bias", site, "axis 0 to %d expected, got %d", TD_MAX_DIMS - 1,
                options.axis);
      return td__link_inert ();
    }
  link = td__link_make (&bias_class, parent, name, site);
  if (link->inert)
    return link;
  *(Bias *)link->self = (Bias){ options.axis, options.shape.ndim >= 0 };
  if (options.shape.ndim >= 0
      && !td__link_add (link, "b", options.shape, td_init_zero (), td_init_zero (), site))
    return td__link_abandon (link);
  return link;
}

TdLink *
td_bias_new_ (TdLink *parent, const char *name, const TdBiasLinkOpt *options)
{
  static const TdBiasLinkOpt defaults = { TD_BIAS_LINK_DEFAULTS };

  return td_bias_new_at (parent, name, options != NULL ? *options : defaults, NULL);
}
