/* Trainings of a few models on a device: time of an update define-by-run and as a static
 * schedule, whether memory stays flat to the byte, and the weights' hash, which recording must
 * not change.
 *
 *   bare-trainings [--small] [--seconds S] [--flat N] [MODEL | MODEL.static ...]
 *
 * prints one JSON object per row.  Run under `tapedeck run --level LEVEL`, the same rows say
 * what recording costs.
 *
 * SPDX-License-Identifier: MIT */
#include "measure.h"

#include "../../bench/peer-models.h"

#include <stdio.h>
#include <string.h>

enum
{
  WARM_UP = 20,
  TRACED = 5
};

typedef struct
{
  Model m;
  const PeerModel *which;
  TdStatic *chain; /* NULL: define-by-run */
  int i;
  double losses[TRACED];
} Training;

/* in: the data of one batch, which the loss sees as batch 0 of a model of its own. */
static void
model_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Training *t = self;
  Model m = t->m;
  const int n_x = n_in / 2;

  (void)n_out;
  for (int i = 0; i < n_x; i++)
    {
      m.x[0][i] = in[i];
      m.t[0][i] = in[n_x + i];
    }
  out[0] = t->which->loss (&m, 0);
}

static TdVar *
loss_of (Training *t, int k)
{
  TdVar *in[2 * STEPS], *y;
  int n = 0, n_x = 0;

  if (t->chain == NULL)
    return t->which->loss (&t->m, k);
  while (n_x < STEPS && t->m.x[k][n_x] != NULL)
    in[n++] = t->m.x[k][n_x++];
  for (int j = 0; j < n_x; j++)
    in[n++] = t->m.t[k][j];
  td_static_call (t->chain, in, n, &y, 1);
  return y;
}

static void
update (Training *t)
{
  TD_ITERATION (t->i)
    {
      TdVar *y;

      td_cleargrads (t->m.root);
      y = loss_of (t, t->i % POOL);
      td_backward (y, 0);
      td_opt_update (t->m.opt);
      if (t->i < TRACED)
        t->losses[t->i] = td_item (y);
    }
  t->i++;
}

/* Median microseconds of an update, ten at a time between two waits. */
static double
time_updates (const MeasureOptions *o, TdDevice *d, Training *t)
{
  double samples[200];
  int n = 0;

  for (double end = measure_now () + o->seconds; n < 3 || (measure_now () < end && n < 200);
       n++)
    {
      double start;

      td_device_synchronize (d);
      start = measure_now ();
      for (int i = 0; i < 10; i++)
        update (t);
      td_device_synchronize (d);
      samples[n] = (measure_now () - start) / 10;
    }
  return measure_median (samples, n) * 1e6;
}

/* Updates after which another number of bytes was alive, or taken from the device. */
static int
count_changes (TdDevice *d, Training *t, int n)
{
  TdMemInfo first, now;
  int changed = 0;

  update (t);
  first = td_mem_info (d);
  for (int i = 0; i < n; i++)
    {
      update (t);
      now = td_mem_info (d);
      changed += now.live_bytes != first.live_bytes || now.live_vars != first.live_vars
                 || now.live_ops != first.live_ops
                 || now.reserved_bytes != first.reserved_bytes;
    }
  return changed;
}

/* Made and warmed up; its weights are those after the same updates in every run. */
static unsigned long long
start_training (Training *t, const PeerModel *which)
{
  which->make (&t->m);
  for (int i = 0; i < WARM_UP; i++)
    update (t);
  return measure_params_hash (t->m.root);
}

static void
end_training (Training *t)
{
  if (t->chain != NULL)
    td_static_free (t->chain);
  td_opt_free (t->m.opt);
  td_link_free (t->m.root);
}

/* The weights of the same schedules with each step launched by itself: a schedule may batch
 * products, and has other last bits than define-by-run then, but none of them by the graphs. */
static unsigned long long
weights_without_graphs (const PeerModel *which)
{
  static Training t;
  unsigned long long hash;

  t = (Training){ .which = which };
  t.chain = td_static_new (model_code, &t, .cuda_graph = false);
  hash = start_training (&t, which);
  end_training (&t);
  return hash;
}

static void
run (const MeasureOptions *o, const PeerModel *which, bool is_static)
{
  static Training t;
  TdDevice *d = td_device (td_zeros (TD_F32, TD_SHAPE (1)));
  const int flat = o->small ? 5 : o->flat;
  unsigned long long hash;
  TdMemInfo info;
  int changed;
  double us;

  t = (Training){ .which = which };
  if (is_static)
    t.chain = td_static_new (model_code, &t);
  hash = start_training (&t, which);
  changed = count_changes (d, &t, flat);
  us = time_updates (o, d, &t);
  info = td_mem_info (d);
  printf ("{\"row\": \"train.%s%s\", \"us\": %.6g, \"updates\": %d, \"weights\": \"%016llx\", "
          "\"flat_updates\": %d, \"changed\": %d, \"live_bytes\": %zu, \"peak_bytes\": %zu, "
          "\"losses\": [",
          which->name, is_static ? ".static" : "", us, t.i, hash, flat, changed,
          (size_t)info.live_bytes, (size_t)info.peak_bytes);
  for (int i = 0; i < TRACED; i++)
    printf ("%s%.9g", i > 0 ? ", " : "", t.losses[i]);
  printf ("]");
  if (is_static)
    {
      const TdStaticInfo s = td_static_info (t.chain);

      printf (", \"replays\": %llu, \"steps\": %u, \"fused\": %u, \"captures\": %llu, "
              "\"graph_launches\": %llu, \"alone\": %llu, \"why_alone\": \"%s\"",
              (unsigned long long)s.n_replays, s.n_steps, s.n_fused,
              (unsigned long long)s.n_captures, (unsigned long long)s.n_graph_launches,
              (unsigned long long)s.n_alone, td_static_last_alone (t.chain));
    }
  end_training (&t);
  if (is_static)
    printf (", \"weights_without_graphs\": \"%016llx\"", weights_without_graphs (which));
  printf ("}\n");
  fflush (stdout);
}

int
main (int argc, char **argv)
{
  MeasureOptions o;
  char name[64];

  td_init (&argc, &argv);
  o = measure_options (argc, argv);
  for (int i = 0; i < n_peer_models && td_error () == NULL; i++)
    for (int is_static = 0; is_static < 2 && td_error () == NULL; is_static++)
      {
        snprintf (name, sizeof name, "%s%s", peer_models[i].name, is_static ? ".static" : "");
        if (measure_wanted (&o, name))
          run (&o, &peer_models[i], is_static);
      }
  return measure_end ();
}
