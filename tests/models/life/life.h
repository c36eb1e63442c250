/* What the programs of real size share: arguments NAME=VALUE, numbers by hash, one way to call
 * a function (as code, or through a static function), one line per iteration, and files to go
 * on from.  Each program is an ordinary model that `tapedeck run` takes as it is.
 *
 *     iterations=N   how many (each program has a quick default)
 *     static=1       call what is the same in each iteration through static functions, and say
 *                    at the end on stderr how often they were replayed
 *     batch=0        without their pass `batch`
 *     hash=1         print hashes of gradients and weights of every iteration
 *     save=FOLDER    write links and optimizers at the end
 *     from=I load=FOLDER  go on there
 *     export=FOLDER  write what is called there as ONNX and C, with its inputs and its results;
 *                    without static=1 the graph that ran, as ONNX
 *     time=N         and say what a replay of it takes: the least of N, processor time
 *     ranks=1        (L01) as one of the ranks that were started
 *     fault=NAME     (some programs) a mistake to be found: vanishing, growth, nan, branch
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum
{
  LIFE_LINKS = 4
};

enum
{
  LIFE_GIVEN = 256 /* inputs of a graph that is written */
};

static TdVar *life_given[LIFE_GIVEN];
static int life_n_given;
static bool life_graph_is_out;
static bool life_doubles; /* gradients of gradients go through static functions */
static int life_argc;
static char **life_argv;
static struct
{
  TdStaticFn fn;
  TdStatic *function;
} life_made[8];
static struct
{
  TdLink *link[LIFE_LINKS];
  TdOpt *opt[LIFE_LINKS];
  int n;
  TdLink *lstm;
} life_kept;

__attribute__ ((unused)) static const char *
life_text (const char *name)
{
  size_t n = strlen (name);

  for (int i = 1; i < life_argc; i++)
    if (strncmp (life_argv[i], name, n) == 0 && life_argv[i][n] == '=')
      return life_argv[i] + n + 1;
  return NULL;
}

__attribute__ ((unused)) static int64_t
life_arg (const char *name, int64_t otherwise)
{
  const char *text = life_text (name);

  return text != NULL ? strtoll (text, NULL, 10) : otherwise;
}

/* Whether this mistake is to be made. */
__attribute__ ((unused)) static bool
life_fault (const char *name)
{
  const char *text = life_text ("fault");

  return text != NULL && strcmp (text, name) == 0;
}

/* Is the graph that ran to be written, in place of schedules? */
static bool
life_keeps_graph (void)
{
  return life_text ("export") != NULL && life_arg ("static", 0) == 0;
}

/* td_init, and weights that are the same in every run. */
static void
life_begin (int argc, char **argv)
{
  td_init (&argc, &argv);
  life_argc = argc;
  life_argv = argv;
  td_set_seed ((uint64_t)life_arg ("seed", 7));
  if (life_keeps_graph ())
    td_config_set (keep_graph, 1);
}

/* Uniform in [0, 1), by a hash of index and seed. */
__attribute__ ((unused)) static float
life_number (uint32_t seed, int64_t i)
{
  uint32_t z = (uint32_t)(i + 1) * 0x9E3779B1u + seed * 0x85EBCA77u;

  z = (z ^ z >> 15) * 0x2C1B3C6Du;
  z = (z ^ z >> 12) * 0x297A2D39u;
  return (float)((z ^ z >> 15) >> 8) * 0x1p-24f;
}

/* An input, if the graph is written. */
static TdVar *
life_give (TdVar *v)
{
  if (life_keeps_graph () && !life_graph_is_out && life_n_given < LIFE_GIVEN)
    life_given[life_n_given++] = v;
  return v;
}

/* An array of numbers in [-1, 1).  *Owner*: the innermost scope. */
__attribute__ ((unused)) static TdVar *
life_array (TdShape shape, uint32_t seed)
{
  int64_t n = 1;
  float *numbers;
  TdVar *v;

  for (int i = 0; i < shape.ndim; i++)
    n *= shape.dim[i];
  numbers = malloc ((size_t)n * sizeof *numbers);
  for (int64_t i = 0; numbers != NULL && i < n; i++)
    numbers[i] = 2 * life_number (seed, i) - 1;
  v = life_give (td_tensor (TD_F32, shape, numbers));
  free (numbers);
  return v;
}

/* Integers in [0, classes).  *Owner*: the innermost scope. */
__attribute__ ((unused)) static TdVar *
life_ids (TdShape shape, int64_t classes, uint32_t seed)
{
  int64_t n = 1;
  int32_t *ids;
  TdVar *v;

  for (int i = 0; i < shape.ndim; i++)
    n *= shape.dim[i];
  ids = malloc ((size_t)n * sizeof *ids);
  for (int64_t i = 0; ids != NULL && i < n; i++)
    ids[i] = (int32_t)(life_number (seed, i) * (float)classes);
  v = life_give (td_tensor (TD_I32, shape, ids));
  free (ids);
  return v;
}

