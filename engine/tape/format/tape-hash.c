/* Check sums, hashes, keys and the names of the tape's small enumerations.  The results of all
 * of them are part of the format: never change one.
 * SPDX-License-Identifier: MIT */
#include "tape-private.h"
#include "td-tape-writer.h"
#include "dtype.h"

#include <assert.h>
#include <string.h>

/* CRC-32C, bit-reversed polynomial 0x82f63b78, eight bytes at a time (slicing). */
static uint32_t table[8][256];

static void __attribute__ ((constructor)) make_table (void)
{
  for (uint32_t i = 0; i < 256; i++)
    {
      uint32_t c = i;

      for (int k = 0; k < 8; k++)
        c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
      table[0][i] = c;
    }
  for (uint32_t i = 0; i < 256; i++)
    for (int k = 1; k < 8; k++)
      table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
}

static uint32_t
crc_portable (uint32_t c, const unsigned char *p, size_t n)
{
  for (; n >= 8; n -= 8, p += 8)
    {
      uint64_t w;

      memcpy (&w, p, 8);
      w ^= c;
      c = table[7][w & 255] ^ table[6][w >> 8 & 255] ^ table[5][w >> 16 & 255]
          ^ table[4][w >> 24 & 255] ^ table[3][w >> 32 & 255] ^ table[2][w >> 40 & 255]
          ^ table[1][w >> 48 & 255] ^ table[0][w >> 56];
    }
  for (; n > 0; n--, p++)
    c = table[0][(c ^ *p) & 255] ^ c >> 8;
  return c;
}

#if defined(__x86_64__)
__attribute__ ((target ("sse4.2"))) static uint32_t
crc_sse42 (uint32_t c, const unsigned char *p, size_t n)
{
  uint64_t c64 = c;

  for (; n >= 8; n -= 8, p += 8)
    {
      uint64_t w;

      memcpy (&w, p, 8);
      c64 = __builtin_ia32_crc32di (c64, w);
    }
  c = (uint32_t)c64;
  for (; n > 0; n--, p++)
    c = __builtin_ia32_crc32qi (c, *p);
  return c;
}
#endif

uint32_t
td__tape_crc (uint32_t crc, const void *bytes, size_t n)
{
#if defined(__x86_64__)
  if (__builtin_cpu_supports ("sse4.2"))
    return ~crc_sse42 (~crc, bytes, n);
#endif
  return ~crc_portable (~crc, bytes, n);
}

uint32_t
td__tape_crc_portable (uint32_t crc, const void *bytes, size_t n)
{
  return ~crc_portable (~crc, bytes, n);
}

uint64_t
td_tape_hash (uint64_t h, uint64_t value)
{
  h = (h << 5 | h >> 59) ^ value;
  h *= 0x9fb21c651e98df25u;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93u;
  return h ^ h >> 29;
}

uint64_t
td_tape_hash_bytes (uint64_t h, const void *bytes, size_t n)
{
  const unsigned char *p = bytes;
  uint64_t w;

  h = td_tape_hash (h, n);
  for (; n >= 8; n -= 8, p += 8)
    {
      memcpy (&w, p, 8);
      h = td_tape_hash (h, w);
    }
  if (n > 0)
    {
      w = 0;
      memcpy (&w, p, n);
      h = td_tape_hash (h, w);
    }
  return h;
}

uint64_t
td_tape_event_key (uint64_t scope_key, uint64_t path_hash, uint64_t site_hash, uint32_t k,
                   uint32_t phase)
{
  uint64_t h = td_tape_hash (scope_key, path_hash);

  h = td_tape_hash (h, site_hash);
  return td_tape_hash (h, (uint64_t)phase << 32 | k);
}

uint64_t
td_tape_twin_key (uint64_t forward_key, uint32_t phase, uint32_t order)
{
  return td_tape_hash (forward_key,
                       0x7477696eu + ((uint64_t)phase << 32 | (uint64_t)order << 40));
}

uint64_t
td_tape_output_key (uint64_t event_key, uint32_t out_index)
{
  return td_tape_hash (event_key, 0x6f757400000000u + out_index);
}

#define NAME_OF(table, i)                                                                      \
  ((i) < sizeof (table) / sizeof *(table) && (table)[i] ? (table)[i] : "?")

static_assert (TD_TAPE_F32 == 0 && TD_TAPE_F64 == 1 && TD_TAPE_F16 == 2 && TD_TAPE_BF16 == 3
                   && TD_TAPE_I32 == 4 && TD_TAPE_I64 == 5 && TD_TAPE_U8 == 6
                   && TD_TAPE_BOOL == 7 && (int)TD_TAPE_N_DTYPES == (int)TD__N_DTYPES,
               "the order of base/dtype.c");
static const char *const phase_names[] = { "forward", "backward", "accumulate", "update" };
static const char *const category_names[]
    = { "other", "parameter", "gradient",  "activation",    "optimizer",
        "input", "buffer",    "workspace", "communication", "static" };
static const char *const holder_names[]
    = { "user handle", "scope",    "link attribute", "hook",     "gradient",
        "creator",     "retained", "reporter",       "schedule", "optimizer" };
static const char *const level_names[] = { "graph", "stats", "values" };

size_t
td_tape_dtype_bytes (unsigned dtype)
{
  return dtype < TD__N_DTYPES ? td__dtype_sizes[dtype] : 0;
}

const char *
td_tape_dtype_name (unsigned dtype)
{
  return NAME_OF (td__dtype_long_names, dtype);
}

const char *
td_tape_phase_name (unsigned phase)
{
  return NAME_OF (phase_names, phase);
}

const char *
td_tape_category_name (unsigned category)
{
  return NAME_OF (category_names, category);
}

const char *
td_tape_holder_name (unsigned holder)
{
  return NAME_OF (holder_names, holder);
}

const char *
td_tape_level_name (unsigned level)
{
  return NAME_OF (level_names, level);
}

uint64_t
td_tape_var_id (const TdTapeIteration *it, uint32_t var)
{
  const TdTapeVar *v;

  if (var >= it->n_vars)
    return 0;
  v = &it->vars[var];
  if (v->flags & TD_TAPE_VAR_EXTERNAL)
    return v->id < it->n_externals ? it->externals[v->id] : 0;
  return it->first_id + v->id;
}
