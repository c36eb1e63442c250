/* A tape as a trace: operations inside of their layers, what devices ran, memory by category,
 * gradients and reports over time.
 *
 * Operations may overlap, as those of several threads do.  Slices of a row may not, so that
 * there are as many rows of the host as operations ran at once.
 * SPDX-License-Identifier: MIT */
#include "tape-export.h"

#include "../format/tape-private.h"
#include "td-tape-writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_DEPTH = 64,
  MAX_ROWS = 64, /* of the host, and of each stream; beyond that slices share the last */
  MAX_DEVICES = 256
};

/** A layer that is open. */
typedef struct
{
  uint32_t span; /* TD_TAPE_NONE: it is a piece of a path */
  char name[128];
} Layer;

/** A row of slices. */
typedef struct
{
  uint32_t device, stream, nth;
  uint64_t track;
  uint64_t end_ns; /* of its last slice */
  unsigned depth;
  Layer *layers; /* of the host; MAX_DEPTH */
} Row;

typedef struct
{
  TdTapeReader *r;
  TapeTraceOut *o;
  const TdTapeIteration *it;
  Row *rows;
  uint64_t n_rows;
  TapeMap values; /* hash of a counter's name -> track */
  uint64_t n_tracks, n_flows;
  uint64_t live[MAX_DEVICES][TD_TAPE_N_CATEGORIES];
  uint64_t said[MAX_DEVICES][TD_TAPE_N_CATEGORIES]; /* of live, + 1; 0: nothing */
  uint32_t n_devices;                               /* devices have lower numbers */
  uint32_t *stats;                                  /* of each variable, + 1: its last */
  uint64_t iterations;                              /* the row of iterations */
  bool failed;
} Export;

/* --------------------------------------------------------------------------------- rows */

static const char *
device_name (const Export *x, uint32_t device, char *out, size_t n)
{
  const char *name = "";

  for (uint32_t i = 0; i < x->it->n_devices; i++)
    if (x->it->devices[i].device == device)
      name = td_tape_reader_string (x->r, x->it->devices[i].name);
  if (device == 0)
    snprintf (out, n, "host");
  else if (*name != '\0')
    snprintf (out, n, "%.*s", (int)strcspn (name, " "), name);
  else
    snprintf (out, n, "device %" PRIu32, device);
  return out;
}

static Row *
add_row (Export *x, uint32_t device, uint32_t stream, uint32_t nth)
{
  Row *rows = realloc (x->rows, (x->n_rows + 1) * sizeof *rows);
  char of[100], name[200];
  Row *row;

  if (rows == NULL)
    return NULL;
  x->rows = rows;
  row = &rows[x->n_rows];
  *row = (Row){ .device = device, .stream = stream, .nth = nth, .track = ++x->n_tracks };
  row->layers = device == 0 ? malloc (MAX_DEPTH * sizeof *row->layers) : NULL;
  if (device == 0 && row->layers == NULL)
    return NULL;
  x->n_rows++;
  device_name (x, device, of, sizeof of);
  if (device == 0 && nth == 0)
    snprintf (name, sizeof name, "operations");
  else if (device == 0)
    snprintf (name, sizeof name, "operations (%" PRIu32 ")", nth + 1);
  else
    snprintf (name, sizeof name, "%s stream %" PRIu32, of, stream);
  x->o->track (x->o, row->track, TAPE_TRACK_THREAD, name);
  return row;
}

/* A row where nothing lies at this time any more. */
static Row *
row_at (Export *x, uint32_t device, uint32_t stream, uint64_t start_ns)
{
  uint32_t nth = 0;

  for (uint64_t i = 0; i < x->n_rows; i++)
    {
      Row *row = &x->rows[i];

      if (row->device != device || row->stream != stream)
        continue;
      if (row->end_ns <= start_ns || row->nth + 1 >= MAX_ROWS)
        return row;
      nth = row->nth + 1;
    }
  return add_row (x, device, stream, nth);
}

/* ------------------------------------------------------------------------------- layers */

static void
set_layer (Layer *layer, uint32_t span, const char *name, size_t n)
{
  layer->span = span;
  snprintf (layer->name, sizeof layer->name, "%.*s", (int)(n < 120 ? n : 120), name);
}

