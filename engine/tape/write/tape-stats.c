/* Statistics that wait for the end of their iteration.  Which variables they are of is known
 * only then: they are unpacked, named and packed again, a block at a time.
 * SPDX-License-Identifier: MIT */
#include "tape-pack.h"
#include "writer-private.h"

#include <stdlib.h>

typedef struct
{
  TapeBuffer *b;
  size_t place; /* of the section, when `n_packed` is not 0 */
  uint64_t n_packed;
  TdTapeStats *rows; /* a block that fills up */
  uint32_t n;
} Out;

static bool
put_block (Out *out)
{
  if (out->n_packed == 0)
    out->place = td__tape_pack_begin (out->b);
  out->n_packed += out->n;
  if (!td__tape_pack_block (out->b, sizeof *out->rows, out->rows, out->n))
    return false;
  out->n = 0;
  return true;
}

static bool
put_row (Out *out, const TdTapeStats *row, uint32_t var)
{
  if (row == NULL || (out->n == TAPE_PACK_BLOCK && !put_block (out)))
    return false;
  out->rows[out->n] = *row;
  out->rows[out->n++].var = var;
  return true;
}

void
td__tape_put_stats (TapeBuffer *b, TdTapeRows *rows, const uint32_t *vars)
{
  const uint32_t n = td_tape_rows_count (rows);
  Out out = { .b = b,
              .rows = malloc (((n < TAPE_PACK_BLOCK ? n : TAPE_PACK_BLOCK) + 1u)
                              * sizeof *out.rows) };
  bool done = out.rows != NULL;

  for (uint32_t i = 0; done && i < n; i++)
    done = vars[i] == TD_TAPE_NONE || put_row (&out, td_tape_rows_at (rows, i), vars[i]);
  if (done && out.n_packed == 0)
    td__tape_buffer_section (b, TD_TAPE_SECTION_STATS, sizeof *out.rows, out.n, out.rows);
  else if (done && (out.n == 0 || put_block (&out)))
    td__tape_pack_end (b, out.place, TD_TAPE_SECTION_STATS, sizeof *out.rows, out.n_packed);
  b->failed = b->failed || !done;
  free (out.rows);
}
