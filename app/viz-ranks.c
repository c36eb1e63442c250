/*
 * tapedeck ranks: where the ranks of one run part, who waits for whom, and what to do; and
 * views of one step of all of them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "ranks/td-ranks-views.h"
#include "viz-commands.h"

static const char help[]
    = "usage: tapedeck ranks FOLDER|TAPE... [--json] [--view VIEW] [OPTIONS] [-o FILE]\n"
      "\n"
      "Holds the tapes of all ranks of one run against each other, and says in one sentence "
      "for\n"
      "each cause where they part first: which rank, iteration, array and line. Then the "
      "ranks,\n"
      "with how they ended, how long they waited for others, and how far their clocks are "
      "off;\n"
      "and the last calls where ranks wait for each other. One TAPE stands for its siblings,\n"
      "whose names have another number after \"rank-\".\n"
      "\n"
      "Errors and warnings are findings; notes are not.\n"
      "\n"
      "VIEW            of one iteration, instead of the findings:\n"
      "                lanes   what each rank computed, waited and sent, on one clock\n"
      "                ladder  its calls, with who left, who waits and who is missing\n"
      "                matrix  which arrays are equal on which ranks\n"
      "--iteration N   of the first rank that has it; default: that of the first finding, "
      "else\n"
      "                the last\n"
      "--format text|csv|json|svg|png|pdf   default: by the end of FILE, else text\n"
      "--theme light|dark|high-contrast|chainer   --scale K   --width W   --height H   "
      "pictures\n"
      "-o FILE         - is standard output\n"
      "\n"
      "Exit status: 0 nothing found, 1 ranks part, 2 trouble; with --view 0 or 2.\n"
      "The man page is tapedeck-ranks(1).\n";

static const struct
{
  const char *name;
  char *(*print) (TdRanksStep *step, const char *format);
  TdScene *(*draw) (TdRanksStep *step, const TdPanelView *view);
} views[] = {
  { "lanes", td_ranks_lanes_print, td_ranks_lanes_scene },
  { "ladder", td_ranks_ladder_print, td_ranks_ladder_scene },
  { "matrix", td_ranks_matrix_print, td_ranks_matrix_scene },
};

static const char *const formats[] = { "text", "csv", "json", "svg", "png", "pdf" };

typedef struct
{
  GPtrArray *paths;
  const char *view, *format, *out, *theme;
  gint64 iteration, width, height;
  double scale;
} Ranks;

/* Digits and nothing else. */
static gboolean
parse_number (const char *text, gint64 least, gint64 most, gint64 *out)
{
  return g_ascii_isdigit (*text) && g_ascii_string_to_signed (text, 10, least, most, out, NULL);
}

static gint
find_view (const char *name)
{
  for (guint i = 0; name && i < G_N_ELEMENTS (views); i++)
    if (strcmp (views[i].name, name) == 0)
      return (gint)i;
  return -1;
}

static gboolean
set_view (Ranks *r, const char *value)
{
  r->view = value;
  return find_view (value) >= 0;
}

static gboolean
set_format (Ranks *r, const char *value)
{
  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    if (strcmp (formats[i], value) == 0)
      r->format = formats[i];
  return r->format && strcmp (r->format, value) == 0;
}

static gboolean
set_out (Ranks *r, const char *value)
{
  r->out = value;
  return *value != '\0';
}

static gboolean
set_theme (Ranks *r, const char *value)
{
  r->theme = value;
  return strcmp (td_theme_get (value)->name, value) == 0;
}

static gboolean
set_iteration (Ranks *r, const char *value)
{
  return parse_number (value, 0, G_MAXINT64, &r->iteration);
}

static gboolean
set_width (Ranks *r, const char *value)
{
  return parse_number (value, 1, 20000, &r->width);
}

static gboolean
set_height (Ranks *r, const char *value)
{
  return parse_number (value, 1, 20000, &r->height);
}

static gboolean
set_scale (Ranks *r, const char *value)
{
  char *end;

  r->scale = g_ascii_strtod (value, &end);
  return g_ascii_isdigit (*value) && *end == '\0' && r->scale >= 0.05 && r->scale <= 8;
}

