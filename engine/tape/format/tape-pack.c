/* Packing of long sections, and the way back: see tape-pack.h.
 * SPDX-License-Identifier: MIT */
#include "tape-pack.h"

#include "td-tape.h"

#include <string.h>

#define LOOK_AT 256u
#define MAX_VARINT 10

static uint32_t
word_at (const char *elements, uint32_t stride, uint32_t column, uint64_t i)
{
  uint32_t word;

  memcpy (&word, elements + i * stride + column * 4u, sizeof word);
  return word;
}

static uint64_t
zigzag (uint32_t difference)
{
  int32_t d = (int32_t)difference;

  return d >= 0 ? (uint64_t)d * 2 : (uint64_t)(-(int64_t)d) * 2 - 1;
}

static uint32_t
back (uint64_t z)
{
  return z & 1 ? (uint32_t)(0 - ((z + 1) / 2)) : (uint32_t)(z / 2);
}

static uint32_t
varint_bytes (uint64_t value)
{
  uint32_t n = 1;

  while (value >= 128)
    {
      value >>= 7;
      n++;
    }
  return n;
}

static char *
put_varint (char *at, uint64_t value)
{
  while (value >= 128)
    {
      *at++ = (char)(value | 128);
      value >>= 7;
    }
  *at++ = (char)value;
  return at;
}

static uint32_t
difference (const uint32_t *words, uint32_t i, uint32_t lag)
{
  return words[i] - (lag > 0 && i >= lag ? words[i - lag] : 0);
}

/* Bytes that `n` words would take; it stops where they are `most` or more. */
static uint32_t
cost (const uint32_t *words, uint32_t n, uint32_t lag, uint32_t most)
{
  uint32_t bytes = 0, i = 0;

  while (i < n && bytes < most)
    {
      uint32_t d = difference (words, i, lag), run = 0;

      while (i + run + 1 < n && difference (words, i + run + 1, lag) == d)
        run++;
      bytes += varint_bytes (zigzag (d) * 2) + (run > 0 ? varint_bytes (run) : 0);
      i += run + 1;
    }
  return bytes;
}

static uint32_t
best_lag (const uint32_t *words, uint32_t n)
{
  const uint32_t look_at = n < LOOK_AT ? n : LOOK_AT;
  uint32_t least = look_at * 4, best = TAPE_PACK_RAW;

  for (uint32_t lag = 0; lag <= TAPE_PACK_MAX_LAG && least > 16; lag++)
    {
      /* the first are compared with nothing, which is no reason against them */
      uint32_t bytes = cost (words, look_at, lag, least + 4 * lag), own = bytes;

      own = own > 4 * lag ? own - 4 * lag + lag : own;
      if (own < least)
        {
          least = own;
          best = lag;
        }
    }
  return best;
}

static char *
pack_column (const uint32_t *words, uint32_t n, char *at)
{
  uint32_t lag = best_lag (words, n);

  if (lag != TAPE_PACK_RAW && cost (words, n, lag, 4 * n) >= 4 * n)
    lag = TAPE_PACK_RAW;
  *at++ = (char)lag;
  if (lag == TAPE_PACK_RAW)
    {
      memcpy (at, words, n * 4u);
      return at + n * 4u;
    }
  for (uint32_t i = 0; i < n;)
    {
      uint32_t d = difference (words, i, lag), run = 0;

      while (i + run + 1 < n && difference (words, i + run + 1, lag) == d)
        run++;
      at = put_varint (at, zigzag (d) * 2 + (run > 0));
      if (run > 0)
        at = put_varint (at, run);
      i += run + 1;
    }
  return at;
}

size_t
td__tape_pack_begin (TapeBuffer *b)
{
  const size_t place = b->n;
  const TdTapeSection section = { .kind = TD_TAPE_SECTION_PACKED, .stride = 4 };
  const TapePackedHead head = { .count = 0 };

  td__tape_buffer_put (b, &section, sizeof section);
  td__tape_buffer_put (b, &head, sizeof head);
  return place;
}

