/* Constant folding: steps that read only constants are computed once, when the plan is made.
 *
 * SPDX-License-Identifier: MIT */
#include "pass.h"
#include "host-memory.h"

#include <stdlib.h>

static TdTensor
tensor_of (const TdSchedule *s, uint32_t node)
{
  TdNodeInfo *n = &s->nodes[node];
  const TdValue *v = &s->values[n->value];

  return (TdTensor){ .data = v->kind == TD_VALUE_CONSTANT ? s->constants[v->index].buffer->data
                                                          : NULL,
                     .shape = &n->shape,
                     .size = td__size (&n->shape),
                     .dtype = (TdDtype)n->dtype,
                     .layout = n->layout };
}

/* Whether the node's value lies in the schedule's own memory and is written once. */
static bool
is_plain_result (const TdSchedule *s, uint32_t node)
{
  const TdValue *v = td__node_value (s, node);

  return v->kind == TD_VALUE_INTERIOR && v->n_writers == 1;
}

static bool
can_fold (const TdSchedule *s, const TdStep *step)
{
  const unsigned seen
      = TD_OP_STATEFUL | TD_OP_HOST | TD_OP_CAPTURES | TD_OP_VIEW | TD_OP_RANDOM;

  if (step->random || step->accumulate || step->external != TD_ABSENT)
    return false;
  if (step->kind == TD_STEP_FILL)
    {
      if (step->how.origin == TD_ARRAY_RANDOM)
        return false;
    }
  else if (step->kind != TD_STEP_OP || (step->cls->flags & seen)
           || td_op_class_find (step->cls->name) != step->cls)
    return false;
  for (uint32_t k = 0; k < step->n_in; k++)
    if (td__node_value (s, td__step_in (s, step, k))->kind != TD_VALUE_CONSTANT)
      return false;
  for (uint32_t k = 0; k < step->n_out; k++)
    if (!is_plain_result (s, td__step_out (s, step, k)))
      return false;
  return true;
}

static TdStatus
fill (const TdSchedule *s, const TdStep *step, TdTensor *out)
{
  return step->how.origin == TD_ARRAY_ARANGE
             ? s->device->ops->arange (s->device, out, step->how.a, step->how.b)
             : s->device->ops->fill (s->device, out, step->how.a);
}

static TdStatus
compute (const TdSchedule *s, const TdStep *step, TdTensor *in, TdTensor *out)
{
  TdRun run = { .call = { .cls = step->cls,
                          .attrs = step->attrs,
                          .device = s->device,
                          .n_in = (int)step->n_in,
                          .n_out = (int)step->n_out,
                          .in = in,
                          .out = out },
                .site = step->site,
                .device = s->device };
  TdStatus status;

  if (step->kind == TD_STEP_FILL)
    return fill (s, step, out);
  status = step->cls->forward (&run.call);
  if (run.workspace != NULL)
    td__pool_release (run.workspace);
  return status;
}

/* Compute a step now; its results become constants of the plan.  False: it stays in the list.
 */
static bool
fold_step (TdSchedule *s, const TdStep *step)
{
  TdTensor *t = td__plan_zeroed (step->n_in + step->n_out, sizeof *t);
  TdTensor *out = t + step->n_in;
  TdBuffer **buffers = td__plan_zeroed (step->n_out, sizeof *buffers);
  bool done = true;

  for (uint32_t k = 0; k < step->n_in; k++)
    t[k] = tensor_of (s, td__step_in (s, step, k));
  for (uint32_t k = 0; k < step->n_out && done; k++)
    {
      out[k] = tensor_of (s, td__step_out (s, step, k));
      buffers[k] = td__buffer_new (
          s->device, td__node_value (s, td__step_out (s, step, k))->bytes, TD_MEM_STATIC);
      done = buffers[k] != NULL;
      if (done)
        out[k].data = buffers[k]->data;
    }
  done = done && compute (s, step, t, out) == TD_OK;
  if (done)
    s->constants
        = td__xrealloc (s->constants, (s->n_constants + step->n_out) * sizeof *s->constants);
  for (uint32_t k = 0; k < step->n_out; k++)
    if (done)
      {
        TdValue *v = td__node_value (s, td__step_out (s, step, k));

        v->kind = TD_VALUE_CONSTANT;
        v->index = s->n_constants;
        s->constants[s->n_constants++].buffer = buffers[k];
      }
    else
      td__buffer_unref (buffers[k]);
  free (t);
  free (buffers);
  return done;
}

void
td__pass_fold (TdPlan *p)
{
  if (!p->s->device->computes)
    return;
  for (uint32_t list = 0; list <= p->s->n_backwards; list++)
    {
      TdSteps *steps = td__plan_list (p, list);
      bool *dead = td__plan_zeroed (steps->n, sizeof *dead);

      for (uint32_t i = 0; i < steps->n; i++)
        {
          const TdStep *step = &steps->steps[i];

          dead[i] = can_fold (p->s, step) && fold_step (p->s, step);
          if (!dead[i])
            continue;
          td__plan_note (p, TD_PASS_FOLD, list, step->trace_at, TD_ABSENT);
          p->n_folded++;
        }
      td__plan_remove (p, list, dead);
      free (dead);
    }
}
