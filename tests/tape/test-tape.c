/* Writer and reader: what a tape promises when it is cut, damaged, newer, growing, or bounded.
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tape/read/reader-private.h"
#include "td-tape-writer.h"

static void
reader__follows_a_tape_that_is_being_written (void **state)
{
  Rig rig = { .m = { .memory = true } };

  rig_start (&rig, NULL);
  for (uint32_t i = 0; i < 300; i++)
    {
      const TdTapeIteration *it;

      rig_iterations (&rig, 1);
      td_tape_writer_flush (rig.w);
      rig_read (&rig);
      assert_int_equal (td_tape_reader_summaries (rig.r).n, i + 1);
      it = rig_load (&rig, i);
      assert_int_equal (it->number, i);
      assert_int_equal (it->n_events, 14);
      td_tape_iteration_free (it);
    }
  assert_false (td_tape_reader_poll (rig.r)); /* nothing new */
  assert_null (td_tape_reader_end (rig.r));
  rig_stop (&rig, 3 << 8);
  assert_true (td_tape_reader_poll (rig.r));
  assert_int_equal (td_tape_reader_end (rig.r)->status, 3);
  rig_clear (&rig);
}

/* The bytes of a good small tape. */
static char *
good_tape (size_t *n)
{
  Rig rig = { .m = { .memory = true } };
  char *bytes;

  rig_start (&rig, NULL);
  rig_iterations (&rig, 20);
  rig_stop (&rig, 0);
  bytes = td_test_read_file (rig.path, n);
  rig_clear (&rig);
  return bytes;
}

