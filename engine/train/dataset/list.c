/* A dataset of examples that were added one by one, of any shapes.
 *
 * SPDX-License-Identifier: MIT */
#include "dataset.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdExample *examples;
  int64_t n, room;
} List;

static bool
list_get (const TdDataset *d, int64_t i, TdExample *e, char *why)
{
  const List *list = d->self;

  (void)why;
  memcpy (e->field, list->examples[i].field, sizeof e->field);
  e->n_fields = list->examples[i].n_fields;
  return true;
}

static void
list_free (void *self)
{
  List *list = self;

  for (int64_t i = 0; i < list->n; i++)
    td_example_clear (&list->examples[i]);
  free (list->examples);
  free (list);
}

static const TdDatasetClass list_class = { list_get, list_free };

TdDataset *
td_list_dataset_new (void)
{
  if (td__stranger ("td_list_dataset_new"))
    return td__dataset_inert ();
  return td__dataset_of (&list_class, td__xcalloc (1, sizeof (List)), 0);
}

TdStatus
td_list_dataset_add (TdDataset *d, const TdField *fields, int n)
{
  TdExample e = { .n_fields = 0 };
  const TdExample *first;
  List *list;

  if (!td__dataset_usable (d, "td_list_dataset_add", NULL))
    return td__error_status ();
  if (d->cls != &list_class || d->n != ((List *)d->self)->n)
    return td__fail (TD_ERR_ARG, "td_list_dataset_add", NULL,
                     "a whole dataset of td_list_dataset_new expected");
  list = d->self;
  first = list->n > 0 ? &list->examples[0] : NULL;
  if (n < 1 || n > TD_MAX_FIELDS || (first != NULL && n != first->n_fields))
    return td__fail (TD_ERR_ARG, "td_list_dataset_add", NULL, "%d fields expected, got %d",
                     first != NULL ? first->n_fields : 1, n);
  for (int k = 0; k < n; k++)
    if (fields[k].data == NULL || (first != NULL && fields[k].dtype != first->field[k].dtype)
        || td_example_set (&e, k, fields[k].dtype, fields[k].shape, fields[k].data) == NULL)
      {
        td_example_clear (&e);
        return td__fail (TD_ERR_ARG, "td_list_dataset_add", NULL,
                         "field %d of example %lld: data of the first example's dtype expected",
                         k, (long long)list->n);
      }
  for (int k = 0; k < n; k++)
    e.field[k].name = fields[k].name != NULL ? td__intern (fields[k].name) : NULL;
  if (list->n == list->room)
    {
      list->room = list->room > 0 ? 2 * list->room : 64;
      list->examples
          = td__xrealloc (list->examples, (size_t)list->room * sizeof *list->examples);
    }
  list->examples[list->n++] = e;
  d->n = d->n_rows = list->n;
  return TD_OK;
}
