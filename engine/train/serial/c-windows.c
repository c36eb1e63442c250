/* Operations of a C program that go over windows of pictures: convolutions, poolings, pictures
 * in another size.
 *
 * SPDX-License-Identifier: MIT */
#include "c-out.h"

#include <stdio.h>
#include <string.h>

#define P TD_C_PRINT

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

/* Is there more than the structure of the usual kernels has room for? */
static bool
has_many_axes (const TdShape *image)
{
  return image->ndim > 2 + MOST_AXES;
}

/* The begin of a call: kernels over more axes are others. */
static void
window_call (TdCOut *o, const TdShape *image, const char *kernel)
{
  char name[64];

  snprintf (name, sizeof name, "%s%s", kernel, has_many_axes (image) ? "_many" : "");
  td__c_call (o, name);
}

/* "&(const windows){ ... }": those over image that give `many`; size of shape k, or attribute
 * ksize.  Returns how many numbers all windows of a channel have. */
static int64_t
print_windows (TdCOut *o, const TdStep *step, const TdShape *image, const TdShape *many,
               const TdShape *k)
{
  const int ndim = image->ndim - 2;
  const int first = has_many_axes (image) ? 0 : ndim - MOST_AXES;
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
  if (has_many_axes (image))
    P (o, "&(const many_windows){ %d, ", ndim);
  else
    P (o, "&(const windows){ ");
  for (int row = 0; row < 6; row++)
    {
      P (o, "{ ");
      for (int i = first; i < ndim; i++)
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

  window_call (o, x, text);
  for (uint32_t i = 0; i < 3; i++)
    td__c_operand (o, step, i);
  td__c_result (o, step, 0);
  P (o, ", %lld, %lld, %lld, %lld, ", (long long)x->dim[0], (long long)x->dim[1],
     (long long)y->dim[1], (long long)groups);
  numbers = print_windows (o, step, transposed ? y : x, transposed ? x : y, w);
  numbers *= (transposed ? y : x)->dim[1] / groups;
  if (!transposed && groups == 1) /* the kernel may take the whole batch at once */
    numbers = numbers * x->dim[0] + td__size (y);
  P (o, ", %s);\n", td__c_room (o, o->real, numbers));
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

  window_call (o, x, text);
  td__c_operand (o, step, 0);
  td__c_operand (o, step, 1);
  td__c_result (o, step, 0);
  P (o, ", %lld, %lld, %lld, %lld, ", (long long)x->dim[0], (long long)x->dim[1],
     (long long)gy->dim[1], (long long)groups);
  numbers = print_windows (o, step, x, gy, w);
  P (o, ", %s);\n", td__c_room (o, o->real, x->dim[1] / groups * numbers));
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
  char kernel[40];

  if (td__export_number (step, "pad_value", 0) == (double)TD_NONE)
    by = ", 2";
  snprintf (kernel, sizeof kernel, "%.*s", (int)strcspn (text, ","), text);
  window_call (o, x, kernel);
  td__c_operand (o, step, 0);
  td__c_result (o, step, 0);
  P (o, ", %lld, ", (long long)(x->dim[0] * x->dim[1]));
  print_windows (o, step, back ? y : x, back ? x : y, NULL);
  P (o, "%s);\n", by);
  return NULL;
}

/* The places of the largest, as int32_t for the kernels: a loop from one array to another. */
static void
print_places (TdCOut *o, uint32_t places, const char *to, const char *from)
{
  td__c_each (o, td__c_count (o, places));
  P (o, "%s[i0] = (%s)%s[i0];\n", to,
     to[0] == 'v' ? td__c_type (td__c_dtype (o, places)) : "int32_t", from);
}

static const char *
max_pooling (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t places = td__c_out (o, step, 1);
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0)),
                *y = td__c_shape (o, td__c_out (o, step, 0));
  const bool wanted = td__export_is_used (o->s, places);
  char index[32];

  snprintf (index, sizeof index, "index%u", o->n_scratch);
  if (wanted)
    P (o, "  static int32_t %s[%lld];\n\n", index,
       td__c_count (o, places) > 0 ? td__c_count (o, places) : 1);
  window_call (o, x, text);
  td__c_operand (o, step, 0);
  td__c_result (o, step, 0);
  P (o, ", %s, %lld, ", wanted ? index : "0", (long long)(x->dim[0] * x->dim[1]));
  print_windows (o, step, x, y, NULL);
  P (o, ");\n");
  if (wanted)
    print_places (o, places, td__c_v (o, places), index);
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
  const char *const type = td__c_type (o->real);
  char index[32];

  snprintf (index, sizeof index, "index%u", o->n_scratch++);
  P (o, "  static int32_t %s[%lld];\n\n", index,
     td__c_count (o, places) > 0 ? td__c_count (o, places) : 1);
  print_places (o, places, index, td__c_v (o, places));
  if (!gathers)
    td__c_fill (o, out, 0);
  window_call (o, many, "max_places");
  P (o, "%s, (%s *)%s, (%s *)%s, %lld, ", index, type, td__c_v (o, gathers ? out : in), type,
     td__c_v (o, gathers ? in : out), (long long)(many->dim[0] * many->dim[1]));
  print_windows (o, step, image, many, NULL);
  P (o, ", %d);\n", gathers);
  return NULL;
}

