/* Operations of a C program that are calls of kernels: products, windows, normalisations.
 *
 * Kernels are of f32.
 *
 * SPDX-License-Identifier: MIT */
#include "c-out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define P TD_C_PRINT

const char *
td__c_only_floats (const TdCOut *o, const TdStep *step)
{
  for (uint32_t k = 0; k < step->n_in + step->n_out; k++)
    if (td__c_dtype (o, k < step->n_in ? td__c_in (o, step, k)
                                       : td__c_out (o, step, k - step->n_in))
        == TD_F64)
      return "of f64";
  return NULL;
}

/* "v3, ", or "0, " for an input that is not given. */
static void
operand (TdCOut *o, const TdStep *step, uint32_t i)
{
  if (i < step->n_in)
    P (o, "v%u, ", td__c_value (o, td__c_in (o, step, i)));
  else
    P (o, "0, ");
}

static void
result (TdCOut *o, const TdStep *step, uint32_t i)
{
  P (o, "v%u", td__c_value (o, td__c_out (o, step, i)));
}

/* The name of the workspace, when it has room for so many floats. */
static const char *
room (TdCOut *o, int64_t n)
{
  o->room = n > o->room ? n : o->room;
  return "workspace";
}

/* outer, n, inner of an array around an axis. */
static void
around (const TdShape *x, int axis, long long n[3])
{
  axis += axis < 0 ? x->ndim : 0;
  n[0] = n[1] = n[2] = 1;
  for (int d = 0; d < x->ndim; d++)
    n[d < axis ? 0 : d == axis ? 1 : 2] *= x->dim[d];
}

/* --- products --- */

static const char *
linear (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *w = td__c_shape (o, td__c_in (o, step, 1)),
                *y = td__c_shape (o, td__c_out (o, step, 0));

  (void)text;
  P (o, "  linear (");
  for (uint32_t i = 0; i < 3; i++)
    operand (o, step, i);
  result (o, step, 0);
  P (o, ", %lld, %lld, %lld);\n", (long long)y->dim[0], (long long)w->dim[1],
     (long long)w->dim[0]);
  return NULL;
}

static const char *
matmul (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *a = td__c_shape (o, td__c_in (o, step, 0)),
                *y = td__c_shape (o, td__c_out (o, step, 0));
  const int last = y->ndim - 1, ta = td__export_number (step, "transa", 0) != 0,
            tb = td__export_number (step, "transb", 0) != 0;

  (void)text;
  P (o, "  matmul (%d, %d, %lld, %lld, %lld, %lld, ", ta, tb,
     (long long)(y->ndim == 3 ? y->dim[0] : 1), (long long)y->dim[last - 1],
     (long long)y->dim[last], (long long)a->dim[ta ? last - 1 : last]);
  operand (o, step, 0);
  operand (o, step, 1);
  result (o, step, 0);
  P (o, ");\n");
  return NULL;
}

static const char *
bilinear (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *w = td__c_shape (o, td__c_in (o, step, 2));
  const int64_t n = td__c_shape (o, td__c_out (o, step, 0))->dim[0];

  (void)text;
  P (o, "  bilinear ((const float *const[]){ ");
  for (uint32_t i = 0; i < 6; i++)
    operand (o, step, i);
  P (o, "}, ");
  result (o, step, 0);
  P (o, ", %lld, %lld, %lld, %lld, %s);\n", (long long)n, (long long)w->dim[0],
     (long long)w->dim[1], (long long)w->dim[2], room (o, n * w->dim[0] * w->dim[1]));
  return NULL;
}

