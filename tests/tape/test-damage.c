/* A search for untruths about damaged tapes: cut at many lengths and with flipped bits.  Whole
 * is only what can be loaded, damage is never called the budget, and what is there is read.
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#include "tape/format/tape-private.h"

#define N_ITERATIONS 14
#define N_CUTS 100
#define N_FLIPS 200

typedef struct
{
  const char *path, *out;
  char *good, *bad;
  size_t n;
  uint64_t end[N_ITERATIONS]; /* of the records of each */
  uint64_t random;
} Damage;

static uint64_t
next_random (Damage *d)
{
  d->random ^= d->random << 13;
  d->random ^= d->random >> 7;
  d->random ^= d->random << 17;
  return d->random;
}

static void
setup (Damage *d, unsigned n_iterations, uint64_t budget)
{
  TdTapeWriterOptions options = { .budget_bytes = budget };
  Rig rig = { .m = { .memory = true, .recurrent = true } };

  rig_start (&rig, budget ? &options : NULL);
  rig_iterations (&rig, (int)n_iterations);
  rig_stop (&rig, 0);
  *d = (Damage){ .path = td_test_tmp ("bad.tdtape"),
                 .out = td_test_tmp ("out.tdtape"),
                 .good = td_test_read_file (rig.path, &d->n),
                 .n = d->n,
                 .random = 88172645463325252u };
  d->bad = malloc (d->n);
  assert_non_null (d->bad);
  for (unsigned i = 0; i < n_iterations && budget == 0; i++)
    {
      const TdTapeSummaries s = td_tape_reader_summaries (rig_read (&rig));
      TdTapeFrame frame;

      assert_int_equal (s.n, n_iterations);
      memcpy (&frame, d->good + s.rows[i].offset, sizeof frame);
      d->end[i] = s.rows[i].offset + frame.len;
    }
  rig_clear (&rig);
}

static void
teardown (Damage *d)
{
  free (d->good);
  free (d->bad);
}

/* How many can be loaded; of the others none may have been taken by the budget. */
static unsigned
count_loadable (const char *path, unsigned n)
{
  char error[256], thinned[200];
  TdTapeReader *r = td_tape_reader_open (path, error, sizeof error);
  TdTapeThinning t;
  unsigned loadable = 0;

  if (r == NULL)
    return 0;
  for (unsigned i = 0; i < n; i++)
    {
      const TdTapeIteration *it = td_tape_iteration_load (r, i, error, sizeof error);

      loadable += it != NULL;
      if (it == NULL && (strstr (error, "budget") || strstr (error, "thinned")))
        fail_msg ("iteration %u: %s", i, error);
      if (it == NULL && !strstr (error, "damage") && !strstr (error, "ends too early"))
        fail_msg ("iteration %u: %s", i, error);
      td_tape_iteration_free (it);
    }
  t = td_tape_reader_thinning (r);
  td_tape_thinning_text (&t, thinned, sizeof thinned);
  if (strstr (thinned, "of the older ones") || strstr (thinned, "all have a summary"))
    fail_msg ("%s", thinned);
  td_tape_reader_free (r);
  return loadable;
}

static void
expect_truth (Damage *d, const char *what, size_t at)
{
  unsigned loadable = count_loadable (d->path, N_ITERATIONS);
  TdTapeCheck check;
  char error[256];

  if (!td_tape_check (d->path, &check))
    return;
  if (check.whole && loadable < N_ITERATIONS)
    fail_msg ("%s at %zu: whole, and %u can be loaded", what, at, loadable);
  if (check.n_loadable != loadable)
    fail_msg ("%s at %zu: %u, not %u", what, at, loadable, (unsigned)check.n_loadable);
  remove (d->out);
  if (!td_tape_repair (d->path, d->out, error, sizeof error))
    fail_msg ("%s at %zu: %s", what, at, error);
  if (count_loadable (d->out, N_ITERATIONS) < loadable)
    fail_msg ("%s at %zu: repair lost some of %u", what, at, loadable);
  if (!td_tape_check (d->out, &check) || !check.whole)
    fail_msg ("%s at %zu: not repaired: offset %u: %s", what, at, (unsigned)check.first_bad,
              check.what);
}

static void
damage__cut_tapes_keep_every_iteration_that_is_there (void **state)
{
  Damage d;

  setup (&d, N_ITERATIONS, 0);
  for (size_t k = 1; k < N_CUTS; k++)
    {
      const size_t cut = 4096 + (d.n - 4096) * k / N_CUTS;
      unsigned there = 0;
      TdTapeCheck check;

      for (unsigned i = 0; i < N_ITERATIONS; i++)
        there += d.end[i] <= cut;
      td_test_write_file (d.path, d.good, cut);
      expect_truth (&d, "cut", cut);
      assert_true (td_tape_check (d.path, &check));
      if (check.n_loadable != there) /* their definitions come before them */
        fail_msg ("cut at %zu: %u of %u", cut, (unsigned)check.n_loadable, there);
      assert_false (check.whole);
      assert_contains (check.what, "the file ends too early");
      assert_int_equal (check.n_iterations, N_ITERATIONS);
    }
  teardown (&d);
}

static void
damage__flipped_bits_are_damage_wherever_an_iteration_is_lost (void **state)
{
  Damage d;

  setup (&d, N_ITERATIONS, 0);
  for (size_t k = 0; k < N_FLIPS; k++)
    {
      size_t at = 0;

      memcpy (d.bad, d.good, d.n);
      for (size_t flips = 1 + k % 3; flips > 0; flips--)
        {
          at = 512 + next_random (&d) % (d.n - 512);
          while (d.good[at] == 0 && at + 1 < d.n)
            at++;
          d.bad[at] ^= (char)(1u << (next_random (&d) % 8));
        }
      td_test_write_file (d.path, d.bad, d.n);
      expect_truth (&d, "a flip", at);
    }
  teardown (&d);
}

/* A tape that was really thinned goes on to say so. */
static void
damage__a_thinned_tape_is_whole_and_says_that_it_was_thinned (void **state)
{
  TdTapeCheck check;
  uint64_t loadable;
  Damage d;

  setup (&d, 3000, 512 << 10);
  td_test_write_file (d.path, d.good, d.n);
  assert_true (td_tape_check (d.path, &check));
  if (!check.whole)
    fail_msg ("at %u: %s", (unsigned)check.first_bad, check.what);
  assert_contains (check.thinned, "are whole, the newest from");
  assert_null (strstr (check.thinned, "lost"));
  loadable = check.n_loadable;
  for (size_t k = 1; k < 40; k++)
    {
      td_test_write_file (d.path, d.good, 4096 + (d.n - 4096) * k / 40);
      assert_true (td_tape_check (d.path, &check));
      if (check.whole) /* the end had nothing in it */
        assert_int_equal (check.n_loadable, loadable);
    }
  teardown (&d);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (damage__cut_tapes_keep_every_iteration_that_is_there),
    td_test (damage__flipped_bits_are_damage_wherever_an_iteration_is_lost),
    td_test (damage__a_thinned_tape_is_whole_and_says_that_it_was_thinned),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
