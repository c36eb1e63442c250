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

      P (o, "  for (long i0 = 0; i0 < %lld; i0++)\n    index%u[%lld + i0] = v%u[i0];\n",
         td__c_count (o, node), o->n_scratch, all, td__c_value (o, node));
      all += td__c_count (o, node);
    }
  o->n_scratch++;
}

static uint32_t
value_in (const TdCOut *o, const TdStep *step, uint32_t i)
{
  return td__c_value (o, td__c_in (o, step, i));
}

static uint32_t
value_out (const TdCOut *o, const TdStep *step, uint32_t i)
{
  return td__c_value (o, td__c_out (o, step, i));
}

/* Sizes of x around the axes that n indices are for: outer, rows, inner. */
static void
around (const TdShape *x, int axis, int n, long long size[3])
{
  axis += axis < 0 ? x->ndim : 0;
  size[0] = size[1] = size[2] = 1;
  for (int d = 0; d < x->ndim; d++)
    size[d < axis ? 0 : d < axis + n ? 1 : 2] *= x->dim[d];
}

static const char *
embed (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *w = td__c_shape (o, td__c_in (o, step, 1));

  (void)text;
  print_indices (o, step, 0, 1);
  P (o, "  gather (v%u, index%u, v%u, 1, %lld, %lld, %lld * sizeof (float));\n",
     value_in (o, step, 1), o->n_scratch - 1, value_out (o, step, 0), (long long)w->dim[0],
     td__c_count (o, td__c_in (o, step, 0)), (long long)w->dim[1]);
  return NULL;
}

static const char *
embed_grad (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *w = td__c_shape (o, td__c_out (o, step, 0));

  (void)text;
  print_indices (o, step, 0, 1);
  td__c_fill (o, td__c_out (o, step, 0), 0);
  P (o, "  scatter (v%u, index%u, v%u, 1, %lld, %lld, %lld);\n", value_in (o, step, 1),
     o->n_scratch - 1, value_out (o, step, 0), (long long)w->dim[0],
     td__c_count (o, td__c_in (o, step, 0)), (long long)w->dim[1]);
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
  around (x, axis, (int)n, size);
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
      P (o, "  gather (v%u, index%u, v%u, %lld, %lld, %lld, %lld * sizeof *v%u);\n",
         value_in (o, step, 0), o->n_scratch - 1, value_out (o, step, 0), size[0], size[1], m,
         size[2], value_in (o, step, 0));
      return NULL;
    }
  if (td__c_dtype (o, whole) != TD_F32)
    return "of whole numbers";
  if (text[0] == 'g')
    td__c_fill (o, whole, 0);
  else
    P (o, "  memcpy (v%u, v%u, %lld * sizeof (float));\n", value_out (o, step, 0),
       value_in (o, step, 0), td__c_count (o, whole));
  P (o, "  scatter (v%u, index%u, v%u, %lld, %lld, %lld, %lld);\n",
     value_in (o, step, first - 1), o->n_scratch - 1, value_out (o, step, 0), size[0], size[1],
     m, size[2]);
  return NULL;
}

/* y[i] = x[i, t[i]], or the opposite. */
static const char *
select_item (TdCOut *o, const TdStep *step, const char *text)
{
  const bool back = text[0] == 'g';
  const uint32_t t = back ? 0 : 1;
  const TdShape *x = td__c_shape (o, back ? td__c_out (o, step, 0) : td__c_in (o, step, 0));

  print_indices (o, step, t, 1);
  if (back)
    td__c_fill (o, td__c_out (o, step, 0), 0);
  P (o, "  for (long i0 = 0; i0 < %lld; i0++)\n    ", (long long)x->dim[0]);
  if (!back)
    P (o, "v%u[i0] = ", value_out (o, step, 0));
  P (o, "v%u[%lld * i0 + within (index%u[i0], %lld)]",
     back ? value_out (o, step, 0) : value_in (o, step, 0), (long long)x->dim[1],
     o->n_scratch - 1, (long long)x->dim[1]);
  if (back)
    P (o, " = v%u[i0]", value_in (o, step, 1));
  P (o, ";\n");
  return NULL;
}

