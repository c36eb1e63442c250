/*
 * The findings of the rules for gradients: as a list to look at, as text, CSV and JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "scene/td-json.h"
#include "td-gradient-private.h"
#include "td-gradient-rules.h"

#define ROW 22.0
#define MARGIN 12.0
#define NAME_WIDTH 130.0

static const char *const headings[TD_N_RULES] = {
  [TD_RULE_VANISHING] = "Vanishing",
  [TD_RULE_EXPLODING] = "Exploding",
  [TD_RULE_DEAD] = "Dead",
  [TD_RULE_MISSING] = "Missing",
  [TD_RULE_NOT_UPDATED] = "Not updated",
};

static guint
count_rule (const GArray *found, TdGradientRule rule)
{
  guint n = 0;

  for (guint i = 0; i < found->len; i++)
    n += g_array_index (found, TdGradientFinding, i).rule == rule;
  return n;
}

/* "Vanishing: 18 of 40 parameters". Owner: the caller. */
static char *
heading_of (const TdGradientTable *table, const GArray *found, TdGradientRule rule)
{
  guint n_rows = td_gradient_table_n_rows (table);

  return g_strdup_printf ("%s: %u of %u %s", headings[rule], count_rule (found, rule), n_rows,
                          td_plural (n_rows, "parameter", "parameters"));
}

/* Rules judge what an optimizer takes; without one only what is no number is found. */
static gboolean
is_judged (const TdGradientTable *table, const GArray *found, const GArray *columns)
{
  gboolean judged = found->len > 0;

  for (guint c = 0; c < columns->len && !judged; c++)
    judged = td__gradient_updated (table, g_array_index (columns, gint64, c));
  return judged;
}

#define NOT_JUDGED "No optimizer update in these iterations"

/* ---- to look at ---- */

typedef struct
{
  const TdGradientTable *table;
  const GArray *found;
  const GPtrArray *names;
  const TdPanelView *view;
  TdSceneBuilder *b;
  double width, y;
} List;

static void
add_heading (List *l, TdGradientRule rule)
{
  g_autofree char *text = heading_of (l->table, l->found, rule);
  TdTextStyle style = { .role = rule == TD_RULE_EXPLODING ? TD_ROLE_ERROR : TD_ROLE_WARNING,
                        .size = TD_TEXT_CAPTION,
                        .bold = TRUE,
                        .max_width = l->width - 2 * MARGIN };

  td_scene_add_text (l->b, MARGIN, l->y, text, &style);
  l->y += ROW;
}

static void
add_error (List *l, const char *text)
{
  TdTextStyle style = { .role = TD_ROLE_ERROR,
                        .size = TD_TEXT_CAPTION,
                        .bold = TRUE,
                        .max_width = l->width - 2 * MARGIN };

  td_scene_add_text (l->b, MARGIN, l->y, text, &style);
  l->y += ROW;
}

static void
add_finding (List *l, const TdGradientFinding *f)
{
  g_autofree char *text = td_gradient_finding_text (l->table, f);
  guint64 key = td_gradient_table_key (l->table, f->row);
  gboolean selected = td_panel_is_selected (l->view, key);
  double left = MARGIN + NAME_WIDTH + 8;
  TdTextStyle name = { .role = TD_ROLE_TEXT,
                       .size = TD_TEXT_CAPTION,
                       .bold = selected,
                       .middle = TRUE,
                       .max_width = NAME_WIDTH };
  TdTextStyle words = { .role = TD_ROLE_DIM,
                        .size = TD_TEXT_CAPTION,
                        .max_width = MAX (20, l->width - left - MARGIN) };
  g_autofree char *tip
      = g_strconcat (td_gradient_table_path (l->table, f->row), ": ", text, NULL);

  td_scene_mark (l->b, TD_TAG_PARAMETER, key, f->row, tip);
  if (selected)
    {
      TdStyle back = { .fill = TD_ROLE_SELECTED_ROW };

      td_scene_add_shape (l->b, TD_PRIM_ROUND,
                          (TdSceneRect){ 4, l->y - ROW / 2, l->width - 8, ROW }, 4, &back);
    }
  td_scene_add_text (l->b, MARGIN, l->y, g_ptr_array_index (l->names, f->row), &name);
  td_scene_add_text (l->b, left, l->y, text, &words);
  td_scene_unmark (l->b);
  l->y += ROW;
}

static const TdGradientFinding *
finding_at (const GArray *found, guint i)
{
  return &g_array_index (found, TdGradientFinding, i);
}

/* Every rule has its heading and its share of the height: of 100 layers that vanish the worst
 * are enough to see, and they must not hide one that explodes. */
static void
add_all (List *l, double height)
{
  guint n_rules = 0, n_lines = (guint)MAX (4, (height - l->y) / ROW + 0.5), share;

  for (guint rule = 0; rule < TD_N_RULES; rule++)
    n_rules += count_rule (l->found, (TdGradientRule)rule) > 0;
  share = MAX (1, n_lines / MAX (n_rules, 1) - 1);
  for (guint i = 0, in_rule = 0; i < l->found->len; i++)
    {
      TdGradientRule rule = finding_at (l->found, i)->rule;

      if (i == 0 || rule != finding_at (l->found, i - 1)->rule)
        {
          add_heading (l, rule);
          in_rule = 0;
        }
      if (in_rule++ < share)
        add_finding (l, finding_at (l->found, i));
    }
}

