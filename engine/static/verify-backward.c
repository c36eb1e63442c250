/* The backward of a verified call: that of the code's own graph runs first, among itself, then
 * the schedule's.  Each goes on from the gradients that were collected outside before, the
 * code's from copies of them: where a product adds to what is there before it rounds, the same
 * numbers in another order are another sum.  So what is compared are the sums, and those of the
 * schedule are there already when they are the same; otherwise what was there before is put
 * back.
 *
 * SPDX-License-Identifier: MIT */
#include "verify.h"
#include "host-memory.h"

#include "compute/core/copies.h"

#include "replay.h"
#include "notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct TdCodeGraph
{
  TdTrace *trace; /* of the code, over */
  TdVar **outs;   /* its results, held: they hold its graph */
  uint32_t n_outs;
};

TdCodeGraph *
td__code_graph_new (TdTrace *trace, TdVar **outs, uint32_t n_outs)
{
  TdCodeGraph *code_graph = td__xcalloc (1, sizeof *code_graph);

  *code_graph = (TdCodeGraph){ trace, outs, n_outs };
  td__trace_keep_no_more (trace);
  td__guards_free (trace->guards);
  trace->guards = NULL;
  return code_graph;
}

void
td__code_graph_free (TdCodeGraph *code_graph)
{
  if (code_graph == NULL)
    return;
  for (uint32_t k = 0; k < code_graph->n_outs; k++)
    if (code_graph->outs[k]->state != TD_VAR_POISON)
      td__var_unref (code_graph->outs[k], TD_HOLD_ENGINE);
  free (code_graph->outs);
  td__static_untrace (code_graph->trace);
  free (code_graph);
}

/* --- the code's backward --- */

/* An external while another walk goes through the graph above it: to that it is a leaf without
 * a gradient, or with a copy of what was collected before. */
typedef struct
{
  TdNode *node;
  TdVar *acc, *gx; /* gx: what the code gives it, with what was there; NULL: nothing */
  TdOp *creator;
  uint32_t mark;
  uint32_t external;
  /* what was collected before, or NULL */
  TdVar *before, *copy;
  void *bytes; /* of before */
  uint32_t version, copy_version;
  bool held; /* before: by us as well */
} Leaf;

typedef struct
{
  TdInstance *i;
  TdBackward *b;
  TdCodeGraph *code_graph;
  TdVar *ys[64], *gys[64];
  int n_y;
  Leaf *leaves; /* externals that want a gradient, each variable once */
  uint32_t n_leaves;
} Both;

static void
collect_roots (Both *both)
{
  const TdEntry *entry = both->i->entry;

  for (uint32_t k = 0; k < both->code_graph->n_outs; k++)
    {
      TdVar *gy = entry->op_out[k] != TD_ABSENT ? both->b->gy[entry->op_out[k]] : NULL;

      if (gy == NULL)
        continue;
      both->ys[both->n_y] = both->code_graph->outs[k];
      both->gys[both->n_y++] = gy;
    }
}

static void
collect_leaves (Both *both)
{
  const TdOp *op = td__backward_op (both->b);
  const TdSchedule *s = both->i->entry->schedule;
  bool known;

  both->leaves = td__xcalloc (s->n_externals + 1, sizeof *both->leaves);
  for (uint32_t k = 0; k < s->n_externals; k++)
    {
      TdNode *n = op->in[k];

      known = !td_backward_needs (both->b, (int)k);
      for (uint32_t j = 0; j < both->n_leaves && !known; j++)
        known = both->leaves[j].node == n;
      if (!known)
        both->leaves[both->n_leaves++] = (Leaf){ .node = n, .external = k };
    }
}

static void
hide_outside (Both *both, bool hide)
{
  for (uint32_t k = 0; k < both->n_leaves; k++)
    {
      Leaf *l = &both->leaves[k];

      if (hide)
        {
          l->acc = l->node->acc;
          l->creator = l->node->creator;
          l->mark = l->node->mark;
        }
      l->node->acc = hide ? l->copy : l->acc;
      l->node->creator = hide ? NULL : l->creator;
      l->node->mark = l->mark;
    }
}

static TdVar *
handle_of (const Both *both, const Leaf *l)
{
  if (l->node->var != NULL)
    return l->node->var;
  return td__scope_add (td__var_new (
      td__node_ref (l->node), td__buffer_ref (both->i->externals[l->external]), both->i->site));
}

/* A backward among itself; its gradients for the leaves are in gxs.  No trace sees it but one,
 * and no hook: they see the one that goes on outside. */
