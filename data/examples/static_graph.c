/* A model whose graph is the same each time: no branch depends on data.
 *
 * The second example of "Dynamic vs Static Graphs"; its graph is saved as DOT, PNG and SVG.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>

typedef struct
{
  TdLink *chain, *l1, *l2;
} StaticGraphModel;

static TdVar *
forward (StaticGraphModel *m, TdVar *x)
{
  TdVar *h = td_relu (td_link (m->l1, x));

  return td_link (m->l2, h);
}

/* A picture is drawn by tapedeck-viz, which a server may not have. */
static void
save_picture (TdVar *y, const char *path)
{
  if (td_save_dot (y, path, NULL) == TD_OK)
    return;
  fprintf (stderr, "%s\n", td_error ()->message);
  td_error_clear ();
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  StaticGraphModel m = { .chain = td_chain_new ("model") };
  m.l1 = td_linear_new (m.chain, "l1", TD_INFER,
                        5); /* its input size is that of the first input */
  m.l2 = td_linear_new (m.chain, "l2", 5, 2);

  TD_ITERATION (0)
    {
      TdVar *x = td_variable (td_rand (TD_F32, TD_SHAPE (3, 4)), NULL);
      TdVar *y = forward (&m, x);

      if (td_save_dot (y, "static_graph.dot", NULL) == TD_OK)
        printf ("Static graph has been saved as static_graph.dot\n");
      save_picture (y, "static_graph.png");
      save_picture (y, "static_graph.svg");
    }
  return td_finish ();
}
