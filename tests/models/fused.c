/* A static function whose operations run as one: its logarithm gets negative numbers from some
 * iteration on.  Arguments: iterations, the first of those, microseconds to sleep in each.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdlib.h>
#include <time.h>

static void
forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *y = td_mul (in[0], self);

  (void)n_in;
  (void)n_out;
  y = td_tanh (y);
  y = td_log (y);
  y = td_exp (y);
  out[0] = td_sum (y);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  const int n = argc > 1 ? atoi (argv[1]) : 10, bad = argc > 2 ? atoi (argv[2]) : 5;
  const struct timespec nap = { 0, argc > 3 ? 1000L * atoi (argv[3]) : 0 };
  TdLink *model = td_chain_new ("model");
  TdVar *w = td_link_add_param (model, "w", TD_SHAPE (8), TD_F32, td_init_constant (0.5));
  TdStatic *s = td_static_new (forward, w, .verify = 0);

  for (int i = 0; i < n && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *x = td_full (TD_F32, TD_SHAPE (8), i < bad ? 1 : -1), *y;

        td_cleargrads (model);
        td_static_call (s, &x, 1, &y, 1);
        td_backward (y, 0);
        nanosleep (&nap, NULL);
      }
  td_static_free (s);
  return td_finish ();
}
