/* The message when a device has no more memory: what was wanted, what is live, the limit or
 * what the device has, what is reserved and of no use, and who holds the most.  It is the same
 * for every device, and for a limit as for memory that ends.
 *
 * SPDX-License-Identifier: MIT */
#include "memory-chain.h"

#include <stdio.h>
#include <stdlib.h>

enum
{
  N_HOLDERS = 5 /* that are named */
};

/* "1.5 MB": decimal, three digits at most. */
static const char *
bytes_text (size_t bytes, char *text, size_t size)
{
  static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
  double value = (double)bytes;
  int unit = 0;

  while (value >= 999.5 && unit < TD_ARRAY_LENGTH (units) - 1)
    {
      value /= 1000;
      unit++;
    }
  snprintf (text, size, "%.*f %s",
            unit == 0 || value >= 100 ? 0
            : value >= 10             ? 1
                                      : 2,
            value, units[unit]);
  return text;
}

static size_t
holder_text (const TdMemHolder *h, char *text, size_t size)
{
  char bytes[32];
  int n = snprintf (text, size, "%s ", bytes_text (h->bytes, bytes, sizeof bytes));

  if (h->n > 1)
    n += snprintf (text + n, size - (size_t)n, "in %u times ", h->n);
  if (h->name != NULL)
    n += snprintf (text + n, size - (size_t)n, "%.30s", h->name);
  else
    n += snprintf (text + n, size - (size_t)n, "%s",
                   td_mem_category_name ((TdMemCategory)h->category));
  if (h->path != NULL && n < (int)size)
    n += snprintf (text + n, size - (size_t)n, " of %.40s", h->path->text);
  if (h->site != NULL && n < (int)size)
    n += snprintf (text + n, size - (size_t)n, " (%.40s:%d)", h->site->file, h->site->line);
  return n < (int)size ? (size_t)n : size - 1;
}

/* "; held most by 8.4 MB w of l1 (a.c:12), ..." */
static void
append_holders (const TdMemReport *r, char *text, size_t size)
{
  const TdMemHolder *h = r->holders;
  size_t used = 0;

  text[0] = '\0';
  for (size_t i = 0; i < r->n_holders && i < N_HOLDERS && h[i].bytes > 0 && used + 130 < size;
       i++)
    {
      used += (size_t)snprintf (text + used, size - used, "%s",
                                i > 0 ? ", " : "; held most by ");
      used += holder_text (&h[i], text + used, size - used);
    }
}

/* "; limit 24 MB", or "; the device has 141 GB, 0.5 GB of it in use by others"; then what of
 * the pool nobody can have. */
static void
room_text (const TdDevice *device, const TdMemInfo *info, char *text, size_t size)
{
  char total[32], part[32];
  size_t used = 0, holes = 0;

  text[0] = '\0';
  if (td__pool_limit (device->pool) != 0)
    used += (size_t)snprintf (text, size, "; limit %s",
                              bytes_text (td__pool_limit (device->pool), total, sizeof total));
  else if (info->device_bytes != 0)
    used += (size_t)snprintf (text, size, "; the device has %s, %s of it in use by others",
                              bytes_text (info->device_bytes, total, sizeof total),
                              bytes_text (info->outside_bytes, part, sizeof part));
  used += (size_t)snprintf (text + used, size - used, "; %s reserved",
                            bytes_text (info->reserved_bytes, total, sizeof total));
  for (int i = 0; i < TD_MEM_N_POOLS; i++)
    holes += info->pool_split_bytes[i];
  if (holes > 0)
    used += (size_t)snprintf (text + used, size - used, ", %s of it in holes",
                              bytes_text (holes, part, sizeof part));
  if (info->pending_bytes > 0)
    snprintf (text + used, size - used, ", %s still in use by copies",
              bytes_text (info->pending_bytes, part, sizeof part));
}

static TdStatus
fail (TdDevice *device, const TdMemReport *r)
{
  const TdMemInfo *info = r->info;
  char asked[32], live[32], largest[32], part[32], parts[256] = "", room[200], holders[450];
  size_t used = 0;

  room_text (device, info, room, sizeof room);
  for (int i = 0; i < TD_MEM_N_CATEGORIES; i++)
    if (info->category_bytes[i] > 0 && used < sizeof parts - 64)
      used += (size_t)snprintf (parts + used, sizeof parts - used, "%s%s %s",
                                used > 0 ? ", " : "", td_mem_category_name ((TdMemCategory)i),
                                bytes_text (info->category_bytes[i], part, sizeof part));
  append_holders (r, holders, sizeof holders);
  return td__fail (TD_ERR_MEMORY, r->op, r->site,
                   "out of memory on %s: %s wanted, %s live (%s), largest free block %s%s%s",
                   device->name, bytes_text (r->bytes, asked, sizeof asked),
                   bytes_text (info->live_bytes, live, sizeof live), parts,
                   bytes_text (info->largest_free_bytes, largest, sizeof largest), room,
                   holders);
}

static TdStatus
report (TdDevice *device, size_t bytes, const TdShape *shape, TdDtype dtype, const char *op,
        const TdSite *site)
{
  const TdMemTried tried = td__pool_tried (device->pool);
  const TdMemInfo info = td__mem_info_whole (device);
  TdObserver *o = td__engine.observer;
  TdMemReport r = { .device = device,
                    .bytes = bytes,
                    .shape = shape,
                    .dtype = dtype,
                    .op = op,
                    .site = site != NULL ? site : td__engine.site,
                    .info = &info,
                    .limit = td__pool_limit (device->pool),
                    .tried = tried };
  TdMemHolder *holders = td__mem_holders (device, &r.n_holders);
  TdMemChains *chains = NULL;
  TdStatus status;

  r.holders = holders;
  if (o != NULL && o->out_of_memory != NULL)
    {
      r.chains = chains = td__mem_chains_new ();
      o->out_of_memory (o, &r);
    }
  status = fail (device, &r);
  td__mem_chains_free (chains);
  free (holders);
  return status;
}

TdStatus (td__fail_memory) (TdDevice *device, size_t bytes, const char *op, const TdSite *site)
{
  return report (device, bytes, NULL, TD_F32, op, site);
}

TdStatus (td__fail_memory_of) (TdDevice *device, const TdShape *shape, TdDtype dtype,
                               const char *op, const TdSite *site)
{
  return report (device, (size_t)td__size (shape) * td__dtype_sizes[dtype], shape, dtype, op,
                 site);
}
