/* Copies between the host and a device: the device's slot, then who records is told.
 *
 * SPDX-License-Identifier: MIT */
#include "copies.h"

static TdStatus
told (TdStatus status, TdCopyWay way, TdDevice *d, size_t bytes, TdCopyWhy why,
      const TdNode *node, const TdSite *site)
{
  if (status == TD_OK && why != TD_COPY_RECORDING)
    td__copy_tell (&(TdCopy){ .device = d,
                              .bytes = bytes,
                              .node = node,
                              .site = site,
                              .way = (uint8_t)way,
                              .why = (uint8_t)why });
  return status;
}

TdStatus
td__copy_in (TdDevice *d, void *dst, const void *host, size_t bytes, TdCopyWhy why,
             const TdNode *node, const TdSite *site)
{
  return told (d->ops->upload (d, dst, host, bytes), TD_COPY_TO_DEVICE, d, bytes, why, node,
               site);
}

TdStatus
td__copy_out (TdDevice *d, void *host, const void *src, size_t bytes, TdCopyWhy why,
              const TdNode *node, const TdSite *site)
{
  return told (d->ops->download (d, host, src, bytes), TD_COPY_TO_HOST, d, bytes, why, node,
               site);
}

TdStatus
td__copy_in_new (const TdBuffer *to, const void *host, TdCopyWhy why, const TdNode *node,
                 const TdSite *site)
{
  TdDevice *d = to->device;
  const TdDeviceOps *ops = d->ops;
  const bool aside = ops->upload_new != NULL && td__block_is_idle (to->block);

  return told ((aside ? ops->upload_new : ops->upload) (d, to->data, host, to->bytes),
               TD_COPY_TO_DEVICE, d, to->bytes, why, node, site);
}
