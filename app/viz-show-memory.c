/*
 * tapedeck show: what was reported, and memory: blocks, who holds what, what grows.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "memory/td-growth.h"
#include "memory/td-memory.h"
#include "memory/td-retained.h"
#include "schedule/td-curve.h"
#include "viz-show.h"

char *
td__show_curves_print (Show *s, GError **error)
{
  TdCurves *curves = td_curves_new ();
  char *text;

  td_curves_update (curves, s->reader);
  text = td_curves_print (curves, s->range, s->format);
  td_curves_free (curves);
  return text;
}

TdScene *
td__show_curves_draw (Show *s, GError **error)
{
  TdCurves *curves = td_curves_new ();
  TdScene *scene;

  td_curves_update (curves, s->reader);
  scene = td_curves_scene (curves, &s->panel);
  td_curves_free (curves);
  return scene;
}

gboolean
td__show_memory_write (Show *s, TdSink *sink, GError **error)
{
  TdMemoryProfile *profile = td_memory_profile_new (s->it);

  td_memory_events_print (s->it, profile, s->format, sink);
  td_memory_profile_free (profile);
  return TRUE;
}

TdScene *
td__show_memory_draw (Show *s, GError **error)
{
  TdMemoryProfile *profile = td_memory_profile_new (s->it);
  TdScene *scene = td_memory_scene_events (s->it, profile, NULL, 0, &s->panel);

  td_memory_profile_free (profile);
  return scene;
}

static gboolean
has_blocks (Show *s, GError **error)
{
  const TdTapeIteration *t = td_iteration_get_tape (s->it);

  return t->n_memory > 0 || t->n_blocks > 0
         || td__show_trouble (
             error, "no allocation records on this tape: nothing for the view blocks");
}

/* With --node, that one alone. */
gboolean
td__show_blocks_write (Show *s, TdSink *sink, GError **error)
{
  if (!has_blocks (s, error))
    return FALSE;
  return td_memory_blocks_print (s->it, s->event, s->node ? s->key : 0, s->format, sink)
         || td__show_trouble (error, "no block of that node is there at this event");
}

gboolean
td__show_find_address (Show *s)
{
  g_autoptr (GArray) blocks = td_memory_blocks_at (s->it, s->event);
  guint64 address;
  gint i;

  if (strncmp (s->node, "0x", 2) != 0
      || !g_ascii_string_to_unsigned (s->node + 2, 16, 0, G_MAXUINT64, &address, NULL))
    return FALSE;
  i = td_memory_blocks_find (blocks, address);
  if (i >= 0)
    s->key = g_array_index (blocks, TdMemoryBlock, i).key;
  return i >= 0 && s->key != 0;
}

TdScene *
td__show_blocks_draw (Show *s, GError **error)
{
  return has_blocks (s, error) ? td_memory_scene_blocks (s->it, &s->panel) : NULL;
}

/* There are none in every iteration: of those that there are, the next on both sides. */
static void
say_no_holders (const Show *s, TdRange range, GError **error)
{
  TdTapeSummaries all = td_tape_reader_summaries (s->reader);
  g_autofree char *words = td_range_describe (range);
  g_autoptr (GString) nearest = g_string_new (NULL);
  gint64 before = -1, after = -1;

  for (guint i = 0; i < all.n && after < 0; i++)
    {
      gint64 number = (gint64)all.rows[i].number;

      if (!(all.rows[i].flags & TD_TAPE_ITERATION_HELD) || td_range_has (range, number)
          || !td_tape_reader_stored (s->reader, i))
        continue;
      *(number < range.first ? &before : &after) = number;
    }
  if (before >= 0)
    g_string_append_printf (nearest, "the last before are of iteration %" G_GINT64_FORMAT,
                            before);
  if (after >= 0)
    g_string_append_printf (nearest, "%sthe first after are of iteration %" G_GINT64_FORMAT,
                            before >= 0 ? ", " : "", after);
  if (nearest->len == 0)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
                 "no reference records on this tape: nothing for the view %s", s->view);
  else
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
                 "no reference records in %s: nothing for the view %s (%s)", words, s->view,
                 nearest->str);
}

static TdHolders *
holders (Show *s, GError **error)
{
  TdRange range = { td_range_is_all (s->range) ? 0 : s->range.first, s->iteration + 1 };
  TdHolders *holders = td_range_is_all (s->range)
                           ? td_holders_new_by (s->reader, s->iteration, s->by)
                           : td_holders_new_in (s->reader, range, s->by);

  if (!holders)
    say_no_holders (s, range, error);
  return holders;
}

char *
td__show_holders_print (Show *s, GError **error)
{
  g_autoptr (TdHolders) h = holders (s, error);

  if (!h)
    return NULL;
  return strcmp (s->view, "growth") == 0 ? td_growth_print (h, s->format)
                                         : td_holders_print (h, s->format);
}

TdScene *
td__show_holders_draw (Show *s, GError **error)
{
  g_autoptr (TdHolders) h = holders (s, error);
  g_autoptr (TdRetained) r = NULL;

  if (!h)
    return NULL;
  if (strcmp (s->view, "growth") != 0)
    return td_holders_scene (h, &s->panel);
  if (td_retained_find_iteration (s->reader, s->iteration) >= 0)
    r = td_retained_new (s->reader, s->iteration);
  return td_growth_rows_scene (h, r, &s->panel);
}

static TdRetained *
retained (Show *s, GError **error)
{
  TdRetained *r = td_retained_new (s->reader, s->iteration);

  if (!r)
    td__show_trouble (
        error, "this tape does not say what refers to what: nothing for the view retained");
  return r;
}

char *
td__show_retained_print (Show *s, GError **error)
{
  g_autoptr (TdRetained) r = retained (s, error);

  return r ? td_retained_print (r, s->format) : NULL;
}

TdScene *
td__show_retained_draw (Show *s, GError **error)
{
  g_autoptr (TdRetained) r = retained (s, error);

  return r ? td_retained_scene (r, &s->panel) : NULL;
}
