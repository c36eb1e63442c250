/* LogReport: means of what was reported, line by line, as JSON.
 *
 * *Source*: chainer.training.extensions.LogReport.
 * SPDX-License-Identifier: MIT */
#include "log-report.h"
#include "host-memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdLogReportOpt o;
  char **keys; /* NULL: all */
  char *filename;
  TdTrigger *trigger;
  TdObservation summary;
  TdObservation *lines; /* each key once */
  int n_lines;
  char *loaded; /* JSON of a snapshot, on its way in */
} LogReport;

static bool
is_whole (const char *key)
{
  return strcmp (key, "epoch") == 0 || strcmp (key, "iteration") == 0;
}

static void
add_json (TdText *text, const LogReport *log)
{
  td__text_add (text, "[");
  for (int i = 0; i < log->n_lines; i++)
    {
      const TdObservation *line = &log->lines[i];

      td__text_add (text, "%s\n    {", i > 0 ? "," : "");
      for (int k = 0; k < line->n_entries; k++)
        {
          td__text_add (text, "%s\n        ", k > 0 ? "," : "");
          td__text_add_json (text, line->entries[k].key);
          td__text_add (text, ": ");
          td__text_add_number (text, line->entries[k].last, is_whole (line->entries[k].key));
        }
      td__text_add (text, "\n    }");
    }
  td__text_add (text, "%s]", log->n_lines > 0 ? "\n" : "");
}

static TdObservation *
new_line (LogReport *log)
{
  log->lines = td__xrealloc (log->lines, (size_t)(log->n_lines + 1) * sizeof *log->lines);
  log->lines[log->n_lines] = (TdObservation){ .n_entries = 0 };
  return &log->lines[log->n_lines++];
}

static void
clear_lines (LogReport *log)
{
  for (int i = 0; i < log->n_lines; i++)
    td_observation_clear (&log->lines[i]);
  free (log->lines);
  log->lines = NULL;
  log->n_lines = 0;
}

static TdStatus
write_line (LogReport *log, TdTrainer *t)
{
  TdObservation *line = new_line (log);
  TdText text = { NULL, 0, 0 };
  TdStatus status = TD_OK;
  char name[1024];

  for (int i = 0; i < log->summary.n_entries; i++)
    td_observation_add (line, log->summary.entries[i].key, log->summary.entries[i].mean, 1);
  td_observation_clear (&log->summary);
  td_observation_add (line, "epoch", (double)td_updater_epoch (t->updater), 1);
  td_observation_add (line, "iteration", (double)t->updater->iteration, 1);
  td_observation_add (line, "elapsed_time", td_trainer_elapsed_time (t), 1);
  if (log->o.postprocess != NULL)
    log->o.postprocess (log->o.self, line);
  if (log->filename == NULL)
    return TD_OK;
  add_json (&text, log);
  td__file_name (log->filename, t->updater, name, sizeof name);
  status = td__trainer_write (t, name, text.text, text.n, "LogReport");
  free (text.text);
  return status;
}

static TdStatus
log_call (void *self, TdTrainer *t)
{
  LogReport *log = self;

  if (log->keys == NULL)
    td_observation_add_last (&log->summary, t->observation);
  for (int i = 0; log->keys != NULL && log->keys[i] != NULL; i++)
    {
      TdSummary now = td_observation_get (t->observation, log->keys[i]);

      if (now.n > 0)
        td_observation_add (&log->summary, log->keys[i], now.last, 1);
    }
  return td_trigger_call (log->trigger, t) ? write_line (log, t) : TD_OK;
}

/* --- reading it back --- */

static const char *
skip_space (const char *at)
{
  return at + strspn (at, " \t\r\n");
}

/* A text in quotes without escapes but \" and \\, which are all that keys have. */
static const char *
read_key (const char *at, char *key, size_t size)
{
  size_t n = 0;

  if (*at++ != '"')
    return NULL;
  for (; *at != '"' && *at != '\0' && n + 1 < size; at++)
    {
      if (*at == '\\')
        at++;
      if (*at == '\0')
        return NULL;
      key[n++] = *at;
    }
  key[n] = '\0';
  return *at == '"' && n > 0 ? at + 1 : NULL;
}

