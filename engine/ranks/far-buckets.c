/* Buckets on the devices of all ranks: gradients are packed there by copies, and their sums go
 * from one device to the other.  Nobody waits, unless they are sent as 16 bits: then the host
 * asks whether they fit.
 *
 * SPDX-License-Identifier: MIT */
#include "buckets.h"

#include "compute/core/copies.h"

#include <math.h>

enum
{
  APART = 64 /* numbers: each array begins at a multiple of it, as kernels like it */
};

static int64_t
room_of (const TdCommon *common, int i)
{
  const int64_t n = td__bucket_size_of (common->of[i].param->var);

  return (n + APART - 1) / APART * APART;
}

int64_t
td__far_bucket_room (const TdCommon *common, int first, int end)
{
  int64_t n = 0;

  for (int i = first; i < end; i++)
    n += room_of (common, i);
  return n;
}

static TdVar *
array_new (const TdBucket *b, TdDtype dtype, const TdSite *site)
{
  const TdShape shape = { 1, { b->n_far } };
  TdVar *v = td__var_leaf (dtype, &shape, b->far->device, TD_MEM_COMMUNICATION, site);

  return v != NULL ? td__var_ref (v, TD_HOLD_ENGINE) : NULL;
}

static TdTensor
tensor_of (const TdVar *v)
{
  return (TdTensor){ v->buffer->data, &v->node->shape, td__size (&v->node->shape),
                     (TdDtype)v->node->dtype };
}

/* Of array i, in the shape that is asked for. */
static TdTensor
place_of (const TdBucket *b, const TdCommon *common, int i, TdShape *shape)
{
  const size_t before = (size_t)td__far_bucket_room (common, b->first, i);

  return (TdTensor){ (char *)b->room->buffer->data + before * td__dtype_sizes[b->dtype], shape,
                     td__size (shape), b->dtype };
}

void
td__far_bucket_open (TdBucket *b, const TdSite *site)
{
  TdDevice *d = b->far->device;

  b->room = b->n_far > 0 ? array_new (b, b->dtype, site) : NULL;
  if (b->room == NULL
      || d->ops->zero (d, b->room->buffer->data, b->room->buffer->bytes) == TD_OK)
    return;
  td__var_unref (b->room, TD_HOLD_ENGINE);
  b->room = NULL;
}

/* --- in and out --- */

/* Between arrays of one order, of whatever dtypes. */
static TdStatus
convert (TdDevice *d, const TdTensor *from, TdTensor *to)
{
  return from->dtype == to->dtype ? d->ops->copy (
             d, to->data, from->data, (size_t)from->size * td__dtype_sizes[from->dtype])
                                  : d->ops->cast (d, from, to);
}

/* A channels-last array of the bucket's dtype, from or to its row-major place. */
static TdStatus
reorder (TdDevice *d, TdTensor *last, TdTensor *place, bool pack)
{
  const TdShape shape = *place->shape;
  TdShape x, y;
  const TdStrides walk = pack
                             ? td__layout_walk (&shape, TD_CHANNELS_LAST, TD_ROW_MAJOR, &x, &y)
                             : td__layout_walk (&shape, TD_ROW_MAJOR, TD_CHANNELS_LAST, &x, &y);
  TdTensor from = pack ? *last : *place, to = pack ? *place : *last;

  from.shape = &x;
  to.shape = &y;
  return d->ops->strided (d, TD_STRIDED_READ, &from, &walk, &to);
}

/* The same of another dtype, by an array in between. */
static TdStatus
reorder_wide (TdDevice *d, TdTensor *last, TdTensor *place, bool pack)
{
  const size_t bytes = (size_t)last->size * td__dtype_sizes[place->dtype];
  struct TdBlock *block = td__pool_take (d->pool, bytes, TD_MEM_WORKSPACE);
  TdTensor wide = *last;
  TdStatus status;

  if (block == NULL)
    {
      td__fail_memory (d, bytes, "td_opt_update", NULL);
      return TD_ERR_MEMORY;
    }
  wide.data = block->address;
  wide.dtype = place->dtype;
  status = pack ? convert (d, last, &wide) : reorder (d, &wide, place, false);
  if (status == TD_OK)
    status = pack ? reorder (d, &wide, place, true) : convert (d, &wide, last);
  td__pool_release (block);
  return status;
}

TdStatus
td__far_bucket_copy (const TdBucket *b, const TdCommon *common, int i, const TdVar *g,
                     bool pack, const TdSite *site)
{
  TdDevice *d = b->far->device;
  const TdNode *node = g->node;
  TdTensor array = tensor_of (g), place;
  TdStatus status;

  if (b->room == NULL)
    return td__error_status ();
  if (node->device != d)
    return td__fail (TD_ERR_DEVICE, "td_opt_update", site,
                     "the gradient of %.200s lies on %s, and its parameter on %s",
                     common->of[i].key, node->device->name, d->name);
  place = place_of (b, common, i, &g->node->shape);
  if (node->layout == TD_ROW_MAJOR || td__layout_fits_both (&node->shape))
    status = pack ? convert (d, &array, &place) : convert (d, &place, &array);
  else
    status = array.dtype == place.dtype ? reorder (d, &array, &place, pack)
                                        : reorder_wide (d, &array, &place, pack);
  return status;
}

