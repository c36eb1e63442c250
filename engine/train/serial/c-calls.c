/* Operations of a C program that are calls of kernels: products, normalisations, random
 * numbers.  Those over windows of pictures are in c-windows.c.
 *
 * SPDX-License-Identifier: MIT */
#include "c-out.h"

#include "compute/core/operands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define P TD_C_PRINT

/* Is there a kernel of that name? */
static bool
is_kernel (const char *name)
{
  for (int k = 0; k < td__c_n_kernels; k++)
    if (strcmp (td__c_kernels[k].name, name) == 0)
      return true;
  return false;
}

void
td__c_call (TdCOut *o, const char *kernel)
{
  char name[64];

  snprintf (name, sizeof name, "%s_%s", kernel,
            o->real == TD_F64 ? "f64" : td__c_half (o->half));
  P (o, "  %s (", (o->real == TD_F64 || o->half != TD_F32) && is_kernel (name) ? name : kernel);
}

void
td__c_operand (TdCOut *o, const TdStep *step, uint32_t i)
{
  P (o, "%s, ", i < step->n_in ? td__c_v (o, td__c_in (o, step, i)) : "0");
}

void
td__c_result (TdCOut *o, const TdStep *step, uint32_t i)
{
  P (o, "%s", td__c_v (o, td__c_out (o, step, i)));
}

const char *
td__c_room (TdCOut *o, TdDtype real, int64_t n)
{
  int64_t *room = &o->room[real == TD_F64];

  n = n > 0 ? n : 1;
  *room = n > *room ? n : *room;
  return real == TD_F64 ? "workspace_f64" : "workspace";
}

void
td__c_round (TdCOut *o, uint32_t node)
{
  if (o->half == TD_F32)
    return;
  td__c_each (o, td__c_count (o, node));
  P (o, "%s[i0] = round_%s (%s[i0]);\n", td__c_v (o, node), td__c_half (o->half),
     td__c_v (o, node));
}

void
td__c_around (const TdShape *x, int axis, int n, long long size[3])
{
  axis += axis < 0 ? x->ndim : 0;
  size[0] = size[1] = size[2] = 1;
  for (int d = 0; d < x->ndim; d++)
    size[d < axis ? 0 : d < axis + n ? 1 : 2] *= x->dim[d];
}

/* "v1, v2, ", all that a step has: its inputs from `first` on, or its results. */
static void
print_operands (TdCOut *o, const TdStep *step, uint32_t first)
{
  for (uint32_t i = first; i < step->n_in; i++)
    td__c_operand (o, step, i);
}

static void
print_results (TdCOut *o, const TdStep *step)
{
  for (uint32_t k = 0; k < step->n_out; k++)
    {
      td__c_result (o, step, k);
      P (o, ", ");
    }
}

/* "(const float *const[]){ v1, v2, 0 }, ", n of them. */
static void
print_list (TdCOut *o, const TdStep *step, uint32_t n)
{
  P (o, "(const %s *const[]){ ", td__c_type (o->real));
  for (uint32_t i = 0; i < n; i++)
    td__c_operand (o, step, i);
  P (o, "}, ");
}

/* --- products --- */

static const char *
linear (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *w = td__c_shape (o, td__c_in (o, step, 1)),
                *y = td__c_shape (o, td__c_out (o, step, 0));

  td__c_call (o, text);
  for (uint32_t i = 0; i < 3; i++)
    td__c_operand (o, step, i);
  td__c_result (o, step, 0);
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

  td__c_call (o, text);
  P (o, "%d, %d, %lld, %lld, %lld, %lld, ", ta, tb, (long long)(y->ndim == 3 ? y->dim[0] : 1),
     (long long)y->dim[last - 1], (long long)y->dim[last],
     (long long)a->dim[ta ? last - 1 : last]);
  td__c_operand (o, step, 0);
  td__c_operand (o, step, 1);
  td__c_result (o, step, 0);
  P (o, ");\n");
  return NULL;
}

