/* Loops of a C program: element by element, reductions, copies, with sizes as numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "c-out.h"

#include "compute/core/operands.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define P TD_C_PRINT

const char *
td__c_type (TdDtype dtype)
{
  static const char *const types[] = {
    [TD_F32] = "float",   [TD_F64] = "double",  [TD_F16] = "uint16_t", [TD_BF16] = "uint16_t",
    [TD_I32] = "int32_t", [TD_I64] = "int64_t", [TD_U8] = "uint8_t",   [TD_BOOL] = "uint8_t"
  };

  return types[dtype];
}

const char *
td__c_half (TdDtype dtype)
{
  return dtype == TD_F16 ? "f16" : "bf16";
}

const char *
td__c_v (TdCOut *o, uint32_t node)
{
  char *name = o->names[o->n_names++ % 8];
  const bool wide = o->in_floats && td__c_is_half ((TdDtype)o->s->nodes[node].dtype);

  snprintf (name, sizeof *o->names, "%c%u", wide ? 'w' : 'v', td__c_value (o, node));
  return name;
}

void
td__c_begin_store (TdCOut *o, TdDtype dtype)
{
  if (td__c_is_half (dtype))
    P (o, "%s_of_float ((float)(", td__c_half (dtype));
  else
    P (o, "(%s)(", td__c_type (dtype));
}

void
td__c_end_store (TdCOut *o, TdDtype dtype)
{
  P (o, td__c_is_half (dtype) ? "))" : ")");
}

void
td__c_begin_load (TdCOut *o, TdDtype dtype)
{
  if (td__c_is_half (dtype))
    P (o, "float_of_%s (", td__c_half (dtype));
}

void
td__c_end_load (TdCOut *o, TdDtype dtype)
{
  if (td__c_is_half (dtype))
    P (o, ")");
}

void
td__c_each (TdCOut *o, long long n)
{
  P (o, "  for (long i0 = 0; i0 < %lld; i0++)\n    ", n);
}

void
td__c_number (TdCOut *o, double number, TdDtype dtype)
{
  if (td__c_is_half (dtype))
    {
      P (o, "%s_of_float (", td__c_half (dtype));
      td__c_number (o, number, TD_F32);
      P (o, ")");
    }
  else if (dtype != TD_F32 && dtype != TD_F64)
    P (o, "%lld", (long long)number);
  else if (isinf (number))
    P (o, "%sINFINITY", number < 0 ? "-" : "");
  else if (isnan (number))
    P (o, "NAN");
  else if (dtype == TD_F64)
    P (o, number < 0 ? "(%a)" : "%a", number);
  else
    P (o, number < 0 ? "(%af)" : "%af", (double)(float)number);
}

/* The attribute whose name begins there; returns what comes behind. */
static const char *
print_attribute (TdCOut *o, const TdStep *step, const char *name, TdDtype dtype)
{
  char word[32];
  size_t k = 0;

  while (k + 1 < sizeof word && (isalnum ((unsigned char)name[k]) || name[k] == '_'))
    {
      word[k] = name[k];
      k++;
    }
  word[k] = '\0';
  td__c_number (o, td__export_number (step, word, 0), dtype);
  return name + k;
}

void
td__c_text (TdCOut *o, const TdStep *step, const char *text, size_t n_text, TdDtype dtype,
            long long n)
{
  const char *const end = text + n_text;

  for (const char *t = text; t < end;)
    {
      const char c = *t++;

      if (c == '~')
        P (o, "%s", dtype == TD_F32 ? "f" : "");
      else if (c == '#')
        P (o, "%lld", n);
      else if (c == '$' && o->half != TD_F32)
        P (o, "round_%s ", td__c_half (o->half));
      else if (c == '@')
        t = print_attribute (o, step, t, dtype);
      else if (c != '$')
        P (o, "%c", c);
    }
}

TdCWalk
td__c_walk (const TdCOut *o, uint32_t node)
{
  TdCWalk w = { .node = node };
  int64_t stride[TD_MAX_DIMS];

  td__row_major (td__c_shape (o, node), stride);
  memcpy (w.stride, stride, sizeof stride);
  return w;
}

