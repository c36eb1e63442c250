/* Programs that are older than libtdproducer: their structs end earlier, and their symbols have
 * the version that they were linked with.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include "producer-first.h"
#include "td-tape-reader.h"

#include <stdio.h>
#include <string.h>

static void
producer__runs_a_program_of_the_first_header (void **state)
{
  const char *path = td_test_tmp ("first.tdtape");
  char error[256] = "";
  const TdTapeIteration *it;
  TdTapeReader *r;

  (void)state;
  if (producer_first (path, error, sizeof error) != 0)
    fail_msg ("%s", error);
  r = td_tape_reader_open (path, error, sizeof error);
  assert_non_null (r);
  assert_string_equal (td_tape_reader_info (r, "producer"), "first");
  it = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (it);
  assert_int_equal (it->n_events, 1);
  assert_string_equal (td_tape_reader_op_name (r, it->events[0].opdef), "relu");
  assert_string_equal (td_tape_reader_path_text (r, it->events[0].path), "net");
  assert_int_equal (it->dims[it->vars[it->outs[0]].first_dim + 1], 3);
  assert_int_equal (it->n_reports, 1);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* Every function has the version since which it is there. */
static void
producer__symbols_have_versions (void **state)
{
  TdTestChild c;
  int n = 0, n_added = 0;

  (void)state;
  c = TD_TEST_RUN ("nm", "-D", "--with-symbol-versions", "--defined-only",
                   td_test_build ("engine/libtdproducer.so"));
  if (c.status != 0)
    {
      td_test_child_clear (&c);
      printf ("no nm that knows versions\n");
      skip ();
    }
  for (char *line = strtok (c.out, "\n"); line != NULL; line = strtok (NULL, "\n"))
    if (strstr (line, " T ") != NULL)
      {
        const bool is_first = strstr (line, "@@TDPRODUCER_0.1") != NULL;

        if (!is_first && strstr (line, "@@TDPRODUCER_0.2") == NULL
            && strstr (line, "@@TDPRODUCER_0.3") == NULL)
          fail_msg ("without a version: %s", line);
        n += is_first;
        n_added += !is_first;
      }
  assert_int_equal (n, 26);
  assert_int_equal (n_added, 4); /* td_producer_wait, _show, _waiting, _hang */
  td_test_child_clear (&c);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (producer__runs_a_program_of_the_first_header),
    td_test (producer__symbols_have_versions),
  };

  return cmocka_run_group_tests_name ("producer-first", tests, NULL, NULL);
}
