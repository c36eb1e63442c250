/* Keys of optimizers' and trainers' files for nets of any depth and size, files of before that
 * had others, numbers that would be lost, and what a loop of the program's own keeps.
 *
 * SPDX-License-Identifier: MIT */
#include "start.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The net, the data and the trainer that wrote tests/golden/npz/old-*.npz, after 3 updates. */
typedef struct
{
  TdLink *root, *l1, *l2;
} Net;

typedef struct
{
  Net net;
  TdOpt *opt;
  TdIter *iter;
  TdTrainer *trainer;
} Training;

enum
{
  N_WEIGHTS = 2 * 3 + 3 + 3 * 2 + 2
};

static TdVar *
loss_of (void *self, const TdBatch *b)
{
  Net *n = self;
  TdVar *h = td_tanh (td_link (n->l1, b->x));
  TdVar *loss = td_softmax_cross_entropy (td_link (n->l2, h), b->t);

  td_report_variable ("loss", loss);
  return loss;
}

static void
training_start (Training *t, double iterations)
{
  float x[12];
  int32_t label[6];
  Net *n = &t->net;

  for (int i = 0; i < 12; i++)
    x[i] = (float)(i % 5) / 4;
  for (int i = 0; i < 6; i++)
    label[i] = i % 2;
  n->root = td_chain_new ("net");
  n->l1 = td_linear_new (n->root, "l1", 2, 3, .initialW = td_init_constant (0.5));
  n->l2 = td_linear_new (td_chain_new (n->root, "block"), "l2", 3, 2,
                         .initialW = td_init_constant (0.25));
  t->opt = td_momentum_sgd_new (n->root, .lr = 0.1);
  t->iter
      = td_serial_iterator_new (td_tuple_dataset_new (td_tensor (TD_F32, TD_SHAPE (6, 2), x),
                                                      td_tensor (TD_I32, TD_SHAPE (6), label)),
                                .batch_size = 3, .shuffle = false);
  t->trainer = td_trainer_new (
      td_standard_updater_new (t->iter, t->opt, .loss_func = loss_of, .self = n),
      td_interval_trigger_new (iterations, "iteration"), .out = td_test_tmp ("out"));
  td_trainer_extend (t->trainer,
                     td_ext_log_report (.trigger = td_interval_trigger_new (2, "iteration"),
                                        .filename = NULL));
}

static void
take (const char *path, TdVar *param, void *user)
{
  float **at = user;

  (void)path;
  assert_int_equal (td_read (param, *at, (size_t)td_size (param) * sizeof (float)), TD_OK);
  *at += td_size (param);
}

static void
weights_of (TdLink *link, float *weights)
{
  td_link_each_param (link, take, &weights);
}

static void
assert_close (const float *a, const float *b, int n)
{
  for (int i = 0; i < n; i++)
    if (!(fabsf (a[i] - b[i]) <= 1e-5f))
      fail_msg ("weight %d: %.9g and %.9g", i, (double)a[i], (double)b[i]);
}

static void
opt_file__of_nested_links_has_chainers_keys (void **state)
{
  const char *path = td_test_tmp ("opt.npz");
  Training t;

  (void)state;
  training_start (&t, 3);
  assert_int_equal (td_trainer_run (t.trainer), TD_OK);
  assert_int_equal (td_save_npz (path, t.opt), TD_OK);
  assert_python_says ("import sys, numpy as np\n"
                      "for k in sorted(np.load(sys.argv[1]).files): print(k)\n",
                      path,
                      "block/l2/W/t\nblock/l2/W/v\nblock/l2/b/t\nblock/l2/b/v\n"
                      "epoch\nl1/W/t\nl1/W/v\nl1/b/t\nl1/b/v\nt\n");
}

