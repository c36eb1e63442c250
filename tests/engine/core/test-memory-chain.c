/* By way of what arrays are kept, as a report of memory that ran out has it.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/memory-chain.h"
#include "td-test.h"

#include <stdlib.h>
#include <string.h>

enum
{
  DEPTH = 12
};

static int
setup (void **state)
{
  return td_init (NULL, NULL) != TD_OK;
}

static int
teardown (void **state)
{
  return td_finish ();
}

/* Of the graph sum (tanh (tanh (... l (x)))), which only its result keeps.  *Owner*: the
 * caller, td_release. */
static TdVar *
build (TdLink *l, int depth)
{
  TdVar *sum = NULL;

  TD_SCOPE ("graph")
    {
      TdVar *h = td_link (l, td_randn (TD_F32, TD_SHAPE (4, 4)));

      for (int i = 0; i < depth; i++)
        h = td_tanh (h);
      sum = td_retain (td_sum (h));
    }
  return sum;
}

/* The group that an operation made and no handle has. */
static const TdMemHolder *
kept_by_graph (const TdMemHolder *all, size_t n, const char *op)
{
  for (size_t i = 0; i < n; i++)
    if (all[i].var == NULL && all[i].cls != NULL && strcmp (all[i].cls->name, op) == 0)
      return &all[i];
  fail_msg ("the graph keeps nothing of %s", op);
  return NULL;
}

static void
chain__leads_from_the_handle_to_the_array (void **state)
{
  TdLink *l = td_linear_new (NULL, "l", 4, 4);
  TdVar *sum = build (l, 2);
  TdMemLink links[TD_MEM_LINKS];
  TdMemChains *chains = td__mem_chains_new ();
  size_t n;
  TdMemHolder *all = td__mem_holders (td_device_get ("cpu"), &n);
  const TdMemHolder *h = kept_by_graph (all, n, "tanh");
  uint32_t left_out;

  assert_non_null (chains);
  assert_int_equal (h->n, 2);
  assert_int_equal (td__mem_chain (chains, h, links, &left_out), 3); /* the first tanh's */
  assert_int_equal (left_out, 0);
  assert_ptr_equal (links[0].var, sum);
  assert_null (links[0].op);
  assert_string_equal (links[1].op->cls->name, "sum");
  assert_string_equal (links[2].op->cls->name, "tanh");
  assert_ptr_equal (links[2].op->in[0], h->node);
  td__mem_chains_free (chains);
  free (all);
  td_release (sum);
  td_link_free (l);
}

/* Of a long one the middle is left out, and how much that is. */
static void
chain__that_is_long_has_both_ends (void **state)
{
  TdLink *l = td_linear_new (NULL, "l", 4, 4);
  TdVar *sum = build (l, DEPTH);
  TdMemLink links[TD_MEM_LINKS];
  TdMemChains *chains = td__mem_chains_new ();
  size_t n;
  TdMemHolder *all = td__mem_holders (td_device_get ("cpu"), &n);
  const TdMemHolder *h = kept_by_graph (all, n, "tanh");
  uint32_t left_out;

  assert_int_equal (td__mem_chain (chains, h, links, &left_out), TD_MEM_LINKS);
  /* the handle, sum, and each tanh above the first */
  assert_int_equal (left_out, 2 + (DEPTH - 1) - TD_MEM_LINKS);
  assert_ptr_equal (links[0].var, sum);
  assert_string_equal (links[1].op->cls->name, "sum");
  for (int i = 2; i < TD_MEM_LINKS; i++)
    assert_string_equal (links[i].op->cls->name, "tanh");
  for (int i = 1; i < TD_MEM_LINKS; i++)
    if (i != TD_MEM_LINKS / 2 && i > 1)
      assert_ptr_equal (links[i - 1].op->in[0]->creator, links[i].op);
  assert_ptr_equal (links[TD_MEM_LINKS - 1].op->in[0], h->node);
  td__mem_chains_free (chains);
  free (all);
  td_release (sum);
  td_link_free (l);
}

/* An array with a handle is kept by that; a gradient by the one whose it is. */
static void
chain__of_handles_and_gradients_is_short (void **state)
{
  TdLink *link = td_linear_new (NULL, "l", 4, 3);
  TdMemLink links[TD_MEM_LINKS];
  TdMemChains *chains;
  TdMemHolder *all;
  bool any_gradient = false;
  uint32_t left_out;
  size_t n;

  TD_SCOPE ("graph")
    td_backward (td_sum (td_link (link, td_ones (TD_F32, TD_SHAPE (2, 4)))), 0);
  chains = td__mem_chains_new ();
  all = td__mem_holders (td_device_get ("cpu"), &n);
  for (size_t i = 0; i < n; i++)
    {
      if (all[i].var == NULL)
        continue;
      assert_int_equal (td__mem_chain (chains, &all[i], links, &left_out),
                        all[i].of != NULL ? 2 : 1);
      assert_int_equal (left_out, 0);
      assert_ptr_equal (links[0].var, all[i].of != NULL ? all[i].of : all[i].var);
      any_gradient |= all[i].of != NULL;
      if (all[i].of != NULL)
        assert_ptr_equal (links[1].var, all[i].of->grad);
    }
  assert_true (any_gradient);
  td__mem_chains_free (chains);
  free (all);
  td_link_free (link);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (chain__leads_from_the_handle_to_the_array),
    row (chain__that_is_long_has_both_ends),
    row (chain__of_handles_and_gradients_is_short),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
