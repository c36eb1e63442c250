/* Traces of a profiler as tapes: what of them becomes an operation, and when; and files that
 * are no trace.  tests/app/traces.py reads real ones a second time.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include "td-tape-import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char error[512], path[256], trace[256];

static int
set_up (void **state)
{
  td_test_setup (state);
  snprintf (path, sizeof path, "%s", td_test_tmp ("a.tdtape"));
  snprintf (trace, sizeof trace, "%s", td_test_tmp ("a.json"));
  return 0;
}

static TdTapeReader *
import (const char *json, TdTapeImport *what)
{
  TdTapeReader *r;

  td_test_write_file (trace, json, strlen (json));
  *what = (TdTapeImport){ .size = sizeof *what };
  error[0] = '\0';
  td_tape_import (trace, path, true, what, error, sizeof error);
  assert_string_equal (error, "");
  r = td_tape_reader_open (path, error, sizeof error);
  assert_non_null (r);
  assert_string_equal (td_tape_reader_info (r, TD_TAPE_IMPORT_KEY), TD_TAPE_IMPORT_TRACE);
  return r;
}

static const TdTapeIteration *
load (TdTapeReader *r, uint64_t number)
{
  const TdTapeIteration *it = td_tape_iteration_load (r, number, error, sizeof error);

  assert_non_null (it);
  return it;
}

/* An operation as a line: name, path, phase, start and duration in ns. */
static const char *
line_of (TdTapeReader *r, const TdTapeIteration *it, uint32_t event)
{
  static char line[512];
  const TdTapeEvent *e = &it->events[event];

  snprintf (line, sizeof line, "%s [%s] %s %" PRIu64 "+%" PRIu64 " %s",
            td_tape_reader_op_name (r, e->opdef), td_tape_reader_path_text (r, e->path),
            td_tape_phase_name (e->phase), it->event_start_ns[event],
            it->event_duration_ns[event], td_tape_reader_string (r, e->attrs));
  return line;
}

#define HOST(name, ts, dur, more)                                                              \
  "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" ts      \
  ",\"dur\":" dur ",\"args\":{" more "}}"
#define CALL(name, ts, dur, number)                                                            \
  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"" name                                    \
  "\",\"pid\":1,\"tid\":1,\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"correlation\":" number     \
  "}}"
#define KERNEL(name, ts, dur, number, stream)                                                  \
  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":7,\"ts\":" ts      \
  ",\"dur\":" dur ",\"args\":{\"device\":3,\"stream\":" stream ",\"correlation\":" number "}}"
#define SLICE(category, name, ts, dur)                                                         \
  "{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"" name                                    \
  "\",\"pid\":1,\"tid\":1,\"ts\":" ts ",\"dur\":" dur "}"

/* --------------------------------------------------------------------- what becomes what */

