/* Models whose links lie on several ranks, beside one process that has all of them.
 *
 * SPDX-License-Identifier: MIT */
#include "models.h"

#include <stdio.h>
#include <string.h>

enum
{
  STEPS = 6,
  WIDTH = 5
};

static TdLink *
layer (const char *name, int number)
{
  TdLink *link;

  td_set_seed (100 + (unsigned)number);
  link = td_linear_new (NULL, name, WIDTH, WIDTH);
  return link;
}

static TdVar *
input_of (int step)
{
  return numbers_of (0, TD_F32, TD_SHAPE (BATCH, WIDTH), (unsigned)step);
}

/* A chain once through all ranks and back to the first: n_ranks + 1 layers, of which rank 0 has
 * the first and the last. */
static TdLink *
ring (TdLink *last)
{
  TdLink *list = td_multi_node_chain_list_new (NULL, "list", world);
  const int before = (me + n_ranks - 1) % n_ranks, after = (me + 1) % n_ranks;

  td_multi_node_chain_list_add (list, layer ("layer", me), me == 0 ? TD_NO_RANK : before,
                                after);
  if (me == 0)
    td_multi_node_chain_list_add (list, last, before, TD_NO_RANK);
  return list;
}

static TdVar *
loss_of (TdVar *y)
{
  return td_mean (td_square (td_add_scalar (y, -0.5)));
}

static void
chain__over_all_ranks_trains_as_one_process (void **state)
{
  TdLink *last = me == 0 ? layer ("last", n_ranks) : NULL, *list = ring (last);
  TdLink *one = td_sequential_new ("one"), *mine;
  TdOpt *opt = td_sgd_new (list, .lr = 0.1), *opt_one;

  (void)state;
  for (int i = 0; i <= n_ranks; i++)
    {
      char name[16];

      snprintf (name, sizeof name, "l%d", i);
      td_set_seed (100 + (unsigned)i);
      td_linear_new (one, name, WIDTH, WIDTH);
    }
  opt_one = td_sgd_new (one, .lr = 0.1);
  for (int step = 0; step < STEPS; step++)
    TD_SCOPE ("step")
      {
        TdVar *x = input_of (step), *y = td_link (list, x), *whole = td_link (one, x);

        td_cleargrads (list);
        td_cleargrads (one);
        if (me == 0)
          assert_near (y, whole, 1e-6);
        else
          assert_int_equal (td_ndim (y), 0);
        assert_int_equal (td_backward (me == 0 ? loss_of (y) : y, 0), TD_OK);
        assert_int_equal (td_backward (loss_of (whole), 0), TD_OK);
        assert_int_equal (td_opt_update (opt), TD_OK);
        assert_int_equal (td_opt_update (opt_one), TD_OK);
      }
  mine = td_link_child (list, "0");
  {
    char name[16];

    snprintf (name, sizeof name, "l%d", me);
    assert_params_near (mine, td_link_child (one, name), 1e-6);
  }
  if (me == 0)
    {
      char name[16];

      snprintf (name, sizeof name, "l%d", n_ranks);
      assert_params_near (td_link_child (list, "1"), td_link_child (one, name), 1e-6);
    }
  td_opt_free (opt);
  td_opt_free (opt_one);
  td_link_free (list);
  td_link_free (one);
}

/* Rank 0 gives its output to all, itself among them, and takes all of theirs: several ranks in
 * and out of one link. */
static TdStatus
add_all (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)link, (void)self, (void)n_out;
  out[0] = in[0];
  for (int i = 1; i < n_in; i++)
    out[0] = td_add (out[0], in[i]);
  return TD_OK;
}

static const TdLinkClass sum_class
    = { .size = sizeof (TdLinkClass), .name = "Sum", .forward = add_all };

