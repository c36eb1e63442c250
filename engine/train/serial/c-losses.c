/* Operations of a C program that go by indices or labels: embeddings, selections, losses.
 *
 * Indices come in any of three types: the kernels get them as int64_t.
 *
 * SPDX-License-Identifier: MIT */
#include "c-out.h"

#include <string.h>

#define P TD_C_PRINT

/* Indices as int64_t, copied where they are not; behind others of a call, from `at` on. */
static void
print_indices (TdCOut *o, const TdStep *step, uint32_t first, uint32_t n)
{
  long long all = 0;

  for (uint32_t k = 0; k < n; k++)
    all += td__c_count (o, td__c_in (o, step, first + k));
  P (o, "  static int64_t index%u[%lld];\n\n", o->n_scratch, all > 0 ? all : 1);
  all = 0;
  for (uint32_t k = 0; k < n; k++)
    {
      const uint32_t node = td__c_in (o, step, first + k);

      td__c_each (o, td__c_count (o, node));
      P (o, "index%u[%lld + i0] = %s[i0];\n", o->n_scratch, all, td__c_v (o, node));
      all += td__c_count (o, node);
    }
  o->n_scratch++;
}

static const char *
in_of (TdCOut *o, const TdStep *step, uint32_t i)
{
  return td__c_v (o, td__c_in (o, step, i));
}

static const char *
out_of (TdCOut *o, const TdStep *step, uint32_t i)
{
  return td__c_v (o, td__c_out (o, step, i));
}

/* The begin of a call with input 0 and the labels of input 1. */
static void
labelled_call (TdCOut *o, const TdStep *step, const char *kernel)
{
  print_indices (o, step, 1, 1);
  td__c_call (o, kernel);
  P (o, "%s, index%u, ", in_of (o, step, 0), o->n_scratch - 1);
}

static const char *
embed (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *w = td__c_shape (o, td__c_in (o, step, 1));

  (void)text;
  print_indices (o, step, 0, 1);
  P (o, "  gather (%s, index%u, %s, 1, %lld, %lld, %lld * sizeof *%s);\n", in_of (o, step, 1),
     o->n_scratch - 1, out_of (o, step, 0), (long long)w->dim[0],
     td__c_count (o, td__c_in (o, step, 0)), (long long)w->dim[1], in_of (o, step, 1));
  return NULL;
}

static const char *
embed_grad (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *w = td__c_shape (o, td__c_out (o, step, 0));

  (void)text;
  print_indices (o, step, 0, 1);
  td__c_fill (o, td__c_out (o, step, 0), 0);
  td__c_call (o, "scatter");
  P (o, "%s, index%u, %s, 1, %lld, %lld, %lld);\n", in_of (o, step, 1), o->n_scratch - 1,
     out_of (o, step, 0), (long long)w->dim[0], td__c_count (o, td__c_in (o, step, 0)),
     (long long)w->dim[1]);
  return NULL;
}

/* x[..., index, ...] with an index for each of several axes; text: 'r' reads, 'g' writes into
 * zeros, 'a' adds to a copy of input 0. */
static const char *
indexed (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t first = text[0] == 'a' ? 2 : 1, n = step->n_in - first;
  const uint32_t whole = text[0] == 'g' ? td__c_out (o, step, 0) : td__c_in (o, step, 0);
  const TdShape *x = td__c_shape (o, whole);
  int axis = (int)td__export_number (step, "axis", 0);
  const long long m = td__c_count (o, td__c_in (o, step, first));
  long long size[3];

  axis += axis < 0 ? x->ndim : 0;
  td__c_around (x, axis, (int)n, size);
  print_indices (o, step, first, n);
  if (n > 1)
    {
      P (o, "  places (index%u, (const long[]){ ", o->n_scratch - 1);
      for (uint32_t k = 0; k < n; k++)
        P (o, "%lld%s", (long long)x->dim[axis + (int)k], k + 1 < n ? ", " : " }, ");
      P (o, "%u, %lld, index%u);\n", n, m, o->n_scratch - 1);
    }
  if (text[0] == 'r')
    {
      P (o, "  gather (%s, index%u, %s, %lld, %lld, %lld, %lld * sizeof *%s);\n",
         in_of (o, step, 0), o->n_scratch - 1, out_of (o, step, 0), size[0], size[1], m,
         size[2], in_of (o, step, 0));
      return NULL;
    }
  if (td__c_dtype (o, whole) != o->real)
    return "of whole numbers";
  if (text[0] == 'g')
    td__c_fill (o, whole, 0);
  else
    P (o, "  memcpy (%s, %s, %lld * sizeof *%s);\n", out_of (o, step, 0), in_of (o, step, 0),
       td__c_count (o, whole), in_of (o, step, 0));
  td__c_call (o, "scatter");
  P (o, "%s, index%u, %s, %lld, %lld, %lld, %lld);\n", in_of (o, step, first - 1),
     o->n_scratch - 1, out_of (o, step, 0), size[0], size[1], m, size[2]);
  return NULL;
}

