/* Rows of `tapedeck eval`: shapes and pieces of arrays.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void
call_broadcast_to (TdEval *e)
{
  td_eval_give (e, td_broadcast_to (e->in[0], td_eval_shape (e, "shape")));
}

static void
call_sum_to (TdEval *e)
{
  td_eval_give (e, td_sum_to (e->in[0], td_eval_shape (e, "shape")));
}

static void
call_reshape (TdEval *e)
{
  td_eval_give (e, td_reshape (e->in[0], td_eval_shape (e, "shape")));
}

static void
call_cast (TdEval *e)
{
  td_eval_give (e, td_cast (e->in[0], td_eval_dtype (e, "typ")));
}

static void
call_concat (TdEval *e)
{
  td_eval_give (e, td_concat (e->in, e->n_in, (int)td_eval_int (e, "axis")));
}

static void
call_stack (TdEval *e)
{
  td_eval_give (e, td_stack (e->in, e->n_in, (int)td_eval_int (e, "axis")));
}

static void
call_expand_dims (TdEval *e)
{
  td_eval_give (e, td_expand_dims (e->in[0], (int)td_eval_int (e, "axis")));
}

/* Several axes are dropped one by one, the last first. */
static void
call_squeeze (TdEval *e)
{
  int axes[TD_MAX_DIMS], ndim = td_ndim (e->in[0]);
  int n = td_eval_none (e, "axis") ? -1 : td_eval_ints (e, "axis", axes, TD_MAX_DIMS);
  TdVar *y = e->in[0];

  if (n < 0)
    return td_eval_give (e, td_squeeze (y));
  for (int i = 0; i < n; i++)
    axes[i] += axes[i] < 0 ? ndim : 0;
  for (int at = ndim; at >= -1; at--)
    for (int i = 0; i < n; i++)
      if (axes[i] == at || (at == ndim && axes[i] > at) || (at == -1 && axes[i] < at))
        y = td_squeeze_axis (y, axes[i]);
  td_eval_give (e, y);
}

static void
call_transpose (TdEval *e)
{
  int axes[TD_MAX_DIMS], n;

  if (td_eval_none (e, "axes"))
    return td_eval_give (e, td_transpose (e->in[0], NULL));
  n = td_eval_ints (e, "axes", axes, TD_MAX_DIMS);
  if (n != td_ndim (e->in[0]))
    return td_eval_wrong (e, "axes", "one number for each axis of x expected");
  td_eval_give (e, td_transpose (e->in[0], axes));
}

/* One number is a number of equal pieces, several (or one with a comma or in brackets) are the
 * places of the cuts. */
static void
call_split_axis (TdEval *e)
{
  int cuts[TD_EVAL_MAX_ARRAYS], axis = (int)td_eval_int (e, "axis"), ndim = td_ndim (e->in[0]);
  int n = td_eval_ints (e, "indices_or_sections", cuts, TD_EVAL_MAX_ARRAYS - 1);
  bool places = n != 1 || strpbrk (td_eval_text (e, "indices_or_sections"), ",([") != NULL;
  TdSlice slices[TD_MAX_DIMS];

  if (e->wrong[0] != '\0')
    return;
  if (!places)
    {
      if (cuts[0] > TD_EVAL_MAX_ARRAYS)
        return td_eval_wrong (e, "indices_or_sections", "at most 128 pieces can be written");
      e->n_out = cuts[0] > 0 ? cuts[0] : 1;
      td_split_axis (e->in[0], cuts[0], axis, e->out);
      return;
    }
  axis += axis < 0 ? ndim : 0;
  if (axis < 0 || axis >= ndim)
    return td_eval_wrong (e, "axis", "it is out of range");
  for (int i = 0; i <= n; i++)
    {
      for (int d = 0; d < axis; d++)
        slices[d] = TD_ALL;
      slices[axis] = TD_RANGE (i > 0 ? cuts[i - 1] : 0, i < n ? cuts[i] : TD_END);
      td_eval_give (e, td_get_item (e->in[0], slices, axis + 1));
    }
}

static void
call_where (TdEval *e)
{
  td_eval_give (e, td_where (e->in[0], e->in[1], e->in[2]));
}

/* --- get_item: "1:4:2, :, -1, ..., None" --- */

