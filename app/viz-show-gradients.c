/*
 * tapedeck show: the views of gradients by iteration, and what rules find in them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gradient/td-gradient-ridge.h"
#include "gradient/td-gradient-rules.h"
#include "viz-show.h"

static TdGradientTable *
gradients (Show *s, TdGradientRange *range)
{
  TdGradientTable *table = td_gradient_table_new (s->reader);

  *range = s->newest > 0 ? td_gradient_range_newest (s->reader, s->iteration, (guint)s->newest)
                         : td_gradient_range_run (s->reader, s->iteration);
  *range = td_gradient_range_narrow (*range, s->range);
  td_gradient_table_load (table, s->reader, range, s->iteration);
  return table;
}

char *
td__show_gradients_print (Show *s, GError **error)
{
  TdGradientRange range;
  TdGradientTable *table = gradients (s, &range);
  char *text = td_gradient_print (table, &range, s->iteration, s->format);

  td_gradient_table_free (table);
  return text;
}

TdScene *
td__show_gradients_draw (Show *s, GError **error)
{
  TdGradientRange range;
  TdGradientTable *table = gradients (s, &range);
  TdScene *scene = td_gradient_scene (table, s->it, &range, &s->panel);

  td_gradient_table_free (table);
  return scene;
}

static gboolean
read_rules (Show *s, TdGradientRules *rules, GError **error)
{
  gboolean ok = td_gradient_rules_parse (s->rules ? s->rules : "", rules, error);

  if (!ok)
    g_prefix_error (error, "--rules: ");
  return ok;
}

char *
td__show_findings_print (Show *s, GError **error)
{
  TdGradientRules rules;
  TdGradientRange range;

  if (!read_rules (s, &rules, error))
    return NULL;
  TdGradientTable *table = gradients (s, &range);
  char *text = td_gradient_print_findings (table, &range, &rules, s->format);
  td_gradient_table_free (table);
  return text;
}

TdScene *
td__show_findings_draw (Show *s, GError **error)
{
  TdGradientRules rules;
  TdGradientRange range;

  if (!read_rules (s, &rules, error))
    return NULL;
  TdGradientTable *table = gradients (s, &range);
  TdScene *scene = td_gradient_scene_findings (table, &range, &rules, &s->panel);
  td_gradient_table_free (table);
  return scene;
}

/* ---- ridge ---- */

/* The parameter whose gradient this is, or itself. */
static guint64
key_of_parameter (const Show *s)
{
  const TdTapeIteration *t = td_iteration_get_tape (s->it);

  for (guint i = 0; i < t->n_grads; i++)
    if (t->grads[i].gradient < t->n_vars && t->vars[t->grads[i].gradient].key == s->key)
      return t->vars[t->grads[i].parameter].key;
  return s->key;
}

/* The parameter that --node names, or its gradient, else the first; -1: it is none. */
static gint
ridge_row (Show *s, const TdGradientTable *table, GError **error)
{
  guint64 key = key_of_parameter (s);

  if (!s->node && td_gradient_table_n_rows (table) > 0)
    return 0;
  for (guint row = 0; s->node && row < td_gradient_table_n_rows (table); row++)
    if (td_gradient_table_key (table, row) == key)
      return (gint)row;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
               s->node ? "%s is no parameter" : "%sno parameter is on the tape",
               s->node ? s->node : "");
  return -1;
}

char *
td__show_ridge_print (Show *s, GError **error)
{
  TdGradientRange range;
  TdGradientTable *table = gradients (s, &range);
  gint row = ridge_row (s, table, error);
  char *text = row >= 0 ? td_gradient_print_ridge (table, &range, (guint)row, s->format) : NULL;

  td_gradient_table_free (table);
  return text;
}

TdScene *
td__show_ridge_draw (Show *s, GError **error)
{
  TdGradientRange range;
  TdGradientTable *table = gradients (s, &range);
  gint row = ridge_row (s, table, error);
  guint64 key = row >= 0 ? td_gradient_table_key (table, (guint)row) : 0;
  TdPanelView panel = s->panel;

  panel.selected = &key;
  panel.n_selected = 1;
  TdScene *scene = row >= 0 ? td_gradient_scene_ridge (table, &range, &panel) : NULL;

  td_gradient_table_free (table);
  return scene;
}
