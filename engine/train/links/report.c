/* Reports: numbers under a key, on their way to the recorder, and their running summary.
 *
 * SPDX-License-Identifier: MIT */
#include "report.h"
#include "host-memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TdObservation program;  /* what is reported outside any TD_REPORT_SCOPE */
static TdObservation *current; /* NULL: the program's */

static TdReportEntry *
find_entry (const TdObservation *o, const char *key)
{
  for (int i = 0; i < o->n_entries; i++)
    if (strcmp (o->entries[i].key, key) == 0)
      return &o->entries[i];
  return NULL;
}

static void
keep_variable (TdReportEntry *e, TdVar *v)
{
  if (v != NULL)
    td__var_ref (v, TD_HOLD_ENGINE);
  if (e->variable != NULL)
    td__var_unref (e->variable, TD_HOLD_ENGINE);
  e->variable = v;
}

/* Running moments by Welford's method, with weights as West has them (1979). */
static TdReportEntry *
add_value (TdObservation *o, const char *key, double value, double weight)
{
  TdReportEntry *e = find_entry (o, key);
  double delta;

  if (e == NULL)
    {
      o->entries = td__xrealloc (o->entries, (size_t)(o->n_entries + 1) * sizeof *o->entries);
      e = &o->entries[o->n_entries++];
      *e = (TdReportEntry){ .key = td__xstrdup (key), .min = value, .max = value };
    }
  delta = value - e->mean;
  e->n++;
  e->last = value;
  e->weight += weight;
  if (e->weight != 0)
    e->mean += delta * weight / e->weight;
  e->m2 += weight * delta * (value - e->mean);
  e->min = fmin (e->min, value);
  e->max = fmax (e->max, value);
  keep_variable (e, NULL);
  return e;
}

static bool
report (const char *key, double value, TdVar *v, const char *call)
{
  TdEngine *e = &td__engine;
  TdReportEntry *entry;

  if (!td__ensure_started () || td__check_thread (call) != TD_OK)
    return false;
  if (key == NULL || *key == '\0')
    {
      td__fail (TD_ERR_ARG, call, NULL, "a report needs a key");
      return false;
    }
  entry = add_value (current != NULL ? current : &program, key, value, 1);
  if (v != NULL && current != NULL && e->config.keep_graph_on_report)
    keep_variable (entry, v);
  if ((current == NULL || current->is_recorded) && e->observer != NULL)
    e->observer->report (e->observer, key, value);
  return true;
}

/* What a static schedule does again. */
typedef struct
{
  char *key;
  double value;
} Again;

static void
report_again (void *data, TdVar *v)
{
  const Again *a = data;

  report (a->key, v != NULL ? td_item (v) : a->value, v,
          v != NULL ? "td_report_variable" : "td_report");
}

static void
again_free (void *data)
{
  free (((Again *)data)->key);
  free (data);
}

static bool
again_same (const void *a, const void *b)
{
  const Again *x = a, *y = b;

  return x->value == y->value && strcmp (x->key, y->key) == 0;
}

static void
notify_tracer (TdTracer *t, const char *key, double value, TdVar *v)
{
  Again *a = td__xcalloc (1, sizeof *a);

  a->key = td__xstrdup (key);
  a->value = value;
  t->effect (t, &(TdTraceEffect){ "report", report_again, again_free, a, again_same }, v);
}

void
td_report (const char *key, double value)
{
  TdTracer *t = td__engine.tracer;

  if (report (key, value, NULL, "td_report") && t != NULL)
    notify_tracer (t, key, value, NULL);
}

void
td_report_variable (const char *key, TdVar *v)
{
  TdTracer *t = td__engine.tracer;

  if (!td__var_usable (v, "td_report_variable", NULL))
    return;
  td__engine.tracer = NULL; /* to read it is no decision of the program's */
  if (report (key, td_item (v), v, "td_report_variable") && t != NULL)
    notify_tracer (t, key, 0, v);
  td__engine.tracer = t;
}

void
td_report_for (TdLink *link, const char *key, double value)
{
  char text[1024];

  if (!td__link_usable (link, "td_report_for", NULL))
    return;
  snprintf (text, sizeof text, "%s/%s", link->path->text, key != NULL ? key : "");
  td_report (text, value);
}

