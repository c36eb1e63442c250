/*
 * tapedeck diff: two iterations against one another, by exit status, text or JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "diff/td-diff.h"
#include "scene/td-scene.h"
#include "td-session.h"
#include "viz-commands.h"

static const char help[]
    = "usage: tapedeck diff TAPE[:ITERATION] TAPE[:ITERATION] [--json] [-o FILE]\n"
      "\n"
      "Compares two iterations: operations, layers, shapes, and numbers where both tapes have\n"
      "statistics, element by element where both have the arrays. The first line says what\n"
      "differs and which branch or loop of the recorded source made it so.\n"
      "Times are medians over iterations like the compared ones, up to 15 on each side.\n"
      "Without ITERATION: the last complete one.\n"
      "\n"
      "Exit status: 0 the same, 1 different, 2 trouble.\n";

int
td__viz_trouble (const char *format, ...)
{
  va_list args;
  g_autofree char *text = NULL;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  for (char *p = text; *p; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f)
      *p = '?';
  fprintf (stderr, "tapedeck: %s\n", text);
  return 2;
}

/* Splits "run.tdtape:12"; a file whose name has a colon and digits is taken as it is. */
static char *
split_iteration (const char *spec, gint64 *iteration)
{
  const char *colon = strrchr (spec, ':');
  char *end;

  *iteration = -1;
  if (!colon || !g_ascii_isdigit (colon[1]) || g_file_test (spec, G_FILE_TEST_EXISTS))
    return g_strdup (spec);
  errno = 0;
  gint64 n = g_ascii_strtoll (colon + 1, &end, 10);
  if (*end || errno != 0)
    return g_strdup (spec);
  *iteration = n;
  return g_strndup (spec, (gsize)(colon - spec));
}

/* Opens one side; NULL after saying what is wrong. The session is kept alive by the caller. */
static TdIteration *
open_side (const char *spec, TdSession **session)
{
  gint64 number;
  g_autofree char *path = split_iteration (spec, &number);
  g_autoptr (GError) error = NULL;
  TdIteration *iteration;

  *session = td_session_open (path, &error);
  if (!*session)
    {
      td__viz_trouble ("%s", error->message);
      return NULL;
    }
  if (number < 0)
    number = td_session_get_last_complete (*session);
  if (number < 0)
    {
      td__viz_trouble ("%s: no complete iteration on it", path);
      return NULL;
    }
  iteration = td_session_load_iteration (*session, number, &error);
  if (!iteration)
    td__viz_trouble ("%s: %s", path, error->message);
  return iteration;
}

int
td_viz_diff (int argc, char **argv)
{
  const char *specs[2] = { NULL, NULL }, *format = "text", *out = "-";
  int n = 0;

  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--json") == 0)
      format = "json";
    else if (strcmp (argv[i], "--help") == 0)
      {
        fputs (help, stdout);
        return 0;
      }
    else if (strcmp (argv[i], "-o") == 0 && i + 1 < argc)
      out = argv[++i];
    else if (argv[i][0] == '-' && argv[i][1])
      return td__viz_trouble ("diff: unknown option %s; try tapedeck diff --help", argv[i]);
    else if (n < 2)
      specs[n++] = argv[i];
    else
      return td__viz_trouble ("diff: two tapes, not more; try tapedeck diff --help");
  if (n < 2)
    return td__viz_trouble ("diff: two tapes are needed; try tapedeck diff --help");

  g_autoptr (TdSession) session_a = NULL;
  g_autoptr (TdSession) session_b = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (TdIteration) a = open_side (specs[0], &session_a);
  if (!a)
    return 2;
  g_autoptr (TdIteration) b = open_side (specs[1], &session_b);
  if (!b)
    return 2;
  g_autoptr (TdDiff) diff = td_diff_new (a, b, td_session_get_reader (session_a),
                                         td_session_get_reader (session_b));
  g_autofree char *text = td_diff_print (diff, format);
  if (!td__viz_write_text (out, text, format, &error))
    return td__viz_trouble ("%s", error->message);
  return !td_diff_is_same (diff);
}
