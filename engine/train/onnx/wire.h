/* Protocol buffers, read: fields one after the other out of bytes that may be anything.
 *
 * *Source*: protobuf.dev/programming-guides/encoding.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What is left of a message. */
typedef struct TdWire
{
  const uint8_t *at, *end;
  bool bad; /**< a length or a number goes beyond the end, or a kind of field is unknown */
} TdWire;

typedef enum
{
  TD_WIRE_VARINT = 0,
  TD_WIRE_64 = 1,
  TD_WIRE_BYTES = 2,
  TD_WIRE_32 = 5
} TdWireKind;

/** One field: a number, or bytes that are a text, packed numbers or another message. */
typedef struct TdWireField
{
  unsigned number;
  TdWireKind kind;
  uint64_t value; /**< of TD_WIRE_VARINT, _32, _64 */
  TdWire bytes;   /**< of TD_WIRE_BYTES */
} TdWireField;

/** The next field; false at the end, or where the rest makes no sense (w->bad). */
bool td__wire_next (TdWire *w, TdWireField *field);
/** The next of packed numbers of that kind; false at the end, or w->bad. */
bool td__wire_number (TdWire *w, TdWireKind kind, uint64_t *value);
static inline size_t
td__wire_left (const TdWire *w)
{
  return (size_t)(w->end - w->at);
}
