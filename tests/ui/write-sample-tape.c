/* write-sample-tape FILE [ended|killed|exit3|running]: write the sample tape, for journeys and
 * for looking at by hand. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "sample-tape.h"
#include "td-test.h"

static const char *sample_path, *sample_end;

static void
sample__is_written (void **state)
{
  static const char *const ends[] = { "ended", "killed", "exit3", "running" };
  SampleOptions options = { .n_iterations = 60, .live_events = 31, .nan_at = -1 };

  (void)state;
  for (unsigned i = 0; i < 4; i++)
    if (strcmp (ends[i], sample_end) == 0)
      options.end = (SampleEnd)i;
  if (options.end == SAMPLE_ENDED || options.end == SAMPLE_EXIT_3)
    options.live_events = 0;
  sample_tape_write (sample_path, &options);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = { td_test (sample__is_written) };

  if (argc < 2)
    return 2;
  sample_path = argv[1];
  sample_end = argc > 2 ? argv[2] : "ended";
  return cmocka_run_group_tests (tests, NULL, NULL);
}
