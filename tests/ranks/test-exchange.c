/* What ranks exchange beside the optimizer of all ranks: a loss for the log averages nothing,
 * and a mean by hand is one.
 *
 * test-exchange TAPEDECK
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "mpi-here.h"

#include <stdio.h>
#include <string.h>

static const char *tapedeck;

static const char program[]
    = "#include <tapedeck.h>\n"
      "#include <string.h>\n"
      "static const char *kind;\n"
      "static int is (const char *k)\n{ return strcmp (kind, k) == 0; }\n"
      "static TdComm *comm;\n"
      "static int rank, size;\n"
      "static TdVar *drawn (int i)\n{\n"
      "  float x[8][4];\n"
      "  for (int k = 0; k < 32; k++)\n"
      "    x[k / 4][k % 4] = (float)((rank * 31 + i * 7 + k * k) % 53) / 50;\n"
      "  return td_tensor (TD_F32, TD_SHAPE (8, 4), x);\n}\n"
      "static TdVar *labels (int i)\n{\n"
      "  int32_t t[8];\n"
      "  for (int k = 0; k < 8; k++)\n"
      "    t[k] = (rank + i + k) % 3;\n"
      "  return td_tensor (TD_I32, TD_SHAPE (8), t);\n}\n"
      "static TdVar *mean (TdVar *g)\n"
      "{\n"
      "  if (strstr (kind, \"gather\") != NULL)\n"
      "    return td_mean_axes (td_comm_allgather (comm, g), (int[]){ 0 }, 1, false);\n"
      "  return td_div_scalar (td_comm_allreduce (comm, g), size);\n}\n"
      "static void flat_mean (TdVar *W, TdVar *b)\n{\n"
      "  float all[15];\n"
      "  td_read (td_grad (W), all, 12 * sizeof *all);\n"
      "  td_read (td_grad (b), all + 12, 3 * sizeof *all);\n"
      "  td_read (mean (td_tensor (TD_F32, TD_SHAPE (15), all)), all, sizeof all);\n"
      "  td_set_grad (W, td_tensor (TD_F32, TD_SHAPE (3, 4), all));\n"
      "  td_set_grad (b, td_tensor (TD_F32, TD_SHAPE (3), all + 12));\n}\n"
      "static const float bad[3] = { 1, (float)(1e300 * 1e10), 3 };\n"
      "int main (int argc, char **argv)\n{\n"
      "  td_init (&argc, &argv);\n"
      "  kind = argv[1];\n"
      "  comm = td_comm_new (NULL);\n"
      "  rank = td_comm_rank (comm), size = td_comm_size (comm);\n"
      "  if (is (\"hand unsent\") && rank == 1)\n"
      "    td_randn (TD_F32, TD_SHAPE (7));\n"
      "  int by_hand = strncmp (kind, \"hand\", 4) == 0, is_early = is (\"early\");\n"
      "  TdLink *net = td_linear_new (NULL, \"l\", 4, 3);\n"
      "  TdVar *W = td_link_param (net, \"W\"), *b = td_link_param (net, \"b\");\n"
      "  const int grad = strncmp (kind, \"grad\", 4) == 0;\n"
      "  if ((by_hand && !is (\"hand unsent\")) || grad)\n"
      "    td_comm_bcast_link (comm, net);\n"
      "  TdLink *bn = td_multi_node_batch_normalization_new (NULL, \"bn\", 4, comm);\n"
      "  TdOpt *opt = td_adam_new (net);\n"
      "  if (is (\"hand frozen\") && rank == 1)\n"
      "    td_link_disable_update (net);\n"
      "  if (is_early || is (\"twice\") || strncmp (kind, \"all\", 3) == 0)\n"
      "    opt = td_multi_node_optimizer_new (opt, comm);\n"
      "  if (is (\"split\"))\n"
      "    td_comm_split (comm, rank % 2, rank);\n"
      "  TD_ITERATIONS (i, 8)\n    {\n"
      "      td_cleargrads (net);\n"
      "      if (is_early && i == 5)\n"
      "        td_comm_allreduce_grad (comm, net);\n"
      "      TdVar *x = drawn (i);\n"
      "      const int at = i == 5 && rank == 1;\n"
      "      if (strstr (kind, \"weight\") != NULL && at)\n"
      "        td_write (b, bad, sizeof bad); /* weight */\n"
      "      if (strstr (kind, \"nan\") != NULL && at)\n"
      "        x = td_log (td_mul_scalar (x, -1));\n"
      "      if (is (\"normalized\"))\n"
      "        x = td_link (bn, td_mul (x, x));\n"
      "      TdVar *loss = td_softmax_cross_entropy (td_link (net, x), labels (i));\n"
      "      td_backward (loss, 0);\n"
      "      if (is (\"twice\") && i >= 3 && rank == 1)\n"
      "        td_backward (td_softmax_cross_entropy (td_link (net, x), labels (i)), 0);\n"
      "      if (strstr (kind, \"gradient\") != NULL && at)\n"
      "        td_write (td_grad (b), bad, sizeof bad); /* gradient */\n"
      "      if (strstr (kind, \"part\") != NULL)\n"
      "        td_set_grad (W, mean (td_grad (W)));\n"
      "      else if (strstr (kind, \"flat\") != NULL)\n"
      "        flat_mean (W, b);\n"
      "      else if (by_hand)\n        {\n"
      "          TdVar *gW = mean (td_grad (W)), *gb = mean (td_grad (b));\n"
      "          if (is (\"hand scaled\") && i == 5 && rank == 1)\n"
      "            gb = td_mul_scalar (gb, 2);\n"
      "          td_set_grad (W, gW);\n"
      "          td_set_grad (b, gb);\n        }\n"
      "      if (is (\"hand wrote\") && i == 5 && rank == 1)\n"
      "        td_write (b, (float[3]){ 1, 2, 3 }, 3 * sizeof (float));\n"
      "      if (grad)\n"
      "        td_comm_allreduce_grad (comm, net);\n"
      "      if ((is (\"grad lr\") && at) || (is (\"grad last\") && i == 7 && rank == 1))\n"
      "        td_opt_set_lr (opt, 0.5);\n"
      "      if (is (\"grad state\") && at)\n"
      "        td_write (td_opt_state (opt, \"b\", \"m\"), (float[3]){ 1 }, 12); /* state */\n"
      "      if (is (\"grad wrote\") && at)\n"
      "        td_write (b, (float[3]){ 1 }, 12);\n"
      "      if (is (\"grad after\") && at)\n"
      "        td_set_grad (b, td_mul_scalar (td_grad (b), 2));\n"
      "      td_opt_update (opt);\n"
      "      TD_NO_BACKPROP\n        {\n"
      "          if (is (\"log\") || grad)\n"
      "            td_report (\"loss\", td_item (mean (loss)));\n"
      "          if (is (\"weights\"))\n"
      "            for (int k = 0; k < 2; k++)\n              {\n"
      "                TdVar *v = k ? b : W;\n"
      "                float all[12];\n"
      "                td_read (mean (v), all, (k ? 3 : 12) * sizeof *all);\n"
      "                td_write (v, all, (k ? 3 : 12) * sizeof *all);\n              }\n"
      "          if (is (\"twice\") && i % 3 == 1 && rank == 0)\n"
      "            td_report (\"accuracy\", td_item (td_accuracy (td_link (net, drawn (9)), "
      "labels (9))));\n"
      "          if (is (\"evaluation\") && i % 4 == 3)\n"
      "            td_report (\"accuracy\", td_item (mean (td_accuracy (td_link (net, drawn "
      "(9)), "
      "labels (9)))));\n        }\n    }\n"
      "  return td_finish ();\n}\n";

