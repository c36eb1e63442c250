/* A small model, run in a process of its own and recorded with its values: what rings and tapes
 * for fuzzers are made of. SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Record n iterations into the ring behind `ring_fd`; in iteration nan_at a NaN begins.  Owner
 * of the weight: the caller. */
static TdVar *
fuzz_model (int ring_fd, int n, int nan_at)
{
  char text[16];
  int argc = 0;
  TdVar *w;

  snprintf (text, sizeof text, "%d", ring_fd);
  setenv ("TAPEDECK_RING", text, 1);
  setenv ("TAPEDECK_LEVEL", "values", 1);
  if (td_init (&argc, NULL) != TD_OK)
    _exit (3);
  w = td_retain (td_variable (td_randn (TD_F32, TD_SHAPE (3, 2)), "w"));
  TD_ITERATIONS (i, n)
    {
      TD_SCOPE_HERE ("layer");
      TdVar *x = td_name (td_randn (TD_F32, TD_SHAPE (4, 3)), "x");
      TdVar *h = td_tanh (td_matmul (x, w, false, false));
      TdVar *loss = td_sum (i == nan_at ? td_log (h) : h);

      td_cleargrad (w);
      td_backward (loss, 0);
      td_report ("loss", td_item (loss));
    }
  return w;
}
