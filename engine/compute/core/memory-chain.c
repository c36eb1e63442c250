/* The ways from handles to arrays: one search over the graph from all handles at once, when
 * memory has run out.  Marks of nodes and operations belong to walks that may be under way, so
 * what was reached is noted beside, by the nodes' slots.
 *
 * SPDX-License-Identifier: MIT */
#include "memory-chain.h"

#include <stdlib.h>

#define ROOT UINT32_MAX

typedef struct
{
  const char *begin;
  uint32_t first; /* slot */
} Chunk;

struct TdMemChains
{
  Chunk *chunks; /* by address */
  size_t n_chunks;
  uint32_t *above; /* by slot: the node that refers to it, plus 1; ROOT; 0: not reached */
  uint32_t *queue;
  uint32_t n_queued;
};

static const TdNode *
node_at (uint32_t slot)
{
  const TdSlab *nodes = &td__engine.nodes;

  return (const TdNode *)(const void *)((char *)nodes->chunks[slot / TD_SLAB_ITEMS]
                                        + slot % TD_SLAB_ITEMS * nodes->item_bytes);
}

static int
by_address (const void *a, const void *b)
{
  const Chunk *x = a, *y = b;

  return (x->begin > y->begin) - (x->begin < y->begin);
}

static uint32_t
slot_of (const TdMemChains *c, const TdNode *n)
{
  const char *at = (const char *)n;
  size_t low = 0, high = c->n_chunks;

  while (high - low > 1)
    {
      const size_t middle = (low + high) / 2;

      *(at < c->chunks[middle].begin ? &high : &low) = middle;
    }
  return c->chunks[low].first
         + (uint32_t)((size_t)(at - c->chunks[low].begin) / td__engine.nodes.item_bytes);
}

static void
reach (TdMemChains *c, const TdNode *n, uint32_t above)
{
  const uint32_t slot = n != NULL ? slot_of (c, n) : 0;

  if (n == NULL || c->above[slot] != 0)
    return;
  c->above[slot] = above;
  c->queue[c->n_queued++] = slot;
}

/* What its operation refers to: inputs, and results that it keeps for backward. */
static void
reach_below (TdMemChains *c, uint32_t slot)
{
  const TdOp *op = node_at (slot)->creator;

  for (int i = 0; op != NULL && i < op->n_in; i++)
    reach (c, op->in[i], slot + 1);
  for (int i = 0; op != NULL && i < op->n_out && i < 32; i++)
    if (op->retained_out >> i & 1)
      reach (c, op->out[i], slot + 1);
}

TdMemChains *
td__mem_chains_new (void)
{
  const TdSlab *vars = &td__engine.vars, *nodes = &td__engine.nodes;
  const size_t n_slots = nodes->n_chunks * TD_SLAB_ITEMS;
  TdMemChains *c = calloc (1, sizeof *c);

  if (c == NULL)
    return NULL;
  c->n_chunks = nodes->n_chunks;
  c->chunks = malloc ((c->n_chunks + 1) * sizeof *c->chunks);
  c->above = calloc (n_slots + 1, sizeof *c->above);
  c->queue = malloc ((n_slots + 1) * sizeof *c->queue);
  if (c->chunks == NULL || c->above == NULL || c->queue == NULL || n_slots >= ROOT)
    {
      td__mem_chains_free (c);
      return NULL;
    }
  for (size_t i = 0; i < c->n_chunks; i++)
    c->chunks[i] = (Chunk){ nodes->chunks[i], (uint32_t)(i * TD_SLAB_ITEMS) };
  if (c->n_chunks > 1)
    qsort (c->chunks, c->n_chunks, sizeof *c->chunks, by_address);
  for (size_t i = 0; i < vars->n_chunks * TD_SLAB_ITEMS; i++)
    {
      const TdVar *v = (const TdVar *)(const void *)((char *)vars->chunks[i / TD_SLAB_ITEMS]
                                                     + i % TD_SLAB_ITEMS * vars->item_bytes);

      if (v->state == TD_VAR_LIVE && v->node != NULL)
        reach (c, v->node, ROOT);
    }
  for (uint32_t i = 0; i < c->n_queued; i++)
    reach_below (c, c->queue[i]);
  return c;
}

void
td__mem_chains_free (TdMemChains *c)
{
  if (c == NULL)
    return;
  free (c->chunks);
  free (c->above);
  free (c->queue);
  free (c);
}

/* A link of n at its place from the root on, if it is one of those that are shown. */
static void
put (TdMemLink links[TD_MEM_LINKS], uint32_t n, uint32_t place, TdMemLink link)
{
  if (n <= TD_MEM_LINKS || place < TD_MEM_LINKS / 2)
    links[place] = link;
  else if (n - place <= TD_MEM_LINKS / 2)
    links[TD_MEM_LINKS - (n - place)] = link;
}

uint32_t
td__mem_chain (const TdMemChains *c, const TdMemHolder *h, TdMemLink links[TD_MEM_LINKS],
               uint32_t *left_out)
{
  uint32_t slot, top, n = 1;

  *left_out = 0;
  if (h->var != NULL)
    {
      links[0].var = h->of != NULL ? h->of : h->var;
      links[0].op = NULL;
      links[1] = (TdMemLink){ h->var, NULL };
      return h->of != NULL ? 2 : 1;
    }
  slot = top = slot_of (c, h->node);
  if (c->above[slot] == 0)
    return 0;
  for (; c->above[top] != ROOT; n++)
    top = c->above[top] - 1;
  if (c->above[slot] == ROOT || node_at (top)->var == NULL)
    return 0;
  put (links, n, 0, (TdMemLink){ node_at (top)->var, NULL });
  for (uint32_t place = n - 1; place > 0; place--)
    {
      slot = c->above[slot] - 1;
      put (links, n, place, (TdMemLink){ NULL, node_at (slot)->creator });
    }
  *left_out = n > TD_MEM_LINKS ? n - TD_MEM_LINKS : 0;
  return n - *left_out;
}
