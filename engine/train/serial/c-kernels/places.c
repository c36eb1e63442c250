/* The text of what goes by indices and labels, for C programs: see products.c.
 *
 * SPDX-License-Identifier: MIT */
#include "c-kernels.h"

/* Was an index out of range?  It stood for 0 then. */
static int out_of_range;

/* An index that is below n. */
static long
within (int64_t index, long n)
{
  if (index >= 0 && index < n)
    return (long)index;
  out_of_range = 1;
  return 0;
}

/* Rows of x (outer, n, inner) by their places: y (outer, m, inner), elements of `bytes`. */
static void
gather (const void *x, const int64_t *index, void *y, long outer, long n, long m, size_t bytes)
{
  for (long o = 0; o < outer; o++)
    for (long i = 0; i < m; i++)
      memcpy ((char *)y + (size_t)(o * m + i) * bytes,
              (const char *)x + (size_t)(o * n + within (index[i], n)) * bytes, bytes);
}

/* Rows of b (outer, m, inner) added to y (outer, n, inner) at places. */
static void
scatter (const float *b, const int64_t *index, float *y, long outer, long n, long m, long inner)
{
  for (long o = 0; o < outer; o++)
    for (long i = 0; i < m; i++)
      {
        const long row = o * n + within (index[i], n);

        for (long k = 0; k < inner; k++)
          y[row * inner + k] += b[(o * m + i) * inner + k];
      }
}

/* The place that indices of k axes stand for, the first in i[0 .. m), the next behind it; `to`
 * may be i. */
static void
places (const int64_t *i, const long *dims, long k, long m, int64_t *to)
{
  for (long j = 0; j < m; j++)
    {
      long place = 0;

      for (long d = 0; d < k; d++)
        place = place * dims[d] + within (i[d * m + j], dims[d]);
      to[j] = place;
    }
}

/* Softmax cross entropy of x (n, c, inner) and labels (n, inner): the mean, or each if `each`;
 * y is softmax (x).  Labels that are `ignore` count nothing; weight may be 0. */
static void
cross_entropy (const float *x, const int64_t *t, float *loss, float *y, const float *weight,
               long n, long c, long inner, int64_t ignore, int normalize, int each)
{
  double total = 0;
  long counted = 0;

  for (long i = 0; i < n * inner; i++)
    {
      const long at = i / inner * c * inner + i % inner;
      const float *a = x + at;
      float *b = y + at, top = -INFINITY;
      double sum = 0, row = 0;

      for (long k = 0; k < c; k++)
        top = a[k * inner] > top ? a[k * inner] : top;
      for (long k = 0; k < c; k++)
        {
          b[k * inner] = expf (a[k * inner] - top);
          sum += b[k * inner];
        }
      for (long k = 0; k < c; k++)
        b[k * inner] /= (float)sum;
      if (t[i] != ignore)
        {
          const long label = within (t[i], c);

          row = (log (sum) - (a[label * inner] - top)) * (weight != 0 ? weight[label] : 1);
          counted++;
        }
      total += row;
      if (each)
        loss[i] = (float)row;
    }
  counted = normalize ? counted : n;
  if (!each)
    loss[0] = (float)(total / (double)(counted > 1 ? counted : 1));
}

/* What a row of n is in the loss, if not each is one: by the labels that are not `ignore`, or
 * by n. */
static double
share_of_row (const int64_t *t, long n, long inner, int64_t ignore, int normalize, int each)
{
  long counted = normalize ? 0 : n;

  for (long i = 0; normalize && i < n * inner; i++)
    counted += t[i] != ignore;
  return each || counted < 1 ? 1 : 1 / (double)counted;
}

/* The gradient of cross_entropy, of its y and the loss's gradient. */
static void
cross_entropy_grad (const float *y, const int64_t *t, const float *gloss, float *gx,
                    const float *weight, long n, long c, long inner, int64_t ignore,
                    int normalize, int each)
{
  const double share = share_of_row (t, n, inner, ignore, normalize, each);

  for (long i = 0; i < n * inner; i++)
    {
      const long at = i / inner * c * inner + i % inner;
      const long label = t[i] != ignore ? within (t[i], c) : 0;
      const float scale
          = (float)(gloss[each ? i : 0] * share * (weight != 0 ? weight[label] : 1));

      for (long k = 0; k < c; k++)
        gx[at + k * inner]
            = t[i] == ignore ? 0 : (y[at + k * inner] - (float)(k == label)) * scale;
    }
}

