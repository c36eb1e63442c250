/* Requests on a tape: those that ask for it, and those that took long, which are run once more.
 * Each is an iteration, with the values of all arrays.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include "record/on-demand.h"
#include "train/links/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
  SLOW_EVERY_MS = 1000 /* under load every request is slow, and running it again is load */
};

/* What the program was started with is not to record, or stop, a server. */
static void
forget_recorder (void)
{
  static const char *const names[]
      = { "TAPEDECK_RING",  "TAPEDECK_CONTROL",   "TAPEDECK_TAPE",      "TAPEDECK_LEVEL",
          "TAPEDECK_BREAK", "TAPEDECK_KEYFRAMES", "TAPEDECK_ITERATIONS" };

  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    unsetenv (names[i]);
}

bool
td_serve_record_begin (const TdServeOptions *o)
{
  int fd;

  forget_recorder ();
  if (o->record == NULL)
    return true;
  fd = open (o->record, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0)
    {
      fprintf (stderr, "tapedeck: %s: %s\n", o->record, strerror (errno));
      return false;
    }
  close (fd);
  unlink (o->record); /* the engine makes it */
  return setenv ("TAPEDECK_TAPE", o->record, 1) == 0
         && setenv ("TAPEDECK_LEVEL", "values", 1) == 0;
}

bool
td_serve_records (void)
{
  return td__record_is_there ();
}

void
td_serve_record_ready (int argc, char **argv)
{
  char text[4096] = "tapedeck";
  size_t used = strlen (text);

  if (!td_serve_records ())
    return;
  for (int i = 0; i < argc && used < sizeof text; i++)
    used += (size_t)snprintf (text + used, sizeof text - used, " %s", argv[i]);
  td__record_info ("program", "tapedeck serve");
  td__record_info ("argv", text);
  td__record_info ("device", "cpu");
  if (getcwd (text, sizeof text) != NULL)
    td__record_info ("cwd", text);
  if (gethostname (text, sizeof text) == 0)
    td__record_info ("host", text);
  td__record_pause ();
}

/* The tape has its parameters, by the names that it has in place of the old one; of a file that
 * cannot be loaded it has nothing. */
TdServeModel *
td_serve_record_load (const char *path, TdServeModel *old, char *why)
{
  TdServeModel *m;

  if (td_serve_records ())
    td__record_try ();
  m = td_serve_model_load (path, why);
  if (td_serve_records ())
    {
      td__record_tried (m != NULL);
      td__record_resume ();
    }
  if (m != NULL)
    td__link_replace (m->link, old != NULL ? old->link : NULL);
  if (td_serve_records ())
    td__record_pause ();
  return m;
}

void
td_serve_record_free (TdServeModel *m)
{
  if (td_serve_records ())
    td__record_resume ();
  td_serve_model_free (m);
  if (td_serve_records ())
    td__record_pause ();
}

/* A word on the tape, the call, and all of it there for a window that has the tape open. */
static int
call (TdServeModel *m, uint64_t label, const TdServeArray *in, TdServeArray *out, char *why,
      const char *note, int64_t *iteration)
{
  static bool said;
  const char *trouble;
  int status;

  td__record_resume ();
  status = td_serve_model_call (m, label, note, in, out, why);
  td__record_pause ();
  *iteration = td__record_iteration ();
  trouble = td__record_flush ();
  if (trouble != NULL && !said)
    fprintf (stderr, "tapedeck: serve: nothing is recorded any more: %s\n", trouble);
  said = said || trouble != NULL;
  if (trouble != NULL)
    *iteration = -1;
  else
    td_serve_count (TD_SERVE_RECORDED);
  return status;
}

int
td_serve_record_call (TdServeRequest *r)
{
  char note[80];

  snprintf (note, sizeof note, "request %llu asked to be recorded",
            (unsigned long long)r->number);
  return call (r->model, r->number, r->in, r->out, r->why, note, &r->iteration);
}

/* --- slow ones -----------------------------------------------------------------------------
 */

/* A copy of what ran, since its requests go to their clients first. */
static struct
{
  TdServeModel *model; /* NULL: none */
  uint64_t label;
  TdServeArray in[TD_SERVE_MOST_PORTS];
  char note[200];
} slow;

static uint64_t
took_ns (const TdServeRequest *r)
{
  return r->ended_ns - r->queued_ns;
}

void
td_serve_slow_keep (TdServeRequest *const *batch, int n, bool gathered, const TdServeOptions *o)
{
  static uint64_t last_ns;
  int slowest = 0;

  for (int k = 1; k < n; k++)
    if (took_ns (batch[k]) > took_ns (batch[slowest]))
      slowest = k;
  const TdServeRequest *r = batch[slowest];
  if (!td_serve_records () || !o->records_slow || r->record || r->status != 200
      || took_ns (r) < o->record_slow_ms * 1000000u
      || (last_ns != 0 && r->ended_ns - last_ns < SLOW_EVERY_MS * (uint64_t)1000000)
      || !td_serve_gather (gathered ? batch : &batch[slowest], gathered ? n : 1, slow.in))
    return;
  last_ns = r->ended_ns;
  slow.model = r->model;
  slow.label = r->number;
  snprintf (slow.note, sizeof slow.note,
            "request %llu waited %.1f ms and ran %.1f ms, with %d beside it: run again",
            (unsigned long long)r->number, (double)(r->began_ns - r->queued_ns) / 1e6,
            (double)(r->ended_ns - r->began_ns) / 1e6, gathered ? n - 1 : 0);
}

void
td_serve_slow_record (void)
{
  TdServeArray out[TD_SERVE_MOST_PORTS] = { 0 };
  char why[TD_SERVE_WHY];
  int64_t iteration;

  if (slow.model == NULL)
    return;
  call (slow.model, slow.label, slow.in, out, why, slow.note, &iteration);
  td_serve_clear (slow.in, slow.model->ports.n_in);
  td_serve_clear (out, slow.model->ports.n_out);
  slow.model = NULL;
}

void
td_serve_record_end (void)
{
  if (td_serve_records ())
    td__record_resume ();
}
