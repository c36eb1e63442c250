/* Operations that are several of ONNX's: each is a line of text, which is read when it is
 * written.
 *
 * A line is what the result is: Mul (a, Sigmoid (a)) is Mul(a,Sigmoid(a)). The inputs are a, b
 * ... f; "u=...;" gives a name to what is used again; "|" comes before a second result. Numbers
 * have the type of a. Besides there are
 *   @name    an attribute as a number of that type, :@name as a whole number, %name as a list
 *   :3       a whole number; [0,2] a list of them, in which @name stands for an attribute, and
 *            end and -end for behind the last one, and before the first
 *   $0 ^0    the shape of a result, of an input
 *   ~1       the shape of input 1 with axes of 1 around it, where it belongs to axis 1 of a
 *   #0 :#0   the size of axis 0 of a
 *   !name    what a function below makes
 * Behind the operands of a call, after ";", are attributes: lists, whole numbers, words, and
 * numbers with a point. Of these axes=A stands for the axes of attribute axis, C for all but 1,
 * S for those that the result has not; to=T for the result's type, R for that of a second
 * result, F for that of a, I for i64, B for bool.
 *
 * Results behind the last that is read are left out. Recipes of most gradients are in
 * onnx-gradient-formulas.c.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-fields.h"
#include "onnx-recipes.h"
#include "onnx.h"
#include "host-memory.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  TEXT = TD_ONNX_TEXT,
  MOST_NAMES = 16,
  MOST_IN = 6
};

typedef struct
{
  TdOnnx *o;
  const TdStep *step;
  const char *at;
  char name[MOST_NAMES], value[MOST_NAMES][TEXT];
  int n_names;
} Recipe;

static const TdNodeInfo *
input (const Recipe *r, uint32_t i)
{
  return &r->o->s->nodes[td__step_in (r->o->s, r->step, i)];
}

static const TdNodeInfo *
output (const Recipe *r, uint32_t i)
{
  return &r->o->s->nodes[td__step_out (r->o->s, r->step, i)];
}

static const TdOnnxSize *
sizes (const Recipe *r, uint32_t i)
{
  return r->o->sizes.of[td__step_in (r->o->s, r->step, i)];
}

/* A size of an input as a number that goes into the file. */
static int64_t
number_of (const Recipe *r, uint32_t i, int axis)
{
  return td__onnx_fixed (r->o, r->step, td__step_in (r->o->s, r->step, i), axis);
}

/* An attribute by the name that comes next. */
static double
attribute (Recipe *r)
{
  char name[32];
  size_t n = 0;

  while (n + 1 < sizeof name && (isalnum ((unsigned char)*r->at) || *r->at == '_'))
    name[n++] = *r->at++;
  name[n] = '\0';
  return td__export_number (r->step, name, 0);
}

static double
number (Recipe *r)
{
  char *end;
  double v;

  if (*r->at == '@')
    {
      r->at++;
      return attribute (r);
    }
  v = strtod (r->at, &end);
  r->at = end;
  return v;
}

/* "[0,@groups,-1]". */
static int
list (Recipe *r, int64_t *to)
{
  int n = 0;

  for (r->at++; *r->at != ']'; r->at += *r->at == ',')
    if (*r->at == '-' && strncmp (r->at, "-end", 4) == 0)
      {
        to[n++] = -INT64_MAX;
        r->at += 4;
      }
    else if (strncmp (r->at, "end", 3) == 0)
      {
        to[n++] = INT64_MAX;
        r->at += 3;
      }
    else
      to[n++] = (int64_t)number (r);
  r->at++;
  return n;
}

/* Axes by letter; returns how many, -1 for all of them. */
static int
axes_of (const Recipe *r, char letter, int64_t *to)
{
  const TdShape *x = &input (r, 0)->shape, *y = &output (r, 0)->shape;
  const int more = x->ndim - y->ndim;
  int n = 0;

  if (letter == 'A')
    return td__export_ints (r->step, "axis", to, TD_MAX_DIMS);
  for (int d = 0; d < x->ndim; d++)
    if (letter == 'C' ? d != 1 : d < more || y->dim[d - more] != x->dim[d])
      to[n++] = d;
  return n;
}

