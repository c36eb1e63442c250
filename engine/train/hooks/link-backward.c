/* Backward of a link's call, seen by hooks without a change of the graph.
 *
 * Ids of operations are a topological order and backward takes the newest first.  So a call
 * whose operations have the ids first .. last begins its backward with the first operation
 * taken at or below last, when the gradients of its outputs are complete, and ends when one
 * below first is taken.  A call is remembered by ids alone: it keeps nothing alive.
 *
 * SPDX-License-Identifier: MIT */
#include "hooks.h"
#include "host-memory.h"

#include "../links/link.h"

#include <stdlib.h>
#include <string.h>

/* One call that backward is inside of. */
typedef struct
{
  TdLinkRecord record; /* with its own copy of the ids */
  TdVar **gy, **gx;    /* held */
} Active;

struct TdLinkWalk
{
  size_t next;    /* records below this are still to come */
  Active *active; /* innermost last */
  int n, capacity;
};

static void
record_clear (TdLinkRecord *r)
{
  free (r->nodes);
}

void
td__hooks_records_clear (void)
{
  for (size_t i = 0; i < td__hooks.n_records; i++)
    record_clear (&td__hooks.records[i]);
  free (td__hooks.records);
  td__hooks.records = NULL;
  td__hooks.n_records = td__hooks.records_capacity = 0;
}

/* Room for one more: first those go whose graph is gone. */
static void
make_room (void)
{
  TdHooks *h = &td__hooks;
  size_t kept = 0;

  if (h->n_records < h->records_capacity)
    return;
  for (size_t i = 0; i < h->n_records; i++)
    if (h->walks > 0 || h->records[i].creator->id == h->records[i].creator_id)
      h->records[kept++] = h->records[i];
    else
      record_clear (&h->records[i]);
  h->n_records = kept;
  if (2 * kept < h->records_capacity)
    return;
  h->records_capacity = h->records_capacity > 0 ? 2 * h->records_capacity : 64;
  h->records = td__xrealloc (h->records, h->records_capacity * sizeof *h->records);
}

static bool
backward_wanted (uint64_t link_id)
{
  for (int i = 0; i < td__hooks.n; i++)
    {
      const TdHookEntry *e = &td__hooks.entries[i];

      if (e->hook != NULL && (e->link_id == 0 || e->link_id == link_id) && e->op_name == NULL
          && e->op_id == 0
          && (e->hook->cls->link_backward_preprocess != NULL
              || e->hook->cls->link_backward_postprocess != NULL))
        return true;
    }
  return false;
}

void
td__hooks_link_record (uint64_t link_id, const TdPath *path, const TdSite *site, uint64_t first,
                       TdVar *const *in, int n_in, TdVar *const *out, int n_out)
{
  const TdOp *creator = NULL;
  TdLinkRecord *r;

  for (int i = 0; i < n_out && creator == NULL; i++)
    if (out[i]->state == TD_VAR_LIVE && out[i]->node->creator != NULL
        && out[i]->node->creator->id >= first)
      creator = out[i]->node->creator;
  if (creator == NULL || !backward_wanted (link_id))
    return;
  make_room ();
  r = &td__hooks.records[td__hooks.n_records++];
  *r = (TdLinkRecord){ .link_id = link_id,
                       .first = first,
                       .last = td__engine.next_id,
                       .path = path,
                       .site = site,
                       .n_in = n_in,
                       .n_out = n_out,
                       .creator = creator,
                       .creator_id = creator->id };
  r->nodes = td__xcalloc ((size_t)n_in + (size_t)n_out, sizeof *r->nodes);
  for (int i = 0; i < n_in; i++)
    r->nodes[i] = in[i]->state == TD_VAR_LIVE ? in[i]->node->id : 0;
  for (int i = 0; i < n_out; i++)
    r->nodes[n_in + i] = out[i]->state == TD_VAR_LIVE ? out[i]->node->id : 0;
}

TdLinkWalk *
td__hooks_backward_begin (void)
{
  TdLinkWalk *walk;

  if (td__hooks.n_records == 0)
    return NULL;
  walk = td__xcalloc (1, sizeof *walk);
  walk->next = td__hooks.n_records;
  td__hooks.walks++;
  return walk;
}

