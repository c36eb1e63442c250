/* The IDX format of MNIST: two zero bytes, a type (8: unsigned bytes), a rank, one big-endian
 * 32-bit size for each axis, then the elements, the last axis fastest.
 *
 * Nothing is taken from a file on trust: sizes are checked against each other, and against what
 * the file can hold, before memory is taken for them.
 *
 * SPDX-License-Identifier: MIT */
#include "dataset.h"
#include "host-memory.h"

#include "source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
  TYPE_UBYTE = 8,
  FIRST_PIECE = 1 << 20
};

typedef struct
{
  const char *path;
  const TdSite *site;
  TdSource *source;
  TdShape shape;
  uint64_t bytes; /* of all elements */
  uint8_t *data;
} Idx;

static bool
fail_idx (const Idx *idx, const char *what)
{
  td__fail (TD_ERR_IO, "idx", idx->site, "%s: %s", idx->path, what);
  return false;
}

static bool
read_header (Idx *idx)
{
  unsigned char head[4 + 4 * TD_MAX_DIMS];
  char text[200];
  const char *why;
  bool is_empty = false;
  int64_t n = td__source_read (idx->source, head, 4, &why);

  if (n < 0)
    return fail_idx (idx, why);
  if (n < 4 || head[0] != 0 || head[1] != 0)
    return fail_idx (idx, "not an IDX file: it does not begin with two zero bytes");
  if (head[2] != TYPE_UBYTE || head[3] < 1 || head[3] > TD_MAX_DIMS)
    {
      snprintf (text, sizeof text,
                "elements of type 0x%02x in %d axes; unsigned bytes (0x08) in 1 to %d axes "
                "expected",
                head[2], head[3], TD_MAX_DIMS);
      return fail_idx (idx, text);
    }
  idx->shape.ndim = head[3];
  n = td__source_read (idx->source, head + 4, 4 * (size_t)head[3], &why);
  if (n < 0)
    return fail_idx (idx, why);
  if (n < 4 * head[3])
    return fail_idx (idx, "it ends within its header");
  idx->bytes = 1;
  for (int i = 0; i < idx->shape.ndim; i++)
    {
      const unsigned char *p = head + 4 + 4 * i;
      uint32_t size = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];

      idx->shape.dim[i] = (int64_t)size;
      /* without the zeros: rows may be too large although there are none */
      if (__builtin_mul_overflow (idx->bytes, size > 0 ? (uint64_t)size : 1, &idx->bytes)
          || idx->bytes > INT64_MAX)
        return fail_idx (idx, "its header promises more elements than can be counted");
      is_empty |= size == 0;
    }
  idx->bytes = is_empty ? 0 : idx->bytes;
  return true;
}

/* Memory grows with the bytes that really come, and never beyond what the header promises. */
static bool
read_elements (Idx *idx)
{
  uint64_t header = 4 + 4 * (uint64_t)idx->shape.ndim, got = 0, room = 0;
  char text[240], shape[160];
  unsigned char extra;
  const char *why;

  td_shape_text (&idx->shape, shape, sizeof shape);
  if (idx->bytes > td__source_most (idx->source)
      || (!td__source_is_gzip (idx->source)
          && header + idx->bytes > td__source_most (idx->source)))
    {
      snprintf (text, sizeof text,
                "its header promises %s elements, more than the file can hold", shape);
      return fail_idx (idx, text);
    }
  while (got < idx->bytes)
    {
      int64_t k;

      if (got == room)
        {
          uint8_t *more;

          room = room == 0 ? FIRST_PIECE : 2 * room;
          room = room < idx->bytes ? room : idx->bytes;
          more = realloc (idx->data, room);
          if (more == NULL)
            return fail_idx (idx, "no memory for its elements");
          idx->data = more;
        }
      k = td__source_read (idx->source, idx->data + got, room - got, &why);
      if (k < 0)
        return fail_idx (idx, why);
      got += (uint64_t)k;
      if (got < room)
        {
          snprintf (text, sizeof text,
                    "truncated: its header promises %s elements, it has %" PRIu64, shape, got);
          return fail_idx (idx, text);
        }
    }
  if (td__source_read (idx->source, &extra, 1, &why) == 0)
    return true;
  snprintf (text, sizeof text, "it goes on after the %s elements that its header promises",
            shape);
  return fail_idx (idx, text);
}

static bool
idx_read (Idx *idx)
{
  const char *why;
  bool ok;

  idx->source = td__source_open (idx->path, &why);
  if (idx->source == NULL)
    return fail_idx (idx, why);
  ok = read_header (idx) && read_elements (idx);
  td__source_close (idx->source);
  idx->source = NULL;
  if (!ok)
    {
      free (idx->data);
      idx->data = NULL;
    }
  return ok;
}

