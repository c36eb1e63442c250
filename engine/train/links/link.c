/* The tree of links: how links are made, named, found and freed.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"
#include "replace.h"
#include "host-memory.h"

#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*td__link_gone) (TdLink *link, uint64_t link_id);
static uint64_t last_link_id;
static TdLink **roots; /* in order of creation */
static int n_roots;

static TdStatus
inert_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)link, (void)self, (void)in, (void)n_in, (void)out, (void)n_out;
  return TD_ERR_STATE;
}

static const TdLinkClass inert_class
    = { .size = sizeof (TdLinkClass), .name = "inert", .forward = inert_forward };
static const TdLinkClass freed_class
    = { .size = sizeof (TdLinkClass), .name = "freed", .forward = inert_forward };

TdLink *
td__link_inert (void)
{
  static char name[] = "inert";
  static TdLink inert;

  if (inert.cls == NULL)
    {
      inert.cls = &inert_class;
      inert.name = name;
      inert.path = td__path_intern ("inert", "inert");
      inert.inert = true;
    }
  return &inert;
}

bool (td__link_usable) (const TdLink *link, const char *call, const TdSite *site)
{
  if (TD_UNLIKELY (td__stranger (call)))
    return false;
  if (link != NULL && !link->inert)
    return true;
  td__fail (TD_ERR_STATE, call, site, "%s",
            link == NULL                ? "the link is NULL"
            : link->cls == &freed_class ? "the link was freed"
                                        : "the link is inert: its constructor failed before");
  return false;
}

/* Freed links stay as what they are, so that one that is used all the same is recognised. */
static void
keep_freed (TdLink *link)
{
  static char name[] = "freed";

  *link = (TdLink){ .cls = &freed_class, .name = name, .inert = true };
  link->path = td__path_intern (name, freed_class.name);
  td__shell_keep (link);
}

static bool
name_ok (const char *name, const char *call, const TdSite *site)
{
  if (name != NULL && *name != '\0' && strchr (name, '/') == NULL && strlen (name) <= 200)
    return true;
  td__fail (TD_ERR_ARG, call, site,
            "a link's name is 1 to 200 characters without '/', got \"%.60s\"",
            name != NULL ? name : "(null)");
  return false;
}

bool
td__link_name_free (const TdLink *link, const char *name, const char *call, const TdSite *site)
{
  bool taken = td__param_find (link, name) != NULL;

  if (!name_ok (name, call, site))
    return false;
  for (int i = 0; i < link->n_children; i++)
    taken |= strcmp (link->children[i]->name, name) == 0;
  if (taken)
    td__fail (TD_ERR_ARG, call, site, "%s has a %.60s already", link->path->text, name);
  return !taken;
}

/* A root's path is its name, with "#2" when another living root has it. */
static const TdPath *
root_path (const TdLink *link)
{
  char text[240];
  bool taken = true;

  snprintf (text, sizeof text, "%s", link->name);
  for (int k = 2; taken; k++)
    {
      taken = false;
      for (int i = 0; i < n_roots; i++)
        taken |= roots[i] != link && roots[i]->path != NULL
                 && strcmp (roots[i]->path->text, text) == 0;
      if (taken)
        snprintf (text, sizeof text, "%s#%d", link->name, k);
    }
  return td__path_intern (text, link->cls->name);
}

/* Give a link and all below it their paths. */
static void
set_paths (TdLink *link)
{
  if (link->parent == NULL)
    link->path = root_path (link);
  else
    {
      size_t size = strlen (link->parent->path->text) + strlen (link->name) + 2;
      char *text = td__xcalloc (size, 1);

      snprintf (text, size, "%s/%s", link->parent->path->text, link->name);
      link->path = td__path_intern (text, link->cls->name);
      free (text);
    }
  for (int i = 0; i < link->n_params; i++)
    {
      td__param_set_path (link, link->params[i]);
      td__param_announce (link->params[i]);
    }
  for (int i = 0; i < link->n_children; i++)
    set_paths (link->children[i]);
}

static void
attach (TdLink *parent, TdLink *child)
{
  parent->children
      = td__xrealloc (parent->children, (size_t)(parent->n_children + 1) * sizeof (TdLink *));
  parent->children[parent->n_children++] = child;
  child->parent = parent;
  if (parent->cls == &td__sequential_class)
    td__sequential_child_added (parent);
}

static void
become_root (TdLink *link)
{
  roots = td__xrealloc (roots, (size_t)(n_roots + 1) * sizeof *roots);
  roots[n_roots++] = link;
  td__object_add (&link->object, (void (*) (void *))td_link_free);
}

static void
leave_roots (TdLink *link)
{
  int kept = 0;

  for (int i = 0; i < n_roots; i++)
    if (roots[i] != link)
      roots[kept++] = roots[i];
  n_roots = kept;
  td__object_remove (&link->object);
}

