/* Recurrent layers by the equations of cuDNN's documentation (cudnnRNNMode_t), element by
 * element in double precision, on rows packed by step.
 *
 * The reserve holds, for each cell and row, what forward leaves for backward, and then what the
 * gradient of the data leaves for that of the weights: the slopes of the loss in the sums
 * inside the gates.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-cudnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum
{
  SLOTS = 6, /* numbers a unit: gates 0 .. 3, then */
  CELL = 4,
  OUTPUT = 5,
  ALIGN = 16 /* weights begin at multiples of this */
};

/* What a reserve holds. */
static const uint64_t of_forward = 0x464f5257u, of_data = 0x44415441u;

/* --- numbers, places --- */

static double
get (const FakeRnn *r, const void *p, size_t i)
{
  return r->wide ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static void
put (const FakeRnn *r, void *p, size_t i, double value)
{
  if (r->wide)
    ((double *)p)[i] = value;
  else
    ((float *)p)[i] = (float)value;
}

int
fake_rnn_parts (const FakeRnn *r)
{
  return r->mode == CUDNN_LSTM ? 8 : r->mode == CUDNN_GRU ? 6 : 2;
}

static int
n_cells (const FakeRnn *r)
{
  return r->n_layers * r->n_directions;
}

static int
inputs (const FakeRnn *r, int cell)
{
  return cell < r->n_directions ? r->in : r->units * r->n_directions;
}

int
fake_rnn_columns (const FakeRnn *r, int cell, int part)
{
  return part < fake_rnn_parts (r) / 2 ? inputs (r, cell) : r->units;
}

/* All matrices, then all biases. */
size_t
fake_rnn_place (const FakeRnn *r, int cell, int part, bool bias)
{
  size_t at = 0;
  const int k = fake_rnn_parts (r), n = n_cells (r) * k;

  for (int i = 0; i < (bias ? n : cell * k + part); i++)
    at += ((size_t)(r->units * fake_rnn_columns (r, i / k, i % k)) + ALIGN) / ALIGN * ALIGN;
  for (int i = 0; i < (bias ? cell * k + part : 0); i++)
    at += ((size_t)r->units + ALIGN) / ALIGN * ALIGN;
  return at;
}

/* Rows of step t. */
static int
rows_at (const FakeRnn *r, int t)
{
  int n = 0;

  while (n < r->n_sequences && r->lengths[n] > t)
    n++;
  return n;
}

/* Row of sequence b at step t. */
static size_t
row_of (const FakeRnn *r, int t, int b)
{
  size_t row = 0;

  for (int i = 0; i < t; i++)
    row += (size_t)rows_at (r, i);
  return row + (size_t)b;
}

size_t
fake_rnn_rows (const FakeRnn *r)
{
  return row_of (r, r->n_steps, 0);
}

size_t
fake_rnn_reserve_bytes (const FakeRnn *r)
{
  return 64
         + (size_t)n_cells (r) * fake_rnn_rows (r) * SLOTS * (size_t)r->units * sizeof (double);
}

static uint64_t *
state_of (const FakeRnn *r)
{
  return r->reserve;
}

/* The SLOTS x units numbers of a cell's row. */
static double *
kept (const FakeRnn *r, double *all, int cell, size_t row)
{
  return all + ((size_t)cell * fake_rnn_rows (r) + row) * SLOTS * (size_t)r->units;
}

static double *
reserve_numbers (const FakeRnn *r)
{
  return (double *)(void *)((char *)r->reserve + 64);
}

/* The step before t as the direction goes; -1: none, the initial state. */
static int
previous (const FakeRnn *r, int direction, int t, int b)
{
  if (direction == 0)
    return t - 1;
  return t + 1 < r->lengths[b] ? t + 1 : -1;
}

/* What the cell's step is given: unit u's h before it. */
static double
h_before (const FakeRnn *r, double *all, int cell, int t, int b, int u)
{
  const int before = previous (r, cell % r->n_directions, t, b);

  if (before >= 0)
    return kept (r, all, cell, row_of (r, before, b))[OUTPUT * r->units + u];
  return r->hx == NULL ? 0
                       : get (r, r->hx, (size_t)((cell * r->n_sequences + b) * r->units + u));
}

static double
c_before (const FakeRnn *r, double *all, int cell, int t, int b, int u)
{
  const int before = previous (r, cell % r->n_directions, t, b);

  if (before >= 0)
    return kept (r, all, cell, row_of (r, before, b))[CELL * r->units + u];
  return r->cx == NULL ? 0
                       : get (r, r->cx, (size_t)((cell * r->n_sequences + b) * r->units + u));
}

/* Input i of a cell at a row: x, or what the layer below gave. */
static double
input_of (const FakeRnn *r, double *all, int cell, size_t row, int i)
{
  const int below = (cell / r->n_directions - 1) * r->n_directions + i / r->units;

  if (cell < r->n_directions)
    return get (r, r->x, row * (size_t)r->in + (size_t)i);
  return kept (r, all, below, row)[OUTPUT * r->units + i % r->units];
}

/* --- forward --- */

static double
sigma (double x)
{
  return 1 / (1 + exp (-x));
}

/* W_part[u] . v + b_part[u], v the input or the h before. */
static double
sum_of (const FakeRnn *r, double *all, int cell, int part, int t, int b, int u)
{
  const int columns = fake_rnn_columns (r, cell, part);
  const bool of_x = part < fake_rnn_parts (r) / 2;
  const size_t w = fake_rnn_place (r, cell, part, false) + (size_t)u * (size_t)columns,
               row = row_of (r, t, b);
  double sum = get (r, r->w, fake_rnn_place (r, cell, part, true) + (size_t)u);

  for (int i = 0; i < columns; i++)
    sum += get (r, r->w, w + (size_t)i)
           * (of_x ? input_of (r, all, cell, row, i) : h_before (r, all, cell, t, b, i));
  return sum;
}

static void
step (const FakeRnn *r, double *all, int cell, int t, int b)
{
  const int n = r->units, half = fake_rnn_parts (r) / 2;
  double *k = kept (r, all, cell, row_of (r, t, b));

  for (int u = 0; u < n; u++)
    {
      double x[4], h[4];

      for (int j = 0; j < half; j++)
        {
          x[j] = sum_of (r, all, cell, j, t, b, u);
          h[j] = sum_of (r, all, cell, half + j, t, b, u);
        }
      if (r->mode == CUDNN_LSTM)
        {
          for (int j = 0; j < 4; j++) /* input, forget, new, output */
            k[j * n + u] = j == 2 ? tanh (x[j] + h[j]) : sigma (x[j] + h[j]);
          k[CELL * n + u] = k[n + u] * c_before (r, all, cell, t, b, u) + k[u] * k[2 * n + u];
          k[OUTPUT * n + u] = k[3 * n + u] * tanh (k[CELL * n + u]);
        }
      else if (r->mode == CUDNN_GRU)
        {
          k[u] = sigma (x[0] + h[0]);     /* reset */
          k[n + u] = sigma (x[1] + h[1]); /* update */
          k[2 * n + u] = tanh (x[2] + k[u] * h[2]);
          k[3 * n + u] = h[2];
          k[OUTPUT * n + u]
              = (1 - k[n + u]) * k[2 * n + u] + k[n + u] * h_before (r, all, cell, t, b, u);
        }
      else if (r->mode == CUDNN_RNN_TANH)
        k[OUTPUT * n + u] = tanh (x[0] + h[0]);
      else
        k[OUTPUT * n + u] = x[0] + h[0] > 0 ? x[0] + h[0] : 0;
    }
}

/* Call f for each row of a cell, in the direction's order or against it. */
static void
walk (const FakeRnn *r, double *all, int cell, bool against,
      void (*f) (const FakeRnn *, double *, int, int, int))
{
  const bool down = (cell % r->n_directions == 1) != against;

  for (int i = 0; i < r->n_steps; i++)
    {
      const int t = down ? r->n_steps - 1 - i : i;

      for (int b = 0; b < rows_at (r, t); b++)
        f (r, all, cell, t, b);
    }
}

static void
poison (const FakeRnn *r)
{
  memset (r->work, 0xff, r->work_bytes);
}

void
fake_rnn_forward (const FakeRnn *r)
{
  const int n = r->units, d = r->n_directions;
  double *all = r->trains ? reserve_numbers (r)
                          : calloc ((size_t)n_cells (r) * fake_rnn_rows (r) * SLOTS * (size_t)n,
                                    sizeof *all);

  if (all == NULL)
    abort ();
  poison (r);
  for (int cell = 0; cell < n_cells (r); cell++)
    walk (r, all, cell, false, step);
  for (size_t row = 0; row < fake_rnn_rows (r); row++)
    for (int i = 0; i < n * d; i++)
      put (r, r->y, row * (size_t)(n * d) + (size_t)i,
           kept (r, all, (r->n_layers - 1) * d + i / n, row)[OUTPUT * n + i % n]);
  for (int cell = 0; cell < n_cells (r); cell++)
    for (int b = 0; b < r->n_sequences; b++)
      {
        const int last = cell % d == 1 ? 0 : r->lengths[b] - 1;
        const double *k = kept (r, all, cell, row_of (r, last, b));

        for (int u = 0; u < n; u++)
          {
            const size_t at = (size_t)((cell * r->n_sequences + b) * n + u);

            if (r->hy != NULL)
              put (r, r->hy, at, k[OUTPUT * n + u]);
            if (r->cy != NULL && r->mode == CUDNN_LSTM)
              put (r, r->cy, at, k[CELL * n + u]);
          }
      }
  if (r->trains)
    *state_of (r) = of_forward;
  else
    free (all);
}

/* --- the gradient of the data --- */

/* Of the call that runs: by cell and sequence the slopes in h and c that go on, by row those in
 * a layer's outputs and inputs. */
static double *going_h, *going_c, *of_outputs, *of_inputs;

static void
step_back (const FakeRnn *r, double *all, int cell, int t, int b)
{
  const int n = r->units, half = fake_rnn_parts (r) / 2, d = cell % r->n_directions;
  const size_t row = row_of (r, t, b), at = (size_t)((cell * r->n_sequences + b) * n);
  double *k = kept (r, all, cell, row), *next_h = calloc ((size_t)n, sizeof *next_h);

  if (next_h == NULL)
    abort ();
  for (int u = 0; u < n; u++)
    {
      double gh = going_h[at + (size_t)u]
                  + of_outputs[row * (size_t)(n * r->n_directions) + (size_t)(d * n + u)];

      if (r->mode == CUDNN_LSTM)
        {
          const double i = k[u], f = k[n + u], g = k[2 * n + u], o = k[3 * n + u];
          const double tc = tanh (k[CELL * n + u]);
          const double gc = going_c[at + (size_t)u] + gh * o * (1 - tc * tc);

          k[u] = gc * g * i * (1 - i);
          k[n + u] = gc * c_before (r, all, cell, t, b, u) * f * (1 - f);
          k[2 * n + u] = gc * i * (1 - g * g);
          k[3 * n + u] = gh * tc * o * (1 - o);
          going_c[at + (size_t)u] = gc * f;
        }
      else if (r->mode == CUDNN_GRU)
        {
          const double reset = k[u], z = k[n + u], c = k[2 * n + u], q = k[3 * n + u];
          const double gn = gh * (1 - z) * (1 - c * c);

          k[u] = gn * q * reset * (1 - reset);
          k[n + u] = gh * (h_before (r, all, cell, t, b, u) - c) * z * (1 - z);
          k[2 * n + u] = gn;
          k[3 * n + u] = gn * reset; /* what its recurrent half gets */
          next_h[u] += gh * z;
        }
      else
        {
          const double y = k[OUTPUT * n + u];

          k[u] = gh * (r->mode == CUDNN_RNN_TANH ? 1 - y * y : y > 0 ? 1 : 0);
        }
    }
  for (int j = 0; j < half; j++)
    {
      const int slot = r->mode == CUDNN_GRU && j == 2 ? 3 : j;
      const int columns = inputs (r, cell);
      const size_t wx = fake_rnn_place (r, cell, j, false),
                   wh = fake_rnn_place (r, cell, half + j, false);

      for (int u = 0; u < n; u++)
        {
          for (int i = 0; i < columns; i++)
            of_inputs[row * (size_t)columns + (size_t)i]
                += k[j * n + u] * get (r, r->w, wx + (size_t)(u * columns + i));
          for (int i = 0; i < n; i++)
            next_h[i] += k[slot * n + u] * get (r, r->w, wh + (size_t)(u * n + i));
        }
    }
  memcpy (going_h + at, next_h, (size_t)n * sizeof *next_h);
  free (next_h);
}

/* Numbers of the call in double precision; NULL: zeros. */
static double *
as_doubles (const FakeRnn *r, const void *from, size_t n)
{
  double *numbers = calloc (n > 0 ? n : 1, sizeof *numbers);

  if (numbers == NULL)
    abort ();
  for (size_t i = 0; from != NULL && i < n; i++)
    numbers[i] = get (r, from, i);
  return numbers;
}

static void
store (const FakeRnn *r, void *to, const double *from, size_t n)
{
  for (size_t i = 0; to != NULL && i < n; i++)
    put (r, to, i, from[i]);
}

void
fake_rnn_backward_data (const FakeRnn *r)
{
  const size_t states = (size_t)(n_cells (r) * r->n_sequences * r->units),
               rows = fake_rnn_rows (r);
  double *all = reserve_numbers (r);

  if (*state_of (r) != of_forward)
    fake_violation ("cudnnRNNBackwardData_v8 without what cudnnRNNForward keeps");
  poison (r);
  going_h = as_doubles (r, r->ghy, states);
  going_c = as_doubles (r, r->gcy, states);
  of_outputs = as_doubles (r, r->gy, rows * (size_t)(r->units * r->n_directions));
  for (int layer = r->n_layers - 1; layer >= 0; layer--)
    {
      const int cell = layer * r->n_directions;

      of_inputs = as_doubles (r, NULL, rows * (size_t)inputs (r, cell));
      for (int d = 0; d < r->n_directions; d++)
        walk (r, all, cell + d, true, step_back);
      free (of_outputs);
      of_outputs = of_inputs;
    }
  store (r, r->gx, of_outputs, rows * (size_t)r->in);
  store (r, r->ghx, going_h, states);
  store (r, r->gcx, going_c, states);
  free (going_h);
  free (going_c);
  free (of_outputs);
  *state_of (r) = of_data;
}

/* --- the gradient of the weights --- */

static double *weight_sums;

static void
add_row (const FakeRnn *r, double *all, int cell, int t, int b)
{
  const int n = r->units, half = fake_rnn_parts (r) / 2;
  const size_t row = row_of (r, t, b);
  const double *k = kept (r, all, cell, row);

  for (int part = 0; part < 2 * half; part++)
    {
      const int columns = fake_rnn_columns (r, cell, part);
      const int slot = r->mode == CUDNN_GRU && part == 5 ? 3 : part % half;
      const size_t w = fake_rnn_place (r, cell, part, false);

      for (int u = 0; u < n; u++)
        {
          const double slope = k[slot * n + u];

          weight_sums[fake_rnn_place (r, cell, part, true) + (size_t)u] += slope;
          for (int i = 0; i < columns; i++)
            weight_sums[w + (size_t)(u * columns + i)]
                += slope
                   * (part < half ? input_of (r, all, cell, row, i)
                                  : h_before (r, all, cell, t, b, i));
        }
    }
}

void
fake_rnn_backward_weights (const FakeRnn *r)
{
  const size_t n = fake_rnn_place (r, n_cells (r), 0, true);

  if (*state_of (r) != of_data)
    fake_violation ("cudnnRNNBackwardWeights_v8 before cudnnRNNBackwardData_v8");
  poison (r);
  weight_sums = as_doubles (r, r->gw, n);
  for (int cell = 0; cell < n_cells (r); cell++)
    walk (r, reserve_numbers (r), cell, false, add_row);
  store (r, r->gw, weight_sums, n);
  free (weight_sums);
}
