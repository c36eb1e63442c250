/* Operations that a static function fuses, one of which computes with something else:
 * members-program STATIC WHICH, which 0: none.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdlib.h>

static TdLink *net, *left, *right;
static int which;

static double
number (int k, double usual, double other)
{
  return which == k ? other : usual;
}

static void
forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *first = td_link (left, in[0]), *x = td_mul_scalar (first, number (1, 1, 1.0001)), *y;

  (void)self;
  (void)n_in;
  (void)n_out;
  y = td_link (right, in[0]);
  x = which == 2 ? td_add (y, x) : td_add (x, y);
  x = td_clip (x, -0.5, number (3, 0.3, 0.31));
  x = td_leaky_relu (x, .slope = number (4, 0.2, 0.21));
  x = td_add_scalar (x, number (5, 0.5, 0.51));
  x = td_elu (x, .alpha = number (6, 1, 1.5));
  x = which == 7 ? td_sub (y, x) : td_sub (x, y);
  x = td_mul (x, which == 9 ? first : y);
  out[0] = td_mean (td_dropout (x, number (8, 0.1, 0.2)));
}

int
main (int argc, char **argv)
{
  TdStatic *function = NULL;

  td_init (&argc, &argv);
  which = argc > 2 ? atoi (argv[2]) : 0;
  net = td_chain_new ("net");
  left = td_linear_new (net, "left", 16, 16);
  right = td_linear_new (net, "right", 16, 16);
  if (argc > 1 && atoi (argv[1]) != 0)
    function = td_static_new (forward, NULL);
  TD_ITERATIONS (i, 8)
    {
      TdVar *x = td_randn (TD_F32, TD_SHAPE (6, 16)), *y;

      if (function != NULL)
        td_static_call (function, &x, 1, &y, 1);
      else
        forward (NULL, &x, 1, &y, 1);
      td_cleargrads (net);
      td_backward (y, 0);
    }
  if (function != NULL)
    td_static_free (function);
  td_link_free (net);
  return td_finish ();
}
