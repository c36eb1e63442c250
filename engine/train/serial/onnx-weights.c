/* Writing the file of an ONNX model, array by array.
 *
 * *Source*: github.com/onnx/onnx, docs/ExternalData.md.
 * SPDX-License-Identifier: MIT */
#include "onnx-weights.h"

#include "../links/object.h"
#include "export.h"
#include "onnx-fields.h"
#include "replace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  PAGE = 4096, /* arrays begin at its multiples, so that a reader may map them */
  EXTERNAL = 1 /* of TENSOR_LOCATION */
};

size_t td__onnx_most_bytes = INT32_MAX;

void
td__onnx_weights_add (TdOnnxWeights *w, uint32_t node, const char *name)
{
  w->list = td__xrealloc (w->list, (w->n + 1) * sizeof *w->list);
  w->list[w->n++] = (TdOnnxWeight){ node, name };
}

void
td__onnx_weights_free (TdOnnxWeights *w)
{
  free (w->list);
  *w = (TdOnnxWeights){ NULL, 0 };
}

static size_t
bytes_of (const TdSchedule *s, uint32_t node)
{
  return (size_t)td__size (&s->nodes[node].shape) * td__dtype_sizes[s->nodes[node].dtype];
}

static void
entry (TdMessage *tensor, const char *key, const char *value)
{
  TdMessage m = { NULL, 0, 0 };

  td__message_text (&m, ENTRY_KEY, key);
  td__message_text (&m, ENTRY_VALUE, value);
  td__message_nest (tensor, TENSOR_EXTERNAL, &m);
}

/* An initializer but for its numbers, which follow if location is NULL. */
static TdMessage
head_of (const TdSchedule *s, const TdOnnxWeight *w, const char *location, uint64_t offset)
{
  const TdNodeInfo *n = &s->nodes[w->node];
  const size_t bytes = bytes_of (s, w->node);
  TdMessage tensor = { NULL, 0, 0 }, whole = { NULL, 0, 0 };
  char number[24];

  for (int d = 0; d < n->shape.ndim; d++)
    td__message_int (&tensor, TENSOR_DIMS, n->shape.dim[d]);
  td__message_int (&tensor, TENSOR_TYPE, td__onnx_dtype (n->dtype));
  td__message_text (&tensor, TENSOR_NAME, w->name);
  if (location != NULL)
    {
      entry (&tensor, "location", location);
      snprintf (number, sizeof number, "%llu", (unsigned long long)offset);
      entry (&tensor, "offset", number);
      snprintf (number, sizeof number, "%zu", bytes);
      entry (&tensor, "length", number);
      td__message_int (&tensor, TENSOR_LOCATION, EXTERNAL);
    }
  else
    td__message_begin (&tensor, TENSOR_RAW, bytes);
  td__message_begin (&whole, GRAPH_INITIALIZER, tensor.n + (location != NULL ? 0 : bytes));
  td__message_append (&whole, &tensor);
  td__message_free (&tensor);
  return whole;
}

/* Those of the host as they lie there. */
static bool
write_numbers (const TdSchedule *s, uint32_t node, FILE *f, const TdSite *site)
{
  const TdBuffer *there = td__export_host (s, node);
  void *numbers = there == NULL ? td__export_numbers (s, node, site) : NULL;
  const size_t bytes = bytes_of (s, node);
  bool written;

  if (there == NULL && numbers == NULL)
    return false;
  written = bytes == 0 || fwrite (there != NULL ? there->data : numbers, bytes, 1, f) == 1;
  free (numbers);
  return written;
}

/* PATH.data, with each array at a multiple of a page; offsets: where. */
static bool
write_beside (const TdSchedule *s, const TdOnnxWeights *w, const char *path, uint64_t *offsets,
              const TdSite *site)
{
  static const char zeros[PAGE];
  char *name = td__xmalloc (strlen (path) + sizeof ".data");
  uint64_t at = 0;
  TdReplace r;
  bool whole;

  sprintf (name, "%s.data", path);
  whole = td__replace_begin (&r, name, 0666);
  free (name);
  if (!whole)
    return false;
  for (uint32_t i = 0; i < w->n && whole; i++)
    {
      const size_t more = (size_t)(PAGE - at % PAGE) % PAGE;

      whole = (more == 0 || fwrite (zeros, more, 1, r.file) == 1)
              && write_numbers (s, w->list[i].node, r.file, site);
      offsets[i] = at + more;
      at += more + bytes_of (s, w->list[i].node);
    }
  return td__replace_end (&r, whole) && whole;
}

static bool
put (FILE *f, const TdMessage *m)
{
  return m->n == 0 || fwrite (m->bytes, m->n, 1, f) == 1;
}

/* The model; heads: the initializers' messages. */
static bool
write_model (const TdSchedule *s, const TdOnnxWeights *w, const TdMessage *head,
             const TdMessage *graph, const TdMessage *heads, uint64_t n_graph,
             const TdMessage *tail, bool beside, FILE *f, const TdSite *site)
{
  TdMessage begin = { NULL, 0, 0 };
  bool whole = put (f, head);

  td__message_begin (&begin, MODEL_GRAPH, n_graph);
  whole = whole && put (f, &begin) && put (f, graph);
  td__message_free (&begin);
  for (uint32_t i = 0; i < w->n && whole; i++)
    whole = put (f, &heads[i]) && (beside || write_numbers (s, w->list[i].node, f, site));
  return whole && put (f, tail);
}

static TdStatus
fail (const char *call, const char *path, const TdSite *site)
{
  return td__engine.has_error
             ? td__error_status ()
             : td__fail (TD_ERR_IO, call, site, "%s: %s", path, strerror (errno));
}

TdStatus
td__onnx_write (const char *call, const TdSchedule *s, const TdOnnxWeights *w,
                const TdMessage *head, const TdMessage *graph, const TdMessage *tail,
                bool beside, const char *path, const TdSite *site)
{
  const char *slash = strrchr (path, '/');
  char *location = td__xmalloc (strlen (path) + sizeof ".data");
  TdMessage *heads = td__xcalloc (w->n + 1, sizeof *heads);
  uint64_t *offsets = td__xcalloc (w->n + 1, sizeof *offsets), n_graph = graph->n;
  TdReplace r;
  bool whole = true, begun = false;

  sprintf (location, "%s.data", slash != NULL ? slash + 1 : path);
  for (uint32_t i = 0; i < w->n; i++)
    n_graph += bytes_of (s, w->list[i].node) + 2 * PAGE;
  beside = w->n > 0 && (beside || n_graph + head->n + tail->n > td__onnx_most_bytes);
  n_graph = graph->n;
  if (beside)
    whole = write_beside (s, w, path, offsets, site);
  for (uint32_t i = 0; i < w->n; i++)
    {
      heads[i] = head_of (s, &w->list[i], beside ? location : NULL, offsets[i]);
      n_graph += heads[i].n + (beside ? 0 : bytes_of (s, w->list[i].node));
    }
  if (whole)
    whole = begun = td__replace_begin (&r, path, 0666);
  if (whole)
    whole = write_model (s, w, head, graph, heads, n_graph, tail, beside, r.file, site);
  if (begun)
    whole = td__replace_end (&r, whole) && whole;
  for (uint32_t i = 0; i < w->n; i++)
    td__message_free (&heads[i]);
  free (heads);
  free (offsets);
  free (location);
  return whole ? TD_OK : fail (call, path, site);
}
