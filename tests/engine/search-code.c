/* The static function of a random program.
 *
 * SPDX-License-Identifier: MIT */
#include "remember-op.h"
#include "search-run.h"

#include <tapedeck-op.h>

#include <string.h>

/* --- an operation of the program's own --- */

typedef struct
{
  float slope;
  int32_t fails;
} Ramp;

static TdStatus
ramp_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
ramp_forward (TdOpCall *call)
{
  const Ramp *ramp = call->attrs;
  const float *x = call->in[0].data;
  float *y = call->out[0].data;

  for (int64_t i = 0; i < call->in[0].size; i++)
    y[i] = ramp->slope * x[i] + 1;
  return TD_OK;
}

static TdStatus
ramp_backward (TdBackward *b)
{
  const Ramp *ramp = b->attrs;

  if (ramp->fails)
    return TD_ERR_STATE;
  b->gx[0] = td_mul_scalar (b->gy[0], (double)ramp->slope);
  return TD_OK;
}

static const TdOpClass ramp_class = { .name = "ramp",
                                      .group = "test",
                                      .formula = "slope x + 1",
                                      .n_in_min = 1,
                                      .n_in_max = 1,
                                      .n_out = 1,
                                      .flags = TD_OP_HOST,
                                      .attrs_size = sizeof (Ramp),
                                      .infer = ramp_infer,
                                      .forward = ramp_forward,
                                      .backward = ramp_backward };

/* The same, but that its backward is given no slope. */
static const double *hidden_slope;

static TdStatus
hidden_backward (TdBackward *b)
{
  b->gx[0] = td_mul_scalar (b->gy[0], *hidden_slope);
  return TD_OK;
}

static const TdOpClass hidden_class = { .name = "hidden",
                                        .group = "test",
                                        .formula = "slope x + 1",
                                        .n_in_min = 1,
                                        .n_in_max = 1,
                                        .n_out = 1,
                                        .flags = TD_OP_HOST,
                                        .attrs_size = sizeof (Ramp),
                                        .infer = ramp_infer,
                                        .forward = ramp_forward,
                                        .backward = hidden_backward };

static TdVar *
own_hidden (const Run *r, TdVar *a)
{
  Ramp ramp = { 0.75f, 0 };
  TdVar *y = NULL;

  hidden_slope = &r->hidden;
  td_apply (&hidden_class, &ramp, &a, 1, &y, 1);
  return y;
}

static TdVar *
own (const Run *r, TdVar *a, unsigned which)
{
  Ramp ramp = { 0.25f + (float)which / 64, r->watched.fails_backward };
  TdVar *y = NULL;

  td_apply (&ramp_class, &ramp, &a, 1, &y, 1);
  return y;
}

/* --- statements with a function of their own --- */

static void
inner_body (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Run *r = self;

  (void)n_in;
  (void)n_out;
  out[0] = td_sigmoid (td_add (td_link (r->layers[0], in[0]), td_tanh (in[1])));
}

static TdVar *
inner (const Run *r, TdVar *a, TdVar *b)
{
  TdVar *in[] = { a, b }, *out;

  td_static_call (r->inner, in, 2, &out, 1);
  return out;
}

static void
forget_body (void *user, TdVar *const *xs, int n, TdVar **ys, int m)
{
  Run *r = user;

  (void)n;
  (void)m;
  ys[0] = td_dropout (td_tanh (td_link (r->layers[0], xs[0])), 0.25);
}

static TdVar *
forget (Run *r, TdVar *a)
{
  TdVar *y = NULL;

  td_forget (forget_body, r, &a, 1, &y, 1);
  return y;
}

static TdVar *
stateless (const Run *r, TdVar *a, TdVar *b)
{
  TdVar *in[] = { a, b, a }, *out[2];

  td_link_call (r->stateless, in, 3, out, 2);
  return td_add (out[0], out[1]);
}

static void
count_effect (void *user)
{
  ++*(int64_t *)user;
}

static TdVar *
report (TdVar *a)
{
  td_report_variable ("mean", td_mean (a));
  return a;
}

static TdVar *
effect (Run *r, TdVar *a)
{
  td_static_code (count_effect, &r->n_effects);
  return a;
}

