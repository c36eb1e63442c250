/* The text of an operation's attributes is split where one ends, and not within a value.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "tape/td-attributes.h"
#include "td-test.h"

static void
split__keeps_values_with_blanks_and_brackets_whole (void **state)
{
  static const struct
  {
    const char *text, *parts; /* with | between them */
  } cases[] = {
    { "", "" },
    { "axis=1", "axis=1" },
    { "pad=1 stride=2", "pad=1|stride=2" },
    { "shape=(8, 4, -1)", "shape=(8, 4, -1)" },
    { "axis=0 shape=(8, 4) dtype=f32", "axis=0|shape=(8, 4)|dtype=f32" },
    { "slices=[0:8, ::2] x=1", "slices=[0:8, ::2]|x=1" },
    { "to=(a=1, b=(2, 3)) c=", "to=(a=1, b=(2, 3))|c=" },
    { "mode=not at all algorithm=im2col", "mode=not at all|algorithm=im2col" },
    { "word other", "word other" },
    { "a=1 ", "a=1" },
    { "a=) b=(", "a=)|b=(" },
  };

  (void)state;
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_auto (GStrv) parts = td_attributes_split (cases[i].text);
      g_autofree char *joined = g_strjoinv ("|", parts);

      assert_string_equal (joined, cases[i].parts);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (split__keeps_values_with_blanks_and_brackets_whole),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
