/* What a snapshot holds: the trainer, its iterators and what was reported.
 *
 * *Source*: the keys are those of chainer.training.Trainer.serialize.
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

/* --- iterators --- */

enum
{
  TEXT_MOST = INT32_MAX /* batches of a text: products with its size stay in range */
};

/* An order that was read, until everything else is known to fit. */
typedef struct
{
  TdIter *it;
  TdRecord value;
} OrderField;

static TdStatus
order_apply (void *staged)
{
  OrderField *f = staged;

  memcpy (f->it->at.order, f->value.data, (size_t)f->it->n * sizeof *f->it->at.order);
  return TD_OK;
}

static void
order_drop (void *staged)
{
  OrderField *f = staged;

  free (f->value.data);
  free (f);
}

static void
order_serialize (TdIter *it, TdSerializer *s)
{
  TdShape shape = { 1, { it->n } };
  void *data = it->at.order;
  OrderField *f;
  TdRecord value;

  if (!td_serializer_loading (s))
    {
      td_serialize_array (s, "order", TD_I64, &shape, &data);
      return;
    }
  if (!td__serializer_read_array (s, "order", TD_I64, &shape, &value))
    return;
  for (int64_t i = 0; i < it->n; i++)
    if (((int64_t *)value.data)[i] < 0 || ((int64_t *)value.data)[i] >= it->n)
      {
        td_serializer_refuse (s, "order", "it names rows that the dataset has not");
        break;
      }
  f = td__xcalloc (1, sizeof *f);
  *f = (OrderField){ it, value };
  td__serializer_stage (s, order_apply, order_drop, f);
}

static void
prefetch_again (void *iter)
{
  td__ahead_restart (iter);
}

void
td__iter_serialize (TdIter *it, TdSerializer *s)
{
  int64_t position;

  if (td_serializer_look_int (s, "current_position", &position)
      && (position < 0 || position >= (it->is_text ? TEXT_MOST : it->n)))
    td_serializer_refuse (s, "current_position", "it is not in the dataset");
  td_serialize_int (s, "current_position", &it->at.position);
  td_serialize_int (s, "epoch", &it->at.epoch);
  td_serialize_bool (s, "is_new_epoch", &it->at.is_new_epoch);
  if (it->at.order != NULL)
    order_serialize (it, s);
  td_serialize_double (s, "previous_epoch_detail", &it->at.previous_epoch_detail);
  /* What Chainer leaves out: its shuffling goes on from NumPy's global state. */
  if (!td_serializer_loading (s) || td_serializer_has (s, "tapedeck_random"))
    {
      td_serialize_int (s, "tapedeck_random", (int64_t *)&it->at.random);
      td_serialize_int (s, "tapedeck_seed", (int64_t *)&it->seed);
      td_serialize_int (s, "tapedeck_count", &it->at.count);
      td_serialize_int (s, "tapedeck_drawn", &it->at.drawn);
    }
  if (it->prefetch != NULL)
    td_serializer_finally (s, prefetch_again, it);
}

/* --- reports --- */

/* Keys of one text, separated by line ends; numbers as an array (n, 7). */
typedef struct
{
  TdObservation *o;
  char *keys;
  TdShape shape;
  void *numbers;
} Summary;

enum
{
  N_NUMBERS = 7
};

static void
summary_apply (void *object)
{
  Summary *m = object;
  int64_t n = m->shape.ndim == 2 && m->numbers != NULL ? m->shape.dim[0] : 0;
  char *save = NULL;

  td_observation_clear (m->o);
  for (char *key = m->keys != NULL ? strtok_r (m->keys, "\n", &save) : NULL;
       key != NULL && m->o->n_entries < n; key = strtok_r (NULL, "\n", &save))
    {
      const double *v = (double *)m->numbers + m->o->n_entries * N_NUMBERS;
      TdReportEntry *e;

      td_observation_add (m->o, key, 0, 0);
      e = &m->o->entries[m->o->n_entries - 1];
      e->n = (int64_t)v[0];
      e->last = v[1];
      e->mean = v[2];
      e->m2 = v[3];
      e->weight = v[4];
      e->min = v[5];
      e->max = v[6];
    }
}

static TdStatus
summary_nothing (void *staged)
{
  (void)staged;
  return TD_OK;
}

static void
summary_free (void *staged)
{
  Summary *m = staged;

  free (m->keys);
  free (m->numbers);
  free (m);
}

