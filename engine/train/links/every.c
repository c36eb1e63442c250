/* What is done with every link or parameter of a tree: visits, switches, values and gradients
 * from another tree of the same names.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"
#include "host-memory.h"

#include "compute/core/before-write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
each_at (TdLink *link, TdKey *path, size_t used, void (*visit) (const char *, TdLink *, void *),
         void *user)
{
  visit (path->text, link, user);
  for (int i = 0; i < link->n_children; i++)
    {
      const size_t slash = used > 0 ? td__key_put (path, used, "/", '\0') : 0;

      each_at (link->children[i], path,
               td__key_put (path, slash, link->children[i]->name, '\0'), visit, user);
      path->text[used] = '\0';
    }
}

void
td_link_each (TdLink *link, void (*visit) (const char *path, TdLink *link, void *user),
              void *user)
{
  TdKey path = { NULL, 0 };

  if (!td__link_usable (link, "td_link_each", NULL)
      || !td__function_there (visit != NULL, "td_link_each"))
    return;
  td__key_put (&path, 0, "", '\0');
  each_at (link, &path, 0, visit, user);
  free (path.text);
}

typedef struct
{
  void (*visit) (const char *path, TdVar *param, void *user);
  void *user;
} Any;

static void
any_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  const Any *any = user;

  (void)owner;
  if (param->kind == TD_PARAM_TRAINED)
    any->visit (key, param->var, any->user);
}

void
td_link_each_param_any (TdLink *link,
                        void (*visit) (const char *path, TdVar *param, void *user), void *user)
{
  Any any = { visit, user };

  if (td__link_usable (link, "td_link_each_param_any", NULL)
      && td__function_there (visit != NULL, "td_link_each_param_any"))
    td__link_visit (link, any_one, &any);
}

/* --- updates on and off --- */

static void
fix_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  const bool *fixed = user;

  (void)owner, (void)key;
  param->fixed = *fixed;
  if (param->var == NULL)
    return;
  param->var->flags &= (uint8_t)~TD_VAR_FIXED;
  if (*fixed)
    param->var->flags |= TD_VAR_FIXED;
}

void
td_link_enable_update (TdLink *link)
{
  bool fixed = false;

  if (td__link_usable (link, "td_link_enable_update", NULL))
    td__link_visit (link, fix_one, &fixed);
}

void
td_link_disable_update (TdLink *link)
{
  bool fixed = true;

  if (td__link_usable (link, "td_link_disable_update", NULL))
    td__link_visit (link, fix_one, &fixed);
}

static bool
has_updated (const TdLink *link)
{
  bool any = false;

  for (int i = 0; i < link->n_params && !any; i++)
    any = link->params[i]->kind == TD_PARAM_TRAINED && !link->params[i]->fixed;
  for (int i = 0; i < link->n_children && !any; i++)
    any = has_updated (link->children[i]);
  return any;
}

bool
td_link_update_enabled (const TdLink *link)
{
  return !td__asked ("td_link_update_enabled") && link != NULL && has_updated (link);
}

/* --- from one tree to another --- */

typedef struct
{
  TdLink *from;
  TdParam **to, **source; /* pairs */
  int n;
  const char *call;
  TdStatus status;
} Pairs;

/* The parameter or persistent below a link with this key; no error if there is none. */
static TdParam *
find_key (const TdLink *link, const char *key)
{
  const char *slash = strchr (key, '/');
  size_t n;

  if (slash == NULL)
    return td__param_find (link, key);
  n = (size_t)(slash - key);
  for (int i = 0; i < link->n_children; i++)
    if (strncmp (link->children[i]->name, key, n) == 0 && link->children[i]->name[n] == '\0')
      return find_key (link->children[i], slash + 1);
  return NULL;
}

static void
pair_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  Pairs *pairs = user;
  TdParam *source = param->kind == TD_PARAM_ATTR ? NULL : find_key (pairs->from, key);
  char a[160], b[160];

  (void)owner;
  if (param->kind == TD_PARAM_ATTR || pairs->status != TD_OK)
    return;
  if (source == NULL || source->kind != param->kind)
    pairs->status = td__fail (TD_ERR_ARG, pairs->call, NULL, "%s has no %.200s",
                              pairs->from->path->text, key);
  else if (source->var != NULL && param->var != NULL
           && !td_shape_equal (&source->var->node->shape, &param->var->node->shape))
    pairs->status = td__fail (TD_ERR_SHAPE, pairs->call, NULL, "%.200s is %s here and %s in %s",
                              key, td_shape_text (&param->var->node->shape, a, sizeof a),
                              td_shape_text (&source->var->node->shape, b, sizeof b),
                              pairs->from->path->text);
  if (pairs->status != TD_OK)
    return;
  pairs->to = td__xrealloc (pairs->to, (size_t)(pairs->n + 1) * sizeof *pairs->to);
  pairs->source = td__xrealloc (pairs->source, (size_t)(pairs->n + 1) * sizeof *pairs->source);
  pairs->to[pairs->n] = param;
  pairs->source[pairs->n++] = source;
}