/* y += a b, of rows. */
static void
add_product (TdCOut *o, const char *a, const char *b, const char *y, const int64_t n[3],
             bool adds)
{
  td__c_call (o, "gemm");
  P (o, "0, 0, %lld, %lld, %lld, %s, %s, %d, %s);\n", (long long)n[0], (long long)n[1],
     (long long)n[2], a, b, adds, y);
}

static const char *
bilinear (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *w = td__c_shape (o, td__c_in (o, step, 2));
  const uint32_t y = td__c_out (o, step, 0);
  const int64_t n = td__c_shape (o, y)->dim[0], pairs = w->dim[0] * w->dim[1];
  const bool and_linear = step->n_in == 6;
  const char *const room = td__c_room (o, o->real, n * pairs);

  if (and_linear)
    {
      td__c_each (o, td__c_count (o, y));
      P (o, "%s[i0] = %s[i0 %% %lld];\n", td__c_v (o, y), td__c_v (o, td__c_in (o, step, 5)),
         (long long)w->dim[2]);
    }
  for (uint32_t i = 0; i < 2 && and_linear; i++)
    {
      add_product (o, td__c_v (o, td__c_in (o, step, i)),
                   td__c_v (o, td__c_in (o, step, 3 + i)), td__c_v (o, y),
                   (const int64_t[]){ n, w->dim[2], w->dim[i] }, true);
      td__c_round (o, y);
    }
  td__c_call (o, text);
  td__c_operand (o, step, 0);
  td__c_operand (o, step, 1);
  P (o, "%s, %lld, %lld, %lld);\n", room, (long long)n, (long long)w->dim[0],
     (long long)w->dim[1]);
  add_product (o, room, td__c_v (o, td__c_in (o, step, 2)), td__c_v (o, y),
               (const int64_t[]){ n, w->dim[2], pairs }, and_linear);
  return NULL;
}

/* Of q, k, v, and, of the gradient, gy, y and the logarithms of sums; then a mask. */
static const char *
attention (TdCOut *o, const TdStep *step, const char *text)
{
  const bool back = strchr (text, '_') != NULL;
  const TdShape *q = td__c_shape (o, td__c_in (o, step, 0)),
                *k = td__c_shape (o, td__c_in (o, step, 1)),
                *v = td__c_shape (o, td__c_in (o, step, 2));
  const double scale = td__export_number (step, "scale", 0);
  const double every = td__export_number (step, "mask_every", 1);

  td__c_call (o, text);
  print_list (o, step, back ? 7 : 4);
  print_results (o, step);
  P (o, "(const long[]){ %lld, %lld, %lld, %lld, %lld, %lld }, ", (long long)q->dim[0],
     (long long)q->dim[1], (long long)k->dim[1], (long long)q->dim[2], (long long)v->dim[2],
     (long long)(every > 0 ? every : 1));
  td__c_number (o, scale != 0 ? scale : 1 / sqrt ((double)(q->dim[2] > 0 ? q->dim[2] : 1)),
                o->real);
  P (o, ", %d, %s);\n", td__export_number (step, "causal", 0) != 0,
     td__c_room (o, o->real, (back ? 2 : 1) * q->dim[1] * k->dim[1]));
  return NULL;
}

/* --- rows --- */

/* "kernel, argument", with all inputs, over an axis. */
static const char *
along_axis (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));
  char kernel[40];
  long long n[3];

  snprintf (kernel, sizeof kernel, "%.*s", (int)strcspn (text, ","), text);
  td__c_around (x, (int)td__export_number (step, "axis", 1), 1, n);
  td__c_call (o, kernel);
  print_operands (o, step, 0);
  print_results (o, step);
  P (o, "%lld, %lld, %lld%s);\n", n[0], n[1], n[2], strchr (text, ','));
  return NULL;
}

