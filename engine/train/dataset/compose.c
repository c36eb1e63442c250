/* Datasets made of other datasets: side by side, one after the other, a part of one, and each
 * example through a function.
 *
 * SPDX-License-Identifier: MIT */
#include "dataset.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What they all are made of; each uses what it needs. */
typedef struct
{
  TdDataset **parts;
  int n_parts;
  int64_t start;
  int64_t *order; /* of a sub-dataset, or NULL */
  TdTransform transform;
  void *user;
} Composed;

static void
composed_free (void *self)
{
  Composed *c = self;

  for (int i = 0; i < c->n_parts; i++)
    td__dataset_unref (c->parts[i]);
  free (c->parts);
  free (c->order);
  free (c);
}

static Composed *
compose (TdDataset *const *datasets, int n)
{
  Composed *c = td__xcalloc (1, sizeof *c);

  c->parts = td__xcalloc ((size_t)n, sizeof (TdDataset *));
  for (int i = 0; i < n; i++)
    c->parts[c->n_parts++] = td__dataset_ref (datasets[i]);
  return c;
}

static bool
parts_ok (TdDataset *const *datasets, int n, const char *call)
{
  if (n >= 1 && datasets != NULL)
    return td__datasets_usable (datasets, n, call);
  td__fail (TD_ERR_ARG, call, NULL, "at least one dataset expected");
  return false;
}

/* --- side by side --- */

static bool
zip_get (const TdDataset *d, int64_t i, TdExample *e, char *why)
{
  const Composed *c = d->self;
  TdField all[TD_MAX_FIELDS];
  int n = 0;

  for (int p = 0; p < c->n_parts; p++)
    {
      if (!td__dataset_example (c->parts[p], i, e, why))
        return false;
      if (n + e->n_fields > TD_MAX_FIELDS)
        {
          snprintf (why, TD_WHY_BYTES, "an example of more than %d fields", TD_MAX_FIELDS);
          return false;
        }
      memcpy (all + n, e->field, (size_t)e->n_fields * sizeof *all);
      n += e->n_fields;
    }
  memcpy (e->field, all, (size_t)n * sizeof *all);
  e->n_fields = n;
  return true;
}

static const TdDatasetClass zip_class = { zip_get, composed_free };

TdDataset *
td_zip_dataset_new (TdDataset *const *datasets, int n)
{
  if (!parts_ok (datasets, n, "td_zip_dataset_new"))
    return td__dataset_inert ();
  for (int i = 1; i < n; i++)
    if (datasets[i]->n != datasets[0]->n)
      {
        td__fail (TD_ERR_ARG, "td_zip_dataset_new", NULL,
                  "datasets of one size expected, got %lld and %lld", (long long)datasets[0]->n,
                  (long long)datasets[i]->n);
        return td__dataset_inert ();
      }
  return td__dataset_of (&zip_class, compose (datasets, n), datasets[0]->n);
}

/* --- one after the other --- */

static bool
concatenated_get (const TdDataset *d, int64_t i, TdExample *e, char *why)
{
  const Composed *c = d->self;
  int p = 0;

  for (; p + 1 < c->n_parts && i >= c->parts[p]->n; p++)
    i -= c->parts[p]->n;
  return td__dataset_example (c->parts[p], i, e, why);
}

static const TdDatasetClass concatenated_class = { concatenated_get, composed_free };

TdDataset *
td_concatenated_dataset_new (TdDataset *const *datasets, int n)
{
  int64_t total = 0;

  if (!parts_ok (datasets, n, "td_concatenated_dataset_new"))
    return td__dataset_inert ();
  for (int i = 0; i < n; i++)
    total += datasets[i]->n;
  return td__dataset_of (&concatenated_class, compose (datasets, n), total);
}

/* --- a part --- */

static int64_t
sub_place (const TdDataset *d, int64_t i)
{
  const Composed *c = d->self;

  return c->order != NULL ? c->order[c->start + i] : c->start + i;
}

static bool
sub_get (const TdDataset *d, int64_t i, TdExample *e, char *why)
{
  const Composed *c = d->self;

  return td__dataset_example (c->parts[0], sub_place (d, i), e, why);
}

static const TdDatasetClass sub_class = { sub_get, composed_free };

TdDataset *
td_sub_dataset_new (TdDataset *dataset, int64_t start, int64_t finish, const int64_t *order)
{
  Composed *c;

  if (!td__datasets_usable (&dataset, 1, "td_sub_dataset_new"))
    return td__dataset_inert ();
  if (start < 0 || finish < start || finish > dataset->n)
    {
      td__fail (TD_ERR_ARG, "td_sub_dataset_new", NULL,
                "examples %lld to %lld are not among %lld", (long long)start, (long long)finish,
                (long long)dataset->n);
      return td__dataset_inert ();
    }
  for (int64_t i = start; i < finish && order != NULL; i++)
    if (order[i] < 0 || order[i] >= dataset->n)
      {
        td__fail (TD_ERR_ARG, "td_sub_dataset_new", NULL,
                  "order[%lld] is %lld, which is not among %lld", (long long)i,
                  (long long)order[i], (long long)dataset->n);
        return td__dataset_inert ();
      }
  c = compose (&dataset, 1);
  c->start = start;
  if (order != NULL)
    {
      c->order = td__xcalloc ((size_t)dataset->n, sizeof *order);
      memcpy (c->order, order, (size_t)dataset->n * sizeof *order);
    }
  return td__dataset_of (&sub_class, c, finish - start);
}

const TdDataset *
td__dataset_resolve (const TdDataset *d, int64_t *i)
{
  while (d->cls == &sub_class)
    {
      const Composed *c = d->self;

      *i = sub_place (d, d->first + *i);
      d = c->parts[0];
      if (*i < 0 || *i >= d->n)
        return NULL;
    }
  return d;
}

/* --- through a function --- */

static bool
transform_get (const TdDataset *d, int64_t i, TdExample *e, char *why)
{
  const Composed *c = d->self;

  if (!td__dataset_example (c->parts[0], i, e, why))
    return false;
  if (c->transform (e, c->user) && e->n_fields > 0 && e->n_fields <= TD_MAX_FIELDS)
    return true;
  snprintf (why, TD_WHY_BYTES, "the transform refuses row %lld", (long long)i);
  return false;
}

static const TdDatasetClass transform_class = { transform_get, composed_free };

TdDataset *
td_transform_dataset_new (TdDataset *dataset, TdTransform transform, void *user)
{
  Composed *c;

  if (!td__datasets_usable (&dataset, 1, "td_transform_dataset_new"))
    return td__dataset_inert ();
  if (transform == NULL)
    {
      td__fail (TD_ERR_ARG, "td_transform_dataset_new", NULL, "the transform is NULL");
      return td__dataset_inert ();
    }
  c = compose (&dataset, 1);
  c->transform = transform;
  c->user = user;
  return td__dataset_of (&transform_class, c, dataset->n);
}
