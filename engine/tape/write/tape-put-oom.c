/* A report of memory that ran out, with its holders and the chains of references to them, to
 * the tape. SPDX-License-Identifier: MIT */
#include "td-tape-oom-way.h"
#include "writer-private.h"

#include <string.h>

void
td_tape_writer_oom_ways (TdTapeWriter *w, const TdTapeOom *oom, const TdTapeOomHolder *holders,
                         uint32_t n, const TdTapeOomLink *links, uint32_t n_links)
{
  const TdTapeOomLinks head = { sizeof *links, n_links };
  size_t bytes = n * sizeof *holders;
  struct
  {
    TdTapeOomHead head;
    TdTapeOom oom;
  } record
      = { { .oom_bytes = sizeof *oom, .holder_bytes = sizeof *holders, .n_holders = n }, *oom };
  char tail[TD_TAPE_MAX_OOM_HOLDERS * (sizeof *holders + TD_TAPE_MAX_OOM_LINKS * sizeof *links)
            + sizeof head];

  if (n > TD_TAPE_MAX_OOM_HOLDERS || n_links > n * TD_TAPE_MAX_OOM_LINKS)
    return;
  if (n > 0)
    memcpy (tail, holders, bytes);
  if (n_links > 0)
    {
      memcpy (tail + bytes, &head, sizeof head);
      memcpy (tail + bytes + sizeof head, links, n_links * sizeof *links);
      bytes += sizeof head + n_links * sizeof *links;
    }
  td__tape_append (w, TD_TAPE_SEGMENT_DEFS, TD_TAPE_FRAME_OOM, &record, sizeof record, tail,
                   bytes, 0, NULL);
}
