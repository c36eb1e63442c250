/* Reading a live array on behalf of a debugger: see read.h.
 *
 * SPDX-License-Identifier: MIT */
#include "read.h"

#include "../core/copies.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

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

static void
send_with_fd (int fd, const char *text, int memory)
{
  struct iovec part = { (void *)(uintptr_t)text, strlen (text) };
  union
  {
    struct cmsghdr head;
    char room[CMSG_SPACE (sizeof (int))];
  } control;
  struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

  if (memory >= 0)
    {
      struct cmsghdr *c;

      memset (&control, 0, sizeof control);
      message.msg_control = &control;
      message.msg_controllen = sizeof control.room;
      c = CMSG_FIRSTHDR (&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN (sizeof (int));
      memcpy (CMSG_DATA (c), &memory, sizeof memory);
    }
  (void)!sendmsg (fd, &message, MSG_NOSIGNAL);
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
  int memory = memfd_create ("tapedeck array", MFD_CLOEXEC);
  void *bytes;

  if (memory < 0 || ftruncate (memory, (off_t)n) != 0)
    {
      if (memory >= 0)
        close (memory);
      return -1;
    }
  if (n == 0)
    return memory;
  bytes = mmap (NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (bytes == MAP_FAILED || download (node, b, n, bytes) != TD_OK)
    {
      close (memory);
      memory = -1;
    }
  if (bytes != MAP_FAILED)
    munmap (bytes, n);
  return memory;
}

void
td__agent_read (int fd, const char *tag, const char *arguments)
{
  char *end, text[512], dims[200] = "";
  uint64_t id = strtoull (arguments, &end, 10), most = strtoull (end, NULL, 10);
  const TdNode *n = find_node (id);
  const TdBuffer *b = array_of (n);
  size_t bytes, used = 0;
  int memory;

  if (b == NULL || !b->device->computes)
    {
      snprintf (text, sizeof text,
                "%s {\"ok\":false,\"error\":\"array %" PRIu64 " is no longer there\"}", tag,
                id);
      send_with_fd (fd, text, -1);
      return;
    }
  bytes = most > 0 && most < b->bytes ? (size_t)most : b->bytes;
  memory = copy_out (n, b, bytes);
  for (int d = 0; d < n->shape.ndim; d++)
    used += (size_t)snprintf (dims + used, sizeof dims - used, "%s%" PRId64, d > 0 ? "," : "",
                              n->shape.dim[d]);
  snprintf (text, sizeof text,
            "%s {\"ok\":%s,\"id\":%" PRIu64 ",\"dtype\":\"%s\",\"shape\":[%s],\"bytes\":%zu,"
            "\"total\":%zu,\"version\":%u}",
            tag, memory >= 0 ? "true" : "false", id, td_dtype_name ((TdDtype)n->dtype), dims,
            bytes, b->bytes, b->version);
  send_with_fd (fd, text, memory);
  if (memory >= 0)
    close (memory);
}
