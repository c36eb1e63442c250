/* Recording which gradient each parameter's update used, and what hooks have changed in it.
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"

#include "host-memory.h"

#include <stdio.h>

/* An optimizer that keeps float32 copies of smaller parameters updates those, and then the
 * parameters by them: the gradient of a parameter is that by which its copy was updated. */
static TdMaster *
find_master (TdRecorder *r, uint64_t id)
{
  TdMasters *m = &r->masters;

  /* they come in the order of the time before */
  for (uint32_t k = 0; k < m->n; k++)
    {
      TdMaster *at = &m->items[(m->next + k) % m->n];

      if (at->copy == id)
        {
          m->next = (uint32_t)(at - m->items + 1) % m->n;
          return at;
        }
    }
  return NULL;
}

static void
note_master (TdRecorder *r, uint64_t copy, uint64_t gradient)
{
  TdMasters *m = &r->masters;
  TdMaster *at = find_master (r, copy);

  if (at == NULL)
    {
      m->items = td__xrealloc (m->items, (m->n + 1) * sizeof *m->items);
      at = &m->items[m->n++];
    }
  *at = (TdMaster){ copy, gradient };
}

static bool
is_copy (const TdNode *n)
{
  return n->name == NULL && n->var != NULL && n->var->buffer != NULL
         && n->var->buffer->category == TD_MEM_OPTIMIZER;
}

static uint64_t
gradient_by (TdRecorder *r, const TdEvent *e)
{
  const bool fills = (e->cls->flags & TD_OP_FILLS) != 0;
  const TdMaster *master;

  if (e->n_in < 2)
    return 0;
  if (!fills && is_copy (e->in[0]))
    note_master (r, e->in[0]->id, e->in[1]->id);
  master = fills && e->in[0]->name != NULL ? find_master (r, e->in[1]->id) : NULL;
  return master != NULL ? master->gradient : e->in[1]->id;
}

void
td__recorder_update (TdRecorder *r, const TdEvent *e)
{
  char text[512];
  const TdNode *p = e->in[0];
  const uint64_t gradient = gradient_by (r, e);

  snprintf (text, sizeof text, "%s%s%s", p->path != NULL ? p->path->text : "",
            p->path != NULL ? "/" : "", p->name != NULL ? p->name : "?");
  uint32_t path = td__recorder_string (r, text);
  TdRawGrad *g = td_ring_reserve (r->ring, TD_RAW_PADDED (sizeof *g));

  g->head = (TdRawHead){ TD_RAW_PADDED (sizeof *g), TD_RAW_GRAD, 0 };
  g->parameter = p->id;
  g->gradient = gradient;
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
