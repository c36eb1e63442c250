/* Batches out of examples: reading rows, stacking them on a new axis, filling up shorter ones.
 *
 * SPDX-License-Identifier: MIT */
#include "dataset.h"
#include "host-memory.h"

#include "compute/core/copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *
room_for (TdHostBatch *b, int k, size_t bytes)
{
  if (bytes <= b->field[k].pinned_bytes)
    return b->field[k].data = b->field[k].pinned;
  if (bytes > b->field[k].own_bytes)
    {
      free (b->field[k].own);
      b->field[k].own = td__xrealloc (NULL, bytes);
      b->field[k].own_bytes = bytes;
    }
  return b->field[k].data = b->field[k].own;
}

void
td__host_batch_clear (TdHostBatch *b)
{
  for (int k = 0; k < TD_MAX_FIELDS; k++)
    {
      free (b->field[k].own);
      if (b->field[k].pinned != NULL)
        b->device->ops->ahead->host_free (b->device, b->field[k].pinned);
    }
  *b = (TdHostBatch){ .n = 0 };
}

static void refuse (TdHostBatch *b, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

static void
refuse (TdHostBatch *b, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  vsnprintf (b->why, sizeof b->why, format, args);
  va_end (args);
  b->failed = true;
}

/* --- stacking --- */

/* Elements of dtype that all have this value. */
static void
fill (void *data, TdDtype dtype, int64_t n, double value)
{
  for (int64_t i = 0; i < n; i++)
    switch (dtype)
      {
      case TD_F32:
        ((float *)data)[i] = (float)value;
        break;
      case TD_F64:
        ((double *)data)[i] = value;
        break;
      case TD_I32:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
      case TD_I64:
        ((int64_t *)data)[i] = (int64_t)value;
        break;
      case TD_U8:
      case TD_BOOL:
        ((uint8_t *)data)[i] = (uint8_t)value;
        break;
      case TD_F16:
      case TD_BF16:
        break; /* refused before */
      }
}

/* Copy an array of shape `from` to the front corner of one of shape `to`. */
static void
place (void *to_data, const TdShape *to, const void *from_data, const TdShape *from,
       size_t item)
{
  int64_t run = from->ndim > 0 ? from->dim[from->ndim - 1] : 1, at[TD_MAX_DIMS] = { 0 };
  int64_t n_runs = run > 0 ? td__size (from) / run : 0;

  for (int64_t r = 0; r < n_runs; r++)
    {
      int64_t offset = 0;

      for (int a = 0; a + 1 < from->ndim; a++)
        offset = (offset + at[a]) * to->dim[a + 1];
      memcpy ((char *)to_data + (size_t)offset * item,
              (const char *)from_data + (size_t)(r * run) * item, (size_t)run * item);
      for (int a = from->ndim - 2; a >= 0 && ++at[a] == from->dim[a]; a--)
        at[a] = 0;
    }
}

/* The shape that holds field k of all examples. */
static bool
common_shape (const TdExample *e, int64_t n, int k, bool padded, TdShape *shape,
              TdHostBatch *out)
{
  char a[160], b[160];

  *shape = e[0].field[k].shape;
  for (int64_t i = 1; i < n; i++)
    {
      const TdField *f = &e[i].field[k];

      if (f->dtype != e[0].field[k].dtype)
        refuse (out, "field %d of row %lld is %s, of row %lld %s: one dtype expected", k,
                (long long)e[0].index, td_dtype_name (e[0].field[k].dtype),
                (long long)e[i].index, td_dtype_name (f->dtype));
      else if (f->shape.ndim != shape->ndim || (!padded && !td_shape_equal (&f->shape, shape)))
        refuse (out, "field %d of row %lld has shape %s, of row %lld %s: %s", k,
                (long long)e[0].index, td_shape_text (&e[0].field[k].shape, a, sizeof a),
                (long long)e[i].index, td_shape_text (&f->shape, b, sizeof b),
                f->shape.ndim != shape->ndim ? "equal numbers of axes expected"
                                             : "equal shapes expected, or padding");
      if (out->failed)
        return false;
      for (int axis = 0; axis < shape->ndim; axis++)
        if (shape->dim[axis] < f->shape.dim[axis])
          shape->dim[axis] = f->shape.dim[axis];
    }
  return true;
}

/* A new field of n rows. */
static bool
begin_field (TdHostBatch *out, int k, const char *name, TdDtype dtype, const TdShape *row,
             int64_t n)
{
  TdShape shape = { row->ndim + 1, { n } };
  size_t bytes;

  if (row->ndim == TD_MAX_DIMS)
    refuse (out, "field %d has %d axes already: none is left for the batch", k, row->ndim);
  for (int i = 0; i < row->ndim && !out->failed; i++)
    shape.dim[i + 1] = row->dim[i];
  if (!out->failed && !td__shape_bytes (&shape, dtype, &bytes))
    refuse (out, "field %d of %lld rows is too large", k, (long long)n);
  if (out->failed)
    return false;
  room_for (out, k, bytes + 1);
  out->field[k].name = name;
  out->field[k].dtype = dtype;
  out->field[k].shape = shape;
  return true;
}

static void
stack_field (const TdExample *e, int64_t n, int k, const TdGatherRule *rule, TdHostBatch *out)
{
  bool padded = rule != NULL && rule->n_padding > 0;
  TdDtype dtype = e[0].field[k].dtype;
  size_t item = td_dtype_bytes (dtype), row_bytes;
  TdShape row;

  if (padded && (dtype == TD_F16 || dtype == TD_BF16))
    refuse (out, "field %d is %s, which is not padded", k, td_dtype_name (dtype));
  if (out->failed || !common_shape (e, n, k, padded, &row, out)
      || !begin_field (out, k, e[0].field[k].name, dtype, &row, n))
    return;
  row_bytes = (size_t)td__size (&row) * item;
  if (padded)
    fill (out->field[k].data, dtype, n * td__size (&row),
          rule->padding[rule->n_padding == 1 ? 0 : k]);
  for (int64_t i = 0; i < n; i++)
    place ((char *)out->field[k].data + (size_t)i * row_bytes, &row, e[i].field[k].data,
           &e[i].field[k].shape, item);
}

void
td__gather_examples (const TdExample *e, int64_t n, const TdGatherRule *rule, TdHostBatch *out)
{
  out->failed = false;
  out->n = n;
  out->n_fields = n > 0 ? e[0].n_fields : 0;
  if (n <= 0)
    refuse (out, "at least one example expected");
  else if (rule != NULL && rule->n_padding > 1 && rule->n_padding != out->n_fields)
    refuse (out, "%d paddings for %d fields", rule->n_padding, out->n_fields);
  for (int64_t i = 1; i < n && !out->failed; i++)
    if (e[i].n_fields != e[0].n_fields)
      refuse (out, "row %lld has %d fields, row %lld has %d", (long long)e[0].index,
              e[0].n_fields, (long long)e[i].index, e[i].n_fields);
  for (int k = 0; k < out->n_fields && !out->failed; k++)
    stack_field (e, n, k, rule, out);
}

/* --- reading --- */

/* Rows of plain memory go straight to their place. */
static void
gather_plain (const TdDataset *d, const int64_t *rows, int64_t n, TdHostBatch *out)
{
  static const TdShape scalar = { 0, { 0 } };

  out->n = n;
  out->n_fields = d->labels != NULL ? 2 : 1;
  if (!begin_field (out, 0, NULL, TD_F32, &d->row, n)
      || (d->labels != NULL && !begin_field (out, 1, NULL, TD_I32, &scalar, n)))
    return;
  for (int64_t i = 0; i < n; i++)
    {
      td__dataset_row (d, rows[i], (float *)out->field[0].data + i * d->row_size);
      if (d->labels != NULL)
        ((int32_t *)out->field[1].data)[i] = d->labels[d->first + rows[i]];
    }
}

/* The one plain dataset that all rows lie in, with their places there; NULL: another kind. */
static const TdDataset *
plain_under (const TdDataset *d, const int64_t *rows, int64_t n, int64_t *places)
{
  const TdDataset *base = NULL;

  for (int64_t i = 0; i < n; i++)
    {
      places[i] = rows[i];
      if (rows[i] < 0 || rows[i] >= d->n)
        return NULL;
      base = td__dataset_resolve (d, &places[i]);
      if (base == NULL || base->cls != NULL)
        return NULL;
    }
  return base;
}

void
td__gather_rows (const TdDataset *d, const int64_t *rows, int64_t n, uint64_t seed,
                 int64_t draw, const TdGatherRule *rule, TdHostBatch *out)
{
  int64_t *places = td__xcalloc ((size_t)n, sizeof *places);
  const TdDataset *plain = plain_under (d, rows, n, places);
  TdExample *e;

  out->failed = false;
  if (plain != NULL)
    {
      gather_plain (plain, places, n, out);
      free (places);
      return;
    }
  e = td__xcalloc ((size_t)n, sizeof *e);
  for (int64_t i = 0; i < n && !out->failed; i++)
    {
      uint64_t state = seed + (uint64_t)(draw + i);

      e[i].seed = td__random_next (&state);
      out->failed = !td__dataset_example (d, rows[i], &e[i], out->why);
    }
  if (!out->failed)
    td__gather_examples (e, n, rule, out);
  for (int64_t i = 0; i < n; i++)
    td_example_clear (&e[i]);
  free (e);
  free (places);
}

/* --- to the device --- */

TdBatch
td__batch_poison (void)
{
  TdBatch b = { .x = td__poison (), .t = td__poison () };

  for (int k = 0; k < TD_MAX_FIELDS; k++)
    b.field[k] = td__poison ();
  return b;
}

TdBatch
td__host_batch_send (const TdHostBatch *h, TdBlock *const *blocks, const char *call,
                     const TdSite *site)
{
  static const char *const names[TD_MAX_FIELDS] = { "x", "t" };
  TdBatch b = { .n = h->n, .n_fields = h->n_fields };

  if (h->failed)
    {
      td__fail (TD_ERR_SHAPE, call, site, "%s", h->why);
      return td__batch_poison ();
    }
  for (int k = 0; k < h->n_fields; k++)
    {
      const char *name = h->field[k].name != NULL ? h->field[k].name : names[k];
      TdDtype dtype = h->field[k].dtype;
      const TdShape *shape = &h->field[k].shape;
      TdVar *v = blocks != NULL
                     ? td__tensor_of_block (dtype, shape, td__engine.device, blocks[k], site)
                     : td__tensor_for (TD_COPY_BATCH, dtype, shape, h->field[k].data, site);

      b.field[k] = td_poisoned (v) || name == NULL ? v : td_name (v, name);
      b.name[k] = h->field[k].name;
    }
  b.x = b.field[0];
  b.t = b.n_fields > 1 ? b.field[1] : NULL;
  return b;
}

TdVar *
td_batch_get (const TdBatch *b, const char *name)
{
  if (!td__list_there (b, 1, "td_batch_get", NULL))
    return td__poison ();
  for (int k = 0; k < b->n_fields && name != NULL; k++)
    if (b->name[k] != NULL && strcmp (b->name[k], name) == 0)
      return b->field[k];
  if (b->n_fields > 0 || !td_poisoned (b->x))
    td__fail (TD_ERR_ARG, "td_batch_get", NULL, "the batch has no field \"%s\"",
              name != NULL ? name : "(null)");
  return td__poison ();
}

TdBatch
td_concat_examples (const TdExample *examples, int64_t n, const double *padding, int n_padding)
{
  TdGatherRule rule = { .n_padding = n_padding };
  TdHostBatch host = { .n = 0 };
  TdBatch b;

  if (td__check_thread ("td_concat_examples") != TD_OK)
    return td__batch_poison ();
  if (n_padding < 0 || n_padding > TD_MAX_FIELDS || (n_padding > 0 && padding == NULL))
    {
      td__fail (TD_ERR_ARG, "td_concat_examples", NULL, "0 to %d paddings expected, got %d",
                TD_MAX_FIELDS, n_padding);
      return td__batch_poison ();
    }
  if (!td__list_there (examples, n, "td_concat_examples", NULL))
    return td__batch_poison ();
  for (int k = 0; k < n_padding; k++)
    rule.padding[k] = padding[k];
  td__gather_examples (examples, n, &rule, &host);
  b = td__host_batch_send (&host, NULL, "td_concat_examples", NULL);
  td__host_batch_clear (&host);
  return b;
}
