/* The reader of pickles: what it reads, what it refuses, and how little memory lies ask it for.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include "tape/tools/tape-pickle.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FOLDER "tests/golden/snapshot/"

static char error[256];

/* Reads to the end of fd and closes it. */
static TapePickle *
read_and_close (int fd, const TapeEntries *entries)
{
  TapePickle *p;

  assert_true (fd >= 0);
  error[0] = '\0';
  p = td__tape_pickle_read (fd, NULL, entries, error, sizeof error);
  close (fd);
  assert_true ((p == NULL) == (error[0] != '\0'));
  return p;
}

static int
file_of (const void *bytes, size_t n)
{
  const int fd = memfd_create ("pickle", MFD_CLOEXEC);

  assert_true (fd >= 0);
  assert_int_equal (write (fd, bytes, n), n);
  assert_int_equal (lseek (fd, 0, SEEK_SET), 0);
  return fd;
}

static TapePickle *
read_bytes (const void *bytes, size_t n)
{
  return read_and_close (file_of (bytes, n), NULL);
}

/* What was handed on. */
typedef struct
{
  uint32_t devices[64];
  uint64_t addresses[64];
  uint64_t n;
  TapeValue addr, frames;
  uint64_t n_frames;
} Taken;

static bool
begin (void *user, TapePickle *p)
{
  Taken *t = user;

  t->addr = td__tape_value_make_text (p, "addr", 4);
  t->frames = td__tape_value_make_text (p, "frames", 6);
  return true;
}

static bool
take (void *user, const TapePickle *p, uint32_t device, TapeValue dict, char *text, size_t n)
{
  Taken *t = user;

  t->devices[t->n % 64] = device;
  t->addresses[t->n % 64] = 0;
  td__tape_value_unsigned (p, td__tape_member (p, dict, t->addr), &t->addresses[t->n++ % 64]);
  t->n_frames += td__tape_value_length (p, td__tape_member (p, dict, t->frames));
  return true;
}

static TapePickle *
read_entries (const void *bytes, size_t n, Taken *taken)
{
  return read_and_close (file_of (bytes, n), &(TapeEntries){ begin, take, taken });
}

#define READ(literal) read_bytes (literal, sizeof literal - 1)

static TapePickle *
read_file (const char *name)
{
  return read_and_close (open (td_test_source (name), O_RDONLY | O_CLOEXEC), NULL);
}

static char *
slurp (const char *name, size_t *n)
{
  const int fd = open (td_test_source (name), O_RDONLY | O_CLOEXEC);
  char *bytes = malloc (65536);
  ssize_t got;

  assert_true (fd >= 0 && bytes != NULL);
  got = read (fd, bytes, 65536);
  assert_true (got > 0 && got < 65536);
  close (fd);
  *n = (size_t)got;
  return bytes;
}

/* ------------------------------------------------------------------------------ values */

static uint64_t
number (TapePickle *p)
{
  uint64_t x = 0;

  assert_non_null (p);
  assert_true (td__tape_value_unsigned (p, p->root, &x));
  td__tape_pickle_free (p);
  return x;
}

static void
pickle__integers_of_every_opcode_have_their_value (void **state)
{
  static const uint8_t address[] = "\x80\x02\x8a\x07\x00\x10\x20\x30\x40\x7f\x00.";
  static const uint8_t largest[] = "\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.";
  static const uint8_t larger[] = "\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x01.";
  TapePickle *p;
  uint64_t x;

  assert_int_equal (number (READ ("\x80\x02K\xff.")), 255);
  assert_int_equal (number (READ ("\x80\x02M\x01\x80.")), 0x8001);
  assert_int_equal (number (READ ("\x80\x02J\xff\xff\xff\x7f.")), INT32_MAX);
  assert_int_equal (number (READ ("\x80\x02\x8a\x00.")), 0);
  assert_int_equal (number (READ ("\x80\x02\x8b\x02\x00\x00\x00\x00\x01.")), 256);
  assert_int_equal (number (READ ("\x80\x02\x88.")), 1);
  assert_int_equal (number (read_bytes (address, sizeof address - 1)), 0x7f4030201000);
  assert_true (number (read_bytes (largest, sizeof largest - 1)) == UINT64_MAX);
  assert_null (read_bytes (larger, sizeof larger - 1));
  assert_string_equal (error, "offset 2: an integer of more than 64 bits");
  p = READ ("\x80\x02J\xff\xff\xff\xff.");
  assert_non_null (p);
  assert_int_equal (td__tape_value_kind (p->root), TAPE_VALUE_INT);
  assert_false (td__tape_value_unsigned (p, p->root, &x)); /* -1 */
  td__tape_pickle_free (p);
}

