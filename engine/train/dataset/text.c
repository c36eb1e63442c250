/* Texts: their bytes as ids, numbered in order of first appearance.
 *
 * SPDX-License-Identifier: MIT */
#include "dataset.h"
#include "host-memory.h"

#include "source.h"

#include <stdlib.h>
#include <string.h>

static TdDataset *
number_bytes (uint8_t *bytes, size_t n)
{
  TdDataset *d = td__dataset_make ();
  int id_of_byte[256];

  memset (id_of_byte, -1, sizeof id_of_byte);
  for (size_t i = 0; i < n; i++)
    {
      int b = bytes[i];

      if (id_of_byte[b] < 0)
        {
          id_of_byte[b] = d->n_ids;
          d->byte_of_id[d->n_ids++] = (uint8_t)b;
        }
      bytes[i] = (uint8_t)id_of_byte[b];
    }
  d->is_text = true;
  d->bytes = bytes;
  d->n = d->n_rows = (int64_t)n;
  d->row_size = 1;
  return d;
}

TdDataset *
td_text_open_at (const char *path, const TdSite *site)
{
  const char *why = "the path is NULL";
  TdSource *source;
  uint8_t *bytes = NULL;
  uint64_t most;
  int64_t n = -1;

  td__ensure_started ();
  if (td__stranger ("td_text_open"))
    return td__dataset_inert ();
  source = path != NULL ? td__source_open (path, &why) : NULL;
  if (source != NULL && td__source_is_gzip (source))
    why = "gzip: unpack it first";
  else if (source != NULL)
    {
      most = td__source_most (source);
      bytes = malloc (most + 1);
      why = "no memory for it";
      n = bytes != NULL ? td__source_read (source, bytes, most, &why) : -1;
      if (n >= 0 && n < 2)
        {
          why = "a text of two or more characters expected";
          n = -1;
        }
    }
  td__source_close (source);
  if (n >= 0)
    return number_bytes (bytes, (size_t)n);
  free (bytes);
  td__fail (TD_ERR_IO, "td_text_open", site, "%.400s: %s", path != NULL ? path : "(null)", why);
  return td__dataset_inert ();
}

TdDataset *(td_text_open)(const char *path)
{
  return td_text_open_at (path, NULL);
}

TdDataset *
td_text_from (const char *text)
{
  td__ensure_started ();
  if (td__stranger ("td_text_from"))
    return td__dataset_inert ();
  if (text != NULL && strlen (text) >= 2)
    return number_bytes ((uint8_t *)td__xstrdup (text), strlen (text));
  td__fail (TD_ERR_ARG, "td_text_from", NULL, "a text of two or more characters expected");
  return td__dataset_inert ();
}

int
td_text_vocabulary (const TdDataset *text)
{
  return td__stranger ("td_text_vocabulary") || text == NULL ? 0 : text->n_ids;
}

int
td_text_byte (const TdDataset *text, int id)
{
  return !td__stranger ("td_text_byte") && text != NULL && id >= 0 && id < text->n_ids
             ? text->byte_of_id[id]
             : -1;
}