TdCWalk
td__c_walk_under (const TdCOut *o, uint32_t node, const TdShape *y)
{
  const TdShape *x = td__c_shape (o, node);
  TdCWalk w = { .node = node };
  int64_t stride[TD_MAX_DIMS];

  td__row_major (x, stride);
  for (int d = 0; d < x->ndim; d++)
    w.stride[y->ndim - x->ndim + d] = x->dim[d] == 1 ? 0 : stride[d];
  return w;
}

/* Make neighbouring loops one where every walk goes through them as through one, and leave out
 * those of one turn; those before `fixed` and the others stay apart.  Returns where fixed is.
 */
static int
join_loops (TdCLoops *l, TdCWalk *const *walks, int n_walks, int fixed)
{
  TdCLoops joined = { 0 };
  int kept = -1;

  for (int d = 0; d < l->ndim; d++)
    {
      bool one;

      if (d == fixed)
        kept = joined.ndim;
      if (l->dim[d] == 1)
        continue;
      one = joined.ndim > (kept < 0 ? 0 : kept);
      for (int k = 0; k < n_walks && one; k++)
        one = walks[k]->stride[joined.ndim - 1] == walks[k]->stride[d] * l->dim[d];
      if (!one)
        joined.dim[joined.ndim++] = 1;
      joined.dim[joined.ndim - 1] *= l->dim[d];
      for (int k = 0; k < n_walks; k++)
        walks[k]->stride[joined.ndim - 1] = walks[k]->stride[d];
    }
  *l = joined;
  return kept < 0 ? joined.ndim : kept;
}

static void
indent (TdCOut *o, int depth)
{
  P (o, "%*s", 2 + 2 * depth, "");
}

static void
open_loops (TdCOut *o, const TdCLoops *l, int from, int to, int depth)
{
  for (int d = from; d < to; d++, depth++)
    {
      indent (o, depth);
      P (o, "for (long i%d = 0; i%d < %lld; i%d++)\n", d, d, (long long)l->dim[d], d);
    }
}

/* "v3[12 * i0 + i1]". */
static void
print_place (TdCOut *o, const TdCWalk *w, int ndim)
{
  bool any = false;

  P (o, "%s[", td__c_v (o, w->node));
  for (int d = 0; d < ndim; d++)
    if (w->stride[d] != 0)
      {
        P (o, any ? " + " : "");
        if (w->stride[d] == 1)
          P (o, "i%d", d);
        else
          P (o, "%lld * i%d", (long long)w->stride[d], d);
        any = true;
      }
  if (w->offset != 0 || !any)
    P (o, "%s%lld", any ? " + " : "", (long long)w->offset);
  P (o, "]");
}

/* "const float a = v1[i0];" for each input. */
static void
print_operands (TdCOut *o, TdCWalk *const *walks, int n, int ndim, int depth)
{
  for (int k = 0; k < n; k++)
    {
      const TdDtype dtype = td__c_dtype (o, walks[k]->node);

      indent (o, depth);
      P (o, "const %s %c = ", td__c_is_half (dtype) ? "float" : td__c_type (dtype), 'a' + k);
      td__c_begin_load (o, dtype);
      print_place (o, walks[k], ndim);
      td__c_end_load (o, dtype);
      P (o, ";\n");
    }
}

void
td__c_copy (TdCOut *o, const TdCLoops *loops, TdCWalk to, TdCWalk from, const char *combine)
{
  TdCLoops l = *loops;
  TdCWalk *const walks[] = { &to, &from };

  join_loops (&l, walks, 2, 0);
  open_loops (o, &l, 0, l.ndim, 0);
  indent (o, l.ndim);
  print_place (o, &to, l.ndim);
  P (o, " %s ", combine);
  print_place (o, &from, l.ndim);
  P (o, ";\n");
}

void
td__c_fill (TdCOut *o, uint32_t node, double number)
{
  td__c_each (o, td__c_count (o, node));
  P (o, "%s[i0] = ", td__c_v (o, node));
  td__c_number (o, number, td__c_dtype (o, node));
  P (o, ";\n");
}

/* --- element by element --- */

enum
{
  MOST_IN = 4
};

