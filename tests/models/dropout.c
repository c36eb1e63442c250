/* Dropout twice in each iteration, of another ratio from the fourth on.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);
  TD_ITERATIONS (i, 6)
    {
      TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (4, 5)), "x");

      td_backward (td_sum (td_dropout (td_dropout (x, i < 3 ? 0.25 : 0.5), 0.125)), 0);
    }
  return td_finish ();
}
