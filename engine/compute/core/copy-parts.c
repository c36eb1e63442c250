/* Many pieces of memory copied: by one launch where the device knows how, else one by one.
 *
 * SPDX-License-Identifier: MIT */
#include "copy-parts.h"

static void
flush (TdCopyParts *c)
{
  TdDevice *d = c->device;

  if (d->ops->copy_parts != NULL && c->n > 1 && c->status == TD_OK)
    c->status = d->ops->copy_parts (d, c->part, c->n);
  else
    for (int i = 0; i < c->n && c->status == TD_OK; i++)
      c->status = d->ops->copy (d, c->part[i].to, c->part[i].from, c->part[i].bytes);
  c->n = 0;
}

void
td__copy_parts_add (TdCopyParts *c, void *to, const void *from, size_t bytes)
{
  if (c->n == TD_COPY_PARTS)
    flush (c);
  c->part[c->n++] = (TdCopyPart){ to, from, bytes };
}

TdStatus
td__copy_parts_end (TdCopyParts *c)
{
  flush (c);
  return c->status;
}
