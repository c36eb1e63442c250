/* A link's weight that is another variable for the length of one forward.
 *
 * SPDX-License-Identifier: MIT */
#include "weight.h"

bool
td__weight_link_ok (TdLink *link, const char *name, const char *hook)
{
  const TdParam *p = link != NULL ? td__param_find (link, name) : NULL;

  if (p != NULL && p->kind == TD_PARAM_TRAINED)
    return true;
  if (link == NULL)
    td__fail (TD_ERR_ARG, hook, td__engine.site, "it is for one link: td_link_add_hook it");
  else
    td__fail (TD_ERR_ARG, hook, td__engine.site, "%s has no parameter %s", link->path->text,
              name);
  return false;
}

TdParam *
td__weight_find (TdLink *link, const char *name, const TdLinkCall *call, const char *hook)
{
  TdParam *p = td__param_find (link, name);

  if (p != NULL && p->var == NULL && link->cls->prepare != NULL && call != NULL)
    link->cls->prepare (link, link->self, call->in, call->n_in);
  p = td__param_find (link, name); /* preparing may have made more */
  if (p != NULL && p->var != NULL)
    return p;
  if (!td__engine.has_error)
    td__fail (TD_ERR_STATE, hook, td__engine.site, "%s of %s has no shape yet", name,
              link->path->text);
  return NULL;
}

void
td__weight_swap (TdWeightSwap *swap, TdLink *link, TdParam *param, TdVar *w)
{
  if (swap->original != NULL || td_poisoned (w))
    return;
  swap->original = td__var_ref (param->var, TD_HOLD_ENGINE);
  swap->link_id = link->id;
  td__param_hold (param, w);
}

void
td__weight_restore (TdWeightSwap *swap, TdLink *link, const char *name)
{
  TdParam *p = td__param_find (link, name);
  TdVar *original = swap->original;

  if (original == NULL || swap->link_id != link->id)
    return;
  swap->original = NULL;
  if (p != NULL)
    td__param_hold (p, original);
  td__var_unref (original, TD_HOLD_ENGINE);
}
