/* What leaves a schedule: the variables of its results, and gradients for variables outside it.
 *
 * Gradients are propagated one by one, in the order of the trace.  As in define-by-run, the
 * engine may accumulate into such a gradient in place if nothing else refers to it and no later
 * step reads it.
 *
 * SPDX-License-Identifier: MIT */
#include "replay.h"

TdNode *
td__replay_node (const TdSchedule *s, uint32_t node)
{
  const TdNodeInfo *info = &s->nodes[node];
  TdNode *n = td__node_new ();

  n->dtype = info->dtype;
  n->shape = info->shape;
  n->layout = info->layout;
  n->device = s->device;
  n->category = info->category;
  n->name = info->name;
  return n;
}

TdVar *
td__replay_var (const TdSchedule *s, uint32_t node, TdBuffer *buffer, const TdSite *site)
{
  TdVar *v = td__scope_add (td__var_new (td__replay_node (s, node), buffer, site));

  v->name = s->nodes[node].name;
  return v;
}

TdVar *
td__replay_snapshot (const TdReplay *p, uint32_t node, const TdSite *site)
{
  const TdSchedule *s = p->i->plan->s;
  size_t bytes;
  TdBuffer *buffer;

  td__shape_bytes (&s->nodes[node].shape, (TdDtype)s->nodes[node].dtype, &bytes);
  buffer = td__buffer_new (s->device, bytes, TD_MEM_OTHER);
  if (buffer == NULL)
    {
      td__fail_memory (s->device, bytes, "static schedule", site);
      return NULL;
    }
  if (s->device->computes)
    s->device->ops->copy (s->device, buffer->data, p->i->address[s->nodes[node].value], bytes);
  return td__replay_var (s, node, buffer, site);
}

/* Drop our reference to a gradient that was propagated to an external, once the steps that read
 * it have run.  From then on the engine may accumulate into it in place; define-by-run has
 * dropped its reference at this point too. */
static void
hand_out_read (TdReplay *p, uint32_t external, uint32_t place)
{
  const TdSchedule *s = p->i->plan->s;
  const TdReady *give = p->i->kept[external];
  uint32_t value;

  if (give == NULL || give->last >= place)
    return;
  value = s->nodes[td__step_in (s, give->step, 0)].value;
  for (uint32_t k = 0; k < s->n_externals;
       k++) /* others may refer to the same gradient, which may be freed below */
    if (p->i->kept[k] != NULL
        && s->nodes[td__step_in (s, p->i->kept[k]->step, 0)].value == value)
      p->i->kept[k] = NULL;
  td__scope_hand_out (p->given[value]);
}

/* Find memory for a gradient that leaves: that of the gradient that is there already, if the
 * kernel can accumulate into it, else new memory. */
static TdStatus
open_gradient (TdReplay *p, TdReady *r, uint32_t k)
{
  const TdSchedule *s = p->i->plan->s;
  uint32_t node = td__step_out (s, r->step, k), value = s->nodes[node].value;
  uint32_t external = k == 0 ? r->step->external : TD_ABSENT;
  TdVar *g = NULL;
  TdBuffer *buffer;

  if (s->values[value].kind != TD_VALUE_GRADIENT
      || p->given[value] != NULL) /* a later step of the list changes it in place */
    return TD_OK;
  if (r->step->kind == TD_STEP_GROUP)
    external = p->i->plan->groups[r->step->external].externals[k];
  if (external != TD_ABSENT)
    {
      hand_out_read (p, external, r->place);
      g = td__backward_target (p->b, (int)external);
      r->run.call.accumulate = p->added[value] = g != NULL;
    }
  if (g != NULL)
    td__buffer_written (g->buffer, r->step->site);
  else
    {
      buffer = td__buffer_new (s->device, s->values[value].bytes, TD_MEM_GRADIENT);
      if (buffer == NULL)
        return td__fail_memory (s->device, s->values[value].bytes, "static schedule",
                                r->step->site);
      g = td__replay_var (s, node, buffer, r->step->site);
    }
  p->given[value] = g;
  td__instance_bind (p->i, p->list, value, g->buffer->data);
  return TD_OK;
}

TdStatus
td__replay_open (TdReplay *p, TdReady *r)
{
  TdStatus status = TD_OK;

  for (uint32_t k = 0; k < r->step->n_out && status == TD_OK; k++)
    status = open_gradient (p, r, k);
  return status;
}

TdStatus
td__replay_propagate (TdReplay *p, const TdReady *r)
{
  const TdSchedule *s = p->i->plan->s;
  uint32_t node = td__step_in (s, r->step, 0), value = s->nodes[node].value;
  bool ours = s->values[value].kind != TD_VALUE_GY, made;
  TdVar *g = NULL;
  TdStatus status;

  if (s->values[value].kind == TD_VALUE_GRADIENT)
    g = p->given[value];
  else if (s->values[value].kind == TD_VALUE_GY)
    g = p->b->gy[p->i->entry->op_out[s->values[value].index]];
  made = g == NULL || !td_shape_equal (&g->node->shape, &s->nodes[node].shape);
  if (g != NULL && made)
    g = td__replay_var (s, node, td__buffer_ref (g->buffer),
                        r->step->site); /* the variable has another shape */
  else if (made)
    g = td__replay_snapshot (p, node, r->step->site);
  if (g == NULL)
    return td__error_status ();
  if (made)
    td__observe_output (p->i, node, g->node); /* it is the one of which events have told */
  status = td__backward_propagate (p->b, (int)r->step->external, g, p->added[value]);
  if (ours && (r->last == r->place || g != p->given[value]))
    td__scope_hand_out (g);
  else if (ours)
    p->i->kept[r->step->external] = r;
  return status;
}