static const char *
attention (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *q = td__c_shape (o, td__c_in (o, step, 0)),
                *k = td__c_shape (o, td__c_in (o, step, 1)),
                *v = td__c_shape (o, td__c_in (o, step, 2));
  const double scale = td__export_number (step, "scale", 0);
  const double every = td__export_number (step, "mask_every", 1);

  (void)text;
  P (o, "  attention ((const float *const[]){ ");
  for (uint32_t i = 0; i < 4; i++)
    operand (o, step, i);
  P (o, "}, ");
  result (o, step, 0);
  P (o, ", ");
  result (o, step, 1);
  P (o, ", (const long[]){ %lld, %lld, %lld, %lld, %lld, %lld }, %af, %d, %s);\n",
     (long long)q->dim[0], (long long)q->dim[1], (long long)k->dim[1], (long long)q->dim[2],
     (long long)v->dim[2], (long long)(every > 0 ? every : 1),
     (double)(float)(scale != 0 ? scale : 1 / sqrt ((double)(q->dim[2] > 0 ? q->dim[2] : 1))),
     td__export_number (step, "causal", 0) != 0, room (o, q->dim[1] * k->dim[1]));
  return NULL;
}

/* --- windows --- */

enum
{
  MOST_AXES = 3 /* of the kernels */
};

/* Numbers for each of the axes; as many as there are if one stands for all, `otherwise` if none
 * does. */
static void
per_axis (const TdStep *step, const char *name, int ndim, int64_t otherwise, int64_t *to)
{
  int64_t list[TD_MAX_DIMS];
  const int n = td__export_ints (step, name, list, TD_MAX_DIMS);

  for (int i = 0; i < ndim; i++)
    to[i] = n <= 0 ? otherwise : list[n == 1 ? 0 : i];
}

/* "&(const windows){ ... }, ": those over image that give `many`; size of shape k, or attribute
 * ksize.  Returns how many numbers all windows of a channel have. */
static int64_t
print_windows (TdCOut *o, const TdStep *step, const TdShape *image, const TdShape *many,
               const TdShape *k)
{
  const int ndim = image->ndim - 2;
  int64_t all[6][TD_MAX_DIMS], numbers = 1;

  per_axis (step, "ksize", ndim, 1, all[2]);
  for (int i = 0; i < ndim; i++)
    {
      all[0][i] = image->dim[2 + i];
      all[1][i] = many->dim[2 + i];
      if (k != NULL)
        all[2][i] = k->dim[2 + i];
    }
  per_axis (step, "stride", ndim, k != NULL ? 1 : -1, all[3]);
  per_axis (step, "pad", ndim, 0, all[4]);
  per_axis (step, "dilate", ndim, 1, all[5]);
  P (o, "&(const windows){ ");
  for (int row = 0; row < 6; row++)
    {
      P (o, "{ ");
      for (int i = ndim - MOST_AXES; i < ndim; i++)
        P (o, "%lld%s",
           i < 0                         ? row == 4 ? 0LL : 1LL
           : row == 3 && all[row][i] < 1 ? (long long)all[2][i]
                                         : (long long)all[row][i],
           i + 1 < ndim ? ", "
           : row < 5    ? " }, "
                        : " } }");
    }
  for (int i = 0; i < ndim; i++)
    numbers *= all[1][i] * all[2][i];
  return numbers;
}

static const char *
too_many_axes (const TdShape *x)
{
  return x->ndim > 2 + MOST_AXES ? "over more than three axes" : NULL;
}

/* x, w, (b) -> y; transposed where text says so. */
static const char *
convolution (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0)),
                *w = td__c_shape (o, td__c_in (o, step, 1)),
                *y = td__c_shape (o, td__c_out (o, step, 0));
  const bool transposed = text[0] == 'd';
  const int64_t groups = (int64_t)td__export_number (step, "groups", 1);
  int64_t numbers;

  if (too_many_axes (x) != NULL)
    return too_many_axes (x);
  P (o, "  %s (", text);
  for (uint32_t i = 0; i < 3; i++)
    operand (o, step, i);
  result (o, step, 0);
  P (o, ", %lld, %lld, %lld, %lld, ", (long long)x->dim[0], (long long)x->dim[1],
     (long long)y->dim[1], (long long)groups);
  numbers = print_windows (o, step, transposed ? y : x, transposed ? x : y, w);
  numbers *= (transposed ? y : x)->dim[1] / groups;
  if (!transposed && groups == 1) /* the kernel may take the whole batch at once */
    numbers = numbers * x->dim[0] + td__size (y);
  P (o, ", %s);\n", room (o, numbers));
  return NULL;
}