/* Sums so far over an axis, whole numbers modulo 2^64. */
static const char *
cumulative_sum (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t x = td__c_in (o, step, 0), y = td__c_out (o, step, 0);
  const TdDtype dtype = td__c_dtype (o, y);
  const bool whole = dtype != TD_F32 && dtype != TD_F64;
  long long n[3];

  (void)text;
  td__c_around (td__c_shape (o, x), (int)td__export_number (step, "axis", 1), 1, n);
  P (o,
     "  for (long i0 = 0; i0 < %lld; i0++)\n    for (long i1 = 0; i1 < %lld; i1++)\n      {\n"
     "        %s s = 0;\n\n        for (long i2 = 0; i2 < %lld; i2++)\n          {\n"
     "            const long at = (%lld * i0 + ",
     n[0], n[2], whole ? "uint64_t" : "double", n[1], n[1]);
  P (o, td__export_number (step, "reverse", 0) != 0 ? "%lld - i2" : "i2", n[1] - 1);
  P (o,
     ") * %lld + i1;\n\n            s += %s%s[at];\n            %s[at] = (%s)s;\n"
     "          }\n      }\n",
     n[2], whole ? "(uint64_t)" : "", td__c_v (o, x), td__c_v (o, y), td__c_type (dtype));
  return NULL;
}

/* Division by the length over axes that have others between them: lengths first. */
static void
unit_length_apart (TdCOut *o, const TdStep *step, uint32_t mask)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));
  int64_t kept[TD_MAX_DIMS], stride = 1;

  for (int d = x->ndim - 1; d >= 0; d--)
    {
      kept[d] = mask >> d & 1 ? 0 : stride;
      stride *= mask >> d & 1 ? 1 : x->dim[d];
    }
  td__c_call (o, "unit_length_apart");
  td__c_operand (o, step, 0);
  td__c_result (o, step, 0);
  P (o, ", %lld, %d, (const long[]){ ", (long long)td__size (x), x->ndim);
  for (int d = 0; d < x->ndim; d++)
    P (o, "%lld, ", (long long)x->dim[d]);
  P (o, "}, (const long[]){ ");
  for (int d = 0; d < x->ndim; d++)
    P (o, "%lld, ", (long long)kept[d]);
  P (o, "}, %lld, %s, ", (long long)stride, td__c_room (o, TD_F64, stride));
}

/* Axes that are neighbours are as one. */
static const char *
unit_length (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));
  const uint32_t mask = td__c_reduced (step, x->ndim);
  bool apart = false;
  long long n[3] = { 1, 1, 1 };
  int first = 0;

  while (first < x->ndim && !(mask >> first & 1))
    first++;
  for (int d = 0; d < x->ndim; d++)
    {
      apart = apart || (d > first && (mask >> d & 1) && !(mask >> (d - 1) & 1));
      n[d < first ? 0 : mask >> d & 1 ? 1 : 2] *= x->dim[d];
    }
  if (apart)
    unit_length_apart (o, step, mask);
  else
    {
      td__c_call (o, text);
      td__c_operand (o, step, 0);
      td__c_result (o, step, 0);
      P (o, ", %lld, %lld, %lld, ", n[0], n[1], n[2]);
    }
  td__c_number (o, td__export_number (step, "eps", 1e-5), o->real);
  P (o, ");\n");
  return NULL;
}

/* By moments of its own, by given ones, and the gradient of the first. */
static const char *
batch_normalization (TdCOut *o, const TdStep *step, const char *text)
{
  const bool back = strstr (text, "grad") != NULL;
  long long n[3];

  td__c_around (td__c_shape (o, td__c_in (o, step, 0)), 1, 1, n);
  td__c_call (o, text);
  for (uint32_t i = 0; i < 5; i++)
    td__c_operand (o, step, i);
  print_results (o, step);
  P (o, "%lld, %lld, %lld", n[0], n[1], n[2]);
  if (!back)
    P (o, ", %a", td__export_number (step, "eps", 2e-5));
  if (!back && step->n_out > 1)
    P (o, ", %a", td__export_number (step, "decay", 0.9));
  P (o, ");\n");
  return NULL;
}

