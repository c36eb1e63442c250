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
#include "diff/td-port.h"
#include "memory/td-memory-compare.h"
#include "scene/td-scene.h"
#include "td-session.h"
#include "viz-commands.h"

static const char help[]
    = "usage: tapedeck diff TAPE[:ITERATION] TAPE[:ITERATION] [--json] [-o FILE]\n"
      "                     [--by structure|layer] [--rtol R] [--atol A] [--names FILE]\n"
      "                     [--names-out FILE] [--stacks]\n"
      "\n"
      "Compares two iterations: operations, layers, shapes, and numbers where both tapes have\n"
      "statistics, element by element where both have the arrays. The first line says what\n"
      "differs and which branch or loop of the recorded source made it so.\n"
      "Times are medians over iterations like the compared ones, up to 15 on each side.\n"
      "Without ITERATION: the last complete one.\n"
      "\n"
      "--by layer compares a model with its port to another framework: what each layer\n"
      "returned, its gradient and those of its parameters, element by element where both\n"
      "have them (level values), else by their statistics (level stats), and names the first\n"
      "layer that differs, forward and backward, with its worst element. Numbers may lie\n"
      "apart by A (0) and R (1e-4) times the size of what they are of. Layers are paired by\n"
      "their names, or by their order and the sizes of their parameters, or by FILE, a line a\n"
      "pair of paths, - for none; --names-out writes that table, to be edited. Instead of a\n"
      "TAPE: an npz file of any framework with arrays LAYER/out, LAYER/grad and\n"
      "LAYER/PARAMETER/grad.\n"
      "\n"
      "Of two memory snapshots: which blocks are new in the second and which are gone, by the\n"
      "stack that allocated them, or by its place where one of both has no stacks. Of stacks\n"
      "with the same place it names the call in which they differ; --stacks prints them "
      "whole.\n"
      "\n"
      "Exit status: 0 the same, 1 different, 2 trouble.\n"
      "The man page is tapedeck-diff(1).\n";

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
  if (side->session && !td_session_is_snapshot (side->session))
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

/* What was asked for. */
typedef struct
{
  const char *specs[2], *format, *out, *names, *names_out;
  int n;
  gboolean by_layer, stacks;
  TdPortTolerance tolerance;
} Asked;

/* A tolerance: a number that is not below 0. */
static gboolean
read_tolerance (const char *text, double *value)
{
  char *end;

  *value = g_ascii_strtod (text, &end);
  return end != text && *end == '\0' && *value >= 0;
}

/* An option that has a value: 1; 0: it is none of them; 2 after saying what is wrong. */
static int
take_option (Asked *asked, const char *option, const char *value)
{
  const struct
  {
    const char *name;
    const char **text;
    double *number;
  } options[] = { { "-o", &asked->out, NULL },
                  { "--names", &asked->names, NULL },
                  { "--names-out", &asked->names_out, NULL },
                  { "--rtol", NULL, &asked->tolerance.rtol },
                  { "--atol", NULL, &asked->tolerance.atol } };

  if (value == NULL)
    return 0;
  if (strcmp (option, "--by") == 0)
    {
      asked->by_layer = strcmp (value, "layer") == 0;
      if (asked->by_layer || strcmp (value, "structure") == 0)
        return 1;
      return td__viz_trouble ("diff: --by is structure or layer, not %s", value);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (options); i++)
    if (strcmp (option, options[i].name) == 0)
      {
        if (options[i].text != NULL)
          *options[i].text = value;
        else if (!read_tolerance (value, options[i].number))
          return td__viz_trouble ("diff: %s %s is no tolerance", option, value);
        return 1;
      }
  return 0;
}

static TdPortSource
source_of (TdIteration *iteration, TdSession *session)
{
  return (TdPortSource){ iteration, td_session_get_reader (session),
                         td_session_is_reference (session) };
}

