/* Data sets in NumPy's npz files: arrays of equally many rows, in their own dtypes.
 *
 * SPDX-License-Identifier: MIT */
#include "dataset.h"
#include "host-memory.h"

#include "../serial/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  const char *path;
  const TdSite *site;
  TdArchiveSource *source;
  TdColumn columns[TD_MAX_FIELDS];
  int n;
  int64_t n_rows;
} Npz;

static bool
fail_npz (const Npz *npz, const char *key, const char *what)
{
  td__fail (TD_ERR_IO, "td_npz_open", npz->site, "%.400s: %.200s: %.300s", npz->path, key,
            what);
  return false;
}

/* Take the array of a key as the next column. */
static bool
take (Npz *npz, const char *key, bool named)
{
  TdColumn *c = &npz->columns[npz->n];
  const char *why;
  TdRecord value;
  char text[200];

  if (!npz->source->has (npz->source, key))
    return fail_npz (npz, key, td__no_such_array);
  if (npz->n == TD_MAX_FIELDS)
    return fail_npz (npz, key, "one array more than an example can have fields");
  memset (&value, 0, sizeof value);
  if (!npz->source->read (npz->source, key, &value, &why))
    return fail_npz (npz, key, why);
  *c = (TdColumn){ NULL, value.dtype, { 0, { 0 } }, 0, value.data };
  npz->n++;
  if (value.kind != TD_RECORD_ARRAY || value.shape.ndim == 0)
    return fail_npz (npz, key, "it has no rows");
  if (npz->n == 1)
    npz->n_rows = value.shape.dim[0];
  if (value.shape.dim[0] != npz->n_rows)
    {
      snprintf (text, sizeof text, "it has %lld rows, the first array %lld",
                (long long)value.shape.dim[0], (long long)npz->n_rows);
      return fail_npz (npz, key, text);
    }
  c->row.ndim = value.shape.ndim - 1;
  for (int i = 0; i < c->row.ndim; i++)
    c->row.dim[i] = value.shape.dim[i + 1];
  c->row_bytes = (size_t)td_shape_size (&c->row) * td_dtype_bytes (c->dtype);
  c->name = named ? td__xstrdup (key) : NULL;
  return true;
}

static bool
take_all (Npz *npz)
{
  char key[4096];
  bool ok = true;

  for (int i = 0; ok && npz->source->key (npz->source, i, key, sizeof key); i++)
    ok = take (npz, key, true);
  return ok && (npz->n > 0 || fail_npz (npz, "*", "there is no array in the file"));
}

TdDataset *
td_npz_open_at (const char *path, const char *x_key, const char *t_key, const TdSite *site)
{
  Npz npz = { .path = path, .site = site };
  const char *why;
  bool ok;

  td__ensure_started ();
  if (td__stranger ("td_npz_open"))
    return td__dataset_inert ();
  if (path == NULL || (x_key == NULL && t_key != NULL))
    {
      td__fail (TD_ERR_ARG, "td_npz_open", site, "%s",
                path == NULL ? "the path is NULL"
                             : "a key of labels, but none of what they label");
      return td__dataset_inert ();
    }
  npz.source = td__archive_open (path, TD_FILE_NPZ, &why);
  if (npz.source == NULL)
    {
      td__fail (TD_ERR_IO, "td_npz_open", site, "%.400s: %s", path, why);
      return td__dataset_inert ();
    }
  ok = x_key == NULL
           ? take_all (&npz)
           : take (&npz, x_key, false) && (t_key == NULL || take (&npz, t_key, false));
  npz.source->close (npz.source);
  if (ok)
    return td__dataset_of_columns (npz.columns, npz.n, npz.n_rows);
  for (int i = 0; i < npz.n; i++)
    {
      free (npz.columns[i].name);
      free (npz.columns[i].data);
    }
  return td__dataset_inert ();
}

TdDataset *(td_npz_open)(const char *path, const char *x_key, const char *t_key)
{
  return td_npz_open_at (path, x_key, t_key, NULL);
}
