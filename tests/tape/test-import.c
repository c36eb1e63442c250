/* Memory snapshots as tapes: what of them is on the tape, and that our own come back as they
 * went.  What the files of tests/golden/snapshot hold is said in make.py beside them.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include "tape/read/tape-oom.h"
#include "td-tape-import.h"
#include "td-tape-writer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "tests/golden/snapshot/"
#define MIB ((uint64_t)1 << 20)
#define BASE 0x7f0000000000u

static char error[512], path[256], pickle[256];

/* There is a tape already: most imports write over it. */
static int
set_up (void **state)
{
  FILE *f;

  td_test_setup (state);
  snprintf (path, sizeof path, "%s", td_test_tmp ("a.tdtape"));
  snprintf (pickle, sizeof pickle, "%s", td_test_tmp ("a.pickle"));
  f = fopen (path, "w");
  return f != NULL ? fclose (f) : -1;
}

static TdTapeReader *
import (const char *snapshot, TdTapeImport *what)
{
  TdTapeReader *r;

  *what = (TdTapeImport){ .size = sizeof *what };
  error[0] = '\0';
  td_tape_import_snapshot (snapshot, path, true, what, error, sizeof error);
  assert_string_equal (error, "");
  r = td_tape_reader_open (path, error, sizeof error);
  assert_non_null (r);
  return r;
}

static const TdTapeIteration *
load (TdTapeReader *r, uint64_t number)
{
  const TdTapeIteration *it = td_tape_iteration_load (r, number, error, sizeof error);

  assert_non_null (it);
  return it;
}

static const char *
op_of (TdTapeReader *r, const TdTapeIteration *it, uint32_t event)
{
  return td_tape_reader_op_name (r, it->events[event].opdef);
}

static void
assert_site (TdTapeReader *r, uint32_t site, const char *expected)
{
  char text[256];

  assert_string_equal (td_tape_reader_site_text (r, site, text, sizeof text), expected);
}

/* ----------------------------------------------------------------------- a whole one */

static void
import__entries_are_events_in_the_order_of_the_trace (void **state)
{
  static const char *const expected[]
      = { "alloc",         "free",           "alloc",    "segment_alloc", "alloc",
          "segment_alloc", "alloc",          "free",     "segment_free",  "out_of_memory",
          "free",          "free_requested", "snapshot", "segment_alloc", "alloc" };

  for (int protocol = 2; protocol <= 5; protocol++)
    {
      char name[64];
      TdTapeImport what;
      TdTapeReader *r;
      const TdTapeIteration *it;

      snprintf (name, sizeof name, FOLDER "small-%d.pickle", protocol);
      r = import (td_test_source (name), &what);
      it = load (r, 0);
      assert_true (it->flags & TD_TAPE_ITERATION_SNAPSHOT);
      assert_string_equal (td_tape_reader_info (r, TD_TAPE_IMPORT_KEY), TD_TAPE_IMPORT_TORCH);
      assert_int_equal (it->n_events, 15);
      assert_int_equal (what.n_events, 15);
      assert_int_equal (what.n_entries, 18);
      assert_int_equal (what.n_unmatched, 0);
      for (uint32_t e = 0; e < it->n_events; e++)
        assert_string_equal (op_of (r, it, e), expected[e]);
      /* 7 us from entry to entry; the requests that completed at once are entries, too. */
      assert_int_equal (it->event_start_ns[0], 0);
      assert_int_equal (it->event_start_ns[1], 14000);
      td_tape_iteration_free (it);
      td_tape_reader_free (r);
    }
}

/* "forward:12 < malloc:0": from the outermost call in. */
static void
assert_stack (TdTapeReader *r, const TdTapeIteration *it, uint32_t stack, const char *expected)
{
  char text[400] = "", longer[400];

  for (; stack > 0; stack = it->stack_frames[stack - 1].outer)
    {
      const TdTapeSite *site = td_tape_reader_site (r, it->stack_frames[stack - 1].site);

      assert_non_null (site);
      snprintf (longer, sizeof longer, "%.80s:%u%s%.300s",
                td_tape_reader_string (r, site->function), site->line, *text ? " < " : "",
                text);
      snprintf (text, sizeof text, "%s", longer);
    }
  assert_string_equal (text, expected);
}