static const char *
read_number (const char *at, double *value)
{
  char *end;

  *value = strtod (at, &end); /* NaN and Infinity too */
  return end != at ? end : NULL;
}

/* One object of numbers. */
static const char *
read_line (const char *at, TdObservation *line)
{
  char key[600];
  double value;

  if (*at != '{')
    return NULL;
  at = skip_space (at + 1);
  while (*at != '}')
    {
      at = read_key (at, key, sizeof key);
      if (at == NULL || *(at = skip_space (at)) != ':'
          || (at = read_number (skip_space (at + 1), &value)) == NULL)
        return NULL;
      td_observation_add (line, key, value, 1);
      at = skip_space (at);
      if (*at == ',')
        at = skip_space (at + 1);
      else if (*at != '}')
        return NULL;
    }
  return at + 1;
}

/* Lines of a JSON text; what cannot be read ends them. */
static bool
read_json (LogReport *log, const char *at)
{
  at = skip_space (at);
  if (*at != '[')
    return false;
  for (at = skip_space (at + 1); *at != ']';)
    {
      at = read_line (at, new_line (log));
      if (at == NULL)
        return false;
      at = skip_space (at);
      if (*at == ',')
        at = skip_space (at + 1);
      else if (*at != ']')
        return false;
    }
  return true;
}

static void
lines_loaded (void *self)
{
  LogReport *log = self;

  clear_lines (log);
  if (log->loaded != NULL && !read_json (log, log->loaded))
    td__fail (TD_ERR_IO, "LogReport", NULL,
              "the snapshot's log is not a list of objects of "
              "numbers");
  free (log->loaded);
  log->loaded = NULL;
}

static void
log_serialize (void *self, TdSerializer *s)
{
  LogReport *log = self;
  TdText text = { NULL, 0, 0 };

  td_serializer_enter (s, "_trigger");
  td__trigger_serialize (log->trigger, s);
  td_serializer_leave (s);
  td__observation_serialize (&log->summary, s, "_summary");
  if (td_serializer_loading (s))
    {
      td_serialize_text (s, "_log", &log->loaded);
      td_serializer_finally (s, lines_loaded, log);
      return;
    }
  add_json (&text, log);
  td_serialize_text (s, "_log", &text.text);
  free (text.text);
}

static void
log_free (void *self)
{
  LogReport *log = self;

  td__keys_free (log->keys);
  td__trigger_drop (log->trigger);
  td_observation_clear (&log->summary);
  clear_lines (log);
  free (log->filename);
  free (log->loaded);
}

static const TdExtensionClass log_class = { .size = sizeof (TdExtensionClass),
                                            .name = "LogReport",
                                            .self_bytes = sizeof (LogReport),
                                            .priority = TD_PRIORITY_READER,
                                            .call = log_call,
                                            .serialize = log_serialize,
                                            .free = log_free };

TdExtension *
td_ext_log_report_ (TdLogReportOpt o)
{
  TdTrigger *trigger;
  TdExtension *x;
  LogReport *log;

  if (td__check_thread ("td_ext_log_report") != TD_OK)
    return td__extension_inert ();
  trigger = td__trigger_or (o.trigger, 1, "epoch", "td_ext_log_report");
  if (trigger == NULL)
    return td__extension_inert ();
  x = td_extension_new (&log_class);
  log = x->self;
  log->o = o;
  log->keys = o.keys != NULL ? td__keys_copy (o.keys) : NULL;
  log->filename = o.filename != NULL ? td__xstrdup (o.filename) : NULL;
  log->trigger = trigger;
  return x;
}

/* --- for others --- */

bool
td__is_log_report (const TdExtension *x)
{
  return x != NULL && !x->inert && x->cls == &log_class;
}

int
td_log_report_n_lines (TdExtension *x)
{
  return td__is_log_report (x) ? ((LogReport *)x->self)->n_lines : 0;
}

double
td_log_report_value (TdExtension *x, int line, const char *key)
{
  const LogReport *log = td__is_log_report (x) ? x->self : NULL;

  if (log == NULL || line < 0 || line >= log->n_lines)
    return (double)NAN;
  return td_observation_get (&log->lines[line], key).last;
}

bool
td__log_report_has (const TdExtension *x, int line, const char *key)
{
  return td_observation_get (&((const LogReport *)x->self)->lines[line], key).n > 0;
}
