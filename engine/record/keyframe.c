/* Keyframes: iterations of which the tape has all that their operations were given, so that
 * they can be run again without their program (recompute.h).
 *
 * An operation is a pure function of its attributes and inputs.  So it is enough to write each
 * array when an operation reads it for the first time, unless an operation of the iteration
 * made it, and once more when somebody else has written to it since: each write counts up the
 * version of its buffer.  Weights, the optimizer's state, the batch and the gradient that
 * backward begins with come that way, whoever holds them.
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

void
td__keyframes_setting (TdRecorder *r, const char *text)
{
  char *end;
  unsigned long long n = text != NULL ? strtoull (text, &end, 10) : 0;

  r->keyframes.every = text != NULL && *end == '\0' && text[0] != '-' ? n : 0;
}

/* --- what the tape knows --- */

static TdKnown *
place_of (const TdKeyframes *k, uint64_t variable)
{
  size_t at = (size_t)(variable * 0x9E3779B97F4A7C15u >> 20) & (k->room - 1);

  while (k->known[at].variable != 0 && k->known[at].variable != variable)
    at = (at + 1) & (k->room - 1);
  return &k->known[at];
}

static void
grow (TdKeyframes *k)
{
  TdKeyframes larger = *k;

  larger.room = k->room > 0 ? 2 * k->room : 1024;
  larger.known = td__xcalloc (larger.room, sizeof *larger.known);
  for (size_t i = 0; i < k->room; i++)
    if (k->known[i].variable != 0)
      *place_of (&larger, k->known[i].variable) = k->known[i];
  free (k->known);
  *k = larger;
}

/* Note that the tape knows the variable as of this version.  Returns whether it did before. */
static bool
note (TdKeyframes *k, const TdNode *n, uint32_t version)
{
  TdKnown *entry;
  bool same;

  if (2 * (k->n_known + 1) > k->room)
    grow (k);
  entry = place_of (k, n->id);
  same = entry->variable != 0 && entry->version == version;
  k->n_known += entry->variable == 0;
  *entry = (TdKnown){ n->id, version };
  return same;
}

/* --- iterations and events --- */

bool
td__keyframe_begin (TdRecorder *r, bool outside)
{
  TdKeyframes *k = &r->keyframes;

  k->on = !outside && k->every > 0 && k->n++ % k->every == 0;
  /* With statistics, so that who runs it again can tell whether it came out the same. */
  r->level = k->on && k->level < TD_TAPE_LEVEL_STATS ? TD_TAPE_LEVEL_STATS : k->level;
  if (k->on && k->n_known > 0)
    {
      memset (k->known, 0, k->room * sizeof *k->known);
      k->n_known = 0;
    }
  return k->on;
}

static void
write_read (TdRecorder *r, const TdNode *n)
{
  const TdBuffer *b = n->var != NULL ? n->var->buffer : n->retained;

  /* Only the host's can be run again, and others would have to wait for it. */
  if (b != NULL && b->device->computes && b->device->number == 0
      && !note (&r->keyframes, n, b->version))
    td__recorder_tensor (r, n, b, TD_RAW_BEFORE);
}

void
td__keyframe_before (TdRecorder *r, const TdEvent *e)
{
  if (e->flags & TD_EVENT_REPLAYED)
    return;
  for (int i = 0; i < e->n_in; i++)
    write_read (r, e->in[i]);
  if (e->into != NULL)
    write_read (r, e->into);
}

/* What the event makes and what it writes in place needs no tape.  The engine counts a write
 * when the event is over. */
static void
note_written (TdKeyframes *k, const TdEvent *e)
{
  for (int i = 0; i < e->n_out; i++)
    if (e->out_buffers[i] != NULL)
      note (k, e->out[i], e->out_buffers[i]->version + (e->into != NULL));
  if (e->into != NULL)
    note (k, e->into, e->into->var->buffer->version + 1);
  for (int i = 0; i < e->n_in; i++)
    if (td__bit (e->cls->writes, i) && e->in[i]->var != NULL)
      note (k, e->in[i], e->in[i]->var->buffer->version + 1);
}

void
td__keyframe_after (TdRecorder *r, const TdEvent *e)
{
  const uint32_t length = (uint32_t)e->cls->attrs_size,
                 bytes = TD_RAW_PADDED (sizeof (TdRawCall) + length);
  TdRawCall *call;

  if (!(e->flags & TD_EVENT_FAILED))
    note_written (&r->keyframes, e);
  if ((e->flags & (TD_EVENT_REPLAYED | TD_EVENT_FAILED)) || (length == 0 && e->into == NULL)
      || bytes > TD_RING_MAX_RECORD (r->ring))
    return;
  call = td_ring_reserve (r->ring, bytes);
  call->head = (TdRawHead){ bytes, TD_RAW_CALL, 0 };
  call->into = e->into != NULL ? e->into->id : 0;
  call->length = length;
  call->reserved = 0;
  if (length > 0)
    memcpy (call->bytes, e->attrs, length);
  td_ring_publish (r->ring, bytes);
}