bool
td__tape_pack_block (TapeBuffer *b, uint32_t stride, const void *elements, uint32_t n)
{
  uint32_t words[TAPE_PACK_BLOCK];

  for (uint32_t column = 0; column < stride / 4; column++)
    {
      const size_t before = b->n;
      char *at = td__tape_buffer_add (b, 1 + n * 4u + 2 * MAX_VARINT);

      if (at == NULL)
        return false;
      for (uint32_t i = 0; i < n; i++)
        words[i] = word_at (elements, stride, column, i);
      b->n = before + (size_t)(pack_column (words, n, at) - at);
    }
  return true;
}

void
td__tape_pack_end (TapeBuffer *b, size_t place, uint32_t kind, uint32_t stride, uint64_t count)
{
  TdTapeSection section = { .kind = TD_TAPE_SECTION_PACKED, .stride = 4 };
  const TapePackedHead head = { .kind = kind, .stride = stride, .count = count };
  uint64_t bytes, least;
  char *zeros;

  if (b->failed)
    return;
  bytes = b->n - place - sizeof section;
  least = sizeof head + count * stride / TAPE_PACK_MOST + 1;
  least = TAPE_ALIGN (least > bytes ? least : bytes);
  zeros = td__tape_buffer_add (b, (size_t)(least - bytes));
  if (zeros == NULL)
    return;
  memset (zeros, 0, (size_t)(least - bytes));
  section.count = least / 4;
  memcpy (b->bytes + place, &section, sizeof section);
  memcpy (b->bytes + place + sizeof section, &head, sizeof head);
}

void
td__tape_pack (TapeBuffer *b, uint32_t kind, uint32_t stride, uint64_t count,
               const void *elements)
{
  const size_t place = td__tape_pack_begin (b);
  const char *from = elements;
  bool done = true;

  for (uint64_t i = 0; done && i < count; i += TAPE_PACK_BLOCK)
    done = td__tape_pack_block (
        b, stride, from + i * stride,
        (uint32_t)(count - i < TAPE_PACK_BLOCK ? count - i : TAPE_PACK_BLOCK));
  if (done)
    td__tape_pack_end (b, place, kind, stride, count);
}

/* ------------------------------------------------------------------------ and back */

static bool
take_varint (const char **at, const char *end, uint64_t *value)
{
  *value = 0;
  for (unsigned shift = 0; shift < 64 && *at < end; shift += 7)
    {
      const uint8_t byte = (uint8_t) * *at;

      ++*at;
      *value |= (uint64_t)(byte & 127) << shift;
      if (byte < 128)
        return true;
    }
  return false;
}

static bool
unpack_column (const char **at, const char *end, uint32_t *words, uint32_t n)
{
  const uint32_t lag = *at < end ? (uint8_t) * *at : TAPE_PACK_MAX_LAG + 1;

  *at += *at < end;

  if (lag == TAPE_PACK_RAW && (size_t)(end - *at) >= n * 4u)
    {
      memcpy (words, *at, n * 4u);
      *at += n * 4u;
      return true;
    }
  if (lag > TAPE_PACK_MAX_LAG)
    return false;
  for (uint32_t i = 0; i < n;)
    {
      uint64_t coded, run = 0;

      if (!take_varint (at, end, &coded) || ((coded & 1) && !take_varint (at, end, &run))
          || run >= n - i)
        return false;
      for (uint32_t last = i + (uint32_t)run; i <= last; i++)
        words[i] = back (coded >> 1) + (lag > 0 && i >= lag ? words[i - lag] : 0);
    }
  return true;
}

bool
td__tape_unpack (const char *bytes, uint64_t n, uint32_t stride, uint64_t count, void *elements)
{
  const char *at = bytes, *end = bytes + n;
  uint32_t words[TAPE_PACK_BLOCK];
  char *to = elements;

  for (uint64_t first = 0; first < count; first += TAPE_PACK_BLOCK)
    {
      const uint32_t some
          = (uint32_t)(count - first < TAPE_PACK_BLOCK ? count - first : TAPE_PACK_BLOCK);

      for (uint32_t column = 0; column < stride / 4; column++)
        {
          if (!unpack_column (&at, end, words, some))
            return false;
          for (uint32_t i = 0; i < some; i++)
            memcpy (to + (first + i) * stride + column * 4u, &words[i], 4);
        }
    }
  return true;
}