static void
pickle__floats_and_none_are_no_integers (void **state)
{
  TapePickle *p = READ ("\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00.");
  uint64_t x;

  assert_non_null (p);
  assert_true (td__tape_value_float (p, p->root) == 1.5);
  assert_false (td__tape_value_unsigned (p, p->root, &x));
  td__tape_pickle_free (p);
  p = READ ("\x80\x02N.");
  assert_non_null (p);
  assert_int_equal (td__tape_value_kind (p->root), TAPE_VALUE_NONE);
  assert_int_equal (td__tape_value_length (p, p->root), 0);
  td__tape_pickle_free (p);
}

/* [1, 2] + [3] + [4, 5], with a list of its own put in between: parts cannot be one. */
static void
pickle__lists_keep_their_order_over_several_appends (void **state)
{
  TapePickle *p = READ ("\x80\x04](K\x01K\x02"
                        "e](K\x09"
                        "e0K\x03"
                        "a(K\x04K\x05"
                        "e.");
  uint64_t sum = 0, x;
  int n = 0;

  assert_non_null (p);
  assert_int_equal (td__tape_value_length (p, p->root), 5);
  for (TapeItems i = td__tape_items (p, p->root); td__tape_next (p, &i);)
    {
      assert_true (td__tape_value_unsigned (p, i.value, &x));
      sum = sum * 10 + x;
      n++;
    }
  assert_int_equal (n, 5);
  assert_int_equal (sum, 12345);
  td__tape_pickle_free (p);
}

static void
pickle__a_key_said_twice_has_its_last_value (void **state)
{
  TapePickle *p = READ ("\x80\x04}(\x8c\x01"
                        "aK\x01\x8c\x01"
                        "bK\x02u\x8c\x01"
                        "aK\x07s.");
  uint64_t x = 0;

  assert_non_null (p);
  assert_true (
      td__tape_value_unsigned (p, td__tape_member (p, p->root, td__tape_key (p, "a")), &x));
  assert_int_equal (x, 7);
  assert_true (
      td__tape_value_unsigned (p, td__tape_member (p, p->root, td__tape_key (p, "b")), &x));
  assert_int_equal (x, 2);
  assert_int_equal (td__tape_key (p, "c"), 0);
  assert_int_equal (td__tape_member (p, p->root, 0), 0);
  td__tape_pickle_free (p);
}

/* A list that contains itself is read; nobody goes down it without end. */
static void
pickle__a_list_may_contain_itself (void **state)
{
  TapePickle *p = READ ("\x80\x02]q\x00h\x00"
                        "a.");
  TapeItems i;

  assert_non_null (p);
  i = td__tape_items (p, p->root);
  assert_true (td__tape_next (p, &i));
  assert_true (i.value == p->root);
  assert_false (td__tape_next (p, &i));
  td__tape_pickle_free (p);
}

/* ----------------------------------------------------------------------- whole files */

static uint64_t
member_number (const TapePickle *p, TapeValue dict, const char *key)
{
  uint64_t x = UINT64_MAX;

  td__tape_value_unsigned (p, td__tape_member (p, dict, td__tape_key (p, key)), &x);
  return x;
}

static TapeValue
item (const TapePickle *p, TapeValue list, unsigned k)
{
  TapeItems i = td__tape_items (p, list);

  while (td__tape_next (p, &i))
    if (k-- == 0)
      return i.value;
  return 0;
}

static void
pickle__python_writes_the_same_in_four_protocols (void **state)
{
  for (int protocol = 2; protocol <= 5; protocol++)
    {
      char name[200];
      TapePickle *p;
      TapeValue segment, traces, entry;

      snprintf (name, sizeof name, FOLDER "small-%d.pickle", protocol);
      p = read_file (name);
      assert_non_null (p);
      segment = item (p, td__tape_member (p, p->root, td__tape_key (p, "segments")), 0);
      assert_int_equal (member_number (p, segment, "address"), 0x7f0000000000);
      assert_int_equal (member_number (p, segment, "total_size"), 20 << 20);
      traces = td__tape_member (p, p->root, td__tape_key (p, "device_traces"));
      assert_int_equal (td__tape_value_length (p, traces), 2);
      entry = item (p, item (p, traces, 0), 0);
      assert_string_equal (
          td__tape_value_text (p, td__tape_member (p, entry, td__tape_key (p, "action")), NULL),
          "alloc");
      assert_true (member_number (p, entry, "time_us") == 1700000000000007ull);
      assert_int_equal (
          td__tape_value_length (p, td__tape_member (p, entry, td__tape_key (p, "frames"))), 4);
      td__tape_pickle_free (p);
    }
}