static const char *
convolution_grad_w (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0)),
                *gy = td__c_shape (o, td__c_in (o, step, 1)),
                *w = td__c_shape (o, td__c_out (o, step, 0));
  const int64_t groups = (int64_t)td__export_number (step, "groups", 1);
  int64_t numbers;

  if (too_many_axes (x) != NULL)
    return too_many_axes (x);
  P (o, "  %s (", text);
  operand (o, step, 0);
  operand (o, step, 1);
  result (o, step, 0);
  P (o, ", %lld, %lld, %lld, %lld, ", (long long)x->dim[0], (long long)x->dim[1],
     (long long)gy->dim[1], (long long)groups);
  numbers = print_windows (o, step, x, gy, w);
  P (o, ", %s);\n", room (o, x->dim[1] / groups * numbers));
  return NULL;
}

/* "kernel, argument": x -> y; of unpooling, x has the windows. */
static const char *
pooling (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0)),
                *y = td__c_shape (o, td__c_out (o, step, 0));
  const bool back = text[0] == 'u';
  const char *by = strchr (text, ',');

  if (too_many_axes (x) != NULL)
    return too_many_axes (x);
  if (td__export_number (step, "pad_value", 0) == (double)TD_NONE)
    by = ", 2";
  P (o, "  %.*s (", (int)strcspn (text, ","), text);
  operand (o, step, 0);
  result (o, step, 0);
  P (o, ", %lld, ", (long long)(x->dim[0] * x->dim[1]));
  print_windows (o, step, back ? y : x, back ? x : y, NULL);
  P (o, "%s);\n", by);
  return NULL;
}

/* The places of the largest, as int32_t for the kernels: a loop from one array to another. */
static void
print_places (TdCOut *o, uint32_t places, const char *to, const char *from)
{
  P (o, "  for (long i0 = 0; i0 < %lld; i0++)\n    %s[i0] = (%s)%s[i0];\n",
     td__c_count (o, places), to,
     to[0] == 'v' ? td__c_type (td__c_dtype (o, places)) : "int32_t", from);
}

static const char *
max_pooling (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t places = td__c_out (o, step, 1);
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0)),
                *y = td__c_shape (o, td__c_out (o, step, 0));
  const bool wanted = td__export_is_used (o->s, places);
  char index[32], array[32];

  if (too_many_axes (x) != NULL)
    return too_many_axes (x);
  snprintf (index, sizeof index, "index%u", o->n_scratch);
  snprintf (array, sizeof array, "v%u", td__c_value (o, places));
  if (wanted)
    P (o, "  static int32_t %s[%lld];\n\n", index, td__c_count (o, places));
  P (o, "  %s (", text);
  operand (o, step, 0);
  result (o, step, 0);
  P (o, ", %s, %lld, ", wanted ? index : "0", (long long)(x->dim[0] * x->dim[1]));
  print_windows (o, step, x, y, NULL);
  P (o, ");\n");
  if (wanted)
    print_places (o, places, array, index);
  o->n_scratch += wanted;
  return NULL;
}

/* index, gy -> gx, or index, ggx -> ggy if it gathers. */
static const char *
by_places (TdCOut *o, const TdStep *step, const char *text)
{
  const bool gathers = text[0] == 'g';
  const uint32_t places = td__c_in (o, step, 0), in = td__c_in (o, step, 1),
                 out = td__c_out (o, step, 0);
  const TdShape *image = td__c_shape (o, gathers ? in : out), *many = td__c_shape (o, places);
  char index[32], array[32];

  if (too_many_axes (many) != NULL)
    return too_many_axes (many);
  snprintf (index, sizeof index, "index%u", o->n_scratch++);
  snprintf (array, sizeof array, "v%u", td__c_value (o, places));
  P (o, "  static int32_t %s[%lld];\n\n", index, td__c_count (o, places));
  print_places (o, places, index, array);
  if (!gathers)
    td__c_fill (o, out, 0);
  P (o, "  max_places (%s, (float *)v%u, (float *)v%u, %lld, ", index,
     td__c_value (o, gathers ? out : in), td__c_value (o, gathers ? in : out),
     (long long)(many->dim[0] * many->dim[1]));
  print_windows (o, step, image, many, NULL);
  P (o, ", %d);\n", gathers);
  return NULL;
}

