/* The update rules: for each an operation that updates one parameter in place, whose attributes
 * are the rule's hyperparameters, and what its states are called in files.
 *
 * SPDX-License-Identifier: MIT */
#include "rules.h"

#include <math.h>
#include <stddef.h>

/* --- which kernel --- */

#define FORWARD(name, kind)                                                                    \
  static TdStatus name##_forward (TdOpCall *call)                                              \
  {                                                                                            \
    return td__opt_run (call, kind);                                                           \
  }
FORWARD (sgd, TD_UPDATE_SGD)
FORWARD (momentum_sgd, TD_UPDATE_MOMENTUM_SGD)
FORWARD (corrected_momentum_sgd, TD_UPDATE_CORRECTED_MOMENTUM_SGD)
FORWARD (nesterov_ag, TD_UPDATE_NESTEROV_AG)
FORWARD (ada_grad, TD_UPDATE_ADA_GRAD)
FORWARD (ada_delta, TD_UPDATE_ADA_DELTA)
FORWARD (rmsprop_graves, TD_UPDATE_RMSPROP_GRAVES)
FORWARD (smorms3, TD_UPDATE_SMORMS3)

static TdStatus
rmsprop_forward (TdOpCall *call)
{
  const TdUpdate *u = call->attrs;

  return td__opt_run (call, u->eps_inside_sqrt ? TD_UPDATE_RMSPROP_INSIDE : TD_UPDATE_RMSPROP);
}

static TdStatus
adam_forward (TdOpCall *call)
{
  static const TdUpdateKind kinds[2][2]
      = { { TD_UPDATE_ADAM, TD_UPDATE_ADABOUND }, { TD_UPDATE_AMSGRAD, TD_UPDATE_AMSBOUND } };
  const TdUpdate *u = call->attrs;

  return td__opt_run (call, kinds[u->amsgrad][u->adabound]);
}

/* --- hyperparameters: their names are Chainer's, but for lr, which is one everywhere --- */

#define NUMBER(name, field, text)                                                              \
  {                                                                                            \
    name, TD_ATTR_DOUBLE, offsetof (TdUpdate, field), 0, 0, text                               \
  }
#define SWITCH(name, field)                                                                    \
  {                                                                                            \
    name, TD_ATTR_BOOL, offsetof (TdUpdate, field), 0, 0, "false"                              \
  }
static const TdAttr sgd_attrs[] = { NUMBER ("lr", lr, "0.01") };
static const TdAttr momentum_attrs[]
    = { NUMBER ("lr", lr, "0.01"), NUMBER ("momentum", momentum, "0.9") };
static const TdAttr ada_grad_attrs[]
    = { NUMBER ("lr", lr, "0.001"), NUMBER ("eps", eps, "1e-08") };
static const TdAttr ada_delta_attrs[]
    = { NUMBER ("rho", rho, "0.95"), NUMBER ("eps", eps, "1e-06") };
static const TdAttr rmsprop_attrs[]
    = { NUMBER ("lr", lr, "0.01"), NUMBER ("alpha", alpha, "0.99"),
        NUMBER ("eps", eps, "1e-08"), SWITCH ("eps_inside_sqrt", eps_inside_sqrt) };
static const TdAttr rmsprop_graves_attrs[]
    = { NUMBER ("lr", lr, "0.0001"), NUMBER ("alpha", alpha, "0.95"),
        NUMBER ("momentum", momentum, "0.9"), NUMBER ("eps", eps, "0.0001") };
static const TdAttr smorms3_attrs[]
    = { NUMBER ("lr", lr, "0.001"), NUMBER ("eps", eps, "1e-16") };
static const TdAttr adam_attrs[] = {
  NUMBER ("lr", lr, "0.001"),
  NUMBER ("beta1", beta1, "0.9"),
  NUMBER ("beta2", beta2, "0.999"),
  NUMBER ("eps", eps, "1e-08"),
  NUMBER ("eta", eta, "1"),
  NUMBER ("weight_decay_rate", weight_decay, "0"),
  SWITCH ("amsgrad", amsgrad),
  SWITCH ("adabound", adabound),
  NUMBER ("final_lr", final_lr, "0.1"),
  NUMBER ("gamma", gamma, "0.001"),
};

/* --- operations --- */

static const char *const sgd_names[] = { "param", "grad" };
static const char *const v_names[] = { "param", "grad", "v" };
static const char *const h_names[] = { "param", "grad", "h" };
static const char *const ms_names[] = { "param", "grad", "ms" };
static const char *const ada_delta_names[] = { "param", "grad", "msg", "msdx" };
static const char *const graves_names[] = { "param", "grad", "n", "g", "delta" };
static const char *const smorms3_names[] = { "param", "grad", "mem", "g", "g2" };
static const char *const adam_names[] = { "param", "grad", "m", "v", "vhat" };

#define UPDATE_OP(text, title, law, n, m, mask, operands, table, function)                     \
  {                                                                                            \
    .name = text, .label = title, .group = "optimizer", .formula = law, .n_in_min = n,         \
    .n_in_max = m, .n_out = 0, .flags = TD_OP_STATEFUL | TD_OP_NO_GRAD, .writes = mask,        \
    .in_names = operands, .attrs_size = sizeof (TdUpdate), .attrs = table,                     \
    .n_attrs = TD_ARRAY_LENGTH (table), .infer = td__opt_infer, .forward = function            \
  }
