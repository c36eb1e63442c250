/* A small net that trains, and in iteration 4, and every 16th from there on, does what its
 * argument says: changed, sizes, held, guard, unchain, no-backprop, alloc; all: each of these,
 * in an iteration of its own; with anything else nothing.  grows: something more is kept in
 * every iteration.  Behind that stands how many iterations there are, 10.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdlib.h>
#include <string.h>

enum
{
  WHEN = 4,
  AGAIN = 16
};

static const char *const events[]
    = { "changed", "sizes", "held", "guard", "unchain", "no-backprop", "alloc" };

/* Is this one done in iteration i? */
static bool
now (const char *what, const char *one, int i)
{
  int at = 0;

  while (strcmp (events[at], one) != 0)
    at++;
  return i % AGAIN == WHEN + (strcmp (what, "all") == 0 ? at : 0)
         && (strcmp (what, "all") == 0 || strcmp (what, one) == 0);
}

static void
square (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)user;
  (void)n_in;
  (void)n_out;
  out[0] = td_sum (td_square (in[0]));
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  const char *what = argc > 1 ? argv[1] : "";
  TdLink *net = td_linear_new (NULL, "net", 8, 8);
  TdOpt *opt = td_sgd_new (net, .lr = 0.01);
  TdStatic *loss_of = td_static_new (square, NULL, .name = "square");

  TD_ITERATIONS (i, argc > 2 ? atoi (argv[2]) : 10)
    {
      const bool other = now (what, "sizes", i) || now (what, "guard", i);
      TdVar *x = td_full (TD_F32, TD_SHAPE (other ? 5 + i / AGAIN % 20 : 4, 8), 0.5),
            *h = td_link (net, x), *loss;

      if (now (what, "changed", i))
        h = td_tanh (h); /* the change */
      if (now (what, "held", i) || strcmp (what, "grows") == 0)
        td_retain (h); /* the hold */
      if (now (what, "unchain", i))
        td_unchain (h);
      if (now (what, "alloc", i))
        td_exp (td_zeros (TD_F32, TD_SHAPE (1000, 1000)));
      if (now (what, "no-backprop", i))
        TD_NO_BACKPROP
          h = td_sigmoid (td_link (net, x)); /* two operations, one cut */
      if (strcmp (what, "guard") == 0 || strcmp (what, "all") == 0)
        td_static_call (loss_of, &h, 1, &loss, 1);
      else
        loss = td_sum (td_square (h));
      td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);
    }
  return td_finish () == TD_OK ? 0 : 1;
}