/* y = text, of inputs a, b, c that have been placed under it. */
static void
print_map (TdCOut *o, const TdStep *step, TdCWalk *in, int n_in, const char *text)
{
  const uint32_t out = td__c_out (o, step, 0);
  const TdDtype dtype = td__c_dtype (o, out);
  const TdShape *y = td__c_shape (o, out);
  TdCWalk to = td__c_walk (o, out), *walks[MOST_IN + 1];
  TdCLoops l = { .ndim = y->ndim };

  memcpy (l.dim, y->dim, sizeof y->dim);
  for (int k = 0; k < n_in; k++)
    walks[k] = &in[k];
  walks[n_in] = &to;
  join_loops (&l, walks, n_in + 1, 0);
  open_loops (o, &l, 0, l.ndim, 0);
  indent (o, l.ndim);
  P (o, "{\n");
  print_operands (o, walks, n_in, l.ndim, l.ndim + 1);
  P (o, "\n");
  indent (o, l.ndim + 1);
  print_place (o, &to, l.ndim);
  P (o, " = ");
  td__c_begin_store (o, dtype);
  td__c_text (o, step, text, strlen (text), td__c_is_half (dtype) ? TD_F32 : dtype, 0);
  td__c_end_store (o, dtype);
  P (o, ";\n");
  indent (o, l.ndim);
  P (o, "}\n");
}

static const char *
map (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *y = td__c_shape (o, td__c_out (o, step, 0));
  TdCWalk in[MOST_IN];

  for (uint32_t k = 0; k < step->n_in; k++)
    in[k] = td__c_walk_under (o, td__c_in (o, step, k), y);
  print_map (o, step, in, (int)step->n_in, text);
  return NULL;
}

/* A parameter for each channel, or more axes from 1 on. */
static const char *
map_by_channel (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *p = td__c_shape (o, td__c_in (o, step, 1));
  TdCWalk in[2] = { td__c_walk (o, td__c_in (o, step, 0)), { .node = td__c_in (o, step, 1) } };
  int64_t stride[TD_MAX_DIMS];

  td__row_major (p, stride);
  for (int d = 0; d < p->ndim; d++)
    in[1].stride[1 + d] = stride[d];
  print_map (o, step, in, 2, text);
  return NULL;
}

/* "NaN || comparison": whole numbers have no NaN, which compilers know. */
static const char *
extreme (TdCOut *o, const TdStep *step, const char *text)
{
  const TdDtype dtype = td__c_dtype (o, td__c_out (o, step, 0));
  const bool whole = dtype != TD_F32 && dtype != TD_F64 && !td__c_is_half (dtype);

  return map (o, step, whole ? strstr (text, "|| ") + strlen ("|| ") : text);
}

/* Numbers to bool are whether they are 0 or not; what C leaves open of floats to whole numbers
 * is decided as in the engine. */
static const char *
cast (TdCOut *o, const TdStep *step, const char *text)
{
  const TdDtype from = td__c_dtype (o, td__c_in (o, step, 0)),
                to = td__c_dtype (o, td__c_out (o, step, 0));
  const bool has_fraction = from == TD_F32 || from == TD_F64 || td__c_is_half (from);

  if (to == TD_BOOL)
    return map (o, step, "a != 0");
  if (has_fraction && to == TD_I32)
    return map (o, step, "i32_of (a)");
  return map (o, step, has_fraction && (to == TD_I64 || to == TD_U8) ? "i64_of (a)" : text);
}

/* "exactly|by tanh". */
static const char *
by_approximate (TdCOut *o, const TdStep *step, const char *text)
{
  const char *bar = strchr (text, '|');
  char half[300];

  if (td__export_number (step, "approximate", 0) != 0)
    return map (o, step, bar + 1);
  snprintf (half, sizeof half, "%.*s", (int)(bar - text), text);
  return map (o, step, half);
}

/* The sigmoid's argument where gelu goes by tanh, and e to minus its size. */
#define GELU_POWER "1.5957691216057308~ * a * (1 + 0.044715~ * a * a)"
#define GELU_BELL "exp~ (-fabs~ (" GELU_POWER "))"

/* a, b, c are the inputs.  The formulas, and what they make of NaN, are those of
 * compute/scalar-ops.h. */
