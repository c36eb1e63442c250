/* The sequence of rows of an iterator, and how its place there is saved.
 *
 * *Source*: chainer.iterators.SerialIterator.
 * SPDX-License-Identifier: MIT */
#include "iterator.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

/* The order of the next epoch is the one that is there, mixed again, as in Chainer. */
static bool
next_order (const TdIter *it, TdCursor *at, int64_t position)
{
  if (at->order == NULL)
    return true;
  if (it->o.order_sampler == NULL)
    {
      for (int64_t i = it->n; i > 1; i--)
        {
          int64_t k = (int64_t)(td__random_next (&at->random) % (uint64_t)i);
          int64_t swap = at->order[k];

          at->order[k] = at->order[i - 1];
          at->order[i - 1] = swap;
        }
      return true;
    }
  it->o.order_sampler (at->order, it->n, position, &at->random, it->o.order_user);
  for (int64_t i = 0; i < it->n; i++)
    if (at->order[i] < 0 || at->order[i] >= it->n)
      return false;
  return true;
}

void
td__cursor_begin (const TdIter *it, TdCursor *at)
{
  int64_t *order = at->order;

  *at = (TdCursor){ .random = it->seed, .order = order, .previous_epoch_detail = -1 };
  for (int64_t i = 0; i < it->n && order != NULL; i++)
    order[i] = i;
  next_order (it, at, 0); /* a bad one is found when it is read */
}

bool
td__cursor_next (const TdIter *it, TdCursor *at, int64_t *rows, int64_t *n)
{
  int64_t begin = at->position;
  bool ok = true;

  *n = 0;
  at->previous_epoch_detail = td__cursor_epoch_detail (it, at);
  at->is_new_epoch = false;
  while (*n < it->o.batch_size && ok)
    {
      rows[(*n)++] = at->order != NULL ? at->order[at->position] : at->position;
      ok = rows[*n - 1] >= 0 && rows[*n - 1] < it->n;
      if (++at->position < it->n)
        continue;
      at->position = 0;
      at->epoch++;
      at->is_new_epoch = true;
      if (!it->o.repeat)
        break;
      ok = ok && next_order (it, at, begin);
      begin = 0;
    }
  at->drawn += *n;
  at->count++;
  return ok;
}

void
td__cursor_copy (const TdIter *it, TdCursor *to, const TdCursor *from)
{
  int64_t *order = to->order;

  *to = *from;
  to->order = order;
  if (from->order == NULL)
    return;
  if (to->order == NULL)
    to->order = td__xcalloc ((size_t)it->n, sizeof *to->order);
  memcpy (to->order, from->order, (size_t)it->n * sizeof *to->order);
}

double
td__cursor_epoch_detail (const TdIter *it, const TdCursor *at)
{
  if (it->is_text)
    return (double)(at->position * it->o.batch_size) / (double)it->n;
  return (double)at->epoch + (double)at->position / (double)it->n;
}
