/* What tests of links and hooks share.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
fixture_setup (void **state)
{
  td_test_setup (state);
  td_init (NULL, NULL);
  td_set_seed (1);
  return 0;
}

int
fixture_teardown (void **state)
{
  int status = 0;

  if (td_error () != NULL)
    {
      print_error ("unexpected: %s\n", td_error ()->message);
      status = 1;
    }
  status |= td_finish ();
  td_test_teardown (state);
  return status;
}

const char *
said (TdStatus status)
{
  static char text[1024];

  assert_non_null (td_error ());
  assert_int_equal (td_error ()->status, status);
  snprintf (text, sizeof text, "%s", td_error ()->message);
  assert_null (strchr (text, '\n'));
  td_error_clear ();
  return text;
}

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
  assert_int_equal (td_dtype (v) == TD_F64 ? td_write (v, wide, (size_t)n * sizeof *wide)
                                           : td_write (v, small, (size_t)n * sizeof *small),
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
