/* Host memory for the engine's own structures, without which nothing can go on: when there is
 * none, the program ends, saying how much was asked for and where.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/** malloc, calloc, realloc and strdup that never return NULL, but for 0 bytes.  *Owner*: the
 * caller, by free.  *Errors*: one line on stderr and abort. */
#define td__xmalloc(bytes) td__must_malloc (bytes, __func__)
#define td__xcalloc(n, bytes) td__must_calloc (n, bytes, __func__)
#define td__xrealloc(memory, bytes) td__must_realloc (memory, bytes, __func__)
#define td__xstrdup(text) td__must_strdup (text, __func__)

void *td__must_malloc (size_t bytes, const char *what);
void *td__must_calloc (size_t n, size_t bytes, const char *what);
void *td__must_realloc (void *memory, size_t bytes, const char *what);
char *td__must_strdup (const char *text, const char *what);

/** Say that there is no host memory for `what` and end the program, by abort. */
_Noreturn void td__out_of_host_memory (size_t bytes, const char *what);

/** For tests: let the next n calls pass and the one behind them fail; -1: none fails. */
void td__host_memory_fail_after (long n);
