/* Handles: how they are made, held, given up, and recognised after death.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"
#include "host-memory.h"
#include "inside.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Dead handles beyond this number are reused before their time, oldest first. */
enum
{
  QUARANTINE_MAX = 1 << 20,
  QUARANTINE_MAX_OUTSIDE = 1 << 14
};

TdVar *
td__var_of (TdDtype dtype, const TdShape *shape, TdBuffer *buffer, const TdSite *site)
{
  TdNode *node = td__node_new ();

  node->dtype = (uint8_t)dtype;
  node->shape = *shape;
  node->device = buffer->device;
  node->category = buffer->category;
  return td__var_new (node, buffer, site != NULL ? site : td__engine.site);
}

TdVar *
td__var_leaf (TdDtype dtype, const TdShape *shape, TdDevice *device, TdMemCategory category,
              const TdSite *site)
{
  size_t bytes;
  char text[200];
  TdBuffer *buffer;

  if (!td__shape_bytes (shape, dtype, &bytes))
    {
      td__fail (TD_ERR_SHAPE, "array", site, "%s %s is no size an array can have",
                td_shape_text (shape, text, sizeof text), td_dtype_name (dtype));
      return NULL;
    }
  buffer = td__buffer_new (device, bytes, category);
  if (buffer == NULL)
    {
      td__fail_memory_of (device, shape, dtype, "array", site);
      return NULL;
    }
  return td__var_of (dtype, shape, buffer, site);
}

static void
quarantine_reuse_oldest (void)
{
  TdEngine *e = &td__engine;
  TdVar *v = e->quarantine_head;

  e->quarantine_head = v->next;
  if (e->quarantine_head == NULL)
    e->quarantine_tail = NULL;
  e->n_quarantined--;
  v->state = TD_VAR_FREE;
  td__slab_release (&e->vars, v);
  e->vars.live++; /* it was counted out when it died */
}

void
td__quarantine_age (void)
{
  TdEngine *e = &td__engine;

  while (e->quarantine_head != NULL
         && (int64_t)e->quarantine_head->died_iteration < e->n_iterations)
    quarantine_reuse_oldest ();
}

static void
var_die (TdVar *v)
{
  TdEngine *e = &td__engine;
  TdNode *node = v->node;
  TdVar *grad = v->grad;

  v->state = TD_VAR_DEAD;
  v->died_iteration = (uint32_t)e->n_iterations;
  v->retained_site = e->scope->site;
  v->scope_index = -1;
  v->node = NULL;
  v->grad = NULL;
  node->var = NULL;
  td__buffer_unref (v->buffer);
  v->buffer = NULL;
  v->next = NULL;
  if (e->quarantine_tail != NULL)
    e->quarantine_tail->next = v;
  else
    e->quarantine_head = v;
  e->quarantine_tail = v;
  e->vars.live--;
  if (++e->n_quarantined > (size_t)(e->in_iteration ? QUARANTINE_MAX : QUARANTINE_MAX_OUTSIDE))
    quarantine_reuse_oldest ();
  td__node_unref (node);
  if (grad != NULL)
    td__var_unref (grad, TD_HOLD_GRADIENT);
}

/* Handles outlive the engine, so that one that is used after td_finish is recognised. */
static TdSlab finished;

void
td__vars_start (void)
{
  td__slab_init (&td__engine.vars, sizeof (TdVar));
  if (finished.n_chunks > 0)
    td__engine.vars = finished;
  td__slab_init (&finished, sizeof (TdVar));
}

void
td__vars_finish (void)
{
  TdSlab *slab = &td__engine.vars;

  slab->free = NULL;
  slab->live = 0;
  for (size_t c = 0; c < slab->n_chunks; c++)
    for (int i = TD_SLAB_ITEMS - 1; i >= 0; i--)
      {
        TdVar *v = (TdVar *)((char *)slab->chunks[c] + (size_t)i * slab->item_bytes);

        *v = (TdVar){ .next = slab->free, .state = TD_VAR_FREE, .flags = TD_VAR_FINISHED };
        slab->free = v;
      }
  finished = *slab;
}

TdVar *
td__var_ref (TdVar *v, TdHold hold)
{
  if (v->state == TD_VAR_LIVE)
    {
      v->holds[hold]++;
      v->refs++;
    }
  return v;
}

#ifndef NDEBUG
/* Nobody holds a handle without a kind: a reference that nothing explains is a leak to be. */
static bool
every_hold_is_known (const TdVar *v)
{
  uint32_t sum = 0;

  for (int i = 0; i < TD_HOLD_N; i++)
    sum += v->holds[i];
  return sum == v->refs;
}
#endif

void
td__var_unref (TdVar *v, TdHold hold)
{
  if (v->state != TD_VAR_LIVE)
    return;
  assert (v->holds[hold] > 0);
  assert (every_hold_is_known (v));
  v->holds[hold]--;
  if (--v->refs == 0)
    var_die (v);
}

