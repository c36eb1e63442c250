/*
 * What a port check found, pair by pair and in words.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-port-private.h"

const char *
td__port_parameter_name (const TdPort *self, const TdPortPair *p, const TdPortGradient *g,
                         guint side)
{
  const GArray *own = td__port_layer (self, side, p->layer[side])->parameters;

  return g->parameter[side] >= 0
             ? g_array_index (own, TdPortParameter, (guint)g->parameter[side]).name
             : NULL;
}

/* ---- rows ---- */

/* Says one of two more: a difference, else what is known, else what is farther apart? */
static gboolean
is_worse (const TdPortNumbers *n, const TdPortNumbers *than)
{
  if (n->verdict != than->verdict)
    return n->verdict > than->verdict;
  return n->apart > than->apart;
}

static gint
event_of_parameter (const TdPort *self, const TdPortPair *p, const TdPortGradient *g,
                    guint side)
{
  const TdPortLayer *layer = td__port_layer (self, side, p->layer[side]);

  if (g->parameter[side] < 0)
    return layer->out.event;
  return g_array_index (layer->parameters, TdPortParameter, (guint)g->parameter[side])
      .gradient.event;
}

/* The gradient that says most. */
static void
find_backward (const TdPort *self, const TdPortPair *p, TdPortRow *row)
{
  if (p->gradient.verdict != TD_PORT_UNKNOWN)
    {
      row->backward = &p->gradient;
      row->backward_of = "output";
      for (guint s = 0; s < 2; s++)
        row->backward_event[s] = td__port_layer (self, s, p->layer[s])->gradient.event;
    }
  for (guint i = 0; i < p->gradients->len; i++)
    {
      const TdPortGradient *g = &g_array_index (p->gradients, TdPortGradient, i);
      const char *a = td__port_parameter_name (self, p, g, 0);

      if (row->backward && !is_worse (&g->numbers, row->backward))
        continue;
      row->backward = &g->numbers;
      row->backward_of = a ? a : td__port_parameter_name (self, p, g, 1);
      for (guint s = 0; s < 2; s++)
        row->backward_event[s] = event_of_parameter (self, p, g, s);
    }
}

guint
td_port_get_n_rows (const TdPort *self)
{
  return self->pairs->len;
}

void
td_port_get_row (const TdPort *self, guint i, TdPortRow *row)
{
  const TdPortPair *p = td__port_get_pair (self, i);

  *row = (TdPortRow){ .how = td__port_how (self->how[p->layer[0]]),
                      .out = &p->out,
                      .backward_event = { -1, -1 },
                      .first_forward = self->forward == (gint)i,
                      .first_backward = self->backward == (gint)i };
  for (guint s = 0; s < 2; s++)
    {
      const TdPortLayer *layer = td__port_layer (self, s, p->layer[s]);

      row->path[s] = layer->path;
      row->event[s] = layer->out.event >= 0 ? layer->out.event : (gint)layer->last;
    }
  find_backward (self, p, row);
}

char *
td_port_dup_turned (const TdPort *self, guint i)
{
  const TdPortPair *p = td__port_get_pair (self, i);
  GString *out = g_string_new (NULL);
  TdPortRow row;

  td_port_get_row (self, i, &row);
  for (guint k = 0; k < p->gradients->len; k++)
    {
      const TdPortGradient *g = &g_array_index (p->gradients, TdPortGradient, k);

      if (g->numbers.turned && &g->numbers != row.backward)
        g_string_append_printf (out, "%s%s", out->len > 0 ? ", " : "",
                                td__port_parameter_name (self, p, g, 0));
    }
  return g_string_free (out, FALSE);
}

const char **
td_port_dup_alone (const TdPort *self, guint side)
{
  GPtrArray *alone = g_ptr_array_new ();

  for (guint i = 0; i < self->side[side].layers->len; i++)
    if (td__port_is_alone (self, side, i))
      g_ptr_array_add (alone, td__port_layer (self, side, i)->path);
  g_ptr_array_add (alone, NULL);
  return (const char **)g_ptr_array_free (alone, FALSE);
}

