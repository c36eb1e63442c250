/* What a rank says of the others in a dump of a tape.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"
#include "plural.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static double
number_of (const TdTapeRankSum *s)
{
  double number;

  memcpy (&number, &s->sum[0], sizeof number);
  return number;
}

static void
put_collective_json (TapeDump *d, uint64_t iteration, const TdTapeCollective *c)
{
  TdJsonWriter *json = td__tape_begin_record_of (d, "collective", iteration);
  char site[512], comm[20];

  td_tape_reader_site_text (d->r, c->site, site, sizeof site);
  snprintf (comm, sizeof comm, "%016" PRIx64, c->comm);
  td__json_member_uint (json, "event", c->event);
  td__json_member_string (json, "comm", comm); /* numbers of JSON have 53 bits */
  td__json_member_uint (json, "seq", c->seq);
  td__json_member_string (json, "call", td_tape_reader_string (d->r, c->call));
  td__json_member_string (json, "wait", td_tape_wait_name (c->wait));
  td__json_member_uint (json, "rank", c->rank);
  td__json_member_uint (json, "size", c->size);
  if (c->peer >= 0)
    td__json_member_int (json, "peer", c->peer);
  td__json_member_uint (json, "bytes", c->bytes);
  if (c->dtype != 0)
    td__json_member_string (json, "dtype", td_tape_dtype_name (c->dtype - 1u));
  td__json_member_uint (json, "start_ns", c->start_ns);
  if (!(c->flags & TD_TAPE_COLLECTIVE_WAITS))
    td__json_member_uint (json, "ns", c->duration_ns);
  td__json_member_bool (json, "before", c->flags & TD_TAPE_COLLECTIVE_BEFORE);
  td__json_member_bool (json, "failed", c->flags & TD_TAPE_COLLECTIVE_FAILED);
  td__json_member_bool (json, "whole", c->flags & TD_TAPE_COLLECTIVE_WHOLE);
  td__json_member_bool (json, "behind", c->flags & TD_TAPE_COLLECTIVE_BEHIND);
  td__json_member_string (json, "site", site);
  td__tape_end_record (d);
}

static void
put_collective_text (const TapeDump *d, const TdTapeCollective *c)
{
  char site[512];

  td_tape_reader_site_text (d->r, c->site, site, sizeof site);
  fprintf (d->out, "  collective before %u: %s %s %016" PRIx64 ".%" PRIu64 " rank %u of %u",
           c->event, td_tape_reader_string (d->r, c->call), td_tape_wait_name (c->wait),
           c->comm, c->seq, c->rank, c->size);
  if (c->peer >= 0)
    fprintf (d->out, " with %d", c->peer);
  if (c->dtype != 0)
    fprintf (d->out, " %s", td_tape_dtype_name (c->dtype - 1u));
  fprintf (d->out, ": %" PRIu64 " %s at %" PRIu64 " ns", c->bytes,
           td_plural (c->bytes, "byte", "bytes"), c->start_ns);
  if (c->flags & TD_TAPE_COLLECTIVE_WAITS)
    fputs (" waits", d->out);
  else
    fprintf (d->out, " for %" PRIu64 " ns", c->duration_ns);
  if (*site != '\0')
    fprintf (d->out, " %s", site);
  if (c->flags & TD_TAPE_COLLECTIVE_BEFORE)
    fputs (" before the iteration", d->out);
  if (c->flags & TD_TAPE_COLLECTIVE_FAILED)
    fputs (" failed", d->out);
  if (c->flags & TD_TAPE_COLLECTIVE_BEHIND)
    fputs (" behind other work", d->out);
  fputc ('\n', d->out);
}

static void
put_sum_json (TapeDump *d, uint64_t iteration, const TdTapeRankSum *s)
{
  TdJsonWriter *json = td__tape_begin_record_of (d, "rank_sum", iteration);
  char sum[40];

  snprintf (sum, sizeof sum, "%016" PRIx64 "%016" PRIx64, s->sum[1], s->sum[0]);
  td__json_member_uint (json, "event", s->event);
  td__json_member_string (json, "kind", td_tape_rank_sum_name (s->kind));
  td__json_member_string (json, "path", td_tape_reader_string (d->r, s->path));
  if (s->kind == TD_TAPE_SUM_NUMBER)
    td__json_member_double (json, "number", number_of (s));
  else if (s->flags & TD_TAPE_SUM_ABSENT)
    td__json_member_bool (json, s->flags & TD_TAPE_SUM_LEFT_OUT ? "left_out" : "absent", true);
  else
    {
      td__json_member_string (json, "sum", sum);
      td__json_member_uint (json, "size", s->size);
      td__json_member_uint (json, "not_finite", s->n_not_finite);
      td__json_member_uint (json, "at", s->at);
      td__json_member_double (json, "sample", s->sample);
    }
  if (s->kind == TD_TAPE_SUM_MEAN)
    {
      td__json_member_uint (json, "averaged", s->n_averaged);
      td__json_member_bool (json, "half", s->flags & TD_TAPE_SUM_HALF);
    }
  td__tape_end_record (d);
}

static void
put_sum_text (const TapeDump *d, const TdTapeRankSum *s)
{
  fprintf (d->out, "  rank sum before %u: %s %s", s->event, td_tape_rank_sum_name (s->kind),
           td_tape_reader_string (d->r, s->path));
  if (s->kind == TD_TAPE_SUM_NUMBER)
    fprintf (d->out, " %.9g", number_of (s));
  else if (s->flags & TD_TAPE_SUM_ABSENT)
    fputs (s->flags & TD_TAPE_SUM_LEFT_OUT ? " left out" : " absent", d->out);
  else
    fprintf (d->out, " %016" PRIx64 "%016" PRIx64 " [%" PRIu64 "] of %" PRIu64 " is %.9g",
             s->sum[1], s->sum[0], s->at, s->size, s->sample);
  if (s->n_not_finite > 0)
    fprintf (d->out, ", %" PRIu64 " not finite", s->n_not_finite);
  if (s->kind != TD_TAPE_SUM_MEAN && td_tape_reader_site (d->r, s->n_averaged) != NULL)
    {
      char site[320];

      td_tape_reader_site_text (d->r, s->n_averaged, site, sizeof site);
      fprintf (d->out, "%s at %s",
               s->flags & TD_TAPE_SUM_SPOILED    ? ", spoiled"
               : s->kind == TD_TAPE_SUM_GRADIENT ? ", made"
                                                 : ", written",
               site);
    }
  if (s->kind == TD_TAPE_SUM_MEAN)
    fprintf (d->out, ", mean of %u %s", s->n_averaged,
             td_plural (s->n_averaged, "rank", "ranks"));
  if (s->flags & TD_TAPE_SUM_HALF)
    fputs (", sent as 16 bits", d->out);
  fputc ('\n', d->out);
}

void
td__tape_dump_ranks (TapeDump *d, const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_collectives; i++)
    if (d->json)
      put_collective_json (d, it->number, &it->collectives[i]);
    else
      put_collective_text (d, &it->collectives[i]);
  for (uint32_t i = 0; i < it->n_rank_sums; i++)
    if (d->json)
      put_sum_json (d, it->number, &it->rank_sums[i]);
    else
      put_sum_text (d, &it->rank_sums[i]);
}
