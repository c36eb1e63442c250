/* Gradients of models that nobody updates: after each backward every parameter's norm is
 * printed, "ITERATION PATH NORM", or "none".
 *
 *     no-optimizer layers | pictures | words | twice | through | kept
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum
{
  MOST = 4096,
  ITERATIONS = 4
};

static void
print_norm (const char *path, TdVar *v, void *user)
{
  const int64_t *iteration = user;
  TdVar *g = td_grad (v);
  TdShape shape = td_shape (v);
  int64_t n = 1;
  float numbers[MOST];
  double sum = 0;

  for (int d = 0; d < shape.ndim; d++)
    n *= shape.dim[d];
  if (g == NULL || n > MOST || td_read (g, numbers, (size_t)n * sizeof *numbers) != TD_OK)
    {
      printf ("%lld %s none\n", (long long)*iteration, path);
      return;
    }
  for (int64_t i = 0; i < n; i++)
    sum += (double)numbers[i] * (double)numbers[i];
  printf ("%lld %s %.9g\n", (long long)*iteration, path, sqrt (sum));
}

typedef struct
{
  TdLink *net, *l1, *l2, *conv, *bn, *last, *words;
  TdVar *scale;
} Net;

static Net
net_new (void)
{
  Net n = { .net = td_chain_new ("net") };

  n.l1 = td_linear_new (n.net, "l1", 8, 8);
  n.l2 = td_linear_new (n.net, "l2", 8, 5);
  n.conv = td_convolution_2d_new (n.net, "conv", 1, 4, 3);
  n.bn = td_batch_normalization_new (n.net, "bn", 4);
  n.last = td_linear_new (n.net, "last", 4 * 6 * 6, 3);
  n.words = td_embed_id_new (n.net, "words", 20, 8);
  n.scale = td_link_add_param (n.net, "scale", TD_SHAPE (48, 8),
                               .initializer = td_init_constant (2));
  return n;
}

/* twice: a parameter of two operations; through: what an addition hands on without an operation
 * looks like the parameter's; kept: gradients are never cleared. */
static TdVar *
forward (const Net *n, const char *kind, TdVar *x)
{
  static const int32_t ids[] = { 1, 2, 3, 1, 1 };

  if (strcmp (kind, "pictures") == 0)
    {
      TdVar *h = td_link (n->conv, td_reshape (x, TD_SHAPE (6, 1, 8, 8)));

      return td_link (n->last, td_relu (td_link (n->bn, h)));
    }
  if (strcmp (kind, "words") == 0)
    return td_link (n->l2, td_link (n->words, td_tensor (TD_I32, TD_SHAPE (5), ids)));
  x = td_reshape (x, TD_SHAPE (48, 8));
  if (strcmp (kind, "through") == 0)
    return td_mul (td_add (td_variable (x, NULL), td_variable (td_copy (x), NULL)), n->scale);
  if (strcmp (kind, "twice") == 0)
    x = td_tanh (td_link (n->l1, x));
  return td_link (n->l2, td_relu (td_link (n->l1, x)));
}

int
main (int argc, char **argv)
{
  int64_t iteration;
  Net n;

  td_init (&argc, &argv);
  if (argc < 2)
    return 2;
  n = net_new ();
  TD_ITERATIONS (i, ITERATIONS)
    {
      TdVar *loss
          = td_mean (td_square (forward (&n, argv[1], td_rand (TD_F32, TD_SHAPE (384)))));

      if (strcmp (argv[1], "kept") != 0)
        td_cleargrads (n.net);
      td_backward (loss, 0);
      iteration = i;
      td_link_each_param (n.net, print_norm, &iteration);
      td_report ("loss", td_item (loss));
    }
  td_link_free (n.net);
  return td_finish ();
}
