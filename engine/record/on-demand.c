/* Recording of some iterations only: see on-demand.h.
 *
 * SPDX-License-Identifier: MIT */
#include "on-demand.h"

#include "recorder.h"

bool
td__record_is_there (void)
{
  return td__recorder != NULL && td__recorder->writer != NULL;
}

/* Allocations that wait for their event name a buffer, which may be gone when it comes. */
void
td__record_pause (void)
{
  if (td__engine.observer != &td__recorder->observer)
    return;
  td__recorder_flush_memory (td__recorder);
  td__engine.observer = NULL;
}

void
td__record_resume (void)
{
  td__engine.observer = &td__recorder->observer;
}

/* What the observer does while something is tried. */
static void
no_error (TdObserver *o, const TdError *error)
{
  (void)o;
  (void)error;
}

static void
no_param (TdObserver *o, const TdPath *path, const TdVar *param, bool learnt)
{
  (void)o;
  (void)path;
  (void)param;
  (void)learnt;
}

static TdObserver usual;

void
td__record_try (void)
{
  usual = td__recorder->observer;
  td__recorder->observer.error = no_error;
  td__recorder->observer.param = no_param;
  td__record_resume ();
}

void
td__record_tried (bool kept)
{
  td__recorder->observer = usual;
  if (!kept)
    td__recorder->n_pending = td__recorder->n_live = 0;
  td__record_pause ();
}

void
td__record_info (const char *key, const char *value)
{
  td__recorder_info (td__recorder, key, value);
}

void
td__record_note (const char *text)
{
  td__recorder_notice (td__recorder, text);
}

int64_t
td__record_iteration (void)
{
  return (int64_t)td__recorder->now->iteration;
}

const char *
td__record_flush (void)
{
  TdRecorder *r = td__recorder;

  td_assembler_drain (r->assembler, r->ring);
  td_tape_writer_flush (r->writer);
  return td_tape_writer_error (r->writer);
}
