/* Graphs of the fake driver: streams are captured into nodes with dependencies; what was made
 * executable of a graph runs late, as all on a stream does, its nodes in any order that their
 * dependencies allow.
 *
 * What is executable keeps its own list of commands, and a launch that waits keeps the list as
 * it was, so that changing a node changes later launches only.  Destroyed ones stay known till
 * the end: a launch of one is noted.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  FakeCommand *command;
  const FakeCommand *origin; /* of the graph that was captured: what CUgraphNode is */
  int after[FAKE_TAILS];
  int n_after;
} Node;

typedef struct
{
  Node *nodes;
  int n;
} Nodes;

struct CUgraph_st
{
  Nodes of;
  uint64_t id; /* of the capture */
  int n_streams;
  CUgraphNode tails[FAKE_TAILS];
};

struct CUgraphExec_st
{
  struct CUgraphExec_st *next;
  Nodes of;
  bool destroyed;
};

static struct CUgraphExec_st *execs;
static uint64_t n_captures;
static CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static uint32_t dice;

/* --- lists of nodes --- */

static void
nodes_clear (Nodes *of)
{
  for (int i = 0; i < of->n; i++)
    fake_command_unref (of->nodes[i].command);
  free (of->nodes);
  *of = (Nodes){ NULL, 0 };
}

static Nodes
nodes_copy (const Nodes *of)
{
  Nodes copy = { malloc ((size_t)(of->n + 1) * sizeof *copy.nodes), of->n };

  if (copy.nodes == NULL)
    abort ();
  for (int i = 0; i < of->n; i++)
    {
      copy.nodes[i] = of->nodes[i];
      copy.nodes[i].command->refs++;
    }
  return copy;
}

/* Does node i come before node k, or is it k? */
static bool
is_before (const Nodes *of, int i, int k)
{
  const Node *node = &of->nodes[k];

  if (i == k)
    return true;
  for (int t = 0; t < node->n_after && k > i; t++)
    if (is_before (of, i, node->after[t]))
      return true;
  return false;
}

static bool
collide (const FakeCommand *a, const FakeCommand *b)
{
  for (int i = 0; i < a->n_uses; i++)
    for (int k = 0; k < b->n_uses; k++)
      if ((a->uses[i].writes || b->uses[k].writes)
          && a->uses[i].address < b->uses[k].address + b->uses[k].bytes
          && b->uses[k].address < a->uses[i].address + a->uses[i].bytes)
        return true;
  return false;
}

static void
check_order (const Nodes *of)
{
  for (int k = 0; k < of->n; k++)
    for (int i = 0; i < k; i++)
      if (collide (of->nodes[i].command, of->nodes[k].command) && !is_before (of, i, k))
        fake_violation ("%s and %s of a graph use the same bytes, and none follows the other",
                        of->nodes[i].command->name, of->nodes[k].command->name);
}

/* --- capture --- */

static CUstream
captured_stream (uint64_t id)
{
  CUstream s;

  for (int i = 0; (s = fake_stream (i)) != NULL; i++)
    if (s->captured != NULL && (id == 0 || s->captured->id == id))
      return s;
  return NULL;
}

bool
fake_is_capturing (void)
{
  return captured_stream (0) != NULL;
}