TdScene *
td_gradient_scene_findings (const TdGradientTable *table, const TdGradientRange *range,
                            const TdGradientRules *rules, const TdPanelView *view)
{
  double w = view->width > 0 ? view->width : 480, h = view->height > 0 ? view->height : 190;
  g_autoptr (GArray) found = td_gradient_find (table, range, rules);
  g_autoptr (GPtrArray) names = td__gradient_name_rows (table);
  g_autoptr (TdGradientAxis) axis = td__gradient_axis_of (table, range, range->n);
  g_autoptr (GArray) columns = td__gradient_axis_list (axis);
  List l = { table, found, names, view, NULL, w, 18 };
  const char *title, *text;

  g_autofree char *skipped = td__gradient_dup_skipped (table, columns);
  if (skipped && found->len == 0)
    return td_panel_message (view, "Updates are skipped", skipped);
  if (td__gradient_why_nothing (table, columns, &title, &text))
    return td_panel_message (view, title, text);
  if (!td__gradient_knows_norms (table, columns) && found->len == 0)
    return td_panel_message (view, "No gradient norms are recorded",
                             "Record with --level stats to know what vanishes or explodes.");
  if (!is_judged (table, found, columns))
    return td_panel_message (view, NOT_JUDGED,
                             "Rules judge gradients that an optimizer takes. Their norms are "
                             "there.");
  if (found->len == 0)
    return td_panel_message (view, "Nothing found",
                             "No rule speaks against a parameter. Rules are in the "
                             "preferences.");
  l.b = td_scene_builder_new (w, h);
  td_scene_set_background (l.b, TD_ROLE_VIEW);
  if (skipped)
    add_error (&l, skipped);
  add_all (&l, h);
  return td_scene_builder_end (l.b);
}

/* ---- in text ---- */

static void
print_text (const TdGradientTable *table, const GArray *found, GString *out)
{
  for (guint i = 0; i < found->len; i++)
    {
      const TdGradientFinding *f = &g_array_index (found, TdGradientFinding, i);
      g_autofree char *text = td_gradient_finding_text (table, f);

      if (i == 0 || f->rule != g_array_index (found, TdGradientFinding, i - 1).rule)
        {
          g_autofree char *heading = heading_of (table, found, f->rule);

          g_string_append_printf (out, "%s\n", heading);
        }
      g_string_append_printf (out, "  %-24s  %s\n", td_gradient_table_path (table, f->row),
                              text);
    }
}

static void
print_csv (const TdGradientTable *table, const GArray *found, GString *out)
{
  g_string_append (out, "rule,parameter,iterations,known,iteration,value,measure\n");
  for (guint i = 0; i < found->len; i++)
    {
      const TdGradientFinding *f = &g_array_index (found, TdGradientFinding, i);

      g_string_append_printf (out, "%s,", td_gradient_rule_name (f->rule));
      td_csv_append (out, td_gradient_table_path (table, f->row));
      g_string_append_printf (out, ",%u,%u,%" G_GINT64_FORMAT ",%.9g,%.9g\n", f->n, f->n_known,
                              f->iteration, f->value, f->measure);
    }
}

static void
print_json (const TdGradientTable *table, const GArray *found, const char *why,
            const char *skipped, GString *out)
{
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_member_int (&j, "n_parameters", td_gradient_table_n_rows (table));
  td_json_member_string (&j, "reason", why);
  td_json_member_string (&j, "skipped", skipped);
  td_json_key (&j, "findings");
  td_json_begin_array (&j);
  for (guint i = 0; i < found->len; i++)
    {
      const TdGradientFinding *f = &g_array_index (found, TdGradientFinding, i);
      g_autofree char *text = td_gradient_finding_text (table, f);

      td_json_begin_object (&j);
      td_json_member_string (&j, "rule", td_gradient_rule_name (f->rule));
      td_json_key (&j, "id");
      td_json_id (&j, td_gradient_table_key (table, f->row));
      td_json_member_string (&j, "path", td_gradient_table_path (table, f->row));
      td_json_member_string (&j, "text", text);
      td_json_member_int (&j, "n", f->n);
      td_json_member_int (&j, "n_known", f->n_known);
      td_json_member_int (&j, "iteration", f->iteration);
      td_json_member_double (&j, "value", f->value);
      td_json_member_double (&j, "measure", f->measure);
      td_json_end_object (&j);
    }
  td_json_end_array (&j);
  td_json_end_object (&j);
}

char *
td_gradient_print_findings (const TdGradientTable *table, const TdGradientRange *range,
                            const TdGradientRules *rules, const char *format)
{
  g_autoptr (GArray) found = td_gradient_find (table, range, rules);
  g_autoptr (TdGradientAxis) axis = td__gradient_axis_of (table, range, range->n);
  g_autoptr (GArray) columns = td__gradient_axis_list (axis);
  GString *out = g_string_new (NULL);
  const char *title, *text, *why = NULL;
  g_autofree char *skipped = td__gradient_dup_skipped (table, columns);

  if (td__gradient_why_nothing (table, columns, &title, &text))
    why = title;
  else if (!td__gradient_knows_norms (table, columns))
    why = "No gradient norms are recorded: record with --level stats";
  else if (!is_judged (table, found, columns))
    why = NOT_JUDGED;
  if (g_str_equal (format, "json"))
    print_json (table, found, why, skipped, out);
  else if (g_str_equal (format, "csv"))
    print_csv (table, found, out);
  else
    {
      if (skipped)
        g_string_append_printf (out, "%s\n", skipped);
      print_text (table, found, out);
      if (why || (found->len == 0 && !skipped))
        g_string_append_printf (
            out, "%s\n", why ? why : "Nothing found: no rule speaks against a parameter");
    }
  return g_string_free (out, FALSE);
}
