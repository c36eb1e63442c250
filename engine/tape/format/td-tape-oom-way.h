/* By way of what the arrays of an OOM's holders are kept.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape-reader.h"
#include "td-tape-writer.h"

/* After the holders an OOM frame may go on with a TdTapeOomLinks and n_links TdTapeOomLink of
 * link_bytes each: up to TD_TAPE_MAX_OOM_LINKS of a holder, in the order of holders, and each
 * chain from the handle that somebody holds to what keeps the largest of the arrays.  Frames of
 * before have none, and readers of before do not look at what follows the holders. */

#define TD_TAPE_MAX_OOM_LINKS 8

typedef struct
{
  uint32_t link_bytes, n_links;
} TdTapeOomLinks;
static_assert (sizeof (TdTapeOomLinks) == 8, "TdTapeOomLinks changed size");

typedef enum
{
  TD_TAPE_OOM_LINK_HANDLE,    /* the root: `holder` says who holds it */
  TD_TAPE_OOM_LINK_GRADIENT,  /* of the handle before it */
  TD_TAPE_OOM_LINK_OPERATION, /* keeps what the one before it has made, or was given */
  TD_TAPE_N_OOM_LINKS
} TdTapeOomLinkKind;

typedef struct
{
  uint32_t holder_index; /* of the OOM's */
  uint8_t kind, holder;  /* TdTapeOomLinkKind, TdTapeHolder */
  uint16_t left_out;     /* links before this one that are left out; 65535: and more */
  uint32_t name, op;     /* strings */
  uint32_t site, path;   /* a handle: where it is held, else made */
} TdTapeOomLink;
static_assert (sizeof (TdTapeOomLink) == 24, "TdTapeOomLink changed size");

/** As td_tape_writer_oom, with the links of its holders. */
TD_API void td_tape_writer_oom_ways (TdTapeWriter *w, const TdTapeOom *oom,
                                     const TdTapeOomHolder *holders, uint32_t n,
                                     const TdTapeOomLink *links, uint32_t n_links);

/** Return the chain of a holder, the root first.  NULL and 0: the tape has none. */
TD_API const TdTapeOomLink *td_tape_reader_oom_links (const TdTapeReader *r, uint32_t i,
                                                      uint32_t holder, uint32_t *n);
/** Say it in words: "user handle `loss` (train.c:9) -> sum (train.c:8) -> relu"; "" where there
 * is no more to say than that a handle has it. */
TD_API void td_tape_oom_way (const TdTapeReader *r, uint32_t i, uint32_t holder, char *out,
                             size_t n);
