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
