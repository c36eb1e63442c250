/*
 * A port check as text, as JSON, and as the table of names that it went by.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "scene/td-json.h"
#include "td-port-private.h"

static const char *const verdicts[] = { "unknown", "same", "differs" };

static const TdPortPair *
get_pair (const TdPort *self, guint i)
{
  return &g_array_index (self->pairs, TdPortPair, i);
}

static const char *
path_of (const TdPort *self, const TdPortPair *p, guint side)
{
  return td__port_layer (self, side, p->layer[side])->path;
}

static const char *
parameter_name (const TdPort *self, const TdPortPair *p, const TdPortGradient *g, guint side)
{
  const GArray *own = td__port_layer (self, side, p->layer[side])->parameters;

  return g->parameter[side] >= 0
             ? g_array_index (own, TdPortParameter, (guint)g->parameter[side]).name
             : NULL;
}

/* The gradient that says most: one that differs, else one that is known. */
static const TdPortGradient *
worst_gradient (const TdPortPair *p)
{
  const TdPortGradient *worst = NULL;

  for (guint i = 0; i < p->gradients->len; i++)
    {
      const TdPortGradient *g = &g_array_index (p->gradients, TdPortGradient, i);

      if (!worst || g->numbers.verdict > worst->numbers.verdict
          || (g->numbers.verdict == worst->numbers.verdict
              && g->numbers.apart > worst->numbers.apart))
        worst = g;
    }
  return worst;
}

static gboolean
is_alone (const TdPort *self, guint side, guint layer)
{
  return self->partner[side][layer] < 0
         && td__port_layer (self, side, layer)->parameters->len > 0;
}

/* Pairs of whose results nothing is known. */
static guint
count_unknown (const TdPort *self)
{
  guint n = 0;

  for (guint i = 0; i < self->pairs->len; i++)
    n += get_pair (self, i)->out.verdict == TD_PORT_UNKNOWN;
  return n;
}

/* ---- text ---- */

static void
append_numbers (GString *out, const TdPortNumbers *n)
{
  if (n->verdict == TD_PORT_UNKNOWN)
    g_string_append (out, "no numbers");
  else if (n->what && g_str_has_prefix (n->what, "only"))
    g_string_append (out, n->what);
  else if (n->verdict == TD_PORT_SAME)
    g_string_append_printf (out, "same (%s within %.1e)", n->what, n->apart);
  else
    g_string_append_printf (out, "%s %.6g, %.6g (%.1e apart)", n->what, n->value[0],
                            n->value[1], n->apart);
}

static void
append_gradient (const TdPort *self, GString *out, const TdPortPair *p)
{
  const TdPortGradient *g = worst_gradient (p);

  if (!g)
    {
      g_string_append (out, "-");
      return;
    }
  const char *a = parameter_name (self, p, g, 0), *b = parameter_name (self, p, g, 1);
  g_string_append_printf (out, "%s: ", a ? a : b);
  append_numbers (out, &g->numbers);
  if (g->transposed)
    g_string_append (out, ", the other way round");
}

static void
append_first (const TdPort *self, GString *out, const char *direction, gint first)
{
  const TdPortPair *p = first >= 0 ? get_pair (self, (guint)first) : NULL;

  if (!p)
    {
      g_string_append_printf (out, "%s: no layer is known to differ\n", direction);
      return;
    }
  g_string_append_printf (out, "%s: the first layer that differs is %s, %s: ", direction,
                          path_of (self, p, 0), path_of (self, p, 1));
  if (strcmp (direction, "forward") == 0)
    append_numbers (out, &p->out);
  else
    append_gradient (self, out, p);
  g_string_append_c (out, '\n');
}

