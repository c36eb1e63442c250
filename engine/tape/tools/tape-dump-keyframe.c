/* What the events of a keyframe were given, in a dump of a tape.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"

#include <stdio.h>

void
td__tape_dump_keyframe (TapeDump *d, const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_calls; i++)
    {
      const TdTapeCall *c = &it->calls[i];

      if (d->json)
        {
          TdJsonWriter *json = td__tape_begin_record_of (d, "call", it->number);

          td__json_member_uint (json, "event", c->event);
          td__json_member_uint (json, "attribute_bytes", c->n_bytes);
          if (c->into != TD_TAPE_NONE)
            td__json_member_uint (json, "into", c->into);
          td__tape_end_record (d);
          continue;
        }
      fprintf (d->out, "  call of %u: %u bytes of attributes", c->event, c->n_bytes);
      if (c->into != TD_TAPE_NONE)
        fprintf (d->out, ", adds to v%u", c->into);
      fputc ('\n', d->out);
    }
}
