/* The allocator: alignment, coalescing, determinism, categories, limits, a long random run.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include "compute/alloc/pool.h"
#include "device.h"

#include <stdlib.h>
#include <string.h>

static void
whole (const TdPool *pool)
{
  const char *wrong = td__pool_check (pool);

  if (wrong != NULL)
    fail_msg ("%s", wrong);
}

static void
pool__aligns_and_keeps_blocks_apart (void **state)
{
  TdPool *pool = td__pool_new (&td__provider_host, NULL);
  TdBlock *blocks[100];

  (void)state;
  for (int i = 0; i < 100; i++)
    {
      blocks[i] = td__pool_take (pool, (size_t)(i * 37), TD_MEM_OTHER);
      assert_int_equal ((uintptr_t)blocks[i]->address % 64, 0);
      memset (blocks[i]->address, i, (size_t)(i * 37));
    }
  for (int i = 0; i < 100; i++)
    for (int k = 0; k < i * 37; k++)
      assert_int_equal ((unsigned char)blocks[i]->address[k], i);
  whole (pool);
  for (int i = 0; i < 100; i++)
    td__pool_release (blocks[i]);
  whole (pool);
  td__pool_free (pool);
}

static void
pool__joins_neighbours_at_once (void **state)
{
  TdPool *pool = td__pool_new (&td__provider_host, NULL);
  TdBlock *a = td__pool_take (pool, 1000, TD_MEM_OTHER),
          *b = td__pool_take (pool, 1000, TD_MEM_OTHER),
          *c = td__pool_take (pool, 1000, TD_MEM_OTHER);
  TdMemInfo info;

  (void)state;
  td__pool_release (a);
  td__pool_release (c);
  td__pool_release (b);
  whole (pool);
  td__pool_info (pool, &info);
  assert_int_equal (info.largest_free_bytes, info.reserved_bytes);
  assert_int_equal (td__pool_trim (pool), info.reserved_bytes);
  td__pool_free (pool);
}

/* The same calls give the same offsets, whatever the addresses. */
static void
pool__places_by_the_sequence_of_calls_alone (void **state)
{
  TdPool *pools[2]
      = { td__pool_new (&td__provider_fake, NULL), td__pool_new (&td__provider_fake, NULL) };
  TdBlock *blocks[2][200];
  uint32_t seed = 12345;

  (void)state;
  memset (blocks, 0, sizeof blocks);
  for (int step = 0; step < 2000; step++)
    {
      seed = seed * 1664525 + 1013904223;
      int i = (int)(seed >> 8) % 200;

      for (int p = 0; p < 2; p++)
        if (blocks[p][i] != NULL)
          {
            td__pool_release (blocks[p][i]);
            blocks[p][i] = NULL;
          }
        else
          blocks[p][i] = td__pool_take (pools[p], 1 + (seed >> 4) % 100000, TD_MEM_OTHER);
    }
  for (int i = 1; i < 200; i++)
    if (blocks[0][i] != NULL && blocks[0][0] != NULL)
      assert_int_equal (blocks[0][i]->address - blocks[0][0]->address,
                        blocks[1][i]->address - blocks[1][0]->address);
  whole (pools[0]);
  td__pool_free (pools[0]);
  td__pool_free (pools[1]);
}

static void
pool__counts_bytes_by_category_and_refuses_beyond_the_limit (void **state)
{
  TdPool *pool = td__pool_new (&td__provider_host, NULL);
  TdMemInfo info;
  TdBlock *a, *b;

  (void)state;
  td__pool_set_limit (pool, 10000);
  a = td__pool_take (pool, 6400, TD_MEM_PARAMETER);
  b = td__pool_take (pool, 640, TD_MEM_GRADIENT);
  assert_null (td__pool_take (pool, 6400, TD_MEM_ACTIVATION));
  td__pool_info (pool, &info);
  assert_int_equal (info.category_bytes[TD_MEM_PARAMETER], 6400);
  assert_int_equal (info.category_bytes[TD_MEM_GRADIENT], 640);
  assert_int_equal (info.category_bytes[TD_MEM_ACTIVATION], 0);
  assert_int_equal (info.live_bytes, 7040);
  td__pool_release (a);
  a = td__pool_take (pool, 6400, TD_MEM_ACTIVATION);
  assert_non_null (a);
  td__pool_release (a);
  td__pool_release (b);
  td__pool_info (pool, &info);
  assert_int_equal (info.live_bytes, 0);
  assert_int_equal (info.peak_bytes, 7040);
  td__pool_free (pool);
}

static void
pool__is_whole_after_a_long_random_run (void **state)
{
  TdPool *pool = td__pool_new (&td__provider_fake, NULL);
  enum
  {
    N = 1000
  };
  static TdBlock *blocks[N];
  uint32_t seed = 1;

  (void)state;
  for (int step = 0; step < 200000; step++)
    {
      seed = seed * 1664525 + 1013904223;
      int i = (int)((seed >> 8) % N);

      if (blocks[i] != NULL)
        {
          td__pool_release (blocks[i]);
          blocks[i] = NULL;
        }
      else
        blocks[i] = td__pool_take (pool, (size_t)1 << (seed >> 20) % 24,
                                   (seed >> 4) % TD_MEM_N_CATEGORIES);
      if (step % 5000 == 0)
        whole (pool);
    }
  for (int i = 0; i < N; i++)
    if (blocks[i] != NULL)
      td__pool_release (blocks[i]);
  whole (pool);
  td__pool_free (pool);
}

static void
pool__refuses_absurd_sizes (void **state)
{
  TdPool *pool = td__pool_new (&td__provider_host, NULL);

  (void)state;
  assert_null (td__pool_take (pool, SIZE_MAX, TD_MEM_OTHER));
  assert_null (td__pool_take (pool, SIZE_MAX - 100, TD_MEM_OTHER));
  whole (pool);
  td__pool_free (pool);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (pool__aligns_and_keeps_blocks_apart),
    td_test (pool__joins_neighbours_at_once),
    td_test (pool__places_by_the_sequence_of_calls_alone),
    td_test (pool__counts_bytes_by_category_and_refuses_beyond_the_limit),
    td_test (pool__is_whole_after_a_long_random_run),
    td_test (pool__refuses_absurd_sizes),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