/* In turn, or up to where it stays. */
static TdVar *
self_scale (Run *r, TdVar *a, unsigned which)
{
  int64_t *own = &r->watched.own;
  TdVar *y = td_mul_scalar (a, 0.5 + (double)*own / 8);

  if (which % 3 == 0)
    *own += *own < 2;
  else
    *own = (*own + 1) % (1 + which % 3);
  return y;
}

static TdVar *
recurrent (const Run *r, TdVar *a, TdVar *b, unsigned n)
{
  for (unsigned k = 0; k < n; k++)
    a = td_tanh (td_add (td_link (r->layers[0], a), b));
  return a;
}

static TdVar *
constant (TdVar *a)
{
  static const float numbers[COLUMNS] = { 0.5f, -1, 2, 0.25f };

  return td_add (a, td_tensor (TD_F32, TD_SHAPE (COLUMNS), numbers));
}

/* Of which other dtype, and how its parameters are used: each in a sum over rows or in a
 * product, or both. */
static TdVar *
other_dtype (const Run *r, TdVar *a, unsigned which)
{
  const unsigned k = which % 3;
  TdVar *h = td_cast (td_tanh (a), td_dtype (r->square[k]));

  if (which / 3 % 3 != 0)
    h = td_matmul (h, r->square[k], false, which / 9 % 2 == 0);
  if (which / 3 % 3 != 1)
    h = which / 9 % 3 == 0 ? td_mul (h, r->row[k]) : td_add (h, r->row[k]);
  return td_cast (h, TD_F32);
}

/* --- the code --- */

static TdVar *
flattened (TdVar *a)
{
  const TdShape shape = td_shape (a);

  return td_reshape (td_tanh (td_reshape (a, TD_SHAPE (shape.dim[0] * shape.dim[1]))), shape);
}

/* Of a copy of the array before, of what comes of it, of the array afterwards; or of the array
 * itself before, which backward has then lost. */
static TdVar *
remember (Run *r, TdVar *a, unsigned which)
{
  const int rows = 0;
  TdVar *memory = r->memory;
  TdVar *in[] = { memory, td_tanh (td_mean_axes (a, &rows, 1, true)) };
  TdVar *y = which % 8 == 0 ? td_mul (a, memory) : td_mul (a, td_copy (memory)), *now;

  td_apply (&remember_class, NULL, in, 2, &now, 1);
  return which % 3 == 0   ? y
         : which % 3 == 1 ? td_add (y, now)
                          : td_add (y, td_mul (td_tanh (a), memory));
}

static TdVar *
statement (Run *r, const Statement *s, TdVar *a, TdVar *b)
{
  switch (s->kind)
    {
    case TANH:
      return td_tanh (a);
    case RELU:
      return td_relu (a);
    case EXP:
      return td_exp (td_tanh (a));
    case SCALED:
      return td_mul_scalar (a, 0.5 + s->which / 64.0);
    case HIDDEN_SCALE:
      return td_mul_scalar (a, r->hidden);
    case SOFTMAX:
      return td_softmax (a);
    case ADD:
      return td_add (a, b);
    case MUL:
      return td_mul (td_tanh (a), td_sigmoid (b));
    case SUB:
      return td_sub (a, b);
    case LAYER:
      return td_link (r->layers[0], a);
    case FROZEN:
      return td_link (r->layers[1], a);
    case TWIN:
      return td_link (r->twin, a);
    case LATE:
      return td_link (r->late, a);
    case MARKED:
      return td_link (r->marked, a);
    case NORMALIZE:
      return td_link (r->bn, a);
    case STATEFUL:
      return td_link (r->stateful, a);
    case STATELESS:
      return stateless (r, a, b);
    case DROPOUT:
      return td_dropout (a, 0.25);
    case RESHAPE:
      return flattened (a);
    case TRANSPOSE:
      return td_transpose (td_transpose (a, NULL), NULL);
    case PARAMETER:
      return td_matmul (a, td_link_param (r->layers[s->which % 2], "W"), false, false);
    case CAPTURED:
      return td_mul (a, r->captured);
    case CONSTANT:
      return constant (a);
    case RANDOM:
      return td_add (a, td_randn (TD_F32, TD_SHAPE (1, COLUMNS)));
    case READ:
      return td_item (td_sum (td_mul (r->captured, r->captured))) > 0 ? td_neg (a) : a;
    case FAIL:
      return r->watched.fails ? td_matmul (a, a, false, false) : a;
    case RECURRENT:
      return recurrent (r, a, b, 2 + s->which % 2);
    case INNER:
      return inner (r, a, b);
    case FORGET:
      return forget (r, a);
    case OWN:
      return own (r, a, s->which);
    case OWN_HIDDEN:
      return own_hidden (r, a);
    case EFFECT:
      return effect (r, a);
    case REPORT:
      return report (a);
    case SELF_SCALE:
      return self_scale (r, a, s->which);
    case OTHER_DTYPE:
      return other_dtype (r, a, s->which);
    case REMEMBER:
      return remember (r, a, (unsigned)s->which);
    case EVALUATED:
      TD_USING (train, 0)
        a = td_link (r->bn, a);
      return a;
    case N_KINDS:
    default:
      return a;
    }
}

