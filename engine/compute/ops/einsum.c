/* einsum and tensordot: sums of products over labelled axes, made of transpositions, reshapes
 * and (batched) matrix products, one pair of operands after the other.
 *
 * A label is a letter; the axes of "..." get labels of their own (numbers below 8, counted from
 * the right), so that nothing below needs to know of it.
 *
 * SPDX-License-Identifier: MIT */
#include "compose.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum
{
  MAX_OPERANDS = 16,
  N_LABELS = 128
};

/** Axes by label. */
typedef struct
{
  int n;
  char label[TD_MAX_DIMS];
} Axes;

typedef struct
{
  const char *subscripts;
  const TdSite *site;
  int n;
  TdVar *v[MAX_OPERANDS];
  Axes axes[MAX_OPERANDS], out;
  int64_t size[N_LABELS]; /* -1: not seen */
  int seen[N_LABELS];     /* in how many places */
} Einsum;

static bool
fail (const Einsum *e, TdStatus status, const char *why)
{
  td__fail (status, "einsum", e->site, "%s, in \"%s\"", why, e->subscripts);
  return false;
}

static bool
has (const Axes *a, char label)
{
  return memchr (a->label, label, (size_t)a->n) != NULL;
}

static bool
push (const Einsum *e, Axes *a, char label)
{
  if (a->n == TD_MAX_DIMS)
    return fail (e, TD_ERR_SHAPE, "at most 8 axes expected");
  a->label[a->n++] = label;
  return true;
}

/* --- reading the subscripts --- */

/* One operand's part, up to its end; `dots` is how many axes "..." stands for. */
static bool
parse_part (const Einsum *e, const char *text, const char *end, int dots, Axes *a)
{
  for (; text < end; text++)
    if (isalpha ((unsigned char)*text))
      {
        if (!push (e, a, *text))
          return false;
      }
    else if (end - text >= 3 && memcmp (text, "...", 3) == 0 && dots >= 0)
      {
        for (int i = dots; i > 0; i--)
          if (!push (e, a, (char)i))
            return false;
        dots = -1;
        text += 2;
      }
    else if (*text != ' ')
      return fail (e, TD_ERR_ARG, "letters, commas, one ... per operand and one -> expected");
  return true;
}

static int
letters_in (const char *text, const char *end)
{
  int n = 0;

  for (; text < end; text++)
    n += isalpha ((unsigned char)*text) != 0;
  return n;
}

static bool
parse_operand (Einsum *e, int k, const char *text, const char *end)
{
  const TdShape shape = td_shape (e->v[k]);
  const int dots = shape.ndim - letters_in (text, end);

  if (!parse_part (e, text, end, dots > 0 ? dots : 0, &e->axes[k]))
    return false;
  if (e->axes[k].n != shape.ndim)
    {
      td__fail (TD_ERR_SHAPE, "einsum", e->site,
                "as many labels as axes expected, got %d and %d in operand %d, in \"%s\"",
                e->axes[k].n, shape.ndim, k, e->subscripts);
      return false;
    }
  for (int i = 0; i < shape.ndim; i++)
    {
      const int label = (unsigned char)e->axes[k].label[i];

      e->seen[label]++;
      if (e->size[label] < 0)
        e->size[label] = shape.dim[i];
      if (e->size[label] != shape.dim[i])
        {
          td__fail (
              TD_ERR_SHAPE, "einsum", e->site,
              "equal sizes for equal labels expected, got %lld and %lld in operand %d, in "
              "\"%s\"",
              (long long)e->size[label], (long long)shape.dim[i], k, e->subscripts);
          return false;
        }
    }
  return true;
}

/* Without "->": the axes of "...", then the letters that occur once, in the alphabet's order.
 */
static bool
implicit_output (Einsum *e)
{
  for (int i = TD_MAX_DIMS; i > 0; i--)
    if (e->seen[i] > 0 && !push (e, &e->out, (char)i))
      return false;
  for (int i = TD_MAX_DIMS + 1; i < N_LABELS; i++)
    if (e->seen[i] == 1 && !push (e, &e->out, (char)i))
      return false;
  return true;
}

