/* What the strips show, and the flags that go to notes. SPDX-License-Identifier: MIT */
#include "pages/td-strips.h"

#include "schedule/td-curve.h"

struct _TdStrips
{
  TdPage parent;
  TdNotebook *notebook; /* NULL: none */
};

G_DEFINE_FINAL_TYPE (TdStrips, td_strips, TD_TYPE_PAGE)

static TdScene *
make_iterations (TdPage *page, const TdPanelView *view)
{
  TdNotebook *notebook = TD_STRIPS (page)->notebook;
  TdTapeReader *reader = td_page_get_reader (page);
  guint n = notebook ? td_notebook_get_n_notes (notebook) : 0;
  g_autofree TdStripFlag *flags = g_new (TdStripFlag, MAX (n, 1));

  for (guint i = 0; i < n; i++)
    {
      const TdNote *note = td_notebook_get_note (notebook, i);
      flags[i] = (TdStripFlag){ note->iteration, note->text };
    }
  return reader ? td_deck_scene_iterations (td_session_get_curves (td_page_get_session (page)),
                                            reader, 0, 0, flags, n, view)
                : NULL;
}

static TdScene *
make_events (TdPage *page, const TdPanelView *view)
{
  return td_deck_scene_events (td_page_get_expected (page), FALSE, view);
}

static TdPress
press_iterations (TdPage *page, const char *name, const TdSceneHit *hit, GtkWidget *view)
{
  TdNotebook *notebook = TD_STRIPS (page)->notebook;
  if (!hit || hit->tag != TD_TAG_ROW)
    return TD_PRESS_FOLLOW;
  if (notebook && hit->data >= 0 && hit->data < td_notebook_get_n_notes (notebook))
    {
      const TdNote *note = td_notebook_get_note (notebook, (guint)hit->data);
      td_session_set_moment (td_page_get_session (page), note->iteration, note->event);
    }
  return TD_PRESS_TAKEN;
}

static const TdPicture pictures[] = {
  { "iterations-strip", "Iterations", "Iterations, loss and memory", make_iterations,
    press_iterations, .spans = TRUE, .named = TRUE },
  { "events-strip", "Events", "Events of the iteration", make_events, .axis = TD_AXIS_EVENTS,
    .named = TRUE },
};

void
td_strips_set_notebook (TdStrips *self, TdNotebook *notebook)
{
  if (self->notebook)
    g_signal_handlers_disconnect_by_data (self->notebook, self);
  if (g_set_object (&self->notebook, notebook) && notebook)
    g_signal_connect_swapped (notebook, "changed", G_CALLBACK (td_page_invalidate), self);
  td_page_invalidate (TD_PAGE (self));
}

static void
td_strips_dispose (GObject *object)
{
  td_strips_set_notebook (TD_STRIPS (object), NULL);
  G_OBJECT_CLASS (td_strips_parent_class)->dispose (object);
}

static void
td_strips_class_init (TdStripsClass *klass)
{
  TdPageClass *class = TD_PAGE_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = td_strips_dispose;
  class->name = "strips";
  class->title = "Strips";
  class->pictures = pictures;
  class->n_pictures = G_N_ELEMENTS (pictures);
}

static void
td_strips_init (TdStrips *self)
{
}

TdStrips *
td_strips_new (void)
{
  return g_object_new (TD_TYPE_STRIPS, NULL);
}