static TdStatus
backward_apart (Both *both, TdVar **ys, TdVar **gys, int n_y, TdTrace *trace, TdVar **gxs,
                uint32_t list)
{
  TdEngine *e = &td__engine;
  struct TdTrace *traces = e->traces;
  const TdHookTable *hooks = e->hooks;
  const uint32_t function = both->i->entry->function;
  TdVar **xs = td__xcalloc ((size_t)both->n_leaves + 1, sizeof *xs);
  TdStatus status;

  for (uint32_t k = 0; k < both->n_leaves; k++)
    xs[k] = handle_of (both, &both->leaves[k]);
  hide_outside (both, true);
  e->traces = NULL;
  e->hooks = NULL;
  if (trace != NULL)
    td__trace_wait (trace);
  td__static_notify_run (TD_RUN_BEGINS, TD_RUN_VERIFICATION, function, 0, list);
  status = td__backward_run (ys, n_y, gys, xs, (int)both->n_leaves, gxs, 0, both->i->site);
  td__static_notify_run (TD_RUN_ENDS, TD_RUN_VERIFICATION, function, 0, list);
  td__static_notify_run (TD_RUN_DISCARDED, TD_RUN_VERIFICATION, function, 0, list);
  e->traces = traces;
  e->hooks = hooks;
  for (uint32_t k = 0; k < both->n_leaves; k++) /* the walk gives up what it has begun itself */
    if (both->leaves[k].copy != NULL)
      td__var_unref (both->leaves[k].node->acc, TD_HOLD_ENGINE);
  hide_outside (both, false);
  free (xs);
  return status;
}

/* The code's. */
static TdStatus
code_backward (Both *both, uint32_t list)
{
  TdVar **gxs = td__xcalloc ((size_t)both->n_leaves + 1, sizeof *gxs);
  TdStatus status;

  status = backward_apart (both, both->ys, both->gys, both->n_y, both->code_graph->trace, gxs,
                           list);
  for (uint32_t k = 0; k < both->n_leaves; k++)
    both->leaves[k].gx = gxs[k];
  free (gxs);
  return status;
}

/* --- what was collected before --- */

static void *
host_copy (const TdVar *v)
{
  TdDevice *d = v->node->device;
  void *host = td__xmalloc (v->buffer->bytes + 1);

  if (d->computes)
    td__copy_out (d, host, v->buffer->data, v->buffer->bytes, TD_COPY_CHECK, v->node, NULL);
  return host;
}

/* Whether anybody refers to what leaf l has collected but the leaves that have: nobody may add
 * to it in place then. */
static bool
is_shared (const Both *both, const Leaf *l)
{
  const TdVar *g = l->before;
  uint32_t n = 0, n_own = 0;

  for (uint32_t k = 0; k < both->n_leaves; k++)
    {
      const TdNode *node = both->leaves[k].node;

      n += both->leaves[k].before == g;
      n_own += both->leaves[k].before == g && node->var != NULL && node->var->grad == g;
    }
  return g->refs != n + n_own || n_own > 1 || g->buffer->refs > 1 || g->node->creator != NULL;
}

/* The copy may be added to in place where the gradient itself may. */
static TdVar *
copy_of (Both *both, Leaf *l)
{
  const TdNode *n = l->before->node;
  TdVar *copy;

  for (const Leaf *same = both->leaves; same < l; same++)
    if (same->before == l->before)
      return same->copy;
  copy = td__var_leaf ((TdDtype)n->dtype, &n->shape, n->device, TD_MEM_GRADIENT, both->i->site);
  if (copy == NULL)
    return NULL;
  copy->node->layout = n->layout;
  if (n->device->computes)
    n->device->ops->copy (n->device, copy->buffer->data, l->before->buffer->data,
                          l->before->buffer->bytes);
  if (is_shared (both, l))
    td__scope_add (copy);
  return copy;
}

static TdStatus
no_copy (Both *both)
{
  for (uint32_t k = 0; k < both->n_leaves; k++)
    if (both->leaves[k].copy != NULL)
      td__var_unref (both->leaves[k].copy, TD_HOLD_ENGINE);
  return td__error_status ();
}