/* y[i] = x[i, t[i]], or the opposite. */
static const char *
select_item (TdCOut *o, const TdStep *step, const char *text)
{
  const bool back = text[0] == 'g';
  const uint32_t t = back ? 0 : 1;
  const uint32_t whole = back ? td__c_out (o, step, 0) : td__c_in (o, step, 0);
  const TdShape *x = td__c_shape (o, whole);

  print_indices (o, step, t, 1);
  if (back)
    td__c_fill (o, whole, 0);
  td__c_each (o, (long long)x->dim[0]);
  if (!back)
    P (o, "%s[i0] = ", out_of (o, step, 0));
  P (o, "%s[%lld * i0 + within (index%u[i0], %lld)]", td__c_v (o, whole), (long long)x->dim[1],
     o->n_scratch - 1, (long long)x->dim[1]);
  if (back)
    P (o, " = %s[i0]", in_of (o, step, 1));
  P (o, ";\n");
  return NULL;
}

static const char *
one_hot (TdCOut *o, const TdStep *step, const char *text)
{
  const long long n = (long long)td__export_number (step, "n_classes", 0);
  const uint32_t y = td__c_out (o, step, 0);

  (void)text;
  print_indices (o, step, 0, 1);
  td__c_fill (o, y, 0);
  td__c_each (o, td__c_count (o, td__c_in (o, step, 0)));
  P (o, "%s[%lld * i0 + within (index%u[i0], %lld)] = ", td__c_v (o, y), n, o->n_scratch - 1,
     n);
  td__c_number (o, 1, td__c_dtype (o, y));
  P (o, ";\n");
  return NULL;
}

/* --- losses --- */

static int
each (const TdStep *step)
{
  return td__export_number (step, "reduce", 0) != 0;
}

/* "v3, ", or "0, " where there is none, and rows, classes and places of a row of x. */
static void
weight_and_rows (TdCOut *o, const TdStep *step, uint32_t weight, uint32_t x)
{
  long long n[3];

  td__c_around (td__c_shape (o, td__c_in (o, step, x)), 1, 1, n);
  td__c_operand (o, step, weight);
  P (o, "%lld, %lld, %lld, ", n[0], n[1], n[2]);
}

/* The attributes of softmax cross entropy. */
static void
print_share (TdCOut *o, const TdStep *step)
{
  P (o, "%lld, %d, %d);\n", (long long)td__export_number (step, "ignore_label", -1),
     td__export_number (step, "normalize", 1) != 0, each (step));
}

static const char *
cross_entropy (TdCOut *o, const TdStep *step, const char *text)
{
  (void)text;
  labelled_call (o, step, "cross_entropy");
  P (o, "%s, %s, ", out_of (o, step, 0), out_of (o, step, 1));
  weight_and_rows (o, step, 2, 0);
  print_share (o, step);
  return NULL;
}

static const char *
cross_entropy_grad (TdCOut *o, const TdStep *step, const char *text)
{
  (void)text;
  labelled_call (o, step, "cross_entropy_grad");
  P (o, "%s, %s, ", in_of (o, step, 2), out_of (o, step, 0));
  weight_and_rows (o, step, 3, 0);
  print_share (o, step);
  return NULL;
}

