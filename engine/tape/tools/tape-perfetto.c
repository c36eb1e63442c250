/* Traces as Perfetto's protobuf: a Trace is a row of TracePackets (field 1), of which each has
 * a track's description or something that happened on one.  Nothing is interned, so that a
 * packet can be read by itself.
 *
 * Source: the public schema, perfetto.dev/docs/reference/trace-packet-proto (TracePacket,
 * TrackDescriptor, TrackEvent, DebugAnnotation); protobuf.dev/programming-guides/encoding.
 * SPDX-License-Identifier: MIT */
#include "tape-export.h"

#include "utf8.h"

#include <string.h>

enum
{
  /* of Trace and TracePacket */
  TRACE_PACKET = 1,
  PACKET_TIMESTAMP = 8,
  PACKET_SEQUENCE = 10,
  PACKET_TRACK_EVENT = 11,
  PACKET_TRACK_DESCRIPTOR = 60,
  /* of TrackDescriptor */
  TRACK_UUID = 1,
  TRACK_NAME = 2,
  TRACK_PROCESS = 3,
  TRACK_THREAD = 4,
  TRACK_PARENT = 5,
  TRACK_COUNTER = 8,
  /* of what is in it */
  PROCESS_PID = 1,
  PROCESS_NAME = 6,
  THREAD_PID = 1,
  THREAD_TID = 2,
  THREAD_NAME = 5,
  COUNTER_UNIT = 3,
  UNIT_BYTES = 3,
  /* of TrackEvent */
  EVENT_ANNOTATIONS = 4,
  EVENT_TYPE = 9,
  EVENT_TRACK = 11,
  EVENT_CATEGORIES = 22,
  EVENT_NAME = 23,
  EVENT_COUNTER = 30,
  EVENT_DOUBLE = 44,
  EVENT_FLOWS = 47,
  EVENT_FLOWS_END = 48,
  TYPE_BEGIN = 1,
  TYPE_END = 2,
  TYPE_COUNTER = 4,
  /* of DebugAnnotation */
  ANNOTATION_UINT = 3,
  ANNOTATION_TEXT = 6,
  ANNOTATION_NAME = 10,

  SEQUENCE = 1,
  PROCESS = 1, /* its number; its track has a uuid that no other has */
  MAX_TEXT = 1000,
  MAX_MESSAGE = 8192
};

#define PROCESS_UUID ((uint64_t)1 << 62)

/** A message that is being made; all are short. */
typedef struct
{
  uint8_t bytes[MAX_MESSAGE];
  size_t n;
} Message;

static void
put_varint (Message *m, uint64_t x)
{
  while (x >= 0x80)
    {
      m->bytes[m->n++] = (uint8_t)(x | 0x80);
      x >>= 7;
    }
  m->bytes[m->n++] = (uint8_t)x;
}

static void
put_uint (Message *m, unsigned field, uint64_t x)
{
  put_varint (m, field << 3);
  put_varint (m, x);
}

static void
put_fixed (Message *m, unsigned field, uint64_t x)
{
  put_varint (m, field << 3 | 1);
  for (int i = 0; i < 8; i++)
    m->bytes[m->n++] = (uint8_t)(x >> 8 * i);
}

static void
put_bytes (Message *m, unsigned field, const void *bytes, size_t n)
{
  put_varint (m, field << 3 | 2);
  put_varint (m, n);
  memcpy (m->bytes + m->n, bytes, n);
  m->n += n;
}

/* A text must be UTF-8: a tape's are, but for names that a program made otherwise. */
static void
put_text (Message *m, unsigned field, const char *text)
{
  char valid[MAX_TEXT + 4];
  size_t n = 0;

  while (*text != '\0' && n < MAX_TEXT)
    {
      const size_t length = td__utf8_length (text, strnlen (text, 4));

      if (length == 0)
        {
          valid[n++] = '?';
          text++;
          continue;
        }
      memcpy (valid + n, text, length);
      n += length;
      text += length;
    }
  put_bytes (m, field, valid, n);
}

static void
put_message (Message *m, unsigned field, const Message *inner)
{
  put_bytes (m, field, inner->bytes, inner->n);
}

static void
write_packet (TapeTraceOut *o, const Message *packet)
{
  Message head = { .n = 0 };

  put_varint (&head, TRACE_PACKET << 3 | 2);
  put_varint (&head, packet->n);
  fwrite (head.bytes, 1, head.n, o->out);
  fwrite (packet->bytes, 1, packet->n, o->out);
}

/* ------------------------------------------------------------------------------- tracks */

static void
write_track (TapeTraceOut *o, const Message *track)
{
  Message packet = { .n = 0 };

  put_uint (&packet, PACKET_SEQUENCE, SEQUENCE);
  put_message (&packet, PACKET_TRACK_DESCRIPTOR, track);
  write_packet (o, &packet);
}