static TdStatus
copy_collected (Both *both)
{
  for (uint32_t k = 0; k < both->n_leaves; k++)
    both->leaves[k].before = td__backward_collected (both->b, (int)both->leaves[k].external);
  for (uint32_t k = 0; k < both->n_leaves; k++)
    {
      Leaf *l = &both->leaves[k];

      if (l->before == NULL)
        continue;
      l->copy = copy_of (both, l);
      if (l->copy == NULL)
        return no_copy (both);
      td__var_ref (l->copy, TD_HOLD_ENGINE);
      l->bytes = host_copy (l->before);
      l->version = l->before->buffer->version;
      l->copy_version = l->copy->buffer->version;
    }
  for (uint32_t k = 0; k < both->n_leaves; k++)
    if (both->leaves[k].before != NULL && is_shared (both, &both->leaves[k]))
      both->leaves[k].held = true;
  for (uint32_t k = 0; k < both->n_leaves; k++)
    if (both->leaves[k].held)
      td__var_ref (both->leaves[k].before, TD_HOLD_ENGINE);
  return TD_OK;
}

/* The schedule's backward is undone. */
static void
put_back (const Both *both)
{
  for (uint32_t k = 0; k < both->n_leaves; k++)
    {
      const Leaf *l = &both->leaves[k];
      TdVar *sum = l->node->acc;

      if (sum != l->before)
        {
          l->node->acc = l->before != NULL ? td__var_ref (l->before, TD_HOLD_ENGINE) : NULL;
          td__var_unref (sum, TD_HOLD_ENGINE);
        }
      if (l->before != NULL && l->before->buffer->version != l->version
          && l->before->node->device->computes)
        td__copy_in (l->before->node->device, l->before->buffer->data, l->bytes,
                     l->before->buffer->bytes, TD_COPY_CHECK, l->before->node, NULL);
    }
}

static void
forget_collected (Both *both)
{
  for (uint32_t k = 0; k < both->n_leaves; k++)
    {
      if (both->leaves[k].held)
        td__var_unref (both->leaves[k].before, TD_HOLD_ENGINE);
      free (both->leaves[k].bytes);
    }
  free (both->leaves);
}

/* --- comparison --- */

static const TdSite *
giver (const TdSteps *list, uint32_t external)
{
  for (uint32_t k = 0; k < list->n; k++)
    if (list->steps[k].kind == TD_STEP_PROPAGATE && list->steps[k].external == external)
      return list->steps[k].site;
  return NULL;
}

/* Fusion and batching may round otherwise, and what is rounded goes on through the graph.  It
 * is much of a gradient of halves: only where the steps are the same. */
static uint32_t
units_allowed (const TdPlan *plan)
{
  return 64 * (plan->n_fused + 16 * plan->n_batched);
}

static bool
one_gives (TdMiss *miss, const char *name, bool code)
{
  return td__check_says (miss, name, "the %s gives it a gradient, the %s gives none",
                         code ? "code" : "schedule", code ? "schedule" : "code");
}

/* The numbers of two gradients of one shape; what cannot be read has said so. */
static bool
same_numbers (TdMiss *miss, const TdVar *replayed, const TdVar *code, const char *name,
              uint32_t units)
{
  TdDevice *d = code->node->device;
  const void *a, *b;
  void *copies[2];
  bool same;

  if (!d->computes)
    return true;
  a = td__copy_look (d, replayed->buffer->data, replayed->buffer->bytes, &copies[0],
                     TD_COPY_CHECK, replayed->node, NULL);
  b = td__copy_look (d, code->buffer->data, code->buffer->bytes, &copies[1], TD_COPY_CHECK,
                     code->node, NULL);
  same = a == NULL || b == NULL || td__check_gradient (miss, a, b, code->node, name, units);
  free (copies[0]);
  free (copies[1]);
  return same;
}

static bool
same_gradient (const Both *both, const Leaf *l, uint32_t units, TdMiss *miss)
{
  const TdSchedule *s = both->i->entry->schedule;
  const TdNodeInfo *n = &s->nodes[s->externals[l->external].node];
  const TdVar *sum = l->node->acc;
  const bool by_schedule
      = sum != l->before || (sum != NULL && sum->buffer->version != l->version);
  const bool by_code
      = l->gx != l->copy || (l->gx != NULL && l->gx->buffer->version != l->copy_version);

  if (by_code != by_schedule)
    return one_gives (miss, n->name, by_code);
  if (!by_code)
    return true;
  if (!td_shape_equal (&sum->node->shape, &l->gx->node->shape))
    return td__check_says (miss, n->name, "it has a gradient of another shape");
  return same_numbers (miss, sum, l->gx, n->name, units);
}

/* Say whether both give the same; if not, which gradient is another, and the lines: of the
 * first step that is another, else of who gives what differs. */
