/* Helpers shared by the CMocka tests: a folder per test, shared data, golden files, child
 * processes. Include it instead of <cmocka.h>, and register tests with `td_test (function)`.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/** A CMocka table row for `f`, with a temporary folder of its own. */
#define td_test(f) cmocka_unit_test_setup_teardown (f, td_test_setup, td_test_teardown)

/** Run a program from the build tree or the system: `TD_TEST_RUN (program, "info", tape)`. */
#define TD_TEST_RUN(...) td_test_run ((const char *const[]){ __VA_ARGS__, NULL }, NULL, NULL)

/** What a child process did. */
typedef struct
{
  int status; /* exit status, or 128 + signal as a shell would say */
  int signal; /* 0 unless it died of one */
  char *out;  /* standard output, terminated; never NULL */
  char *err;  /* standard error, terminated; never NULL */
  size_t out_bytes;
  size_t err_bytes;
} TdTestChild;

/** Make the test's folder, where the sockets of its programs lie as well; a fixture with its
 * own setup calls this first. */
int td_test_setup (void **state);

/** Remove the test's folder and everything in it. */
int td_test_teardown (void **state);

/** Name a file in the test's folder.
 * Owner: the test; freed by td_test_teardown. */
const char *td_test_tmp (const char *name);

/** Name a file below `shared/` (TAPEDECK_SHARED, else beside the source tree).
 * Skips the running test, by name, when the file is not there. Owner: the test. */
const char *td_test_shared (const char *name);

/** Name a file of the source tree, and one of the build tree. Owner: the test. */
const char *td_test_source (const char *name);
const char *td_test_build (const char *name);

/** False where the suite runs on another device than the CPU (TD_TEST_DEVICE). */
bool td_test_on_cpu (void);

/** Skip the running test, by name, where the suite runs on another device (TD_TEST_DEVICE);
 * `why` says what it is about that is the CPU's only. */
void td_test_needs_cpu (const char *why);

/** Name a program of the build tree; skips the running test when it was not built. */
const char *td_test_program (const char *name);

/** Read a whole file; fails the test when that is not possible.
 * Owner: the caller, free (). */
char *td_test_read_file (const char *path, size_t *bytes);

/** Write a whole file; fails the test when that is not possible. */
void td_test_write_file (const char *path, const void *data, size_t bytes);

/** Compare with `tests/golden/NAME`; TD_UPDATE_GOLDEN=1 writes it instead.
 * Errors: fails with the first differing line, and leaves NAME.actual in the build tree. */
void td_test_golden (const char *name, const char *text);
void td_test_golden_bytes (const char *name, const void *data, size_t bytes);

/** Run argv[0] (looked up in PATH) to its end, with `input` on its standard input (NULL: none)
 * and "K=V" pairs added to the environment (NULL-terminated list, or NULL).
 * Owner: the caller, td_test_child_clear (). */
TdTestChild td_test_run (const char *const *argv, const char *input, const char *const *env);

/** A Python that can import this module: the one that TD_TEST_PYTHON names (TD_TEST_TORCH where
 * the module is torch), or one of the usual ones; without one the test is skipped. */
const char *td_test_python (const char *module);

/** Run a line of shell; one that hangs is ended when the patience is over, with status 124. */
TdTestChild td_test_shell (const char *format, ...) __attribute__ ((format (printf, 1, 2)));

/** The number that a searcher was given in the environment, else the usual one: where it begins
 * and how much it looks at, of all with planted faults PLANTED_FIRST and PLANTED_N. */
uint64_t td_test_number (const char *variable, uint64_t usual);

/** How long to wait for what has to come, in ms: more than any busy machine takes, because only
 * a test that fails spends it. What is meant to elapse never waits for it. TD_TEST_PATIENCE_MS
 * in the environment is another. */
int td_test_patience_ms (void);

/** Ask met (data) every 5 ms until it holds; fails the test with `what` when the patience is
 * over. */
void td_test_wait (const char *what, bool (*met) (void *data), void *data);

/** Connect to the socket at `path`, once somebody listens there; fails the test when nobody
 * does. Owner: the caller, close (). */
int td_test_connect (const char *path);

/** Free what a child said. */
void td_test_child_clear (TdTestChild *child);

/** Fail unless the child ended with `status`, showing what it said. */
#define assert_child_status(child, status)                                                     \
  td__test_child_status (&(child), (status), #child, __FILE__, __LINE__)

/** Fail unless `haystack` contains (or does not contain) `needle`, showing both. */
#define assert_contains(haystack, needle)                                                      \
  td__test_contains ((haystack), (needle), true, __FILE__, __LINE__)
#define assert_not_contains(haystack, needle)                                                  \
  td__test_contains ((haystack), (needle), false, __FILE__, __LINE__)

void td__test_child_status (const TdTestChild *child, int status, const char *what,
                            const char *file, int line);
void td__test_contains (const char *haystack, const char *needle, bool wanted, const char *file,
                        int line);