static void
trainer_file__of_nested_links_has_chainers_keys (void **state)
{
  const char *path = td_test_tmp ("trainer.npz");
  Training t;

  (void)state;
  training_start (&t, 3);
  assert_int_equal (td_trainer_run (t.trainer), TD_OK);
  assert_int_equal (td_save_npz (path, t.trainer), TD_OK);
  assert_python_says ("import sys, numpy as np\n"
                      "for k in sorted(np.load(sys.argv[1]).files):\n"
                      "  if 'iterator' not in k and 'LogReport' not in k: print(k)\n",
                      path,
                      "_snapshot_elapsed_time\n"
                      "stop_trigger/previous_epoch_detail\nstop_trigger/previous_iteration\n"
                      "tapedeck_rng_offset\ntapedeck_rng_seed\nupdater/iteration\n"
                      "updater/model:main/block/l2/W\nupdater/model:main/block/l2/b\n"
                      "updater/model:main/l1/W\nupdater/model:main/l1/b\n"
                      "updater/optimizer:main/block/l2/W/t\n"
                      "updater/optimizer:main/block/l2/W/v\n"
                      "updater/optimizer:main/block/l2/b/t\n"
                      "updater/optimizer:main/block/l2/b/v\nupdater/optimizer:main/epoch\n"
                      "updater/optimizer:main/l1/W/t\nupdater/optimizer:main/l1/W/v\n"
                      "updater/optimizer:main/l1/b/t\nupdater/optimizer:main/l1/b/v\n"
                      "updater/optimizer:main/t\n");
}

/* 600 parameters, three links deep: any number of keys, none of which grows with it. */
static void
opt_file__of_600_parameters_is_saved_and_loaded (void **state)
{
  enum
  {
    BLOCKS = 300
  };
  const char *path = td_test_tmp ("opt.npz");
  TdLink *root = td_chain_new ("deep"), *chain = root;
  TdVar *h = td_ones (TD_F32, TD_SHAPE (1, 2));
  TdOpt *opt, *again;

  (void)state;
  for (int i = 0; i < BLOCKS; i++)
    {
      char name[24];

      snprintf (name, sizeof name, "a_rather_long_name%d", i);
      chain = td_chain_new (i % 3 == 0 ? root : chain, name);
      h = td_link (td_linear_new (chain, "l", 2, 2), h);
    }
  opt = td_momentum_sgd_new (root, .lr = 0.1);
  td_backward (td_sum (h), 0);
  assert_int_equal (td_opt_update (opt), TD_OK);
  assert_int_equal (td_save_npz (path, opt), TD_OK);
  again = td_momentum_sgd_new (root, .lr = 0.1);
  assert_int_equal (td_load_npz (path, again), TD_OK);
  assert_int_equal (td_save_npz (td_test_tmp ("again.npz"), again), TD_OK);
  assert_int_equal (td_load_npz (td_test_tmp ("again.npz"), opt), TD_OK);
}

static void
count_one (const char *path, TdLink *link, void *user)
{
  (void)path, (void)link;
  ++*(int *)user;
}

static void
count_param (const char *path, TdVar *param, void *user)
{
  int *n = user;

  (void)path;
  n[0]++;
  n[1] += td_grad (param) != NULL;
}

