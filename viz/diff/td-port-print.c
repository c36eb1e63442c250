/*
 * A port check as text, as JSON, and as the table of names that it went by.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "scene/td-json.h"
#include "td-port-private.h"

static const char *const verdicts[] = { "unknown", "same", "differs" };
static const char *const element_words[TD_PORT_N_ELEMENTS]
    = { "none", "compared", "missing in A", "missing in B", "missing in both", "other shapes" };
static const char *const letters[2] = { "A", "B" };

/* ---- text ---- */

static void
append_backward (GString *out, const TdPortRow *row)
{
  if (!row->backward)
    {
      g_string_append_c (out, '-');
      return;
    }
  g_autofree char *numbers = td_port_dup_numbers (row->backward);
  g_string_append_printf (out, "%s: %s", row->backward_of, numbers);
}

/* What was found first, and where both sides made it. */
static void
append_first (const TdPort *self, GString *out, gboolean backward)
{
  const gint first = backward ? self->backward : self->forward;
  g_autofree char *line = td_port_dup_first (self, backward);
  TdPortRow row;

  g_string_append_printf (out, "%s\n", line);
  if (first < 0)
    return;
  td_port_get_row (self, (guint)first, &row);
  const TdPortNumbers *n = backward ? row.backward : row.out;
  for (guint s = 0; s < 2; s++)
    if (n->source[s] && *n->source[s])
      g_string_append_printf (out, "  %s  %s\n", letters[s], n->source[s]);
}

static void
append_row (const TdPort *self, GString *out, guint i, const int *width)
{
  TdPortRow found;
  const TdPortRow *row = &found;

  td_port_get_row (self, i, &found);

  g_autofree char *returned = td_port_dup_numbers (row->out);
  g_autofree char *turned = td_port_dup_turned (self, i);
  const gboolean differs = row->out->verdict == TD_PORT_DIFFERS
                           || (row->backward && row->backward->verdict == TD_PORT_DIFFERS);

  g_string_append_printf (out, "%s %-*s  %-*s  %-44s  ", differs ? "!" : " ", width[0],
                          row->path[0], width[1], row->path[1], returned);
  append_backward (out, row);
  g_string_append_printf (out, "%s%s%s\n", *turned ? "; " : "", turned,
                          *turned ? ": the other way round" : "");
}

static char *
print_text (const TdPort *self)
{
  const char *const *notes = td_port_get_notes (self);
  GString *out = g_string_new (NULL);
  int width[2] = { 1, 1 };
  TdPortRow row;

  append_first (self, out, FALSE);
  append_first (self, out, TRUE);
  for (guint i = 0; notes[i]; i++)
    g_string_append_printf (out, "%s\n", notes[i]);
  for (guint i = 0; i < td_port_get_n_rows (self); i++)
    {
      td_port_get_row (self, i, &row);
      for (guint s = 0; s < 2; s++)
        width[s] = MAX (width[s], (int)strlen (row.path[s]));
    }
  g_string_append_c (out, '\n');
  for (guint i = 0; i < self->pairs->len; i++)
    append_row (self, out, i, width);
  for (guint s = 0; s < 2; s++)
    {
      g_autofree const char **alone = td_port_dup_alone (self, s);

      for (guint i = 0; alone[i]; i++)
        g_string_append_printf (out, "! only in %s: %s\n", letters[s], alone[i]);
    }
  return g_string_free (out, FALSE);
}

/* ---- JSON ---- */

static void
print_index (TdJson *j, const char *key, const TdPortNumbers *n, guint side)
{
  td_json_key (j, key);
  td_json_begin_array (j);
  for (guint d = 0; d < n->ndim[side]; d++)
    td_json_int (j, n->index[side][d]);
  td_json_end_array (j);
}

static void
print_numbers (TdJson *j, const char *key, const TdPortNumbers *n)
{
  td_json_key (j, key);
  td_json_begin_object (j);
  td_json_member_string (j, "verdict", verdicts[n->verdict]);
  td_json_member_string (j, "elements", element_words[n->elements]);
  if (n->what)
    {
      td_json_member_string (j, "what", n->what);
      td_json_member_double (j, "a", n->value[0]);
      td_json_member_double (j, "b", n->value[1]);
      td_json_member_double (j, "apart", n->apart);
      td_json_member_string (j, "source_a", n->source[0]);
      td_json_member_string (j, "source_b", n->source[1]);
    }
  if (n->elements == TD_PORT_COMPARED)
    {
      print_index (j, "index_a", n, 0);
      print_index (j, "index_b", n, 1);
      td_json_member_int (j, "of", (gint64)n->n);
      td_json_member_int (j, "beyond", (gint64)n->n_beyond);
    }
  td_json_member_bool (j, "turned", n->turned);
  td_json_end_object (j);
}

