/* The few parts of protocol buffers that an ONNX file is made of, written into memory.
 *
 * *Source*: protobuf.dev/programming-guides/encoding.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** Bytes that grow; all zero is an empty one. */
typedef struct TdMessage
{
  uint8_t *bytes;
  size_t n, capacity;
} TdMessage;

void td__message_int (TdMessage *m, unsigned field, int64_t value);
void td__message_float (TdMessage *m, unsigned field, float value);
void td__message_bytes (TdMessage *m, unsigned field, const void *bytes, size_t n);
/** What comes before n bytes, which the caller writes. */
void td__message_begin (TdMessage *m, unsigned field, uint64_t n);
void td__message_text (TdMessage *m, unsigned field, const char *text);
/** Put a message into another, and free it. */
void td__message_nest (TdMessage *m, unsigned field, TdMessage *inner);
/** Put the fields of a message behind those of another. */
void td__message_append (TdMessage *m, const TdMessage *more);
void td__message_free (TdMessage *m);
