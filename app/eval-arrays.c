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
  td_eval_output (e, td_broadcast_to (e->in[0], td_eval_shape (e, "shape")));
}

static void
call_sum_to (TdEval *e)
{
  td_eval_output (e, td_sum_to (e->in[0], td_eval_shape (e, "shape")));
}

static void
call_reshape (TdEval *e)
{
  td_eval_output (e, td_reshape (e->in[0], td_eval_shape (e, "shape")));
}

static void
call_cast (TdEval *e)
{
  td_eval_output (e, td_cast (e->in[0], td_eval_dtype (e, "typ")));
}

static void
call_concat (TdEval *e)
{
  td_eval_output (e, td_concat (e->in, e->n_in, (int)td_eval_int (e, "axis")));
}

static void
call_stack (TdEval *e)
{
  td_eval_output (e, td_stack (e->in, e->n_in, (int)td_eval_int (e, "axis")));
}

static void
call_expand_dims (TdEval *e)
{
  td_eval_output (e, td_expand_dims (e->in[0], (int)td_eval_int (e, "axis")));
}

/* Several axes are dropped one by one, the last first. */
static void
call_squeeze (TdEval *e)
{
  int axes[TD_MAX_DIMS], ndim = td_ndim (e->in[0]);
  int n = td_eval_none (e, "axis") ? -1 : td_eval_ints (e, "axis", axes, TD_MAX_DIMS);
  TdVar *y = e->in[0];

  if (n < 0)
    return td_eval_output (e, td_squeeze (y));
  for (int i = 0; i < n; i++)
    axes[i] += axes[i] < 0 ? ndim : 0;
  for (int at = ndim; at >= -1; at--)
    for (int i = 0; i < n; i++)
      if (axes[i] == at || (at == ndim && axes[i] > at) || (at == -1 && axes[i] < at))
        y = td_squeeze_axis (y, axes[i]);
  td_eval_output (e, y);
}

static void
call_transpose (TdEval *e)
{
  int axes[TD_MAX_DIMS], n;

  if (td_eval_none (e, "axes"))
    return td_eval_output (e, td_transpose (e->in[0], NULL));
  n = td_eval_ints (e, "axes", axes, TD_MAX_DIMS);
  if (n != td_ndim (e->in[0]))
    return td_eval_wrong (e, "axes", "one number for each axis of x expected");
  td_eval_output (e, td_transpose (e->in[0], axes));
}

/* One number is a number of equal pieces, several (or one with a comma or in brackets) are the
 * places of the cuts. */
static void
call_split_axis (TdEval *e)
{
  int cuts[TD_EVAL_MAX_ARRAYS], axis = (int)td_eval_int (e, "axis");
  int64_t places[TD_EVAL_MAX_ARRAYS];
  int n = td_eval_ints (e, "indices_or_sections", cuts, TD_EVAL_MAX_ARRAYS - 1);
  bool by_places = n != 1 || strpbrk (td_eval_text (e, "indices_or_sections"), ",([") != NULL;

  if (e->wrong[0] != '\0')
    return;
  if (!by_places)
    {
      if (cuts[0] > TD_EVAL_MAX_ARRAYS)
        return td_eval_wrong (e, "indices_or_sections", "at most 128 pieces can be written");
      e->n_out = cuts[0] > 0 ? cuts[0] : 1;
      td_split_axis (e->in[0], cuts[0], axis, e->out);
      return;
    }
  for (int i = 0; i < n; i++)
    places[i] = cuts[i];
  e->n_out = n + 1;
  td_split_axis_indices (e->in[0], places, n, axis, e->out);
}

static void
call_where (TdEval *e)
{
  td_eval_output (e, td_where (e->in[0], e->in[1], e->in[2]));
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
  int n
      = parse_slices (td_eval_text (e, "slices"), td_ndim (e->in[0]), slices, 2 * TD_MAX_DIMS);

  if (e->n_in > 1 && td_eval_attr (e, "slices")->given)
    td_eval_wrong (e, "slices", "it or arrays of indices expected, not both");
  else if (e->n_in > 1)
    td_eval_output (e, td_get_item_arrays (e->in[0], &e->in[1], e->n_in - 1, 0));
  else if (n < 0 || !td_eval_attr (e, "slices")->given)
    td_eval_wrong (e, "slices", "slices such as 1:4:2,:,-1 expected");
  else
    td_eval_output (e, td_get_item (e->in[0], slices, n));
}