/* --- pictures in another size --- */

/* "x, y, planes, (const long[]){ n }, (const long[]){ m }": n, m are sizes of the larger side
 * and of what windows give, which is x where text goes back. */
static void
print_images (TdCOut *o, const TdStep *step, bool back)
{
  const uint32_t in = td__c_in (o, step, 0), out = td__c_out (o, step, 0);
  const TdShape *n = td__c_shape (o, back ? out : in), *m = td__c_shape (o, back ? in : out);

  P (o, "%s, %s, %lld, (const long[]){ %lld, %lld }, (const long[]){ %lld, %lld }",
     td__c_v (o, in), td__c_v (o, out), (long long)(n->dim[0] * n->dim[1]),
     (long long)n->dim[2], (long long)n->dim[3], (long long)m->dim[2], (long long)m->dim[3]);
}

static const char *
adaptive_pooling (TdCOut *o, const TdStep *step, const char *text)
{
  td__c_call (o, text);
  print_images (o, step, strstr (text, "grad") != NULL);
  P (o, ");\n");
  return NULL;
}

/* Which places a pixel is made of: 0 corners are aligned, 1 they are not, 2 the nearest. */
static int
resizes_how (const TdStep *step)
{
  return strcmp (td__export_word (step, "mode"), "nearest") == 0 ? 2
         : td__export_number (step, "align_corners", 1) != 0     ? 0
                                                                 : 1;
}

static const char *
resize (TdCOut *o, const TdStep *step, const char *text)
{
  td__c_call (o, text);
  print_images (o, step, false);
  P (o, ", %d);\n", resizes_how (step));
  return NULL;
}

/* One corner after the other. */
static const char *
resize_grad (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t y = td__c_out (o, step, 0);
  const int how = resizes_how (step);

  td__c_fill (o, y, 0);
  for (int corner = 0; corner < (how == 2 ? 1 : 4); corner++)
    {
      td__c_call (o, text);
      print_images (o, step, true);
      P (o, ", %d, %d);\n", how, corner);
      td__c_round (o, y);
    }
  return NULL;
}

/* The windows of a picture as channels. */
static const char *
im2col (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0)),
                *y = td__c_shape (o, td__c_out (o, step, 0));

  td__c_call (o, text);
  td__c_operand (o, step, 0);
  P (o, "%lld, ", (long long)(x->dim[0] * x->dim[1]));
  print_windows (o, step, x, y, NULL);
  P (o, ", ");
  td__c_result (o, step, 0);
  P (o, ", %lld);\n", (long long)(y->dim[2] * y->dim[3]));
  return NULL;
}

static const char *
im2col_grad (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0)),
                *y = td__c_shape (o, td__c_out (o, step, 0));

  td__c_fill (o, td__c_out (o, step, 0), 0);
  td__c_call (o, text);
  td__c_operand (o, step, 0);
  P (o, "%lld, ", (long long)(y->dim[0] * y->dim[1]));
  print_windows (o, step, y, x, NULL);
  P (o, ", ");
  td__c_result (o, step, 0);
  P (o, ");\n");
  return NULL;
}

const TdCRow td__c_windows[] = {
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
  { "adaptive_average_pooling_2d", adaptive_pooling, "adaptive_pooling" },
  { "adaptive_average_pooling_2d_grad", adaptive_pooling, "adaptive_pooling_grad" },
  { "resize_images", resize, "resize" },
  { "resize_images_grad", resize_grad, "resize_grad" },
  { "im2col", im2col, "unfold" },
  { "im2col_grad", im2col_grad, "fold" },
  { 0 },
};
