/* ChainList: links in order, named by their places.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

#include <stdio.h>
#include <string.h>

static TdStatus
chain_list_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out,
                    int n_out)
{
  (void)self, (void)in, (void)n_in, (void)out, (void)n_out;
  return td__fail (TD_ERR_STATE, "ChainList", td__engine.site,
                   "%s only lists its links: call those, or use a Sequential",
                   link->path->text);
}

static const TdLinkClass chain_list_class
    = { .size = sizeof (TdLinkClass), .name = "ChainList", .forward = chain_list_forward };

TdLink *(td_chain_list_new)(const char *name)
{
  return td__link_make (&chain_list_class, NULL, name, NULL);
}

TdLink *
td_chain_list_new_in (TdLink *parent, const char *name)
{
  return td__link_make (&chain_list_class, parent, name, NULL);
}

static bool
is_list (const TdLink *list, const char *call)
{
  if (!td__link_usable (list, call, NULL))
    return false;
  if (list->cls == &chain_list_class)
    return true;
  td__fail (TD_ERR_ARG, call, NULL, "%s is a %s, not a ChainList", list->path->text,
            list->cls->name);
  return false;
}

/* Names from place i on.  Children are named one after the other without a clash: upwards after
 * a removal, downwards after an insertion. */
static void
rename_from (TdLink *list, int i, bool downwards)
{
  char name[16];

  for (int n = list->n_children - i; n > 0; n--)
    {
      int at = downwards ? i + n - 1 : list->n_children - n;

      snprintf (name, sizeof name, "%d", at);
      td__link_rename (list->children[at], name);
    }
}

TdLink *
td_chain_list_insert (TdLink *list, int i, TdLink *link)
{
  char last[16];

  if (!is_list (list, "td_chain_list_insert"))
    return td__link_inert ();
  if (i < 0)
    i += list->n_children;
  if (i < 0 || i > list->n_children)
    {
      td__fail (TD_ERR_ARG, "td_chain_list_insert", NULL, "%s has %d links, no place %d",
                list->path->text, list->n_children, i);
      return td__link_inert ();
    }
  snprintf (last, sizeof last, "%d", list->n_children);
  if (td_link_adopt (list, last, link)->inert)
    return td__link_inert ();
  for (int at = list->n_children - 1; at > i; at--)
    list->children[at] = list->children[at - 1];
  list->children[i] = link;
  rename_from (list, i, true);
  return link;
}

TdLink *
td_chain_list_append (TdLink *list, TdLink *link)
{
  return td_chain_list_insert (list, list != NULL ? list->n_children : 0, link);
}

TdLink *
td_chain_list_remove (TdLink *list, int i)
{
  TdLink *link;

  if (!is_list (list, "td_chain_list_remove"))
    return td__link_inert ();
  if (i < 0)
    i += list->n_children;
  if (i < 0 || i >= list->n_children)
    {
      td__fail (TD_ERR_ARG, "td_chain_list_remove", NULL, "%s has %d links, no place %d",
                list->path->text, list->n_children, i);
      return td__link_inert ();
    }
  link = list->children[i];
  td__link_detach (link);
  rename_from (list, i, false);
  return link;
}