const TdCRow td__c_maps[] = {
  { "add", map, "a + b" },
  { "sub", map, "a - b" },
  { "mul", map, "a * b" },
  { "div", map, "a / b" },
  { "pow", map, "pow~ (a, b)" },
  { "maximum", extreme, "a != a || a > b ? a : b" },
  { "minimum", extreme, "a != a || a < b ? a : b" },
  { "neg", map, "-a" },
  { "add_scalar", map, "a + @value" },
  { "mul_scalar", map, "a * @value" },
  { "div_scalar", map, "a / @value" },
  { "pow_scalar", map, "pow~ (a, @value)" },
  { "rsub_scalar", map, "@value - a" },
  { "rdiv_scalar", map, "@value / a" },
  { "rpow_scalar", map, "pow~ (@value, a)" },
  { "relu", map, "a <= 0 ? 0 : a" },
  { "relu_grad", map, "a > 0 ? b : a != a ? a : 0" },
  { "sigmoid", map, "1 / (1 + exp~ (-a))" },
  { "sigmoid_grad", map, "b * a * (1 - a)" },
  { "tanh", map, "tanh~ (a)" },
  { "tanh_grad", map, "b * (1 - a * a)" },
  { "leaky_relu", map, "a < 0 ? a * @slope : a" },
  { "leaky_relu_grad", map, "a < 0 ? b * @slope : a != a ? a : b" },
  { "elu", map, "a > 0 ? a : @alpha * expm1~ (a)" },
  { "elu_grad", map, "a > 0 ? b : b * @alpha * exp~ (a)" },
  { "softplus", map, "(fmax~ (a * @beta, 0) + log1p~ (exp~ (-fabs~ (a * @beta)))) / @beta" },
  { "softplus_grad", map, "b / (1 + exp~ (-(a * @beta)))" },
  { "clipped_relu", map, "a < 0 ? 0 : a > @z ? @z : a" },
  { "clipped_relu_grad", map, "a != a ? a : a > 0 && a < @z ? b : 0" },
  { "hard_sigmoid", map, "a != a ? a : a <= -2.5~ ? 0 : a >= 2.5~ ? 1 : a * 0.2~ + 0.5~" },
  { "hard_sigmoid_grad", map, "a != a ? a : a > -2.5~ && a < 2.5~ ? b * 0.2~ : 0" },
  { "silu", map, "a / (1 + exp~ (-a))" },
  { "silu_grad", map, "b / (1 + exp~ (-a)) * (1 + a / (1 + exp~ (a)))" },
  { "gelu", by_approximate,
    "0.5~ * a * erfc~ (-0.70710678118654752~ * a)|a / (1 + exp~ (-" GELU_POWER "))" },
  { "gelu_grad", by_approximate,
    "b * (0.5~ * erfc~ (-0.70710678118654752~ * a)"
    " + 0.39894228040143268~ * a * exp~ (-0.5~ * a * a))|"
    "b * (1 / (1 + exp~ (-" GELU_POWER ")) + " GELU_BELL " / (1 + " GELU_BELL
    ") / (1 + " GELU_BELL ") * a * 1.5957691216057308~ * (1 + 0.134145~ * a * a))" },
  { "swish", map_by_channel, "a * $(1 / (1 + exp~ (-$(a * b))))" },
  { "prelu", map_by_channel, "(a <= 0 ? 0 : a) + $((a > 0 ? 0 : a) * b)" },
  { "exp", map, "exp~ (a)" },
  { "log", map, "log~ (a)" },
  { "sqrt", map, "sqrt~ (a)" },
  { "absolute", map, "a < 0 ? -a : a" },
  { "square", map, "a * a" },
  { "sin", map, "sin~ (a)" },
  { "cos", map, "cos~ (a)" },
  { "erf", map, "erf~ (a)" },
  { "erf_grad", map, "b * 1.1283791670955126~ * exp~ (-(a * a))" },
  { "log1p", map, "log1p~ (a)" },
  { "log1p_grad", map, "b / (1 + a)" },
  { "expm1", map, "expm1~ (a)" },
  { "expm1_grad", map, "b * exp~ (a)" },
  { "rsqrt", map, "1 / sqrt~ (a)" },
  { "rsqrt_grad", map, "b * -0.5~ / (a * sqrt~ (a))" },
  { "identity", map, "a" },
  { "copy", map, "a" },
  { "to_layout", map, "a" }, /* what is written is row-major throughout */
  { "broadcast_to", map, "a" },
  { "cast", cast, "a" },
  { "linear_interpolate", map, "$(a * b) + $($(1 - a) * c)" },
  { "sign", map, "a > 0 ? 1 : a < 0 ? -1 : a" },
  { "clip", map, "a < @x_min ? @x_min : a > @x_max ? @x_max : a" },
  { "clip_inside", map, "a < @x_min || a > @x_max ? 0 : 1" },
  { "where", map, "a != 0 ? b : c" },
  { "equal", map, "a == b" },
  { "greater_equal", map, "a >= b" },
  { "greater", map, "a > b" },
  { "less_equal", map, "a <= b" },
  { "less", map, "a < b" },
  { "absolute_error", map, "fabs~ ($(a - b))" },
  { "squared_error", map, "$(a - b) * $(a - b)" },
  { "squared_difference", map, "$(a - b) * $(a - b)" },
  { "gaussian", map, "a + $($(exp~ ($(0.5~ * b))) * c)" },
  { 0 },
};