/* --- what recipes ask for by name --- */

/* 1 where a query sees a key, else 0. */
static void
causal (Recipe *r, char *to)
{
  const int64_t n_q = number_of (r, 0, 1), n_k = number_of (r, 1, 1);
  const TdShape shape = { 2, { n_q, n_k } };
  double *sees = td__xcalloc ((size_t)(n_q * n_k) + 1, sizeof *sees);

  for (int64_t i = 0; i < n_q * n_k; i++)
    sees[i] = i % n_k <= i / n_k + n_k - n_q;
  td__onnx_constant_floats (r->o, (TdDtype)input (r, 0)->dtype, &shape, sees, to, TEXT);
  free (sees);
}

static void
scale (Recipe *r, char *to)
{
  const double given = td__export_number (r->step, "scale", 0);

  td__onnx_constant_number (r->o, given != 0 ? given : 1 / sqrt ((double)number_of (r, 0, 2)),
                            (TdDtype)input (r, 0)->dtype, to, TEXT);
}

/* Of a score that is not seen: finite, so that a row of them is no NaN. */
static void
hidden (Recipe *r, char *to)
{
  const TdDtype dtype = (TdDtype)input (r, 0)->dtype;

  td__onnx_constant_number (r->o, dtype == TD_F16 ? -65504 : -1e30, dtype, to, TEXT);
}

/* How a mask spreads over the batches that share it; the shape of all scores. */
static void
every (Recipe *r, char *to)
{
  const TdOnnxSize *x = &sizes (r, 0)[0], *mask = &sizes (r, r->step->n_in - 1)[0];
  const int64_t n = mask->v[0] > 0 ? x->v[0] / mask->v[0] : 1;
  const int64_t spread[] = { 1, n, 1, 1 };

  if (mask->v[1] * n != x->v[1] || mask->v[2] * n != x->v[2])
    td__onnx_sizes_fix (&r->o->sizes, x->mask | mask->mask, r->step,
                        "shares a mask among as many batches as there were");
  td__onnx_constant_ints (r->o, spread, 4, to, TEXT);
}

static void
scores (Recipe *r, char *to)
{
  const TdOnnxSize shape[] = { sizes (r, 0)[0], sizes (r, 0)[1], sizes (r, 1)[1] };

  td__onnx_reshape_list (r->o, NULL, 0, shape, 3, to, TEXT);
}

/* The rows of x: sequences that go on. */
static void
rows (Recipe *r, char *to)
{
  td__onnx_size_list (r->o, sizes (r, 1), 1, to, TEXT);
}

/* Of the first result's shape. */
static void
zeros (Recipe *r, char *to)
{
  td__onnx_zeros (r->o, (TdDtype)output (r, 0)->dtype,
                  r->o->sizes.of[td__step_out (r->o->s, r->step, 0)], output (r, 0)->shape.ndim,
                  to, TEXT);
}

static const struct
{
  const char *name;
  void (*make) (Recipe *r, char *to);
} makers[]
    = { { "rows", rows },     { "zeros", zeros }, { "causal", causal }, { "scale", scale },
        { "hidden", hidden }, { "every", every }, { "scores", scores } };

/* --- reading --- */

static void expression (Recipe *r, const char *result, char *to);

