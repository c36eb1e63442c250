/* The message when a device has no more memory: what was wanted, what is live, the limit or
 * what the device has, what is reserved and of no use, and who holds the most.  It is the same
 * for every device, and for a limit as for memory that ends.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  N_HOLDERS = 5 /* that are named */
};

/** Arrays of one kind, name and place. */
typedef struct
{
  const TdSite *site;
  const TdPath *path;
  const char *name;
  uint8_t category;
  size_t bytes;
  uint32_t n;
} Holder;

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

/* One handle of each array: the oldest that shows it. */
static int
by_buffer (const void *a, const void *b)
{
  const TdVar *x = *(TdVar *const *)a, *y = *(TdVar *const *)b;

  if (x->buffer->id != y->buffer->id)
    return x->buffer->id < y->buffer->id ? -1 : 1;
  return (x->node->id > y->node->id) - (x->node->id < y->node->id);
}

/* Every live handle of the device, by array.  *Owner*: the caller; NULL: no host memory. */
static TdVar **
live_handles (const TdDevice *device, size_t *n)
{
  const TdSlab *slab = &td__engine.vars;
  TdVar **vars = malloc ((slab->n_chunks * TD_SLAB_ITEMS + 1) * sizeof (TdVar *));

  *n = 0;
  for (size_t c = 0; c < slab->n_chunks && vars != NULL; c++)
    for (size_t i = 0; i < TD_SLAB_ITEMS; i++)
      {
        TdVar *v = (TdVar *)(void *)((char *)slab->chunks[c] + i * slab->item_bytes);

        if (v->state == TD_VAR_LIVE && v->buffer != NULL && v->buffer->device == device)
          vars[(*n)++] = v;
      }
  if (vars != NULL)
    qsort (vars, *n, sizeof *vars, by_buffer);
  return vars;
}

static bool
is_of (const Holder *h, const TdVar *v)
{
  return h->site == v->site && h->name == v->name && h->path == v->node->path
         && h->category == v->buffer->category;
}

/* The largest first; of equal ones those that were made first. */
static int
by_bytes (const void *a, const void *b)
{
  const Holder *x = a, *y = b;

  return (y->bytes > x->bytes) - (y->bytes < x->bytes);
}

/* Sum up arrays in the order in which they were made.  *Owner*: the caller; NULL: none. */
static Holder *
holders_of (const TdDevice *device, size_t *n)
{
  size_t n_vars;
  TdVar **vars = live_handles (device, &n_vars);
  Holder *holders = calloc (n_vars + 1, sizeof *holders);

  *n = 0;
  for (size_t i = 0; i < n_vars && holders != NULL; i++)
    {
      const TdVar *v = vars[i];
      size_t k
          = *n > 64 ? *n - 64 : 0; /* the same place comes again soon, or is another entry */

      if (i > 0 && vars[i - 1]->buffer == v->buffer)
        continue;
      while (k < *n && !is_of (&holders[k], v))
        k++;
      if (k == *n)
        holders[(*n)++]
            = (Holder){ v->site, v->node->path, v->name, v->buffer->category, 0, 0 };
      holders[k].bytes += v->buffer->bytes;
      holders[k].n++;
    }
  free (vars);
  return holders;
}

static size_t
holder_text (const Holder *h, char *text, size_t size)
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
append_holders (const TdDevice *device, char *text, size_t size)
{
  size_t n, used = 0;
  Holder *holders = holders_of (device, &n);

  text[0] = '\0';
  if (holders == NULL)
    return;
  if (n > 1)
    qsort (holders, n, sizeof *holders, by_bytes);
  for (size_t i = 0; i < n && i < N_HOLDERS && holders[i].bytes > 0 && used + 130 < size; i++)
    {
      used += (size_t)snprintf (text + used, size - used, "%s",
                                i > 0 ? ", " : "; held most by ");
      used += holder_text (&holders[i], text + used, size - used);
    }
  free (holders);
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

TdStatus
td__fail_memory (TdDevice *device, size_t bytes, const char *op, const TdSite *site)
{
  const TdMemInfo info = td_mem_info (device);
  char asked[32], live[32], largest[32], part[32], parts[256] = "", room[200], holders[450];
  size_t used = 0;

  room_text (device, &info, room, sizeof room);
  for (int i = 0; i < TD_MEM_N_CATEGORIES; i++)
    if (info.category_bytes[i] > 0 && used < sizeof parts - 64)
      used += (size_t)snprintf (parts + used, sizeof parts - used, "%s%s %s",
                                used > 0 ? ", " : "", td_mem_category_name ((TdMemCategory)i),
                                bytes_text (info.category_bytes[i], part, sizeof part));
  append_holders (device, holders, sizeof holders);
  return td__fail (
      TD_ERR_MEMORY, op, site,
      "out of memory on %s: %s wanted, %s live (%s), largest free block %s%s%s", device->name,
      bytes_text (bytes, asked, sizeof asked), bytes_text (info.live_bytes, live, sizeof live),
      parts, bytes_text (info.largest_free_bytes, largest, sizeof largest), room, holders);
}