/* Load everything of a tape that may be damaged; returns how many iterations could be. */
static uint32_t
load_all (const char *path)
{
  char error[256];
  TdTapeReader *r = td_tape_reader_open (path, error, sizeof error);
  TdTapeSummaries s;
  uint32_t n = 0;

  if (r == NULL)
    return 0;
  s = td_tape_reader_summaries (r);
  for (uint32_t i = 0; i < s.n; i++)
    {
      const TdTapeIteration *it
          = td_tape_iteration_load (r, s.rows[i].number, error, sizeof error);

      n += it != NULL;
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (r);
  return n;
}

static void
reader__accepts_the_prefix_after_a_cut_anywhere (void **state)
{
  const char *path = td_test_tmp ("cut.tdtape");
  size_t n;
  char *bytes = good_tape (&n);
  uint32_t before = 20;

  assert_int_equal (load_all (td_test_tmp ("t.tdtape")), 20);
  td_test_write_file (path, bytes, n);
  /* Byte by byte through the last frames, then in larger steps to the start. */
  for (size_t cut = n; cut > 0; cut -= cut > n - 600 || cut < 80 ? 1
                                       : cut < 397               ? cut - 79
                                                                 : 317)
    {
      uint32_t loaded;

      assert_int_equal (truncate (path, (off_t)cut), 0);
      loaded = load_all (path);
      assert_true (loaded <= before);
      before = loaded;
    }
  free (bytes);
}

static void
reader__refuses_what_is_not_a_tape (void **state)
{
  const char *path = td_test_tmp ("no.tdtape");
  char error[256], text[]
                   = "P6 3 3 255 this is an image and no tape, but long enough to be one "
                     "if nobody looked at the first bytes, which somebody does";

  assert_null (td_tape_reader_open (td_test_tmp ("missing.tdtape"), error, sizeof error));
  assert_contains (error, "No such file");
  td_test_write_file (path, text, sizeof text);
  assert_null (td_tape_reader_open (path, error, sizeof error));
  assert_string_equal (error, "not a tape");
  td_test_write_file (path, "", 0);
  assert_null (td_tape_reader_open (path, error, sizeof error));
  assert_string_equal (error, "not a tape");
  td_test_write_file (path, TD_TAPE_MAGIC, 8);
  assert_null (td_tape_reader_open (path, error, sizeof error));
  assert_string_equal (error, "a tape that was cut off in its header");
  assert_null (td_tape_reader_open ("/", error, sizeof error));
  assert_string_equal (error, "not a file");
}

static void
reader__refuses_a_newer_major_and_reads_a_newer_minor (void **state)
{
  const char *path = td_test_tmp ("t.tdtape");
  char error[256];
  size_t n;
  char *bytes = good_tape (&n);
  TdTapeHeader *h = (TdTapeHeader *)bytes;

  h->minor = 9;
  h->crc = td__tape_crc (0, h, offsetof (TdTapeHeader, crc));
  td_test_write_file (path, bytes, n);
  assert_int_equal (load_all (path), 20);
  h->major = 2;
  h->minor = 0;
  td_test_write_file (path, bytes, n);
  assert_null (td_tape_reader_open (path, error, sizeof error));
  assert_string_equal (error, "made with tape format 2.0; this version reads up to 1.x");
  free (bytes);
}

/* The first frame of `type` in the bytes of a tape. */
static TdTapeFrame *
find_frame (char *bytes, size_t n, unsigned type)
{
  for (size_t offset = TD_TAPE_TAIL_OFFSET; offset + sizeof (TdTapeSegment) < n;)
    {
      TdTapeSegment *s = (TdTapeSegment *)(bytes + offset);

      for (size_t at = 0; at < s->used;)
        {
          TdTapeFrame *f = (TdTapeFrame *)(bytes + offset + sizeof *s + at);

          if (f->type == type)
            return f;
          at += TAPE_ALIGN (f->len);
        }
      offset += s->capacity;
    }
  return NULL;
}

static void
reader__skips_frames_of_a_type_it_does_not_know (void **state)
{
  const char *path = td_test_tmp ("t.tdtape");
  size_t n;
  char *bytes = good_tape (&n), error[256];
  TdTapeFrame *frame = find_frame (bytes, n, TD_TAPE_FRAME_SOURCE);
  TdTapeReader *r;

  assert_non_null (frame);
  frame->type = 4711;
  frame->crc = 0;
  frame->crc = td__tape_crc (0, frame, frame->len);
  td_test_write_file (path, bytes, n);
  assert_int_equal (load_all (path), 20);
  r = td_tape_reader_open (path, error, sizeof error);
  assert_int_equal (td_tape_reader_n_sources (r), 0);
  assert_int_equal (td_tape_reader_n_parameters (r), 1); /* it comes after */
  td_tape_reader_free (r);
  free (bytes);
}

/* A tape of a later minor version: events 8 bytes longer, and times of one field only. */
static void
reader__takes_what_it_knows_of_other_strides (void **state)
{
  char payload[512] = { 0 }, *at = payload + 8;
  TdTapeSection s = { .kind = TD_TAPE_SECTION_TIMES, .stride = 12, .count = 2 };
  TapeSections found;
  TdTapeTime time;

  memcpy (at, &s, sizeof s);
  memcpy (at + sizeof s + 12, &(TdTapeTime){ .delta = 5, .duration = 6 }, sizeof time);
  assert_true (td__tape_find_sections (payload, 8 + sizeof s + 24, 8, &found));
  assert_int_equal (found.at[TD_TAPE_SECTION_TIMES].count, 2);
  td__tape_take (&time, sizeof time, found.at[TD_TAPE_SECTION_TIMES].bytes + 12, 12);
  assert_int_equal (time.duration, 6);
  td__tape_take (&time, sizeof time, found.at[TD_TAPE_SECTION_TIMES].bytes + 12, 4);
  assert_int_equal (time.delta, 5);
  assert_int_equal (time.duration, 0);
  s.count = 3; /* more than there is */
  memcpy (at, &s, sizeof s);
  assert_false (td__tape_find_sections (payload, 8 + sizeof s + 24, 8, &found));
}

static void
check__finds_the_first_bad_offset_and_repair_saves_the_rest (void **state)
{
  const char *path = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out.tdtape");
  TdTapeCheck check;
  char error[256];
  size_t n, offset;
  char *bytes = good_tape (&n), *frame;

  assert_true (td_tape_check (path, &check));
  assert_true (check.whole);
  assert_true (check.ended);
  frame = (char *)find_frame (bytes, n, TD_TAPE_FRAME_ITERATION);
  offset = (size_t)(frame - bytes);
  frame[40] ^= 1;
  td_test_write_file (path, bytes, n);
  assert_true (td_tape_check (path, &check));
  assert_false (check.whole);
  assert_int_equal (check.first_bad, offset);
  assert_string_equal (check.what, "a damaged frame");
  assert_true (td_tape_repair (path, out, error, sizeof error));
  assert_true (td_tape_check (out, &check));
  assert_true (check.whole);
  assert_false (td_tape_repair (path, out, error, sizeof error)); /* never over a file */
  free (bytes);
}

static void
repair__bridges_a_damaged_segment_head (void **state)
{
  const char *path = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out.tdtape");
  TdTapeCheck check;
  TdTapeReader *r;
  char error[256];
  size_t n;
  char *bytes = good_tape (&n);
  TdTapeSegment *first = (TdTapeSegment *)(bytes + 4096);

  /* the segment of definitions loses its head: what it had is gone, the iterations' frames
   * and summaries are found again */
  first->magic ^= 1;
  td_test_write_file (path, bytes, n);
  assert_int_equal (load_all (path), 0);
  assert_true (td_tape_check (path, &check));
  assert_int_equal (check.first_bad, 4096);
  assert_true (td_tape_repair (path, out, error, sizeof error));
  r = td_tape_reader_open (out, error, sizeof error);
  assert_non_null (r);
  assert_int_equal (td_tape_reader_summaries (r).n, 20);
  td_tape_reader_free (r);
  free (bytes);
}

static void
writer__keeps_within_its_budget_for_100000_iterations (void **state)
{
  TdTapeWriterOptions options = { .budget_bytes = 2 << 20 };
  Rig rig = { .m = { .memory = true } };
  TdTapeSummaries s;
  uint32_t stored = 0, newest = 0;
  struct stat st;

  rig_start (&rig, &options);
  for (int i = 0; i < 1000; i++)
    {
      for (int k = 0; k < 100; k++)
        {
          if (i == 500 && k == 0)
            rig.m.n_layers = 5; /* a structure that comes once, in the middle */
          model_iteration (&rig.m);
          rig.m.n_layers = 3;
        }
      td_assembler_drain (rig.a, rig.ring);
      assert_true (td_tape_writer_bytes (rig.w) <= options.budget_bytes);
    }
  rig_stop (&rig, 0);
  assert_int_equal (stat (rig.path, &st), 0);
  assert_true (st.st_size <= 2 << 20);
  s = td_tape_reader_summaries (rig_read (&rig));
  assert_true (s.n > 5000); /* summaries are thinned too, far later */
  for (uint32_t i = 0; i < s.n; i++)
    {
      const TdTapeIteration *it;
      bool kept = td_tape_reader_stored (rig.r, i);

      assert_true (i == 0 || s.rows[i].number > s.rows[i - 1].number);
      stored += kept;
      newest = kept ? i : newest;
      if (s.rows[i].number < 16 || s.rows[i].number == 50000)
        assert_true (kept);
      it = td_tape_iteration_load (rig.r, s.rows[i].number, rig.error, sizeof rig.error);
      assert_int_equal (it != NULL, kept);
      if (it != NULL)
        assert_int_equal (it->number, s.rows[i].number);
      else
        assert_contains (rig.error, "was thinned");
      td_tape_iteration_free (it);
    }
  assert_true (stored > 1000 && stored < s.n);
  assert_int_equal (s.rows[s.n - 1].number, 99999);
  assert_int_equal (newest, s.n - 1);
  rig_clear (&rig);
}

static void
writer__bounds_structures_that_never_repeat (void **state)
{
  TdTapeWriterOptions options = { .budget_bytes = 1 << 20 };
  Rig rig = { 0 };
  const TdTapeIteration *it;

  rig_start (&rig, &options);
  for (int i = 0; i < 3000; i++)
    {
      rig.m.batch = 1 + i;
      rig_iterations (&rig, 1);
      assert_true (td_tape_writer_bytes (rig.w) <= options.budget_bytes);
    }
  /* the newest has its structure within itself */
  it = rig_load (&rig, td_tape_reader_summaries (rig_read (&rig))
                           .rows[td_tape_reader_summaries (rig.r).n - 1]
                           .number);
  assert_int_equal (it->structure, 0);
  assert_int_equal (it->n_events, 14);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

static void
writer__bounds_values_and_forgets_the_oldest (void **state)
{
  TdTapeWriterOptions options = { .values_bytes = 1 << 20 };
  Rig rig = { 0 };
  static float numbers[8192];
  TdTapeTensorRef refs[100];
  TdTapeTensorRecord record = { .bytes = sizeof numbers, .ndim = 1, .dims = { 8192 } }, back;
  float first;

  rig_start (&rig, &options);
  for (unsigned i = 0; i < 100; i++)
    {
      numbers[0] = (float)i;
      assert_true (td_tape_writer_tensor (rig.w, &record, numbers, &refs[i]));
    }
  rig_read (&rig);
  assert_int_equal (td_tape_tensor_read (rig.r, &refs[0], &back, &first, 0, 4), -1);
  assert_int_equal (td_tape_tensor_read (rig.r, &refs[99], &back, &first, 0, 4), 4);
  assert_true (first == 99);
  assert_true (td_tape_writer_bytes (rig.w) < 2 << 20);
  rig_clear (&rig);
}

static void
writer__never_writes_over_a_file_unless_told (void **state)
{
  TdTapeWriterOptions options = { .size = sizeof options, .path = td_test_tmp ("x.tdtape") };
  char error[200], *text;
  TdTapeWriter *w;

  td_test_write_file (options.path, "precious", 8);
  assert_null (td_tape_writer_new (&options, error, sizeof error));
  assert_string_equal (error, "exists; will not write over it");
  options.overwrite = true;
  assert_null (td_tape_writer_new (&options, error, sizeof error));
  assert_string_equal (error, "it is no tape, and is not written over");
  text = td_test_read_file (options.path, NULL);
  assert_string_equal (text, "precious");
  free (text);
  td_test_write_file (options.path, "", 0);
  for (int i = 0; i < 2; i++) /* an empty file, then a tape */
    {
      w = td_tape_writer_new (&options, error, sizeof error);
      assert_non_null (w);
      td_tape_writer_free (w);
    }
  options.path = "/nowhere/x.tdtape";
  assert_null (td_tape_writer_new (&options, error, sizeof error));
  assert_contains (error, "No such file");
}

/* In a child: the file may not grow beyond 700 KB. */
static int
fill_the_disk (const char *path)
{
  struct rlimit limit = { 700000, 700000 };
  Rig rig = { 0 };
  TdTapeWriterOptions options = { .path = path };

  signal (SIGXFSZ, SIG_IGN);
  rig_start (&rig, &options);
  setrlimit (RLIMIT_FSIZE, &limit);
  rig_iterations (&rig, 20000);
  if (td_tape_writer_error (rig.w) == NULL || rig.m.iteration != 20000)
    return 1;
  rig_stop (&rig, 5 << 8);
  rig_clear (&rig);
  return 0;
}

static void
writer__on_a_full_disk_stops_with_one_notice_and_still_says_the_end (void **state)
{
  const char *path = td_test_tmp ("full.tdtape");
  char error[256];
  TdTapeReader *r;
  TdTapeCheck check;
  int status;
  pid_t child = fork ();

  if (child == 0)
    _exit (fill_the_disk (path));
  assert_int_equal (waitpid (child, &status, 0), child);
  assert_int_equal (status, 0);
  r = td_tape_reader_open (path, error, sizeof error);
  assert_non_null (r);
  assert_non_null (td_tape_reader_end (r));
  assert_int_equal (td_tape_reader_end (r)->status, 5);
  assert_int_equal (td_tape_reader_n_notices (r), 1);
  assert_contains (td_tape_reader_string (r, td_tape_reader_notice (r, 0)->text),
                   "recording stopped, cannot write the tape: File too large");
  td_tape_reader_free (r);
  assert_true (load_all (path) >= 16);
  assert_true (td_tape_check (path, &check));
}

static void
writer__serves_other_recorders_with_texts_only (void **state)
{
  TdTapeWriterOptions options = { .size = sizeof options, .path = td_test_tmp ("py.tdtape") };
  char error[200];
  TdTapeWriter *w = td_tape_writer_new (&options, error, sizeof error);
  TdTapeOpdef def = { .name = td_tape_writer_string (w, "aten::mm"), .n_in = 2, .n_out = 1 };
  uint32_t op = td_tape_writer_opdef (w, &def), site = td_tape_writer_site (w, "a.py", 3, "f");
  uint32_t ins[2] = { 0, 0 }, outs[2] = { 1, 2 };
  TdTapeEvent events[2] = { 0 };
  TdTapeVar vars[3] = { { .producer = -1 }, { .id = 1 }, { .producer = 1, .id = 2 } };
  uint64_t times[2] = { 10, 20 };
  TdTapeIteration it
      = { .size = sizeof it, .n_events = 2, .n_ins = 2, .n_outs = 2, .n_vars = 3 };
  const TdTapeIteration *back;
  TdTapeReader *r;

  for (uint32_t i = 0; i < 2; i++)
    events[i] = (TdTapeEvent){ .opdef = op,
                               .site = site,
                               .path = td_tape_writer_path (w, "net/fc", "Linear"),
                               .twin = -1,
                               .span = TD_TAPE_NONE,
                               .first_in = i,
                               .n_in = 1,
                               .first_out = i,
                               .n_out = 1 };
  it.events = events;
  it.vars = vars;
  it.ins = ins;
  it.outs = outs;
  it.event_start_ns = it.event_duration_ns = times;
  td_tape_writer_whole (w, &it);
  it.number = 1;
  it.label = td_tape_writer_string (w, "second");
  td_tape_writer_whole (w, &it);
  td_tape_writer_free (w);
  r = td_tape_reader_open (options.path, error, sizeof error);
  assert_int_equal (td_tape_reader_n_structures (r), 1);
  back = td_tape_iteration_load (r, 1, error, sizeof error);
  assert_non_null (back);
  assert_string_equal (td_tape_reader_string (r, back->label), "second");
  assert_string_equal (td_tape_reader_op_name (r, back->events[1].opdef), "aten::mm");
  assert_int_not_equal (back->events[0].key, back->events[1].key);
  assert_int_equal (back->event_start_ns[1], 20);
  td_tape_iteration_free (back);
  td_tape_reader_free (r);
}

static void
writer__keeps_times_of_hours (void **state)
{
  Rig rig = { 0 };
  const TdTapeIteration *it;
  TdRawOp *op;
  double hour = 3600e9;

  rig_start (&rig, NULL);
  model_begin (&rig.m);
  op = model_record (&rig.m, TD_RAW_OP, 0, sizeof *op);
  op->opdef = MODEL_RELU;
  op->start = td_ring_ticks ();
  op->end = op->start + (uint64_t)(hour / rig.ring->shared->ns_per_tick);
  model_publish (&rig.m, op);
  model_end (&rig.m);
  td_assembler_drain (rig.a, rig.ring);
  it = rig_load (&rig, 0);
  assert_true ((double)it->event_duration_ns[0] > hour * 0.999);
  assert_true ((double)it->event_duration_ns[0] < hour * 1.001);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

/* A recorder that says one is wrong, and the rest of its iteration is read all the same. */
static void
writer__cuts_times_of_centuries (void **state)
{
  char error[256];
  TdTapeWriterOptions options
      = { .size = sizeof options, .path = td_test_tmp ("centuries.tdtape") };
  TdTapeWriter *w = td_tape_writer_new (&options, error, sizeof error);
  const uint64_t start[3] = { 10, UINT64_MAX / 2 + 10, UINT64_MAX },
                 duration[3] = { UINT64_MAX, 5, 0 };
  TdTapeEvent events[3];
  TdTapeIteration it = { .size = sizeof it, .n_events = 3 };
  const TdTapeIteration *back;
  TdTapeReader *r;

  assert_non_null (w);
  for (uint32_t i = 0; i < 3; i++)
    events[i] = (TdTapeEvent){ .twin = -1, .span = TD_TAPE_NONE };
  it.events = events;
  it.event_start_ns = start;
  it.event_duration_ns = duration;
  td_tape_writer_whole (w, &it);
  td_tape_writer_free (w);
  r = td_tape_reader_open (options.path, error, sizeof error);
  assert_non_null (r);
  back = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (back);
  assert_true (back->event_duration_ns[0] > UINT64_MAX / 4);
  assert_true (back->event_start_ns[1] > UINT64_MAX / 4);
  td_tape_iteration_free (back);
  td_tape_reader_free (r);
}

static void
crc__is_the_same_with_and_without_the_instruction (void **state)
{
  char bytes[100];

  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = (char)(i * 37);
  for (size_t n = 0; n <= sizeof bytes; n++)
    assert_int_equal (td__tape_crc (0, bytes, n), td__tape_crc_portable (0, bytes, n));
  /* RFC 3720, appendix B.4: 32 bytes of zeros; "123456789" is the usual check value */
  memset (bytes, 0, 32);
  assert_int_equal (td__tape_crc (0, bytes, 32), 0x8a9136aa);
  assert_int_equal (td__tape_crc (0, "123456789", 9), 0xe3069283);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (reader__follows_a_tape_that_is_being_written),
    td_test (reader__accepts_the_prefix_after_a_cut_anywhere),
    td_test (reader__refuses_what_is_not_a_tape),
    td_test (reader__refuses_a_newer_major_and_reads_a_newer_minor),
    td_test (reader__skips_frames_of_a_type_it_does_not_know),
    td_test (reader__takes_what_it_knows_of_other_strides),
    td_test (check__finds_the_first_bad_offset_and_repair_saves_the_rest),
    td_test (repair__bridges_a_damaged_segment_head),
    td_test (writer__keeps_within_its_budget_for_100000_iterations),
    td_test (writer__bounds_structures_that_never_repeat),
    td_test (writer__bounds_values_and_forgets_the_oldest),
    td_test (writer__never_writes_over_a_file_unless_told),
    td_test (writer__on_a_full_disk_stops_with_one_notice_and_still_says_the_end),
    td_test (writer__serves_other_recorders_with_texts_only),
    td_test (writer__keeps_times_of_hours),
    td_test (writer__cuts_times_of_centuries),
    td_test (crc__is_the_same_with_and_without_the_instruction),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
