/* The table of the operations of optimizers.  They belong to no function that a program calls,
 * so they are not in ops.def.
 *
 * SPDX-License-Identifier: MIT */
#include "updates.h"

#include "optimizer.h"
#include "rules.h"

void
td__updates_attach (void)
{
  static const TdOptClass *const rules[]
      = { &td__sgd_class,         &td__momentum_sgd_class,   &td__corrected_momentum_sgd_class,
          &td__nesterov_ag_class, &td__ada_grad_class,       &td__ada_delta_class,
          &td__rmsprop_class,     &td__rmsprop_graves_class, &td__smorms3_class,
          &td__adam_class };
  static const TdOpClass *const others[] = {
    &td__opt_copy_class,       &td__weight_decay_class,           &td__lasso_class,
    &td__gradient_noise_class, &td__gradient_norm_class,          &td__gradient_clipping_class,
    &td__unscale_class,        &td__gradient_hard_clipping_class, &td__gradient_lars_class
  };
  static const TdOpClass *all[TD_ARRAY_LENGTH (rules) + TD_ARRAY_LENGTH (others) + 1];
  int n = 0;

  for (int i = 0; i < TD_ARRAY_LENGTH (rules); i++)
    all[n++] = rules[i]->op;
  for (int i = 0; i < TD_ARRAY_LENGTH (others); i++)
    all[n++] = others[i];
  td__engine.updates = all;
}
