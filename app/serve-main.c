/* tapedeck-serve: `tapedeck serve`, the loop of the thread that owns the engine.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include "command.h"

#include <stdio.h>
#include <time.h>

enum
{
  MOST_REQUESTS = 1024,  /* of one batch */
  BODIES_NS = 2000000000 /* that they have when the server stops */
};

static void
reload (const TdServeOptions *o)
{
  char why[TD_SERVE_WHY];
  TdServeModel *old = td_serve_model_ref (), *m = td_serve_record_load (o->model, old, why);

  td_serve_model_unref (old);
  if (m != NULL)
    {
      td_serve_model_swap (m);
      fprintf (stderr, "tapedeck: serve: %s is loaded anew\n", o->model);
    }
  else
    fprintf (stderr, "tapedeck: serve: %s%sthe model from before stays\n", why,
             *why != '\0' ? "; " : "");
  td_serve_count (m != NULL ? TD_SERVE_RELOADS : TD_SERVE_RELOADS_FAILED); /* it is done */
}

/* Of those that waited too long, what is left is run. */
static int
drop_late (TdServeRequest **batch, int n, const TdServeOptions *o)
{
  const uint64_t now = td_serve_now_ns ();
  int kept = 0;

  for (int k = 0; k < n; k++)
    if (now - batch[k]->queued_ns <= o->timeout_ms * 1000000u)
      batch[kept++] = batch[k];
    else
      {
        batch[k]->status = 503;
        batch[k]->began_ns = batch[k]->ended_ns = now;
        td_serve_refuse (batch[k]->why, "the request waited longer than %llu ms",
                         (unsigned long long)o->timeout_ms);
        td_serve_answer (batch[k]);
      }
  return kept;
}

static void
run_batch (TdServeRequest **batch, int n, const TdServeOptions *o)
{
  bool gathered;

  n = drop_late (batch, n, o);
  if (n == 0)
    return;
  gathered = td_serve_run (batch, n);
  td_serve_slow_keep (batch, n, gathered, o);
  for (int k = 0; k < n; k++)
    td_serve_answer (batch[k]);
  td_serve_slow_record ();
}

static void
loop (const TdServeOptions *o)
{
  static TdServeRequest *batch[MOST_REQUESTS];

  while (!td_serve_stops ())
    {
      const int n = td_serve_queue_take (batch, MOST_REQUESTS, o);

      td_serve_models_collect (); /* what is recorded has no memory beside it that nobody needs
                                   */
      if (n > 0)
        run_batch (batch, n, o);
      if (td_serve_reload_wanted ())
        reload (o);
      td_serve_models_collect ();
    }
}

/* Answered without being run. */
static void
refuse_all (TdServeRequest **batch, const TdServeOptions *o)
{
  while (td_serve_queue_length () > 0)
    {
      const int n = td_serve_queue_take (batch, MOST_REQUESTS, o);

      for (int k = 0; k < n; k++)
        {
          batch[k]->status = 503;
          td_serve_refuse (batch[k]->why, "the server stops");
          td_serve_answer (batch[k]);
        }
    }
}

/* Requests that are there are answered, bodies that have begun have a moment to come whole;
 * what begins now is refused.  Told twice, it answers no more than that it stops. */
static void
stop (const TdServeOptions *o)
{
  static TdServeRequest *batch[MOST_REQUESTS];
  const struct timespec a_moment = { .tv_nsec = 2000000 };
  const uint64_t began = td_serve_now_ns (), until = began + o->timeout_ms * 1000000u;
  int n_clients, n_busy = 1;

  td_serve_http_quiesce ();
  while (n_busy > 0 && td_serve_now_ns () < until && !td_serve_hurries ())
    {
      td_clients_stop (td_serve_now_ns () - began > BODIES_NS, false);
      if (td_serve_queue_length () > 0)
        run_batch (batch, td_serve_queue_take (batch, MOST_REQUESTS, o), o);
      else
        nanosleep (&a_moment, NULL);
      td_clients_count (&n_clients, &n_busy);
    }
  td_serve_queue_close ();
  td_serve_work_end ();
  while (td_serve_queue_length () > 0 && !td_serve_hurries ())
    run_batch (batch, td_serve_queue_take (batch, MOST_REQUESTS, o), o);
  refuse_all (batch, o);
  td_clients_stop (true, td_serve_hurries ());
  for (int k = 0; k < 100 && td_serve_hurries () && n_busy > 0; k++)
    {
      nanosleep (&a_moment, NULL);
      td_clients_count (&n_clients, &n_busy);
    }
  td_serve_http_end ();
}

static int
serve (const TdServeOptions *o)
{
  char why[TD_SERVE_WHY];
  TdServeModel *m;

  if (!td_serve_signals_begin (o))
    return TD_EXIT_USAGE;
  m = td_serve_record_load (o->model, NULL, why);
  if (m != NULL)
    td_serve_model_swap (m);
  else if (*why != '\0')
    fprintf (stderr, "tapedeck: %s\n", why);
  if (m == NULL || !td_serve_work_begin (o) || !td_serve_http_begin (o))
    {
      td_serve_work_end ();
      td_serve_signals_end ();
      return TD_EXIT_USAGE;
    }
  loop (o);
  stop (o);
  td_serve_signals_end ();
  td_serve_model_swap (NULL);
  td_serve_models_collect ();
  return TD_EXIT_OK;
}

static int
run (int argc, char **argv)
{
  TdServeOptions o;
  int status = td_serve_options (&o, argc - 1, argv + 1);

  if (status != TD_EXIT_OK || o.help)
    return status;
  if (!td_serve_record_begin (&o))
    return TD_EXIT_USAGE;
  if (td_init (NULL, NULL) != TD_OK)
    return td_finish ();
  if (o.record != NULL && !td_serve_records ())
    {
      td_finish ();
      return TD_EXIT_USAGE;
    }
  td_serve_record_ready (argc - 1, argv + 1);
  td_config_set (train, 0);
  td_config_set (enable_backprop, 0);
  status = serve (&o);
  td_serve_record_end ();
  return td_finish () != 0 ? TD_EXIT_FINDING : status;
}

int
main (int argc, char **argv)
{
  if (argc < 2)
    return td_usage_error (NULL, "usage: tapedeck-serve serve ...");
  return td_command_main (argc, argv, run);
}
