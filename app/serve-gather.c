/* Several requests as the rows of one call, where the model computes each row for itself.  That
 * its first axes are open does not say so, the first axis may be time: so it is tried.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <stdlib.h>
#include <string.h>

/* --- behind each other, and apart ------------------------------------------------------------
 */

bool
td_serve_gather (TdServeRequest *const *batch, int n, TdServeArray *in)
{
  const int n_in = batch[0]->model->ports.n_in;

  for (int i = 0; i < n_in; i++)
    {
      char *to;

      in[i] = batch[0]->in[i];
      if (in[i].data == NULL)
        continue;
      in[i].bytes = 0;
      in[i].shape.dim[0] = 0;
      for (int k = 0; k < n; k++)
        {
          in[i].bytes += batch[k]->in[i].bytes;
          in[i].shape.dim[0] += batch[k]->in[i].shape.dim[0];
        }
      in[i].data = to = malloc (in[i].bytes + 1);
      if (to == NULL)
        {
          td_serve_clear (in, i);
          return false;
        }
      for (int k = 0; k < n; k++)
        {
          memcpy (to, batch[k]->in[i].data, batch[k]->in[i].bytes);
          to += batch[k]->in[i].bytes;
        }
    }
  return true;
}

static bool
take_rows (const TdServeArray *from, int64_t rows, const char **at, TdServeArray *to)
{
  const size_t row = from->bytes / (size_t)from->shape.dim[0];

  *to = *from;
  to->shape.dim[0] = rows;
  to->bytes = (size_t)rows * row;
  to->data = malloc (to->bytes + 1);
  if (to->data == NULL)
    return false;
  memcpy (to->data, *at, to->bytes);
  *at += to->bytes;
  return true;
}

bool
td_serve_scatter (TdServeRequest *const *batch, int n, const TdServeArray *out)
{
  const TdServePorts *p = &batch[0]->model->ports;
  int64_t rows = 0;

  for (int k = 0; k < n; k++)
    rows += td_serve_rows (batch[k]->in, p->n_needed);
  if (td_serve_rows (out, p->n_out) != rows)
    return false;
  for (int o = 0; o < p->n_out; o++)
    {
      const char *at = out[o].data;

      for (int k = 0; k < n; k++)
        if (!take_rows (&out[o], td_serve_rows (batch[k]->in, p->n_needed), &at,
                        &batch[k]->out[o]))
          return false;
    }
  return true;
}

/* --- is it right to? -------------------------------------------------------------------------
 */

static uint64_t
next_random (uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* Another input of the same shape: numbers moved by up to a half of their size, and a little
 * where they are 0; whole numbers, which may be indices, in the other order. */
static bool
make_other (const TdServeArray *from, TdServeArray *to)
{
  const size_t element = td_dtype_bytes (from->dtype), n = from->bytes / element;
  uint64_t state = 19;

  *to = *from;
  to->data = malloc (from->bytes + 1);
  if (to->data == NULL)
    return false;
  for (size_t i = 0; i < n; i++)
    {
      const double u = (double)next_random (&state) / (double)((uint64_t)1 << 31) - 0.5;

      if (from->dtype == TD_F32)
        ((float *)to->data)[i]
            = (float)((double)((const float *)from->data)[i] * (1 + u) + 0.1 * u);
      else if (from->dtype == TD_F64)
        ((double *)to->data)[i] = ((const double *)from->data)[i] * (1 + u) + 0.1 * u;
      else
        memcpy ((char *)to->data + i * element,
                (const char *)from->data + (n - 1 - i) * element, element);
    }
  return true;
}

/* Two requests with inputs of their own, one by one and together. */
static bool
are_rows_alone (TdServeRequest *pair[2], TdServeModel *m)
{
  TdServeArray in[TD_SERVE_MOST_PORTS] = { 0 }, together[TD_SERVE_MOST_PORTS] = { 0 },
               apart[TD_SERVE_MOST_PORTS] = { 0 };
  const TdServePorts *p = &m->ports;
  TdServeSizes sizes = { 0 };
  char why[TD_SERVE_WHY];
  bool same = td_serve_gather (pair, 2, in)
              && td_serve_model_call (m, 0, NULL, in, together, why) == 200
              && td_serve_scatter (pair, 2, together) && td_serve_sizes_of (&sizes, pair, 2);

  for (int k = 0; k < 2 && same; k++)
    {
      same = td_serve_model_call (m, 0, NULL, pair[k]->in, apart, why) == 200;
      same = same && td_serve_are_close (apart, pair[k]->out, &sizes, p->n_out);
      td_serve_clear (apart, p->n_out);
    }
  td_serve_sizes_clear (&sizes);
  td_serve_clear (in, p->n_in);
  td_serve_clear (together, p->n_out);
  return same;
}

void
td_serve_try_gathering (TdServeModel *m, const TdServeArray *in)
{
  const int n = m->ports.n_needed;
  TdServeRequest *pair[2] = { calloc (1, sizeof **pair), calloc (1, sizeof **pair) };
  bool there = pair[0] != NULL && pair[1] != NULL, differ = false;

  for (int i = 0; i < n && there; i++)
    {
      pair[0]->in[i] = in[i];
      there = make_other (&in[i], &pair[1]->in[i]);
      differ = differ || (there && memcmp (in[i].data, pair[1]->in[i].data, in[i].bytes) != 0);
    }
  if (there && differ)
    {
      pair[0]->model = pair[1]->model = m;
      m->n_tried += 2;
      if (are_rows_alone (pair, m))
        {
          td_serve_check_begin (m);
          m->gathers = TD_SERVE_GATHERS;
        }
      else
        {
          m->why_not = "rows of one call depend on each other, or are not as many as went in";
          m->gathers = TD_SERVE_GATHERS_NOT;
        }
      td_serve_clear (pair[0]->out, m->ports.n_out);
      td_serve_clear (pair[1]->out, m->ports.n_out);
    }
  if (pair[1] != NULL)
    td_serve_clear (pair[1]->in, n);
  free (pair[0]);
  free (pair[1]);
}
