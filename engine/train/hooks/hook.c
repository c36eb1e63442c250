/* Hooks as objects, and the places where they are registered.
 *
 * SPDX-License-Identifier: MIT */
#include "hooks.h"
#include "host-memory.h"

#include "../links/link.h"

#include <stdlib.h>
#include <string.h>

TdHooks td__hooks;

static const TdHookClass inert_class = { .size = sizeof (TdHookClass), .name = "inert" };

TdHook *
td__hook_inert (void)
{
  static TdHook inert;

  inert.cls = &inert_class;
  inert.name = "inert";
  return &inert;
}

static bool
usable (const TdHook *hook, const char *call)
{
  if (td__stranger (call))
    return false;
  if (hook != NULL && hook->cls != &inert_class && !hook->dead)
    return true;
  td__fail (TD_ERR_STATE, call, td__engine.site, "%s",
            hook == NULL ? "the hook is NULL"
            : hook->dead ? "the hook was freed"
                         : "the hook is inert: its making failed");
  return false;
}

/* Calls are remembered for hooks that see their backward: without hooks, for nobody. */
void
td__hooks_refresh (void)
{
  if (td__hooks.n == 0 && td__hooks.walks == 0)
    td__hooks_records_clear ();
  td__engine.hooks = td__hooks.suspended == 0 && (td__hooks.n > 0 || td__hooks.n_records > 0)
                         ? &td__hook_table
                         : NULL;
}

TdHook *
td_hook_new (const TdHookClass *cls)
{
  TdHook *hook;

  if (!td__ensure_started () || td__check_thread ("td_hook_new") != TD_OK)
    return td__hook_inert ();
  if (cls == NULL || cls->size != sizeof *cls || cls->name == NULL)
    {
      td__fail (TD_ERR_ARG, "td_hook_new", td__engine.site,
                "a hook class has its size and a name");
      return td__hook_inert ();
    }
  hook = td__xcalloc (1, sizeof *hook);
  hook->cls = cls;
  hook->name = td__intern (cls->name);
  hook->self = td__xcalloc (1, cls->self_bytes);
  td__object_add (&hook->object, (void (*) (void *))td_hook_free);
  return hook;
}

void *
td_hook_self (TdHook *hook)
{
  return td__stranger ("td_hook_self") || hook == NULL ? NULL : hook->self;
}

const char *
td_hook_name (const TdHook *hook)
{
  return td__stranger ("td_hook_name") || hook == NULL ? "" : hook->name;
}

/* Forget the entries that were taken away while hooks ran. */
static void
compact (void)
{
  int kept = 0;

  if (td__hooks.running > 0)
    return;
  for (int i = 0; i < td__hooks.n; i++)
    if (td__hooks.entries[i].hook != NULL)
      td__hooks.entries[kept++] = td__hooks.entries[i];
  td__hooks.n = kept;
}

static void
notify_place (TdHook *hook, void (*function) (TdHook *, void *, TdLink *), TdLink *link)
{
  TdHookFrame frame;

  if (function == NULL)
    return;
  frame = td__hook_enter (hook, false);
  function (hook, hook->self, link);
  td__hook_leave (hook, &frame, false);
}

static void
take_away (TdHookEntry *entry, TdLink *link)
{
  TdHook *hook = entry->hook;

  entry->hook = NULL;
  notify_place (hook, hook->cls->deleted, link);
}

static bool
same_place (const TdHookEntry *a, const TdHookEntry *b)
{
  return a->op_id == b->op_id && a->link_id == b->link_id
         && (a->op_name == b->op_name
             || (a->op_name != NULL && b->op_name != NULL
                 && strcmp (a->op_name, b->op_name) == 0));
}

/* A link goes: its hooks hear `deleted`. */
static void
link_gone (TdLink *link, uint64_t link_id)
{
  for (int i = 0; i < td__hooks.n; i++)
    if (td__hooks.entries[i].hook != NULL && td__hooks.entries[i].link_id == link_id)
      take_away (&td__hooks.entries[i], link);
  compact ();
  td__hooks_refresh ();
}

static TdStatus
add (TdHookEntry place, TdLink *link, const char *call)
{
  TdHooks *h = &td__hooks;

  if (!usable (place.hook, call))
    return td__error_status ();
  for (int i = 0; i < h->n; i++)
    if (h->entries[i].hook != NULL && same_place (&h->entries[i], &place)
        && strcmp (h->entries[i].hook->name, place.hook->name) == 0)
      return td__fail (TD_ERR_ARG, call, td__engine.site,
                       "a hook named %s is registered there already", place.hook->name);
  if (h->n == h->capacity)
    {
      h->capacity = h->capacity > 0 ? 2 * h->capacity : 8;
      h->entries = td__xrealloc (h->entries, (size_t)h->capacity * sizeof *h->entries);
    }
  h->entries[h->n++] = place;
  if (place.link_id != 0)
    td__link_gone = link_gone;
  td__hooks_refresh ();
  notify_place (place.hook, place.hook->cls->added, link);
  return TD_OK;
}

TdStatus
td_hook_add (TdHook *hook)
{
  return add ((TdHookEntry){ .hook = hook }, NULL, "td_hook_add");
}

TdStatus
td_hook_add_to_op (TdHook *hook, const char *op_name)
{
  if (op_name == NULL || *op_name == '\0')
    return td__fail (TD_ERR_ARG, "td_hook_add_to_op", td__engine.site,
                     "the name of an operation expected");
  return add ((TdHookEntry){ .hook = hook, .op_name = td__intern (op_name) }, NULL,
              "td_hook_add_to_op");
}

