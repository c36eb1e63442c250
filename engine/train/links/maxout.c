/* Maxout: the largest of several linear functions for each output.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

typedef struct
{
  int pool_size;
} Maxout;

static TdStatus
maxout_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Maxout *m = self;
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);

  if (status != TD_OK)
    return status;
  out[0] = td_maxout_ (td__link_child_call (link, 0, in[0]), m->pool_size, NULL);
  return td__link_status (out[0]);
}

static const TdLinkClass maxout_class = { .size = sizeof (TdLinkClass),
                                          .name = "Maxout",
                                          .self_bytes = sizeof (Maxout),
                                          .forward = maxout_forward };

TdLink *
td_maxout_new_at (TdLink *parent, const char *name, int64_t in_size, int64_t out_size,
                  int64_t pool_size, TdMaxoutLinkOpt options, const TdSite *site)
{
  TdLinearOpt linear = { .nobias = options.nobias,
                         .initialW = options.initialW,
                         .initial_bias = options.initial_bias };
  TdLink *link;

  if (out_size <= 0 || pool_size <= 0 || pool_size > INT32_MAX || out_size > INT32_MAX)
    {
      td__fail (TD_ERR_ARG, "Maxout", site,
                "out and pool sizes above 0 expected, got %lld, %lld", (long long)out_size,
                (long long)pool_size);
      return td__link_inert ();
    }
  link = td__link_make (&maxout_class, parent, name, site);
  if (link->inert)
    return link;
  *(Maxout *)link->self = (Maxout){ (int)pool_size };
  if (td_linear_new_at (link, "linear", in_size, out_size * pool_size, linear, site)->inert)
    return td__link_abandon (link);
  return link;
}

TdLink *
td_maxout_new_ (TdLink *parent, const char *name, int64_t in_size, int64_t out_size,
                int64_t pool_size, const TdMaxoutLinkOpt *options)
{
  static const TdMaxoutLinkOpt defaults = { TD_MAXOUT_LINK_DEFAULTS };

  return td_maxout_new_at (parent, name, in_size, out_size, pool_size,
                           options != NULL ? *options : defaults, NULL);
}
