/* What the module calls of NCCL is what NCCL's header and its library have; neither needs a
 * device for this.
 *
 * SPDX-License-Identifier: MIT */
#include "nccl-library.h"

#include "libraries.h"
#include "td-test.h"

#include <dlfcn.h>
#include <nccl.h>
#include <string.h>

_Static_assert(sizeof (TdTeamId) == sizeof (ncclUniqueId), "the id that ranks exchange");
_Static_assert((int)TD_NCCL_SUCCESS == (int)ncclSuccess, "");
_Static_assert((int)TD_NCCL_SUM == (int)ncclSum, "");
_Static_assert((int)TD_NCCL_UINT8 == (int)ncclUint8, "");
_Static_assert((int)TD_NCCL_INT32 == (int)ncclInt32, "");
_Static_assert((int)TD_NCCL_INT64 == (int)ncclInt64, "");
_Static_assert((int)TD_NCCL_FLOAT16 == (int)ncclFloat16, "");
_Static_assert((int)TD_NCCL_FLOAT32 == (int)ncclFloat32, "");
_Static_assert((int)TD_NCCL_FLOAT64 == (int)ncclFloat64, "");
_Static_assert((int)TD_NCCL_BFLOAT16 == (int)ncclBfloat16, "");
_Static_assert(sizeof (ncclResult_t) == sizeof (int), "what functions return");

static void
library__has_every_function_that_is_called (void **state)
{
  static const char *const names[] = {
#define NAME(type, name, ...) #name,
    TD_NCCL_FUNCTIONS (NAME)
#undef NAME
  };
  void *library = td_cuda_library ("libnccl.so.2");
  ncclResult_t (*version) (int *) = NULL;
  const char *(*text) (ncclResult_t) = NULL;
  int number = 0;

  (void)state;
  if (library == NULL)
    {
      print_message ("skipped: libnccl.so.2 is not here\n");
      skip ();
    }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (dlsym (library, names[i]) == NULL)
      fail_msg ("%s", names[i]);
  *(void **)&version = dlsym (library, "ncclGetVersion");
  *(void **)&text = dlsym (library, "ncclGetErrorString");
  assert_int_equal (version (&number), ncclSuccess);
  assert_true (number >= 21000); /* functions of groups and sends are older */
  assert_non_null (strstr (text (ncclInvalidUsage), "invalid usage"));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (library__has_every_function_that_is_called),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
