/*
 * tapedeck show: a table of views, each with its text twin and its picture.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gradient/td-evaluate-name.h"
#include "gradient/td-tensor.h"
#include "schedule/td-flame.h"
#include "td-session.h"
#include "viz-commands.h"
#include "viz-show.h"

/* What a view is like. */
enum
{
  OF_RUN = 1 << 0,      /* of the whole run: it needs no iteration */
  OF_SNAPSHOT = 1 << 1, /* a memory snapshot has something for it */
  OVER_RUN = 1 << 2,    /* it is of several iterations, which --range narrows */
  NO_MEMORY = 1 << 3    /* it shows no records of memory, which are a quarter of a large tape */
};

typedef struct
{
  const char *name;
  const char *formats; /* besides png, svg, pdf */
  /* Returns the text in the format, or NULL with an error; NULL: `write` does it. */
  char *(*print) (Show *s, GError **error);
  TdScene *(*draw) (Show *s, GError **error);
  guint flags;
  /* Writes it in parts: there may be much of it. */
  gboolean (*write) (Show *s, TdSink *sink, GError **error);
} View;

static const char help[]
    = "usage: tapedeck show TAPE --view VIEW [--iteration N] [--node KEY] [--fold DEPTH]\n"
      "                     [--format FORMAT] [-o FILE]\n"
      "\n"
      "VIEW      graph backward curves memory blocks holders growth retained gradients "
      "schedule\n"
      "          explain (why static functions were not replayed, and what helps)\n"
      "          timeline flame (what layers cost, in time and in bytes)\n"
      "          tensor origin (where a NaN or an infinity comes from)\n"
      "          findings (parameters that do not learn, by rules)\n"
      "          ridge (how a parameter and its gradient are spread, by iteration)\n"
      "          what-if (layers computed again in backward: memory saved, time spent)\n"
      "FORMAT    text json png svg pdf, and where it makes sense dot, csv, npy,\n"
      "          folded (stacks for flamegraph.pl and speedscope); default: by the end of "
      "FILE,\n"
      "          else text\n"
      "--iteration N   default: the last complete iteration, of the range if one is given;\n"
      "                of origin the newest with a NaN or an infinity\n"
      "--event N       where the playhead stands; default: everything has run\n"
      "--node KEY      a parameter (net/l1/W, W), its gradient (W.grad), an event (#12), the\n"
      "                id of a node as --format json prints it, or an address in its block\n"
      "                (0x7f32a0000000); of blocks that one alone, with its whole stack\n"
      "--discarded     show the code of verified calls, too, beside their schedules\n"
      "--fold DEPTH    open groups down to this depth; all: all of them\n"
      "--function N|NAME  of schedule and explain: one static function; default: all, or in "
      "pictures "
      "the busiest\n"
      "--by holder|site  what the view growth puts together; default: by holder\n"
      "--by time|bytes    of the view flame: what its boxes are as wide as; default: time\n"
      "--by peak|end|bytes-time  of the view flame of a memory snapshot: what its calls have\n"
      "                at the peak or the end, and for how long; default: peak\n"
      "--newest N      of gradients and ridge: only the newest N iterations up to that; "
      "default: the "
      "whole run\n"
      "--range A:B     of curves, holders, growth, gradients, findings and ridge: only the "
      "iterations\n"
      "                A to B; A:, :B and one number alike\n"
      "--rules TEXT    of findings: \"vanishing 1e-4, exploding 100, dead 5, missing on, "
      "not-updated on\";\n"
      "                of each what is given; each may be off\n"
      "--recompute LAYERS  of what-if: paths with commas between, h0,h1 or 'h*', or how many "
      "of "
      "the list\n"
      "--against TAPE  of what-if: a run in which it was done, measured beside what is "
      "predicted\n"
      "--schedule N    another schedule of that function than the one replayed last\n"
      "--theme light|dark|high-contrast|chainer   --scale K   --width W   --height H   "
      "pictures\n"
      "--fit N         pictures: no side is longer than N pixels\n"
      "-o FILE         - is standard output\n"
      "\n"
      "Exit status: 0 done, 2 trouble.\n"
      "The man page is tapedeck-show(1).\n";

gboolean
td__show_trouble (GError **error, const char *text)
{
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, text);
  return FALSE;
}

/* ---- tensor ---- */