TdStatus
td__far_bucket_read (const TdBucket *b, const TdCommon *common, int i, void *host,
                     const TdSite *site)
{
  const TdTensor place = place_of (b, common, i, &common->of[i].param->var->node->shape);

  return td__copy_out (b->far->device, host, place.data,
                       (size_t)place.size * td__dtype_sizes[b->dtype], TD_COPY_OP, NULL, site);
}

/* --- sums --- */

TdStatus
td__far_bucket_send (TdBucket *b, const TdSite *site)
{
  TdDevice *d = b->far->device;
  const TdDeviceTeams *teams = d->ops->teams;
  TdTensor room, sent;
  TdStatus status;

  if (b->n_far == 0)
    return TD_OK;
  if (b->room == NULL)
    return td__error_status ();
  room = sent = tensor_of (b->room);
  if (b->sent_as != b->dtype)
    {
      b->thin = array_new (b, b->sent_as, site);
      if (b->thin == NULL)
        return td__error_status ();
      sent = tensor_of (b->thin);
      status = d->ops->cast (d, &room, &sent);
      if (status != TD_OK)
        return status;
    }
  status = teams->sum (d, b->far->team, &sent, &sent);
  if (status != TD_OK)
    return status;
  b->mark = teams->mark (d, b->far->team);
  if (b->mark != NULL)
    return TD_OK;
  td__far_give_up (b->far); /* nobody could say when its arrays are free */
  return td__error_status ();
}

TdStatus
td__far_bucket_receive (TdBucket *b)
{
  TdTeamMark *mark = b->mark;
  TdStatus status;

  b->mark = NULL;
  if (mark == NULL)
    return TD_OK;
  status = b->far->device->ops->teams->follow (b->far->device, mark);
  if (status != TD_OK)
    td__far_give_up (b->far);
  return status;
}

/* The host waits for this. */
static TdStatus
is_finite (TdDevice *d, const TdTensor *t, bool *finite)
{
  TdStats stats;
  const TdStatus status = d->ops->stats (d, t, UINT64_MAX, 0, &stats);

  *finite = status == TD_OK && stats.n_nan + stats.n_pos_inf + stats.n_neg_inf == 0;
  return status;
}

/* Is a sum finite, or what was added to it?  A rank that cannot say it ends all: the others ask
 * each other. */
static TdStatus
all_are_finite (TdComm *comm, TdDevice *d, const TdTensor *t, bool *finite)
{
  const TdStatus status = is_finite (d, t, finite);

  if (status != TD_OK)
    td__comm_abort (comm);
  return status;
}

/* Of a sum that is not finite, on all ranks alike: were all gradients?  Then the array. */
static TdStatus
find_lost (const TdBucket *b, TdComm *comm, const TdCommon *common, int *lost,
           const TdSite *site)
{
  TdDevice *d = b->far->device;
  const TdTensor room = tensor_of (b->room);
  char why[TD_WHY_WIRE] = "";
  int32_t not_finite;
  bool finite;
  TdStatus status = all_are_finite (comm, d, &room, &finite);

  if (status != TD_OK)
    return status;
  not_finite = !finite;
  if (!td__wait_sum (comm, &not_finite, 1, TD_WIRE_I32, why, site))
    return td__comm_fail (comm, why, site);
  for (int i = b->first; i < b->end && not_finite == 0 && *lost < 0; i++)
    {
      const size_t before = (size_t)td__far_bucket_room (common, b->first, i);
      TdShape shape = { 1, { td__bucket_size_of (common->of[i].param->var) } };
      const TdTensor place
          = { (char *)b->thin->buffer->data + before * td__dtype_sizes[b->sent_as], &shape,
              shape.dim[0], b->sent_as };

      if (shape.dim[0] == 0)
        continue;
      status = is_finite (d, &place, &finite);
      if (status != TD_OK)
        return status;
      *lost = finite ? -1 : i;
    }
  return TD_OK;
}

TdStatus
td__far_bucket_mean (TdBucket *b, TdComm *comm, const TdCommon *common, const TdMean *how,
                     int n_counting, float factor, int *lost, const TdSite *site)
{
  TdDevice *d = b->far->device;
  TdStatus status = TD_OK;
  bool finite = true;
  TdTensor room, thin;

  if (b->n_far == 0)
    return TD_OK;
  room = tensor_of (b->room);
  if (b->thin != NULL)
    {
      thin = tensor_of (b->thin);
      if (!how->may_overflow)
        status = all_are_finite (comm, d, &thin, &finite);
      if (status == TD_OK && !finite)
        status = find_lost (b, comm, common, lost, site);
      if (status != TD_OK || *lost >= 0)
        return status;
      status = d->ops->cast (d, &thin, &room);
    }
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_DIV_SCALAR, n_counting, 0, &room, &room);
  if (status == TD_OK && fabsf (factor - 1) > 0)
    status = d->ops->unary (d, TD_UNARY_MUL_SCALAR, (double)factor, 0, &room, &room);
  return status;
}

void
td__far_bucket_close (TdBucket *b)
{
  TdVar **const arrays[] = { &b->room, &b->thin };

  if (b->mark != NULL) /* nobody has followed it */
    {
      td__far_give_up (b->far);
      b->far->device->ops->teams->drop (b->far->device, b->mark);
      b->mark = NULL;
    }
  for (int i = 0; i < TD_ARRAY_LENGTH (arrays); i++)
    {
      if (*arrays[i] != NULL)
        td__var_unref (*arrays[i], TD_HOLD_ENGINE);
      *arrays[i] = NULL;
    }
}
