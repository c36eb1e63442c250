/*
 * One side of a port check: its layers in the order in which they ended, with what they
 * returned and their parameters.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-port-private.h"

static void
parameter_clear (gpointer data)
{
  g_free (((TdPortParameter *)data)->name);
}

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
      layer->out = layer->gradient = td__port_no_array ();
      layer->parameters = g_array_new (FALSE, TRUE, sizeof (TdPortParameter));
      g_array_set_clear_func (layer->parameters, parameter_clear);
      g_ptr_array_add (side->layers, layer);
      g_hash_table_insert (by_path, layer->path, layer);
    }
  return layer;
}

/* The numbers of each variable as the event that made it left them; of what nothing made, the
 * first that there are. */
static void
find_numbers (TdPortSide *side)
{
  const TdTapeIteration *t = side->tape;

  side->stats = g_new0 (const TdTapeStats *, MAX (t->n_vars, 1));
  side->tensors = g_new0 (const TdTapeTensorRef *, MAX (t->n_vars, 1));
  for (guint i = 0; i < t->n_tensors; i++)
    {
      const TdTapeTensorRef *r = &t->tensors[i];

      if (r->var < t->n_vars
          && (!side->tensors[r->var] || t->vars[r->var].producer == (gint32)r->event))
        side->tensors[r->var] = r;
    }
  for (guint i = 0; i < t->n_stats; i++)
    {
      const TdTapeStats *s = &t->stats[i];

      if (s->var < t->n_vars
          && (!side->stats[s->var] || t->vars[s->var].producer == (gint32)s->event))
        side->stats[s->var] = s;
    }
}

TdPortArray
td__port_no_array (void)
{
  return (TdPortArray){ .var = -1, .event = -1 };
}

TdPortArray
td__port_array (const TdPortSide *side, guint32 var)
{
  return (TdPortArray){ .var = (gint)var,
                        .event = side->tape->vars[var].producer,
                        .stats = side->stats[var],
                        .tensor = side->tensors[var] };
}

/* An event ends its layer and all around it, as far as is known by then. What a reference's
 * layers around it return, it says itself. */
static void
add_event (TdPortSide *side, GHashTable *by_path, guint e)
{
  const TdTapeEvent *event = &side->tape->events[e];
  g_autofree char *path = g_strdup (td_iteration_get_link_path (side->source.iteration, e));

  for (char *end; *path; *end = '\0')
    {
      TdPortLayer *layer = find_layer (by_path, side, path);

      layer->last = e;
      if (event->n_out > 0)
        layer->out = td__port_array (side, side->tape->outs[event->first_out]);
      end = side->source.is_reference ? NULL : strrchr (path, '/');
      end = end ? end : path;
    }
}

/* How often each layer was called, where the tape says when it was entered. */
static void
count_calls (TdPortSide *side, GHashTable *by_path)
{
  guint n = 0;
  const TdLayer *layers = td_iteration_get_layers (side->source.iteration, &n);

  for (guint i = 0; i < n; i++)
    {
      TdPortLayer *layer
          = layers[i].is_link ? g_hash_table_lookup (by_path, layers[i].path) : NULL;

      if (layer)
        layer->n_calls++;
    }
}

static void
add_parameters (TdPortSide *side, GHashTable *by_path, TdTapeReader *reader)
{
  g_autoptr (GHashTable) gradients = td__port_infer_gradients (side);

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
      memcpy (found.dims, p->dims, sizeof found.dims);
      td__port_find_gradient (side, gradients, path, &found);
      gboolean is_new = TRUE; /* not said again, with other sizes */
      for (guint k = 0; k < layer->parameters->len; k++)
        is_new
            = is_new
              && strcmp (g_array_index (layer->parameters, TdPortParameter, k).name, name + 1)
                     != 0;
      if (!is_new)
        continue;
      found.name = g_strdup (name + 1);
      g_array_append_val (layer->parameters, found);
    }
}

/* A layer around others that was not called itself, as a list of layers is not, returned
 * nothing.  Only a tape with calls tells. */
static void
drop_uncalled (TdPortSide *side)
{
  guint n = td_iteration_has_calls (side->source.iteration) ? side->layers->len : 0;

  for (guint i = n; i-- > 0;)
    {
      TdPortLayer *layer = side->layers->pdata[i];

      if (layer->n_calls > 0)
        continue;
      layer->out = layer->gradient = td__port_no_array ();
      if (layer->parameters->len == 0)
        g_ptr_array_remove_index (side->layers, i);
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
td__port_side_read (TdPortSide *side, const TdPortSource *source)
{
  g_autoptr (GHashTable) by_path = g_hash_table_new (g_str_hash, g_str_equal);

  side->source = *source;
  td_iteration_ref (source->iteration);
  side->tape = td_iteration_get_tape (source->iteration);
  side->layers = g_ptr_array_new_with_free_func (layer_free);
  find_numbers (side);
  for (guint e = 0; e < side->tape->n_events; e++)
    if (side->tape->events[e].phase == TD_TAPE_PHASE_FORWARD)
      add_event (side, by_path, e);
  for (guint i = 0; i < side->layers->len; i++)
    {
      TdPortLayer *layer = side->layers->pdata[i];

      if (layer->out.var >= 0)
        layer->gradient = td__port_gradient_of_out (side, (guint32)layer->out.var);
    }
  count_calls (side, by_path);
  add_parameters (side, by_path, source->reader);
  drop_uncalled (side);
  g_ptr_array_sort (side->layers, by_end);
}

void
td__port_side_clear (TdPortSide *side)
{
  g_ptr_array_unref (side->layers);
  g_free (side->stats);
  g_free (side->tensors);
  td_iteration_unref (side->source.iteration);
}

char *
td__port_source (const TdPortSide *side, const TdPortArray *array)
{
  TdIteration *it = side->source.iteration;

  if (array->var < 0)
    return g_strdup ("");
  if (side->source.is_reference)
    return g_strdup_printf ("%s: %s", td_tape_reader_info (side->source.reader, "program"),
                            td_iteration_get_var_name (it, (guint)array->var));
  if (array->event < 0)
    return g_strdup ("");
  g_autofree char *site = td_iteration_dup_site (it, (guint)array->event);
  return g_strdup_printf ("%s%s%s", site, *site ? " " : "",
                          td_iteration_get_op_name (it, (guint)array->event));
}
