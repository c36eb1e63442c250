/*
 * Histories of watched things. Each iteration is read once for all of them: numbers are kept,
 * iterations are not.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tape/td-watch-history.h"

#include "tape/td-mix.h"

#include <math.h>

struct TdWatchHistory
{
  TdTapeReader *reader;
  GHashTable *norms; /* key mixed with the iteration -> double */
};

static gint64
place_of (guint64 key, gint64 iteration)
{
  return (gint64)td__mix (key, (guint64)iteration);
}

TdWatchHistory *
td_watch_history_new (TdTapeReader *reader)
{
  TdWatchHistory *self = g_new (TdWatchHistory, 1);

  self->reader = reader;
  self->norms = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_free);
  return self;
}

void
td_watch_history_free (TdWatchHistory *self)
{
  if (!self)
    return;
  g_hash_table_unref (self->norms);
  g_free (self);
}

/* Of a variable itself, or of an event's first output. */
static gint64
find_var (const TdTapeIteration *it, guint64 key)
{
  for (guint v = 0; v < it->n_vars; v++)
    if (it->vars[v].key == key)
      return v;
  for (guint e = 0; e < it->n_events; e++)
    if (it->events[e].key == key && it->events[e].n_out > 0)
      return it->outs[it->events[e].first_out];
  return -1;
}

static double
norm_of (const TdTapeIteration *it, guint64 key)
{
  gint64 var = find_var (it, key);

  for (guint i = 0; var >= 0 && i < it->n_stats; i++)
    if (it->stats[i].var == (guint)var)
      return it->stats[i].l2;
  return NAN;
}

static gboolean
is_read (const TdWatchHistory *self, const guint64 *keys, guint n_keys, gint64 iteration)
{
  for (guint i = 0; i < n_keys; i++)
    {
      gint64 place = place_of (keys[i], iteration);

      if (!g_hash_table_contains (self->norms, &place))
        return FALSE;
    }
  return TRUE;
}

static void
read_one (TdWatchHistory *self, const guint64 *keys, guint n_keys, gint64 iteration)
{
  char error[200];
  const TdTapeIteration *it
      = td_tape_iteration_load (self->reader, (guint64)iteration, error, sizeof error);

  for (guint i = 0; i < n_keys; i++)
    {
      gint64 place = place_of (keys[i], iteration);
      double norm = it ? norm_of (it, keys[i]) : NAN;

      g_hash_table_replace (self->norms, g_memdup2 (&place, sizeof place),
                            g_memdup2 (&norm, sizeof norm));
    }
  td_tape_iteration_free (it);
}

guint
td_watch_history_read (TdWatchHistory *self, const guint64 *keys, guint n_keys,
                       gint64 iteration, guint n, gint64 budget_us)
{
  gint64 until = g_get_monotonic_time () + budget_us;
  guint missing = 0;

  for (gint64 i = iteration; n_keys > 0 && i >= 0 && i > iteration - (gint64)n; i--)
    if (!is_read (self, keys, n_keys, i))
      {
        if (missing > 0 || g_get_monotonic_time () > until)
          missing++;
        else
          read_one (self, keys, n_keys, i);
      }
  return missing;
}

double
td_watch_history_get (const TdWatchHistory *self, guint64 key, gint64 iteration)
{
  gint64 place = place_of (key, iteration);
  const double *norm = g_hash_table_lookup (self->norms, &place);

  return norm ? *norm : NAN;
}

/* ---- the picture ---- */

static TdScenePoint
point_at (const TdPanelView *view, guint i, guint n, double norm, double lo, double hi)
{
  double w = MAX (view->width - 10, 1), h = MAX (view->height - 8, 1);

  return (TdScenePoint){ 4 + w * i / MAX (n - 1, 1),
                         4 + h * (hi > lo ? 1 - (norm - lo) / (hi - lo) : 0.5) };
}

TdScene *
td_watch_history_scene (const TdWatchHistory *self, guint64 key, guint n,
                        const TdPanelView *view)
{
  TdSceneBuilder *b = td_scene_builder_new (view->width, view->height);
  g_autofree TdScenePoint *line = g_new (TdScenePoint, n);
  TdStyle style = { .stroke = TD_ROLE_CURVE, .stroke_width = 1.5 };
  TdStyle dot = { .fill = TD_ROLE_ACCENT };
  double lo = INFINITY, hi = -INFINITY;
  gint64 first = view->iteration - (gint64)n + 1;
  int n_points = 0;

  for (guint i = 0; i < n; i++)
    {
      double norm = td_watch_history_get (self, key, first + i);

      if (isfinite (norm))
        {
          lo = MIN (lo, norm);
          hi = MAX (hi, norm);
        }
    }
  for (guint i = 0; i < n; i++)
    {
      double norm = td_watch_history_get (self, key, first + i);

      if (isfinite (norm))
        line[n_points++] = point_at (view, i, n, norm, lo, hi);
      if (n_points > 1 && (i + 1 == n || !isfinite (norm)))
        td_scene_add_line (b, line, n_points, &style);
      if (i + 1 == n && isfinite (norm))
        td_scene_add_shape (
            b, TD_PRIM_ELLIPSE,
            (TdSceneRect){ line[n_points - 1].x - 3, line[n_points - 1].y - 3, 6, 6 }, 0, &dot);
      if (!isfinite (norm))
        n_points = 0;
    }
  return td_scene_builder_end (b);
}
