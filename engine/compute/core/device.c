/* The devices there are, and their memory: registry, limits, accounts.
 *
 * SPDX-License-Identifier: MIT */
#include "async-index.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TdDevice cpu_device = { .name = "cpu", .ops = &td__cpu_ops, .computes = true };
static const TdDeviceOps null_ops = { .abi = TD_DEVICE_ABI, .provider = &td__provider_fake };
static TdDevice null_device = { .name = "null", .ops = &null_ops, .computes = false };

static TdDevice *devices[TD_MAX_DEVICES];
static size_t mem_limit; /* of every device, also of those that are opened later */
const char *td__device_names[TD_MAX_DEVICES + 1];
static_assert (TD_MAX_DEVICES <= 8 * sizeof ((TdBuffer *)0)->copied_to, "a bit for each");
static int n_devices;

static const char *const category_names[TD_MEM_N_CATEGORIES]
    = { "parameter", "gradient",  "activation",    "optimizer", "input",
        "buffer",    "workspace", "communication", "static",    "other" };

const char *
td_mem_category_name (TdMemCategory category)
{
  return (unsigned)category < TD_MEM_N_CATEGORIES ? category_names[category] : "?";
}

const char *
td_mem_pool_name (TdMemPool pool)
{
  static const char *const names[TD_MEM_N_POOLS]
      = { "default", "workspace", "static", "graph-private", "capture", "upload" };

  return (unsigned)pool < TD_MEM_N_POOLS ? names[pool] : "?";
}

TdStatus
td__device_register (TdDevice *device)
{
  if (device->ops->abi != TD_DEVICE_ABI)
    return td__fail (TD_ERR_DEVICE, "device", NULL, "%s speaks interface %u, this engine %d",
                     device->name, device->ops->abi, TD_DEVICE_ABI);
  if (n_devices == TD_MAX_DEVICES)
    return td__fail (TD_ERR_DEVICE, "device", NULL, "no room for more than %d devices",
                     TD_MAX_DEVICES);
  device->pool = td__pool_new (device->ops->provider, device->priv);
  if (device->pool == NULL)
    return td__fail (TD_ERR_MEMORY, "device", NULL, "no host memory for %s", device->name);
  td__pool_set_limit (device->pool, mem_limit);
  td__device_names[n_devices] = device->name;
  device->number = (uint8_t)n_devices;
  devices[n_devices++] = device;
  td__device_names[n_devices] = NULL;
  return TD_OK;
}

int
td__device_number (const TdDevice *device)
{
  int i = 0;

  while (i < n_devices && devices[i] != device)
    i++;
  return i;
}

TdDevice *
td__device_at (int number)
{
  return number >= 0 && number < n_devices ? devices[number] : NULL;
}

const char *
td__device_text (const TdDevice *device)
{
  static char text[160];

  snprintf (text, sizeof text, "%s%s%s", device->name, device->model != NULL ? " " : "",
            device->model != NULL ? device->model : "");
  return text;
}

TdDevice *
td__devices_start (void)
{
  n_devices = 0;
  mem_limit = 0;
  td__device_register (&cpu_device);
  td__device_register (&null_device);
  return &cpu_device;
}

void
td__devices_finish (void)
{
  for (int i = 0; i < n_devices; i++)
    {
      td__cuda_end (devices[i]);
      td__pool_free (devices[i]->pool);
      devices[i]->pool = NULL;
      td__cuda_close (devices[i]);
    }
  n_devices = 0;
}

TdDevice *
td_device_get (const char *name)
{
  td__ensure_started ();
  if (td__stranger ("td_device_get"))
    return NULL;
  if (name == NULL)
    name = "(null)";
  for (int i = 0; i < n_devices; i++)
    if (strcmp (devices[i]->name, name) == 0)
      return devices[i];
  if (strncmp (name, "cuda", 4) == 0)
    return td__cuda_device (name);
  td__fail (TD_ERR_DEVICE, "td_device_get", NULL, "no device %.40s (cpu, cuda:N, null)", name);
  return NULL;
}

const char *
td_device_name (const TdDevice *device)
{
  return device != NULL ? device->name : "none";
}

TdStatus
td_device_use (TdDevice *device)
{
  td__ensure_started ();
  if (td__stranger ("td_device_use"))
    return TD_ERR_STATE;
  if (device == NULL)
    return td__fail (TD_ERR_DEVICE, "td_device_use", NULL, "a device is expected, got NULL");
  td__engine.device = device;
  return TD_OK;
}

void
td_device_synchronize (TdDevice *device)
{
  if (!td__stranger ("td_device_synchronize") && device != NULL
      && device->ops->synchronize != NULL)
    {
      device->ops->synchronize (device);
      td__index_raise ();
    }
}

size_t
td_pool_trim (TdDevice *device)
{
  if (td__stranger ("td_pool_trim") || device == NULL || device->pool == NULL)
    return 0;
  return td__pool_trim (device->pool);
}

void
td_set_mem_limit (size_t bytes)
{
  td__ensure_started ();
  if (td__stranger ("td_set_mem_limit"))
    return;
  mem_limit = bytes;
  for (int i = 0; i < n_devices; i++)
    td__pool_set_limit (devices[i]->pool, bytes);
}

void
td__mem_info (TdDevice *d, TdMemInfo *info)
{
  const size_t own = d->ops->own_bytes != NULL ? d->ops->own_bytes (d) : 0;

  td__pool_info (d->pool, info);
  info->pool_bytes[TD_MEM_POOL_CAPTURE] = info->pool_reserved_bytes[TD_MEM_POOL_CAPTURE] = own;
}

TdMemInfo
td_mem_info (TdDevice *device)
{
  td__ensure_started ();
  return td__asked ("td_mem_info") ? (TdMemInfo){ 0 } : td__mem_info_whole (device);
}

TdMemInfo
td__mem_info_whole (TdDevice *device)
{
  TdMemInfo info = { 0 };
  TdEngine *e = &td__engine;
  size_t free_bytes;

  device = device != NULL ? device : e->device;
  td__mem_info (device, &info);
  if (device->ops->provider->query != NULL
      && device->ops->provider->query (device->priv, &free_bytes, &info.device_bytes))
    {
      size_t used = info.device_bytes - free_bytes,
             ours = info.reserved_bytes + info.pool_bytes[TD_MEM_POOL_CAPTURE];

      info.outside_bytes = used > ours ? used - ours : 0;
    }
  info.live_vars = e->vars.live;
  info.live_nodes = e->nodes.live;
  info.live_ops = e->ops.live;
  return info;
}
