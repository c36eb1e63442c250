/*
 * Static functions as text, as a table and as JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "scene/td-json.h"
#include "td-inside.h"
#include "td-statics-times.h"

#define U64 G_GUINT64_FORMAT

static const char *
lane_name (const TdTapeStep *t, char text[32])
{
  if (t->list == 0)
    return "forward";
  if (t->list == 1)
    return "backward";
  g_snprintf (text, 32, "backward %u", t->list);
  return text;
}

/* ---- text ---- */

/* "tanh (#1)": members of a group are numbered. */
static char *
dup_call (const TdStatics *all, const TdStaticsFunction *c, guint step)
{
  TdInsideMember m;
  char *call;

  td_inside_member_fill (&m, all->reader, c->tape, step);
  call = g_steal_pointer (&m.call);
  td_inside_member_clear (&m);
  return call;
}

static void
print_row (GString *out, const TdStatics *all, const TdStaticsFunction *c,
           const TdStaticsRow *r)
{
  const TdTapeStep *t = r->tape;
  gboolean member = t->kind != TD_TAPE_STEP_GROUP && t->group != TD_TAPE_NO_GROUP;
  char lane[32], bytes[TD_FORMAT_SIZE], ns[TD_FORMAT_SIZE] = "";
  g_autofree char *place = g_path_get_basename (r->site);
  g_autofree char *call = member ? dup_call (all, c, r->step) : NULL;
  g_autofree char *name
      = t->kind == TD_TAPE_STEP_GROUP
            ? g_strdup_printf ("%u steps fused", t->group)
            : g_strdup_printf ("%s%s", member ? "  " : "", member ? call : r->op);

  if (r->ns > 0)
    td_format_ns (ns, r->ns);
  g_string_append_printf (out, "%5u  %-10s %-28s %-20s %-18s %*s%s %9s%s%s%s%s\n", r->step,
                          lane_name (t, lane), name, r->layer, *r->site ? place : "",
                          (int)MAX (0, 9 - g_utf8_strlen (ns, -1)), "", ns,
                          t->n_out > 0 ? td_format_bytes (bytes, r->bytes) : "",
                          t->fate != TD_TAPE_FATE_RUNS ? "  " : "",
                          t->fate != TD_TAPE_FATE_RUNS ? td_tape_fate_name (t->fate) : "",
                          !*r->why                       ? ""
                          : t->fate != TD_TAPE_FATE_RUNS ? ": "
                                                         : "  ",
                          r->why);
}

static void
print_counts (GString *out, const TdStatics *all, const TdStaticsFunction *c)
{
  const TdTapeScheduleHead *h = &c->tape->head;
  char a[TD_FORMAT_SIZE], b[TD_FORMAT_SIZE], m[TD_FORMAT_SIZE], p[TD_FORMAT_SIZE];

  g_string_append_printf (
      out, "calls %u; pruned %u, folded %u, merged %u, fused %u, in place %u\n", c->n_calls,
      h->n_pruned, h->n_folded, h->n_merged, h->n_fused, h->n_in_place);
  g_string_append_printf (
      out,
      "arena planned %s, at least %s needed; measured %s of static arenas, %s of all memory in "
      "iteration %" G_GINT64_FORMAT "\n",
      td_format_bytes (a, h->arena_bytes), td_format_bytes (b, h->lower_bound),
      td_format_bytes (m, all->measured_bytes), td_format_bytes (p, all->peak_bytes),
      all->iteration);
}

static void
print_overhead (GString *out, const TdStatics *all, const TdStaticsFunction *c)
{
  const TdStaticsOverhead overhead = td_statics_overhead (all, c, TD_STATICS_ITERATIONS_MOST);
  g_autofree char *text = td_statics_overhead_text (&overhead);

  if (text)
    g_string_append_printf (out, "%s\n", text);
}

/* Steps that ran more than once, and how evenly. */
static void
print_times (GString *out, const TdStatics *all, const TdStaticsFunction *c)
{
  char mean[TD_FORMAT_SIZE], sd[TD_FORMAT_SIZE], p99[TD_FORMAT_SIZE];
  guint n;
  g_autofree TdStepTimes *times = td_statics_times (all, c, &n);

  if (n < 2)
    return;
  g_string_append_printf (out, "\ntimes over %u iterations\n%5s  %-28s %6s %9s %9s %9s\n", n,
                          "step", "operation", "runs", "mean", "sd", "p99");
  for (guint i = 0; i < c->n_rows; i++)
    if (times[i].n > 0)
      g_string_append_printf (out, "%5u  %-28s %6u %9s %9s %9s\n", i, c->rows[i].op, times[i].n,
                              td_format_ns (mean, (guint64)times[i].mean),
                              td_format_ns (sd, (guint64)times[i].sd),
                              td_format_ns (p99, (guint64)times[i].p99));
}