/* Paths of 7,000 bytes: nothing below any depth is passed over, whatever walks the tree. */
static void
tree__of_200_nested_links_is_walked_to_its_end (void **state)
{
  enum
  {
    DEPTH = 200
  };
  static const char *const endings[] = { "npz", "safetensors" };
  TdLink *root = td_chain_new ("deep"), *chain = root, *last = NULL;
  TdVar *h = td_ones (TD_F32, TD_SHAPE (1, 2));
  TdOpt *opt;
  int n = 0, params[2] = { 0, 0 };

  (void)state;
  for (int i = 0; i < DEPTH; i++)
    {
      chain = td_chain_new (chain, "a_name_of_thirty_five_bytes_in_all_");
      last = td_linear_new (chain, "l", 2, 2, .initialW = td_init_constant (0.5));
      h = td_link (last, h);
    }
  td_link_each (root, count_one, &n);
  assert_int_equal (n, 1 + 2 * DEPTH);
  opt = td_momentum_sgd_new (root, .lr = 0.1);
  td_backward (td_sum (h), 0);
  td_link_each_param_any (root, count_param, params);
  assert_int_equal (params[0], 2 * DEPTH);
  assert_int_equal (params[1], 2 * DEPTH);
  assert_int_equal (td_opt_update (opt), TD_OK);
  for (int i = 0; i < 2; i++)
    {
      char name[40];
      float w[4] = { 1, 2, 3, 4 }, saved[4], loaded[4];
      TdVar *W = td_link_param (last, "W");
      TdOpt *again = td_momentum_sgd_new (root, .lr = 0.1);

      snprintf (name, sizeof name, "deep.%s", endings[i]);
      td_read (W, saved, sizeof saved);
      assert_int_equal (i == 0 ? td_save_npz (td_test_tmp (name), root)
                               : td_save_safetensors (td_test_tmp (name), root),
                        TD_OK);
      td_write (W, w, sizeof w);
      assert_int_equal (i == 0 ? td_load_npz (td_test_tmp (name), root)
                               : td_load_safetensors (td_test_tmp (name), root),
                        TD_OK);
      td_read (W, loaded, sizeof loaded);
      assert_memory_equal (loaded, saved, sizeof saved);
      snprintf (name, sizeof name, "opt.%s", endings[i]);
      assert_int_equal (i == 0 ? td_save_npz (td_test_tmp (name), opt)
                               : td_save_safetensors (td_test_tmp (name), opt),
                        TD_OK);
      assert_int_equal (i == 0 ? td_load_npz (td_test_tmp (name), again)
                               : td_load_safetensors (td_test_tmp (name), again),
                        TD_OK);
    }
  td_cleargrads (root);
  memset (params, 0, sizeof params);
  td_link_each_param_any (root, count_param, params);
  assert_int_equal (params[1], 0);
}

/* Files of before: what has been trained 3 times goes on as if nobody had stopped it. */
static void
old_files__are_read (void **state)
{
  float through[N_WEIGHTS], rest[N_WEIGHTS];
  Training t, u, v;

  (void)state;
  training_start (&t, 6);
  assert_int_equal (td_trainer_run (t.trainer), TD_OK);
  weights_of (t.net.root, through);

  training_start (&u, 6);
  assert_int_equal (td_load_npz (numpys_file ("old-trainer.npz"), u.trainer), TD_OK);
  assert_int_equal (td_iter_count (u.iter), 3);
  assert_int_equal (td_trainer_run (u.trainer), TD_OK);
  weights_of (u.net.root, rest);
  assert_close (rest, through, N_WEIGHTS);

  /* The optimizer's alone, beside the model's keys in the trainer's file. */
  training_start (&v, 3);
  assert_int_equal (
      td_load_npz (numpys_file ("old-trainer.npz"), v.net.root, .path = "updater/model:main/"),
      TD_OK);
  assert_int_equal (td_load_npz (numpys_file ("old-optimizer.npz"), v.opt), TD_OK);
  /* 3 iterations of 2 batches: the fourth batch is the second one. */
  TdBatch b = td_iter_next (v.iter);
  for (int i = 0; i < 3; i++)
    {
      b = td_iter_next (v.iter);
      td_cleargrads (v.net.root);
      td_backward (loss_of (&v.net, &b), 0);
      assert_int_equal (td_opt_update (v.opt), TD_OK);
    }
  weights_of (v.net.root, rest);
  assert_close (rest, through, N_WEIGHTS);
}

/* --- numbers that would be lost --- */

typedef struct
{
  TdDtype dtype;
  double value; /* an element between two zeros */
} Numbers;

static void
serialize_numbers (void *object, TdSerializer *s)
{
  Numbers *n = object;
  TdShape shape = TD_SHAPE (3);
  void *data = calloc (3, 8);

  if (!td_serializer_loading (s))
    switch (n->dtype)
      {
      case TD_F64:
        ((double *)data)[1] = n->value;
        break;
      case TD_F32:
        ((float *)data)[1] = (float)n->value;
        break;
      case TD_I64:
        ((int64_t *)data)[1] = (int64_t)n->value;
        break;
      default:
        ((int32_t *)data)[1] = (int32_t)n->value;
      }
  td_serialize_array (s, "inner/numbers", n->dtype, &shape, &data);
  if (!td_serializer_loading (s))
    free (data);
}