static void
notify (const Active *a, TdMoment moment, TdStatus status)
{
  TdLink *link = td__link_by_id (a->record.link_id);
  TdLinkCall call = { .link = link,
                      .path = a->record.path->text,
                      .site = a->record.site,
                      .status = status,
                      .n_in = a->record.n_in,
                      .n_out = a->record.n_out,
                      .gy = a->gy,
                      .gx = moment == TD_MOMENT_BACKWARD_POST ? a->gx : NULL };

  if (link != NULL && td__engine.hooks != NULL)
    td__hooks_link (moment, a->record.link_id, &call);
}

static void
drop_all (TdVar **held, int n)
{
  for (int i = 0; i < n; i++)
    if (held[i] != NULL)
      td__var_unref (held[i], TD_HOLD_ENGINE);
  free (held);
}

/* Leave the innermost call. */
static void
leave (TdLinkWalk *walk, TdStatus status)
{
  Active *a = &walk->active[--walk->n];

  notify (a, TD_MOMENT_BACKWARD_POST, status);
  drop_all (a->gy, a->record.n_out);
  drop_all (a->gx, a->record.n_in);
  record_clear (&a->record);
}

static void
enter (TdLinkWalk *walk, const TdLinkRecord *record, void *const *touched, size_t n_touched)
{
  size_t n_ids = (size_t)record->n_in + (size_t)record->n_out;
  Active *a;

  if (walk->n == walk->capacity)
    {
      walk->capacity = walk->capacity > 0 ? 2 * walk->capacity : 8;
      walk->active = td__xrealloc (walk->active, (size_t)walk->capacity * sizeof *walk->active);
    }
  a = &walk->active[walk->n++];
  a->record = *record; /* the hooks below may add records, and move the table */
  a->record.nodes = td__xcalloc (n_ids, sizeof *record->nodes);
  memcpy (a->record.nodes, record->nodes, n_ids * sizeof *record->nodes);
  a->gy = td__xcalloc ((size_t)record->n_out, sizeof (TdVar *));
  a->gx = td__xcalloc ((size_t)record->n_in, sizeof (TdVar *));
  for (int i = 0; i < record->n_out; i++)
    for (size_t t = 0; t < n_touched && a->gy[i] == NULL; t++)
      {
        const TdNode *node = touched[t];

        if (node->id == record->nodes[record->n_in + i] && node->acc != NULL)
          a->gy[i] = td__var_ref (node->acc, TD_HOLD_ENGINE);
      }
  notify (a, TD_MOMENT_BACKWARD_PRE, TD_OK);
}

void
td__hooks_backward_reach (TdLinkWalk *walk, const TdOp *op, void *const *touched,
                          size_t n_touched)
{
  bool any = false;

  for (int i = 0; i < op->n_out; i++)
    any |= op->out[i] != NULL && op->out[i]->acc != NULL;
  if (!any)
    return;
  while (walk->n > 0 && walk->active[walk->n - 1].record.first > op->id)
    leave (walk, TD_OK);
  while (walk->next > 0 && td__hooks.records[walk->next - 1].last >= op->id)
    {
      const TdLinkRecord *record = &td__hooks.records[--walk->next];

      if (record->first <= op->id)
        enter (walk, record, touched, n_touched);
    }
}

void
td__hooks_backward_made (TdLinkWalk *walk, const TdOp *op, TdVar *const *gx)
{
  TdEngine *e = &td__engine;

  for (int a = 0; a < walk->n; a++)
    for (int k = 0; k < walk->active[a].record.n_in; k++)
      for (int i = 0; i < op->n_in; i++)
        {
          TdVar **sum = &walk->active[a].gx[k], *old = *sum;
          TdPhase phase = e->phase;

          if (gx[i] == NULL || op->in[i]->id != walk->active[a].record.nodes[k])
            continue;
          e->phase = TD_PHASE_ACCUMULATE;
          *sum = td__var_ref (old != NULL ? td_add (old, gx[i]) : gx[i], TD_HOLD_ENGINE);
          e->phase = phase;
          if (old != NULL)
            td__var_unref (old, TD_HOLD_ENGINE);
        }
}

void
td__hooks_backward_end (TdLinkWalk *walk, TdStatus status)
{
  while (walk->n > 0)
    leave (walk, status);
  td__hooks.walks--;
  free (walk->active);
  free (walk);
  td__hooks_refresh ();
}