TdLink *
td__link_make (const TdLinkClass *cls, TdLink *parent, const char *name, const TdSite *site)
{
  TdLink *link;

  if (!td__ensure_started () || td__check_thread ("a link's constructor") != TD_OK)
    return td__link_inert ();
  if (cls == NULL || cls->size != sizeof *cls || cls->name == NULL || cls->forward == NULL)
    {
      td__fail (TD_ERR_ARG, "td_link_new", site,
                "a link class has its size, a name and a forward function");
      return td__link_inert ();
    }
  if (parent == NULL ? !name_ok (name, cls->name, site)
                     : !td__link_usable (parent, cls->name, site)
                           || !td__link_name_free (parent, name, cls->name, site))
    return td__link_inert ();
  link = td__xcalloc (1, sizeof *link);
  link->cls = cls;
  link->name = td__xstrdup (name);
  link->site = site;
  link->id = ++last_link_id;
  link->self = td__xcalloc (1, cls->self_bytes);
  if (parent != NULL)
    attach (parent, link);
  else
    become_root (link);
  set_paths (link);
  td__links_changed (link->path, link->site);
  return link;
}

TdLink *
td_link_new (const TdLinkClass *cls, TdLink *parent, const char *name)
{
  return td__link_make (cls, parent, name, NULL);
}

TdLink *
td_link_define (const TdLinkClass *cls)
{
  return td__link_make (cls, NULL, cls != NULL ? cls->name : NULL, NULL);
}

TdLink *
td_link_adopt (TdLink *parent, const char *name, TdLink *child)
{
  if (!td__link_usable (parent, "td_link_adopt", NULL)
      || !td__link_usable (child, "td_link_adopt", NULL)
      || !td__link_name_free (parent, name, "td_link_adopt", NULL))
    return td__link_inert ();
  for (const TdLink *l = parent; l != NULL; l = l->parent)
    if (l == child || child->parent != NULL)
      {
        td__fail (TD_ERR_ARG, "td_link_adopt", NULL,
                  "%s belongs to another link, or holds its new parent %s", child->path->text,
                  parent->path->text);
        return td__link_inert ();
      }
  leave_roots (child);
  free (child->name);
  child->name = td__xstrdup (name);
  attach (parent, child);
  set_paths (child);
  td__links_changed (child->path, child->site);
  return child;
}

static void
link_destroy (TdLink *link)
{
  if (td__link_gone != NULL)
    td__link_gone (link, link->id);
  td_static_free (link->function);
  for (int i = link->n_children; i > 0; i--)
    link_destroy (link->children[i - 1]);
  for (int i = link->n_params; i > 0; i--)
    td__param_free (link->params[i - 1]);
  if (link->cls->free != NULL)
    link->cls->free (link->self);
  free (link->children);
  free (link->by_name);
  free (link->params);
  free (link->self);
  free (link->name);
  keep_freed (link);
}

static void
leave_parent (TdLink *link)
{
  TdLink *parent = link->parent;
  int kept = 0;

  for (int i = 0; i < parent->n_children; i++)
    if (parent->children[i] != link)
      parent->children[kept++] = parent->children[i];
  parent->n_children = kept;
  link->parent = NULL;
}

void
td__link_detach (TdLink *link)
{
  if (link->parent == NULL)
    return;
  leave_parent (link);
  become_root (link);
  set_paths (link);
  td__links_changed (link->path, link->site);
}

void
td__link_rename (TdLink *link, const char *name)
{
  char *old = link->name;

  if (strcmp (old, name) == 0)
    return;
  link->name = td__xstrdup (name);
  free (old);
  set_paths (link);
  td__links_changed (link->path, link->site);
}

void
td__link_replace (TdLink *link, TdLink *old)
{
  TdObserver *o = td__engine.observer;
  char name[201];

  if (old != NULL && strcmp (old->name, link->name) == 0)
    {
      snprintf (name, sizeof name, "%.180s (replaced)", old->name);
      td__engine.observer = NULL; /* its parameters are on the tape by the name that they had */
      td__link_rename (old, name);
      td__engine.observer = o;
    }
  set_paths (link);
  td__links_changed (link->path, link->site);
}

/* The first link at or below one that a call is in, or NULL. */
static const TdLink *
running (const TdLink *link)
{
  const TdLink *found = link->n_running > 0 ? link : NULL;

  for (int i = 0; i < link->n_children && found == NULL; i++)
    found = running (link->children[i]);
  return found;
}

void
td_link_free (TdLink *link)
{
  const TdLink *busy;
  const TdPath *path;

  if (td__stranger ("td_link_free") || link == NULL || link->inert || !td__engine.started)
    return;
  if ((busy = running (link)) != NULL)
    {
      td__fail (TD_ERR_STATE, "td_link_free", td__engine.site,
                "%s is called at the moment: free it when its call has returned",
                busy->path->text);
      return;
    }
  if (link->parent == NULL)
    leave_roots (link);
  else
    leave_parent (link);
  path = link->path;
  link_destroy (link);
  td__links_changed (path, td__engine.site);
}