static TdTensor *
tensor (Show *s, GError **error)
{
  gint var;

  if (!s->node)
    {
      td__show_trouble (error,
                        "the view tensor needs --node KEY; tapedeck show --view graph --format "
                        "json lists them");
      return NULL;
    }
  var = td_tensor_find_var (s->it, s->key);
  if (var < 0)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
                   "iteration %" G_GINT64_FORMAT " has no node %s", s->iteration, s->node);
      return NULL;
    }
  return td_tensor_new (s->reader, s->it, (guint)var, s->event);
}

static char *
tensor_print (Show *s, GError **error)
{
  TdTensor *t = tensor (s, error);
  char *text = NULL;

  if (t && strcmp (s->format, "csv") == 0 && !t->values)
    td__show_trouble (error, "its values are not recorded: record with --level values");
  else if (t)
    text = td_tensor_print (t, s->format);
  td_tensor_free (t);
  return text;
}

static TdScene *
tensor_draw (Show *s, GError **error)
{
  TdTensor *t = tensor (s, error);
  TdScene *scene = t ? td_tensor_scene (t, NULL, &s->panel) : NULL;

  td_tensor_free (t);
  return scene;
}

static GBytes *
tensor_npy (Show *s, GError **error)
{
  TdTensor *t = tensor (s, error);
  GBytes *bytes = t ? td_tensor_to_npy (t) : NULL;

  if (t && !bytes)
    td__show_trouble (error, "its values are not recorded: record with --level values");
  td_tensor_free (t);
  return bytes;
}

static const View views[] = {
  { "graph", "text json dot", NULL, td__show_graph_draw, NO_MEMORY, td__show_graph_write },
  { "backward", "text json dot", NULL, td__show_graph_draw, NO_MEMORY, td__show_graph_write },
  { "curves", "text json csv", td__show_curves_print, td__show_curves_draw, OF_RUN | OVER_RUN },
  { "memory", "text json csv", NULL, td__show_memory_draw, OF_SNAPSHOT, td__show_memory_write },
  { "blocks", "text json csv", NULL, td__show_blocks_draw, OF_SNAPSHOT, td__show_blocks_write },
  { "holders", "text json csv", td__show_holders_print, td__show_holders_draw, OVER_RUN },
  { "growth", "text json csv", td__show_holders_print, td__show_holders_draw,
    OF_RUN | OVER_RUN },
  { "retained", "text json csv", td__show_retained_print, td__show_retained_draw },
  { "what-if", "text json csv", td__show_what_if_print, td__show_what_if_draw },
  { "gradients", "text json csv", td__show_gradients_print, td__show_gradients_draw,
    OVER_RUN | NO_MEMORY },
  { "findings", "text json csv", td__show_findings_print, td__show_findings_draw,
    OVER_RUN | NO_MEMORY },
  { "ridge", "text json csv", td__show_ridge_print, td__show_ridge_draw, OVER_RUN | NO_MEMORY },
  { "schedule", "text json csv", NULL, td__show_schedule_draw, 0, td__show_schedule_write },
  { "explain", "text json csv", td__show_explain_print, td__show_explain_draw },
  { "timeline", "text json csv", NULL, td__show_timeline_draw, NO_MEMORY,
    td__show_schedule_write },
  { "flame", "text json csv folded", NULL, td__show_flame_draw, NO_MEMORY | OF_SNAPSHOT,
    td__show_flame_write },
  { "tensor", "text json csv npy", tensor_print, tensor_draw },
  { "origin", "text json", td__show_origin_print, td__show_origin_draw },
};

static const char pictures[] = "png svg pdf";

static gboolean
in_list (const char *list, const char *word)
{
  g_auto (GStrv) words = g_strsplit (list, " ", -1);

  return g_strv_contains ((const char *const *)words, word);
}

static const View *
find_view (const char *name)
{
  for (gsize i = 0; name && i < G_N_ELEMENTS (views); i++)
    if (strcmp (views[i].name, name) == 0)
      return &views[i];
  return NULL;
}

/* ---- options ---- */

/* Digits and nothing else: no sign, no space, no other way to write a number. */
static gboolean
parse_int (const char *text, gint64 min, gint64 max, gint64 *out)
{
  return g_ascii_isdigit (*text) && g_ascii_string_to_signed (text, 10, min, max, out, NULL);
}

static gboolean
parse_small (const char *text, gint min, gint max, gint *out)
{
  gint64 n = 0;

  if (!parse_int (text, min, max, &n))
    return FALSE;
  *out = (gint)n;
  return TRUE;
}

static gboolean
set_view (Show *s, const char *value)
{
  s->view = value;
  return TRUE;
}

