/* As much of CMocka's interface as the rows of operations use, for machines that have a GPU and
 * no CMocka.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void (*CMUnitTestFunction) (void **state);
typedef int (*CMFixtureFunction) (void **state);

struct CMUnitTest
{
  const char *name;
  CMUnitTestFunction test_func;
  CMFixtureFunction setup_func, teardown_func;
  void *initial_state;
};

/** Run only tests of which the name matches, as a shell's. */
void cmocka_set_test_filter (const char *pattern);
/** Run all; a line for each that fails, and one at the end.  Returns how many failed. */
int _cmocka_run_group_tests (const char *name, const struct CMUnitTest *tests, size_t n,
                             CMFixtureFunction setup, CMFixtureFunction teardown);

/** End the running test. */
__attribute__ ((noreturn, format (printf, 3, 4))) void bare_fail (const char *file, int line,
                                                                  const char *format, ...);

#define print_message(...) printf (__VA_ARGS__)
#define fail_msg(...) bare_fail (__FILE__, __LINE__, __VA_ARGS__)
#define fail() fail_msg ("failed")
#define assert_true(claim) ((claim) ? (void)0 : fail_msg ("%s", #claim))
#define assert_false(claim) assert_true (!(claim))
#define assert_non_null(pointer) assert_true ((pointer) != NULL)
#define assert_null(pointer) assert_true ((pointer) == NULL)
#define assert_ptr_equal(a, b) assert_true ((const void *)(a) == (const void *)(b))
#define assert_int_equal(a, b)                                                                 \
  do                                                                                           \
    {                                                                                          \
      intmax_t a_ = (intmax_t)(a), b_ = (intmax_t)(b);                                         \
                                                                                               \
      if (a_ != b_)                                                                            \
        fail_msg ("%s is %jd, %s is %jd", #a, a_, #b, b_);                                     \
    }                                                                                          \
  while (0)
#define assert_string_equal(a, b)                                                              \
  (strcmp ((a), (b)) == 0 ? (void)0 : fail_msg ("\"%s\", not \"%s\"", (a), (b)))
