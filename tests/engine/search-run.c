/* The life of a random program: its engine, its loop, and how it is stopped and gone on with.
 *
 * SPDX-License-Identifier: MIT */
#include "search-run.h"

#include "quiet-observer.h"

#include "compute/core/core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

void
run_files (const char *path)
{
  folder = path;
}

void
run_file (const char *name, char *path, size_t size)
{
  snprintf (path, size, "%s/%s", folder, name);
}

/* --- notes --- */

/* Of numbers: every NaN is the same, whose sign and payload are nobody's promise. */
static uint64_t
hash_of (const void *bytes, TdDtype dtype, int64_t n)
{
  uint64_t h = 1469598103934665603u;

  for (int64_t k = 0; k < n; k++)
    {
      const double x = td__host_element (bytes, dtype, k);
      uint64_t bits;

      memcpy (&bits, &x, sizeof x);
      h = (h ^ (isnan (x) ? 0x7fc00000u : bits ^ bits >> 32)) * 1099511628211u;
    }
  return h;
}

void
note_hash (Run *r, const char *what, uint64_t hash)
{
  if (r->n_notes == MAX_NOTES)
    return;
  r->notes[r->n_notes].iteration = r->iteration;
  r->notes[r->n_notes].hash = hash;
  snprintf (r->notes[r->n_notes++].what, sizeof r->notes->what, "%s", what);
}

void
note_var (Run *r, const char *what, TdVar *v)
{
  size_t bytes = v != NULL ? (size_t)td_size (v) * td_dtype_bytes (td_dtype (v)) : 0;
  char *copy = malloc (bytes + 1);

  if (copy == NULL)
    abort ();
  if (v == NULL)
    note_hash (r, what, 0);
  else if (td_read (v, copy, bytes) == TD_OK)
    note_hash (r, what, hash_of (copy, td_dtype (v), td_size (v)));
  free (copy);
}

TdStatus
note_status (Run *r, const char *what, TdStatus status)
{
  note_hash (r, what, status == TD_OK ? 1 : 2);
  if (status != TD_OK && r->tells != NULL)
    fprintf (r->tells, "  %s, %s, iteration %d: %s\n", r->mode->name, what, r->iteration,
             td_error () != NULL ? td_error ()->message : "no message");
  td_error_clear ();
  return status;
}

void
fill_array (TdVar *v, unsigned seed)
{
  float numbers[64];
  uint32_t s = seed * 747796405u + 12345;
  const int64_t n = td_size (v);

  for (int64_t k = 0; k < n && k < 64; k++)
    {
      s = s * 1664525u + 1013904223u;
      numbers[k] = (float)(s >> 8) / (float)(1 << 23) - 1;
    }
  td_write (v, numbers, (size_t)n * sizeof *numbers);
}

TdVar *
fresh_array (int64_t rows, int64_t columns, unsigned seed)
{
  TdVar *v = td_zeros (TD_F32, TD_SHAPE (rows, columns));

  fill_array (v, seed);
  return v;
}

/* --- files --- */

static void
serialize (void *object, TdSerializer *s)
{
  Run *r = object;

  td_serialize_int (s, "effects", &r->n_effects);
  td_serialize_int (s, "own", &r->watched.own);
  td_serialize_var (s, "captured", r->captured); /* a program may write what it gave back */
  if (r->p->file != FILE_PARTS)
    {
      td_serialize_link (s, "net", r->root);
      td_serialize_link (s, "other", r->other_root);
      td_serialize_opt (s, "opt", r->opt);
      if (r->other_opt != NULL)
        td_serialize_opt (s, "other opt", r->other_opt);
    }
  td_serialize_random (s);
}

static TdStatus
save_parts (Run *r, const char *rest, bool load)
{
  char path[5][4096];
  TdStatus status = TD_OK;

  for (int k = 0; k < 4; k++)
    snprintf (path[k], sizeof path[k], "%s/part-%d.npz", folder, k);
#define BOTH(k, object)                                                                        \
  if (status == TD_OK && (object) != NULL)                                                     \
  status = load ? td_load_npz (path[k], object)                                                \
                : td_save_npz (path[k], object, .compression = false)
  BOTH (0, r->root);
  BOTH (1, r->other_root);
  BOTH (2, r->opt);
  BOTH (3, r->other_opt);
#undef BOTH
  if (status == TD_OK)
    status = load ? td_load_object (rest, serialize, r) : td_save_object (rest, serialize, r);
  return status;
}

/* The state between two iterations, to a file or from it. */
static void
state (Run *r, bool load)
{
  const bool tensors = r->p->file == FILE_SAFETENSORS;
  TdStatus status;
  char path[4096];

  run_file (tensors ? "state.safetensors" : "state.npz", path, sizeof path);
  if (r->p->file == FILE_PARTS)
    status = save_parts (r, path, load);
  else
    status = load ? td_load_object (path, serialize, r) : td_save_object (path, serialize, r);
  if (status != TD_OK) /* else the other ways have no such note */
    note_status (r, load ? "load" : "save", status);
}

/* --- loops --- */

static TdStatus
one_update (TdUpdater *updater, void *self)
{
  Run *r = self;

  r->iteration = (int)td_updater_iteration (updater);
  loop_iteration (r);
  if (!r->failed || r->p->seed % 2 == 0)
    return TD_OK;
  td_matmul (r->captured, r->captured, false, false); /* the trainer ends with an error */
  return td_error ()->status;
}

/* An extension of its own, whose state is one of what a snapshot keeps. */
typedef struct
{
  int64_t count;
  Run *r;
} Counter;