static int
diff_by_layer (const Asked *asked, TdIteration *a, TdIteration *b, TdSession *session_a,
               TdSession *session_b)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *names = NULL;

  if (asked->names && !g_file_get_contents (asked->names, &names, NULL, &error))
    return td__viz_trouble ("%s", error->message);
  const TdPortSource source_a = source_of (a, session_a), source_b = source_of (b, session_b);
  g_autoptr (TdPort) port = td_port_new (&source_a, &source_b, names, asked->tolerance, &error);
  if (!port)
    return td__viz_trouble ("diff: %s", error->message);
  g_autofree char *table = td_port_names (port);
  g_autofree char *text = td_port_print (port, asked->format);
  if ((asked->names_out && !td__viz_write_text (asked->names_out, table, "text", &error))
      || !td__viz_write_text (asked->out, text, asked->format, &error))
    return td__viz_trouble ("%s", error->message);
  return td_port_differs (port);
}

static int
diff_snapshots (const Asked *asked, TdIteration *a, TdIteration *b)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TdMemoryCompare) compare = td_memory_compare_new (a, b);
  g_autofree char *text = td_memory_compare_print (compare, asked->format, asked->stacks);

  if (!td__viz_write_text (asked->out, text, asked->format, &error))
    return td__viz_trouble ("%s", error->message);
  return compare->n > 0;
}

int
td_viz_diff (int argc, char **argv)
{
  Asked asked = { .format = "text", .out = "-", .tolerance = { .rtol = 1e-4 } };

  for (int i = 1; i < argc; i++)
    {
      const int taken = take_option (&asked, argv[i], argv[i + 1]);

      if (taken == 2)
        return 2;
      if (taken == 1)
        i++;
      else if (strcmp (argv[i], "--json") == 0)
        asked.format = "json";
      else if (strcmp (argv[i], "--stacks") == 0)
        asked.stacks = TRUE;
      else if (strcmp (argv[i], "--help") == 0)
        {
          fputs (help, stdout);
          return 0;
        }
      else if (argv[i][0] == '-' && argv[i][1])
        return td__viz_trouble ("diff: unknown option %s; try tapedeck diff --help", argv[i]);
      else if (asked.n < 2)
        asked.specs[asked.n++] = argv[i];
      else
        return td__viz_trouble ("diff: two tapes, not more; try tapedeck diff --help");
    }
  if (!asked.by_layer && (asked.names || asked.names_out))
    return td__viz_trouble ("diff: names are of layers; try --by layer");
  if (asked.n < 2)
    return td__viz_trouble ("diff: two tapes are needed; try tapedeck diff --help");

  g_auto (Side) side_a = { 0 };
  g_auto (Side) side_b = { 0 };
  g_autoptr (GError) error = NULL;
  g_autoptr (TdIteration) a = open_side (asked.specs[0], &side_a, NULL);
  if (!a)
    return 2;
  g_autoptr (TdIteration) b = open_side (asked.specs[1], &side_b, &side_a);
  if (!b)
    return 2;
  if (td_session_is_snapshot (side_a.session) != td_session_is_snapshot (side_b.session))
    return td__viz_trouble ("diff: a memory snapshot is compared with another one only");
  if (td_session_is_snapshot (side_a.session))
    return asked.by_layer ? td__viz_trouble ("diff: a memory snapshot has no layers")
                          : diff_snapshots (&asked, a, b);
  if (asked.stacks)
    return td__viz_trouble ("diff: --stacks is for memory snapshots");
  if (asked.by_layer)
    return diff_by_layer (&asked, a, b, side_a.session, side_b.session);
  g_autoptr (TdDiff) diff = td_diff_new (a, b, td_session_get_reader (side_a.session),
                                         td_session_get_reader (side_b.session));
  g_autofree char *text = td_diff_print (diff, asked.format);
  if (!td__viz_write_text (asked.out, text, asked.format, &error))
    return td__viz_trouble ("%s", error->message);
  return !td_diff_is_same (diff);
}
