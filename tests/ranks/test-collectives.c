/* Every function of communicators beside what one process computes, with first and second
 * gradients, in every dtype.
 *
 * Each rank knows the numbers of all of them, and so what one process would have.
 * SPDX-License-Identifier: MIT */
#include "ranks.h"

#include <string.h>

enum
{
  MOST = 8 /* ranks */
};

/* --- what one process computes: ys[r] is what rank r gets of all ranks' xs --- */

typedef struct
{
  const char *name;
  void (*one_process) (TdVar *const *xs, TdVar **ys);
  TdVar *(*call) (TdVar *x);
  bool rows;
} Function;

static void
one_bcast (TdVar *const *xs, TdVar **ys)
{
  for (int r = 0; r < n_ranks; r++)
    ys[r] = xs[n_ranks - 1];
}

static TdVar *
call_bcast (TdVar *x)
{
  return td_comm_bcast (world, x, n_ranks - 1);
}

static void
one_allreduce (TdVar *const *xs, TdVar **ys)
{
  const bool bytes = td_dtype (xs[0]) == TD_U8; /* which no operation adds */
  TdVar *sum = bytes ? td_cast (xs[0], TD_I64) : xs[0];

  for (int r = 1; r < n_ranks; r++)
    sum = td_add (sum, bytes ? td_cast (xs[r], TD_I64) : xs[r]);
  for (int r = 0; r < n_ranks; r++)
    ys[r] = bytes ? td_cast (sum, TD_U8) : sum;
}

static TdVar *
call_allreduce (TdVar *x)
{
  return td_comm_allreduce (world, x);
}

static void
one_allgather (TdVar *const *xs, TdVar **ys)
{
  TdVar *all = td_stack (xs, n_ranks, 0);

  for (int r = 0; r < n_ranks; r++)
    ys[r] = all;
}

static TdVar *
call_allgather (TdVar *x)
{
  return td_comm_allgather (world, x);
}

static void
one_alltoall (TdVar *const *xs, TdVar **ys)
{
  for (int r = 0; r < n_ranks; r++)
    {
      TdVar *rows[MOST];

      for (int from = 0; from < n_ranks; from++)
        rows[from] = td_get_item (xs[from], &TD_RANGE (r, r + 1), 1);
      ys[r] = td_concat (rows, n_ranks, 0);
    }
}

static TdVar *
call_alltoall (TdVar *x)
{
  return td_comm_alltoall (world, x);
}

static const Function functions[] = {
  { "bcast", one_bcast, call_bcast, false },
  { "allreduce", one_allreduce, call_allreduce, false },
  { "allgather", one_allgather, call_allgather, false },
  { "alltoall", one_alltoall, call_alltoall, true },
};
enum
{
  N_FUNCTIONS = sizeof functions / sizeof *functions
};

static TdShape
shape_for (const Function *f)
{
  return f->rows ? TD_SHAPE (n_ranks, 5) : TD_SHAPE (3, 5);
}

static void
every_function__gives_what_one_process_computes_in_every_dtype (void **state)
{
  static const double half[] = { [TD_F16] = 4e-3, [TD_BF16] = 4e-2 };

  (void)state;
  for (int i = 0; i < N_FUNCTIONS; i++)
    for (int dtype = TD_F32; dtype <= TD_U8; dtype++)
      TD_SCOPE (functions[i].name)
        {
          TdVar *xs[MOST], *ys[MOST];

          for (int r = 0; r < n_ranks; r++)
            xs[r] = numbers_of (r, (TdDtype)dtype, shape_for (&functions[i]), 7);
          functions[i].one_process (xs, ys);
          assert_near (functions[i].call (xs[me]), ys[me],
                       dtype == TD_F16 || dtype == TD_BF16 ? half[dtype]
                       : dtype == TD_F32                   ? 1e-6
                                                           : 1e-15 * n_ranks);
        }
}

static void
bool__goes_everywhere_but_into_a_sum (void **state)
{
  (void)state;
  TD_SCOPE ("bool")
    {
      const unsigned char mine[] = { 1, 0, me == 0, me == n_ranks - 1 };
      unsigned char all[4 * MOST];
      TdVar *x = td_tensor (TD_BOOL, TD_SHAPE (4), mine);

      assert_int_equal (td_read (td_comm_allgather (world, x), all, 4 * (size_t)n_ranks),
                        TD_OK);
      for (int r = 0; r < n_ranks; r++)
        assert_true (all[4 * r] == 1 && all[4 * r + 1] == 0 && all[4 * r + 2] == (r == 0)
                     && all[4 * r + 3] == (r == n_ranks - 1));
      assert_true (td_poisoned (td_comm_allreduce (world, x)));
      assert_non_null (strstr (said (TD_ERR_DTYPE), "numbers expected, got bool"));
    }
}

