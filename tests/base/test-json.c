/* JSON, written and read.  The verdicts on texts are those of RFC 8259, with nesting bounded
 * and the character 0 refused.  SPDX-License-Identifier: MIT */
#include "json.h"
#include "json-line.h"
#include "json-read.h"

#include "td-test.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- writing ---- */

static void
string__escapes_what_json_and_terminals_obey (void **state)
{
  static const struct
  {
    const char *text, *json;
  } rows[] = {
    { "", "\"\"" },
    { "conv1/W", "\"conv1/W\"" },
    { "a\"b\\c", "\"a\\\"b\\\\c\"" },
    { "a\nb\tc\rd", "\"a\\nb\\tc\\u000dd\"" },
    { "\x1b[2J\x7f", "\"\\u001b[2J\\u007f\"" },
    { "\xc2\x9b\xc2\xa0", "\"\\u009b\xc2\xa0\"" },
    { "\xff\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
    { "\xe2\x82\xac", "\"\xe2\x82\xac\"" },
  };

  (void)state;
  for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
    {
      TdJsonText out = { 0 };
      TdJsonWriter w;
      TdJsonReader r;

      td__json_write (&w, td__json_put_text, &out, TD_JSON_TIGHT);
      td__json_string (&w, rows[i].text);
      assert_string_equal (out.text, rows[i].json);
      td__json_read (&r, out.text, out.n);
      assert_int_equal (td__json_next (&r), TD_JSON_STRING);
      assert_int_equal (td__json_next (&r), TD_JSON_END);
      free (out.text);
    }
}

static void
string__is_cut_between_characters_and_stays_a_string (void **state)
{
  static const char text[] = "a\x01\xe2\x82\xac\"b";
  static const size_t whole = 1 + 6 + 3 + 2 + 1;

  (void)state;
  for (size_t most = 0; most < 30; most++)
    {
      TdJsonText out = { 0 };
      TdJsonWriter w;
      TdJsonReader r;

      td__json_write (&w, td__json_put_text, &out, TD_JSON_TIGHT);
      td__json_cut_string (&w, text, most);
      assert_true (out.n - 2 <= most);
      assert_true (most < whole || out.n - 2 == whole);
      td__json_read (&r, out.text, out.n);
      assert_int_equal (td__json_next (&r), TD_JSON_STRING);
      assert_int_equal (td__json_next (&r), TD_JSON_END);
      free (out.text);
    }
}

/* One of everything. */
static void
put_sample (TdJsonWriter *w)
{
  td__json_begin_object (w);
  td__json_member_string (w, "a\"b", "c");
  td__json_key (w, "list");
  td__json_begin_array (w);
  td__json_int (w, INT64_MIN);
  td__json_uint (w, UINT64_MAX);
  td__json_begin_object (w);
  td__json_member_bool (w, "x", true);
  td__json_member_bool (w, "y", false);
  td__json_end_object (w);
  td__json_begin_array (w);
  td__json_end_array (w);
  td__json_end_array (w);
  td__json_member_null (w, "none");
  td__json_member_string (w, "no text", NULL);
  td__json_key (w, "empty");
  td__json_begin_object (w);
  td__json_end_object (w);
  td__json_end_object (w);
}

static void
writer__puts_commas_and_blanks_by_itself (void **state)
{
  static const char *const looks[] = {
    [TD_JSON_TIGHT]
    = "{\"a\\\"b\":\"c\",\"list\":[-9223372036854775808,18446744073709551615,"
      "{\"x\":true,\"y\":false},[]],\"none\":null,\"no text\":null,\"empty\":{}}",
    [TD_JSON_LINES] = "{\n"
                      "  \"a\\\"b\": \"c\",\n"
                      "  \"list\": [-9223372036854775808, 18446744073709551615,\n"
                      "    {\"x\": true, \"y\": false},\n"
                      "    []\n"
                      "  ],\n"
                      "  \"none\": null,\n"
                      "  \"no text\": null,\n"
                      "  \"empty\": {}\n"
                      "}",
    [TD_JSON_PYTHON] = "{\n"
                       "    \"a\\\"b\": \"c\",\n"
                       "    \"list\": [-9223372036854775808, 18446744073709551615,\n"
                       "        {\"x\": true, \"y\": false},\n"
                       "        []\n"
                       "    ],\n"
                       "    \"none\": null,\n"
                       "    \"no text\": null,\n"
                       "    \"empty\": {}\n"
                       "}",
  };

  (void)state;
  for (unsigned i = 0; i < sizeof looks / sizeof *looks; i++)
    {
      TdJsonText out = { 0 };
      TdJsonWriter w;

      td__json_write (&w, td__json_put_text, &out, (TdJsonStyle)i);
      put_sample (&w);
      assert_true (td__json_is_whole (&w));
      assert_string_equal (out.text, looks[i]);
      free (out.text);
    }
}

static void
writer__writes_the_same_to_a_file (void **state)
{
  TdJsonText memory = { 0 };
  char text[512] = "";
  FILE *file = tmpfile ();
  TdJsonWriter w;

  (void)state;
  assert_non_null (file);
  td__json_write (&w, td__json_put_file, file, TD_JSON_TIGHT);
  put_sample (&w);
  td__json_write (&w, td__json_put_text, &memory, TD_JSON_TIGHT);
  put_sample (&w);
  rewind (file);
  assert_int_equal (fread (text, 1, sizeof text - 1, file), memory.n);
  assert_string_equal (text, memory.text);
  fclose (file);
  free (memory.text);
}

static void
writer__notices_what_does_not_fit_and_writes_no_further (void **state)
{
  TdJsonText whole = { 0 };
  TdJsonWriter w;

  (void)state;
  td__json_write (&w, td__json_put_text, &whole, TD_JSON_TIGHT);
  put_sample (&w);
  for (size_t size = 0; size < whole.n + 4; size++)
    {
      char room[300];
      TdJsonText text = { .text = room, .room = size, .is_fixed = true };

      memset (room, 'x', sizeof room);
      td__json_write (&w, td__json_put_text, &text, TD_JSON_TIGHT);
      put_sample (&w);
      assert_int_equal (room[size], 'x');
      assert_int_equal (text.is_cut, size <= whole.n);
      assert_memory_equal (room, whole.text, text.n);
      if (text.n > 0)
        assert_int_equal (room[text.n], '\0');
    }
  free (whole.text);
}

/* Numbers as Python 3.11's repr has them. */
static const struct
{
  double value;
  const char *python, *json;
} numbers[] = {
  { 0, "0.0", "0" },
  { -0.0, "-0.0", "-0" },
  { 1, "1.0", "1" },
  { -2.5, "-2.5", "-2.5" },
  { 0.1, "0.1", "0.1" },
  { 0.30000000000000004, "0.30000000000000004", "0.30000000000000004" },
  { 1e-4, "0.0001", "0.0001" },
  { 1e-5, "1e-05", "1e-05" },
  { 1e15, "1000000000000000.0", "1000000000000000" },
  { 1e16, "1e+16", "1e+16" },
  { 123456789012345680.0, "1.2345678901234568e+17", "1.2345678901234568e+17" },
  { (double)9007199254740993, "9007199254740992.0", "9007199254740992" },
  { 5e-324, "5e-324", "5e-324" },
  { 2.2250738585072014e-308, "2.2250738585072014e-308", "2.2250738585072014e-308" },
  { 1.7976931348623157e308, "1.7976931348623157e+308", "1.7976931348623157e+308" },
  { (double)NAN, "NaN", "\"nan\"" },
  { (double)INFINITY, "Infinity", "\"inf\"" },
  { -(double)INFINITY, "-Infinity", "\"-inf\"" },
};

static void
write_double (double value, TdJsonStyle style, char *out, size_t size)
{
  TdJsonText text = { .text = out, .room = size, .is_fixed = true };
  TdJsonWriter w;

  td__json_write (&w, td__json_put_text, &text, style);
  td__json_double (&w, value);
}

static void
double__is_the_shortest_that_reads_back (void **state)
{
  (void)state;
  for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
    {
      char out[64];
      TdJsonReader r;
      double value;

      write_double (numbers[i].value, TD_JSON_TIGHT, out, sizeof out);
      assert_string_equal (out, numbers[i].json);
      write_double (numbers[i].value, TD_JSON_LINES, out, sizeof out);
      assert_string_equal (out, numbers[i].json);
      write_double (numbers[i].value, TD_JSON_PYTHON, out, sizeof out);
      assert_string_equal (out, numbers[i].python);
      td__json_read_python (&r, out, strlen (out));
      assert_int_equal (td__json_next (&r), TD_JSON_NUMBER);
      assert_true (td__json_number (&r, &value));
      assert_true (value == numbers[i].value || (isnan (value) && isnan (numbers[i].value)));
      assert_int_equal (td__json_next (&r), TD_JSON_END);
    }
}

/* A language that writes 1,5 is made for the test, where the machine can. */
static void
double__knows_no_language (void **state)
{
  const char *folder = td_test_tmp ("languages");
  char path[600], out[64];
  TdTestChild child;
  TdJsonReader r;
  double value;

  (void)state;
  assert_int_equal (mkdir (folder, 0700), 0);
  snprintf (path, sizeof path, "%s/comma", folder);
  child = TD_TEST_RUN ("/usr/bin/env", "localedef", "-c", "-i", "de_DE", "-f", "UTF-8", path);
  td_test_child_clear (&child);
  setenv ("LOCPATH", folder, 1);
  if (setlocale (LC_NUMERIC, "comma") == NULL)
    skip ();
  snprintf (out, sizeof out, "%.1f", 0.5);
  assert_string_equal (out, "0,5");
  write_double (-1234.5678, TD_JSON_TIGHT, out, sizeof out);
  assert_string_equal (out, "-1234.5678");
  td__json_read (&r, out, strlen (out));
  td__json_next (&r);
  assert_true (td__json_number (&r, &value));
  assert_true (value == -1234.5678);
  setlocale (LC_NUMERIC, "C");
  unsetenv ("LOCPATH");
}

static void
rounded__has_so_many_digits (void **state)
{
  static const double values[] = { 0.1, 1.0 / 3, 1e10, -0.0, (double)NAN, -(double)INFINITY };
  TdJsonText text = { 0 };
  TdJsonWriter w;

  (void)state;
  td__json_write (&w, td__json_put_text, &text, TD_JSON_TIGHT);
  td__json_begin_array (&w);
  for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
    td__json_rounded (&w, values[i], 9);
  td__json_end_array (&w);
  assert_string_equal (text.text, "[0.1,0.333333333,1e+10,-0,\"nan\",\"-inf\"]");
  free (text.text);
}

/* ---- a line of the control protocol ---- */

static void
line__stands_behind_its_tag (void **state)
{
  TdJsonLine line;
  TdJsonWriter *w = td__json_line_begin (&line, "#12");

  (void)state;
  td__json_member_int (w, "id", 3);
  assert_string_equal (td__json_line_end (&line), "#12 {\"id\":3}");
  assert_string_equal (td__json_line_ok (&line, NULL), "{\"ok\":true}");
  assert_string_equal (td__json_line_error (&line, "#1", "no \"x\""),
                       "#1 {\"ok\":false,\"error\":\"no \\\"x\\\"\"}");
}

static void
line__that_is_too_long_says_so_and_nothing_else (void **state)
{
  char text[TD_JSON_LINE_BYTES];
  TdJsonLine line;

  (void)state;
  memset (text, '"', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  td__json_member_string (td__json_line_begin (&line, "#7"), "text", text);
  assert_int_equal (td__json_line_room (&line), 0);
  assert_string_equal (td__json_line_end (&line),
                       "#7 {\"ok\":false,\"error\":\"the answer is too long for a line\"}");
}

static void
line__takes_items_as_long_as_there_is_room (void **state)
{
  TdJsonLine line;
  TdJsonWriter *w = td__json_line_begin (&line, NULL);
  const char *text;
  TdJsonReader r;
  int n = 0;

  (void)state;
  td__json_key (w, "list");
  td__json_begin_array (w);
  for (; td__json_line_room (&line) > 10; n++)
    td__json_int (w, 12345678);
  td__json_end_array (w);
  text = td__json_line_end (&line);
  assert_true (strlen (text) > TD_JSON_LINE_BYTES - 40);
  td__json_read (&r, text, strlen (text));
  td__json_next (&r);
  td__json_next (&r);
  assert_true (td__json_is (&r, "list"));
  assert_int_equal (td__json_next (&r), TD_JSON_ARRAY);
  for (; td__json_next (&r) == TD_JSON_NUMBER; n--)
    ;
  assert_int_equal (n, 0);
  assert_int_equal (td__json_next (&r), TD_JSON_OBJECT_END);
  assert_int_equal (td__json_next (&r), TD_JSON_END);
}

/* ---- reading ---- */

static bool
is_json (const char *text)
{
  TdJsonReader r;

  td__json_read (&r, text, strlen (text));
  while (td__json_next (&r) != TD_JSON_END)
    if (r.token == TD_JSON_WRONG)
      return false;
  return true;
}

static void
reader__takes_json_and_nothing_else (void **state)
{
  static const char *const right[] = { "{}",
                                       "[]",
                                       " [ 1 , 2 ] ",
                                       "{\"a\":{\"b\":[1,{}]}}",
                                       "\"\\u00e9\\n\"",
                                       "-0.5e+10",
                                       "0",
                                       "true",
                                       "[null,false]",
                                       "\"\\ud83d\\ude00\"",
                                       "{\"\":\"\"}",
                                       "\n\t[1E5]\r",
                                       "[1e400,-1e-400]",
                                       "\"\xe2\x82\xac\"" };
  static const char *const not_json[] = { "",
                                          " ",
                                          "{",
                                          "[1,]",
                                          "[,1]",
                                          "[1 2]",
                                          "{\"a\"}",
                                          "{\"a\":}",
                                          "{\"a\":1,}",
                                          "{a:1}",
                                          "{\"a\" 1}",
                                          "{1:2}",
                                          "[1}",
                                          "{\"a\":1]",
                                          "01",
                                          "1.",
                                          ".5",
                                          "+1",
                                          "1e",
                                          "-",
                                          "tru",
                                          "nullx",
                                          "\"",
                                          "\"\\x\"",
                                          "\"\n\"",
                                          "\"\\u12\"",
                                          "[1] 2",
                                          "\"\\ud800\"",
                                          "\"\\udc00x\"",
                                          "\"\\u0000\"",
                                          "\"\xff\"",
                                          "\"\xc0\xaf\"",
                                          "NaN",
                                          "[Infinity]",
                                          "'a'",
                                          "[1,,2]",
                                          "{\"a\":1 \"b\":2}",
                                          "\"\\ud83dx\"",
                                          "]",
                                          "//\n1" };

  (void)state;
  for (unsigned i = 0; i < sizeof right / sizeof *right; i++)
    if (!is_json (right[i]))
      fail_msg ("%s", right[i]);
  for (unsigned i = 0; i < sizeof not_json / sizeof *not_json; i++)
    if (is_json (not_json[i]))
      fail_msg ("%s", not_json[i]);
}

static void
reader__bounds_how_deep_it_goes (void **state)
{
  char text[2 * TD_JSON_MAX_DEPTH + 3] = "";

  (void)state;
  memset (text, '[', TD_JSON_MAX_DEPTH);
  memset (text + TD_JSON_MAX_DEPTH, ']', TD_JSON_MAX_DEPTH);
  assert_true (is_json (text));
  memset (text, '[', TD_JSON_MAX_DEPTH + 1);
  memset (text + TD_JSON_MAX_DEPTH + 1, ']', TD_JSON_MAX_DEPTH + 1);
  assert_false (is_json (text));
}

static void
reader__gives_texts_and_numbers (void **state)
{
  static const char json[]
      = "{\"k\\u0065y\":\"a\\n\\u20ac\\ud83d\\ude00\",\"n\":18446744073709551615,"
        "\"m\":18446744073709551616,\"f\":1.0}";
  char text[32];
  TdJsonReader r;
  uint64_t value;

  (void)state;
  td__json_read (&r, json, strlen (json));
  assert_int_equal (td__json_next (&r), TD_JSON_OBJECT);
  assert_int_equal (td__json_next (&r), TD_JSON_KEY);
  assert_true (td__json_is (&r, "key"));
  assert_false (td__json_is (&r, "ke"));
  assert_false (td__json_is (&r, "keys"));
  assert_int_equal (td__json_next (&r), TD_JSON_STRING);
  assert_int_equal (td__json_text (&r, text, sizeof text), 9);
  assert_string_equal (text, "a\n\xe2\x82\xac\xf0\x9f\x98\x80");
  assert_int_equal (td__json_text (&r, text, 5), 9);
  assert_string_equal (text, "a\n"); /* not a part of a character */
  td__json_next (&r);
  assert_int_equal (td__json_next (&r), TD_JSON_NUMBER);
  assert_true (td__json_whole (&r, &value));
  assert_true (value == UINT64_MAX);
  td__json_next (&r);
  td__json_next (&r);
  assert_false (td__json_whole (&r, &value));
  td__json_next (&r);
  td__json_next (&r);
  assert_false (td__json_whole (&r, &value));
  assert_int_equal (td__json_next (&r), TD_JSON_OBJECT_END);
  assert_int_equal (td__json_next (&r), TD_JSON_END);
}

static void
reader__takes_numbers_of_python_where_it_is_told_to (void **state)
{
  static const char text[] = "[NaN, -Infinity,Infinity]";
  static const char *const wrong[]
      = { "nan", "NaNs", "[-NaN]", "Infinit", "+Infinity", "-Inf" };
  TdJsonReader r;
  uint64_t whole;
  double value;

  (void)state;
  assert_false (is_json (text));
  td__json_read_python (&r, text, strlen (text));
  td__json_next (&r);
  assert_int_equal (td__json_next (&r), TD_JSON_NUMBER);
  assert_true (td__json_number (&r, &value) && isnan (value));
  assert_false (td__json_whole (&r, &whole));
  assert_int_equal (td__json_next (&r), TD_JSON_NUMBER);
  assert_true (td__json_number (&r, &value) && isinf (value) && value < 0);
  assert_int_equal (td__json_next (&r), TD_JSON_NUMBER);
  assert_true (td__json_number (&r, &value) && isinf (value) && value > 0);
  assert_int_equal (td__json_next (&r), TD_JSON_ARRAY_END);
  assert_false (td__json_number (&r, &value));
  assert_int_equal (td__json_next (&r), TD_JSON_END);
  for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
    {
      td__json_read_python (&r, wrong[i], strlen (wrong[i]));
      while (td__json_next (&r) > TD_JSON_END)
        ;
      if (r.token == TD_JSON_END)
        fail_msg ("%s", wrong[i]);
    }
}

/* The short way and strtod: the same bits, whatever the number of digits and the exponent. */
static void
number__is_rounded_as_strtod_does (void **state)
{
  uint64_t random = 5;

  (void)state;
  for (int round = 0; round < 200000; round++)
    {
      char text[64];
      size_t n;
      double value, want;
      TdJsonReader r;

      random = random * 6364136223846793005u + 1442695040888963407u;
      n = (size_t)snprintf (text, sizeof text, "%s%llu", random >> 63 != 0 ? "-" : "",
                            (unsigned long long)(random >> 1 >> (random >> 40) % 63));
      if (random >> 20 & 1)
        n += (size_t)snprintf (text + n, sizeof text - n, ".%0*u", 1 + round % 9,
                               (unsigned)(random >> 33) % 10);
      if (random >> 21 & 1)
        snprintf (text + n, sizeof text - n, "e%d", (int)(random >> 50) % 60 - 30);
      want = strtod (text, NULL);
      td__json_read (&r, text, strlen (text));
      assert_int_equal (td__json_next (&r), TD_JSON_NUMBER);
      assert_true (td__json_number (&r, &value));
      if (memcmp (&value, &want, sizeof value) != 0)
        fail_msg ("%s is %a, not %a", text, value, want);
    }
}

static void
number__is_bounded (void **state)
{
  char text[502];
  TdJsonReader r;
  double value;

  (void)state;
  memset (text, '1', sizeof text);
  td__json_read (&r, text, 500);
  td__json_next (&r);
  assert_true (td__json_number (&r, &value) && isinf (value));
  td__json_read (&r, text, 501);
  assert_int_equal (td__json_next (&r), TD_JSON_NUMBER);
  assert_false (td__json_number (&r, &value));
}

static void
member__is_of_the_object_itself (void **state)
{
  char text[16];

  (void)state;
  assert_true (td__json_member ("{\"x\":{\"event\":\"no\"},\"l\":[{}],\"event\":\"stopped\"}",
                                "event", text, sizeof text));
  assert_string_equal (text, "stopped");
  assert_false (td__json_member ("{\"x\":\"\\\"event\\\":\\\"stopped\\\"\"}", "event", text,
                                 sizeof text));
  assert_string_equal (text, "");
  assert_false (td__json_member ("{\"event\":1}", "event", text, sizeof text));
  assert_false (td__json_member ("{\"event\":\"a\"", "event", text, sizeof text));
  assert_string_equal (text, "");
  assert_false (td__json_member ("[]", "event", text, sizeof text));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (string__escapes_what_json_and_terminals_obey),
    td_test (string__is_cut_between_characters_and_stays_a_string),
    td_test (writer__puts_commas_and_blanks_by_itself),
    td_test (writer__writes_the_same_to_a_file),
    td_test (writer__notices_what_does_not_fit_and_writes_no_further),
    td_test (double__is_the_shortest_that_reads_back),
    td_test (double__knows_no_language),
    td_test (rounded__has_so_many_digits),
    td_test (line__stands_behind_its_tag),
    td_test (line__that_is_too_long_says_so_and_nothing_else),
    td_test (line__takes_items_as_long_as_there_is_room),
    td_test (reader__takes_json_and_nothing_else),
    td_test (reader__bounds_how_deep_it_goes),
    td_test (reader__gives_texts_and_numbers),
    td_test (reader__takes_numbers_of_python_where_it_is_told_to),
    td_test (number__is_rounded_as_strtod_does),
    td_test (number__is_bounded),
    td_test (member__is_of_the_object_itself),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
