/* A classifier of cuda:0 with a bad label in two of its iterations, which forgives errors and
 * goes on: run under `tapedeck run`, to see where it stops.
 *
 *   bad-label [static]
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <string.h>

static TdLink *l1, *l2;

/* The device has made them: only it can see what they are. */
static TdVar *
labels (bool bad)
{
  static const int32_t good_t[4] = { 0, 1, 1, 2 }, bad_t[4] = { 0, 9, 1, 2 };

  return td_add (td_tensor (TD_I32, TD_SHAPE (4), bad ? bad_t : good_t),
                 td_zeros (TD_I32, TD_SHAPE (4)));
}

static void
forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_softmax_cross_entropy (td_link (l2, td_relu (td_link (l1, in[0]))), in[1]);
}

int
main (int argc, char **argv)
{
  bool is_static;
  TdLink *root;
  TdStatic *function;
  TdOpt *opt;
  int n_errors = 0;

  if (td_init (&argc, &argv) != TD_OK)
    return 1;
  is_static = argc > 1 && strcmp (argv[1], "static") == 0;
  root = td_chain_new ("net");
  l1 = td_linear_new (root, "l1", 5, 8);
  l2 = td_linear_new (root, "l2", 8, 3);
  opt = td_sgd_new (root, .lr = 0.1);
  function = td_static_new (forward, NULL, .fuse = false, .verify = 0);
  for (int i = 0; i < 16; i++)
    {
      TD_ITERATION (i)
        {
          TdVar *in[] = { td_ones (TD_F32, TD_SHAPE (4, 5)), labels (i == 10 || i == 13) }, *y;

          if (is_static)
            td_static_call (function, in, 2, &y, 1);
          else
            forward (NULL, in, 2, &y, 1);
          td_cleargrads (root);
          td_backward (y, 0);
          td_opt_update (opt);
        }
      n_errors += td_error () != NULL;
      td_error_clear ();
    }
  td_static_free (function);
  td_opt_free (opt);
  td_link_free (root);
  td_finish ();
  printf ("%d errors\n", n_errors);
  return 0;
}
