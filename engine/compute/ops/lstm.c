/* The LSTM cell: from the gates' inputs and the old cell to the new cell and the output.  Rows
 * of the cell past those of x belong to sequences that have ended: they stay as they are.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

static const char *const names[] = { "c", "x" };
static const char *const grad_names[] = { "c", "x", "c_next", "gc", "gh" };

static TdStatus
check_gates (const TdOpCall *call, uint32_t floats, bool may_end)
{
  const TdShape *c = call->in[0].shape, *x = call->in[1].shape;
  TdStatus status = td__check_floats (call, floats);

  for (int i = 0; status == TD_OK && i < 2; i++)
    status = td__check_ndim (call, i, 2);
  if (status == TD_OK && may_end && x->dim[0] > c->dim[0])
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "x.shape[0] <= c.shape[0] expected, got %lld > %lld",
                                (long long)x->dim[0], (long long)c->dim[0]);
  if (status == TD_OK && !may_end)
    status = td__check_sizes (call, 0, 0, 1, 0);
  if (status == TD_OK && x->dim[1] != 4 * c->dim[1])
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "x.shape[1] == 4 * c.shape[1] expected, got %lld != 4 * %lld",
                                (long long)x->dim[1], (long long)c->dim[1]);
  return status;
}

static TdStatus
infer (TdOpCall *call)
{
  TdStatus status = check_gates (call, 3, true);

  if (status == TD_OK)
    status = td__out_like (call, 0, 0);
  return status != TD_OK
             ? status
             : td_op_out (call, 1, call->in[0].dtype,
                          &TD_SHAPE (call->in[1].shape->dim[0], call->in[0].shape->dim[1]));
}

static TdStatus
forward (TdOpCall *call)
{
  TdDevice *d = call->device;
  const TdTensor *h = &call->out[1];
  const size_t head = (size_t)h->size * td_dtype_bytes (h->dtype);
  const size_t all = (size_t)call->in[0].size * td_dtype_bytes (h->dtype);
  TdTensor in[] = { call->in[0], call->in[1] }, out[] = { call->out[0], *h };
  TdStatus status;

  in[0].shape = out[0].shape = h->shape;
  in[0].size = out[0].size = h->size;
  status = d->ops->lstm (d, TD_LSTM, in, 2, out, 2);
  if (status == TD_OK && all > head)
    status = d->ops->copy (d, (char *)out[0].data + head, (const char *)in[0].data + head,
                           all - head);
  return status;
}

/* Rows [from, to) of v. */
static TdVar *
rows (TdVar *v, int64_t from, int64_t to)
{
  return td_get_item (v, &TD_RANGE (from, to), 1);
}

static TdStatus
backward (TdBackward *b)
{
  const int64_t n = td_backward_in_shape (b, 1)->dim[0];
  const int64_t all = td_backward_in_shape (b, 0)->dim[0];
  TdVar *c = td_backward_input (b, 0), *next = td_backward_output (b, 0), *gx[2];
  TdVar *in[] = { c, td_backward_input (b, 1), next, b->gy[0], b->gy[1] }, *rest = NULL;
  TdStatus status;

  if (in[3] == NULL)
    in[3] = td_zeros_like (next);
  if (n < all)
    {
      rest = rows (in[3], n, all);
      in[0] = rows (c, 0, n);
      in[2] = rows (next, 0, n);
      in[3] = rows (in[3], 0, n);
    }
  if (in[4] == NULL)
    in[4] = td_zeros_like (in[3]);
  status = td_apply (&td__lstm_grad_class, NULL, in, 5, gx, 2);
  if (rest != NULL)
    gx[0] = td_concat ((TdVar *const[]){ gx[0], rest }, 2, 0);
  for (int i = 0; i < 2; i++)
    if (td_backward_needs (b, i))
      b->gx[i] = gx[i];
  return status;
}

