/*
 * The staticness report in words.
 *
 * SPDX-License-Identifier: MIT
 */
#include "scene/td-format.h"
#include "td-staticness-private.h"

const char *
td_static_verdict_name (TdStaticVerdict verdict)
{
  static const char *const names[]
      = { "static", "settled", "sizes", "several", "once", "dynamic" };

  return verdict < G_N_ELEMENTS (names) ? names[verdict] : "?";
}

static const char *
name_of (const TdStaticFunction *function)
{
  return *function->path ? function->path : "the forward pass";
}

/* "relu → sigmoid at model.c:12: took the else branch at ...". */
static void
append_change (GString *s, const TdStaticFunction *function)
{
  if (function->changed < 0)
    return;
  g_string_append_printf (s, ", changed in iteration %" G_GINT64_FORMAT, function->changed);
  if (*function->op)
    g_string_append_printf (s, ": %s", function->op);
  if (*function->site_a && *function->site_b
      && !g_str_equal (function->site_a, function->site_b))
    g_string_append_printf (s, " (%s, then %s)", function->site_a, function->site_b);
  else if (*function->site_a || *function->site_b)
    g_string_append_printf (s, " at %s",
                            *function->site_b ? function->site_b : function->site_a);
  if (*function->why)
    g_string_append_printf (s, "; it %s", function->why);
}

char *
td_staticness_dup_function (const TdStaticness *self, const TdStaticFunction *function)
{
  GString *s = g_string_new (name_of (function));

  switch (function->verdict)
    {
    case TD_STATIC_ALWAYS:
      g_string_append_printf (
          s, ": the same in all %" G_GUINT64_FORMAT " %s%s", function->n_iterations,
          td_plural (function->n_iterations, "iteration", "iterations"),
          function->n_iterations < self->n_iterations ? " that have it" : "");
      if (function->n_sizes > 1)
        g_string_append_printf (s, " (%u kinds of call, a schedule for each)",
                                function->n_sizes);
      break;
    case TD_STATIC_SETTLED:
      g_string_append_printf (s, ": the same since iteration %" G_GINT64_FORMAT,
                              function->since);
      break;
    case TD_STATIC_SHAPES:
      g_string_append_printf (s,
                              ": one structure in %u sizes in %" G_GUINT64_FORMAT
                              " iterations, a schedule for each",
                              function->n_sizes, function->n_iterations);
      break;
    case TD_STATIC_SEVERAL:
      g_string_append_printf (
          s, ": %u structures in %" G_GUINT64_FORMAT " iterations, a schedule for each",
          function->n_structures, function->n_iterations);
      break;
    case TD_STATIC_ONCE:
      g_string_append (s, ": ran in one iteration only");
      break;
    case TD_STATIC_DYNAMIC:
      g_string_append_printf (s, ": dynamic, %u structures in %" G_GUINT64_FORMAT " iterations",
                              function->n_sizes, function->n_iterations);
      break;
    default:
      break;
    }
  append_change (s, function);
  if (function->n_ops > 0) /* else the newest iteration that has it ran none of it */
    g_string_append_printf (s, "; %u %s of %u %s", function->n_calls,
                            td_plural (function->n_calls, "call", "calls"), function->n_ops,
                            td_plural (function->n_ops, "operation", "operations"));
  if (function->n_reads > 0)
    g_string_append_printf (s, "; reads %u value%s (first at %s), which a schedule must guard",
                            function->n_reads, function->n_reads == 1 ? "" : "s",
                            function->read_site);
  if (function->n_attributes > 0)
    g_string_append_printf (s, "; attributes change (%s): each change is a new schedule",
                            function->attribute);
  return g_string_free (s, FALSE);
}

/* ---- the sentence ---- */

static guint
count_maximal (const TdStaticness *self, const TdStaticFunction **one)
{
  guint n = 0;

  for (guint i = 0; i < self->n_functions; i++)
    if (self->functions[i].maximal)
      {
        if (n++ == 0)
          *one = &self->functions[i];
      }
  return n;
}

static double
percent (guint64 part, guint64 whole)
{
  return whole > 0 ? 100.0 * (double)part / (double)whole : 0.0;
}

