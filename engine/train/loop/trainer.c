/* The training loop: updates until the stop trigger fires, with extensions in between.
 *
 * *Source*: chainer.training.Trainer.
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static double
monotonic_seconds (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double (*td__train_clock) (void) = monotonic_seconds;

static TdTrainer *
inert_trainer (void)
{
  static TdTrainer inert = { .inert = true };

  return &inert;
}

bool (td__trainer_usable) (const TdTrainer *t, const char *call)
{
  if (td__stranger (call))
    return false;
  if (t != NULL && !t->inert)
    return true;
  td__fail (TD_ERR_STATE, call, NULL, "the trainer %s",
            t == NULL         ? "is NULL"
            : t->object.freed ? "was freed"
                              : "is inert");
  return false;
}

static void
trainer_free (void *object)
{
  TdTrainer *t = object;

  for (int i = 0; i < t->n_extended; i++)
    {
      td__extension_drop (t->extended[i].extension);
      td__trigger_drop (t->extended[i].trigger);
      free (t->extended[i].name);
    }
  free (t->extended);
  td__trigger_drop (t->stop);
  td__observation_bury (t->observation);
  free (t->out);
  *t = (TdTrainer){ .inert = true, .object.freed = true };
  td__shell_keep (t);
}

void
td_trainer_free (TdTrainer *t)
{
  if (td__stranger ("td_trainer_free") || t == NULL || t->inert || !td__engine.started)
    return;
  td__object_remove (&t->object);
  trainer_free (t);
}

TdTrainer *
td_trainer_new_ (TdUpdater *updater, TdTrigger *stop, TdTrainerOpt o)
{
  TdTrainer *t;

  if (td__check_thread ("td_trainer_new") != TD_OK)
    return inert_trainer ();
  if (updater == NULL || updater->inert || o.out == NULL || *o.out == '\0')
    {
      td__fail (TD_ERR_STATE, "td_trainer_new", NULL, "%s",
                updater == NULL         ? "the updater is NULL"
                : updater->object.freed ? "the updater was freed"
                : updater->inert        ? "the updater is inert: its constructor failed before"
                                        : "a folder for its files expected");
      return inert_trainer ();
    }
  stop = td__trigger_take (stop, "td_trainer_new");
  if (stop == NULL)
    return inert_trainer ();
  t = td__xcalloc (1, sizeof *t);
  t->updater = updater;
  t->stop = stop;
  t->out = td__xstrdup (o.out);
  t->observation = td__xcalloc (1, sizeof *t->observation);
  t->observation->is_recorded = true;
  t->started = -1;
  td__object_add (&t->object, trainer_free);
  return t;
}

/* --- extensions --- */

static TdExtended *
find_extended (const TdTrainer *t, const char *name)
{
  for (int i = 0; i < t->n_extended; i++)
    if (strcmp (t->extended[i].name, name) == 0)
      return &t->extended[i];
  return NULL;
}

/* The name, or the name with the first number that makes it a new one. */
static char *
free_name (const TdTrainer *t, const char *name)
{
  char room[300];

  snprintf (room, sizeof room, "%.250s", name);
  for (int i = 1; find_extended (t, room) != NULL; i++)
    snprintf (room, sizeof room, "%.250s_%d", name, i);
  return td__xstrdup (room);
}

TdStatus
td_trainer_extend_ (TdTrainer *t, TdExtension *x, TdExtendOpt o)
{
  TdTrigger *trigger;
  const char *name;

  if (!td__trainer_usable (t, "td_trainer_extend"))
    return td__error_status ();
  if (x == NULL || x->inert || x->owned)
    return td__fail (TD_ERR_STATE, "td_trainer_extend", NULL, "%s",
                     x == NULL         ? "the extension is NULL"
                     : x->object.freed ? "the extension was freed"
                     : x->inert        ? "the extension is inert: its constructor failed before"
                                       : "the extension belongs to a trainer already");
  name = o.name != NULL ? o.name : x->cls->name;
  if (strcmp (name, "training") == 0 || *name == '\0' || strchr (name, '/') != NULL)
    return td__fail (TD_ERR_ARG, "td_trainer_extend", NULL,
                     "\"%s\" is not a name for an extension", name);
  trigger
      = td__trigger_or (o.trigger, x->cls->period > 0 ? x->cls->period : 1,
                        x->cls->period > 0 ? x->cls->unit : "iteration", "td_trainer_extend");
  if (trigger == NULL)
    return td__error_status ();
  td__object_remove (&x->object);
  x->owned = true;
  t->extended = td__xrealloc (t->extended, (size_t)(t->n_extended + 1) * sizeof *t->extended);
  t->extended[t->n_extended]
      = (TdExtended){ .name = free_name (t, name),
                      .extension = x,
                      .trigger = trigger,
                      .priority = o.priority != 0 ? o.priority : x->cls->priority,
                      .call_before_training = o.call_before_training };
  t->n_extended++;
  return TD_OK;
}

TdExtension *
td_trainer_extension (TdTrainer *t, const char *name)
{
  TdExtended *at;

  if (!td__trainer_usable (t, "td_trainer_extension") || name == NULL)
    return NULL;
  at = find_extended (t, name);
  return at != NULL ? at->extension : NULL;
}

/* --- the loop --- */

/* Indices by falling priority; equal ones in the order of adding.  *Owner*: free (). */
static int *
calling_order (const TdTrainer *t)
{
  int *order = td__xcalloc ((size_t)t->n_extended, sizeof *order);

  for (int i = 0; i < t->n_extended; i++)
    {
      int k = i;

      for (; k > 0 && t->extended[order[k - 1]].priority < t->extended[i].priority; k--)
        order[k] = order[k - 1];
      order[k] = i;
    }
  return order;
}