static TdStatus
count_up (void *self, TdTrainer *trainer)
{
  (void)trainer;
  ((Counter *)self)->count++;
  return TD_OK;
}

static void
serialize_count (void *self, TdSerializer *s)
{
  Counter *c = self;

  td_serialize_int (s, "count", &c->count);
  td_serialize_int (s, "effects", &c->r->n_effects);
  td_serialize_int (s, "own", &c->r->watched.own);
  td_serialize_var (s, "captured", c->r->captured); /* as above */
}

static TdExtension *
counter (Run *r)
{
  static const TdExtensionClass cls = { .size = sizeof (TdExtensionClass),
                                        .name = "count",
                                        .self_bytes = sizeof (Counter),
                                        .priority = TD_PRIORITY_READER,
                                        .call = count_up,
                                        .serialize = serialize_count };
  TdExtension *x = td_extension_new (&cls);

  ((Counter *)td_extension_self (x))->r = r;
  return x;
}

static void
extend (Run *r, TdTrainer *t, bool loads)
{
  const double stop[] = { r->p->stop_at };

  td_trainer_extend (t, counter (r));
  td_trainer_extend (t, td_ext_log_report (.trigger = td_interval_trigger_new (2, "iteration"),
                                           .filename = NULL));
  if (optimizer_rate (r->p->optimizer) != NULL)
    td_trainer_extend (t, td_ext_exponential_shift (optimizer_rate (r->p->optimizer), 0.9));
  if (r->p->snapshot && r->mode->stopped)
    td_trainer_extend (t, td_ext_snapshot (.filename = "snapshot.npz", .autoload = loads),
                       .trigger = td_manual_schedule_trigger_new (stop, 1, "iteration"));
}

static TdDataset *
rows_of_data (void)
{
  static float x[10 * COLUMNS];
  static int32_t t[10];

  return td_tuple_dataset_new (td_tensor (TD_F32, TD_SHAPE (10, COLUMNS), x),
                               td_tensor (TD_I32, TD_SHAPE (10), t));
}

static TdStatus
trainer_file (TdTrainer *t, bool load)
{
  char path[4096];

  run_file ("trainer.npz", path, sizeof path);
  return load ? td_load_npz (path, t) : td_save_npz (path, t, .compression = false);
}

/* Under a trainer, up to an iteration; from where the file ends, or from the start. */
static void
train (Run *r, int to, bool loads)
{
  TdDataset *data = rows_of_data ();
  TdIter *it = td_serial_iterator_new (data, .batch_size = ROWS);
  TdUpdater *updater = td_standard_updater_new (it, r->opt, .update = one_update, .self = r);
  TdTrainer *t
      = td_trainer_new (updater, td_interval_trigger_new (to, "iteration"), .out = folder);
  const bool by_hand = r->mode->stopped && !r->p->snapshot;
  TdStatus status = TD_OK;

  if (r->other_opt != NULL)
    td_updater_add_optimizer (updater, "other", r->other_opt);
  extend (r, t, loads);
  if (loads && by_hand)
    status = trainer_file (t, true);
  if (status == TD_OK)
    status = td_trainer_run (t);
  r->broken = status != TD_OK;
  if (!r->broken && by_hand && !loads)
    status = trainer_file (t, false);
  if (to == ITERATIONS || status != TD_OK)
    {
      const Counter *c = td_extension_self (td_trainer_extension (t, "count"));

      note_status (r, "trainer", status);
      note_hash (r, "count", (uint64_t)c->count);
    }
  td_trainer_free (t);
  td_updater_free (updater);
  td_iter_free (it);
  td_dataset_free (data);
}

static void
loop (Run *r, int from, int to)
{
  for (r->iteration = from; r->iteration < to; r->iteration++)
    TD_ITERATION (r->iteration)
      loop_iteration (r);
}

/* --- engines --- */

static void
start (Run *r)
{
  static const char *const levels[] = { "graph", "stats", "values" };
  static TdObserver observer;
  char path[4096];

  if (r->mode->recorded)
    {
      run_file ("run.tape", path, sizeof path);
      remove (path);
      setenv ("TAPEDECK_TAPE", path, 1);
      setenv ("TAPEDECK_LEVEL", levels[r->p->level], 1);
    }
  if (td_init (NULL, NULL) != TD_OK)
    abort ();
  td_set_seed (r->p->seed);
  td_config_set (use_static_graph, r->mode->is_static);
  td__engine.static_verify = r->mode->verify;
  if (r->mode->observed)
    {
      observer = quiet_observer;
      td__engine.observer = &observer;
    }
  code_prepare (r);
}

static void
end (Run *r)
{
  code_free (r);
  if (r->mode->observed)
    td__engine.observer = NULL;
  if (td_finish () != 0)
    note_hash (r, "td_finish", 2);
}

static void
go (Run *r, int from, int to)
{
  if (r->p->trainer)
    train (r, to, from > 0);
  else
    loop (r, from, to);
}

void
run_program (const Program *p, const Mode *mode, Run *r)
{
  Note *notes = r->notes;

  *r = (Run){ .p = p, .mode = mode, .notes = notes, .tells = r->tells };
  start (r);
  if (mode->stopped)
    {
      go (r, 0, p->stop_at);
      if (!p->trainer)
        state (r, false);
      if (!r->broken)
        {
          end (r);
          start (r);
          if (!p->trainer)
            state (r, true);
        }
    }
  if (!r->broken)
    go (r, mode->stopped ? p->stop_at : 0, ITERATIONS);
  r->iteration = ITERATIONS;
  note_var (r, "random", td_rand (TD_F32, TD_SHAPE (1)));
  end (r);
  note_hash (r, "differences", r->n_differences);
}
