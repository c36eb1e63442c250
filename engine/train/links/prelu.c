/* PReLU: relu with a trained slope below zero.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

static TdStatus
prelu_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);

  (void)self;
  if (status != TD_OK)
    return status;
  out[0] = td_prelu (in[0], link->params[0]->var);
  return td__link_status (out[0]);
}

static const TdLinkClass prelu_class
    = { .size = sizeof (TdLinkClass), .name = "PReLU", .forward = prelu_forward };

TdLink *
td_prelu_new_at (TdLink *parent, const char *name, TdPreluLinkOpt options, const TdSite *site)
{
  TdLink *link = td__link_make (&prelu_class, parent, name, site);

  if (!link->inert
      && !td__link_add (link, "W", options.shape, options.init, td_init_constant (0.25), site))
    return td__link_abandon (link);
  return link;
}

TdLink *
td_prelu_new_ (TdLink *parent, const char *name, const TdPreluLinkOpt *options)
{
  static const TdPreluLinkOpt defaults = { TD_PRELU_LINK_DEFAULTS };

  return td_prelu_new_at (parent, name, options != NULL ? *options : defaults, NULL);
}
