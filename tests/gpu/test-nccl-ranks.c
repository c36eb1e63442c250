/* Ranks with a GPU each, by the fake NCCL: which way arrays go, which device is whose, and what
 * is said where ranks have none of their own.
 *
 * What they compute is what the tests of ranks show on the same communicator.
 *
 * SPDX-License-Identifier: MIT */
#include "far-cuda.h"
#include "models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FakeCuda *driver;
static TdDevice *gpu;

/* Of this process, since it was asked last. */
static long
exchanges (void)
{
  static long before;
  const long since = driver->n_exchanges - before;

  before = driver->n_exchanges;
  return since;
}

static int
start (void **state)
{
  if (ranks_start (state) != 0)
    return -1;
  driver = far_cuda_driver ()->state;
  gpu = td_device_get ("cuda");
  return gpu != NULL ? 0 : -1;
}

static TdVar *
own_number (TdDevice *device)
{
  return td_to_device (td_full (TD_F32, TD_SHAPE (3), me + 1), device);
}

static void
assert_sum (TdVar *y)
{
  TD_SCOPE ("sum")
    assert_float_equal (td_item (td_sum (y)), 3 * n_ranks * (n_ranks + 1) / 2, 0);
}

static void
device__of_each_rank_is_its_own (void **state)
{
  char want[16], name[16] = "";

  (void)state;
  snprintf (want, sizeof want, "cuda:%d", td_comm_intra_rank (world));
  assert_string_equal (td_device_name (gpu), want);
  snprintf (name, sizeof name, "%s", td_device_name (gpu));
  TD_SCOPE ("names")
    {
      char all[16 * 8];
      TdVar *names = td_comm_allgather (world, td_tensor (TD_U8, TD_SHAPE (16), name));

      assert_int_equal (td_read (names, all, 16 * (size_t)n_ranks), TD_OK);
      for (int r = 0; r < n_ranks; r++)
        if (r != me && strcmp (all + 16 * r, name) == 0)
          fail_msg ("ranks %d and %d have %s", me, r, name);
    }
}

/* Only where all ranks' arrays lie on their devices; else by the host, and it is right, too. */
static void
array__goes_by_nccl_where_all_ranks_have_it_on_their_gpu (void **state)
{
  TdDevice *cpu = td_device_get ("cpu");

  (void)state;
  exchanges ();
  TD_SCOPE ("all")
    assert_sum (td_comm_allreduce (world, own_number (gpu)));
  assert_int_equal (exchanges (), 1);
  TD_SCOPE ("some")
    assert_sum (td_comm_allreduce (world, own_number (me == 0 ? cpu : gpu)));
  TD_SCOPE ("none")
    assert_sum (td_comm_allreduce (world, own_number (cpu)));
  assert_int_equal (exchanges (), 0);
}

/* As a ChainerMN program does: first the communicator, then its device. */
static void
device__may_be_chosen_after_the_communicator (void **state)
{
  TdComm *comm;

  (void)state;
  td_device_use (td_device_get ("cpu"));
  comm = td_comm_new ("nccl");
  assert_int_equal (td_comm_size (comm), n_ranks);
  td_device_use (td_device_get ("cuda"));
  exchanges ();
  TD_SCOPE ("sum")
    assert_sum (td_comm_allreduce (comm, own_number (gpu)));
  assert_int_equal (exchanges (), 1);
  td_comm_free (comm);
}

static void
no_name__takes_nccl_between_gpus_of_their_own_and_else_mpi (void **state)
{
  static const char *const devices[] = { "cuda", "cpu", "cuda:0" };

  (void)state;
  for (int i = 0; i < 3; i++)
    {
      TdComm *comm;

      td_device_use (td_device_get (devices[i]));
      comm = td_comm_new (NULL);
      assert_int_equal (td_comm_size (comm), n_ranks);
      exchanges ();
      TD_SCOPE ("sum")
        assert_sum (td_comm_allreduce (comm, own_number (td_device_get (devices[i]))));
      assert_int_equal (exchanges (), i == 0);
      td_comm_free (comm);
    }
  td_device_use (gpu);
}

