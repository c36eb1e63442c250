/* What a program says of other ranks: when it waits for them.  SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "td-producer.h"
#include "td-tape-reader.h"

/* A tape with an iteration that is open. */
typedef struct
{
  TdProducer *p;
  char path[512];
  uint32_t call, place;
  uint64_t soon; /* of CLOCK_MONOTONIC */
} Fixture;

static int
open_tape (void **state)
{
  const char *folder = getenv ("TMPDIR");
  Fixture *f = calloc (1, sizeof *f);
  TdProducerOptions o
      = { .size = sizeof o, .producer = "test", .overwrite = 1, .rank = 1, .n_ranks = 4 };
  struct timespec t;
  char error[200];

  assert_non_null (f);
  clock_gettime (CLOCK_MONOTONIC, &t);
  f->soon = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + 1000000000u;
  snprintf (f->path, sizeof f->path, "%s/td-producer-ranks-%ld", folder ? folder : "/tmp",
            (long)getpid ());
  o.path = f->path;
  f->p = td_producer_new (&o, error, sizeof error);
  assert_non_null (f->p);
  f->call = td_producer_text (f->p, "dist.all_reduce");
  f->place = td_producer_place (f->p, "train.py", 12, "train");
  assert_int_equal (td_producer_begin (f->p, 0, 0), TD_PRODUCER_OK);
  *state = f;
  return 0;
}

static int
close_tape (void **state)
{
  Fixture *f = *state;

  td_producer_free (f->p);
  unlink (f->path);
  free (f);
  return 0;
}

/* The last iteration of what is on the tape now. */
static const TdTapeIteration *
read_back (const Fixture *f, TdTapeReader **r)
{
  char error[200];

  *r = td_tape_reader_open (f->path, error, sizeof error);
  assert_non_null (*r);
  return td_tape_reader_summaries (*r).n > 0
             ? td_tape_iteration_load (*r, 0, error, sizeof error)
             : td_tape_reader_live (*r);
}

static TdProducerWait
wait_of (const Fixture *f)
{
  return (TdProducerWait){ .size = sizeof (TdProducerWait),
                           .wait = TD_TAPE_WAIT_SUM,
                           .comm = 7,
                           .seq = 3,
                           .bytes = 4096,
                           .call = f->call,
                           .place = f->place,
                           .rank = 1,
                           .n_ranks = 4,
                           .peer = -1,
                           .flags = TD_TAPE_COLLECTIVE_WHOLE,
                           .dtype = TD_TAPE_F32 };
}