void
code_body (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Run *r = self;
  TdVar *made[MAX_STATEMENTS + 2];
  int n = 0;

  for (int k = 0; k < n_in; k++)
    made[n++] = in[k];
  for (int i = 0; i < r->p->n; i++)
    {
      const Statement *s = &r->p->list[i];
      TdVar *a = made[n - 1 - (int)s->a % n], *b = made[n - 1 - (int)s->b % n];

      if (s->no_backprop)
        TD_NO_BACKPROP
          made[n] = statement (r, s, a, b);
      else
        made[n] = statement (r, s, a, b);
      n++;
    }
  for (int k = 0; k < n_out; k++)
    out[k] = made[n - 1 - (int)r->p->results[k] % n];
}

/* --- what it needs --- */

static TdStaticOpt
options_of (const Run *r)
{
  const unsigned off = r->mode->other_passes ? r->p->passes : 0;
  TdStaticOpt o = td_static_options ();
  bool *const passes[N_PASSES]
      = { &o.prune, &o.fold, &o.cse, &o.fuse, &o.in_place, &o.plan, &o.minimize_cache_size };

  for (int k = 0; k < N_PASSES; k++)
    if (off >> k & 1)
      *passes[k] = false;
  o.batch = false; /* sums get other last bits by it */
  o.enable_double_backprop = r->p->double_backprop;
  return o;
}

static TdOpt *
optimizer (unsigned kind, TdLink *root)
{
  switch (kind)
    {
    case 0:
      return td_sgd_new (root, .lr = 0.1);
    case 1:
      return td_momentum_sgd_new (root, .lr = 0.1);
    case 2:
      return td_corrected_momentum_sgd_new (root, .lr = 0.1);
    case 3:
      return td_nesterov_ag_new (root, .lr = 0.1);
    case 4:
      return td_adagrad_new (root, .lr = 0.1);
    case 5:
      return td_adadelta_new (root);
    case 6:
      return td_rmsprop_new (root);
    case 7:
      return td_smorms3_new (root);
    default:
      return td_adam_new (root, .lr = 0.05, .weight_decay_rate = 0.01);
    }
}

const char *
optimizer_rate (unsigned kind)
{
  return kind == 5 ? NULL : kind == 8 ? "alpha" : "lr";
}

static TdOptHook *
opt_hook (unsigned kind)
{
  switch (kind)
    {
    case 1:
      return td_gradient_clipping_new (0.5);
    case 2:
      return td_weight_decay_new (0.01);
    case 3:
      return td_lasso_new (0.01);
    case 4:
      return td_gradient_hard_clipping_new (-0.1, 0.1);
    case 5:
      return td_gradient_noise_new (0.01);
    default:
      return td_gradient_lars_new (.threshold = 0.1);
    }
}

static TdVar *
filled_param (TdLink *link, const char *name, TdShape shape, TdDtype dtype, unsigned seed)
{
  TdVar *v = td_link_add_param (link, name, shape, .dtype = (int)dtype), *numbers;
  const size_t bytes = (size_t)td_size (v) * td_dtype_bytes (dtype);
  double room[COLUMNS * COLUMNS];

  TD_SCOPE ("numbers")
    {
      numbers = td_zeros (TD_F32, shape);
      fill_array (numbers, seed);
      td_read (td_cast (numbers, dtype), room, bytes);
    }
  td_write (v, room, bytes);
  return v;
}

