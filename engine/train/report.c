/* Reports: numbers under a key, on their way to the recorder, and their running summary.
 *
 * SPDX-License-Identifier: MIT */
#include "report.h"

#include "../links/link.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Running moments by Welford's method. */
typedef struct
{
  char *key;
  int64_t n;
  double last, mean, m2, min, max;
} Entry;

struct TdObservation
{
  TdObject object;
  Entry *entries;
  int n_entries;
};

static TdObservation program;  /* what is reported outside any TD_REPORT_SCOPE */
static TdObservation *current; /* NULL: the program's */

static Entry *
find_entry (const TdObservation *o, const char *key)
{
  for (int i = 0; i < o->n_entries; i++)
    if (strcmp (o->entries[i].key, key) == 0)
      return &o->entries[i];
  return NULL;
}

static void
add_value (TdObservation *o, const char *key, double value)
{
  Entry *e = find_entry (o, key);
  double delta;

  if (e == NULL)
    {
      o->entries = td__xrealloc (o->entries, (size_t)(o->n_entries + 1) * sizeof *o->entries);
      e = &o->entries[o->n_entries++];
      *e = (Entry){ .key = td__xstrdup (key), .min = value, .max = value };
    }
  delta = value - e->mean;
  e->n++;
  e->last = value;
  e->mean += delta / (double)e->n;
  e->m2 += delta * (value - e->mean);
  e->min = fmin (e->min, value);
  e->max = fmax (e->max, value);
}

void
td_report (const char *key, double value)
{
  TdEngine *e = &td__engine;

  if (!td__ensure_started () || td__check_thread ("td_report") != TD_OK)
    return;
  if (key == NULL || *key == '\0')
    {
      td__fail (TD_ERR_ARG, "td_report", NULL, "a report needs a key");
      return;
    }
  add_value (current != NULL ? current : &program, key, value);
  if (current == NULL && e->observer != NULL)
    e->observer->report (e->observer, key, value);
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
  if (o == NULL)
    o = &program;
  for (int i = 0; i < o->n_entries; i++)
    free (o->entries[i].key);
  free (o->entries);
  o->entries = NULL;
  o->n_entries = 0;
}

static void
observation_free (void *object)
{
  TdObservation *o = object;

  if (current == o)
    current = NULL;
  td_observation_clear (o);
  free (o);
}

TdObservation *
td_observation_new (void)
{
  TdObservation *o = td__xcalloc (1, sizeof *o);

  td__ensure_started ();
  td__object_add (&o->object, observation_free);
  return o;
}

void
td_observation_free (TdObservation *o)
{
  if (o == NULL || !td__engine.started)
    return;
  td__object_remove (&o->object);
  observation_free (o);
}

TdSummary
td_observation_get (const TdObservation *o, const char *key)
{
  const Entry *e = key != NULL ? find_entry (o != NULL ? o : &program, key) : NULL;
  double nan = (double)NAN;

  if (e == NULL)
    return (TdSummary){ 0, nan, nan, nan, nan, nan };
  return (TdSummary){ .n = e->n,
                      .last = e->last,
                      .mean = e->mean,
                      .std = sqrt (e->m2 / (double)e->n),
                      .min = e->min,
                      .max = e->max };
}

TdReportSave
td__report_push (TdObservation *observation)
{
  TdReportSave save = { current, 1 };

  current = observation;
  return save;
}

void
td__report_pop (TdReportSave *save)
{
  if (save->armed)
    current = save->outer;
}

void
td__reports_finish (void)
{
  td_observation_clear (&program);
  current = NULL;
}
