/* Parameters, persistents and attributes of a link, and what is done with all of them at once.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t last_param_id;

enum
{
  FEW = 32 /* are looked through */
};

static int
slot_of (const TdLink *link, const char *name)
{
  uint32_t hash = 2166136261u;

  for (const char *c = name; *c != '\0'; c++)
    hash = (hash ^ (unsigned char)*c) * 16777619u;
  for (int at = (int)(hash % (uint32_t)link->n_by_name);; at = (at + 1) % link->n_by_name)
    if (link->by_name[at] == 0 || strcmp (link->params[link->by_name[at] - 1]->name, name) == 0)
      return at;
}

/* The last parameter can be found by its name; models of other programs have ten thousand in
 * one link. */
static void
index_last (TdLink *link)
{
  int first = link->n_params - 1;

  if (link->n_params <= FEW)
    return;
  if (link->n_params * 2 > link->n_by_name)
    {
      free (link->by_name);
      link->n_by_name = link->n_params * 4;
      link->by_name = td__xcalloc ((size_t)link->n_by_name, sizeof *link->by_name);
      first = 0;
    }
  for (int i = first; i < link->n_params; i++)
    link->by_name[slot_of (link, link->params[i]->name)] = i + 1;
}

TdParam *
td__param_find (const TdLink *link, const char *name)
{
  if (link->by_name != NULL && name != NULL)
    {
      const int i = link->by_name[slot_of (link, name)];

      return i > 0 ? link->params[i - 1] : NULL;
    }
  for (int i = 0; i < link->n_params && name != NULL; i++)
    if (strcmp (link->params[i]->name, name) == 0)
      return link->params[i];
  return NULL;
}

/* Tell the recorder which path a parameter's array has. */
void
td__param_announce (const TdParam *param)
{
  TdObserver *o = td__engine.observer;

  if (o != NULL && param->var != NULL && param->kind != TD_PARAM_ATTR)
    /* what shares its array with another link's is learnt there */
    o->param (o, param->path, param->var,
              param->kind == TD_PARAM_TRAINED && param->var->buffer->refs == 1);
}

void
td__param_set_path (const TdLink *link, TdParam *param)
{
  size_t size = strlen (link->path->text) + strlen (param->name) + 2;
  char *text = td__xcalloc (size, 1);

  snprintf (text, size, "%s/%s", link->path->text, param->name);
  param->path = td__path_intern (text, link->cls->name);
  free (text);
}

/* The path of the link that has the parameter: its own without the name. */
static const TdPath *
owner_path (const TdParam *param)
{
  size_t n = strlen (param->path->text) - strlen (param->name) - 1;
  char *text = td__xcalloc (n + 1, 1);
  const TdPath *path;

  memcpy (text, param->path->text, n);
  path = td__path_intern (text, param->path->link_class);
  free (text);
  return path;
}

static TdParam *
param_new (TdLink *link, const char *name, TdParamKind kind, const TdSite *site)
{
  TdParam *p = td__xcalloc (1, sizeof *p);

  p->name = td__xstrdup (name);
  td__param_set_path (link, p);
  p->kind = kind;
  p->id = ++last_param_id;
  p->site = site;
  p->fan_shape.ndim = -1;
  link->params
      = td__xrealloc (link->params, (size_t)(link->n_params + 1) * sizeof *link->params);
  link->params[link->n_params++] = p;
  index_last (link);
  td__links_changed (p->path, site);
  return p;
}

void
td__param_hold (TdParam *param, TdVar *var)
{
  TdVar *old = param->var;

  if (param->kind == TD_PARAM_ATTR)
    td__engine.state_generation++;
  else
    td__links_changed (param->path, param->site);
  param->var = var != NULL ? td__var_ref (var, TD_HOLD_LINK) : NULL;
  if (old != NULL)
    td__var_unref (old, TD_HOLD_LINK);
}

void
td__param_free (TdParam *param)
{
  td__param_hold (param, NULL);
  free (param->name);
  free (param);
}

void
td__param_remove (TdLink *link, const char *name)
{
  int kept = 0;

  for (int i = 0; i < link->n_params; i++)
    if (strcmp (link->params[i]->name, name) == 0)
      td__param_free (link->params[i]);
    else
      link->params[kept++] = link->params[i];
  link->n_params = kept;
  td__links_changed (link->path, td__engine.site);
}

TdVar *
td__param_leaf (TdParam *param, const TdShape *shape)
{
  TdDevice *device = param->device != NULL ? param->device : td__engine.device;
  TdVar *v = td__var_leaf (param->dtype, shape, device, TD_MEM_PARAMETER, param->site);

  return v != NULL ? td__var_ref (v, TD_HOLD_ENGINE) : NULL;
}

