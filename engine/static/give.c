/* What leaves a schedule: gradients for what lies outside, variables of what it made.
 *
 * Gradients are given one by one, in the traced order, and may be added to in place when the
 * code's could: when nobody else holds them, and no step to come reads them.
 *
 * SPDX-License-Identifier: MIT */
#include "play.h"

TdNode *
td__play_node (const TdSchedule *s, uint32_t node)
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
td__play_var (const TdSchedule *s, uint32_t node, TdBuffer *buffer, const TdSite *site)
{
  TdVar *v = td__scope_add (td__var_new (td__play_node (s, node), buffer, site));

  v->name = s->nodes[node].name;
  return v;
}

TdVar *
td__play_snapshot (const TdPlay *p, uint32_t node, const TdSite *site)
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
  return td__play_var (s, node, buffer, site);
}

/* What the external was given, once the steps that read it too have run: only who holds it
 * alone may be added to, as in the code, whose backward has let go of it by then. */
static void
hand_out_read (TdPlay *p, uint32_t external, uint32_t place)
{
  const TdSchedule *s = p->i->plan->s;
  const TdReady *give = p->i->kept[external];
  uint32_t value;

  if (give == NULL || give->last >= place)
    return;
  value = s->nodes[td__step_in (s, give->step, 0)].value;
  for (uint32_t k = 0; k < s->n_externals; k++) /* it may be gone after this */
    if (p->i->kept[k] != NULL
        && s->nodes[td__step_in (s, p->i->kept[k]->step, 0)].value == value)
      p->i->kept[k] = NULL;
  td__scope_hand_out (p->given[value]);
}

/* Memory for a gradient that leaves: what is there already if the kernel may add to it. */
static TdStatus
open_gradient (TdPlay *p, TdReady *r, uint32_t k)
{
  const TdSchedule *s = p->i->plan->s;
  uint32_t node = td__step_out (s, r->step, k), value = s->nodes[node].value;
  uint32_t external = k == 0 ? r->step->external : TD_ABSENT;
  TdVar *g = NULL;
  TdBuffer *buffer;

  if (s->values[value].kind != TD_VALUE_GRADIENT
      || p->given[value] != NULL) /* changed in place further on */
    return TD_OK;
  if (r->step->kind == TD_STEP_GROUP)
    external = p->i->plan->groups[r->step->external].externals[k];
  if (external != TD_ABSENT)
    {
      hand_out_read (p, external, r->place);
      g = p->taken == NULL ? td__backward_target (p->b, (int)external) : NULL;
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
      g = td__play_var (s, node, buffer, r->step->site);
    }
  p->given[value] = g;
  td__instance_bind (p->i, p->list, value, g->buffer->data);
  return TD_OK;
}

TdStatus
td__play_open (TdPlay *p, TdReady *r)
{
  TdStatus status = TD_OK;

  for (uint32_t k = 0; k < r->step->n_out && status == TD_OK; k++)
    status = open_gradient (p, r, k);
  return status;
}

TdStatus
td__play_give (TdPlay *p, const TdReady *r)
{
  const TdSchedule *s = p->i->plan->s;
  uint32_t node = td__step_in (s, r->step, 0), value = s->nodes[node].value;
  bool ours = s->values[value].kind != TD_VALUE_GY;
  TdVar *g = NULL;
  TdStatus status;

  if (s->values[value].kind == TD_VALUE_GRADIENT)
    g = p->given[value];
  else if (s->values[value].kind == TD_VALUE_GY)
    g = p->b->gy[p->i->entry->op_out[s->values[value].index]];
  if (g != NULL && !td_shape_equal (&g->node->shape, &s->nodes[node].shape))
    g = td__play_var (s, node, td__buffer_ref (g->buffer),
                      r->step->site); /* seen in another shape */
  if (g == NULL)
    g = td__play_snapshot (p, node, r->step->site);
  if (g == NULL)
    return td__engine.error.status;
  if (TD_UNLIKELY (p->taken != NULL))
    {
      td__taken_add (p->taken, r->step->external, g, ours);
      return TD_OK;
    }
  status = td__backward_give (p->b, (int)r->step->external, g, p->added[value]);
  if (ours && (r->last == r->place || g != p->given[value]))
    td__scope_hand_out (g);
  else if (ours)
    p->i->kept[r->step->external] = r;
  return status;
}