static void
links__may_have_several_ranks_in_and_out (void **state)
{
  TdLink *list = td_multi_node_chain_list_new (NULL, "list", world);
  TdLink *first = layer ("first", 50), *own[MOST];
  int everybody[MOST];

  (void)state;
  for (int r = 0; r < n_ranks; r++)
    {
      everybody[r] = r;
      own[r] = layer ("own", r);
    }
  if (me == 0)
    td_multi_node_chain_list_add_many (list, td_link_copy (first), NULL, 0, everybody, n_ranks);
  td_multi_node_chain_list_add (list, td_link_copy (own[me]), 0, 0);
  if (me == 0)
    td_multi_node_chain_list_add_many (list, td_link_new (&sum_class, NULL, "sum"), everybody,
                                       n_ranks, NULL, 0);
  TD_SCOPE ("call")
    {
      TdVar *x = td_variable (input_of (3), "x"), *y = td_link (list, x);

      assert_int_equal (td_backward (me == 0 ? loss_of (y) : y, 0), TD_OK);
      if (me == 0)
        {
          TdVar *z = td_variable (input_of (3), "z"), *h = td_link (first, z), *sum = NULL;

          for (int r = 0; r < n_ranks; r++)
            sum = r == 0 ? td_link (own[r], h) : td_add (sum, td_link (own[r], h));
          assert_near (y, sum, 1e-6);
          assert_int_equal (td_backward (loss_of (sum), 0), TD_OK);
          assert_near (td_grad (x), td_grad (z), 1e-6);
          assert_near (td_grad (td_link_param (td_link_child (list, "0"), "W")),
                       td_grad (td_link_param (first, "W")), 1e-6);
        }
    }
  td_link_free (list);
  td_link_free (first);
  for (int r = 0; r < n_ranks; r++)
    td_link_free (own[r]);
}

static TdLink *
list_of (int rank_in, int rank_out)
{
  TdLink *list = td_multi_node_chain_list_new (NULL, "list", world);

  if (rank_in != TD_NO_RANK || rank_out != TD_NO_RANK)
    td_multi_node_chain_list_add (list, layer ("layer", 0), rank_in, rank_out);
  return list;
}

/* Two ranks that wait for each other; one that waits for nobody's output; and one that sends
 * what nobody takes. */
static void
links__that_can_never_all_run_are_an_error_not_a_hang (void **state)
{
  static const struct
  {
    int in[2], out[2]; /* of ranks 0 and 1 */
    const char *text;
  } cases[] = {
    { { 1, 0 },
      { 1, 0 },
      "links wait in a circle: layer of rank 0 for rank 1, which is at layer" },
    { { TD_NO_RANK, 0 },
      { TD_NO_RANK, TD_NO_RANK },
      "layer of rank 1 waits for rank 0, which sends it nothing more" },
    { { TD_NO_RANK, TD_NO_RANK },
      { 1, TD_NO_RANK },
      "rank 0 sends to rank 1 what no link there takes" },
  };

  (void)state;
  for (int i = 0; i < 3 && n_ranks > 1; i++)
    TD_SCOPE ("case")
      {
        TdLink *list = me < 2 ? list_of (cases[i].in[me], cases[i].out[me])
                              : list_of (TD_NO_RANK, TD_NO_RANK);

        td_link (list, input_of (0));
        if (strstr (said (TD_ERR_ARG), cases[i].text) == NULL)
          fail_msg ("case %d", i);
        td_link_free (list);
      }
  if (n_ranks == 1)
    TD_SCOPE ("alone")
      {
        TdLink *list = list_of (0, 0);

        td_link (list, input_of (0));
        assert_non_null (strstr (said (TD_ERR_ARG), "sends it nothing more"));
        td_link_free (list);
      }
}

static void
ranks__that_are_none_are_refused (void **state)
{
  TdLink *list = td_multi_node_chain_list_new (NULL, "list", world);
  TdLink *link = layer ("layer", 0), *other = td_sequential_new ("other");
  const int many[9] = { 0 };

  (void)state;
  td_multi_node_chain_list_add (list, link, n_ranks, TD_NO_RANK);
  assert_non_null (strstr (said (TD_ERR_ARG), "a rank in of 0 to"));
  td_multi_node_chain_list_add (list, link, TD_NO_RANK, -2);
  assert_non_null (strstr (said (TD_ERR_ARG), "a rank out of 0 to"));
  td_multi_node_chain_list_add_many (list, link, many, 9, NULL, 0);
  assert_non_null (strstr (said (TD_ERR_ARG), "at most 8 ranks in expected"));
  td_multi_node_chain_list_add (other, link, TD_NO_RANK, TD_NO_RANK);
  assert_non_null (strstr (said (TD_ERR_ARG), "not a MultiNodeChainList"));
  td_multi_node_chain_list_add (list, link, TD_NO_RANK, TD_NO_RANK);
  td_multi_node_chain_list_add (list, other, TD_NO_RANK, TD_NO_RANK);
  assert_non_null (strstr (said (TD_ERR_ARG), "only one link goes without ranks out"));
  td_link_free (list);
  td_link_free (other);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    ranks_test (chain__over_all_ranks_trains_as_one_process),
    ranks_test (links__may_have_several_ranks_in_and_out),
    ranks_test (links__that_can_never_all_run_are_an_error_not_a_hang),
    ranks_test (ranks__that_are_none_are_refused),
  };

  return run_as_ranks (tests);
}