static gboolean
set_format (Show *s, const char *value)
{
  s->format = value;
  return TRUE;
}

static gboolean
set_out (Show *s, const char *value)
{
  s->out = value;
  return *value != '\0';
}

static gboolean
set_theme (Show *s, const char *value)
{
  s->theme = value;
  return strcmp (td_theme_get (value)->name, value) == 0;
}

static gboolean
set_node (Show *s, const char *value)
{
  s->node = value;
  return *value != 0;
}

static gboolean
set_function (Show *s, const char *value)
{
  s->function = value;
  return TRUE;
}

static gboolean
set_by (Show *s, const char *value)
{
  s->by_given = value;
  return td_holders_by_find (value, &s->by) || td__show_flame_by (s, value);
}

static gboolean
set_scale (Show *s, const char *value)
{
  char *end;

  s->scale = g_ascii_strtod (value, &end);
  return *end == '\0' && value + strspn (value, "0123456789.") == end && s->scale >= 0.05
         && s->scale <= 8;
}

static gboolean
set_fit (Show *s, const char *value)
{
  return parse_small (value, 1, 20000, &s->fit);
}

static gboolean
set_iteration (Show *s, const char *value)
{
  s->iteration_given = TRUE;
  return parse_int (value, 0, G_MAXINT64, &s->iteration);
}

static gboolean
set_event (Show *s, const char *value)
{
  return parse_small (value, 0, G_MAXINT32, &s->event);
}

static gboolean
set_fold (Show *s, const char *value)
{
  s->fold_given = TRUE;
  s->fold = -1;
  return strcmp (value, "all") == 0 || parse_small (value, 0, 1000, &s->fold);
}

static gboolean
set_schedule (Show *s, const char *value)
{
  return parse_small (value, 1, G_MAXINT32, &s->schedule);
}

static gboolean
set_newest (Show *s, const char *value)
{
  return parse_small (value, 1, 10000, &s->newest);
}

static gboolean
set_range (Show *s, const char *value)
{
  return td_range_parse_pair (value, &s->range);
}

static gboolean
set_rules (Show *s, const char *value)
{
  s->rules = value;
  return TRUE;
}

static gboolean
set_recompute (Show *s, const char *value)
{
  s->recompute = value;
  return *value != '\0';
}

static gboolean
set_against (Show *s, const char *value)
{
  s->against = value;
  return *value != '\0';
}

static gboolean
set_width (Show *s, const char *value)
{
  return parse_small (value, 1, 20000, &s->width);
}

static gboolean
set_height (Show *s, const char *value)
{
  return parse_small (value, 1, 20000, &s->height);
}

/* --chain, and --aside below, are the old names of --function and --discarded. */
static const struct
{
  const char *name;
  gboolean (*set) (Show *s, const char *value); /* FALSE: it is not what is expected */
  const char *expected;
} options[] = {
  { "--view", set_view, "a view" },
  { "--format", set_format, "a format" },
  { "-o", set_out, "a file" },
  { "--theme", set_theme, "light, dark, high-contrast or chainer" },
  { "--node", set_node, "the id of a node" },
  { "--scale", set_scale, "a number from 0.05 to 8" },
  { "--fit", set_fit, "a number from 1 to 20000" },
  { "--iteration", set_iteration, "the number of an iteration" },
  { "--event", set_event, "the number of an event" },
  { "--fold", set_fold, "a depth from 0 to 1000, or all," },
  { "--width", set_width, "a number from 1 to 20000" },
  { "--height", set_height, "a number from 1 to 20000" },
  { "--function", set_function, "a static function" },
  { "--chain", set_function, "a static function" },
  { "--schedule", set_schedule, "a number from 1 on" },
  { "--by", set_by, "holder, site, time, bytes, peak, end or bytes-time" },
  { "--newest", set_newest, "a number from 1 to 10000" },
  { "--range", set_range, "A:B, A:, :B or a number" },
  { "--rules", set_rules, "rules" },
  { "--recompute", set_recompute, "layers" },
  { "--against", set_against, "a tape" },
};

static gint
find_option (const char *name)
{
  for (gsize i = 0; i < G_N_ELEMENTS (options); i++)
    if (strcmp (options[i].name, name) == 0)
      return (gint)i;
  return -1;
}