/* The pieces of a path. */
static unsigned
add_path (Layer *layers, unsigned depth, const char *path)
{
  while (*path != '\0' && depth < MAX_DEPTH)
    {
      const size_t n = strcspn (path, "/");

      if (n > 0)
        set_layer (&layers[depth++], TD_TAPE_NONE, path, n);
      path += n + (path[n] == '/');
    }
  return depth;
}

static const char *
span_name (const Export *x, const TdTapeSpan *s)
{
  const char *path = td_tape_reader_path_text (x->r, s->path), *slash = strrchr (path, '/');
  const char *name = td_tape_reader_string (x->r, s->name);

  if (s->kind == TD_TAPE_SPAN_LINK && *path != '\0')
    return slash != NULL ? slash + 1 : path;
  return *name != '\0' ? name : "scope";
}

/* The calls that an event lies in, outermost first. */
static unsigned
add_spans (const Export *x, Layer *layers, unsigned depth, uint32_t span)
{
  uint32_t chain[MAX_DEPTH];
  unsigned n = 0;

  for (; span < x->it->n_spans && n < MAX_DEPTH; span = x->it->spans[span].parent)
    chain[n++] = span;
  while (n-- > 0 && depth < MAX_DEPTH)
    {
      const char *name = span_name (x, &x->it->spans[chain[n]]);

      set_layer (&layers[depth++], chain[n], name, strlen (name));
    }
  return depth;
}

/* Where the layer of an event is said: backward has that of its forward. */
static const TdTapeEvent *
home_of (const Export *x, const TdTapeEvent *e)
{
  return e->twin >= 0 && (uint32_t)e->twin < x->it->n_events ? &x->it->events[e->twin] : e;
}

static unsigned
layers_of (const Export *x, const TdTapeEvent *e, Layer *layers)
{
  const TdTapeEvent *home = home_of (x, e);
  const char *phase = td_tape_phase_name (e->phase);

  set_layer (&layers[0], TD_TAPE_NONE, phase, strlen (phase));
  if (home->span < x->it->n_spans)
    return add_spans (x, layers, 1, home->span);
  return add_path (layers, 1, td_tape_reader_path_text (x->r, home->path));
}

static void
close_layers (Export *x, Row *row, unsigned depth)
{
  while (row->depth > depth)
    {
      row->depth--;
      x->o->close (x->o, row->track, row->end_ns);
    }
}

/* Close what an event is not in, and open what it is. */
static void
enter (Export *x, Row *row, const TdTapeEvent *e, uint64_t start_ns)
{
  Layer layers[MAX_DEPTH];
  const unsigned n = layers_of (x, e, layers);
  unsigned same = 0;

  while (same < n && same < row->depth && layers[same].span == row->layers[same].span
         && strcmp (layers[same].name, row->layers[same].name) == 0)
    same++;
  close_layers (x, row, same);
  for (; row->depth < n; row->depth++)
    {
      row->layers[row->depth] = layers[row->depth];
      x->o->open (x->o, row->track, start_ns,
                  &(TapeSliceText){ .name = layers[row->depth].name,
                                    .category = row->depth == 0 ? "phase" : "layer",
                                    .layer = "",
                                    .site = "",
                                    .attributes = "",
                                    .iteration = x->it->number });
    }
}

/* ------------------------------------------------------------------------------- values */

static void
put_value (Export *x, const char *name, TapeTrackKind kind, uint64_t ns, double value)
{
  const uint64_t hash = td_tape_hash_bytes (kind, name, strlen (name));
  uint32_t track = td__tape_map_find (&x->values, hash, NULL, NULL);

  if (track == 0)
    {
      track = (uint32_t)++x->n_tracks;
      if (!td__tape_map_add (&x->values, hash, track))
        x->failed = true;
      x->o->track (x->o, track, kind, name);
    }
  x->o->value (x->o, track, kind, name, ns, value);
}

static uint64_t *
live_of (Export *x, uint32_t device, unsigned category)
{
  if (device >= x->n_devices)
    x->n_devices = device + 1;
  return &x->live[device][category];
}

static void
begin_memory (Export *x)
{
  memset (x->live, 0, sizeof x->live);
  for (uint32_t i = 0; i < x->it->n_blocks; i++)
    {
      const TdTapeBlock *b = &x->it->blocks[i];

      if (b->device < MAX_DEVICES && b->category < TD_TAPE_N_CATEGORIES)
        *live_of (x, b->device, b->category) += b->bytes;
    }
}

