/* Runs of a model (tests/models/train.c) that are recorded and looked at meanwhile.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#define RUN_ITERATIONS "200"

/** The programs: `tapedeck`, and the model. */
const char *run_tapedeck (void);
const char *run_model (void);

/** Start a program without waiting for it; what it prints goes to `out`. */
pid_t run_start (const char *const *argv, const char *out);
/** Start a recording of the model, which waits in the middle of its iterations until the gate
 * is opened. */
pid_t run_gated (const char *tape, const char *out);
/** The file that such a model waits for; make it. */
const char *run_gate (void);
void run_open_gate (void);
/** Wait until all is on the tape that comes before the model waits. */
void run_wait_for_half (const char *tape);
/** Wait for the end: the exit status, or 128 + signal. */
int run_status (pid_t pid);
/** The process that this one has started. */
pid_t run_child (pid_t pid);

/** How many iterations `info` counts; -1: it says nothing. */
long run_iterations (const char *tape);
/** Fail unless `check` ends so and says that; unless `info` says that. */
void run_assert_check (const char *tape, int status, const char *says);
void run_assert_info (const char *tape, const char *says);
/** What the model prints when it is not recorded; fail unless a file has it. */
const char *run_plain_result (void);
void run_assert_file_says (const char *path, const char *says);