static void
import__stacks_are_kept_whole_and_once (void **state)
{
  static const char model[] = "__init__:7 < __init__:90",
                    train[] = "<module>:40 < forward:12 < forward:114 < "
                              "c10::cuda::CUDACachingAllocator::malloc:0";
  TdTapeImport what;
  TdTapeReader *r = import (td_test_source (FOLDER "small-4.pickle"), &what);
  const TdTapeIteration *it = load (r, 0);

  assert_int_equal (it->n_event_stacks, it->n_events);
  assert_int_equal (it->n_external_stacks, it->n_externals);
  assert_int_equal (it->n_stack_frames, 8); /* of STACKS in make.py: 4, 2 and 2 */
  assert_stack (r, it, it->event_stacks[0], train);
  assert_int_equal (it->event_stacks[4], it->event_stacks[0]);
  assert_stack (r, it, it->event_stacks[2], "loss:21 < at::detail::empty_generic:31");
  assert_stack (r, it, it->event_stacks[14], model);
  assert_int_equal (it->event_stacks[5], 0);
  /* The parameters were there before; who made what the trace gives back, nobody says. */
  assert_int_equal (it->n_externals, 2);
  assert_int_equal (it->external_stacks[0], 0);
  assert_stack (r, it, it->external_stacks[1], model);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

static void
write_stacks (const TdTapeStackFrame *frames, uint32_t n, const uint32_t *stacks,
              uint32_t n_stacks)
{
  TdTapeWriter *w = td_tape_writer_new (
      &(TdTapeWriterOptions){
          .size = sizeof (TdTapeWriterOptions), .path = path, .overwrite = true },
      error, sizeof error);
  const TdTapeEvent events[2] = { { .key = 1, .twin = -1, .span = TD_TAPE_NONE },
                                  { .key = 2, .twin = -1, .span = TD_TAPE_NONE } };
  const uint64_t times[2] = { 0 };
  TdTapeIteration it = { .size = sizeof it,
                         .n_events = 2,
                         .events = events,
                         .event_start_ns = times,
                         .event_duration_ns = times,
                         .stack_frames = frames,
                         .n_stack_frames = n,
                         .event_stacks = stacks,
                         .n_event_stacks = n_stacks };

  assert_non_null (w);
  td_tape_writer_whole (w, &it);
  assert_null (td_tape_writer_error (w));
  td_tape_writer_free (w);
}

static void
import__a_stack_that_does_not_end_is_damage (void **state)
{
  static const struct
  {
    TdTapeStackFrame frames[2];
    uint32_t stacks[2], n_stacks;
    bool good;
  } cases[] = {
    { { { 0, 0 }, { 0, 1 } }, { 2, 0 }, 2, true },
    { { { 0, 1 }, { 0, 1 } }, { 2, 0 }, 2, false }, /* a call in itself */
    { { { 0, 2 }, { 0, 0 } }, { 2, 0 }, 2, false }, /* in a later one */
    { { { 0, 0 }, { 0, 1 } }, { 3, 0 }, 2, false }, /* no such call */
    { { { 0, 0 }, { 0, 1 } }, { 2, 0 }, 1, false }, /* not of each event */
    { { { 0, 0 }, { 0, 1 } }, { 2, 0 }, 0, true },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      TdTapeReader *r;
      const TdTapeIteration *it;

      unlink (path); /* no tape is what is there first */
      write_stacks (cases[i].frames, 2, cases[i].stacks, cases[i].n_stacks);
      r = td_tape_reader_open (path, error, sizeof error);
      assert_non_null (r);
      it = td_tape_iteration_load (r, 0, error, sizeof error);
      assert_true ((it != NULL) == cases[i].good);
      td_tape_iteration_free (it);
      td_tape_reader_free (r);
    }
}

/* What was exported has the stacks that were imported. */
static void
import__stacks_go_out_as_they_came_in (void **state)
{
  TdTapeImport what;
  TdTapeReader *r = import (td_test_source (FOLDER "small-4.pickle"), &what);
  FILE *f = fopen (pickle, "wb");
  const TdTapeIteration *it;

  assert_non_null (f);
  assert_true (td_tape_write_snapshot (r, 0, 1, f, error, sizeof error));
  fclose (f);
  td_tape_reader_free (r);
  r = import (pickle, &what);
  it = load (r, 0);
  assert_stack (r, it, it->event_stacks[0],
                "<module>:40 < forward:12 < forward:114 < "
                "c10::cuda::CUDACachingAllocator::malloc:0");
  assert_site (r, it->events[0].site, "/src/net/train.py:12");
  assert_stack (r, it, it->event_stacks[2], "loss:21 < at::detail::empty_generic:31");
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

static void
import__places_are_the_innermost_own_python_frames (void **state)
{
  TdTapeImport what;
  TdTapeReader *r = import (td_test_source (FOLDER "small-4.pickle"), &what);
  const TdTapeIteration *it = load (r, 0);

  assert_site (r, it->events[0].site, "/src/net/train.py:12"); /* below C++ and a library */
  assert_site (r, it->events[2].site, "/src/net/train.py:21");
  assert_site (r, it->events[14].site, "/src/net/model.py:7");
  assert_int_equal (it->events[5].site, 0); /* no stack at all */
  assert_string_equal (
      td_tape_reader_string (r, td_tape_reader_site (r, it->events[0].site)->function),
      "forward");
  assert_string_equal (td_tape_reader_string (r, it->events[4].attrs), "stream=7");
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* On device 0: 4,000,000 and 1,000,000 bytes from before; the second is given back. */
static void
import__blocks_from_before_the_trace_are_there_at_its_start (void **state)
{
  TdTapeImport what;
  TdTapeReader *r = import (td_test_source (FOLDER "small-2.pickle"), &what);
  const TdTapeIteration *it = load (r, 0);

  assert_int_equal (it->n_blocks, 2);
  assert_int_equal (it->start_bytes[TD_TAPE_CATEGORY_OTHER], 4000256 + 1000448);
  for (uint32_t i = 0; i < 2; i++)
    {
      const bool freed = it->blocks[i].bytes == 1000448;

      assert_int_equal (it->blocks[i].address, BASE + (freed ? 4000256 : 0));
      assert_int_equal (it->blocks[i].device, 1);
      assert_site (r, it->vars[i].site, freed ? "" : "/src/net/model.py:7");
    }
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

static void
import__end_and_peak_are_those_of_the_allocator (void **state)
{
  TdTapeImport what;
  TdTapeReader *r = import (td_test_source (FOLDER "small-5.pickle"), &what);
  const TdTapeIteration *it = load (r, 0);
  const uint64_t end = 4000256 + 3000320 + 512; /* of device 0: pending counts */
  TapeLiveSet live;

  assert_int_equal (it->end_bytes, end + 1024);
  assert_int_equal (what.n_blocks, 4);
  assert_int_equal (it->peak_bytes, end + 2000384 + 30 * MIB);
  assert_true (td__tape_live_after (it, 1, it->n_memory, &live));
  assert_int_equal (live.n, 3);
  free (live.items);
  assert_int_equal (it->n_devices, 2);
  assert_int_equal (it->devices[0].reserved_bytes, 22 * MIB);
  assert_int_equal (it->devices[0].live_bytes, 4000256 + 3000320);
  assert_int_equal (it->n_pools, 3);
  assert_int_equal (it->pools[1].kind, TD_TAPE_POOL_PRIVATE);
  assert_int_equal (it->pools[1].pending_bytes, 512);
  assert_int_equal (it->pools[0].split_bytes, 20 * MIB - 4000256 - 3000320);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

static void
import__memory_that_ran_out_is_said (void **state)
{
  TdTapeImport what;
  TdTapeReader *r = import (td_test_source (FOLDER "small-3.pickle"), &what);
  const TdTapeOom *o;

  assert_int_equal (td_tape_reader_n_ooms (r), 1);
  o = td_tape_reader_oom (r, 0);
  assert_int_equal (o->flags, TD_TAPE_OOM_ITERATION | TD_TAPE_OOM_IMPORTED);
  assert_true (o->asked_bytes == (uint64_t)1 << 40);
  assert_int_equal (o->event, 9);
  assert_int_equal (o->live_bytes, 4000256 + 3000320 + 512 + 2000384);
  assert_site (r, o->site, "/src/net/train.py:21");
  /* Who had the most then: the blocks of each place together. */
  assert_int_equal (o->n_groups, 3);
  for (int k = 0; k < 3; k++)
    {
      static const struct
      {
        uint64_t bytes;
        uint32_t n;
        const char *site;
      } expected[] = { { 4000256, 1, "/src/net/model.py:7" },
                       { 3000320, 1, "/src/net/train.py:21" },
                       { 2000384 + 512, 2, "/src/net/train.py:12" } };
      const TdTapeOomHolder *h = &td_tape_reader_oom_holders (r, 0)[k];

      assert_int_equal (h->bytes, expected[k].bytes);
      assert_int_equal (h->n, expected[k].n);
      assert_site (r, h->site, expected[k].site);
      assert_int_equal ((h->flags & TD_TAPE_OOM_HOLDER_BEFORE) != 0, k == 0);
    }
  assert_int_equal (o->unnamed_bytes, 0);
  td_tape_reader_free (r);
}

/* What a snapshot does not have is not made up. */
static void
import__says_nothing_of_what_a_snapshot_does_not_have (void **state)
{
  static const char *const unknown[] = { "forward", "tried", "kept by", "more than there was" };
  TdTapeImport what;
  TdTapeReader *r = import (td_test_source (FOLDER "small-3.pickle"), &what);

  for (int json = 0; json < 2; json++)
    {
      char *text = NULL;
      size_t n;
      FILE *out = open_memstream (&text, &n);

      td_tape_oom_print (r, out, json);
      fclose (out);
      if (json)
        {
          assert_contains (text, "\"phase\":null");
          assert_contains (text, "\"missing_bytes\":null,\"tried\":null");
          assert_contains (text, "\"holder\":null");
        }
      else
        {
          assert_contains (text, "iteration 0, event 9: alloc at /src/net/train.py:21 wanted");
          for (unsigned k = 0; k < sizeof unknown / sizeof *unknown; k++)
            assert_not_contains (text, unknown[k]);
        }
      free (text);
    }
  td_tape_reader_free (r);
}

/* Addresses that are not said follow from the sizes before. */
static void
import__the_old_form_has_its_blocks_too (void **state)
{
  TdTapeImport what;
  TdTapeReader *r = import (td_test_source (FOLDER "old.pickle"), &what);
  const TdTapeIteration *it = load (r, 0);

  assert_int_equal (it->n_events, 0);
  assert_int_equal (it->n_blocks, 2);
  assert_int_equal (it->blocks[0].address, BASE);
  assert_int_equal (it->blocks[0].bytes, 1024);
  assert_int_equal (it->vars[0].bytes, 1000);
  assert_int_equal (it->blocks[1].address, BASE + 4096);
  assert_int_equal (it->end_bytes, 5120);
  assert_site (r, it->vars[0].site, "/src/net/train.py:12");
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* --------------------------------------------------------------------------- refused */

static void
write_pickle (const void *bytes, size_t n)
{
  FILE *f = fopen (pickle, "wb");

  assert_non_null (f);
  assert_int_equal (fwrite (bytes, 1, n, f), n);
  assert_int_equal (fclose (f), 0);
}

static void
import__what_is_wrong_is_said_with_its_place (void **state)
{
  static const struct
  {
    const char *bytes, *says;
  } cases[] = {
    { "\x80\x02N.", "no memory snapshot: it has no list of segments" },
    { "\x80\x02}.", "no memory snapshot: it has no list of segments" },
    { "\x80\x02](N}e.", "segments[0]: a dictionary expected" },
    { "\x80\x02](}e.", "segments[0]: no address, or none that can be" },
    { "\x80\x02](}(U\x07"
      "addressK\x01U\x0a"
      "total_sizeK\x01U\x06"
      "blocks](}eue.",
      "segments[0].blocks[0]: no size, or none that can be" },
    { "\x80\x02}(U\x08segments]U\x0d"
      "device_traces](](}(U\x06"
      "actionU\x05"
      "allocU\x04sizeK\x01ueeu.",
      "device_traces[0][0]: no addr, or none that can be" },
    { "\x80\x02}(U\x08segments]U\x0d"
      "device_traces](](NNeeu.",
      "device_traces[0][0]: a dictionary expected" },
  };

  unlink (path);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      char expected[768];

      write_pickle (cases[i].bytes, strlen (cases[i].bytes));
      snprintf (expected, sizeof expected, "%s: %s", pickle, cases[i].says);
      assert_false (td_tape_import_snapshot (pickle, path, false, NULL, error, sizeof error));
      assert_string_equal (error, expected);
      assert_int_equal (access (path, F_OK), -1); /* no half of a tape */
    }
  assert_false (td_tape_import_snapshot (td_test_source (FOLDER "harmful.pickle"), path, false,
                                         NULL, error, sizeof error));
  assert_non_null (strstr (error, "STACK_GLOBAL is refused"));
}

static void
import__an_existing_tape_is_not_written_over (void **state)
{
  assert_false (td_tape_import_snapshot (td_test_source (FOLDER "small-4.pickle"), path, false,
                                         NULL, error, sizeof error));
  assert_non_null (strstr (error, "will not write over it"));
  assert_int_equal (access (path, F_OK), 0);
}

/* Two devices whose traces are one list of many entries, ten thousand times over. */
static void
import__shared_parts_are_not_looked_at_without_end (void **state)
{
  static const char head[] = "\x80\x02}(U\x08segments](}q\x00(U\x07"
                             "addressK\x01U\x0a"
                             "total_sizeK\x01U\x06"
                             "blocks](}q\x01(U\x04sizeK\x01U\x05stateN";
  char bytes[40000], *at = bytes + sizeof head - 1;

  memcpy (bytes, head, sizeof head - 1);
  *at++ = 'u';
  for (int i = 0; i < 9000; i++, at += 2)
    memcpy (at, "h\x01", 2);
  memcpy (at, "eu", 2);
  at += 2;
  for (int i = 0; i < 9000; i++, at += 2)
    memcpy (at, "h\x00", 2);
  memcpy (at, "eu.", 3);
  at += 3;
  write_pickle (bytes, (size_t)(at - bytes));
  assert_false (td_tape_import_snapshot (pickle, path, true, NULL, error, sizeof error));
  assert_non_null (strstr (error, "more than the file has room for"));
}

/* ------------------------------------------------------------------------ there and back */

static int
by_address (const void *a, const void *b)
{
  const TapeLive *x = a, *y = b;

  return (x->address > y->address) - (x->address < y->address);
}

static void
compare_live (const TdTapeIteration *a, const TdTapeIteration *b, uint32_t n_a, uint32_t n_b)
{
  TapeLiveSet x, y;

  assert_true (td__tape_live_after (a, 0, n_a, &x));
  assert_true (td__tape_live_after (b, 1, n_b, &y));
  assert_int_equal (x.n, y.n);
  qsort (x.items, x.n, sizeof *x.items, by_address);
  qsort (y.items, y.n, sizeof *y.items, by_address);
  for (uint32_t i = 0; i < x.n; i++)
    {
      assert_int_equal (x.items[i].address, y.items[i].address);
      assert_int_equal (x.items[i].bytes, y.items[i].bytes);
      assert_int_equal (x.items[i].category, y.items[i].category);
    }
  free (x.items);
  free (y.items);
}

static uint64_t
peak_of (const TdTapeIteration *it, unsigned device)
{
  uint64_t now = 0, peak;

  for (uint32_t i = 0; i < it->n_blocks; i++)
    now += it->blocks[i].device == device ? it->blocks[i].bytes : 0;
  peak = now;
  for (uint32_t i = 0; i < it->n_memory; i++)
    if (it->memory[i].device == device && it->memory[i].kind <= TD_TAPE_MEMORY_FREE)
      {
        now += it->memory[i].kind == TD_TAPE_MEMORY_ALLOC ? it->memory[i].bytes
                                                          : -it->memory[i].bytes;
        peak = now > peak ? now : peak;
      }
  return peak;
}

/* Place of each record: the event's, as the export has it; else the variable's. */
static void
compare_sites (TdTapeReader *ra, const TdTapeIteration *a, TdTapeReader *rb,
               const TdTapeIteration *b)
{
  uint32_t k = 0;

  for (uint32_t i = 0; i < a->n_memory; i++)
    {
      const TdTapeMemory *m = &a->memory[i];
      const uint32_t event = m->event < a->n_events ? a->events[m->event].site : 0;
      const uint32_t site = event != 0 ? event : m->var < a->n_vars ? a->vars[m->var].site : 0;
      char text[256];

      if (m->kind > TD_TAPE_MEMORY_FREE || m->device != 0)
        continue;
      while (k < b->n_memory && b->memory[k].kind > TD_TAPE_MEMORY_FREE)
        k++;
      assert_true (k < b->n_memory);
      assert_int_equal (b->memory[k].kind, m->kind);
      assert_int_equal (b->memory[k].address, m->address);
      assert_int_equal (b->memory[k].bytes, m->bytes);
      td_tape_reader_site_text (ra, site, text, sizeof text);
      assert_site (rb, b->events[b->memory[k].event].site, text);
      k++;
    }
  assert_int_equal (k, b->n_memory);
}

static void
import__our_own_snapshots_come_back_with_blocks_places_and_peak (void **state)
{
  static const char *const tapes[]
      = { "tests/golden/tape-1.0.tdtape",        "tests/golden/tape-1.1.tdtape",
          "tests/golden/tape-1.1-runs.tdtape",   "tests/golden/tape-1.2.tdtape",
          "tests/golden/tape-1.2-copies.tdtape", "tests/golden/tape-1.2-faults.tdtape" };
  unsigned n = 0;

  for (size_t t = 0; t < sizeof tapes / sizeof *tapes; t++)
    {
      TdTapeReader *ra = td_tape_reader_open (td_test_source (tapes[t]), error, sizeof error);
      TdTapeSummaries all;

      assert_non_null (ra);
      all = td_tape_reader_summaries (ra);
      for (uint32_t i = 0; i < all.n; i++)
        if (td_tape_reader_stored (ra, i))
          {
            FILE *f = fopen (pickle, "wb");
            TdTapeImport what;
            TdTapeReader *rb;
            const TdTapeIteration *a, *b;

            assert_true (
                td_tape_write_snapshot (ra, all.rows[i].number, 0, f, error, sizeof error));
            fclose (f);
            a = load (ra, all.rows[i].number);
            rb = import (pickle, &what);
            b = load (rb, 0);
            assert_int_equal (what.n_unmatched, 0);
            compare_live (a, b, 0, 0);
            compare_live (a, b, a->n_memory, b->n_memory);
            compare_sites (ra, a, rb, b);
            assert_int_equal (peak_of (a, 0), peak_of (b, 1));
            assert_int_equal (peak_of (a, 0), what.peak_bytes);
            n += b->n_memory > 0;
            td_tape_iteration_free (a);
            td_tape_iteration_free (b);
            td_tape_reader_free (rb);
          }
      td_tape_reader_free (ra);
    }
  assert_true (n >= 3); /* iterations that had any memory */
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup_teardown (f, set_up, td_test_teardown)
  const struct CMUnitTest tests[] = {
    TEST (import__entries_are_events_in_the_order_of_the_trace),
    TEST (import__places_are_the_innermost_own_python_frames),
    TEST (import__stacks_are_kept_whole_and_once),
    TEST (import__a_stack_that_does_not_end_is_damage),
    TEST (import__stacks_go_out_as_they_came_in),
    TEST (import__blocks_from_before_the_trace_are_there_at_its_start),
    TEST (import__end_and_peak_are_those_of_the_allocator),
    TEST (import__memory_that_ran_out_is_said),
    TEST (import__says_nothing_of_what_a_snapshot_does_not_have),
    TEST (import__the_old_form_has_its_blocks_too),
    TEST (import__what_is_wrong_is_said_with_its_place),
    TEST (import__an_existing_tape_is_not_written_over),
    TEST (import__shared_parts_are_not_looked_at_without_end),
    TEST (import__our_own_snapshots_come_back_with_blocks_places_and_peak),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