/* Images whose size the shapes say; "kernel". */
static const char *
images (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0)),
                *y = td__c_shape (o, td__c_out (o, step, 0));

  P (o, "  %s (", text);
  operand (o, step, 0);
  result (o, step, 0);
  P (o, ", %lld, (const long[]){ %lld, %lld }, (const long[]){ %lld, %lld }",
     (long long)(x->dim[0] * x->dim[1]), (long long)x->dim[2], (long long)x->dim[3],
     (long long)y->dim[2], (long long)y->dim[3]);
  if (text[0] == 'r')
    P (o, ", %d",
       strcmp (td__export_word (step, "mode"), "nearest") == 0 ? 2
       : td__export_number (step, "align_corners", 1) != 0     ? 0
                                                               : 1);
  P (o, ");\n");
  return NULL;
}

/* The windows of a picture as channels. */
static const char *
im2col (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0)),
                *y = td__c_shape (o, td__c_out (o, step, 0));

  (void)text;
  P (o, "  unfold (");
  operand (o, step, 0);
  P (o, "%lld, ", (long long)(x->dim[0] * x->dim[1]));
  print_windows (o, step, x, y, NULL);
  P (o, ", ");
  result (o, step, 0);
  P (o, ", %lld);\n", (long long)(y->dim[2] * y->dim[3]));
  return NULL;
}

static const char *
im2col_grad (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0)),
                *y = td__c_shape (o, td__c_out (o, step, 0));

  (void)text;
  td__c_fill (o, td__c_out (o, step, 0), 0);
  P (o, "  fold (");
  operand (o, step, 0);
  P (o, "%lld, ", (long long)(y->dim[0] * y->dim[1]));
  print_windows (o, step, y, x, NULL);
  P (o, ", ");
  result (o, step, 0);
  P (o, ");\n");
  return NULL;
}

/* --- rows --- */

/* "kernel" or "kernel, argument", with all inputs, over an axis. */
static const char *
along_axis (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));
  long long n[3];

  around (x, (int)td__export_number (step, "axis", 1), n);
  P (o, "  %.*s (", (int)strcspn (text, ","), text);
  for (uint32_t i = 0; i < step->n_in; i++)
    operand (o, step, i);
  result (o, step, 0);
  P (o, ", %lld, %lld, %lld", n[0], n[1], n[2]);
  if (strchr (text, ',') != NULL)
    td__c_text (o, step, strchr (text, ','), strlen (strchr (text, ',')), TD_I64, 0);
  P (o, ");\n");
  return NULL;
}

/* Axes that are neighbours are as one. */
static const char *
unit_length (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));
  const uint32_t mask = td__c_reduced (step, x->ndim);
  long long n[3] = { 1, 1, 1 };
  int first = 0;

  while (first < x->ndim && !(mask >> first & 1))
    first++;
  for (int d = 0; d < x->ndim; d++)
    {
      if (d >= first && (mask >> d & 1) && d > first && !(mask >> (d - 1) & 1))
        return "over axes that are no neighbours";
      n[d < first ? 0 : mask >> d & 1 ? 1 : 2] *= x->dim[d];
    }
  P (o, "  %s (", text);
  operand (o, step, 0);
  result (o, step, 0);
  P (o, ", %lld, %lld, %lld, %af);\n", n[0], n[1], n[2],
     (double)(float)td__export_number (step, "eps", 1e-5));
  return NULL;
}