/* --- reductions --- */

uint32_t
td__c_reduced (const TdStep *step, int ndim)
{
  const uint32_t all = (1u << ndim) - 1;
  int64_t axes[TD_MAX_DIMS];
  uint32_t mask = 0;
  int n;

  if (!td__export_has (step, "axis"))
    return all;
  n = td__export_ints (step, "axis", axes, TD_MAX_DIMS);
  if (n < 0)
    return all;
  for (int i = 0; i < n; i++)
    mask |= 1u << (axes[i] < 0 ? axes[i] + ndim : axes[i]);
  return mask;
}

/* The next bar that stands alone, or the end; "||" is of C. */
static const char *
bar_in (const char *text)
{
  while (*text != '\0' && !(text[0] == '|' && text[1] != '|'))
    text += text[0] == '|' ? 2 : 1;
  return text;
}

/* The part of "start|step|end" with that number. */
static const char *
part (const char *text, int number, size_t *n)
{
  for (; number > 0; number--)
    text = bar_in (text) + 1;
  *n = (size_t)(bar_in (text) - text);
  return text;
}

/* y for all places that are kept, each of all that are not: s, and what the text has besides:
 * `top`, the largest so far, and `at`, the number of the element. */
static void
print_reduction (TdCOut *o, const TdStep *step, uint32_t mask, const char *type,
                 const char *text)
{
  const uint32_t out = td__c_out (o, step, 0);
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));
  const int n_in = (int)step->n_in;
  TdCWalk in[MOST_IN], to = { .node = out }, *walks[MOST_IN + 1];
  TdCLoops l = { 0 };
  long long n = 1;
  int64_t stride = 1;
  size_t length;
  int kept = 0, order[TD_MAX_DIMS];

  for (int d = 0; d < x->ndim; d++)
    if (!(mask >> d & 1))
      order[kept++] = d;
  for (int d = 0, k = kept; d < x->ndim; d++)
    if (mask >> d & 1)
      {
        order[k++] = d;
        n *= x->dim[d];
      }
  l.ndim = x->ndim;
  for (int k = 0; k < n_in; k++)
    {
      const TdCWalk whole = td__c_walk_under (o, td__c_in (o, step, (uint32_t)k), x);

      in[k] = whole;
      for (int d = 0; d < x->ndim; d++)
        in[k].stride[d] = whole.stride[order[d]];
      walks[k] = &in[k];
    }
  walks[n_in] = &to;
  for (int d = x->ndim - 1; d >= 0; d--)
    {
      l.dim[d] = x->dim[order[d]];
      if (d < kept)
        {
          to.stride[d] = stride;
          stride *= l.dim[d];
        }
    }
  kept = join_loops (&l, walks, n_in + 1, kept);
  open_loops (o, &l, 0, kept, 0);
  indent (o, kept);
  P (o, "{\n");
  indent (o, kept + 1);
  P (o, "%s s = ", type);
  text = part (text, 0, &length);
  td__c_text (o, step, text, length, TD_F64, n);
  P (o, "%s;\n", strstr (text, "top") != NULL ? ", top = -INFINITY" : "");
  if (strstr (text, "at++") != NULL)
    {
      indent (o, kept + 1);
      P (o, "long at = 0;\n");
    }
  P (o, "\n");
  open_loops (o, &l, kept, l.ndim, kept + 1);
  indent (o, l.ndim + 1);
  P (o, "{\n");
  print_operands (o, walks, n_in, l.ndim, l.ndim + 2);
  P (o, "\n");
  indent (o, l.ndim + 2);
  text = part (text, 1, &length);
  td__c_text (o, step, text, length, TD_F64, n);
  P (o, ";\n");
  indent (o, l.ndim + 1);
  P (o, "}\n");
  indent (o, kept + 1);
  print_place (o, &to, kept);
  P (o, " = ");
  td__c_begin_store (o, td__c_dtype (o, out));
  text = part (text, 1, &length);
  td__c_text (o, step, text, length, TD_F64, n);
  td__c_end_store (o, td__c_dtype (o, out));
  P (o, ";\n");
  indent (o, kept);
  P (o, "}\n");
}

