/* Every rank's part of a dataset.
 *
 * Where all ranks have the dataset, each takes its part; else rank 0 reads the examples and
 * sends them, in parcels.  *Source*: chainermn.scatter_dataset.
 * SPDX-License-Identifier: MIT */
#include "arrays.h"
#include "host-memory.h"
#include "train/dataset/dataset.h"

#include <stdlib.h>
#include <string.h>

enum
{
  PARCEL = 8 << 20 /* bytes, and one example more */
};

_Static_assert((int)TD_WHY_WIRE >= (int)TD_WHY_BYTES, "one room for both reasons");

/* In front of each parcel, and of each field in it. */
typedef struct
{
  int64_t n_examples, bytes; /* none: that was all */
} Parcel;
typedef struct
{
  int32_t n_fields, dtype; /* of the example */
  TdShape shape;
  int64_t name_bytes; /* with its final 0; 0: it has none */
} Field;

/* Bytes that are put together, or read. */
typedef struct
{
  char *bytes;
  size_t n, room;
} Pile;

static void
put (Pile *p, const void *bytes, size_t n)
{
  if (p->n + n > p->room)
    {
      p->room = 2 * p->room + n;
      p->bytes = td__xrealloc (p->bytes, p->room);
    }
  if (n > 0)
    memcpy (p->bytes + p->n, bytes, n);
  p->n += n;
}

static size_t
field_bytes (const Field *f)
{
  return (size_t)td_shape_size (&f->shape) * td__dtype_sizes[f->dtype];
}

static void
put_example (Pile *p, const TdExample *e)
{
  for (int k = 0; k < e->n_fields; k++)
    {
      const TdField *from = &e->field[k];
      Field f;

      memset (&f, 0, sizeof f); /* its bytes are sent */
      f.n_fields = e->n_fields;
      f.dtype = (int32_t)from->dtype;
      f.shape = from->shape;
      f.name_bytes = from->name != NULL ? (int64_t)strlen (from->name) + 1 : 0;
      put (p, &f, sizeof f);
      put (p, from->name, (size_t)f.name_bytes);
      put (p, from->data, field_bytes (&f));
    }
}

static bool
send (TdComm *comm, const Pile *p, int64_t n_examples, int to, char *why)
{
  const Parcel parcel = { n_examples, (int64_t)p->n };

  return td__wait_send (comm, &parcel, sizeof parcel, to, why, NULL)
         && td__wait_send (comm, p->bytes, p->n, to, why, NULL);
}

/* Examples begin .. end - 1 in this order, NULL: as they lie.  What cannot be read ends it: the
 * meeting behind it says why. */
static TdStatus
send_part (TdComm *comm, const TdDataset *d, const int64_t *order, int64_t begin, int64_t end,
           int to, const TdSite *site)
{
  char why[TD_WHY_WIRE] = "";
  Pile p = { NULL, 0, 0 };
  const Pile nothing = p;
  int64_t n = 0;
  bool read = true, sent = true;

  for (int64_t i = begin; i < end && read && sent; i++)
    {
      TdExample e = { .n_fields = 0 };

      read = td__dataset_example (d, order != NULL ? order[i] : i, &e, why);
      if (read)
        put_example (&p, &e);
      td_example_clear (&e);
      n++;
      if (read && (p.n >= PARCEL || i + 1 == end))
        {
          sent = send (comm, &p, n, to, why);
          p.n = 0;
          n = 0;
        }
    }
  if (sent)
    sent = send (comm, &nothing, 0, to, why);
  free (p.bytes);
  if (!sent)
    return td__comm_fail (comm, why, site);
  return read ? TD_OK : td__fail (TD_ERR_IO, "td_scatter_dataset", site, "%s", why);
}

/* Add the examples of a parcel. */
static TdStatus
unpack (TdDataset *list, const Pile *p, int64_t n_examples)
{
  const char *at = p->bytes;
  TdStatus status = TD_OK;

  for (int64_t i = 0; i < n_examples && status == TD_OK; i++)
    {
      TdField fields[TD_MAX_FIELDS];
      Field f[TD_MAX_FIELDS];
      int n = 1;

      for (int k = 0; k < n; k++)
        {
          memcpy (&f[k], at, sizeof f[k]);
          at += sizeof f[k];
          n = f[k].n_fields;
          fields[k] = (TdField){ .name = f[k].name_bytes > 0 ? at : NULL,
                                 .dtype = (TdDtype)f[k].dtype,
                                 .shape = f[k].shape,
                                 .data = at + f[k].name_bytes };
          at += f[k].name_bytes;
          at += field_bytes (&f[k]);
        }
      status = td_list_dataset_add (list, fields, n);
    }
  return status;
}