/* Say what differs from what was said. */
static void
say_memory (Export *x, uint64_t ns)
{
  for (uint32_t d = 0; d < x->n_devices; d++)
    for (unsigned c = 0; c < TD_TAPE_N_CATEGORIES; c++)
      if (x->live[d][c] + 1 != x->said[d][c] && (x->said[d][c] != 0 || x->live[d][c] != 0))
        {
          char of[100], name[200];

          snprintf (name, sizeof name, "memory %s %s", device_name (x, d, of, sizeof of),
                    td_tape_category_name (c));
          put_value (x, name, TAPE_TRACK_BYTES, ns, (double)x->live[d][c]);
          x->said[d][c] = x->live[d][c] + 1;
        }
}

/* Records of memory up to an event. */
static void
take_memory (Export *x, uint32_t *next, uint32_t event, uint64_t ns)
{
  const uint32_t first = *next;

  for (; *next < x->it->n_memory && x->it->memory[*next].event <= event; ++*next)
    {
      const TdTapeMemory *m = &x->it->memory[*next];
      uint64_t *live
          = m->category < TD_TAPE_N_CATEGORIES ? live_of (x, m->device, m->category) : NULL;

      if (live != NULL && m->kind == TD_TAPE_MEMORY_ALLOC)
        *live += m->bytes;
      else if (live != NULL && m->kind == TD_TAPE_MEMORY_FREE)
        *live -= m->bytes < *live ? m->bytes : *live;
    }
  if (*next > first)
    say_memory (x, ns);
}

/* When an event began; at the end, or of no event: when the iteration was over. */
static uint64_t
time_of (const Export *x, uint32_t event, uint64_t start_ns)
{
  const TdTapeIteration *it = x->it;

  return start_ns
         + (event < it->n_events && it->event_start_ns != NULL ? it->event_start_ns[event]
                                                               : it->duration_ns);
}

static void
put_gradients (Export *x, uint64_t start_ns)
{
  const TdTapeIteration *it = x->it;

  for (uint32_t i = 0; i < it->n_grads; i++)
    {
      const TdTapeGrad *g = &it->grads[i];
      const uint32_t at = g->gradient < it->n_vars ? x->stats[g->gradient] : 0;
      char name[400];

      if (at == 0)
        continue;
      snprintf (name, sizeof name, "gradient %.300s", td_tape_reader_string (x->r, g->path));
      put_value (x, name, TAPE_TRACK_NUMBERS, time_of (x, g->event, start_ns),
                 it->stats[at - 1].n_nan > 0 ? (double)NAN : it->stats[at - 1].l2);
    }
}

static void
put_reports (Export *x, uint64_t start_ns)
{
  const TdTapeIteration *it = x->it;

  for (uint32_t i = 0; i < it->n_reports; i++)
    put_value (x, td_tape_reader_string (x->r, it->reports[i].key), TAPE_TRACK_NUMBERS,
               time_of (x, it->reports[i].event, start_ns), it->reports[i].value);
}

/* --------------------------------------------------------------------------- operations */

static void
put_on_device (Export *x, const TdTapeDeviceTime *t, uint64_t start_ns, TapeSliceText *text)
{
  const uint64_t start = start_ns + t->start_ns;
  Row *row = row_at (x, t->device, t->stream, start);

  if (row == NULL)
    {
      x->failed = true;
      return;
    }
  text->flow_ends = true;
  x->o->slice (x->o, row->track, start, start + t->duration_ns, text);
  row->end_ns = start + t->duration_ns;
}

static void
put_event (Export *x, uint32_t event, uint64_t start_ns, uint32_t *next_time)
{
  const TdTapeIteration *it = x->it;
  const TdTapeEvent *e = &it->events[event];
  const TdTapeOpdef *def = td_tape_reader_opdef (x->r, e->opdef);
  const uint64_t start = start_ns + it->event_start_ns[event];
  const uint64_t end = start + it->event_duration_ns[event];
  const TdTapeDeviceTime *time;
  char site[512];
  TapeSliceText text = {
    .name = td_tape_reader_op_name (x->r, e->opdef),
    .category = def != NULL ? td_tape_reader_string (x->r, def->group) : "",
    .layer = td_tape_reader_path_text (x->r, home_of (x, e)->path),
    .site = td_tape_reader_site_text (x->r, e->site, site, sizeof site),
    .attributes = td_tape_reader_string (x->r, e->attrs),
    .iteration = it->number,
    .event = event,
    .is_operation = true,
  };
  Row *row = row_at (x, 0, 0, start);

  if (row == NULL)
    {
      x->failed = true;
      return;
    }
  while (*next_time < it->n_device_times && it->device_times[*next_time].event < event)
    ++*next_time;
  time = *next_time < it->n_device_times && it->device_times[*next_time].event == event
             ? &it->device_times[*next_time]
             : NULL;
  text.flow = time != NULL ? ++x->n_flows : 0;
  enter (x, row, e, start);
  x->o->slice (x->o, row->track, start, end, &text);
  row->end_ns = end;
  if (time != NULL)
    put_on_device (x, time, start_ns, &text);
}