static const TdOpClass sgd_op
    = UPDATE_OP ("sgd", "SGD", "p -= lr g", 2, 2, 1u, sgd_names, sgd_attrs, sgd_forward);
static const TdOpClass momentum_sgd_op
    = UPDATE_OP ("momentum_sgd", "MomentumSGD", "v = momentum v - lr g; p += v", 3, 3, 5u,
                 v_names, momentum_attrs, momentum_sgd_forward);
static const TdOpClass corrected_momentum_sgd_op = UPDATE_OP (
    "corrected_momentum_sgd", "CorrectedMomentumSGD", "v = momentum v - g; p += lr v", 3, 3, 5u,
    v_names, momentum_attrs, corrected_momentum_sgd_forward);
static const TdOpClass nesterov_ag_op
    = UPDATE_OP ("nesterov_ag", "NesterovAG",
                 "v = momentum v - lr g; p += momentum^2 v - (1 + momentum) lr g", 3, 3, 5u,
                 v_names, momentum_attrs, nesterov_ag_forward);
static const TdOpClass ada_grad_op
    = UPDATE_OP ("ada_grad", "AdaGrad", "h += g g; p -= lr g / (sqrt (h) + eps)", 3, 3, 5u,
                 h_names, ada_grad_attrs, ada_grad_forward);
static const TdOpClass ada_delta_op
    = UPDATE_OP ("ada_delta", "AdaDelta",
                 "msg = rho msg + (1 - rho) g g; dx = sqrt ((msdx + eps) / (msg + eps)) g; "
                 "msdx = rho msdx + (1 - rho) dx dx; p -= dx",
                 4, 4, 0xdu, ada_delta_names, ada_delta_attrs, ada_delta_forward);
static const TdOpClass rmsprop_op = UPDATE_OP (
    "rmsprop", "RMSprop", "ms = alpha ms + (1 - alpha) g g; p -= lr g / (sqrt (ms) + eps)", 3,
    3, 5u, ms_names, rmsprop_attrs, rmsprop_forward);
static const TdOpClass rmsprop_graves_op
    = UPDATE_OP ("rmsprop_graves", "RMSpropGraves",
                 "n = alpha n + (1 - alpha) grad grad; g = alpha g + (1 - alpha) grad; "
                 "delta = momentum delta - lr grad / sqrt (n - g g + eps); p += delta",
                 5, 5, 0x1du, graves_names, rmsprop_graves_attrs, rmsprop_graves_forward);
static const TdOpClass smorms3_op
    = UPDATE_OP ("smorms3", "SMORMS3",
                 "r = 1 / (mem + 1); g += r (grad - g); g2 += r (grad grad - g2); "
                 "x = g g / (g2 + eps); p -= grad min (x, lr) / (sqrt (g2) + eps); "
                 "mem = 1 + mem (1 - x)",
                 5, 5, 0x1du, smorms3_names, smorms3_attrs, smorms3_forward);
static const TdOpClass adam_op = UPDATE_OP (
    "adam", "Adam", "p -= eta (alpha_t m / (sqrt (v) + eps) + weight_decay_rate p)", 4, 5,
    0x1du, adam_names, adam_attrs, adam_forward);

/* --- kinds of optimizer --- */

static int
adam_states (const TdUpdate *u)
{
  return u->amsgrad ? 3 : 2;
}

/* final_lr follows the learning rate, so that schedules of lr move the bounds too. */
static void
adam_prepare (TdUpdate *u, int64_t t, double initial_lr)
{
  double steps = (double)t;
  double final = initial_lr > 0 ? u->final_lr * u->lr / initial_lr : u->final_lr;

  u->alpha_t = u->lr * sqrt (1 - pow (u->beta2, steps)) / (1 - pow (u->beta1, steps));
  u->lower = final * (1 - 1 / (u->gamma * steps + 1));
  u->upper = final * (1 + 1 / (u->gamma * steps));
}

const TdOptClass td__sgd_class = { .name = "SGD", .op = &sgd_op };
const TdOptClass td__momentum_sgd_class
    = { .name = "MomentumSGD", .op = &momentum_sgd_op, .states = { "v" } };
const TdOptClass td__corrected_momentum_sgd_class
    = { .name = "CorrectedMomentumSGD", .op = &corrected_momentum_sgd_op, .states = { "v" } };
const TdOptClass td__nesterov_ag_class
    = { .name = "NesterovAG", .op = &nesterov_ag_op, .states = { "v" } };
const TdOptClass td__ada_grad_class
    = { .name = "AdaGrad", .op = &ada_grad_op, .states = { "h" } };
const TdOptClass td__ada_delta_class
    = { .name = "AdaDelta", .op = &ada_delta_op, .states = { "msg", "msdx" } };
const TdOptClass td__rmsprop_class
    = { .name = "RMSprop", .op = &rmsprop_op, .states = { "ms" }, .uses_eps = true };
const TdOptClass td__rmsprop_graves_class
    = { .name = "RMSpropGraves", .op = &rmsprop_graves_op, .states = { "n", "g", "delta" } };
const TdOptClass td__smorms3_class
    = { .name = "SMORMS3", .op = &smorms3_op, .states = { "mem", "g", "g2" }, .first = 1 };
const TdOptClass td__adam_class = { .name = "Adam",
                                    .op = &adam_op,
                                    .states = { "m", "v", "vhat" },
                                    .n_states = adam_states,
                                    .prepare = adam_prepare,
                                    .lr_alias = "alpha",
                                    .uses_eps = true };
