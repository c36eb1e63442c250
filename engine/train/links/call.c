/* The call of a link: its scope, path and place, its forward, and what it hands out.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

#include "static/static.h"

static TdStatus
fail_all (TdVar **out, int n_out, TdStatus status)
{
  for (int i = 0; i < n_out && out != NULL; i++)
    out[i] = td__poison ();
  return status != TD_OK ? status : TD_ERR_STATE;
}

static TdStatus
first_error (void)
{
  return td__error_status ();
}

/* Inputs may be poison: the link's operations pass it on.  Dead handles and NULL may not. */
static bool
inputs_usable (const TdLink *link, TdVar *const *in, int n_in, const TdSite *site)
{
  if (!td__list_whole (in, n_in, link->cls->name, site))
    return false;
  for (int i = 0; i < n_in; i++)
    if (in[i] == NULL || (in[i]->state != TD_VAR_LIVE && in[i]->state != TD_VAR_POISON))
      return td__var_usable (in[i], link->cls->name, site);
  return true;
}

/* The forward between the hooks' pre and post, and a note for backward. */
static __attribute__ ((noinline, cold)) TdStatus
forward_hooked (TdLink *link, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdEngine *e = &td__engine;
  const TdHookTable *hooks = e->hooks;
  uint64_t id = link->id, first = e->next_id + 1;
  TdLinkCall call = { .link = link,
                      .path = link->path->text,
                      .site = e->site,
                      .n_in = n_in,
                      .n_out = n_out,
                      .in = in };
  TdStatus status;

  hooks->link (TD_MOMENT_FORWARD_PRE, id, &call);
  status = link->cls->forward (link, link->self, in, n_in, out, n_out);
  for (int i = 0; i < n_out; i++)
    if (out[i] == NULL)
      out[i] = td__poison ();
  call.status = status;
  call.out = status == TD_OK ? out : NULL;
  hooks->link_record (id, link->path, e->site, first, in, n_in, out, n_out);
  hooks->link (TD_MOMENT_FORWARD_POST, id, &call);
  return status;
}

/* A link that is a static function: its call is the function's, whose code is its call. */
static __attribute__ ((noinline)) void
static_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdLink *link = self;

  link->in_static = true;
  td_link_call_at (link, in, n_in, out, n_out, NULL);
  link->in_static = false;
}

TdStatic *
td_link_set_static_at (TdLink *link, TdStaticOpt options, const TdSite *site)
{
  if (!td__link_usable (link, "td_link_set_static", site))
    return NULL;
  td_static_free (link->function);
  if (options.name == NULL)
    options.name = link->path->text;
  link->function = td_static_new_at (static_code, link, options, site);
  if (link->function != NULL)
    td__static_owned (link->function, &link->function);
  td__links_changed (link->path, site); /* a function that calls it has another graph now */
  return link->function;
}

TdStatic *
td_link_static (TdLink *link)
{
  return td__link_usable (link, "td_link_static", NULL) ? link->function : NULL;
}

TdStatus
td_link_call_at (TdLink *link, TdVar *const *in, int n_in, TdVar **out, int n_out,
                 const TdSite *site)
{
  TdEngine *e = &td__engine;
  const TdPath *outer_path = e->path;
  const TdSite *outer_site = e->site;
  TdObserver *o = e->observer;
  TdScope *scope;
  TdStatus status;

  if (!td__link_usable (link, "td_link", site) || !td__list_whole (out, n_out, "td_link", site))
    return fail_all (out, n_out, first_error ());
  if (TD_UNLIKELY (link->function != NULL) && !link->in_static)
    return td_static_call_at (link->function, in, n_in, out, n_out, site);
  e->path = link->path;
  if (site != NULL)
    e->site = site;
  if (!inputs_usable (link, in, n_in, site))
    {
      e->path = outer_path;
      e->site = outer_site;
      return fail_all (out, n_out, first_error ());
    }
  if (TD_UNLIKELY (o != NULL))
    o->link (o, true, link->path, e->site);
  if (TD_UNLIKELY (e->tracer != NULL))
    e->tracer->link (e->tracer, true, link->path, e->site, link->self, link->cls->self_bytes);
  scope = td_scope_open_at (link->name, e->site);
  scope->is_link = true;
  for (int i = 0; i < n_out; i++)
    out[i] = NULL;
  link->n_running++;
  if (TD_UNLIKELY (e->hooks != NULL) && e->hooks->link_wanted (link->id))
    status = forward_hooked (link, in, n_in, out, n_out);
  else
    status = link->cls->forward (link, link->self, in, n_in, out, n_out);
  link->n_running--;
  for (int i = 0; i < n_out; i++)
    if (out[i] == NULL)
      out[i] = td__poison ();
    else
      td_scope_yield (out[i]);
  td_scope_close (scope);
  if (TD_UNLIKELY (o != NULL && o == e->observer))
    o->link (o, false, link->path, e->site);
  if (TD_UNLIKELY (e->tracer != NULL))
    e->tracer->link (e->tracer, false, link->path, e->site, link->self, link->cls->self_bytes);
  e->path = outer_path;
  e->site = outer_site;
  return status;
}

TdStatus (td_link_call) (TdLink *link, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  return td_link_call_at (link, in, n_in, out, n_out, NULL);
}

TdVar *
td_link_at (TdLink *link, TdVar *x, const TdSite *site)
{
  TdVar *y = NULL;

  td_link_call_at (link, &x, 1, &y, 1, site);
  return y;
}

TdVar *(td_link)(TdLink *link, TdVar *x)
{
  return td_link_at (link, x, NULL);
}