static TdStatus
receive_part (TdComm *comm, TdDataset *list, const TdSite *site)
{
  char why[TD_WHY_WIRE] = "";
  Pile p = { NULL, 0, 0 };
  Parcel parcel = { 1, 0 };
  TdStatus status = TD_OK;
  bool got = true;

  while (got && parcel.n_examples > 0)
    {
      got = td__wait_receive (comm, &parcel, sizeof parcel, 0, why, site);
      if (!got || parcel.n_examples == 0)
        break;
      p.bytes = td__xrealloc (p.bytes, (size_t)parcel.bytes + 1);
      got = td__wait_receive (comm, p.bytes, (size_t)parcel.bytes, 0, why, site);
      if (got && status == TD_OK)
        status = unpack (list, &p, parcel.n_examples);
    }
  free (p.bytes);
  return got ? status : td__comm_fail (comm, why, site);
}

/* Where the part of a rank begins and ends. */
static void
part_of (int64_t n, int rank, int size, bool equal, int64_t *begin, int64_t *end)
{
  *begin = n * rank / size;
  *end = equal ? *begin + (n + size - 1) / size : n * (rank + 1) / size;
}

/* All ranks' datasets are one?  The same answer on all. */
static TdStatus
check_sizes (const TdComm *comm, const TdSite *site)
{
  const int64_t n = comm->all[0].number;

  for (int r = 1; r < comm->size; r++)
    if ((comm->all[r].flags & TD_MEET_HAS) && comm->all[r].number != n)
      return td__fail (TD_ERR_ARG, "td_scatter_dataset", site,
                       "rank %d of %d: one dataset expected: rank 0 has %lld examples, rank %d "
                       "%lld",
                       comm->rank, comm->size, (long long)n, r, (long long)comm->all[r].number);
  return n >= comm->size ? TD_OK
                         : td__fail (TD_ERR_ARG, "td_scatter_dataset", site,
                                     "rank %d of %d: %lld examples for %d ranks", comm->rank,
                                     comm->size, (long long)n, comm->size);
}

/* Rank 0 sends to those that have none; the others take their part of their own. */
static TdDataset *
deal (TdComm *comm, TdDataset *d, const TdScatterOpt *o, const int64_t *order,
      const TdSite *site)
{
  const int64_t n = comm->all[0].number;
  TdMeet mine = td__meet_of (TD_MEET_SCATTER, NULL, site);
  TdMeet *said = td__xcalloc ((size_t)comm->size, sizeof *said);
  TdDataset *part = td__dataset_inert ();
  TdStatus status = TD_OK;
  int64_t begin, end;

  memcpy (said, comm->all, (size_t)comm->size * sizeof *said);
  part_of (n, comm->rank, comm->size, o->force_equal_length, &begin, &end);
  if (said[comm->rank].flags & TD_MEET_HAS)
    part = td_sub_dataset_new (d, begin, end, order);
  else
    {
      part = td_list_dataset_new ();
      status = receive_part (comm, part, site);
    }
  for (int r = 1; r < comm->size && comm->rank == 0; r++)
    if (!(said[r].flags & TD_MEET_HAS))
      {
        TdStatus one;

        part_of (n, r, comm->size, o->force_equal_length, &begin, &end);
        one = send_part (comm, d, order, begin, end, r, site);
        status = status == TD_OK ? one : status;
      }
  free (said);
  if (status != TD_OK)
    td__meet_fail (&mine);
  if (comm->parted || td__meet (comm, &mine, site) != TD_OK)
    {
      td_dataset_free (part);
      part = td__dataset_inert ();
    }
  return part;
}

TdDataset *
td_scatter_dataset_at (TdDataset *d, TdComm *comm, TdScatterOpt o, const TdSite *site)
{
  const uint64_t options[] = { o.shuffle, o.force_equal_length };
  int64_t *order = NULL;
  TdDataset *part = td__dataset_inert ();
  uint64_t seed = o.seed;
  TdMeet mine;

  if (!td__comm_usable (comm, "td_scatter_dataset", site))
    return part;
  mine = td__meet_of (TD_MEET_SCATTER, NULL, site);
  mine.digest = td__digest (0, options, sizeof options);
  if (d == NULL && comm->rank == 0)
    td__fail (TD_ERR_ARG, "td_scatter_dataset", site,
              "rank 0 must have the dataset: it is NULL");
  if (d != NULL ? !td__datasets_usable (&d, 1, "td_scatter_dataset") : comm->rank == 0)
    td__meet_fail (&mine);
  else if (d != NULL)
    {
      mine.flags |= TD_MEET_HAS;
      mine.number = d->n;
      seed = o.shuffle && comm->rank == 0 ? td__order_seed (seed) : seed;
    }
  if (td__meet (comm, &mine, site) != TD_OK || check_sizes (comm, site) != TD_OK)
    return part;
  if (o.shuffle)
    {
      if (td__bcast_bytes (comm, &seed, sizeof seed, site) != TD_OK)
        return part;
      order = td__random_order (comm->all[0].number, seed);
    }
  part = deal (comm, d, &o, order, site);
  free (order);
  return part;
}

TdDataset *
td_scatter_dataset_ (TdDataset *d, TdComm *comm, const TdScatterOpt *options)
{
  const TdScatterOpt defaults = { TD_SCATTER_DEFAULTS };

  return td_scatter_dataset_at (d, comm, options != NULL ? *options : defaults, NULL);
}
