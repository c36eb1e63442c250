/* The rig of the tape's tests.
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

void
rig_start (Rig *rig, const TdTapeWriterOptions *options)
{
  TdTapeWriterOptions own = { 0 };
  TdRingOptions ring_options = { .capacity = 1 << 20 };

  if (options != NULL)
    own = *options;
  rig->path = own.path ? own.path : td_test_tmp ("t.tdtape");
  rig->ring = td_ring_new (NULL, &ring_options, rig->error, sizeof rig->error);
  assert_non_null (rig->ring);
  td_ring_consume (rig->ring);
  own.size = sizeof own;
  own.path = rig->path;
  own.mono_ns = rig->ring->shared->mono_ns;
  rig->w = td_tape_writer_new (&own, rig->error, sizeof rig->error);
  if (rig->w == NULL)
    fail_msg ("%s", rig->error);
  rig->a = td_assembler_new (rig->w, rig->ring->shared);
  model_define (&rig->m, rig->ring);
}

void
rig_iterations (Rig *rig, int n)
{
  for (int i = 0; i < n; i++)
    {
      model_iteration (&rig->m);
      td_assembler_drain (rig->a, rig->ring);
    }
}

TdTapeReader *
rig_read (Rig *rig)
{
  if (rig->w != NULL)
    td_tape_writer_flush (rig->w);
  if (rig->r == NULL)
    rig->r = td_tape_reader_open (rig->path, rig->error, sizeof rig->error);
  else
    td_tape_reader_poll (rig->r);
  if (rig->r == NULL)
    fail_msg ("%s", rig->error);
  return rig->r;
}

const TdTapeIteration *
rig_load (Rig *rig, uint64_t number)
{
  const TdTapeIteration *it
      = td_tape_iteration_load (rig_read (rig), number, rig->error, sizeof rig->error);

  if (it == NULL)
    fail_msg ("%s", rig->error);
  return it;
}

void
rig_stop (Rig *rig, int status)
{
  if (status != -2)
    {
      td_assembler_drain (rig->a, rig->ring);
      td_assembler_end (rig->a, rig->ring, status, false);
    }
  td_assembler_free (rig->a);
  td_tape_writer_free (rig->w);
  rig->a = NULL;
  rig->w = NULL;
}

void
rig_clear (Rig *rig)
{
  if (rig->w != NULL)
    rig_stop (rig, 0);
  td_tape_reader_free (rig->r);
  td_ring_free (rig->ring);
  memset (rig, 0, sizeof *rig);
}

bool
rig_makes_golden (void (*record) (Rig *rig, const char *path))
{
  const char *path = getenv ("TD_MAKE_GOLDEN_TAPE");
  Rig rig = { .m = { .n_layers = 1 } };

  if (path == NULL)
    return false;
  record (&rig, path);
  rig_stop (&rig, 0);
  rig_clear (&rig);
  return true;
}