/* Returns 0 to go on, else the exit status plus one. */
static int
parse (Show *s, int argc, char **argv)
{
  gint k;

  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--help") == 0)
      {
        fputs (help, stdout);
        return 1;
      }
    else if (strcmp (argv[i], "--discarded") == 0 || strcmp (argv[i], "--aside") == 0)
      s->discarded = TRUE;
    else if ((k = find_option (argv[i])) >= 0)
      {
        if (i + 1 >= argc)
          return 1
                 + td__viz_trouble ("show: %s needs a value; try tapedeck show --help",
                                    argv[i]);
        if (!options[k].set (s, argv[++i]))
          return 1
                 + td__viz_trouble ("show: %s %s: %s expected; try tapedeck show --help",
                                    options[k].name, argv[i], options[k].expected);
      }
    else if (argv[i][0] == '-' && argv[i][1])
      return 1 + td__viz_trouble ("show: unknown option %s; try tapedeck show --help", argv[i]);
    else if (s->tape)
      return 1 + td__viz_trouble ("show: one tape, not more; try tapedeck show --help");
    else
      s->tape = argv[i];
  if (!s->tape || !s->view)
    return 1 + td__viz_trouble ("show: a tape and --view are needed; try tapedeck show --help");
  return 0;
}

/* Without --format the end of the file's name says it. */
static void
choose_format (Show *s, const View *view)
{
  const char *dot = strrchr (s->out, '.');

  if (s->format)
    return;
  s->format = "text";
  if (dot && (in_list (pictures, dot + 1) || in_list (view->formats, dot + 1)))
    s->format = dot + 1;
}

/* A node by its id or by a name: a name may look like a number, but ids have 16 digits. */
static gboolean
find_node (Show *s, GError **error)
{
  gboolean is_id = g_ascii_isxdigit (*s->node)
                   && g_ascii_string_to_unsigned (s->node, 16, 0, G_MAXUINT64, &s->key, NULL);
  g_autoptr (GError) local = NULL;
  gint var;

  if ((is_id && strlen (s->node) == 16) || td__show_find_address (s))
    return TRUE;
  var = td__evaluate_find (s->it, s->node, (gint)td_iteration_get_n_events (s->it), &local);
  if (var >= 0)
    s->key = td_iteration_get_tape (s->it)->vars[var].key;
  if (var >= 0 || is_id)
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
               "--node %s: iteration %" G_GINT64_FORMAT
               " has no such node, %s; a path, its .grad, #12, an id or an address expected",
               s->node, s->iteration, local->message);
  return FALSE;
}

static void
say_empty (const Show *s, GError **error)
{
  char damage[160];

  g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", s->tape,
               td_tape_reader_damage (s->reader, damage, sizeof damage) ? damage
                                                                        : "no iteration on it");
}

/* The newest of the range that can be shown whole; else its last. */
static gint64
find_newest (const Show *s, TdRange run)
{
  TdTapeSummaries all = td_tape_reader_summaries (s->reader);

  for (guint i = all.n; i-- > 0;)
    if (td_range_has (s->range, (gint64)all.rows[i].number)
        && !(all.rows[i].flags & (TD_TAPE_ITERATION_PARTIAL | TD_TAPE_ITERATION_OUTSIDE))
        && td_tape_reader_stored (s->reader, i))
      return (gint64)all.rows[i].number;
  return MIN (s->range.end, run.end) - 1;
}

/* Of a tape without iterations the view says so. */
static gboolean
narrow (Show *s, GError **error)
{
  TdRange run = td_session_get_run (s->session);
  g_autofree char *words = td_range_describe (s->range), *there = td_range_describe (run);

  if (td_range_is_all (s->range) || td_range_is_all (run))
    return TRUE;
  if (s->range.first >= run.end || s->range.end <= run.first)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: nothing of %s: it has %s", s->tape,
                 words, there);
  else if (s->iteration >= 0 && !td_range_has (s->range, s->iteration))
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
                 "--iteration %" G_GINT64_FORMAT " is none of %s", s->iteration, words);
  else if (s->iteration < 0)
    s->iteration = find_newest (s, run);
  return *error == NULL;
}