/* On one rank, when the others have started; on all of them; where rank 0 begins. */
static void
no_name__goes_by_mpi_on_all_ranks_where_nccl_does_not_start (void **state)
{
  static const struct
  {
    const char *function;
    int rank; /* -1: all */
  } faults[] = { { "ncclCommInitRank after all", 1 },
                 { "ncclCommInitRank", -1 },
                 { "ncclGetUniqueId", 0 } };

  (void)state;
  for (int i = 0; i < 3; i++)
    {
      TdComm *comm;

      if (faults[i].rank < 0 || faults[i].rank == me)
        far_cuda_driver ()->fail_call (faults[i].function, 1, 999);
      comm = td_comm_new (NULL);
      assert_null (td_error ());
      assert_int_equal (td_comm_size (comm), n_ranks);
      exchanges ();
      TD_SCOPE ("sum")
        assert_sum (td_comm_allreduce (comm, own_number (gpu)));
      assert_int_equal (exchanges (), 0);
      td_comm_free (comm);
    }
}

/* By the name of the call that made it. */
static void
part__without_a_team_is_an_error_of_td_comm_split (void **state)
{
  (void)state;
  if (me == 0)
    far_cuda_driver ()->fail_call ("ncclGetUniqueId", 1, 999);
  assert_int_equal (td_comm_size (td_comm_split (world, 0, 0)), 0);
  assert_non_null (strstr (said (TD_ERR_DEVICE),
                           me == 0 ? "ncclGetUniqueId failed" : "td_comm_split: rank "));
}

static void
device__of_two_ranks_is_refused_on_all (void **state)
{
  (void)state;
  td_device_use (td_device_get ("cuda:0"));
  assert_int_equal (td_comm_size (td_comm_new ("nccl")), 0);
  assert_non_null (strstr (said (TD_ERR_DEVICE),
                           "\"nccl\" cannot be had: ranks 0 and 1 compute on one device "
                           "(cuda:0, cuda:0), and NCCL takes one rank for each"));
  td_device_use (gpu);
  assert_int_equal (td_comm_barrier (world), TD_OK);
}

static void
rank__without_a_gpu_is_named_on_all (void **state)
{
  char text[80];

  (void)state;
  td_device_use (td_device_get (me == n_ranks - 1 ? "null" : "cuda"));
  assert_int_equal (td_comm_size (td_comm_new ("nccl")), 0);
  snprintf (text, sizeof text, "and rank %d has none: it computes on null", n_ranks - 1);
  assert_non_null (strstr (said (TD_ERR_DEVICE), text));
  td_device_use (gpu);
}

static void
names__that_differ_are_refused_on_all (void **state)
{
  (void)state;
  assert_int_equal (td_comm_size (td_comm_new (me == 0 ? "mpi" : "nccl")), 0);
  assert_non_null (strstr (
      said (TD_ERR_ARG), "rank 0 asks for \"mpi\", rank 1 for \"nccl\": all ranks must ask for "
                         "the same"));
}

/* The driver is asked for its devices once, so that this is of a process of its own. */
static int
too_few (void)
{
  TdDevice *d;

  td_init (NULL, NULL);
  d = td_device_get ("cuda");
  if (d == NULL)
    printf ("%s\n", td_error ()->message);
  else
    printf ("%s\n", td_device_name (d));
  td_error_clear ();
  return td_finish ();
}

static void
assert_says (const char *program, const char *devices, const char *more, const char *number,
             const char *text)
{
  TdTestChild child = TD_TEST_RUN ("/usr/bin/env", devices, more,
                                   "OMPI_COMM_WORLD_LOCAL_SIZE=4", number, program, "too-few");

  assert_child_status (child, 0);
  assert_string_equal (child.out, text);
  td_test_child_clear (&child);
}

static const char *self;

#define REFUSED(n)                                                                             \
  "td_device_get: no GPU for each of the 4 ranks of this machine: here are " n                 \
  ": start fewer, "                                                                            \
  "show each its own alone by CUDA_VISIBLE_DEVICES, or let them share by "                     \
  "TAPEDECK_SHARE_DEVICES=1\n"

static void
devices__that_are_too_few_are_refused_unless_ranks_share (void **state)
{
  (void)state;
  if (me != 0)
    return;
  assert_says (self, "FAKE_CUDA=devices=2", "TAPEDECK_SHARE_DEVICES=0",
               "OMPI_COMM_WORLD_LOCAL_RANK=1", REFUSED ("2"));
  assert_says (self, "FAKE_CUDA=devices=2", "TAPEDECK_SHARE_DEVICES=1",
               "OMPI_COMM_WORLD_LOCAL_RANK=1", "cuda:1\n");
  assert_says (self, "FAKE_CUDA=devices=2", "TAPEDECK_SHARE_DEVICES=1",
               "OMPI_COMM_WORLD_LOCAL_RANK=3", "cuda:1\n");
}

