/* What `info` says of a tape that was made of a memory snapshot, or of a trace.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"
#include "plural.h"
#include "td-tape-import.h"

#include <inttypes.h>
#include <string.h>

bool
td__tape_is_import (const TdTapeReader *r)
{
  return strcmp (td_tape_reader_info (r, TD_TAPE_IMPORT_KEY), TD_TAPE_IMPORT_TORCH) == 0;
}

bool
td__tape_is_trace (const TdTapeReader *r)
{
  return strcmp (td_tape_reader_info (r, TD_TAPE_IMPORT_KEY), TD_TAPE_IMPORT_TRACE) == 0;
}

void
td__tape_info_import (TdTapeReader *r, FILE *out)
{
  const TdTapeSummaries s = td_tape_reader_summaries (r);
  const char *allocator = td_tape_reader_info (r, "allocator");

  fputs ("snapshot         ", out);
  td__tape_put_line (out, td_tape_reader_info (r, "program"));
  fputs ("\n                 of PyTorch's memory: blocks and a trace, no operations\n", out);
  if (*allocator != '\0')
    {
      fputs ("allocator        ", out);
      td__tape_put_line (out, allocator);
      fputc ('\n', out);
    }
  fprintf (out, "trace            %u %s, %" PRIu64 ".%03" PRIu64 " s\n",
           s.n > 0 ? s.rows[0].n_events : 0,
           td_plural (s.n > 0 ? s.rows[0].n_events : 0, "event", "events"),
           s.n > 0 ? s.rows[0].duration_ns / 1000000000 : 0,
           s.n > 0 ? s.rows[0].duration_ns / 1000000 % 1000 : 0);
  fprintf (out, "peak             %" PRIu64 " bytes\n", s.n > 0 ? s.rows[0].peak_bytes : 0);
  td__tape_info_devices (r, out, NULL);
  td__tape_info_ooms (r, out, NULL);
}