static Pairs
pair (TdLink *to, TdLink *from, const char *call)
{
  Pairs pairs = { .from = from, .call = call };

  if (!td__link_usable (to, call, NULL) || !td__link_usable (from, call, NULL))
    pairs.status = td__error_status ();
  else
    td__link_visit (to, pair_one, &pairs);
  return pairs;
}

static void
pairs_free (Pairs *pairs)
{
  free (pairs->to);
  free (pairs->source);
}

/* The source's numbers as an array of the target's dtype and device, or NULL. */
static TdVar *
converted (TdVar *v, const TdNode *like)
{
  if ((TdDtype)v->node->dtype != (TdDtype)like->dtype)
    v = td_cast (v, (TdDtype)like->dtype);
  return td_to_device (v, like->device);
}

static TdStatus
copy_one (TdParam *to, const TdParam *from, const TdSite *site)
{
  TdVar *v;

  if (from->var == NULL || from->var == to->var)
    return TD_OK;
  if (to->var == NULL && td__param_start (to, &from->var->node->shape) != TD_OK)
    return td__error_status ();
  v = converted (from->var, to->var->node);
  if (td_poisoned (v))
    return td__error_status ();
  td__will_be_written (to->var->buffer);
  if (v->node->device->computes)
    v->node->device->ops->copy (v->node->device, to->var->buffer->data, v->buffer->data,
                                v->buffer->bytes);
  td__buffer_written (to->var->buffer, site);
  return TD_OK;
}

TdStatus
td_link_copy_params_at (TdLink *to, TdLink *from, const TdSite *site)
{
  site = site != NULL ? site : td__engine.site;
  Pairs pairs = pair (to, from, "td_link_copy_params");
  TdScope *scope = td_scope_open_at ("td_link_copy_params", site);

  TD_NO_BACKPROP
    for (int i = 0; i < pairs.n && pairs.status == TD_OK; i++)
      pairs.status = copy_one (pairs.to[i], pairs.source[i], site);
  td_scope_close (scope);
  pairs_free (&pairs);
  return pairs.status;
}

TdStatus
td_link_copy_params (TdLink *to, TdLink *from)
{
  return td_link_copy_params_at (to, from, NULL);
}

/* Two that are not times the same loss scale: before any sum is made. */
static TdStatus
check_scales (const Pairs *pairs)
{
  for (int i = 0; i < pairs->n; i++)
    {
      const TdVar *source = pairs->source[i]->var, *target = pairs->to[i]->var;

      if (source != NULL && source->grad != NULL && target != NULL && target->grad != NULL
          && target->grad->scaled_by != source->grad->scaled_by)
        return td__fail (TD_ERR_STATE, "td_link_add_grads", td__engine.site,
                         "one of two gradients of %s is times a loss scale, which the other is "
                         "not: make both by td_opt_backward, or clear one (td_cleargrads)",
                         target->name != NULL ? target->name : "a parameter");
    }
  return TD_OK;
}

TdStatus
td_link_add_grads (TdLink *to, TdLink *from)
{
  Pairs pairs = pair (to, from, "td_link_add_grads");
  TdScope *scope = td_scope_open_at ("td_link_add_grads", td__engine.site);

  if (pairs.status == TD_OK)
    pairs.status = check_scales (&pairs);
  TD_NO_BACKPROP
    for (int i = 0; i < pairs.n && pairs.status == TD_OK; i++)
      {
        const TdVar *source = pairs.source[i]->var;
        TdVar *target = pairs.to[i]->var, *g;

        if (source == NULL || source->grad == NULL || target == NULL)
          continue;
        g = converted (source->grad, target->node);
        g = target->grad != NULL ? td_add (target->grad, g) : td_copy (g);
        pairs.status = td_poisoned (g) ? td__error_status () : td__put_grad (target, g);
        if (pairs.status == TD_OK)
          target->grad->scaled_by = source->grad->scaled_by;
      }
  td_scope_close (scope);
  pairs_free (&pairs);
  return pairs.status;
}
