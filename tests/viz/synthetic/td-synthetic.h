/* Iterations made by hand, for tests and benches: operations are called as a model would call
 * them, backward and updates are added by rule, the result is a TdIteration without any tape.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-iteration.h"

typedef struct TdSynthetic TdSynthetic;

/** Begin iteration `number`. Owner: the caller; ends with td_synthetic_finish(). */
TdSynthetic *td_synthetic_new (guint64 number);

/** Something from outside. Shapes end with 0. Returns a variable. */
guint td_synthetic_input (TdSynthetic *self, const char *name, const gint64 *shape);
/** A parameter, made once for each path ("net/conv1/W"); later calls return the same variable.
 */
guint td_synthetic_parameter (TdSynthetic *self, const char *path, const gint64 *shape);

/** Enter a link by its path, or a scope by its name, at line `line` of model.c. */
void td_synthetic_enter_link (TdSynthetic *self, const char *path, guint line);
void td_synthetic_enter_scope (TdSynthetic *self, const char *name, guint line);
void td_synthetic_leave (TdSynthetic *self);

/** Run a forward operation; all inputs that are no parameters are retained. Returns its output.
 */
guint td_synthetic_op (TdSynthetic *self, const char *op, guint line, const gint64 *shape,
                       const guint *inputs, guint n_inputs);
#define TD_OP(self, op, line, shape, ...)                                                      \
  td_synthetic_op ((self), (op), (line), (shape), (const guint[]){ __VA_ARGS__ },              \
                   G_N_ELEMENTS (((const guint[]){ __VA_ARGS__ })))
#define TD_SHAPE(...) ((const gint64[]){ __VA_ARGS__, 0 })

/** Run backward from `loss`: one NAME_grad for each operation, or one NAME_grad_X for each of
 * its inputs when it has parameters; gradients that meet are added by accumulations. */
void td_synthetic_backward (TdSynthetic *self, guint loss);
/** Before it: the gradient of 1 that PyTorch makes, an operation of backward without a twin. */
void td_synthetic_ones (TdSynthetic *self, guint loss);
/** Update each parameter that got a gradient with `optimizer`. */
void td_synthetic_update (TdSynthetic *self, const char *optimizer);

/** Put an operation between the gradient of a parameter and its update: a clip. */
void td_synthetic_change_gradient (TdSynthetic *self, const char *op, guint line,
                                   guint parameter);
/** Look at it with an operation that nothing comes of: its norm, for a print. */
void td_synthetic_read_gradient (TdSynthetic *self, const char *op, guint line,
                                 guint parameter);

/** Give the last event attributes: "value=2". */
void td_synthetic_attrs (TdSynthetic *self, const char *attrs);
/** Mark the last event: failed, or with statistics that hold a NaN. */
void td_synthetic_fail (TdSynthetic *self);
void td_synthetic_nan (TdSynthetic *self);
/** Give a variable statistics with this mean. */
void td_synthetic_mean (TdSynthetic *self, guint var, double mean);

/** Finish. Owner: the caller; frees `self`. */
TdIteration *td_synthetic_finish (TdSynthetic *self);

/* Models. */

/** LeNet-5 as in the mock-ups: block1, block2, head, loss; 45 events. */
TdIteration *td_synthetic_lenet (guint64 number);
/** An LSTM unrolled over `steps` in plain loops; 15 operations a step, shared parameters. With
 * `odd_step`, the last step does something else. `backward`: with backward and update. */
TdIteration *td_synthetic_lstm (guint64 number, guint steps, gboolean odd_step,
                                gboolean backward);
/** The same, forward only, written out without a loop: nothing to fold. */
TdIteration *td_synthetic_flat_lstm (guint64 number, guint steps);
/** A forward graph of `n_ops` operations in residual blocks, no groups: for layouts of any
 * size. */
TdIteration *td_synthetic_residual (guint64 number, guint n_ops, gboolean backward);
