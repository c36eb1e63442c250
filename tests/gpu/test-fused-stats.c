/* The ring of what kernels counted: nothing that somebody waits for is written over, and what
 * is found is what the array's last writer left.
 *
 * SPDX-License-Identifier: MIT */
#include "async.h"

#include <string.h>

#include "td-test.h"

enum
{
  PARTS = 1 << 14,
  MOST_WAITING = 64,
  ARRAYS = 40,
  BYTES = 4096 /* of an array, and between two of them */
};

/* --- the module around it --- */

TdCudaApi td_cuda;

static TdCuda device;
static bool can_open, is_open;
static int n_sent;

typedef struct
{
  uint64_t writer;
} Part;
static TdCudaStats *const ring = (TdCudaStats *)(uintptr_t)0x10000000; /* never looked at */
static Part parts[PARTS];

/* Parts that wait: what is to be in them. */
static struct
{
  int64_t first, n;
  uint64_t writer;
} waiting[MOST_WAITING];
static int n_waiting;

bool
td_cuda_stats_open (TdCuda *c)
{
  if (!is_open && can_open)
    is_open = td_cuda_fused_stats_open (c, (CUdeviceptr)(uintptr_t)ring);
  return is_open;
}

void
td_cuda_stats_send (TdCuda *c)
{
  for (int i = 0; i < n_waiting; i++)
    for (int64_t k = 0; k < waiting[i].n; k++)
      if (parts[waiting[i].first + k].writer != waiting[i].writer)
        fail_msg ("part %d was written over", (int)k);
  n_waiting = 0;
  n_sent++;
  td_cuda_fused_stats_sent (c);
}

static int
setup (void **state)
{
  device = (TdCuda){ .device = { .stats_wanted = true } };
  can_open = true;
  is_open = false;
  n_sent = n_waiting = 0;
  memset (parts, 0, sizeof parts);
  return 0;
}

static int
teardown (void **state)
{
  td_cuda_fused_stats_close (&device);
  return 0;
}

static TdTensor
array (int i)
{
  return (TdTensor){ .data = (char *)(uintptr_t)0x40000000 + (size_t)i * BYTES,
                     .size = BYTES / 4,
                     .dtype = TD_F32 };
}

/* Launch who writes array i and counts; 0: it does not. */
static bool
write_array (int i, int64_t blocks, uint64_t writer)
{
  const TdTensor x = array (i);
  TdCudaStats *at;

  td_cuda_fused_stats_written (&device, x.data, BYTES);
  at = td_cuda_fused_stats_take (&device, &x, blocks);
  for (int64_t k = 0; at != NULL && k < blocks; k++)
    {
      assert_true (at + k >= ring && at + k < ring + PARTS);
      parts[at + k - ring].writer = writer;
    }
  return at != NULL;
}

/* Ask for array i as stats-async.c does.  Returns who wrote it, 0 where it is to be read. */
static uint64_t
ask_for (int i)
{
  const TdTensor x = array (i);
  const TdCudaParts found = td_cuda_fused_stats_find (&device, &x);
  uint64_t writer;

  if (found.parts == NULL)
    return 0;
  if (n_waiting == MOST_WAITING)
    td_cuda_stats_send (&device);
  td_cuda_fused_stats_waits (&device, &found);
  writer = parts[found.parts - ring].writer;
  for (int64_t k = 0; k < found.n; k++)
    assert_true (parts[found.parts + k - ring].writer == writer);
  waiting[n_waiting].first = found.parts - ring;
  waiting[n_waiting].n = found.n;
  waiting[n_waiting++].writer = writer;
  return writer;
}

static uint64_t
random_below (uint64_t n)
{
  static uint64_t seed = 12345;

  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (seed >> 33) % n;
}

static void
ring__keeps_what_waits_whatever_is_written_and_asked_for (void **state)
{
  uint64_t last[ARRAYS] = { 0 };
  long n_found = 0, n_asked = 0;

  for (uint64_t step = 1; step < 60000; step++)
    {
      const int i = (int)random_below (ARRAYS);

      switch (random_below (8))
        {
        case 0: /* by a kernel that does not count */
          td_cuda_fused_stats_written (&device, array (i).data, 1 + random_below (BYTES));
          last[i] = 0;
          break;
        case 1:
          if (random_below (64) == 0)
            td_cuda_stats_send (&device);
          break;
        case 2: /* asked for later than right after it was written, or never written */
          n_asked++;
          if (ask_for (i) != 0)
            n_found++;
          break;
        default:
          last[i]
              = write_array (i, 1 + (int64_t)random_below (random_below (4) ? 20 : 1500), step)
                    ? step
                    : 0;
          assert_true (last[i] != 0);
          if (random_below (3) > 0)
            assert_true (ask_for (i) == step);
        }
      const TdTensor x = array (i);
      const TdCudaParts found = td_cuda_fused_stats_find (&device, &x);

      if (found.parts != NULL)
        assert_true (last[i] != 0 && parts[found.parts - ring].writer == last[i]);
    }
  assert_true (n_found > 0 && n_found < n_asked && n_sent > 100);
}

static void
counted__is_forgotten_where_something_writes (void **state)
{
  const TdTensor x = array (3), half = { x.data, NULL, x.size / 2, TD_F32 },
                 other = { x.data, NULL, x.size * 2, TD_F16 };

  for (int end = 0; end < 2; end++)
    {
      assert_true (write_array (3, 4, 7));
      assert_non_null (td_cuda_fused_stats_find (&device, &x).parts);
      assert_null (td_cuda_fused_stats_find (&device, &half).parts); /* of the same begin */
      assert_null (td_cuda_fused_stats_find (&device, &other).parts);
      td_cuda_fused_stats_written (&device, array (2).data, BYTES); /* its neighbours */
      td_cuda_fused_stats_written (&device, array (4).data, BYTES);
      assert_non_null (td_cuda_fused_stats_find (&device, &x).parts);
      td_cuda_fused_stats_written (&device, (char *)x.data + end * (BYTES - 1), 1);
      assert_null (td_cuda_fused_stats_find (&device, &x).parts);
    }
  assert_true (write_array (3, 4, 7));
  td_cuda_fused_stats_forget (&device); /* a graph writes anywhere */
  assert_null (td_cuda_fused_stats_find (&device, &x).parts);
}

static void
counted__is_nothing_unless_somebody_asks (void **state)
{
  static const struct TdCudaCapture *const capture = (const void *)&device;

  device.device.stats_wanted = false;
  assert_false (write_array (0, 1, 1));
  device.device = (TdDevice){ .stats_wanted = true, .stats_apart = true };
  assert_false (write_array (0, 1, 1));
  device.device.stats_apart = false;
  device.capture = (struct TdCudaCapture *)(uintptr_t)capture;
  assert_false (write_array (0, 1, 1));
  device.capture = NULL;
  device.lost = TD_ERR_DEVICE;
  assert_false (write_array (0, 1, 1));
  device.lost = TD_OK;
  assert_false (write_array (0, PARTS + 1, 1));
  can_open = false;
  assert_false (write_array (0, 1, 1));
  can_open = true;
  assert_true (write_array (0, 1, 1));
  assert_true (write_array (1, PARTS, 2)); /* all of the room */
  assert_true (ask_for (1) == 2);
  assert_true (ask_for (0) == 0);
  assert_int_equal (n_sent, 0);
  assert_true (write_array (2, 1, 3)); /* what waited went first */
  assert_int_equal (n_sent, 1);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (ring__keeps_what_waits_whatever_is_written_and_asked_for),
    row (counted__is_forgotten_where_something_writes),
    row (counted__is_nothing_unless_somebody_asks),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