static void
make_other_dtypes (Run *r)
{
  static const TdDtype dtypes[] = { TD_F16, TD_BF16, TD_F64 };
  static const char *const names[][2] = { { "Wh", "bh" }, { "Wb", "bb" }, { "Wd", "bd" } };
  const unsigned seed = r->p->seed;

  for (unsigned k = 0; k < 3; k++)
    {
      r->square[k] = filled_param (r->root, names[k][0], TD_SHAPE (COLUMNS, COLUMNS), dtypes[k],
                                   seed + k);
      r->row[k]
          = filled_param (r->root, names[k][1], TD_SHAPE (COLUMNS), dtypes[k], seed + 3 + k);
    }
}

static void
make_links (Run *r)
{
  const unsigned seed = r->p->seed;

  r->root = td_chain_new ("net");
  r->layers[0] = td_linear_new (r->root, "shared", COLUMNS, COLUMNS);
  r->layers[1] = td_linear_new (r->root, "frozen", COLUMNS, COLUMNS);
  r->twin = td_link_adopt (r->root, "twin", td_link_copy_as (r->layers[0], TD_COPY_SHARE));
  r->bn = td_batch_normalization_new (r->root, "bn", COLUMNS);
  TD_SCOPE ("memory")
    r->memory = td_link_add_persistent (r->root, "memory", fresh_array (1, COLUMNS, seed + 8));
  r->late = td_linear_new (r->root, "late", TD_INFER, COLUMNS);
  r->stateless = td_stateless_lstm_new (r->root, "stateless", COLUMNS, COLUMNS);
  r->stateful = td_lstm_new (r->root, "stateful", COLUMNS, COLUMNS);
  r->marked = td_linear_new (r->root, "marked", COLUMNS, COLUMNS);
  r->other_root = td_chain_new ("other");
  r->other = td_linear_new (r->other_root, "last", COLUMNS, COLUMNS);
  for (unsigned k = 0; k < 2; k++)
    {
      fill_array (td_link_param (r->layers[k], "W"), seed + k);
      fill_array (td_link_param (r->layers[k], "b"), seed + 2 + k);
    }
  td_link_disable_update (r->layers[1]);
  if (r->p->other_dtypes)
    make_other_dtypes (r);
}

static void
make_optimizers (Run *r)
{
  r->opt = optimizer (r->p->optimizer, r->root);
  r->other_opt = r->p->second < N_OPTIMIZERS ? optimizer (r->p->second, r->other_root) : NULL;
  if (r->p->opt_hook != 0)
    td_opt_add_hook (r->opt, opt_hook (r->p->opt_hook));
  if (r->p->loss_scaling)
    td_opt_loss_scaling (r->opt, .interval = 2);
}

void
code_prepare (Run *r)
{
  make_links (r);
  TD_SCOPE ("captured")
    r->captured
        = td_retain (td_variable (fresh_array (1, COLUMNS, r->p->seed + 9), "captured"));
  r->hidden = 0.75;
  r->watched = (Watched){ 0, 0, 0 };
  r->outer = td_static_new_at (code_body, r, options_of (r), TD_HERE);
  td_static_watch (r->outer, "watched", &r->watched, sizeof r->watched);
  r->inner = td_static_new_at (inner_body, r, options_of (r), TD_HERE);
  td_link_set_static_at (r->marked, options_of (r), TD_HERE);
  make_optimizers (r);
}

static void
count_static (Run *r, TdStatic *s)
{
  const TdStaticInfo info = td_static_info (s);

  r->n_replays += info.n_replays;
  r->n_differences += info.n_differences;
}

void
code_free (Run *r)
{
  count_static (r, r->outer);
  count_static (r, r->inner);
  count_static (r, td_link_static (r->marked));
  td_static_free (r->outer);
  td_static_free (r->inner);
  td_opt_free (r->opt);
  if (r->other_opt != NULL)
    td_opt_free (r->other_opt);
  td_release (r->captured);
  td_link_free (r->root);
  td_link_free (r->other_root);
}