/* What each label weighs. */
static const char *
cross_entropy_rows (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *t = td__c_shape (o, td__c_in (o, step, 0));

  (void)text;
  print_indices (o, step, 0, 1);
  td__c_call (o, "cross_entropy_rows");
  P (o, "index%u, ", o->n_scratch - 1);
  td__c_operand (o, step, 1);
  P (o, "%s, %lld, %lld, %lld, ", out_of (o, step, 0), (long long)t->dim[0],
     step->n_in > 1 ? td__c_count (o, td__c_in (o, step, 1)) : -1,
     t->dim[0] > 0 ? (long long)(td__size (t) / t->dim[0]) : 1);
  print_share (o, step);
  return NULL;
}

/* How many rows a sum is divided by: those of x, or 0, which are those that count. */
static long long
rows_of (TdCOut *o, const TdStep *step)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));

  return td__export_number (step, "normalize", 1) != 0 ? 0LL
         : x->ndim > 0 && x->dim[0] > 1                ? (long long)x->dim[0]
                                                       : 1LL;
}

/* Of x and t, and of the loss's gradient. */
static const char *
sigmoid_entropy (TdCOut *o, const TdStep *step, const char *text)
{
  labelled_call (o, step, text);
  if (step->n_in > 2)
    td__c_operand (o, step, 2);
  P (o, "%s, %lld, %lld, %d);\n", out_of (o, step, 0), td__c_count (o, td__c_in (o, step, 0)),
     rows_of (o, step), each (step));
  return NULL;
}

static const char *
hinge (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));

  (void)text;
  labelled_call (o, step, "hinge");
  P (o, "%s, %lld, %lld, %d, %d);\n", out_of (o, step, 0), (long long)x->dim[0],
     (long long)x->dim[1], strcmp (td__export_word (step, "norm"), "L1") != 0, each (step));
  return NULL;
}

static const char *
hinge_signs (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));
  const uint32_t y = td__c_out (o, step, 0);
  const long long c = (long long)x->dim[1];

  (void)text;
  print_indices (o, step, 1, 1);
  td__c_fill (o, y, 1);
  td__c_each (o, (long long)x->dim[0]);
  P (o, "%s[%lld * i0 + within (index%u[i0], %lld)] = ", td__c_v (o, y), c, o->n_scratch - 1,
     c);
  td__c_number (o, -1, td__c_dtype (o, y));
  P (o, ";\n");
  return NULL;
}

static const char *
accuracy (TdCOut *o, const TdStep *step, const char *text)
{
  int64_t ignored[1] = { -1 };
  const int n_ignored = td__export_ints (step, "ignore_label", ignored, 1);
  long long n[3];

  (void)text;
  td__c_around (td__c_shape (o, td__c_in (o, step, 0)), 1, 1, n);
  labelled_call (o, step, "right_share");
  P (o, "%s, %lld, %lld, %lld, %lld, %d);\n", out_of (o, step, 0), n[0], n[1], n[2],
     (long long)ignored[0], n_ignored > 0);
  return NULL;
}

static const char *
binary_accuracy (TdCOut *o, const TdStep *step, const char *text)
{
  (void)text;
  labelled_call (o, step, "binary_share");
  P (o, "%s, %lld);\n", out_of (o, step, 0), td__c_count (o, td__c_in (o, step, 0)));
  return NULL;
}

const TdCRow td__c_losses[] = {
  { "embed_id", embed, NULL, .in_halves = true },
  { "embed_id_grad", embed_grad, NULL },
  { "get_item_arrays", indexed, "read", .in_halves = true },
  { "get_item_arrays_grad", indexed, "gradient" },
  { "scatter_add_arrays", indexed, "add" },
  { "select_item", select_item, "read", .in_halves = true },
  { "select_item_grad", select_item, "gradient", .in_halves = true },
  { "one_hot", one_hot, NULL, .in_halves = true },
  { "softmax_cross_entropy", cross_entropy, NULL },
  { "softmax_cross_entropy_grad", cross_entropy_grad, NULL },
  { "softmax_cross_entropy_rows", cross_entropy_rows, NULL },
  { "sigmoid_cross_entropy", sigmoid_entropy, "sigmoid_entropy" },
  { "sigmoid_cross_entropy_grad", sigmoid_entropy, "sigmoid_entropy_grad" },
  { "hinge", hinge, NULL },
  { "hinge_signs", hinge_signs, NULL, .in_halves = true },
  { "accuracy", accuracy, NULL },
  { "binary_accuracy", binary_accuracy, NULL },
  { 0 },
};
