/* Arrays from one rank to another, and their gradients back, beside one process.
 *
 * SPDX-License-Identifier: MIT */
#include "ranks.h"

#include <string.h>

static int
next (void)
{
  return (me + 1) % n_ranks;
}

static int
before (void)
{
  return (me + n_ranks - 1) % n_ranks;
}

static void
array__comes_as_it_was_sent_in_every_dtype (void **state)
{
  (void)state;
  for (int dtype = TD_F32; dtype <= TD_U8; dtype++)
    TD_SCOPE ("ring")
      {
        TdVar *x = numbers_of (me, (TdDtype)dtype, TD_SHAPE (3, 2 + me), 5);

        td_send (x, world, next ());
        td_send (td_reshape (x, TD_SHAPE (2 + me, 3)), world, next ());
        assert_near (td_recv (world, before (), NULL),
                     numbers_of (before (), (TdDtype)dtype, TD_SHAPE (3, 2 + before ()), 5), 0);
        assert_int_equal (td_shape (td_recv (world, before (), NULL)).dim[0], 2 + before ());
      }
}

static void
large_arrays__of_all_ranks_at_once_block_nobody (void **state)
{
  (void)state;
  TD_SCOPE ("large")
    {
      TdVar *y;

      td_send (td_full (TD_F32, TD_SHAPE (3000000), me), world, next ());
      y = td_recv (world, before (), NULL);
      assert_true (td_mean_of (y) == before ());
    }
}

/* A layer of the model on each rank: h goes through all of them, gradients come back. */
static TdVar *
layer (TdVar *h, TdVar *w)
{
  return td_tanh (td_matmul (h, w, false, false));
}

static void
chain__of_ranks_has_the_gradients_of_one_process (void **state)
{
  (void)state;
  TD_SCOPE ("chain")
    {
      const TdShape square = TD_SHAPE (4, 4);
      TdVar *ws[8], *h = numbers_of (0, TD_F64, square, 90), *w, *x, *last;

      for (int r = 0; r < n_ranks; r++)
        {
          ws[r] = td_variable (numbers_of (r, TD_F64, square, 17), "w");
          h = layer (h, ws[r]);
        }
      assert_int_equal (td_backward (td_sum (td_square (h)), 0), TD_OK);

      w = td_variable (numbers_of (me, TD_F64, square, 17), "w");
      x = me == 0 ? numbers_of (0, TD_F64, square, 90) : td_recv (world, me - 1, NULL);
      h = layer (x, w);
      last = me == n_ranks - 1 ? td_sum (td_square (h)) : td_send (h, world, me + 1);
      assert_int_equal (td_backward (last, 0), TD_OK);
      assert_near (td_grad (w), td_grad (ws[me]), 1e-13);
    }
}

/* There and back: rank 0 computes, rank 1 computes on, rank 0 has the loss.  The delegate joins
 * both halves of rank 0's graph. */
static void
delegate__leads_backward_through_what_was_sent_before (void **state)
{
  (void)state;
  TD_SCOPE ("there and back")
    {
      const TdShape square = TD_SHAPE (3, 3);
      TdVar *w0 = td_variable (numbers_of (0, TD_F64, square, 1), "w0");
      TdVar *w1 = td_variable (numbers_of (1, TD_F64, square, 2), "w1");
      TdVar *one = layer (layer (layer (numbers_of (0, TD_F64, square, 3), w0), w1), w0);
      TdVar *v = td_variable (numbers_of (me, TD_F64, square, 1 + (unsigned)me), "v"), *h;

      assert_int_equal (td_backward (td_sum (one), 0), TD_OK);
      if (me == 0)
        {
          h = layer (numbers_of (0, TD_F64, square, 3), v);
          h = td_recv (world, 1, td_send (h, world, 1));
          assert_near (layer (h, v), one, 1e-14);
          assert_int_equal (td_backward (td_sum (layer (h, v)), 0), TD_OK);
          assert_near (td_grad (v), td_grad (w0), 1e-13);
        }
      else if (me == 1)
        {
          h = layer (td_recv (world, 0, NULL), v);
          assert_int_equal (td_backward (td_send (h, world, 0), 0), TD_OK);
          assert_near (td_grad (v), td_grad (w1), 1e-13);
        }
    }
}

static void
pseudo_connect__joins_a_delegate_to_any_array (void **state)
{
  (void)state;
  TD_SCOPE ("joined")
    {
      TdVar *x = td_variable (td_full (TD_F64, TD_SHAPE (2), me + 1), "x"), *y;

      if (me == 0)
        {
          y = td_pseudo_connect (td_send (x, world, 1), td_mul_scalar (x, 10));
          assert_int_equal (td_backward (td_sum (y), 0), TD_OK);
          assert_near (td_grad (x), td_full (TD_F64, TD_SHAPE (2), 10 + 7), 0);
        }
      else if (me == 1)
        assert_int_equal (td_backward (td_sum (td_mul_scalar (td_recv (world, 0, NULL), 7)), 0),
                          TD_OK);
    }
}

static void
sender__that_cannot_send_is_an_error_of_who_waits (void **state)
{
  (void)state;
  TD_SCOPE ("poison")
    {
      TdVar *bad = td_add (td_ones (TD_F32, TD_SHAPE (2)), td_ones (TD_F32, TD_SHAPE (3)));

      assert_non_null (strstr (said (TD_ERR_SHAPE), "add: "));
      if (me == 0)
        assert_true (td_poisoned (td_send (bad, world, 1)));
      if (me == 1)
        assert_true (td_poisoned (td_recv (world, 0, NULL)));
      if (me == 1)
        assert_non_null (strstr (said (TD_ERR_STATE), "rank 0 cannot send (../"));
      td_error_clear ();
      if (me == 0)
        td_send (td_ones (TD_F32, TD_SHAPE (2)), world, 1);
      if (me == 1) /* a delegate that is none: what came with it is dropped */
        {
          assert_true (td_poisoned (td_recv (world, 0, bad)));
          td_error_clear ();
        }
      if (me == 0)
        td_send (td_full (TD_F32, TD_SCALAR, 3), world, 1);
      if (me == 1)
        assert_true (td_item (td_recv (world, 0, NULL)) == 3);
    }
}

static void
rank__that_is_no_other_one_is_an_error (void **state)
{
  (void)state;
  TD_SCOPE ("ranks")
    {
      TdVar *x = td_ones (TD_F32, TD_SHAPE (2));

      td_send (x, world, n_ranks);
      assert_non_null (strstr (said (TD_ERR_ARG), "another rank of 0 to"));
      td_recv (world, me, NULL);
      assert_non_null (strstr (said (TD_ERR_ARG), "another rank of 0 to"));
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    ranks_test (array__comes_as_it_was_sent_in_every_dtype),
    ranks_test (large_arrays__of_all_ranks_at_once_block_nobody),
    ranks_test (chain__of_ranks_has_the_gradients_of_one_process),
    ranks_test (delegate__leads_backward_through_what_was_sent_before),
    ranks_test (pseudo_connect__joins_a_delegate_to_any_array),
    ranks_test (sender__that_cannot_send_is_an_error_of_who_waits),
    ranks_test (rank__that_is_no_other_one_is_an_error),
  };

  return run_as_ranks (tests);
}