static void
pickle__every_truncation_is_an_error_at_its_end (void **state)
{
  size_t n;
  char *bytes = slurp (FOLDER "small-4.pickle", &n);

  for (size_t cut = 0; cut < n; cut++)
    {
      assert_null (read_bytes (bytes, cut));
      assert_non_null (strstr (error, "the file ends within the pickle"));
    }
  td__tape_pickle_free (read_bytes (bytes, n));
  assert_string_equal (error, "");
  free (bytes);
}

/* ----------------------------------------------------------------------------- refused */

static void
pickle__code_is_refused_by_name (void **state)
{
  static const struct
  {
    const char *bytes, *says;
  } cases[] = {
    { "\x80\x02"
      "cos\nsystem\n.",
      "offset 2: GLOBAL is refused: only dictionaries, lists, texts and numbers are read" },
    { "\x80\x02]R.",
      "offset 3: REDUCE is refused: only dictionaries, lists, texts and numbers are read" },
    { "\x80\x04\x8f.",
      "offset 2: EMPTY_SET is refused: only dictionaries, lists, texts and numbers are read" },
    { "\x80\x04\xff.", "offset 2: 0xff is no opcode" },
    { "\x80\x06N.", "offset 0: pickle protocol 6; 2 to 5 can be read" },
    { "(lp0\n.", "offset 0: not a pickle of protocol 2 to 5" },
    { "PK\x03\x04", "offset 0: not a pickle of protocol 2 to 5" },
    { "\x80\x02h\x07.", "offset 2: memo 7 was never put" },
    { "\x80\x02u.", "offset 2: no mark on the stack" },
    { "\x80\x02(0a.", "offset 4: a value is missing on the stack" },
    { "\x80\x02NNa.", "offset 4: items for what is no list" },
    { "\x80\x02}](Nus.", "offset 6: a key without a value" },
    { "\x80\x02}]Ns.", "offset 5: a key that is neither a text nor a small number" },
    { "\x80\x02NN.", "offset 4: the pickle ends with 2 values on the stack" },
    { "\x80\x02Nr\xff\xff\xff\x7f.", "offset 3: memo 2147483647 after 0 of them" },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      assert_null (read_bytes (cases[i].bytes, strlen (cases[i].bytes)));
      assert_string_equal (error, cases[i].says);
    }
  assert_null (read_file (FOLDER "harmful.pickle"));
  assert_non_null (strstr (error, "STACK_GLOBAL is refused"));
}

static void
pickle__depth_has_an_end (void **state)
{
  char bytes[5000];

  memset (bytes, '(', sizeof bytes);
  memcpy (bytes, "\x80\x02", 2);
  assert_null (read_bytes (bytes, sizeof bytes));
  assert_string_equal (error, "offset 1002: values within values, more than 1000 deep");
}

static void
pickle__a_length_alone_takes_no_memory (void **state)
{
  static const uint8_t text[] = "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fgone";
  static const uint8_t integer[] = "\x80\x02\x8b\xff\xff\xff\x7f\x01";

  assert_null (read_bytes (text, sizeof text - 1));
  assert_non_null (strstr (error, "the file ends within the pickle"));
  assert_null (read_bytes (integer, sizeof integer - 1));
  assert_non_null (strstr (error, "an integer of 2147483647 bytes"));
}

/* 8 MB of empty lists in a list would be 320 MB of words. */
static void
pickle__many_empty_lists_meet_the_budget (void **state)
{
  const size_t n = 8 << 20;
  char *bytes = malloc (n);

  assert_non_null (bytes);
  memset (bytes, ']', n);
  memcpy (bytes, "\x80\x02](", 4);
  assert_null (read_bytes (bytes, n));
  assert_non_null (strstr (error, "more than a snapshot of this size has"));
  free (bytes);
}

static void
pickle__a_dictionary_has_at_most_1024_keys (void **state)
{
  char bytes[4 + 1025 * 4 + 2], *at = bytes + 4;

  memcpy (bytes, "\x80\x02}(", 4);
  for (int i = 0; i < 1025; i++)
    {
      *at++ = 'M';
      *at++ = (char)(i & 0xff);
      *at++ = (char)(i >> 8);
      *at++ = 'N';
    }
  memcpy (at, "u.", 2);
  assert_null (read_bytes (bytes, sizeof bytes));
  assert_string_equal (error, "offset 4104: a dictionary of more than 1024 keys");
}

