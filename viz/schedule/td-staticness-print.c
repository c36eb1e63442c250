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
name_of (const TdStaticChain *chain)
{
  return *chain->path ? chain->path : "the forward pass";
}

/* "relu → sigmoid at model.c:12: took the else branch at ...". */
static void
append_change (GString *s, const TdStaticChain *chain)
{
  if (chain->changed < 0)
    return;
  g_string_append_printf (s, ", changed in iteration %" G_GINT64_FORMAT, chain->changed);
  if (*chain->op)
    g_string_append_printf (s, ": %s", chain->op);
  if (*chain->site_a && *chain->site_b && !g_str_equal (chain->site_a, chain->site_b))
    g_string_append_printf (s, " (%s, then %s)", chain->site_a, chain->site_b);
  else if (*chain->site_a || *chain->site_b)
    g_string_append_printf (s, " at %s", *chain->site_b ? chain->site_b : chain->site_a);
  if (*chain->why)
    g_string_append_printf (s, "; it %s", chain->why);
}

char *
td_staticness_dup_chain (const TdStaticness *self, const TdStaticChain *chain)
{
  GString *s = g_string_new (name_of (chain));

  switch (chain->verdict)
    {
    case TD_STATIC_ALWAYS:
      g_string_append_printf (s, ": the same in all %" G_GUINT64_FORMAT " %s%s",
                              chain->n_iterations,
                              td_plural (chain->n_iterations, "iteration", "iterations"),
                              chain->n_iterations < self->n_iterations ? " that have it" : "");
      if (chain->n_sizes > 1)
        g_string_append_printf (s, " (%u kinds of call, a schedule for each)", chain->n_sizes);
      break;
    case TD_STATIC_SETTLED:
      g_string_append_printf (s, ": the same since iteration %" G_GINT64_FORMAT, chain->since);
      break;
    case TD_STATIC_SHAPES:
      g_string_append_printf (s,
                              ": one structure in %u sizes in %" G_GUINT64_FORMAT
                              " iterations, a schedule for each",
                              chain->n_sizes, chain->n_iterations);
      break;
    case TD_STATIC_SEVERAL:
      g_string_append_printf (
          s, ": %u structures in %" G_GUINT64_FORMAT " iterations, a schedule for each",
          chain->n_structures, chain->n_iterations);
      break;
    case TD_STATIC_ONCE:
      g_string_append (s, ": ran in one iteration only");
      break;
    case TD_STATIC_DYNAMIC:
      g_string_append_printf (s, ": dynamic, %u structures in %" G_GUINT64_FORMAT " iterations",
                              chain->n_sizes, chain->n_iterations);
      break;
    default:
      break;
    }
  append_change (s, chain);
  if (chain->n_ops > 0) /* else the newest iteration that has it ran none of it */
    g_string_append_printf (s, "; %u %s of %u %s", chain->n_calls,
                            td_plural (chain->n_calls, "call", "calls"), chain->n_ops,
                            td_plural (chain->n_ops, "operation", "operations"));
  if (chain->n_reads > 0)
    g_string_append_printf (s, "; reads %u value%s (first at %s), which a schedule must guard",
                            chain->n_reads, chain->n_reads == 1 ? "" : "s", chain->read_site);
  if (chain->n_attributes > 0)
    g_string_append_printf (s, "; attributes change (%s): each change is a new schedule",
                            chain->attribute);
  return g_string_free (s, FALSE);
}

/* ---- the sentence ---- */

static guint
count_maximal (const TdStaticness *self, const TdStaticChain **one)
{
  guint n = 0;

  for (guint i = 0; i < self->n_chains; i++)
    if (self->chains[i].maximal)
      {
        if (n++ == 0)
          *one = &self->chains[i];
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
          " No gain: %.2g %% of an iteration (%s) lies between the operations of static "
          "chains, and less than 1 %% of what is written or kept could be spared.",
          share, td_format_ns (a, g->static_gap_ns));
      return;
    }
  g_string_append_printf (
      s, " At most to gain: %s (%.2g %%) between operations of %s an iteration",
      td_format_ns (a, g->static_gap_ns), share, td_format_ns (b, g->duration_ns));
  if (g->n_groups > 0)
    g_string_append_printf (s, "; %u elementwise operations in %u fused one%s, %s not written",
                            g->n_fusable, g->n_groups, g->n_groups == 1 ? "" : "s",
                            td_format_bytes (c, g->fused_bytes));
  if (g->planned_bytes < g->peak_bytes)
    g_string_append_printf (s, "; peak %s → %s", td_format_bytes (a, g->peak_bytes),
                            td_format_bytes (b, g->planned_bytes));
  g_string_append_c (s, '.');
}

