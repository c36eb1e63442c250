/* Ranks that part: all of them hear of it in one line each, and none waits for ever.
 *
 * test-parting CHILD WITH-RANKS MODULE: each test runs CHILD as three ranks, of which rank 1
 * differs.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <string.h>

static const char *child_path, *with_ranks, *module;

enum
{
  RANKS = 3
};

static TdTestChild
part (const char *way)
{
  return td_test_shell ("%s %s %d %s %s", with_ranks, module, RANKS, child_path, way);
}

static int
count (const char *text, const char *word)
{
  int n = 0;

  for (const char *at = text; (at = strstr (at, word)) != NULL; at++)
    n++;
  return n;
}

/* Each rank says its number behind `before`, and `rest` is said as often as there are ranks. */
static void
all_say (const TdTestChild *c, const char *before, const char *rest)
{
  for (int r = 0; r < RANKS; r++)
    {
      char text[200];

      snprintf (text, sizeof text, "%srank %d of %d: ", before, r, RANKS);
      if (count (c->err, text) == 0 || count (c->err, rest) < RANKS)
        fail_msg ("\"%s\" and %d times \"%s\" expected in:\n%s", text, RANKS, rest, c->err);
    }
}

static void
order__that_differs_is_an_error_on_all_ranks_then_and_later (void **state)
{
  TdTestChild c = part ("order");

  (void)state;
  all_say (&c, "", "in call 2 rank 0 is in td_comm_allreduce of (3) f32 (");
  all_say (&c, "", "rank 1 in td_comm_bcast of (3) f32 from rank 0 (");
  all_say (&c, "td_comm_barrier: ", "nothing can be sent since the ranks parted in call 2");
  td_test_child_clear (&c);
}

static void
shape__that_differs_is_an_error_on_all_ranks_and_they_go_on (void **state)
{
  TdTestChild c = part ("shape");

  (void)state;
  all_say (&c, "shape: td_comm_allreduce: ", "rank 0 is in td_comm_allreduce of (3) f32");
  assert_int_equal (count (c.err, "rank 1 in td_comm_allreduce of (4) f32"), RANKS);
  assert_int_equal (count (c.err, "fine: no error"), RANKS);
  assert_child_status (c, 0);
  td_test_child_clear (&c);
}

static void
dtype_and_root__that_differ_are_errors_on_all_ranks (void **state)
{
  TdTestChild c = part ("dtype");

  (void)state;
  all_say (&c, "dtype: td_comm_allgather: ", "rank 1 in td_comm_allgather of (2) f64");
  td_test_child_clear (&c);
  c = part ("root");
  all_say (&c, "argument: td_comm_bcast: ", "rank 1 in td_comm_bcast of (3) f32 from rank 1");
  td_test_child_clear (&c);
}

static void
failure__of_one_rank_is_told_to_all_with_its_reason (void **state)
{
  TdTestChild c = part ("poison");

  (void)state;
  assert_int_equal (
      count (c.err, "rank 1 cannot take part in call 2 (../../tests/ranks/parting-child.c:"),
      RANKS - 1);
  assert_int_equal (count (c.err, "add: "), RANKS);
  assert_int_equal (count (c.err, "fine: no error"), RANKS);
  td_test_child_clear (&c);
  c = part ("no_variable");
  assert_int_equal (count (c.err, "rank 1 cannot take part in call 2"), RANKS - 1);
  td_test_child_clear (&c);
  c = part ("wrong_rows");
  assert_int_equal (count (c.err, "a row for each of 3 ranks expected: x (7)"), RANKS);
  td_test_child_clear (&c);
}

static void
rank__that_ends_early_is_named_by_all_and_none_waits (void **state)
{
  static const char *const ways[] = { "early", "left" };

  (void)state;
  for (int i = 0; i < 2; i++)
    {
      TdTestChild c = part (ways[i]);

      assert_int_equal (count (c.err, "call 2 waits for rank 1, which has ended (td_finish)"),
                        RANKS - 1);
      assert_int_equal (
          count (c.err, "td_finish: rank 1 of 3 ends while rank 0 is in td_comm_allreduce"), 1);
      td_test_child_clear (&c);
    }
}

static void
communicator__that_one_rank_makes_is_an_error_on_all_ranks (void **state)
{
  TdTestChild c = part ("one_more");

  (void)state;
  all_say (&c, "", "rank 0 is in td_comm_barrier (");
  all_say (&c, "", "rank 1 in td_comm_new (");
  td_test_child_clear (&c);
}

