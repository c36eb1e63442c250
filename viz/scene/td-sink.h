/*
 * Text that goes on while it is made: what a view prints of a recording with a million
 * operations takes more memory than the recording.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>
#include <string.h>

G_BEGIN_DECLS

/** Text, and where it goes. Append to `text`, and say when a row is whole. */
typedef struct
{
  GString *text;
  void (*flush) (gpointer data, const char *text, gsize n); /* NULL: it is kept */
  gpointer data;
} TdSink;

/* What gathers before it goes on. Units: bytes. */
#define TD_SINK_BYTES 65536

/** A row was appended: what has gathered may go on. */
static inline void
td_sink_row (TdSink *sink)
{
  if (!sink->flush || sink->text->len < TD_SINK_BYTES)
    return;
  sink->flush (sink->data, sink->text->str, sink->text->len);
  g_string_truncate (sink->text, 0);
}

/** A whole text goes on at once, behind what has gathered. Owner: takes the text. */
static inline void
td_sink_take (TdSink *sink, char *text)
{
  if (sink->flush)
    {
      sink->flush (sink->data, sink->text->str, sink->text->len);
      g_string_truncate (sink->text, 0);
      sink->flush (sink->data, text, strlen (text));
    }
  else
    g_string_append (sink->text, text);
  g_free (text);
}

G_END_DECLS
