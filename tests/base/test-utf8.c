/* What a terminal gets to see.  SPDX-License-Identifier: MIT */
#include "utf8.h"

#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct
{
  const char *text, *plain;
} cases[] = {
  { "", "" },
  { "two\tlines\n", "two\tlines\n" },
  { "h\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x98\x80", "h\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x98\x80" },
  { "\x1b[31mred\x07\r\x7f", "\\x1b[31mred\\x07\\x0d\\x7f" },
  { "\xc2\x9b"
    "2J\xc2\xa0",
    "\\xc2\\x9b"
    "2J\xc2\xa0" },                      /* CSI of the C1 set, and a space that stays */
  { "\x9b\xff\xc3", "\\x9b\\xff\\xc3" }, /* bytes that are no UTF-8 */
  { "\xe2\x86", "\\xe2\\x86" },          /* cut */
  { "\xed\xa0\x80 \xc0\xaf", "\\xed\\xa0\\x80 \\xc0\\xaf" }, /* surrogate, overlong */
  { "\xe2\x1b", "\\xe2\\x1b" },
};

static void
plain_text__shows_what_a_terminal_would_obey (void **state)
{
  (void)state;
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      char *plain = td__plain_text (cases[i].text);

      assert_string_equal (plain, cases[i].plain);
      free (plain);
    }
}

/* Whatever the pieces are in which the text comes. */
static void
plain_stream__gives_the_same_in_any_pieces (void **state)
{
  (void)state;
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t piece = 1; piece <= 4; piece++)
      {
        const char *text = cases[i].text;
        const size_t length = strlen (text);
        char *got = NULL;
        size_t n;
        FILE *memory = open_memstream (&got, &n), *plain = td__plain_stream (memory);

        assert_non_null (plain);
        for (size_t at = 0; at < length; at += piece)
          {
            const size_t part = length - at < piece ? length - at : piece;

            assert_int_equal (fwrite (text + at, 1, part, plain), part);
            assert_int_equal (fflush (plain), 0);
          }
        assert_int_equal (fclose (plain), 0);
        assert_int_equal (fclose (memory), 0);
        assert_string_equal (got, cases[i].plain);
        free (got);
      }
}

static void
plain_stream__says_that_its_text_is_lost (void **state)
{
  FILE *full = fopen ("/dev/full", "w"), *plain = td__plain_stream (full);
  int status = 0;

  (void)state;
  setvbuf (full, NULL, _IONBF, 0);
  for (int i = 0; i < 100000; i++)
    status |= fputs ("a line\n", plain) < 0;
  status |= fclose (plain) != 0;
  assert_int_not_equal (status, 0);
  assert_int_not_equal (ferror (full), 0);
  fclose (full);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (plain_text__shows_what_a_terminal_would_obey),
    td_test (plain_stream__gives_the_same_in_any_pieces),
    td_test (plain_stream__says_that_its_text_is_lost),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