static void
print_gantt (GString *out, const TdStaticsFunction *c)
{
  char offset[TD_FORMAT_SIZE], bytes[TD_FORMAT_SIZE];

  g_string_append_printf (out, "\n%-28s %10s %10s %6s %6s\n", "buffer", "offset", "bytes",
                          "first", "last");
  for (guint i = 0; i < c->gantt->n_bars; i++)
    {
      const TdGanttBar *bar = &c->gantt->bars[i];

      g_string_append_printf (out, "%-28s %10s %10s %6u %6u\n", bar->name,
                              td_format_bytes (offset, bar->offset),
                              td_format_bytes (bytes, bar->bytes), bar->from, bar->to - 1);
    }
}

static void
print_guards (GString *out, const TdStatics *all, const TdStaticsFunction *c)
{
  char site[512];

  g_string_append (out, "\nguards\n");
  for (guint i = 0; i < c->tape->n_guards; i++)
    {
      const TdTapeGuard *g = &c->tape->guards[i];

      td_tape_reader_site_text (all->reader, g->site, site, sizeof site);
      g_string_append_printf (
          out, "  %-18s %s%s%s\n", td_tape_reader_string (all->reader, g->guard),
          td_tape_reader_string (all->reader, g->text), *site ? "  " : "", site);
    }
}

static void
print_ran_once (GString *out, const TdStaticsFunction *c)
{
  if (c->ran_once->n > 0)
    g_string_append (out, "\nnot part of the schedule\n");
  for (guint i = 0; i < c->ran_once->n; i++)
    {
      g_autofree char *text = td_ran_once_text (&c->ran_once->rows[i]);

      g_string_append_printf (out, "  %s:%u  %s\n", c->ran_once->rows[i].file,
                              c->ran_once->rows[i].line, text);
    }
}

static void
print_traced (GString *out, const TdStaticsFunction *c)
{
  g_autofree char *headline = td_traced_headline (c->traced);

  if (c->traced->n == 0)
    return;
  g_string_append_printf (out, "\n%s\n%5s  %-10s %-28s %-20s %s\n", headline, "entry", "",
                          "operation", "layer", "site");
  for (guint i = 0; i < c->traced->n; i++)
    td_traced_print_row (c->traced, i, out);
}

static void
print_events (GString *out, const TdStatics *all, const TdStaticsFunction *c)
{
  if (c->n_events > 0)
    g_string_append (out, "\nevents\n");
  for (guint i = 0; i < c->n_events; i++)
    {
      g_autofree char *text = td_statics_event_text (all->reader, c->events[i]);

      g_string_append_printf (out, "  iteration %-6" U64 " %s\n", c->events[i]->iteration,
                              text);
    }
}

static void
print_function (GString *out, const TdStatics *all, const TdStaticsFunction *c)
{
  g_autofree char *headline = td_statics_headline (c);

  g_string_append_printf (out, "%s  (%s)  %s\n", c->name, c->site, headline);
  if (c->error)
    g_string_append_printf (out, "%s\n", c->error);
  if (c->tape)
    {
      g_string_append_printf (out, "for %s\n\n%5s  %-10s %-28s %-20s %-18s %9s %9s\n",
                              td_tape_reader_string (all->reader, c->tape->head.key), "step",
                              "", "operation", "layer", "site", "time", "output");
      for (guint i = 0; i < c->n_rows; i++)
        print_row (out, all, c, &c->rows[i]);
      print_counts (out, all, c);
      print_overhead (out, all, c);
      print_times (out, all, c);
      print_gantt (out, c);
      print_guards (out, all, c);
      print_ran_once (out, c);
    }
  print_traced (out, c);
  print_events (out, all, c);
}

/* ---- csv ---- */

static void
print_csv (const TdStatics *all, gint function, GString *out)
{
  g_string_append (out, "chain,step,list,kind,op,link,site,fate,group,ns,bytes\n");
  for (guint k = 0; k < all->n_functions; k++)
    for (guint i = 0; (function < 0 || (guint)function == k) && i < all->functions[k].n_rows;
         i++)
      {
        const TdStaticsRow *r = &all->functions[k].rows[i];
        const TdTapeStep *t = r->tape;

        td_csv_append (out, all->functions[k].name);
        g_string_append_printf (out, ",%u,%u,%s,", r->step, t->list,
                                td_tape_step_kind_name (t->kind));
        td_csv_append (out, r->op);
        g_string_append_c (out, ',');
        td_csv_append (out, r->layer);
        g_string_append_c (out, ',');
        td_csv_append (out, r->site);
        g_string_append_printf (out, ",%s,%d,%" U64 ",%" U64 "\n", td_tape_fate_name (t->fate),
                                (int)t->group, r->ns, r->bytes);
      }
}

