/* VariableStatisticsPlot: mean, deviation and percentiles of every parameter over time.
 *
 * Chainer samples moments of time at random from a reservoir; here every other one is dropped
 * when there are too many, so that they stay evenly spread and a run repeats.  Percentiles are
 * those of at most 65,536 elements, evenly spread too.
 * *Source*: chainer.training.extensions.VariableStatisticsPlot.
 * SPDX-License-Identifier: MIT */
#include "chart.h"
#include "host-memory.h"
#include "moments.h"
#include "trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double percents[] = { 0, 0.13, 2.28, 15.87, 50, 84.13, 97.72, 99.87, 100 };
#define N_PERCENTS TD_ARRAY_LENGTH (percents)
enum
{
  N_ROW = 12, /* iteration, mean, std, percentiles: TD_ARRAY_LENGTH + 3 */
  ELEMENTS_MOST = 65536,
  TRACKS_MOST = 1 << 16
};
_Static_assert(N_PERCENTS + 3 == N_ROW, "a row holds all percentiles");

/* What is known of one array over time. */
typedef struct
{
  char *name; /* "l1/W data" */
  double *rows;
  int n, room;
} Track;

typedef struct
{
  TdVariableStatisticsPlotOpt o;
  char *filename;
  uint64_t link_id;
  TdTrigger *trigger;
  Track *tracks;
  int n_tracks;
  int64_t every; /* iterations from one sample to the next */
  struct
  {
    char *name;
    TdShape shape;
    void *rows;
  } * loaded; /* tracks of a snapshot, on their way in */
  int n_loaded;
} Plot;

typedef struct
{
  Plot *p;
  double iteration;
} Visit;

static Track *
track_of (Plot *p, const char *path, const char *what)
{
  char name[600];

  snprintf (name, sizeof name, "%.500s %s", path, what);
  for (int i = 0; i < p->n_tracks; i++)
    if (strcmp (p->tracks[i].name, name) == 0)
      return &p->tracks[i];
  p->tracks = td__xrealloc (p->tracks, (size_t)(p->n_tracks + 1) * sizeof *p->tracks);
  p->tracks[p->n_tracks] = (Track){ td__xstrdup (name), NULL, 0, 0 };
  return &p->tracks[p->n_tracks++];
}

static void
add_row (const Visit *v, const char *path, const char *what, TdVar *array)
{
  Track *track = track_of (v->p, path, what);
  double moments[TD_N_MOMENTS], *x, *row;
  int64_t n, step;

  x = td__host_doubles (array, &n, "VariableStatisticsPlot");
  if (x == NULL)
    return;
  if (track->n == track->room)
    {
      track->room = track->room > 0 ? 2 * track->room : 16;
      track->rows
          = td__xrealloc (track->rows, (size_t)track->room * N_ROW * sizeof *track->rows);
    }
  row = track->rows + (ptrdiff_t)track->n++ * N_ROW;
  td__moments (x, n, moments);
  step = (n + ELEMENTS_MOST - 1) / ELEMENTS_MOST;
  for (int64_t i = 0; i * step < n; i++)
    x[i] = x[i * step];
  td__percentiles (x, step > 0 ? (n + step - 1) / step : 0, percents, N_PERCENTS, row + 3);
  row[0] = v->iteration;
  row[1] = moments[0];
  row[2] = moments[1];
  free (x);
}

static void
visit_param (const char *path, TdVar *param, void *user)
{
  const Visit *v = user;

  if (v->p->o.report_data && !td__engine.has_error)
    add_row (v, path, "data", param);
  if (v->p->o.report_grad && td_grad (param) != NULL && !td__engine.has_error)
    add_row (v, path, "grad", td_grad (param));
}

/* Keep every other row of all tracks, once one is full. */
static void
thin_out (Plot *p)
{
  bool full = false;

  for (int i = 0; i < p->n_tracks; i++)
    full = full || p->tracks[i].n >= p->o.max_sample_size;
  if (!full)
    return;
  p->every *= 2;
  for (int i = 0; i < p->n_tracks; i++)
    {
      Track *t = &p->tracks[i];
      int kept = 0;

      for (int k = 0; k < t->n; k++)
        if (fmod (t->rows[(ptrdiff_t)k * N_ROW], (double)p->every) == 0)
          memmove (t->rows + (ptrdiff_t)kept++ * N_ROW, t->rows + (ptrdiff_t)k * N_ROW,
                   N_ROW * sizeof *t->rows);
      t->n = kept;
    }
}

