/* The numbers that a row of op-cases is called with, and what a test of one leaves behind.
 *
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"
#include "td-test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number in [0, 1) from three places: splitmix64's finisher. */
static double
spread (uint64_t a, uint64_t b, uint64_t c)
{
  uint64_t z = a * 0x9E3779B97F4A7C15u + b * 0xBF58476D1CE4E5B9u + c * 0x94D049BB133111EBu + 1;

  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double
input_value (const OpCase *c, int k, int64_t i)
{
  const OpInput *in = &c->in[k];
  double v;

  if (in->values != NULL)
    return in->values[i];
  v = in->low + (in->high - in->low) * spread (strlen (c->op), (uint64_t)k, (uint64_t)i);
  if (fabs (v) < in->gap)
    v = v < 0 ? -in->gap : in->gap;
  return v;
}

static TdDtype
input_dtype (const OpCase *c, int k, TdDtype run)
{
  return c->in[k].dtype == TD_F32 ? run : c->in[k].dtype;
}

TdVar *
op_input (const OpCase *c, int k, TdDtype run, double *doubles)
{
  int64_t n = td_shape_size (&c->in[k].shape);
  double *host = calloc ((size_t)n + 1, sizeof *host);
  TdVar *v;

  assert_non_null (host);
  for (int64_t i = 0; i < n; i++)
    host[i] = input_value (c, k, i);
  v = td_cast (td_tensor (TD_F64, c->in[k].shape, host), input_dtype (c, k, run));
  if (doubles != NULL && n > 0)
    assert_int_equal (td_read (td_cast (v, TD_F64), doubles, (size_t)n * sizeof *doubles),
                      TD_OK);
  free (host);
  return v;
}

/* --- what every test leaves as it was --- */

static TdMemInfo before;

int
op_test_begin (void **state)
{
  td_error_clear ();
  td_set_seed (7);
  before = td_mem_info (NULL);
  return 0;
}

int
op_test_end (void **state)
{
  TdMemInfo after = td_mem_info (NULL);

  if (td_error () != NULL)
    print_message ("left: %s\n", td_error ()->message);
  if (after.live_vars != before.live_vars || after.live_nodes != before.live_nodes
      || after.live_ops != before.live_ops || after.live_bytes != before.live_bytes)
    {
      print_message ("leaked: %ld handles, %ld nodes, %ld operations, %ld bytes\n",
                     (long)(after.live_vars - before.live_vars),
                     (long)(after.live_nodes - before.live_nodes),
                     (long)(after.live_ops - before.live_ops),
                     (long)(after.live_bytes - before.live_bytes));
      return -1;
    }
  return td_error () != NULL ? -1 : 0;
}