/* Make v the parameter's array, which no observer knows yet. */
static void
become (TdParam *param, TdVar *v)
{
  td__param_hold (param, v);
  v->flags |= param->fixed ? TD_VAR_PERSISTENT | TD_VAR_FIXED : TD_VAR_PERSISTENT;
  td_name (v, param->name);
  v->node->path = owner_path (param);
  v->node->requires_grad = param->kind == TD_PARAM_TRAINED;
}

void
td__param_adopt (TdParam *param, TdVar *v)
{
  become (param, v);
  td__links_changed (param->path, param->site);
  td__param_announce (param);
}

TdStatus
td__param_start (TdParam *param, const TdShape *shape)
{
  TdVar *v = td__param_leaf (param, shape);
  TdStatus status;

  if (v == NULL)
    return td__error_status ();
  become (param, v);
  td__var_unref (v, TD_HOLD_ENGINE);
  status = td__init_fill (param->init, v,
                          param->fan_shape.ndim >= 0 ? &param->fan_shape : shape, param->site);
  if (status != TD_OK)
    {
      td__param_hold (param, NULL);
      return status;
    }
  td__links_changed (param->path, param->site);
  td__param_announce (param);
  return TD_OK;
}

static bool
shape_known (const TdShape *shape)
{
  for (int i = 0; i < shape->ndim; i++)
    if (shape->dim[i] < 0)
      return false;
  return true;
}

TdParam *
td__param_add (TdLink *link, const char *name, const TdShape *shape, int dtype, TdInit init,
               TdInit fallback, const TdSite *site)
{
  TdParam *p;

  if (!td__link_usable (link, "td_link_add_param", site)
      || !td__link_name_free (link, name, "td_link_add_param", site))
    return NULL;
  if (shape->ndim < 0 || shape->ndim > TD_MAX_DIMS)
    {
      td__fail (TD_ERR_SHAPE, "td_link_add_param", site, "%s of %s has %d axes, %d is the most",
                name, link->path->text, shape->ndim, TD_MAX_DIMS);
      return NULL;
    }
  p = param_new (link, name, TD_PARAM_TRAINED, site);
  p->dtype = (TdDtype)(dtype >= 0 ? dtype : td__engine.config.dtype);
  p->init = td__init_or (init, fallback);
  if (shape_known (shape) && td__param_start (p, shape) != TD_OK)
    return NULL;
  return p;
}

TdVar *
td_link_add_param_at (TdLink *link, const char *name, TdShape shape, TdParamOpt options,
                      const TdSite *site)
{
  TdInit fallback = shape.ndim > 1 ? td_init_lecun_normal () : td_init_zero ();
  TdParam *p
      = td__param_add (link, name, &shape, options.dtype, options.initializer, fallback, site);

  return p != NULL ? p->var : td__poison ();
}

TdVar *
td_link_add_param_ (TdLink *link, const char *name, TdShape shape, const TdParamOpt *options)
{
  static const TdParamOpt defaults = { TD_PARAM_DEFAULTS };

  return td_link_add_param_at (link, name, shape, options != NULL ? *options : defaults, NULL);
}

TdVar *
td_link_init_param (TdLink *link, const char *name, TdShape shape)
{
  TdParam *p;

  if (!td__link_usable (link, "td_link_init_param", NULL))
    return td__poison ();
  p = td__param_find (link, name);
  if (p == NULL || p->kind != TD_PARAM_TRAINED)
    {
      td__fail (TD_ERR_ARG, "td_link_init_param", NULL, "%s has no parameter %.100s",
                link->path->text, name != NULL ? name : "(null)");
      return td__poison ();
    }
  if (p->var == NULL && td__param_start (p, &shape) != TD_OK)
    return td__poison ();
  return p->var;
}

TdParam *
td__param_keep (TdLink *link, const char *name, TdParamKind kind, TdVar *value,
                const TdSite *site)
{
  TdParam *p = td__param_find (link, name);

  if (p != NULL && p->kind != kind)
    {
      td__fail (TD_ERR_ARG, link->cls->name, site, "%s has a %.100s of another kind",
                link->path->text, name);
      return NULL;
    }
  if (p == NULL)
    {
      if (!td__link_name_free (link, name, link->cls->name, site))
        return NULL;
      p = param_new (link, name, kind, site);
    }
  td__param_hold (p, value);
  return p;
}

TdVar *
td_link_add_persistent (TdLink *link, const char *name, TdVar *value)
{
  TdParam *p;

  if (!td__link_usable (link, "td_link_add_persistent", NULL)
      || !td__var_usable (value, "td_link_add_persistent", NULL))
    return td__poison ();
  p = td__param_keep (link, name, TD_PARAM_PERSISTENT, value, NULL);
  if (p == NULL)
    return td__poison ();
  value->flags |= TD_VAR_PERSISTENT;
  td_name (value, name);
  td__param_announce (p);
  return value;
}