static bool
explicit_output (Einsum *e, const char *text)
{
  int dots = 0;

  while (dots < TD_MAX_DIMS && e->seen[dots + 1] > 0)
    dots++;
  if (!parse_part (e, text, text + strlen (text), dots, &e->out))
    return false;
  for (int i = 0; i < e->out.n; i++)
    if (e->seen[(int)e->out.label[i]] == 0
        || memchr (e->out.label, e->out.label[i], (size_t)i) != NULL)
      return fail (e, TD_ERR_ARG, "each label of the result once, and in an operand, expected");
  return true;
}

static bool
parse (Einsum *e)
{
  const char *text = e->subscripts, *arrow = strstr (text, "->");
  const char *end = arrow != NULL ? arrow : text + strlen (text);

  for (int k = 0; k < e->n; k++)
    {
      const char *comma = memchr (text, ',', (size_t)(end - text));

      if ((comma == NULL) != (k == e->n - 1))
        return fail (e, TD_ERR_ARG, "as many parts as operands expected");
      if (!parse_operand (e, k, text, comma != NULL ? comma : end))
        return false;
      text = comma != NULL ? comma + 1 : end;
    }
  return arrow != NULL ? explicit_output (e, arrow + 2) : implicit_output (e);
}

/* --- steps --- */

/* Is the label wanted by the result, or by operands from k on? */
static bool
wanted (const Einsum *e, char label, int k)
{
  bool is = has (&e->out, label);

  for (; k < e->n && !is; k++)
    is = has (&e->axes[k], label);
  return is;
}

/* Sum over the axes of a that nobody wants: not b (or NULL), nor operands from k on. */
static TdVar *
sum_out (const Einsum *e, TdVar *v, Axes *a, const Axes *b, int k)
{
  int axes[TD_MAX_DIMS], n = 0, kept = 0;

  for (int i = 0; i < a->n; i++)
    if (!wanted (e, a->label[i], k) && (b == NULL || !has (b, a->label[i])))
      axes[n++] = i;
    else
      a->label[kept++] = a->label[i];
  a->n = kept;
  return n > 0 ? td_sum_axes_at (v, axes, n, false, e->site) : v;
}

/* A label that a has twice: the places where both are equal are kept by multiplying with 1 on
 * the diagonal and summing the second away. */
static TdVar *
take_diagonals (const Einsum *e, TdVar *v, Axes *a)
{
  for (int i = 0; i < a->n; i++)
    for (int j = i + 1; j < a->n; j++)
      if (a->label[i] == a->label[j])
        {
          const int64_t n = e->size[(int)a->label[i]];
          TdShape row = { a->n, { 0 } }, column = { a->n, { 0 } };
          TdVar *places = td_cast (
              td_to_device (td_arange (TD_F64, 0, (double)n, 1), td_device (v)), td_dtype (v));
          TdVar *eye;

          for (int d = 0; d < a->n; d++)
            {
              row.dim[d] = d == i ? n : 1;
              column.dim[d] = d == j ? n : 1;
            }
          eye = td__equal (td_reshape (places, row), td_reshape (places, column));
          v = td_sum_axes_at (td_mul_at (v, eye, e->site), &j, 1, false, e->site);
          a->n--;
          memmove (a->label + j, a->label + j + 1, (size_t)(a->n - j));
          j--;
        }
  return v;
}

/* v with its axes in the order of `to`, grouped into three sizes. */
static TdVar *
arranged (const Einsum *e, TdVar *v, const Axes *a, const Axes *const groups[3],
          int64_t sizes[3])
{
  int order[TD_MAX_DIMS], n = 0;
  bool moved = false;

  for (int g = 0; g < 3; g++)
    {
      sizes[g] = 1;
      for (int i = 0; i < groups[g]->n; i++)
        {
          const char *at = memchr (a->label, groups[g]->label[i], (size_t)a->n);

          order[n] = (int)(at - a->label);
          moved = moved || order[n] != n;
          n++;
          sizes[g] *= e->size[(int)groups[g]->label[i]];
        }
    }
  if (moved)
    v = td_transpose_at (v, order, e->site);
  return td_reshape_at (v, TD_SHAPE (sizes[0], sizes[1], sizes[2]), e->site);
}

