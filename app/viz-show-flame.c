/*
 * tapedeck show: what the layers of an iteration cost.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "viz-show.h"

gboolean
td__show_flame_write (Show *s, TdSink *sink, GError **error)
{
  g_autoptr (TdFlame) flame = td_flame_new (s->it);

  td_flame_print (flame, s->flame_by, s->format, sink);
  return TRUE;
}

/* With --node, of that layer only. */
TdScene *
td__show_flame_draw (Show *s, GError **error)
{
  g_autoptr (TdFlame) flame = td_flame_new (s->it);
  gint node = s->node ? td_flame_find (flame, s->key, TD_FLAME_ALL) : -1;
  TdFlameLook look
      = { .size = s->flame_by, .zoom = MAX (node, 0), .cursor = -1, .title = TRUE };

  return td_flame_scene (flame, &look, &s->panel);
}

/* What --by names belongs to one kind of view. */
gboolean
td__show_by_fits (const Show *s)
{
  TdHoldersBy by;
  TdFlameSize size;

  return !s->by_given
         || (strcmp (s->view, "flame") == 0 ? td_flame_size_find (s->by_given, &size)
                                            : td_holders_by_find (s->by_given, &by));
}
