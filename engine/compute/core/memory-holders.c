/* Who holds the memory of a device: handles, and operations that keep arrays for backward.
 *
 * SPDX-License-Identifier: MIT */
#include "memory-report.h"

#include <stdlib.h>

enum
{
  RECENT = 64 /* groups that are searched: the same place comes again soon, or is another */
};

/** One way to an array. */
typedef struct
{
  const TdBuffer *buffer;
  const TdNode *node;
  const TdVar *var, *of; /* of: whose gradient it is */
} Way;

typedef struct
{
  const TdDevice *device;
  Way *ways;
  size_t n, room;
} Ways;

static void
add_way (Ways *w, const TdBuffer *b, const TdNode *node, const TdVar *var, const TdVar *of)
{
  if (b != NULL && b->device == w->device && w->n < w->room)
    w->ways[w->n++] = (Way){ b, node, var, of };
}

static void *
slot (const TdSlab *slab, size_t i)
{
  return (char *)slab->chunks[i / TD_SLAB_ITEMS] + i % TD_SLAB_ITEMS * slab->item_bytes;
}

static bool
is_live (const TdVar *v)
{
  return v != NULL && v->state == TD_VAR_LIVE;
}

static void
collect (Ways *w)
{
  const TdSlab *vars = &td__engine.vars, *nodes = &td__engine.nodes;

  for (size_t i = 0; i < vars->n_chunks * TD_SLAB_ITEMS; i++)
    {
      const TdVar *v = slot (vars, i);

      if (!is_live (v))
        continue;
      add_way (w, v->buffer, v->node, v, NULL);
      if (is_live (v->grad))
        add_way (w, v->grad->buffer, v->grad->node, v->grad, v);
    }
  for (size_t i = 0; i < nodes->n_chunks * TD_SLAB_ITEMS; i++)
    {
      const TdNode *n = slot (nodes, i);

      if (n->id != 0 && n->retained != NULL) /* a free slot is nobody's */
        add_way (w, n->retained, n, NULL, NULL);
    }
}

/* The ways to one array together: what names it best comes first. */
static int
by_buffer (const void *a, const void *b)
{
  const Way *x = a, *y = b;

  if (x->buffer->id != y->buffer->id)
    return x->buffer->id < y->buffer->id ? -1 : 1;
  if ((x->of == NULL) != (y->of == NULL))
    return x->of == NULL ? 1 : -1;
  if ((x->var == NULL) != (y->var == NULL))
    return x->var == NULL ? 1 : -1;
  return (x->node->id > y->node->id) - (x->node->id < y->node->id);
}

/* The largest first; of equal ones those that were made first. */
static int
by_bytes (const void *a, const void *b)
{
  const TdMemHolder *x = a, *y = b;

  if (x->bytes != y->bytes)
    return x->bytes > y->bytes ? -1 : 1;
  return (x->oldest > y->oldest) - (x->oldest < y->oldest);
}

static TdMemHolder
holder_of (const Way *w)
{
  const TdOp *creator = w->node->creator;
  const TdVar *named = w->of != NULL ? w->of : w->var;

  return (TdMemHolder){
    .site = w->var != NULL    ? w->var->site
            : creator != NULL ? creator->site
                              : NULL,
    .path = w->of != NULL           ? w->of->node->path
            : w->node->path != NULL ? w->node->path
            : creator != NULL       ? creator->path
                                    : NULL,
    .name = named != NULL ? named->name : w->node->name,
    .cls = creator != NULL ? creator->cls : NULL,
    .var = w->var,
    .of = w->of,
    .node = w->node,
    .oldest = w->node->id,
    .bytes = w->buffer->bytes,
    .largest = w->buffer->bytes,
    .n = 1,
    .category = w->buffer->category,
    .saved = w->buffer->n_saved > 0,
    .earlier = w->node->id <= td__engine.iteration_node,
  };
}

static void
add_holder (TdMemHolder *all, size_t *n, const TdMemHolder *one)
{
  size_t k = *n > RECENT ? *n - RECENT : 0;

  while (k < *n
         && (all[k].site != one->site || all[k].name != one->name || all[k].path != one->path
             || all[k].cls != one->cls || all[k].category != one->category
             || all[k].earlier != one->earlier))
    k++;
  if (k == *n)
    {
      all[(*n)++] = *one;
      return;
    }
  all[k].bytes += one->bytes;
  all[k].n++;
  all[k].saved |= one->saved;
  if (one->oldest < all[k].oldest)
    all[k].oldest = one->oldest;
  if (one->largest > all[k].largest)
    {
      all[k].largest = one->largest;
      all[k].var = one->var;
      all[k].of = one->of;
      all[k].node = one->node;
    }
}

TdMemHolder *
td__mem_holders (const TdDevice *device, size_t *n)
{
  Ways w
      = { .device = device,
          .room = (2 * td__engine.vars.n_chunks + td__engine.nodes.n_chunks) * TD_SLAB_ITEMS };
  TdMemHolder *all = NULL;

  *n = 0;
  w.ways = malloc ((w.room + 1) * sizeof *w.ways);
  if (w.ways == NULL)
    return NULL;
  collect (&w);
  if (w.n > 1)
    qsort (w.ways, w.n, sizeof *w.ways, by_buffer);
  all = malloc ((w.n + 1) * sizeof *all);
  for (size_t i = 0; i < w.n && all != NULL; i++)
    if (i == 0 || w.ways[i - 1].buffer != w.ways[i].buffer)
      {
        const TdMemHolder one = holder_of (&w.ways[i]);

        add_holder (all, n, &one);
      }
  free (w.ways);
  if (*n > 1)
    qsort (all, *n, sizeof *all, by_bytes);
  return all;
}
