/* A graph that is made by running: C's own if decides which operations there are.
 *
 * The first example of "Dynamic vs Static Graphs", with both branches: the graph of each is
 * saved as DOT, PNG and SVG.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>

static TdVar *
dynamic_graph_example (TdVar *x, bool apply_relu)
{
  TdVar *h = apply_relu ? td_relu (x) : td_sigmoid (x);

  return td_mean_of (x) > 0.0 ? td_sum (h) : td_prod (h);
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
  static const char *const names[2][4] = {
    { "ReLU", "dynamic_graph_relu.dot", "dynamic_graph_relu.png", "dynamic_graph_relu.svg" },
    { "Sigmoid", "dynamic_graph_sigmoid.dot", "dynamic_graph_sigmoid.png",
      "dynamic_graph_sigmoid.svg" },
  };

  td_init (&argc, &argv);
  TD_ITERATIONS (i, 2)
    {
      TdVar *x = td_variable (td_randn (TD_F32, TD_SHAPE (5)), NULL);
      TdVar *y = dynamic_graph_example (x, i == 0);

      td_backward (y, 0);
      if (td_save_dot (y, names[i][1], NULL) == TD_OK)
        printf ("Graph with %s has been saved as %s\n", names[i][0], names[i][1]);
      save_picture (y, names[i][2]);
      save_picture (y, names[i][3]);
      td_report ("y", td_item (y));
    }
  return td_finish ();
}
