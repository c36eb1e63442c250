/* Host memory without which nothing can go on: see host-memory.h.
 * SPDX-License-Identifier: MIT */
#include "host-memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic long left = -1; /* calls before the one that fails */

void
td__host_memory_fail_after (long n)
{
  atomic_store (&left, n);
}

static void
check_injected (size_t bytes, const char *what)
{
  if (atomic_load_explicit (&left, memory_order_relaxed) >= 0
      && atomic_fetch_sub (&left, 1) == 0)
    td__out_of_host_memory (bytes, what);
}

/* Without stdio, which may want memory itself. */
_Noreturn void
td__out_of_host_memory (size_t bytes, const char *what)
{
  char text[256];
  int n = snprintf (text, sizeof text,
                    "tapedeck: out of host memory: asked %zu bytes in %.150s\n", bytes, what);

  if (n > 0)
    (void)!write (STDERR_FILENO, text, (size_t)n);
  abort ();
}

static void *
checked (void *memory, size_t bytes, const char *what)
{
  if (memory == NULL && bytes > 0)
    td__out_of_host_memory (bytes, what);
  return memory;
}

void *
td__must_malloc (size_t bytes, const char *what)
{
  check_injected (bytes, what);
  return checked (malloc (bytes), bytes, what);
}

void *
td__must_calloc (size_t n, size_t bytes, const char *what)
{
  size_t all;

  if (__builtin_mul_overflow (n, bytes, &all))
    all = SIZE_MAX;
  check_injected (all, what);
  return checked (calloc (n > 0 ? n : 1, bytes > 0 ? bytes : 1), all, what);
}

void *
td__must_realloc (void *memory, size_t bytes, const char *what)
{
  check_injected (bytes, what);
  return checked (realloc (memory, bytes), bytes, what);
}

char *
td__must_strdup (const char *text, const char *what)
{
  const size_t bytes = strlen (text) + 1;

  return memcpy (td__must_malloc (bytes, what), text, bytes);
}
