/* Scale: x W element by element, W's axes lying anywhere in x, and a bias behind if asked.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

typedef struct
{
  int axis;
  bool own; /* W is a parameter, not an input */
} Scale;

static TdStatus
scale_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Scale *scale = self;
  TdStatus status = td__link_arity (link, n_in, scale->own ? 1 : 2, n_out, 1);

  if (status != TD_OK)
    return status;
  out[0] = td_scale_ (in[0], scale->own ? link->params[0]->var : in[1],
                      &(TdAxisOpt){ .axis = scale->axis });
  if (link->n_children > 0)
    out[0] = td__link_child_call (link, 0, out[0]);
  return td__link_status (out[0]);
}

static const TdLinkClass scale_class = { .size = sizeof (TdLinkClass),
                                         .name = "Scale",
                                         .self_bytes = sizeof (Scale),
                                         .forward = scale_forward };

TdLink *
td_scale_new_at (TdLink *parent, const char *name, TdScaleLinkOpt options, const TdSite *site)
{
  bool own = options.W_shape.ndim >= 0;
  TdBiasLinkOpt bias
      = { .axis = options.axis, .shape = own ? options.W_shape : options.bias_shape };
  TdLink *link;

  if (options.axis < 0 || options.axis >= TD_MAX_DIMS
      || (options.bias_term && bias.shape.ndim < 0))
    {
      td__fail (TD_ERR_ARG, "Scale", site,
                "axis 0 to %d, and W_shape or bias_shape for a bias term expected, got axis %d",
                TD_MAX_DIMS - 1, options.axis);
      return td__link_inert ();
    }
  link = td__link_make (&scale_class, parent, name, site);
  if (link->inert)
    return link;
  *(Scale *)link->self = (Scale){ options.axis, own };
  if ((own && !td__link_add (link, "W", options.W_shape, td_init_one (), td_init_one (), site))
      || (options.bias_term && td_bias_new_at (link, "bias", bias, site)->inert))
    return td__link_abandon (link);
  return link;
}

TdLink *
td_scale_new_ (TdLink *parent, const char *name, const TdScaleLinkOpt *options)
{
  static const TdScaleLinkOpt defaults = { TD_SCALE_LINK_DEFAULTS };

  return td_scale_new_at (parent, name, options != NULL ? *options : defaults, NULL);
}
