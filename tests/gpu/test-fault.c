/* Indices that a device finds bad later, on a tape: the event they were an input of has failed,
 * whether it was called, was in a CUDA graph, or its iteration was over.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include "far-test.h"
#include "compute/core/core.h"
#include "far-tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const FakeCudaControl *driver;

enum
{
  BAD = 14 /* the iteration with the bad label */
};

/* Record what follows.  Returns the tape's name. */
static const char *
start (const char *level)
{
  const char *path = td_test_tmp ("fault.tdtape");

  remove (path);
  driver = far_cuda_driver ();
  setenv ("TAPEDECK_TAPE", path, 1);
  setenv ("TAPEDECK_LEVEL", level, 1);
  setenv ("TAPEDECK_ON_ERROR", "continue", 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  td_device_use (td_device_get ("cuda:0"));
  return path;
}

/* The iteration of the program that it called `label`. */
static const TdTapeSummary *
row_of (TdTapeReader *r, uint32_t label)
{
  const TdTapeSummaries s = td_tape_reader_summaries (r);

  for (uint32_t i = 0; i < s.n; i++)
    if (s.rows[i].label == (TD_TAPE_LABEL_NUMBER | label))
      return &s.rows[i];
  fail_msg ("no iteration %u", label);
  return NULL;
}

static const TdTapeIteration *
load (TdTapeReader *r, uint32_t label)
{
  char error[256] = "";
  const TdTapeIteration *it
      = td_tape_iteration_load_row (r, row_of (r, label), error, sizeof error);

  if (it == NULL)
    fail_msg ("%s", error);
  return it;
}

/* Labels on the device; the second of four is none where `bad`. */
static TdVar *
labels (bool bad)
{
  static const int32_t good_t[4] = { 0, 1, 1, 2 }, bad_t[4] = { 0, 9, 1, 2 };

  return td_add (td_tensor (TD_I32, TD_SHAPE (4), bad ? bad_t : good_t),
                 td_zeros (TD_I32, TD_SHAPE (4)));
}

typedef struct
{
  const char *level;
  bool graphs; /* a static function */
  int asks;    /* iterations after the bad one until the host waits; -1: it reads the loss */
} Training;

static uint64_t
train (const Training *t)
{
  Net net = net_new ();
  TdOpt *opt = td_sgd_new (net.root, .lr = 0.1);
  TdStatic *s = td_static_new (classifier_forward, &net, .fuse = false);
  uint64_t n_launches;

  TD_ITERATIONS (i, 20)
    {
      TdVar *in[] = { some (TD_SHAPE (4, 5), (unsigned)i), labels (i == BAD) }, *y;

      if (t->graphs)
        td_static_call (s, in, 2, &y, 1);
      else
        classifier_forward (&net, in, 2, &y, 1);
      td_cleargrads (net.root);
      td_backward (y, 0);
      td_opt_update (opt);
      if (i == BAD && t->asks < 0)
        td_item (y);
      else if (t->asks >= 0 && i == BAD + t->asks)
        td_device_get ("cuda:0")->ops->synchronize (td_device_get ("cuda:0"));
      td_error_clear ();
    }
  n_launches = td_static_info (s).n_graph_launches;
  td_static_free (s);
  td_opt_free (opt);
  td_link_free (net.root);
  td_finish ();
  return n_launches;
}

/* The one event of the bad iteration that failed; it is the cross entropy.  It was found in the
 * iteration `last` at the latest: a device is ahead of nobody, but may be as fast. */
static void
assert_attached (TdTapeReader *r, uint32_t last)
{
  const TdTapeIteration *it = load (r, BAD);
  const TdTapeFault *f = td_tape_reader_fault (r, 0);
  uint32_t n_failed = 0;
  char site[64];

  assert_int_equal (td_tape_reader_n_faults (r), 1);
  assert_int_equal (f->iteration, it->number);
  assert_in_range (f->found_iteration, it->number, row_of (r, last)->number);
  assert_true (f->event < it->n_events);
  for (uint32_t i = 0; i < it->n_events; i++)
    {
      const bool failed = it->events[i].flags & TD_TAPE_EVENT_FAILED;

      assert_int_equal (failed, i == f->event);
      assert_int_equal (failed, (it->events[i].flags & TD_TAPE_EVENT_FAULT) != 0);
      n_failed += failed;
    }
  assert_int_equal (n_failed, 1);
  assert_string_equal (td_tape_reader_op_name (r, it->events[f->event].opdef),
                       "softmax_cross_entropy");
  assert_true (it->events[f->event].n_out > 0); /* there are numbers all the same */
  assert_string_equal (
      td_tape_reader_site_text (r, it->events[f->event].site, site, sizeof site), "net.c:42");
  assert_int_equal (it->events[f->event].site, f->site);
  assert_int_equal (f->value, 9);
  assert_int_equal (f->limit, 3);
  assert_int_equal (f->element, 1);
  assert_string_equal (td_tape_reader_string (r, f->operand), "t");
  assert_true (it->flags & TD_TAPE_ITERATION_ERROR);
  td_tape_iteration_free (it);
  for (uint32_t i = 0; i < 20; i++)
    assert_int_equal ((row_of (r, i)->flags & TD_TAPE_ITERATION_ERROR) != 0, i == BAD);
  it = load (r, BAD - 1);
  for (uint32_t i = 0; i < it->n_events; i++)
    assert_false (it->events[i].flags & TD_TAPE_EVENT_FAILED);
  td_tape_iteration_free (it);
}

/* Its notice names the event too, for readers that know nothing else. */
static void
assert_noticed (TdTapeReader *r)
{
  const TdTapeFault *f = td_tape_reader_fault (r, 0);
  uint32_t n = 0;

  for (uint32_t i = 0; i < td_tape_reader_n_notices (r); i++)
    {
      const TdTapeNotice *notice = td_tape_reader_notice (r, i);

      if (notice->kind != TD_TAPE_NOTICE_ERROR)
        continue;
      assert_int_equal (notice->iteration, f->iteration);
      assert_int_equal (notice->event, f->event);
      assert_non_null (
          strstr (td_tape_reader_string (r, notice->text), "got 9 at element 1 in iteration"));
      n++;
    }
  assert_int_equal (n, 1);
}

static const char *
text_of (TdTapeReader *r)
{
  static char text[256];
  const TdTapeIteration *it = load (r, BAD);

  td_tape_fault_text (td_tape_reader_fault (r, 0), "t", it, text, sizeof text);
  td_tape_iteration_free (it);
  return text;
}

static const char *
printed (TdTapeReader *r, bool json, bool info)
{
  static char *text;
  size_t n = 0;
  FILE *out;

  free (text);
  text = NULL;
  out = open_memstream (&text, &n);
  assert_non_null (out);
  if (info)
    td_tape_info (r, out, json);
  else
    td_tape_dump (r, out, json, 0, UINT64_MAX);
  fclose (out);
  return text;
}

/* --- where it is found --- */

static void
fault__is_at_its_event_when_the_host_reads (void **state)
{
  static const char *const levels[] = { "graph", "stats", "values" };

  (void)state;
  for (size_t k = 0; k < 3; k++)
    {
      const char *path = start (levels[k]);
      TdTapeReader *r;

      train (&(Training){ .asks = -1 });
      r = far_tape_open (path);
      assert_attached (r, BAD);
      assert_noticed (r);
      assert_non_null (strstr (text_of (r), "index 9 outside 0..2 at element 1 of t, found at "
                                            "the end of the iteration; backward and update "
                                            "had run"));
      td_tape_reader_free (r);
    }
}

static void
fault__is_at_its_event_when_the_iteration_is_over (void **state)
{
  (void)state;
  for (int later = 0; later < 5; later += 4)
    {
      const char *path = start ("graph");
      const TdTapeFault *f;
      TdTapeReader *r;
      char found[80];

      train (&(Training){ .asks = later });
      r = far_tape_open (path);
      assert_attached (r, (uint32_t)(BAD + later));
      assert_noticed (r);
      f = td_tape_reader_fault (r, 0);
      snprintf (found, sizeof found, "found in iteration %llu; backward and update had run",
                (unsigned long long)f->found_iteration);
      if (f->found_iteration == f->iteration)
        strcpy (found, "found at the end of the iteration; backward and update had run");
      assert_non_null (strstr (text_of (r), found));
      td_tape_reader_free (r);
    }
}

static void
fault__is_at_its_event_when_a_graph_ran_it (void **state)
{
  (void)state;
  for (int later = -1; later < 4; later += 2)
    {
      const char *path = start ("graph");
      uint64_t n_launches = train (&(Training){ .asks = later, .graphs = true });
      TdTapeReader *r = far_tape_open (path);
      const TdTapeIteration *it;

      assert_true (n_launches > 20);
      assert_attached (r, (uint32_t)(BAD + (later > 0 ? later : 0)));
      it = load (r, BAD);
      assert_true (it->events[td_tape_reader_fault (r, 0)->event].flags
                   & TD_TAPE_EVENT_CAPTURED);
      td_tape_iteration_free (it);
      td_tape_reader_free (r);
    }
}

/* --- what is said --- */

static void
fault__is_in_dumps_and_in_info (void **state)
{
  TdTapeReader *r;
  const char *path = start ("graph");

  (void)state;
  train (&(Training){ .asks = -1 });
  r = far_tape_open (path);
  assert_non_null (strstr (printed (r, false, false), "softmax_cross_entropy net.c:42"));
  assert_non_null (strstr (printed (r, false, false), " FAILED : "));
  assert_non_null (strstr (printed (r, false, false), "  fault iteration "));
  assert_non_null (strstr (printed (r, true, false), "{\"record\":\"fault\",\"iteration\":"));
  assert_non_null (strstr (printed (r, true, false),
                           "\"operand\":\"t\",\"value\":9,\"limit\":3,\"element\":1"));
  assert_non_null (strstr (printed (r, false, true), "errors           iteration "));
  assert_non_null (strstr (printed (r, false, true),
                           ", softmax_cross_entropy at net.c:42: index 9 outside 0..2"));
  assert_non_null (
      strstr (printed (r, true, true), ",\"n_faults\":1,\"faults\":[{\"iteration\":"));
  td_tape_reader_free (r);
}

static void
fault__is_nowhere_when_indices_are_good (void **state)
{
  TdTapeReader *r;
  const char *path = start ("graph");

  (void)state;
  td_read (td_softmax_cross_entropy (some (TD_SHAPE (4, 3), 1), labels (false)), &(float){ 0 },
           sizeof (float));
  td_finish ();
  r = far_tape_open (path);
  assert_int_equal (td_tape_reader_n_faults (r), 0);
  assert_null (strstr (printed (r, true, true), "faults"));
  assert_null (strstr (printed (r, false, false), "FAILED"));
  td_tape_reader_free (r);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, far_test_setup, far_test_teardown)
  const struct CMUnitTest tests[] = {
    row (fault__is_at_its_event_when_the_host_reads),
    row (fault__is_at_its_event_when_the_iteration_is_over),
    row (fault__is_at_its_event_when_a_graph_ran_it),
    row (fault__is_in_dumps_and_in_info),
    row (fault__is_nowhere_when_indices_are_good),
  };

  return cmocka_run_group_tests_name ("errors found later", tests, NULL, NULL);
}