static gboolean
load (Show *s, const View *view, GError **error)
{
  s->session = td_session_open (s->tape, error);
  if (!s->session)
    return FALSE;
  if (td_session_is_snapshot (s->session) && !(view->flags & OF_SNAPSHOT))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
                   "%s: a memory snapshot has no operations, and does not say who keeps what: "
                   "nothing for the view %s (it has memory, blocks and flame)",
                   s->tape, s->view);
      return FALSE;
    }
  td_session_set_shows_discarded (s->session, s->discarded);
  s->reader = td_session_get_reader (s->session);
  if ((view->flags & NO_MEMORY) && !td_session_is_snapshot (s->session))
    td_tape_reader_skip_memory (s->reader, true);
  if (!narrow (s, error))
    return FALSE;
  if (s->iteration < 0)
    s->iteration = td_session_get_last_complete (s->session);
  if (s->iteration < 0) /* it ended, or still is, in its first iteration */
    s->iteration = td_session_get_head (s->session).iteration;
  if (!(view->flags & OF_RUN))
    {
      if (s->iteration < 0)
        say_empty (s, error);
      else
        s->it = td_session_load_iteration (s->session, s->iteration, error);
      if (!s->it && s->iteration >= 0)
        g_prefix_error (error, "%s: ", s->tape);
      if (!s->it)
        return FALSE;
      if (s->event >= (gint)td_iteration_get_n_events (s->it))
        {
          g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
                       "%s: iteration %" G_GINT64_FORMAT " has no event %d", s->tape,
                       s->iteration, s->event);
          return FALSE;
        }
      if (s->node && !find_node (s, error))
        return FALSE;
    }
  s->panel = (TdPanelView){ .width = s->width,
                            .height = s->height,
                            .iteration = s->iteration,
                            .event = s->event,
                            .head = -1,
                            .selected = &s->key,
                            .n_selected = s->node != NULL,
                            .range = s->range };
  return TRUE;
}

static gboolean
write_in_parts (Show *s, const View *view, GError **error)
{
  TdVizOutput *output = td__viz_output_begin (s->out, s->format);
  g_autoptr (GString) text = g_string_new (NULL);
  TdSink sink = { text, td__viz_output_put, output };
  gboolean whole = view->write (s, &sink, error);

  if (whole)
    td__viz_output_put (output, text->str, text->len);
  return td__viz_output_end (output, whole, whole ? error : NULL);
}

static gboolean
write_view (Show *s, const View *view, GError **error)
{
  if (in_list (pictures, s->format))
    {
      g_autoptr (TdScene) scene = view->draw (s, error);

      TdTheme theme = *td_theme_get (s->theme);

      if (scene && s->fit > 0)
        {
          s->scale = MIN (1, s->fit / MAX (td_scene_width (scene), td_scene_height (scene)));
          theme.min_stroke = MAX (theme.min_stroke, 1 / s->scale); /* a pixel of it is seen */
        }
      return scene && td_scene_export (scene, s->format, s->out, s->scale, &theme, error);
    }
  if (strcmp (s->format, "npy") == 0)
    {
      g_autoptr (GBytes) bytes = tensor_npy (s, error);

      return bytes
             && td_write_output (s->out, g_bytes_get_data (bytes, NULL),
                                 g_bytes_get_size (bytes), error);
    }
  if (view->write)
    return write_in_parts (s, view, error);
  g_autofree char *text = view->print (s, error);
  return text && td__viz_write_text (s->out, text, s->format, error);
}

int
td_viz_show (int argc, char **argv)
{
  Show s = { .out = "-", .theme = "light", .iteration = -1, .event = -1, .scale = 1 };
  int status = parse (&s, argc, argv);
  const View *view = find_view (s.view);
  g_autoptr (GError) error = NULL;

  if (status != 0)
    return status - 1;
  if (!view)
    return td__viz_trouble ("show: no view is called \"%s\"; try tapedeck show --help", s.view);
  choose_format (&s, view);
  if (!in_list (pictures, s.format) && !in_list (view->formats, s.format))
    return td__viz_trouble ("show: the view %s has no format \"%s\" (it has %s %s)", s.view,
                            s.format, view->formats, pictures);
  if (!td__show_by_fits (&s))
    return td__viz_trouble ("show: --by %s is not for the view %s; try tapedeck show --help",
                            s.by_given, s.view);
  if ((s.recompute || s.against) && strcmp (s.view, "what-if") != 0)
    return td__viz_trouble ("show: --%s is for the view what-if only",
                            s.recompute ? "recompute" : "against");
  if (!td_range_is_all (s.range) && !(view->flags & OVER_RUN))
    return td__viz_trouble ("show: --range is not for the view %s, which is of one iteration",
                            s.view);
  if (!load (&s, view, &error))
    status = td__viz_trouble ("%s", error->message);
  else if (!write_view (&s, view, &error))
    status = strstr (error->message, s.out)
                 ? td__viz_trouble ("%s", error->message)
                 : td__viz_trouble ("%s: %s", s.tape, error->message);
  g_clear_pointer (&s.it, td_iteration_unref);
  g_clear_object (&s.session);
  return status;
}
