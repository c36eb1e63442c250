/*
 * What a port check does not know: what is missing on a side, or was recorded in part.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-port-private.h"
#include "td-tape-notices.h"

static const char *const letters[2] = { "A", "B" };

static void note (TdPort *self, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
note (TdPort *self, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  g_ptr_array_add (self->notes, g_strdup_vprintf (format, args));
  va_end (args);
}

static const char *
plural (guint n)
{
  return n == 1 ? "layer" : "layers";
}

/* Numbers of what layers returned. */
static void
note_outputs (TdPort *self)
{
  guint n[TD_PORT_N_ELEMENTS] = { 0 };
  guint without, alone;

  for (guint i = 0; i < self->pairs->len; i++)
    n[td__port_get_pair (self, i)->out.elements]++;
  if (n[TD_PORT_NO_NUMBERS] > 0)
    note (self, "%u of %u layers have no numbers of what they returned", n[TD_PORT_NO_NUMBERS],
          self->pairs->len);
  without = n[TD_PORT_MISSING_A] + n[TD_PORT_MISSING_B] + n[TD_PORT_MISSING_BOTH];
  if (without > 0)
    note (self,
          "what %u of %u layers returned is compared by statistics alone: A has no elements of "
          "%u of them, B of %u (level values has them, of arrays that are not too large)",
          without, self->pairs->len, n[TD_PORT_MISSING_A] + n[TD_PORT_MISSING_BOTH],
          n[TD_PORT_MISSING_B] + n[TD_PORT_MISSING_BOTH]);
  alone = n[TD_PORT_OTHER_SHAPES];
  if (alone > 0)
    note (
        self,
        "what %u of %u layers returned is compared by statistics alone: the shapes do not say "
        "which element is which",
        alone, self->pairs->len);
}

/* Is the gradient not compared because nobody says which array of a side it is? */
static gboolean
is_not_said (const TdPort *self, const TdPortPair *p, const TdPortGradient *g, guint side)
{
  const TdPortParameter *of[2];

  if (g->numbers.verdict != TD_PORT_UNKNOWN || self->side[side].source.is_reference)
    return FALSE;
  for (guint s = 0; s < 2; s++)
    of[s] = td__port_parameter (self, p, s, g->parameter[s]);
  return of[side] && of[side]->gradient.var < 0 && of[side]->known != TD_PORT_GRADIENT_NONE
         && of[!side] && of[!side]->gradient.var >= 0;
}

/* Gradients of what layers returned, and of parameters. */
static void
note_gradients (TdPort *self)
{
  guint n = 0, n_parameters = 0, n_not_said[2] = { 0 };

  for (guint i = 0; i < self->pairs->len; i++)
    {
      const TdPortPair *p = td__port_get_pair (self, i);

      n += p->gradient.verdict == TD_PORT_UNKNOWN;
      for (guint k = 0; k < p->gradients->len; k++)
        {
          const TdPortGradient *g = &g_array_index (p->gradients, TdPortGradient, k);

          for (guint s = 0; s < 2; s++)
            n_not_said[s] += is_not_said (self, p, g, s);
          n_parameters += g->numbers.verdict == TD_PORT_UNKNOWN && !is_not_said (self, p, g, 0)
                          && !is_not_said (self, p, g, 1);
        }
    }
  if (n > 0)
    note (self, "the gradient of what %u of %u layers returned is not known on both sides", n,
          self->pairs->len);
  for (guint s = 0; s < 2; s++)
    if (n_not_said[s] > 0)
      note (self,
            "of %u %s the gradient is not known in %s, and not compared: no optimizer took it, "
            "and the graph does not say which array it is",
            n_not_said[s], n_not_said[s] == 1 ? "parameter" : "parameters", letters[s]);
  if (n_parameters > 0)
    note (self, "of %u %s the gradient has no numbers on both sides", n_parameters,
          n_parameters == 1 ? "parameter" : "parameters");
}

