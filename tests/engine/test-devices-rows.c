/* Every row of op-cases*.c on the far device: the bits of outputs, first and second gradients
 * are the CPU's.
 *
 * SPDX-License-Identifier: MIT */
#include "test-devices.h"

#include "fake-remote.h"
#include "op-cases.h"
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_RESULTS = 16
};

/* Arrays of one run, as bytes; NULL where there was none. */
typedef struct
{
  int n;
  const char *what[MAX_RESULTS];
  void *bytes[MAX_RESULTS];
  size_t n_bytes[MAX_RESULTS];
} Results;

static void
keep (Results *r, const char *what, TdVar *v)
{
  int at = r->n++;
  size_t bytes;

  assert_true (at < MAX_RESULTS);
  r->what[at] = what;
  r->bytes[at] = NULL;
  r->n_bytes[at] = 0;
  if (v == NULL)
    return;
  bytes = (size_t)td_size (v) * td_dtype_bytes (td_dtype (v));
  r->bytes[at] = malloc (bytes + 1);
  assert_non_null (r->bytes[at]);
  if (td_read (v, r->bytes[at], bytes) != TD_OK)
    fail_msg ("%s: %s", what, td_error () != NULL ? td_error ()->message : "no message");
  r->n_bytes[at] = bytes;
}

static void
results_clear (Results *r)
{
  for (int i = 0; i < r->n; i++)
    free (r->bytes[i]);
  r->n = 0;
}

/* A gradient that is another number at every place. */
static TdVar *
slope (TdVar *y)
{
  return td_reshape (td_arange (td_dtype (y), 0.5, 0.5 + (double)td_size (y), 1), td_shape (y));
}

/* Keep d (y . slope) / dx, and the same of those gradients where the row has second ones. */
static void
keep_gradients (const OpCase *c, Results *r, TdVar **y, int n_y, TdVar **x, int n_x)
{
  unsigned flags = c->flags & OP_NO_SECOND ? 0 : TD_DOUBLE_BACKPROP;
  TdVar *gy[6], *gx[6] = { NULL }, *ggx[6] = { NULL };
  int n_gx = 0;

  for (int k = 0; k < n_y; k++)
    gy[k] = slope (y[k]);
  assert_int_equal (td_grad_of (y, n_y, x, n_x, gy, flags, gx), TD_OK);
  for (int k = 0; k < n_x; k++)
    {
      keep (r, "first gradient", gx[k]);
      if (gx[k] != NULL)
        gx[n_gx++] = gx[k];
    }
  if (flags == 0 || n_gx == 0)
    return;
  for (int k = 0; k < n_gx; k++)
    gy[k] = slope (gx[k]);
  assert_int_equal (td_grad_of (gx, n_gx, x, n_x, gy, 0, ggx), TD_OK);
  for (int k = 0; k < n_x; k++)
    keep (r, "second gradient", ggx[k]);
}

static bool
is_float (const TdVar *v)
{
  return td_dtype (v) <= TD_BF16;
}

static void
run_row (const OpCase *c, TdDtype dtype, TdDevice *device, Results *r)
{
  TdDevice *cpu = td_device_get ("cpu");

  td_set_seed (7);
  TD_SCOPE ("row")
    {
      TdVar *x[6], *y[3] = { NULL }, *float_x[6], *float_y[3];
      int n_x = 0, n_y = 0;

      for (int k = 0; k < c->n_in; k++)
        {
          x[k] = td_to_device (op_input (c, k, dtype, NULL), device);
          if (is_float (x[k]))
            float_x[n_x++] = td_variable (x[k], NULL);
        }
      td_device_use (device);
      c->call (x, y);
      for (int k = 0; k < c->n_out; k++)
        if (is_float (y[k]))
          float_y[n_y++] = y[k];
      if (!(c->flags & OP_NO_GRAD) && n_y > 0 && td_error () == NULL)
        keep_gradients (c, r, float_y, n_y, float_x, n_x);
      for (int k = 0; k < c->n_out; k++)
        {
          assert_ptr_equal (td_device (y[k]), device);
          keep (r, "output", y[k]);
        }
      td_device_use (cpu);
      if (td_error () != NULL)
        fail_msg ("on %s: %s", td_device_name (device), td_error ()->message);
    }
}