/* Shapes: "$0", "^0", "~1". */
static void
shape (Recipe *r, char *to)
{
  const char kind = r->at[0];
  const uint32_t i = (uint32_t)(r->at[1] - '0');
  const uint32_t node
      = kind == '$' ? td__step_out (r->o->s, r->step, i) : td__step_in (r->o->s, r->step, i);
  const TdOnnxSize *s = r->o->sizes.of[node];
  const int ndim = r->o->s->nodes[node].shape.ndim, ndim_x = input (r, 0)->shape.ndim;
  TdOnnxSize under[TD_MAX_DIMS];

  r->at += 2;
  if (kind != '~')
    {
      td__onnx_reshape_list (r->o, NULL, 0, s, ndim, to, TEXT);
      return;
    }
  for (int d = 0; d < ndim_x; d++)
    under[d] = d >= 1 && d <= ndim ? s[d - 1] : td__onnx_size (1);
  td__onnx_reshape_list (r->o, NULL, 0, under, ndim_x, to, TEXT);
}

/* "#0": of a's type; ":#0": a whole number. */
static void
size_number (Recipe *r, TdDtype dtype, char *to)
{
  const TdOnnxSize *s = &sizes (r, 0)[r->at[1] - '0'];

  r->at += 2;
  td__onnx_size_number (r->o, s, dtype, to, TEXT);
}

static void
constant (Recipe *r, char *to)
{
  int64_t values[2 * TD_MAX_DIMS];
  int n;

  if (strchr ("$^~", *r->at) != NULL)
    shape (r, to);
  else if (*r->at == '[')
    {
      n = list (r, values);
      td__onnx_constant_ints (r->o, values, n, to, TEXT);
    }
  else if (*r->at == '%')
    {
      r->at++;
      values[0] = (int64_t)attribute (r);
      td__onnx_constant_ints (r->o, values, 1, to, TEXT);
    }
  else if (*r->at == '#')
    size_number (r, (TdDtype)input (r, 0)->dtype, to);
  else if (r->at[0] == ':' && r->at[1] == '#')
    {
      r->at++;
      size_number (r, TD_I64, to);
    }
  else if (*r->at == ':')
    {
      r->at++;
      td__onnx_constant_number (r->o, number (r), TD_I64, to, TEXT);
    }
  else
    td__onnx_constant_number (r->o, number (r), (TdDtype)input (r, 0)->dtype, to, TEXT);
}

/* A word, a whole number, or one with a point. */
static void
one_attribute (Recipe *r, TdOnnxNodeWriter *n, const char *key)
{
  const char *from = r->at;
  const size_t length = strcspn (from, ",)");
  char word[32];
  double value;

  if (islower ((unsigned char)*from))
    {
      snprintf (word, sizeof word, "%.*s", (int)length, from);
      td__onnx_text (n, key, word);
      r->at += length;
      return;
    }
  value = number (r);
  if (memchr (from, '.', length) != NULL)
    td__onnx_float (n, key, value);
  else
    td__onnx_int (n, key, (int64_t)value);
}

/* "key=value" behind the operands.  Axes of a reduction may be an operand: then *axes has them.
 */
static void
call_attribute (Recipe *r, TdOnnxNodeWriter *n, bool axes_as_input, int64_t *axes, int *n_axes)
{
  char key[32];
  size_t k = 0;
  int64_t values[2 * TD_MAX_DIMS];
  int count;

  while (*r->at != '=' && k + 1 < sizeof key)
    key[k++] = *r->at++;
  key[k] = '\0';
  r->at++;
  if (strcmp (key, "to") == 0)
    {
      const char letter = *r->at++;

      td__onnx_int (n, key,
                    td__onnx_dtype (letter == 'T'   ? output (r, 0)->dtype
                                    : letter == 'R' ? output (r, 1)->dtype
                                    : letter == 'F' ? input (r, 0)->dtype
                                    : letter == 'I' ? TD_I64
                                                    : TD_BOOL));
      return;
    }
  if (islower ((unsigned char)*r->at))
    {
      char word[32];

      for (k = 0; islower ((unsigned char)*r->at) && k + 1 < sizeof word; r->at++)
        word[k++] = *r->at;
      word[k] = '\0';
      td__onnx_text (n, key, word);
      return;
    }
  if (*r->at != '[' && strchr ("ACS", *r->at) == NULL)
    {
      one_attribute (r, n, key);
      return;
    }
  count = *r->at == '[' ? list (r, values) : axes_of (r, *r->at++, values);
  if (axes_as_input && strcmp (key, "axes") == 0)
    {
      memcpy (axes, values, sizeof *axes * (size_t)(count > 0 ? count : 0));
      *n_axes = count;
    }
  else if (count >= 0)
    td__onnx_ints (n, key, values, count);
}