/* --- drawing --- */

/* Lines of one panel: two deviations and the mean round it, then the percentiles. */
enum
{
  N_LINES = N_ROW + 1
};

static void
fill_panel (const Plot *p, const Track *t, TdPanel *panel, TdSeries *series, double *columns)
{
  int n_lines = 0, n = t->n;

  for (int k = 0; k < n; k++)
    {
      const double *row = t->rows + (ptrdiff_t)k * N_ROW;

      columns[k] = row[0];
      for (int c = 1; c < N_ROW; c++)
        columns[c * n + k] = row[c];
      columns[2 * n + k] = row[1] - row[2];
      columns[N_ROW * n + k] = row[1] + row[2];
    }
  for (int c = 3; c < N_ROW; c++)
    series[n_lines++] = (TdSeries){
      c == 3 ? "percentiles" : NULL, columns, columns + (ptrdiff_t)c * n, n, 5, 0.7
    };
  if (p->o.plot_std)
    {
      series[n_lines++]
          = (TdSeries){ "mean ± std", columns, columns + (ptrdiff_t)2 * n, n, 1, 1 };
      series[n_lines++] = (TdSeries){ NULL, columns, columns + (ptrdiff_t)N_ROW * n, n, 1, 1 };
    }
  if (p->o.plot_mean)
    series[n_lines++] = (TdSeries){ "mean", columns, columns + n, n, 0, 1 };
  *panel = (TdPanel){ .title = t->name,
                      .x_label = "iteration",
                      .series = series,
                      .n_series = n_lines,
                      .grid = p->o.grid,
                      .legend = true };
}

static TdStatus
draw (const Plot *p, TdTrainer *t)
{
  TdPanel *panels = td__xcalloc ((size_t)p->n_tracks, sizeof *panels);
  TdSeries *series = td__xcalloc ((size_t)p->n_tracks * N_LINES, sizeof *series);
  double **columns = td__xcalloc ((size_t)p->n_tracks, sizeof *columns);
  TdText svg = { NULL, 0, 0 };
  TdStatus status;
  char name[1024];

  for (int i = 0; i < p->n_tracks; i++)
    {
      columns[i] = td__xcalloc ((size_t)p->tracks[i].n * (N_ROW + 1), sizeof (double));
      fill_panel (p, &p->tracks[i], &panels[i], series + (ptrdiff_t)i * N_LINES, columns[i]);
    }
  td__chart_svg (&svg, panels, p->n_tracks);
  td__file_name (p->filename, t->updater, name, sizeof name);
  status = td__trainer_write (t, name, svg.text, svg.n, "VariableStatisticsPlot");
  for (int i = 0; i < p->n_tracks; i++)
    free (columns[i]);
  free (columns);
  free (series);
  free (panels);
  free (svg.text);
  return status;
}

/* --- the extension --- */

static TdStatus
plot_call (void *self, TdTrainer *t)
{
  Plot *p = self;
  TdLink *link = td__link_by_id (p->link_id);
  Visit v = { p, (double)t->updater->iteration };

  if (link == NULL)
    return td__fail (TD_ERR_STATE, "VariableStatisticsPlot", NULL, "its link was freed");
  if (t->updater->iteration % p->every == 0)
    {
      td_link_each_param (link, visit_param, &v);
      thin_out (p);
    }
  if (td__engine.has_error)
    return td__error_status ();
  return td_trigger_call (p->trigger, t) && p->n_tracks > 0 ? draw (p, t) : TD_OK;
}

static void
tracks_clear (Plot *p)
{
  for (int i = 0; i < p->n_tracks; i++)
    {
      free (p->tracks[i].name);
      free (p->tracks[i].rows);
    }
  free (p->tracks);
  p->tracks = NULL;
  p->n_tracks = 0;
}

static void
loaded_clear (Plot *p)
{
  for (int i = 0; i < p->n_loaded; i++)
    {
      free (p->loaded[i].name);
      free (p->loaded[i].rows);
    }
  free (p->loaded);
  p->loaded = NULL;
  p->n_loaded = 0;
}

