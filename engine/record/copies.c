/* Recording copies between host and devices.
 *
 * Copies outside iterations are recorded with the next one, which they are nearly always made
 * for: parameters, data, loaded files.  Those after the last iteration get one of their own.
 *
 * SPDX-License-Identifier: MIT */
#include "compute/core/copies.h"
#include "recorder.h"

#include <string.h>

static void
put (TdRecorder *r, const TdRawCopy *copy)
{
  TdRawCopy *to = td_ring_reserve (r->ring, sizeof *to);

  *to = *copy;
  td_ring_publish (r->ring, sizeof *to);
  r->n_copies++;
}

uint64_t
td__recorder_copying (TdObserver *o, TdDevice *device)
{
  TdRecorder *r = (TdRecorder *)(void *)o;

  if (!r->writes)
    return 0;
  td__recorder_time_copy (r, device);
  return td_ring_ticks ();
}

void
td__recorder_copied (TdObserver *o, const TdCopy *copy)
{
  TdRecorder *r = (TdRecorder *)(void *)o;
  const TdSite *site = copy->site != NULL ? copy->site : td__engine.site;
  TdRawCopy raw;

  if (!r->writes)
    return;
  memset (&raw, 0, sizeof raw);
  raw.head = (TdRawHead){ sizeof raw, TD_RAW_COPY, 0 };
  raw.variable = copy->node != NULL ? copy->node->id : 0;
  raw.start = copy->began;
  raw.end = copy->began != 0 ? td_ring_ticks () : 0;
  raw.copy.bytes = copy->bytes;
  raw.copy.site = td__recorder_site (r, site);
  raw.copy.way = copy->way;
  raw.copy.why = copy->why;
  raw.copy.device = copy->device->number;
  raw.copy.flags = copy->unused ? TD_TAPE_COPY_UNUSED : 0;
  if (!r->in_iteration && r->n_early < TD_EARLY_COPIES)
    {
      raw.copy.flags |= TD_TAPE_COPY_BEFORE;
      r->early[r->n_early++] = raw;
      return;
    }
  td__recorder_ensure_iteration (r);
  put (r, &raw);
  if (copy->began != 0)
    td__recorder_time_copied (r);
}

void
td__recorder_early_copies (TdRecorder *r)
{
  r->n_copies = 0;
  for (int i = 0; i < r->n_early; i++)
    put (r, &r->early[i]);
  r->n_early = 0;
}
