/* What the events of a keyframe were given, as records of their iteration.
 *
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <string.h>

void
td__feed_call (TdAssembler *a, const TdRawHead *head)
{
  const TdRawCall *raw = (const TdRawCall *)head;
  const uint32_t n_words = raw->length / 8 + (raw->length % 8 != 0);
  TdPendingCall *call;
  uint64_t *words = NULL;

  if (!a->state.in_iteration)
    return;
  if (n_words > 0 && (words = td__list_add_n (&a->call_words, sizeof *words, n_words)) == NULL)
    return;
  call = td__list_add (&a->calls, sizeof *call);
  if (call == NULL)
    return;
  if (n_words > 0)
    {
      words[n_words - 1] = 0;
      memcpy (words, raw->bytes, raw->length);
    }
  *call = (TdPendingCall){ .into = raw->into,
                           .call = { .event = a->state.n_events,
                                     .first_word = a->call_words.n - n_words,
                                     .n_bytes = raw->length } };
}

void
td__resolve_calls (const TdAssembler *a, const TdShape *s, TdTapeIteration *it, TdList *calls)
{
  const TdPendingCall *pending = a->calls.items;
  TdTapeCall *to;
  uint32_t n = 0;

  /* The event of the last one may be still to come, or was lost. */
  while (n < a->calls.n && pending[n].call.event < it->n_events)
    n++;
  to = n > 0 ? td__list_add_n (calls, sizeof *to, n) : NULL;
  if (to == NULL)
    return;
  for (uint32_t i = 0; i < n; i++)
    {
      to[i] = pending[i].call;
      to[i].into = pending[i].into != 0 ? td__shape_var (a, s, pending[i].into) : TD_TAPE_NONE;
    }
  it->calls = to;
  it->n_calls = n;
  it->call_words = a->call_words.items;
  it->n_call_words = a->call_words.n;
}
