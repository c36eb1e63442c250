/* What outlived its iteration, in dumps.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"

#include <inttypes.h>

static const char *
site (const TapeDump *d, uint32_t id, char out[256])
{
  return id != 0 ? td_tape_reader_site_text (d->r, id, out, 256) : "?";
}

static void
dump_json (TapeDump *d, const TdTapeIteration *it, const TdTapeHeld *h)
{
  char made[256], at[256], of[256];

  fprintf (d->out,
           "{\"record\":\"held\",\"iteration\":%" PRIu64 ",\"bytes\":%" PRIu64
           ",\"objects\":%u,\"iterations\":%u,\"oldest\":%" PRIu64
           ",\"category\":\"%s\",\"holder\":\"%s\",\"in_graph\":%s,\"others\":%s,\"site\":",
           it->number, h->bytes, h->n_objects, h->n_iterations, h->oldest,
           td_tape_category_name (h->category), td_tape_holder_name (h->holder),
           h->flags & TD_TAPE_HELD_IN_GRAPH ? "true" : "false",
           h->flags & TD_TAPE_HELD_OTHERS ? "true" : "false");
  td__tape_put_string (d->out, site (d, h->site, made));
  fputs (",\"holder_site\":", d->out);
  td__tape_put_string (d->out, site (d, h->holder_site, at));
  fputs (",\"held_site\":", d->out);
  td__tape_put_string (d->out, site (d, h->held_site, of));
  fputs (",\"op\":", d->out);
  td__tape_put_string (d->out, h->opdef != 0 ? td_tape_reader_op_name (d->r, h->opdef) : "");
  fputs ("}\n", d->out);
}

void
td__tape_dump_held (TapeDump *d, const TdTapeIteration *it)
{
  char made[256], at[256];

  for (uint32_t i = 0; i < it->n_held; i++)
    {
      const TdTapeHeld *h = &it->held[i];

      if (h->n_objects == 0)
        continue;
      if (d->json)
        {
          dump_json (d, it, h);
          continue;
        }
      fprintf (d->out, "  held %" PRIu64 " bytes in %u arrays of %u iterations", h->bytes,
               h->n_objects, h->n_iterations);
      if (!(h->flags & TD_TAPE_HELD_OTHERS))
        fprintf (d->out, ", %s made at %s, by %s%s at %s", td_tape_category_name (h->category),
                 site (d, h->site, made),
                 h->flags & TD_TAPE_HELD_IN_GRAPH ? "the graph of " : "",
                 td_tape_holder_name (h->holder),
                 site (d, h->holder_site != 0 ? h->holder_site : h->held_site, at));
      fputc ('\n', d->out);
    }
}

/* How many of each kind: of a program that leaks there are tens of thousands. */
void
td__tape_dump_objects (TapeDump *d, const TdTapeIteration *it)
{
  uint32_t n[TD_TAPE_N_OBJECTS] = { 0 };
  bool cut = false;

  for (uint32_t i = 0; i < it->n_objects; i++)
    {
      n[it->objects[i].kind]++;
      cut |= it->objects[i].flags & TD_TAPE_OBJECT_CUT;
    }
  if (it->n_objects == 0)
    return;
  fprintf (d->out,
           d->json ? "{\"record\":\"objects\",\"iteration\":%" PRIu64
                     ",\"handles\":%u,\"operations\":%u,\"arrays\":%u,\"references\":%u,"
                     "\"cut\":%s}\n"
                   : "  objects of iteration %" PRIu64
                     ": %u handles, %u operations, %u arrays, %u references%s\n",
           it->number, n[TD_TAPE_OBJECT_HANDLE], n[TD_TAPE_OBJECT_OPERATION],
           n[TD_TAPE_OBJECT_ARRAY], it->n_references,
           d->json ? (cut ? "true" : "false") : (cut ? ", not all" : ""));
}
