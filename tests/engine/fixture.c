/* What tests of links and hooks share.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const double *
numbers (TdVar *v)
{
  static double room[8][1 << 14];
  static int next;
  double *to = room[next++ % 8];
  int64_t n = td_size (v);
  float *small = malloc ((size_t)n * sizeof *small + 1);

  assert_false (td_poisoned (v));
  assert_true (n <= 1 << 14);
  if (td_dtype (v) == TD_F64)
    assert_int_equal (td_read (v, to, (size_t)n * sizeof *to), TD_OK);
  else
    {
      assert_int_equal (td_read (v, small, (size_t)n * sizeof *small), TD_OK);
      for (int64_t i = 0; i < n; i++)
        to[i] = (double)small[i];
    }
  free (small);
  return to;
}

void
assert_shape (TdVar *v, TdShape shape)
{
  TdShape s = td_shape (v);
  bool same = s.ndim == shape.ndim;

  for (int i = 0; i < s.ndim && same; i++)
    same = s.dim[i] == shape.dim[i];
  if (same)
    return;
  print_error ("shape (");
  for (int i = 0; i < s.ndim; i++)
    print_error ("%lld ", (long long)s.dim[i]);
  fail_msg ("), another one expected");
}

void
assert_same (TdVar *a, TdVar *b, double tolerance)
{
  const double *x, *y;

  assert_shape (a, td_shape (b));
  x = numbers (a);
  y = numbers (b);
  for (int64_t i = 0; i < td_size (a); i++)
    if (!(fabs (x[i] - y[i]) <= tolerance * (1 + fabs (y[i]))))
      fail_msg ("element %lld is %.17g, %.17g expected", (long long)i, x[i], y[i]);
}

/* Halves are made by a cast; other types without an operation, which tests count. */
static TdStatus
write_halves (TdVar *v, const double *wide)
{
  const size_t bytes = (size_t)td_size (v) * td_dtype_bytes (td_dtype (v));
  char *halves = malloc (bytes + 1);
  TdStatus status;

  TD_SCOPE ("fill")
    assert_int_equal (
        td_read (td_cast (td_tensor (TD_F64, td_shape (v), wide), td_dtype (v)), halves, bytes),
        TD_OK);
  status = td_write (v, halves, bytes);
  free (halves);
  return status;
}

void
fill (TdVar *v, unsigned seed)
{
  int64_t n = td_size (v);
  double *wide = malloc ((size_t)n * sizeof *wide + 1);
  float *small = malloc ((size_t)n * sizeof *small + 1);
  uint32_t s = 2654435761u * (seed + 1);

  for (int64_t i = 0; i < n; i++)
    {
      s = s * 1664525u + 1013904223u;
      wide[i] = (double)(s >> 8) / (1 << 23) - 1;
      small[i] = (float)wide[i];
    }
  assert_int_equal (td_dtype (v) == TD_F64   ? td_write (v, wide, (size_t)n * sizeof *wide)
                    : td_dtype (v) == TD_F32 ? td_write (v, small, (size_t)n * sizeof *small)
                                             : write_halves (v, wide),
                    TD_OK);
  free (wide);
  free (small);
}

static void
fill_one (const char *path, TdVar *param, void *user)
{
  unsigned *seed = user;

  (void)path;
  fill (param, (*seed)++);
}

void
fill_params (TdLink *link, unsigned seed)
{
  td_link_each_param (link, fill_one, &seed);
}

static void
add_key (const char *path, TdVar *param, void *user)
{
  (void)param;
  strcat (strcat (user, path), " ");
}

const char *
param_keys (TdLink *link)
{
  static char keys[20000];

  keys[0] = '\0';
  td_link_each_param (link, add_key, keys);
  return keys;
}

TdVar *
wide (TdShape shape, unsigned seed)
{
  TdVar *v = td_zeros (TD_F64, shape);

  fill (v, seed);
  return v;
}

void
plain_call (TdLink *link, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  assert_int_equal (td_link_call (link, in, n_in, out, n_out), TD_OK);
}

typedef struct
{
  TdLink *link;
  LinkCall call;
} Checked;

static void
checked_call (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Checked *c = user;

  c->call (c->link, in, n_in, out, n_out);
}

/* Sum of the outputs with weights that tell all elements apart. */
static TdVar *
weighted (const Checked *c, TdVar *const *in, int n_in, int n_out)
{
  TdVar *out[8], *sum = NULL;

  assert_true (n_out <= 8);
  c->call (c->link, in, n_in, out, n_out);
  for (int i = 0; i < n_out; i++)
    {
      TdVar *one = td_sum (td_mul (out[i], wide (td_shape (out[i]), 77 + (unsigned)i)));

      sum = sum == NULL ? one : td_add (sum, one);
    }
  return sum;
}

typedef struct
{
  const Checked *c;
  TdVar *const *in;
  int n_in, n_out;
} ParamCheck;

static double
value_with (const ParamCheck *p, TdVar *param, double *values, int64_t i, double value)
{
  double y, old = values[i];
  TdScope *scope = td_scope_open ("difference");

  values[i] = value;
  td_write (param, values, (size_t)td_size (param) * sizeof *values);
  TD_NO_BACKPROP
    y = td_item (weighted (p->c, p->in, p->n_in, p->n_out));
  values[i] = old;
  td_write (param, values, (size_t)td_size (param) * sizeof *values);
  td_scope_close (scope);
  return y;
}

static void
check_param (const char *path, TdVar *param, void *user)
{
  const ParamCheck *p = user;
  int64_t n = td_size (param), step = n > 12 ? n / 12 : 1;
  size_t bytes = (size_t)n * sizeof (double);
  double *values = malloc (bytes), *g = malloc (bytes);

  if (td_grad (param) == NULL)
    fail_msg ("%s has no gradient", path);
  assert_int_equal (td_read (param, values, bytes), TD_OK);
  assert_int_equal (td_read (td_grad (param), g, bytes), TD_OK);
  for (int64_t i = 0; i < n; i += step)
    {
      const double eps = 1e-5;
      double d = (value_with (p, param, values, i, values[i] + eps)
                  - value_with (p, param, values, i, values[i] - eps))
                 / (2 * eps);

      if (!(fabs (g[i] - d) <= 1e-7 * (1 + fabs (d))))
        fail_msg ("%s[%lld]: gradient %.10g, difference %.10g", path, (long long)i, g[i], d);
    }
  free (values);
  free (g);
}

void
check_gradients (TdLink *link, LinkCall call, TdVar *const *in, int n_in, int n_out)
{
  Checked c = { link, call };
  ParamCheck p = { &c, in, n_in, n_out };

  if (n_in > 0)
    {
      assert_int_equal (td_check_backward (checked_call, &c, in, n_in, NULL, n_out), TD_OK);
      assert_int_equal (td_check_double_backward (checked_call, &c, in, n_in, NULL, n_out),
                        TD_OK);
    }
  td_cleargrads (link);
  assert_int_equal (td_backward (weighted (&c, in, n_in, n_out), 0), TD_OK);
  td_link_each_param (link, check_param, &p);
}

size_t
fixture_part (struct CMUnitTest *tests, size_t n, int argc, char **argv)
{
  size_t kept = 0;
  unsigned part = 0, parts = 1;

  if (argc > 1 && (sscanf (argv[1], "%u/%u", &part, &parts) != 2 || part >= parts))
    {
      fprintf (stderr, "no part of the tests: %s\n", argv[1]);
      exit (2);
    }
  for (size_t i = part; i < n; i += parts)
    tests[kept++] = tests[i];
  return kept;
}