/* "Type(operands;attributes)". */
static void
call (Recipe *r, const char *type, const char *result, char *to)
{
  const bool axes_as_input = strncmp (type, "Reduce", 6) == 0
                             && (strcmp (type, "ReduceSum") == 0 || r->o->opset >= 18);
  char in[MOST_IN][TEXT], axes_name[TEXT];
  int n_in = 0, n_axes = -1;
  int64_t axes[TD_MAX_DIMS];
  TdOnnxNodeWriter n, attributes;

  for (r->at++; *r->at != ')' && *r->at != ';'; r->at += *r->at == ',')
    expression (r, NULL, in[n_in++]);
  attributes = (TdOnnxNodeWriter){ .o = r->o };
  for (; *r->at != ')';)
    {
      r->at++;
      call_attribute (r, &attributes, axes_as_input, axes, &n_axes);
    }
  r->at++;
  if (n_axes > 0)
    td__onnx_constant_ints (r->o, axes, n_axes, axes_name, sizeof axes_name);
  n = td__onnx_node (r->o, n_axes == 0 ? "Identity" : type, NULL);
  for (int i = 0; i < n_in; i++)
    td__onnx_in (&n, in[i]);
  if (n_axes > 0)
    td__onnx_in (&n, axes_name);
  if (result != NULL)
    snprintf (to, TEXT, "%s", result);
  else
    td__onnx_made (r->o, to, TEXT);
  td__onnx_out (&n, to);
  if (n_axes != 0)
    td__message_append (&n.m, &attributes.m);
  td__message_free (&attributes.m);
  td__onnx_end (&n);
}

/* The value of what comes next goes to `to`; under the name `result` if there is one. */
static void
expression (Recipe *r, const char *result, char *to)
{
  char word[32];
  size_t n = 0;

  if (*r->at == '!')
    {
      r->at++;
      for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        if (strncmp (r->at, makers[i].name, strlen (makers[i].name)) == 0)
          {
            r->at += strlen (makers[i].name);
            makers[i].make (r, to);
            return;
          }
    }
  if (!isalpha ((unsigned char)*r->at))
    {
      constant (r, to);
      return;
    }
  while (n + 1 < sizeof word && isalnum ((unsigned char)*r->at))
    word[n++] = *r->at++;
  word[n] = '\0';
  if (*r->at == '(')
    {
      call (r, word, result, to);
      return;
    }
  for (int i = r->n_names - 1; i >= 0; i--)
    if (r->name[i] == word[0])
      {
        snprintf (to, TEXT, "%s", r->value[i]);
        return;
      }
  snprintf (to, TEXT, "%s",
            td__onnx_value (r->o, td__step_in (r->o->s, r->step, (uint32_t)(word[0] - 'a'))));
}

/* Of an lstm: are there rows of c of sequences that have ended? */
static bool
has_ended (const TdOnnx *o, const TdStep *step)
{
  const TdSchedule *s = o->s;

  return s->nodes[td__step_in (s, step, 0)].shape.dim[0]
         > s->nodes[td__step_in (s, step, 1)].shape.dim[0];
}

/* Does a row's key, "op?attribute?!attribute?attribute=2?*attribute?#3", fit the step?
 * Attributes are not 0, or 0, or that number, or lists that are not empty; after # comes the
 * number of inputs; ended is no attribute. */
