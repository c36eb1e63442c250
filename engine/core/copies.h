/* Copies between the host and a device: all of the engine's go through here, and whoever
 * records is told of each.  What a device's module copies of its own (answers to statistics and
 * checks) and what a recording itself reads are not among them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

typedef enum
{
  TD_COPY_TO_DEVICE,
  TD_COPY_TO_HOST
} TdCopyWay;

/** What a copy is made for.  The tape has the same numbers. */
typedef enum
{
  TD_COPY_OP,       /**< an operation's: to_device */
  TD_COPY_READ,     /**< the program asked for numbers */
  TD_COPY_WRITE,    /**< the program wrote numbers into an array */
  TD_COPY_NEW,      /**< a new array of the host's numbers */
  TD_COPY_BATCH,    /**< examples of a data set */
  TD_COPY_LOAD,     /**< out of a file */
  TD_COPY_CHECK,    /**< a static chain looks at numbers, or puts them back */
  TD_COPY_RECORDING /**< not told: what a recording, or a debugger, looks at */
} TdCopyWhy;

/** What is told of a copy. */
typedef struct TdCopy
{
  TdDevice *device;
  size_t bytes;
  const TdNode *node; /**< NULL: no variable's */
  const TdSite *site; /**< NULL: where the engine is */
  uint64_t began;     /**< by the observer's clock; 0: at another time than this */
  uint8_t way, why;
  bool unused; /**< a batch that was sent ahead and never asked for */
} TdCopy;

/** Say that a copy was made.  Copies of the host's own memory are none. */
static inline void
td__copy_tell (const TdCopy *copy)
{
  TdObserver *o = td__engine.observer;

  if (TD_UNLIKELY (o != NULL) && o->copied != NULL && copy->device->number != 0
      && copy->bytes > 0)
    o->copied (o, copy);
}

/** The device's slot, and who records is told; node may be NULL. */
TdStatus td__copy_in (TdDevice *d, void *dst, const void *host, size_t bytes, TdCopyWhy why,
                      const TdNode *node, const TdSite *site);
TdStatus td__copy_out (TdDevice *d, void *host, const void *src, size_t bytes, TdCopyWhy why,
                       const TdNode *node, const TdSite *site);
/** Copy the host's numbers to a buffer that was made just now. */
TdStatus td__copy_in_new (const TdBuffer *to, const void *host, TdCopyWhy why,
                          const TdNode *node, const TdSite *site);

/** Download the array of a node, in the logical order. */
TdStatus td__layout_download (const TdNode *n, const TdBuffer *b, void *host, TdCopyWhy why,
                              const TdSite *site);
TdStatus td__layout_upload (const TdNode *n, const TdBuffer *b, const void *host, TdCopyWhy why,
                            const TdSite *site);

/** td_tensor and td_write for another reason. */
TdVar *td__tensor_for (TdCopyWhy why, TdDtype dtype, const TdShape *shape, const void *host,
                       const TdSite *site);
TdStatus td__write_for (TdCopyWhy why, TdVar *v, const void *host, size_t bytes,
                        const TdSite *site);