static void
begin (TapeTraceOut *o, const char *program)
{
  Message track = { .n = 0 }, process = { .n = 0 };

  put_uint (&process, PROCESS_PID, PROCESS);
  put_text (&process, PROCESS_NAME, program);
  put_uint (&track, TRACK_UUID, PROCESS_UUID);
  put_message (&track, TRACK_PROCESS, &process);
  write_track (o, &track);
}

static void
track (TapeTraceOut *o, uint64_t number, TapeTrackKind kind, const char *name)
{
  Message described = { .n = 0 }, inner = { .n = 0 };

  put_uint (&described, TRACK_UUID, number);
  put_uint (&described, TRACK_PARENT, PROCESS_UUID);
  if (kind == TAPE_TRACK_THREAD)
    {
      put_uint (&inner, THREAD_PID, PROCESS);
      put_uint (&inner, THREAD_TID, number + PROCESS);
      put_text (&inner, THREAD_NAME, name);
      put_message (&described, TRACK_THREAD, &inner);
    }
  else
    {
      put_text (&described, TRACK_NAME, name);
      if (kind == TAPE_TRACK_BYTES)
        put_uint (&inner, COUNTER_UNIT, UNIT_BYTES);
      put_message (&described, TRACK_COUNTER, &inner);
    }
  write_track (o, &described);
}

/* ------------------------------------------------------------------------------- events */

static void
write_event (TapeTraceOut *o, uint64_t ns, const Message *event)
{
  Message packet = { .n = 0 };

  put_uint (&packet, PACKET_TIMESTAMP, ns);
  put_uint (&packet, PACKET_SEQUENCE, SEQUENCE);
  put_message (&packet, PACKET_TRACK_EVENT, event);
  write_packet (o, &packet);
}

static void
begin_event (Message *event, unsigned type, uint64_t number)
{
  event->n = 0;
  put_uint (event, EVENT_TYPE, type);
  put_uint (event, EVENT_TRACK, number);
}

static void
annotate (Message *event, const char *name, const char *text)
{
  Message annotation = { .n = 0 };

  if (*text == '\0')
    return;
  put_text (&annotation, ANNOTATION_NAME, name);
  put_text (&annotation, ANNOTATION_TEXT, text);
  put_message (event, EVENT_ANNOTATIONS, &annotation);
}

static void
annotate_number (Message *event, const char *name, uint64_t x)
{
  Message annotation = { .n = 0 };

  put_text (&annotation, ANNOTATION_NAME, name);
  put_uint (&annotation, ANNOTATION_UINT, x);
  put_message (event, EVENT_ANNOTATIONS, &annotation);
}

static void
open_slice (TapeTraceOut *o, uint64_t number, uint64_t ns, const TapeSliceText *text)
{
  Message event;

  begin_event (&event, TYPE_BEGIN, number);
  put_text (&event, EVENT_NAME, text->name);
  if (*text->category != '\0')
    put_text (&event, EVENT_CATEGORIES, text->category);
  annotate_number (&event, "iteration", text->iteration);
  if (text->is_operation)
    annotate_number (&event, "event", text->event);
  annotate (&event, "layer", text->layer);
  annotate (&event, "site", text->site);
  annotate (&event, "attributes", text->attributes);
  if (text->flow != 0)
    put_fixed (&event, text->flow_ends ? EVENT_FLOWS_END : EVENT_FLOWS, text->flow);
  write_event (o, ns, &event);
}

static void
close_slice (TapeTraceOut *o, uint64_t number, uint64_t ns)
{
  Message event;

  begin_event (&event, TYPE_END, number);
  write_event (o, ns, &event);
}

static void
slice (TapeTraceOut *o, uint64_t number, uint64_t start_ns, uint64_t end_ns,
       const TapeSliceText *text)
{
  open_slice (o, number, start_ns, text);
  close_slice (o, number, end_ns);
}

static void
value (TapeTraceOut *o, uint64_t number, TapeTrackKind kind, const char *name, uint64_t ns,
       double x)
{
  Message event;
  uint64_t bits;

  (void)name;
  begin_event (&event, TYPE_COUNTER, number);
  memcpy (&bits, &x, sizeof bits);
  if (kind == TAPE_TRACK_BYTES)
    put_uint (&event, EVENT_COUNTER, (uint64_t)x);
  else
    put_fixed (&event, EVENT_DOUBLE, bits);
  write_event (o, ns, &event);
}

static void
end (TapeTraceOut *o)
{
  (void)o; /* a Trace has no end of its own */
}

void
td__tape_perfetto (TapeTraceOut *o)
{
  o->begin = begin;
  o->track = track;
  o->slice = slice;
  o->open = open_slice;
  o->close = close_slice;
  o->value = value;
  o->end = end;
}
