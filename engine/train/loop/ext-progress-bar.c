/* ProgressBar: how far training is, on a terminal in place and elsewhere as lines; for the app
 * as a report "progress" of the recording.
 *
 * *Source*: chainer.training.extensions.ProgressBar.
 * SPDX-License-Identifier: MIT */
#include "text.h"
#include "trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
  N_TIMES = 20 /* drawings over which the speed is taken */
};

typedef struct
{
  TdProgressBarOpt o;
  bool by_epoch, is_terminal, is_drawn;
  double length;
  double time[N_TIMES];
  int64_t iteration[N_TIMES];
  int n_times;
} ProgressBar;

static void
add_bar (TdText *text, const ProgressBar *p, const char *name, double rate)
{
  int marks = (int)(rate * p->o.bar_length);

  td__text_add (text, "%10s [", name);
  for (int i = 0; i < p->o.bar_length; i++)
    td__text_add (text, "%c", i < marks ? '#' : '.');
  td__text_add (text, "] %6.2f%%", rate * 100);
}

/* Iterations a second since the oldest of the last drawings; 0: not known yet. */
static double
speed (ProgressBar *p, int64_t iteration)
{
  double now = td__train_clock ();
  int n;

  if (p->n_times == N_TIMES)
    {
      memmove (p->time, p->time + 1, (N_TIMES - 1) * sizeof *p->time);
      memmove (p->iteration, p->iteration + 1, (N_TIMES - 1) * sizeof *p->iteration);
      p->n_times--;
    }
  n = p->n_times++;
  p->time[n] = now;
  p->iteration[n] = iteration;
  if (n == 0 || !(now > p->time[0]))
    return 0;
  return (double)(iteration - p->iteration[0]) / (now - p->time[0]);
}

static double
seconds_left (const ProgressBar *p, const TdUpdater *u, double rate, double per_second)
{
  double done = p->by_epoch ? td_updater_epoch_detail (u) : (double)u->iteration;

  if (per_second <= 0 || done <= 0 || u->iteration == 0)
    return 0;
  return rate >= 1 ? 0 : (double)u->iteration * (p->length - done) / done / per_second;
}

static void
add_status (TdText *text, const ProgressBar *p, const TdUpdater *u)
{
  td__text_add (text, "%10lld iter, %lld epoch / %g %ss", (long long)u->iteration,
                (long long)td_updater_epoch (u), p->length,
                p->by_epoch ? "epoch" : "iteration");
}

static void
add_speed (TdText *text, double per_second, double left)
{
  if (per_second > 0)
    td__text_add (text, "%10.5g iters/sec. Estimated time to finish: %d:%02d:%02d.", per_second,
                  (int)(left / 3600), (int)(left / 60) % 60, (int)left % 60);
}

static void
draw (ProgressBar *p, const TdUpdater *u, double rate)
{
  double per_second = speed (p, u->iteration), detail = td_updater_epoch_detail (u);
  double left = seconds_left (p, u, rate, per_second);
  TdText text = { NULL, 0, 0 };

  if (p->is_terminal)
    {
      td__text_add (&text, "\033[J");
      add_bar (&text, p, "total", rate);
      td__text_add (&text, "\n");
      add_bar (&text, p, "this epoch", detail - floor (detail));
      td__text_add (&text, "\n");
      add_status (&text, p, u);
      td__text_add (&text, "\n");
      add_speed (&text, per_second, left);
      td__text_add (&text, "\n\033[4A"); /* back, so that whoever prints writes over it */
    }
  else
    {
      add_bar (&text, p, "total", rate);
      add_status (&text, p, u);
      add_speed (&text, per_second, left);
      td__text_add (&text, "\n");
    }
  fflush (NULL);
  if (write (p->o.fd, text.text, text.n) >= 0)
    p->is_drawn = true;
  free (text.text);
}

static void
bar_initialize (void *self, TdTrainer *t)
{
  ProgressBar *p = self;

  if (p->length <= 0 && !td__trigger_length (t->stop, &p->length, &p->by_epoch))
    td__fail (TD_ERR_ARG, "ProgressBar", NULL,
              "the trainer's stop trigger does not say how long training is: give "
              ".training_length");
}

static TdStatus
bar_call (void *self, TdTrainer *t)
{
  ProgressBar *p = self;
  const TdUpdater *u = t->updater;
  TdObserver *observer = td__engine.observer;
  double rate;

  if (u->iteration % p->o.update_interval != 0)
    return TD_OK;
  rate = (p->by_epoch ? td_updater_epoch_detail (u) : (double)u->iteration) / p->length;
  rate = fmin (rate, 1);
  if (observer != NULL) /* not an observation: it is no result of the model */
    observer->report (observer, "progress", rate);
  draw (p, u, rate);
  return TD_OK;
}

static void
bar_finalize (void *self, TdTrainer *t)
{
  ProgressBar *p = self;

  (void)t;
  if (p->is_terminal && p->is_drawn && write (p->o.fd, "\033[J", 3) < 0)
    p->is_drawn = false;
}

static const TdExtensionClass bar_class = { .size = sizeof (TdExtensionClass),
                                            .name = "ProgressBar",
                                            .self_bytes = sizeof (ProgressBar),
                                            .priority = TD_PRIORITY_READER,
                                            .initialize = bar_initialize,
                                            .call = bar_call,
                                            .finalize = bar_finalize };

TdExtension *
td_ext_progress_bar_ (TdProgressBarOpt o)
{
  bool by_epoch = o.unit != NULL && strcmp (o.unit, "epoch") == 0;
  TdExtension *x;
  ProgressBar *p;

  if (td__check_thread ("td_ext_progress_bar") != TD_OK)
    return td__extension_inert ();
  if (o.update_interval < 1 || o.bar_length < 1 || o.bar_length > 1000
      || !(o.training_length >= 0) || o.unit == NULL
      || (!by_epoch && strcmp (o.unit, "iteration") != 0))
    {
      td__fail (TD_ERR_ARG, "td_ext_progress_bar", NULL,
                "a length of \"iteration\" or \"epoch\", an interval above 0 and a bar of 1 to "
                "1000 expected");
      return td__extension_inert ();
    }
  x = td_extension_new (&bar_class);
  p = x->self;
  p->o = o;
  p->by_epoch = by_epoch;
  p->length = o.training_length;
  p->is_terminal = isatty (o.fd) == 1;
  return x;
}
