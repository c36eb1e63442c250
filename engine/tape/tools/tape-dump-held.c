/* What outlived its iteration, in dumps.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"
#include "plural.h"

#include <inttypes.h>

static const char *
site (const TapeDump *d, uint32_t id, char out[256])
{
  return id != 0 ? td_tape_reader_site_text (d->r, id, out, 256) : "?";
}

static void
dump_json (TapeDump *d, const TdTapeIteration *it, const TdTapeHeld *h)
{
  TdJsonWriter *json = td__tape_begin_record_of (d, "held", it->number);
  char text[256];

  td__json_member_uint (json, "bytes", h->bytes);
  td__json_member_uint (json, "objects", h->n_objects);
  td__json_member_uint (json, "iterations", h->n_iterations);
  td__json_member_uint (json, "oldest", h->oldest);
  td__json_member_string (json, "category", td_tape_category_name (h->category));
  td__json_member_string (json, "holder", td_tape_holder_name (h->holder));
  td__json_member_bool (json, "in_graph", h->flags & TD_TAPE_HELD_IN_GRAPH);
  td__json_member_bool (json, "others", h->flags & TD_TAPE_HELD_OTHERS);
  td__json_member_string (json, "site", site (d, h->site, text));
  td__json_member_string (json, "holder_site", site (d, h->holder_site, text));
  td__json_member_string (json, "held_site", site (d, h->held_site, text));
  td__json_member_string (json, "op",
                          h->opdef != 0 ? td_tape_reader_op_name (d->r, h->opdef) : "");
  td__tape_end_record (d);
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
      fprintf (d->out, "  held %" PRIu64 " %s in %u %s of %u%s %s", h->bytes,
               td_plural (h->bytes, "byte", "bytes"), h->n_objects,
               td_plural (h->n_objects, "array", "arrays"), h->n_iterations,
               h->n_iterations >= TD_TAPE_MAX_HELD_ITERATIONS ? " or more" : "",
               td_plural (h->n_iterations, "iteration", "iterations"));
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
  if (d->json)
    {
      TdJsonWriter *json = td__tape_begin_record_of (d, "objects", it->number);

      td__json_member_uint (json, "handles", n[TD_TAPE_OBJECT_HANDLE]);
      td__json_member_uint (json, "operations", n[TD_TAPE_OBJECT_OPERATION]);
      td__json_member_uint (json, "arrays", n[TD_TAPE_OBJECT_ARRAY]);
      td__json_member_uint (json, "references", it->n_references);
      td__json_member_bool (json, "cut", cut);
      td__tape_end_record (d);
      return;
    }
  fprintf (d->out, "  objects of iteration %" PRIu64 ": %u %s, %u %s, %u %s, %u %s%s\n",
           it->number, n[TD_TAPE_OBJECT_HANDLE],
           td_plural (n[TD_TAPE_OBJECT_HANDLE], "handle", "handles"),
           n[TD_TAPE_OBJECT_OPERATION],
           td_plural (n[TD_TAPE_OBJECT_OPERATION], "operation", "operations"),
           n[TD_TAPE_OBJECT_ARRAY], td_plural (n[TD_TAPE_OBJECT_ARRAY], "array", "arrays"),
           it->n_references, td_plural (it->n_references, "reference", "references"),
           cut ? ", not all" : "");
}