/* What each row (n, inner) is in the loss, by the weights of c labels, if there are any. */
static void
cross_entropy_rows (const int64_t *t, const float *weight, float *y, long n, long c, long inner,
                    int64_t ignore, int normalize, int each)
{
  const double share = share_of_row (t, n, inner, ignore, normalize, each);

  for (long i = 0; i < n * inner; i++)
    y[i] = (float)(t[i] == ignore ? 0 : share * (weight != 0 ? weight[within (t[i], c)] : 1));
}

/* The mean over labels 0 and 1 of t that are not -1, or over `by` if that is not 0, of the
 * sigmoid's cross entropy; each if `each`. */
static void
sigmoid_entropy (const float *x, const int64_t *t, float *loss, long n, double by, int each)
{
  double total = 0;
  long counted = 0;

  for (long i = 0; i < n; i++)
    {
      const long label = t[i] == -1 ? 0 : within (t[i], 2);
      const float row = ROUND (t[i] == -1 ? 0
                                          : (x[i] > 0 ? x[i] : 0) - x[i] * (float)label
                                                + log1pf (expf (-fabsf (x[i]))));

      total += row;
      counted += t[i] != -1;
      if (each)
        loss[i] = row;
    }
  counted = counted > 1 ? counted : 1;
  if (!each)
    loss[0] = ROUND ((float)total) / (by != 0 ? (float)by : ROUND ((float)counted));
}

/* Its gradient. */
static void
sigmoid_entropy_grad (const float *x, const int64_t *t, const float *gloss, float *gx, long n,
                      double by, int each)
{
  long counted = 0;
  float share;

  for (long i = 0; i < n; i++)
    counted += t[i] != -1;
  counted = counted > 1 ? counted : 1;
  share = ROUND (gloss[0] / (by != 0 ? (float)by : ROUND ((float)counted)));
  for (long i = 0; i < n; i++)
    {
      const long label = t[i] == -1 ? 0 : within (t[i], 2);
      const float row = ROUND (t[i] == -1 ? 0 : 1 / (1 + expf (-x[i])) - (float)label);

      gx[i] = row * (each ? gloss[i] : share);
    }
}

/* max (1 + s x, 0), squared if `squared`, s = -1 at the label of a row of x (n, c), else 1: the
 * sum over a row's mean, or each. */
static void
hinge (const float *x, const int64_t *t, float *loss, long n, long c, int squared, int each)
{
  double total = 0;

  for (long i = 0; i < n * c; i++)
    {
      const float s = i % c == within (t[i / c], c) ? -x[i] : x[i];
      const float high = 1 + s <= 0 ? 0 : ROUND (1 + s);
      const float row = squared ? ROUND (high * high) : high;

      total += row;
      if (each)
        loss[i] = row;
    }
  if (!each)
    loss[0] = ROUND ((float)total) / (float)(n > 0 ? n : 1);
}

/* The share of the rows of x (n, c, inner), but those with label `ignore` if `ignores`, whose
 * largest number is at the label; NaN comes before all numbers. */
static void
right_share (const float *x, const int64_t *t, float *y, long n, long c, long inner,
             int64_t ignore, int ignores)
{
  long right = 0, counted = 0;

  for (long i = 0; i < n * inner; i++)
    {
      const float *a = x + i / inner * c * inner + i % inner;
      long top = 0;

      for (long k = 1; k < c; k++)
        {
          const float v = a[k * inner], most = a[top * inner];

          top = v > most || (v != v && most == most) ? k : top;
        }
      right += t[i] == top && !(ignores && t[i] == ignore);
      counted += !(ignores && t[i] == ignore);
      if (t[i] != -1 && !(ignores && t[i] == ignore))
        within (t[i], c);
    }
  y[0] = (float)right / (float)(counted > 0 ? counted : 1);
}

/* The share of labels 0 and 1, but -1, that say whether x >= 0. */
static void
binary_share (const float *x, const int64_t *t, float *y, long n)
{
  long right = 0, counted = 0;

  for (long i = 0; i < n; i++)
    {
      right += t[i] != -1 && (x[i] >= 0) == within (t[i], 2);
      counted += t[i] != -1;
    }
  y[0] = ROUND ((float)right) / ROUND ((float)(counted > 0 ? counted : 1));
}
