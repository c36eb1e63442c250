/* Layers of writers that say no calls: a run of forward events below the same path is one call
 * of that link. What the program has named lies around such calls or within them: a call that
 * a scope ends, or that goes on where a scope that has more in it begins, is two.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-iteration-private.h"

#include <string.h>

typedef struct
{
  const TdIteration *iteration;
  const TdTapeIteration *tape;
  GStringChunk *strings;
  GArray *layers; /* TdLayer */
  GArray *open;   /* of each depth, the call that may go on: gint32 */
  guint32 span;   /* of the forward event before; n_spans: none */
} Paths;

static const TdLayer *
open_at (const Paths *p, guint depth)
{
  return &g_array_index (p->layers, TdLayer, g_array_index (p->open, gint32, depth));
}

static guint32
span_of (const TdTapeIteration *t, guint event)
{
  return MIN (t->events[event].span, t->n_spans);
}

static guint32
parent_of (const TdTapeIteration *t, guint32 span)
{
  return t->spans[span].parent < span ? t->spans[span].parent : t->n_spans;
}

static gboolean
is_below (const char *path, const char *link)
{
  gsize n = strlen (link);

  return strncmp (path, link, n) == 0 && (path[n] == 0 || path[n] == '/');
}

/* Nothing in the scope is beside the link. */
static gboolean
stays_below (const Paths *p, const TdTapeSpan *span, const char *link)
{
  for (guint e = span->begin; e < MIN (span->end, p->tape->n_events); e++)
    if (p->tape->events[e].phase == TD_TAPE_PHASE_FORWARD
        && !is_below (td_iteration_get_link_path (p->iteration, e), link))
      return FALSE;
  return TRUE;
}

/* A call that is open does not go on at this event: a scope that it was in has ended, or one
 * that is not all in it has begun. */
static gboolean
is_ended (const Paths *p, const TdLayer *call, guint event)
{
  const TdTapeIteration *t = p->tape;

  for (guint32 s = p->span; s < t->n_spans; s = parent_of (t, s))
    if (t->spans[s].begin <= call->first && t->spans[s].end <= event)
      return TRUE;
  for (guint32 s = span_of (t, event); s < t->n_spans; s = parent_of (t, s))
    if (t->spans[s].begin > call->first && !stays_below (p, &t->spans[s], call->path))
      return TRUE;
  return FALSE;
}

static void
end_calls (Paths *p, guint event)
{
  guint depth = 0;

  if (span_of (p->tape, event) == p->span)
    return;
  while (depth < p->open->len && !is_ended (p, open_at (p, depth), event))
    depth++;
  g_array_set_size (p->open, depth);
  p->span = span_of (p->tape, event);
}

static const char *
last_part (const char *path)
{
  const char *slash = strrchr (path, '/');

  return slash ? slash + 1 : path;
}

static void
open_call (Paths *p, guint event, guint depth, const char *path)
{
  TdLayer layer = { .first = event, .is_link = TRUE, .depth = (gint32)depth, .parent = -1 };
  gint32 index = (gint32)p->layers->len;

  layer.path = g_string_chunk_insert_const (p->strings, path);
  layer.name = last_part (layer.path);
  g_array_set_size (p->open, depth);
  g_array_append_val (p->open, index);
  g_array_append_val (p->layers, layer);
}

static void
take_event (Paths *p, guint event)
{
  g_auto (GStrv) parts = g_strsplit (td_iteration_get_link_path (p->iteration, event), "/", -1);
  g_autoptr (GString) prefix = g_string_new (NULL);
  guint depth = 0;

  end_calls (p, event);
  for (; parts[depth] && *parts[depth]; depth++)
    {
      g_string_append_printf (prefix, "%s%s", depth ? "/" : "", parts[depth]);
      if (depth >= p->open->len || strcmp (open_at (p, depth)->path, prefix->str) != 0)
        open_call (p, event, depth, prefix->str);
      g_array_index (p->layers, TdLayer, g_array_index (p->open, gint32, depth)).end
          = event + 1;
    }
  g_array_set_size (p->open, depth);
}

static void
add_scopes (Paths *p)
{
  const TdTapeIteration *t = p->tape;

  for (guint s = 0; s < t->n_spans; s++)
    {
      guint32 first = MIN (t->spans[s].begin, t->n_events);
      TdLayer layer = { .first = first,
                        .end = CLAMP (t->spans[s].end, first, t->n_events),
                        .depth = (gint32)s,
                        .site = t->spans[s].site,
                        .parent = -1 };

      layer.path = layer.name = td_iteration_get_string (p->iteration, t->spans[s].name);
      g_array_append_val (p->layers, layer);
    }
}

/* What is around comes first; of two that are as long, what the program has named. */
static gint
by_first (gconstpointer a, gconstpointer b)
{
  const TdLayer *x = a, *y = b;

  if (x->first != y->first)
    return x->first < y->first ? -1 : 1;
  if (x->end != y->end)
    return x->end > y->end ? -1 : 1;
  if (x->is_link != y->is_link)
    return x->is_link ? 1 : -1;
  return (x->depth > y->depth) - (x->depth < y->depth);
}

/* Parents, depths, and the innermost layer of each forward event. */
static void
nest (Paths *p, gint32 *of_event)
{
  TdLayer *layers = (TdLayer *)(gpointer)p->layers->data;
  gint32 around = -1;

  for (gint32 i = 0; i < (gint32)p->layers->len; i++)
    {
      while (around >= 0 && layers[around].end < layers[i].end)
        around = layers[around].parent;
      layers[i].parent = around;
      layers[i].depth = around >= 0 ? layers[around].depth + 1 : 0;
      around = i;
      for (guint e = layers[i].first; e < layers[i].end; e++)
        of_event[e] = i;
    }
}

TdLayer *
td__layers_from_paths (const TdIteration *iteration, GStringChunk *strings, gint32 *of_event,
                       guint *n_layers)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  Paths p = { iteration,
              t,
              strings,
              g_array_new (FALSE, TRUE, sizeof (TdLayer)),
              g_array_new (FALSE, TRUE, sizeof (gint32)),
              t->n_spans };

  for (guint e = 0; e < t->n_events; e++)
    of_event[e] = -1;
  for (guint e = 0; e < t->n_events; e++)
    if (t->events[e].phase == TD_TAPE_PHASE_FORWARD)
      take_event (&p, e);
  add_scopes (&p);
  g_array_sort (p.layers, by_first);
  nest (&p, of_event);
  g_array_free (p.open, TRUE);
  *n_layers = p.layers->len;
  return (TdLayer *)(gpointer)g_array_free (p.layers, FALSE);
}

gboolean
td_iteration_has_calls (const TdIteration *self)
{
  const TdTapeIteration *t = td_iteration_get_tape (self);

  for (guint s = 0; s < t->n_spans; s++)
    if (t->spans[s].kind == TD_TAPE_SPAN_LINK)
      return TRUE;
  return FALSE;
}
