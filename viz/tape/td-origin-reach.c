/* Elements that an operation's output is computed from: by element, by row and column of a
 * product, by the axes of a sum. What is not in the table here is not known.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-origin-reach.h"

#include <string.h>

typedef enum
{
  BY_ELEMENT, /* broadcast */
  BY_PLACE,   /* the same number of elements, in the same order */
  BY_SUM,     /* over `axis`, or to a smaller shape */
  BY_LINEAR,  /* x W' + b */
  BY_PRODUCT, /* of two matrices */
  BY_AXIS,    /* of those along `axis`, or from it on */
  BY_ALL,     /* of many, in some way */
} Way;

enum
{
  PASSES_NAN = 1,
  PASSES_INF = 2,
  PASSES = PASSES_NAN | PASSES_INF,
};

static const struct
{
  const char *op;
  Way way;
  int passes;
} table[] = {
  { "add", BY_ELEMENT, PASSES },
  { "sub", BY_ELEMENT, PASSES },
  { "neg", BY_ELEMENT, PASSES },
  { "add_scalar", BY_ELEMENT, PASSES },
  { "rsub_scalar", BY_ELEMENT, PASSES },
  { "square", BY_ELEMENT, PASSES },
  { "absolute", BY_ELEMENT, PASSES },
  { "mul", BY_ELEMENT, PASSES_NAN },
  { "mul_scalar", BY_ELEMENT, PASSES_NAN },
  { "div_scalar", BY_ELEMENT, PASSES_NAN },
  { "div", BY_ELEMENT, PASSES_NAN },
  { "rdiv_scalar", BY_ELEMENT, PASSES_NAN },
  { "exp", BY_ELEMENT, PASSES_NAN },
  { "expm1", BY_ELEMENT, PASSES_NAN },
  { "log", BY_ELEMENT, PASSES_NAN },
  { "log1p", BY_ELEMENT, PASSES_NAN },
  { "sqrt", BY_ELEMENT, PASSES_NAN },
  { "rsqrt", BY_ELEMENT, PASSES_NAN },
  { "sin", BY_ELEMENT, PASSES_NAN },
  { "cos", BY_ELEMENT, PASSES_NAN },
  { "erf", BY_ELEMENT, PASSES_NAN },
  { "sigmoid", BY_ELEMENT, PASSES_NAN },
  { "sigmoid_grad", BY_ELEMENT, PASSES_NAN },
  { "tanh", BY_ELEMENT, PASSES_NAN },
  { "tanh_grad", BY_ELEMENT, PASSES_NAN },
  { "softplus", BY_ELEMENT, PASSES_NAN },
  { "softplus_grad", BY_ELEMENT, PASSES_NAN },
  { "silu", BY_ELEMENT, PASSES_NAN },
  { "silu_grad", BY_ELEMENT, PASSES_NAN },
  { "gelu", BY_ELEMENT, PASSES_NAN },
  { "gelu_grad", BY_ELEMENT, PASSES_NAN },
  { "erf_grad", BY_ELEMENT, 0 },
  { "log1p_grad", BY_ELEMENT, 0 },
  { "expm1_grad", BY_ELEMENT, 0 },
  { "rsqrt_grad", BY_ELEMENT, 0 },
  { "pow", BY_ELEMENT, 0 },
  { "pow_scalar", BY_ELEMENT, 0 },
  { "rpow_scalar", BY_ELEMENT, 0 },
  { "maximum", BY_ELEMENT, 0 },
  { "minimum", BY_ELEMENT, 0 },
  { "relu", BY_ELEMENT, 0 },
  { "relu_grad", BY_ELEMENT, 0 },
  { "leaky_relu", BY_ELEMENT, 0 },
  { "leaky_relu_grad", BY_ELEMENT, 0 },
  { "elu", BY_ELEMENT, 0 },
  { "elu_grad", BY_ELEMENT, 0 },
  { "clipped_relu", BY_ELEMENT, 0 },
  { "clipped_relu_grad", BY_ELEMENT, 0 },
  { "hard_sigmoid", BY_ELEMENT, 0 },
  { "hard_sigmoid_grad", BY_ELEMENT, 0 },
  { "clip", BY_ELEMENT, 0 },
  { "clip_inside", BY_ELEMENT, 0 },
  { "sign", BY_ELEMENT, 0 },
  { "where", BY_ELEMENT, 0 },
  { "equal", BY_ELEMENT, 0 },
  { "greater", BY_ELEMENT, 0 },
  { "greater_equal", BY_ELEMENT, 0 },
  { "less", BY_ELEMENT, 0 },
  { "less_equal", BY_ELEMENT, 0 },
  { "identity", BY_ELEMENT, PASSES },
  { "copy", BY_ELEMENT, PASSES },
  { "cast", BY_ELEMENT, 0 }, /* into integers as well */
  { "broadcast_to", BY_ELEMENT, PASSES },
  { "reshape", BY_PLACE, PASSES },
  { "expand_dims", BY_PLACE, PASSES },
  { "squeeze", BY_PLACE, PASSES },
  { "sum", BY_SUM, PASSES_NAN },
  { "mean", BY_SUM, PASSES_NAN },
  { "sum_to", BY_SUM, PASSES_NAN },
  { "max", BY_SUM, 0 },
  { "min", BY_SUM, 0 },
  { "linear", BY_LINEAR, PASSES_NAN },
  { "matmul", BY_PRODUCT, PASSES_NAN },
  { "batch_matmul", BY_ALL, PASSES_NAN },
  { "transpose", BY_ALL, PASSES },
  { "swapaxes", BY_ALL, PASSES },
  { "moveaxis", BY_ALL, PASSES },
  { "flip", BY_ALL, PASSES },
  { "concat", BY_ALL, PASSES },
  { "hstack", BY_ALL, PASSES },
  { "vstack", BY_ALL, PASSES },
  { "softmax", BY_AXIS, PASSES_NAN },
  { "log_softmax", BY_AXIS, PASSES_NAN },
  { "logsumexp", BY_SUM, PASSES_NAN },
  { "mean_squared_error", BY_ALL, PASSES_NAN },
  { "batch_normalization", BY_ALL, PASSES_NAN },
  { "layer_normalization", BY_AXIS, PASSES_NAN },
};

