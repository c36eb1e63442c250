/* Datasets of arrays: rows of several arrays of any dtype, with names or without.
 *
 * SPDX-License-Identifier: MIT */
#include "dataset.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdColumn column[TD_MAX_FIELDS];
  int n;
} Arrays;

static bool
arrays_get (const TdDataset *d, int64_t i, TdExample *e, char *why)
{
  const Arrays *a = d->self;

  (void)why;
  for (int k = 0; k < a->n; k++)
    e->field[k] = (TdField){ a->column[k].name, a->column[k].dtype, a->column[k].row,
                             a->column[k].data + (size_t)i * a->column[k].row_bytes };
  e->n_fields = a->n;
  return true;
}

static void
arrays_free (void *self)
{
  Arrays *a = self;

  for (int k = 0; k < a->n; k++)
    {
      free (a->column[k].name);
      free (a->column[k].data);
    }
  free (a);
}

static const TdDatasetClass arrays_class = { arrays_get, arrays_free };

static bool
arrays_ok (TdVar *const *arrays, int n, const char *call)
{
  char a[160], b[160];

  if (n < 1 || n > TD_MAX_FIELDS || arrays == NULL)
    {
      td__fail (TD_ERR_ARG, call, NULL, "1 to %d arrays expected, got %d", TD_MAX_FIELDS, n);
      return false;
    }
  for (int k = 0; k < n; k++)
    {
      if (!td__var_usable (arrays[k], call, NULL))
        return false;
      if (arrays[k]->node->shape.ndim > 0
          && arrays[k]->node->shape.dim[0] == arrays[0]->node->shape.dim[0])
        continue;
      td__fail (TD_ERR_SHAPE, call, NULL,
                "arrays of equally many rows expected, got array 0 %s and array %d %s",
                td_shape_text (&arrays[0]->node->shape, a, sizeof a), k,
                td_shape_text (&arrays[k]->node->shape, b, sizeof b));
      return false;
    }
  return true;
}

static TdStatus
take_column (TdColumn *c, TdVar *v, const char *name)
{
  const TdShape *shape = &v->node->shape;

  c->name = name != NULL ? td__xstrdup (name) : NULL;
  c->dtype = (TdDtype)v->node->dtype;
  c->row.ndim = shape->ndim - 1;
  for (int i = 0; i < c->row.ndim; i++)
    c->row.dim[i] = shape->dim[i + 1];
  c->row_bytes = (size_t)td__size (&c->row) * td_dtype_bytes (c->dtype);
  c->data = td__xcalloc (1, v->buffer->bytes + 1);
  return td_read (v, c->data, v->buffer->bytes);
}

TdDataset *
td__dataset_of_columns (const TdColumn *columns, int n, int64_t n_rows)
{
  Arrays *a = td__xcalloc (1, sizeof *a);

  for (int k = 0; k < n; k++)
    a->column[k] = columns[k];
  a->n = n;
  return td__dataset_of (&arrays_class, a, n_rows);
}

static TdDataset *
arrays_new (const char *const *names, TdVar *const *arrays, int n, const char *call)
{
  TdStatus status = TD_OK;
  Arrays *a;

  if (td__check_thread (call) != TD_OK || !arrays_ok (arrays, n, call))
    return td__dataset_inert ();
  a = td__xcalloc (1, sizeof *a);
  for (int k = 0; k < n && status == TD_OK; k++)
    status = take_column (&a->column[a->n++], arrays[k], names != NULL ? names[k] : NULL);
  if (status == TD_OK)
    return td__dataset_of (&arrays_class, a, arrays[0]->node->shape.dim[0]);
  arrays_free (a);
  return td__dataset_inert ();
}

TdDataset *
td_tuple_dataset_new_n (TdVar *const *arrays, int n)
{
  return arrays_new (NULL, arrays, n, "td_tuple_dataset_new_n");
}

TdDataset *
td_dict_dataset_new (const char *const *names, TdVar *const *arrays, int n)
{
  for (int k = 0; k < n; k++)
    {
      bool again = false;

      for (int i = 0; names != NULL && names[k] != NULL && i < k; i++)
        again = again || strcmp (names[i], names[k]) == 0;
      if (names != NULL && names[k] != NULL && *names[k] != '\0' && !again)
        continue;
      td__fail (TD_ERR_ARG, "td_dict_dataset_new", NULL, "a name of its own for array %d", k);
      return td__dataset_inert ();
    }
  return arrays_new (names, arrays, n, "td_dict_dataset_new");
}