static bool
fits (const char *key, const TdOnnx *o, const TdStep *step)
{
  const size_t n = strcspn (key, "?");

  if (strlen (step->cls->name) != n || strncmp (step->cls->name, key, n) != 0)
    return false;
  for (key += n; *key == '?'; key += strcspn (key, "?"))
    {
      const bool opposite = key[1] == '!';
      char name[32], *is;
      int64_t first[1];

      key += 1 + opposite;
      snprintf (name, sizeof name, "%.*s", (int)strcspn (key, "?"), key);
      if ((is = strchr (name, '=')) != NULL)
        *is++ = '\0';
      if (strcmp (name, "ended") == 0 ? !has_ended (o, step)
          : name[0] == '#'            ? (int)step->n_in != name[1] - '0'
          : name[0] == '*'            ? td__export_ints (step, name + 1, first, 1) <= 0
          : is != NULL                ? td__export_number (step, name, 0) != is[0] - '0'
                                      : (td__export_number (step, name, 0) != 0) == opposite)
        return false;
    }
  return true;
}

#define SEEN TD_ONNX_SEEN ("d")
#define SCORES TD_ONNX_SCORES
#define MASKED TD_ONNX_HIDDEN (SCORES)
#define HIDE "Mul(Softmax(u;axis=2),k)"
/* The logarithm of the sum of each row of u; a row that sees nothing has none. */
#define LOG_SUM                                                                                \
  "m=ReduceMax(u;axes=[2]);l=Squeeze(Add(m,Log(ReduceSum(Exp(Sub(u,m));axes=[2]))),[2]);"
#define SEEN_LOG_SUM LOG_SUM "Where(Cast(ReduceMax(k;axes=[-1],keepdims=0);to=B),l,1e999)"
#define MOMENTS(X, AXES) "u=Sub(" X ",m);v=ReduceMean(Mul(u,u);axes=" AXES ");"
#define SCALED "Add(Mul(n,Reshape(b,~1)),Reshape(c,~2))"
#define HUBER "u=Sub(a,b);v=Clip(u,Neg(@delta),@delta);w=Mul(Mul(Sub(Add(u,u),v),v),0.5);"
#define SIGMOID_LOSS                                                                           \
  "t=Cast(b;to=F);k=GreaterOrEqual(t,0);l=Where(k,Add(Sub(Relu(a),Mul(a,t)),"                  \
  "Log(Add(Exp(Neg(Abs(a))),1))),0);"
#define HINGE "s=" TD_ONNX_HINGE_SIGNS ";h=Relu(Add(Mul(a,s),1));"
#define ENTROPY                                                                                \
  "t=Cast(b;to=I);k=Not(Equal(t,:@ignore_label));i=Where(k,t,:0);"                             \
  "e=Where(k,Neg(Squeeze(GatherElements(LogSoftmax(a;axis=1),Unsqueeze(i,[1]);axis=1),[1])),"  \
  "0);"
#define WEIGHED "Where(k,Mul(e,Gather(c,i)),0)"
#define LSTM(C)                                                                                \
  "g=Reshape(b,[0,-1,4]);n=Add(Mul(Tanh(Gather(g,:0;axis=2)),Sigmoid(Gather(g,:1;axis=2))),"   \
  "Mul(" C ",Sigmoid(Gather(g,:2;axis=2))));"
#define LSTM_H "Mul(Tanh(n),Sigmoid(Gather(g,:3;axis=2)))"
#define SHARES "|Softmax(a;axis=1)"
#define COUNTED TD_ONNX_COUNTED

