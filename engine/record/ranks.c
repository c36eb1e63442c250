/* Recording what a rank has to do with the others: when it waits for them, and the sums that
 * they are compared by.
 *
 * A wait is written when it begins and again when it ends, so that a program that never comes
 * back has it on its tape.  Waits outside iterations are recorded with the next one, as copies
 * are: ranks find each other, and send weights, before they train.
 *
 * SPDX-License-Identifier: MIT */
#include "compute/core/rank-notes.h"
#include "agent/agent.h"
#include "recorder.h"

#include <stdio.h>
#include <string.h>

/* The tape's numbers are the engine's. */
_Static_assert((int)TD_WAIT_MEET == (int)TD_TAPE_WAIT_MEET
                   && (int)TD_WAIT_RECEIVE == (int)TD_TAPE_WAIT_RECEIVE,
               "TdWaitKind is TdTapeWait");
_Static_assert((int)TD_RANK_SUM_PARAMETER == (int)TD_TAPE_SUM_PARAMETER
                   && (int)TD_RANK_SUM_NUMBER == (int)TD_TAPE_SUM_NUMBER,
               "TdRankSumKind is TdTapeSumKind");

static void
put (TdRecorder *r, const TdRawWait *wait)
{
  TdRawWait *to = td_ring_reserve (r->ring, sizeof *to);

  *to = *wait;
  td_ring_publish (r->ring, sizeof *to);
}

static TdRawWait
raw_of (TdRecorder *r, const TdWait *wait)
{
  const TdSite *site = wait->site != NULL ? wait->site : td__engine.site;
  TdRawWait raw;

  memset (&raw, 0, sizeof raw);
  raw.head = (TdRawHead){ sizeof raw, TD_RAW_WAIT, 0 };
  raw.wait.comm = wait->comm;
  raw.wait.seq = wait->seq;
  raw.wait.bytes = wait->bytes;
  raw.wait.site = td__recorder_site (r, site);
  raw.wait.call = td__recorder_string (r, wait->call);
  raw.wait.rank = (uint32_t)wait->rank;
  raw.wait.size = (uint32_t)wait->size;
  raw.wait.peer = wait->peer;
  raw.wait.wait = (uint8_t)wait->kind;
  raw.wait.flags = (uint8_t)((wait->whole ? TD_TAPE_COLLECTIVE_WHOLE : 0)
                             | (wait->failed ? TD_TAPE_COLLECTIVE_FAILED : 0));
  return raw;
}

/* Of an iteration, as the update is that takes it. */
static void
put_behind (TdRecorder *r, const TdWait *wait)
{
  TdRawWait raw = raw_of (r, wait);

  td__recorder_ensure_iteration (r);
  raw.start = wait->behind[0];
  raw.end = wait->behind[1];
  raw.wait.flags |= TD_TAPE_COLLECTIVE_BEHIND;
  put (r, &raw);
}

uint64_t
td__recorder_clock (void)
{
  return td_ring_ticks ();
}

/* All have come to the end: it would be an iteration of its own, after the last, with nothing
 * else in it. */
static bool
is_goodbye (const TdWait *wait)
{
  return !wait->failed && wait->kind == TD_WAIT_MEET && wait->whole
         && strcmp (wait->call, "td_finish") == 0;
}

void
td__recorder_wait (TdObserver *o, const TdWait *wait, bool ended)
{
  TdRecorder *r = (TdRecorder *)(void *)o;
  TdRawWait raw;

  if (r->agent != NULL && !ended && wait->whole && wait->kind == TD_WAIT_MEET)
    td__agent_calls_all (r->agent, wait->seq, r->n_events);
  if (!r->writes)
    return;
  if (wait->behind[1] != 0)
    {
      put_behind (r, wait);
      return;
    }
  if (!ended)
    r->wait_began = td_ring_ticks ();
  raw = raw_of (r, wait);
  raw.start = r->wait_began;
  raw.end = ended ? td_ring_ticks () : 0;
  if (r->in_iteration)
    {
      put (r, &raw);
      return;
    }
  if (is_goodbye (wait))
    return;
  raw.wait.flags |= TD_TAPE_COLLECTIVE_BEFORE;
  if (!ended) /* only what came to an end: there is no iteration that it could be part of */
    return;
  if (r->n_early_waits == TD_EARLY_COPIES)
    {
      raw.wait.flags &= (uint8_t)~TD_TAPE_COLLECTIVE_BEFORE;
      td__recorder_ensure_iteration (r);
      put (r, &raw);
    }
  else
    r->early_waits[r->n_early_waits++] = raw;
}

void
td__recorder_early_waits (TdRecorder *r)
{
  for (int i = 0; i < r->n_early_waits; i++)
    put (r, &r->early_waits[i]);
  r->n_early_waits = 0;
}

/* "l1/W", and of a state "l1/W/m". */
static uint32_t
path_of (TdRecorder *r, const TdRankSum *sum)
{
  char path[320];

  if (sum->state == NULL)
    return td__recorder_string (r, sum->path);
  snprintf (path, sizeof path, "%.280s/%.30s", sum->path, sum->state);
  return td__recorder_string (r, path);
}

bool
td__recorder_rank_sum (TdObserver *o, const TdRankSum *sum)
{
  TdRecorder *r = (TdRecorder *)(void *)o;
  TdRawRankSum *raw;
  uint32_t path, written;

  if (!r->writes || sum == NULL)
    return r->writes;
  td__recorder_ensure_iteration (r);
  path = path_of (r, sum);
  written = sum->written != NULL ? td__recorder_site (r, sum->written) : 0;
  raw = td_ring_reserve (r->ring, sizeof *raw);
  memset (raw, 0, sizeof *raw);
  raw->head = (TdRawHead){ sizeof *raw, TD_RAW_RANK_SUM, 0 };
  memcpy (raw->sum.sum, sum->sum, sizeof sum->sum);
  if (sum->kind == TD_RANK_SUM_NUMBER)
    memcpy (&raw->sum.sum[0], &sum->number, sizeof sum->number);
  else
    raw->sum.sample = sum->number;
  raw->sum.at = sum->at;
  raw->sum.size = sum->size;
  raw->sum.n_not_finite = sum->not_finite;
  raw->sum.path = path;
  raw->sum.kind = (uint8_t)sum->kind;
  raw->sum.flags = (uint8_t)((sum->absent ? TD_TAPE_SUM_ABSENT : 0)
                             | (sum->left_out ? TD_TAPE_SUM_LEFT_OUT : 0)
                             | (sum->half ? TD_TAPE_SUM_HALF : 0)
                             | (sum->spoiled ? TD_TAPE_SUM_SPOILED : 0));
  raw->sum.n_averaged = sum->kind == TD_RANK_SUM_MEAN ? (uint32_t)sum->n_averaged : written;
  td_ring_publish (r->ring, sizeof *raw);
  return true;
}
