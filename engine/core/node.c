/* Nodes and operations: the graph, and how it dies.
 *
 * Release walks a worklist, never recursion: a chain of a million operations is freed without
 * growing the stack.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"

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
  td__slab_give (&td__engine.nodes, n);
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
  td__slab_give (&td__engine.ops, op);
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
