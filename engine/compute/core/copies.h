/* Copies between host and device.  All copies of the engine go through here, and each is
 * reported to the observer.  Not reported are the copies of a device's module for itself
 * (results of statistics and checks), and what a recorder or debugger reads.
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
  TD_COPY_OP,       /**< an operation: to_device */
  TD_COPY_READ,     /**< the program reads an array */
  TD_COPY_WRITE,    /**< the program writes into an array */
  TD_COPY_NEW,      /**< a new array from host memory */
  TD_COPY_BATCH,    /**< examples of a data set */
  TD_COPY_LOAD,     /**< from a file */
  TD_COPY_CHECK,    /**< a static function compares values, or restores them */
  TD_COPY_RECORDING /**< a recorder or debugger; not reported */
} TdCopyWhy;

/** A copy, as it is reported. */
typedef struct TdCopy
{
  TdDevice *device;
  size_t bytes;
  const TdNode *node; /**< of the variable, or NULL */
  const TdSite *site; /**< NULL: the engine's present site */
  uint64_t began;     /**< by the observer's clock; 0: not at this time */
  uint8_t way, why;
  bool unused; /**< a prefetched batch that was never used */
} TdCopy;

/** Report a copy.  Copies within host memory are not reported. */
static inline void
td__copy_notify (const TdCopy *copy)
{
  TdObserver *o = td__engine.observer;

  if (TD_UNLIKELY (o != NULL) && o->copied != NULL && copy->device->number != 0
      && copy->bytes > 0)
    o->copied (o, copy);
}

/** Copy by the device's slot, and report it; node may be NULL. */
TdStatus td__copy_in (TdDevice *d, void *dst, const void *host, size_t bytes, TdCopyWhy why,
                      const TdNode *node, const TdSite *site);
TdStatus td__copy_out (TdDevice *d, void *host, const void *src, size_t bytes, TdCopyWhy why,
                       const TdNode *node, const TdSite *site);
/** Device memory where the host can read it: in place where it is the host's, else a copy,
 * which *copy is to hold until it is freed.  NULL: the copy has failed. */
const void *td__copy_look (TdDevice *d, const void *src, size_t bytes, void **copy,
                           TdCopyWhy why, const TdNode *node, const TdSite *site);
/** Copy from host memory to a buffer that was just made. */
TdStatus td__copy_in_new (const TdBuffer *to, const void *host, TdCopyWhy why,
                          const TdNode *node, const TdSite *site);

/** Download the array of a node, in the logical order. */
TdStatus td__layout_download (const TdNode *n, const TdBuffer *b, void *host, TdCopyWhy why,
                              const TdSite *site);
TdStatus td__layout_upload (const TdNode *n, const TdBuffer *b, const void *host, TdCopyWhy why,
                            const TdSite *site);

/** td_tensor and td_write with a reason of the caller's. */
TdVar *td__tensor_for (TdCopyWhy why, TdDtype dtype, const TdShape *shape, const void *host,
                       const TdSite *site);
/** td_tensor_at of numbers that the host made from random numbers of the engine's: in a static
 * function's schedule they are those of one call. */
TdVar *td__tensor_drawn (TdDtype dtype, const TdShape *shape, const void *host,
                         const TdSite *site);
TdStatus td__write_for (TdCopyWhy why, TdVar *v, const void *host, size_t bytes,
                        const TdSite *site);