/* The product of two operands; labels that nobody wants from operand k on are summed.  Its axes
 * are those of both, those of a alone, those of b alone. */
static TdVar *
contract (const Einsum *e, TdVar *a, const Axes *la, TdVar *b, const Axes *lb, int k, Axes *out)
{
  Axes both = { 0 }, summed = { 0 }, only_a = { 0 }, only_b = { 0 };
  const Axes *const groups_a[] = { &both, &only_a, &summed };
  const Axes *const groups_b[] = { &both, &summed, &only_b };
  int64_t sa[3], sb[3];
  TdShape shape = { 0 };
  TdVar *y;

  for (int i = 0; i < la->n; i++)
    push (e,
          !has (lb, la->label[i])       ? &only_a
          : wanted (e, la->label[i], k) ? &both
                                        : &summed,
          la->label[i]);
  for (int i = 0; i < lb->n; i++)
    if (!has (la, lb->label[i]))
      push (e, &only_b, lb->label[i]);
  if (both.n + only_a.n + only_b.n > TD_MAX_DIMS)
    {
      fail (e, TD_ERR_SHAPE, "at most 8 axes in a product of two operands expected");
      return td__poison ();
    }
  a = arranged (e, a, la, groups_a, sa);
  b = arranged (e, b, lb, groups_b, sb);
  if (sa[0] == 1)
    y = td_matmul_at (td_reshape_at (a, TD_SHAPE (sa[1], sa[2]), e->site),
                      td_reshape_at (b, TD_SHAPE (sb[1], sb[2]), e->site), false, false,
                      e->site);
  else
    y = td_batch_matmul_at (a, b, false, false, e->site);
  *out = both;
  for (int i = 0; i < only_a.n; i++)
    push (e, out, only_a.label[i]);
  for (int i = 0; i < only_b.n; i++)
    push (e, out, only_b.label[i]);
  for (int i = 0; i < out->n; i++)
    shape.dim[shape.ndim++] = e->size[(int)out->label[i]];
  return td_reshape_at (y, shape, e->site);
}

/* In the order of the result. */
static TdVar *
ordered (const Einsum *e, TdVar *v, const Axes *a)
{
  int order[TD_MAX_DIMS];
  bool moved = false;

  for (int i = 0; i < e->out.n; i++)
    {
      const char *at = memchr (a->label, e->out.label[i], (size_t)a->n);

      order[i] = (int)(at - a->label);
      moved = moved || order[i] != i;
    }
  return moved ? td_transpose_at (v, order, e->site) : v;
}

static TdVar *
evaluate (Einsum *e)
{
  Axes axes = e->axes[0];
  TdVar *y = sum_out (e, take_diagonals (e, e->v[0], &axes), &axes, NULL, 1);

  for (int k = 1; k < e->n && !td_poisoned (y); k++)
    {
      TdVar *v = take_diagonals (e, e->v[k], &e->axes[k]);
      Axes product = { 0 };

      v = sum_out (e, v, &e->axes[k], &axes, k + 1);
      y = contract (e, y, &axes, v, &e->axes[k], k + 1, &product);
      axes = product;
    }
  return td_poisoned (y) ? y : ordered (e, y, &axes);
}

/* *Source*: chainer.functions.einsum. */
TdVar *
td_einsum_at (const char *subscripts, TdVar *const *operands, int n, const TdSite *site)
{
  Einsum e = { .subscripts = subscripts, .site = site, .n = n };
  const TdSite *outer;
  TdVar *y;

  if (n < 1 || n > MAX_OPERANDS)
    {
      td__fail (TD_ERR_ARG, "einsum", site, "1 to %d operands expected, got %d", MAX_OPERANDS,
                n);
      return td__poison ();
    }
  if (!td__list_there (operands, n, "einsum", site)
      || !td__list_there (subscripts, 1, "einsum", site))
    return td__poison ();
  for (int i = 0; i < N_LABELS; i++)
    e.size[i] = -1;
  for (int k = 0; k < n; k++)
    {
      if (td_poisoned (operands[k]))
        return td_identity_at (operands[k], site);
      e.v[k] = operands[k];
    }
  outer = td__at (site);
  y = parse (&e) ? evaluate (&e) : td__poison ();
  td__at_end (outer);
  return y;
}