/* linear 10..30 has addmm 14..24 in it: 10..14 and 24..30 are its own. */
static void
trace__an_operation_has_the_time_that_is_its_own (void **state)
{
  static const char *const expected[] = {
    "aten::linear [aten::linear] forward 0+4000 in=[128,64],[64,64]",
    "aten::addmm [aten::linear] forward 4000+10000 ",
    "aten::linear [aten::linear] forward 14000+6000 part=2",
    "aten::relu [] forward 20125+1500 ",
  };
  TdTapeImport what;
  TdTapeReader *r = import (
      "[" HOST ("aten::relu", "1700000000000030.125", "1.5", "") "," HOST (
          "aten::linear", "1700000000000010", "20",
          "\"Input Dims\": [[128, 64], [64, 64]]") "," HOST ("aten::addmm", "1700000000000014",
                                                             "10", "") "]",
      &what);
  const TdTapeIteration *it = load (r, 0);

  assert_int_equal (it->n_events, 4);
  assert_int_equal (what.n_slices, 3);
  assert_int_equal (what.n_events, 4);
  for (uint32_t e = 0; e < 4; e++)
    assert_string_equal (line_of (r, it, e), expected[e]);
  assert_int_equal (it->duration_ns, 21625);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* The call's time is the host's, the kernel's the device's; a second kernel of one call has no
 * time on the host, and one without a call is there when it ran. */
static void
trace__what_a_call_starts_is_an_operation_of_the_device (void **state)
{
  TdTapeImport what;
  TdTapeReader *r = import (
      "{\"deviceProperties\":[{\"id\":3,\"name\":\"Card\",\"totalGlobalMem\":5000}],"
      "\"traceEvents\":[" KERNEL (
          "void at::native::(anonymous namespace)::add<float, 4>(float*, int)", "120", "7", "5",
          "20") "," KERNEL ("plain", "130", "2", "5",
                            "20") "," KERNEL ("alone", "150", "3", "99",
                                              "7") "," HOST ("aten::add", "100", "20",
                                                             "") "," CALL ("cudaLaunchKernel",
                                                                           "104", "6",
                                                                           "5") "," CALL ("cuda"
                                                                                          "Mall"
                                                                                          "oc",
                                                                                          "112",
                                                                                          "2",
                                                                                          "6") "]}",
      &what);
  const TdTapeIteration *it = load (r, 0);
  static const char *const expected[] = {
    "aten::add [aten::add] forward 0+4000 ",
    "at::native::add [aten::add] forward 4000+6000 stream=20",
    "plain [aten::add] forward 10000+0 stream=20",
    "aten::add [aten::add] forward 10000+2000 part=2",
    "cudaMalloc [aten::add] forward 12000+2000 ",
    "aten::add [aten::add] forward 14000+6000 part=3",
    "alone [] forward 50000+0 stream=7",
  };

  assert_int_equal (it->n_events, 7);
  for (uint32_t e = 0; e < 7; e++)
    assert_string_equal (line_of (r, it, e), expected[e]);
  assert_int_equal (it->n_device_times, 3);
  assert_int_equal (it->device_times[0].event, 1);
  assert_int_equal (it->device_times[0].start_ns, 20000);
  assert_int_equal (it->device_times[0].duration_ns, 7000);
  assert_int_equal (it->device_times[0].kind, TD_TAPE_DEVICE_TIME_EXACT);
  assert_int_equal (it->device_times[1].stream, it->device_times[0].stream);
  assert_int_not_equal (it->device_times[2].stream, it->device_times[0].stream);
  assert_int_equal (it->n_devices, 1);
  assert_string_equal (td_tape_reader_string (r, it->devices[0].name), "gpu:3 Card");
  assert_int_equal (it->devices[0].total_bytes, 5000);
  assert_int_equal (it->devices[0].device, it->device_times[0].device);
  assert_int_equal (td_tape_reader_n_notices (r), 1);
  assert_string_equal (
      td_tape_reader_string (r, td_tape_reader_notice (r, 0)->text),
      "1 slices of devices are shown without the host's call, which the trace does not have");
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* Two operations say that node 4 comes next: the one that begins last makes it. */
static void
trace__backward_belongs_to_what_made_its_node (void **state)
{
  TdTapeImport what;
  TdTapeReader *r = import (
      "[" HOST ("aten::to", "10", "5", "\"Sequence number\":4,\"Fwd thread id\":0") "," HOST ("aten::mm", "20", "5", "\"Sequence number\":4,\"Fwd thread id\":0") "," HOST ("aten::sum", "30", "5", "\"Sequence number\":5,\"Fwd thread id\":0") "," HOST (
          "autograd::engine::"
          "evaluate_function: "
          "MmBackward0",
          "50", "20",
          "\"Sequence "
          "number\":4,\"Fwd thread "
          "id\":1") "," HOST ("MmBac"
                              "kward"
                              "0",
                              "52", "10",
                              "\"Seq"
                              "uence"
                              " numb"
                              "er\":"
                              "4,"
                              "\"Fwd"
                              " thre"
                              "ad "
                              "id\":"
                              "1") "," HOST ("aten::mm", "55", "4",
                                             "") "," HOST ("autograd::engine::evaluate_"
                                                           "function: "
                                                           "torch::autograd::AccumulateGrad",
                                                           "80", "5",
                                                           "") "," HOST ("aten::add_", "82",
                                                                         "1",
                                                                         "") "," SLICE ("user_"
                                                                                        "annota"
                                                                                        "tion",
                                                                                        "Optimi"
                                                                                        "zer."
                                                                                        "step#"
                                                                                        "SGD."
                                                                                        "step",
                                                                                        "90",
                                                                                        "9") "," HOST ("aten::_foreach_add_",
                                                                                                       "92",
                                                                                                       "2",
                                                                                                       "") "]",
      &what);
  const TdTapeIteration *it = load (r, 0);
  unsigned n = 0;

  for (uint32_t e = 0; e < it->n_events; e++)
    {
      const char *line = line_of (r, it, e);

      if (strstr (line, "] backward ") != NULL)
        {
          assert_int_equal (it->events[e].twin, 1);
          n++;
        }
      else
        assert_int_equal (it->events[e].twin, -1);
    }
  assert_int_equal (n, 5);
  assert_non_null (
      strstr (line_of (r, it, 4), "MmBackward0 [MmBackward0] backward 42000+3000"));
  assert_string_equal (line_of (r, it, 9), "aten::add_ [] accumulate 72000+1000 ");
  assert_string_equal (line_of (r, it, it->n_events - 1),
                       "aten::_foreach_add_ [Optimizer.step#SGD.step] update 82000+2000 ");
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

static void
trace__modules_are_layers_and_python_says_where (void **state)
{
  TdTapeImport what;
  TdTapeReader *r = import (
      "[" SLICE ("python_function", "train.py(10): <module>", "0", "100") "," SLICE (
          "python_function", "nn.Module: Net_0", "10",
          "80") "," SLICE ("python_function", "net/model.py(33): forward", "11",
                           "70") "," SLICE ("python_function", "nn.Module: Linear_1", "12",
                                            "60") "," SLICE ("python_function",
                                                             "/usr/lib/python3/dist-packages/"
                                                             "torch/nn/linear.py(114): forward",
                                                             "13",
                                                             "50") "," SLICE ("python_function",
                                                                              "<built-in "
                                                                              "function "
                                                                              "linear>",
                                                                              "14",
                                                                              "40") "," HOST ("aten::linear",
                                                                                              "20",
                                                                                              "5",
                                                                                              "") "]",
      &what);
  const TdTapeIteration *it = load (r, 0);
  char site[256];

  assert_int_equal (it->n_events, 1);
  assert_string_equal (line_of (r, it, 0), "aten::linear [Net_0/Linear_1] forward 0+5000 ");
  assert_string_equal (td_tape_reader_site_text (r, it->events[0].site, site, sizeof site),
                       "net/model.py:33");
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

static void
trace__steps_of_the_profiler_are_iterations (void **state)
{
  TdTapeImport what;
  TdTapeReader *r = import (
      "[" HOST ("before", "5", "1", "") "," SLICE (
          "user_annotation", "ProfilerStep#7", "10",
          "20") "," HOST ("a", "12", "1",
                          "") "," HOST ("b", "14", "1",
                                        "") "," SLICE ("user_annotation", "ProfilerStep#8",
                                                       "30",
                                                       "20") "," HOST ("a", "32", "2",
                                                                       "") "," HOST ("b", "35",
                                                                                     "2",
                                                                                     "") "]",
      &what);
  const TdTapeSummaries s = td_tape_reader_summaries (r);
  const TdTapeIteration *x, *y;

  assert_int_equal (what.n_iterations, 3);
  assert_int_equal (what.n_steps, 2);
  assert_int_equal (s.n, 3);
  assert_true (s.rows[0].flags & TD_TAPE_ITERATION_OUTSIDE);
  assert_false (s.rows[1].flags & TD_TAPE_ITERATION_OUTSIDE);
  assert_int_equal (s.rows[1].label, TD_TAPE_LABEL_NUMBER | 7);
  assert_int_equal (s.rows[2].label, TD_TAPE_LABEL_NUMBER | 8);
  assert_int_equal (s.rows[1].start_ns, 5000);
  assert_int_equal (s.rows[2].duration_ns, 20000);
  /* both did the same: one structure, and the same keys */
  assert_int_equal (s.rows[1].structure, s.rows[2].structure);
  x = load (r, 1);
  y = load (r, 2);
  assert_int_equal (x->events[1].key, y->events[1].key);
  assert_int_equal (x->event_start_ns[0], 2000);
  td_tape_iteration_free (x);
  td_tape_iteration_free (y);
  td_tape_reader_free (r);
}

/* Slices of other programs, begun and ended by events of their own, on two threads. */
static void
trace__begin_and_end_make_a_slice (void **state)
{
  static const char *const expected[] = {
    "outer [outer] forward 0+10000 ", "inner [outer] forward 10000+5000 ",
    "other [] forward 12000+100000 ", "outer [outer] forward 15000+25000 part=2",
    "open [] forward 60000+52000 ",
  };
  TdTapeImport what;
  TdTapeReader *r
      = import ("{\"traceEvents\":["
                "{\"ph\":\"B\",\"name\":\"outer\",\"pid\":\"main\",\"tid\":1,\"ts\":100},"
                "{\"ph\":\"B\",\"name\":\"inner\",\"pid\":\"main\",\"tid\":1,\"ts\":110},"
                "{\"ph\":\"B\",\"name\":\"other\",\"pid\":\"main\",\"tid\":\"two\",\"ts\":112},"
                "{\"ph\":\"E\",\"pid\":\"main\",\"tid\":1,\"ts\":115},"
                "{\"ph\":\"E\",\"pid\":\"main\",\"tid\":1,\"ts\":140},"
                "{\"ph\":\"B\",\"name\":\"open\",\"pid\":\"main\",\"tid\":1,\"ts\":160},"
                "{\"ph\":\"E\",\"pid\":\"main\",\"tid\":1000,\"ts\":170},"
                "{\"ph\":\"i\",\"name\":\"a moment\",\"ts\":180},"
                "{\"ph\":\"E\",\"pid\":\"main\",\"tid\":\"two\",\"ts\":212}]}",
                &what);
  const TdTapeIteration *it = load (r, 0);

  assert_int_equal (it->n_events, 5);
  for (uint32_t e = 0; e < 5; e++)
    assert_string_equal (line_of (r, it, e), expected[e]);
  assert_int_equal (what.n_left_out, 2); /* an end of nothing, and the moment */
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* An annotation with something in it has no time of its own, an empty one does. */
static void
trace__an_empty_annotation_is_an_operation (void **state)
{
  TdTapeImport what;
  TdTapeReader *r
      = import ("[" SLICE ("user_annotation", "full/of", "0", "20") "," HOST (
                    "x", "5", "5", "") "," SLICE ("user_annotation", "empty", "30", "20") "]",
                &what);
  const TdTapeIteration *it = load (r, 0);

  assert_int_equal (it->n_events, 2);
  assert_string_equal (line_of (r, it, 0), "x [full.of] forward 0+5000 ");
  assert_string_equal (line_of (r, it, 1), "empty [] forward 25000+20000 ");
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

static void
trace__what_reaches_beyond_is_cut_and_said (void **state)
{
  TdTapeImport what;
  TdTapeReader *r
      = import ("[" HOST ("a", "0", "10", "") "," HOST ("b", "6", "10", "") "]", &what);
  const TdTapeIteration *it = load (r, 0);

  assert_int_equal (it->n_events, 2);
  assert_string_equal (line_of (r, it, 1), "b [a] forward 6000+4000 ");
  assert_string_equal (td_tape_reader_string (r, td_tape_reader_notice (r, 0)->text),
                       "1 slices reach beyond the one that they begin in, and are cut there");
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* A path has an end, however deep slices lie. */
static void
trace__ten_thousand_slices_in_each_other_are_read (void **state)
{
  const int n = 10000;
  char *json = malloc ((size_t)n * 120), *at = json;
  TdTapeImport what;
  TdTapeReader *r;

  for (int i = 0; i < n; i++)
    at += sprintf (at, "%c{\"ph\":\"X\",\"name\":\"f%d\",\"ts\":%d,\"dur\":%d}",
                   i == 0 ? '[' : ',', i % 7, i, 3 * n - 2 * i);
  strcpy (at, "]");
  r = import (json, &what);
  assert_int_equal (what.n_slices, n);
  assert_int_equal (what.n_events, 2 * n - 1);
  td_tape_reader_free (r);
  free (json);
}

/* --------------------------------------------------------------------- memory timelines */

/* 100 bytes from before become a gradient's; 50 more come and go. */
static void
timeline__rows_are_blocks_by_category (void **state)
{
  static const char rows[] = "[[-1, 1, 100, 7], [1000, 2, 50, 4], [2000, 3, -100, 7], "
                             "[2000, 3, 100, 5], [3000, 4, -50, 4]]";
  TdTapeImport what = { .size = sizeof what };
  TdTapeReader *r;
  const TdTapeIteration *it;

  td_test_write_file (trace, rows, sizeof rows - 1);
  assert_true (td_tape_import (trace, path, true, &what, error, sizeof error));
  assert_int_equal (what.n_start, 1);
  assert_int_equal (what.n_entries, 4);
  assert_int_equal (what.peak_bytes, 150);
  assert_int_equal (what.end_bytes, 100);
  r = td_tape_reader_open (path, error, sizeof error);
  assert_non_null (r);
  it = load (r, 0);
  assert_int_equal (it->start_bytes[TD_TAPE_CATEGORY_OTHER], 100);
  assert_int_equal (it->n_memory, 4);
  assert_int_equal (it->memory[0].category, TD_TAPE_CATEGORY_ACTIVATION);
  assert_int_equal (it->memory[1].kind, TD_TAPE_MEMORY_FREE);
  assert_int_equal (it->memory[2].category, TD_TAPE_CATEGORY_GRADIENT);
  assert_int_equal (it->event_start_ns[3], 2000);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* -------------------------------------------------------------------------- bad input */

static void
trace__what_is_no_trace_is_refused_in_a_line (void **state)
{
  static const struct
  {
    const char *text, *says;
  } cases[] = {
    { "[", "it is cut off: it ends after 0 events" },
    { "{\"traceEvents\": [" HOST ("a", "1", "1", "") ",",
      "it is cut off: it ends after 1 events" },
    { "[" HOST ("a", "1", "1", "") ", {\"ph\": \"X\", \"na",
      "it is cut off: it ends after 1 events" },
    { "[" HOST ("a", "1", "1", "") " " HOST ("b", "1", "1", "") "]",
      "after 1 events: ',' or ']' expected, and no '{'" },
    { "[" HOST ("a", "-5", "1", "") "]", "event 1 (a): a time below 0" },
    { "[" HOST ("a", "5", "-0.5", "") "]", "event 1 (a): a time below 0" },
    { "[" HOST ("a", "5", "-1e3", "") "]", "event 1 (a): a time below 0" },
    { "[" HOST ("a", "5", "\"long\"", "") "]", "event 1 (a): no duration that can be" },
    { "[" HOST ("a", "99999999999999999999", "1", "") "]", "event 1 (a): no time that can be" },
    { "[" HOST ("a", "1", "99999999999999999999", "") "]",
      "event 1 (a): no duration that can be" },
    { "[{\"ph\":\"X\",\"name\":\"a\",\"dur\":1}]", "event 1 (a): no time that can be" },
    { "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1}]", "event 1 (a): no duration that can be" },
    { "[{\"ph\":\"B\",\"name\":\"a\",\"ts\":9},{\"ph\":\"E\",\"ts\":8}]",
      "event 2: it ends what begins later" },
    { "[{\"ph\" \"X\"}]", "event 1: no JSON" },
    { "[{\"ph\": \"X\",}]", "event 1: no JSON" },
    { "[" HOST ("a", "1", "1", "\"x\": [1, 2") "]", "event 1: no JSON" },
    { "[7]", "event 1: an object expected" },
    { "[]", "no trace: it has no slice of time" },
    { "{\"traceEvents\": {}}", "after 0 events: a list of events expected, and no '{'" },
    { "{\"nodes\": [1, 2, 3]}", "no trace: it has no slice of time" },
    { "{\"nodes\": [1, 2 3], \"traceEvents\": []}", "\"nodes\" is no JSON" },
    { "{traceEvents: []}", "after 0 events: the name of a member expected, and no 't'" },
    { "[" HOST ("a", "1", "1", "") "] 5", "after 1 events: the end expected, and no '5'" },
    { "[" SLICE ("python_function", "f", "1", "1") "]",
      "no trace: nothing in it is an operation" },
    { "[[1, 2, 3]]", "row 1: four whole numbers expected" },
    { "[[1, 2, 3, 4], [1, 2, -3]]", "row 2: four whole numbers expected" },
    { "[[5, 4, -3, 4]]", "row 1: it gives back what nobody has" },
    { "[[5, 2, 3, 8]]", "row 1: a category that is not known" },
    { "[[-2, 2, 3, 4]]", "row 1: a time below 0" },
    { "[[1, 2, 99999999999999999, 4]]", "row 1: no number of bytes that can be" },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      char expected[768];

      td_test_write_file (trace, cases[i].text, strlen (cases[i].text));
      snprintf (expected, sizeof expected, "%s: %s", trace, cases[i].says);
      error[0] = '\0';
      if (td_tape_import (trace, path, false, NULL, error, sizeof error))
        fail_msg ("taken: %s", cases[i].text);
      assert_string_equal (error, expected);
      assert_int_equal (access (path, F_OK), -1); /* no half of a tape */
    }
}

/* A gzip stream that ends early says so; a trace that is told by its content is told so too. */
static void
trace__is_told_by_its_content (void **state)
{
  static const unsigned char cut[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x8b, 0xae };
  static const struct
  {
    const char *text;
    bool is;
  } cases[] = { { " \n\t{\"a\"", true }, { "[", true },      { "", false },
                { "TDTAPE\r\n", false }, { "x = {", false }, { "\x80\x04}.", false } };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      td_test_write_file (trace, cases[i].text, strlen (cases[i].text));
      assert_int_equal (td_tape_is_trace (trace), cases[i].is);
      assert_int_equal (td_tape_is_import (trace), cases[i].is || td_tape_is_snapshot (trace));
    }
  assert_false (td_tape_is_trace ("/nowhere/at/all"));
  assert_false (td_tape_is_trace ("/"));
  td_test_write_file (trace, cut, sizeof cut);
  assert_false (td_tape_is_trace (trace));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown (f, set_up, td_test_teardown)
    TEST (trace__an_operation_has_the_time_that_is_its_own),
    TEST (trace__what_a_call_starts_is_an_operation_of_the_device),
    TEST (trace__backward_belongs_to_what_made_its_node),
    TEST (trace__modules_are_layers_and_python_says_where),
    TEST (trace__steps_of_the_profiler_are_iterations),
    TEST (trace__begin_and_end_make_a_slice),
    TEST (trace__an_empty_annotation_is_an_operation),
    TEST (trace__what_reaches_beyond_is_cut_and_said),
    TEST (trace__ten_thousand_slices_in_each_other_are_read),
    TEST (timeline__rows_are_blocks_by_category),
    TEST (trace__what_is_no_trace_is_refused_in_a_line),
    TEST (trace__is_told_by_its_content),
#undef TEST
  };

  return cmocka_run_group_tests_name ("trace", tests, NULL, NULL);
}