bool (td__var_usable) (const TdVar *v, const char *call, const TdSite *site)
{
  if (TD_UNLIKELY (!td__on_engine_thread ()) && td__check_thread (call) != TD_OK)
    return false;
  if (TD_LIKELY (v != NULL && v->state == TD_VAR_LIVE))
    return true;
  if (v == NULL)
    td__fail (TD_ERR_ARG, call, site, "a variable is NULL");
  else if (v->state == TD_VAR_DEAD || v->state == TD_VAR_FREE)
    {
      const TdSite *made = v->state == TD_VAR_DEAD ? v->site : NULL, *end = v->retained_site;
      char with[40] = "", where[200] = "";

      if (v->died_iteration > 0) /* else outside of all, perhaps with its link */
        snprintf (with, sizeof with, " with iteration %ld", (long)v->died_iteration - 1);
      if (end != NULL)
        snprintf (where, sizeof where, " (%.180s:%d)", end->file, end->line);
      if (v->flags & TD_VAR_FINISHED)
        td__fail (TD_ERR_STATE, call, site, "a variable is used after td_finish");
      else if (made == NULL)
        td__fail (TD_ERR_STATE, call, site,
                  "a variable is used long after it died: td_retain it");
      else
        td__fail (TD_ERR_STATE, call, site, "%s, made at %s:%d, died%s%s: td_retain it",
                  v->name != NULL ? v->name : "a variable", made->file, made->line, with,
                  where);
    }
  return false; /* poison: the first error is recorded already */
}

TdVar *
td_retain_at (TdVar *v, const TdSite *site)
{
  if (v != NULL && v->state == TD_VAR_POISON)
    return v;
  if (!td__var_usable (v, "td_retain", site))
    return td__poison ();
  if (TD_UNLIKELY (td__engine.tracer != NULL && site != NULL))
    td__engine.tracer->refuse (td__engine.tracer, "td_retain", site);
  v->retained_site = site;
  return td__var_ref (v, TD_HOLD_USER);
}

TdVar *(td_retain)(TdVar *v)
{
  return td_retain_at (v, NULL);
}

void
td_release (TdVar *v)
{
  if (v == NULL || v->state == TD_VAR_POISON || !td__engine.started
      || !td__var_usable (v, "td_release", NULL))
    return;
  if (v->holds[TD_HOLD_USER] == 0)
    td__fail (TD_ERR_STATE, "td_release", NULL, "%s was released more often than retained",
              v->name != NULL ? v->name : "a variable");
  else
    {
      if (v->holds[TD_HOLD_USER] == 1)
        v->retained_site = NULL; /* who holds it besides does so from elsewhere */
      td__var_unref (v, TD_HOLD_USER);
    }
}

TdVar *
td_variable_at (TdVar *v, const char *name, const TdSite *site)
{
  if (v != NULL && v->state == TD_VAR_POISON)
    return v;
  if (!td__var_usable (v, "td_variable", site))
    return td__poison ();
  td_unchain (v);
  if (site != NULL)
    v->site = site;
  v->node->requires_grad = v->node->dtype <= TD_BF16;
  return name != NULL ? td_name (v, name) : v;
}

TdVar *(td_variable)(TdVar *v, const char *name)
{
  return td_variable_at (v, name, NULL);
}

TdVar *
td_name (TdVar *v, const char *name)
{
  TdEngine *e = &td__engine;

  if (v != NULL && v->state == TD_VAR_POISON)
    return v;
  if (!td__var_usable (v, "td_name", NULL))
    return td__poison ();
  v->name = name == NULL ? NULL : td__intern (name);
  v->node->name = v->name;
  if (e->observer != NULL && v->node->is_leaf_known)
    e->observer->name (e->observer, v->node, v->name);
  return v;
}

static const TdShape no_shape = { 0, { 0 } };

static inline bool
looks (const TdVar *v, const char *call)
{
  if (!td__var_usable (v, call, NULL))
    return false;
  if (TD_UNLIKELY (td__engine.tracer != NULL))
    td__engine.tracer->looked (td__engine.tracer, (TdVar *)(uintptr_t)v);
  return true;
}

TdShape
td_shape (const TdVar *v)
{
  return looks (v, "td_shape") ? v->node->shape : no_shape;
}

int
td_ndim (const TdVar *v)
{
  return looks (v, "td_ndim") ? v->node->shape.ndim : 0;
}

int64_t
td_size (const TdVar *v)
{
  return looks (v, "td_size") ? td_shape_size (&v->node->shape) : 0;
}

TdDtype
td_dtype (const TdVar *v)
{
  return looks (v, "td_dtype") ? (TdDtype)v->node->dtype : TD_F32;
}

TdDevice *
td_device (const TdVar *v)
{
  return looks (v, "td_device") ? v->node->device : td__engine.device;
}

TdVar *
td_grad (const TdVar *v)
{
  return td__var_usable (v, "td_grad", NULL) && !td__asked ("td_grad") ? v->grad : NULL;
}

void
td__mark_scaled (TdVar *const *in, int n_in, TdVar *const *out, int n_out)
{
  uint16_t by = TD_SCALED_BY_NONE;

  for (int i = 0; i < n_in; i++)
    if (in[i]->scaled_by != TD_SCALED_BY_NONE)
      by = by == TD_SCALED_BY_NONE ? in[i]->scaled_by
                                   : td__scaled_by_both (by, in[i]->scaled_by);
  for (int i = 0; i < n_out; i++)
    out[i]->scaled_by = by;
}

