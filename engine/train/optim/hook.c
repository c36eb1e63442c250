/* Hooks of optimizers and of single parameters: adding, removing, running them.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

static void
hook_free (void *object)
{
  TdOptHook *hook = object;

  free (hook->name);
  *hook = (TdOptHook){ .inert = true, .object.freed = true };
  td__shell_keep (hook);
}

TdOptHook *
td__opt_hook_make (const char *name, TdStatus (*call) (TdOptHook *, const TdOptHookCall *),
                   bool ok, double a, double b, double c)
{
  static TdOptHook inert = { .inert = true };
  TdOptHook *hook;

  if (td__stranger (name))
    return &inert;
  if (!ok)
    {
      td__fail (TD_ERR_ARG, name, NULL, "%g makes no sense here", a);
      return &inert;
    }
  td__ensure_started ();
  hook = td__xcalloc (1, sizeof *hook);
  hook->name = td__xstrdup (name);
  hook->value[0] = a;
  hook->value[1] = b;
  hook->value[2] = c;
  hook->call = call;
  td__object_add (&hook->object, hook_free);
  return hook;
}

void
td__opt_hooks_free (TdOptHook *hooks)
{
  while (hooks != NULL)
    {
      TdOptHook *next = hooks->next;

      hook_free (hooks);
      hooks = next;
    }
}

TdStatus
td__opt_run_hooks (TdOptHook *hooks, bool post, const TdOptHookCall *call)
{
  TdStatus status = TD_OK;

  for (TdOptHook *hook = hooks; hook != NULL && status == TD_OK; hook = hook->next)
    if (hook->post == post)
      status = hook->call (hook, call);
  return status;
}

/* --- the user's own --- */

static TdStatus
user_call (TdOptHook *hook, const TdOptHookCall *call)
{
  TdStatus status = TD_OK;

  for (int i = 0; i < call->n && status == TD_OK; i++)
    {
      TdOptSlot *slot = &call->slots[i];

      status = hook->user_call (hook->user, call->opt, slot->key, slot->at, slot->g);
      if (status == TD_OK)
        status = td__opt_slot_refresh (slot, call->site);
    }
  return status != TD_OK || !td__engine.has_error ? status : td__engine.error.status;
}

TdOptHook *
td_opt_hook_new (const char *name, TdOptHookFn call, void *user)
{
  TdOptHook *hook;

  if (name == NULL || call == NULL)
    td__fail (TD_ERR_ARG, "td_opt_hook_new", NULL, "a name and a function expected");
  hook = td__opt_hook_make (name != NULL ? name : "hook", user_call,
                            name != NULL && call != NULL, 0, 0, 0);
  if (!hook->inert)
    {
      hook->user_call = call;
      hook->user = user;
    }
  return hook;
}

/* --- adding and removing --- */

static TdOptHook *
find (TdOptHook *hooks, const char *name)
{
  while (hooks != NULL && strcmp (hooks->name, name) != 0)
    hooks = hooks->next;
  return hooks;
}

static void
append (TdOptHook **last, TdOptHook *hook)
{
  while (*last != NULL)
    last = &(*last)->next;
  *last = hook;
}

typedef struct
{
  TdOptHook *hook;
  uint64_t id;
  int n;
} Attach;

static void
choose_param (TdOpt *opt, const TdParam *param, void *user)
{
  Attach *a = user;

  (void)opt;
  a->id = param->id;
  a->n++;
}

static TdStatus
fail_add (const char *what, const char *why, const TdSite *site)
{
  return td__fail (TD_ERR_STATE, "td_opt_add_hook", site, "%.100s: %s", what, why);
}

/* Where the hook goes: the optimizer's list, or the rule's of one parameter. */
static TdOptHook **
list_for (TdOpt *opt, TdOptHook *hook, const char *key, const TdSite *site)
{
  Attach a = { hook, 0, 0 };

  if (key == NULL)
    return &opt->hooks;
  if (hook->whole)
    {
      fail_add (hook->name, "it sees all parameters together, it cannot be one parameter's",
                site);
      return NULL;
    }
  if (!td__opt_each_param (opt, key, "td_opt_add_hook", choose_param, &a))
    return NULL;
  if (a.n > 1)
    {
      fail_add (key, "a single parameter expected, this is a link with several", site);
      return NULL;
    }
  return &td__opt_rule_make (opt, a.id)->hooks;
}

TdStatus
td_opt_add_hook_at (TdOpt *opt, TdOptHook *hook, TdOptHookOpt options, const TdSite *site)
{
  TdOptHook **list;

  if (!td__opt_usable (opt, "td_opt_add_hook", site))
    return td__error_status ();
  if (hook == NULL || hook->inert)
    return fail_add ("hook",
                     hook != NULL && hook->object.freed
                         ? "it was freed"
                         : "it is inert: its constructor failed before",
                     site);
  if (hook->owner != NULL)
    return fail_add (hook->name, "the hook belongs to an optimizer already", site);
  list = list_for (opt, hook, options.param, site);
  if (list == NULL)
    return td__error_status ();
  if (options.name != NULL)
    {
      free (hook->name);
      hook->name = td__xstrdup (options.name);
    }
  if (find (*list, hook->name) != NULL)
    return fail_add (hook->name, "there is a hook of this name already", site);
  td__object_remove (&hook->object);
  hook->owner = opt;
  hook->post = options.timing == TD_OPT_HOOK_POST;
  append (list, hook);
  return TD_OK;
}

TdStatus (td_opt_add_hook) (TdOpt *opt, TdOptHook *hook)
{
  return td_opt_add_hook_at (opt, hook, (TdOptHookOpt){ TD_OPT_HOOK_DEFAULTS }, NULL);
}

static bool
take_out (TdOptHook **at, const char *name)
{
  for (; *at != NULL; at = &(*at)->next)
    if (strcmp ((*at)->name, name) == 0)
      {
        TdOptHook *hook = *at;

        *at = hook->next;
        hook_free (hook);
        return true;
      }
  return false;
}

TdStatus
td_opt_remove_hook (TdOpt *opt, const char *name)
{
  bool found;

  if (!td__opt_usable (opt, "td_opt_remove_hook", NULL))
    return td__error_status ();
  found = name != NULL && take_out (&opt->hooks, name);
  for (int i = 0; i < opt->n_rules && name != NULL && !found; i++)
    found = take_out (&opt->rules[i].hooks, name);
  return found ? TD_OK
               : td__fail (TD_ERR_ARG, "td_opt_remove_hook", NULL, "there is no hook %.100s",
                           name != NULL ? name : "(null)");
}