static bool
agree (const Both *both, uint32_t which, TdMiss *miss)
{
  const TdSchedule *then = both->i->entry->schedule, *now = both->code_graph->trace->schedule;
  const TdSteps *x = &then->backwards[which].list,
                *y = now->n_backwards > 0 ? &now->backwards[0].list : NULL;
  TdMiss steps = { NULL, "", NULL };
  const bool same_steps = y != NULL && td__check_lists (then, x, now, y, &steps);

  for (uint32_t k = 0; k < both->n_leaves; k++)
    {
      const Leaf *l = &both->leaves[k];

      if (same_gradient (both, l, same_steps ? units_allowed (both->i->plan) : 0, miss))
        continue;
      miss->other = giver (x, l->external);
      miss->site = y != NULL ? giver (y, l->external) : miss->other;
      if (y != NULL && !same_steps)
        {
          const size_t n = strlen (steps.text);

          snprintf (steps.text + n, sizeof steps.text - n, "; %s", miss->text);
          *miss = steps;
        }
      return false;
    }
  return true;
}

/* --- one backward --- */

static void
drop_schedule (TdInstance *i, const TdMiss *miss)
{
  TdEntry *entry = i->entry;
  TdStatic *s = entry->owner;

  if (s == NULL)
    return;
  td__verify_differs (s, entry, miss, i->site);
  td__static_evict (s, entry);
  td__doubt_begin (s);
}

TdStatus
td__verify_backward (TdInstance *i, TdBackward *b, uint32_t which)
{
  Both both = { .i = i, .b = b, .code_graph = i->code_graph };
  TdMiss miss = { NULL, "", NULL };
  TdStatus status;

  i->code_graph = NULL;
  collect_roots (&both);
  collect_leaves (&both);
  status = copy_collected (&both);
  if (status == TD_OK)
    status = code_backward (&both, which + 1);
  if (status == TD_OK)
    status = td__replay_backward (i, b, which);
  if (status == TD_OK && !agree (&both, which, &miss))
    {
      td__static_notify_run (TD_RUN_DISCARDED, TD_RUN_REPLAYED, i->entry->function, 0,
                             which + 1);
      put_back (&both);
      drop_schedule (i, &miss);
      status = td__backward_splice (b, both.ys, both.gys, both.n_y,
                                    both.code_graph->trace->first + 1);
    }
  td__code_graph_free (both.code_graph);
  forget_collected (&both);
  return status;
}

/* The trace was interpreted: its operations are the code's, so that not a bit may be another.
 */
static bool
same_leaf (const Both *both, const Leaf *l, const TdVar *gx, TdMiss *miss)
{
  const TdSchedule *s = both->i->entry->schedule;
  const char *name = s->nodes[s->externals[l->external].node].name;

  if (gx == NULL && l->gx == NULL)
    return true;
  if (gx == NULL || l->gx == NULL)
    return one_gives (miss, name, gx == NULL);
  if (!td_shape_equal (&gx->node->shape, &l->gx->node->shape))
    return td__check_says (miss, name, "it has a gradient of another shape");
  return same_numbers (miss, gx, l->gx, name, 0);
}

bool
td__verify_graph (TdInstance *i, TdBackward *b, TdVar **ys, TdVar **gys, int n_y,
                  TdStatus *status)
{
  Both both = { .i = i, .b = b, .code_graph = i->code_graph };
  TdMiss miss = { NULL, "", NULL };
  TdVar **gxs, *with[64], *given[64];
  int n = 0;
  bool same = true;

  i->code_graph = NULL;
  collect_roots (&both);
  collect_leaves (&both);
  gxs = td__xcalloc ((size_t)both.n_leaves + 1, sizeof *gxs);
  *status = code_backward (&both, 1);
  for (int k = 0; k < n_y; k++)
    if (gys[k] != NULL)
      {
        with[n] = ys[k];
        given[n++] = gys[k];
      }
  if (*status == TD_OK)
    *status = backward_apart (&both, with, given, n, NULL, gxs, 1);
  for (uint32_t k = 0; k < both.n_leaves && *status == TD_OK && same; k++)
    same = same_leaf (&both, &both.leaves[k], gxs[k], &miss);
  if (!same)
    {
      drop_schedule (i, &miss);
      *status = td__backward_splice (b, both.ys, both.gys, both.n_y,
                                     both.code_graph->trace->first + 1);
    }
  td__code_graph_free (both.code_graph);
  forget_collected (&both);
  free (gxs);
  return same && *status == TD_OK;
}
