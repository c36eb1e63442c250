/* A side of a port check, over the test double of ggml: the net of tests/models/port.c, forward
 * and backward and update once, recorded at level values.  ggml-port NUMBERS TAPE [scaled];
 * NUMBERS are weights and biases of three layers and the input, as they lie in float32.
 * "scaled" has a mistake: what the second layer gives is doubled.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck-ggml.h>

enum
{
  ROWS = 5,
  LAYERS = 3,
  MOST = 48
};

static const int64_t sizes[LAYERS + 1] = { 4, 8, 8, 3 };
static const int labels_of_rows[ROWS] = { 0, 1, 2, 1, 0 };
static float memory[MOST][64];
static struct ggml_tensor tensors[MOST];
static struct ggml_backend_buffer buffer = { "CPU", sizeof memory };
static struct ggml_cgraph forward, all;
static int n_tensors;

static struct ggml_tensor *
tensor (const char *name, int layer, int64_t columns, int64_t rows)
{
  struct ggml_tensor *t = &tensors[n_tensors];
  const size_t row = 4 * (size_t)columns, whole = row * (size_t)rows;

  *t = (struct ggml_tensor){ .type = GGML_TYPE_F32,
                             .buffer = &buffer,
                             .ne = { columns, rows, 1, 1 },
                             .nb = { 4, row, whole, whole },
                             .data = memory[n_tensors++] };
  if (layer > 0)
    snprintf (t->name, sizeof t->name, "l%d.%s", layer, name);
  else
    snprintf (t->name, sizeof t->name, "%s", name);
  return t;
}

static struct ggml_tensor *
node (enum ggml_op op, struct ggml_tensor *a, struct ggml_tensor *b, int64_t columns,
      int64_t rows)
{
  struct ggml_tensor *t = tensor ("", 0, columns, rows);

  t->op = op;
  t->src[0] = a;
  t->src[1] = b;
  all.nodes[all.n++] = t;
  return t;
}

/* The optimizer's step is a view of the parameter. */
static void
update (struct ggml_tensor *parameter, struct ggml_tensor *gradient)
{
  struct ggml_tensor *t
      = node (GGML_OP_OPT_STEP_SGD, parameter, gradient, parameter->ne[0], parameter->ne[1]);
  const float rate = 0.01f;

  t->view_src = parameter;
  t->data = parameter->data;
  memcpy (t->op_params, &rate, sizeof rate);
}

/* Its axes exchanged, on the same bytes. */
static struct ggml_tensor *
turned (struct ggml_tensor *a)
{
  struct ggml_tensor *t = node (GGML_OP_TRANSPOSE, a, NULL, a->ne[1], a->ne[0]);

  t->view_src = a;
  t->data = a->data;
  t->nb[0] = a->nb[1];
  t->nb[1] = a->nb[0];
  return t;
}

static void
build (bool is_scaled)
{
  struct ggml_tensor *w[LAYERS], *b[LAYERS], *in[LAYERS], *out[LAYERS], *x, *labels, *loss, *g;
  struct ggml_tensor *of_w[LAYERS], *of_b[LAYERS];

  for (int k = 0; k < LAYERS; k++)
    {
      w[k] = tensor ("weight", k + 1, sizes[k], sizes[k + 1]);
      b[k] = tensor ("bias", k + 1, sizes[k + 1], 1);
    }
  x = tensor ("x", 0, sizes[0], ROWS);
  x->flags = GGML_TENSOR_FLAG_INPUT;
  labels = tensor ("labels", 0, sizes[LAYERS], ROWS);
  for (int j = 0; j < ROWS; j++)
    ((float *)labels->data)[j * sizes[LAYERS] + labels_of_rows[j]] = 1;
  for (int k = 0; k < LAYERS; k++)
    {
      in[k] = k == 0 ? x : node (GGML_OP_RELU, out[k - 1], NULL, sizes[k], ROWS);
      out[k] = node (GGML_OP_MUL_MAT, w[k], in[k], sizes[k + 1], ROWS);
      out[k] = node (GGML_OP_ADD, out[k], b[k], sizes[k + 1], ROWS);
      if (k == 1 && is_scaled)
        {
          const float by = 2;

          out[k] = node (GGML_OP_SCALE, out[k], NULL, sizes[k + 1], ROWS);
          memcpy (out[k]->op_params, &by, sizeof by);
          snprintf (out[k]->name, sizeof out[k]->name, "l2.scaled");
        }
    }
  loss = node (GGML_OP_CROSS_ENTROPY_LOSS, out[LAYERS - 1], labels, 1, 1);
  loss->flags = GGML_TENSOR_FLAG_LOSS;
  forward = all;
  g = node (GGML_OP_CROSS_ENTROPY_LOSS_BACK, out[LAYERS - 1], labels, sizes[LAYERS], ROWS);
  for (int k = LAYERS - 1; k >= 0; k--)
    {
      of_b[k] = node (GGML_OP_REPEAT_BACK, g, NULL, sizes[k + 1], 1);
      of_w[k] = node (GGML_OP_OUT_PROD, in[k], g, sizes[k], sizes[k + 1]);
      if (k == 0)
        break;
      g = node (GGML_OP_OUT_PROD, w[k], turned (g), sizes[k], ROWS);
      g = node (GGML_OP_MUL, g, node (GGML_OP_STEP, out[k - 1], NULL, sizes[k], ROWS), sizes[k],
                ROWS);
    }
  for (int k = 0; k < LAYERS; k++)
    {
      update (w[k], of_w[k]);
      update (b[k], of_b[k]);
    }
}

int
main (int argc, char **argv)
{
  const TdProducerOptions options
      = { .size = sizeof options, .path = argv[2], .level = TD_TAPE_LEVEL_VALUES };
  struct ggml_backend_sched sched = { 0 };
  FILE *file = argc > 2 ? fopen (argv[1], "rb") : NULL;
  char why[256];
  TdGgml *g;

  if (file == NULL)
    return 2;
  build (argc > 3);
  for (int k = 0; k < 2 * LAYERS + 1; k++) /* weights, biases, x */
    {
      const size_t n = (size_t)ggml_nelements (&tensors[k]);

      if (fread (tensors[k].data, 4, n, file) != n)
        return 2;
    }
  fclose (file);
  g = td_ggml_new (&options, why, sizeof why);
  if (g == NULL)
    return 1;
  ggml_backend_sched_set_eval_callback (&sched, td_ggml_eval, g);
  td_ggml_forward (g, &forward);
  ggml_backend_sched_graph_compute (&sched, &all);
  td_ggml_end (g);
  fprintf (stderr, "%s", td_ggml_error (g));
  td_ggml_free (g);
  return 0;
}