/* What starts ranks may show each of them one GPU, as Slurm does; two of four are too few
 * still, and one is that nobody has said to be its own. */
static void
device__that_is_all_a_rank_sees_is_its_own (void **state)
{
  (void)state;
  if (me != 0)
    return;
  assert_says (self, "FAKE_CUDA=devices=1", "CUDA_VISIBLE_DEVICES=3",
               "OMPI_COMM_WORLD_LOCAL_RANK=3", "cuda:0\n");
  assert_says (self, "FAKE_CUDA=devices=2", "CUDA_VISIBLE_DEVICES=2,3",
               "OMPI_COMM_WORLD_LOCAL_RANK=3", REFUSED ("2"));
  assert_says (self, "FAKE_CUDA=devices=1", "TAPEDECK_SHARE_DEVICES=0",
               "OMPI_COMM_WORLD_LOCAL_RANK=3", REFUSED ("1"));
}

/* Ranks exchange in the middle of the model; others: l2 is used that many times. */
static TdVar *
loss_of_all (TdLink *model, int others, int step)
{
  TdVar *x = numbers_of (me, TD_F32, TD_SHAPE (BATCH, 8), (unsigned)step);
  TdVar *h = td_comm_allreduce (world, td_tanh (td_link (td_link_child (model, "l1"), x)));
  TdVar *y = td_link (td_link_child (model, "l2"), h);

  for (int i = 1; i < others; i++)
    y = td_add (y, td_link (td_link_child (model, "l2"), h));
  return td_mean (td_square (y));
}

static TdLink *
model_of_all (void)
{
  TdLink *model = td_chain_new ("net");

  td_set_seed (1);
  td_linear_new (model, "l1", 8, 16);
  td_linear_new (model, "l2", 16, 4);
  return model;
}

enum
{
  LAST = 8,
  TWICE = 4 /* the step in which rank 1 uses l2 twice; it is not sure of it in the next ones */
};

/* A step without an update, and with one. */
static void
backward_of_all (TdLink *model, int step)
{
  TD_SCOPE ("backward")
    {
      td_cleargrads (model);
      assert_int_equal (
          td_backward (loss_of_all (model, step == TWICE && me == 1 ? 2 : 1, step), 0), TD_OK);
    }
}

/* Rank 0 sends l2's gradients before the exchange in backward, rank 1 has them only behind it:
 * on devices that would be two orders. */
static void
order__of_gradients_and_exchanges_in_backward_is_one_on_all_ranks (void **state)
{
  TdLink *models[] = { model_of_all (), model_of_all () };
  TdOpt *opts[2];

  (void)state;
  for (int i = 0; i < 2; i++)
    opts[i] = td_multi_node_optimizer_new (td_sgd_new (models[i], .lr = 0.01), world,
                                           .overlap = i == 1, .bucket_bytes = 256);
  for (int step = 0; step < LAST; step++)
    for (int i = 0; i < 2; i++)
      {
        backward_of_all (models[i], step);
        assert_int_equal (td_opt_update (opts[i]), TD_OK);
      }
  assert_params_near (models[0], models[1], 1e-6);
  assert_params_same_on_all_ranks (models[1]);
  for (int i = 0; i < 2; i++)
    {
      td_opt_free (opts[i]);
      td_link_free (models[i]);
    }
}

/* Rank 0 has sent all in a backward of its own. */
static void
rank__that_has_begun_no_backward_sends_as_much_before_an_exchange (void **state)
{
  TdLink *model = model_of_all ();
  TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (model, .lr = 0.01), world,
                                            .overlap = true, .bucket_bytes = 256);

  (void)state;
  for (int step = 0; step < TWICE; step++)
    {
      backward_of_all (model, step);
      assert_int_equal (td_opt_update (opt), TD_OK);
    }
  TD_SCOPE ("begun")
    {
      if (me == 0)
        {
          td_cleargrads (model);
          assert_int_equal (
              td_backward (
                  td_sum (td_square (td_link_param (td_link_child (model, "l2"), "W"))), 0),
              TD_OK);
        }
      exchanges ();
      assert_sum (td_comm_allreduce (world, own_number (gpu)));
      assert_true (exchanges () > (me != 0));
    }
  assert_int_equal (td_opt_update (opt), TD_OK);
  assert_params_same_on_all_ranks (model);
  td_opt_free (opt);
  td_link_free (model);
}

