/*
 * tapedeck show: what the layers of an iteration cost.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "viz-show.h"

/* What --by names: of layers, and of the calls of a memory snapshot. */
static const struct
{
  const char *name;
  TdFlameKind kind;
  TdFlameSize size;
} ways[] = {
  { "time", TD_FLAME_LAYERS, TD_FLAME_TIME },     { "bytes", TD_FLAME_LAYERS, TD_FLAME_BYTES },
  { "peak", TD_FLAME_PEAK, TD_FLAME_BYTES },      { "end", TD_FLAME_END, TD_FLAME_BYTES },
  { "bytes-time", TD_FLAME_PEAK, TD_FLAME_TIME },
};

gboolean
td__show_flame_by (Show *s, const char *name)
{
  for (gsize i = 0; i < G_N_ELEMENTS (ways); i++)
    if (strcmp (name, ways[i].name) == 0)
      {
        s->flame_kind = ways[i].kind;
        s->flame_by = ways[i].size;
        return TRUE;
      }
  return FALSE;
}

static TdFlame *
make_flame (Show *s, GError **error)
{
  gboolean of_calls = td_session_is_snapshot (s->session);
  TdFlame *flame;

  if (of_calls && !s->by_given)
    td__show_flame_by (s, "peak");
  if (of_calls != (s->flame_kind != TD_FLAME_LAYERS))
    {
      td__show_trouble (error, of_calls
                                   ? "of a memory snapshot the view flame is by peak, end or "
                                     "bytes-time"
                                   : "the view flame is by time or bytes; peak, end and "
                                     "bytes-time are of memory snapshots");
      return NULL;
    }
  if (!of_calls)
    return td_flame_new (s->it);
  flame = td_flame_stacks_new (s->it, s->flame_kind);
  if (!flame)
    td__show_trouble (error, "the snapshot has no stacks");
  return flame;
}

gboolean
td__show_flame_write (Show *s, TdSink *sink, GError **error)
{
  g_autoptr (TdFlame) flame = make_flame (s, error);

  if (!flame)
    return FALSE;
  td_flame_print (flame, s->flame_by, s->format, sink);
  return TRUE;
}

/* With --node, of that layer only. */
TdScene *
td__show_flame_draw (Show *s, GError **error)
{
  g_autoptr (TdFlame) flame = make_flame (s, error);
  gint node = flame && s->node ? td_flame_find (flame, s->key, TD_FLAME_ALL) : -1;
  TdFlameLook look
      = { .size = s->flame_by, .zoom = MAX (node, 0), .cursor = -1, .title = TRUE };

  return flame ? td_flame_scene (flame, &look, &s->panel) : NULL;
}

/* What --by names belongs to one kind of view. */
gboolean
td__show_by_fits (const Show *s)
{
  Show other = { 0 };
  TdHoldersBy by;

  return !s->by_given
         || (strcmp (s->view, "flame") == 0 ? td__show_flame_by (&other, s->by_given)
                                            : td_holders_by_find (s->by_given, &by));
}