static void
rank__that_a_handler_ends_while_it_waits_ends_all (void **state)
{
  TdTestChild c = part ("handled");

  (void)state;
  assert_int_not_equal (c.status, 0);
  assert_int_not_equal (c.status, 124); /* that would be the patience of this test */
  td_test_child_clear (&c);
}

static void
rank__that_ends_sends_nothing_and_says_so (void **state)
{
  TdTestChild c = part ("silent");

  (void)state;
  assert_int_equal (count (c.err, "nothing comes from rank 1, which has ended (td_finish)"),
                    RANKS - 1);
  td_test_child_clear (&c);
}

static void
rank__that_ends_early_is_waited_for_in_no_communicator (void **state)
{
  TdTestChild c = part ("from_split");

  (void)state;
  assert_int_equal (count (c.err, "td_comm_barrier: rank 0 of 2: call 1 waits for rank 1"), 1);
  assert_int_equal (count (c.err, "td_comm_barrier: rank 2 of 3: call 3 waits for rank"), 1);
  td_test_child_clear (&c);
}

/* mpirun gives the others a second for their last words, in which they may get no processor on
 * a busy machine: here five. */
static void
rank__that_is_killed_ends_the_others_with_a_line_each (void **state)
{
  TdTestChild c = td_test_shell ("OMPI_MCA_odls_base_sigkill_timeout=5 %s %s %d %s killed",
                                 with_ranks, module, RANKS, child_path);

  (void)state;
  assert_int_not_equal (c.status, 0);
  assert_int_equal (count (c.err, "is ended while it waits for the others in td_comm_barrier "
                                  "(call 3, ../../tests/ranks/parting-child.c:"),
                    RANKS - 1);
  td_test_child_clear (&c);
}

static void
backward__that_one_rank_leaves_out_is_no_hang (void **state)
{
  TdTestChild c = part ("no_gradient");

  (void)state;
  assert_int_equal (count (c.err, "waits for rank 1, which has ended"), RANKS - 1);
  td_test_child_clear (&c);
}

/* --- how it is started --- */

/* As with-ranks says of leaks; and MPI alone needs no network either. */
#define ALONE "ASAN_OPTIONS=detect_leaks=0 OMPI_MCA_btl=self "

static void
module__that_is_not_there_is_one_line (void **state)
{
  TdTestChild c
      = td_test_shell (ALONE "TAPEDECK_MPI_MODULE=/none/tapedeck-mpi.so %s shape", child_path);

  (void)state;
  assert_non_null (strstr (c.err, "td_comm_new: MPI cannot be had: /none/tapedeck-mpi.so: "));
  td_test_child_clear (&c);
}

static void
program__without_mpirun_is_rank_0_of_1 (void **state)
{
  TdTestChild c = td_test_shell (ALONE "%s shape", child_path);

  (void)state;
  assert_string_equal (c.err, "fine: no error\nfine: no error\n");
  assert_child_status (c, 0);
  td_test_child_clear (&c);
}

static void
mpirun__of_another_mpi_is_said (void **state)
{
  TdTestChild c = td_test_shell (ALONE "PMI_SIZE=4 %s shape", child_path);

  (void)state;
  assert_non_null (strstr (c.err, "the mpirun that started 4 processes is not that of"));
  td_test_child_clear (&c);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (order__that_differs_is_an_error_on_all_ranks_then_and_later),
    td_test (shape__that_differs_is_an_error_on_all_ranks_and_they_go_on),
    td_test (dtype_and_root__that_differ_are_errors_on_all_ranks),
    td_test (failure__of_one_rank_is_told_to_all_with_its_reason),
    td_test (rank__that_ends_early_is_named_by_all_and_none_waits),
    td_test (communicator__that_one_rank_makes_is_an_error_on_all_ranks),
    td_test (rank__that_a_handler_ends_while_it_waits_ends_all),
    td_test (rank__that_ends_sends_nothing_and_says_so),
    td_test (rank__that_ends_early_is_waited_for_in_no_communicator),
    td_test (rank__that_is_killed_ends_the_others_with_a_line_each),
    td_test (backward__that_one_rank_leaves_out_is_no_hang),
    td_test (module__that_is_not_there_is_one_line),
    td_test (program__without_mpirun_is_rank_0_of_1),
    td_test (mpirun__of_another_mpi_is_said),
  };

  if (argc != 4)
    return 1;
  child_path = argv[1];
  with_ranks = argv[2];
  module = argv[3];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
