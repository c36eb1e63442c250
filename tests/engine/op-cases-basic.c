/* Rows for arithmetic, elementary functions, reductions and shapes.
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"

#include <math.h>

#define S(...) TD_SHAPE (__VA_ARGS__)
#define AXES(...) (const int[]){ __VA_ARGS__ }, TD_NARGS_ (__VA_ARGS__)
#define XS(...)                                                                                \
  (TdVar *const[])                                                                             \
  {                                                                                            \
    __VA_ARGS__                                                                                \
  }
#define CALL(name, ...)                                                                        \
  static void call_##name (TdVar *const *x, TdVar **y)                                         \
  {                                                                                            \
    __VA_ARGS__;                                                                               \
  }
#define MAP(name, expression)                                                                  \
  static double map_##name (double a, double b, double c)                                      \
  {                                                                                            \
    return expression;                                                                         \
  }
#define SOURCE(name, ...)                                                                      \
  static int source_##name (int k, const int64_t *o, int64_t *i)                               \
  {                                                                                            \
    __VA_ARGS__;                                                                               \
  }

/* --- element by element --- */

#define BINARY(name, expression)                                                               \
  CALL (name, y[0] = td_##name (x[0], x[1])) MAP (name, expression)
#define UNARY(name, expression) CALL (name, y[0] = td_##name (x[0])) MAP (name, expression)
#define SCALAR(name, c, expression)                                                            \
  CALL (name, y[0] = td_##name (x[0], c)) MAP (name, expression)
#define CLASS_1(name, expression)                                                              \
  CALL (name, y[0] = td__apply1 (&td__##name##_class, NULL, NULL, x[0])) MAP (name, expression)
#define CLASS_2(name, expression)                                                              \
  CALL (name, y[0] = td__apply2 (&td__##name##_class, NULL, NULL, x[0], x[1]))                 \
  MAP (name, expression)

BINARY (add, a + b)
BINARY (sub, a - b)
BINARY (mul, a *b)
BINARY (div, a / b)
BINARY (pow, pow (a, b))
BINARY (maximum, a > b ? a : b)
BINARY (minimum, a < b ? a : b)
SCALAR (add_scalar, 2.5, a + 2.5)
SCALAR (sub_scalar, 2.5, a - 2.5)
SCALAR (mul_scalar, -1.5, a * -1.5)
SCALAR (div_scalar, 3, a / 3)
SCALAR (pow_scalar, 3, a *a *a)
SCALAR (rsub_scalar, 1, 1 - a)
SCALAR (rdiv_scalar, 2, 2 / a)
SCALAR (rpow_scalar, 2, pow (2, a))
CALL (pow_half, y[0] = td_pow_scalar (x[0], 0.5))
CALL (pow_2, y[0] = td_pow_scalar (x[0], 2))
CALL (pow_1, y[0] = td_pow_scalar (x[0], 1))
CALL (pow_0, y[0] = td_pow_scalar (x[0], 0))
MAP (pow_0, 1 + 0 * a)
UNARY (neg, -a)
UNARY (relu, a > 0 ? a : 0)
UNARY (sigmoid, 1 / (1 + exp (-a)))
UNARY (tanh, tanh (a))
UNARY (exp, exp (a))
UNARY (log, log (a))
UNARY (sqrt, sqrt (a))
UNARY (absolute, fabs (a))
UNARY (square, a *a)
UNARY (sin, sin (a))
UNARY (cos, cos (a))
UNARY (copy, a)
CLASS_1 (sign, (a > 0) - (a < 0))
CLASS_2 (relu_grad, a > 0 ? b : 0)
CLASS_2 (sigmoid_grad, b *a *(1 - a))
CLASS_2 (tanh_grad, b *(1 - a * a))
BINARY (equal, a == b)
BINARY (greater_equal, a >= b)
BINARY (greater, a > b)
BINARY (less_equal, a <= b)
BINARY (less, a < b)
CALL (clip, y[0] = td_clip (x[0], -0.5, 0.75))
MAP (clip, a<-0.5 ? -0.5 : a> 0.75 ? 0.75 : a)
CALL (inside,
      y[0] = td__apply1 (&td__clip_inside_class, (const double[]){ -0.5, 0.75 }, NULL, x[0]))
MAP (inside, a >= -0.5 && a <= 0.75)
CALL (where, y[0] = td_where (x[0], x[1], x[2]))
MAP (where, a != 0 ? b : c)
CALL (cast_back, y[0] = td_cast (td_cast (x[0], TD_F64), td_dtype (x[0])))
CALL (cast_int, y[0] = td_cast (x[0], TD_I32))
MAP (trunc, trunc (a))
CALL (twice, y[0] = td_mul (x[0], x[0]))

/* --- reductions --- */

static double
fold_sum (const double *v, int64_t n)
{
  double s = 0;

  for (int64_t i = 0; i < n; i++)
    s += v[i];
  return s;
}

static double
fold_mean (const double *v, int64_t n)
{
  return fold_sum (v, n) / (double)n;
}

static double
fold_max (const double *v, int64_t n)
{
  double m = v[0];

  for (int64_t i = 1; i < n; i++)
    m = v[i] > m ? v[i] : m;
  return m;
}

static double
fold_min (const double *v, int64_t n)
{
  double m = v[0];

  for (int64_t i = 1; i < n; i++)
    m = v[i] < m ? v[i] : m;
  return m;
}

static double
fold_prod (const double *v, int64_t n)
{
  double p = 1;

  for (int64_t i = 0; i < n; i++)
    p *= v[i];
  return p;
}

static double
fold_logsumexp (const double *v, int64_t n)
{
  double s = 0;

  for (int64_t i = 0; i < n; i++)
    s += exp (v[i]);
  return log (s);
}

static double
fold_argmax (const double *v, int64_t n)
{
  int64_t best = 0;

  for (int64_t i = 1; i < n; i++)
    if (v[i] > v[best])
      best = i;
  return (double)best;
}

#define REDUCTION(name)                                                                        \
  CALL (name, y[0] = td_##name (x[0]))                                                         \
  CALL (name##_1, y[0] = td_##name##_axes (x[0], AXES (1), false))                             \
  CALL (name##_02, y[0] = td_##name##_axes (x[0], AXES (0, -1), true))                         \
  CALL (name##_01, y[0] = td_##name##_axes (x[0], AXES (1, 0), false))

REDUCTION (sum)
REDUCTION (mean)
REDUCTION (max)
REDUCTION (min)
REDUCTION (prod)
REDUCTION (logsumexp)
CALL (argmax_1, y[0] = td_argmax (x[0], 1))
CALL (argmax_last, y[0] = td_argmax (x[0], -1))
CALL (sum_to, y[0] = td_sum_to (x[0], S (3, 1)))

static const double with_zeros[] = { 0.5, 0, -1.5, 2, 0, 0, 1, 3, 0.7, 1.1, -0.4, 2.2 };

/* --- shapes --- */

CALL (reshape, y[0] = td_reshape (x[0], S (4, -1)))
SOURCE (reshape, i[0] = (o[0] * 3 + o[1]) / 6; i[1] = (o[0] * 3 + o[1]) % 6; return 0)
CALL (flatten, y[0] = td_flatten (x[0]))
SOURCE (flatten, i[0] = o[0] / 6; i[1] = o[0] % 6; return 0)
CALL (expand_dims, y[0] = td_expand_dims (x[0], 1))
SOURCE (expand_dims, i[0] = o[0]; i[1] = o[2]; return 0)
CALL (squeeze, y[0] = td_squeeze (x[0]))
SOURCE (squeeze, i[0] = 0; i[1] = o[0]; i[2] = 0; i[3] = o[1]; return 0)
CALL (squeeze_axis, y[0] = td_squeeze_axis (x[0], -2))
SOURCE (squeeze_axis, i[0] = o[0]; i[1] = o[1]; i[2] = 0; i[3] = o[2]; return 0)
CALL (transpose, y[0] = td_transpose (x[0], NULL))
SOURCE (transpose, i[0] = o[2]; i[1] = o[1]; i[2] = o[0]; return 0)
CALL (transpose_201, y[0] = td_transpose (x[0], (const int[]){ 2, 0, -2 }))
SOURCE (transpose_201, i[2] = o[0]; i[0] = o[1]; i[1] = o[2]; return 0)
CALL (concat, y[0] = td_concat (XS (x[0], x[1], x[2]), 3, 1))
SOURCE (concat, i[0] = o[0]; i[1] = o[1] < 2   ? o[1]
                                    : o[1] < 5 ? o[1] - 2
                                               : o[1] - 5;
        return o[1] < 2   ? 0
               : o[1] < 5 ? 1
                          : 2)
CALL (stack, y[0] = td_stack (XS (x[0], x[1]), 2, -1))
SOURCE (stack, i[0] = o[0]; i[1] = o[1]; return (int)o[2])
CALL (split_axis, td_split_axis (x[0], 3, 1, y))
SOURCE (split_axis, i[0] = o[0]; i[1] = 2 * k + o[1]; return 0)
/* One piece has no gradient: it counts as zeros. */
CALL (split_axis_part, TdVar *parts[3]; td_split_axis (x[0], 3, 1, parts); y[0] = parts[1])
SOURCE (split_axis_part, i[0] = o[0]; i[1] = 2 + o[1]; return 0)
CALL (get_item,
      y[0]
      = td_get_item (x[0], (const TdSlice[]){ TD_AT (-1), TD_NEW_AXIS, TD_STEP (1, 5, 2) }, 3))
SOURCE (get_item, i[0] = 2; i[1] = 1 + 2 * o[1]; i[2] = o[2]; return 0)
CALL (get_item_back,
      y[0]
      = td_get_item (x[0],
                     (const TdSlice[]){ TD_STEP (TD_END, TD_END, -2), TD_STEP (-2, 0, -1) }, 2))
SOURCE (get_item_back, i[0] = 2 - 2 * o[0]; i[1] = 3 - o[1]; i[2] = o[2]; return 0)
CALL (get_item_none, y[0] = td_get_item (x[0], (const TdSlice[]){ TD_RANGE (2, 1) }, 1))
SOURCE (get_item_none, return -1)
/* The gradient as an operation of its own: that of x[1:3] for x of 4. */
CALL (
    get_item_grad, TD_USING (enable_backprop, 1) {
      TdVar *v = td_variable (td_zeros (td_dtype (x[0]), S (4)), NULL);
      TdVar *part = td_get_item (v, (const TdSlice[]){ TD_RANGE (1, 3) }, 1);

      td_grad_of (&part, 1, &v, 1, x, TD_DOUBLE_BACKPROP, y);
    })
SOURCE (get_item_grad, i[0] = o[0] - 1; return o[0] == 1 || o[0] == 2 ? 0 : -1)
static const double columns[] = { 2, 0, 3 };
CALL (select_item, y[0] = td_select_item (x[0], x[1]))
SOURCE (select_item, i[0] = o[0]; i[1] = (int64_t)columns[o[0]]; return 0)
CALL (select_item_grad,
      y[0] = td__apply2 (&td__select_item_grad_class, (const int64_t[]){ 4 }, NULL, x[1], x[0]))
SOURCE (select_item_grad, i[0] = o[0]; return o[1] == (int64_t)columns[o[0]] ? 0 : -1)
CALL (broadcast_to, y[0] = td_broadcast_to (x[0], S (2, 3, 4)))
SOURCE (broadcast_to, i[0] = o[1]; i[1] = 0; return 0)

/* clang-format off */
#define X(...) { S (__VA_ARGS__), -2, 2, 0, 0, NULL }
#define X_GAP(g, ...) { S (__VA_ARGS__), -2, 2, 0, g, NULL }
#define X_IN(low, high, ...) { S (__VA_ARGS__), low, high, 0, 0, NULL }
#define SCALAR_IN { { 0, { 0 } }, 0.5, 2, 0, 0, NULL }
#define UNARY_ROW(name, input) \
  { .op = #name, .variant = "", .call = call_##name, .n_in = 1, .n_out = 1, .in = { input }, .out = { S (3, 5) }, .map = map_##name }
#define TWINS_ROW(name, a, b, c, d) \
  { .op = #name, .variant = "", .call = call_##name, .n_in = 2, .n_out = 1, .in = { X_IN (a, b, 3, 5), X_IN (c, d, 3, 5) }, .out = { S (3, 5) }, .map = map_##name }
#define BINARY_ROWS(name, a, b, c, d) \
  TWINS_ROW (name, a, b, c, d), \
  { .op = #name, .variant = "row", .call = call_##name, .n_in = 2, .n_out = 1, .in = { X_IN (a, b, 2, 3, 4), X_IN (c, d, 4) }, .out = { S (2, 3, 4) }, .map = map_##name }, \
  { .op = #name, .variant = "outer", .call = call_##name, .n_in = 2, .n_out = 1, .in = { X_IN (a, b, 3, 1), X_IN (c, d, 2, 1, 4) }, .out = { S (2, 3, 4) }, .map = map_##name }, \
  { .op = #name, .variant = "number", .call = call_##name, .n_in = 2, .n_out = 1, .in = { X_IN (a, b, 3, 4), { { 0, { 0 } }, c, d, 0, 0, NULL } }, .out = { S (3, 4) }, .map = map_##name }
#define REDUCTION_ROWS(name) \
  { .op = #name, .variant = "all", .call = call_##name, .n_in = 1, .n_out = 1, .in = { X (2, 3, 4) }, .out = { { 0, { 0 } } }, .fold = fold_##name, .mask = 7 }, \
  { .op = #name, .variant = "middle", .call = call_##name##_1, .n_in = 1, .n_out = 1, .in = { X (2, 3, 4) }, .out = { S (2, 4) }, .fold = fold_##name, .mask = 2 }, \
  { .op = #name, .variant = "ends", .call = call_##name##_02, .n_in = 1, .n_out = 1, .in = { X (2, 3, 4) }, .out = { S (1, 3, 1) }, .fold = fold_##name, .mask = 5 }, \
  { .op = #name, .variant = "columns", .call = call_##name##_01, .n_in = 1, .n_out = 1, .in = { X (2, 3, 4) }, .out = { S (4) }, .fold = fold_##name, .mask = 3 }
#define SHAPE_ROW(name, op_name, input, result) \
  { .op = #op_name, .variant = #name, .call = call_##name, .n_in = 1, .n_out = 1, .in = { input }, .out = { result }, .source = source_##name }

const OpCase op_cases_basic[] = {
  BINARY_ROWS (add, -2, 2, -2, 2),
  BINARY_ROWS (sub, -2, 2, -2, 2),
  BINARY_ROWS (mul, -2, 2, -2, 2),
  BINARY_ROWS (div, -2, 2, 0.5, 2),
  BINARY_ROWS (pow, 0.5, 2, -2, 2),
  BINARY_ROWS (maximum, -2, 2, -2, 2),
  BINARY_ROWS (minimum, -2, 2, -2, 2),
  TWINS_ROW (relu_grad, 0.1, 2, -2, 2),
  TWINS_ROW (sigmoid_grad, 0.1, 0.9, -2, 2),
  TWINS_ROW (tanh_grad, -0.9, 0.9, -2, 2),
  { .op = "mul", .variant = "twice the same", .call = call_twice, .n_in = 1, .n_out = 1, .in = { X (3, 5) }, .out = { S (3, 5) }, .map = map_square },
  UNARY_ROW (add_scalar, X (3, 5)),
  { .op = "add_scalar", .variant = "minus", .call = call_sub_scalar, .n_in = 1, .n_out = 1, .in = { X (3, 5) }, .out = { S (3, 5) }, .map = map_sub_scalar },
  UNARY_ROW (mul_scalar, X (3, 5)),
  UNARY_ROW (div_scalar, X (3, 5)),
  UNARY_ROW (pow_scalar, X (3, 5)),
  { .op = "pow_scalar", .variant = "half", .call = call_pow_half, .n_in = 1, .n_out = 1, .in = { X_IN (0.5, 2, 3, 5) }, .out = { S (3, 5) }, .map = map_sqrt },
  { .op = "pow_scalar", .variant = "2", .call = call_pow_2, .n_in = 1, .n_out = 1, .in = { X (3, 5) }, .out = { S (3, 5) }, .map = map_square },
  { .op = "pow_scalar", .variant = "1", .call = call_pow_1, .n_in = 1, .n_out = 1, .in = { X (3, 5) }, .out = { S (3, 5) }, .map = map_copy },
  { .op = "pow_scalar", .variant = "0", .call = call_pow_0, .n_in = 1, .n_out = 1, .in = { X (3, 5) }, .out = { S (3, 5) }, .map = map_pow_0 },
  UNARY_ROW (rsub_scalar, X (3, 5)),
  UNARY_ROW (rdiv_scalar, X_IN (0.5, 2, 3, 5)),
  UNARY_ROW (rpow_scalar, X (3, 5)),
  UNARY_ROW (neg, X (3, 5)),
  UNARY_ROW (relu, X_GAP (0.05, 3, 5)),
  UNARY_ROW (sigmoid, X (3, 5)),
  UNARY_ROW (tanh, X (3, 5)),
  UNARY_ROW (exp, X (3, 5)),
  UNARY_ROW (log, X_IN (0.2, 3, 3, 5)),
  UNARY_ROW (sqrt, X_IN (0.2, 3, 3, 5)),
  UNARY_ROW (absolute, X_GAP (0.05, 3, 5)),
  UNARY_ROW (square, X (3, 5)),
  UNARY_ROW (sin, X (3, 5)),
  UNARY_ROW (cos, X (3, 5)),
  UNARY_ROW (copy, X (3, 5)),
  UNARY_ROW (clip, X (3, 5)),
  { .op = "clip_inside", .variant = "", .call = call_inside, .n_in = 1, .n_out = 1, .in = { X (3, 5) }, .out = { S (3, 5) }, .map = map_inside, .flags = OP_NO_GRAD },
  { .op = "sign", .variant = "", .call = call_sign, .n_in = 1, .n_out = 1, .in = { X_GAP (0.1, 3, 5) }, .out = { S (3, 5) }, .map = map_sign, .flags = OP_NO_GRAD },
#define COMPARE_ROW(name) \
  { .op = #name, .variant = "", .call = call_##name, .n_in = 2, .n_out = 1, .in = { { S (3, 4), 0, 1, 0, 0, with_zeros }, { S (4), 0, 1, 0, 0, with_zeros } }, .out = { S (3, 4) }, .map = map_##name, .flags = OP_NO_GRAD }
  COMPARE_ROW (equal), COMPARE_ROW (greater_equal), COMPARE_ROW (greater), COMPARE_ROW (less_equal), COMPARE_ROW (less),
  { .op = "where", .variant = "", .call = call_where, .n_in = 3, .n_out = 1, .in = { { S (3), 0, 1, TD_I32, 0, columns }, X (3, 1), X (3, 3) }, .out = { S (3, 3) }, .map = map_where },
  { .op = "cast", .variant = "f64 and back", .call = call_cast_back, .n_in = 1, .n_out = 1, .in = { X (3, 5) }, .out = { S (3, 5) }, .map = map_copy },
  { .op = "cast", .variant = "to i32", .call = call_cast_int, .n_in = 1, .n_out = 1, .in = { X_IN (-9, 9, 3, 5) }, .out = { S (3, 5) }, .out_dtype = TD_I32, .map = map_trunc, .flags = OP_NO_GRAD },

  REDUCTION_ROWS (sum), REDUCTION_ROWS (mean), REDUCTION_ROWS (max), REDUCTION_ROWS (min),
  REDUCTION_ROWS (prod), REDUCTION_ROWS (logsumexp),
  { .op = "prod", .variant = "zeros", .call = call_prod_1, .n_in = 1, .n_out = 1, .in = { { S (3, 4), 0, 1, 0, 0, with_zeros } }, .out = { S (3) }, .fold = fold_prod, .mask = 2 },
  { .op = "argmax", .variant = "last", .call = call_argmax_last, .n_in = 1, .n_out = 1, .in = { X (2, 3, 4) }, .out = { S (2, 3) }, .out_dtype = TD_I32, .fold = fold_argmax, .mask = 4, .flags = OP_NO_GRAD },
  { .op = "argmax", .variant = "middle", .call = call_argmax_1, .n_in = 1, .n_out = 1, .in = { X (2, 3, 4) }, .out = { S (2, 4) }, .out_dtype = TD_I32, .fold = fold_argmax, .mask = 2, .flags = OP_NO_GRAD },
  { .op = "sum_to", .variant = "", .call = call_sum_to, .n_in = 1, .n_out = 1, .in = { X (2, 3, 4) }, .out = { S (3, 1) }, .fold = fold_sum, .mask = 5 },

  SHAPE_ROW (reshape, reshape, X (2, 6), S (4, 3)),
  SHAPE_ROW (flatten, reshape, X (2, 6), S (12)),
  SHAPE_ROW (expand_dims, expand_dims, X (2, 3), S (2, 1, 3)),
  SHAPE_ROW (squeeze, squeeze, X (1, 2, 1, 3), S (2, 3)),
  SHAPE_ROW (squeeze_axis, squeeze, X (1, 2, 1, 3), S (1, 2, 3)),
  SHAPE_ROW (transpose, transpose, X (2, 3, 4), S (4, 3, 2)),
  SHAPE_ROW (transpose_201, transpose, X (2, 3, 4), S (4, 2, 3)),
  { .op = "concat", .variant = "", .call = call_concat, .n_in = 3, .n_out = 1, .in = { X (2, 2), X (2, 3), X (2, 1) }, .out = { S (2, 6) }, .source = source_concat },
  { .op = "concat", .variant = "stack", .call = call_stack, .n_in = 2, .n_out = 1, .in = { X (2, 3), X (2, 3) }, .out = { S (2, 3, 2) }, .source = source_stack },
  { .op = "split_axis", .variant = "", .call = call_split_axis, .n_in = 1, .n_out = 3, .in = { X (2, 6) }, .out = { S (2, 2), S (2, 2), S (2, 2) }, .source = source_split_axis },
  SHAPE_ROW (split_axis_part, split_axis, X (2, 6), S (2, 2)),
  SHAPE_ROW (get_item, get_item, X (3, 5, 2), S (1, 2, 2)),
  SHAPE_ROW (get_item_back, get_item, X (3, 5, 2), S (2, 3, 2)),
  SHAPE_ROW (get_item_none, get_item, X (3, 2), S (0, 2)),
  SHAPE_ROW (get_item_grad, get_item_grad, X (2), S (4)),
  { .op = "select_item", .variant = "", .call = call_select_item, .n_in = 2, .n_out = 1, .in = { X (3, 4), { S (3), 0, 0, TD_I32, 0, columns } }, .out = { S (3) }, .source = source_select_item },
  { .op = "select_item_grad", .variant = "", .call = call_select_item_grad, .n_in = 2, .n_out = 1, .in = { X (3), { S (3), 0, 0, TD_I64, 0, columns } }, .out = { S (3, 4) }, .source = source_select_item_grad },
  SHAPE_ROW (broadcast_to, broadcast_to, X (3, 1), S (2, 3, 4)),
};
const int n_op_cases_basic = TD_ARRAY_LENGTH (op_cases_basic);

CALL (add_cls, y[0] = td_add (x[0], x[1]))
CALL (sum_axis, y[0] = td_sum_axes (x[0], AXES (2), false))
CALL (sum_axes_twice, y[0] = td_sum_axes (x[0], AXES (0, -2), false))
CALL (reshape_bad, y[0] = td_reshape (x[0], S (4, 4)))
CALL (reshape_rest, y[0] = td_reshape (x[0], S (4, -1)))
CALL (reshape_huge, y[0] = td_reshape (x[0], S (INT64_MAX, INT64_MAX)))
CALL (transpose_bad, y[0] = td_transpose (x[0], (const int[]){ 0, 0 }))
CALL (concat_bad, y[0] = td_concat (XS (x[0], x[1]), 2, 0))
CALL (split_bad, td_split_axis (x[0], 4, 0, (TdVar *[4]){ NULL }))
CALL (index_bad, y[0] = td_get_item (x[0], (const TdSlice[]){ TD_AT (7) }, 1))
CALL (step_0, y[0] = td_get_item (x[0], (const TdSlice[]){ TD_STEP (0, 3, 0) }, 1))
CALL (too_many, y[0] = td_get_item (x[0], (const TdSlice[]){ TD_ALL, TD_ALL }, 2))
CALL (clip_bad, y[0] = td_clip (x[0], 2, 1))
CALL (broadcast_bad, y[0] = td_broadcast_to (x[0], S (3, 5)))
CALL (broadcast_huge, y[0] = td_broadcast_to (x[0], S (1L << 30, 1L << 30, 1)))
CALL (sum_to_bad, y[0] = td_sum_to (x[0], S (3, 5)))
CALL (squeeze_bad, y[0] = td_squeeze_axis (x[0], 0))
CALL (expand_bad, y[0] = td_expand_dims (x[0], 5))
CALL (cast_bad, y[0] = td_cast (x[0], (TdDtype)99))
CALL (argmax_bad, y[0] = td_argmax (x[0], 3))

#define E1(d, ...) 1, { { d, S (__VA_ARGS__) } }
#define E2(d, s, e, t) 2, { { d, s }, { e, t } }
const OpError op_errors_basic[] = {
  { "add", call_add_cls, E2 (TD_F32, S (2, 3), TD_F32, S (4)), TD_ERR_SHAPE, "add: a.shape and b.shape that broadcast expected: a (2, 3) f32, b (4) f32" },
  { "add", call_add_cls, E2 (TD_F32, S (2), TD_F64, S (2)), TD_ERR_DTYPE, "add: a.dtype == b.dtype expected: a (2) f32, b (2) f64" },
  { "add", call_add_cls, E2 (TD_BOOL, S (2), TD_BOOL, S (2)), TD_ERR_DTYPE, "add: floating-point or signed operands expected: a (2) bool, b (2) bool" },
  { "div", call_div, E2 (TD_I32, S (2), TD_I32, S (2)), TD_ERR_DTYPE, "div: floating-point operands expected: a (2) i32, b (2) i32" },
  { "relu", call_relu, E1 (TD_I32, 2), TD_ERR_DTYPE, "relu: a floating-point x expected: x (2) i32" },
  { "relu_grad", call_relu_grad, E2 (TD_F32, S (2, 3), TD_F32, S (3)), TD_ERR_SHAPE, "relu_grad: y.shape == gy.shape expected: y (2, 3) f32, gy (3) f32" },
  { "clip", call_clip_bad, E1 (TD_F32, 2), TD_ERR_ARG, "clip: x_min <= x_max expected, got 2 and 1: x (2) f32" },
  { "sum", call_sum_axis, E1 (TD_F32, 2, 3), TD_ERR_SHAPE, "sum: -x.ndim <= axis < x.ndim expected, got axis 2: x (2, 3) f32" },
  { "sum", call_sum_axes_twice, E1 (TD_F32, 2, 3), TD_ERR_ARG, "sum: each axis once expected, got -2 twice: x (2, 3) f32" },
  { "mean", call_mean, E1 (TD_I32, 2), TD_ERR_DTYPE, "mean: a floating-point x expected: x (2) i32" },
  { "max", call_max, E1 (TD_F32, 0, 3), TD_ERR_SHAPE, "max: x.size > 0 expected: x (0, 3) f32" },
  { "argmax", call_argmax_bad, E1 (TD_F32, 2), TD_ERR_SHAPE, "argmax: -x.ndim <= axis < x.ndim expected, got axis 3: x (2) f32" },
  { "reshape", call_reshape_bad, E1 (TD_F32, 2, 3), TD_ERR_SHAPE, "reshape: x.size == prod (4, 4) expected: x (2, 3) f32" },
  { "reshape", call_reshape_rest, E1 (TD_F32, 2, 3), TD_ERR_SHAPE, "reshape: x.size % 4 == 0 expected for (4, -1): x (2, 3) f32" },
  { "reshape", call_reshape_huge, E1 (TD_F32, 2, 3), TD_ERR_SHAPE, "reshape: sizes, and -1 once, expected, got (9223372036854775807, 9223372036854775807): x (2, 3) f32" },
  { "transpose", call_transpose_bad, E1 (TD_F32, 2, 3), TD_ERR_SHAPE, "transpose: each axis of x once expected, got 0 as axis 1: x (2, 3) f32" },
  { "concat", call_concat_bad, E2 (TD_F32, S (2, 3), TD_F32, S (2, 4)), TD_ERR_SHAPE, "concat: inputs that differ along axis 0 only expected, input 1 differs elsewhere: input 0 (2, 3) f32, input 1 (2, 4) f32" },
  { "concat", call_concat_bad, E2 (TD_F32, S (2, 3), TD_F64, S (2, 3)), TD_ERR_DTYPE, "concat: inputs of one dtype expected, input 1 differs: input 0 (2, 3) f32, input 1 (2, 3) f64" },
  { "split_axis", call_split_bad, E1 (TD_F32, 6), TD_ERR_SHAPE, "split_axis: x.shape[0] % 4 == 0 expected: x (6) f32" },
  { "get_item", call_index_bad, E1 (TD_F32, 3), TD_ERR_ARG, "get_item: index 7 is out of range for axis 0 of size 3: x (3) f32" },
  { "get_item", call_step_0, E1 (TD_F32, 3), TD_ERR_ARG, "get_item: a slice step that is not 0 expected: x (3) f32" },
  { "get_item", call_too_many, E1 (TD_F32, 3), TD_ERR_SHAPE, "get_item: at most x.ndim indices expected, got more: x (3) f32" },
  { "select_item", call_select_item, E2 (TD_F32, S (3, 4), TD_I32, S (2)), TD_ERR_SHAPE, "select_item: x.shape[0] == t.shape[0] expected: x (3, 4) f32, t (2) i32" },
  { "select_item", call_select_item, E2 (TD_F32, S (3, 4), TD_F32, S (3)), TD_ERR_DTYPE, "select_item: an integer t expected: x (3, 4) f32, t (3) f32" },
  { "select_item", call_select_item, E2 (TD_F32, S (1, 0), TD_I32, S (1)), TD_ERR_ARG, "select_item: 0 <= t[i] < 0 expected, got 0 at element 0" },
  { "where", call_where, 3, { { TD_BOOL, S (2) }, { TD_F32, S (3) }, { TD_F32, S (3) } }, TD_ERR_SHAPE, "where: condition.shape, x.shape and y.shape that broadcast expected: condition (2) bool, x (3) f32, y (3) f32" },
  { "where", call_where, 3, { { TD_BOOL, S (3) }, { TD_F32, S (3) }, { TD_F64, S (3) } }, TD_ERR_DTYPE, "where: x.dtype == y.dtype expected: condition (3) bool, x (3) f32, y (3) f64" },
  { "broadcast_to", call_broadcast_bad, E1 (TD_F32, 4), TD_ERR_SHAPE, "broadcast_to: x.shape that broadcasts to (3, 5) expected: x (4) f32" },
  { "broadcast_to", call_broadcast_huge, E1 (TD_F32, 1), TD_ERR_SHAPE, "broadcast_to: a result of (1073741824, 1073741824, 1) is no size an array can have: x (1) f32" },
  { "sum_to", call_sum_to_bad, E1 (TD_F32, 4), TD_ERR_SHAPE, "sum_to: x.shape that (3, 5) broadcasts to expected: x (4) f32" },
  { "squeeze", call_squeeze_bad, E1 (TD_F32, 2, 1), TD_ERR_SHAPE, "squeeze: x.shape[0] == 1 expected: x (2, 1) f32" },
  { "expand_dims", call_expand_bad, E1 (TD_F32, 2), TD_ERR_SHAPE, "expand_dims: -x.ndim - 1 <= axis <= x.ndim expected, got axis 5: x (2) f32" },
  { "cast", call_cast_bad, E1 (TD_F32, 2), TD_ERR_ARG, "cast: a known dtype expected, got 99: x (2) f32" },
};
/* clang-format on */
const int n_op_errors_basic = TD_ARRAY_LENGTH (op_errors_basic);
