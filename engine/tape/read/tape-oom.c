/* Memory that ran out: the facts that readers make of an OOM frame.
 * SPDX-License-Identifier: MIT */
#include "tape-oom.h"
#include "bytes-text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const TdTapeOomHolder *
td_tape_reader_oom_holders (const TdTapeReader *r, uint32_t i)
{
  const TdTapeOom *oom = td_tape_reader_oom (r, i);

  return oom != NULL && oom->n_holders > 0
             ? (const TdTapeOomHolder *)r->oom_holders.items + oom->first_holder
             : NULL;
}

uint64_t
td__tape_oom_capacity (const TdTapeOom *oom)
{
  if (oom->limit_bytes != 0)
    return oom->limit_bytes;
  return oom->device_bytes > oom->outside_bytes ? oom->device_bytes - oom->outside_bytes : 0;
}

uint64_t
td__tape_oom_missing (const TdTapeOom *oom)
{
  const uint64_t capacity = td__tape_oom_capacity (oom);
  const uint64_t asked = td__tape_block_bytes (oom->asked_bytes),
                 needs = oom->live_bytes + oom->pending_bytes + asked;

  if (capacity != 0 && needs > capacity)
    return needs - capacity < asked ? needs - capacity : asked;
  /* There would be room, but not in one piece; or nobody knows how much there is. */
  return capacity != 0 && oom->largest_free_bytes < asked ? asked - oom->largest_free_bytes
                                                          : asked;
}

const TdTapeIteration *
td__tape_oom_iteration (TdTapeReader *r, const TdTapeOom *oom)
{
  const TdTapeIteration *it;
  char error[128];

  if (!(oom->flags & TD_TAPE_OOM_ITERATION))
    return NULL;
  it = td_tape_iteration_load (r, oom->iteration, error, sizeof error);
  if (it != NULL)
    return it;
  it = td_tape_reader_live (r);
  if (it != NULL && it->number == oom->iteration)
    return it;
  td_tape_iteration_free (it);
  return NULL;
}

void
td_tape_oom_sentence (const TdTapeReader *r, uint32_t i, char *out, size_t n)
{
  const TdTapeOom *oom = td_tape_reader_oom (r, i);
  char site[200], asked[32], live[32], capacity[32], where[64] = "";
  const char *path;
  bool imported;

  *out = '\0';
  if (oom == NULL)
    return;
  imported = oom->flags & TD_TAPE_OOM_IMPORTED;
  path = td_tape_reader_path_text (r, oom->path);
  td_tape_reader_site_text (r, oom->site, site, sizeof site);
  if (oom->flags & TD_TAPE_OOM_ITERATION)
    snprintf (where, sizeof where, "iteration %" PRIu64 ", event %" PRIu32 ": ", oom->iteration,
              oom->event);
  snprintf (out, n, "%s%s%s%.60s%s%.80s%s%s wanted %s on %.40s; %s live", where,
            imported ? "" : td_tape_phase_name (oom->phase), imported ? "" : " ",
            td_tape_reader_string (r, oom->op), *path ? " of " : "", path, *site ? " at " : "",
            site, td__bytes_text (oom->asked_bytes, asked),
            td_tape_reader_string (r, oom->device_name),
            td__bytes_text (oom->live_bytes, live));
  if (td__tape_oom_capacity (oom) != 0)
    snprintf (out + strlen (out), n - strlen (out), ", %s %s",
              oom->limit_bytes != 0 ? "limit" : "of",
              td__bytes_text (td__tape_oom_capacity (oom), capacity));
}
