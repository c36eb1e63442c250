/* Whole nets in double and half precision as C programs: a convolution net and a block of a
 * transformer, each compiled by gcc and by clang, where they are there, with warnings as
 * errors, gives the numbers of the engine.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  BATCH = 3,
  SIDE = 16,
  CLASSES = 10,
  STEPS = 7,
  WIDTH = 16,
  HEADS = 2,
  WORDS = 11,
  MOST_NUMBERS = 1024
};

/* --- a convolution net --- */

typedef struct
{
  TdLink *c1, *c2, *bn, *l1, *l2;
} Lenet;

static void
lenet_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Lenet *net = self;
  TdVar *h = td_relu (td_link (net->c1, in[0]));

  (void)n_in;
  (void)n_out;
  h = td_max_pooling_2d (h, .ksize = { 2, 2 }, .stride = { 2, 2 });
  h = td_relu (td_link (net->bn, td_link (net->c2, h)));
  h = td_average_pooling_2d (h, .ksize = { 2, 2 }, .stride = { 2, 2 });
  h = td_relu (td_link (net->l1, h));
  out[0] = td_log_softmax (td_link (net->l2, h), .axis = 1);
}

static TdLink *
lenet_new (void *self)
{
  Lenet *net = self;
  TdLink *root = td_chain_new ("lenet");

  net->c1 = td_convolution_2d_new (root, "c1", 1, 6, 5, .pad = { 2, 2 });
  net->c2 = td_convolution_2d_new (root, "c2", 6, 12, 5);
  net->bn = td_batch_normalization_new (root, "bn", 12);
  net->l1 = td_linear_new (root, "l1", TD_INFER, 24);
  net->l2 = td_linear_new (root, "l2", 24, CLASSES);
  return root;
}

static TdVar *
lenet_input (TdDtype dtype)
{
  const TdShape shape = TD_SHAPE (BATCH, 1, SIDE, SIDE);
  TdVar *ramp = td_reshape (td_arange (TD_F64, 0, BATCH * SIDE * SIDE, 1), shape);

  return td_cast (td_sin (td_mul_scalar (ramp, 0.37)), dtype);
}

/* --- a block of a transformer --- */

typedef struct
{
  TdLink *words, *places, *ln1, *qkv, *proj, *ln2, *up, *down, *head;
} Block;

static TdVar *
attend (Block *b, TdVar *x)
{
  static const int order[] = { 0, 2, 1, 3 };
  TdVar *part[3];

  td_split_axis (td_link (b->qkv, x), 3, 1, part);
  for (int i = 0; i < 3; i++)
    part[i] = td_transpose (td_reshape (part[i], TD_SHAPE (BATCH, STEPS, HEADS, WIDTH / HEADS)),
                            order);
  x = td_scaled_dot_product_attention (part[0], part[1], part[2], .causal = true);
  x = td_reshape (td_transpose (x, order), TD_SHAPE (BATCH * STEPS, WIDTH));
  return td_link (b->proj, x);
}

static void
block_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Block *b = self;
  TdVar *places = td_arange (TD_I32, 0, STEPS, 1);
  TdVar *h = td_add (td_link (b->words, in[0]), td_link (b->places, places));

  (void)n_in;
  (void)n_out;
  h = td_reshape (h, TD_SHAPE (BATCH * STEPS, WIDTH));
  h = td_add (h, attend (b, td_link (b->ln1, h)));
  h = td_add (h, td_link (b->down, td_gelu (td_link (b->up, td_link (b->ln2, h)))));
  out[0] = td_log_softmax (td_link (b->head, h), .axis = 1);
}

static TdLink *
block_new (void *self)
{
  Block *b = self;
  TdLink *root = td_chain_new ("block");

  b->words = td_embed_id_new (root, "words", WORDS, WIDTH);
  b->places = td_embed_id_new (root, "places", STEPS, WIDTH);
  b->ln1 = td_layer_normalization_new (root, "ln1", WIDTH);
  b->qkv = td_linear_new (root, "qkv", WIDTH, 3 * WIDTH);
  b->proj = td_linear_new (root, "proj", WIDTH, WIDTH);
  b->ln2 = td_layer_normalization_new (root, "ln2", WIDTH);
  b->up = td_linear_new (root, "up", WIDTH, 2 * WIDTH);
  b->down = td_linear_new (root, "down", 2 * WIDTH, WIDTH);
  b->head = td_linear_new (root, "head", WIDTH, WORDS);
  return root;
}

static TdVar *
block_input (TdDtype dtype)
{
  int32_t words[BATCH * STEPS];

  (void)dtype;
  for (int i = 0; i < BATCH * STEPS; i++)
    words[i] = 7 * i % WORDS;
  return td_tensor (TD_I32, TD_SHAPE (BATCH, STEPS), words);
}

/* --- both --- */

typedef struct
{
  const char *name;
  TdStaticFn forward;
  TdLink *(*make) (void *self);
  TdVar *(*input) (TdDtype dtype);
} Net;
static const Net nets[] = {
  { "lenet", lenet_forward, lenet_new, lenet_input },
  { "block", block_forward, block_new, block_input },
};

