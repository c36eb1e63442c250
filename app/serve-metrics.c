/* What happened, counted: GET /metrics, in Prometheus' text format.
 * *Source*: https://prometheus.io/docs/instrumenting/exposition_formats/, version 0.0.4.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <stdio.h>
#include <stdlib.h>

static const struct
{
  const char *name, *help;
} counters[TD_SERVE_N_COUNTERS] = {
  [TD_SERVE_RELOADS] = { "reloads", "Models that took the place of another." },
  [TD_SERVE_RELOADS_FAILED] = { "reloads_failed", "Files that could not be loaded." },
  [TD_SERVE_RECORDED] = { "recorded", "Iterations on the tape." },
  [TD_SERVE_BATCHES] = { "batches", "Calls of the model." },
  [TD_SERVE_DROPPED] = { "clients_dropped", "Connections that were too slow." },
  [TD_SERVE_HELD] = { "gathered_tried", "Requests that were run gathered and alone." },
  [TD_SERVE_DIFFERED] = { "gathered_differed", "Of those, with another answer." },
};
static _Atomic uint64_t counts[TD_SERVE_N_COUNTERS], statuses[600];

enum
{
  N_BOUNDS = 14
};

static const double seconds[N_BOUNDS]
    = { 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10 },
    requests[N_BOUNDS] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256 };

static struct
{
  const char *name, *help;
  const double *bounds;
  _Atomic uint64_t n[N_BOUNDS + 1]; /* in each of its own */
  _Atomic uint64_t sum_millionths;
} histograms[TD_SERVE_N_HISTOGRAMS] = {
  [TD_SERVE_SECONDS_REQUEST]
  = { "request_seconds",
      "From a request's first line to its answer, of POST /predict, whatever the answer.",
      seconds },
  [TD_SERVE_SECONDS_WAIT] = { "wait_seconds", "In the queue.", seconds },
  [TD_SERVE_SECONDS_MODEL] = { "model_seconds", "In the model.", seconds },
  [TD_SERVE_BATCH_REQUESTS] = { "batch_requests", "Requests that ran in one call.", requests },
};

void
td_serve_count (TdServeCounter counter)
{
  counts[counter]++;
}

void
td_serve_count_status (int status)
{
  if (status > 0 && status < (int)(sizeof statuses / sizeof *statuses))
    statuses[status]++;
}

void
td_serve_observe (TdServeHistogram histogram, double value)
{
  int i = 0;

  while (i < N_BOUNDS && value > histograms[histogram].bounds[i])
    i++;
  histograms[histogram].n[i]++;
  histograms[histogram].sum_millionths += (uint64_t)(value * 1e6 + 0.5);
}

static void
put_head (FILE *f, const char *name, const char *help, const char *type)
{
  fprintf (f, "# HELP tapedeck_serve_%s %s\n# TYPE tapedeck_serve_%s %s\n", name, help, name,
           type);
}

static void
put_gauge (FILE *f, const char *name, const char *help, long long value)
{
  put_head (f, name, help, "gauge");
  fprintf (f, "tapedeck_serve_%s %lld\n", name, value);
}

static void
put_histogram (FILE *f, int h)
{
  const char *name = histograms[h].name;
  uint64_t n = 0;

  put_head (f, name, histograms[h].help, "histogram");
  for (int i = 0; i < N_BOUNDS; i++)
    fprintf (f, "tapedeck_serve_%s_bucket{le=\"%g\"} %llu\n", name, histograms[h].bounds[i],
             (unsigned long long)(n += histograms[h].n[i]));
  n += histograms[h].n[N_BOUNDS];
  fprintf (f,
           "tapedeck_serve_%s_bucket{le=\"+Inf\"} %llu\n"
           "tapedeck_serve_%s_sum %.6f\ntapedeck_serve_%s_count %llu\n",
           name, (unsigned long long)n, name, (double)histograms[h].sum_millionths / 1e6, name,
           (unsigned long long)n);
}

char *
td_serve_metrics_text (size_t *n)
{
  int n_clients, n_busy;
  char *text = NULL;
  FILE *f = open_memstream (&text, n);

  if (f == NULL)
    return NULL;
  put_head (f, "requests_total", "Answers, by their status.", "counter");
  for (int s = 0; s < (int)(sizeof statuses / sizeof *statuses); s++)
    if (s == 200 || statuses[s] > 0)
      fprintf (f, "tapedeck_serve_requests_total{code=\"%d\"} %llu\n", s,
               (unsigned long long)statuses[s]);
  for (int c = 0; c < TD_SERVE_N_COUNTERS; c++)
    {
      char name[64];

      snprintf (name, sizeof name, "%s_total", counters[c].name);
      put_head (f, name, counters[c].help, "counter");
      fprintf (f, "tapedeck_serve_%s %llu\n", name, (unsigned long long)counts[c]);
    }
  td_clients_count (&n_clients, &n_busy);
  put_gauge (f, "queue_length", "Requests that wait.", (long long)td_serve_queue_length ());
  put_gauge (f, "connections", "Connections that are open.", n_clients);
  put_gauge (f, "connections_busy", "Of those, with a request under way.", n_busy);
  for (int h = 0; h < TD_SERVE_N_HISTOGRAMS; h++)
    put_histogram (f, h);
  if (fclose (f) == 0)
    return text;
  free (text);
  return NULL;
}
