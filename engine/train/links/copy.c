/* Copying a link with all below it.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An array of its own with the same numbers. */
static TdVar *
copy_array (const TdParam *from, const TdSite *site)
{
  TdVar *v
      = td__var_leaf ((TdDtype)from->var->node->dtype, &from->var->node->shape,
                      from->var->node->device, (TdMemCategory)from->var->node->category, site);
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

/* Another leaf over the same array. */
static TdVar *
share_array (const TdParam *from, const TdSite *site)
{
  const TdVar *v = from->var;
  TdNode *node = td__node_new ();
  TdVar *shared;

  node->dtype = v->node->dtype;
  node->device = v->node->device;
  node->shape = v->node->shape;
  node->layout = v->node->layout;
  node->category = v->node->category;
  node->requires_grad = v->node->requires_grad;
  shared = td__var_new (node, td__buffer_ref (v->buffer), site);
  shared->flags |= TD_VAR_PERSISTENT;
  td_name (shared, from->name);
  return shared;
}

static bool
copy_param (TdLink *to, const TdParam *from, TdCopyMode mode)
{
  static const TdShape waiting = { 1, { TD_INFER } };
  TdParam *p;
  TdVar *v;

  if (from->kind == TD_PARAM_ATTR && !td__param_constant (from))
    return true; /* a copy starts without state */
  if (from->kind == TD_PARAM_PERSISTENT && from->var != NULL)
    {
      v = mode == TD_COPY_SHARE ? share_array (from, to->site) : copy_array (from, to->site);
      return v != NULL && td__param_keep (to, from->name, from->kind, v, to->site) != NULL;
    }
  p = td__param_add (to, from->name, &waiting, (int)from->dtype, from->init, from->init,
                     to->site);
  if (p == NULL)
    return false;
  p->kind = from->kind;
  p->fan_shape = from->fan_shape;
  p->device = from->device;
  p->fixed = from->fixed;
  if (from->var == NULL)
    return true;
  if (mode == TD_COPY_INIT && from->kind == TD_PARAM_TRAINED)
    {
      p->device = from->var->node->device;
      return td__param_start (p, &from->var->node->shape) == TD_OK;
    }
  v = mode == TD_COPY_SHARE ? share_array (from, to->site) : copy_array (from, to->site);
  if (v == NULL)
    return false;
  td__param_adopt (p, v);
  return true;
}

static TdLink *
copy_tree (const TdLink *from, TdLink *parent, TdCopyMode mode, const TdSite *site)
{
  TdLink *to = td__link_make (from->cls, parent, from->name, site != NULL ? site : from->site);

  if (to->inert)
    return to;
  if (from->cls->copied == NULL)
    memcpy (to->self, from->self, from->cls->self_bytes);
  for (int i = 0; i < from->n_params; i++)
    if (!copy_param (to, from->params[i], mode))
      return td__link_abandon (to);
  for (int i = 0; i < from->n_children; i++)
    if (copy_tree (from->children[i], to, mode, site)->inert)
      return td__link_abandon (to);
  if (from->cls->copied != NULL)
    from->cls->copied (to, from);
  return to;
}

/* The first class at or below a link that cannot be copied, or NULL. */
static const TdLinkClass *
uncopyable (const TdLink *link)
{
  const TdLinkClass *found
      = link->cls->free != NULL && link->cls->copied == NULL ? link->cls : NULL;

  for (int i = 0; i < link->n_children && found == NULL; i++)
    found = uncopyable (link->children[i]);
  return found;
}

TdLink *
td_link_copy_at (TdLink *link, TdCopyMode mode, const TdSite *site)
{
  const TdLinkClass *cls;
  TdLink *copy;

  if (!td__link_usable (link, "td_link_copy", site))
    return td__link_inert ();
  cls = uncopyable (link);
  if (cls != NULL || mode < TD_COPY_SHARE || mode > TD_COPY_INIT)
    {
      if (cls != NULL)
        td__fail (TD_ERR_STATE, "td_link_copy", site,
                  "%s links own memory and say not how it is copied (TdLinkClass.copied)",
                  cls->name);
      else
        td__fail (TD_ERR_ARG, "td_link_copy", site, "mode share, copy or init expected, got %d",
                  (int)mode);
      return td__link_inert ();
    }
  copy = copy_tree (link, NULL, mode, site);
  td__links_changed (copy->path, copy->site);
  return copy;
}

TdLink *
td_link_copy_as (TdLink *link, TdCopyMode mode)
{
  return td_link_copy_at (link, mode, NULL);
}

TdLink *(td_link_copy)(TdLink *link)
{
  return td_link_copy_as (link, TD_COPY_COPY);
}

TdLink *
td_link_repeat (TdLink *parent, const char *name, TdLink *link, int n, TdCopyMode mode)
{
  TdLink *all;

  if (!td__link_usable (link, "td_link_repeat", NULL))
    return td__link_inert ();
  all = td__link_make (&td__sequential_class, parent, name, NULL);
  for (int i = 0; i < n && !all->inert; i++)
    {
      TdLink *copy = td_link_copy_as (link, mode);
      char place[16];

      snprintf (place, sizeof place, "%d", i);
      if (copy->inert || td_link_adopt (all, place, copy)->inert)
        {
          td_link_free (copy);
          all = td__link_abandon (all);
        }
    }
  return all;
}
