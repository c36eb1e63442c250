/* Copies between the host and devices: the device's slot, then a notice to who records.
 *
 * SPDX-License-Identifier: MIT */
#include "copies.h"

#include "host-memory.h"

/* The time, from who records a device's copies. */
static uint64_t
now (TdDevice *d, TdCopyWhy why)
{
  TdObserver *o = td__engine.observer;

  return TD_UNLIKELY (o != NULL) && o->copying != NULL && d->number != 0
                 && why != TD_COPY_RECORDING
             ? o->copying (o, d)
             : 0;
}

static TdStatus
notify (TdStatus status, const TdCopy *copy)
{
  if (status == TD_OK && copy->why != TD_COPY_RECORDING)
    td__copy_notify (copy);
  return status;
}

TdStatus
td__copy_in (TdDevice *d, void *dst, const void *host, size_t bytes, TdCopyWhy why,
             const TdNode *node, const TdSite *site)
{
  const TdCopy copy
      = { d, bytes, node, site, now (d, why), TD_COPY_TO_DEVICE, (uint8_t)why, false };

  return notify (d->ops->upload (d, dst, host, bytes), &copy);
}

TdStatus
td__copy_out (TdDevice *d, void *host, const void *src, size_t bytes, TdCopyWhy why,
              const TdNode *node, const TdSite *site)
{
  const TdCopy copy
      = { d, bytes, node, site, now (d, why), TD_COPY_TO_HOST, (uint8_t)why, false };

  return notify (d->ops->download (d, host, src, bytes), &copy);
}

const void *
td__copy_look (TdDevice *d, const void *src, size_t bytes, void **copy, TdCopyWhy why,
               const TdNode *node, const TdSite *site)
{
  *copy = NULL;
  if (d->number == 0)
    return src;
  *copy = td__xmalloc (bytes + 1);
  return td__copy_out (d, *copy, src, bytes, why, node, site) == TD_OK ? *copy : NULL;
}

TdStatus
td__copy_in_new (const TdBuffer *to, const void *host, TdCopyWhy why, const TdNode *node,
                 const TdSite *site)
{
  TdDevice *d = to->device;
  const TdDeviceOps *ops = d->ops;
  const bool idle = ops->upload_new != NULL && td__block_is_idle (to->block);
  const TdCopy copy
      = { d, to->bytes, node, site, now (d, why), TD_COPY_TO_DEVICE, (uint8_t)why, false };

  return notify ((idle ? ops->upload_new : ops->upload) (d, to->data, host, to->bytes), &copy);
}
