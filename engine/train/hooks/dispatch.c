/* Calling hooks: who of the registered ones hears of an operation or of a link's call.
 *
 * SPDX-License-Identifier: MIT */
#include "hooks.h"

#include "../links/link.h"

#include <string.h>

typedef void (*FunctionHook) (TdHook *hook, void *self, const TdFunctionCall *call);
typedef void (*LinkHook) (TdHook *hook, void *self, const TdLinkCall *call);

static FunctionHook
function_hook (const TdHookClass *cls, TdMoment moment)
{
  const FunctionHook hooks[TD_MOMENT_N] = {
    [TD_MOMENT_FORWARD_PRE] = cls->forward_preprocess,
    [TD_MOMENT_FORWARD_POST] = cls->forward_postprocess,
    [TD_MOMENT_BACKWARD_PRE] = cls->backward_preprocess,
    [TD_MOMENT_BACKWARD_POST] = cls->backward_postprocess,
  };

  return hooks[moment];
}

static LinkHook
link_hook (const TdHookClass *cls, TdMoment moment)
{
  const LinkHook hooks[TD_MOMENT_N] = {
    [TD_MOMENT_FORWARD_PRE] = cls->link_forward_preprocess,
    [TD_MOMENT_FORWARD_POST] = cls->link_forward_postprocess,
    [TD_MOMENT_BACKWARD_PRE] = cls->link_backward_preprocess,
    [TD_MOMENT_BACKWARD_POST] = cls->link_backward_postprocess,
  };

  return hooks[moment];
}

/* Hooks may be registered and unregistered by hooks: those that come meanwhile wait for the
 * next moment, those that go are not called any more. */
static void
begin (void)
{
  td__hooks.running++;
}

static void
end (void)
{
  int kept = 0;

  if (--td__hooks.running > 0)
    return;
  for (int i = 0; i < td__hooks.n; i++)
    if (td__hooks.entries[i].hook != NULL)
      td__hooks.entries[kept++] = td__hooks.entries[i];
  td__hooks.n = kept;
  td__hooks_refresh ();
}

static void
call_function (TdMoment moment, TdFunctionCall *call)
{
  int n = td__hooks.n;

  if (td__engine.hooks == NULL) /* an earlier moment's hook took the last one away */
    return;
  begin ();
  for (int i = 0; i < n; i++)
    {
      const TdHookEntry entry = td__hooks.entries[i];
      FunctionHook function
          = entry.hook != NULL ? function_hook (entry.hook->cls, moment) : NULL;
      TdHookFrame frame;

      if (function == NULL || entry.link_id != 0
          || (entry.op_name != NULL && strcmp (entry.op_name, call->name) != 0)
          || (entry.op_id != 0 && entry.op_id != call->id))
        continue;
      frame = td__hook_enter (entry.hook, false);
      function (entry.hook, entry.hook->self, call);
      td__hook_leave (entry.hook, &frame, false);
    }
  end ();
}

static bool
sees_steps (void)
{
  for (int i = 0; i < td__hooks.n; i++)
    {
      const TdHookEntry *entry = &td__hooks.entries[i];

      for (int moment = 0; moment < TD_MOMENT_N && entry->hook != NULL; moment++)
        if (entry->link_id == 0 && entry->op_id == 0 && entry->op_name == NULL
            && function_hook (entry->hook->cls, (TdMoment)moment) != NULL)
          return true;
    }
  return false;
}

static bool
hears (const TdHookEntry *entry, uint64_t link_id)
{
  return entry->hook != NULL && entry->op_name == NULL && entry->op_id == 0
         && (entry->link_id == 0 || entry->link_id == link_id);
}

static bool
link_wanted (uint64_t link_id)
{
  for (int i = 0; i < td__hooks.n; i++)
    if (hears (&td__hooks.entries[i], link_id))
      return true;
  return false;
}

void
td__hooks_link (TdMoment moment, uint64_t link_id, TdLinkCall *call)
{
  int n = td__hooks.n;

  begin ();
  for (int i = 0; i < n; i++)
    {
      const TdHookEntry entry = td__hooks.entries[i];
      LinkHook function = hears (&entry, link_id) ? link_hook (entry.hook->cls, moment) : NULL;
      bool own_graph = function != NULL && (entry.hook->cls->flags & TD_HOOK_GRAPH) != 0
                       && moment == TD_MOMENT_FORWARD_PRE;
      TdHookFrame frame;

      if (function == NULL)
        continue;
      frame = td__hook_enter (entry.hook, own_graph);
      function (entry.hook, entry.hook->self, call);
      td__hook_leave (entry.hook, &frame, own_graph);
    }
  end ();
}

const TdHookTable td__hook_table = {
  .function = call_function,
  .sees_steps = sees_steps,
  .backward_begin = td__hooks_backward_begin,
  .backward_reach = td__hooks_backward_reach,
  .backward_made = td__hooks_backward_made,
  .backward_end = td__hooks_backward_end,
  .link_wanted = link_wanted,
  .link = td__hooks_link,
  .link_record = td__hooks_link_record,
};