/* Sizes do not say that a square array lies the other way round: its numbers do. */
static gboolean
is_turned_square (const TdPort *self, const TdPortPair *p, const TdPortGradient *g)
{
  const TdPortParameter *const of[2] = { td__port_parameter (self, p, 0, g->parameter[0]),
                                         td__port_parameter (self, p, 1, g->parameter[1]) };

  return g->numbers.turned && g->numbers.elements == TD_PORT_COMPARED
         && of[0]->ndim == of[1]->ndim
         && memcmp (of[0]->dims, of[1]->dims, of[0]->ndim * sizeof *of[0]->dims) == 0;
}

static void
note_turned (TdPort *self)
{
  const TdPortPair *pair = NULL;
  const TdPortGradient *gradient = NULL;
  guint n = 0;

  for (guint i = 0; i < self->pairs->len; i++)
    {
      const TdPortPair *p = td__port_get_pair (self, i);

      for (guint k = 0; k < p->gradients->len; k++)
        {
          const TdPortGradient *g = &g_array_index (p->gradients, TdPortGradient, k);

          if (!is_turned_square (self, p, g))
            continue;
          pair = n++ == 0 ? p : pair;
          gradient = n == 1 ? g : gradient;
        }
    }
  if (n > 0)
    note (
        self,
        "the gradient of %u square %s, as of %s/%s, is compared the other way round: one side "
        "holds it transposed, or that is the mistake",
        n, n == 1 ? "parameter" : "parameters", td__port_layer (self, 0, pair->layer[0])->path,
        td__port_parameter_name (self, pair, gradient, 0));
}

/* Layers that were called more than once, and those that are compared with nothing. */
static void
note_layers (TdPort *self)
{
  const TdPortPair *several = NULL;
  guint n_several = 0, n_left[2] = { 0 };

  for (guint i = 0; i < self->pairs->len; i++)
    {
      const TdPortPair *p = td__port_get_pair (self, i);

      if (td__port_layer (self, 0, p->layer[0])->n_calls > 1
          || td__port_layer (self, 1, p->layer[1])->n_calls > 1)
        {
          several = several ? several : p;
          n_several++;
        }
    }
  if (several)
    note (self, "%u %s called more than once, as %s: the last call is compared", n_several,
          n_several == 1 ? "layer was" : "layers were",
          td__port_layer (self, 0, several->layer[0])->path);
  for (guint s = 0; s < 2; s++)
    for (guint i = 0; i < self->side[s].layers->len; i++)
      n_left[s] += self->partner[s][i] < 0 && !td__port_is_alone (self, s, i);
  for (guint s = 0; s < 2; s++)
    if (n_left[s] > 0)
      note (self, "%u %s of %s%s %s no counterpart, and %s not compared", n_left[s],
            plural (n_left[s]), letters[s],
            self->side[!s].source.is_reference ? "" : " without parameters",
            n_left[s] == 1 ? "has" : "have", n_left[s] == 1 ? "is" : "are");
}

static void
note_recording (TdPort *self, guint side)
{
  TdTapeReader *r = self->side[side].source.reader;
  const TdTapeIteration *t = self->side[side].tape;
  TdTapeNoticeSort sorts[TD_TAPE_MOST_NOTICE_SORTS];
  guint n;

  if (t->flags & TD_TAPE_ITERATION_PARTIAL)
    note (self, "%s: iteration %" G_GUINT64_FORMAT " has not ended", letters[side],
          (guint64)t->number);
  if (t->flags & TD_TAPE_ITERATION_LOST)
    note (self, "%s: some records of iteration %" G_GUINT64_FORMAT " were lost", letters[side],
          (guint64)t->number);
  n = td_tape_notice_sorts (r, sorts);
  for (guint k = 0; k < n; k++)
    {
      char *others = td_tape_notice_others (r, &sorts[k]);

      note (self, "%s: %s%s", letters[side], td_tape_reader_string (r, sorts[k].first->text),
            others != NULL ? others : "");
      free (others); /* the tape is read without GLib */
    }
}

void
td__port_note (TdPort *self)
{
  note_outputs (self);
  note_gradients (self);
  note_turned (self);
  note_layers (self);
  for (guint s = 0; s < 2; s++)
    note_recording (self, s);
  g_ptr_array_add (self->notes, NULL);
}

const char *const *
td_port_get_notes (const TdPort *self)
{
  return (const char *const *)self->notes->pdata;
}
