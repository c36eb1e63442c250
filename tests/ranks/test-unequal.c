/* Batches of other sizes on each rank: told where examples do not count alike, and not where
 * each rank's loss, or its gradients, are weighted by its share of them.
 *
 * test-unequal TAPEDECK
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "mpi-here.h"

#include <stdio.h>
#include <string.h>

static const char *tapedeck;

static const char program[]
    = "#include <tapedeck.h>\n"
      "#include <string.h>\n"
      "enum { MOST = 9, ALL = 15 };\n"
      "static const char *kind;\n"
      "static int is (const char *k)\n{ return strcmp (kind, k) == 0; }\n"
      "int main (int argc, char **argv)\n{\n"
      "  td_init (&argc, &argv);\n"
      "  kind = argv[1];\n"
      "  TdComm *comm = td_comm_new (NULL);\n"
      "  const int rank = td_comm_rank (comm), size = 2, n = rank == 0 ? MOST : ALL - MOST;\n"
      "  const int by_hand = strncmp (kind, \"hand\", 4) == 0;\n"
      "  const double share = (double)n * size / ALL;\n"
      "  TdLink *net = td_linear_new (NULL, \"l\", 4, 3);\n"
      "  TdVar *of[2] = { td_link_param (net, \"W\"), td_link_param (net, \"b\") };\n"
      "  TdOpt *opt = td_sgd_new (net, .lr = 0.1);\n"
      "  if (by_hand)\n"
      "    td_comm_bcast_link (comm, net);\n"
      "  else\n"
      "    opt = td_multi_node_optimizer_new (opt, comm);\n"
      "  TD_ITERATIONS (i, 6)\n    {\n"
      "      float x[MOST][4];\n"
      "      int32_t t[MOST];\n"
      "      for (int k = 0; k < MOST * 4; k++)\n"
      "        x[k / 4][k % 4] = (float)((rank * 31 + i * 7 + k * k) % 53) / 50;\n"
      "      for (int k = 0; k < MOST; k++)\n"
      "        t[k] = (rank + i + k) % 3;\n"
      "      TdVar *y = td_link (net, td_tensor (TD_F32, TD_SHAPE (n, 4), x));\n"
      "      TdVar *loss = td_softmax_cross_entropy (y, td_tensor (TD_I32, TD_SHAPE (n), t));\n"
      "      if (is (\"share\") || is (\"wrong\"))\n"
      "        loss = td_mul_scalar (loss, is (\"share\") ? share : 1 / share);\n"
      "      if (is (\"decayed\"))\n"
      "        loss = td_add (td_mul_scalar (td_sum (td_square (of[0])), 0.01), td_mul_scalar "
      "(loss, share));\n"
      "      if (is (\"hand sum\"))\n"
      "        loss = td_sum (td_square (y));\n"
      "      if (is (\"examples\"))\n"
      "        loss = td_sum (td_div_scalar (td_sum_axes (td_square (y), (int[]){ 1 }, 1, "
      "false), ALL));\n"
      "      td_cleargrads (net);\n"
      "      td_backward (loss, 0);\n"
      "      for (int k = 0; k < 2 && by_hand; k++)\n        {\n"
      "          TdVar *g = td_grad (of[k]);\n"
      "          if (is (\"hand share\"))\n"
      "            g = td_mul_scalar (g, share);\n"
      "          g = td_div_scalar (td_comm_allreduce (comm, g), is (\"hand sum\") ? ALL : "
      "size);\n"
      "          td_set_grad (of[k], g);\n        }\n"
      "      td_opt_update (opt);\n    }\n"
      "  return td_finish ();\n}\n";

static const struct
{
  const char *kind;
  bool is_healthy;
} cases[] = {
  { "mean", false },    { "share", true }, { "wrong", false },   { "decayed", true },
  { "examples", true }, { "hand", false }, { "hand sum", true }, { "hand share", true },
};

static void
batches__of_other_sizes_are_told_unless_their_examples_count_alike (void **state)
{
  const char *source = td_test_tmp ("unequal.c"), *folder = td_test_tmp ("ranks");

  (void)state;
  td_test_write_file (source, program, sizeof program - 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      TdTestChild child
          = TD_TEST_RUN (tapedeck, "run", "-n", "2", "-f", "-o", folder, source, cases[i].kind);

      assert_child_status (child, 0);
      td_test_child_clear (&child);
      child = TD_TEST_RUN (tapedeck, "ranks", folder);
      if ((child.status == 0) != cases[i].is_healthy)
        fail_msg ("%s: %s", cases[i].kind, child.out);
      assert_contains (child.out, cases[i].is_healthy
                                      ? "Nothing found: 6 steps with updates of 2 ranks"
                                      : "have unequal batches in iteration 0: 9 and 6");
      td_test_child_clear (&child);
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (batches__of_other_sizes_are_told_unless_their_examples_count_alike),
  };

  if (argc != 2)
    return 2;
  if (!mpi_here ())
    return 77;
  tapedeck = argv[1];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
