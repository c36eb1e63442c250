/* Pools over memory that grows at its end, and blocks that another stream still uses.
 *
 * SPDX-License-Identifier: MIT */
#include "compute/alloc/pool.h"

#include "td-test.h"

#include <string.h>

#define PIECE ((size_t)2 << 20)

/* Addresses only, one behind the other; a piece that is given back is used again. */
static struct
{
  size_t used, limit;
  int n_fences_asked;
  bool passed[8];
} far;

static void *
far_new (void *context, size_t bytes)
{
  char *start = (char *)((uintptr_t)1 << 40);

  if (bytes > far.limit - far.used)
    return NULL;
  far.used += bytes;
  return start + far.used - bytes;
}

static void
far_free (void *context, void *address, size_t bytes)
{
  assert_ptr_equal ((char *)address + bytes, (char *)((uintptr_t)1 << 40) + far.used);
  far.used -= bytes; /* only the end is ever given back */
}

static bool
far_passed (void *context, void *fence)
{
  far.n_fences_asked++;
  return *(bool *)fence;
}

static void
far_wait (void *context, void *fence)
{
  *(bool *)fence = true;
}

static const TdSegmentProvider far_provider = { .name = "far",
                                                .segment_new = far_new,
                                                .segment_free = far_free,
                                                .alignment = 256,
                                                .joins = true,
                                                .fence_passed = far_passed,
                                                .fence_wait = far_wait };
static TdPool *pool;

static int
setup (void **state)
{
  memset (&far, 0, sizeof far);
  far.limit = 64 * PIECE;
  pool = td__pool_new (&far_provider, NULL);
  return pool == NULL;
}

static int
teardown (void **state)
{
  td__pool_free (pool);
  assert_int_equal (far.used, 0);
  return 0;
}

static TdMemInfo
info (void)
{
  TdMemInfo i = { 0 };

  assert_null (td__pool_check (pool));
  td__pool_info (pool, &i);
  return i;
}

static void
pieces__blocks_are_as_aligned_as_the_provider_says (void **state)
{
  TdBlock *a = td__pool_take (pool, 1, TD_MEM_OTHER),
          *b = td__pool_take (pool, 257, TD_MEM_OTHER),
          *c = td__pool_take (pool, 256, TD_MEM_OTHER);

  assert_int_equal (a->bytes, 256);
  assert_int_equal (b->bytes, 512);
  assert_int_equal ((uintptr_t)b->address % 256, 0);
  assert_int_equal ((uintptr_t)c->address % 256, 0);
  td__pool_release (a);
  td__pool_release (b);
  td__pool_release (c);
}

/* Two pieces that are each too small make room for what is as large as both. */
static void
pieces__join_to_one_segment (void **state)
{
  TdBlock *a = td__pool_take (pool, PIECE - 4096, TD_MEM_OTHER),
          *b = td__pool_take (pool, PIECE - 4096, TD_MEM_OTHER), *both;
  size_t reserved = info ().reserved_bytes;

  assert_true (reserved >= 2 * PIECE);
  td__pool_release (a);
  td__pool_release (b);
  assert_int_equal (info ().largest_free_bytes, reserved);
  both = td__pool_take (pool, reserved - PIECE / 2, TD_MEM_OTHER);
  assert_int_equal (info ().reserved_bytes, reserved);
  td__pool_release (both);
}

static void
pieces__trim_gives_back_the_free_end (void **state)
{
  TdBlock *kept = td__pool_take (pool, 1000, TD_MEM_PARAMETER),
          *a = td__pool_take (pool, 5 * PIECE, TD_MEM_OTHER),
          *b = td__pool_take (pool, 7 * PIECE, TD_MEM_OTHER);
  size_t reserved = info ().reserved_bytes;

  td__pool_release (b);
  assert_true (td__pool_trim (pool) >= 7 * PIECE);
  assert_true (info ().reserved_bytes <= reserved - 7 * PIECE);
  assert_true (info ().reserved_bytes >= 5 * PIECE);
  td__pool_release (a);
  assert_true (td__pool_trim (pool) > 0);
  assert_int_equal (info ().reserved_bytes, PIECE);
  assert_int_equal (far.used, PIECE);
  assert_int_equal (td__pool_trim (pool), 0);
  a = td__pool_take (pool, 5 * PIECE, TD_MEM_OTHER);
  assert_non_null (a);
  assert_null (td__pool_check (pool));
  td__pool_release (a);
  td__pool_release (kept);
  td__pool_trim (pool);
  assert_int_equal (far.used, 0);
}

static void
pending__blocks_are_nobodys_until_their_fence_passes (void **state)
{
  TdBlock *a = td__pool_take (pool, PIECE / 2, TD_MEM_ACTIVATION), *b;
  char *address = a->address;

  td__pool_release_after (a, &far.passed[0]);
  assert_int_equal (info ().live_bytes, 0);
  assert_int_equal (info ().pending_bytes, PIECE / 2);
  /* What is left of the first piece holds none of this size: new memory. */
  b = td__pool_take (pool, PIECE * 3 / 4, TD_MEM_OTHER);
  assert_true (b->address != address);
  assert_true (far.n_fences_asked > 0);
  assert_int_equal (info ().pending_bytes, PIECE / 2);
  td__pool_release (b);
  far.passed[0] = true;
  b = td__pool_take (pool, info ().largest_free_bytes + 1, TD_MEM_OTHER);
  assert_int_equal (info ().pending_bytes, 0);
  td__pool_release (b);
}

/* Out of memory: rather wait for the other stream than fail. */
static void
pending__is_waited_for_when_memory_is_out (void **state)
{
  TdBlock *a, *b;

  far.limit = 4 * PIECE;
  a = td__pool_take (pool, 3 * PIECE, TD_MEM_OTHER);
  assert_null (td__pool_take (pool, 3 * PIECE, TD_MEM_OTHER));
  td__pool_release_after (a, &far.passed[0]);
  b = td__pool_take (pool, 3 * PIECE, TD_MEM_OTHER);
  assert_non_null (b);
  assert_true (far.passed[0]);
  assert_int_equal (info ().pending_bytes, 0);
  td__pool_release (b);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (pieces__blocks_are_as_aligned_as_the_provider_says),
    row (pieces__join_to_one_segment),
    row (pieces__trim_gives_back_the_free_end),
    row (pending__blocks_are_nobodys_until_their_fence_passes),
    row (pending__is_waited_for_when_memory_is_out),
  };

  return cmocka_run_group_tests_name ("pool-pieces", tests, NULL, NULL);
}
