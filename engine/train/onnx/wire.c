/* Protocol buffers, read: varints, lengths, fixed numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "wire.h"

#include <string.h>

static bool
fails (TdWire *w)
{
  w->bad = true;
  w->at = w->end;
  return false;
}

static bool
varint (TdWire *w, uint64_t *value)
{
  *value = 0;
  for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7)
    {
      const uint8_t byte = *w->at++;

      *value |= (uint64_t)(byte & 127) << shift;
      if (byte < 128)
        return shift < 63 || byte < 2 || fails (w);
    }
  return fails (w);
}

/* Little-endian, as the machines that this runs on. */
static bool
fixed (TdWire *w, size_t bytes, uint64_t *value)
{
  if (td__wire_left (w) < bytes)
    return fails (w);
  *value = 0;
  memcpy (value, w->at, bytes);
  w->at += bytes;
  return true;
}

bool
td__wire_number (TdWire *w, TdWireKind kind, uint64_t *value)
{
  if (w->at >= w->end)
    return false;
  switch (kind)
    {
    case TD_WIRE_VARINT:
      return varint (w, value);
    case TD_WIRE_64:
      return fixed (w, 8, value);
    case TD_WIRE_32:
      return fixed (w, 4, value);
    case TD_WIRE_BYTES:
      break;
    }
  return fails (w);
}

bool
td__wire_next (TdWire *w, TdWireField *field)
{
  uint64_t key, n;

  if (w->at >= w->end || !varint (w, &key))
    return false;
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff)
    return fails (w);
  field->number = (unsigned)(key >> 3);
  field->kind = (TdWireKind)(key & 7);
  if (field->kind != TD_WIRE_BYTES)
    return td__wire_number (w, field->kind, &field->value) || fails (w);
  if (!varint (w, &n))
    return false;
  if (n > td__wire_left (w))
    return fails (w);
  field->bytes = (TdWire){ w->at, w->at + n, false };
  w->at += n;
  return true;
}
