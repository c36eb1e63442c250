/* The order of backward: a heap of waiting operations, and the marks of what leads to a target.
 *
 * SPDX-License-Identifier: MIT */
#include "walk.h"
#include "host-memory.h"

#include <stdlib.h>

void
td__list_grow (TdList *l)
{
  l->capacity = l->capacity == 0 ? 64 : 2 * l->capacity;
  l->items = td__xrealloc (l->items, l->capacity * sizeof *l->items);
}

static inline bool
newer (const void *a, const void *b)
{
  return ((const TdOp *)a)->id > ((const TdOp *)b)->id;
}

void
td__walk_push_among (Walk *w, TdOp *op)
{
  TdList *h = &w->heap;
  size_t i = h->n;

  list_add (h, op);
  while (i > 0 && newer (op, h->items[(i - 1) / 2]))
    {
      h->items[i] = h->items[(i - 1) / 2];
      i = (i - 1) / 2;
    }
  h->items[i] = op;
}

TdOp *
td__walk_pop_among (Walk *w)
{
  TdList *h = &w->heap;
  TdOp *top = h->items[0], *last = h->items[--h->n];
  size_t i = 0, child;

  while ((child = 2 * i + 1) < h->n)
    {
      if (child + 1 < h->n && newer (h->items[child + 1], h->items[child]))
        child++;
      if (!newer (h->items[child], last))
        break;
      h->items[i] = h->items[child];
      i = child;
    }
  if (h->n > 0)
    h->items[i] = last;
  return top;
}

static int
older_first (const void *a, const void *b)
{
  uint64_t x = (*(TdOp *const *)a)->id, y = (*(TdOp *const *)b)->id;

  return (x > y) - (x < y);
}

void
td__walk_mark_paths (Walk *w, TdVar *const *ys, int n_y, TdVar *const *xs, int n_x)
{
  TdList all = { NULL, 0, 0 };

  for (int i = 0; i < n_x; i++)
    xs[i]->node->mark = w->mark;
  for (int i = 0; i < n_y; i++)
    {
      TdOp *op = ys[i]->node->creator;

      if (op != NULL && op->mark != w->mark + 2)
        {
          op->mark = w->mark + 2;
          list_add (&all, op);
        }
    }
  for (size_t at = 0; at < all.n; at++)
    for (int i = 0; i < ((TdOp *)all.items[at])->n_in; i++)
      {
        TdOp *creator = ((TdOp *)all.items[at])->in[i]->creator;

        if (creator != NULL && creator->mark != w->mark + 2)
          {
            creator->mark = w->mark + 2;
            list_add (&all, creator);
          }
      }
  if (all.n > 0) /* a NULL array is undefined even with no items */
    qsort (all.items, all.n, sizeof *all.items, older_first);
  for (size_t at = 0; at < all.n; at++)
    {
      TdOp *op = all.items[at];

      for (int i = 0; i < op->n_in && op->mark != w->mark + 1; i++)
        {
          const TdNode *n = op->in[i];

          if (n->mark == w->mark || (n->creator != NULL && n->creator->mark == w->mark + 1))
            op->mark = w->mark + 1;
        }
    }
  free (all.items);
}

void
td__walk_mark_new (Walk *w, TdVar *const *ys, int n_y, uint64_t first_id)
{
  TdList all = { NULL, 0, 0 };
  const uint32_t seen = w->mark + 2;

  for (int i = 0; i < n_y; i++)
    {
      TdOp *op = ys[i]->node->creator;

      if (op != NULL && op->id >= first_id && op->mark != seen)
        {
          op->mark = seen;
          list_add (&all, op);
        }
    }
  for (size_t at = 0; at < all.n; at++)
    for (int i = 0; i < ((TdOp *)all.items[at])->n_in; i++)
      {
        TdOp *creator = ((TdOp *)all.items[at])->in[i]->creator;

        if (creator != NULL && creator->id >= first_id && creator->mark != seen)
          {
            creator->mark = seen;
            list_add (&all, creator);
          }
      }
  if (all.n > 0)
    qsort (all.items, all.n, sizeof *all.items, older_first);
  for (size_t at = 0; at < all.n; at++)
    {
      TdOp *op = all.items[at];

      for (int i = 0; i < op->n_in && op->mark != w->mark + 1; i++)
        if (wanted (w, op->in[i]))
          op->mark = w->mark + 1;
    }
  free (all.items);
}
