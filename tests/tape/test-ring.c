/* The ring between two sides: order, waiting, death of either.
 * SPDX-License-Identifier: MIT */
#include "../support/td-test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/ring.h"

static char error[256];

static TdRing *
new_ring (const char *path)
{
  TdRingOptions options = { .capacity = 64 << 10, .tape = "t.tdtape" };
  TdRing *ring = td_ring_new (path, &options, error, sizeof error);

  if (ring == NULL)
    fail_msg ("%s", error);
  return ring;
}

static void
put_report (TdRing *ring, double value, uint32_t extra)
{
  TdRawReport *r = td_ring_reserve (ring, (uint32_t)sizeof *r + extra);

  r->head = (TdRawHead){ .size = (uint32_t)sizeof *r + extra, .type = TD_RAW_REPORT };
  r->value = value;
  td_ring_publish (ring, r->head.size);
}

/* Take all that is there; checks that values go on from `next`. */
static uint64_t
take_reports (TdRing *ring, uint64_t next)
{
  const void *bytes;
  size_t n;

  while ((n = td_ring_peek (ring, &bytes)) > 0)
    {
      for (const char *at = bytes, *end = at + n; at < end; at += ((const TdRawHead *)at)->size)
        {
          const TdRawReport *r = (const TdRawReport *)at;

          if (r->head.type == TD_RAW_PAD)
            continue;
          if (r->head.type != TD_RAW_REPORT || r->value != (double)next)
            return UINT64_MAX;
          next++;
        }
      td_ring_take (ring, n);
      td_ring_release (ring, 0);
    }
  return next;
}

#define MANY 200000

static void *
produce (void *user)
{
  for (int i = 0; i < MANY; i++)
    put_report (user, i, (uint32_t)(i % 7) * 8);
  return NULL;
}

static void
ring__delivers_every_record_in_order_while_both_sides_run (void **state)
{
  const char *path = td_test_tmp ("ring");
  TdRing *ring = new_ring (path), *other = td_ring_open (path, error, sizeof error);
  pthread_t thread;
  uint64_t next = 0;

  assert_non_null (other);
  td_ring_consume (other);
  pthread_create (&thread, NULL, produce, ring);
  while (next < MANY)
    {
      next = take_reports (other, next);
      assert_int_not_equal (next, UINT64_MAX);
    }
  pthread_join (thread, NULL);
  assert_int_equal (next, MANY);
  td_ring_free (other);
  td_ring_free (ring);
}

static void
ring__keeps_what_the_consumer_wants_to_keep (void **state)
{
  TdRing *ring = new_ring (NULL);
  const void *bytes;
  size_t n;

  put_report (ring, 1, 0);
  put_report (ring, 2, 0);
  n = td_ring_peek (ring, &bytes);
  td_ring_take (ring, n);
  td_ring_release (ring, sizeof (TdRawReport));
  assert_int_equal (atomic_load (&ring->shared->tail), sizeof (TdRawReport));
  assert_int_equal (td_ring_peek (ring, &bytes), 0);
  td_ring_free (ring);
}

static void
ring__shows_what_is_committed_with_the_record_that_follows (void **state)
{
  TdRing *ring = new_ring (NULL);
  TdRawHead *head = td_ring_reserve (ring, sizeof *head);
  const void *bytes;

  *head = (TdRawHead){ sizeof *head, TD_RAW_SCOPE_CLOSE, 0 };
  td_ring_commit (ring, sizeof *head);
  assert_int_equal (td_ring_peek (ring, &bytes), 0);
  put_report (ring, 1, 0);
  assert_int_equal (td_ring_peek (ring, &bytes), sizeof *head + sizeof (TdRawReport));
  assert_int_equal (((const TdRawHead *)bytes)->type, TD_RAW_SCOPE_CLOSE);
  td_ring_free (ring);
}

/* With nothing published the consumer would never make room. */
static void
drain_all (TdRing *ring, void *user)
{
  const void *bytes;
  size_t n = td_ring_peek (ring, &bytes);

  *(size_t *)user += n;
  td_ring_take (ring, n);
  td_ring_release (ring, 0);
}

static void
ring__full_of_what_is_only_committed_shows_it (void **state)
{
  TdRing *ring = new_ring (NULL);
  size_t drained = 0;

  ring->full = drain_all;
  ring->user = &drained;
  for (uint64_t i = 0; i < ring->capacity / 16; i++)
    {
      TdRawHead *head = td_ring_reserve (ring, 32);

      *head = (TdRawHead){ 32, TD_RAW_SCOPE_CLOSE, 0 };
      td_ring_commit (ring, 32);
    }
  assert_false (ring->dead);
  assert_true (drained >= ring->capacity);
  td_ring_free (ring);
}