/* The first that fits is taken. */
static const TdOnnxRecipe recipes[] = {
  { "log1p", "Log(Add(a,1))" },
  { "expm1", "Sub(Exp(a),1)" },
  { "rsqrt", "Reciprocal(Sqrt(a))" },
  { "silu", "Mul(a,Sigmoid(a))" },
  { "softplus", "Div(Softplus(Mul(a,@beta)),@beta)" },
  { "gelu?approximate", "Mul(Mul(a,0.5),Add(Tanh(Mul(Add(a,Mul(Mul(Mul(a,a),a),0.044715)),"
                        "0.7978845608028654)),1))" },
  { "gelu", "Mul(Mul(a,0.5),Add(Erf(Mul(a,0.7071067811865476)),1))" },
  { "swish", "Mul(a,Sigmoid(Mul(a,Reshape(b,~1))))" },
  { "prelu", "PRelu(a,Reshape(b,~1))" },
  { "linear_interpolate", "Add(Mul(a,b),Mul(Sub(1,a),c))" },
  { "clip_inside", "Cast(Not(Or(Less(a,@x_min),Greater(a,@x_max)));to=T)" },
  { "equal", "Cast(Equal(a,b);to=T)" },
  { "greater_equal", "Cast(GreaterOrEqual(a,b);to=T)" },
  { "greater", "Cast(Greater(a,b);to=T)" },
  { "less_equal", "Cast(LessOrEqual(a,b);to=T)" },
  { "less", "Cast(Less(a,b);to=T)" },
  { "squared_difference", "u=Sub(a,b);Mul(u,u)" },
  { "squared_error", "u=Sub(a,b);Mul(u,u)" },
  { "absolute_error", "Abs(Sub(a,b))" },
  { "mean_absolute_error", "ReduceMean(Abs(Sub(a,b));keepdims=0)" },
  { "huber_loss?reduce", HUBER "w" },
  { "huber_loss", HUBER "ReduceSum(w;axes=[1],keepdims=0)" },
  { "gaussian", "Add(a,Mul(Exp(Mul(b,0.5)),c))" },
  { "sqrt_sum_square", "Reshape(Sqrt(ReduceSum(Mul(a,a);axes=A,keepdims=1)),$0)" },
  { "sum_to", "Reshape(ReduceSum(a;axes=S,keepdims=1),$0)" },
  { "flip", "Slice(a,[-1],[-end],%axis,[-1])" },
  { "embed_id", "Gather(b,a;axis=0)" },
  { "cumsum", "CumSum(a,:@axis;reverse=@reverse)" },
  { "select_item", "Reshape(GatherElements(a,Reshape(Cast(b;to=I),[-1,1]);axis=1),$0)" },
  { "one_hot", "Cast(OneHot(Cast(a;to=I),:@n_classes,[0,1]);to=T)" },
  { "batch_normalization",
    "m=ReduceMean(a;axes=C);" MOMENTS ("a", "C") "s=Sqrt(Add(v,@eps));n=Div(u,s);" SCALED
                                                 "|Reshape(m,$1)|Reshape(Reciprocal(s),$2)" },
  { "layer_normalization", "m=ReduceMean(a;axes=[-1]);" MOMENTS (
                               "a", "[-1]") "s=Sqrt(Add(v,@eps));Add(Mul(Div(u,s),b),c)|"
                                            "Reshape(m,$1)|Reshape(Reciprocal(s),$2)" },
  { "group_normalization", "g=Reshape(a,[0,@groups,-1]);m=ReduceMean(g;axes=[2]);" MOMENTS (
                               "g", "[2]") "s=Sqrt(Add(v,@eps));n=Reshape(Div(u,s),^0);" SCALED
                                           "|Reshape(m,$1)|Reshape(Reciprocal(s),$2)" },
  { "random_like?!distribution", "RandomNormalLike(a)" },
  { "random_like?distribution=1",
    "Neg(Log(Neg(Log(Clip(RandomUniformLike(a),2.98e-8,0.99999994)))))" },
  { "random_like?distribution=2",
    "Div(Cast(GreaterOrEqual(RandomUniformLike(a),@ratio);to=F),Sub(1,@ratio))" },
  { "rms_normalization", "s=Sqrt(Add(ReduceMean(Mul(a,a);axes=[-1]),@eps));Mul(Div(a,s),b)|"
                         "Reshape(Reciprocal(s),$1)" },
  { "normalize", "Div(a,Add(Sqrt(ReduceSum(Mul(a,a);axes=A)),@eps))" },
  { "bilinear?#3", "MatMul(Reshape(Mul(Unsqueeze(Flatten(a;axis=1),[2]),Unsqueeze(Flatten(b;"
                   "axis=1),[1])),[0,-1]),Flatten(c;axis=2))" },
  { "bilinear?#6",
    "u=Flatten(a;axis=1);v=Flatten(b;axis=1);Add(Add(Add(MatMul(Reshape(Mul(Unsqueeze(u,[2]),"
    "Unsqueeze(v,[1])),[0,-1]),Flatten(c;axis=2)),MatMul(u,d)),MatMul(v,e)),f)" },
  { "lstm?ended", "p=Slice(a,[0],!rows,[0]);" LSTM ("p") "Concat(n,Slice(a,!rows,[end],[0]);"
                                                         "axis=0)|" LSTM_H },
  { "lstm", LSTM ("a") "Identity(n)|" LSTM_H },
  { "scaled_dot_product_attention?#3?!causal",
    "u=" SCORES ";MatMul(Softmax(u;axis=2),c)|" LOG_SUM "l" },
  { "scaled_dot_product_attention?#3",
    "k=!causal;u=" MASKED ";MatMul(" HIDE ",c)|" SEEN_LOG_SUM },
  { "scaled_dot_product_attention?#4?!causal",
    "k=" SEEN ";u=" MASKED ";MatMul(" HIDE ",c)|" SEEN_LOG_SUM },
  { "scaled_dot_product_attention?#4",
    "k=Mul(" SEEN ",!causal);u=" MASKED ";MatMul(" HIDE ",c)|" SEEN_LOG_SUM },
  { "accuracy?*ignore_label", "t=Cast(b;to=I);k=Not(Equal(t,:@ignore_label));r=And(k,Equal("
                              "ArgMax(a;axis=1,keepdims=0),t));"
                              "Div(ReduceSum(Cast(r;to=F);keepdims=0)," COUNTED ")" },
  { "accuracy", "ReduceMean(Cast(Equal(ArgMax(a;axis=1,keepdims=0),Cast(b;to=I));to=F);"
                "keepdims=0)" },
  { "binary_accuracy",
    "t=Cast(b;to=I);Div(ReduceSum(Cast(Equal(Cast(GreaterOrEqual(a,0);to=I),t);to=F);"
    "keepdims=0),Max(ReduceSum(Cast(GreaterOrEqual(t,:0);to=F);keepdims=0),1))" },
  { "sigmoid_cross_entropy?reduce", SIGMOID_LOSS "l" },
  { "sigmoid_cross_entropy?normalize",
    SIGMOID_LOSS "Div(ReduceSum(l;keepdims=0)," COUNTED ")" },
  { "sigmoid_cross_entropy", SIGMOID_LOSS "Div(ReduceSum(l;keepdims=0),Max(#0,1))" },
  { "hinge?reduce?norm", HINGE "Mul(h,h)" },
  { "hinge?reduce", HINGE "h" },
  { "hinge?norm", HINGE "Div(ReduceSum(Mul(h,h);keepdims=0),#0)" },
  { "hinge", HINGE "Div(ReduceSum(h;keepdims=0),#0)" },
  { "softmax_cross_entropy?#3?reduce", ENTROPY WEIGHED SHARES },
  { "softmax_cross_entropy?#3?normalize",
    ENTROPY "Div(ReduceSum(" WEIGHED ";keepdims=0)," COUNTED ")" SHARES },
  { "softmax_cross_entropy?#3", ENTROPY "Div(ReduceSum(" WEIGHED ";keepdims=0),#0)" SHARES },
  { "softmax_cross_entropy?reduce", ENTROPY "e" SHARES },
  { "softmax_cross_entropy?normalize",
    ENTROPY "Div(ReduceSum(e;keepdims=0)," COUNTED ")" SHARES },
  { "softmax_cross_entropy", ENTROPY "Div(ReduceSum(e;keepdims=0),#0)" SHARES },
  { "relu_grad", "Where(Greater(a,0),b," TD_ONNX_NOTHING ")" },
  { "sigmoid_grad", "Mul(Mul(b,a),Sub(1,a))" },
  { "tanh_grad", "Mul(b,Sub(1,Mul(a,a)))" },
  { "leaky_relu_grad", "Where(Less(a,0),Mul(b,@slope),Where(Equal(a,a),b,a))" },
  { "softmax_grad", "Mul(a,Sub(b,ReduceSum(Mul(a,b);axes=A)))" },
  { "log_softmax_grad", "Sub(b,Mul(Exp(a),ReduceSum(b;axes=A)))" },
  { NULL, NULL },
};