static void
wait__comes_back_as_it_was_said (void **state)
{
  Fixture *f = *state;
  TdProducerWait w = wait_of (f);
  const TdTapeIteration *it;
  const TdTapeCollective *c;
  TdTapeReader *r;
  uint64_t zero;

  w.start_ns = f->soon;
  assert_int_equal (td_producer_wait (f->p, &w), TD_PRODUCER_OK);
  w.end_ns = w.start_ns + 500;
  assert_int_equal (td_producer_wait (f->p, &w), TD_PRODUCER_OK);
  td_producer_end_iteration (f->p, 0);
  it = read_back (f, &r);
  assert_int_equal (it->n_collectives, 1);
  c = it->collectives;
  zero = td_tape_reader_header (r)->mono_ns;
  assert_string_equal (td_tape_reader_string (r, c->call), "dist.all_reduce");
  assert_true (c->comm == 7 && c->seq == 3 && c->bytes == 4096 && c->rank == 1 && c->size == 4);
  assert_true (c->start_ns == f->soon - zero && c->duration_ns == 500);
  assert_int_equal (c->wait, TD_TAPE_WAIT_SUM);
  assert_int_equal (c->flags, TD_TAPE_COLLECTIVE_WHOLE);
  assert_int_equal (c->dtype, TD_TAPE_F32 + 1);
  assert_int_equal (c->peer, -1);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* Of several on their way behind other work each ends by itself, in whatever order. */
static void
wait__ends_the_one_that_it_is (void **state)
{
  Fixture *f = *state;
  TdProducerWait w = wait_of (f);
  const TdTapeIteration *it;
  TdTapeReader *r;

  w.flags |= TD_TAPE_COLLECTIVE_BEHIND;
  w.start_ns = f->soon;
  for (w.seq = 1; w.seq <= 3; w.seq++)
    assert_int_equal (td_producer_wait (f->p, &w), TD_PRODUCER_OK);
  for (w.seq = 3; w.seq >= 2; w.seq--)
    {
      w.end_ns = w.start_ns + w.seq;
      assert_int_equal (td_producer_wait (f->p, &w), TD_PRODUCER_OK);
    }
  w.flags &= ~(unsigned)TD_TAPE_COLLECTIVE_BEHIND; /* no end of the first, but a wait for it */
  assert_int_equal (td_producer_wait (f->p, &w), TD_PRODUCER_OK);
  td_producer_end_iteration (f->p, 0);
  it = read_back (f, &r);
  assert_int_equal (it->n_collectives, 4);
  assert_int_equal (it->collectives[0].flags, TD_TAPE_COLLECTIVE_WHOLE
                                                  | TD_TAPE_COLLECTIVE_BEHIND
                                                  | TD_TAPE_COLLECTIVE_WAITS);
  assert_true (it->collectives[1].seq == 2 && it->collectives[1].duration_ns == 2);
  assert_true (it->collectives[2].seq == 3 && it->collectives[2].duration_ns == 3);
  assert_int_equal (it->collectives[3].flags, TD_TAPE_COLLECTIVE_WHOLE);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* One that is shown while it waits is on the tape of a program that is killed then. */
static void
show__leaves_the_wait_on_the_tape (void **state)
{
  Fixture *f = *state;
  TdProducerWait w = wait_of (f);
  const TdTapeIteration *it;
  TdTapeReader *r;

  assert_int_equal (td_producer_wait (f->p, &w), TD_PRODUCER_OK);
  assert_int_equal (td_producer_show (f->p), TD_PRODUCER_OK);
  it = read_back (f, &r);
  assert_non_null (it);
  assert_int_equal (it->n_collectives, 1);
  assert_true (it->collectives[0].flags & TD_TAPE_COLLECTIVE_WAITS);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
  td_producer_end_iteration (f->p, 0);
  assert_int_equal (td_producer_show (f->p), TD_PRODUCER_NOT_NOW);
  assert_string_equal (td_producer_error (f->p), "show: no iteration is open");
}

static void
wait__that_makes_no_sense_is_refused (void **state)
{
  Fixture *f = *state;
  const TdProducerWait good = wait_of (f);
  TdProducerWait wrong[14];
  const TdTapeIteration *it;
  TdTapeReader *r;
  const int64_t no_peer[]
      = { TD_PRODUCER_WORD_WAIT, 15, 0, 1, 1, 0, 0, 0, 1, 0, 0, 2, -2, 0, 0 };
  const int64_t short_row[] = { TD_PRODUCER_WORD_WAIT, 14, 0, 1, 1, 0, 0, 0, 1, 0, 0, 2, 0, 0 };

  for (unsigned i = 0; i < 14; i++)
    wrong[i] = good;
  wrong[0].size = 0;
  wrong[1].wait = TD_TAPE_N_WAITS;
  wrong[2].comm = 0;
  wrong[3].seq = 0;
  wrong[4].call = 0;
  wrong[5].call = 1000;
  wrong[6].place = 1000;
  wrong[7].rank = 4;
  wrong[8].peer = 4;
  wrong[9].peer = -2;
  wrong[10].flags = TD_TAPE_COLLECTIVE_WAITS; /* it is an end that says so */
  wrong[11].dtype = TD_TAPE_N_DTYPES + 1;
  wrong[12].start_ns = 2;
  wrong[12].end_ns = 1;
  wrong[13].n_ranks = UINT32_MAX;
  for (unsigned i = 0; i < 14; i++)
    {
      assert_int_equal (td_producer_wait (f->p, &wrong[i]), TD_PRODUCER_WRONG);
      assert_true (strlen (td_producer_error (f->p)) > 6);
    }
  assert_int_equal (td_producer_wait (f->p, NULL), TD_PRODUCER_WRONG);
  assert_int_equal (td_producer_words (f->p, no_peer, 15), TD_PRODUCER_WRONG);
  assert_int_equal (td_producer_words (f->p, short_row, 14), TD_PRODUCER_WRONG);
  td_producer_end_iteration (f->p, 0);
  assert_int_equal (td_producer_wait (f->p, &good), TD_PRODUCER_NOT_NOW);
  it = read_back (f, &r);
  assert_int_equal (it->n_collectives, 0);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (wait__comes_back_as_it_was_said, open_tape, close_tape),
    cmocka_unit_test_setup_teardown (wait__ends_the_one_that_it_is, open_tape, close_tape),
    cmocka_unit_test_setup_teardown (show__leaves_the_wait_on_the_tape, open_tape, close_tape),
    cmocka_unit_test_setup_teardown (wait__that_makes_no_sense_is_refused, open_tape,
                                     close_tape),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
