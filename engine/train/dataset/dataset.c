/* What all datasets share, and TupleDataset.
 *
 * SPDX-License-Identifier: MIT */
#include "dataset.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

TdDataset *
td__dataset_inert (void)
{
  static TdDataset inert = { .inert = true };

  return &inert;
}

bool (td__dataset_usable) (const TdDataset *dataset, const char *call, const TdSite *site)
{
  if (td__stranger (call))
    return false;
  if (dataset != NULL && !dataset->inert && !dataset->object.freed)
    return true;
  td__fail (TD_ERR_STATE, call, site, "%s",
            dataset == NULL         ? "the dataset is NULL"
            : dataset->object.freed ? "the dataset was freed"
                                    : "the dataset is inert: it could not be opened before");
  return false;
}

TdDataset *
td__dataset_ref (TdDataset *dataset)
{
  if (!dataset->inert)
    dataset->refs++;
  return dataset;
}

void
td__dataset_unref (TdDataset *dataset)
{
  if (dataset == NULL || dataset->inert || --dataset->refs > 0)
    return;
  if (dataset->cls != NULL)
    dataset->cls->free (dataset->self);
  free (dataset->bytes);
  free (dataset->floats);
  free (dataset->labels);
  *dataset = (TdDataset){ .inert = true, .object.freed = true };
  td__shell_keep (dataset);
}

TdDataset *
td__dataset_make (void)
{
  TdDataset *d = td__xcalloc (1, sizeof *d);

  td__ensure_started ();
  d->refs = 1;
  td__object_add (&d->object, (void (*) (void *))td__dataset_unref);
  return d;
}

TdDataset *
td__dataset_of (const TdDatasetClass *cls, void *self, int64_t n)
{
  TdDataset *d = td__dataset_make ();

  d->cls = cls;
  d->self = self;
  d->n = d->n_rows = n;
  return d;
}

bool
td__datasets_usable (TdDataset *const *datasets, int n, const char *call)
{
  if (!td__list_there (datasets, n, call, NULL))
    return false;
  for (int i = 0; i < n; i++)
    {
      if (!td__dataset_usable (datasets[i], call, NULL))
        return false;
      if (datasets[i]->is_text)
        {
          td__fail (TD_ERR_ARG, call, NULL, "a text has no examples: td_text_iterator_new");
          return false;
        }
    }
  return true;
}

void
td_dataset_free (TdDataset *dataset)
{
  if (td__stranger ("td_dataset_free") || dataset == NULL || dataset->inert
      || dataset->object.freed || !td__engine.started)
    return;
  td__object_remove (&dataset->object);
  dataset->object.freed = true; /* for the program: iterators may still read it */
  td__dataset_unref (dataset);
}

int64_t
td_dataset_size (const TdDataset *dataset)
{
  return dataset != NULL ? dataset->n : 0;
}

TdShape
td_dataset_shape (const TdDataset *dataset)
{
  static const TdShape none = { 0, { 0 } };
  char why[TD_WHY_BYTES];
  TdExample e = { .n_fields = 0 };
  TdShape shape = dataset != NULL ? dataset->row : none;

  if (dataset != NULL && dataset->cls != NULL && td__dataset_example (dataset, 0, &e, why)
      && e.n_fields > 0)
    shape = e.field[0].shape;
  td_example_clear (&e);
  return shape;
}

TdStatus
td_dataset_slice (TdDataset *dataset, int64_t start, int64_t stop)
{
  if (!td__dataset_usable (dataset, "td_dataset_slice", NULL))
    return td__error_status ();
  if (start < 0 || stop < start || stop > dataset->n)
    return td__fail (TD_ERR_ARG, "td_dataset_slice", NULL,
                     "rows %lld to %lld are not among %lld", (long long)start, (long long)stop,
                     (long long)dataset->n);
  dataset->first += start;
  dataset->n = stop - start;
  return TD_OK;
}

/* The float of each byte, value / 255: a table is four times as fast as dividing. */
static const float *
floats_of_bytes (void)
{
  static float table[256];

  for (int i = 0; table[255] == 0 && i < 256; i++)
    table[i] = (float)i / 255.0f;
  return table;
}

void
td__dataset_row (const TdDataset *d, int64_t i, float *x)
{
  size_t at = (size_t)(d->first + i) * (size_t)d->row_size;
  const float *float_of = floats_of_bytes ();

  if (d->floats != NULL)
    memcpy (x, d->floats + at, (size_t)d->row_size * sizeof *x);
  else
    for (int64_t k = 0; k < d->row_size; k++)
      x[k] = float_of[d->bytes[at + (size_t)k]];
}

/* All elements of v as doubles; NULL after td__fail. */
static double *
elements (const TdVar *v)
{
  int64_t n = td_shape_size (&v->node->shape);
  char *raw = malloc (v->buffer->bytes + 1);
  double *out = malloc ((size_t)n * sizeof *out + 1);

  if (raw == NULL || out == NULL)
    td__fail (TD_ERR_MEMORY, "td_tuple_dataset_new", NULL, "no memory for %lld elements",
              (long long)n);
  else if (td_read (v, raw, v->buffer->bytes) == TD_OK)
    {
      for (int64_t i = 0; i < n; i++)
        out[i] = td__host_element (raw, (TdDtype)v->node->dtype, i);
      free (raw);
      return out;
    }
  free (raw);
  free (out);
  return NULL;
}

static bool
tuple_shapes_ok (const TdVar *x, const TdVar *t)
{
  char a[160], b[160];

  if (!td__var_usable (x, "td_tuple_dataset_new", NULL)
      || (t != NULL && !td__var_usable (t, "td_tuple_dataset_new", NULL)))
    return false;
  if (x->node->shape.ndim > 0
      && (t == NULL
          || (t->node->shape.ndim == 1 && t->node->shape.dim[0] == x->node->shape.dim[0])))
    return true;
  td__fail (TD_ERR_SHAPE, "td_tuple_dataset_new", NULL,
            "x (n, ...) and t (n) expected, got x %s and t %s",
            td_shape_text (&x->node->shape, a, sizeof a),
            t != NULL ? td_shape_text (&t->node->shape, b, sizeof b) : "NULL");
  return false;
}

TdDataset *
td_tuple_dataset_new (TdVar *x, TdVar *t)
{
  double *xs, *ts = NULL;
  TdDataset *d;

  if (!tuple_shapes_ok (x, t))
    return td__dataset_inert ();
  xs = elements (x);
  if (t != NULL)
    ts = elements (t);
  if (xs == NULL || (t != NULL && ts == NULL))
    {
      free (xs);
      free (ts);
      return td__dataset_inert ();
    }
  d = td__dataset_make ();
  d->n = d->n_rows = x->node->shape.dim[0];
  d->row.ndim = x->node->shape.ndim - 1;
  for (int i = 0; i < d->row.ndim; i++)
    d->row.dim[i] = x->node->shape.dim[i + 1];
  d->row_size = td_shape_size (&d->row);
  d->floats = td__xcalloc ((size_t)(d->n * d->row_size) + 1, sizeof *d->floats);
  for (int64_t i = 0; i < d->n * d->row_size; i++)
    d->floats[i] = (float)xs[i];
  if (ts != NULL)
    {
      d->labels = td__xcalloc ((size_t)d->n + 1, sizeof *d->labels);
      for (int64_t i = 0; i < d->n; i++)
        d->labels[i] = (int32_t)ts[i];
    }
  free (xs);
  free (ts);
  return d;
}
