/* Protocol buffers: varints and lengths.
 *
 * SPDX-License-Identifier: MIT */
#include "protobuf.h"

#include "../links/object.h"

#include <stdlib.h>
#include <string.h>

enum
{
  WIRE_VARINT = 0,
  WIRE_BYTES = 2,
  WIRE_32 = 5
};

static void
put (TdMessage *m, const void *bytes, size_t n)
{
  if (m->n + n > m->capacity)
    {
      m->capacity = 2 * (m->n + n) + 64;
      m->bytes = td__xrealloc (m->bytes, m->capacity);
    }
  if (n > 0)
    memcpy (m->bytes + m->n, bytes, n);
  m->n += n;
}

static void
put_varint (TdMessage *m, uint64_t value)
{
  uint8_t bytes[10];
  size_t n = 0;

  do
    {
      bytes[n++] = (uint8_t)(value & 127) | (value > 127 ? 128 : 0);
      value >>= 7;
    }
  while (value != 0);
  put (m, bytes, n);
}

void
td__message_int (TdMessage *m, unsigned field, int64_t value)
{
  put_varint (m, field << 3 | WIRE_VARINT);
  put_varint (m, (uint64_t)value);
}

void
td__message_float (TdMessage *m, unsigned field, float value)
{
  put_varint (m, field << 3 | WIRE_32);
  put (m, &value, sizeof value); /* little-endian, as the machines that this runs on */
}

void
td__message_begin (TdMessage *m, unsigned field, uint64_t n)
{
  put_varint (m, field << 3 | WIRE_BYTES);
  put_varint (m, n);
}

void
td__message_bytes (TdMessage *m, unsigned field, const void *bytes, size_t n)
{
  td__message_begin (m, field, n);
  put (m, bytes, n);
}

void
td__message_text (TdMessage *m, unsigned field, const char *text)
{
  td__message_bytes (m, field, text, strlen (text));
}

void
td__message_nest (TdMessage *m, unsigned field, TdMessage *inner)
{
  td__message_bytes (m, field, inner->bytes, inner->n);
  td__message_free (inner);
}

void
td__message_append (TdMessage *m, const TdMessage *more)
{
  put (m, more->bytes, more->n);
}

void
td__message_free (TdMessage *m)
{
  free (m->bytes);
  *m = (TdMessage){ NULL, 0, 0 };
}
