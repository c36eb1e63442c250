/* An origin in words, and as JSON.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "scene/td-format.h"
#include "scene/td-json.h"
#include "tape/td-origin-private.h"

static const char *
bad_name (TdBad bad)
{
  return bad == TD_BAD_NAN ? "NaN" : "Infinity";
}

/* "net/l1/W", "x", "an input" */
char *
td__origin_dup_var_name (const TdIteration *it, guint var)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  const char *name = td_iteration_get_var_name (it, var);
  const char *path = td_iteration_get_path_name (it, t->vars[var].path);

  for (guint i = 0; i < t->n_grads; i++)
    if (t->grads[i].gradient == var
        && strcmp (td_iteration_get_string (it, t->grads[i].path), "?") != 0)
      return g_strdup_printf ("the gradient of %s",
                              td_iteration_get_string (it, t->grads[i].path));
  if (*path && *name)
    return g_strdup_printf ("%s/%s", path, name);
  if (*name)
    return g_strdup (name);
  if (t->vars[var].producer >= 0)
    return g_strdup_printf ("the output of %s",
                            td_iteration_get_op_name (it, (guint)t->vars[var].producer));
  return g_strdup ("an input");
}

gboolean
td__origin_made_nothing (const TdIteration *it, guint event)
{
  guint32 flags = td_iteration_get_tape (it)->events[event].flags;

  return flags & TD_TAPE_EVENT_FAILED && !(flags & TD_TAPE_EVENT_FAULT);
}

/* "log of net/head", "div in backward of log", "sgd in the update of net/l1/W" */
char *
td__origin_dup_event_name (const TdIteration *it, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  const TdTapeEvent *e = &t->events[event];
  const char *op = td_iteration_get_op_name (it, event);
  const char *path = td_iteration_get_link_path (it, event);
  gint forward = td_iteration_get_forward (it, event);

  if (e->phase == TD_TAPE_PHASE_UPDATE && e->n_in > 0 && !td__origin_fills (it, event, 0))
    {
      g_autofree char *what = td__origin_dup_var_name (it, t->ins[e->first_in]);

      return g_strdup_printf ("%s in the update of %s", op, what);
    }
  if (e->phase == TD_TAPE_PHASE_ACCUMULATE)
    return g_strdup_printf ("%s, which accumulates gradients", op);
  if (e->phase == TD_TAPE_PHASE_BACKWARD && forward >= 0)
    return g_strdup_printf ("%s in backward of %s%s%s", op,
                            td_iteration_get_op_name (it, (guint)forward), *path ? " of " : "",
                            path);
  return g_strdup_printf ("%s%s%s", op, *path ? " of " : "", path);
}

static void
append_place (GString *out, const TdOrigin *o)
{
  char number[TD_FORMAT_SIZE];

  if (*o->place)
    g_string_append_printf (out, " at %s", o->place);
  for (guint k = 0; o->has_element && k < o->ndim; k++)
    g_string_append_printf (out, "%s%" G_GINT64_FORMAT, k ? ", " : ", element [",
                            o->element[k]);
  if (o->has_element && o->ndim > 0)
    g_string_append_c (out, ']');
  for (guint k = 0; k < o->n_inputs; k++)
    g_string_append_printf (out, "%s%s",
                            k > 0              ? " and "
                            : o->n_inputs == 1 ? ", input "
                                               : ", inputs ",
                            td_format_value (number, o->inputs[k]));
  if (o->n_inputs > 0)
    g_string_append (out, o->has_element && o->ndim > 0 ? " there" : "");
  g_string_append_printf (out, "; iteration %" G_GINT64_FORMAT, o->at.iteration);
}

static char *
dup_note (const TdOrigin *o, TdSession *session, const TdIteration *it, const char *missing)
{
  g_autofree char *inside = (o->kind == TD_ORIGIN_MADE || o->kind == TD_ORIGIN_LOST)
                                    && o->at.event >= 0
                                    && td__origin_is_group (it, (guint)o->at.event)
                                ? td__origin_dup_inside (session, it, (guint)o->at.event)
                                : NULL;

  if (inside && o->kind == TD_ORIGIN_LOST)
    return g_strdup_printf ("%s; %s", missing, inside);
  if (inside)
    return o->candidates->len > 1 ? g_strdup_printf ("%u places come into question, of which "
                                                     "this is the first; %s",
                                                     o->candidates->len, inside)
                                  : g_steal_pointer (&inside);
  if (o->kind == TD_ORIGIN_LOST)
    return g_strdup (missing);
  if (o->kind == TD_ORIGIN_UNKNOWN && o->at.event >= 0
      && td__origin_made_nothing (it, (guint)o->at.event))
    return g_strdup ("the call failed: it made nothing");
  if (o->kind == TD_ORIGIN_UNKNOWN)
    return g_strdup ("its numbers are not recorded: record with --level stats or values");
  if ((o->kind == TD_ORIGIN_MADE || o->kind == TD_ORIGIN_CAME) && !o->sure)
    return g_strdup_printf (
        "%u places come into question, of which this is the first: elements are not known all "
        "the way%s",
        o->candidates->len,
        o->has_element ? "" : "; record with --level values to tell them apart");
  return NULL;
}

/* Of what had numbers before, a parameter or a result, the place is where it was made: who
 * wrote the number into it is on no tape. */
