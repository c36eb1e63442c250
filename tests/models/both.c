/* One function, run as code in iterations 0 and 1 and by its schedule, operation by operation,
 * in 3 and 4.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

static void
curves (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_relu (in[0]);

  (void)self;
  (void)n_in;
  (void)n_out;
  h = td_sin (h);
  h = td_mul_scalar (h, 2.0);
  out[0] = td_tanh (h);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdStatic *s = td_static_new (curves, NULL, .fuse = false);

  TD_ITERATIONS (i, 5)
    {
      td_set_seed (5);

      TdVar *x = td_variable (td_randn (TD_F32, TD_SHAPE (4, 8)), "x");
      TdVar *y = NULL;

      if (i < 2)
        curves (NULL, &x, 1, &y, 1);
      else
        td_static_call (s, &x, 1, &y, 1);
      td_backward (td_sum (y), 0);
    }
  td_static_free (s);
  return td_finish ();
}