/* The array that is read stays with the object: taken over into a static that is freed next. */
static void *loaded;
static TdShape loaded_shape;
static TdDtype loaded_dtype;

static void
serialize_loaded (void *object, TdSerializer *s)
{
  (void)object;
  td_serialize_array (s, "inner/numbers", loaded_dtype, &loaded_shape, &loaded);
}

static void
loading__refuses_numbers_that_the_type_cannot_hold (void **state)
{
  static const struct
  {
    TdDtype from;
    double value;
    TdDtype to;
    bool fits;
  } rows[] = {
    { TD_F64, 1.75, TD_I32, false },
    { TD_F64, 3, TD_I32, true },
    { TD_F64, 3, TD_I64, true },
    { TD_F32, -0.5, TD_I64, false },
    { TD_I64, 0x1p40, TD_I32, false },
    { TD_I64, 0x1p31, TD_I32, false },
    { TD_I64, -0x1p31, TD_I32, true },
    { TD_I32, -1, TD_U8, false },
    { TD_I32, 256, TD_U8, false },
    { TD_I32, 255, TD_U8, true },
    { TD_I32, 2, TD_BOOL, false },
    { TD_I32, 1, TD_BOOL, true },
    { TD_F64, (double)NAN, TD_I64, false },
    { TD_F64, 0x1p63, TD_I64, false },
    { TD_F64, 1e300, TD_F32, false },
    { TD_F64, 0.1, TD_F32, true },
    { TD_F64, (double)INFINITY, TD_F32, true },
    { TD_F32, 70000, TD_F16, false },
    { TD_I32, 16777217, TD_F32, false },
    { TD_I32, 16777216, TD_F32, true },
    { TD_I64, 0x1p53 + 2, TD_F64, true },
    { TD_I32, 257, TD_BF16, false },
    { TD_F64, 1e-60, TD_F32, false }, /* would be 0 */
    { TD_F64, -1e-46, TD_F32, false },
    { TD_F64, 1e-45, TD_F32, true }, /* the smallest that is not */
    { TD_F32, 1e-10, TD_F16, false },
    { TD_F32, 1e-7, TD_F16, true },
    { TD_F64, 1e-50, TD_BF16, false },
    { TD_F64, 0, TD_F32, true },
  };
  const char *path = td_test_tmp ("numbers.npz");

  (void)state;
  for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
    {
      Numbers n = { rows[i].from, rows[i].value };
      TdStatus status;

      assert_int_equal (td_save_object (path, serialize_numbers, &n), TD_OK);
      loaded_dtype = rows[i].to;
      loaded = NULL;
      status = td_load_object (path, serialize_loaded, NULL);
      if (status != (rows[i].fits ? TD_OK : TD_ERR_DTYPE))
        fail_msg ("row %u: %.17g: status %d", i, rows[i].value, status);
      if (!rows[i].fits)
        {
          assert_null (loaded);
          assert_contains (said (TD_ERR_DTYPE), "inner/numbers: element 1 is ");
        }
      free (loaded);
    }
}

/* --- what is not found --- */

static void
load__that_finds_nothing_says_so (void **state)
{
  const char *path = td_test_tmp ("other.npz"), *heard = td_test_tmp ("heard");
  TdLink *other = td_chain_new ("other"), *net = td_chain_new ("net"),
         *wide = td_chain_new ("wide");
  int kept = dup (2), file = open (heard, O_CREAT | O_WRONLY | O_TRUNC, 0600);
  char *text;

  (void)state;
  td_linear_new (other, "elsewhere", 2, 2);
  td_linear_new (net, "l1", 2, 2);
  td_linear_new (wide, "l1", 3, 4);
  assert_int_equal (td_save_npz (path, other), TD_OK);
  assert_int_equal (td_save_npz (td_test_tmp ("wide.npz"), wide), TD_OK);
  dup2 (file, 2);
  assert_int_equal (td_load_npz (path, net, .strict = false), TD_OK);
  assert_int_equal (td_load_npz (td_test_tmp ("wide.npz"), net, .partial = true), TD_OK);
  dup2 (kept, 2);
  close (kept);
  close (file);
  text = td_test_read_file (heard, NULL);
  assert_contains (text, "other.npz: none of its arrays has a key that was looked for");
  assert_contains (text, "wide.npz: none of its arrays has the shape of what has its key");
  free (text);
}

