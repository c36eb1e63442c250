/* A graph that ran goes out with what it began with and what came of it.
 *
 * SPDX-License-Identifier: MIT */
#include "graph-out.h"

#include "core/core.h"

#include <stdio.h>
#include <stdlib.h>

enum
{
  MOST_GRAPHS = 2,
  MOST_OPS = 4096,
  MOST_INPUTS = 512
};

static const TdOp *ops[MOST_OPS];
static int n_ops;
static TdVar *inputs[MOST_INPUTS];
static int n_inputs;

static void
fail (const char *what)
{
  fprintf (stderr, "graph-out: more %s than it has room for\n", what);
  exit (9);
}

static void
take_op (const TdOp *op)
{
  for (int i = 0; i < n_ops; i++)
    if (ops[i] == op)
      return;
  if (op == NULL)
    return;
  if (n_ops == MOST_OPS)
    fail ("operations");
  ops[n_ops++] = op;
}

static void
take_input (TdNode *n)
{
  if (n->creator != NULL || n->var == NULL || (n->var->flags & TD_VAR_PERSISTENT) != 0)
    return;
  for (int i = 0; i < n_inputs; i++)
    if (inputs[i]->node == n)
      return;
  if (n_inputs == MOST_INPUTS)
    fail ("inputs");
  inputs[n_inputs++] = n->var;
}

/* What the graph begins with, but for the numbers of links. */
static void
find_inputs (TdVar *y)
{
  n_ops = n_inputs = 0;
  take_op (y->node->creator);
  for (int i = 0; i < n_ops; i++)
    for (int k = 0; k < ops[i]->n_in; k++)
      {
        take_op (ops[i]->in[k]->creator);
        take_input (ops[i]->in[k]);
      }
}

static void
keep (const char *graph, const char *what, int i, TdVar *v)
{
  char path[4400];

  snprintf (path, sizeof path, "%s.%s%d.npy", graph, what, i);
  td_save_npy (path, v);
}

void
graph_out (TdVar *y)
{
  static int n_graphs;
  char graph[4200], path[4300];

  if (n_graphs == MOST_GRAPHS)
    exit (0);
  find_inputs (y);
  snprintf (graph, sizeof graph, "%s/graph%d", getenv ("EXPORT"), n_graphs);
  snprintf (path, sizeof path, "%s.onnx", graph);
  td_save_onnx (&y, 1, path, .in = inputs, .n_in = n_inputs);
  printf ("graph%d %s\n", n_graphs, td_error () == NULL ? "OK" : td_error ()->message);
  td_error_clear ();
  for (int i = 0; i < n_inputs; i++)
    keep (graph, "in", i, inputs[i]);
  keep (graph, "out", 0, y);
  n_graphs++;
}
