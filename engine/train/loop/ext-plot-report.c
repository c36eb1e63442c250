/* PlotReport: means of reported values over iterations or epochs, as a chart.
 *
 * *Source*: chainer.training.extensions.PlotReport.
 * SPDX-License-Identifier: MIT */
#include "chart.h"
#include "host-memory.h"
#include "trainer.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdShape shape; /* (2 n) */
  void *points;  /* x, y, x, y ... */
} Points;

typedef struct
{
  TdPlotReportOpt o;
  char **keys, *filename;
  int n_keys;
  bool by_epoch;
  TdTrigger *trigger;
  TdObservation summary;
  Points *points; /* of each key */
} PlotReport;

static void
add_point (Points *p, double x, double y)
{
  int64_t n = p->shape.dim[0];
  double *at = td__xrealloc (p->points, (size_t)(n + 2) * sizeof *at);

  at[n] = x;
  at[n + 1] = y;
  p->points = at;
  p->shape = (TdShape){ 1, { n + 2 } };
}

static TdStatus
draw (const PlotReport *p, TdTrainer *t)
{
  TdSeries *series = td__xcalloc ((size_t)p->n_keys, sizeof *series);
  TdPanel panel = { .x_label = p->by_epoch ? "epoch" : "iteration",
                    .series = series,
                    .n_series = p->n_keys,
                    .marker = p->o.marker,
                    .grid = p->o.grid,
                    .legend = true };
  TdText svg = { NULL, 0, 0 };
  TdStatus status;
  char name[1024];

  for (int k = 0; k < p->n_keys; k++)
    {
      int64_t n = p->points[k].shape.dim[0] / 2;
      const double *points = p->points[k].points;
      double *xy = td__xcalloc ((size_t)(2 * n), sizeof *xy);

      for (int64_t i = 0; i < n; i++)
        {
          xy[i] = points[2 * i];
          xy[n + i] = points[2 * i + 1];
        }
      series[k] = (TdSeries){ p->keys[k], xy, xy + n, n, k, 1 };
    }
  td__chart_svg (&svg, &panel, 1);
  td__file_name (p->filename, t->updater, name, sizeof name);
  status = td__trainer_write (t, name, svg.text, svg.n, "PlotReport");
  for (int k = 0; k < p->n_keys; k++)
    free ((double *)series[k].x);
  free (series);
  free (svg.text);
  return status;
}

static TdStatus
plot_call (void *self, TdTrainer *t)
{
  PlotReport *p = self;
  double x;

  for (int k = 0; k < p->n_keys; k++)
    {
      TdSummary now = td_observation_get (t->observation, p->keys[k]);

      if (now.n > 0)
        td_observation_add (&p->summary, p->keys[k], now.last, 1);
    }
  if (!td_trigger_call (p->trigger, t))
    return TD_OK;
  x = p->by_epoch ? (double)td_updater_epoch (t->updater) : (double)t->updater->iteration;
  for (int k = 0; k < p->n_keys; k++)
    {
      TdSummary mean = td_observation_get (&p->summary, p->keys[k]);

      if (mean.n > 0)
        add_point (&p->points[k], x, mean.mean);
    }
  td_observation_clear (&p->summary);
  return draw (p, t);
}

static void
plot_serialize (void *self, TdSerializer *s)
{
  PlotReport *p = self;

  td_serializer_enter (s, "_trigger");
  td__trigger_serialize (p->trigger, s);
  td_serializer_leave (s);
  td__observation_serialize (&p->summary, s, "_summary");
  for (int k = 0; k < p->n_keys; k++)
    {
      td_serializer_enter (s, p->keys[k]);
      td_serialize_array (s, "_points", TD_F64, &p->points[k].shape, &p->points[k].points);
      td_serializer_leave (s);
    }
}

static void
plot_free (void *self)
{
  PlotReport *p = self;

  for (int k = 0; k < p->n_keys; k++)
    free (p->points[k].points);
  free (p->points);
  td__keys_free (p->keys);
  td__trigger_drop (p->trigger);
  td_observation_clear (&p->summary);
  free (p->filename);
}

static const TdExtensionClass plot_class = { .size = sizeof (TdExtensionClass),
                                             .name = "PlotReport",
                                             .self_bytes = sizeof (PlotReport),
                                             .priority = TD_PRIORITY_READER,
                                             .call = plot_call,
                                             .serialize = plot_serialize,
                                             .free = plot_free };

TdExtension *
td_ext_plot_report_ (const char *const *y_keys, TdPlotReportOpt o)
{
  bool by_epoch = o.x_key != NULL && strcmp (o.x_key, "epoch") == 0;
  TdTrigger *trigger;
  TdExtension *x;
  PlotReport *p;

  if (td__check_thread ("td_ext_plot_report") != TD_OK)
    return td__extension_inert ();
  if (y_keys == NULL || y_keys[0] == NULL || o.filename == NULL || o.x_key == NULL
      || (!by_epoch && strcmp (o.x_key, "iteration") != 0))
    {
      td__fail (TD_ERR_ARG, "td_ext_plot_report", NULL,
                "keys to draw over \"iteration\" or \"epoch\" and a file name expected");
      return td__extension_inert ();
    }
  trigger = td__trigger_or (o.trigger, 1, "epoch", "td_ext_plot_report");
  if (trigger == NULL)
    return td__extension_inert ();
  x = td_extension_new (&plot_class);
  p = x->self;
  p->o = o;
  p->by_epoch = by_epoch;
  p->keys = td__keys_copy (y_keys);
  while (p->keys[p->n_keys] != NULL)
    p->n_keys++;
  p->points = td__xcalloc ((size_t)p->n_keys, sizeof *p->points);
  for (int k = 0; k < p->n_keys; k++) /* no points yet: an array of none */
    p->points[k] = (Points){ { 1, { 0 } }, td__xcalloc (1, 1) };
  p->filename = td__xstrdup (o.filename);
  p->trigger = trigger;
  return x;
}
