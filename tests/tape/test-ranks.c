/* What a rank waits for, and the sums that ranks are compared by, through ring, assembler,
 * writer and reader.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

enum
{
  COMM = 0x1234567,
  N_BYTES = 400
};

static void
put_wait (Model *m, uint64_t seq, unsigned wait, unsigned flags, uint64_t start, uint64_t end)
{
  const uint32_t call = model_string (m, "td_comm_allreduce");
  TdRawWait *raw = model_record (m, TD_RAW_WAIT, 0, sizeof *raw);

  raw->start = start;
  raw->end = end;
  raw->wait.comm = COMM;
  raw->wait.seq = seq;
  raw->wait.bytes = wait == TD_TAPE_WAIT_MEET ? 0 : N_BYTES;
  raw->wait.site = 1;
  raw->wait.call = call;
  raw->wait.rank = 2;
  raw->wait.size = 4;
  raw->wait.peer = -1;
  raw->wait.wait = (uint8_t)wait;
  raw->wait.flags = (uint8_t)flags;
  model_publish (m, raw);
}

/* One that begins now and takes a while. */
static void
put_whole_wait (Model *m, uint64_t seq, unsigned wait, unsigned flags)
{
  const uint64_t start = td_ring_ticks ();
  uint64_t end = start;

  put_wait (m, seq, wait, 0, start, 0);
  while (end < start + 10000)
    end = td_ring_ticks ();
  put_wait (m, seq, wait, flags, start, end);
}

static void
put_sum (Model *m, unsigned kind, const char *path, const TdTapeRankSum *sum)
{
  const uint32_t id = model_string (m, path);
  TdRawRankSum *raw = model_record (m, TD_RAW_RANK_SUM, 0, sizeof *raw);

  raw->sum = *sum;
  raw->sum.kind = (uint8_t)kind;
  raw->sum.path = id;
  model_publish (m, raw);
}

static void
op (Model *m)
{
  model_op (m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, m->parameter, 0);
}

static const TdTapeRankSum a_gradient
    = { .sum = { 0x1111, 0x2222 }, .sample = -0.5, .at = 7, .size = 100, .n_not_finite = 3 };

static void
record (Rig *rig)
{
  Model *m = &rig->m;
  TdTapeRankSum lr = { .size = 0 };
  const double number = 0.125;

  memcpy (&lr.sum[0], &number, sizeof number);
  rig_start (rig, NULL);
  model_begin (m);
  put_wait (m, 1, TD_TAPE_WAIT_MEET, TD_TAPE_COLLECTIVE_BEFORE, td_ring_ticks (),
            td_ring_ticks () + 1);
  op (m);
  put_whole_wait (m, 2, TD_TAPE_WAIT_MEET, TD_TAPE_COLLECTIVE_WHOLE);
  put_whole_wait (m, 2, TD_TAPE_WAIT_SUM, TD_TAPE_COLLECTIVE_WHOLE);
  op (m);
  put_sum (m, TD_TAPE_SUM_GRADIENT, "l1/W", &a_gradient);
  put_sum (m, TD_TAPE_SUM_NUMBER, "lr", &lr);
  put_whole_wait (m, 3, TD_TAPE_WAIT_MEET, TD_TAPE_COLLECTIVE_FAILED);
  model_end (m);
  td_assembler_drain (rig->a, rig->ring);
}

