/* Arrays in guarded pages, numbers to fill them, and the comparison of kernels with the CPU.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scalar-ops.h"
#include "td-test.h"

static uint64_t seed = 1;

void
rig_seed (uint64_t new_seed)
{
  seed = new_seed;
}

uint64_t
rig_random (uint64_t below)
{
  uint64_t v;

  seed += 0x9E3779B97F4A7C15u;
  v = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9u;
  v = (v ^ v >> 27) * 0x94D049BB133111EBu;
  v ^= v >> 31;
  return below == 0 ? v : v % below;
}

static double
uniform (double low, double high)
{
  return low + (high - low) * ((double)(rig_random (0) >> 11) * 0x1p-53);
}

TdShape
rig_shape (int ndim, int64_t size)
{
  TdShape shape = { .ndim = (int)rig_random ((uint64_t)ndim + 1) };
  int64_t left = size;

  for (int i = 0; i < shape.ndim; i++)
    {
      const uint64_t dice = rig_random (12);
      const double even = pow ((double)left, 1.0 / (shape.ndim - i));

      shape.dim[i] = dice == 0 ? 1 : 1 + (int64_t)rig_random (1 + (uint64_t)(2 * even));
      if (dice == 1 && rig_random (4) == 0)
        shape.dim[i] = 0;
      left = shape.dim[i] > 0 ? left / shape.dim[i] : left;
      left = left < 1 ? 1 : left;
    }
  return shape;
}

size_t
rig_bytes_of (TdDtype dtype)
{
  static const size_t bytes[] = { [TD_F32] = 4, [TD_F64] = 8, [TD_F16] = 2, [TD_BF16] = 2,
                                  [TD_I32] = 4, [TD_I64] = 8, [TD_U8] = 1,  [TD_BOOL] = 1 };

  return bytes[dtype];
}

/* --- memory --- */

static size_t
page_bytes (void)
{
  return (size_t)sysconf (_SC_PAGESIZE);
}

static size_t
inner_bytes (size_t bytes)
{
  return ((bytes > 0 ? bytes : 1) + page_bytes () - 1) / page_bytes () * page_bytes ();
}

/* Pages that were given back, by size: mapping is most of what small arrays cost. */
static struct
{
  char *room;
  size_t inner;
} spare[64];

