/* Pools of devices: in a dump, and in what `info` says of a tape.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"

#include <inttypes.h>
#include <stdio.h>

static void
put_json (FILE *out, const TdTapePool *p)
{
  fprintf (out,
           "\"pool\":\"%s\",\"reserved_bytes\":%" PRIu64 ",\"live_bytes\":%" PRIu64
           ",\"pending_bytes\":%" PRIu64 ",\"split_bytes\":%" PRIu64
           ",\"largest_free_bytes\":%" PRIu64 "}",
           td_tape_pool_name (p->kind), p->reserved_bytes, p->live_bytes, p->pending_bytes,
           p->split_bytes, p->largest_free_bytes);
}

static void
put_text (FILE *out, const TdTapePool *p)
{
  fprintf (out,
           "pool %s: %" PRIu64 " bytes reserved, %" PRIu64 " live, %" PRIu64
           " pending, %" PRIu64 " in holes, largest free %" PRIu64 "\n",
           td_tape_pool_name (p->kind), p->reserved_bytes, p->live_bytes, p->pending_bytes,
           p->split_bytes, p->largest_free_bytes);
}

void
td__tape_dump_pools (TapeDump *d, const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_pools; i++)
    if (d->json)
      {
        fprintf (d->out, "{\"record\":\"pool\",\"iteration\":%" PRIu64 ",\"device\":%u,",
                 it->number, it->pools[i].device);
        put_json (d->out, &it->pools[i]);
        fputc ('\n', d->out);
      }
    else
      {
        fprintf (d->out, "  on device %u: ", it->pools[i].device);
        put_text (d->out, &it->pools[i]);
      }
}

/* The newest iteration that is still there; NULL: none.  Owner: the caller. */
static const TdTapeIteration *
newest (TdTapeReader *r)
{
  enum
  {
    LOOKS = 16
  };
  const TdTapeSummaries s = td_tape_reader_summaries (r);
  const TdTapeIteration *it = NULL;
  char error[256];

  for (uint32_t i = s.n; i > 0 && i + LOOKS > s.n && it == NULL; i--)
    it = td_tape_iteration_load_row (r, &s.rows[i - 1], error, sizeof error);
  return it;
}

static void
info_device (const TdTapeReader *r, FILE *out, const TdTapeIteration *it,
             const TdTapeDevice *device, bool json, bool first)
{
  const char *name = td_tape_reader_string (r, device->name);
  bool any = false;

  if (json)
    {
      fputs (first ? "{\"name\":" : ",{\"name\":", out);
      td__tape_put_string (out, name);
      fprintf (out,
               ",\"iteration\":%" PRIu64 ",\"total_bytes\":%" PRIu64
               ",\"outside_bytes\":%" PRIu64 ",\"reserved_bytes\":%" PRIu64
               ",\"live_bytes\":%" PRIu64 ",\"pools\":[",
               it->number, device->total_bytes, device->outside_bytes, device->reserved_bytes,
               device->live_bytes);
    }
  else if (device->total_bytes == 0) /* nobody said how much it has */
    fprintf (out, "memory           %s: %" PRIu64 " bytes live, %" PRIu64 " reserved\n", name,
             device->live_bytes, device->reserved_bytes);
  else
    fprintf (out,
             "memory           %s: %" PRIu64 " bytes live, %" PRIu64 " reserved, %" PRIu64
             " outside, of %" PRIu64 "\n",
             name, device->live_bytes, device->reserved_bytes, device->outside_bytes,
             device->total_bytes);
  for (uint32_t i = 0; i < it->n_pools; i++)
    if (it->pools[i].device == device->device)
      {
        fputs (!json ? "                 " : any ? ",{" : "{", out);
        (json ? put_json : put_text) (out, &it->pools[i]);
        any = true;
      }
  if (json)
    fputs ("]}", out);
}

/* The host has pools and is none of the devices. */
static void
info_host (FILE *out, const TdTapeIteration *it, bool json)
{
  bool any = false;

  for (uint32_t i = 0; i < it->n_pools; i++)
    {
      if (it->pools[i].device != 0)
        continue;
      if (json)
        fputs (any ? ",{" : ",\"host_pools\":[{", out);
      else
        fputs (any ? "                 " : "memory           host: ", out);
      (json ? put_json : put_text) (out, &it->pools[i]);
      any = true;
    }
  if (json && any)
    fputc (']', out);
}

void
td__tape_info_devices (TdTapeReader *r, FILE *out, bool json)
{
  const TdTapeIteration *it = newest (r);

  const bool any = it != NULL && it->n_devices > 0;

  if (it != NULL)
    info_host (out, it, json);
  if (json && any)
    fputs (",\"devices\":[", out);
  for (uint32_t i = 0; any && i < it->n_devices; i++)
    info_device (r, out, it, &it->devices[i], json, i == 0);
  if (json && any)
    fputc (']', out);
  td_tape_iteration_free (it);
}