static void
append_gain (GString *s, const TdStaticGain *g)
{
  char a[TD_FORMAT_SIZE], b[TD_FORMAT_SIZE], c[TD_FORMAT_SIZE];
  double share = percent (g->static_gap_ns, g->duration_ns);

  if (!g->worth_it)
    {
      g_string_append_printf (
          s,
          " No gain: %.2g %% of an iteration (%s) lies between operations of static "
          "functions, and less than 1 %% of what is written or kept could be spared.",
          share, td_format_ns (a, g->static_gap_ns));
      return;
    }
  g_string_append_printf (
      s, " At most to gain: %s (%.2g %%) between operations of %s an iteration",
      td_format_ns (a, g->static_gap_ns), share, td_format_ns (b, g->duration_ns));
  if (g->n_groups > 0)
    g_string_append_printf (s, "; %u elementwise %s in %u fused %s, %s not written",
                            g->n_fusable, td_plural (g->n_fusable, "operation", "operations"),
                            g->n_groups, td_plural (g->n_groups, "one", "ones"),
                            td_format_bytes (c, g->fused_bytes));
  if (g->planned_bytes < g->peak_bytes)
    g_string_append_printf (s, "; peak %s → %s", td_format_bytes (a, g->peak_bytes),
                            td_format_bytes (b, g->planned_bytes));
  g_string_append_c (s, '.');
}

char *
td__static_sentence (const TdStaticness *self)
{
  const TdStaticFunction *one = NULL;
  guint n = count_maximal (self, &one);
  GString *s;

  if (self->n_iterations == 0 || self->n_functions == 0)
    return g_strdup ("No iteration has ended yet.");
  if (self->n_iterations == 1)
    return g_strdup ("One iteration so far: another one will show whether the graph repeats.");
  s = g_string_new (NULL);
  if (n == 0)
    {
      g_string_append (s, "Nothing is static: ");
      g_autofree char *whole = td_staticness_dup_function (self, &self->functions[0]);
      g_string_append_printf (s, "%s.", whole);
      return g_string_free (s, FALSE);
    }
  if (n == 1)
    {
      g_autofree char *function = td_staticness_dup_function (self, one);

      g_string_append_printf (s, "Could be static: %s.", function);
    }
  else
    g_string_append_printf (s, "%u functions could be static.", n);
  append_gain (s, &self->gain);
  return g_string_free (s, FALSE);
}

/* ---- text ---- */

void
td_staticness_print (const TdStaticness *self, GString *out)
{
  char op[TD_FORMAT_SIZE], gap[TD_FORMAT_SIZE];

  g_string_append_printf (out, "staticness: %s\n", self->sentence);
  g_string_append_printf (
      out,
      "  %" G_GUINT64_FORMAT " %s, %u %s%s; the newest %" G_GUINT64_FORMAT
      " %s equal, since iteration %" G_GINT64_FORMAT "\n",
      self->n_ran, td_plural (self->n_ran, "iteration", "iterations"), self->n_structures,
      td_plural (self->n_structures, "graph", "graphs"),
      self->n_looked_at < self->n_structures ? " (not all were looked at)" : "", self->n_equal,
      td_plural (self->n_equal, "is", "are"), self->equal_since);
  for (guint i = 0; i < self->n_functions; i++)
    {
      const TdStaticFunction *function = &self->functions[i];
      g_autofree char *text = NULL;

      /* what is within a static function is static too */
      if (!function->maximal && td__static_can_be (function))
        continue;
      text = td_staticness_dup_function (self, function);
      g_string_append_printf (
          out, "  %s %s; %s in operations, %s between them\n", function->maximal ? "*" : "-",
          text, td_format_ns (op, function->op_ns), td_format_ns (gap, function->gap_ns));
    }
  for (guint i = 0; i < self->n_additions; i++)
    g_string_append_printf (
        out, "  added: %s %s is first used in iteration %" G_GINT64_FORMAT "%s%s\n",
        self->additions[i].is_parameter ? "parameter" : "link", self->additions[i].path,
        self->additions[i].iteration, *self->additions[i].site ? ", at " : "",
        self->additions[i].site);
  if (self->gain.n_outside > 0 && self->n_iterations > 1)
    g_string_append_printf (out, "  outside: %u forward %s in no static function, %s\n",
                            self->gain.n_outside,
                            td_plural (self->gain.n_outside, "operation is", "operations are"),
                            td_format_ns (op, self->gain.outside_ns));
}