TdStatus
td_link_set_attr_at (TdLink *link, const char *name, TdVar *value, const TdSite *site)
{
  if (!td__link_usable (link, "td_link_set_attr", site)
      || (value != NULL && !td__var_usable (value, "td_link_set_attr", site)))
    return td__error_status ();
  if (td__param_keep (link, name, TD_PARAM_ATTR, value, NULL) == NULL)
    return td__engine.error.status;
  if (value != NULL && value->holds[TD_HOLD_USER] == 0)
    value->retained_site = site;
  return TD_OK;
}

TdStatus
td_link_set_attr (TdLink *link, const char *name, TdVar *value)
{
  return td_link_set_attr_at (link, name, value, NULL);
}

TdVar *
td_link_attr (TdLink *link, const char *name)
{
  TdParam *p
      = !td__stranger ("td_link_attr") && link != NULL ? td__param_find (link, name) : NULL;

  td__engine.state_reads++;
  return p != NULL && p->kind == TD_PARAM_ATTR ? p->var : NULL;
}

/* --- all parameters at once --- */

typedef struct
{
  void (*visit) (const char *path, TdVar *param, void *user);
  void *user;
} Each;

static void
each_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  Each *each = user;

  (void)owner;
  if (param->kind == TD_PARAM_TRAINED && param->var != NULL)
    each->visit (key, param->var, each->user);
}

void
td_link_each_param (TdLink *link, void (*visit) (const char *path, TdVar *param, void *user),
                    void *user)
{
  Each each = { visit, user };

  if (td__link_usable (link, "td_link_each_param", NULL)
      && td__function_there (visit != NULL, "td_link_each_param"))
    td__link_visit (link, each_one, &each);
}

static void
count_one (const char *path, TdVar *param, void *user)
{
  (void)path;
  *(int64_t *)user += td_shape_size (&param->node->shape);
}

int64_t
td_link_count_params (const TdLink *link)
{
  int64_t n = 0;
  Each each = { count_one, &n };

  if (td__stranger ("td_link_count_params"))
    return 0;
  td__link_visit ((TdLink *)(uintptr_t)link, each_one, &each);
  return n;
}

static void
clear_one (const char *path, TdVar *param, void *user)
{
  (void)path, (void)user;
  td_cleargrad (param);
}

void
td_cleargrads (TdLink *link)
{
  td_link_each_param (link, clear_one, NULL);
}

void
td_link_reset_state (TdLink *link)
{
  if (!td__link_usable (link, "td_link_reset_state", NULL))
    return;
  if (link->cls->reset_state != NULL)
    link->cls->reset_state (link, link->self);
  for (int i = 0; i < link->n_children; i++)
    td_link_reset_state (link->children[i]);
}

TdStatus
td__var_move (TdVar *v, TdDevice *device)
{
  size_t bytes = v->buffer->bytes;
  TdBuffer *b;
  TdStatus status;

  if (v->node->device == device)
    return TD_OK;
  b = td__buffer_new (device, bytes, (TdMemCategory)v->node->category);
  if (b == NULL)
    return td__fail (TD_ERR_MEMORY, "td_link_to_device", NULL, "no %zu bytes on %s", bytes,
                     device->name);
  status = td__transfer (v, b, NULL, NULL);
  if (status != TD_OK)
    {
      td__buffer_unref (b);
      return status;
    }
  td__buffer_unref (v->buffer);
  v->buffer = b;
  v->node->device = device;
  td_cleargrad (v);
  return TD_OK;
}

static void
move_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  (void)owner, (void)key;
  param->device = user;
  if (param->kind == TD_PARAM_ATTR
      && !td__param_constant (param)) /* state lives on its own device: forget it */
    td__param_hold (param, NULL);
  else if (param->var != NULL)
    {
      td__var_move (param->var, user);
      td__param_announce (param);
    }
}

TdStatus
td_link_to_device_at (TdLink *link, TdDevice *device, const TdSite *site)
{
  TdEngine *e = &td__engine;
  const TdSite *outer_site = e->site;

  if (!td__link_usable (link, "td_link_to_device", site))
    return td__error_status ();
  if (device == NULL)
    return td__fail (TD_ERR_ARG, "td_link_to_device", site, "the device is NULL");
  if (site != NULL)
    e->site = site;
  td__link_visit (link, move_one, device);
  e->site = outer_site;
  td__links_changed (link->path, site);
  return e->has_error ? e->error.status : TD_OK;
}

TdStatus (td_link_to_device) (TdLink *link, TdDevice *device)
{
  return td_link_to_device_at (link, device, NULL);
}
