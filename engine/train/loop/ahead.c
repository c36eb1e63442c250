/* Prefetching batches to the device.
 *
 * When the iterator returns a batch that loader threads have made, it takes the next one from
 * them and starts to copy it.  Large fields are copied on another stream than the one that
 * computes, into memory that no queued work uses, from pinned memory that the threads write to
 * directly.  The batch that is returned later waits on the device for its copies.
 *
 * The program sees no difference.  The iterator's position is that of the batch it has
 * returned; an error in the next batch is reported when that is asked for; and its arrays are
 * reported in the iteration that uses them, with the line that asked.  Only their memory is
 * counted earlier, as input, from when the copy starts.
 *
 * SPDX-License-Identifier: MIT */
#include "iterator.h"

#include "compute/core/copies.h"

#include <stdlib.h>

/* Shorter fields go through the device's staging memory, and so does what exceeds PINNED_MOST.
 */
#define PINNED_LEAST ((size_t)64 << 10)
#define PINNED_MOST ((size_t)256 << 20)

static size_t
bytes_of (const TdHostBatch *b, int k)
{
  return (size_t)td_shape_size (&b->field[k].shape) * td_dtype_bytes (b->field[k].dtype);
}

/* Wait for the copies, so that the caller may overwrite what they read. */
static void
settle (const TdAhead *a)
{
  if (a->device != NULL)
    a->device->ops->ahead->settle (a->device);
}

/* Release the blocks of a batch that is not used; the first n_sent were copied for nothing. */
static void
release_blocks (TdAhead *a, int n_sent)
{
  for (int k = 0; k < TD_MAX_FIELDS; k++)
    {
      if (a->block[k] != NULL && k < n_sent)
        td__copy_notify (&(TdCopy){ .device = a->device,
                                    .bytes = bytes_of (a->batch, k),
                                    .way = TD_COPY_TO_DEVICE,
                                    .why = TD_COPY_BATCH,
                                    .unused = true });
      if (a->block[k] != NULL)
        td__pool_release (a->block[k]);
      a->block[k] = NULL;
    }
  a->device = NULL;
}

void
td__ahead_drop (TdIter *it)
{
  settle (&it->ahead); /* the copies must end before the memory is used again */
  release_blocks (&it->ahead, TD_MAX_FIELDS);
  it->ahead.batch = NULL;
}

void
td__ahead_restart (TdIter *it)
{
  td__ahead_drop (it);
  if (it->prefetch != NULL)
    td__prefetch_restart (it->prefetch);
}

static TdStatus
send_field (const TdAhead *a, int k)
{
  TdDevice *d = a->device;
  const void *host = a->batch->field[k].data;
  const bool stays = a->batch->device == d && host == a->batch->field[k].pinned;

  return td__block_is_idle (a->block[k])
             ? d->ops->ahead->upload (d, a->block[k]->address, host, bytes_of (a->batch, k),
                                      stays)
             : d->ops->upload (d, a->block[k]->address, host, bytes_of (a->batch, k));
}

/* Start to copy the batch.  If that fails it is copied when it is asked for, and the error is
 * reported then. */
static void
send (TdAhead *a, TdDevice *d)
{
  TdStatus status = TD_OK;
  int n = 0;

  if (a->batch->failed || td__engine.tracer != NULL || td__engine.has_error)
    return;
  a->device = d;
  for (int k = 0; k < a->batch->n_fields && status == TD_OK; k++)
    {
      a->block[k] = td__pool_take (d->pool, bytes_of (a->batch, k), TD_MEM_INPUT);
      status = a->block[k] != NULL ? send_field (a, k) : TD_ERR_MEMORY;
      n += status == TD_OK;
    }
  if (status == TD_OK)
    return;
  settle (a);
  release_blocks (a, n);
}

/* Give the loader threads pinned memory to write to. */
static void
pin (TdAhead *a, TdDevice *d, TdHostBatch *b)
{
  if (b->device != NULL && b->device != d)
    return;
  for (int k = 0; k < b->n_fields && !b->failed; k++)
    {
      const size_t bytes = bytes_of (b, k) + bytes_of (b, k) / 4; /* later ones may be longer */
      void *room;

      if (b->field[k].data == b->field[k].pinned || bytes < PINNED_LEAST
          || a->pinned_bytes - b->field[k].pinned_bytes + bytes > PINNED_MOST)
        continue;
      room = d->ops->ahead->host_new (d, bytes);
      if (room == NULL)
        continue;
      if (b->field[k].pinned != NULL)
        d->ops->ahead->host_free (d, b->field[k].pinned);
      free (b->field[k].own);
      a->pinned_bytes += bytes - b->field[k].pinned_bytes;
      b->device = d;
      b->field[k].data = b->field[k].pinned = room;
      b->field[k].pinned_bytes = bytes;
      b->field[k].own = NULL;
      b->field[k].own_bytes = 0;
    }
}

static TdBatch
hand_out (TdAhead *a, const TdSite *site)
{
  TdBatch batch;

  if (a->device == NULL)
    return td__host_batch_send (a->batch, NULL, "td_iter_next", site);
  a->device->ops->ahead->follow (a->device);
  batch = td__host_batch_send (a->batch, a->block, "td_iter_next", site);
  for (int k = 0; k < TD_MAX_FIELDS; k++)
    a->block[k] = NULL;
  return batch;
}

TdBatch
td__ahead_next (TdIter *it, const TdSite *site)
{
  TdAhead *a = &it->ahead;
  TdDevice *d = td__engine.device;
  TdBatch batch;

  if (a->device != NULL && (a->device != d || td__engine.tracer != NULL))
    {
      settle (a);
      release_blocks (a, TD_MAX_FIELDS);
    }
  if (a->batch == NULL)
    a->batch = td__prefetch_take (it->prefetch);
  batch = hand_out (a, site);
  if (d->ops->ahead != NULL)
    {
      settle (a);
      pin (a, d, a->batch);
    }
  a->device = NULL;
  a->batch = NULL;
  if (d->ops->ahead != NULL && td__prefetch_has_more (it->prefetch))
    {
      a->batch = td__prefetch_take (it->prefetch);
      send (a, d);
    }
  return batch;
}