static void
gives_the_bits_of_the_cpu (const OpCase *c, TdDtype dtype)
{
  TdDevice *remote = td_device_get (FAKE_REMOTE_NAME);
  Results here = { 0 }, there = { 0 };
  long queued = fake_remote_queued ();

  run_row (c, dtype, td_device_get ("cpu"), &here);
  run_row (c, dtype, remote, &there);
  assert_int_equal (here.n, there.n);
  assert_true (here.n >= c->n_out);
  for (int i = 0; i < here.n; i++)
    {
      if (here.n_bytes[i] != there.n_bytes[i])
        fail_msg ("%s %d: %zu bytes on the cpu, %zu there", here.what[i], i, here.n_bytes[i],
                  there.n_bytes[i]);
      for (size_t b = 0; b < here.n_bytes[i]; b++)
        if (((uint8_t *)here.bytes[i])[b] != ((uint8_t *)there.bytes[i])[b])
          fail_msg ("%s (array %d) differs at byte %zu", here.what[i], i, b);
    }
  assert_true (fake_remote_queued () > queued);
  results_clear (&here);
  results_clear (&there);
}

static void
in_float (void **state)
{
  gives_the_bits_of_the_cpu (*state, TD_F32);
}

static void
in_double (void **state)
{
  gives_the_bits_of_the_cpu (*state, TD_F64);
}

/* --- each test begins and ends with the same live objects --- */

static TdMemInfo before[2];

static int
begin (void **state)
{
  td_error_clear ();
  before[0] = td_mem_info (td_device_get ("cpu"));
  before[1] = td_mem_info (td_device_get (FAKE_REMOTE_NAME));
  return 0;
}

static int
end (void **state)
{
  TdMemInfo cpu = td_mem_info (td_device_get ("cpu")),
            remote = td_mem_info (td_device_get (FAKE_REMOTE_NAME));
  bool leaked = cpu.live_vars != before[0].live_vars || cpu.live_nodes != before[0].live_nodes
                || cpu.live_ops != before[0].live_ops || cpu.live_bytes != before[0].live_bytes
                || remote.live_bytes != before[1].live_bytes;

  if (leaked)
    print_message ("leaked: %ld handles, %ld nodes, %ld operations, %ld + %ld bytes\n",
                   (long)(cpu.live_vars - before[0].live_vars),
                   (long)(cpu.live_nodes - before[0].live_nodes),
                   (long)(cpu.live_ops - before[0].live_ops),
                   (long)(cpu.live_bytes - before[0].live_bytes),
                   (long)(remote.live_bytes - before[1].live_bytes));
  return leaked || td_error () != NULL ? -1 : 0;
}

static size_t
add_rows (struct CMUnitTest *tests, size_t n_tests, const OpCase *rows, int n)
{
  static const struct
  {
    const char *claim;
    CMUnitTestFunction f;
  } claims[] = { { "far_away_gives_the_same_floats", in_float },
                 { "far_away_gives_the_same_doubles", in_double } };

  for (const OpCase *c = rows; c < rows + n; c++)
    for (size_t k = 0; k < 2; k++)
      {
        char *name = NULL;

        if (asprintf (&name, "%s%s%s__%s", c->op, c->variant[0] != '\0' ? " " : "", c->variant,
                      claims[k].claim)
            < 0)
          abort ();
        tests[n_tests++]
            = (struct CMUnitTest){ name, claims[k].f, begin, end, (void *)(uintptr_t)c };
      }
  return n_tests;
}

int
devices_run_rows (const char *filter)
{
  struct CMUnitTest *tests;
  size_t n_tests = 0, n_rows = 0;
  int failed;

  for (int i = 0; i < N_OP_CASE_TABLES; i++)
    n_rows += (size_t)*op_case_tables[i].n_cases;
  tests = calloc (2 * n_rows, sizeof *tests);
  if (tests == NULL || td_init (NULL, NULL) != TD_OK || fake_remote_start () == NULL)
    abort ();
  for (int i = 0; i < N_OP_CASE_TABLES; i++)
    n_tests = add_rows (tests, n_tests, op_case_tables[i].cases, *op_case_tables[i].n_cases);
  if (filter != NULL)
    cmocka_set_test_filter (filter);
  failed = _cmocka_run_group_tests ("devices-rows", tests, n_tests, NULL, NULL);
  for (size_t i = 0; i < n_tests; i++)
    free ((void *)(uintptr_t)tests[i].name);
  free (tests);
  return failed + td_finish ();
}