/* In a backward of n models at once, when it is known which gradients are final. */
static long
exchanges_in_backward (TdLink *const *models, TdOpt *const *opts, int n)
{
  long in_backward = 0;

  for (int step = 0; step < 6; step++)
    TD_SCOPE ("step")
      {
        TdVar *x = numbers_of (me, TD_F32, TD_SHAPE (BATCH, 8), (unsigned)step), *loss = NULL;

        for (int i = 0; i < n; i++)
          {
            TdVar *one = td_mean (td_square (td_link (models[i], x)));

            loss = loss != NULL ? td_add (loss, one) : one;
            td_cleargrads (models[i]);
          }
        exchanges ();
        assert_int_equal (td_backward (loss, 0), TD_OK);
        in_backward = exchanges ();
        for (int i = 0; i < n; i++)
          assert_int_equal (td_opt_update (opts[i]), TD_OK);
      }
  return in_backward;
}

/* Nobody agrees on an order between two. */
static void
optimizer__is_the_only_one_that_sends_in_backward (void **state)
{
  TdLink *models[] = { mlp ("a", 8, 1), mlp ("b", 8, 2) };
  TdOpt *opts[2];
  long one;

  (void)state;
  opts[0] = td_multi_node_optimizer_new (td_sgd_new (models[0], .lr = 0.01), world,
                                         .overlap = true, .bucket_bytes = 256);
  one = exchanges_in_backward (models, opts, 1);
  assert_true (one > 0);
  opts[1] = td_multi_node_optimizer_new (td_sgd_new (models[1], .lr = 0.01), world,
                                         .overlap = true, .bucket_bytes = 256);
  assert_int_equal (exchanges_in_backward (models, opts, 2), one);
  td_opt_free (opts[0]);
  assert_int_equal (exchanges_in_backward (models + 1, opts + 1, 1), one);
  assert_params_same_on_all_ranks (models[0]);
  assert_params_same_on_all_ranks (models[1]);
  td_opt_free (opts[1]);
  for (int i = 0; i < 2; i++)
    td_link_free (models[i]);
}

/* Some ranks have begun to send gradients that the others never do; td_finish comes to its end,
 * and all communicators are closed (on-gpus looks for that). */
static void
end__waits_for_no_sum_that_nobody_brings (void **state)
{
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (model, .lr = 0.1), world,
                                            .overlap = true, .bucket_bytes = 256);

  (void)state;
  for (int step = 0; step < 5; step++)
    train_step (model, opt, me, me + 1, step);
  exchanges ();
  TD_SCOPE ("begun")
    if (me != 0)
      {
        TdVar *x = numbers_of (me, TD_F32, TD_SHAPE (BATCH, 8), 1);

        td_cleargrads (model);
        assert_int_equal (td_backward (td_sum (td_link (model, x)), 0), TD_OK);
      }
  assert_true ((exchanges () > 0) == (me != 0));
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ranks_test (device__of_each_rank_is_its_own),
    ranks_test (array__goes_by_nccl_where_all_ranks_have_it_on_their_gpu),
    ranks_test (device__may_be_chosen_after_the_communicator),
    ranks_test (no_name__takes_nccl_between_gpus_of_their_own_and_else_mpi),
    ranks_test (device__of_two_ranks_is_refused_on_all),
    ranks_test (rank__without_a_gpu_is_named_on_all),
    ranks_test (names__that_differ_are_refused_on_all),
    ranks_test (devices__that_are_too_few_are_refused_unless_ranks_share),
    ranks_test (device__that_is_all_a_rank_sees_is_its_own),
  };

  /* these want one device in the process; td_finish is what the last one is about */
  const struct CMUnitTest one_device[] = {
    ranks_test (no_name__goes_by_mpi_on_all_ranks_where_nccl_does_not_start),
    ranks_test (part__without_a_team_is_an_error_of_td_comm_split),
    ranks_test (order__of_gradients_and_exchanges_in_backward_is_one_on_all_ranks),
    ranks_test (rank__that_has_begun_no_backward_sends_as_much_before_an_exchange),
    ranks_test (optimizer__is_the_only_one_that_sends_in_backward),
    cmocka_unit_test (end__waits_for_no_sum_that_nobody_brings),
  };

  self = argv[0];
  if (argc > 1 && strcmp (argv[1], "one-device") == 0)
    return cmocka_run_group_tests (one_device, start, ranks_stop);
  if (argc > 1)
    return too_few ();
  return cmocka_run_group_tests (tests, start, ranks_stop);
}
