/* Chain: a link that only groups others.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

static TdStatus
chain_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)in, (void)n_in, (void)out, (void)n_out;
  return td__fail (TD_ERR_STATE, "Chain", td__engine.site,
                   "%s only groups its children: call those, or use a Sequential",
                   link->path->text);
}

static const TdLinkClass chain_class
    = { .size = sizeof (TdLinkClass), .name = "Chain", .forward = chain_forward };

TdLink *(td_chain_new)(const char *name)
{
  return td__link_make (&chain_class, NULL, name, NULL);
}

TdLink *
td_chain_new_in (TdLink *parent, const char *name)
{
  return td__link_make (&chain_class, parent, name, NULL);
}
