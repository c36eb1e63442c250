/* L14: gradients of gradients: the penalty of WGAN-GP, and MAML with one inner step.
 * width=16 batch_size=6 iterations=4 what=0 (both), 1 (penalty), 2 (MAML).
 * SPDX-License-Identifier: MIT */
#include "life.h"

typedef struct
{
  TdLink *root, *l1, *l2, *out;
} Critic;

static void
judge_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Critic *c = self;
  TdVar *h = td_tanh (td_link (c->l1, in[0]));

  (void)n_in;
  (void)n_out;
  out[0] = td_link (c->out, td_tanh (td_link (c->l2, h)));
}

static TdVar *
judge (Critic *c, TdVar *x)
{
  TdVar *y;

  life_call (judge_code, c, &x, 1, &y, 1);
  return y;
}

/* How far the gradient of the verdict in its input is from length 1. */
static TdVar *
penalty (Critic *c, TdVar *x)
{
  static const int row[] = { 1 };
  TdVar *y, *gx = NULL;

  td_variable (x, "between");
  y = td_sum (judge (c, x));
  td_grad_of (&y, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &gx);
  TdVar *length = td_sqrt (td_sum_axes (td_square (gx), row, 1, false));
  return td_mean (td_square (td_sub (length, td_ones (TD_F32, td_shape (length)))));
}

static TdVar *
wgan_loss (Critic *c, int64_t i, int64_t n, int64_t width)
{
  TdVar *real = life_array (TD_SHAPE (n, width), (uint32_t)i);
  TdVar *fake = life_array (TD_SHAPE (n, width), (uint32_t)i + 500);
  TdVar *between = td_mul_scalar (td_add (real, fake), 0.5);
  TdVar *apart = td_sub (td_mean (judge (c, fake)), td_mean (judge (c, real)));

  return td_add (apart, td_mul_scalar (penalty (c, between), 10));
}

static void
net_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_linear (td_tanh (td_linear (in[3], in[0], in[1])), in[2], NULL);
}

static TdVar *
net (TdVar *W1, TdVar *b1, TdVar *W2, TdVar *x)
{
  TdVar *in[] = { W1, b1, W2, x }, *y;

  life_call (net_code, NULL, in, 4, &y, 1);
  return y;
}

/* The loss of a second sample after one step of gradient descent on the first. */
static TdVar *
maml_loss (Critic *c, int64_t i, int64_t n, int64_t width)
{
  TdVar *p[3]
      = { td_link_param (c->l1, "W"), td_link_param (c->l1, "b"), td_link_param (c->out, "W") };
  TdVar *g[3] = { NULL }, *inner, *x[2], *t[2];

  for (int k = 0; k < 2; k++)
    {
      x[k] = life_array (TD_SHAPE (n, width), (uint32_t)(2 * i + k) + 900);
      t[k] = life_array (TD_SHAPE (n, 1), (uint32_t)(2 * i + k) + 1900);
    }
  inner = td_mean_squared_error (net (p[0], p[1], p[2], x[0]), t[0]);
  td_grad_of (&inner, 1, p, 3, NULL, TD_DOUBLE_BACKPROP, g);
  for (int k = 0; k < 3; k++)
    p[k] = td_sub (p[k], td_mul_scalar (g[k], 0.1));
  return td_mean_squared_error (net (p[0], p[1], p[2], x[1]), t[1]);
}

int
main (int argc, char **argv)
{
  Critic c = { 0 };

  life_begin (argc, argv);
  life_doubles = true;
  int64_t width = life_arg ("width", 16), n = life_arg ("batch_size", 6), end = life_end (4);
  int64_t what = life_arg ("what", 0);
  c.root = td_chain_new ("critic");
  c.l1 = td_linear_new (c.root, "l1", width, width);
  c.l2 = td_linear_new (c.root, "l2", width, width);
  c.out = td_linear_new (c.root, "out", width, 1);
  TdOpt *opt = td_adam_new (c.root, .lr = 1e-3, .beta1 = 0.5);
  life_keep (c.root, opt);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *loss = NULL;

        if (what != 2)
          loss = wgan_loss (&c, i, n, width);
        if (what != 1)
          {
            TdVar *maml = maml_loss (&c, i, n, width);

            loss = loss == NULL ? maml : td_add (loss, maml);
          }
        td_cleargrads (c.root);
        td_backward (loss, 0);
        td_opt_update (opt);
        life_line (i, loss);
      }
  return life_finish ();
}
