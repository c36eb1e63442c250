/* What a recording asks the device and does not wait for: statistics and times on the tape, and
 * what asking costs.
 *
 * SPDX-License-Identifier: MIT */
#include "train.h"

#include "compute/core/core.h"
#include "far-test.h"
#include "fake-remote.h"
#include "far-tape.h"
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

static const FakeCudaControl *driver;
static const char *self;
static const char *const nets[] = { "mlp", "lenet", "lstm" };

enum
{
  WARM = 3, /* iterations that may set things up */
  STEPS = 6
};

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  return far_test_setup (state);
}

static const char *
start (const char *name, const char *level, const char *times)
{
  const char *path = td_test_tmp (name);

  remove (path); /* a tape is never written over */
  setenv ("TAPEDECK_TAPE", path, 1);
  setenv ("TAPEDECK_LEVEL", level, 1);
  setenv ("TAPEDECK_DEVICE_TIMES", times, 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  return path;
}

static const TdTapeIteration *
load (TdTapeReader *r, uint64_t number)
{
  char error[256] = "";
  const TdTapeIteration *it = td_tape_iteration_load (r, number, error, sizeof error);

  if (it == NULL)
    fail_msg ("%s", error);
  return it;
}

/* Number of the iteration after `n` others of the program; what came before is one as well. */
static uint64_t
number_of (TdTapeReader *r, uint32_t label)
{
  TdTapeSummaries s = td_tape_reader_summaries (r);

  for (uint32_t i = 0; i < s.n; i++)
    if (s.rows[i].label == (TD_TAPE_LABEL_NUMBER | label))
      return s.rows[i].number;
  fail_msg ("no iteration %u", label);
  return 0;
}

/* --- waiting --- */

typedef struct
{
  long waits, launches, stats;
} Cost;

/* What STEPS steady iterations cost the driver; level NULL: not recorded. */
static Cost
cost_of (const char *net, const char *level, const char *times, bool reads)
{
  TrainNet *t;
  Cost cost = { 0 };

  if (level != NULL)
    start ("cost.tdtape", level, times);
  else
    assert_int_equal (td_init (NULL, NULL), TD_OK);
  t = train_new (net, td_device_get ("cuda:0"));
  for (int i = 0; i < WARM + STEPS; i++)
    {
      if (i == WARM)
        cost = (Cost){ driver->state->n_waits, driver->state->n_launches,
                       driver->state->n_stats };
      train_step (t, reads);
    }
  cost = (Cost){ driver->state->n_waits - cost.waits, driver->state->n_launches - cost.launches,
                 driver->state->n_stats - cost.stats };
  train_free (t);
  assert_null (td_error ());
  assert_int_equal (td_finish (), 0);
  driver->reset ();
  return cost;
}

static void
iterations__wait_only_for_what_the_host_reads (void **state)
{
  static const struct
  {
    const char *level, *times;
  } ways[] = { { NULL, NULL }, { "graph", "off" }, { "graph", "all" }, { "stats", "all" } };

  for (int i = 0; i < TD_ARRAY_LENGTH (nets); i++)
    for (int k = 0; k < TD_ARRAY_LENGTH (ways); k++)
      {
        Cost silent = cost_of (nets[i], ways[k].level, ways[k].times, false);
        Cost read = cost_of (nets[i], ways[k].level, ways[k].times, true);

        if (silent.waits != 0 || read.waits != STEPS)
          fail_msg ("%s, level %s, times %s: %ld waits, and %ld for %d reads", nets[i],
                    ways[k].level, ways[k].times, silent.waits, read.waits, STEPS);
        assert_true (silent.launches > 10 * STEPS);
      }
}

static void
statistics__take_few_launches (void **state)
{
  for (int i = 0; i < TD_ARRAY_LENGTH (nets); i++)
    {
      Cost plain = cost_of (nets[i], "graph", "off", false),
           stats = cost_of (nets[i], "stats", "off", false);
      TdTapeReader *r = far_tape_open (td_test_tmp ("cost.tdtape"));
      const TdTapeIteration *it = load (r, number_of (r, WARM));

      print_message ("%s: %ld launches, %.1f for statistics of %u arrays in an iteration\n",
                     nets[i], plain.launches / STEPS, (double)stats.stats / STEPS, it->n_stats);
      assert_int_equal (plain.stats, 0);
      assert_int_equal (stats.launches - stats.stats, plain.launches);
      assert_true (stats.stats > 0 && stats.stats * 2 < (long)it->n_stats * STEPS);
      td_tape_iteration_free (it);
      td_tape_reader_free (r);
    }
}

/* --- statistics --- */

static bool keeps_layouts;

static const char *
record_training (const char *name, const char *net, const char *device, const char *times,
                 bool reads)
{
  const char *path = start (name, "stats", times);
  TrainNet *t;

  td_config_set (channels_last, keeps_layouts ? 1 : 0); /* 0: event by event the CPU's graph */
  t = train_new (net, td_device_get (device));
  for (int i = 0; i < STEPS; i++)
    train_step (t, reads);
  train_free (t);
  assert_int_equal (td_finish (), 0);
  return path;
}

/* A number that is left where larger ones cancel is as far off as they are: gradients of 0.01.
 */
static bool
close_to (double a, double b, double largest, double tolerance)
{
  return a == b || (isnan (a) && isnan (b))
         || fabs (a - b) <= tolerance * (largest + 0.01) + 1e-9;
}

static void
assert_same_stats (const TdTapeStats *a, const TdTapeStats *b, double tolerance)
{
  assert_int_equal (a->event, b->event);
  assert_int_equal (a->n, b->n);
  assert_int_equal (a->n_sampled, b->n_sampled);
  assert_int_equal (a->n_nan, b->n_nan);
  const double largest = fmax (fabs (b->min), fabs (b->max));
  if (!close_to (a->min, b->min, largest, tolerance)
      || !close_to (a->max, b->max, largest, tolerance))
    fail_msg ("event %u: %.9g to %.9g, the CPU's %.9g to %.9g", a->event, a->min, a->max,
              b->min, b->max);
  assert_true (close_to (a->l2, b->l2, b->l2, tolerance));
  assert_true (fabs (a->mean - b->mean) <= tolerance * (a->l2 + 1));
}

/* With and without reads in between, answers come at other times and are the same. */
static void
statistics__on_the_tape_are_the_cpus (void **state)
{
  for (int k = 0; k < TD_ARRAY_LENGTH (nets); k++)
    {
      TdTapeReader *here
          = far_tape_open (record_training ("cpu.tdtape", nets[k], "cpu", "off", false));
      TdTapeReader *there
          = far_tape_open (record_training ("gpu.tdtape", nets[k], "cuda:0", "all", k == 0));

      for (uint32_t i = 0; i < STEPS; i++)
        {
          const TdTapeIteration *a = load (here, number_of (here, i)),
                                *b = load (there, number_of (there, i));

          /* later ones drift: Adam makes whole steps of gradients that are rounding alone */
          const double tolerance = i == 0 ? STATS_TOLERANCE : STATS_TOLERANCE * 100;

          /* The CPU counts leaves, updated weights and what gradients grow to as well. */
          assert_true (b->n_stats > 10);
          assert_true (a->n_stats > b->n_stats);
          assert_int_equal (b->flags & TD_TAPE_ITERATION_LOST, 0);
          for (uint32_t s = 0; s < b->n_stats; s++)
            {
              const TdTapeStats *other = NULL; /* moments of one event may come in any order */

              for (uint32_t o = 0; o < a->n_stats; o++)
                if (a->stats[o].event == b->stats[s].event
                    && a->vars[a->stats[o].var].key == b->vars[b->stats[s].var].key)
                  other = &a->stats[o];
              assert_non_null (other);
              assert_same_stats (&b->stats[s], other, tolerance);
            }
          td_tape_iteration_free (a);
          td_tape_iteration_free (b);
        }
      td_tape_reader_free (here);
      td_tape_reader_free (there);
    }
}

static uint32_t
count_key (const TdTapeIteration *it, uint64_t key)
{
  uint32_t n = 0;

  for (uint32_t e = 0; e < it->n_events; e++)
    n += it->events[e].key == key;
  return n;
}

/* Changes of layout are more operations, and give no other a new name: tapes of both devices
 * can be laid side by side. */
static void
keys__are_the_cpus_where_layouts_change (void **state)
{
  TdTapeReader *here
      = far_tape_open (record_training ("cpu.tdtape", "lenet", "cpu", "off", false));
  TdTapeReader *there;

  keeps_layouts = true;
  there = far_tape_open (record_training ("gpu.tdtape", "lenet", "cuda:0", "off", false));
  keeps_layouts = false;
  for (uint32_t i = 0; i < STEPS; i++)
    {
      const TdTapeIteration *a = load (here, number_of (here, i)),
                            *b = load (there, number_of (there, i));
      uint32_t n_changes = 0;

      for (uint32_t e = 0; e < a->n_events; e++)
        assert_int_equal (count_key (b, a->events[e].key), 1);
      for (uint32_t e = 0; e < b->n_events; e++)
        {
          const bool changes
              = strcmp (td_tape_reader_op_name (there, b->events[e].opdef), "to_layout") == 0;

          assert_int_equal (count_key (b, b->events[e].key), 1);
          assert_int_equal (count_key (a, b->events[e].key), !changes);
          n_changes += changes;
        }
      assert_int_equal (n_changes, 2); /* before the linear layer, and its gradient */
      td_tape_iteration_free (a);
      td_tape_iteration_free (b);
    }
  td_tape_reader_free (here);
  td_tape_reader_free (there);
}

/* The array is another one when the answer comes. */
static void
statistics__are_of_the_array_as_it_was (void **state)
{
  const char *path = start ("t.tdtape", "stats", "off");
  const float four[4] = { 4, 4, 4, 4 };
  TdTapeReader *r;
  const TdTapeIteration *it;
  int n = 0;

  td_device_use (td_device_get ("cuda:0"));
  TD_ITERATION (0)
    {
      TdVar *x = td_mul_scalar (td_ones (TD_F32, TD_SHAPE (4)), 3);

      assert_int_equal (td_write (x, four, sizeof four), TD_OK);
      TD_SCOPE ("freed")
        td_add_scalar (td_mul_scalar (x, 2), 1);
      TD_SCOPE ("its memory taken again")
        td_mul_scalar (x, 100);
      assert_true (td_item (td_sum (x)) == 16);
    }
  assert_int_equal (td_finish (), 0);
  r = far_tape_open (path);
  it = load (r, number_of (r, 0));
  for (uint32_t i = 0; i < it->n_stats; i++)
    {
      static const double means[] = { 3, 8, 9, 400, 16 };
      const char *op = td_tape_reader_op_name (r, it->events[it->stats[i].event].opdef);

      if (strcmp (op, "full") == 0)
        continue;
      assert_true (n < TD_ARRAY_LENGTH (means));
      if (it->stats[i].mean != means[n])
        fail_msg ("%s: %g instead of %g", op, it->stats[i].mean, means[n]);
      n++;
    }
  assert_int_equal (n, 5);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

static void
statistics__find_the_nan_of_an_iteration_that_is_over (void **state)
{
  const char *path = start ("t.tdtape", "stats", "off");
  TdTapeReader *r;
  const TdTapeIteration *it;

  td_device_use (td_device_get ("cuda:0"));
  TD_ITERATIONS (i, 3)
    td_log (td_full (TD_F32, TD_SHAPE (5), i == 1 ? -1.0 : 1.0));
  assert_int_equal (td_finish (), 0);
  r = far_tape_open (path);
  for (uint32_t i = 0; i < 3; i++)
    {
      it = load (r, number_of (r, i));
      assert_int_equal ((it->flags & TD_TAPE_ITERATION_NAN) != 0, i == 1);
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (r);
}

/* --- times --- */

/* Views and leaves do not run there. */
static uint32_t
n_on_device (const TdTapeIteration *it)
{
  uint32_t n = 0;

  for (uint32_t e = 0; e < it->n_events; e++)
    {
      const TdTapeEvent *event = &it->events[e];
      uint32_t var = event->n_out > 0  ? it->outs[event->first_out]
                     : event->n_in > 0 ? it->ins[event->first_in]
                                       : TD_TAPE_NONE;

      n += var != TD_TAPE_NONE && it->vars[var].device != 0
           && !(event->flags & TD_TAPE_EVENT_SHARED);
    }
  return n;
}

/* The fake driver's clock: a thousandth of a millisecond for each command. */
static void
times__are_of_every_event_on_the_device (void **state)
{
  TdTapeReader *r = far_tape_open (record_training ("t.tdtape", "mlp", "cuda:0", "all", false));

  for (uint32_t i = 0; i < STEPS; i++)
    {
      const TdTapeIteration *it = load (r, number_of (r, i));
      uint64_t end = 0;

      assert_true (n_on_device (it) > 20);
      assert_int_equal (it->n_device_times, n_on_device (it));
      for (uint32_t k = 0; k < it->n_device_times; k++)
        {
          const TdTapeDeviceTime *t = &it->device_times[k];

          assert_int_equal (t->kind, TD_TAPE_DEVICE_TIME_SAMPLED);
          assert_int_equal (t->device, 2);
          assert_true (t->duration_ns >= 1900); /* its kernel, and the mark */
          assert_true (t->start_ns + 1 >= it->event_start_ns[t->event]); /* rounded */
          assert_true (t->start_ns + 1 >= end);
          end = t->start_ns + t->duration_ns;
        }
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (r);
}

/* Iterations with times; those in all are counted too. */
static uint32_t
n_timed (const char *times, uint32_t *all)
{
  TdTapeReader *r = far_tape_open (record_training ("t.tdtape", "mlp", "cuda:0", times, false));
  TdTapeSummaries s = td_tape_reader_summaries (r);
  uint32_t n = 0;

  *all = s.n;
  for (uint32_t i = 0; i < s.n; i++)
    {
      const TdTapeIteration *it = load (r, s.rows[i].number);

      n += it->n_device_times > 0;
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (r);
  driver->reset ();
  return n;
}

static void
times__are_taken_as_often_as_was_said (void **state)
{
  uint32_t all, n = n_timed ("all", &all);

  assert_true (all >= STEPS);
  assert_int_equal (n, all);
  assert_int_equal (n_timed ("off", &all), 0);
  n = n_timed ("3", &all);
  assert_int_equal (n, (all + 2) / 3);
  assert_true (n_timed ("auto", &all) >= 2);
}

/* A run in a process of its own, since CUPTI is looked for once: what it writes is also what
 * the window is shown. */
static int
record_traced (const char *path, bool reads)
{
  TrainNet *t;

  if (far_cuda_driver () == NULL)
    return 1;
  setenv ("TAPEDECK_TAPE", path, 1);
  setenv ("TAPEDECK_DEVICE_TIMES", "all", 0);
  far_cuda_driver ()->state->outside_bytes = (size_t)300 << 20;
  td_init (NULL, NULL);
  t = train_new ("mlp", td_device_get ("cuda:0"));
  train_copies (t);
  for (int i = 0; i < STEPS; i++)
    train_step (t, reads);
  train_free (t);
  puts (td_device_backends ());
  return td_finish () != 0 || far_cuda_driver ()->state->n_violations > 0;
}

static TdTestChild
child_of (const char *path, const char *library)
{
  const char *const argv[] = { self, "--record", path, NULL };
  const char *const env[] = { "TAPEDECK_CUPTI=1", library, NULL };
  TdTestChild child = td_test_run (argv, NULL, env);

  assert_child_status (child, 0);
  return child;
}

static void
times__are_the_kernels_own_where_cupti_traces (void **state)
{
  const char *path = td_test_tmp ("t.tdtape");
  TdTestChild child = child_of (path, "FAKE_CUPTI=1");
  TdTapeReader *r = far_tape_open (path);
  uint32_t n_exact = 0;

  assert_contains (child.out, "no cuDNN, no NCCL, CUPTI 13");
  td_test_child_clear (&child);
  for (uint32_t i = 0; i < STEPS; i++)
    {
      const TdTapeIteration *it = load (r, number_of (r, i));

      assert_int_equal (it->n_device_times, n_on_device (it));
      for (uint32_t k = 0; k < it->n_device_times; k++)
        if (it->device_times[k].kind == TD_TAPE_DEVICE_TIME_EXACT)
          {
            n_exact++; /* 700 ns each, a microsecond apart */
            assert_int_equal (it->device_times[k].duration_ns % 1000, 700);
          }
      td_tape_iteration_free (it);
    }
  assert_true (n_exact > STEPS * 20);
  td_tape_reader_free (r);
}

static void
times__are_sampled_where_cupti_is_not (void **state)
{
  const char *path = td_test_tmp ("t.tdtape");
  TdTestChild child = child_of (path, NULL);
  TdTapeReader *r = far_tape_open (path);
  const TdTapeIteration *it = load (r, number_of (r, 2));

  assert_contains (child.out, "no CUPTI (libcupti.so.13 cannot be opened)");
  td_test_child_clear (&child);
  assert_int_equal (it->n_device_times, n_on_device (it));
  for (uint32_t k = 0; k < it->n_device_times; k++)
    assert_int_equal (it->device_times[k].kind, TD_TAPE_DEVICE_TIME_SAMPLED);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* --- the device on the tape --- */

static void
device__is_on_the_tape_with_its_memory (void **state)
{
  const char *path = start ("t.tdtape", "graph", "auto");
  TdDevice *cuda = td_device_get ("cuda:0");
  TdTapeReader *r;
  const TdTapeIteration *it;
  int n_large[256] = { 0 };
  TdVar *x;

  driver->state->outside_bytes = (size_t)300 << 20;
  x = td_retain (td_to_device (td_ones (TD_F32, TD_SHAPE (1000)), cuda));
  TD_ITERATION (0)
    {
      td_relu (x);
      td_relu (td_ones (TD_F32, TD_SHAPE (10)));
    }
  TD_ITERATION (1)
    td_relu (x);
  td_release (x);
  assert_int_equal (td_finish (), 0);
  r = far_tape_open (path);
  it = load (r, number_of (r, 0));
  assert_int_equal (it->n_devices, 1);
  assert_int_equal (it->devices[0].device, 2);
  assert_string_equal (td_tape_reader_string (r, it->devices[0].name), "cuda:0 Fake H200");
  assert_int_equal (it->devices[0].total_bytes, driver->state->total_bytes);
  assert_int_equal (it->devices[0].outside_bytes, (size_t)300 << 20);
  assert_true (it->devices[0].live_bytes >= 4000);
  assert_true (it->devices[0].reserved_bytes >= it->devices[0].live_bytes);
  for (uint32_t e = 0; e < it->n_events; e++)
    {
      const TdTapeVar *v = &it->vars[it->outs[it->events[e].first_out]];

      if (strcmp (td_tape_reader_op_name (r, it->events[e].opdef), "relu") == 0)
        assert_int_equal (v->device, it->dims[v->first_dim] == 1000 ? 2 : 0);
    }
  for (uint32_t m = 0; m < it->n_memory; m++)
    if (it->memory[m].kind == TD_TAPE_MEMORY_ALLOC && it->memory[m].bytes >= 4000)
      assert_int_equal (it->memory[m].device, 2);
  td_tape_iteration_free (it);
  it = load (r, number_of (r, 1));
  for (uint32_t b = 0; b < it->n_blocks; b++)
    if (it->blocks[b].bytes >= 4000)
      n_large[it->blocks[b].device]++;
  assert_int_equal (n_large[0], 1); /* what x was copied from */
  assert_int_equal (n_large[2], 1);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* What the tape says adds up to what the device says, and the recording's own is nobody's. */
static void
pools__are_on_the_tape_and_are_all_of_the_device (void **state)
{
  const char *path = start ("t.tdtape", "stats", "auto");
  TdDevice *cuda = td_device_get ("cuda:0");
  size_t reserved, used, n_outside = (size_t)300 << 20;
  uint64_t sum = 0;
  TdTapeReader *r;
  const TdTapeIteration *it;
  const TdTapePool *p;
  TrainNet *t;

  (void)state;
  driver->state->outside_bytes = n_outside;
  t = train_new ("lenet", cuda);
  for (int i = 0; i < STEPS; i++)
    train_step (t, false);
  reserved = td_mem_info (cuda).reserved_bytes;
  /* what the module itself allocates besides is with the others */
  used = driver->state->used_bytes + n_outside - td_mem_info (cuda).outside_bytes;
  assert_true (td_mem_info (cuda).outside_bytes - n_outside <= (size_t)2 << 20);
  train_free (t);
  assert_int_equal (td_finish (), 0);
  r = far_tape_open (path);
  it = load (r, number_of (r, td_tape_reader_summaries (r).n - 1));
  p = far_tape_pool (it, it->devices[0].device, TD_TAPE_POOL_CAPTURE);
  assert_non_null (p);
  assert_int_equal (p->live_bytes, p->reserved_bytes);
  assert_int_equal (reserved + p->reserved_bytes, used);
  for (uint32_t i = 0; i < it->n_pools; i++)
    {
      p = &it->pools[i];
      if (p->device == 0)
        continue; /* the host's */
      assert_int_equal (p->device, it->devices[0].device);
      assert_true (p->live_bytes + p->pending_bytes + p->split_bytes <= p->reserved_bytes);
      assert_true (p->largest_free_bytes
                   <= p->reserved_bytes - p->live_bytes - p->pending_bytes);
      sum += p->kind != TD_TAPE_POOL_CAPTURE ? p->reserved_bytes : 0;
    }
  assert_int_equal (sum, it->devices[0].reserved_bytes);
  assert_int_equal (sum, reserved);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* What `tapedeck info` says of the tape at path.  Owner: the caller. */
static char *
info_of (const char *path, bool json)
{
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream (&text, &n);
  TdTapeReader *r = far_tape_open (path);

  td_tape_info (r, out, json);
  fclose (out);
  td_tape_reader_free (r);
  return text;
}

static void
pools__are_in_what_info_says (void **state)
{
  const char *path = start ("t.tdtape", "graph", "auto");
  TdVar *x;
  char *text;

  (void)state;
  x = td_retain (td_to_device (td_ones (TD_F32, TD_SHAPE (1000)), td_device_get ("cuda:0")));
  TD_ITERATION (0)
    td_relu (x);
  td_release (x);
  assert_int_equal (td_finish (), 0);
  text = info_of (path, true);
  assert_contains (text, ",\"host_pools\":[{\"pool\":\"default\",\"reserved_bytes\":");
  assert_contains (text, "{\"pool\":\"pinned\",\"reserved_bytes\":");
  assert_contains (text, ",\"devices\":[{\"name\":\"cuda:0 Fake H200\",\"iteration\":1,");
  assert_contains (text, "\"pools\":[{\"pool\":\"default\",\"reserved_bytes\":2097152,");
  free (text);
  text = info_of (path, false);
  assert_contains (text, "memory           cuda:0 Fake H200: ");
  assert_contains (text, "\n                 pool default: 2097152 bytes reserved, ");
  free (text);
}

/* --- statistics that cannot be had --- */

static void
statistics__refused_while_a_graph_is_captured_say_so (void **state)
{
  TdDevice *cuda;
  TdVar *x;
  TdShape shape = TD_SHAPE (4);
  TdTensor t = { NULL, &shape, 4, TD_F32 };
  TdAsyncOf of = { 0 };
  const char *why;

  (void)state;
  td_init (NULL, NULL);
  cuda = td_device_get ("cuda:0");
  x = td_to_device (td_ones (TD_F32, TD_SHAPE (4)), cuda);
  t.data = x->buffer->data;
  assert_null (cuda->ops->graphs->begin (cuda, NULL));
  assert_int_equal (cuda->ops->stats_async (cuda, &t, 4, 1, &of), TD_ASYNC_CAPTURED);
  cuda->ops->graphs->abandon (cuda, &why);
  assert_int_equal (cuda->ops->stats_async (cuda, &t, 4, 1, &of), TD_ASYNC_TAKEN);
  t.size = (int64_t)1 << 40;
  assert_int_equal (cuda->ops->stats_async (cuda, &t, 4, 1, &of), TD_ASYNC_TOO_LARGE);
  assert_int_equal (td_finish (), 0);
}

/* Answers with another reason each time. */
static int n_asked;
static TdAsyncRefusal
refuse_async (TdDevice *d, const TdTensor *x, uint64_t max_samples, uint64_t seed,
              const TdAsyncOf *of)
{
  (void)d;
  (void)x;
  (void)max_samples;
  (void)seed;
  (void)of;
  return n_asked++ < 2 ? TD_ASYNC_CAPTURED : TD_ASYNC_TOO_LARGE;
}

static void
statistics__that_are_left_out_are_counted_by_reason_on_the_tape (void **state)
{
  const char *path = start ("t.tdtape", "stats", "off");
  TdDevice *cuda = td_device_get ("cuda:0");
  TdDeviceOps ops = *cuda->ops;
  const TdDeviceOps *own = cuda->ops;
  TdTapeReader *r;
  TdVar *x;

  (void)state;
  ops.stats_async = refuse_async;
  cuda->ops = &ops;
  n_asked = 0;
  x = td_retain (td_to_device (td_ones (TD_F32, TD_SHAPE (4)), cuda));
  TD_ITERATION (0)
    td_relu (td_relu (td_relu (x)));
  cuda->ops = own;
  td_release (x);
  assert_int_equal (td_finish (), 0);
  assert_int_equal (n_asked, 4); /* the copy is asked about, too */
  r = far_tape_open (path);
  assert_int_equal (td_tape_reader_n_notices (r), 2);
  assert_string_equal (
      td_tape_reader_string (r, td_tape_reader_notice (r, 0)->text),
      "statistics of 2 arrays were left out: they were asked for while a graph was captured, "
      "before there were numbers");
  assert_string_equal (td_tape_reader_string (r, td_tape_reader_notice (r, 1)->text),
                       "statistics of 2 arrays were left out: they have more elements than the "
                       "device looks at in one launch");
  td_tape_reader_free (r);
}

/* A device that fails leaves a tape that is whole. */
static void
fault__leaves_a_tape_without_what_was_to_come (void **state)
{
  const char *path = start ("t.tdtape", "stats", "all");
  TdTapeReader *r;
  TdTapeSummaries s;
  TdVar *x;

  td_device_use (td_device_get ("cuda:0"));
  x = td_retain (td_ones (TD_F32, TD_SHAPE (4)));
  TD_ITERATION (0)
    td_exp (x);
  driver->fail_call ("cuLaunchKernel", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  TD_ITERATION (1)
    assert_true (td_poisoned (td_exp (x)));
  td_error_clear ();
  td_release (x);
  assert_int_equal (td_finish (), 0);
  r = far_tape_open (path);
  s = td_tape_reader_summaries (r);
  assert_true (s.n >= 2);
  assert_true (s.rows[s.n - 1].flags & TD_TAPE_ITERATION_ERROR);
  assert_non_null (td_tape_reader_end (r));
  td_tape_reader_free (r);
}

int
main (int argc, char **argv)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, far_test_teardown)
  const struct CMUnitTest tests[] = {
    row (iterations__wait_only_for_what_the_host_reads),
    row (statistics__take_few_launches),
    row (statistics__on_the_tape_are_the_cpus),
    row (keys__are_the_cpus_where_layouts_change),
    row (statistics__are_of_the_array_as_it_was),
    row (statistics__find_the_nan_of_an_iteration_that_is_over),
    row (times__are_of_every_event_on_the_device),
    row (times__are_taken_as_often_as_was_said),
    row (times__are_the_kernels_own_where_cupti_traces),
    row (times__are_sampled_where_cupti_is_not),
    row (device__is_on_the_tape_with_its_memory),
    row (pools__are_on_the_tape_and_are_all_of_the_device),
    row (pools__are_in_what_info_says),
    row (statistics__refused_while_a_graph_is_captured_say_so),
    row (statistics__that_are_left_out_are_counted_by_reason_on_the_tape),
    row (fault__leaves_a_tape_without_what_was_to_come),
  };

  if (argc > 2 && strcmp (argv[1], "--record") == 0)
    return record_traced (argv[2], argc > 3);
  self = argv[0];
  if (argc > 1)
    cmocka_set_test_filter (argv[1]);
  return cmocka_run_group_tests_name ("later", tests, NULL, NULL);
}