/* ------------------------------------------------------------------- once, and handed on */

/* Two stacks of one frame each, and the same frame again in a third of two. */
static void
pickle__equal_stacks_are_there_once (void **state)
{
  TapePickle *p = READ ("\x80\x04](](}(\x8c\x01"
                        "fK\x07\x8c\x01"
                        "gK\x08ue](}(\x8c\x01"
                        "fK\x07\x8c\x01"
                        "gK\x08ue](}(\x8c\x01"
                        "fK\x07\x8c\x01"
                        "gK\x08uK\x01"
                        "ee.");

  assert_non_null (p);
  assert_true (item (p, p->root, 0) == item (p, p->root, 1));
  assert_true (item (p, p->root, 0) != item (p, p->root, 2));
  assert_true (item (p, item (p, p->root, 0), 0) == item (p, item (p, p->root, 2), 0));
  assert_int_equal (td__tape_value_length (p, item (p, p->root, 2)), 2);
  assert_int_equal (member_number (p, item (p, item (p, p->root, 2), 0), "g"), 8);
  td__tape_pickle_free (p);
}

/* The memo of the second one leads to the first; what one gets the other must not have. */
static void
pickle__what_equal_lists_became_does_not_grow (void **state)
{
  TapePickle *p = READ ("\x80\x04](](K\x01K\x02"
                        "e]q\x00(K\x01K\x02"
                        "eh\x00"
                        "e.");

  assert_non_null (p);
  assert_int_equal (td__tape_value_length (p, p->root), 3);
  assert_true (item (p, p->root, 2) == item (p, p->root, 0));
  td__tape_pickle_free (p);
  p = READ ("\x80\x04](](K\x01K\x02"
            "e]q\x00(K\x01K\x02"
            "eh\x00K\x03"
            "ae.");
  assert_null (p);
  assert_string_equal (error, "offset 24: items for a list that had all of them");
  /* One that others speak of is none that could become another. */
  p = READ ("\x80\x04](](K\x01K\x02"
            "e]q\x00h\x00"
            "(K\x01K\x02"
            "ee.");
  assert_non_null (p);
  assert_true (item (p, p->root, 1) == item (p, p->root, 2));
  assert_true (item (p, p->root, 1) != item (p, p->root, 0));
  td__tape_pickle_free (p);
}

static void
pickle__entries_are_handed_on_in_order_and_not_kept (void **state)
{
  for (int protocol = 2; protocol <= 5; protocol++)
    {
      char name[200], *bytes;
      Taken kept = { 0 }, taken = { 0 };
      TapePickle *all, *p;
      TapeValue traces;
      uint64_t k = 0;
      size_t n;

      snprintf (name, sizeof name, FOLDER "small-%d.pickle", protocol);
      bytes = slurp (name, &n);
      all = read_bytes (bytes, n);
      p = read_entries (bytes, n, &taken);
      assert_non_null (all);
      assert_non_null (p);
      assert_int_equal (taken.n, 18);
      kept.addr = td__tape_key (all, "addr");
      traces = td__tape_member (all, all->root, td__tape_key (all, "device_traces"));
      for (unsigned d = 0; d < 2; d++)
        for (TapeItems i = td__tape_items (all, item (all, traces, d)); td__tape_next (all, &i);
             k++)
          {
            uint64_t at = 0;

            td__tape_value_unsigned (all, td__tape_member (all, i.value, kept.addr), &at);
            assert_true (taken.addresses[k] == at);
            assert_int_equal (taken.devices[k], d);
          }
      assert_int_equal (k, 18);
      traces = td__tape_member (p, p->root, td__tape_key (p, "device_traces"));
      assert_int_equal (td__tape_value_length (p, traces), 2);
      for (unsigned d = 0; d < 2; d++)
        assert_int_equal (td__tape_value_length (p, item (p, traces, d)), 0);
      td__tape_pickle_free (p);
      td__tape_pickle_free (all);
      free (bytes);
    }
}

#define BEGIN_TRACE                                                                            \
  "\x80\x04}(\x8c\x0d"                                                                         \
  "device_traces](]("

