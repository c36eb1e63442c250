/*
 * The commands of tapedeck-viz, one file each. They return the exit status.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>

/** tapedeck show TAPE --view VIEW ...: one view as text, JSON, CSV, DOT or a picture. */
int td_viz_show (int argc, char **argv);
/** tapedeck diff A[:ITERATION] B[:ITERATION] [--json]: 0 same, 1 different, 2 trouble. */
int td_viz_diff (int argc, char **argv);

/** tapedeck leaks TAPE [--json]: 0 nothing grows, 1 something does, 2 trouble. */
int td_viz_leaks (int argc, char **argv);
/** tapedeck ranks FOLDER|TAPE... [--json]: 0 nothing found, 1 ranks part, 2 trouble. */
int td_viz_ranks (int argc, char **argv);
/** tapedeck-viz dot FILE -o PICTURE: a DOT file as PNG, SVG or PDF, in Chainer's colours. */
int td_viz_dot (int argc, char **argv);

/** A file that a view is written to, bit by bit; "-" is stdout. Control characters in names,
 * but for those that JSON has escaped already, are written as \\xNN. */
typedef struct TdVizOutput TdVizOutput;

/** Begin one. `path` stays the caller's, until the end. Owner: the caller; td__viz_output_end.
 */
TdVizOutput *td__viz_output_begin (const char *path, const char *format);
/** Write on: the flush of a TdSink. What goes wrong is said at the end. */
void td__viz_output_put (gpointer output, const char *text, gsize n);
/** Put a `whole` file in its place, else leave the one that was there. Errors: FALSE and
 * `error`. */
gboolean td__viz_output_end (TdVizOutput *output, gboolean whole, GError **error);
/** Write a text that is whole that way. Errors: FALSE and `error`. */
gboolean td__viz_write_text (const char *out, const char *text, const char *format,
                             GError **error);

/** Print "tapedeck: ..." as one line on stderr, whatever the message contains. Returns 2. */
int td__viz_trouble (const char *format, ...) G_GNUC_PRINTF (1, 2);
