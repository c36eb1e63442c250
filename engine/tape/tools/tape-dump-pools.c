/* Pools of devices: in a dump, and in what `info` says of a tape.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"

#include <inttypes.h>
#include <stdio.h>

/* Its members. */
static void
put_json (TdJsonWriter *json, const TdTapePool *p)
{
  td__json_member_string (json, "pool", td_tape_pool_name (p->kind));
  td__json_member_uint (json, "reserved_bytes", p->reserved_bytes);
  td__json_member_uint (json, "live_bytes", p->live_bytes);
  td__json_member_uint (json, "pending_bytes", p->pending_bytes);
  td__json_member_uint (json, "split_bytes", p->split_bytes);
  td__json_member_uint (json, "largest_free_bytes", p->largest_free_bytes);
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
        TdJsonWriter *json = td__tape_begin_record_of (d, "pool", it->number);

        td__json_member_uint (json, "device", it->pools[i].device);
        put_json (json, &it->pools[i]);
        td__tape_end_record (d);
      }
    else
      {
        fprintf (d->out, "  on device %u: ", it->pools[i].device);
        put_text (d->out, &it->pools[i]);
      }
}

/* Devices and pools of the newest iteration that is still there; NULL: none.  Owner: the
 * caller. */
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
    it = td_tape_iteration_load_end (r, &s.rows[i - 1], error, sizeof error);
  return it;
}

/* The pools of one device, as a list. */
static void
pools_json (TdJsonWriter *json, const TdTapeIteration *it, uint32_t device)
{
  td__json_begin_array (json);
  for (uint32_t i = 0; i < it->n_pools; i++)
    if (it->pools[i].device == device)
      {
        td__json_begin_object (json);
        put_json (json, &it->pools[i]);
        td__json_end_object (json);
      }
  td__json_end_array (json);
}

static void
device_json (TdJsonWriter *json, const TdTapeIteration *it, const TdTapeDevice *device,
             const char *name)
{
  td__json_begin_object (json);
  td__json_member_string (json, "name", name);
  td__json_member_uint (json, "iteration", it->number);
  td__json_member_uint (json, "total_bytes", device->total_bytes);
  td__json_member_uint (json, "outside_bytes", device->outside_bytes);
  td__json_member_uint (json, "reserved_bytes", device->reserved_bytes);
  td__json_member_uint (json, "live_bytes", device->live_bytes);
  td__json_key (json, "pools");
  pools_json (json, it, device->device);
  td__json_end_object (json);
}

static void
device_text (FILE *out, const TdTapeIteration *it, const TdTapeDevice *device, const char *name)
{
  if (device->total_bytes == 0) /* nobody said how much it has */
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
        fputs ("                 ", out);
        put_text (out, &it->pools[i]);
      }
}

/* The host has pools and is none of the devices. */
static void
info_host (FILE *out, TdJsonWriter *json, const TdTapeIteration *it)
{
  bool any = false;

  for (uint32_t i = 0; i < it->n_pools; i++)
    {
      if (it->pools[i].device != 0)
        continue;
      if (!json)
        {
          fputs (any ? "                 " : "memory           host: ", out);
          put_text (out, &it->pools[i]);
        }
      any = true;
    }
  if (!json || !any)
    return;
  td__json_key (json, "host_pools");
  pools_json (json, it, 0);
}

void
td__tape_info_devices (TdTapeReader *r, FILE *out, TdJsonWriter *json)
{
  const TdTapeIteration *it = newest (r);
  const bool any = it != NULL && it->n_devices > 0;

  if (it != NULL)
    info_host (out, json, it);
  if (json && any)
    {
      td__json_key (json, "devices");
      td__json_begin_array (json);
    }
  for (uint32_t i = 0; any && i < it->n_devices; i++)
    {
      const TdTapeDevice *device = &it->devices[i];
      const char *name = td_tape_reader_string (r, device->name);

      if (json)
        device_json (json, it, device, name);
      else
        device_text (out, it, device, name);
    }
  if (json && any)
    td__json_end_array (json);
  td_tape_iteration_free (it);
}
