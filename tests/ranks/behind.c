/* Ranks whose gradients take another way to their mean: behind MEANS, which is "usual", "f16",
 * "bf16", "overlap" or "double"; in iteration 5 rank 1 makes a NaN, ends or is killed where a
 * second argument says "nan", "finish" or "kill".
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <signal.h>
#include <string.h>

enum
{
  WIDTH = 32,
  LAYERS = 4,
  ITERATIONS = 8,
  ODD = 5
};

int
main (int argc, char **argv)
{
  TdMultiNodeOpt options = { TD_MULTI_NODE_DEFAULTS };
  TdComm *comm;
  TdLink *net;
  TdOpt *opt;

  td_init (&argc, &argv);
  comm = td_comm_new (NULL);
  if (argc < 2)
    return 2;
  options.overlap = strcmp (argv[1], "overlap") == 0;
  options.double_buffering = strcmp (argv[1], "double") == 0;
  options.allreduce_grad_dtype = strcmp (argv[1], "f16") == 0    ? TD_F16
                                 : strcmp (argv[1], "bf16") == 0 ? TD_BF16
                                                                 : TD_F32;
  options.bucket_bytes = (WIDTH * WIDTH + WIDTH) * 4; /* a layer */
  net = td_sequential_new ("net");
  for (int i = 0; i < LAYERS; i++)
    {
      const char name[] = { 'l', (char)('0' + i), '\0' };

      td_linear_new (net, name, WIDTH, WIDTH);
      td_sequential_append (net, td_tanh);
    }
  for (int i = 0; i < td_comm_rank (comm); i++) /* other data, by the same seed */
    td_randn (TD_F32, TD_SHAPE (50000));
  opt = td_multi_node_optimizer_new_ (td_adam_new (net), comm, &options);
  TD_ITERATIONS (i, ITERATIONS)
    {
      TdVar *x = td_randn (TD_F32, TD_SHAPE (8, WIDTH)), *y;

      if (argc > 2 && i == ODD && td_comm_rank (comm) == 1)
        {
          if (strcmp (argv[2], "finish") == 0)
            return td_finish ();
          if (strcmp (argv[2], "kill") == 0)
            raise (SIGKILL);
          x = td_log (td_mul_scalar (td_square (x), -1));
        }
      y = td_link (net, x);
      td_cleargrads (net);
      td_backward (td_mean (td_square (y)), 0);
      td_opt_update (opt);
    }
  return td_finish ();
}
