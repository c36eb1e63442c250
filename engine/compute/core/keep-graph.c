/* Config keep_graph: the graph of operations through which no gradient goes, which td_save_onnx
 * writes.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"

/* Of backward, what has a graph of its own (TD_DOUBLE_BACKPROP). */
bool
td__keeps_graph (const TdRun *r)
{
  const TdEngine *e = &td__engine;
  const bool twice = e->config.enable_backprop
                     && (e->phase == TD_PHASE_BACKWARD || e->phase == TD_PHASE_ACCUMULATE);

  return r->call.n_out > 0 && (e->phase == TD_PHASE_FORWARD || twice) && e->tracer == NULL;
}

TdOp *
td__keep_apart (const TdRun *r, TdOp *op)
{
  const bool wants = td__wants_graph (r);

  for (int i = 0; i < op->n_in && i < 32; i++)
    {
      TdNode *n = op->in[i];

      if (n->creator != NULL || td__bit (op->retained_in, i))
        continue;
      op->retained_in |= 1u << i;
      if (n->n_retains++ == 0)
        {
          n->retained = td__buffer_ref (r->in[i]->buffer);
          n->retained->n_saved++;
        }
    }
  for (int i = 0; i < op->n_out && !wants; i++)
    op->out[i]->requires_grad = false;
  return op;
}
