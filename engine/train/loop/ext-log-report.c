/* LogReport: means of what was reported, line by line, as JSON.
 *
 * *Source*: chainer.training.extensions.LogReport.
 * SPDX-License-Identifier: MIT */
#include "log-report.h"
#include "host-memory.h"
#include "json.h"
#include "json-read.h"

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

/* As Chainer writes it: Python reads it, too. */
static TdJsonText
to_json (const LogReport *log)
{
  TdJsonText text = { 0 };
  TdJsonWriter json;

  td__json_write (&json, td__json_put_text, &text, TD_JSON_PYTHON);
  td__json_begin_array (&json);
  for (int i = 0; i < log->n_lines; i++)
    {
      const TdObservation *line = &log->lines[i];

      td__json_begin_object (&json);
      for (int k = 0; k < line->n_entries; k++)
        {
          const char *key = line->entries[k].key;
          const double value = line->entries[k].last;

          if (is_whole (key) && isfinite (value))
            td__json_member_int (&json, key, (int64_t)value);
          else
            td__json_member_double (&json, key, value);
        }
      td__json_end_object (&json);
    }
  td__json_end_array (&json);
  return text;
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
  TdStatus status;
  TdJsonText text;
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
  text = to_json (log);
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

/* One object of numbers, of which the begin has come. */
static bool
read_line (TdJsonReader *r, TdObservation *line)
{
  char key[600];
  double value;

  while (td__json_next (r) == TD_JSON_KEY)
    {
      const size_t n = td__json_text (r, key, sizeof key);

      td__json_next (r);
      if (n == 0 || n >= sizeof key || !td__json_number (r, &value))
        return false;
      td_observation_add (line, key, value, 1);
    }
  return r->token == TD_JSON_OBJECT_END;
}

/* Lines of a JSON text; what cannot be read ends them. */
static bool
read_json (LogReport *log, const char *text)
{
  TdJsonReader r;

  td__json_read_python (&r, text, strlen (text));
  if (td__json_next (&r) != TD_JSON_ARRAY)
    return false;
  while (td__json_next (&r) == TD_JSON_OBJECT)
    if (!read_line (&r, new_line (log)))
      return false;
  return r.token == TD_JSON_ARRAY_END && td__json_next (&r) == TD_JSON_END;
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
  TdJsonText text;

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
  text = to_json (log);
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
  return !td__stranger ("td_log_report_n_lines") && td__is_log_report (x)
             ? ((LogReport *)x->self)->n_lines
             : 0;
}

double
td_log_report_value (TdExtension *x, int line, const char *key)
{
  const bool asks = !td__stranger ("td_log_report_value");
  const LogReport *log = asks && td__is_log_report (x) ? x->self : NULL;

  if (log == NULL || line < 0 || line >= log->n_lines)
    return (double)NAN;
  return td_observation_get (&log->lines[line], key).last;
}

bool
td__log_report_has (const TdExtension *x, int line, const char *key)
{
  return td_observation_get (&((const LogReport *)x->self)->lines[line], key).n > 0;
}