static const char *
batch_normalization (TdCOut *o, const TdStep *step, const char *text)
{
  long long n[3];

  around (td__c_shape (o, td__c_in (o, step, 0)), 1, n);
  P (o, "  %s (", text);
  for (uint32_t i = 0; i < 5; i++)
    operand (o, step, i);
  for (uint32_t k = 0; k < step->n_out; k++)
    {
      result (o, step, k);
      P (o, ", ");
    }
  P (o, "%lld, %lld, %lld, ", n[0], n[1], n[2]);
  if (step->n_out > 1)
    P (o, "%a, %a);\n", td__export_number (step, "eps", 2e-5),
       td__export_number (step, "decay", 0.9));
  else
    P (o, "%af);\n", (double)(float)td__export_number (step, "eps", 2e-5));
  return NULL;
}

/* text: 'g' of groups, 'l' of layers, 'r' by the root mean square. */
static const char *
row_normalization (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));
  const long long groups
      = text[0] == 'g' ? (long long)td__export_number (step, "groups", 1) : 1;
  long long n[3];

  around (x, text[0] == 'g' ? 1 : -1, n);
  P (o, "  row_normalize (");
  for (uint32_t i = 0; i < 3; i++)
    operand (o, step, i);
  result (o, step, 0);
  P (o, ", ");
  if (text[0] == 'r')
    P (o, "0");
  else
    result (o, step, 1);
  P (o, ", ");
  result (o, step, step->n_out - 1);
  P (o, ", (const long[]){ %lld, %lld, %lld, %lld }, %a);\n", n[0], groups, n[1] / groups, n[2],
     td__export_number (step, "eps", 1e-5));
  return NULL;
}

static const char *
channel_window (TdCOut *o, const TdStep *step, const char *text)
{
  const bool normalizes = text[0] == 'n';
  const uint32_t x = td__c_value (o, td__c_in (o, step, 0)),
                 y = td__c_value (o, td__c_out (o, step, 0));
  long long n[3];

  around (td__c_shape (o, td__c_in (o, step, 0)), 1, n);
  P (o, "  channel_window (v%u, v%u, %lld, %lld, %lld, %lld, %d);\n", x, y, n[0], n[1], n[2],
     (long long)td__export_number (step, "n", 5) / 2, normalizes);
  if (!normalizes)
    return NULL;
  P (o, "  for (long i0 = 0; i0 < %lld; i0++)\n    v%u[i0] = v%u[i0] * powf (",
     td__c_count (o, td__c_in (o, step, 0)), y, x);
  td__c_number (o, td__export_number (step, "k", 2), TD_F32);
  P (o, " + ");
  td__c_number (o, td__export_number (step, "alpha", 1e-4), TD_F32);
  P (o, " * v%u[i0], ", y);
  td__c_number (o, -td__export_number (step, "beta", 0.75), TD_F32);
  P (o, ");\n");
  return NULL;
}

static const char *
lstm (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *c = td__c_shape (o, td__c_in (o, step, 0)),
                *x = td__c_shape (o, td__c_in (o, step, 1));

  P (o, "  %s (", text);
  operand (o, step, 0);
  operand (o, step, 1);
  result (o, step, 0);
  P (o, ", ");
  result (o, step, 1);
  P (o, ", %lld, %lld, %lld);\n", (long long)c->dim[0], (long long)x->dim[0],
     (long long)c->dim[1]);
  return NULL;
}

/* --- random numbers --- */

void
td__c_draws (TdCOut *o, const TdStep *step)
{
  TdRngKey key = { 0, 0 };

  if (step->attrs != NULL)
    memcpy (&key, step->attrs, sizeof key);
  o->draws = true;
  o->seed = key.seed;
  o->offset = key.offset - step->random_at;
}

static void
print_draw (TdCOut *o, const TdStep *step, int kind, double p)
{
  const uint32_t y = td__c_out (o, step, 0);

  td__c_draws (o, step);
  P (o, "  draw (%d, random_seed, random_offset + %llu, %a, v%u, %lld);\n", kind,
     (unsigned long long)step->random_at, p, td__c_value (o, y), td__c_count (o, y));
}