/* What a static function took or gave: PATH.in0.npy, PATH.in1.npy, ... */
__attribute__ ((unused)) static void
life_export_arrays (const char *path, const char *what, TdVar *const *v, int n)
{
  char name[4300];

  for (int i = 0; i < n; i++)
    {
      snprintf (name, sizeof name, "%s.%s%d.npy", path, what, i);
      td_save_npy (name, v[i]);
    }
}

/* The graph from these inputs to the results: FOLDER/NAME.onnx, and a line. */
__attribute__ ((unused)) static void
life_export_graph (const char *name, TdVar *const *in, int n_in, TdVar *const *out, int n_out)
{
  char path[4200], file[4300];

  snprintf (path, sizeof path, "%.4000s/%s", life_text ("export"), name);
  snprintf (file, sizeof file, "%s.onnx", path);
  printf ("function %s\n", path);
  td_save_onnx (out, (size_t)n_out, file, .in = in, .n_in = n_in);
  printf ("onnx %s\n", td_error () != NULL ? td_error ()->message : "OK");
  td_error_clear ();
  life_export_arrays (path, "in", in, n_in);
  life_export_arrays (path, "out", out, n_out);
}

/* What the program computed of all its inputs so far, once. */
__attribute__ ((unused)) static void
life_graph (TdVar *loss)
{
  if (!life_keeps_graph () || life_graph_is_out)
    return;
  life_graph_is_out = true;
  life_export_graph ("graph", life_given, life_n_given, &loss, 1);
}

/* "replay MICROSECONDS". */
__attribute__ ((unused)) static void
life_time (TdStatic *s, TdVar *const *in, int n_in, int n_out, int64_t n)
{
  clock_t least = 0;

  for (int64_t k = 0; k < n; k++)
    TD_SCOPE ("time")
      {
        const clock_t begin = clock ();
        TdVar *out[8];

        td_static_call (s, in, n_in, out, n_out);
        if (k == 0 || clock () - begin < least)
          least = clock () - begin;
      }
  if (n > 0)
    printf ("replay %.0f\n", 1e6 * (double)least / CLOCKS_PER_SEC);
}

/* One function, as it is used for inference or as it is trained, in every format: its inputs
 * and results as files, and a line for each format: "OK", or why it could not be. */
__attribute__ ((unused)) static void
life_export (int i, bool train, TdVar *const *in, int n_in, int n_out)
{
  static const char *const endings[] = { "onnx", "c" };
  TdVar *out[8];
  char path[4200];

  TD_USING (train, train)
    TD_NO_BACKPROP
      TD_SCOPE ("export")
        {
          td_static_call (life_made[i].function, in, n_in, out, n_out);
          snprintf (path, sizeof path, "%.4000s/%d-%s", life_text ("export"), i,
                    train ? "train" : "eval");
          printf ("function %s\n", path);
          for (size_t k = 0; k < sizeof endings / sizeof *endings; k++)
            {
              char name[4300];

              snprintf (name, sizeof name, "%s.%s", path, endings[k]);
              td_static_save (life_made[i].function, name);
              printf ("%s %s\n", endings[k], td_error () != NULL ? td_error ()->message : "OK");
              td_error_clear ();
            }
          life_export_arrays (path, "in", in, n_in);
          life_export_arrays (path, "out", out, n_out);
          life_time (life_made[i].function, in, n_in, n_out, life_arg ("time", 0));
        }
}

/* fn as code, or through a static function of its own where the program was told static=1. */
__attribute__ ((unused)) static void
life_call (TdStaticFn fn, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  int i = 0;

  while (life_made[i].fn != NULL && life_made[i].fn != fn)
    i++;
  if (life_arg ("static", 0) == 0)
    {
      if (life_keeps_graph () && life_made[i].fn == NULL)
        {
          life_made[i].fn = fn;
          for (int train = 0; train < 2; train++)
            TD_USING (train, train)
              TD_SCOPE ("export")
                {
                  char name[32];

                  fn (self, in, n_in, out, n_out);
                  snprintf (name, sizeof name, "graph%d-%s", i, train ? "train" : "eval");
                  life_export_graph (name, in, n_in, out, n_out);
                }
        }
      fn (self, in, n_in, out, n_out);
      return;
    }
  if (life_made[i].fn == NULL)
    {
      life_made[i].fn = fn;
      life_made[i].function = td_static_new (fn, self, .batch = life_arg ("batch", 1) != 0,
                                             .enable_double_backprop = life_doubles);
      if (life_text ("export") != NULL)
        for (int train = 0; train < 2; train++)
          life_export (i, train != 0, in, n_in, n_out);
    }
  td_static_call (life_made[i].function, in, n_in, out, n_out);
}

