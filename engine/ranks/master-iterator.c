/* An iterator that one rank reads for all: its batches go to the others, whose own data is not
 * looked at.
 *
 * *Source*: chainermn.iterators.create_multi_node_iterator.
 * SPDX-License-Identifier: MIT */
#include "comm.h"
#include "host-memory.h"

#include "compute/core/copies.h"
#include "train/loop/iterator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  NAME = 64
};

typedef struct
{
  int32_t dtype, ndim;
  int64_t dim[TD_MAX_DIMS];
  char name[NAME];
} Field;

/* What goes in front of a batch's arrays: what they are, and where the master's iterator is. */
typedef struct
{
  int64_t n, rows, batch_size;
  int64_t position, epoch, count, drawn;
  double previous_epoch_detail;
  int32_t n_fields, is_new_epoch, repeat, named;
  Field fields[TD_MAX_FIELDS];
} Head;

typedef struct
{
  TdComm *comm;
  int root;
  char names[TD_MAX_FIELDS][NAME]; /* of the last batch */
} Master;

static void
head_of (Head *head, const TdIter *it, const TdBatch *b)
{
  memset (head, 0, sizeof *head); /* its bytes are sent */
  head->rows = it->n;
  head->batch_size = it->o.batch_size;
  head->repeat = it->o.repeat;
  head->position = it->at.position;
  head->epoch = it->at.epoch;
  head->count = it->at.count;
  head->drawn = it->at.drawn;
  head->previous_epoch_detail = it->at.previous_epoch_detail;
  head->is_new_epoch = it->at.is_new_epoch;
  if (b == NULL)
    return;
  head->n = b->n;
  head->n_fields = b->n_fields;
  for (int k = 0; k < b->n_fields; k++)
    {
      const TdNode *node = b->field[k]->node;
      Field *f = &head->fields[k];

      f->dtype = (int32_t)node->dtype;
      f->ndim = node->shape.ndim;
      memcpy (f->dim, node->shape.dim, sizeof f->dim);
      if (b->name[k] != NULL)
        {
          head->named |= 1 << k;
          snprintf (f->name, sizeof f->name, "%s", b->name[k]);
        }
    }
}

static void
follow (TdIter *it, const Head *head)
{
  it->n = head->rows;
  it->o.batch_size = head->batch_size;
  it->o.repeat = head->repeat != 0;
  it->at.position = head->position;
  it->at.epoch = head->epoch;
  it->at.count = head->count;
  it->at.drawn = head->drawn;
  it->at.previous_epoch_detail = head->previous_epoch_detail;
  it->at.is_new_epoch = head->is_new_epoch != 0;
}

/* The bytes of one field go from the master to all. */
static TdStatus
share_field (Master *m, const Head *head, int k, TdBatch *b, const TdSite *site)
{
  const bool mine = m->comm->rank == m->root;
  const Field *f = &head->fields[k];
  TdShape shape = { .ndim = f->ndim };
  char why[TD_WHY_WIRE] = "";
  TdStatus status = TD_OK;
  size_t bytes;
  void *room;

  memcpy (shape.dim, f->dim, sizeof shape.dim);
  bytes = (size_t)td__size (&shape) * td__dtype_sizes[f->dtype];
  room = td__xmalloc (bytes + 1);
  if (mine)
    status
        = td__layout_download (b->field[k]->node, b->field[k]->buffer, room, TD_COPY_OP, site);
  if (status != TD_OK)
    td__comm_abort (m->comm);
  if (!td__wait_bcast (m->comm, room, bytes, m->root, why, site))
    status = td__comm_fail (m->comm, why, site);
  else if (!mine)
    {
      b->field[k] = td_tensor_at ((TdDtype)f->dtype, shape, room, site);
      memcpy (m->names[k], f->name, NAME);
      b->name[k] = head->named >> k & 1 ? m->names[k] : NULL;
      if (!td_poisoned (b->field[k]) && k < 2 && b->name[k] == NULL)
        td_name (b->field[k], k == 0 ? "x" : "t");
    }
  free (room);
  return status;
}

static TdBatch
next (TdIter *it, const TdSite *site)
{
  Master *m = it->shared;
  const bool mine = m->comm->rank == m->root;
  TdMeet meet = td__meet_of (TD_MEET_ITERATOR, NULL, site);
  TdBatch b = { .n_fields = 0 };
  char why[TD_WHY_WIRE] = "";
  TdStatus status;
  Head head;

  if (!td__comm_usable (m->comm, "td_iter_next", site))
    return td__batch_poison ();
  meet.root = m->root;
  if (mine)
    b = td__iter_next_own (it, site);
  if (td__engine.has_error)
    td__meet_fail (&meet);
  if (td__meet (m->comm, &meet, site) != TD_OK)
    return td__batch_poison ();
  head_of (&head, it, &b);
  if (!td__wait_bcast (m->comm, &head, sizeof head, m->root, why, site))
    {
      td__comm_fail (m->comm, why, site);
      return td__batch_poison ();
    }
  if (!mine)
    {
      follow (it, &head);
      b.n = head.n;
      b.n_fields = head.n_fields;
    }
  status = TD_OK;
  for (int k = 0; k < b.n_fields && status == TD_OK; k++)
    status = share_field (m, &head, k, &b, site);
  if (status != TD_OK)
    return td__batch_poison ();
  b.x = b.n_fields > 0 ? b.field[0] : NULL;
  b.t = b.n_fields > 1 ? b.field[1] : NULL;
  return b;
}

static const TdIterShare share = { next, free };

/* Another rank's iterator: what it would read itself is not needed any more. */
static void
empty (TdIter *it)
{
  td__ahead_drop (it);
  td__prefetch_free (it->prefetch);
  free (it->at.order);
  it->prefetch = NULL;
  it->at.order = NULL;
}

TdIter *
td_multi_node_iterator_new_at (TdIter *it, TdComm *comm, int root, const TdSite *site)
{
  char why[TD_WHY_WIRE] = "";
  TdMeet mine;
  Master *m;
  Head head;

  if (!td__comm_usable (comm, "td_multi_node_iterator_new", site))
    return td__iter_inert ();
  mine = td__meet_of (TD_MEET_ITERATOR, NULL, site);
  mine.root = root;
  if (root < 0 || root >= comm->size)
    td__fail (TD_ERR_ARG, "td_multi_node_iterator_new", site,
              "a rank of 0 to %d expected, got %d", comm->size - 1, root);
  else if (td__iter_usable (it, "td_multi_node_iterator_new", site) && it->share != NULL)
    td__fail (TD_ERR_STATE, "td_multi_node_iterator_new", site,
              "the iterator has a communicator already");
  if (td__engine.has_error)
    td__meet_fail (&mine);
  if (td__meet (comm, &mine, site) != TD_OK)
    return td__iter_inert ();
  head_of (&head, it, NULL);
  if (!td__wait_bcast (comm, &head, sizeof head, root, why, site))
    {
      td__comm_fail (comm, why, site);
      return td__iter_inert ();
    }
  m = td__xcalloc (1, sizeof *m);
  m->comm = comm;
  m->root = root;
  if (comm->rank != root)
    {
      empty (it);
      follow (it, &head);
    }
  it->share = &share;
  it->shared = m;
  return it;
}

TdIter *
td_multi_node_iterator_new (TdIter *it, TdComm *comm, int root)
{
  return td_multi_node_iterator_new_at (it, comm, root, NULL);
}
