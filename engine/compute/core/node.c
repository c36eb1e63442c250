/* Nodes and operations: the graph, and how it dies.
 *
 * Release walks a worklist, never recursion: a chain of a million operations is freed without
 * growing the stack.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"
#include "op-held.h"

#include <stdlib.h>

static void
node_release_array (TdNode *n)
{
  if (--n->n_retains == 0)
    {
      n->retained->n_saved--;
      td__buffer_unref (n->retained);
      n->retained = NULL;
    }
}

static void
node_give_back (TdNode *n)
{
  n->id = 0; /* a free slot is nobody's: lookups by id pass it over */
  td__slab_release (&td__engine.nodes, n);
}

/* End an orphan: its operation goes, or is cut. */
static void
orphan_free (TdOp *op, int i)
{
  TdNode *n = op->out[i];

  op->orphans &= ~(1u << i);
  op->retained_out &= ~(1u << i);
  op->out[i] = NULL;
  node_release_array (n);
  node_give_back (n);
}

/* Drop what an operation holds: input nodes and retained arrays.  May add to the worklist. */
static void
op_clear (TdOp *op)
{
  for (int i = 0; i < op->n_in; i++)
    if (td__bit (op->retained_in, i))
      node_release_array (op->in[i]);
  op->retained_in = 0;
  for (int i = 0; i < op->n_out && op->orphans != 0; i++)
    if (td__bit (op->orphans, i))
      orphan_free (op, i);
  for (int i = 0; i < op->n_out; i++)
    if (td__bit (op->retained_out, i) && op->out[i] != NULL)
      node_release_array (op->out[i]);
  op->retained_out = 0;
  for (int i = 0; i < op->n_in; i++)
    td__node_unref (op->in[i]);
  op->n_in = 0;
}

static void
op_free (TdOp *op)
{
  op_clear (op);
  if (op->in != op->in_inline)
    free (op->in);
  if (op->out != op->out_inline)
    free (op->out);
  if (op->in_versions != op->versions_inline)
    free (op->in_versions);
  if (TD_UNLIKELY (op->cls->release != NULL))
    op->cls->release (op->attrs);
  if (op->attrs != op->attrs_inline)
    free (op->attrs);
  op->id = 0; /* a free slot is nobody's */
  td__slab_release (&td__engine.ops, op);
}

void
td__ops_finish (void)
{
  static const TdOpClass over = { .name = "over" }; /* what was given back is so once */
  const TdSlab *slab = &td__engine.ops;

  for (size_t c = 0; c < slab->n_chunks; c++)
    for (size_t i = 0; i < TD_SLAB_ITEMS; i++)
      {
        TdOp *op = (TdOp *)(void *)((char *)slab->chunks[c] + i * slab->item_bytes);
        const TdOpClass *cls = op->cls;

        if (op->id == 0 || cls->release == NULL)
          continue;
        op->cls = &over; /* it may be the last to hold a graph that this operation is in */
        cls->release (op->attrs);
      }
}

void
td__op_unref (TdOp *op)
{
  TdEngine *e = &td__engine;

  if (--op->refs > 0)
    return;
  op->next = e->dying;
  e->dying = op;
  if (e->releasing)
    return;
  e->releasing = true;
  while (e->dying != NULL)
    {
      op = e->dying;
      e->dying = op->next;
      op_free (op);
    }
  e->releasing = false;
}

/* An array that its own operation retains must outlive the node's last holder while the
 * operation lives through other outputs (the indices of max_pooling_2d): the node becomes an
 * orphan, which no longer counts for the operation and ends with it. */
void
td__node_free (TdNode *n)
{
  TdOp *op = n->creator;

  if (op != NULL && td__bit (op->retained_out, n->out_index))
    {
      if (op->refs > 1)
        {
          op->orphans |= 1u << n->out_index;
          op->refs--;
          return;
        }
      op->retained_out &= ~(1u << n->out_index);
      node_release_array (n);
    }
  if (op != NULL)
    {
      op->out[n->out_index] = NULL;
      n->creator = NULL;
    }
  node_give_back (n);
  if (op != NULL)
    td__op_unref (op);
}

TdNode *
td__node_revive (TdNode *n)
{
  if (n->refs++ == 0)
    {
      n->creator->orphans &= ~(1u << n->out_index);
      n->creator->refs++;
    }
  return n;
}

void
td__node_cut (TdNode *n)
{
  TdOp *op = n->creator;

  if (op == NULL)
    return;
  if (td__bit (op->retained_out, n->out_index))
    {
      op->retained_out &= ~(1u << n->out_index);
      node_release_array (n);
    }
  op->out[n->out_index] = NULL;
  n->creator = NULL;
  td__op_unref (op);
}

void
td__op_cut (TdOp *op)
{
  op->refs++;
  for (int i = 0; i < op->n_out; i++)
    if (td__bit (op->orphans, i))
      orphan_free (op, i);
    else if (op->out[i] != NULL)
      td__node_cut (op->out[i]);
  td__op_unref (op);
}

/* What is kept of `of` is kept of n: one operation's part of it. */
static void
keep_instead (TdNode *n, TdNode *of, TdBuffer *array)
{
  if (n->n_retains++ == 0)
    {
      n->retained = td__buffer_ref (array != NULL ? array : of->retained);
      n->retained->n_saved++;
    }
  node_release_array (of);
}

void
td__node_take_place (TdNode *n, TdNode *of, TdBuffer *array, uint32_t version, TdOp *const *ops,
                     size_t n_ops)
{
  TdOp *creator = of->creator;

  td__node_cut (n);
  creator->out[of->out_index] = n;
  n->creator = creator;
  n->out_index = of->out_index;
  of->creator = NULL;
  if (td__bit (creator->retained_out, n->out_index))
    {
      n->retained_version = array != NULL ? version : of->retained_version;
      keep_instead (n, of, array);
    }
  for (size_t k = 0; k < n_ops; k++)
    for (int i = 0; i < ops[k]->n_in; i++)
      {
        if (ops[k]->in[i] != of)
          continue;
        if (td__bit (ops[k]->retained_in, i))
          {
            ops[k]->in_versions[i] = array != NULL ? version : ops[k]->in_versions[i];
            keep_instead (n, of, array);
          }
        ops[k]->in[i] = td__node_ref (n);
        td__node_unref (of);
      }
}