/* ---- words ---- */

static void
append_index (GString *out, const TdPortNumbers *n, guint side)
{
  g_string_append_c (out, '(');
  for (guint d = 0; d < n->ndim[side]; d++)
    g_string_append_printf (out, "%s%" G_GINT64_FORMAT, d > 0 ? ", " : "", n->index[side][d]);
  g_string_append_c (out, ')');
}

static gboolean
same_index (const TdPortNumbers *n)
{
  return n->ndim[0] == n->ndim[1]
         && memcmp (n->index[0], n->index[1], n->ndim[0] * sizeof *n->index[0]) == 0;
}

static void
append_element (GString *out, const TdPortNumbers *n)
{
  if (n->verdict == TD_PORT_SAME)
    {
      if (n->apart > 0)
        g_string_append_printf (out, "same (elements within %.1e)", n->apart);
      else
        g_string_append (out, "same (all elements)");
      return;
    }
  g_string_append (out, "element ");
  append_index (out, n, 0);
  if (!same_index (n))
    {
      g_string_append (out, " and ");
      append_index (out, n, 1);
    }
  g_string_append_printf (
      out, " %.6g, %.6g (%.1e apart), %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " beyond",
      n->value[0], n->value[1], n->apart, n->n_beyond, n->n);
}

char *
td_port_dup_numbers (const TdPortNumbers *n)
{
  GString *out = g_string_new (NULL);

  if (n->verdict == TD_PORT_UNKNOWN)
    g_string_append (out, "not known");
  else if (n->what && g_str_has_prefix (n->what, "only"))
    g_string_append (out, n->what);
  else if (n->elements == TD_PORT_COMPARED)
    append_element (out, n);
  else if (n->verdict == TD_PORT_SAME)
    g_string_append_printf (out, "same (%s within %.1e)", n->what, n->apart);
  else
    g_string_append_printf (out, "%s %.6g, %.6g (%.1e apart)", n->what, n->value[0],
                            n->value[1], n->apart);
  if (n->turned)
    g_string_append (out, ", the other way round");
  return g_string_free (out, FALSE);
}

char *
td_port_dup_first (const TdPort *self, gboolean backward)
{
  const char *direction = backward ? "backward" : "forward";
  const gint first = backward ? self->backward : self->forward;
  TdPortRow row;

  if (first < 0)
    return g_strdup_printf ("%s: no layer is known to differ", direction);
  td_port_get_row (self, (guint)first, &row);
  g_autofree char *numbers = td_port_dup_numbers (backward ? row.backward : row.out);
  const gboolean same = strcmp (row.path[0], row.path[1]) == 0; /* of two runs of one program */
  return g_strdup_printf ("%s: the first layer that differs is %s%s%s: %s%s%s", direction,
                          row.path[0], same ? "" : ", ", same ? "" : row.path[1],
                          backward ? row.backward_of : "", backward ? ": " : "", numbers);
}

char *
td_port_dup_worst (const TdPortRow *row)
{
  const gboolean backward = row->out->verdict != TD_PORT_DIFFERS && row->backward
                            && row->backward->verdict == TD_PORT_DIFFERS;
  g_autofree char *numbers = td_port_dup_numbers (backward ? row->backward : row->out);

  return backward ? g_strdup_printf ("gradient of %s: %s", row->backward_of, numbers)
                  : g_strdup_printf ("output: %s", numbers);
}

char *
td_port_dup_sentence (const TdPort *self)
{
  char *found;

  if (self->forward >= 0 || self->backward >= 0)
    found = td_port_dup_first (self, self->forward < 0);
  else if (td_port_differs (self))
    found = g_strdup ("a layer has no counterpart; no other is known to differ");
  else
    found = g_strdup ("no layer is known to differ, forward or backward");
  found[0] = g_ascii_toupper (found[0]);
  return found;
}