static const char *
one_hot (TdCOut *o, const TdStep *step, const char *text)
{
  const long long n = (long long)td__export_number (step, "n_classes", 0);

  (void)text;
  print_indices (o, step, 0, 1);
  td__c_fill (o, td__c_out (o, step, 0), 0);
  P (o,
     "  for (long i0 = 0; i0 < %lld; i0++)\n    v%u[%lld * i0 + within (index%u[i0], %lld)] = "
     "1;\n",
     td__c_count (o, td__c_in (o, step, 0)), value_out (o, step, 0), n, o->n_scratch - 1, n);
  return NULL;
}

/* --- losses --- */

static int
each (const TdStep *step)
{
  return td__export_number (step, "reduce", 0) != 0;
}

/* Rows, classes, and places of a row, of x. */
static void
rows_of (const TdShape *x, long long n[3])
{
  around (x, 1, 1, n);
}

static const char *
cross_entropy (TdCOut *o, const TdStep *step, const char *text)
{
  long long n[3];

  (void)text;
  rows_of (td__c_shape (o, td__c_in (o, step, 0)), n);
  print_indices (o, step, 1, 1);
  P (o, "  cross_entropy (v%u, index%u, ", value_in (o, step, 0), o->n_scratch - 1);
  if (step->n_in > 2)
    P (o, "v%u", value_in (o, step, 2));
  else
    P (o, "0");
  P (o, ", v%u, v%u, %lld, %lld, %lld, %lld, %d, %d);\n", value_out (o, step, 0),
     value_out (o, step, 1), n[0], n[1], n[2],
     (long long)td__export_number (step, "ignore_label", -1),
     td__export_number (step, "normalize", 1) != 0, each (step));
  return NULL;
}

static const char *
sigmoid_entropy (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));
  const bool by_count = td__export_number (step, "normalize", 1) != 0;

  (void)text;
  print_indices (o, step, 1, 1);
  P (o, "  sigmoid_entropy (v%u, index%u, v%u, %lld, %lld, %d);\n", value_in (o, step, 0),
     o->n_scratch - 1, value_out (o, step, 0), (long long)td__size (x),
     by_count                       ? 0LL
     : x->ndim > 0 && x->dim[0] > 1 ? (long long)x->dim[0]
                                    : 1LL,
     each (step));
  return NULL;
}

static const char *
hinge (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));

  (void)text;
  print_indices (o, step, 1, 1);
  P (o, "  hinge (v%u, index%u, v%u, %lld, %lld, %d, %d);\n", value_in (o, step, 0),
     o->n_scratch - 1, value_out (o, step, 0), (long long)x->dim[0], (long long)x->dim[1],
     strcmp (td__export_word (step, "norm"), "L1") != 0, each (step));
  return NULL;
}

static const char *
accuracy (TdCOut *o, const TdStep *step, const char *text)
{
  int64_t ignored[1] = { -1 };
  const int n_ignored = td__export_ints (step, "ignore_label", ignored, 1);
  long long n[3];

  (void)text;
  rows_of (td__c_shape (o, td__c_in (o, step, 0)), n);
  print_indices (o, step, 1, 1);
  P (o, "  right_share (v%u, index%u, v%u, %lld, %lld, %lld, %lld, %d);\n",
     value_in (o, step, 0), o->n_scratch - 1, value_out (o, step, 0), n[0], n[1], n[2],
     (long long)ignored[0], n_ignored > 0);
  return NULL;
}

static const char *
binary_accuracy (TdCOut *o, const TdStep *step, const char *text)
{
  (void)text;
  print_indices (o, step, 1, 1);
  P (o, "  binary_share (v%u, index%u, v%u, %lld);\n", value_in (o, step, 0), o->n_scratch - 1,
     value_out (o, step, 0), td__c_count (o, td__c_in (o, step, 0)));
  return NULL;
}

const TdCRow td__c_losses[] = {
  { "embed_id", embed, NULL },
  { "embed_id_grad", embed_grad, NULL },
  { "get_item_arrays", indexed, "read" },
  { "get_item_arrays_grad", indexed, "gradient" },
  { "scatter_add_arrays", indexed, "add" },
  { "select_item", select_item, "read" },
  { "select_item_grad", select_item, "gradient" },
  { "one_hot", one_hot, NULL },
  { "softmax_cross_entropy", cross_entropy, NULL },
  { "sigmoid_cross_entropy", sigmoid_entropy, NULL },
  { "hinge", hinge, NULL },
  { "accuracy", accuracy, NULL },
  { "binary_accuracy", binary_accuracy, NULL },
  { 0 },
};
