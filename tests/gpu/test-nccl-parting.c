/* Ranks with GPUs of which one cannot go on: all end, with one line that says why, and none
 * waits on its device for ever.
 *
 * test-nccl-parting ON-GPUS MODULE MPI: each test runs this program as two ranks, which are
 * called as test-nccl-parting WAY.
 *
 * SPDX-License-Identifier: MIT */
#include "far-cuda.h"

#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tapedeck.h>

enum
{
  RANKS = 2,
  ODD = 1,      /* the rank that cannot go on */
  N = 1 << 18,  /* numbers of the model */
  UNKNOWN = 999 /* CUDA_ERROR_UNKNOWN */
};

/* --- one rank --- */

static TdComm *comm;
static bool odd;

static void
fail_call (const char *function, int n)
{
  if (odd)
    far_cuda_driver ()->fail_call (function, n, UNKNOWN);
}

/* What the engine says, which it forgets then; and whether the others are there. */
static void
tell (void)
{
  for (int i = 0; i < 2; i++)
    {
      fprintf (stderr, "%s\n", td_error () != NULL ? td_error ()->message : "fine");
      td_error_clear ();
      if (i == 0)
        td_comm_barrier (comm);
    }
}

static TdLink *
model_new (void)
{
  TdLink *model = td_chain_new ("net");

  td_link_add_param (model, "w", TD_SHAPE (N), .initializer = td_init_constant (0));
  return model;
}

static void
put_gradient (TdLink *model, double number)
{
  TD_SCOPE ("gradient")
    td_set_grad (td_link_param (model, "w"), td_full (TD_F32, TD_SHAPE (N), number));
}

static TdOpt *
halves_new (TdLink *model)
{
  return td_multi_node_optimizer_new (td_sgd_new (model, .lr = 1), comm,
                                      .allreduce_grad_dtype = TD_F16);
}

static void
sum (void)
{
  TdLink *model = model_new ();
  TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (model, .lr = 1), comm);

  put_gradient (model, 1);
  fail_call ("ncclAllReduce", 1);
  td_opt_update (opt);
  tell ();
}

/* What is sent has no room beside what is summed. */
static void
room (void)
{
  TdLink *model = model_new ();
  TdOpt *opt = halves_new (model);

  put_gradient (model, 1);
  td_opt_update (opt); /* and once more, as nothing is sent first */
  put_gradient (model, 1);
  if (odd)
    td_set_mem_limit (td_mem_info (td_device_get ("cuda")).live_bytes + N * sizeof (float) + N);
  td_opt_update (opt);
  tell ();
}

/* All look at the sum, and one of them cannot. */
static void
look (void)
{
  TdLink *model = model_new ();
  TdOpt *opt = halves_new (model);

  put_gradient (model, 1);
  td_opt_update (opt);
  put_gradient (model, 60000); /* whose sum is not finite */
  fail_call ("cuStreamSynchronize", 1);
  td_opt_update (opt);
  tell ();
}

/* The exchange is on its way, and nobody can say when it is over. */
static void
mark (void)
{
  fail_call ("cuEventRecord", 2);
  td_comm_allreduce (comm, td_ones (TD_F32, TD_SHAPE (N)));
  tell ();
}

static void
mark_of_bucket (void)
{
  TdLink *model = model_new ();
  TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (model, .lr = 1), comm);

  put_gradient (model, 1);
  fail_call ("cuEventRecord", 2);
  td_opt_update (opt);
  tell ();
}

static const struct
{
  const char *name;
  void (*run) (void);
} ways[] = { { "sum", sum },
             { "room", room },
             { "look", look },
             { "mark", mark },
             { "mark_of_bucket", mark_of_bucket } };

static int
be_rank (const char *way)
{
  td_init (NULL, NULL);
  setvbuf (stderr, NULL, _IOLBF, 0); /* a line is written at once */
  comm = td_comm_new ("nccl");
  odd = td_comm_rank (comm) == ODD;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (strcmp (way, ways[i].name) == 0)
      TD_SCOPE (ways[i].name)
        ways[i].run ();
  return td_finish ();
}

/* --- all of them --- */

static const char *self, *on_gpus, *module, *mpi;

/* The odd one says why, once, and the other one says that it was ended. */
static void
assert_ends (const char *way, const char *text)
{
  static const char said[] = "rank 1 of 2 cannot bring its part, and ends all: ";
  TdTestChild c = td_test_shell ("%s %s %s %d %s %s", on_gpus, module, mpi, RANKS, self, way);
  const char *at = strstr (c.err, said);

  if (at == NULL || strncmp (at + strlen (said), text, strlen (text)) != 0
      || strstr (at + 1, said) != NULL)
    fail_msg ("%s: \"%s%s\" expected once in:\n%s", way, said, text, c.err);
  assert_int_not_equal (c.status, 0);
  assert_int_not_equal (c.status, 124); /* that would be the patience of this test */
  td_test_child_clear (&c);
}

static void
rank__whose_bucket_does_not_go_ends_all (void **state)
{
  (void)state;
  assert_ends ("sum", "cuda:1: ncclAllReduce failed: unhandled cuda error");
  assert_ends ("room", "array: out of memory on cuda:1: 524 kB wanted");
}

static void
rank__that_cannot_look_at_a_sum_ends_all (void **state)
{
  (void)state;
  assert_ends ("look", "cuda:1: waiting for the device failed");
}

static void
exchange__whose_end_nobody_sees_is_given_up_and_ends_all (void **state)
{
  (void)state;
  assert_ends ("mark", "cuda:1: cuEventRecord failed");
  assert_ends ("mark_of_bucket", "cuda:1: cuEventRecord failed");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (rank__whose_bucket_does_not_go_ends_all),
    td_test (rank__that_cannot_look_at_a_sum_ends_all),
    td_test (exchange__whose_end_nobody_sees_is_given_up_and_ends_all),
  };

  if (argc == 2)
    return be_rank (argv[1]);
  if (argc != 4)
    return 1;
  self = argv[0];
  on_gpus = argv[1];
  module = argv[2];
  mpi = argv[3];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
