/* Rows of `tapedeck eval`: normalizations, recurrent nets, attention, recomputation.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* --- normalizations --- */

static void
call_layer_normalization (TdEval *e)
{
  TdNormOpt o = { .eps = td_eval_float (e, "eps") };

  td_eval_output (e, td_layer_normalization_ (e->in[0], e->in[1], e->in[2], &o));
}

static void
call_group_normalization (TdEval *e)
{
  TdNormOpt o = { .eps = td_eval_float (e, "eps") };
  int groups;

  td_eval_tuple (e, "groups", &groups, 1);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_group_normalization_ (e->in[0], groups, e->in[1], e->in[2], &o));
}

static void
call_rms_normalization (TdEval *e)
{
  TdNormOpt o = { .eps = td_eval_float (e, "eps") };

  td_eval_output (e, td_rms_normalization_ (e->in[0], e->in[1], &o));
}

static void
call_normalize (TdEval *e)
{
  int axes[TD_MAX_DIMS], n = td_eval_ints (e, "axis", axes, TD_MAX_DIMS);

  td_eval_output (e, td_normalize (e->in[0], td_eval_float (e, "eps"), axes, n));
}

static void
call_local_response_normalization (TdEval *e)
{
  TdLocalResponseOpt o = { .k = td_eval_float (e, "k"),
                           .alpha = td_eval_float (e, "alpha"),
                           .beta = td_eval_float (e, "beta") };

  td_eval_tuple (e, "n", &o.n, 1);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_local_response_normalization_ (e->in[0], &o));
}

/* --- attention --- */

static void
call_scaled_dot_product_attention (TdEval *e)
{
  TdAttentionOpt o = { .mask = td_eval_in (e, 3),
                       .causal = td_eval_bool (e, "causal"),
                       .scale = td_eval_none (e, "scale") ? 0 : td_eval_float (e, "scale"),
                       .composed = td_eval_bool (e, "composed") };

  td_eval_output (e, td_scaled_dot_product_attention_ (e->in[0], e->in[1], e->in[2], &o));
}

/* --- recurrent cells --- */

static void
call_lstm (TdEval *e)
{
  TdVar *h, *c = td_lstm (e->in[0], e->in[1], &h);

  td_eval_output (e, c);
  td_eval_output (e, h);
}

/* --- nets of several layers over sequences of several lengths --- */

typedef struct
{
  TdEval *e;
  int n_layers, n_xs;
  double ratio;
  TdVar *hx, *cx, *const *ws, *const *bs, *const *xs;
  TdVar *hy, *cy, *ys[TD_EVAL_MAX_ARRAYS];
} NStep;

/* hx, [cx,] then all weights, all biases, and the rest are steps.  False: it cannot be so. */
static bool
n_step_begin (TdEval *e, NStep *n, int n_states, int n_weights)
{
  int n_params;
  char what[100];

  *n = (NStep){ .e = e, .ratio = td_eval_float (e, "dropout_ratio"), .hx = e->in[0] };
  td_eval_tuple (e, "n_layers", &n->n_layers, 1);
  if (n->n_layers < 1 || n->n_layers > TD_EVAL_MAX_ARRAYS)
    td_eval_wrong (e, "n_layers", "at least 1 expected");
  if (e->wrong[0] != '\0')
    return false;
  n_params = n_weights * n->n_layers;
  n->n_xs = e->n_in - n_states - 2 * n_params;
  snprintf (what, sizeof what, "%d states, %d weights, %d biases and at least 1 step expected",
            n_states, n_params, n_params);
  if (n->n_xs < 1)
    return td_eval_wrong (e, "n_layers", what), false;
  n->cx = e->in[1];
  n->ws = e->in + n_states;
  n->bs = n->ws + n_params;
  n->xs = n->bs + n_params;
  return true;
}

static void
n_step_end (const NStep *n)
{
  if (td_error () != NULL)
    return;
  td_eval_output (n->e, n->hy);
  if (n->cy != NULL)
    td_eval_output (n->e, n->cy);
  for (int t = 0; t < n->n_xs; t++)
    td_eval_output (n->e, n->ys[t]);
}

static void
call_n_step_lstm (TdEval *e)
{
  NStep n;

  if (!n_step_begin (e, &n, 2, 8))
    return;
  td_n_step_lstm (n.n_layers, n.ratio, n.hx, n.cx, n.ws, n.bs, n.xs, n.n_xs, &n.hy, &n.cy,
                  n.ys);
  n_step_end (&n);
}

static void
call_n_step_bilstm (TdEval *e)
{
  NStep n;

  if (!n_step_begin (e, &n, 2, 16))
    return;
  td_n_step_bilstm (n.n_layers, n.ratio, n.hx, n.cx, n.ws, n.bs, n.xs, n.n_xs, &n.hy, &n.cy,
                    n.ys);
  n_step_end (&n);
}

static void
call_n_step_gru (TdEval *e)
{
  NStep n;

  if (!n_step_begin (e, &n, 1, 6))
    return;
  td_n_step_gru (n.n_layers, n.ratio, n.hx, n.ws, n.bs, n.xs, n.n_xs, &n.hy, n.ys);
  n_step_end (&n);
}