typedef struct
{
  const char *kind, *says, *says_not;
  int status;
} Case;

static void
assert_told (const Case *c)
{
  const char *source = td_test_tmp ("exchange.c"), *folder = td_test_tmp ("ranks");
  TdTestChild child;

  td_test_write_file (source, program, sizeof program - 1);
  child = TD_TEST_RUN (tapedeck, "run", "-n", "2", "-f", "--level", "stats", "-o", folder,
                       source, c->kind);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck, "ranks", folder);
  assert_contains (child.out, c->says);
  if (c->says_not != NULL)
    assert_not_contains (child.out, c->says_not);
  assert_child_status (child, c->status);
  td_test_child_clear (&child);
}

#define PLAIN "error: ranks 0 and 1 update their parameters by adam at exchange.c:"

static void
exchange__of_no_gradients_averages_none (void **state)
{
  static const Case cases[] = { { "nothing", PLAIN, NULL, 1 },
                                { "log", PLAIN, NULL, 1 },
                                { "normalized", PLAIN, NULL, 1 },
                                { "evaluation", PLAIN, NULL, 1 },
                                { "split", PLAIN, NULL, 1 } };

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_told (&cases[i]);
}

static void
exchange__of_weights_is_a_mean (void **state)
{
  static const Case c = { "weights", "Nothing found", "never average", 0 };

  (void)state;
  assert_told (&c);
}