static void
pickle__an_entry_that_was_handed_on_is_nowhere_else (void **state)
{
  static const struct
  {
    const char *bytes, *says;
    uint64_t n;
  } cases[] = {
    { BEGIN_TRACE "}q\x07(\x8c\x04"
                  "addrK\x05ueeu.",
      "", 1 },
    { BEGIN_TRACE "}q\x07(\x8c\x04"
                  "addrK\x05uh\x07"
                  "eeu.",
      "offset 36: memo 7 is an entry of a trace, which has its place there", 1 },
    { BEGIN_TRACE "}q\x07h\x07"
                  "0(\x8c\x04"
                  "addrK\x05ueeu.",
      "offset 38: an entry of a trace that stands elsewhere, too", 1 },
    { "\x80\x04}(\x8c\x0c"
      "other_traces](](}(\x8c\x04"
      "addrK\x05ueeu.",
      "", 0 },
    { "\x80\x04](\x8c\x0d"
      "device_traces](](}(\x8c\x04"
      "addrK\x05ueee.",
      "", 0 },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      Taken taken = { 0 };

      /* The file ends at its STOP: no byte of a case is 0. */
      td__tape_pickle_free (read_entries (cases[i].bytes, strlen (cases[i].bytes), &taken));
      assert_string_equal (error, cases[i].says);
      assert_int_equal (taken.n, cases[i].n);
    }
}

#define N_FRAMES 40

static uint64_t
bytes_of_entries (unsigned n_entries)
{
  const size_t room = 100 + n_entries * (40ull + 2 * N_FRAMES);
  static const char head[] = "\x80\x04}(U\x01x}\x94(U\x01yK\x01uU\x0d"
                             "device_traces](](";
  char *bytes = malloc (room), *at = bytes;
  Taken taken = { 0 };
  TapePickle *p;
  uint64_t n;

  assert_non_null (bytes);
  memcpy (at, head, sizeof head - 1);
  at += sizeof head - 1;
  for (unsigned i = 0; i < n_entries; i++)
    {
      at = (char *)memcpy (at,
                           "}\x94(U\x04"
                           "addrM",
                           10)
           + 10;
      *at++ = (char)(i & 0xff);
      *at++ = (char)(i >> 8 & 0xff);
      at = (char *)memcpy (at,
                           "U\x06"
                           "frames]\x94(",
                           11)
           + 11;
      for (int k = 0; k < N_FRAMES; k++, at += 2)
        memcpy (at, "h\0", 2);
      at = (char *)memcpy (at, "eu", 2) + 2;
      if (i % 1000 == 999) /* as Python does */
        at = (char *)memcpy (at, "e(", 2) + 2;
    }
  at = (char *)memcpy (at, "eeu.", 4) + 4;
  p = read_entries (bytes, (size_t)(at - bytes), &taken);
  assert_string_equal (error, "");
  assert_int_equal (taken.n, n_entries);
  assert_int_equal (taken.n_frames, n_entries * N_FRAMES);
  n = p->taken;
  td__tape_pickle_free (p);
  free (bytes);
  return n;
}

/* Of each there is what the memo says of it and of its stack, two words, with what an array
 * that grows by half has too much. */
static void
pickle__entries_with_known_stacks_take_two_words (void **state)
{
  assert_true (bytes_of_entries (60000) - bytes_of_entries (20000) <= 40000 * 24);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (pickle__integers_of_every_opcode_have_their_value),
    cmocka_unit_test (pickle__floats_and_none_are_no_integers),
    cmocka_unit_test (pickle__lists_keep_their_order_over_several_appends),
    cmocka_unit_test (pickle__a_key_said_twice_has_its_last_value),
    cmocka_unit_test (pickle__a_list_may_contain_itself),
    cmocka_unit_test (pickle__python_writes_the_same_in_four_protocols),
    cmocka_unit_test (pickle__every_truncation_is_an_error_at_its_end),
    cmocka_unit_test (pickle__code_is_refused_by_name),
    cmocka_unit_test (pickle__depth_has_an_end),
    cmocka_unit_test (pickle__a_length_alone_takes_no_memory),
    cmocka_unit_test (pickle__many_empty_lists_meet_the_budget),
    cmocka_unit_test (pickle__a_dictionary_has_at_most_1024_keys),
    cmocka_unit_test (pickle__equal_stacks_are_there_once),
    cmocka_unit_test (pickle__what_equal_lists_became_does_not_grow),
    cmocka_unit_test (pickle__entries_are_handed_on_in_order_and_not_kept),
    cmocka_unit_test (pickle__an_entry_that_was_handed_on_is_nowhere_else),
    cmocka_unit_test (pickle__entries_with_known_stacks_take_two_words),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