static void
print_pair (const TdPort *self, TdJson *j, guint i)
{
  const TdPortPair *p = td__port_get_pair (self, i);
  TdPortRow row;

  td_port_get_row (self, i, &row);
  td_json_begin_object (j);
  td_json_member_string (j, "a", row.path[0]);
  td_json_member_string (j, "b", row.path[1]);
  td_json_member_string (j, "paired", row.how);
  print_numbers (j, "output", &p->out);
  print_numbers (j, "gradient", &p->gradient);
  td_json_key (j, "parameters");
  td_json_begin_array (j);
  for (guint k = 0; k < p->gradients->len; k++)
    {
      const TdPortGradient *g = &g_array_index (p->gradients, TdPortGradient, k);

      td_json_begin_object (j);
      td_json_member_string (j, "a", td__port_parameter_name (self, p, g, 0));
      td_json_member_string (j, "b", td__port_parameter_name (self, p, g, 1));
      td_json_member_bool (j, "transposed", g->numbers.turned);
      print_numbers (j, "gradient", &g->numbers);
      td_json_end_object (j);
    }
  td_json_end_array (j);
  td_json_end_object (j);
}

static void
print_list (TdJson *j, const char *key, const char *const *list)
{
  td_json_key (j, key);
  td_json_begin_array (j);
  for (guint i = 0; list[i]; i++)
    td_json_string (j, list[i]);
  td_json_end_array (j);
}

static const char *
first_path (const TdPort *self, gint first)
{
  TdPortRow row;

  if (first < 0)
    return NULL;
  td_port_get_row (self, (guint)first, &row);
  return row.path[0];
}

static char *
print_json (const TdPort *self)
{
  static const char *const only[2] = { "only_in_a", "only_in_b" };
  GString *out = g_string_new (NULL);
  guint without = 0;
  TdJson j;

  for (guint i = 0; i < self->pairs->len; i++)
    without += td__port_get_pair (self, i)->out.verdict == TD_PORT_UNKNOWN;
  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_member_bool (&j, "differs", td_port_differs (self));
  td_json_member_string (&j, "first_forward", first_path (self, self->forward));
  td_json_member_string (&j, "first_backward", first_path (self, self->backward));
  td_json_member_int (&j, "without_numbers", without);
  print_list (&j, "notes", td_port_get_notes (self));
  td_json_key (&j, "layers");
  td_json_begin_array (&j);
  for (guint i = 0; i < self->pairs->len; i++)
    print_pair (self, &j, i);
  td_json_end_array (&j);
  for (guint s = 0; s < 2; s++)
    {
      g_autofree const char **alone = td_port_dup_alone (self, s);

      print_list (&j, only[s], alone);
    }
  td_json_end_object (&j);
  g_string_append_c (out, '\n');
  return g_string_free (out, FALSE);
}

char *
td_port_print (const TdPort *self, const char *format)
{
  return strcmp (format, "json") == 0 ? print_json (self) : print_text (self);
}

/* ---- the table ---- */

char *
td_port_names (const TdPort *self)
{
  GString *out = g_string_new ("# a layer of A, and the one of B that it is; - for none\n");

  for (guint i = 0; i < self->pairs->len; i++)
    {
      TdPortRow row;

      td_port_get_row (self, i, &row);
      g_string_append_printf (out, "%s %s # %s\n", row.path[0], row.path[1], row.how);
    }
  for (guint s = 0; s < 2; s++)
    for (guint i = 0; i < self->side[s].layers->len; i++)
      {
        const TdPortLayer *layer = td__port_layer (self, s, i);

        if (self->partner[s][i] < 0 && layer->parameters->len > 0)
          g_string_append_printf (out, s == 0 ? "%s -\n" : "- %s\n", layer->path);
      }
  return g_string_free (out, FALSE);
}