TdLink *
td__link_abandon (TdLink *link)
{
  td_link_free (link);
  return td__link_inert ();
}

void
td__links_finish (void)
{
  td__objects_finish ();
  td__reports_finish ();
  free (roots);
  roots = NULL;
  n_roots = 0;
}

static TdLink *
find_id (TdLink *link, uint64_t id)
{
  TdLink *found = link->id == id ? link : NULL;

  for (int i = 0; i < link->n_children && found == NULL; i++)
    found = find_id (link->children[i], id);
  return found;
}

TdLink *
td__link_by_id (uint64_t id)
{
  TdLink *found = NULL;

  for (int i = 0; i < n_roots && found == NULL; i++)
    found = find_id (roots[i], id);
  return found;
}

static TdLink *
find_child (TdLink *link, const char *name, size_t n)
{
  for (int i = 0; i < link->n_children; i++)
    if (strncmp (link->children[i]->name, name, n) == 0 && link->children[i]->name[n] == '\0')
      return link->children[i];
  return NULL;
}

/* Walk "a/b/rest" down as far as the last '/'; *rest is what is left. */
static TdLink *
walk (TdLink *link, const char *path, const char **rest)
{
  const char *slash;

  while (link != NULL && (slash = strchr (path, '/')) != NULL)
    {
      link = find_child (link, path, (size_t)(slash - path));
      path = slash + 1;
    }
  *rest = path;
  return link;
}

TdLink *
td_link_child (TdLink *link, const char *name)
{
  const char *rest;
  TdLink *at;

  if (!td__link_usable (link, "td_link_child", NULL))
    return td__link_inert ();
  at = name != NULL ? walk (link, name, &rest) : NULL;
  if (at != NULL)
    at = find_child (at, rest, strlen (rest));
  if (at != NULL)
    return at;
  td__fail (TD_ERR_ARG, "td_link_child", NULL, "%s has no child %.100s", link->path->text,
            name != NULL ? name : "(null)");
  return td__link_inert ();
}

TdVar *
td_link_param (TdLink *link, const char *name)
{
  const char *rest;
  TdLink *at;
  TdParam *param;

  if (!td__link_usable (link, "td_link_param", NULL))
    return td__poison ();
  at = name != NULL ? walk (link, name, &rest) : NULL;
  param = at != NULL ? td__param_find (at, rest) : NULL;
  if (param != NULL && param->kind != TD_PARAM_ATTR)
    return param->var;
  td__fail (TD_ERR_ARG, "td_link_param", NULL, "%s has no parameter %.100s", link->path->text,
            name != NULL ? name : "(null)");
  return td__poison ();
}

int
td_link_n_children (const TdLink *link)
{
  return td__stranger ("td_link_n_children") || link == NULL ? 0 : link->n_children;
}

TdLink *
td_link_child_at (TdLink *link, int i)
{
  if (!td__stranger ("td_link_child_at") && link != NULL && i >= 0 && i < link->n_children)
    return link->children[i];
  td__fail (TD_ERR_ARG, "td_link_child_at", NULL, "there is no child %d", i);
  return td__link_inert ();
}

const char *
td_link_path (const TdLink *link)
{
  return td__stranger ("td_link_path") || link == NULL ? "" : link->path->text;
}

const char *
td_link_name (const TdLink *link)
{
  return td__stranger ("td_link_name") || link == NULL ? "" : link->name;
}

const char *
td_link_class_name (const TdLink *link)
{
  return td__stranger ("td_link_class_name") || link == NULL ? "" : link->cls->name;
}

void *
td_link_self (TdLink *link)
{
  return td__stranger ("td_link_self") || link == NULL ? NULL : link->self;
}

/* Done for every parameter in every iteration: no printf. */
size_t
td__key_put (TdKey *key, size_t used, const char *name, char more)
{
  const size_t length = strlen (name), n = used + length + (more != '\0');

  if (n >= key->room)
    {
      key->room = 2 * n + 256;
      key->text = td__xrealloc (key->text, key->room);
    }
  memcpy (key->text + used, name, length);
  key->text[used + length] = more;
  key->text[n] = '\0';
  return n;
}

static void
visit_at (TdLink *link, TdKey *key, size_t used,
          void (*visit) (TdLink *, TdParam *, const char *, void *), void *user)
{
  for (int i = 0; i < link->n_params; i++)
    {
      td__key_put (key, used, link->params[i]->name, '\0');
      visit (link, link->params[i], key->text, user);
    }
  for (int i = 0; i < link->n_children; i++)
    visit_at (link->children[i], key, td__key_put (key, used, link->children[i]->name, '/'),
              visit, user);
}

void
td__link_visit (TdLink *link, void (*visit) (TdLink *, TdParam *, const char *, void *),
                void *user)
{
  TdKey key = { NULL, 0 };

  if (link != NULL && !link->inert)
    visit_at (link, &key, 0, visit, user);
  free (key.text);
}