static void
waits__are_read_as_they_were_told (void **state)
{
  static const struct
  {
    uint64_t seq;
    unsigned event, wait, flags;
  } expected[] = { { 1, 0, TD_TAPE_WAIT_MEET, TD_TAPE_COLLECTIVE_BEFORE },
                   { 2, 1, TD_TAPE_WAIT_MEET, TD_TAPE_COLLECTIVE_WHOLE },
                   { 2, 1, TD_TAPE_WAIT_SUM, TD_TAPE_COLLECTIVE_WHOLE },
                   { 3, 2, TD_TAPE_WAIT_MEET, TD_TAPE_COLLECTIVE_FAILED } };
  Rig rig = { .m = { .n_layers = 1 } };
  const TdTapeIteration *it;
  uint64_t before = 0;

  record (&rig);
  rig_stop (&rig, 0);
  rig_read (&rig);
  it = rig_load (&rig, 0);
  assert_int_equal (it->n_collectives, (sizeof expected / sizeof *expected));
  for (size_t i = 0; i < (sizeof expected / sizeof *expected); i++)
    {
      const TdTapeCollective *c = &it->collectives[i];

      assert_int_equal (c->comm, COMM);
      assert_int_equal (c->seq, expected[i].seq);
      assert_int_equal (c->event, expected[i].event);
      assert_int_equal (c->wait, expected[i].wait);
      assert_int_equal (c->flags, expected[i].flags);
      assert_int_equal (c->bytes, c->wait == TD_TAPE_WAIT_MEET ? 0 : N_BYTES);
      assert_int_equal (c->rank, 2);
      assert_int_equal (c->size, 4);
      assert_int_equal (c->peer, -1);
      assert_int_not_equal (c->site, 0);
      assert_string_equal (td_tape_reader_string (rig.r, c->call), "td_comm_allreduce");
      assert_true (c->start_ns >= before);
      before = c->start_ns + c->duration_ns;
    }
  assert_true (it->collectives[1].duration_ns > 0);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

static void
sums__are_read_as_they_were_told (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };
  const TdTapeIteration *it;
  const TdTapeRankSum *s;
  double number;

  record (&rig);
  rig_stop (&rig, 0);
  rig_read (&rig);
  it = rig_load (&rig, 0);
  assert_int_equal (it->n_rank_sums, 2);
  s = &it->rank_sums[0];
  assert_int_equal (s->kind, TD_TAPE_SUM_GRADIENT);
  assert_memory_equal (s->sum, a_gradient.sum, sizeof s->sum);
  assert_true (s->sample == a_gradient.sample);
  assert_int_equal (s->at, a_gradient.at);
  assert_int_equal (s->size, a_gradient.size);
  assert_int_equal (s->n_not_finite, a_gradient.n_not_finite);
  assert_int_equal (s->event, 2);
  assert_string_equal (td_tape_reader_string (rig.r, s->path), "l1/W");
  memcpy (&number, &it->rank_sums[1].sum[0], sizeof number);
  assert_true (number == 0.125);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

/* A program that is killed while it waits, also in its second wait for one call. */
static void
wait_without_an_end__is_on_the_tape (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };
  const TdTapeIteration *it;

  rig_start (&rig, NULL);
  model_begin (&rig.m);
  op (&rig.m);
  put_whole_wait (&rig.m, 5, TD_TAPE_WAIT_MEET, 0);
  put_wait (&rig.m, 5, TD_TAPE_WAIT_SUM, 0, td_ring_ticks (), 0);
  td_assembler_drain (rig.a, rig.ring);
  rig_stop (&rig, 9);
  rig_read (&rig);
  it = rig_load (&rig, 0);
  assert_int_equal (it->n_collectives, 2);
  assert_int_equal (it->collectives[0].flags, 0);
  assert_int_equal (it->collectives[1].flags, TD_TAPE_COLLECTIVE_WAITS);
  assert_int_equal (it->collectives[1].wait, TD_TAPE_WAIT_SUM);
  assert_int_equal (it->collectives[1].duration_ns, 0);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

static void
dump__says_who_waited_for_what (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };
  char *text = NULL;
  size_t n;

  record (&rig);
  rig_stop (&rig, 0);
  rig_read (&rig);
  for (int json = 0; json < 2; json++)
    {
      FILE *out = open_memstream (&text, &n);

      td_tape_dump (rig.r, out, json, 0, UINT64_MAX);
      fclose (out);
      assert_contains (text, json ? "\"call\":\"td_comm_allreduce\",\"wait\":\"sum\",\"rank\":2"
                                  : "td_comm_allreduce sum 0000000001234567.2 rank 2 of 4");
      assert_contains (text, json ? "\"sum\":\"00000000000022220000000000001111\""
                                  : "00000000000022220000000000001111 [7] of 100 is -0.5, 3 not"
                                    " finite");
      assert_contains (text, json ? "\"number\":0.125" : "number lr 0.125");
      free (text);
    }
  rig_clear (&rig);
}

/* A ring that is damaged may hold any number there; what is on the tape can be read. */
static void
waits_and_sums__of_no_kind_are_left_out (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };
  const TdTapeIteration *it;

  rig_start (&rig, NULL);
  model_begin (&rig.m);
  op (&rig.m);
  put_wait (&rig.m, 1, TD_TAPE_N_WAITS, 0, td_ring_ticks (), td_ring_ticks () + 1);
  put_wait (&rig.m, 2, UINT8_MAX, 0, td_ring_ticks (), 0);
  put_sum (&rig.m, TD_TAPE_N_SUMS, "l1/W", &a_gradient);
  put_whole_wait (&rig.m, 3, TD_TAPE_WAIT_MEET, TD_TAPE_COLLECTIVE_WHOLE);
  model_end (&rig.m);
  td_assembler_drain (rig.a, rig.ring);
  rig_stop (&rig, 0);
  rig_read (&rig);
  it = rig_load (&rig, 0);
  assert_int_equal (it->n_collectives, 1);
  assert_int_equal (it->collectives[0].seq, 3);
  assert_int_equal (it->n_rank_sums, 0);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (waits__are_read_as_they_were_told),
    td_test (sums__are_read_as_they_were_told),
    td_test (wait_without_an_end__is_on_the_tape),
    td_test (dump__says_who_waited_for_what),
    td_test (waits_and_sums__of_no_kind_are_left_out),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
