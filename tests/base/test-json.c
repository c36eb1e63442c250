/* JSON, written and read.  The verdicts on texts are those of RFC 8259, with nesting bounded
 * and the character 0 refused.  SPDX-License-Identifier: MIT */
#include "json.h"
#include "json-read.h"

#include "td-test.h"

#include <stdlib.h>
#include <string.h>

static void
quote__escapes_what_json_and_terminals_obey (void **state)
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
      char out[100];
      TdJsonReader r;

      assert_string_equal (td__json_quote (rows[i].text, out, sizeof out), rows[i].json);
      td__json_read (&r, out, strlen (out));
      assert_int_equal (td__json_next (&r), TD_JSON_STRING);
      assert_int_equal (td__json_next (&r), TD_JSON_END);
    }
}

static void
quote__is_cut_between_characters_and_stays_a_string (void **state)
{
  char out[64];

  (void)state;
  for (size_t size = 3; size < 30; size++)
    {
      TdJsonReader r;

      memset (out, 'x', sizeof out);
      td__json_quote ("a\x01\xe2\x82\xac\"b", out, size);
      assert_true (strlen (out) < size);
      assert_int_equal (out[size], 'x');
      td__json_read (&r, out, strlen (out));
      assert_int_equal (td__json_next (&r), TD_JSON_STRING);
      assert_int_equal (td__json_next (&r), TD_JSON_END);
    }
}

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
  char text[32], *copy;
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
  copy = td__json_text_dup (&r);
  assert_string_equal (copy, text);
  free (copy);
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
    td_test (quote__escapes_what_json_and_terminals_obey),
    td_test (quote__is_cut_between_characters_and_stays_a_string),
    td_test (reader__takes_json_and_nothing_else),
    td_test (reader__bounds_how_deep_it_goes),
    td_test (reader__gives_texts_and_numbers),
    td_test (member__is_of_the_object_itself),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