/* One number of a slice, if there is one. */
static bool
number (const char **at, int64_t *value)
{
  char *end;

  *at += strspn (*at, " ");
  errno = 0;
  int64_t v = strtoll (*at, &end, 10);
  if (end == *at || errno != 0)
    return false;
  *value = v;
  *at = end + strspn (end, " ");
  return true;
}

static bool
word (const char **at, const char *text)
{
  *at += strspn (*at, " ");
  if (strncmp (*at, text, strlen (text)) != 0)
    return false;
  *at += strlen (text);
  *at += strspn (*at, " ");
  return true;
}

static bool
one_slice (const char **at, TdSlice *s)
{
  bool first, step = false;

  if (word (at, "None") || word (at, "newaxis"))
    {
      *s = TD_NEW_AXIS;
      return true;
    }
  *s = TD_ALL;
  s->start = INT64_MAX; /* not given */
  first = number (at, &s->start);
  if (!word (at, ":"))
    {
      *s = TD_AT (s->start);
      return first;
    }
  number (at, &s->stop);
  if (word (at, ":"))
    step = number (at, &s->step);
  if (!first && !(step && s->step < 0))
    s->start = 0; /* going back, the start that is not given is the end */
  return true;
}

/* The slices of a text; "..." stands for as many whole axes as are left. */
static int
parse_slices (const char *text, int ndim, TdSlice *slices, int max)
{
  int n = 0, used = 0, dots = -1, fill;

  text += strspn (text, " ([");
  while (*text != '\0' && *text != ')' && *text != ']')
    {
      if (n == max)
        return -1;
      if (word (&text, "..."))
        {
          if (dots >= 0)
            return -1;
          dots = n;
        }
      else if (one_slice (&text, &slices[n]))
        used += slices[n++].kind != 2;
      else
        return -1;
      if (*text == ',')
        text++;
      else if (*text != '\0' && *text != ')' && *text != ']')
        return -1;
      text += strspn (text, " ");
    }
  fill = dots >= 0 && ndim > used ? ndim - used : 0;
  if (n + fill > max)
    return -1;
  if (fill > 0)
    memmove (&slices[dots + fill], &slices[dots], (size_t)(n - dots) * sizeof *slices);
  for (int i = 0; i < fill; i++)
    slices[dots + i] = TD_ALL;
  return n + fill;
}

static void
call_get_item (TdEval *e)
{
  TdSlice slices[2 * TD_MAX_DIMS];
  int n;

  n = parse_slices (td_eval_text (e, "slices"), td_ndim (e->in[0]), slices, 2 * TD_MAX_DIMS);
  if (n < 0)
    return td_eval_wrong (e, "slices", "slices such as 1:4:2,:,-1 expected");
  td_eval_give (e, td_get_item (e->in[0], slices, n));
}

/* clang-format off */
#define UNARY(name, formula) { #name, "array", "x", NULL, formula, .unary = td_##name }
#define BINARY(name, operands, formula) { #name, "array", operands, NULL, formula, .binary = td_##name }
#define ROW(name, operands, attributes, formula)                                               \
  { #name, "array", operands, attributes, formula, .call = call_##name }
const TdEvalFunction td_eval_arrays[] = {
  ROW (broadcast_to, "x", "shape:ints", "x repeated along axes of size 1"),
  ROW (cast, "x", "typ:dtype", "x in another element type"),
  ROW (concat, "xs...", "axis:int=1", "xs joined along axis"),
  UNARY (copy, "x in memory of its own"),
  ROW (expand_dims, "x", "axis:int", "x with a new axis of size 1"),
  UNARY (flatten, "x with one axis"),
  ROW (get_item, "x", "slices:text", "x[slices]"),
  ROW (reshape, "x", "shape:ints", "the same elements in another shape"),
  BINARY (select_item, "x t", "x[i, t[i]]"),
  ROW (split_axis, "x", "indices_or_sections:ints axis:int", "pieces of x along axis"),
  ROW (squeeze, "x", "axis:ints=None", "x without its axes of size 1"),
  ROW (stack, "xs...", "axis:int=0", "xs joined along a new axis"),
  ROW (sum_to, "x", "shape:ints", "x summed to shape, the opposite of broadcast_to"),
  ROW (transpose, "x", "axes:ints=None", "x with its axes in another order"),
  ROW (where, "condition x y", NULL, "x where condition, else y"),
  { .name = NULL },
};