static void
call_n_step_bigru (TdEval *e)
{
  NStep n;

  if (!n_step_begin (e, &n, 1, 12))
    return;
  td_n_step_bigru (n.n_layers, n.ratio, n.hx, n.ws, n.bs, n.xs, n.n_xs, &n.hy, n.ys);
  n_step_end (&n);
}

static TdRnnActivation
activation (TdEval *e)
{
  static const char *const words[] = { "tanh", "relu" };

  return td_eval_choice (e, "activation", words, 2) == 1 ? TD_RNN_RELU : TD_RNN_TANH;
}

static void
call_n_step_rnn (TdEval *e)
{
  TdRnnActivation f = activation (e);
  NStep n;

  if (!n_step_begin (e, &n, 1, 2))
    return;
  td_n_step_rnn (n.n_layers, n.ratio, n.hx, n.ws, n.bs, n.xs, n.n_xs, f, &n.hy, n.ys);
  n_step_end (&n);
}

static void
call_n_step_birnn (TdEval *e)
{
  TdRnnActivation f = activation (e);
  NStep n;

  if (!n_step_begin (e, &n, 1, 4))
    return;
  td_n_step_birnn (n.n_layers, n.ratio, n.hx, n.ws, n.bs, n.xs, n.n_xs, f, &n.hy, n.ys);
  n_step_end (&n);
}

/* --- recomputation --- */

/* The function that is forgotten must be there until backward has run. */
static TdEval forgotten;

static void
run_forgotten (void *user, TdVar *const *xs, int n, TdVar **ys, int m)
{
  TdEval *f = user;

  f->n_in = n;
  memcpy (f->in, xs, (size_t)n * sizeof *xs);
  td_eval_call (f);
  memcpy (ys, f->out, (size_t)m * sizeof *ys);
}

/* Any other function whose attributes all have defaults; it is called once to count its
 * outputs.
 */
static void
call_forget (TdEval *e)
{
  const char *name = td_eval_text (e, "func");
  TdEval *f = &forgotten;

  if (f->attrs != NULL)
    td_eval_clear (f);
  if (strcmp (name, "forget") == 0 || !td_eval_begin (f, name))
    return td_eval_wrong (e, "func", "the name of another operation expected");
  if (!td_eval_complete (f, e->n_in))
    return td_eval_wrong (e, "func", f->wrong);
  TD_NO_BACKPROP
    run_forgotten (f, e->in, e->n_in, f->out, 0);
  if (f->wrong[0] != '\0')
    return td_eval_wrong (e, "func", f->wrong);
  if (td_error () != NULL)
    return;
  e->n_out = f->n_out;
  td_forget (run_forgotten, f, e->in, e->n_in, e->out, e->n_out);
}

/* clang-format off */
#define ROW(name, group, operands, attributes, formula)                                        \
  { #name, group, operands, attributes, formula, .call = call_##name }
#define N_STEP "inputs go on with all biases, then an array of each step; gives "
const TdEvalFunction td_eval_sequences[] = {
  ROW (layer_normalization, "normalization", "x gamma beta", "eps:float=1e-5",
       "gamma * (x - mean) / sqrt (var + eps) + beta, mean and var of each row"),
  ROW (group_normalization, "normalization", "x gamma beta", "groups:int eps:float=1e-5",
       "gamma * (x - mean) / sqrt (var + eps) + beta, mean and var of each group of channels"),
  ROW (rms_normalization, "normalization", "x gamma", "eps:float=1e-5",
       "gamma * x / sqrt (mean (x ** 2) + eps)"),
  ROW (normalize, "normalization", "x", "eps:float=1e-5 axis:ints=1",
       "x / (norm of x along axis + eps)"),
  ROW (local_response_normalization, "normalization", "x",
       "n:int=5 k:float=2 alpha:float=1e-4 beta:float=0.75",
       "x / (k + alpha * sum of x ** 2 over n channels) ** beta"),
  ROW (scaled_dot_product_attention, "attention", "q k v [~mask]",
       "causal:bool=false scale:float=None composed:bool=false",
       "softmax (scale q k.T) v where mask is not 0; scale 1 / sqrt (d) if not given"),
  ROW (lstm, "rnn", "c_prev x", NULL,
       "c = sigmoid (i) * tanh (a) + sigmoid (f) * c_prev, h = sigmoid (o) * tanh (c)"),
  ROW (n_step_lstm, "rnn", "hx cx ws...", "n_layers:int dropout_ratio:float=0", N_STEP "hy, cy, y of each step"),
  ROW (n_step_bilstm, "rnn", "hx cx ws...", "n_layers:int dropout_ratio:float=0", N_STEP "hy, cy, y of each step"),
  ROW (n_step_gru, "rnn", "hx ws...", "n_layers:int dropout_ratio:float=0", N_STEP "hy, y of each step"),
  ROW (n_step_bigru, "rnn", "hx ws...", "n_layers:int dropout_ratio:float=0", N_STEP "hy, y of each step"),
  ROW (n_step_rnn, "rnn", "hx ws...", "n_layers:int dropout_ratio:float=0 activation:text=tanh", N_STEP "hy, y of each step"),
  ROW (n_step_birnn, "rnn", "hx ws...", "n_layers:int dropout_ratio:float=0 activation:text=tanh", N_STEP "hy, y of each step"),
  ROW (forget, "util", "xs...", "func:text",
       "func (xs...), which keeps nothing and is computed again in backward"),
  { .name = NULL },
};
