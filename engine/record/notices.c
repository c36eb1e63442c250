/* What is said about a run beside its events: words on the recording, and where it stands.
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"

#include <string.h>

void
td__recorder_info (TdRecorder *r, const char *key, const char *value)
{
  const uint32_t ids[2] = { td__recorder_string (r, key), td__recorder_string (r, value) };

  TD_RECORD (r, TdRawInfo, info, TD_RAW_INFO);
  memcpy (&info->key, ids, sizeof ids);
  TD_PUBLISH (r, info);
}

static uint64_t
stalled_ns (const TdRecorder *r)
{
  return atomic_load_explicit (&r->ring->shared->stalled_ns, memory_order_relaxed);
}

uint64_t
td__recorder_measures (TdRecorder *r)
{
  r->cost.stalled_ns = stalled_ns (r);
  return td_ring_ticks ();
}

void
td__recorder_spent (TdRecorder *r, uint64_t ticks, uint64_t n)
{
  TdRecordingCost *c = &r->cost;
  TdRingShared *shared = r->ring->shared;
  const double tick = shared->ns_per_tick > 0 ? shared->ns_per_tick : 1;
  const uint64_t now = td_ring_ticks (), all_ns = stalled_ns (r);
  const uint64_t stalled = (uint64_t)((double)(all_ns - c->stalled_ns) / tick);

  if (c->began == 0)
    c->began = now - ticks;
  c->spent += n * (ticks - (stalled < ticks ? stalled : ticks));
  atomic_store_explicit (&shared->cost_ticks, c->spent + (uint64_t)((double)all_ns / tick),
                         memory_order_relaxed);
  atomic_store_explicit (&shared->ran_ticks, now - c->began - c->stood, memory_order_relaxed);
}

void
td__recorder_stopped (TdRecorder *r, const char *reason, const TdSite *site)
{
  r->cost.stopped_at = td_ring_ticks ();
  if (!r->writes)
    return;
  td__recorder_poll_async (r, TD_ASYNC_WAIT);
  uint32_t text = td__recorder_string (r, reason), id = td__recorder_site (r, site);
  TD_RECORD (r, TdRawStopped, s, TD_RAW_STOPPED);
  s->reason = text;
  s->site = id;
  TD_PUBLISH (r, s);
}

void
td__recorder_resumed (TdRecorder *r)
{
  r->cost.stood += td_ring_ticks () - r->cost.stopped_at;
  if (!r->writes)
    return;
  TD_RECORD (r, TdRawStopped, s, TD_RAW_RESUMED);
  s->reason = s->site = 0;
  TD_PUBLISH (r, s);
}

void
td__recorder_notice (TdRecorder *r, const char *text)
{
  uint32_t id = td__recorder_string (r, text);
  TD_RECORD (r, TdRawNotice, n, TD_RAW_NOTICE);
  n->head.flags = TD_TAPE_NOTICE_RECORDING;
  n->status = 0;
  n->text = id;
  n->op = n->site = 0;
  n->ticks = td_ring_ticks ();
  TD_PUBLISH (r, n);
}
