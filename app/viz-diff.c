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

/* A tape that is open; arrays that are the same in both of its iterations are there once then.
 * Records of memory are compared by nobody. */
typedef struct
{
  char *path;
  TdSession *session;
} Side;

static void
side_clear (Side *side)
{
  g_free (side->path);
  g_clear_object (&side->session);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Side, side_clear)

static gboolean
open_tape (Side *side, const Side *other, GError **error)
{
  if (other && g_str_equal (side->path, other->path))
    {
      side->session = g_object_ref (other->session);
      return TRUE;
    }
  side->session = td_session_open (side->path, error);
  if (side->session)
    td_tape_reader_skip_memory (td_session_get_reader (side->session), true);
  return side->session != NULL;
}

/* Opens one side, after the other (NULL: it is the first); NULL after saying what is wrong. */
static TdIteration *
open_side (const char *spec, Side *side, const Side *other)
{
  gint64 number;
  g_autoptr (GError) error = NULL;
  TdIteration *iteration;

  side->path = split_iteration (spec, &number);
  if (!open_tape (side, other, &error))
    {
      td__viz_trouble ("%s", error->message);
      return NULL;
    }
  if (number < 0)
    number = td_session_get_last_complete (side->session);
  if (number < 0)
    {
      td__viz_trouble ("%s: no complete iteration on it", side->path);
      return NULL;
    }
  iteration = td_session_load_iteration (side->session, number, &error);
  if (!iteration)
    td__viz_trouble ("%s: %s", side->path, error->message);
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

  g_auto (Side) side_a = { 0 };
  g_auto (Side) side_b = { 0 };
  g_autoptr (GError) error = NULL;
  g_autoptr (TdIteration) a = open_side (specs[0], &side_a, NULL);
  if (!a)
    return 2;
  g_autoptr (TdIteration) b = open_side (specs[1], &side_b, &side_a);
  if (!b)
    return 2;
  g_autoptr (TdDiff) diff = td_diff_new (a, b, td_session_get_reader (side_a.session),
                                         td_session_get_reader (side_b.session));
  g_autofree char *text = td_diff_print (diff, format);
  if (!td__viz_write_text (out, text, format, &error))
    return td__viz_trouble ("%s", error->message);
  return !td_diff_is_same (diff);
}
