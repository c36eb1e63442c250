/* What the call of a static function keeps while it is in the graph: the memory of its
 * schedule, what it was given, and its results.
 *
 * SPDX-License-Identifier: MIT */
#include "replay.h"

#include "compute/core/op-held.h"

static void
tell_of (const TdNode *n, const TdBuffer *b, TdHeldEach *each, void *user)
{
  if (n != NULL && b != NULL)
    each (user, n, b);
}

static void
call_keeps (const TdOp *op, TdHeldEach *each, void *user)
{
  const TdInstance *i = op->cls == &td__static_class ? td__replay_instance_or_null (op) : NULL;
  const TdNode *result = NULL;

  if (i == NULL || i->state == TD_INSTANCE_FREE)
    return;
  for (int k = 0; k < op->n_out && result == NULL; k++)
    result = op->out[k];
  tell_of (result, i->arena, each, user);
  for (uint32_t k = 0; k < i->plan->s->n_externals && (int)k < op->n_in; k++)
    tell_of (op->in[k], i->externals[k], each, user);
  for (uint32_t k = 0; k < i->plan->s->n_outputs; k++)
    tell_of (result, i->outputs[k], each, user);
}

void
td__replay_tells_what_it_keeps (void)
{
  td__op_held = call_keeps;
}