TdStatus
td_hook_add_to_creator (TdHook *hook, TdVar *y)
{
  if (!td__var_usable (y, "td_hook_add_to_creator", td__engine.site))
    return td__error_status ();
  if (y->node->creator == NULL)
    return td__fail (TD_ERR_ARG, "td_hook_add_to_creator", td__engine.site,
                     "a variable that an operation made expected, with its graph");
  return add ((TdHookEntry){ .hook = hook, .op_id = y->node->creator->id }, NULL,
              "td_hook_add_to_creator");
}

TdStatus
td_link_add_hook (TdLink *link, TdHook *hook)
{
  if (!td__link_usable (link, "td_link_add_hook", td__engine.site))
    return td__error_status ();
  return add ((TdHookEntry){ .hook = hook, .link_id = link->id }, link, "td_link_add_hook");
}

/* Take away the hook's entries: all, or that of one link. */
static int
remove_entries (const TdHook *hook, uint64_t link_id)
{
  int n = 0;

  for (int i = 0; i < td__hooks.n; i++)
    {
      TdHookEntry *entry = &td__hooks.entries[i];

      if (entry->hook != hook || (link_id != 0 && entry->link_id != link_id))
        continue;
      take_away (entry, entry->link_id != 0 ? td__link_by_id (entry->link_id) : NULL);
      n++;
    }
  compact ();
  td__hooks_refresh ();
  return n;
}

TdStatus
td_link_remove_hook (TdLink *link, TdHook *hook)
{
  if (!td__link_usable (link, "td_link_remove_hook", td__engine.site)
      || !usable (hook, "td_link_remove_hook"))
    return td__error_status ();
  if (remove_entries (hook, link->id) == 0)
    return td__fail (TD_ERR_ARG, "td_link_remove_hook", td__engine.site, "%s has no hook %s",
                     link->path->text, hook->name);
  return TD_OK;
}

TdStatus
td_hook_remove (TdHook *hook)
{
  if (!usable (hook, "td_hook_remove"))
    return td__error_status ();
  if (remove_entries (hook, 0) == 0)
    return td__fail (TD_ERR_ARG, "td_hook_remove", td__engine.site,
                     "the hook %s is registered nowhere", hook->name);
  return TD_OK;
}

static void
destroy (TdHook *hook)
{
  if (hook->cls->free != NULL)
    hook->cls->free (hook->self);
  free (hook->self);
  *hook = (TdHook){ .cls = &inert_class, .name = "freed", .dead = true };
  td__shell_keep (hook);
}

void
td_hook_free (TdHook *hook)
{
  if (td__stranger ("td_hook_free") || hook == NULL || hook->cls == &inert_class || hook->dead
      || !td__engine.started)
    return;
  hook->busy++; /* `deleted` may not free it again */
  remove_entries (hook, 0);
  hook->busy--;
  td__object_remove (&hook->object);
  hook->dead = true;
  if (hook->busy == 0)
    destroy (hook);
}

TdHookFrame
td__hook_enter (TdHook *hook, bool own_graph)
{
  TdEngine *e = &td__engine;
  TdHookFrame frame = { .site = e->site,
                        .call_site = e->call_site,
                        .path = e->path,
                        .twin = e->twin,
                        .twin_id = e->twin_id,
                        .order = e->order,
                        .phase = e->phase,
                        .enable_backprop = e->config.enable_backprop };

  hook->busy++;
  if (own_graph)
    return frame;
  td__hooks.suspended++;
  td__hooks_refresh ();
  e->config.enable_backprop = 0;
  e->phase = TD_PHASE_FORWARD;
  e->twin = NULL;
  e->twin_id = 0;
  frame.scope = td_scope_open_at (hook->name, e->site);
  return frame;
}

void
td__hook_leave (TdHook *hook, TdHookFrame *frame, bool own_graph)
{
  TdEngine *e = &td__engine;

  e->site = frame->site;
  e->call_site = frame->call_site;
  e->path = frame->path;
  if (!own_graph)
    {
      td_scope_close (frame->scope);
      e->config.enable_backprop = frame->enable_backprop;
      e->phase = frame->phase;
      e->twin = frame->twin;
      e->twin_id = frame->twin_id;
      e->order = frame->order;
      td__hooks.suspended--;
      td__hooks_refresh ();
    }
  if (--hook->busy == 0 && hook->dead)
    destroy (hook);
}

void
td__hooks_finish (void)
{
  td__hooks_records_clear ();
  free (td__hooks.entries);
  memset (&td__hooks, 0, sizeof td__hooks);
  td__link_gone = NULL;
}

TdHook *
td__hook_push (TdHook *hook)
{
  return td_hook_add (hook) == TD_OK ? hook : NULL;
}

void
td__hook_pop (TdHook **hook)
{
  if (td__stranger ("TD_WITH_HOOK") || hook == NULL || *hook == NULL || !td__engine.started)
    return;
  for (int i = 0; i < td__hooks.n; i++)
    {
      TdHookEntry *entry = &td__hooks.entries[i];

      if (entry->hook == *hook && same_place (entry, &(TdHookEntry){ 0 }))
        take_away (entry, NULL);
    }
  compact ();
  td__hooks_refresh ();
}