/* Run the program, compiled so, on the input; its bytes.  *Owner*: free. */
static char *
run_program (const char *name, const char *compiler, size_t *n)
{
  TdTestChild child;

  child
      = td_test_shell ("cd '%s' && %s -DMAIN -Wall -Wextra -Werror -O1 -o program %s.c -lm && "
                       "./program %s.bin < input.raw > got.raw",
                       td_test_tmp ("."), compiler, name, name);
  assert_string_equal (child.err, "");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return td_test_read_file (td_test_tmp ("got.raw"), n);
}

/* All numbers of y as doubles; returns how many. */
static int
doubles_of (TdVar *y, double *to)
{
  assert_in_range (td_size (y), 1, MOST_NUMBERS);
  assert_int_equal (td_read (td_cast (y, TD_F64), to, (size_t)td_size (y) * sizeof *to), TD_OK);
  return (int)td_size (y);
}

/* What the net gives in the engine, replayed, and its program in a folder. */
static int
write_net (const Net *net, TdDtype dtype, double *want)
{
  union
  {
    Lenet lenet;
    Block block;
  } links;
  TdLink *root = NULL;
  TdStatic *s = td_static_new (net->forward, &links, .name = net->name);
  char bytes[BATCH * SIDE * SIDE * sizeof (double)];
  int n = 0;

  TD_USING (dtype, (int)dtype)
    root = net->make (&links);
  TD_USING (train, 0)
    TD_NO_BACKPROP
      TD_SCOPE ("call")
        {
          TdVar *x = net->input (dtype), *y = td_static_call1 (s, x);
          const size_t n_bytes = (size_t)td_size (x) * td_dtype_bytes (td_dtype (x));

          fill_params (root, 9);
          y = td_static_call1 (s, x);
          assert_int_equal (td_static_info (s).n_replays, 1);
          assert_int_equal (td_dtype (y), dtype);
          n = doubles_of (y, want);
          assert_true (n_bytes <= sizeof bytes);
          assert_int_equal (td_read (x, bytes, n_bytes), TD_OK);
          td_test_write_file (td_test_tmp ("input.raw"), bytes, n_bytes);
        }
  {
    char file[64];

    snprintf (file, sizeof file, "%s.c", net->name);
    if (td_static_save (s, td_test_tmp (file), .weights_beside = true) != TD_OK)
      fail_msg ("%s", td_error ()->message);
  }
  td_static_free (s);
  td_link_free (root);
  return n;
}

/* Halves may be two roundings of 1 off, as one that is decided otherwise goes on through the
 * net. */
static void
agree (const Net *net, TdDtype dtype, double tolerance)
{
  static const char *const compilers[] = { "gcc -std=c99", "clang -std=c11" };
  double want[MOST_NUMBERS], got[MOST_NUMBERS];
  const int n = write_net (net, dtype, want);
  int n_compiled = 0;

  for (size_t c = 0; c < sizeof compilers / sizeof *compilers; c++)
    {
      TdTestChild child = td_test_shell ("command -v %s > /dev/null", compilers[c]);
      const bool is_there = child.status == 0;
      char *bytes;
      size_t n_bytes;
      int n_same = 0;

      td_test_child_clear (&child);
      if (!is_there)
        continue;
      n_compiled++;
      bytes = run_program (net->name, compilers[c], &n_bytes);
      assert_int_equal (n_bytes, (size_t)n * td_dtype_bytes (dtype));
      TD_SCOPE ("got")
        doubles_of (td_tensor (dtype, TD_SHAPE (n), bytes), got);
      free (bytes);
      for (int i = 0; i < n; i++)
        {
          n_same += got[i] == want[i];
          if (!(fabs (got[i] - want[i]) <= tolerance * (1 + fabs (want[i]))))
            fail_msg ("number %d of %s is %.17g, expected %.17g", i, net->name, got[i],
                      want[i]);
        }
      print_message ("%s of %s: %d of %d numbers are the same\n", net->name,
                     td_dtype_name (dtype), n_same, n);
    }
  if (n_compiled == 0)
    skip ();
}

static void
agree_all (TdDtype dtype, double tolerance)
{
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
    agree (&nets[i], dtype, tolerance);
}

static void
export__a_net_of_doubles_gives_the_same_as_c (void **state)
{
  (void)state;
  agree_all (TD_F64, 1e-12);
}

static void
export__a_net_of_float16_gives_the_same_as_c (void **state)
{
  (void)state;
  agree_all (TD_F16, 0x1p-10);
}

static void
export__a_net_of_bfloat16_gives_the_same_as_c (void **state)
{
  (void)state;
  agree_all (TD_BF16, 0x1p-7);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (export__a_net_of_doubles_gives_the_same_as_c),
    engine_test (export__a_net_of_float16_gives_the_same_as_c),
    engine_test (export__a_net_of_bfloat16_gives_the_same_as_c),
  };

  return cmocka_run_group_tests_name ("static_export_types", tests, NULL, NULL);
}