/* By hand, and rank 1 does something of its own in iteration 5. */
static void
exchange__of_gradients_is_a_mean_that_is_compared (void **state)
{
  static const Case cases[] = {
    { "hand", "Nothing found: 8 steps with updates of 2 ranks compared.", NULL, 0 },
    { "hand wrote", "parted in iteration 5: parameter `b`", NULL, 1 },
    { "hand wrote", "rank 1 wrote it at exchange.c:", NULL, 1 },
    { "hand scaled", "parted in iteration 5: the mean of the gradients of `b`", NULL, 1 },
    { "hand unsent", "parted in iteration 0: parameter `W`", NULL, 1 },
    { "hand unsent", "they were not equal at the start", NULL, 1 },
    { "hand frozen", "(and 1 more) differs after the update; they were equal before it", NULL,
      1 },
    { "hand nan", "rank 1 parted in iteration 5: the gradient of `W` has", NULL, 1 },
    { "hand nan", "first in log at exchange.c:", NULL, 1 },
    { "hand flat", "Nothing found: 8 steps with updates of 2 ranks compared.", NULL, 0 },
    { "hand flat nan", "rank 1 parted in iteration 5: the gradient of `W` has", NULL, 1 },
    { "hand gather", "Nothing found: 8 steps with updates of 2 ranks compared.", NULL, 0 },
    { "hand gather nan", "rank 1 parted in iteration 5: the gradient of `W` has", NULL, 1 },
    { "hand part", "update 2 parameters in iteration 0, and the gradients of 1 are averaged",
      NULL, 1 },
    { "hand part nan", "rank 1 parted in iteration 5: the gradient of `W` has", NULL, 1 },
  };

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_told (&cases[i]);
}

/* What rank 1 writes by hand is named with its line, whoever makes the mean. */
static void
exchange__of_what_was_written_by_hand_names_the_line (void **state)
{
  static const Case cases[] = {
    { "all weight", "rank 1 had written NaN or infinite elements into `b` at exchange.c:", NULL,
      1 },
    { "hand weight",
      "rank 1 had written NaN or infinite elements into `b` at exchange.c:", NULL, 1 },
    { "all gradient", "it was written into the gradient at exchange.c:", "first in", 1 },
    { "hand gradient", "it was written into the gradient at exchange.c:", "first in", 1 },
  };

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_told (&cases[i]);
}

/* A call before backward, which finds no gradients, changes nothing. */
static void
exchange__of_no_gradients_is_no_mean (void **state)
{
  static const Case c
      = { "early", "Nothing found: 8 steps with updates of 2 ranks compared.", NULL, 0 };

  (void)state;
  assert_told (&c);
}

/* From iteration 3 on, where rank 0 has evaluated in iteration 1. */
static void
exchange__of_a_second_backward_is_named_behind_an_evaluation (void **state)
{
  static const Case c = { "twice",
                          "warning: ranks 0 and 1 run different graphs in iteration 3: rank 0 "
                          "did not take the branch",
                          NULL, 1 };

  (void)state;
  assert_told (&c);
}

/* td_comm_allreduce_grad knows no optimizer: its update tells, also the last one, and what the
 * matrix shows is of the iteration that is named. */
static void
exchange__of_gradients_by_their_call_names_what_the_update_parts_by (void **state)
{
  static const Case cases[] = {
    { "grad", "Nothing found: 8 steps with updates of 2 ranks compared.", NULL, 0 },
    { "grad lr", "parted in iteration 5: the optimizer's `lr` differs: rank 0 has 0.001", NULL,
      1 },
    { "grad last", "parted in iteration 7: the optimizer's `lr` differs", NULL, 1 },
    { "grad state", "parted in iteration 5: the optimizer's state `b/m`", NULL, 1 },
    { "grad state", "rank 1 wrote it at exchange.c:", NULL, 1 },
    { "grad wrote", "rank 1 wrote it at exchange.c:", NULL, 1 },
    { "grad after", "parted in iteration 5: the optimizer's state `b/m`", NULL, 1 },
    { "grad after", "changed the gradient after the mean", NULL, 1 },
  };
  TdTestChild child;

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_told (&cases[i]);
  child = TD_TEST_RUN (tapedeck, "ranks", td_test_tmp ("ranks"), "--view", "matrix");
  assert_contains (child.out, "iteration 5;");
  assert_contains (child.out, "! b/m ");
  assert_not_contains (child.out, "! W");
  td_test_child_clear (&child);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (exchange__of_no_gradients_averages_none),
    td_test (exchange__of_weights_is_a_mean),
    td_test (exchange__of_a_second_backward_is_named_behind_an_evaluation),
    td_test (exchange__of_no_gradients_is_no_mean),
    td_test (exchange__of_gradients_is_a_mean_that_is_compared),
    td_test (exchange__of_what_was_written_by_hand_names_the_line),
    td_test (exchange__of_gradients_by_their_call_names_what_the_update_parts_by),
  };

  if (argc != 2)
    return 2;
  if (!mpi_here ())
    return 77;
  tapedeck = argv[1];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