static void
ring__when_full_lets_the_program_go_on_after_the_consumer_died (void **state)
{
  TdRing *ring = new_ring (NULL);
  pid_t child = fork ();
  uint64_t before;

  if (child == 0)
    _exit (0);
  waitpid (child, NULL, 0);
  atomic_store (&ring->shared->consumer_pid, child);
  for (int i = 0; i < 10000; i++)
    put_report (ring, i, 0);
  assert_true (ring->dead);
  assert_int_equal (atomic_load (&ring->shared->gave_up), 1);
  assert_int_equal (atomic_load (&ring->shared->n_stalls), 1);
  before = atomic_load (&ring->shared->head);
  assert_true (before <= ring->capacity);
  put_report (ring, 1, 0);
  assert_int_equal (atomic_load (&ring->shared->head), before);
  td_ring_free (ring);
}

static void
drain (TdRing *ring, void *user)
{
  *(uint64_t *)user = take_reports (ring, *(uint64_t *)user);
}

static void
ring__drains_in_the_same_process_when_asked (void **state)
{
  TdRing *ring = new_ring (NULL);
  uint64_t next = 0;

  ring->full = drain;
  ring->user = &next;
  for (int i = 0; i < 50000; i++)
    put_report (ring, i, 16);
  assert_int_equal (take_reports (ring, next), 50000);
  assert_false (ring->dead);
  td_ring_free (ring);
}

static void
ring__survives_the_kill_of_its_producer (void **state)
{
  const char *path = td_test_tmp ("ring");
  TdRing *ring = new_ring (path);
  uint64_t next;
  pid_t child = fork ();

  if (child == 0)
    {
      TdRing *own = td_ring_open (path, error, sizeof error);

      td_ring_produce (own);
      own->shared->now.opdef = 7;
      for (int i = 0; i < 1000; i++)
        put_report (own, i, 0);
      /* half a record, never published */
      memset (td_ring_reserve (own, 64), 0xff, 64);
      kill (getpid (), SIGKILL);
    }
  waitpid (child, NULL, 0);
  next = take_reports (ring, 0);
  assert_int_equal (next, 1000);
  assert_int_equal (ring->shared->now.opdef, 7);
  assert_false (td_ring_alive (ring->shared->producer_pid));
  td_ring_free (ring);
}

static void
ring__refuses_files_that_are_none (void **state)
{
  const char *path = td_test_tmp ("ring"), *other = td_test_tmp ("other");
  TdRing *ring = new_ring (path);
  char *bytes;
  size_t n;

  td_ring_free (ring);
  bytes = td_test_read_file (path, &n);
  assert_null (td_ring_open (td_test_tmp ("missing"), error, sizeof error));
  assert_contains (error, "No such file");
  td_test_write_file (other, bytes, 100);
  assert_null (td_ring_open (other, error, sizeof error));
  assert_contains (error, "not a ring");
  td_test_write_file (other, bytes, n - 1);
  assert_null (td_ring_open (other, error, sizeof error));
  td_test_write_file (other, "", 0);
  assert_null (td_ring_open (other, error, sizeof error));
  ((TdRingShared *)bytes)->head = 1 << 30;
  td_test_write_file (other, bytes, n);
  assert_null (td_ring_open (other, error, sizeof error));
  assert_string_equal (error, "a ring with impossible positions");
  ((TdRingShared *)bytes)->head = 0;
  ((TdRingShared *)bytes)->capacity = UINT64_MAX / 2 + 1;
  td_test_write_file (other, bytes, n);
  assert_null (td_ring_open (other, error, sizeof error));
  assert_string_equal (error, "a ring that was cut off");
  free (bytes);
}

static void
ring__is_made_new_and_only_for_its_owner (void **state)
{
  const char *path = td_test_tmp ("ring");
  TdRingOptions options = { 0 };
  TdRing *ring = new_ring (path);

  assert_null (td_ring_new (path, &options, error, sizeof error));
  assert_contains (error, "File exists");
  assert_true (ring->shared->ns_per_tick > 0.01 && ring->shared->ns_per_tick < 1000);
  td_ring_free (ring);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (ring__delivers_every_record_in_order_while_both_sides_run),
    td_test (ring__keeps_what_the_consumer_wants_to_keep),
    td_test (ring__shows_what_is_committed_with_the_record_that_follows),
    td_test (ring__full_of_what_is_only_committed_shows_it),
    td_test (ring__when_full_lets_the_program_go_on_after_the_consumer_died),
    td_test (ring__drains_in_the_same_process_when_asked),
    td_test (ring__survives_the_kill_of_its_producer),
    td_test (ring__refuses_files_that_are_none),
    td_test (ring__is_made_new_and_only_for_its_owner),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