/* The loss of rank r: every element of y squared, times a number of its own. */
static TdVar *
loss_of (int r, TdVar *y)
{
  return td_sum (td_mul (td_square (y), numbers_of (r, TD_F64, td_shape (y), 11)));
}

/* What second gradients are taken of. */
static TdVar *
of_gradient (TdVar *g)
{
  return td_sum (td_mul (g, td_square (g)));
}

/* Those of the sum of all ranks' losses, in one process. */
static void
one_process (const Function *f, TdVar **first, TdVar **second)
{
  TdVar *xs[MOST], *ys[MOST], *gs[MOST], *ggs[MOST], *losses[MOST], *of[MOST];

  for (int r = 0; r < n_ranks; r++)
    xs[r] = td_variable (numbers_of (r, TD_F64, shape_for (f), 7), "x");
  f->one_process (xs, ys);
  for (int r = 0; r < n_ranks; r++)
    losses[r] = loss_of (r, ys[r]);
  assert_int_equal (td_grad_of (losses, n_ranks, xs, n_ranks, NULL, TD_DOUBLE_BACKPROP, gs),
                    TD_OK);
  for (int r = 0; r < n_ranks; r++)
    {
      gs[r] = gs[r] != NULL ? gs[r] : td_mul_scalar (xs[r], 0);
      of[r] = of_gradient (gs[r]);
    }
  assert_int_equal (td_grad_of (of, n_ranks, xs, n_ranks, NULL, 0, ggs), TD_OK);
  *first = gs[me];
  *second = ggs[me];
}

static void
every_function__has_the_gradients_of_one_process (void **state)
{
  (void)state;
  for (int i = 0; i < N_FUNCTIONS; i++)
    TD_SCOPE (functions[i].name)
      {
        TdVar *x = td_variable (numbers_of (me, TD_F64, shape_for (&functions[i]), 7), "x");
        TdVar *loss = loss_of (me, functions[i].call (x)), *g, *gg, *of, *first, *second;

        assert_int_equal (td_grad_of (&loss, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &g), TD_OK);
        of = of_gradient (g);
        assert_int_equal (td_grad_of (&of, 1, &x, 1, NULL, 0, &gg), TD_OK);
        one_process (&functions[i], &first, &second);
        assert_near (g, first, 1e-13);
        assert_near (gg, second, 1e-12);
      }
}

/* Only one rank's x wants a gradient: the others come to its backward all the same. */
static void
gradient__of_one_rank_alone_needs_no_care_of_the_others (void **state)
{
  (void)state;
  TD_SCOPE ("one")
    {
      TdVar *x = numbers_of (me, TD_F64, TD_SHAPE (3), 3), *y, *want;

      if (me == n_ranks - 1)
        td_variable (x, "x");
      y = td_comm_bcast (world, x, n_ranks - 1);
      assert_int_equal (td_backward (td_sum (td_mul_scalar (y, me + 1)), 0), TD_OK);
      want = td_full (TD_F64, TD_SHAPE (3), n_ranks * (n_ranks + 1) / 2.0);
      if (me == n_ranks - 1)
        assert_near (td_grad (x), want, 0);
      else
        assert_null (td_grad (x));
    }
}

static void
no_gradient__is_asked_for_without_a_variable_that_wants_one (void **state)
{
  (void)state;
  TD_SCOPE ("none")
    {
      TdVar *y = td_comm_allreduce (world, numbers_of (me, TD_F32, TD_SHAPE (3), 3));
      TdMemInfo info = td_mem_info (NULL);

      assert_false (td_poisoned (y));
      assert_int_equal (info.live_ops, 0);
    }
}

static void
sum__has_the_same_bits_on_all_ranks_and_each_time (void **state)
{
  static const int64_t sizes[] = { 1, 7, 500 };
  float first[500], again[500];

  (void)state;
  for (int i = 0; i < 3; i++)
    for (int time = 0; time < 20; time++)
      TD_SCOPE ("bits")
        {
          TdVar *x = numbers_of (me, TD_F32, TD_SHAPE (sizes[i]), (unsigned)i + 40);
          const size_t bytes = (size_t)sizes[i] * sizeof (float);

          assert_int_equal (td_read (td_comm_allreduce (world, x), again, bytes), TD_OK);
          if (time == 0)
            memcpy (first, again, bytes);
          assert_memory_equal (first, again, bytes);
          assert_same_on_all_ranks (again, bytes);
        }
}

