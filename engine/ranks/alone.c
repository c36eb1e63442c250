/* The transport of a process that was started alone: rank 0 of 1.  What is sent comes back.
 *
 * SPDX-License-Identifier: MIT */
#include "transport.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TdWire *
alone_open (char *why)
{
  TdWire *wire = td__xcalloc (1, sizeof *wire);

  (void)why;
  wire->size = wire->intra_size = wire->inter_size = 1;
  return wire;
}

static TdWire *
alone_split (TdWire *wire, int color, int key, char *why)
{
  (void)wire, (void)key;
  *why = '\0';
  return color >= 0 ? alone_open (why) : NULL;
}

static void
alone_close (TdWire *wire, bool together)
{
  (void)together;
  free (wire);
}

static bool
alone_meet_end (TdWire *wire, char *why)
{
  (void)wire, (void)why;
  return true;
}

static bool
alone_bcast (TdWire *wire, void *data, size_t bytes, int root, char *why)
{
  (void)wire, (void)data, (void)bytes, (void)root, (void)why;
  return true;
}

static bool
alone_sum (TdWire *wire, void *data, int64_t n, TdWireKind kind, char *why)
{
  (void)wire, (void)data, (void)n, (void)kind, (void)why;
  return true;
}

/* It is there at once; the handle says nothing. */
static TdWireSum *
alone_sum_begin (TdWire *wire, void *data, int64_t n, TdWireKind kind, char *why)
{
  (void)data, (void)n, (void)kind, (void)why;
  return (TdWireSum *)wire;
}

static bool
alone_sum_test (TdWireSum *sum)
{
  return sum != NULL;
}

static bool
alone_sum_end (TdWireSum *sum, char *why)
{
  (void)why;
  return sum != NULL;
}

static void
alone_sum_drop (TdWireSum *sum, void *data)
{
  (void)sum;
  free (data);
}

static bool
alone_copy (TdWire *wire, const void *in, void *out, size_t bytes, char *why)
{
  (void)wire, (void)why;
  if (bytes > 0)
    memcpy (out, in, bytes);
  return true;
}

static void
alone_abort (TdWire *wire)
{
  (void)wire;
}

static bool
alone_send (TdWire *wire, const void *data, size_t bytes, int to, char *why)
{
  (void)wire, (void)data, (void)bytes, (void)to;
  snprintf (why, TD_WHY_WIRE, "there is no other rank");
  return false;
}

static bool
alone_receive (TdWire *wire, void *data, size_t bytes, int from, char *why)
{
  return alone_send (wire, data, bytes, from, why);
}

const TdTransport td__transport_alone = { .abi = TD_TRANSPORT_ABI,
                                          .bytes = sizeof (TdTransport),
                                          .open = alone_open,
                                          .split = alone_split,
                                          .close = alone_close,
                                          .meet_begin = alone_copy,
                                          .meet_end = alone_meet_end,
                                          .bcast = alone_bcast,
                                          .sum = alone_sum,
                                          .sum_begin = alone_sum_begin,
                                          .sum_test = alone_sum_test,
                                          .sum_end = alone_sum_end,
                                          .sum_drop = alone_sum_drop,
                                          .gather = alone_copy,
                                          .exchange = alone_copy,
                                          .abort = alone_abort,
                                          .send = alone_send,
                                          .receive = alone_receive };
