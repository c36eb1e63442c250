/*
 * Whole stacks: a walk outwards in the tree of calls that the tape has.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tape/td-stack.h"

#include <string.h>

#include "scene/td-format.h"
#include "td-tape-import.h"

/* Rows of a stack that is folded: where it allocates, and where it began. */
#define INNER_ROWS 9
#define OUTER_ROWS 4

guint32
td_stack_of_event (const TdIteration *iteration, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);

  return event < t->n_event_stacks ? t->event_stacks[event] : 0;
}

guint32
td_stack_of_var (const TdIteration *iteration, guint var)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  const TdTapeVar *v = var < t->n_vars ? &t->vars[var] : NULL;

  if (v && v->producer >= 0)
    return td_stack_of_event (iteration, (guint)v->producer);
  return v && (v->flags & TD_TAPE_VAR_EXTERNAL) && v->id < t->n_external_stacks
             ? t->external_stacks[v->id]
             : 0;
}

guint32
td_stack_outer (const TdIteration *iteration, guint32 call)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);

  return call > 0 && call <= t->n_stack_frames ? t->stack_frames[call - 1].outer : 0;
}

/* A call has a higher number than those around it. */
gboolean
td_stack_has (const TdIteration *iteration, guint32 stack, guint32 call)
{
  while (stack > call)
    stack = td_stack_outer (iteration, stack);
  return stack == call && call > 0;
}

TdStackFrame
td_stack_frame (const TdIteration *iteration, guint32 call)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  TdStackFrame f = { .call = call, .function = "", .file = "" };

  if (call == 0 || call > t->n_stack_frames)
    return f;
  f.site = t->stack_frames[call - 1].site;
  f.file = td_iteration_get_site (iteration, f.site, &f.line);
  f.function = td_iteration_get_function (iteration, f.site);
  if (strcmp (f.file, "??") == 0)
    f.file = "";
  return f;
}

GArray *
td_stack_list (const TdIteration *iteration, guint32 stack)
{
  GArray *frames = g_array_new (FALSE, FALSE, sizeof (TdStackFrame));

  for (; stack > 0; stack = td_stack_outer (iteration, stack))
    {
      TdStackFrame frame = td_stack_frame (iteration, stack);

      g_array_append_val (frames, frame);
    }
  return frames;
}

char *
td_stack_frame_dup_place (const TdStackFrame *frame)
{
  g_autofree char *text = frame->line > 0 ? g_strdup_printf ("%s:%u", frame->file, frame->line)
                                          : g_strdup (frame->file);

  return g_utf8_make_valid (text, -1);
}

char *
td_stack_frame_dup_text (const TdStackFrame *frame)
{
  g_autofree char *place = td_stack_frame_dup_place (frame);
  g_autofree char *function = g_utf8_make_valid (frame->function, -1);

  if (!*place || !*function)
    return g_strdup (*function ? function : *place ? place : "?");
  return g_strdup_printf ("%s (%s)", function, place);
}

char *
td_stack_frame_dup_short (const TdStackFrame *frame)
{
  TdStackFrame cut = *frame;
  const char *slash = strrchr (frame->file, '/');

  if (slash)
    cut.file = slash + 1;
  if (frame->line == 0 && *frame->function)
    cut.file = "";
  return td_stack_frame_dup_text (&cut);
}

char *
td_stack_frames_print (const GArray *frames, const char *indent)
{
  GString *out = g_string_new (NULL);

  for (guint i = 0; i < frames->len; i++)
    {
      g_autofree char *text
          = td_stack_frame_dup_text (&g_array_index (frames, TdStackFrame, i));

      g_string_append_printf (out, "%s%s\n", indent, text);
    }
  return g_string_free (out, FALSE);
}

/* Runs of frames without a line: what PyTorch knows of C++ is names. */
static GArray *
fold_runs (const GArray *frames)
{
  GArray *folds = g_array_new (FALSE, FALSE, sizeof (TdStackFold));

  for (guint i = 0, n; i < frames->len; i += n)
    {
      TdStackFold fold = { .first = i };

      for (n = 0; i + n < frames->len; n++)
        if (g_array_index (frames, TdStackFrame, i + n).line > 0)
          break;
      n = MAX (n, 1);
      fold.n = n;
      g_array_append_val (folds, fold);
    }
  return folds;
}

GArray *
td_stack_fold (const GArray *frames)
{
  GArray *folds = fold_runs (frames);
  TdStackFold *middle;
  guint last;

  if (folds->len <= INNER_ROWS + OUTER_ROWS + 1)
    return folds;
  last = folds->len - OUTER_ROWS;
  middle = &g_array_index (folds, TdStackFold, INNER_ROWS);
  middle->n = g_array_index (folds, TdStackFold, last).first - middle->first;
  return g_array_remove_range (folds, INNER_ROWS + 1, last - INNER_ROWS - 1);
}

char *
td_stack_fold_dup_text (const GArray *frames, const TdStackFold *fold)
{
  gboolean any = FALSE;

  for (guint i = 0; i < fold->n && !any; i++)
    any = g_array_index (frames, TdStackFrame, fold->first + i).line > 0;
  return any ? g_strdup_printf ("%u more %s", fold->n, td_plural (fold->n, "call", "calls"))
             : g_strdup_printf ("%u %s without a line", fold->n,
                                td_plural (fold->n, "call", "calls"));
}

/* It comes last in the attributes: it may be any text. */
const char *
td_stack_metadata (const TdIteration *iteration, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  const char *attrs = "", *at;

  if (event < t->n_events && (t->flags & TD_TAPE_ITERATION_SNAPSHOT))
    attrs = td_iteration_get_string (iteration, t->events[event].attrs);
  if (*attrs && strcmp (td_iteration_get_op_name (iteration, event), "annotation") == 0)
    return attrs;
  at = strstr (attrs, TD_TAPE_IMPORT_METADATA);
  return at && (at == attrs || at[-1] == ' ') ? at + strlen (TD_TAPE_IMPORT_METADATA) : "";
}
