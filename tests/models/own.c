/* A model with an operation, a link and a hook of its own, which know nothing of the engine but
 * its public headers: it learns to double its input, prints what its hook saw, and checks the
 * operation's gradients.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>
#include <tapedeck-op.h>

#include <math.h>
#include <stdio.h>

/* --- the operation: x / (1 + |x|) --- */

static TdStatus
softsign_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
softsign_forward (TdOpCall *call)
{
  for (int64_t i = 0; i < call->in[0].size; i++)
    if (call->in[0].dtype == TD_F64)
      ((double *)call->out[0].data)[i] = ((const double *)call->in[0].data)[i]
                                         / (1 + fabs (((const double *)call->in[0].data)[i]));
    else
      ((float *)call->out[0].data)[i] = ((const float *)call->in[0].data)[i]
                                        / (1 + fabsf (((const float *)call->in[0].data)[i]));
  return TD_OK;
}

static TdStatus
softsign_backward (TdBackward *b)
{
  TdVar *d = td_add_scalar (td_absolute (td_backward_input (b, 0)), 1);

  b->gx[0] = td_div (b->gy[0], td_mul (d, d));
  return TD_OK;
}

static const char *const softsign_names[] = { "x" };
static const TdOpClass softsign = { .name = "own_softsign",
                                    .label = "OwnSoftsign",
                                    .group = "activation",
                                    .formula = "x / (1 + |x|)",
                                    .n_in_min = 1,
                                    .n_in_max = 1,
                                    .n_out = 1,
                                    .flags = TD_OP_ELEMENTWISE | TD_OP_HOST,
                                    .retain_in = 1,
                                    .in_names = softsign_names,
                                    .infer = softsign_infer,
                                    .forward = softsign_forward,
                                    .backward = softsign_backward };

static TdVar *
own_softsign (TdVar *x)
{
  TdVar *y;

  td_apply (&softsign, NULL, &x, 1, &y, 1);
  return y;
}

static void
checked (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)user, (void)n_in, (void)n_out;
  out[0] = own_softsign (in[0]);
}

/* --- the link: scale * softsign (inner (x)) --- */

static TdStatus
gate_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)n_in, (void)n_out;
  out[0] = td_mul (own_softsign (td_link (td_link_child (link, "inner"), in[0])),
                   td_link_param (link, "scale"));
  return td_poisoned (out[0]) ? TD_ERR_STATE : TD_OK;
}

static const TdLinkClass gate_class
    = { .size = sizeof (TdLinkClass), .name = "Gate", .forward = gate_forward };

static TdLink *
gate_new (TdLink *parent, const char *name, int64_t in, int64_t out)
{
  TdLink *link = td_link_new (&gate_class, parent, name);

  td_linear_new (link, "inner", in, out);
  td_link_add_param (link, "scale", TD_SHAPE (out), .initializer = td_init_constant (3));
  return link;
}

/* --- the hook: counts its calls --- */

static void
count (TdHook *hook, void *self, const TdFunctionCall *call)
{
  (void)hook, (void)call;
  ++*(int *)self;
}

static const TdHookClass counter = { .size = sizeof (TdHookClass),
                                     .name = "Counter",
                                     .self_bytes = sizeof (int),
                                     .forward_postprocess = count,
                                     .backward_postprocess = count };

int
main (int argc, char **argv)
{
  TdLink *net;
  TdOpt *opt;
  TdHook *hook;
  double first = 0, last = 0;

  td_init (&argc, &argv);
  td_set_seed (1);
  net = td_chain_new ("net");
  gate_new (net, "gate", 4, 4);
  opt = td_adam_new (net, .lr = 0.05);
  hook = td_hook_new (&counter);
  td_hook_add_to_op (hook, "own_softsign");
  TD_ITERATIONS (i, 60)
    {
      TdVar *x = td_rand (TD_F32, TD_SHAPE (16, 4));
      TdVar *y = td_link (td_link_child (net, "gate"), x);
      TdVar *loss = td_mean_squared_error (y, td_mul_scalar (x, 2));

      td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);
      last = td_item (loss);
      if (i == 0)
        first = last;
      td_report ("loss", last);
    }
  printf ("loss %s, hook heard %d calls\n", last < first / 10 ? "fell" : "stayed",
          *(int *)td_hook_self (hook));
  TD_SCOPE ("check")
    {
      TdVar *x = td_randn (TD_F64, TD_SHAPE (5));

      printf ("gradients %s\n",
              td_check_backward (checked, NULL, &x, 1, NULL, 1) == TD_OK ? "agree" : "differ");
    }
  return td_finish ();
}