/* --- a loop of the program's own --- */

typedef struct
{
  TdLink *root, *l1, *l2;
  TdOpt *opt;
  TdIter *iter;
  int64_t done;
  double best;
} Loop;

static void
loop_serialize (void *object, TdSerializer *s)
{
  Loop *l = object;

  td_serialize_link (s, "model", l->root);
  td_serialize_opt (s, "optimizer", l->opt);
  td_serialize_iter (s, "iterator", l->iter);
  td_serialize_random (s);
  td_serialize_int (s, "done", &l->done);
  td_serialize_double (s, "best", &l->best);
}

static void
loop_start (Loop *l)
{
  float x[60];
  int32_t t[20];

  assert_int_equal (td_finish (), 0);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  td_set_seed (3);
  for (int i = 0; i < 60; i++)
    x[i] = (float)(i * 37 % 23) / 11 - 1;
  for (int i = 0; i < 20; i++)
    t[i] = i * 7 % 4;
  *l = (Loop){ .root = td_chain_new ("loop"), .best = (double)INFINITY };
  l->l1 = td_linear_new (l->root, "l1", 3, 8);
  l->l2 = td_linear_new (td_chain_new (l->root, "head"), "l2", 8, 4);
  l->opt = td_adam_new (l->root, .lr = 0.01);
  l->iter
      = td_serial_iterator_new (td_tuple_dataset_new (td_tensor (TD_F32, TD_SHAPE (20, 3), x),
                                                      td_tensor (TD_I32, TD_SHAPE (20), t)),
                                .batch_size = 7);
}

static void
loop_run (Loop *l, int64_t end)
{
  for (; l->done < end; l->done++)
    TD_ITERATION (l->done)
      {
        TdBatch b = td_iter_next (l->iter);
        TdVar *h = td_dropout (td_relu (td_link (l->l1, b.x)), 0.3);
        TdVar *loss = td_softmax_cross_entropy (td_link (l->l2, h), b.t);

        td_cleargrads (l->root);
        td_backward (loss, 0);
        assert_int_equal (td_opt_update (l->opt), TD_OK);
        l->best = fmin (l->best, td_item (loss));
      }
}

static void
loop_of_ones_own__goes_on_bit_for_bit (void **state)
{
  enum
  {
    N = 3 * 8 + 8 + 8 * 4 + 4
  };
  float through[N], rest[N];
  char *paths[2]
      = { strdup (td_test_tmp ("state.npz")), strdup (td_test_tmp ("state.safetensors")) };
  double best;
  Loop l;

  (void)state;
  for (int i = 0; i < 2; i++)
    {
      loop_start (&l);
      loop_run (&l, 11);
      weights_of (l.root, through);
      best = l.best;
      loop_start (&l);
      loop_run (&l, 5); /* in the middle of an epoch */
      assert_int_equal (td_save_object (paths[i], loop_serialize, &l), TD_OK);
      loop_start (&l);
      assert_int_equal (td_load_object (paths[i], loop_serialize, &l), TD_OK);
      assert_int_equal (l.done, 5);
      loop_run (&l, 11);
      weights_of (l.root, rest);
      assert_memory_equal (rest, through, sizeof rest);
      assert_true (l.best == best);
      free (paths[i]);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    train_test (opt_file__of_nested_links_has_chainers_keys),
    train_test (trainer_file__of_nested_links_has_chainers_keys),
    train_test (opt_file__of_600_parameters_is_saved_and_loaded),
    train_test (tree__of_200_nested_links_is_walked_to_its_end),
    train_test (old_files__are_read),
    train_test (loading__refuses_numbers_that_the_type_cannot_hold),
    train_test (load__that_finds_nothing_says_so),
    train_test (loop_of_ones_own__goes_on_bit_for_bit),
  };

  return cmocka_run_group_tests_name ("serial-keys", tests, NULL, NULL);
}