/* Everything of a snapshot fits: its tracks take the place of those that are there. */
static void
tracks_loaded (void *self)
{
  Plot *p = self;

  tracks_clear (p);
  for (int i = 0; i < p->n_loaded; i++)
    {
      int n = p->loaded[i].shape.ndim == 2 && p->loaded[i].shape.dim[1] == N_ROW
                  ? (int)p->loaded[i].shape.dim[0]
                  : 0;
      Track *track;

      if (p->loaded[i].name == NULL || n == 0)
        continue;
      p->tracks = td__xrealloc (p->tracks, (size_t)(p->n_tracks + 1) * sizeof *p->tracks);
      track = &p->tracks[p->n_tracks++];
      *track = (Track){ p->loaded[i].name, p->loaded[i].rows, n, n };
      p->loaded[i].name = NULL;
      p->loaded[i].rows = NULL;
    }
  loaded_clear (p);
}

static void
serialize_track (TdSerializer *s, int i, char **name, TdShape *shape, void **rows)
{
  char key[40];

  snprintf (key, sizeof key, "_track_%d", i);
  td_serializer_enter (s, key);
  td_serialize_text (s, "name", name);
  td_serialize_array (s, "rows", TD_F64, shape, rows);
  td_serializer_leave (s);
}

static void
plot_serialize (void *self, TdSerializer *s)
{
  Plot *p = self;
  int64_t n = p->n_tracks;

  td_serializer_enter (s, "_trigger");
  td__trigger_serialize (p->trigger, s);
  td_serializer_leave (s);
  td_serialize_int (s, "_every", &p->every);
  if (!td_serializer_loading (s))
    {
      td_serialize_int (s, "_n_tracks", &n);
      for (int i = 0; i < p->n_tracks; i++)
        {
          TdShape shape = { 2, { p->tracks[i].n, N_ROW } };
          void *rows = p->tracks[i].rows;

          serialize_track (s, i, &p->tracks[i].name, &shape, &rows);
        }
      return;
    }
  if (!td_serializer_look_int (s, "_n_tracks", &n) || n < 0 || n > TRACKS_MOST)
    {
      td_serializer_refuse (s, "_n_tracks", "a number of tracks expected");
      return;
    }
  loaded_clear (p);
  p->loaded = td__xcalloc ((size_t)n, sizeof *p->loaded);
  p->n_loaded = (int)n;
  for (int i = 0; i < p->n_loaded; i++)
    serialize_track (s, i, &p->loaded[i].name, &p->loaded[i].shape, &p->loaded[i].rows);
  td_serializer_finally (s, tracks_loaded, p);
}

static void
plot_free (void *self)
{
  Plot *p = self;

  tracks_clear (p);
  loaded_clear (p);
  free (p->filename);
  td__trigger_drop (p->trigger);
}

static const TdExtensionClass plot_class = { .size = sizeof (TdExtensionClass),
                                             .name = "VariableStatisticsPlot",
                                             .self_bytes = sizeof (Plot),
                                             .priority = TD_PRIORITY_READER,
                                             .call = plot_call,
                                             .serialize = plot_serialize,
                                             .free = plot_free };

TdExtension *
td_ext_variable_statistics_plot_ (TdLink *link, TdVariableStatisticsPlotOpt o)
{
  TdTrigger *trigger;
  TdExtension *x;
  Plot *p;

  if (td__check_thread ("td_ext_variable_statistics_plot") != TD_OK
      || !td__link_usable (link, "td_ext_variable_statistics_plot", NULL))
    return td__extension_inert ();
  if (o.filename == NULL || o.max_sample_size < 2)
    {
      td__fail (TD_ERR_ARG, "td_ext_variable_statistics_plot", NULL,
                "a file name and at least 2 samples expected");
      return td__extension_inert ();
    }
  trigger = td__trigger_or (o.trigger, 1, "epoch", "td_ext_variable_statistics_plot");
  if (trigger == NULL)
    return td__extension_inert ();
  x = td_extension_new (&plot_class);
  p = x->self;
  p->o = o;
  p->filename = td__xstrdup (o.filename);
  p->link_id = link->id;
  p->trigger = trigger;
  p->every = 1;
  return x;
}
