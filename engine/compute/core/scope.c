/* Scopes and iterations: who owns what a call returns, and when it dies.
 *
 * All scopes share one stack of handles; a scope is the part above its start.  Links, blocks of
 * the user's program and iterations are scopes.
 *
 * SPDX-License-Identifier: MIT */
#include "async-index.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>

void
td__scope_grow (void)
{
  TdEngine *e = &td__engine;
  size_t capacity = e->scope_capacity == 0 ? 1024 : 2 * e->scope_capacity;
  TdVar **vars = td__xrealloc (e->scope_vars, capacity * sizeof *vars);

  e->scope_vars = vars;
  e->scope_capacity = capacity;
}

/* Take v out of the scope that owns it: whoever called holds it now. */
void
td__scope_hand_out (TdVar *v)
{
  TdEngine *e = &td__engine;
  size_t i = (size_t)v->scope_index;

  if (v->holds[TD_HOLD_SCOPE] > 0 && i < e->n_scope_vars && e->scope_vars[i] == v)
    {
      e->scope_vars[i] = NULL;
      td__var_unref (v, TD_HOLD_SCOPE);
    }
}

TdScope *
td_scope_open_at (const char *name, const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdScope *s;

  if (!td__ensure_started () || td__check_thread ("td_scope_open") != TD_OK)
    return NULL;
  s = td__xcalloc (1, sizeof *s);
  s->name = name == NULL ? NULL : td__intern (name);
  s->site = site;
  s->start = e->n_scope_vars;
  s->instance = ++e->next_scope_id;
  s->outer = e->scope;
  s->depth = e->scope->depth + 1;
  e->scope = s;
  if (TD_UNLIKELY (e->observer != NULL))
    e->observer->scope (e->observer, true, s);
  if (TD_UNLIKELY (e->tracer != NULL))
    e->tracer->scope (e->tracer, true, s);
  return s;
}

TdScope *(td_scope_open)(const char *name)
{
  return td_scope_open_at (name, NULL);
}

/* Close the innermost scope: what was not yielded loses the scope's reference, newest first;
 * the rest moves down and so becomes the outer scope's. */
static void
close_innermost (TdScope *s)
{
  TdEngine *e = &td__engine;
  size_t keep = s->start, n_yielded = 0;

  for (size_t i = e->n_scope_vars; i > s->start; i--)
    {
      TdVar *v = e->scope_vars[i - 1];

      if (v == NULL)
        continue;
      if (TD_UNLIKELY (v->flags & TD_VAR_YIELDED))
        {
          n_yielded++;
          continue;
        }
      e->scope_vars[i - 1] = NULL;
      v->scope_index = -1;
      td__var_unref (v, TD_HOLD_SCOPE);
    }
  for (size_t i = s->start; i < e->n_scope_vars && n_yielded > 0; i++)
    {
      TdVar *v = e->scope_vars[i];

      if (v == NULL)
        continue;
      n_yielded--;
      v->flags &= (uint8_t)~TD_VAR_YIELDED;
      v->scope_index = (int64_t)keep;
      e->scope_vars[keep++] = v;
    }
  e->n_scope_vars = keep;
}

static void
iteration_close (void)
{
  TdEngine *e = &td__engine;

  td__index_iteration_ends ();
  if (e->observer != NULL)
    e->observer->iteration (e->observer, false, e->iteration, 0, e->iteration_site);
  e->in_iteration = false;
  td__quarantine_age ();
}

/* Whether scope is open.  Only compared: one that was closed is memory given back. */
static bool
is_open (const TdScope *scope)
{
  const TdScope *s = td__engine.scope;

  while (s != NULL && s != scope)
    s = s->outer;
  return s != NULL && s != &td__engine.root_scope;
}

/* Close scope and what is open within it, innermost first. */
static void
close_to (TdScope *scope)
{
  TdEngine *e = &td__engine;
  TdScope *s;

  do
    {
      s = e->scope;
      close_innermost (s);
      e->scope = s->outer;
      if (TD_UNLIKELY (e->observer != NULL))
        e->observer->scope (e->observer, false, s);
      if (TD_UNLIKELY (e->tracer != NULL))
        e->tracer->scope (e->tracer, false, s);
      if (s->is_iteration)
        iteration_close ();
      if (s != scope)
        free (s);
    }
  while (s != scope);
  bool last
      = scope->is_iteration && e->iteration_limit > 0 && e->n_iterations >= e->iteration_limit;
  free (scope);
  if (last)
    exit (e->finish ());
}

void
td_scope_close (TdScope *scope)
{
  if (scope == NULL || td__stranger ("td_scope_close") || !td__engine.started)
    return; /* td_finish closed them all */
  if (is_open (scope))
    close_to (scope);
  else
    td__fail (TD_ERR_STATE, "td_scope_close", NULL,
              "not an open scope: it was closed before, with its outer one perhaps");
}

void
td__scope_cleanup (TdScope **scope)
{
  if (scope == NULL)
    return;
  /* A block that called td_finish itself ends later than its scope, and that is no mistake. */
  if (*scope != NULL && td__engine.started && !td__stranger ("td_scope_close")
      && is_open (*scope))
    close_to (*scope);
  *scope = NULL;
}

TdScope *
td__iteration_begin (int64_t label, const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdScope *s;

  if (!td__ensure_started () || td__check_thread ("TD_ITERATION") != TD_OK)
    return NULL;
  if (e->in_iteration)
    {
      td__fail (TD_ERR_STATE, "TD_ITERATION", site,
                "iterations do not nest: %s:%d is still open when %s:%d begins",
                e->iteration_site->file, e->iteration_site->line, site->file, site->line);
      return td_scope_open_at ("nested iteration", site);
    }
  e->in_iteration = true;
  e->iteration_site = site;
  e->iteration_node = e->next_node_id;
  e->iteration = e->n_iterations++;
  if (e->observer != NULL)
    e->observer->iteration (e->observer, true, e->iteration, label, site);
  s = td_scope_open_at ("iteration", site);
  s->is_iteration = true;
  return s;
}

TdVar *
td_scope_yield (TdVar *v)
{
  TdEngine *e = &td__engine;

  if (v != NULL && v->state == TD_VAR_POISON)
    return v;
  if (!td__var_usable (v, "td_scope_yield", NULL))
    return td__poison ();
  if (v->scope_index >= (int64_t)e->scope->start && v->holds[TD_HOLD_SCOPE] > 0)
    v->flags |= TD_VAR_YIELDED;
  return v;
}
