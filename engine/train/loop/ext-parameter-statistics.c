/* ParameterStatistics: what the parameters of a link and their gradients look like, as reports.
 *
 * *Source*: chainer.training.extensions.ParameterStatistics.
 * SPDX-License-Identifier: MIT */
#include "moments.h"
#include "host-memory.h"
#include "trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double percents[] = { 0.13, 2.28, 15.87, 50, 84.13, 97.72, 99.87 };
#define N_PERCENTS TD_ARRAY_LENGTH (percents)

typedef struct
{
  TdParameterStatisticsOpt o;
  char *prefix;
  uint64_t link_id;
} Statistics;

typedef struct
{
  const Statistics *s;
  const TdLink *link;
} Visit;

static void
report_array (const Visit *v, const char *path, const char *what, TdVar *array)
{
  double moments[TD_N_MOMENTS], values[N_PERCENTS];
  char key[1200];
  int64_t n;
  double *x = td__host_doubles (array, &n, "ParameterStatistics");

  if (x == NULL)
    return;
  td__moments (x, n, moments);
  td__percentiles (x, n, percents, N_PERCENTS, values);
  if (v->s->o.skip_nan_params && isnan (moments[0]))
    moments[4] = (double)NAN;
  for (int i = 0; i < TD_N_MOMENTS + N_PERCENTS; i++)
    {
      int n_key = snprintf (key, sizeof key, "%s%s%s/%s/%s/",
                            v->s->prefix != NULL ? v->s->prefix : "",
                            v->s->prefix != NULL ? "/" : "", v->link->path->text, path, what);

      if (n_key < 0 || (size_t)n_key + 20 > sizeof key)
        continue;
      if (i < TD_N_MOMENTS)
        snprintf (key + n_key, sizeof key - (size_t)n_key, "%s", td__moment_names[i]);
      else
        snprintf (key + n_key, sizeof key - (size_t)n_key, "percentile/%d", i - TD_N_MOMENTS);
      td_report (key, i < TD_N_MOMENTS ? moments[i] : values[i - TD_N_MOMENTS]);
    }
  free (x);
}

static void
visit_param (const char *path, TdVar *param, void *user)
{
  const Visit *v = user;

  if (v->s->o.report_params && !td__engine.has_error)
    report_array (v, path, "data", param);
  if (v->s->o.report_grads && td_grad (param) != NULL && !td__engine.has_error)
    report_array (v, path, "grad", td_grad (param));
}

static TdStatus
statistics_call (void *self, TdTrainer *t)
{
  Statistics *s = self;
  TdLink *link = td__link_by_id (s->link_id);

  (void)t;
  if (link == NULL)
    return td__fail (TD_ERR_STATE, "ParameterStatistics", NULL, "its link was freed");
  td_link_each_param (link, visit_param, &(Visit){ s, link });
  return td__engine.has_error ? td__engine.error.status : TD_OK;
}

static void
statistics_free (void *self)
{
  free (((Statistics *)self)->prefix);
}

static const TdExtensionClass statistics_class = { .size = sizeof (TdExtensionClass),
                                                   .name = "ParameterStatistics",
                                                   .self_bytes = sizeof (Statistics),
                                                   .priority = TD_PRIORITY_WRITER,
                                                   .period = 1,
                                                   .unit = "epoch",
                                                   .call = statistics_call,
                                                   .free = statistics_free };

TdExtension *
td_ext_parameter_statistics_ (TdLink *link, TdParameterStatisticsOpt o)
{
  TdExtension *x;

  if (td__check_thread ("td_ext_parameter_statistics") != TD_OK
      || !td__link_usable (link, "td_ext_parameter_statistics", NULL))
    return td__extension_inert ();
  x = td_extension_new (&statistics_class);
  *(Statistics *)x->self
      = (Statistics){ o, o.prefix != NULL ? td__xstrdup (o.prefix) : NULL, link->id };
  return x;
}
