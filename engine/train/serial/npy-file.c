/* One array in a file of its own: numpy.load and numpy.save.
 *
 * SPDX-License-Identifier: MIT */
#include "../links/link.h"
#include "host-memory.h"

#include "compute/core/copies.h"

#include "npy.h"
#include "read-file.h"
#include "replace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *
system_says (void)
{
  return strerror (errno); /* NOLINT(concurrency-mt-unsafe) */
}

TdVar *
td_load_npy_at (const char *path, const TdSite *site)
{
  const char *why = "the path is NULL";
  size_t bytes, need;
  TdVar *v = td__poison ();
  void *data, *elements;
  TdNpy npy;

  if (td__stranger ("td_load_npy"))
    return v;
  data = path != NULL ? td__read_file (path, &bytes, &why) : NULL;
  if (data == NULL || !td__npy_parse (data, bytes, &npy, &why))
    {
      td__fail (TD_ERR_IO, "td_load_npy", site, "%.400s: %s", path != NULL ? path : "", why);
      free (data);
      return v;
    }
  elements = (char *)data + npy.offset;
  if (npy.fortran && npy.shape.ndim > 1 && td__shape_bytes (&npy.shape, npy.dtype, &need))
    {
      elements = td__xcalloc (1, need + 1);
      td__npy_convert (&npy, (char *)data + npy.offset, npy.dtype, elements);
    }
  v = td__tensor_for (TD_COPY_LOAD, npy.dtype, &npy.shape, elements, site);
  if (elements != (char *)data + npy.offset)
    free (elements);
  free (data);
  return v;
}

TdVar *(td_load_npy)(const char *path)
{
  return td_load_npy_at (path, NULL);
}

TdStatus
td_save_npy_at (const char *path, const TdVar *v, const TdSite *site)
{
  const char *why = "no memory to copy it";
  TdShape shape = td_shape (v);
  size_t need, bytes;
  TdStatus status = TD_OK;
  void *host, *npy;

  if (path == NULL)
    return td__fail (TD_ERR_ARG, "td_save_npy", site, "the path is NULL");
  if (!td__shape_bytes (&shape, td_dtype (v), &need))
    return td__fail (TD_ERR_SHAPE, "td_save_npy", site, "%.400s: its sizes overflow", path);
  host = malloc (need + 1);
  if (host != NULL && (status = td_read_at (v, host, need, site)) == TD_OK)
    {
      npy = td__npy_format (td_dtype (v), &shape, host, &bytes);
      why = td__replace_file (path, npy, bytes) ? NULL : system_says ();
      free (npy);
    }
  free (host);
  if (status == TD_OK && why != NULL)
    status = td__fail (TD_ERR_IO, "td_save_npy", site, "%.400s: %s", path, why);
  return status;
}

TdStatus (td_save_npy) (const char *path, const TdVar *v)
{
  return td_save_npy_at (path, v, NULL);
}
