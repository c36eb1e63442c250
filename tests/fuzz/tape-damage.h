/* Damage to a tape, for those who read it: half of it behind check sums that are right again.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "mutate.h"

#include "tape/format/tape-private.h"

/* Make the check sums of all segments and frames right, as far as they can be found. */
static inline void
tape_seal (uint8_t *bytes, size_t n)
{
  TdTapeHeader *h = (TdTapeHeader *)bytes;

  h->crc = td__tape_crc (0, h, offsetof (TdTapeHeader, crc));
  for (size_t offset = TD_TAPE_TAIL_OFFSET; offset + sizeof (TdTapeSegment) <= n;)
    {
      TdTapeSegment *s = (TdTapeSegment *)(bytes + offset);
      size_t at = offset + sizeof *s, end = s->used < n - at ? at + s->used : n;

      s->crc = td__tape_crc (0, s, offsetof (TdTapeSegment, crc));
      while (at + sizeof (TdTapeFrame) <= end)
        {
          TdTapeFrame *f = (TdTapeFrame *)(bytes + at);

          if (f->len < sizeof *f || f->len > end - at)
            break;
          f->crc = 0;
          f->crc = td__tape_crc (0, f, f->len);
          at += TAPE_ALIGN (f->len);
        }
      if (s->capacity < 1024 || s->capacity % 1024 != 0 || s->capacity > n)
        break;
      offset += s->capacity;
    }
}

/* A place that is not zero: a flip in the empty end of a segment says nothing. */
static inline size_t
tape_used_place (const uint8_t *bytes, size_t n)
{
  size_t at = fuzz_below ((uint32_t)n);

  for (size_t k = 0; k < n && bytes[at] == 0; k++)
    at = (at + 1) % n;
  return (at + n - fuzz_below (4)) % n;
}

/* Change up to three places of the tape's copy. */
static inline void
tape_damage (const uint8_t *good, size_t n, uint8_t *bad)
{
  memcpy (bad, good, n);
  for (uint32_t k = 1 + fuzz_below (3); k > 0; k--)
    {
      size_t at = tape_used_place (good, n);

      switch (fuzz_below (3))
        {
        case 0:
          bad[at] ^= (uint8_t)(1u << fuzz_below (8));
          break;
        case 1:
          bad[at] = (uint8_t)fuzz_below (256);
          break;
        default:
          fuzz_number (bad + at, n - at);
        }
    }
  if (fuzz_below (4) != 0)
    tape_seal (bad, n);
}