/* "{ rows, groups, channels of a group, numbers of a channel }" of a normalisation of rows. */
static void
print_rows (TdCOut *o, const TdStep *step, bool in_groups)
{
  const long long groups = in_groups ? (long long)td__export_number (step, "groups", 1) : 1;
  long long n[3];

  td__c_around (td__c_shape (o, td__c_in (o, step, 0)), in_groups ? 1 : -1, 1, n);
  P (o, "(const long[]){ %lld, %lld, %lld, %lld }, ", n[0], groups, n[1] / groups, n[2]);
}

/* text: 'g' of groups, 'l' of layers, 'r' by the root mean square. */
static const char *
row_normalization (TdCOut *o, const TdStep *step, const char *text)
{
  td__c_call (o, "row_normalize");
  for (uint32_t i = 0; i < 3; i++)
    td__c_operand (o, step, i);
  td__c_result (o, step, 0);
  P (o, ", ");
  if (text[0] == 'r')
    P (o, "0");
  else
    td__c_result (o, step, 1);
  P (o, ", ");
  td__c_result (o, step, step->n_out - 1);
  P (o, ", ");
  print_rows (o, step, text[0] == 'g');
  P (o, "%a);\n", td__export_number (step, "eps", 1e-5));
  return NULL;
}

/* Of x, gamma, gy, the mean, which the root mean square has not, and 1 / deviation. */
static const char *
row_normalization_grad (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t gamma = td__c_in (o, step, 1);

  td__c_call (o, "row_normalize_grad");
  for (uint32_t i = 0; i < 3; i++)
    td__c_operand (o, step, i);
  if (text[0] == 'r')
    P (o, "0, ");
  print_operands (o, step, 3);
  print_results (o, step);
  if (text[0] == 'r')
    P (o, "0, ");
  print_rows (o, step, text[0] == 'g');
  P (o, "%s);\n", td__c_room (o, TD_F64, 2 * td__c_count (o, gamma)));
  return NULL;
}

static const char *
channel_window (TdCOut *o, const TdStep *step, const char *text)
{
  static const char power[] = "pow~ ($($(@alpha * b) + @k), -@beta)";
  const bool normalizes = text[0] == 'n';
  const uint32_t x = td__c_in (o, step, 0), y = td__c_out (o, step, 0);
  long long n[3];

  td__c_around (td__c_shape (o, x), 1, 1, n);
  td__c_call (o, "channel_window");
  P (o, "%s, %s, %lld, %lld, %lld, %lld, %d);\n", td__c_v (o, x), td__c_v (o, y), n[0], n[1],
     n[2], (long long)td__export_number (step, "n", 5) / 2, normalizes);
  if (!normalizes)
    return NULL;
  td__c_each (o, td__c_count (o, x));
  P (o, "{\n      const %s b = %s[i0];\n\n      %s[i0] = %s[i0] * ", td__c_type (o->real),
     td__c_v (o, y), td__c_v (o, y), td__c_v (o, x));
  td__c_text (o, step, "$(", 2, o->real, 0);
  td__c_text (o, step, power, sizeof power - 1, o->real, 0);
  P (o, ");\n    }\n");
  return NULL;
}

/* The gates of units (rows, u): of c and x, or, of the gradient, of three arrays more. */
static const char *
lstm (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *c = td__c_shape (o, td__c_in (o, step, 0)),
                *x = td__c_shape (o, td__c_in (o, step, 1));

  td__c_call (o, text);
  print_operands (o, step, 0);
  print_results (o, step);
  P (o, "%lld, %lld, %lld);\n", (long long)c->dim[0], (long long)x->dim[0],
     (long long)c->dim[1]);
  return NULL;
}