/* Whether it was to be divided at the update, nobody knows: as it is computed from the one that
 * is there, it may be, and as it is the program's own, it may not. */
static TdStatus
refuse_scaled (const TdVar *v, bool given)
{
  return td__fail (
      TD_ERR_STATE, "td_set_grad", NULL,
      given ? "the gradient for %s is computed from one that is times a loss scale: "
              "do that in a hook of the optimizer, which sees it divided"
            : "the gradient of %s is times a loss scale, and another would not be: "
              "change it in a hook of the optimizer, which sees it divided, or clear "
              "it before",
      v->name != NULL ? v->name : "a variable");
}

TdStatus
td_set_grad (TdVar *v, TdVar *g)
{
  if (TD_UNLIKELY (td__engine.has_scaled) && td__var_usable (v, "td_set_grad", NULL)
      && g != NULL && td__var_usable (g, "td_set_grad", NULL) && g != v->grad
      && (g->scaled_by != TD_SCALED_BY_NONE
          || (v->grad != NULL && v->grad->scaled_by != TD_SCALED_BY_NONE)))
    return refuse_scaled (v, g->scaled_by != TD_SCALED_BY_NONE);
  return td__put_grad (v, g);
}

TdStatus
td__put_grad (TdVar *v, TdVar *g)
{
  char a[160], b[160];

  if (!td__var_usable (v, "td_set_grad", NULL))
    return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  if (TD_UNLIKELY (td__engine.tracer != NULL))
    td__engine.tracer->refuse (td__engine.tracer, "td_set_grad", NULL);
  if (g != NULL)
    {
      if (!td__var_usable (g, "td_set_grad", NULL))
        return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
      if (!td_shape_equal (&v->node->shape, &g->node->shape)
          || v->node->dtype != g->node->dtype)
        return td__fail (
            TD_ERR_SHAPE, "td_set_grad", NULL,
            "a gradient has its variable's shape and dtype: %s %s expected, got %s %s",
            td_shape_text (&v->node->shape, a, sizeof a), td_dtype_name (v->node->dtype),
            td_shape_text (&g->node->shape, b, sizeof b), td_dtype_name (g->node->dtype));
      g = td__to_layout (g, (TdLayout)v->node->layout, NULL);
      if (td_poisoned (g))
        return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
      td__var_ref (g, TD_HOLD_GRADIENT);
    }
  if (v->grad != NULL)
    td__var_unref (v->grad, TD_HOLD_GRADIENT);
  v->grad = g;
  return TD_OK;
}

void
td_cleargrad (TdVar *v)
{
  if (td__var_usable (v, "td_cleargrad", NULL) && v->grad != NULL)
    td_set_grad (v, NULL);
}

/* What is cut may be inside of what a static function's replay left as one operation. */
static void
show_graph (const TdNode *n)
{
  const TdStaticTable *statics = td__engine.statics;

  if (TD_UNLIKELY (statics != NULL) && n->creator != NULL
      && (n->creator->cls->flags & TD_OP_CAPTURES))
    statics->expand (n->creator);
}

void
td_unchain (TdVar *v)
{
  TdEngine *e = &td__engine;
  TdNode *n;

  if (!td__var_usable (v, "td_unchain", NULL) || v->node->creator == NULL)
    return;
  n = v->node;
  if (e->observer != NULL)
    e->observer->unchain (e->observer, n, e->site);
  if (TD_UNLIKELY (e->tracer != NULL))
    e->tracer->refuse (e->tracer, "td_unchain", NULL);
  show_graph (n);
  td__node_cut (n);
}

void
td_unchain_backward (TdVar *v)
{
  TdEngine *e = &td__engine;
  TdOp **stack;
  size_t n = 0, capacity = 64;

  if (!td__var_usable (v, "td_unchain_backward", NULL) || v->node->creator == NULL)
    return;
  if (e->observer != NULL)
    e->observer->unchain (e->observer, v->node, e->site);
  if (TD_UNLIKELY (e->tracer != NULL))
    e->tracer->refuse (e->tracer, "td_unchain_backward", NULL);
  stack = malloc (capacity * sizeof (TdOp *));
  if (stack == NULL)
    return;
  show_graph (v->node);
  stack[n++] = v->node->creator;
  stack[0]->refs++;
  while (n > 0)
    {
      TdOp *op = stack[--n];

      for (int i = 0; i < op->n_in; i++)
        {
          TdOp *creator;

          show_graph (op->in[i]);
          creator = op->in[i]->creator;
          if (creator == NULL || creator->mark == UINT32_MAX)
            continue;
          if (n == capacity)
            {
              TdOp **more = td__xrealloc (stack, 2 * capacity * sizeof (TdOp *));

              stack = more;
              capacity *= 2;
            }
          creator->mark = UINT32_MAX; /* on the stack once */
          creator->refs++;
          stack[n++] = creator;
        }
      td__op_cut (op);
      td__op_unref (op);
    }
  free (stack);
}