static const char *
dropout (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t x = td__c_in (o, step, 0), y = td__c_out (o, step, 0);

  (void)text;
  print_draw (o, step, TD_RANDOM_MASK, td__export_number (step, "ratio", 0.5));
  P (o, "  for (long i0 = 0; i0 < %lld; i0++)\n    v%u[i0] *= v%u[i0];\n", td__c_count (o, y),
     td__c_value (o, y), td__c_value (o, x));
  return NULL;
}

static const char *
random_like (TdCOut *o, const TdStep *step, const char *text)
{
  const char *kind = td__export_word (step, "distribution");
  const uint32_t y = td__c_out (o, step, 0);

  (void)text;
  print_draw (o, step,
              strcmp (kind, "mask") == 0     ? TD_RANDOM_MASK
              : strcmp (kind, "normal") == 0 ? TD_RANDOM_NORMAL
                                             : TD_RANDOM_UNIFORM,
              td__export_number (step, "ratio", 0.5));
  if (strcmp (kind, "gumbel") == 0)
    P (o,
       "  for (long i0 = 0; i0 < %lld; i0++)\n    v%u[i0] = -logf (-logf (fmaxf (v%u[i0], "
       "0x1p-25f)));\n",
       td__c_count (o, y), td__c_value (o, y), td__c_value (o, y));
  return NULL;
}

const TdCRow td__c_calls[] = {
  { "linear", linear, NULL },
  { "matmul", matmul, NULL },
  { "batch_matmul", matmul, NULL },
  { "bilinear", bilinear, NULL },
  { "scaled_dot_product_attention", attention, NULL },
  { "convolution_2d", convolution, "convolution" },
  { "convolution_nd", convolution, "convolution" },
  { "deconvolution_2d", convolution, "deconvolution" },
  { "deconvolution_nd", convolution, "deconvolution" },
  { "convolution_2d_grad_w", convolution_grad_w, "convolution_grad_w" },
  { "convolution_nd_grad_w", convolution_grad_w, "convolution_grad_w" },
  { "max_pooling_2d", max_pooling, "max_pooling" },
  { "max_pooling_2d_grad", by_places, "scatters" },
  { "max_pooling_2d_gather", by_places, "gathers" },
  { "max_pooling_nd", max_pooling, "max_pooling" },
  { "max_pooling_nd_grad", by_places, "scatters" },
  { "max_pooling_nd_gather", by_places, "gathers" },
  { "average_pooling_2d", pooling, "sum_pooling, 1" },
  { "average_pooling_nd", pooling, "sum_pooling, 1" },
  { "average_pooling_2d_grad", pooling, "unpooling, 1" },
  { "average_pooling_nd_grad", pooling, "unpooling, 1" },
  { "unpooling_2d", pooling, "unpooling, 0" },
  { "unpooling_2d_grad", pooling, "sum_pooling, 0" },
  { "adaptive_average_pooling_2d", images, "adaptive_pooling" },
  { "resize_images", images, "resize" },
  { "im2col", im2col, NULL },
  { "im2col_grad", im2col_grad, NULL },
  { "softmax", along_axis, "softmax, 0" },
  { "log_softmax", along_axis, "softmax, 1" },
  { "softmax_grad", along_axis, "softmax_grad, 0" },
  { "log_softmax_grad", along_axis, "softmax_grad, 1" },
  { "cumsum", along_axis, "cumulative_sum, @reverse" },
  { "normalize", unit_length, "unit_length" },
  { "batch_normalization", batch_normalization, "batch_normalize" },
  { "fixed_batch_normalization", batch_normalization, "fixed_normalize" },
  { "layer_normalization", row_normalization, "layer" },
  { "group_normalization", row_normalization, "group" },
  { "rms_normalization", row_normalization, "rms" },
  { "local_response_normalization", channel_window, "normalize" },
  { "channel_window_sum", channel_window, "sum" },
  { "lstm", lstm, "lstm" },
  { "dropout", dropout, NULL },
  { "random_like", random_like, NULL },
  { 0 },
};
