/* Recording which gradient each parameter's update used, and what hooks have changed in it.
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"

#include <stdio.h>

void
td__recorder_update (TdRecorder *r, const TdEvent *e)
{
  char text[512];
  const TdNode *p = e->in[0];

  snprintf (text, sizeof text, "%s%s%s", p->path != NULL ? p->path->text : "",
            p->path != NULL ? "/" : "", p->name != NULL ? p->name : "?");
  uint32_t path = td__recorder_string (r, text);
  TdRawGrad *g = td_ring_reserve (r->ring, TD_RAW_PADDED (sizeof *g));

  g->head = (TdRawHead){ TD_RAW_PADDED (sizeof *g), TD_RAW_GRAD, 0 };
  g->parameter = p->id;
  g->gradient = e->n_in > 1 ? e->in[1]->id : 0;
  g->path = path;
  g->reserved = 0;
  td_ring_publish (r->ring, g->head.size);
}

const TdBuffer *
td__recorder_gradient_of (const TdNode *n)
{
  const TdBuffer *b = n->var != NULL ? n->var->buffer : NULL;

  return b != NULL && b->category != TD_MEM_PARAMETER && b->category != TD_MEM_OPTIMIZER ? b
                                                                                         : NULL;
}

void
td__recorder_gradient (TdRecorder *r, const TdNode *n)
{
  const TdBuffer *b = td__recorder_gradient_of (n);

  if (b != NULL)
    td__recorder_values (r, n, b);
}
