/* Highway: a layer and the way past it, mixed by a gate.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

typedef struct
{
  TdVar *(*activate) (TdVar *x);
} Highway;

enum
{
  CHILD_PLAIN,
  CHILD_TRANSFORM
};

static TdStatus
highway_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Highway *h = self;
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);
  TdVar *plain, *gate;

  if (status != TD_OK)
    return status;
  plain = h->activate (td__link_child_call (link, CHILD_PLAIN, in[0]));
  gate = td_sigmoid (td__link_child_call (link, CHILD_TRANSFORM, in[0]));
  out[0] = td_add (td_mul (plain, gate), td_mul (in[0], td_rsub_scalar (gate, 1)));
  return td__link_status (out[0]);
}

static const TdLinkClass highway_class = { .size = sizeof (TdLinkClass),
                                           .name = "Highway",
                                           .self_bytes = sizeof (Highway),
                                           .forward = highway_forward };

TdLink *
td_highway_new_at (TdLink *parent, const char *name, int64_t in_out_size, TdHighwayOpt options,
                   const TdSite *site)
{
  TdLinearOpt plain = { .nobias = options.nobias,
                        .initialW = options.init_Wh,
                        .initial_bias = options.init_bh };
  TdLinearOpt transform
      = { .nobias = options.nobias,
          .initialW = options.init_Wt,
          .initial_bias = td__init_or (options.init_bt, td_init_constant (-1)) };
  TdLink *link;

  if (in_out_size <= 0 || options.activate == NULL)
    {
      td__fail (TD_ERR_ARG, "Highway", site,
                "a size above 0 and an activation expected, got %lld", (long long)in_out_size);
      return td__link_inert ();
    }
  link = td__link_make (&highway_class, parent, name, site);
  if (link->inert)
    return link;
  ((Highway *)link->self)->activate = options.activate;
  if (td_linear_new_at (link, "plain", in_out_size, in_out_size, plain, site)->inert
      || td_linear_new_at (link, "transform", in_out_size, in_out_size, transform, site)->inert)
    return td__link_abandon (link);
  return link;
}

TdLink *
td_highway_new_ (TdLink *parent, const char *name, int64_t in_out_size,
                 const TdHighwayOpt *options)
{
  static const TdHighwayOpt defaults = { TD_HIGHWAY_DEFAULTS };

  return td_highway_new_at (parent, name, in_out_size, options != NULL ? *options : defaults,
                            NULL);
}
