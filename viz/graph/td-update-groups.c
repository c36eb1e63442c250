/* Updates of many parameters in one group: a box for each layer instead of one for each event.
 * A layer that is one operation has no box of its own in the forward pass, yet its parameters
 * times hooks times the optimizer are many events.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-graph-private.h"

#include <string.h>

#include "tape/td-mix.h"

#define MAX_SINGLE 8  /* as many stand by themselves */
#define MAX_LAYERS 12 /* boxes that more are put into */

/* ---- whose update an event is ---- */

/* The path of something in a layer, borrowed. */
static const char *
in_layer (const TdVizGraph *graph, guint32 path)
{
  g_autofree char *text
      = g_strconcat (td_iteration_get_path_name (graph->iteration, path), "/", NULL);

  return g_string_chunk_insert_const (graph->strings, text);
}

/* Path of the parameter of each update, borrowed; NULL: of several, or nobody knows. */
static const char **
find_paths (const TdVizGraph *graph)
{
  const TdTapeIteration *tape = td_iteration_get_tape (graph->iteration);
  const char **of_event = g_new0 (const char *, tape->n_events + 1);
  const char **of_var = g_new0 (const char *, tape->n_vars + 1);

  for (guint i = 0; i < tape->n_grads; i++)
    {
      const TdTapeGrad *grad = &tape->grads[i];
      const char *path = td_iteration_get_string (graph->iteration, grad->path);

      if (!strchr (path, '/'))
        continue;
      if (grad->event < tape->n_events)
        of_event[grad->event] = path;
      if (grad->gradient < tape->n_vars)
        of_var[grad->gradient] = path;
    }
  for (guint e = 0; e < tape->n_events; e++)
    {
      const TdTapeEvent *event = &tape->events[e];

      if (event->phase != TD_TAPE_PHASE_UPDATE)
        of_event[e] = NULL;
      else if (!of_event[e] && event->n_in > 0 && event->n_in <= 2)
        of_event[e] = of_var[tape->ins[event->first_in]];
      /* one of several steps of an update: its recorder says of which layer */
      if (event->phase == TD_TAPE_PHASE_UPDATE && !of_event[e] && event->path != 0)
        of_event[e] = in_layer (graph, event->path);
    }
  g_free (of_var);
  return of_event;
}

/* ---- boxes ---- */

/* The first `n_parts` parts of the path of the link that has the parameter. */
static char *
cut_path (const char *parameter, guint n_parts)
{
  const char *end = strrchr (parameter, '/');

  for (const char *c = parameter; c < end; c++)
    if (*c == '/' && --n_parts == 0)
      end = c;
  return g_strndup (parameter, (gsize)(end - parameter));
}

/* How many parts of the paths tell few enough layers apart. */
static guint
choose_parts (const char **paths, const GArray *events)
{
  guint parts = 1, next = 1;

  for (guint n_layers = 0, before = G_MAXUINT; n_layers <= MAX_LAYERS && n_layers != before;
       next++)
    {
      GHashTable *seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

      for (guint i = 0; i < events->len; i++)
        g_hash_table_add (seen, cut_path (paths[g_array_index (events, gint32, i)], next));
      before = next > 2 ? n_layers : G_MAXUINT; /* one root says nothing yet */
      n_layers = g_hash_table_size (seen);
      if (n_layers <= MAX_LAYERS)
        parts = next;
      g_hash_table_unref (seen);
    }
  return parts;
}

static gint
add_box (TdVizGraph *graph, gint parent, const char *path)
{
  const TdVizGroup *above = td__graph_group (graph, parent);
  const char *slash = strrchr (path, '/');
  TdVizGroup group = { .kind = TD_GROUP_LINK, .parent = parent, .depth = above->depth + 1 };

  group.key = td__mix (td__mix_text (above->key, path), 0x757064617465);
  group.name = g_string_chunk_insert_const (graph->strings, slash ? slash + 1 : path);
  group.path = g_string_chunk_insert_const (graph->strings, path);
  g_array_append_val (graph->groups, group);
  return (gint)graph->groups->len - 1;
}

static void
fold_updates_of (TdVizGraph *graph, gint group, const char **paths, const GArray *events)
{
  GHashTable *layers = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  GHashTable *boxes = g_hash_table_new (g_str_hash, g_str_equal);
  guint parts = choose_parts (paths, events);

  for (guint i = 0; i < events->len; i++)
    {
      char *path = cut_path (paths[g_array_index (events, gint32, i)], parts);
      guint n = GPOINTER_TO_UINT (g_hash_table_lookup (layers, path));

      g_hash_table_insert (layers, path, GUINT_TO_POINTER (n + 1));
    }
  for (guint i = 0; i < events->len; i++)
    {
      gint32 event = g_array_index (events, gint32, i);
      char *path = cut_path (paths[event], parts);
      gpointer layer, n;
      gint box;

      g_hash_table_lookup_extended (layers, path, &layer, &n);
      g_free (path);
      if (GPOINTER_TO_UINT (n) < 2)
        continue;
      box = GPOINTER_TO_INT (g_hash_table_lookup (boxes, layer));
      if (box == 0)
        {
          box = add_box (graph, group, layer);
          g_hash_table_insert (boxes, layer, GINT_TO_POINTER (box));
        }
      graph->event_group[event] = box;
    }
  g_hash_table_unref (boxes);
  g_hash_table_unref (layers);
}

void
td__graph_fold_updates (TdVizGraph *self)
{
  guint n_events = td_iteration_get_n_events (self->iteration), n_groups = self->groups->len;
  const char **paths = find_paths (self);
  GArray **events = g_new0 (GArray *, n_groups);

  for (guint e = 0; e < n_events; e++)
    if (paths[e])
      {
        GArray **of_group = &events[self->event_group[e]];
        gint32 index = (gint32)e;

        if (!*of_group)
          *of_group = g_array_new (FALSE, FALSE, sizeof (gint32));
        g_array_append_val (*of_group, index);
      }
  for (guint g = 0; g < n_groups; g++)
    if (events[g])
      {
        if (events[g]->len > MAX_SINGLE)
          fold_updates_of (self, (gint)g, paths, events[g]);
        g_array_free (events[g], TRUE);
      }
  g_free (events);
  g_free (paths);
}