/* ---- JSON ---- */

static void
print_function (const TdStaticness *self, const TdStaticFunction *function, TdJson *j)
{
  g_autofree char *text = td_staticness_dup_function (self, function);

  td_json_begin_object (j);
  td_json_member_string (j, "path", function->path);
  td_json_member_string (j, "kind",
                         function->is_link ? "link"
                         : *function->path ? "scope"
                                           : "forward");
  td_json_member_string (j, "verdict", td_static_verdict_name (function->verdict));
  td_json_member_bool (j, "maximal", function->maximal);
  td_json_member_string (j, "text", text);
  td_json_member_int (j, "structures", function->n_structures);
  td_json_member_int (j, "sizes", function->n_sizes);
  td_json_member_int (j, "iterations", (gint64)function->n_iterations);
  td_json_member_int (j, "calls", function->n_calls);
  td_json_member_int (j, "ops", function->n_ops);
  td_json_member_string (j, "site", function->site);
  td_json_member_int (j, "since", function->since);
  td_json_key (j, "changed");
  if (function->changed < 0)
    td_json_null (j);
  else
    {
      td_json_begin_object (j);
      td_json_member_int (j, "iteration", function->changed);
      td_json_member_int (j, "before", function->compared);
      td_json_member_string (j, "op", function->op);
      td_json_member_string (j, "site_a", function->site_a);
      td_json_member_string (j, "site_b", function->site_b);
      td_json_member_string (j, "why", function->why);
      td_json_end_object (j);
    }
  td_json_member_int (j, "reads", function->n_reads);
  td_json_member_string (j, "read_site", function->read_site);
  td_json_member_int (j, "changing_attributes", function->n_attributes);
  td_json_member_int (j, "op_ns", (gint64)function->op_ns);
  td_json_member_int (j, "gap_ns", (gint64)function->gap_ns);
  td_json_end_object (j);
}

static void
print_gain (const TdStaticGain *g, TdJson *j)
{
  const struct
  {
    const char *key;
    guint64 value;
  } members[] = { { "duration_ns", g->duration_ns },
                  { "op_ns", g->op_ns },
                  { "gap_ns", g->gap_ns },
                  { "static_gap_ns", g->static_gap_ns },
                  { "ops", g->n_ops },
                  { "fusable_ops", g->n_fusable },
                  { "fused_groups", g->n_groups },
                  { "fused_bytes", g->fused_bytes },
                  { "peak_bytes", g->peak_bytes },
                  { "planned_bytes", g->planned_bytes },
                  { "outside_ops", g->n_outside },
                  { "outside_ns", g->outside_ns } };

  td_json_key (j, "gain");
  td_json_begin_object (j);
  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    td_json_member_int (j, members[i].key, (gint64)members[i].value);
  td_json_member_bool (j, "with_recording", g->with_recording);
  td_json_member_bool (j, "worth_it", g->worth_it);
  td_json_end_object (j);
}

void
td_staticness_print_json (const TdStaticness *self, TdJson *j)
{
  td_json_begin_object (j);
  td_json_member_string (j, "sentence", self->sentence);
  td_json_member_int (j, "iterations", (gint64)self->n_ran);
  td_json_member_int (j, "graphs", self->n_structures);
  td_json_member_int (j, "looked_at", self->n_looked_at);
  td_json_member_int (j, "equal", (gint64)self->n_equal);
  td_json_member_int (j, "equal_since", self->equal_since);
  td_json_key (j, "chains");
  td_json_begin_array (j);
  for (guint i = 0; i < self->n_functions; i++)
    print_function (self, &self->functions[i], j);
  td_json_end_array (j);
  td_json_key (j, "late");
  td_json_begin_array (j);
  for (guint i = 0; i < self->n_additions; i++)
    {
      td_json_begin_object (j);
      td_json_member_string (j, "kind", self->additions[i].is_parameter ? "parameter" : "link");
      td_json_member_string (j, "path", self->additions[i].path);
      td_json_member_int (j, "iteration", self->additions[i].iteration);
      td_json_member_string (j, "site", self->additions[i].site);
      td_json_end_object (j);
    }
  td_json_end_array (j);
  print_gain (&self->gain, j);
  td_json_end_object (j);
}