static void
split__makes_communicators_of_a_color_in_the_order_of_keys (void **state)
{
  TdComm *half = td_comm_split (world, me % 2, -me), *none;
  const int size = (n_ranks + (me % 2 == 0)) / 2;
  float sum = 0;

  (void)state;
  assert_int_equal (td_comm_size (half), size);
  assert_int_equal (td_comm_rank (half), size - 1 - me / 2);
  TD_SCOPE ("half")
    for (int r = me % 2; r < n_ranks; r += 2)
      sum += (float)r;
  TD_SCOPE ("sum")
    assert_float_equal (td_item (td_comm_allreduce (half, td_full (TD_F32, TD_SCALAR, me))),
                        sum, 0);
  none = td_comm_split (world, me == 0 ? -1 : 0, 0);
  assert_int_equal (td_comm_rank (none), me == 0 ? -1 : me - 1);
  assert_null (td_error ());
  td_comm_free (none);
  td_comm_free (half);
  assert_int_equal (td_comm_barrier (half), TD_ERR_STATE);
  assert_non_null (strstr (said (TD_ERR_STATE), "was freed"));
}

static void
communicators__that_there_are_not_say_what_there_is (void **state)
{
  (void)state;
  assert_int_equal (td_comm_size (td_comm_new ("gloo")), 0);
  assert_non_null (strstr (said (TD_ERR_ARG), "no communicator \"gloo\": there are \"mpi\", "
                                              "\"nccl\" and \"shm\""));
}

static void
shm__is_of_the_ranks_of_one_machine (void **state)
{
  TdComm *near = td_comm_new ("shm");
  float sum;

  (void)state;
  assert_int_equal (td_comm_size (near), n_ranks);
  assert_int_equal (td_comm_rank (near), me);
  TD_SCOPE ("sum")
    sum = td_item (td_comm_allreduce (near, td_full (TD_F32, TD_SCALAR, me + 1)));
  assert_float_equal (sum, n_ranks * (n_ranks + 1) / 2, 0);
  assert_null (td_error ());
  td_comm_free (near);
}

static void
shm__of_one_rank_and_mpi_of_others_is_an_error_on_all (void **state)
{
  (void)state;
  if (n_ranks == 1)
    skip ();
  assert_int_equal (td_comm_size (td_comm_new (me == 0 ? "shm" : "mpi")), 0);
  assert_non_null (strstr (said (TD_ERR_ARG), "rank 0 asks for \"shm\", rank 1 for \"mpi\""));
  assert_int_equal (td_comm_barrier (world), TD_OK);
}

static void
ranks__of_one_machine_have_numbers_of_their_own (void **state)
{
  unsigned char seen[MOST];

  (void)state;
  TD_SCOPE ("intra")
    {
      const unsigned char mine = (unsigned char)td_comm_intra_rank (world);
      TdVar *all = td_comm_allgather (world, td_tensor (TD_U8, TD_SCALAR, &mine));

      assert_int_equal (td_read (all, seen, (size_t)n_ranks), TD_OK);
      for (int r = 0; r < n_ranks; r++)
        assert_int_equal (seen[r], r); /* mpirun fills one machine in order */
    }
  assert_int_equal (td_comm_intra_size (world), n_ranks);
  assert_int_equal (td_comm_inter_rank (world), 0);
  assert_int_equal (td_comm_inter_size (world), 1);
}

static void
code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)n_in, (void)n_out;
  out[0] = td_comm_allreduce (world, td_relu (in[0]));
}

static void
static_function__with_a_collective_stays_dynamic_and_right (void **state)
{
  TdStatic *s = td_static_new (code, NULL);

  (void)state;
  for (int time = 0; time < 3; time++)
    TD_SCOPE ("static")
      {
        TdVar *xs[MOST], *ys[MOST];

        for (int r = 0; r < n_ranks; r++)
          xs[r] = td_relu (numbers_of (r, TD_F64, TD_SHAPE (4), (unsigned)time));
        one_allreduce (xs, ys);
        assert_near (td_static_call1 (s, numbers_of (me, TD_F64, TD_SHAPE (4), (unsigned)time)),
                     ys[me], 1e-15 * n_ranks);
      }
  td_static_free (s);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    ranks_test (every_function__gives_what_one_process_computes_in_every_dtype),
    ranks_test (bool__goes_everywhere_but_into_a_sum),
    ranks_test (every_function__has_the_gradients_of_one_process),
    ranks_test (gradient__of_one_rank_alone_needs_no_care_of_the_others),
    ranks_test (no_gradient__is_asked_for_without_a_variable_that_wants_one),
    ranks_test (sum__has_the_same_bits_on_all_ranks_and_each_time),
    ranks_test (split__makes_communicators_of_a_color_in_the_order_of_keys),
    ranks_test (ranks__of_one_machine_have_numbers_of_their_own),
    ranks_test (communicators__that_there_are_not_say_what_there_is),
    ranks_test (shm__is_of_the_ranks_of_one_machine),
    ranks_test (shm__of_one_rank_and_mpi_of_others_is_an_error_on_all),
    ranks_test (static_function__with_a_collective_stays_dynamic_and_right),
  };

  return run_as_ranks (tests);
}
