/* What a program that records itself says when the recording comes to an end before it.
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"

#include <stdio.h>

void
td__recorder_say_trouble (TdRecorder *r)
{
  const char *error = td_tape_writer_error (r->writer);

  if (error == NULL || td__engine.recording_failed)
    return;
  fprintf (stderr, "tapedeck: %s: %s; the program runs on unrecorded\n",
           r->tape != NULL ? r->tape : "the tape", error);
  td__engine.recording_failed = true;
}
