/* `tapedeck ranks` of the programs of data/examples/clinic/ranks: each is named, and of their
 * cured twins nothing is said.
 *
 * test-clinic TAPEDECK
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "mpi-here.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *tapedeck;

/* What is said of a program: where more than one text has to be there they stand behind |. */
static const struct
{
  const char *program, *says;
} cases[] = {
  { "unequal_start", "error: ranks 0, 1 and 2 parted in iteration 0: parameter `hidden/W`" },
  { "late_load", "error: rank 0 parted in iteration 7: parameter `output/b`|rank 0 wrote it" },
  { "late_state", "error: rank 0 parted in iteration 7: the optimizer's state `output/b/v`" },
  { "learning_rate",
    "in iteration 6: ranks 0, 1 and 2 in td_opt_update at learning_rate.c:|rank 1 cannot take "
    "part|it has lr 0.1 where rank 0 has lr 0.05" },
  { "fewer_updates",
    "error: rank 1 made no update in iteration 6, where ranks 0 and 2 came to one|"
    "error: rank 1 is in another call than the others in iteration 11|rank 1 "
    "in td_finish" },
  { "nan",
    "error: rank 1 parted in iteration 6: the gradient of `hidden/W` has 16 NaN|first in "
    "log at nan.c:" },
  { "other_graph", "warning: rank 1 has no gradient of `hidden/W` in iteration 6|rank 1 took "
                   "the branch at other_graph.c:" },
  { "other_order", "error: rank 0 is in another call than the others in iteration 6|rank 0 in "
                   "td_comm_barrier at other_order.c:" },
  { "own_optimizer",
    "error: ranks 0, 1 and 2 update their parameters by sgd at own_optimizer.c:" },
  { "part_only",
    "warning: ranks 0, 1 and 2 update 4 parameters in iteration 0, and the gradients of 2 "
    "are averaged" },
  { "same_data", "warning: ranks 0, 1 and 2 compute the same" },
  { "uneven_batches", "warning: ranks 0 and 1 have unequal batches in iteration 0: 16 and 8" },
  { "killed",
    "error: ranks 0 and 2 wait in td_opt_update at killed.c:|rank 1 never came: it was "
    "killed by SIGKILL in iteration 6|MISSING" },
};

/* Run it as three ranks; returns what `tapedeck ranks` says. */
static TdTestChild
look (const char *program, const char *suffix)
{
  char source[300];
  const char *folder = td_test_tmp ("ranks");
  TdTestChild run;

  snprintf (source, sizeof source, "data/examples/clinic/ranks/%s%s.c", program, suffix);
  run = TD_TEST_RUN (tapedeck, "run", "-n", "3", "-f", "--level", "stats", "-o", folder,
                     td_test_source (source));
  td_test_child_clear (&run);
  return TD_TEST_RUN (tapedeck, "ranks", folder);
}

static void
assert_says (const TdTestChild *child, const char *texts)
{
  char copy[400], *rest, *text;

  snprintf (copy, sizeof copy, "%s", texts);
  for (text = strtok_r (copy, "|", &rest); text != NULL; text = strtok_r (NULL, "|", &rest))
    assert_contains (child->out, text);
}

static void
clinic__each_fault_is_named (void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      TdTestChild child = look (cases[i].program, "");

      assert_child_status (child, 1);
      assert_says (&child, cases[i].says);
      td_test_child_clear (&child);
    }
}

static void
clinic__nothing_is_said_of_the_cured_ones (void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      TdTestChild child = look (cases[i].program, "_cured");

      assert_child_status (child, 0);
      assert_contains (child.out, "Nothing found: 12 steps with updates of 3 ranks compared.");
      assert_not_contains (child.out, "note: ranks");
      td_test_child_clear (&child);
    }
}

/* BatchNormalization, dropout and Adam; each rank draws other numbers, also those that its
 * weights begin with. */
static const char clean[]
    = "#include <tapedeck.h>\n"
      "int main (int argc, char **argv)\n{\n"
      "  td_init (&argc, &argv);\n"
      "  TdComm *comm = td_comm_new (NULL);\n"
      "  for (int i = 0; i < td_comm_rank (comm); i++)\n"
      "    td_randn (TD_F32, TD_SHAPE (50000));\n"
      "  TdLink *net = td_chain_new (\"net\");\n"
      "  TdLink *l1 = td_linear_new (net, \"l1\", 6, 16);\n"
      "  TdLink *bn = td_batch_normalization_new (net, \"bn\", 16);\n"
      "  TdLink *l2 = td_linear_new (net, \"l2\", 16, 3);\n"
      "  TdOpt *opt = td_multi_node_optimizer_new (td_adam_new (net), comm);\n"
      "  td_opt_add_hook (opt, td_weight_decay_new (1e-4));\n"
      "  TD_ITERATIONS (i, 300)\n    {\n"
      "      TdVar *x = td_randn (TD_F32, TD_SHAPE (8, 6));\n"
      "      TdVar *h = td_dropout (td_relu (td_link (bn, td_link (l1, x))), 0.5);\n"
      "      td_cleargrads (net);\n"
      "      td_backward (td_mean (td_square (td_link (l2, h))), 0);\n"
      "      td_opt_update (opt);\n"
      "    }\n"
      "  return td_finish ();\n}\n";