/* ---- json ---- */

/* What is inside a fused group is named by its schedule alone. */
static void
json_member (TdJson *j, const TdStatics *all, const TdStaticsFunction *c, guint step)
{
  TdInsideMember m;

  td_inside_member_fill (&m, all->reader, c->tape, step);
  td_json_member_string (j, "call", m.call);
  td_json_member_string (j, "formula", m.formula);
  td_json_key (j, "shape");
  td_json_begin_array (j);
  for (guint d = 0; d < m.ndim; d++)
    td_json_int (j, m.dims[d]);
  td_json_end_array (j);
  td_json_member_string (j, "dtype", td_tape_dtype_name (m.dtype));
  td_inside_member_clear (&m);
}

static void
json_steps (TdJson *j, const TdStatics *all, const TdStaticsFunction *c)
{
  td_json_key (j, "steps");
  td_json_begin_array (j);
  for (guint i = 0; i < c->n_rows; i++)
    {
      const TdStaticsRow *r = &c->rows[i];

      td_json_begin_object (j);
      td_json_member_int (j, "step", r->step);
      td_json_member_int (j, "list", r->tape->list);
      td_json_member_string (j, "kind", td_tape_step_kind_name (r->tape->kind));
      td_json_member_string (j, "op", r->op);
      td_json_member_string (j, "link", r->layer);
      td_json_member_string (j, "site", r->site);
      td_json_member_string (j, "fate", td_tape_fate_name (r->tape->fate));
      if (*r->why)
        td_json_member_string (j, "why", r->why);
      td_json_key (j, "group");
      if (r->tape->group == TD_TAPE_NO_GROUP)
        td_json_null (j);
      else
        td_json_int (j, r->tape->group);
      if (r->tape->kind != TD_TAPE_STEP_GROUP && r->tape->group != TD_TAPE_NO_GROUP)
        json_member (j, all, c, i);
      td_json_member_int (j, "ns", (gint64)r->ns);
      td_json_member_int (j, "bytes", (gint64)r->bytes);
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

static void
json_times (TdJson *j, const TdStatics *all, const TdStaticsFunction *c)
{
  guint n;
  g_autofree TdStepTimes *times = td_statics_times (all, c, &n);

  td_json_member_int (j, "timed_iterations", n);
  td_json_key (j, "times");
  td_json_begin_array (j);
  for (guint i = 0; i < c->n_rows; i++)
    {
      if (times[i].n == 0)
        continue;
      td_json_begin_object (j);
      td_json_member_int (j, "step", i);
      td_json_member_int (j, "runs", times[i].n);
      td_json_member_double (j, "mean_ns", times[i].mean);
      td_json_member_double (j, "sd_ns", times[i].sd);
      td_json_member_double (j, "p99_ns", times[i].p99);
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

static void
json_overhead (TdJson *j, const TdStatics *all, const TdStaticsFunction *c)
{
  const TdStaticsOverhead o = td_statics_overhead (all, c, TD_STATICS_ITERATIONS_MOST);

  td_json_key (j, "overhead");
  td_json_begin_object (j);
  td_json_member_int (j, "static_calls", o.n_static);
  td_json_member_double (j, "static_ns", o.static_ns);
  td_json_member_int (j, "dynamic_calls", o.n_dynamic);
  td_json_member_double (j, "dynamic_ns", o.dynamic_ns);
  td_json_member_bool (j, "dynamic_traced", o.traced);
  td_json_end_object (j);
}

static void
json_buffers (TdJson *j, const TdStaticsFunction *c)
{
  td_json_key (j, "buffers");
  td_json_begin_array (j);
  for (guint i = 0; i < c->gantt->n_bars; i++)
    {
      const TdGanttBar *bar = &c->gantt->bars[i];

      td_json_begin_object (j);
      td_json_member_string (j, "name", bar->name);
      td_json_member_int (j, "offset", (gint64)bar->offset);
      td_json_member_int (j, "bytes", (gint64)bar->bytes);
      td_json_member_int (j, "first", bar->from);
      td_json_member_int (j, "last", bar->to - 1);
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

static void
json_schedule (TdJson *j, const TdStatics *all, const TdStaticsFunction *c)
{
  const TdTapeScheduleHead *h = &c->tape->head;
  char site[512];

  td_json_member_string (j, "key", td_tape_reader_string (all->reader, h->key));
  td_json_member_int (j, "calls", c->n_calls);
  td_json_member_int (j, "arena_bytes", (gint64)h->arena_bytes);
  td_json_member_int (j, "lower_bound", (gint64)h->lower_bound);
  td_json_member_int (j, "pruned", h->n_pruned);
  td_json_member_int (j, "folded", h->n_folded);
  td_json_member_int (j, "merged", h->n_merged);
  td_json_member_int (j, "fused", h->n_fused);
  td_json_member_int (j, "in_place", h->n_in_place);
  json_steps (j, all, c);
  json_overhead (j, all, c);
  json_times (j, all, c);
  json_buffers (j, c);
  td_json_key (j, "guards");
  td_json_begin_array (j);
  for (guint i = 0; i < c->tape->n_guards; i++)
    {
      const TdTapeGuard *g = &c->tape->guards[i];

      td_json_begin_object (j);
      td_json_member_string (j, "guard", td_tape_reader_string (all->reader, g->guard));
      td_json_member_string (j, "text", td_tape_reader_string (all->reader, g->text));
      td_json_member_string (
          j, "site", td_tape_reader_site_text (all->reader, g->site, site, sizeof site));
      td_json_end_object (j);
    }
  td_json_end_array (j);
  td_json_key (j, "ran_once");
  td_json_begin_array (j);
  for (guint i = 0; i < c->ran_once->n; i++)
    {
      td_json_begin_object (j);
      td_json_member_string (j, "file", c->ran_once->rows[i].file);
      td_json_member_int (j, "line", c->ran_once->rows[i].line);
      td_json_member_string (j, "what", c->ran_once->rows[i].text);
      td_json_member_bool (j, "possibly", c->ran_once->rows[i].is_write);
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

static void
json_traced (TdJson *j, const TdStaticsFunction *c)
{
  td_json_member_bool (j, "tracing", c->traced->running && c->traced->n > 0);
  td_json_key (j, "traced");
  td_json_begin_array (j);
  for (guint i = 0; i < c->traced->n; i++)
    {
      const TdTracedRow *r = &c->traced->rows[i];

      td_json_begin_object (j);
      td_json_member_int (j, "entry", r->tape.number);
      td_json_member_int (j, "list", r->tape.list);
      td_json_member_string (j, "kind", td_tape_step_kind_name (r->tape.kind));
      td_json_member_string (j, "op", r->op);
      td_json_member_string (j, "link", r->layer);
      td_json_member_string (j, "site", r->site);
      td_json_member_int (j, "event", r->tape.event);
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

static void
json_function (TdJson *j, const TdStatics *all, const TdStaticsFunction *c)
{
  td_json_begin_object (j);
  td_json_member_string (j, "name", c->name);
  td_json_member_string (j, "site", c->site);
  td_json_member_string (j, "state",
                         c->known ? td_tape_chain_state_name (c->state.state) : NULL);
  td_json_member_int (j, "replays", (gint64)c->state.all_replays);
  td_json_member_int (j, "dynamic", (gint64)c->state.all_dynamic);
  td_json_member_int (j, "verified_in", (gint64)c->state.verified_at - 1);
  td_json_member_int (j, "unverified_since", (gint64)c->state.unverified_since - 1);
  td_json_member_int (j, "schedule", c->schedule);
  td_json_member_string (j, "error", c->error);
  if (c->tape)
    json_schedule (j, all, c);
  json_traced (j, c);
  td_json_key (j, "events");
  td_json_begin_array (j);
  for (guint i = 0; i < c->n_events; i++)
    {
      g_autofree char *text = td_statics_event_text (all->reader, c->events[i]);

      td_json_begin_object (j);
      td_json_member_int (j, "iteration", (gint64)c->events[i]->iteration);
      td_json_member_string (j, "what", td_tape_static_event_name (c->events[i]->what));
      td_json_member_string (j, "text", text);
      td_json_end_object (j);
    }
  td_json_end_array (j);
  td_json_end_object (j);
}

char *
td_statics_print (const TdStatics *all, gint function, const char *format)
{
  GString *out = g_string_new (NULL);
  TdJson j;

  if (g_str_equal (format, "csv"))
    print_csv (all, function, out);
  else if (g_str_equal (format, "json"))
    {
      td_json_init (&j, out);
      td_json_begin_object (&j);
      td_json_member_int (&j, "iteration", all->iteration);
      td_json_member_int (&j, "measured_bytes", (gint64)all->measured_bytes);
      td_json_member_int (&j, "peak_bytes", (gint64)all->peak_bytes);
      td_json_key (&j, "chains");
      td_json_begin_array (&j);
      for (guint i = 0; i < all->n_functions; i++)
        if (function < 0 || (guint)function == i)
          json_function (&j, all, &all->functions[i]);
      td_json_end_array (&j);
      td_json_end_object (&j);
    }
  else
    for (guint i = 0; i < all->n_functions; i++)
      {
        if (function >= 0 && (guint)function != i)
          continue;
        g_string_append (out, i > 0 && function < 0 ? "\n" : "");
        print_function (out, all, &all->functions[i]);
      }
  return g_string_free (out, FALSE);
}
