/* A function before each forward of a link, under the name that PyTorch gave it.
 *
 * SPDX-License-Identifier: MIT */
#include "hooks.h"

#include <stdio.h>

typedef struct
{
  void (*function) (TdLink *link, TdVar *const *in, int n_in, void *user);
  void *user;
} PreHook;

static void
call_it (TdHook *hook, void *self, const TdLinkCall *call)
{
  const PreHook *p = self;

  (void)hook;
  p->function (call->link, call->in, call->n_in, p->user);
}

static const TdHookClass pre_hook_class = { .size = sizeof (TdHookClass),
                                            .name = "forward_pre_hook",
                                            .self_bytes = sizeof (PreHook),
                                            .link_forward_preprocess = call_it };

TdHook *
td_link_register_forward_pre_hook (TdLink *link,
                                   void (*function) (TdLink *link, TdVar *const *in, int n_in,
                                                     void *user),
                                   void *user)
{
  static uint64_t number;
  TdHook *hook;
  char name[48];

  if (td__stranger ("td_link_register_forward_pre_hook"))
    return td__hook_inert ();
  if (function == NULL)
    {
      td__fail (TD_ERR_ARG, "td_link_register_forward_pre_hook", td__engine.site,
                "the function is NULL");
      return td__hook_inert ();
    }
  hook = td_hook_new (&pre_hook_class);
  snprintf (name, sizeof name, "forward_pre_hook %llu", (unsigned long long)++number);
  hook->name = td__intern (name); /* a link may have any number of them */
  *(PreHook *)hook->self = (PreHook){ function, user };
  if (td_link_add_hook (link, hook) != TD_OK)
    {
      td_hook_free (hook);
      return td__hook_inert ();
    }
  return hook;
}
