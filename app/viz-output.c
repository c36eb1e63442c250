/*
 * Where the commands write what they print: a file, which takes its place when it is whole, or
 * standard output.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <gio/gio.h>

#include "replace.h"
#include "utf8.h"
#include "viz-commands.h"

struct TdVizOutput
{
  const char *path;
  gboolean is_json, is_stdout;
  TdReplace replace; /* of a file, once that is begun */
  FILE *file;        /* NULL: nothing is begun */
  FILE *plain;       /* to that, without control characters; NULL: JSON has none */
  int failed;        /* errno of what went wrong first; 0: nothing */
};

TdVizOutput *
td__viz_output_begin (const char *path, const char *format)
{
  TdVizOutput *o = g_new0 (TdVizOutput, 1);

  o->path = path;
  o->is_json = g_str_equal (format, "json");
  o->is_stdout = g_str_equal (path, "-");
  return o;
}

static void
fails (TdVizOutput *o)
{
  if (!o->failed)
    o->failed = errno ? errno : EIO;
}

/* The file is begun when there is something to write: a view that fails leaves none. */
static gboolean
begin_file (TdVizOutput *o)
{
  if (o->file || o->failed)
    return !o->failed;
  if (o->is_stdout)
    o->file = stdout;
  else if (td__replace_begin (&o->replace, o->path, 0666))
    o->file = o->replace.file;
  if (o->file && !o->is_json)
    o->plain = td__plain_stream (o->file);
  if (!o->file || (!o->is_json && !o->plain))
    fails (o);
  return !o->failed;
}

void
td__viz_output_put (gpointer output, const char *text, gsize n)
{
  TdVizOutput *o = output;

  errno = 0;
  if (begin_file (o) && fwrite (text, 1, n, o->plain ? o->plain : o->file) != n)
    fails (o);
}

gboolean
td__viz_output_end (TdVizOutput *o, gboolean whole, GError **error)
{
  errno = 0;
  if (whole)
    begin_file (o);
  if (o->plain && fclose (o->plain) != 0)
    fails (o);
  if (o->is_stdout && o->file && (fflush (stdout) != 0 || ferror (stdout)))
    fails (o);
  if (!o->is_stdout && o->file && !td__replace_end (&o->replace, whole && !o->failed))
    if (whole)
      fails (o);
  if (o->failed)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: cannot write: %s", o->path,
                 g_strerror (o->failed));
  whole = whole && !o->failed;
  g_free (o);
  return whole;
}

gboolean
td__viz_write_text (const char *out, const char *text, const char *format, GError **error)
{
  TdVizOutput *o = td__viz_output_begin (out, format);

  td__viz_output_put (o, text, strlen (text));
  return td__viz_output_end (o, TRUE, error);
}