static void
call_scatter_add (TdEval *e)
{
  TdSlice slices[2 * TD_MAX_DIMS];
  int n
      = parse_slices (td_eval_text (e, "slices"), td_ndim (e->in[0]), slices, 2 * TD_MAX_DIMS);

  if (n < 0)
    td_eval_wrong (e, "slices", "slices such as 1:4:2,:,-1 expected");
  else
    td_eval_output (e, td_scatter_add (e->in[0], slices, n, e->in[1]));
}

/* --- more arrays from one, and one from more --- */

static void
call_broadcast (TdEval *e)
{
  e->n_out = e->n_in;
  td_broadcast (e->in, e->n_in, e->out);
}

static void
call_hstack (TdEval *e)
{
  td_eval_output (e, td_hstack (e->in, e->n_in));
}

static void
call_vstack (TdEval *e)
{
  td_eval_output (e, td_vstack (e->in, e->n_in));
}

static void
call_separate (TdEval *e)
{
  int axis = (int)td_eval_int (e, "axis"), ndim = td_ndim (e->in[0]);
  int place = axis < 0 ? axis + ndim : axis;

  if (place < 0 || place >= ndim)
    return td_eval_wrong (e, "axis", "it is out of range");
  if (td_shape (e->in[0]).dim[place] > TD_EVAL_MAX_ARRAYS)
    return td_eval_wrong (e, "axis", "at most 128 pieces can be written");
  e->n_out = (int)td_shape (e->in[0]).dim[place];
  td_separate (e->in[0], axis, e->out);
}

static void
call_pad_sequence (TdEval *e)
{
  int length = -1;

  td_eval_tuple (e, "length", &length, 1);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_pad_sequence (e->in, e->n_in, length, td_eval_float (e, "padding")));
}

/* --- other orders and repetitions --- */

static void
call_swapaxes (TdEval *e)
{
  td_eval_output (
      e, td_swapaxes (e->in[0], (int)td_eval_int (e, "axis1"), (int)td_eval_int (e, "axis2")));
}

/* Several axes at once are one transposition: NumPy puts them in where they are to be, the
 * first place first. */
static void
call_moveaxis (TdEval *e)
{
  int from[TD_MAX_DIMS], to[TD_MAX_DIMS], order[TD_MAX_DIMS], ndim = td_ndim (e->in[0]);
  int n = td_eval_ints (e, "source", from, TD_MAX_DIMS), m, at = 0;

  m = td_eval_ints (e, "destination", to, TD_MAX_DIMS);
  if (n != m || n < 1)
    return td_eval_wrong (e, "destination", "as many axes as in source expected");
  if (n == 1)
    return td_eval_output (e, td_moveaxis (e->in[0], from[0], to[0]));
  for (int d = 0; d < ndim; d++)
    order[d] = -1;
  for (int i = 0; i < n; i++)
    {
      from[i] += from[i] < 0 ? ndim : 0;
      to[i] += to[i] < 0 ? ndim : 0;
      if (from[i] < 0 || from[i] >= ndim || to[i] < 0 || to[i] >= ndim || order[to[i]] >= 0)
        return td_eval_wrong (e, "destination", "different axes of x expected");
      order[to[i]] = from[i];
    }
  for (int d = 0; d < ndim; d++)
    {
      bool moved = false;

      for (int i = 0; i < n; i++)
        moved = moved || from[i] == d;
      while (at < ndim && order[at] >= 0)
        at++;
      if (!moved && at < ndim)
        order[at] = d;
    }
  td_eval_output (e, td_transpose (e->in[0], order));
}

static void
call_flip (TdEval *e)
{
  td_eval_output (e, td_flip (e->in[0], (int)td_eval_int (e, "axis")));
}

static void
call_repeat (TdEval *e)
{
  int repeats[TD_EVAL_MAX_NUMBERS], axis = TD_NO_AXIS;
  int n = td_eval_ints (e, "repeats", repeats, TD_EVAL_MAX_NUMBERS);

  td_eval_tuple (e, "axis", &axis, 1);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_repeat (e->in[0], repeats, n, axis));
}

