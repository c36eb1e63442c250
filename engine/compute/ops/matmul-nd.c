/* Matrix products of other than two matrices, as numpy.matmul has them: axes before the last
 * two broadcast, a vector is a row on the left and a column on the right.
 *
 * SPDX-License-Identifier: MIT */
#include "compose.h"
#include "layers.h"

/* One operand: the axes before its matrix, and the matrix. */
typedef struct
{
  TdVar *v;
  TdShape stack;
  int64_t rows, columns;
  bool vector;
} Operand;

static Operand
operand (TdVar *v, bool right)
{
  Operand o = { .v = v, .stack = td_shape (v), .vector = td_ndim (v) == 1 };

  if (o.vector)
    {
      o.rows = right ? o.stack.dim[0] : 1;
      o.columns = right ? 1 : o.stack.dim[0];
      o.stack.ndim = 0;
      return o;
    }
  o.stack.ndim -= 2;
  o.rows = o.stack.dim[o.stack.ndim];
  o.columns = o.stack.dim[o.stack.ndim + 1];
  return o;
}

/* As a stack of three axes; the stack of all is `common`. */
static TdVar *
stacked (const Operand *o, const TdShape *common)
{
  TdShape shape = *common, flat = { .ndim = 3, .dim = { 1, o->rows, o->columns } };
  TdVar *v = o->v;

  if (!td_shape_equal (&o->stack, common))
    {
      if (o->vector)
        v = td_reshape (v, TD_SHAPE (o->rows, o->columns));
      shape.dim[shape.ndim++] = o->rows;
      shape.dim[shape.ndim++] = o->columns;
      v = td_broadcast_to (v, shape);
    }
  flat.dim[0] = td_shape_size (common);
  return td_reshape (v, flat);
}

static TdVar *
fail (TdStatus status, TdVar *a, TdVar *b, const char *expected, const TdSite *site)
{
  const TdShape shapes[2] = { td_shape (a), td_shape (b) };
  char text[2][160];

  td__fail (status, "matmul", site, "%s: a %s %s, b %s %s", expected,
            td_shape_text (&shapes[0], text[0], sizeof text[0]), td_dtype_name (td_dtype (a)),
            td_shape_text (&shapes[1], text[1], sizeof text[1]), td_dtype_name (td_dtype (b)));
  return td__poison ();
}

TdVar *
td__matmul_nd (TdVar *a, TdVar *b, bool ta, bool tb, const TdSite *site)
{
  Operand x, y;
  TdShape common, shape;
  const TdSite *outer;
  TdVar *c;

  if (!td__var_usable (a, "matmul", site) || !td__var_usable (b, "matmul", site))
    return td__poison ();
  if (td_ndim (a) < 1 || td_ndim (b) < 1)
    return fail (TD_ERR_SHAPE, a, b, "operands of at least one axis expected", site);
  x = operand (a, false);
  y = operand (b, true);
  ta = ta && !x.vector;
  tb = tb && !y.vector;
  if ((ta ? x.rows : x.columns) != (tb ? y.columns : y.rows))
    return fail (TD_ERR_SHAPE, a, b, "as many columns of op (a) as rows of op (b) expected",
                 site);
  if (!td__shape_broadcast (&x.stack, &y.stack, &common) || common.ndim > TD_MAX_DIMS - 2)
    return fail (TD_ERR_SHAPE, a, b, "axes before the last two that broadcast expected", site);
  outer = td__at (site);
  c = td_batch_matmul (stacked (&x, &common), stacked (&y, &common), ta, tb);
  shape = common;
  if (!x.vector)
    shape.dim[shape.ndim++] = ta ? x.columns : x.rows;
  if (!y.vector)
    shape.dim[shape.ndim++] = tb ? y.rows : y.columns;
  c = td_reshape (c, shape);
  td__at_end (outer);
  return c;
}
