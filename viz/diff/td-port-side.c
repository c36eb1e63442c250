/*
 * One side of a port check: its layers in the order in which they ended, with what they
 * returned and their parameters.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-port-private.h"

static void
layer_free (gpointer data)
{
  TdPortLayer *layer = data;

  g_free (layer->path);
  g_array_unref (layer->parameters);
  g_free (layer);
}

static TdPortLayer *
find_layer (GHashTable *by_path, TdPortSide *side, const char *path)
{
  TdPortLayer *layer = g_hash_table_lookup (by_path, path);

  if (!layer)
    {
      layer = g_new0 (TdPortLayer, 1);
      layer->path = g_strdup (path);
      layer->out = -1;
      layer->parameters = g_array_new (FALSE, TRUE, sizeof (TdPortParameter));
      g_ptr_array_add (side->layers, layer);
      g_hash_table_insert (by_path, layer->path, layer);
    }
  return layer;
}

/* The numbers of each variable as the event that made it left them; of what nothing made, the
 * first that there are. */
static void
find_stats (TdPortSide *side)
{
  const TdTapeIteration *t = side->tape;

  side->stats = g_new0 (const TdTapeStats *, MAX (t->n_vars, 1));
  for (guint i = 0; i < t->n_stats; i++)
    {
      const TdTapeStats *s = &t->stats[i];

      if (s->var < t->n_vars
          && (!side->stats[s->var] || t->vars[s->var].producer == (gint32)s->event))
        side->stats[s->var] = s;
    }
}

/* An event ends its layer and all around it, as far as is known by then. */
static void
add_event (TdPortSide *side, GHashTable *by_path, guint e)
{
  const TdTapeEvent *event = &side->tape->events[e];
  g_autofree char *path = g_strdup (td_iteration_get_link_path (side->iteration, e));

  for (char *end; *path; *end = '\0')
    {
      TdPortLayer *layer = find_layer (by_path, side, path);

      layer->last = e;
      if (event->n_out > 0)
        {
          layer->out = (gint)side->tape->outs[event->first_out];
          layer->stats = side->stats[layer->out];
        }
      end = strrchr (path, '/');
      end = end ? end : path;
    }
}

/* What backward made of a gradient: the last that it wrote there.  One that the program has set
 * to zeros in place is older than the iteration, and begins with those. */
static const TdTapeStats *
stats_of_gradient (const TdPortSide *side, guint32 var)
{
  const TdTapeIteration *t = side->tape;
  const TdTapeStats *found = side->stats[var];

  for (guint i = 0; i < t->n_stats; i++)
    {
      const TdTapeStats *s = &t->stats[i];

      if (s->var == var && s->event < t->n_events
          && (t->events[s->event].phase == TD_TAPE_PHASE_BACKWARD
              || t->events[s->event].phase == TD_TAPE_PHASE_ACCUMULATE))
        found = s;
    }
  return found;
}

static const TdTapeStats *
find_gradient (const TdPortSide *side, const char *path)
{
  const TdTapeIteration *t = side->tape;

  for (guint i = 0; i < t->n_grads; i++)
    if (t->grads[i].gradient < t->n_vars
        && strcmp (td_iteration_get_string (side->iteration, t->grads[i].path), path) == 0)
      return stats_of_gradient (side, t->grads[i].gradient);
  return NULL;
}

static void
add_parameters (TdPortSide *side, GHashTable *by_path, TdTapeReader *reader)
{
  for (guint i = 0; i < td_tape_reader_n_parameters (reader); i++)
    {
      const TdTapeParameter *p = td_tape_reader_parameter (reader, i);
      const char *path = td_tape_reader_string (reader, p->path);
      const char *name = path ? strrchr (path, '/') : NULL;
      TdPortParameter found = { .ndim = p->ndim };
      TdPortLayer *layer;

      if (!name || p->flags & TD_TAPE_PARAMETER_PERSISTENT)
        continue;
      g_autofree char *of = g_strndup (path, (gsize)(name - path));
      layer = g_hash_table_lookup (by_path, of);
      if (!layer)
        continue; /* it was not called */
      found.name = name + 1;
      memcpy (found.dims, p->dims, sizeof found.dims);
      found.gradient = find_gradient (side, path);
      for (guint k = 0; k < layer->parameters->len; k++)
        if (strcmp (g_array_index (layer->parameters, TdPortParameter, k).name, found.name)
            == 0)
          found.name = NULL; /* said again with its sizes: the last counts */
      if (found.name)
        g_array_append_val (layer->parameters, found);
    }
}

/* What ends earlier comes first; of those that end together the innermost. */
static gint
by_end (gconstpointer a, gconstpointer b)
{
  const TdPortLayer *x = *(TdPortLayer *const *)a, *y = *(TdPortLayer *const *)b;

  if (x->last != y->last)
    return x->last < y->last ? -1 : 1;
  return (gint)strlen (y->path) - (gint)strlen (x->path);
}

void
td__port_side_read (TdPortSide *side, TdIteration *iteration, TdTapeReader *reader)
{
  g_autoptr (GHashTable) by_path = g_hash_table_new (g_str_hash, g_str_equal);

  side->iteration = td_iteration_ref (iteration);
  side->tape = td_iteration_get_tape (iteration);
  side->layers = g_ptr_array_new_with_free_func (layer_free);
  find_stats (side);
  for (guint e = 0; e < side->tape->n_events; e++)
    if (side->tape->events[e].phase == TD_TAPE_PHASE_FORWARD)
      add_event (side, by_path, e);
  add_parameters (side, by_path, reader);
  g_ptr_array_sort (side->layers, by_end);
}

void
td__port_side_clear (TdPortSide *side)
{
  g_ptr_array_unref (side->layers);
  g_free (side->stats);
  td_iteration_unref (side->iteration);
}