/* Everything that the next iterations depend on. */
static void
life_serialize (void *object, TdSerializer *s)
{
  char name[16];

  (void)object;
  for (int i = 0; i < life_kept.n; i++)
    {
      snprintf (name, sizeof name, "link%d", i);
      td_serialize_link (s, name, life_kept.link[i]);
      snprintf (name, sizeof name, "opt%d", i);
      if (life_kept.opt[i] != NULL)
        td_serialize_opt (s, name, life_kept.opt[i]);
    }
  td_serialize_random (s);
}

static const char *
life_file (const char *argument, const char *name)
{
  static char path[4200];
  const char *folder = life_text (argument);

  if (folder == NULL)
    return NULL;
  snprintf (path, sizeof path, "%.4000s/%s", folder, name);
  return path;
}

/* The program keeps a link and the optimizer that trains it (NULL: nobody does). */
static void
life_keep (TdLink *link, TdOpt *opt)
{
  life_kept.link[life_kept.n] = link;
  life_kept.opt[life_kept.n++] = opt;
}

/* The optimizer of all ranks, where the program was told ranks=1; *rank is this one. */
__attribute__ ((unused)) static TdOpt *
life_shared (TdOpt *opt, uint32_t *rank)
{
  TdComm *world;

  *rank = 0;
  if (life_arg ("ranks", 0) == 0)
    return opt;
  world = td_comm_new (NULL);
  *rank = (uint32_t)td_comm_rank (world);
  return td_multi_node_optimizer_new (opt, world);
}

/* The state of an LSTM that is carried over is kept too. */
__attribute__ ((unused)) static void
life_keep_state (TdLink *lstm)
{
  life_kept.lstm = lstm;
}

static TdVar *
life_state (int i)
{
  return i == 0 ? td_lstm_c (life_kept.lstm) : td_lstm_h (life_kept.lstm);
}

/* The first iteration of this run, from the files of an earlier one where it was told so. */
__attribute__ ((unused)) static int64_t
life_first (void)
{
  const char *path = life_file ("load", "state.npz");
  TdVar *state[2];

  if (path != NULL)
    td_load_object (path, life_serialize, NULL);
  if (path != NULL && life_kept.lstm != NULL)
    {
      state[0] = td_load_npy (life_file ("load", "c.npy"));
      state[1] = td_load_npy (life_file ("load", "h.npy"));
      td_lstm_set_state (life_kept.lstm, state[0], state[1]);
    }
  return life_arg ("from", 0);
}

__attribute__ ((unused)) static int64_t
life_end (int64_t otherwise)
{
  return life_arg ("iterations", otherwise);
}

typedef struct
{
  uint64_t gradients, weights;
} LifeHash;

static uint64_t
life_mix (uint64_t h, const TdVar *v)
{
  TdShape shape = v != NULL ? td_shape (v) : TD_SCALAR;
  size_t n = 1;
  uint32_t *bits;

  for (int i = 0; i < shape.ndim; i++)
    n *= (size_t)shape.dim[i];
  bits = v != NULL ? malloc (n * sizeof *bits) : NULL;
  if (bits == NULL || td_read (v, bits, n * sizeof *bits) != TD_OK)
    n = 0;
  for (size_t i = 0; i < n; i++)
    h = (h ^ bits[i]) * 1099511628211u;
  free (bits);
  return (h ^ n) * 1099511628211u;
}

static void
life_hash_param (const char *path, TdVar *param, void *user)
{
  LifeHash *h = user;

  (void)path;
  h->gradients = life_mix (h->gradients, td_grad (param));
  h->weights = life_mix (h->weights, param);
}

/* After the update of iteration i: report the loss, print what the run is compared by. */
__attribute__ ((unused)) static void
life_line (int64_t i, TdVar *loss)
{
  LifeHash h = { 14695981039346656037u, 14695981039346656037u };
  double value = td_item (loss);

  td_report ("loss", value);
  if (life_arg ("hash", 0) == 0)
    return;
  for (int k = 0; k < life_kept.n; k++)
    td_link_each_param (life_kept.link[k], life_hash_param, &h);
  printf ("%" PRId64 " loss %a gradients %016" PRIx64 " weights %016" PRIx64 "\n", i, value,
          h.gradients, h.weights);
}

/* Saves where the program was told to; its exit status. */
static int
life_finish (void)
{
  uint64_t n_replays = 0;

  for (int i = 0; life_made[i].function != NULL; i++)
    n_replays += td_static_info (life_made[i].function).n_replays;
  if (life_arg ("static", 0) != 0)
    fprintf (stderr, "%" PRIu64 " replays\n", n_replays);
  if (life_text ("save") != NULL)
    td_save_object (life_file ("save", "state.npz"), life_serialize, NULL);
  if (life_text ("save") != NULL && life_kept.lstm != NULL)
    {
      td_save_npy (life_file ("save", "c.npy"), life_state (0));
      td_save_npy (life_file ("save", "h.npy"), life_state (1));
    }
  return td_finish ();
}