char *
td__static_sentence (const TdStaticness *self)
{
  const TdStaticChain *one = NULL;
  guint n = count_maximal (self, &one);
  GString *s;

  if (self->n_iterations == 0 || self->n_chains == 0)
    return g_strdup ("No iteration has ended yet.");
  if (self->n_iterations == 1)
    return g_strdup ("One iteration so far: another one will show whether the graph repeats.");
  s = g_string_new (NULL);
  if (n == 0)
    {
      g_string_append (s, "Nothing is static: ");
      g_autofree char *whole = td_staticness_dup_chain (self, &self->chains[0]);
      g_string_append_printf (s, "%s.", whole);
      return g_string_free (s, FALSE);
    }
  if (n == 1)
    {
      g_autofree char *chain = td_staticness_dup_chain (self, one);

      g_string_append_printf (s, "Could be static: %s.", chain);
    }
  else
    g_string_append_printf (s, "%u chains could be static.", n);
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
      "  %" G_GUINT64_FORMAT " iterations, %u graph%s%s; the newest %" G_GUINT64_FORMAT
      " are equal, since iteration %" G_GINT64_FORMAT "\n",
      self->n_iterations, self->n_structures, self->n_structures == 1 ? "" : "s",
      self->n_looked_at < self->n_structures ? " (not all were looked at)" : "", self->n_equal,
      self->equal_since);
  for (guint i = 0; i < self->n_chains; i++)
    {
      const TdStaticChain *chain = &self->chains[i];
      g_autofree char *text = NULL;

      /* what is within a static chain is static too */
      if (!chain->maximal && td__static_can_be (chain))
        continue;
      text = td_staticness_dup_chain (self, chain);
      g_string_append_printf (out, "  %s %s; %s in operations, %s between them\n",
                              chain->maximal ? "*" : "-", text, td_format_ns (op, chain->op_ns),
                              td_format_ns (gap, chain->gap_ns));
    }
  for (guint i = 0; i < self->n_late; i++)
    g_string_append_printf (
        out, "  late: %s %s is first used in iteration %" G_GINT64_FORMAT "%s%s\n",
        self->late[i].is_parameter ? "parameter" : "link", self->late[i].path,
        self->late[i].iteration, *self->late[i].site ? ", at " : "", self->late[i].site);
  if (self->gain.n_outside > 0 && self->n_iterations > 1)
    g_string_append_printf (out,
                            "  outside: %u forward operations are in no static chain, %s\n",
                            self->gain.n_outside, td_format_ns (op, self->gain.outside_ns));
}

/* ---- JSON ---- */

static void
print_chain (const TdStaticness *self, const TdStaticChain *chain, TdJson *j)
{
  g_autofree char *text = td_staticness_dup_chain (self, chain);

  td_json_begin_object (j);
  td_json_member_string (j, "path", chain->path);
  td_json_member_string (j, "kind",
                         chain->is_link ? "link"
                         : *chain->path ? "scope"
                                        : "forward");
  td_json_member_string (j, "verdict", td_static_verdict_name (chain->verdict));
  td_json_member_bool (j, "maximal", chain->maximal);
  td_json_member_string (j, "text", text);
  td_json_member_int (j, "structures", chain->n_structures);
  td_json_member_int (j, "sizes", chain->n_sizes);
  td_json_member_int (j, "iterations", (gint64)chain->n_iterations);
  td_json_member_int (j, "calls", chain->n_calls);
  td_json_member_int (j, "ops", chain->n_ops);
  td_json_member_string (j, "site", chain->site);
  td_json_member_int (j, "since", chain->since);
  td_json_key (j, "changed");
  if (chain->changed < 0)
    td_json_null (j);
  else
    {
      td_json_begin_object (j);
      td_json_member_int (j, "iteration", chain->changed);
      td_json_member_int (j, "before", chain->compared);
      td_json_member_string (j, "op", chain->op);
      td_json_member_string (j, "site_a", chain->site_a);
      td_json_member_string (j, "site_b", chain->site_b);
      td_json_member_string (j, "why", chain->why);
      td_json_end_object (j);
    }
  td_json_member_int (j, "reads", chain->n_reads);
  td_json_member_string (j, "read_site", chain->read_site);
  td_json_member_int (j, "changing_attributes", chain->n_attributes);
  td_json_member_int (j, "op_ns", (gint64)chain->op_ns);
  td_json_member_int (j, "gap_ns", (gint64)chain->gap_ns);
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
  td_json_member_int (j, "iterations", (gint64)self->n_iterations);
  td_json_member_int (j, "graphs", self->n_structures);
  td_json_member_int (j, "looked_at", self->n_looked_at);
  td_json_member_int (j, "equal", (gint64)self->n_equal);
  td_json_member_int (j, "equal_since", self->equal_since);
  td_json_key (j, "chains");
  td_json_begin_array (j);
  for (guint i = 0; i < self->n_chains; i++)
    print_chain (self, &self->chains[i], j);
  td_json_end_array (j);
  td_json_key (j, "late");
  td_json_begin_array (j);
  for (guint i = 0; i < self->n_late; i++)
    {
      td_json_begin_object (j);
      td_json_member_string (j, "kind", self->late[i].is_parameter ? "parameter" : "link");
      td_json_member_string (j, "path", self->late[i].path);
      td_json_member_int (j, "iteration", self->late[i].iteration);
      td_json_member_string (j, "site", self->late[i].site);
      td_json_end_object (j);
    }
  td_json_end_array (j);
  print_gain (&self->gain, j);
  td_json_end_object (j);
}
