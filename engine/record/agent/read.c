/* Reading a live array on behalf of a debugger: see read.h.
 *
 * SPDX-License-Identifier: MIT */
#include "read.h"

#include "compute/core/copies.h"
#include "compute/core/inside.h"
#include "control.h"
#include "json-line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum
{
  MAX_WHERE = 400, /* escaped */
  MAX_STEP = 800
};

/* The node with this id, among all that live; free slots have id 0. */
static const TdNode *
find_node (uint64_t id)
{
  const TdSlab *slab = &td__engine.nodes;

  for (size_t c = 0; c < slab->n_chunks && id != 0; c++)
    for (size_t i = 0; i < TD_SLAB_ITEMS; i++)
      {
        const TdNode *n = (const TdNode *)(const void *)((const char *)slab->chunks[c]
                                                         + i * slab->item_bytes);

        if (n->id == id)
          return n;
      }
  return NULL;
}

static const TdBuffer *
array_of (const TdNode *n)
{
  if (n == NULL)
    return NULL;
  return n->var != NULL ? n->var->buffer : n->retained;
}

static bool
is_overwritten (const TdBuffer *b)
{
  const TdStaticTable *statics = td__engine.statics;

  return statics != NULL && statics->overwritten (b);
}

/* Its first n bytes, in the logical order. */
static TdStatus
download (const TdNode *node, const TdBuffer *b, size_t n, void *bytes)
{
  TdStatus status = TD_ERR_MEMORY;
  void *all;

  if (node->layout == TD_ROW_MAJOR)
    return b->device->ops->download (b->device, bytes, b->data, n);
  all = malloc (b->bytes + 1);
  if (all != NULL)
    status = td__layout_download (node, b, all, TD_COPY_RECORDING, NULL);
  if (status == TD_OK)
    memcpy (bytes, all, n);
  free (all);
  return status;
}

/* Copy n bytes of the array into new anonymous memory; -1 when that fails. */
static int
copy_out (const TdNode *node, const TdBuffer *b, size_t n)
{
  void *bytes;
  int memory = td__control_memory (n, &bytes);

  if (memory < 0 || n == 0)
    return memory;
  if (download (node, b, n, bytes) != TD_OK)
    {
      close (memory);
      memory = -1;
    }
  munmap (bytes, n);
  return memory;
}

static void
put_shape (TdJsonWriter *json, const TdShape *shape)
{
  td__json_key (json, "shape");
  td__json_begin_array (json);
  for (int d = 0; d < shape->ndim; d++)
    td__json_int (json, shape->dim[d]);
  td__json_end_array (json);
}

/* --- inside a fused group --- */

static void
send_error (int fd, const char *tag, const char *error)
{
  TdJsonLine line;

  td__control_send (fd, td__json_line_error (&line, tag, error), -1);
}

/* As many of the operations as a line holds, and how many there are. */
static void
list_inside (int fd, const char *tag)
{
  const TdStaticTable *statics = td__engine.statics;
  const uint32_t n = statics->n ();
  TdJsonLine line;
  TdJsonWriter *json = td__json_line_begin (&line, tag);

  td__json_member_bool (json, "ok", true);
  td__json_member_uint (json, "n", n);
  td__json_member_bool (json, "ran", statics->ran ());
  td__json_key (json, "steps");
  td__json_begin_array (json);
  for (uint32_t k = 0; k < n && td__json_line_room (&line) > MAX_STEP; k++)
    {
      const TdInsideStep step = statics->step (k);
      char where[300];

      snprintf (where, sizeof where, "%.280s:%d", step.site != NULL ? step.site->file : "?",
                step.site != NULL ? step.site->line : 0);
      td__json_begin_object (json);
      td__json_member_string (json, "op", step.cls->name);
      td__json_key (json, "where");
      td__json_cut_string (json, where, MAX_WHERE);
      td__json_member_string (json, "dtype", td_dtype_name (step.dtype));
      put_shape (json, step.shape);
      td__json_end_object (json);
    }
  td__json_end_array (json);
  td__control_send (fd, td__json_line_end (&line), -1);
}

void
td__agent_inside (int fd, const char *tag, const char *arguments)
{
  const TdStaticTable *statics = td__engine.statics;
  char *end, text[512];
  const unsigned long long k = strtoull (arguments, &end, 10), most = strtoull (end, NULL, 10);
  TdInsideArray a;
  size_t bytes;

  if (statics == NULL || statics->n () == 0)
    {
      send_error (fd, tag, "the program does not stand at a fused group");
      return;
    }
  if (end == arguments)
    {
      list_inside (fd, tag);
      return;
    }
  if (!statics->run (k < UINT32_MAX ? (uint32_t)k : UINT32_MAX, &a, text, sizeof text))
    {
      send_error (fd, tag, text);
      return;
    }
  bytes = td__control_part (a.bytes, most);
  td__control_answer_array (fd, tag,
                            &(TdControlArray){ .op = a.step.cls->name,
                                               .dtype = td_dtype_name (a.step.dtype),
                                               .ndim = (uint32_t)a.step.shape->ndim,
                                               .dims = a.step.shape->dim,
                                               .bytes = bytes,
                                               .total = a.bytes },
                            td__control_copy (a.data, bytes));
  free (a.data);
}

void
td__agent_read (int fd, const char *tag, const char *arguments)
{
  uint64_t id, most;
  const TdNode *n;
  const TdBuffer *b;
  size_t bytes;

  if (!td__control_parse_read (arguments, &id, &most))
    {
      send_error (fd, tag, TD_CONTROL_WRONG_READ);
      return;
    }
  n = find_node (id);
  b = array_of (n);
  if (b == NULL || !b->device->computes || is_overwritten (b))
    {
      char error[120];

      snprintf (error, sizeof error, "array %" PRIu64 " is %s", id,
                b != NULL && b->device->computes
                    ? "not there: its static function uses the memory for another"
                    : "no longer there");
      send_error (fd, tag, error);
      return;
    }
  bytes = td__control_part (b->bytes, most);
  td__control_answer_array (fd, tag,
                            &(TdControlArray){ .id = id,
                                               .dtype = td_dtype_name ((TdDtype)n->dtype),
                                               .ndim = (uint32_t)n->shape.ndim,
                                               .dims = n->shape.dim,
                                               .bytes = bytes,
                                               .total = b->bytes,
                                               .version = b->version },
                            copy_out (n, b, bytes));
}
