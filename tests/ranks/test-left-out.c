/* A rank that leaves a whole iteration out goes on one behind the others: it is named with that
 * iteration, by the tape's number and by what the program calls it. One that dies, hangs or
 * ends there has left none out.
 *
 * test-left-out TAPEDECK
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "mpi-here.h"

#include <stdio.h>
#include <string.h>

static const char *tapedeck;

/* Labels are those of the loop plus the second argument. */
static const char program[]
    = "#include <tapedeck.h>\n"
      "#include <signal.h>\n"
      "#include <stdlib.h>\n"
      "#include <string.h>\n"
      "#include <unistd.h>\n"
      "static const char *kind;\n"
      "static int is (const char *k)\n{ return strstr (kind, k) != NULL; }\n"
      "int main (int argc, char **argv)\n{\n"
      "  td_init (&argc, &argv);\n"
      "  kind = argv[1];\n"
      "  TdComm *comm = td_comm_new (NULL);\n"
      "  const int rank = td_comm_rank (comm), size = td_comm_size (comm);\n"
      "  TdLink *net = td_linear_new (NULL, \"l\", 4, 3);\n"
      "  TdVar *of[2] = { td_link_param (net, \"W\"), td_link_param (net, \"b\") };\n"
      "  if (is (\"hand\"))\n"
      "    td_comm_bcast_link (comm, net);\n"
      "  TdOpt *opt = td_sgd_new (net, .lr = 0.1);\n"
      "  if (!is (\"hand\"))\n"
      "    opt = td_multi_node_optimizer_new (opt, comm);\n"
      "  for (int i = 0; i < 9; i++)\n    {\n"
      "      TD_ITERATION (i + atoi (argv[2]))\n        {\n"
      "          const int at = i == 5 && rank == 1;\n"
      "          float x[8][4];\n"
      "          for (int k = 0; k < 32; k++)\n"
      "            x[k / 4][k % 4] = (float)((rank * 31 + i * 7 + k * k) % 53) / 50;\n"
      "          if (is (\"steps\"))\n"
      "            td_report (\"step\", 1200 + i);\n"
      "          if (is (\"dies\") && at)\n"
      "            kill (getpid (), SIGKILL);\n"
      "          if (is (\"hangs\") && at)\n"
      "            sleep (60);\n"
      "          if (is (\"stops\") && at)\n"
      "            break;\n"
      "          td_cleargrads (net);\n"
      "          if (is (\"whole\") && at)\n"
      "            continue;\n"
      "          TdVar *y = td_link (net, td_tensor (TD_F32, TD_SHAPE (8, 4), x));\n"
      "          if (is (\"forward\") && at)\n"
      "            continue;\n"
      "          td_backward (td_mean (td_square (y)), 0);\n"
      "          for (int k = 0; k < 2 && is (\"hand\"); k++)\n"
      "            td_set_grad (of[k], td_div_scalar (td_comm_allreduce (comm, td_grad "
      "(of[k])), "
      "size));\n"
      "          td_opt_update (opt);\n"
      "        }\n"
      "      if (is (\"evaluates\") && rank == 1 && i == 3)\n"
      "        TD_ITERATION (99)\n"
      "          td_item (td_mean (td_link (net, td_ones (TD_F32, TD_SHAPE (5, 4)))));\n"
      "      if (is (\"stops\") && rank == 1 && i == 5)\n"
      "        break;\n"
      "      if (is (\"ends\") && rank == 1 && i == 6)\n"
      "        break;\n"
      "    }\n"
      "  return td_finish ();\n}\n";

static const struct
{
  const char *kind, *first_label, *says, *says_not;
} cases[] = {
  { "whole", "0",
    "error: rank 1 leaves iteration 5 out: no backward and no update is in it, where "
    "ranks 0 and 2 came to one; from then on they are one iteration apart",
    "the program's" },
  { "whole", "100", "error: rank 1 leaves iteration 5 (the program's 105) out", NULL },
  { "whole by hand", "100", "error: rank 1 leaves iteration 5 (the program's 105) out", NULL },
  { "forward", "100", "error: rank 1 leaves iteration 5 (the program's 105) out", NULL },
  { "whole, with steps", "0", "error: rank 1 leaves iteration 5 (the program's step 1205) out",
    NULL },
  { "dies", "100", "rank 1 never came: it was killed by SIGKILL in iteration 5", "leaves it" },
  { "hangs by hand", "0", "rank 1 never came: it was in iteration 5, after ", "leaves it" },
  { "stops", "0", "rank 1 is in another call than the others in iteration 5", "leaves it" },
  { "evaluates, ends", "100", "rank 1 is in another call than the others", "leaves iteration" },
};

static void
iteration__that_a_rank_leaves_out_is_named_first (void **state)
{
  const char *source = td_test_tmp ("left_out.c"), *folder = td_test_tmp ("ranks");

  (void)state;
  td_test_write_file (source, program, sizeof program - 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      TdTestChild child
          = TD_TEST_RUN (tapedeck, "run", "-n", "3", "--hang-after", "2", "-f", "-o", folder,
                         source, cases[i].kind, cases[i].first_label);
      const char *first;

      td_test_child_clear (&child);
      child = TD_TEST_RUN (tapedeck, "ranks", folder);
      first = strstr (child.out, "error: ");
      assert_child_status (child, 1);
      assert_contains (child.out, cases[i].says);
      if (cases[i].says_not != NULL)
        assert_not_contains (child.out, cases[i].says_not);
      else if (first != strstr (child.out, cases[i].says))
        fail_msg ("%s: not the first: %s", cases[i].kind, child.out);
      td_test_child_clear (&child);
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (iteration__that_a_rank_leaves_out_is_named_first),
  };

  if (argc != 2)
    return 2;
  if (!mpi_here ())
    return 77;
  tapedeck = argv[1];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