static gint
find (const char *op)
{
  for (guint i = 0; i < G_N_ELEMENTS (table); i++)
    if (strcmp (table[i].op, op) == 0)
      return (gint)i;
  return -1;
}

gboolean
td__origin_passes_on (const char *op, gboolean is_inf)
{
  gint row = find (op);

  return row >= 0 && (table[row].passes & (is_inf ? PASSES_INF : PASSES_NAN)) != 0;
}

gboolean
td__origin_is_elementwise (const char *op)
{
  gint row = find (op);

  return row >= 0 && table[row].way == BY_ELEMENT;
}

/* ---- shapes ---- */

typedef struct
{
  guint ndim;
  const gint64 *dim;
  guint64 n;
} Shape;

static Shape
shape_of (const TdTapeIteration *t, guint var)
{
  const TdTapeVar *v = &t->vars[var];
  Shape s = { v->ndim, t->dims + v->first_dim, 1 };

  for (guint k = 0; k < s.ndim; k++)
    s.n *= (guint64)s.dim[k];
  return s;
}

/* Strides of `s` as it is broadcast to `to`, aligned at the last axis; FALSE: it cannot be. */
static gboolean
broadcast_strides (const Shape *s, const Shape *to, guint64 stride[TD_TAPE_MAX_NDIM])
{
  guint64 step = 1;

  if (s->ndim > to->ndim)
    return FALSE;
  for (guint k = 0; k < to->ndim; k++)
    {
      guint axis = to->ndim - 1 - k;
      gint64 d = k < s->ndim ? s->dim[s->ndim - 1 - k] : 1;

      if (d != 1 && d != to->dim[axis])
        return FALSE;
      stride[axis] = d == 1 ? 0 : step;
      step *= (guint64)d;
    }
  return TRUE;
}

