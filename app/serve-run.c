/* Running a batch: gathered where that is right, else one by one; then every request is
 * answered.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <string.h>

static void
run_one (TdServeRequest *r)
{
  r->began_ns = td_serve_now_ns ();
  r->status = r->record
                  ? td_serve_record_call (r)
                  : td_serve_model_call (r->model, r->number, NULL, r->in, r->out, r->why);
  r->ended_ns = td_serve_now_ns ();
}

/* False: nothing has been done; one by one those that can be answered are. */
static bool
run_gathered (TdServeRequest **batch, int n)
{
  TdServeArray in[TD_SERVE_MOST_PORTS] = { 0 }, out[TD_SERVE_MOST_PORTS] = { 0 };
  const uint64_t began = td_serve_now_ns ();
  TdServeModel *m = batch[0]->model;
  char why[TD_SERVE_WHY];
  bool done = td_serve_gather (batch, n, in)
              && td_serve_model_call (m, batch[0]->number, NULL, in, out, why) == 200
              && td_serve_scatter (batch, n, out);

  td_serve_clear (in, m->ports.n_in);
  td_serve_clear (out, m->ports.n_out);
  for (int k = 0; k < n; k++)
    {
      batch[k]->status = done ? 200 : 0;
      batch[k]->began_ns = began;
      batch[k]->ended_ns = td_serve_now_ns ();
      if (!done)
        td_serve_clear (batch[k]->out, m->ports.n_out);
    }
  return done;
}

bool
td_serve_run (TdServeRequest **batch, int n)
{
  TdServeModel *m = batch[0]->model;

  if (n > 1 && m->gathers == TD_SERVE_GATHERS_UNKNOWN)
    td_serve_try_gathering (m, batch[0]->in);
  if (n > 1 && m->gathers == TD_SERVE_GATHERS && run_gathered (batch, n)
      && td_serve_check_holds (m, batch, n, td_serve_check_wants (m, batch, n)))
    {
      td_serve_count (TD_SERVE_BATCHES);
      td_serve_observe (TD_SERVE_BATCH_REQUESTS, n);
      return true;
    }
  for (int k = 0; k < n; k++)
    {
      run_one (batch[k]);
      td_serve_count (TD_SERVE_BATCHES);
      td_serve_observe (TD_SERVE_BATCH_REQUESTS, 1);
    }
  return false;
}
