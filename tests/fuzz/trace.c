/* Reads traces that may be anything, and writes what it takes of them to a tape.  Built with
 * libFuzzer it is a fuzzer; with main () below it takes good ones, cut short at every byte, and
 * with bytes changed.
 *
 * SPDX-License-Identifier: MIT */
#include "td-tape-import.h"
#include "td-tape-reader.h"

#include "mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static const char *const good[] = {
  "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 2, \"name\": \"Card\"}], "
  "\"traceEvents\": [\n"
  "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#1\", \"pid\": 1, "
  "\"tid\": 1, \"ts\": 100, \"dur\": 90.125, \"args\": {}},\n"
  "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 1, \"tid\": 1, "
  "\"ts\": "
  "110, \"dur\": 20, \"args\": {\"Sequence number\": 3, \"Fwd thread id\": 0, \"Input Dims\": "
  "[[2, 3], []]}},\n"
  "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 1, "
  "\"tid\": 1, \"ts\": 112, \"dur\": 4, \"args\": {\"correlation\": 9}},\n"
  "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void k<4>(int)\", \"pid\": 2, \"tid\": 7, "
  "\"ts\": 118, \"dur\": 4, \"args\": {\"correlation\": 9, \"device\": 2, \"stream\": 7}},\n"
  "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"autograd::engine::evaluate_function: "
  "MmBackward0\", \"pid\": 1, \"tid\": 2, \"ts\": 140, \"dur\": 20, \"args\": {\"Sequence "
  "number\": 3, \"Fwd thread id\": 1}},\n"
  "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"a/b.py(3): f\", \"pid\": 1, "
  "\"tid\": "
  "1, \"ts\": 105, \"dur\": 50}, {\"ph\": \"i\", \"ts\": 3}\n"
  "], \"traceName\": \"x\"}\n",
  "[{\"ph\":\"B\",\"name\":\"a\",\"pid\":\"p\",\"tid\":1,\"ts\":1e2},{\"ph\":\"B\",\"name\":"
  "\"b\","
  "\"pid\":\"p\",\"tid\":1,\"ts\":120.5},{\"ph\":\"E\",\"pid\":\"p\",\"tid\":1,\"ts\":130},"
  "{\"ph\":\"E\",\"pid\":\"p\",\"tid\":1,\"ts\":140}]",
  ("[[-1, 1, 100, 7], [1000, 2, 50, 4], [2000, 3, -100, 7], [2000, 3, 100, 5], "
   "[3000, 4, -50, 4]]"),
};

static long n_read, n_refused;
static char tape[4096];

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  const int fd = memfd_create ("trace", MFD_CLOEXEC);
  char path[64], error[512] = "";
  TdTapeReader *r;

  if (fd < 0 || write (fd, data, n) != (ssize_t)n)
    abort ();
  snprintf (path, sizeof path, "/proc/self/fd/%d", fd);
  if (tape[0] == '\0')
    snprintf (tape, sizeof tape, "%s/tapedeck-fuzz-trace-%ld",
              getenv ("TMPDIR") != NULL ? getenv ("TMPDIR") : "/tmp", (long)getpid ());
  if (td_tape_import (path, tape, false, NULL, error, sizeof error))
    {
      n_read++;
      r = td_tape_reader_open (tape, error, sizeof error);
      if (r == NULL)
        abort ();
      for (uint32_t i = 0; i < td_tape_reader_summaries (r).n; i++)
        {
          const TdTapeIteration *it = td_tape_iteration_load (r, i, error, sizeof error);

          if (it == NULL)
            abort ();
          td_tape_iteration_free (it);
        }
      td_tape_reader_free (r);
      unlink (tape);
    }
  else
    {
      n_refused++;
      if (error[0] == '\0' || strchr (error, '\n') != NULL || access (tape, F_OK) == 0)
        abort ();
    }
  close (fd);
  return 0;
}

#ifndef TD_LIBFUZZER
/* Other digits: still JSON, of times and numbers that do not belong together. */
static void
change_digits (uint8_t *bytes, size_t n)
{
  for (uint32_t k = 1 + fuzz_below (8); k > 0; k--)
    {
      size_t at = fuzz_below ((uint32_t)n);

      while (at < n && (bytes[at] < '0' || bytes[at] > '9'))
        at++;
      if (at < n)
        bytes[at] = (uint8_t)('1' + fuzz_below (9));
    }
}

int
main (void)
{
  const int rounds = fuzz_rounds (300);
  uint8_t bad[4096];

  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    {
      const uint8_t *bytes = (const uint8_t *)good[i];
      const size_t n = strlen (good[i]);
      const long before = n_read;

      LLVMFuzzerTestOneInput (bytes, n);
      if (n_read != before + 1)
        return fprintf (stderr, "trace %zu: a good one expected\n", i), 1;
      for (size_t cut = 0; cut < n; cut++)
        LLVMFuzzerTestOneInput (bytes, cut);
      for (int k = 0; k < rounds; k++)
        {
          LLVMFuzzerTestOneInput (bad, fuzz_mutate (bytes, n, bad, sizeof bad, false));
          memcpy (bad, bytes, n);
          change_digits (bad, n);
          LLVMFuzzerTestOneInput (bad, n);
        }
    }
  printf ("%ld read, %ld refused\n", n_read, n_refused);
  return n_read > 50 && n_refused > 50 ? 0 : 1;
}
#endif