static const struct
{
  const char *name;
  gboolean (*set) (Ranks *r, const char *value); /* FALSE: it is not what is expected */
  const char *expected;
} options[] = {
  { "--view", set_view, "lanes, ladder or matrix" },
  { "--format", set_format, "text, csv, json, svg, png or pdf" },
  { "--iteration", set_iteration, "the number of an iteration" },
  { "--theme", set_theme, "light, dark, high-contrast or chainer" },
  { "--scale", set_scale, "a number from 0.05 to 8" },
  { "--width", set_width, "a number from 1 to 20000" },
  { "--height", set_height, "a number from 1 to 20000" },
  { "-o", set_out, "a file" },
};

/* Takes an option and its value. Returns 0 for a word that is none, 1 when it was taken, 2
 * after saying what is wrong. */
static int
take_option (Ranks *r, int argc, char **argv, int i)
{
  for (guint k = 0; k < G_N_ELEMENTS (options); k++)
    {
      if (strcmp (argv[i], options[k].name) != 0)
        continue;
      if (i + 1 >= argc)
        return td__viz_trouble ("ranks: %s needs a value; try tapedeck ranks --help", argv[i]);
      if (options[k].set (r, argv[i + 1]))
        return 1;
      return td__viz_trouble ("ranks: %s %s: %s expected; try tapedeck ranks --help", argv[i],
                              argv[i + 1], options[k].expected);
    }
  return 0;
}

/* Returns 0 to go on, else the exit status plus one. */
static int
parse (Ranks *r, int argc, char **argv)
{
  const char *dot;

  for (int i = 1; i < argc; i++)
    {
      int taken = take_option (r, argc, argv, i);

      if (taken == 2)
        return 1 + 2;
      i += taken;
      if (taken)
        continue;
      if (strcmp (argv[i], "--help") == 0)
        {
          fputs (help, stdout);
          return 1;
        }
      if (strcmp (argv[i], "--json") == 0)
        r->format = "json";
      else if (argv[i][0] == '-' && argv[i][1])
        return 1
               + td__viz_trouble ("ranks: unknown option %s; try tapedeck ranks --help",
                                  argv[i]);
      else
        g_ptr_array_add (r->paths, argv[i]);
    }
  if (r->paths->len == 0)
    return 1
           + td__viz_trouble ("ranks: a folder or the tapes of a run are needed; try tapedeck "
                              "ranks --help");
  dot = strrchr (r->out, '.');
  if (!r->format && !(dot && r->view && set_format (r, dot + 1)))
    r->format = "text";
  if (!r->view && strcmp (r->format, "text") != 0 && strcmp (r->format, "json") != 0)
    return 1
           + td__viz_trouble ("ranks: the findings have no format \"%s\"; --view has",
                              r->format);
  return 0;
}

static gboolean
write_view (const Ranks *r, TdRanks *ranks, GError **error)
{
  g_autoptr (TdRanksStep) step = td_ranks_step_new (ranks, r->iteration, error);
  const TdPanelView panel
      = { .width = (double)r->width, .height = (double)r->height, .event = -1, .head = -1 };
  gint view = find_view (r->view);

  if (!step)
    return FALSE;
  if (strcmp (r->format, "text") == 0 || strcmp (r->format, "csv") == 0
      || strcmp (r->format, "json") == 0)
    {
      g_autofree char *text = views[view].print (step, r->format);

      return td__viz_write_text (r->out, text, r->format, error);
    }
  g_autoptr (TdScene) scene = views[view].draw (step, &panel);
  return td_scene_export (scene, r->format, r->out, r->scale, td_theme_get (r->theme), error);
}

int
td_viz_ranks (int argc, char **argv)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new ();
  Ranks r = { .paths = paths, .out = "-", .theme = "light", .iteration = -1, .scale = 1 };
  g_autoptr (TdRanks) ranks = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  int status = parse (&r, argc, argv);

  if (status != 0)
    return status - 1;
  ranks = td_ranks_open ((const char *const *)paths->pdata, paths->len, &error);
  if (!ranks)
    return td__viz_trouble ("%s", error->message);
  td_ranks_look (ranks);
  if (r.view)
    return write_view (&r, ranks, &error) ? 0 : td__viz_trouble ("%s", error->message);
  text = td_ranks_print (ranks, r.format);
  if (!td__viz_write_text (r.out, text, r.format, &error))
    return td__viz_trouble ("%s", error->message);
  return td_ranks_count_faults (ranks) > 0;
}