static void
ranks__says_nothing_of_300_clean_iterations (void **state)
{
  const char *source = td_test_tmp ("clean.c"), *folder = td_test_tmp ("ranks");
  TdTestChild child;

  (void)state;
  td_test_write_file (source, clean, sizeof clean - 1);
  child = TD_TEST_RUN (tapedeck, "run", "-n", "4", "-f", "-o", folder, source);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck, "ranks", folder);
  assert_child_status (child, 0);
  assert_contains (child.out, "Nothing found: 300 steps with updates of 4 ranks compared.");
  assert_contains (child.out, "note: ranks 0, 1, 2 and 3 have their own persistents since "
                              "iteration 1: `bn/avg_mean`");
  td_test_child_clear (&child);
}

/* Each fault is of one rank, in a net with a batch normalization of all. */
static const char one_rank[]
    = "#include <tapedeck.h>\n"
      "#include <math.h>\n"
      "#include <string.h>\n"
      "static void clip (TdLink *l)\n{\n"
      "  TdVar *W = td_link_param (l, \"W\");\n"
      "  TD_NO_BACKPROP td_set_grad (W, td_clip (td_grad (W), -1e-3, 1e-3));\n}\n"
      "int main (int argc, char **argv)\n{\n"
      "  td_init (&argc, &argv);\n"
      "  const char *fault = argv[1];\n"
      "  TdComm *comm = td_comm_new (NULL);\n"
      "  const int rank = td_comm_rank (comm);\n"
      "  TdLink *net = td_chain_new (\"net\");\n"
      "  TdLink *l1 = td_linear_new (net, \"l1\", 6, 16);\n"
      "  TdLink *bn = td_multi_node_batch_normalization_new (net, \"bn\", 16, comm);\n"
      "  TdLink *l2 = td_linear_new (net, \"l2\", 16, 3);\n"
      "  TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (net, .lr = 0.1), comm);\n"
      "  td_set_seed (rank);\n"
      "  TD_ITERATIONS (i, 8)\n    {\n"
      "      float x[8 * 6], v[4 * 6] = { 0 };\n"
      "      for (int k = 0; k < 48; k++)\n"
      "        x[k] = (float)((i * 31 + k * 7 + rank * 13) % 19) / 19;\n"
      "      if (strcmp (fault, \"nan\") == 0 && rank == 1 && i == 5)\n"
      "        x[7] = NAN;\n"
      "      TdVar *h = td_link (l1, td_tensor (TD_F32, TD_SHAPE (8, 6), x));\n"
      "      h = td_dropout (td_relu (td_link (bn, h)), 0.5);\n"
      "      h = td_mul_scalar (h, strcmp (fault, \"scale\") == 0 && rank == 2 ? 2 : 1);\n"
      "      TdVar *loss = td_mean (td_square (td_link (l2, h)));\n"
      "      if (strcmp (fault, \"uncleared\") != 0 || rank != 1)\n"
      "        td_cleargrads (net);\n"
      "      td_backward (loss, 0);\n"
      "      if (strcmp (fault, \"clip\") == 0 && rank == 1)\n"
      "        clip (l2);\n"
      "      if (strcmp (fault, \"clip of all\") == 0)\n"
      "        clip (l2);\n"
      "      td_opt_update (opt);\n"
      "      if (i % 3 == 2)\n"
      "        TD_NO_BACKPROP td_link (l1, td_tensor (TD_F32, TD_SHAPE (2 + rank, 6), v));\n"
      "    }\n"
      "  return td_finish ();\n}\n";

static const struct
{
  const char *fault, *says;
  int status;
} faults[] = {
  { "none", "Nothing found: 8 steps with updates of 3 ranks compared.", 0 },
  { "clip of all", "Nothing found: 8 steps with updates of 3 ranks compared.", 0 },
  { "nan",
    "error: rank 1 parted in iteration 5|first in linear (net/l1) at one_rank.c:28; the "
    "other ranks got it",
    1 },
  { "scale",
    "warning: rank 2 runs another graph than the others in iteration 0|mul_scalar at "
    "one_rank.c:30 differs (value=1 → value=2); so in 6 of 6 steps of equal shapes",
    1 },
  { "uncleared",
    "warning: rank 1 runs another graph than the others in iteration 1|so in 7 of 8 steps", 1 },
  { "clip",
    "warning: rank 1 runs another graph than the others in iteration 0: rank 1 took the branch "
    "at one_rank.c:35 (|only rank 1 runs clip at one_rank.c:7|so in 8 of 8 steps",
    1 },
};

static void
ranks__names_what_one_rank_does_otherwise (void **state)
{
  const char *source = td_test_tmp ("one_rank.c"), *folder = td_test_tmp ("ranks");

  (void)state;
  td_test_write_file (source, one_rank, sizeof one_rank - 1);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    {
      TdTestChild child = TD_TEST_RUN (tapedeck, "run", "-n", "3", "-f", "--level", "stats",
                                       "-o", folder, source, faults[i].fault);

      td_test_child_clear (&child);
      child = TD_TEST_RUN (tapedeck, "ranks", folder);
      assert_says (&child, faults[i].says);
      assert_child_status (child, faults[i].status);
      td_test_child_clear (&child);
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (clinic__each_fault_is_named),
    td_test (clinic__nothing_is_said_of_the_cured_ones),
    td_test (ranks__says_nothing_of_300_clean_iterations),
    td_test (ranks__names_what_one_rank_does_otherwise),
  };

  if (argc != 2)
    return 2;
  if (!mpi_here ())
    return 77;
  tapedeck = argv[1];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