static bool
labels_fit (const Idx *labels, const Idx *images, int n_classes)
{
  char text[200];

  if (labels->shape.ndim != 1)
    return fail_idx (labels, "labels are in one axis");
  if (labels->shape.dim[0] != images->shape.dim[0])
    {
      snprintf (text, sizeof text, "%" PRId64 " labels for %" PRId64 " images",
                labels->shape.dim[0], images->shape.dim[0]);
      return fail_idx (labels, text);
    }
  for (int64_t i = 0; i < labels->shape.dim[0]; i++)
    if (labels->data[i] >= n_classes)
      {
        snprintf (text, sizeof text, "label %d of row %" PRId64 " is not in 0 to %d",
                  labels->data[i], i, n_classes - 1);
        return fail_idx (labels, text);
      }
  return true;
}

static TdDataset *
dataset_of (Idx *images, Idx *labels)
{
  TdDataset *d = td__dataset_make ();

  d->n = d->n_rows = images->shape.dim[0];
  d->row.ndim = images->shape.ndim - 1;
  for (int i = 0; i < d->row.ndim; i++)
    d->row.dim[i] = images->shape.dim[i + 1];
  d->row_size = td_shape_size (&d->row);
  d->bytes = images->data;
  if (labels != NULL)
    {
      d->labels = td__xcalloc ((size_t)d->n + 1, sizeof *d->labels);
      for (int64_t i = 0; i < d->n; i++)
        d->labels[i] = labels->data[i];
    }
  return d;
}

static TdDataset *
open_pair (const char *images_path, const char *labels_path, int n_classes, const TdSite *site)
{
  Idx images = { .path = images_path, .site = site };
  Idx labels = { .path = labels_path, .site = site };
  TdDataset *d = td__dataset_inert ();

  td__ensure_started ();
  if (images_path == NULL)
    td__fail (TD_ERR_ARG, "idx", site, "the path of the images is NULL");
  else if (idx_read (&images)
           && (labels_path == NULL
               || (idx_read (&labels) && labels_fit (&labels, &images, n_classes))))
    {
      d = dataset_of (&images, labels_path != NULL ? &labels : NULL);
      images.data = NULL;
    }
  free (images.data);
  free (labels.data);
  return d;
}

TdDataset *
td_idx_open_at (const char *images_path, const char *labels_path, const TdSite *site)
{
  if (td__stranger ("td_idx_open"))
    return td__dataset_inert ();
  return open_pair (images_path, labels_path, 256, site);
}

TdDataset *(td_idx_open)(const char *images_path, const char *labels_path)
{
  return td_idx_open_at (images_path, labels_path, NULL);
}

/* FOLDER/NAME or FOLDER/NAME.gz, whichever is there. */
static bool
find_file (const char *folder, const char *name, char *path, size_t size, const TdSite *site)
{
  static const char *const endings[] = { "", ".gz" };

  for (int i = 0; i < TD_ARRAY_LENGTH (endings); i++)
    {
      int n = snprintf (path, size, "%s/%s%s", folder, name, endings[i]);

      if (n > 0 && (size_t)n < size && access (path, F_OK) == 0)
        return true;
    }
  td__fail (TD_ERR_IO, "td_mnist_open", site, "%.400s: has no %s, with or without .gz", folder,
            name);
  return false;
}

TdDataset *
td_mnist_open_at (const char *folder, int part, const TdSite *site)
{
  char images[4096], labels[4096];
  bool train = part == TD_TRAIN;

  if (td__stranger ("td_mnist_open"))
    return td__dataset_inert ();
  if (part != TD_TRAIN && part != TD_TEST)
    {
      td__fail (TD_ERR_ARG, "td_mnist_open", site, "part %d is neither TD_TRAIN nor TD_TEST",
                part);
      return td__dataset_inert ();
    }
  if (folder == NULL)
    folder = getenv ("TAPEDECK_DATA"); /* NOLINT(concurrency-mt-unsafe) */
  if (folder == NULL || *folder == '\0')
    return td_digits_open (part);
  if (!find_file (folder, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte", images,
                  sizeof images, site)
      || !find_file (folder, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte",
                     labels, sizeof labels, site))
    return td__dataset_inert ();
  return open_pair (images, labels, 10, site);
}

TdDataset *(td_mnist_open)(const char *folder, int part)
{
  return td_mnist_open_at (folder, part, NULL);
}