/* Where element `i` of `s` lies in an array with these strides. */
static guint64
place_of (const Shape *s, guint64 i, const guint64 *stride)
{
  guint64 at = 0;

  for (guint axis = s->ndim; axis-- > 0;)
    {
      at += i % (guint64)s->dim[axis] * stride[axis];
      i /= (guint64)s->dim[axis];
    }
  return at;
}

/* ---- ways ---- */

typedef struct
{
  Shape o, i; /* of the output, of the input */
  const guint8 *out, *bad;
  guint8 *in, *covered;
} Marks;

static inline void
mark (Marks *m, guint64 o, guint64 i)
{
  if (m->out[o] && m->bad[i])
    m->in[i] = m->covered[o] = 1;
}

static TdReach
by_element (Marks *m)
{
  guint64 stride[TD_TAPE_MAX_NDIM];

  if (!broadcast_strides (&m->i, &m->o, stride))
    return TD_REACH_UNKNOWN;
  for (guint64 o = 0; o < m->o.n; o++)
    if (m->out[o])
      mark (m, o, place_of (&m->o, o, stride));
  return TD_REACH_KNOWN;
}

static TdReach
by_place (Marks *m)
{
  if (m->o.n != m->i.n)
    return TD_REACH_UNKNOWN;
  for (guint64 o = 0; o < m->o.n; o++)
    mark (m, o, o);
  return TD_REACH_KNOWN;
}

/* The input's shape with the axes of the attribute "axis=0,-1" as 1, in `dim`. */
static gboolean
summed_shape (const Shape *s, const char *attrs, gint64 dim[TD_TAPE_MAX_NDIM])
{
  const char *at = strstr (attrs, "axis=");
  gboolean any = FALSE;

  memcpy (dim, s->dim, s->ndim * sizeof *dim);
  for (at = at ? at + 5 : ""; *at && *at != ' ';)
    {
      char *end;
      gint64 axis = g_ascii_strtoll (at, &end, 10);

      if (end == at)
        {
          if (!strchr ("(),", *at))
            return FALSE;
          at++;
          continue;
        }
      axis += axis < 0 ? (gint64)s->ndim : 0;
      if (axis < 0 || axis >= (gint64)s->ndim)
        return FALSE;
      dim[axis] = 1;
      any = TRUE;
      at = end;
    }
  for (guint k = 0; !any && k < s->ndim; k++)
    dim[k] = 1;
  return TRUE;
}

static TdReach
by_sum (Marks *m, const char *op, const char *attrs)
{
  guint64 stride[TD_TAPE_MAX_NDIM];
  gint64 dim[TD_TAPE_MAX_NDIM];
  Shape kept = { m->i.ndim, dim, m->o.n };
  gboolean is_to = strcmp (op, "sum_to") == 0;

  if (!is_to && !summed_shape (&m->i, attrs, dim))
    return TD_REACH_UNKNOWN;
  if (!broadcast_strides (is_to ? &m->o : &kept, &m->i, stride))
    return TD_REACH_UNKNOWN;
  for (guint64 i = 0; i < m->i.n; i++)
    if (m->bad[i])
      {
        guint64 o = place_of (&m->i, i, stride);

        if (o >= m->o.n)
          return TD_REACH_UNKNOWN;
        mark (m, o, i);
      }
  return TD_REACH_KNOWN;
}

/* Rows of a softmax or of a normalization: an element comes from all that lie along the axis
 * with it, and from its own of what scales them. */
static TdReach
by_axis (Marks *m, guint k, const char *attrs)
{
  const char *at = strstr (attrs, "axis=");
  gint64 axis = at ? g_ascii_strtoll (at + 5, NULL, 10) : -1;
  guint64 inner = 1, n;

  if (k > 0)
    return by_element (m);
  axis += axis < 0 ? (gint64)m->i.ndim : 0;
  if (m->o.n != m->i.n || axis < 0 || axis >= (gint64)m->i.ndim)
    return TD_REACH_UNKNOWN;
  for (guint d = (guint)axis + 1; d < m->i.ndim; d++)
    inner *= (guint64)m->i.dim[d];
  n = (guint64)m->i.dim[axis];
  for (guint64 o = 0; o < m->o.n; o++)
    for (guint64 j = 0; m->out[o] && j < n; j++)
      mark (m, o, o - (o / inner % n) * inner + j * inner);
  return TD_REACH_KNOWN;
}

