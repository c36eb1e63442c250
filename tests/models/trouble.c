/* Ends in the way its argument says: segv, abort, exit3, oom, nan, error, hang, spin.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  const char *how = argc > 1 ? argv[1] : "";
  volatile int *nowhere = NULL;

  TD_ITERATIONS (i, 1000000)
    {
      TdVar *x = td_variable (td_full (TD_F32, TD_SHAPE (4), 2.0), "x");
      TdVar *y = td_sum (td_exp (x));

      td_backward (y, 0);
      if (i < 3)
        continue;
      if (strcmp (how, "segv") == 0)
        *nowhere = 1;
      else if (strcmp (how, "abort") == 0)
        abort ();
      else if (strcmp (how, "exit3") == 0)
        exit (3);
      else if (strcmp (how, "exit2") == 0)
        exit (2);
      else if (strcmp (how, "oom") == 0)
        td_zeros (TD_F32, TD_SHAPE (1 << 20, 1 << 20));
      else if (strcmp (how, "nan") == 0)
        td_log (td_neg (x));
      else if (strcmp (how, "error") == 0)
        td_add (x, td_zeros (TD_F32, TD_SHAPE (5)));
      else if (strcmp (how, "hang") == 0)
        pause ();
      else if (strcmp (how, "spin") != 0)
        break;
    }
  return td_finish ();
}
