/* An example whose first graphs go out (graph-out.h).
 *
 *     EXPORT=FOLDER example-out-NAME ARGUMENTS
 *
 * The example is compiled in as it is: where it asks for gradients, reports its loss or draws
 * its graph, the graph is written first.
 *
 * SPDX-License-Identifier: MIT */
#include "graph-out.h"

#undef td_backward
#undef td_report_variable
#undef td_save_dot
#define td_backward(y, flags) (graph_out (y), td_backward_at (y, flags, TD_HERE))
#define td_report_variable(key, y) (graph_out (y), (td_report_variable)(key, y))
#define td_save_dot(y, path, options) (graph_out (y), (td_save_dot)(y, path, options))
#define main example_main
int example_main (int argc, char **argv);
#include EXAMPLE
#undef main

int
main (int argc, char **argv)
{
  int status = 0;

  TD_USING (keep_graph, 1)
    status = example_main (argc, argv);
  return status;
}
