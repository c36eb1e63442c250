/*
 * Which array of an iteration is the gradient of a parameter, or of what a layer returned.
 *
 * An optimizer says which ones it took, and of which parameters there was none. Where none did,
 * as of a program that goes forward and backward once, the graph says it, mostly; of what it
 * does not say nothing is known.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "gradient/td-gradient-inferred.h"
#include "td-port-private.h"

/* Did backward do it? */
static gboolean
is_backward (const TdTapeIteration *t, guint32 event)
{
  return event < t->n_events
         && (t->events[event].phase == TD_TAPE_PHASE_BACKWARD
             || t->events[event].phase == TD_TAPE_PHASE_ACCUMULATE);
}

/* What backward made of a gradient: the last that it wrote there.  One that the program has set
 * to zeros in place is older than the iteration, and begins with those. */
static TdPortArray
array_of_gradient (const TdPortSide *side, guint32 var)
{
  const TdTapeIteration *t = side->tape;
  TdPortArray found = td__port_array (side, var);

  for (guint i = 0; i < t->n_stats; i++)
    if (t->stats[i].var == var && is_backward (t, t->stats[i].event))
      {
        found.stats = &t->stats[i];
        found.event = (gint)t->stats[i].event;
      }
  if (found.event == side->tape->vars[var].producer)
    return found;
  found.tensor = NULL; /* of then, or of no time */
  for (guint i = 0; i < t->n_tensors; i++)
    if (t->tensors[i].var == var && (gint)t->tensors[i].event == found.event)
      found.tensor = &t->tensors[i];
  return found;
}

/* Parameters by the names that their variables have. */
GHashTable *
td__port_infer_gradients (const TdPortSide *side)
{
  TdIteration *it = side->source.iteration;
  const TdTapeIteration *t = side->tape;
  GHashTable *found = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  if (side->source.is_reference || !td_iteration_is_complete (it))
    return found; /* what backward goes on with is not known before its end */
  g_autofree guint32 *gradient = td__gradient_infer (t);
  for (guint v = 0; v < t->n_vars; v++)
    if (gradient[v] != TD_TAPE_NONE && t->vars[v].path != 0 && t->vars[v].name != 0)
      g_hash_table_insert (found,
                           g_strdup_printf ("%s/%s",
                                            td_iteration_get_path_name (it, t->vars[v].path),
                                            td_iteration_get_string (it, t->vars[v].name)),
                           GUINT_TO_POINTER (gradient[v] + 1));
  return found;
}

void
td__port_find_gradient (const TdPortSide *side, GHashTable *inferred, const char *path,
                        TdPortParameter *of)
{
  const TdTapeIteration *t = side->tape;
  const guint by_graph = GPOINTER_TO_UINT (g_hash_table_lookup (inferred, path));

  of->gradient = td__port_no_array ();
  of->known = TD_PORT_GRADIENT_OPEN;
  for (guint i = 0; i < t->n_grads; i++)
    {
      const gboolean is_there = t->grads[i].gradient < t->n_vars;

      if (strcmp (td_iteration_get_string (side->source.iteration, t->grads[i].path), path)
          == 0)
        of->known = is_there ? TD_PORT_GRADIENT_TAKEN : TD_PORT_GRADIENT_NONE;
      else if (is_there && of->known == TD_PORT_GRADIENT_OPEN)
        of->known = TD_PORT_GRADIENT_LEFT;
      if (of->known == TD_PORT_GRADIENT_TAKEN)
        {
          of->gradient = array_of_gradient (side, t->grads[i].gradient);
          return;
        }
    }
  if (by_graph == 0 || of->known == TD_PORT_GRADIENT_NONE)
    return;
  of->gradient = array_of_gradient (side, by_graph - 1);
  of->known = TD_PORT_GRADIENT_FOUND;
}

static gboolean
same_shape (const TdTapeIteration *t, guint32 a, guint32 b)
{
  const TdTapeVar *x = &t->vars[a], *y = &t->vars[b];

  return x->ndim == y->ndim
         && memcmp (t->dims + x->first_dim, t->dims + y->first_dim, x->ndim * sizeof *t->dims)
                == 0;
}

/* The gradient of what an operation returned is what the first of its backward ones reads of
 * its size, and none of them makes. */
TdPortArray
td__port_gradient_of_out (const TdPortSide *side, guint32 var)
{
  const TdTapeIteration *t = side->tape;
  const gint event = t->vars[var].producer;
  guint n = 0;
  const gint32 *twins
      = event >= 0 ? td_iteration_get_twins (side->source.iteration, (guint)event, &n) : NULL;

  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < t->events[twins[i]].n_in; k++)
      {
        const guint32 in = t->ins[t->events[twins[i]].first_in + k];
        const gint32 producer = in < t->n_vars ? t->vars[in].producer : -1;

        if (is_backward (t, (guint32)twins[i]) && in < t->n_vars
            && t->vars[in].category == TD_TAPE_CATEGORY_GRADIENT && same_shape (t, in, var)
            && (producer < 0 || t->events[producer].twin != event))
          return td__port_array (side, in);
      }
  return td__port_no_array ();
}
