/* For tests that know of no device: the engine starts on cuda:0, wherever they start it.
 *
 * SPDX-License-Identifier: MIT */
#include "far-cuda.h"

#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TdStatus __real_td_init (int *argc, char ***argv);
TdStatus __wrap_td_init (int *argc, char ***argv);

/* A test that never came to the device has shown nothing. */
static void
check_launches (void)
{
  if (far_cuda_driver ()->state->n_launches > 0)
    return;
  fputs ("nothing was launched on cuda:0\n", stderr);
  _exit (1);
}

TdStatus
__wrap_td_init (int *argc, char ***argv)
{
  static bool started;

  if (far_cuda_driver () == NULL)
    exit (1);
  if (!started)
    atexit (check_launches);
  started = true;
  setenv ("TAPEDECK_DEVICE", "cuda:0", 1);
  return __real_td_init (argc, argv);
}
