/* What the tests of training share.
 *
 * SPDX-License-Identifier: MIT */
#include "train-test.h"

#include <stdlib.h>

int
train_setup (void **state)
{
  td_test_setup (state);
  unsetenv ("TAPEDECK_DATA");
  return td_init (NULL, NULL) != TD_OK;
}