/* How whole numbers are reduced: modulo 2^64, and without NaN. */
static const TdCRow whole_reductions[] = {
  { "sum", NULL, "0|s += (uint64_t)a|s" },
  { "sum_to", NULL, "0|s += (uint64_t)a|s" },
  { "prod", NULL, "1|s *= (uint64_t)a|s" },
  { "max", NULL, "INT64_MIN|s = s > a ? s : a|s" },
  { "min", NULL, "INT64_MAX|s = s < a ? s : a|s" },
};

static void
reduce_over (TdCOut *o, const TdStep *step, uint32_t mask, const char *text)
{
  const TdDtype dtype = td__c_dtype (o, td__c_in (o, step, 0));
  const char *type = "double";

  for (size_t i = 0; i < sizeof whole_reductions / sizeof *whole_reductions
                     && (dtype == TD_I32 || dtype == TD_I64);
       i++)
    if (strcmp (whole_reductions[i].op, step->cls->name) == 0)
      {
        text = whole_reductions[i].text;
        type = text[0] == 'I' ? "int64_t" : "uint64_t";
      }
  print_reduction (o, step, mask, type, text);
}

static const char *
reduce (TdCOut *o, const TdStep *step, const char *text)
{
  reduce_over (o, step, td__c_reduced (step, td__c_shape (o, td__c_in (o, step, 0))->ndim),
               text);
  return NULL;
}

/* Over the axes along which the result is shorter. */
static const char *
reduce_to (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0)),
                *y = td__c_shape (o, td__c_out (o, step, 0));
  const int more = x->ndim - y->ndim;
  uint32_t mask = 0;

  for (int d = 0; d < x->ndim; d++)
    mask |= d < more || y->dim[d - more] != x->dim[d] ? 1u << d : 0;
  reduce_over (o, step, mask, text);
  return NULL;
}

/* "each|sum over axis 1", by what the loss is reduced to. */
static const char *
huber (TdCOut *o, const TdStep *step, const char *text)
{
  if (td__export_number (step, "reduce", 0) != 0)
    return map (o, step, text);
  reduce_over (o, step, 2,
               "0|{ const double e = $(a - b), c = fmax (-@delta, fmin (@delta, e)); s += "
               "$($(2 * e - c) * c); }|0.5 * $(s)");
  return NULL;
}

/* The first of equal ones; NaN comes before all numbers. */
#define LARGEST(COMPARE)                                                                       \
  "0|if (at == 0 || (!isnan (top) && (isnan ((double)a) || a " COMPARE                         \
  " top))) { top = a; s = (double)at; } "                                                      \
  "at++|s"

#define HUBER_CLIPPED "fmax~ (-@delta, fmin~ (@delta, $(a - b)))"

const TdCRow td__c_reductions[] = {
  { "sum", reduce, "0|s += a|s" },
  { "mean", reduce, "0|s += a|s / #" },
  { "max", reduce, "-INFINITY|s = s != s || s > a ? s : a|s" },
  { "min", reduce, "INFINITY|s = s != s || s < a ? s : a|s" },
  { "prod", reduce, "1|s *= a|s" },
  { "logsumexp", reduce,
    "0|if (a > top) { s = s * exp (top - a) + 1; top = a; } else if (a > -INFINITY) s += a < "
    "top "
    "? exp (a - top) : 1; else if (a != a) s = a|top + log (s)" },
  { "argmax", reduce, LARGEST (">") },
  { "argmin", reduce, LARGEST ("<") },
  { "sqrt_sum_square", reduce, "0|s += (double)a * a|sqrt ($(s))" },
  { "sum_to", reduce_to, "0|s += a|s" },
  { "mean_squared_error", reduce, "0|{ const double e = $(a - b); s += e * e; }|$(s) / #" },
  { "mean_absolute_error", reduce, "0|s += fabs ((double)$(a - b))|s / #" },
  { "huber_loss", huber, "0.5~ * $($(2 * $(a - b) - " HUBER_CLIPPED ") * " HUBER_CLIPPED ")" },
  { 0 },
};