/* One operand of a product: lines of the output (rows of it, or columns) are computed from the
 * same lines of the operand, whose elements are `step` apart. */
static TdReach
by_line (Marks *m, guint64 columns, gboolean of_rows, gboolean lines_are_rows)
{
  guint64 rows = columns > 0 ? m->o.n / columns : 0;
  guint64 n_lines = of_rows ? rows : columns, depth = n_lines > 0 ? m->i.n / n_lines : 0;
  g_autofree guint8 *wanted = g_malloc0 (n_lines + 1), *has = g_malloc0 (n_lines + 1);

  if (m->i.n != n_lines * depth || m->o.n != rows * columns)
    return TD_REACH_UNKNOWN;
  for (guint64 o = 0; o < m->o.n; o++)
    wanted[of_rows ? o / columns : o % columns] |= m->out[o];
  for (guint64 i = 0; i < m->i.n; i++)
    {
      guint64 line = lines_are_rows ? i / depth : i % n_lines;

      if (m->bad[i] && wanted[line])
        m->in[i] = has[line] = 1;
    }
  for (guint64 o = 0; o < m->o.n; o++)
    if (m->out[o] && has[of_rows ? o / columns : o % columns])
      m->covered[o] = 1;
  return TD_REACH_KNOWN;
}

static TdReach
by_product (Marks *m, Way way, guint k, const char *attrs)
{
  guint64 columns = m->o.ndim > 0 ? (guint64)m->o.dim[m->o.ndim - 1] : 1;

  if (way == BY_LINEAR)
    return k == 0   ? by_line (m, columns, TRUE, TRUE)
           : k == 1 ? by_line (m, columns, FALSE, TRUE)
                    : by_element (m);
  if (m->o.ndim != 2 || m->i.ndim != 2 || k > 1)
    return TD_REACH_UNKNOWN;
  return k == 0 ? by_line (m, columns, TRUE, strstr (attrs, "transa=true") == NULL)
                : by_line (m, columns, FALSE, strstr (attrs, "transb=true") != NULL);
}

TdReach
td__origin_reach (const TdIteration *it, guint event, guint out_var, guint k, const guint8 *out,
                  const guint8 *in_bad, guint8 *in, guint8 *covered)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  const TdTapeEvent *e = &t->events[event];
  const char *op = td_iteration_get_op_name (it, event);
  const char *attrs = td_iteration_get_string (it, e->attrs);
  gint row = find (op);
  Marks m = {
    shape_of (t, out_var), shape_of (t, t->ins[e->first_in + k]), out, in_bad, in, covered
  };

  if (e->n_out == 0)
    return by_place (&m); /* rules, hooks and accumulations go by element */
  if (row < 0)
    return TD_REACH_UNKNOWN;
  switch (table[row].way)
    {
    case BY_ELEMENT:
      return by_element (&m);
    case BY_PLACE:
      return by_place (&m);
    case BY_SUM:
      return by_sum (&m, op, attrs);
    case BY_AXIS:
      return by_axis (&m, k, attrs);
    case BY_LINEAR:
    case BY_PRODUCT:
      return by_product (&m, table[row].way, k, attrs);
    case BY_ALL:
    default:
      return TD_REACH_UNKNOWN;
    }
}

TdReach
td__origin_reach_elements (const TdIteration *it, guint event, guint out_var, guint k,
                           const guint8 *out, const guint8 *in_bad, guint8 *in, guint8 *covered)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  guint in_var = t->ins[t->events[event].first_in + k];
  Marks m = { shape_of (t, out_var), shape_of (t, in_var), out, in_bad, in, covered };

  return by_element (&m);
}