TdVar *
td_einsum (const char *subscripts, TdVar *const *operands, int n)
{
  return td_einsum_at (subscripts, operands, n, NULL);
}

/* --- tensordot --- */

/* Axes of a (of b), the contracted ones last (first); false if they are not ndim's own. */
static bool
dot_order (const int *contracted, int n, int ndim, bool last, int order[TD_MAX_DIMS])
{
  bool taken[TD_MAX_DIMS] = { false };
  int at = last ? ndim - n : 0, rest = last ? 0 : n;

  for (int i = 0; i < n; i++)
    {
      const int axis = td__axis (contracted[i], ndim);

      if (axis < 0 || taken[axis])
        return false;
      taken[axis] = true;
      order[at++] = axis;
    }
  for (int i = 0; i < ndim; i++)
    if (!taken[i])
      order[rest++] = i;
  return true;
}

static TdVar *
dot_fail (TdVar *a, TdVar *b, const TdSite *site)
{
  TdVar *in[] = { a, b };

  return td__compose_fail (TD_ERR_SHAPE, "tensordot", site, td__names_ab, in, 2,
                           "axes of equal sizes, each once, expected");
}

/* Without lists the last `axes` axes of a meet the first of b.  *Source*:
 * chainer.functions.tensordot. */
TdVar *
td_tensordot_at (TdVar *a, TdVar *b, TdTensordotOpt o, const TdSite *site)
{
  const bool lists = o.a_axes != NULL && o.b_axes != NULL;
  int of_a[TD_MAX_DIMS], of_b[TD_MAX_DIMS], order_a[TD_MAX_DIMS], order_b[TD_MAX_DIMS];
  int64_t m = 1, k = 1, n = 1;
  TdShape as, bs, shape = { 0 };

  if (td_poisoned (a) || td_poisoned (b))
    return td_matmul_at (a, b, false, false, site);
  as = td_shape (a);
  bs = td_shape (b);
  if (o.axes < 0 || o.axes > as.ndim || o.axes > bs.ndim
      || as.ndim + bs.ndim - 2 * o.axes > TD_MAX_DIMS)
    return dot_fail (a, b, site);
  for (int i = 0; i < o.axes; i++)
    {
      of_a[i] = lists ? o.a_axes[i] : as.ndim - o.axes + i;
      of_b[i] = lists ? o.b_axes[i] : i;
    }
  if (!dot_order (of_a, o.axes, as.ndim, true, order_a)
      || !dot_order (of_b, o.axes, bs.ndim, false, order_b))
    return dot_fail (a, b, site);
  for (int i = 0; i < o.axes; i++)
    {
      k *= as.dim[order_a[as.ndim - o.axes + i]];
      if (as.dim[order_a[as.ndim - o.axes + i]] != bs.dim[order_b[i]])
        return dot_fail (a, b, site);
    }
  for (int i = 0; i < as.ndim - o.axes; i++)
    m *= shape.dim[shape.ndim++] = as.dim[order_a[i]];
  for (int i = o.axes; i < bs.ndim; i++)
    n *= shape.dim[shape.ndim++] = bs.dim[order_b[i]];
  a = td_reshape_at (td_transpose_at (a, order_a, site), TD_SHAPE (m, k), site);
  b = td_reshape_at (td_transpose_at (b, order_b, site), TD_SHAPE (k, n), site);
  return td_reshape_at (td_matmul_at (a, b, false, false, site), shape, site);
}

TdVar *
td_tensordot_ (TdVar *a, TdVar *b, const TdTensordotOpt *options)
{
  return td_tensordot_at (
      a, b, options != NULL ? *options : (TdTensordotOpt){ TD_TENSORDOT_DEFAULTS }, NULL);
}
