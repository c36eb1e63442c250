/* One engine and one communicator for the tests of a program that runs as several ranks.
 *
 * SPDX-License-Identifier: MIT */
#include "ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TdComm *world;
int me, n_ranks;

int
ranks_start (void **state)
{
  const char *name = getenv ("TD_TEST_COMM");

  if (td_test_setup (state) != 0 || group_start (state) != 0)
    return -1;
  world = td_comm_new (name != NULL ? name : "mpi");
  me = td_comm_rank (world);
  n_ranks = td_comm_size (world);
  return td_error () == NULL && n_ranks > 0 ? 0 : -1;
}

int
ranks_stop (void **state)
{
  const int status = group_stop (state);

  td_test_teardown (state);
  return status;
}

int
ranks_teardown (void **state)
{
  if (td_error () != NULL)
    print_error ("rank %d, unexpected: %s\n", me, td_error ()->message);
  return td_error () != NULL ? -1 : tidy_teardown (state);
}

TdVar *
numbers_of (int rank, TdDtype dtype, TdShape shape, unsigned seed)
{
  uint64_t random = seed * 1000003u + (unsigned)rank;
  double room[512];
  int64_t n = 1;

  for (int i = 0; i < shape.ndim; i++)
    n *= shape.dim[i];
  assert_true (n <= 512);
  for (int64_t i = 0; i < n; i++)
    {
      room[i] = (double)(td_random_next (&random) >> 11) * 0x1p-52 - 1;
      if (dtype > TD_BF16)
        room[i] = floor (fabs (room[i]) * 50);
    }
  return td_cast (td_tensor (TD_F64, shape, room), dtype);
}

void
assert_near (TdVar *a, TdVar *b, double tolerance)
{
  const int64_t n = td_size (a);
  double *x = malloc ((size_t)n * sizeof *x), *y = malloc ((size_t)n * sizeof *y);

  assert_int_equal (td_dtype (a), td_dtype (b));
  assert_int_equal (td_ndim (a), td_ndim (b));
  for (int i = 0; i < td_ndim (a); i++)
    assert_int_equal (td_shape (a).dim[i], td_shape (b).dim[i]);
  assert_int_equal (td_read (td_cast (a, TD_F64), x, (size_t)n * sizeof *x), TD_OK);
  assert_int_equal (td_read (td_cast (b, TD_F64), y, (size_t)n * sizeof *y), TD_OK);
  for (int64_t i = 0; i < n; i++)
    if (!(fabs (x[i] - y[i]) <= tolerance * fmax (1, fabs (y[i]))))
      fail_msg ("rank %d, element %d: %.17g, %.17g expected", me, (int)i, x[i], y[i]);
  free (x);
  free (y);
}

/* The first rank that has other bytes; -1: none. */
static int
other_rank (const void *bytes, size_t n)
{
  int other = -1;

  TD_SCOPE ("compare")
    {
      TdVar *mine = td_tensor (TD_U8, TD_SHAPE ((int64_t)n), bytes);
      TdVar *all = td_comm_allgather (world, mine);
      unsigned char *room = malloc (n * (size_t)n_ranks);

      assert_int_equal (td_read (all, room, n * (size_t)n_ranks), TD_OK);
      for (int r = n_ranks - 1; r >= 0; r--)
        if (memcmp (room + n * (size_t)r, bytes, n) != 0)
          other = r;
      free (room);
    }
  return other;
}

bool
same_on_all_ranks (const void *bytes, size_t n)
{
  return other_rank (bytes, n) < 0;
}

void
assert_same_on_all_ranks (const void *bytes, size_t n)
{
  const int other = other_rank (bytes, n);

  if (other >= 0)
    fail_msg ("ranks %d and %d have different bytes", me, other);
}
