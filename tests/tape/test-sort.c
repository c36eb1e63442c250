/* Sorting of what an import has read: in order, those that are equal as they were, and left
 * when nobody wants it any more.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include "tape/tools/tape-sort.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  uint64_t key;
  uint64_t place; /* where it was */
  char rest[40];
} Item;

static uint64_t
next (uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

static int
by_key (const void *a, const void *b)
{
  const Item *x = a, *y = b;

  return x->key < y->key ? -1 : x->key > y->key;
}

static Item *
items (size_t n, uint64_t keys, uint64_t seed)
{
  Item *made = calloc (n + 1, sizeof *made);

  assert_non_null (made);
  for (size_t i = 0; i < n; i++)
    {
      made[i].key = keys > 0 ? next (&seed) % keys : i;
      made[i].place = i;
      memset (made[i].rest, (int)(i & 127), sizeof made[i].rest);
    }
  return made;
}

static void
assert_sorted (const Item *made, size_t n)
{
  uint64_t places = 0;

  for (size_t i = 0; i < n; i++)
    {
      if (i > 0)
        assert_true (made[i - 1].key < made[i].key
                     || (made[i - 1].key == made[i].key && made[i - 1].place < made[i].place));
      assert_int_equal (made[i].rest[39], made[i].place & 127);
      places += made[i].place;
    }
  assert_int_equal (places, n > 0 ? (uint64_t)n * (n - 1) / 2 : 0);
}

/* The order of those that are equal is theirs, so there is one right answer. */
static void
sort__orders_all_and_keeps_equal_ones (void **state)
{
  static const size_t sizes[] = { 0, 1, 2, 3, 7, 8, 9, 16, 17, 1000, 65536, 200003 };
  static const uint64_t keys[] = { 0, 1, 2, 50, 1 << 30 };

  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
      {
        Item *made = items (sizes[i], keys[k], i * 31 + k);

        assert_int_equal (td__tape_sort (made, sizes[i], sizeof *made, by_key, NULL, NULL),
                          TAPE_SORTED);
        assert_sorted (made, sizes[i]);
        free (made);
      }
}

static void
sort__orders_what_is_the_other_way_round (void **state)
{
  const size_t n = 100001;
  Item *made = items (n, 0, 1);

  (void)state;
  for (size_t i = 0; i < n; i++)
    made[i].key = n - i;
  assert_int_equal (td__tape_sort (made, n, sizeof *made, by_key, NULL, NULL), TAPE_SORTED);
  assert_sorted (made, n);
  free (made);
}

typedef struct
{
  uint64_t n_looks, until, n_compared, before, most;
} Looks;

static Looks looks;

static int
counting (const void *a, const void *b)
{
  looks.n_compared++;
  return by_key (a, b);
}

static bool
look (void *user)
{
  Looks *l = user;
  const uint64_t since = l->n_compared - l->before;

  l->before = l->n_compared;
  l->most = since > l->most ? since : l->most;
  return ++l->n_looks <= l->until;
}

/* Wherever it is left: it returns at once, and between two looks little was compared. */
static void
sort__is_left_at_any_look (void **state)
{
  const size_t n = 300000;
  uint64_t all;
  Item *made = items (n, 1 << 30, 5);

  (void)state;
  looks = (Looks){ .until = UINT64_MAX };
  assert_int_equal (td__tape_sort (made, n, sizeof *made, counting, look, &looks), TAPE_SORTED);
  all = looks.n_looks;
  assert_in_range (all, 20, 1000);
  free (made);
  for (uint64_t until = 0; until < all; until++)
    {
      made = items (n, 1 << 30, 5);
      looks = (Looks){ .until = until };
      assert_int_equal (td__tape_sort (made, n, sizeof *made, counting, look, &looks),
                        TAPE_SORT_LEFT);
      assert_int_equal (looks.n_looks, until + 1);
      assert_int_equal (looks.n_compared, looks.before);
      assert_in_range (looks.most, 0, 1000000);
      free (made);
    }
}

static void
sort__refuses_what_is_too_large (void **state)
{
  char small[65 * 2] = { 0 };

  (void)state;
  assert_int_equal (td__tape_sort (small, 2, 65, by_key, NULL, NULL), TAPE_SORT_NO_MEMORY);
  assert_int_equal (td__tape_sort (small, (uint64_t)1 << 32, 8, by_key, NULL, NULL),
                    TAPE_SORT_NO_MEMORY);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (sort__orders_all_and_keeps_equal_ones),
    cmocka_unit_test (sort__orders_what_is_the_other_way_round),
    cmocka_unit_test (sort__is_left_at_any_look),
    cmocka_unit_test (sort__refuses_what_is_too_large),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
