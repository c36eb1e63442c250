/* Examples: what a dataset holds at one place, as fields in host memory.
 *
 * Nothing here touches the engine: the threads of an iterator read examples.
 *
 * SPDX-License-Identifier: MIT */
#include "dataset.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory of an example, the newest first. */
typedef struct Room
{
  struct Room *next;
  _Alignas(16) char bytes[];
} Room;

static void *
example_room (TdExample *e, size_t bytes)
{
  Room *room = td__xcalloc (1, sizeof *room + bytes);

  room->next = e->owned_;
  e->owned_ = room;
  return room->bytes;
}

void
td_example_clear (TdExample *e)
{
  while (e != NULL && e->owned_ != NULL)
    {
      Room *room = e->owned_;

      e->owned_ = room->next;
      free (room);
    }
  if (e != NULL)
    *e = (TdExample){ .n_fields = 0 };
}

void *
td_example_set (TdExample *e, int k, TdDtype dtype, TdShape shape, const void *data)
{
  size_t bytes;
  void *room;

  if (e == NULL || k < 0 || k > e->n_fields || k >= TD_MAX_FIELDS
      || !td__shape_bytes (&shape, dtype, &bytes))
    return NULL;
  room = example_room (e, bytes);
  if (data != NULL)
    memcpy (room, data, bytes);
  if (k == e->n_fields)
    e->field[e->n_fields++].name = NULL;
  e->field[k].dtype = dtype;
  e->field[k].shape = shape;
  e->field[k].data = room;
  return room;
}

uint64_t
td_random_next (uint64_t *state)
{
  return state != NULL ? td__random_next (state) : 0;
}

/* A row and its label. */
static void
plain_row (const TdDataset *d, int64_t i, TdExample *e)
{
  static const TdShape scalar = { 0, { 0 } };

  e->n_fields = d->labels != NULL ? 2 : 1;
  e->field[0] = (TdField){ NULL, TD_F32, d->row, NULL };
  if (d->floats != NULL)
    e->field[0].data = d->floats + (d->first + i) * d->row_size;
  else
    {
      float *x = example_room (e, (size_t)d->row_size * sizeof *x);

      td__dataset_row (d, i, x);
      e->field[0].data = x;
    }
  if (d->labels != NULL)
    e->field[1] = (TdField){ NULL, TD_I32, scalar, &d->labels[d->first + i] };
}

bool
td__dataset_example (const TdDataset *d, int64_t i, TdExample *e, char *why)
{
  if (i < 0 || i >= d->n)
    {
      snprintf (why, TD_WHY_BYTES, "row %lld is not among %lld", (long long)i, (long long)d->n);
      return false;
    }
  e->n_fields = 0;
  if (d->cls == NULL)
    plain_row (d, i, e);
  else if (!d->cls->get (d, d->first + i, e, why))
    return false;
  e->index = i;
  return true;
}

TdStatus
td_dataset_get (const TdDataset *d, int64_t i, TdExample *e)
{
  char why[TD_WHY_BYTES] = "";

  /* Any thread: what a loader's thread may not have is refused by what it returns. */
  if (!td__on_engine_thread () && (d == NULL || d->inert || d->is_text || e == NULL))
    return TD_ERR_STATE;
  if (td__on_engine_thread ()
      && (!td__datasets_usable ((TdDataset *const[]){ (TdDataset *)(uintptr_t)d }, 1,
                                "td_dataset_get")
          || !td__list_there (e, 1, "td_dataset_get", NULL)))
    return td__error_status ();
  if (td__dataset_example (d, i, e, why))
    return TD_OK;
  return td__on_engine_thread () ? td__fail (TD_ERR_ARG, "td_dataset_get", NULL, "%s", why)
                                 : TD_ERR_ARG;
}
