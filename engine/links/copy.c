/* Copying a link with all below it.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

#include <stdlib.h>
#include <string.h>

/* An array of its own with the same numbers. */
static TdVar *
copy_array (const TdParam *from)
{
  TdVar *v = td__var_leaf ((TdDtype)from->var->node->dtype, &from->var->node->shape,
                           from->var->node->device, (TdMemCategory)from->var->node->category,
                           from->site);
  TdDevice *d = from->var->node->device;

  if (v == NULL)
    return NULL;
  if (d->computes)
    d->ops->copy (d, v->buffer->data, from->var->buffer->data, v->buffer->bytes);
  v->flags |= TD_VAR_PERSISTENT;
  td_name (v, from->name);
  v->node->requires_grad = from->var->node->requires_grad;
  return v;
}

static bool
copy_param (TdLink *to, const TdParam *from)
{
  static const TdShape waiting = { 1, { TD_INFER } };
  TdParam *p;
  TdVar *v;

  if (from->kind == TD_PARAM_ATTR)
    return true; /* a copy starts without state */
  if (from->kind == TD_PARAM_PERSISTENT)
    {
      v = copy_array (from);
      return v != NULL && td__param_keep (to, from->name, from->kind, v, from->site) != NULL;
    }
  p = td__param_add (to, from->name, &waiting, (int)from->dtype, from->init, from->init,
                     from->site);
  if (p == NULL)
    return false;
  p->fan_shape = from->fan_shape;
  p->device = from->device;
  if (from->var == NULL)
    return true;
  v = copy_array (from);
  if (v == NULL)
    return false;
  td__param_hold (p, v);
  return true;
}

static TdLink *
copy_tree (const TdLink *from, TdLink *parent)
{
  TdLink *to = td__link_make (from->cls, parent, from->name, from->site);

  if (to->inert)
    return to;
  if (from->cls->copied == NULL)
    memcpy (to->self, from->self, from->cls->self_bytes);
  for (int i = 0; i < from->n_params; i++)
    if (!copy_param (to, from->params[i]))
      return td__link_inert ();
  for (int i = 0; i < from->n_children; i++)
    if (copy_tree (from->children[i], to)->inert)
      return td__link_inert ();
  if (from->cls->copied != NULL)
    from->cls->copied (to, from);
  return to;
}

TdLink *
td_link_copy (TdLink *link)
{
  TdLink *copy;

  if (!td__link_usable (link, "td_link_copy", NULL))
    return td__link_inert ();
  if (link->cls->free != NULL && link->cls->copied == NULL)
    {
      td__fail (TD_ERR_STATE, "td_link_copy", NULL,
                "%s links own memory and say not how it is copied (TdLinkClass.copied)",
                link->cls->name);
      return td__link_inert ();
    }
  copy = copy_tree (link, NULL);
  td__links_generation++;
  return copy;
}