static void
append_sentence (GString *out, const TdOrigin *o, gboolean had_numbers)
{
  const char *bad = bad_name (o->bad);

  switch (o->kind)
    {
    case TD_ORIGIN_MADE:
      g_string_append_printf (out, "%s first made by %s", bad, o->name);
      break;
    case TD_ORIGIN_CAME:
      g_string_append_printf (out, "%s came in with %s, %s", bad, o->name,
                              had_numbers
                                  ? "into which the program or a file wrote it; it is made"
                                  : "which the program gave");
      break;
    case TD_ORIGIN_LOST:
      g_string_append_printf (out, "%s first seen in %s", bad, o->name);
      break;
    case TD_ORIGIN_CLEAN:
      g_string_append_printf (out, "No NaN and no infinity in %s", o->name);
      break;
    case TD_ORIGIN_UNKNOWN:
    default:
      g_string_append_printf (out, "Nothing is known of %s", o->name);
      break;
    }
  append_place (out, o);
  if (o->note)
    g_string_append_printf (out, " (%s)", o->note);
}

void
td__origin_describe (TdOrigin *o, TdSession *session, const TdIteration *it,
                     const char *missing)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  GString *out = g_string_new (NULL);
  gboolean had_numbers = FALSE;

  if (o->at.event >= 0)
    {
      o->name = td__origin_dup_event_name (it, (guint)o->at.event);
      o->place = td_iteration_dup_site (it, (guint)o->at.event);
    }
  else
    {
      gboolean is_var = o->at.var < t->n_vars;

      had_numbers = is_var
                    && (t->vars[o->at.var].producer >= 0
                        || t->vars[o->at.var].flags & TD_TAPE_VAR_PARAMETER);
      o->name = is_var ? td__origin_dup_var_name (it, o->at.var) : g_strdup ("it");
      o->place = is_var ? td_iteration_dup_place (it, t->vars[o->at.var].site) : g_strdup ("");
    }
  o->note = dup_note (o, session, it, missing);
  append_sentence (out, o, had_numbers);
  if (o->cause)
    g_string_append_printf (out, ". It was made of an infinity: %s", o->cause->sentence);
  o->sentence = g_string_free (out, FALSE);
}

/* ---- print ---- */

static const char *const kinds[] = {
  [TD_ORIGIN_UNKNOWN] = "unknown", [TD_ORIGIN_CLEAN] = "clean", [TD_ORIGIN_MADE] = "made",
  [TD_ORIGIN_CAME] = "came in",    [TD_ORIGIN_LOST] = "lost",
};

static void
put_steps (TdJson *j, const char *key, const GArray *steps)
{
  td_json_key (j, key);
  td_json_begin_array (j);
  for (guint i = 0; i < steps->len; i++)
    {
      const TdOriginStep *step = &g_array_index (steps, TdOriginStep, i);

      td_json_begin_object (j);
      td_json_member_int (j, "iteration", step->iteration);
      td_json_member_int (j, "event", step->event);
      td_json_key (j, "key");
      td_json_id (j, step->key);
      td_json_member_string (j, "name", step->name);
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

static void
put_origin (TdJson *j, const TdOrigin *o)
{
  td_json_begin_object (j);
  td_json_member_string (j, "sentence", o->sentence);
  td_json_member_string (j, "what", bad_name (o->bad));
  td_json_member_string (j, "kind", kinds[o->kind]);
  td_json_member_bool (j, "sure", o->sure);
  td_json_member_int (j, "iteration", o->at.iteration);
  td_json_member_int (j, "event", o->at.event);
  td_json_key (j, "key");
  td_json_id (j, o->at.key);
  td_json_member_string (j, "name", o->name);
  td_json_member_string (j, "site", o->place);
  if (o->has_element)
    {
      td_json_key (j, "element");
      td_json_begin_array (j);
      for (guint k = 0; k < o->ndim; k++)
        td_json_int (j, o->element[k]);
      td_json_end_array (j);
    }
  td_json_key (j, "inputs");
  td_json_begin_array (j);
  for (guint k = 0; k < o->n_inputs; k++)
    td_json_double (j, o->inputs[k]);
  td_json_end_array (j);
  if (o->note)
    td_json_member_string (j, "note", o->note);
  put_steps (j, "path", o->steps);
  put_steps (j, "candidates", o->candidates);
  if (o->cause)
    {
      td_json_key (j, "cause");
      put_origin (j, o->cause);
    }
  td_json_end_object (j);
}

char *
td_origin_print (const TdOrigin *o, const char *format)
{
  GString *out = g_string_new (NULL);
  TdJson j;

  if (strcmp (format, "json") == 0)
    {
      td_json_init (&j, out);
      put_origin (&j, o);
      return g_string_free (out, FALSE);
    }
  g_string_append_printf (out, "%s\n", o->sentence);
  for (guint i = 0; o->steps && i < o->steps->len && o->steps->len > 1; i++)
    {
      const TdOriginStep *step = &g_array_index (o->steps, TdOriginStep, i);

      if (step->event < 0 && i > 0)
        continue; /* the same array, in the iteration before */
      g_string_append_printf (out, "  iteration %" G_GINT64_FORMAT, step->iteration);
      if (step->event >= 0)
        g_string_append_printf (out, ", event %d", step->event);
      g_string_append_printf (out, ": %s\n", step->name);
    }
  return g_string_free (out, FALSE);
}
