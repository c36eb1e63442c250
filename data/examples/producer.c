/* A tape without Tapedeck's engine: a program with arithmetic of its own says what it does, and
 * Tapedeck shows it.  Straight lines through points, by gradient descent:
 *
 *     cc producer.c $(pkg-config --cflags --libs tapedeck-producer) && ./a.out line.tdtape
 *     tapedeck line.tdtape
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <td-producer.h>

enum
{
  N = 8
};

static uint64_t ids; /* of variables and of storages: both count from 1 on */

static uint64_t
array (TdProducer *p, const char *name, int64_t n, uint32_t category, uint32_t layer)
{
  const uint32_t flags = category == TD_TAPE_CATEGORY_PARAMETER ? TD_TAPE_VAR_PARAMETER : 0;
  TdProducerVariable v = { .size = sizeof v, .ndim = 1 };

  v.id = v.storage = ++ids;
  v.dims = &n;
  v.dtype = TD_TAPE_F32;
  v.category = category;
  v.flags = flags;
  v.layer = layer;
  v.name = td_producer_text (p, name);
  v.parameter = flags ? td_producer_text (p, "line/a") : 0;
  td_producer_alloc (p, v.storage, 4096 * v.id, (uint64_t)n * sizeof (float), category, 0);
  td_producer_variable (p, &v);
  return v.id;
}

static void
did (TdProducer *p, const char *what, uint32_t phase, uint64_t x, uint64_t y, uint64_t out,
     uint64_t twin, int line)
{
  const uint64_t in[] = { x, y };
  TdProducerOperation op = { .size = sizeof op, .inputs = in, .outputs = &out, .n_inputs = 2 };

  op.kind = td_producer_kind (p, what, "line", NULL);
  op.place = td_producer_place (p, __FILE__, (uint32_t)line, "main");
  op.layer = td_producer_layer (p, "line", "Line");
  op.phase = phase;
  op.twin = twin;
  op.n_outputs = 1;
  td_producer_operation (p, &op);
}

int
main (int argc, char **argv)
{
  TdProducerOptions options = { .size = sizeof options, .producer = "line", .version = "1.0" };
  float a[1] = { 0 }, x[N], error[N];
  char why[200];

  options.path = argc > 1 ? argv[1] : "line.tdtape";
  options.program = "producer.c";
  options.level = TD_TAPE_LEVEL_STATS;
  options.overwrite = 1;
  TdProducer *p = td_producer_new (&options, why, sizeof why);
  if (p == NULL)
    return fprintf (stderr, "producer: %s\n", why), 1;
  const uint32_t layer = td_producer_layer (p, "line", "Line");
  const uint64_t va = array (p, "a", 1, TD_TAPE_CATEGORY_PARAMETER, layer);
  for (int step = 0; step < 20; step++)
    {
      float loss = 0, ga[1] = { 0 };

      td_producer_begin (p, 0, 0);
      const uint64_t vx = array (p, "x", N, TD_TAPE_CATEGORY_INPUT, 0);
      const uint64_t ve = array (p, "error", N, TD_TAPE_CATEGORY_ACTIVATION, 0);
      for (int i = 0; i < N; i++)
        {
          x[i] = (float)i;
          error[i] = a[0] * x[i] - 3 * x[i];
          loss += error[i] * error[i] / N;
          ga[0] += 2 * error[i] * x[i] / N;
        }
      did (p, "residual", TD_TAPE_PHASE_FORWARD, vx, va, ve, 0, __LINE__);
      td_producer_measure (p, ve, error, N);
      const uint64_t vg = array (p, "ga", 1, TD_TAPE_CATEGORY_GRADIENT, 0);
      did (p, "residual_backward", TD_TAPE_PHASE_BACKWARD, ve, vx, vg, 1, __LINE__);
      td_producer_measure (p, vg, ga, 1);
      a[0] -= 0.01f * ga[0];
      td_producer_gradient (p, va, vg);
      did (p, "descend", TD_TAPE_PHASE_UPDATE, va, vg, va, 0, __LINE__);
      td_producer_measure (p, va, a, 1);
      td_producer_report (p, "loss", (double)loss);
      td_producer_release (p, vx);
      td_producer_release (p, ve);
      td_producer_release (p, vg);
      td_producer_end_iteration (p, 0);
    }
  td_producer_end (p, 0);
  printf ("a = %g%s%s\n", (double)a[0], *td_producer_error (p) ? ": " : "",
          td_producer_error (p));
  td_producer_free (p);
  return 0;
}