static bool
index_stats (Export *x)
{
  free (x->stats);
  x->stats = calloc (x->it->n_vars + 1ull, sizeof *x->stats);
  for (uint32_t i = 0; x->stats != NULL && i < x->it->n_stats; i++)
    if (x->it->stats[i].var < x->it->n_vars)
      x->stats[x->it->stats[i].var] = i + 1;
  return x->stats != NULL;
}

static void
put_iteration_slice (Export *x, const TdTapeSummary *s)
{
  char name[64];

  if (s->label & TD_TAPE_LABEL_NUMBER)
    snprintf (name, sizeof name, "iteration %" PRIu32, s->label & ~TD_TAPE_LABEL_NUMBER);
  else
    snprintf (name, sizeof name, "%.60s", td_tape_reader_string (x->r, s->label));
  x->o->slice (x->o, x->iterations, s->start_ns, s->start_ns + s->duration_ns,
               &(TapeSliceText){ .name = name,
                                 .category = "iteration",
                                 .layer = "",
                                 .site = "",
                                 .attributes = "",
                                 .iteration = s->number });
}

static bool
put_iteration (Export *x, const TdTapeSummary *s, char *error, size_t n)
{
  uint32_t next_memory = 0, next_time = 0;

  x->it = td_tape_iteration_load (x->r, s->number, error, n);
  if (x->it == NULL)
    return false;
  if (!index_stats (x))
    x->failed = true;
  else
    {
      begin_memory (x);
      say_memory (x, s->start_ns);
      for (uint32_t e = 0; e < x->it->n_events && x->it->event_start_ns != NULL; e++)
        {
          take_memory (x, &next_memory, e, s->start_ns + x->it->event_start_ns[e]);
          put_event (x, e, s->start_ns, &next_time);
        }
      take_memory (x, &next_memory, UINT32_MAX, s->start_ns + s->duration_ns);
      put_gradients (x, s->start_ns);
      put_reports (x, s->start_ns);
      for (uint64_t i = 0; i < x->n_rows; i++)
        close_layers (x, &x->rows[i], 0);
    }
  td_tape_iteration_free (x->it);
  x->it = NULL;
  return true;
}

bool
td_tape_write_trace (TdTapeReader *r, TdTapeTraceFormat format, uint64_t first, uint64_t last,
                     FILE *out, char *error, size_t n)
{
  const TdTapeSummaries s = td_tape_reader_summaries (r);
  TapeTraceOut o = { .out = out };
  Export *x = calloc (1, sizeof *x);
  const char *program = td_tape_reader_info (r, "program");
  bool whole = true;

  if (x == NULL)
    return snprintf (error, n, "no memory"), false;
  (format == TD_TAPE_TRACE_CHROME ? td__tape_chrome : td__tape_perfetto) (&o);
  x->r = r;
  x->o = &o;
  o.begin (&o, *program != '\0' ? program : "program");
  x->iterations = ++x->n_tracks;
  o.track (&o, x->iterations, TAPE_TRACK_THREAD, "iterations");
  for (uint32_t i = 0; i < s.n && whole && !x->failed; i++)
    if (s.rows[i].number >= first && s.rows[i].number <= last)
      {
        put_iteration_slice (x, &s.rows[i]);
        if (td_tape_reader_stored (r, i))
          whole = put_iteration (x, &s.rows[i], error, n);
      }
  o.end (&o);
  if (whole && x->failed)
    whole = snprintf (error, n, "no memory") < 0;
  for (uint64_t i = 0; i < x->n_rows; i++)
    free (x->rows[i].layers);
  free (x->rows);
  free (x->stats);
  td__tape_map_clear (&x->values);
  free (x);
  return whole;
}
