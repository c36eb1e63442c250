/* How tests of the device cuda:0 look at the tape that they made.
 *
 * SPDX-License-Identifier: MIT */
#include "far-tape.h"

#include "td-test.h"

TdTapeReader *
far_tape_open (const char *path)
{
  char error[256] = "";
  TdTapeReader *r = td_tape_reader_open (path, error, sizeof error);
  TdTapeCheck check;

  if (r == NULL)
    fail_msg ("%s", error);
  assert_true (td_tape_check (path, &check));
  if (!check.whole)
    fail_msg ("%s", check.what);
  return r;
}

const TdTapePool *
far_tape_pool (const TdTapeIteration *it, uint32_t device, unsigned kind)
{
  for (uint32_t i = 0; i < it->n_pools; i++)
    if (it->pools[i].device == device && it->pools[i].kind == kind)
      return &it->pools[i];
  return NULL;
}