static void
call_tile (TdEval *e)
{
  int reps[TD_MAX_DIMS], n = td_eval_ints (e, "reps", reps, TD_MAX_DIMS);

  if (e->wrong[0] == '\0')
    td_eval_output (e, td_tile (e->in[0], reps, n));
}

/* One number for all sides, two for the sides of each axis, or two for each axis. */
static void
call_pad (TdEval *e)
{
  static const char *const modes[] = { "constant", "edge", "reflect" };
  int width[2 * TD_MAX_DIMS], got[2 * TD_MAX_DIMS], ndim = td_ndim (e->in[0]);
  int n = td_eval_ints (e, "pad_width", got, 2 * TD_MAX_DIMS);
  TdPadMode mode = (TdPadMode)td_eval_choice (e, "mode", modes, 3);

  if (n != 1 && n != 2 && n != 2 * ndim)
    return td_eval_wrong (e, "pad_width", "1, 2 or 2 numbers for each axis expected");
  for (int i = 0; i < 2 * ndim; i++)
    width[i] = got[n == 1 ? 0 : n == 2 ? i % 2 : i];
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_pad (e->in[0], width, mode, td_eval_float (e, "constant_values")));
}

static void
call_im2col (TdEval *e)
{
  TdIm2colOpt o = { .cover_all = td_eval_bool (e, "cover_all") };

  td_eval_tuple (e, "ksize", o.ksize, 2);
  td_eval_tuple (e, "stride", o.stride, 2);
  td_eval_tuple (e, "pad", o.pad, 2);
  td_eval_tuple (e, "dilate", o.dilate, 2);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_im2col_ (e->in[0], &o));
}

static void
call_one_hot (TdEval *e)
{
  int n;

  td_eval_tuple (e, "n", &n, 1);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_one_hot (e->in[0], n, td_eval_dtype (e, "dtype")));
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
  ROW (get_item, "x [indices...]", "slices:text=:", "x[slices], or x[indices]"),
  ROW (reshape, "x", "shape:ints", "the same elements in another shape"),
  BINARY (select_item, "x t", "x[i, t[i]]"),
  ROW (split_axis, "x", "indices_or_sections:ints axis:int", "pieces of x along axis"),
  ROW (squeeze, "x", "axis:ints=None", "x without its axes of size 1"),
  ROW (stack, "xs...", "axis:int=0", "xs joined along a new axis"),
  ROW (sum_to, "x", "shape:ints", "x summed to shape, the opposite of broadcast_to"),
  ROW (transpose, "x", "axes:ints=None", "x with its axes in another order"),
  ROW (where, "condition x y", NULL, "x where condition, else y"),
  ROW (broadcast, "xs...", NULL, "xs repeated to the shape that they have in common"),
  ROW (separate, "x", "axis:int=0", "x cut into pieces without axis"),
  ROW (hstack, "xs...", NULL, "xs joined along axis 1, vectors along axis 0"),
  ROW (vstack, "xs...", NULL, "xs joined along axis 0, vectors as rows"),
  ROW (swapaxes, "x", "axis1:int axis2:int", "x with two axes exchanged"),
  ROW (moveaxis, "x", "source:ints destination:ints", "x with axes in other places"),
  ROW (flip, "x", "axis:int", "x with axis reversed"),
  ROW (repeat, "x", "repeats:ints axis:int=None", "each element of axis several times"),
  ROW (tile, "x", "reps:ints", "x several times behind itself"),
  ROW (pad, "x", "pad_width:ints mode:text constant_values:float=0", "x with numbers around it; mode constant, edge or reflect"),
  ROW (pad_sequence, "xs...", "length:int=None padding:float=0", "xs below each other, filled up to one length"),
  ROW (scatter_add, "a b", "slices:text", "a, a[slices] += b"),
  ROW (im2col, "x", "ksize:ints stride:ints=1 pad:ints=0 cover_all:bool=false dilate:ints=1", "windows of x as columns"),
  ROW (one_hot, "t", "n:int dtype:dtype=float32", "1 at each index, else 0"),
  { .name = NULL },
};