static TdStatus
call_extension (TdTrainer *t, TdExtended *at)
{
  TdEngine *e = &td__engine;
  TdScope *scope = td_scope_open_at (at->name, e->site);
  TdStatus status = at->extension->cls->call (at->extension->self, t);

  td_scope_close (scope);
  if (status != TD_OK && !e->has_error)
    td__fail (status, at->name, e->site, "the extension says that it failed");
  return e->has_error ? e->error.status : TD_OK;
}

/* One iteration of the recording: the update, then the extensions whose time has come. */
static void
one_iteration (TdTrainer *t, const int *order, const TdSite *site)
{
  TdScope *scope = td__iteration_begin (t->updater->iteration, site);
  TdReportSave save;

  td_observation_clear (t->observation);
  save = td__report_push (t->observation);
  td_updater_update_at (t->updater, site);
  for (int i = 0; i < t->n_extended && !td__engine.has_error; i++)
    {
      TdExtended *at = &t->extended[order[i]];

      if (td_trigger_call (at->trigger, t) && !td__engine.has_error)
        call_extension (t, at);
    }
  td__report_pop (&save);
  td_scope_close (scope);
}

/* What comes before the first update. */
static void
begin (TdTrainer *t, const int *order)
{
  for (int i = 0; i < t->n_extended && !td__engine.has_error; i++)
    {
      TdExtension *x = t->extended[order[i]].extension;

      if (x->cls->load != NULL)
        x->cls->load (x->self, t);
    }
  for (int i = 0; i < t->n_extended && !td__engine.has_error; i++)
    {
      TdExtended *at = &t->extended[order[i]];

      if (at->extension->cls->initialize != NULL && !td_trigger_finished (at->trigger))
        at->extension->cls->initialize (at->extension->self, t);
    }
  for (int i = 0; i < t->n_extended && !td__engine.has_error; i++)
    if (t->extended[order[i]].call_before_training)
      call_extension (t, &t->extended[order[i]]);
}

static void
end (TdTrainer *t, const int *order)
{
  TdError error = td__engine.error;

  for (int i = 0; i < t->n_extended; i++)
    {
      TdExtension *x = t->extended[order[i]].extension;

      if (td__engine.has_error && x->cls->on_error != NULL)
        x->cls->on_error (x->self, t, &error);
    }
  for (int i = 0; i < t->n_extended; i++)
    {
      TdExtension *x = t->extended[order[i]].extension;

      if (x->cls->finalize != NULL)
        x->cls->finalize (x->self, t);
    }
  td__observation_drop_graphs (t->observation);
}

/* Make a folder and those above it. */
static bool
make_folders (const char *path)
{
  char *room = td__xstrdup (path);
  struct stat st;
  bool ok;

  for (char *at = room + 1; *at != '\0'; at++)
    if (*at == '/')
      {
        *at = '\0';
        mkdir (room, 0777);
        *at = '/';
      }
  ok = mkdir (room, 0777) == 0 || errno == EEXIST;
  free (room);
  if (ok && (stat (path, &st) != 0 || !S_ISDIR (st.st_mode)))
    {
      errno = ENOTDIR;
      ok = false;
    }
  return ok;
}

TdStatus
td_trainer_run_at (TdTrainer *t, const TdSite *site)
{
  TdEngine *e = &td__engine;
  const TdSite *outer = e->site, *here = site;
  static const TdSite nowhere = { "trainer", "td_trainer_run", 0 };
  int *order;

  if (td__check_thread ("td_trainer_run") != TD_OK || e->has_error
      || !td__trainer_usable (t, "td_trainer_run"))
    return e->has_error ? e->error.status : TD_ERR_STATE;
  if (t->done || e->in_iteration)
    return td__fail (TD_ERR_STATE, "td_trainer_run", site, "%s",
                     t->done ? "a trainer runs once" : "it opens iterations of its own");
  if (!make_folders (t->out))
    return td__fail (TD_ERR_IO, "td_trainer_run", site, "%.400s: %s", t->out,
                     strerror (errno)); /* NOLINT(concurrency-mt-unsafe) */
  if (here == NULL)
    here = e->site != NULL ? e->site : &nowhere;
  e->site = here;
  t->started = td__train_clock ();
  order = calling_order (t);
  begin (t, order);
  while (!e->has_error && !td_trigger_call (t->stop, t) && !e->has_error)
    one_iteration (t, order, here);
  end (t, order);
  free (order);
  t->elapsed_before = td_trainer_elapsed_time (t);
  t->started = -1;
  t->done = true;
  e->site = outer;
  return e->has_error ? e->error.status : TD_OK;
}

TdStatus (td_trainer_run) (TdTrainer *t)
{
  return td_trainer_run_at (t, NULL);
}

/* --- what it knows --- */

TdUpdater *
td_trainer_updater (TdTrainer *t)
{
  return td__trainer_usable (t, "td_trainer_updater") ? t->updater : NULL;
}

TdObservation *
td_trainer_observation (TdTrainer *t)
{
  return td__trainer_usable (t, "td_trainer_observation") ? t->observation : NULL;
}

const char *
td_trainer_out (const TdTrainer *t)
{
  return !td__stranger ("td_trainer_out") && t != NULL && !t->inert ? t->out : "";
}

double
td_trainer_elapsed_time (const TdTrainer *t)
{
  if (td__asked ("td_trainer_elapsed_time") || t == NULL || t->inert)
    return 0;
  return t->elapsed_before + (t->started >= 0 ? td__train_clock () - t->started : 0);
}
