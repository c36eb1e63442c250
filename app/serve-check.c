/* Gathered answers held against those of requests alone, while the server runs: that rows are
 * computed each for itself was tried with numbers that others need not have.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <math.h>
#include <stdio.h>

enum
{
  MOST_GAP = 1024 /* calls; a thousandth of the work is not noticed */
};

void
td_serve_check_begin (TdServeModel *m)
{
  m->check = (TdServeCheck){ .next = 1, .gap = 1 };
  for (int i = 0; i < TD_SERVE_MOST_PORTS; i++)
    {
      m->check.least[i] = INFINITY;
      m->check.most[i] = -INFINITY;
    }
}

/* Take the numbers of an input into its range.  Returns whether one was beyond. */
static bool
widen (const TdServeArray *a, double *least, double *most)
{
  const size_t n = a->bytes / td_dtype_bytes (a->dtype);
  double low = *least, high = *most;
  bool wider;

  for (size_t i = 0; i < n; i++)
    {
      const double x = td_serve_element (a, i);

      low = x < low ? x : low;
      high = x > high ? x : high;
    }
  wider = low < *least || high > *most;
  *least = low;
  *most = high;
  return wider;
}

int
td_serve_check_wants (TdServeModel *m, TdServeRequest *const *batch, int n)
{
  TdServeCheck *c = &m->check;
  bool wider = false;

  for (int k = 0; k < n; k++)
    for (int i = 0; i < m->ports.n_needed; i++)
      wider = widen (&batch[k]->in[i], &c->least[i], &c->most[i]) || wider;
  if (++c->n_calls < c->next)
    return wider ? n : 0;
  c->gap = c->gap < MOST_GAP ? 2 * c->gap : c->gap;
  c->next = c->n_calls + c->gap;
  return wider ? n : 1;
}

bool
td_serve_check_holds (TdServeModel *m, TdServeRequest *const *batch, int n, int wanted)
{
  TdServeArray alone[TD_SERVE_MOST_PORTS] = { 0 };
  TdServeSizes sizes = { 0 };
  char why[TD_SERVE_WHY];
  bool same = true;

  if (wanted > 0 && !td_serve_sizes_of (&sizes, batch, n))
    return true; /* no memory: as if this call had not been held */

  for (int k = 0; k < wanted && same; k++)
    {
      /* One of them: in turn, not always who came first. */
      const TdServeRequest *r = batch[wanted == n ? k : (int)(m->n_tried % (uint64_t)n)];

      same = td_serve_model_call (m, r->number, NULL, r->in, alone, why) == 200
             && td_serve_are_close (alone, r->out, &sizes, m->ports.n_out);
      td_serve_clear (alone, m->ports.n_out);
      td_serve_count (TD_SERVE_HELD);
      m->n_tried++;
    }
  td_serve_sizes_clear (&sizes);
  if (same)
    return true;
  td_serve_count (TD_SERVE_DIFFERED);
  fprintf (stderr,
           "tapedeck: serve: a request alone has another answer than among %d that were "
           "gathered: they are not gathered any more\n",
           n);
  m->why_not = "a request alone had another answer than among others that were gathered";
  m->gathers = TD_SERVE_GATHERS_NOT;
  for (int k = 0; k < n; k++)
    td_serve_clear (batch[k]->out, m->ports.n_out);
  return false;
}