/* *Source*: chainer.functions.lstm. */
const TdOpClass td__lstm_class = {
  .name = "lstm",
  .label = "LSTM",
  .group = "rnn",
  .formula = "c' = tanh (a) s(i) + s(f) c, h = s(o) tanh (c')",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 2,
  .retain_in = 3,
  .retain_out = 1,
  .in_names = names,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

static TdStatus
grad_infer (TdOpCall *call)
{
  TdStatus status = check_gates (call, 31, false);

  for (int i = 2; status == TD_OK && i < 5; i++)
    status = td__check_same_shape (call, 0, i);
  for (int i = 0; status == TD_OK && i < 2; i++)
    status = td__out_like (call, i, i);
  return status;
}

static TdStatus
grad_forward (TdOpCall *call)
{
  return call->device->ops->lstm (call->device, TD_LSTM_GRAD, call->in, 5, call->out, 2);
}

/* Gate i of x (n, 4 u), as (n, u). */
static TdVar *
gate (TdVar *x, int i)
{
  const TdSlice slices[] = { TD_ALL, TD_STEP (i, TD_END, 4) };

  return td_get_item (x, slices, 2);
}

/* The opposite of gate: four (n, u) interleaved to (n, 4 u). */
static TdVar *
interleave (TdVar *const gates[4])
{
  TdVar *stacked = td_stack (gates, 4, 2);
  const TdShape shape = td_shape (stacked);

  return td_reshape (stacked, TD_SHAPE (shape.dim[0], -1));
}

/* s (1 - s), the slope of a sigmoid. */
static TdVar *
slope (TdVar *s)
{
  return td_mul (s, td_rsub_scalar (s, 1));
}

/* 1 - t^2, the slope of a tanh. */
static TdVar *
tanh_slope (TdVar *t)
{
  return td_rsub_scalar (td_square (t), 1);
}

static TdVar *
mul3 (TdVar *a, TdVar *b, TdVar *c)
{
  return td_mul (td_mul (a, b), c);
}

static TdVar *
add3 (TdVar *a, TdVar *b, TdVar *c)
{
  return td_add (td_add (a, b), c);
}

/* With D = gc + gh o (1 - k^2), k = tanh (c'), the gradient is
 *   gc = D f, ga = D i (1 - a^2), gi = D a i (1 - i), gf = D c f (1 - f), go = gh k o (1 - o).
 * u is the gradient of that gc, v[0 .. 3] of ga, gi, gf, go; E collects what multiplies D, and
 * G what comes through k.  c' is a function of c and x here, so it gets no gradient itself. */
typedef struct
{
  TdVar *a, *i, *f, *o, *k, *c, *gh, *D, *E, *G, *u, *v[4];
} Second;

static void
second_begin (TdBackward *b, Second *s)
{
  TdVar *x = td_backward_input (b, 1), *gc = td_backward_input (b, 3);
  TdVar *next, *fall;

  s->c = td_backward_input (b, 0);
  s->gh = td_backward_input (b, 4);
  s->a = td_tanh (gate (x, 0));
  s->i = td_sigmoid (gate (x, 1));
  s->f = td_sigmoid (gate (x, 2));
  s->o = td_sigmoid (gate (x, 3));
  next = td_add (td_mul (s->a, s->i), td_mul (s->f, s->c));
  s->k = td_tanh (next);
  fall = tanh_slope (s->k);
  s->D = td_add (gc, mul3 (s->gh, s->o, fall));
  s->u = b->gy[0] != NULL ? b->gy[0] : td_zeros_like (s->c);
  for (int i = 0; i < 4; i++)
    s->v[i] = b->gy[1] != NULL ? gate (b->gy[1], i) : td_zeros_like (s->c);
  s->E = td_add (add3 (td_mul (s->u, s->f), mul3 (s->v[0], s->i, tanh_slope (s->a)),
                       mul3 (s->v[1], s->a, slope (s->i))),
                 mul3 (s->v[2], s->c, slope (s->f)));
  s->G = td_mul (td_mul (s->gh, fall), td_sub (td_mul (s->v[3], slope (s->o)),
                                               td_mul_scalar (mul3 (s->E, s->o, s->k), 2)));
}

/* The gradient of x, gate by gate. */
static TdVar *
second_x (const Second *s)
{
  TdVar *const vD[]
      = { td_mul (s->v[0], s->D), td_mul (s->v[1], s->D), td_mul (s->v[2], s->D) };
  TdVar *const gates[] = {
    td_mul (tanh_slope (s->a), add3 (td_mul_scalar (mul3 (vD[0], s->i, s->a), -2),
                                     td_mul (vD[1], slope (s->i)), td_mul (s->G, s->i))),
    td_mul (slope (s->i), add3 (td_mul (vD[0], tanh_slope (s->a)),
                                mul3 (vD[1], s->a, td_rsub_scalar (td_mul_scalar (s->i, 2), 1)),
                                td_mul (s->G, s->a))),
    td_mul (slope (s->f), add3 (td_mul (s->u, s->D),
                                mul3 (vD[2], s->c, td_rsub_scalar (td_mul_scalar (s->f, 2), 1)),
                                td_mul (s->G, s->c))),
    td_mul (slope (s->o), td_add (mul3 (s->E, s->gh, tanh_slope (s->k)),
                                  td_mul (mul3 (s->v[3], s->gh, s->k),
                                          td_rsub_scalar (td_mul_scalar (s->o, 2), 1)))),
  };

  return interleave (gates);
}

static TdStatus
grad_backward (TdBackward *b)
{
  Second s;

  second_begin (b, &s);
  if (td_backward_needs (b, 0))
    b->gx[0] = td_add (mul3 (s.v[2], s.D, slope (s.f)), td_mul (s.G, s.f));
  if (td_backward_needs (b, 1))
    b->gx[1] = second_x (&s);
  if (td_backward_needs (b, 3))
    b->gx[3] = s.E;
  if (td_backward_needs (b, 4))
    b->gx[4] = td_add (mul3 (s.E, s.o, tanh_slope (s.k)), mul3 (s.v[3], s.k, slope (s.o)));
  return TD_OK;
}

const TdOpClass td__lstm_grad_class = {
  .name = "lstm_grad",
  .label = "LSTMGrad",
  .group = "rnn",
  .formula = "gradients of c and x from those of c' and h",
  .n_in_min = 5,
  .n_in_max = 5,
  .n_out = 2,
  .retain_in = 1 | 2 | 8 | 16,
  .no_grad_in = 4,
  .in_names = grad_names,
  .infer = grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

TdVar *
td_lstm_at (TdVar *c, TdVar *x, TdVar **h, const TdSite *site)
{
  TdVar *in[] = { c, x }, *out[2];

  td__apply_at (&td__lstm_class, NULL, in, 2, out, 2, site);
  if (h != NULL)
    *h = out[1];
  return out[0];
}

TdVar *
td_lstm (TdVar *c, TdVar *x, TdVar **h)
{
  return td_lstm_at (c, x, h, NULL);
}
