/* tapedeck-layout: lays out graphs with Graphviz, away from the program that wants them.
 * Graphviz is not thread-safe, cannot be cancelled and aborts on some inputs: whoever waits for
 * this process kills it instead.
 *
 * The protocol, line by line; numbers are points, with a dot for decimals, y down:
 *
 *     asked    graph N M             N nodes of M edges (N at most 600)
 *              n WIDTH HEIGHT        for each node
 *              e FROM TO WEIGHT      for each edge; FROM is to stand above TO
 *              end
 *     answered ok N M
 *              n X Y                 for each node: its middle
 *              e K X1 Y1 ... XK YK   for each edge: control points of its curve
 *              end
 *     or       error TEXT
 *
 * Any number of graphs, until the input ends.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <graphviz/gvc.h>

#define MAX_NODES 600
#define MAX_EDGES 8000
#define ADDRESS_LIMIT (1ull << 30)
#define INCH 72.0

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define TD_SANITIZED
#endif
#endif

/* agattr () and friends take text that they do not change, as `char *`. */
static void
set (void *object, const char *name, const char *value)
{
  agsafeset (object, (char *)name, (char *)value, (char *)"");
}

static void
set_number (void *object, const char *name, double value)
{
  char text[40];

  snprintf (text, sizeof text, "%.4f", value);
  set (object, name, text);
}

static Agraph_t *
new_graph (void)
{
  Agraph_t *g = agopen ((char *)"g", Agstrictdirected, NULL);

  agattr (g, AGRAPH, (char *)"rankdir", (char *)"TB");
  agattr (g, AGRAPH, (char *)"nodesep", (char *)"0.22");
  agattr (g, AGRAPH, (char *)"ranksep", (char *)"0.34");
  agattr (g, AGRAPH, (char *)"splines", (char *)"true");
  agattr (g, AGNODE, (char *)"label", (char *)"");
  agattr (g, AGNODE, (char *)"shape", (char *)"box");
  agattr (g, AGNODE, (char *)"fixedsize", (char *)"true");
  return g;
}

/* Reads one request after its first line. Returns what is wrong with it, NULL if nothing. */
static const char *
read_graph (FILE *in, Agraph_t *g, Agnode_t **nodes, Agedge_t **edges, int n, int m)
{
  char line[256], name[16];

  for (int i = 0; i < n; i++)
    {
      double width, height;

      if (!fgets (line, sizeof line, in) || sscanf (line, "n %lf %lf", &width, &height) != 2
          || !(width > 0 && width < 1e6 && height > 0 && height < 1e6))
        return "expected a node";
      snprintf (name, sizeof name, "%d", i);
      nodes[i] = agnode (g, name, 1);
      set_number (nodes[i], "width", width / INCH);
      set_number (nodes[i], "height", height / INCH);
    }
  for (int i = 0; i < m; i++)
    {
      int from, to, weight;

      if (!fgets (line, sizeof line, in)
          || sscanf (line, "e %d %d %d", &from, &to, &weight) != 3 || from < 0 || from >= n
          || to < 0 || to >= n || from == to)
        return "expected an edge";
      edges[i] = agedge (g, nodes[from], nodes[to], NULL, 1);
      if (weight > 1)
        set_number (edges[i], "weight", weight);
    }
  if (!fgets (line, sizeof line, in) || strcmp (line, "end\n") != 0)
    return "expected the end";
  return NULL;
}

static void
print_edge (FILE *out, const Agedge_t *edge, double height)
{
  const splines *spl = ED_spl (edge);
  int n = 0;

  for (int i = 0; spl && i < spl->size; i++)
    n += spl->list[i].size;
  fprintf (out, "e %d", n);
  for (int i = 0; spl && i < spl->size; i++)
    for (int k = 0; k < spl->list[i].size; k++)
      fprintf (out, " %.2f %.2f", spl->list[i].list[k].x, height - spl->list[i].list[k].y);
  fputc ('\n', out);
}

static const char *
answer (GVC_t *gvc, FILE *in, FILE *out, int n, int m)
{
  static Agnode_t *nodes[MAX_NODES];
  static Agedge_t *edges[MAX_EDGES];
  Agraph_t *g = new_graph ();
  const char *wrong = read_graph (in, g, nodes, edges, n, m);

  if (!wrong && gvLayout (gvc, g, "dot") != 0)
    wrong = "Graphviz cannot lay it out";
  if (!wrong)
    {
      double height = GD_bb (g).UR.y;

      fprintf (out, "ok %d %d\n", n, m);
      for (int i = 0; i < n; i++)
        fprintf (out, "n %.2f %.2f\n", ND_coord (nodes[i]).x, height - ND_coord (nodes[i]).y);
      for (int i = 0; i < m; i++)
        print_edge (out, edges[i], height);
      fputs ("end\n", out);
      gvFreeLayout (gvc, g);
    }
  agclose (g);
  return wrong;
}

/* A sanitizer's shadow is larger than any limit. */
static void
limit_memory (void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(TD_SANITIZED)
  struct rlimit limit = { ADDRESS_LIMIT, ADDRESS_LIMIT };

  setrlimit (RLIMIT_AS, &limit);
#endif
}

int
main (void)
{
  GVC_t *gvc;
  char line[256];

  limit_memory ();
  gvc = gvContext ();
  agseterr (AGMAX); /* its warnings help nobody here */
  while (fgets (line, sizeof line, stdin))
    {
      int n, m;
      const char *wrong = "expected a graph of at most 600 nodes";

      if (sscanf (line, "graph %d %d", &n, &m) == 2 && n > 0 && n <= MAX_NODES && m >= 0
          && m <= MAX_EDGES)
        wrong = answer (gvc, stdin, stdout, n, m);
      if (wrong)
        {
          /* what follows cannot be told from the next request */
          printf ("error %s\n", wrong);
          fflush (stdout);
          return 2;
        }
      fflush (stdout);
    }
  gvFreeContext (gvc);
  return 0;
}