static void
summary_fill (Summary *m, const TdObservation *o)
{
  double *v = td__xcalloc ((size_t)o->n_entries * N_NUMBERS, sizeof *v);
  size_t bytes = 1;

  for (int i = 0; i < o->n_entries; i++)
    bytes += strlen (o->entries[i].key) + 1;
  m->keys = td__xcalloc (1, bytes);
  m->numbers = v;
  m->shape = (TdShape){ 2, { o->n_entries, N_NUMBERS } };
  for (int i = 0; i < o->n_entries; i++)
    {
      const TdReportEntry *e = &o->entries[i];
      const double numbers[N_NUMBERS]
          = { (double)e->n, e->last, e->mean, e->m2, e->weight, e->min, e->max };

      if (i > 0)
        strcat (m->keys, "\n");
      strcat (m->keys, e->key);
      memcpy (v + (ptrdiff_t)i * N_NUMBERS, numbers, sizeof numbers);
    }
}

/* Loading ends after every other field is in place; what it read is freed with the rest of
 * what was staged. */
void
td__observation_serialize (TdObservation *o, TdSerializer *s, const char *name)
{
  Summary *m = td__xcalloc (1, sizeof *m);

  m->o = o;
  if (!td_serializer_loading (s))
    summary_fill (m, o);
  td_serializer_enter (s, name);
  td_serialize_text (s, "keys", &m->keys);
  td_serialize_array (s, "numbers", TD_F64, &m->shape, &m->numbers);
  td_serializer_leave (s);
  if (td_serializer_loading (s))
    {
      td__serializer_stage (s, summary_nothing, summary_free, m);
      td_serializer_finally (s, summary_apply, m);
    }
  else
    summary_free (m);
}

/* --- trainers --- */

void
td__trainer_serialize (void *trainer, TdSerializer *s)
{
  TdTrainer *t = trainer;
  double elapsed = td_trainer_elapsed_time (t);

  td_serializer_enter (s, "updater");
  td__updater_serialize (t->updater, s);
  td_serializer_leave (s);
  td_serializer_enter (s, "stop_trigger");
  td__trigger_serialize (t->stop, s);
  td_serializer_leave (s);
  for (int i = 0; i < t->n_extended; i++)
    {
      const TdExtended *at = &t->extended[i];

      td_serializer_enter (s, "extensions");
      td_serializer_enter (s, at->name);
      if (at->extension->cls->serialize != NULL)
        at->extension->cls->serialize (at->extension->self, s);
      td_serializer_leave (s);
      td_serializer_leave (s);
      td_serializer_enter (s, "extension_triggers");
      td_serializer_enter (s, at->name);
      td__trigger_serialize (at->trigger, s);
      td_serializer_leave (s);
      td_serializer_leave (s);
    }
  if (td_serializer_loading (s))
    td_serialize_double (s, "_snapshot_elapsed_time", &t->elapsed_before);
  else
    td_serialize_double (s, "_snapshot_elapsed_time", &elapsed);
  /* Chainer leaves the state of its random numbers out. */
  if (!td_serializer_loading (s) || td_serializer_has (s, "tapedeck_rng_offset"))
    td_serialize_random (s);
}

static TdStatus
save (const char *path, TdFileFormat format, TdTrainer *t, const TdSaveOpt *options,
      const char *call, const TdSite *site)
{
  if (!td__trainer_usable (t, call))
    return td__error_status ();
  return td__save_object (path, format, options->compression, td__trainer_serialize, t, call,
                          site);
}

static TdStatus
load (const char *path, TdFileFormat format, TdTrainer *t, const TdLoadOpt *options,
      const char *call, const TdSite *site)
{
  TdLoadRule rule = { options->path, options->ignore_names, !options->strict };

  if (!td__trainer_usable (t, call))
    return td__error_status ();
  return td__load_object (path, format, td__trainer_serialize, t, &rule, call, site);
}

TdStatus
td_trainer_save_npz_at (const char *path, TdTrainer *t, TdSaveOpt options, const TdSite *site)
{
  return save (path, TD_FILE_NPZ, t, &options, "td_save_npz", site);
}

TdStatus
td_trainer_load_npz_at (const char *path, TdTrainer *t, TdLoadOpt options, const TdSite *site)
{
  return load (path, TD_FILE_NPZ, t, &options, "td_load_npz", site);
}

TdStatus
td_trainer_save_safetensors_at (const char *path, TdTrainer *t, TdSaveOpt options,
                                const TdSite *site)
{
  return save (path, TD_FILE_SAFETENSORS, t, &options, "td_save_safetensors", site);
}

TdStatus
td_trainer_load_safetensors_at (const char *path, TdTrainer *t, TdLoadOpt options,
                                const TdSite *site)
{
  return load (path, TD_FILE_SAFETENSORS, t, &options, "td_load_safetensors", site);
}