/* --- random numbers --- */

/* Note that a step draws, and where in the stream. */
static void
note_draw (TdCOut *o, const TdStep *step)
{
  TdRngKey key = { 0, 0 };

  if (step->attrs != NULL)
    memcpy (&key, step->attrs, sizeof key);
  o->draws = true;
  o->seed = key.seed;
  o->offset = key.offset - step->random_at;
}

void
td__c_draw (TdCOut *o, const TdStep *step, uint32_t y, int kind, double p)
{
  note_draw (o, step);
  td__c_call (o, "draw");
  P (o, "%d, random_seed, random_offset + %llu, %a, %s, %lld);\n", kind,
     (unsigned long long)step->random_at, p, td__c_v (o, y), td__c_count (o, y));
}

static const char *
dropout (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t x = td__c_in (o, step, 0), y = td__c_out (o, step, 0);

  (void)text;
  td__c_draw (o, step, y, TD_RANDOM_MASK, td__export_number (step, "ratio", 0.5));
  td__c_each (o, td__c_count (o, y));
  P (o, "%s[i0] *= %s[i0];\n", td__c_v (o, y), td__c_v (o, x));
  return NULL;
}

static const char *
random_like (TdCOut *o, const TdStep *step, const char *text)
{
  const char *kind = td__export_word (step, "distribution");
  const uint32_t y = td__c_out (o, step, 0);

  td__c_draw (o, step, y,
              strcmp (kind, "mask") == 0     ? TD_RANDOM_MASK
              : strcmp (kind, "normal") == 0 ? TD_RANDOM_NORMAL
                                             : TD_RANDOM_UNIFORM,
              td__export_number (step, "ratio", 0.5));
  if (strcmp (kind, "gumbel") != 0)
    return NULL;
  td__c_each (o, td__c_count (o, y));
  P (o, "%s[i0] = ", td__c_v (o, y));
  td__c_text (o, step, text, strlen (text), o->real, 0);
  P (o,
     o->real == TD_F64 ? "fmax (%s[i0], 0x1p-54)))))));\n"
                       : "fmaxf (%s[i0], 0x1p-25f)))))));\n",
     td__c_v (o, y));
  return NULL;
}

const TdCRow td__c_calls[] = {
  { "linear", linear, "linear" },
  { "matmul", matmul, "matmul" },
  { "batch_matmul", matmul, "matmul" },
  { "bilinear", bilinear, "products_of_pairs" },
  { "scaled_dot_product_attention", attention, "attention" },
  { "scaled_dot_product_attention_grad", attention, "attention_grad" },
  { "softmax", along_axis, "softmax, 0" },
  { "log_softmax", along_axis, "softmax, 1" },
  { "softmax_grad", along_axis, "softmax_grad, 0" },
  { "log_softmax_grad", along_axis, "softmax_grad, 1" },
  { "cumsum", cumulative_sum, NULL },
  { "normalize", unit_length, "unit_length" },
  { "batch_normalization", batch_normalization, "batch_normalize" },
  { "batch_normalization_grad", batch_normalization, "batch_normalize_grad" },
  { "fixed_batch_normalization", batch_normalization, "fixed_normalize" },
  { "layer_normalization", row_normalization, "layer" },
  { "group_normalization", row_normalization, "group" },
  { "rms_normalization", row_normalization, "rms" },
  { "layer_normalization_grad", row_normalization_grad, "layer" },
  { "group_normalization_grad", row_normalization_grad, "group" },
  { "rms_normalization_grad", row_normalization_grad, "rms" },
  { "local_response_normalization", channel_window, "normalize" },
  { "channel_window_sum", channel_window, "sum" },
  { "lstm", lstm, "lstm" },
  { "lstm_grad", lstm, "lstm_grad" },
  { "dropout", dropout, NULL },
  { "random_like", random_like, "-$(log~ ($(-$(log~ ($(" },
  { 0 },
};