static uint32_t
n_results (const char *text)
{
  uint32_t n = 1;

  for (; *text != '\0'; text++)
    n += *text == '|';
  return n;
}

/* Results up to the last that is read. */
static uint32_t
n_used (const TdOnnx *o, const TdStep *step)
{
  uint32_t n = step->n_out;

  while (n > 1 && !td__export_is_used (o->s, td__step_out (o->s, step, n - 1)))
    n--;
  return n;
}

/* Why a recipe is none for this step, or NULL. */
static const char *
refuses (const TdOnnx *o, const TdStep *step, const char *text)
{
  const TdShape *x = &o->s->nodes[td__step_in (o->s, step, 0)].shape;

  if (n_used (o, step) > n_results (text))
    return "whose further results are used";
  if (strstr (text, "!every") != NULL
      && x->dim[0] % o->s->nodes[td__step_in (o->s, step, step->n_in - 1)].shape.dim[0] != 0)
    return "whose last batches share a mask";
  return NULL;
}

/* Names before the result, and each result. */
static void
follow (Recipe *r)
{
  const uint32_t n = n_used (r->o, r->step);

  for (uint32_t k = 0; k < n; k++)
    {
      char result[TEXT], to[TEXT];

      while (r->at[1] == '=' && r->n_names < MOST_NAMES)
        {
          r->name[r->n_names] = r->at[0];
          r->at += 2;
          expression (r, NULL, r->value[r->n_names]);
          r->n_names++;
          r->at += *r->at == ';';
        }
      snprintf (result, sizeof result, "%s",
                td__onnx_value (r->o, td__step_out (r->o->s, r->step, k)));
      expression (r, result, to);
      if (strcmp (to, result) != 0)
        {
          TdOnnxNodeWriter same = td__onnx_node (r->o, "Identity", NULL);

          td__onnx_in (&same, to);
          td__onnx_out (&same, result);
          td__onnx_end (&same);
        }
      r->at += *r->at == '|';
    }
}

static const TdOnnxRecipe *
recipe_of (const TdOnnxRecipe *table, const TdOnnx *o, const TdStep *step)
{
  for (; table->key != NULL; table++)
    if (fits (table->key, o, step))
      return table;
  return NULL;
}

void
td__onnx_compose (TdOnnx *o, const TdStep *step, const char *line, const TdOnnxGiven *given,
                  int n)
{
  Recipe r = { .o = o, .step = step, .at = line };

  for (; r.n_names < n; r.n_names++)
    {
      r.name[r.n_names] = given[r.n_names].letter;
      snprintf (r.value[r.n_names], TEXT, "%s", given[r.n_names].value);
    }
  follow (&r);
}

bool
td__onnx_recipe (TdOnnx *o, const TdStep *step, const char **why)
{
  const TdOnnxRecipe *found = recipe_of (recipes, o, step);

  *why = NULL;
  if (found == NULL)
    found = recipe_of (td__onnx_gradient_recipes, o, step);
  if (found == NULL)
    return false;
  *why = refuses (o, step, found->text);
  if (*why == NULL)
    td__onnx_compose (o, step, found->text, NULL, 0);
  return *why == NULL;
}
