/* Trainings that are recorded with statistics: counted by the kernels that write, and read
 * apart; both are the same, numbers and tapes, and little is left to be read.
 *
 * SPDX-License-Identifier: MIT */
#include "train.h"

#include "compute/core/core.h"
#include "far-test.h"
#include "fake-remote.h"
#include "td-tape-reader.h"
#include "td-test.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const FakeCudaControl *driver;
static const char *const nets[] = { "mlp", "lenet", "lstm", "norm" };

enum
{
  STEPS = 4
};

/* What a recording cost and gave. */
typedef struct
{
  const char *path;
  double losses[STEPS];
  FakeCuda cost;
} Recording;

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  return far_test_setup (state);
}

static void
begin (const char *name, bool apart, Recording *r)
{
  TdDevice *cuda;

  r->path = td_test_tmp (name);
  remove (r->path);
  setenv ("TAPEDECK_TAPE", r->path, 1);
  setenv ("TAPEDECK_LEVEL", "stats", 1);
  setenv ("TAPEDECK_DEVICE_TIMES", "off", 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  cuda = td_device_get ("cuda:0");
  assert_non_null (cuda);
  cuda->stats_apart = apart;
  td_device_use (cuda);
}

static void
end (Recording *r)
{
  assert_null (td_error ());
  assert_int_equal (td_finish (), 0);
  r->cost = *driver->state;
  driver->reset ();
}

static TdTapeReader *
open_tape (const char *path)
{
  char error[256] = "";
  TdTapeReader *r = td_tape_reader_open (path, error, sizeof error);

  if (r == NULL)
    fail_msg ("%s", error);
  return r;
}

static Recording
train (const char *net, bool apart)
{
  static unsigned n;
  char name[40];
  Recording r = { 0 };
  TrainNet *t;

  snprintf (name, sizeof name, "t%u.tdtape", n++);
  begin (name, apart, &r);
  t = train_new (net, td_device_get ("cuda:0"));
  for (int i = 0; i < STEPS; i++)
    r.losses[i] = train_step (t, true);
  train_free (t);
  end (&r);
  return r;
}

static bool
close_to (double a, double b, double size)
{
  return a == b || (isnan (a) && isnan (b)) || fabs (a - b) <= 1e-12 * size;
}

/* The one of `it` that is of this event and variable. */
static const TdTapeStats *
find (const TdTapeIteration *it, const TdTapeStats *s, uint64_t key)
{
  for (uint32_t i = 0; i < it->n_stats; i++)
    if (it->stats[i].event == s->event && it->vars[it->stats[i].var].key == key)
      return &it->stats[i];
  return NULL;
}

static uint32_t
assert_same_iteration (const char *what, const TdTapeIteration *a, const TdTapeIteration *b)
{
  assert_int_equal (a->n_stats, b->n_stats);
  for (uint32_t i = 0; i < a->n_stats; i++)
    {
      const TdTapeStats *s = &a->stats[i], *o = find (b, s, a->vars[s->var].key);

      assert_non_null (o);
      if (s->n != o->n || s->n_sampled != o->n_sampled || s->n_zero != o->n_zero
          || s->n_nan != o->n_nan || s->n_pos_inf != o->n_pos_inf
          || s->n_neg_inf != o->n_neg_inf || memcmp (s->bins, o->bins, sizeof s->bins) != 0)
        fail_msg ("%s: event %u has other counts", what, s->event);
      if (!close_to (s->min, o->min, 0) || !close_to (s->max, o->max, 0)
          || !close_to (s->mean, o->mean, fmax (fabs (o->min), fabs (o->max)))
          || !close_to (s->m2, o->m2, o->l2 * o->l2) || !close_to (s->l2, o->l2, o->l2))
        fail_msg ("%s: event %u: %.17g to %.17g, mean %.17g, m2 %.17g, l2 %.17g; read apart "
                  "%.17g to %.17g, %.17g, %.17g, %.17g",
                  what, s->event, s->min, s->max, s->mean, s->m2, s->l2, o->min, o->max,
                  o->mean, o->m2, o->l2);
    }
  return a->n_stats;
}

static uint32_t
assert_same_tapes (const char *what, const char *one, const char *other)
{
  TdTapeReader *a = open_tape (one), *b = open_tape (other);
  const TdTapeSummaries s = td_tape_reader_summaries (a);
  uint32_t n = 0;

  assert_int_equal (s.n, td_tape_reader_summaries (b).n);
  for (uint32_t i = 0; i < s.n; i++)
    {
      char error[256] = "";
      const TdTapeIteration *x
          = td_tape_iteration_load (a, s.rows[i].number, error, sizeof error);
      const TdTapeIteration *y
          = td_tape_iteration_load (b, s.rows[i].number, error, sizeof error);

      assert_non_null (x);
      assert_non_null (y);
      n += assert_same_iteration (what, x, y);
      td_tape_iteration_free (x);
      td_tape_iteration_free (y);
    }
  td_tape_reader_free (a);
  td_tape_reader_free (b);
  return n;
}

/* Operations whose kernels count, and which of their outputs.  Updates do not, clipping among
 * them: one launch has many arrays. */
static const struct
{
  const char *op;
  unsigned outputs;
} counting[] = {
  { "batch_normalization", 1 << 0 },
  { "batch_normalization_grad", 1 << 0 },
  { "max_pooling_2d", 1 << 0 },
  { "max_pooling_2d_grad", 1 << 0 },
  { "relu", 1 << 0 },
  { "relu_grad", 1 << 0 },
  { "softmax_cross_entropy", 1 << 1 },
  { "softmax_cross_entropy_grad", 1 << 0 },
  { "lstm", 1 << 0 | 1 << 1 },
  { "lstm_grad", 1 << 0 | 1 << 1 },
  { "add", 1 << 0 },
};

static bool
is_counted (const char *op, unsigned output)
{
  for (int i = 0; i < TD_ARRAY_LENGTH (counting); i++)
    if (strcmp (counting[i].op, op) == 0)
      return counting[i].outputs >> output & 1;
  return false;
}

/* How many of a tape's arrays such operations have written, or any; `name`: of one operation.
 */
static uint32_t
written_on (const char *path, const char *name, bool any)
{
  TdTapeReader *r = open_tape (path);
  const TdTapeSummaries s = td_tape_reader_summaries (r);
  uint32_t n = 0;

  for (uint32_t i = 0; i < s.n; i++)
    {
      char error[256] = "";
      const TdTapeIteration *it
          = td_tape_iteration_load (r, s.rows[i].number, error, sizeof error);

      assert_non_null (it);
      for (uint32_t k = 0; k < it->n_stats; k++)
        {
          const TdTapeVar *v = &it->vars[it->stats[k].var];
          const char *op = td_tape_reader_op_name (r, it->events[it->stats[k].event].opdef);

          n += (name == NULL || strcmp (op, name) == 0)
               && (any
                   || is_counted (op, v->producer == (int32_t)it->stats[k].event ? v->out_index
                                                                                 : 0));
        }
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (r);
  return n;
}

static void
statistics__are_the_same_counted_and_read_apart (void **state)
{
  for (int k = 0; k < TD_ARRAY_LENGTH (nets); k++)
    {
      const Recording apart = train (nets[k], true), counted = train (nets[k], false);
      const uint32_t n = assert_same_tapes (nets[k], counted.path, apart.path);
      const uint32_t n_clipped = written_on (counted.path, "gradient_clipping", true);
      const uint32_t n_counted = written_on (counted.path, NULL, false);

      assert_memory_equal (apart.losses, counted.losses, sizeof apart.losses);
      print_message ("%s: of %u arrays %ld are read, and %ld where kernels count (%u others "
                     "are batch norm's); launches for that %ld and %ld\n",
                     nets[k], n, apart.cost.n_stats_read, counted.cost.n_stats_read,
                     written_on (counted.path, "batch_normalization", false)
                         + written_on (counted.path, "batch_normalization_grad", false),
                     apart.cost.n_stats, counted.cost.n_stats);
      assert_int_equal (counted.cost.n_stats_read, n - n_counted);
      assert_int_equal (apart.cost.n_counting, 0);
      assert_int_equal (apart.cost.n_stats_of, n);
      assert_int_equal (counted.cost.n_stats_of, n);
      assert_int_equal (apart.cost.n_stats_read, n); /* all of them small: a block each */
      assert_true (n_counted > (n - n_clipped) / 4);
      assert_true (counted.cost.n_stats <= apart.cost.n_stats);
      assert_int_equal (counted.cost.n_violations, 0);
    }
}

/* --- how the kernels come to be there --- */

/* What is said on stderr from here on goes to a file. */
static int
stderr_to (const char *path)
{
  const int before = dup (STDERR_FILENO),
            file = open (path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

  assert_true (before >= 0 && file >= 0);
  dup2 (file, STDERR_FILENO);
  close (file);
  return before;
}

/* Till here.  Returns how many lines have this text. */
static int
stderr_back (int before, const char *path, const char *text)
{
  char line[1000];
  FILE *f;
  int n = 0;

  dup2 (before, STDERR_FILENO);
  close (before);
  f = fopen (path, "r");
  assert_non_null (f);
  while (fgets (line, sizeof line, f) != NULL)
    n += strstr (line, text) != NULL;
  fclose (f);
  return n;
}

/* Each once in a process, when a launch first wants it; the user is told of that. */
static void
kernels__that_count_are_compiled_when_they_are_first_wanted (void **state)
{
  char *path = strdup (td_test_tmp ("stderr"));
  int saved = stderr_to (path);
  Recording apart, first, second;

  apart = train ("lenet", true);
  assert_int_equal (stderr_back (saved, path, "gather statistics"), 0);
  saved = stderr_to (path);
  first = train ("lenet", false);
  assert_int_equal (stderr_back (saved, path, "compiling kernels that gather statistics"), 1);
  saved = stderr_to (path);
  second = train ("lenet", false);
  assert_int_equal (stderr_back (saved, path, "statistics"), 0);
  print_message ("%ld kernels are compiled for a training that launches %ld of them\n",
                 first.cost.n_compiled, first.cost.n_counting);
  assert_int_equal (apart.cost.n_compiled, 0);
  assert_true (first.cost.n_compiled > 5 && first.cost.n_compiled < first.cost.n_counting);
  assert_int_equal (second.cost.n_compiled, 0);
  assert_int_equal (second.cost.n_counting, first.cost.n_counting);
  free (path);
}

/* Without a compiler, or with one that fails: one line says so, and all is read. */
static void
statistics__are_the_same_where_nothing_can_be_compiled (void **state)
{
  char *path = strdup (td_test_tmp ("stderr"));
  const int saved = stderr_to (path);
  const Recording apart = train ("lenet", true);
  Recording plain;

  driver->state->no_nvrtc = strcmp (getenv ("WITHOUT_COMPILER"), "missing") == 0;
  driver->state->no_compiling = strcmp (getenv ("WITHOUT_COMPILER"), "fails") == 0;
  plain = train ("lenet", false);
  assert_int_equal (stderr_back (saved, path, "cannot be compiled"), 1);
  assert_true (assert_same_tapes ("lenet", plain.path, apart.path) > 0);
  assert_memory_equal (apart.losses, plain.losses, sizeof apart.losses);
  assert_int_equal (plain.cost.n_counting, 0);
  assert_int_equal (plain.cost.n_stats_read, apart.cost.n_stats_read);
  assert_int_equal (plain.cost.n_violations, 0);
  free (path);
}

static bool
is_op (TdTapeReader *r, const TdTapeIteration *it, const TdTapeStats *s, const char *name)
{
  return strcmp (td_tape_reader_op_name (r, it->events[s->event].opdef), name) == 0;
}

/* What was counted waits for nobody's sake: its array is written again and again, and no launch
 * for statistics goes out before 64 wait; each answer is of the array as it was. */
static void
statistics__that_were_counted_do_not_hurry (void **state)
{
  for (int apart = 0; apart < 2; apart++)
    {
      Recording r = { 0 };
      TdTapeReader *tape;
      const TdTapeIteration *it = NULL;
      char error[256] = "";
      long before = 0, after = 0;
      uint32_t n = 0, first = 0;

      begin (apart ? "apart.tdtape" : "hurry.tdtape", apart, &r);
      TD_ITERATION (0)
        {
          TdVar *x = td_add_scalar (td_ones (TD_F32, TD_SHAPE (40)), 0);

          before = driver->state->n_stats;
          for (int i = 1; i <= 50; i++)
            TD_SCOPE ("its memory taken again")
              td_add_scalar (x, i);
          after = driver->state->n_stats;
        }
      end (&r);
      assert_true (apart ? after - before > 20 : after - before == 0);
      tape = open_tape (r.path);
      for (uint32_t i = 0; it == NULL && i < td_tape_reader_summaries (tape).n; i++)
        if (td_tape_reader_summaries (tape).rows[i].n_events > 50)
          it = td_tape_iteration_load (tape, td_tape_reader_summaries (tape).rows[i].number,
                                       error, sizeof error);
      assert_non_null (it);
      for (uint32_t i = 0; i < it->n_stats; i++)
        if (is_op (tape, it, &it->stats[i], "add_scalar"))
          {
            if (n++ == 0)
              first = it->stats[i].event;
            assert_true (it->stats[i].mean == (double)(it->stats[i].event - first + 1));
          }
      assert_int_equal (n, 51);
      td_tape_iteration_free (it);
      td_tape_reader_free (tape);
    }
}

/* One array of halves, one of floats, one of both signs with NaN among them. */
static void
chain (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *x = td_mul (in[0], in[1]), *h = td_cast (td_tanh (x), TD_BF16);

  out[0] = td_mul_scalar (td_exp (td_neg (td_square (x))), 3);
  out[1] = td_relu (td_add_scalar (h, -0.25));
  out[2] = td_log (td_add_scalar (x, 0.125));
}

enum
{
  CHAIN = 59 * 17, /* packs, and a rest */
  CALLS = 3
};

typedef struct
{
  unsigned char bytes[CALLS][4][CHAIN * 4];
} Bits;

/* The chain's schedule is played while all is recorded; its kernels, and those of the way back,
 * count. */
static Recording
play (bool apart, Bits *bits)
{
  Recording r = { 0 };
  TdStatic *s = td_static_new (chain, NULL);

  begin (apart ? "chain-apart.tdtape" : "chain.tdtape", apart, &r);
  for (int call = 0; call < CALLS; call++)
    TD_ITERATION (call)
      {
        TdVar *x = td_arange (TD_F32, -CHAIN / 2, CHAIN - CHAIN / 2, 1), *out[3], *grad;
        TdVar *in[2]
            = { td_variable (td_mul_scalar (x, 0.01 + 0.001 * call), "x"), td_sin (x) };

        assert_int_equal (td_static_call (s, in, 2, out, 3), TD_OK);
        td_backward (td_sum (out[0]), 0);
        grad = td_grad (in[0]);
        for (int k = 0; k < 4; k++)
          {
            TdVar *v = k < 3 ? out[k] : grad;
            const size_t size = (size_t)td_size (v) * td_dtype_bytes (td_dtype (v));

            assert_int_equal (td_size (v), CHAIN);
            assert_int_equal (td_read (v, bits->bytes[call][k], size), TD_OK);
          }
      }
  assert_int_equal (td_static_info (s).n_replays, CALLS - 1);
  assert_true (td_static_info (s).n_fused > 0);
  td_static_free (s);
  end (&r);
  return r;
}

/* Of the replays' groups: how many arrays they wrote, and how many numbers. */
static uint32_t
groups_of (const char *path)
{
  TdTapeReader *tape = open_tape (path);
  uint32_t n = 0;

  for (uint32_t i = 0; i < td_tape_reader_summaries (tape).n; i++)
    {
      char error[256] = "";
      const TdTapeIteration *it = td_tape_iteration_load (
          tape, td_tape_reader_summaries (tape).rows[i].number, error, sizeof error);

      assert_non_null (it);
      for (uint32_t k = 0; k < it->n_stats; k++)
        if (strchr (td_tape_reader_op_name (tape, it->events[it->stats[k].event].opdef), '+')
            != NULL)
          {
            assert_int_equal (it->stats[k].n, CHAIN);
            n++;
          }
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (tape);
  return n;
}

static void
statistics__of_fused_chains_are_counted_by_their_kernels (void **state)
{
  Bits *one = calloc (1, sizeof *one), *other = calloc (1, sizeof *other);
  Recording apart, counted;
  uint32_t n, n_groups;

  setenv ("TAPEDECK_CUDA_CACHE", "off", 1);
  apart = play (true, one);
  counted = play (false, other);
  n = assert_same_tapes ("a chain", counted.path, apart.path);
  n_groups = groups_of (counted.path);
  print_message ("of %u arrays, %u of them of groups, %ld are read, and %ld where kernels "
                 "count; fused kernels that count: %ld launches\n",
                 n, n_groups, apart.cost.n_stats_read, counted.cost.n_stats_read,
                 counted.cost.n_counting_fused);
  assert_memory_equal (one, other, sizeof *one);
  assert_int_equal (apart.cost.n_counting, 0);
  assert_true (n_groups >= 3 * (CALLS - 1));
  assert_int_equal (groups_of (apart.path), n_groups);
  assert_true (counted.cost.n_counting_fused >= CALLS - 1);
  assert_true (counted.cost.n_stats_read + n_groups <= apart.cost.n_stats_read);
  assert_int_equal (counted.cost.n_violations, 0);
  free (one);
  free (other);
}

/* Of more than 65536 numbers the histogram is from some of them, unless all have been counted.
 */
static void
statistics__of_large_arrays_are_of_all_numbers_where_counted (void **state)
{
  for (int apart = 0; apart < 2; apart++)
    {
      Recording r = { 0 };
      TdTapeReader *tape;
      char error[256] = "";
      uint32_t n_large = 0;

      begin (apart ? "large-apart.tdtape" : "large.tdtape", apart, &r);
      TD_ITERATION (0)
        td_relu (td_add_scalar (td_ones (TD_F32, TD_SHAPE (70000)), -3));
      end (&r);
      tape = open_tape (r.path);
      for (uint32_t i = 0; i < td_tape_reader_summaries (tape).n; i++)
        {
          const TdTapeIteration *it = td_tape_iteration_load (
              tape, td_tape_reader_summaries (tape).rows[i].number, error, sizeof error);

          for (uint32_t s = 0; s < it->n_stats; s++)
            if (is_op (tape, it, &it->stats[s], "add_scalar")
                || is_op (tape, it, &it->stats[s], "relu"))
              {
                uint64_t in_bins = it->stats[s].n_zero;

                for (int b = 0; b < 32; b++)
                  in_bins += it->stats[s].bins[b];
                assert_int_equal (it->stats[s].n, 70000);
                assert_true (apart ? it->stats[s].n_sampled < 5000
                                   : it->stats[s].n_sampled == 70000 && in_bins == 70000);
                n_large++;
              }
          td_tape_iteration_free (it);
        }
      assert_int_equal (n_large, 2);
      td_tape_reader_free (tape);
    }
}

int
main (int argc, char **argv)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, far_test_teardown)
  const struct CMUnitTest tests[] = {
    row (kernels__that_count_are_compiled_when_they_are_first_wanted), /* the first to want any
                                                                        */
    row (statistics__are_the_same_counted_and_read_apart),
    row (statistics__that_were_counted_do_not_hurry),
    row (statistics__of_fused_chains_are_counted_by_their_kernels),
    row (statistics__of_large_arrays_are_of_all_numbers_where_counted),
  };
  const struct CMUnitTest without[]
      = { row (statistics__are_the_same_where_nothing_can_be_compiled) };

  if (getenv ("WITHOUT_COMPILER") != NULL)
    return cmocka_run_group_tests (without, NULL, NULL);
  if (argc > 1)
    cmocka_set_test_filter (argv[1]);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
