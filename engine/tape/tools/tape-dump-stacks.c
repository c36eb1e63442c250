/* `cat`: the stacks of an iteration. SPDX-License-Identifier: MIT */
#include "tape-dump.h"

#include <inttypes.h>

static void
put_call (TapeDump *d, const TdTapeIteration *it, uint32_t i)
{
  const TdTapeStackFrame *f = &it->stack_frames[i];
  const TdTapeSite *site = td_tape_reader_site (d->r, f->site);
  const char *name = site != NULL ? td_tape_reader_string (d->r, site->function) : "";
  TdJsonWriter *json;
  char text[1200];

  if (!d->json)
    {
      fprintf (d->out, "  call %" PRIu32 " in %" PRIu32 ": ", i + 1, f->outer);
      td__tape_put_line (d->out, td_tape_reader_site_text (d->r, f->site, text, sizeof text));
      fputc (' ', d->out);
      td__tape_put_line (d->out, name);
      fputc ('\n', d->out);
      return;
    }
  json = td__tape_begin_record_of (d, "call", it->number);
  td__json_member_uint (json, "call", i + 1);
  td__json_member_uint (json, "outer", f->outer);
  td__tape_json_site (json, d->r, "site", f->site);
  td__json_member_string (json, "function", name);
  td__tape_end_record (d);
}

static void
put_external (TapeDump *d, const TdTapeIteration *it, uint32_t i)
{
  TdJsonWriter *json;

  if (!d->json)
    {
      fprintf (d->out, "  made before the iteration: %" PRIu64 " in call %" PRIu32 "\n",
               it->externals[i], it->external_stacks[i]);
      return;
    }
  json = td__tape_begin_record_of (d, "external", it->number);
  td__json_member_uint (json, "id", it->externals[i]);
  td__json_member_uint (json, "stack", it->external_stacks[i]);
  td__tape_end_record (d);
}

void
td__tape_dump_stacks (TapeDump *d, const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_stack_frames; i++)
    put_call (d, it, i);
  for (uint32_t i = 0; i < it->n_external_stacks; i++)
    put_external (d, it, i);
}
