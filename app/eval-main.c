/* tapedeck-eval: what of `tapedeck` needs the engine itself, with OpenBLAS and oneDNN behind
 * it: calls of operations, recorded ones that are run again, ONNX models, and the list of
 * devices.
 * `tapedeck` starts it.
 *
 * SPDX-License-Identifier: MIT */
#include "command.h"

#include "tapedeck.h"

#include <stdio.h>
#include <string.h>

static int
run (int argc, char **argv)
{
  if (argc > 0 && td_is_onnx (argv[0])) /* it runs in the place of a model's program */
    return td_command_onnx_run (argc, argv);
  if (argc > 1 && strcmp (argv[1], "eval") == 0)
    return td_command_eval (argc - 1, argv + 1);
  if (argc > 1 && strcmp (argv[1], "recompute") == 0)
    return td_command_recompute (argc - 1, argv + 1);
  if (argc > 1 && strcmp (argv[1], "info") == 0)
    return td_command_onnx_info (argc - 1, argv + 1);
  if (argc == 2 && strcmp (argv[1], "backends") == 0)
    return printf ("backends: %s\n", td_device_backends ()), TD_EXIT_OK;
  fputs ("usage: tapedeck-eval eval ... | recompute ... | info MODEL.onnx | backends; try "
         "tapedeck eval --help\n",
         stderr);
  return TD_EXIT_USAGE;
}

int
main (int argc, char **argv)
{
  return td_command_main (argc, argv, run);
}