static char *
take_room (size_t inner)
{
  const size_t page = page_bytes ();
  char *room;

  for (int i = 0; i < 64; i++)
    if (spare[i].room != NULL && spare[i].inner == inner)
      {
        room = spare[i].room;
        spare[i].room = NULL;
        return room;
      }
  room = mmap (NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true (room != MAP_FAILED);
  assert_int_equal (mprotect (room + page, inner, PROT_READ | PROT_WRITE), 0);
  return room;
}

void *
rig_guarded (size_t bytes, bool at_end)
{
  const size_t page = page_bytes (), inner = inner_bytes (bytes);
  char *room = take_room (inner);

  memset (room + page, 0xFF, inner);
  /* Nothing lies 16 bytes before the end, so that rig_release finds the page. */
  return at_end ? room + page + inner - (bytes > 0 ? bytes : 16) : room + page;
}

void
rig_release (void *data, size_t bytes)
{
  const size_t page = page_bytes (), inner = inner_bytes (bytes);
  char *room = (char *)((uintptr_t)data / page * page) - page;

  for (int i = 0; i < 64; i++)
    if (spare[i].room == NULL)
      {
        spare[i].room = room;
        spare[i].inner = inner;
        return;
      }
  munmap (room, inner + 2 * page);
}

/* --- the launcher --- */

static void *workspace;
static size_t workspace_bytes;

static TdStatus
launch (TdCudaLauncher *l, TdCudaKernel *kernel, const unsigned grid[3], unsigned block,
        size_t shared_bytes, const void *params)
{
  if (kernel->handle == NULL)
    kernel->handle = td_emu_find (kernel->name);
  if (kernel->handle == NULL || shared_bytes != 0)
    fail_msg ("no kernel %s", kernel->name);
  td_emu_run (kernel->handle, grid, block, params);
  return TD_OK;
}

static void *
get_workspace (TdCudaLauncher *l, size_t bytes)
{
  if (workspace != NULL)
    rig_release (workspace, workspace_bytes);
  workspace_bytes = (bytes + 255) / 256 * 256;
  workspace = rig_guarded (workspace_bytes, true);
  return workspace;
}

TdCudaLauncher *
rig_launcher (void)
{
  static TdCudaLauncher launcher = { .n_sms = 1, .launch = launch, .workspace = get_workspace };

  td_emu_report_faults ();
  return &launcher;
}

/* --- numbers --- */

static void
put (TdTensor *x, int64_t i, double v)
{
  switch (x->dtype)
    {
    case TD_F32:
      ((float *)x->data)[i] = (float)v;
      break;
    case TD_F64:
      ((double *)x->data)[i] = v;
      break;
    case TD_F16:
      ((uint16_t *)x->data)[i] = td_f16_of_float ((float)v);
      break;
    case TD_BF16:
      ((uint16_t *)x->data)[i] = td_bf16_of_float ((float)v);
      break;
    case TD_I32:
      ((int32_t *)x->data)[i] = td_i32_of_f64 (floor (v));
      break;
    case TD_I64:
      ((int64_t *)x->data)[i] = td_i64_of_f64 (floor (v));
      break;
    case TD_U8:
      ((uint8_t *)x->data)[i] = (uint8_t)td_i64_of_f64 (floor (v));
      break;
    case TD_BOOL:
      ((uint8_t *)x->data)[i] = floor (v) > 0;
      break;
    }
}

double
rig_at (const TdTensor *x, int64_t i)
{
  switch (x->dtype)
    {
    case TD_F32:
      return (double)((const float *)x->data)[i];
    case TD_F64:
      return ((const double *)x->data)[i];
    case TD_F16:
      return (double)td_float_of_f16 (((const uint16_t *)x->data)[i]);
    case TD_BF16:
      return (double)td_float_of_bf16 (((const uint16_t *)x->data)[i]);
    case TD_I32:
      return ((const int32_t *)x->data)[i];
    case TD_I64:
      return (double)((const int64_t *)x->data)[i];
    case TD_U8:
    case TD_BOOL:
      break;
    }
  return ((const uint8_t *)x->data)[i];
}

static void
fill (TdTensor *x, const RigArray *a)
{
  static const double special[] = { NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-42, 3e38, -3e38 };
  const bool floats = x->dtype <= TD_BF16;

  for (int64_t i = 0; i < x->size; i++)
    if ((a->flags & RIG_SPECIAL) != 0 && floats && rig_random (16) == 0)
      put (x, i, special[rig_random (sizeof special / sizeof special[0])]);
    else if ((a->flags & RIG_WHOLE) != 0 || !floats)
      put (x, i, floor (uniform (a->low, a->high + 1)));
    else
      put (x, i, uniform (a->low, a->high));
}

static int64_t
size_of (const TdShape *shape)
{
  int64_t size = 1;

  for (int i = 0; i < shape->ndim; i++)
    size *= shape->dim[i];
  return size;
}

/* --- the check --- */

typedef struct
{
  TdShape shapes[RIG_ARRAYS];
  TdTensor t[RIG_ARRAYS];
  int n;
} Set;

static void
set_make (Set *s, const RigArray *arrays, int n, bool at_end)
{
  s->n = n;
  for (int k = 0; k < n; k++)
    {
      s->shapes[k] = arrays[k].shape;
      s->t[k] = (TdTensor){ NULL, &s->shapes[k], size_of (&arrays[k].shape), arrays[k].dtype };
      s->t[k].data
          = rig_guarded ((size_t)s->t[k].size * rig_bytes_of (arrays[k].dtype), at_end);
    }
}

static void
set_clear (Set *s)
{
  for (int k = 0; k < s->n; k++)
    rig_release (s->t[k].data, (size_t)s->t[k].size * rig_bytes_of (s->t[k].dtype));
}

static void
set_copy (Set *to, const Set *from)
{
  for (int k = 0; k < to->n; k++)
    if (to->t[k].size > 0)
      memcpy (to->t[k].data, from->t[k].data,
              (size_t)to->t[k].size * rig_bytes_of (to->t[k].dtype));
}

static bool
close_enough (double a, double b, double tolerance)
{
  if (isnan (a) || isnan (b))
    return isnan (a) && isnan (b);
  return a == b || fabs (a - b) <= tolerance * (1 + fabs (b));
}

static void
compare (const char *what, const char *how, const Set *got, const Set *expected,
         double tolerance)
{
  for (int k = 0; k < got->n; k++)
    for (int64_t i = 0; i < got->t[k].size; i++)
      {
        const double a = rig_at (&got->t[k], i), b = rig_at (&expected->t[k], i);

        if (!close_enough (a, b, tolerance))
          fail_msg ("%s, %s: output %d, element %lld of %lld is %.17g instead of %.17g", what,
                    how, k, (long long)i, (long long)got->t[k].size, a, b);
      }
}

static void
compare_bits (const char *what, const char *how, const Set *got, const Set *expected)
{
  for (int k = 0; k < got->n; k++)
    if (got->t[k].size > 0
        && memcmp (got->t[k].data, expected->t[k].data,
                   (size_t)got->t[k].size * rig_bytes_of (got->t[k].dtype))
               != 0)
      fail_msg ("%s, %s: the bits of array %d differ", what, how, k);
}

bool
rig_tries (TdEmuOrder order, int turn)
{
#ifdef __SANITIZE_ADDRESS__
  return order == (turn % 2 == 0 ? TD_EMU_FORWARD : TD_EMU_SHUFFLED);
#else
  (void)order;
  (void)turn;
  return true;
#endif
}

void
rig_check (const char *what, const RigArray *in, int n_in, const RigArray *out, int n_out,
           double tolerance, RigCall call, const void *context)
{
  static const char *const orders[]
      = { "threads forward", "threads backward", "threads shuffled" };
  Set x, y, start, first;
  TdStatus status;
  int place = -1; /* that `first` is of */

  set_make (&x, in, n_in, false);
  set_make (&start, out, n_out, false);
  set_make (&y, out, n_out, false);
  set_make (&first, out, n_out, false);
  for (int k = 0; k < n_in; k++)
    fill (&x.t[k], &in[k]);
  for (int k = 0; k < n_out; k++)
    if (out[k].flags & RIG_KEEP)
      fill (&start.t[k], &out[k]);
  set_copy (&y, &start);
  status = call (NULL, x.t, y.t, context);
  for (int run = 0; run < 2 * TD_EMU_ORDERS; run++)
    {
      const bool at_end = run >= TD_EMU_ORDERS;
      const TdEmuOrder order = (TdEmuOrder)(run % TD_EMU_ORDERS);
      Set gx, gy;
      TdStatus got;

      if (!rig_tries (order, at_end))
        continue;
      set_make (&gx, in, n_in, at_end);
      set_make (&gy, out, n_out, at_end);
      set_copy (&gx, &x);
      set_copy (&gy, &start);
      td_emu_order (order);
      got = call (rig_launcher (), gx.t, gy.t, context);
      if (got != status)
        fail_msg ("%s: status %d instead of %d", what, (int)got, (int)status);
      if (status == TD_OK)
        {
          compare (what, orders[order], &gy, &y, tolerance);
          compare_bits (what, "inputs", &gx, &x);
          /* Kernels read packs where arrays allow it: orders agree at one place. */
          if (place != at_end)
            set_copy (&first, &gy);
          place = at_end;
          compare_bits (what, orders[order], &gy, &first);
        }
      set_clear (&gx);
      set_clear (&gy);
    }
  td_emu_order (TD_EMU_FORWARD);
  set_clear (&x);
  set_clear (&y);
  set_clear (&start);
  set_clear (&first);
}

void
rig_all_ran (const char *const *words, int n)
{
  int n_kernels = 0;

  for (const TdEmuKernel *k = td_emu_kernels (); k != NULL; k = k->next)
    for (int i = 0; i < n; i++)
      if (strncmp (k->name, words[i], strlen (words[i])) == 0)
        {
          n_kernels++;
          if (k->runs == 0)
            fail_msg ("%s has not run", k->name);
        }
  assert_true (n_kernels >= n);
}