void
td_observation_clear (TdObservation *o)
{
  if (td__stranger ("td_observation_clear"))
    return;
  if (o == NULL)
    o = &program;
  for (int i = 0; i < o->n_entries; i++)
    {
      keep_variable (&o->entries[i], NULL);
      free (o->entries[i].key);
    }
  free (o->entries);
  o->entries = NULL;
  o->n_entries = 0;
}

void
td__observation_drop_graphs (TdObservation *o)
{
  for (int i = 0; i < o->n_entries; i++)
    keep_variable (&o->entries[i], NULL);
}

void
td__observation_bury (TdObservation *o)
{
  td_observation_clear (o);
  *o = (TdObservation){ .object.freed = true };
  td__shell_keep (o);
}

static void
observation_free (void *object)
{
  TdObservation *o = object;

  if (current == o)
    current = NULL;
  td__observation_bury (o);
}

TdObservation *
td_observation_new (void)
{
  TdObservation *o;

  td__ensure_started ();
  if (td__stranger ("td_observation_new"))
    return NULL;
  o = td__xcalloc (1, sizeof *o);
  td__object_add (&o->object, observation_free);
  return o;
}

void
td_observation_free (TdObservation *o)
{
  if (td__stranger ("td_observation_free") || o == NULL || !td__engine.started)
    return;
  td__object_remove (&o->object);
  observation_free (o);
}

TdSummary
td_observation_get (const TdObservation *o, const char *key)
{
  const bool asks = !td__asked ("td_observation_get") && key != NULL;
  const TdReportEntry *e = asks ? find_entry (o != NULL ? o : &program, key) : NULL;
  double nan = (double)NAN;

  if (e == NULL)
    return (TdSummary){ 0, nan, nan, nan, nan, nan };
  return (TdSummary){ .n = e->n,
                      .last = e->last,
                      .mean = e->mean,
                      .std = e->weight > 0 ? sqrt (e->m2 / e->weight) : nan,
                      .min = e->min,
                      .max = e->max };
}

void
td_observation_add (TdObservation *o, const char *key, double value, double weight)
{
  td__ensure_started ();
  if (td__stranger ("td_observation_add"))
    return;
  if (key == NULL || *key == '\0' || !(weight >= 0))
    td__fail (TD_ERR_ARG, "td_observation_add", NULL, "%s",
              weight >= 0 ? "a value needs a key" : "a weight of 0 or more expected");
  else
    add_value (o != NULL ? o : &program, key, value, weight);
}

void
td_observation_add_last (TdObservation *o, const TdObservation *from)
{
  if (td__stranger ("td_observation_add_last"))
    return;
  o = o != NULL ? o : &program;
  from = from != NULL ? from : &program;
  for (int i = 0; i < from->n_entries; i++)
    add_value (o, from->entries[i].key, from->entries[i].last, 1);
}

int
td_observation_n_keys (const TdObservation *o)
{
  if (td__asked ("td_observation_n_keys"))
    return 0;
  return o != NULL ? o->n_entries : program.n_entries;
}

const char *
td_observation_key (const TdObservation *o, int i)
{
  if (td__stranger ("td_observation_key"))
    return NULL;
  o = o != NULL ? o : &program;
  return i >= 0 && i < o->n_entries ? o->entries[i].key : NULL;
}

TdVar *
td_observation_variable (const TdObservation *o, const char *key)
{
  const bool asks = !td__stranger ("td_observation_variable") && key != NULL;
  const TdReportEntry *e = asks ? find_entry (o != NULL ? o : &program, key) : NULL;

  return e != NULL ? e->variable : NULL;
}

TdReportSave
td__report_push (TdObservation *observation)
{
  TdReportSave save = { current, 1 };

  if (td__stranger ("TD_REPORT_SCOPE"))
    return (TdReportSave){ NULL, 0 };
  if (td__engine.tracer != NULL)
    td__engine.tracer->refuse (td__engine.tracer, "TD_REPORT_SCOPE", NULL);
  current = observation;
  return save;
}

void
td__report_pop (TdReportSave *save)
{
  if (save != NULL && save->armed && !td__stranger ("TD_REPORT_SCOPE"))
    current = save->outer;
}

void
td__reports_finish (void)
{
  td_observation_clear (&program);
  current = NULL;
}