static char *
print_text (const TdPort *self)
{
  GString *out = g_string_new (NULL);
  int width[2] = { 1, 1 };

  append_first (self, out, "forward", self->forward);
  append_first (self, out, "backward", self->backward);
  for (guint i = 0; i < self->pairs->len; i++)
    for (guint s = 0; s < 2; s++)
      width[s] = MAX (width[s], (int)strlen (path_of (self, get_pair (self, i), s)));
  if (count_unknown (self) > 0)
    g_string_append_printf (out, "%u of %u layers have no numbers of what they returned\n",
                            count_unknown (self), self->pairs->len);
  g_string_append_c (out, '\n');
  for (guint i = 0; i < self->pairs->len; i++)
    {
      const TdPortPair *p = get_pair (self, i);
      g_autoptr (GString) returned = g_string_new (NULL);
      const TdPortGradient *g = worst_gradient (p);

      append_numbers (returned, &p->out);
      g_string_append_printf (
          out, "%s %-*s  %-*s  %-44s  ",
          p->out.verdict == TD_PORT_DIFFERS || (g && g->numbers.verdict == TD_PORT_DIFFERS)
              ? "!"
              : " ",
          width[0], path_of (self, p, 0), width[1], path_of (self, p, 1), returned->str);
      append_gradient (self, out, p);
      g_string_append_c (out, '\n');
    }
  for (guint s = 0; s < 2; s++)
    for (guint i = 0; i < self->side[s].layers->len; i++)
      if (is_alone (self, s, i))
        g_string_append_printf (out, "! only in %s: %s\n", s == 0 ? "A" : "B",
                                td__port_layer (self, s, i)->path);
  return g_string_free (out, FALSE);
}

/* ---- JSON ---- */

static void
print_numbers (TdJson *j, const char *key, const TdPortNumbers *n)
{
  td_json_key (j, key);
  td_json_begin_object (j);
  td_json_member_string (j, "verdict", verdicts[n->verdict]);
  if (n->what)
    {
      td_json_member_string (j, "what", n->what);
      td_json_member_double (j, "a", n->value[0]);
      td_json_member_double (j, "b", n->value[1]);
      td_json_member_double (j, "apart", n->apart);
    }
  td_json_end_object (j);
}

static void
print_pair (const TdPort *self, TdJson *j, const TdPortPair *p)
{
  td_json_begin_object (j);
  td_json_member_string (j, "a", path_of (self, p, 0));
  td_json_member_string (j, "b", path_of (self, p, 1));
  print_numbers (j, "output", &p->out);
  td_json_key (j, "parameters");
  td_json_begin_array (j);
  for (guint i = 0; i < p->gradients->len; i++)
    {
      const TdPortGradient *g = &g_array_index (p->gradients, TdPortGradient, i);

      td_json_begin_object (j);
      td_json_member_string (j, "a", parameter_name (self, p, g, 0));
      td_json_member_string (j, "b", parameter_name (self, p, g, 1));
      td_json_member_bool (j, "transposed", g->transposed);
      print_numbers (j, "gradient", &g->numbers);
      td_json_end_object (j);
    }
  td_json_end_array (j);
  td_json_end_object (j);
}

static char *
print_json (const TdPort *self)
{
  static const char *const only[2] = { "only_in_a", "only_in_b" };
  GString *out = g_string_new (NULL);
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_member_bool (&j, "differs", td_port_differs (self));
  td_json_member_string (
      &j, "first_forward",
      self->forward >= 0 ? path_of (self, get_pair (self, (guint)self->forward), 0) : NULL);
  td_json_member_string (
      &j, "first_backward",
      self->backward >= 0 ? path_of (self, get_pair (self, (guint)self->backward), 0) : NULL);
  td_json_member_int (&j, "without_numbers", count_unknown (self));
  td_json_key (&j, "layers");
  td_json_begin_array (&j);
  for (guint i = 0; i < self->pairs->len; i++)
    print_pair (self, &j, get_pair (self, i));
  td_json_end_array (&j);
  for (guint s = 0; s < 2; s++)
    {
      td_json_key (&j, only[s]);
      td_json_begin_array (&j);
      for (guint i = 0; i < self->side[s].layers->len; i++)
        if (is_alone (self, s, i))
          td_json_string (&j, td__port_layer (self, s, i)->path);
      td_json_end_array (&j);
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

char *
td_port_names (const TdPort *self)
{
  GString *out = g_string_new ("# a layer of A, and the one of B that it is; - for none\n");

  for (guint i = 0; i < self->pairs->len; i++)
    g_string_append_printf (out, "%s %s\n", path_of (self, get_pair (self, i), 0),
                            path_of (self, get_pair (self, i), 1));
  for (guint i = 0; i < self->side[0].layers->len; i++)
    if (is_alone (self, 0, i))
      g_string_append_printf (out, "%s -\n", td__port_layer (self, 0, i)->path);
  for (guint i = 0; i < self->side[1].layers->len; i++)
    if (is_alone (self, 1, i))
      g_string_append_printf (out, "- %s\n", td__port_layer (self, 1, i)->path);
  return g_string_free (out, FALSE);
}