bool
fake_forbids (const char *function)
{
  if (!fake_is_capturing () || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
    return false;
  fake_violation ("%s while a stream is captured", function);
  return true;
}

CUresult
cuThreadExchangeStreamCaptureMode (CUstreamCaptureMode *mode)
{
  CUstreamCaptureMode before = thread_mode;

  thread_mode = *mode;
  *mode = before;
  return fake_enter ("cuThreadExchangeStreamCaptureMode");
}

CUresult
cuStreamBeginCapture (CUstream s, CUstreamCaptureMode mode)
{
  CUresult result = fake_enter ("cuStreamBeginCapture");

  if (result != CUDA_SUCCESS || s->captured != NULL)
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_ILLEGAL_STATE;
  s->captured = calloc (1, sizeof *s->captured);
  if (s->captured == NULL)
    abort ();
  s->captured->id = ++n_captures;
  s->captured->n_streams = 1;
  s->origin = true;
  s->n_tails = 0;
  fake.n_captures++;
  return CUDA_SUCCESS;
}

CUresult
fake_graph_add (CUstream s, FakeCommand *c)
{
  Nodes *of = &s->captured->of;
  Node *node;

  of->nodes = realloc (of->nodes, (size_t)(of->n + 1) * sizeof *of->nodes);
  if (of->nodes == NULL)
    abort ();
  node = &of->nodes[of->n];
  *node = (Node){ .command = c, .origin = c, .n_after = s->n_tails };
  memcpy (node->after, s->tails, sizeof node->after);
  s->tails[0] = of->n++;
  s->n_tails = 1;
  return CUDA_SUCCESS;
}

void
fake_graph_mark (CUstream s, FakeEvent *e)
{
  e->capture = s->captured->id;
  memcpy (e->tails, s->tails, sizeof e->tails);
  e->n_tails = s->n_tails;
}

/* A stream that waits for what is captured is captured too. */
CUresult
fake_graph_join (CUstream s, FakeEvent *e)
{
  CUstream other = e->capture != 0 ? captured_stream (e->capture) : NULL;

  if (other == NULL || (s->captured != NULL && s->captured != other->captured))
    {
      fake_violation ("a captured stream waits for what is not captured with it");
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
  if (s->captured == NULL)
    {
      s->captured = other->captured;
      s->captured->n_streams++;
      s->origin = false;
      s->n_tails = 0;
    }
  for (int i = 0; i < e->n_tails; i++)
    {
      bool there = false;

      for (int k = 0; k < s->n_tails; k++)
        there |= s->tails[k] == e->tails[i];
      if (!there && s->n_tails == FAKE_TAILS)
        abort ();
      if (!there)
        s->tails[s->n_tails++] = e->tails[i];
    }
  return CUDA_SUCCESS;
}

CUresult
cuStreamGetCaptureInfo (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id,
                        CUgraph *graph, const CUgraphNode **nodes,
                        const CUgraphEdgeData **edges, size_t *n)
{
  struct CUgraph_st *g = s->captured;

  *status = g != NULL ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  if (g == NULL)
    return fake_enter ("cuStreamGetCaptureInfo");
  if (nodes != NULL && edges == NULL)
    return CUDA_ERROR_LOSSY_QUERY; /* as if a library had launched something new */
  for (int i = 0; i < s->n_tails; i++)
    g->tails[i] = (CUgraphNode)(uintptr_t)g->of.nodes[s->tails[i]].origin;
  if (id != NULL)
    *id = g->id;
  if (graph != NULL)
    *graph = g;
  if (nodes != NULL)
    *nodes = g->tails;
  if (edges != NULL)
    *edges = NULL;
  if (n != NULL)
    *n = (size_t)s->n_tails;
  return fake_enter ("cuStreamGetCaptureInfo");
}

/* What another stream did last must come before what this one did. */
static bool
is_joined (CUstream s, CUstream other)
{
  for (int t = 0; t < other->n_tails; t++)
    {
      bool before = false;

      for (int k = 0; k < s->n_tails; k++)
        before |= is_before (&s->captured->of, other->tails[t], s->tails[k]);
      if (!before)
        return false;
    }
  return true;
}

CUresult
cuStreamEndCapture (CUstream s, CUgraph *graph)
{
  CUresult result = fake_enter ("cuStreamEndCapture");
  struct CUgraph_st *g = s->captured;
  CUstream other;

  *graph = NULL;
  if (g == NULL)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (!s->origin)
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  for (int i = 0; (other = fake_stream (i)) != NULL; i++)
    if (other->captured == g && other != s)
      {
        if (result == CUDA_SUCCESS && !is_joined (s, other))
          result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        other->captured = NULL;
      }
  s->captured = NULL;
  if (result == CUDA_SUCCESS && g->n_streams > 1)
    check_order (&g->of);
  if (result == CUDA_SUCCESS)
    *graph = g;
  else
    cuGraphDestroy (g);
  return result;
}

CUresult
cuGraphDestroy (CUgraph g)
{
  nodes_clear (&g->of);
  free (g);
  return fake_enter ("cuGraphDestroy");
}

/* --- what can be launched --- */

static bool
is_usable (CUgraphExec exec, const char *function)
{
  if (exec->destroyed)
    fake_violation ("%s of a graph that was destroyed", function);
  return !exec->destroyed;
}

CUresult
cuGraphInstantiate (CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
  CUresult result = fake_enter ("cuGraphInstantiate");

  if (result != CUDA_SUCCESS)
    return result;
  *exec = calloc (1, sizeof **exec);
  if (*exec == NULL)
    abort ();
  (*exec)->of = nodes_copy (&graph->of);
  (*exec)->next = execs;
  execs = *exec;
  fake.n_graphs++;
  return CUDA_SUCCESS;
}

/* The same kinds of command with the same dependencies, or nothing happens. */
CUresult
cuGraphExecUpdate (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
  CUresult result = fake_enter ("cuGraphExecUpdate");
  const Nodes *of = &graph->of;
  bool same = exec->of.n == of->n;

  if (result != CUDA_SUCCESS || !is_usable (exec, "cuGraphExecUpdate"))
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_HANDLE;
  for (int i = 0; i < of->n && same; i++)
    {
      const Node *a = &exec->of.nodes[i], *b = &of->nodes[i];

      same = strcmp (a->command->name, b->command->name) == 0 && a->n_after == b->n_after
             && memcmp (a->after, b->after, (size_t)a->n_after * sizeof *a->after) == 0;
    }
  *info = (CUgraphExecUpdateResultInfo){ .result = CU_GRAPH_EXEC_UPDATE_SUCCESS };
  if (!same)
    {
      info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
  for (int i = 0; i < of->n; i++) /* their nodes stay those of the first graph */
    {
      fake_command_unref (exec->of.nodes[i].command);
      exec->of.nodes[i].command = of->nodes[i].command;
      of->nodes[i].command->refs++;
    }
  fake.n_graph_changes[1]++;
  return CUDA_SUCCESS;
}

CUresult
fake_graph_change (CUgraphExec exec, CUgraphNode node, FakeCommand *command)
{
  Node *found = NULL;

  for (int i = 0; i < exec->of.n; i++)
    if (exec->of.nodes[i].origin == (const FakeCommand *)(const void *)node)
      found = &exec->of.nodes[i];
  if (!is_usable (exec, "cuGraphExecKernelNodeSetParams") || found == NULL
      || found->command->run != command->run)
    {
      fake_command_unref (command);
      return CUDA_ERROR_INVALID_VALUE;
    }
  fake_command_unref (found->command);
  found->command = command;
  fake.n_graph_changes[0]++;
  return CUDA_SUCCESS;
}

/* Is all done that node i follows? */
static bool
is_free (const Nodes *of, int i, const bool *done)
{
  for (int t = 0; t < of->nodes[i].n_after; t++)
    if (!done[of->nodes[i].after[t]])
      return false;
  return true;
}

/* Nodes as the dice throw them, where dependencies leave a choice. */
static void
run_graph (FakeCommand *command)
{
  const Nodes *of = command->data;
  bool *done = calloc ((size_t)of->n + 1, sizeof *done);
  int first = 0; /* all before it are done */

  if (done == NULL)
    abort ();
  while (first < of->n)
    {
      int window = of->n - first < 8 ? of->n - first : 8, i;

      dice = dice * 1664525u + 1013904223u;
      i = first + (int)(dice >> 16) % window;
      while (done[i] || !is_free (of, i, done)) /* the first that is not done always is */
        i = i + 1 < first + window ? i + 1 : first;
      fake_run_now (of->nodes[i].command);
      done[i] = true;
      while (first < of->n && done[first])
        first++;
    }
  free (done);
}

static void
launch_free (FakeCommand *command)
{
  nodes_clear (command->data);
  free (command->data);
}

CUresult
cuGraphLaunch (CUgraphExec exec, CUstream s)
{
  CUresult result = fake_enter ("cuGraphLaunch");
  FakeCommand *c;
  Nodes *of;

  if (result != CUDA_SUCCESS || !is_usable (exec, "cuGraphLaunch"))
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_HANDLE;
  of = malloc (sizeof *of);
  if (of == NULL)
    abort ();
  *of = nodes_copy (&exec->of);
  c = fake_command ("cuGraphLaunch", run_graph);
  c->data = of;
  c->free = launch_free;
  for (int n = 0; n < of->n; n++)
    for (int i = 0; i < of->nodes[n].command->n_uses; i++)
      {
        const FakeUse *use = &of->nodes[n].command->uses[i];

        fake_command_use (c, use->address, use->bytes, use->writes);
      }
  fake.n_graph_launches++;
  return fake_enqueue (s, c);
}

CUresult
cuGraphExecDestroy (CUgraphExec exec)
{
  if (is_usable (exec, "cuGraphExecDestroy"))
    fake.n_graphs--;
  nodes_clear (&exec->of);
  exec->destroyed = true;
  return fake_enter ("cuGraphExecDestroy");
}

void
fake_graphs_reset (void)
{
  CUstream s;

  for (int i = 0; (s = fake_stream (i)) != NULL; i++)
    if (s->captured != NULL && s->origin)
      cuGraphDestroy (s->captured);
  for (struct CUgraphExec_st *exec = execs, *next; exec != NULL; exec = next)
    {
      next = exec->next;
      nodes_clear (&exec->of);
      free (exec);
    }
  execs = NULL;
  thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
}
