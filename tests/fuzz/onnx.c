/* Reads ONNX files that may be anything, and calls those that could be read.  Built with
 * libFuzzer it is a fuzzer; with main () below it runs the corpus that it is given: every
 * truncation, and bytes changed at random from a fixed seed.  Each file is read whole or
 * refused with one line.  A corpus that ends in .bundle is many files, each after its length
 * (32 bits, little end first); of each there are a tenth as many.
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

enum
{
  MOST_PORTS = 8,
  MOST_ELEMENTS = 10000
};

static char path[64];

/* A refusal is one line; reading on must be possible. */
static void
settle (const char *what)
{
  const TdError *error = td_error ();

  if (error == NULL)
    return;
  if (strchr (error->message, '\n') != NULL || error->message[0] == '\0')
    {
      fprintf (stderr, "%s: not one line: %s\n", what, error->message);
      abort ();
    }
  td_error_clear ();
}

/* Zeros of what an input says, open sizes 2. */
static TdVar *
zeros_for (const TdOnnxInfo *info)
{
  TdShape shape = { info->ndim > 0 ? info->ndim : 0, { 0 } };
  int64_t n = 1;

  for (int d = 0; d < shape.ndim; d++)
    {
      shape.dim[d] = info->dim[d] < 0 ? 2 : info->dim[d];
      if (shape.dim[d] > MOST_ELEMENTS || (n *= shape.dim[d]) > MOST_ELEMENTS)
        return NULL;
    }
  return td_zeros (info->dtype, shape);
}

static void
call (TdLink *link)
{
  TdVar *in[MOST_PORTS], *out[1];
  int n = 0;

  for (TdOnnxInfo info; (info = td_onnx_input (link, n)).name != NULL; n++)
    if (n == MOST_PORTS || (in[n] = zeros_for (&info)) == NULL)
      return;
  if (td_link_call (link, in, n, out, 1) == TD_OK && td_dtype (out[0]) <= TD_F64)
    td_backward (td_sum (out[0]), 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  TdLink *link;
  FILE *f;

  if (path[0] == '\0')
    snprintf (path, sizeof path, "/dev/shm/td-fuzz-onnx-%ld", (long)getpid ());
  f = fopen (path, "wb");
  if (f == NULL || fwrite (data, 1, n, f) != n || fclose (f) != 0)
    abort ();
  td_init (NULL, NULL);
  td_set_mem_limit (64 << 20); /* sizes that a file asks for are no finding */
  link = td_onnx_load (path);
  if (td_error () == NULL)
    TD_SCOPE ("call")
      call (link);
  settle ("onnx");
  if (td_finish () != 0)
    abort ();
  unlink (path);
  return 0;
}

#ifndef TD_LIBFUZZER

static void
run_corpus (const uint8_t *good, size_t n, int rounds)
{
  uint8_t *bad = malloc (2 * n);

  if (bad == NULL)
    abort ();
  for (size_t i = 0; i <= n; i += 1 + i / 64)
    LLVMFuzzerTestOneInput (good, i);
  for (int round = 0; round < rounds; round++)
    LLVMFuzzerTestOneInput (bad, fuzz_mutate (good, n, bad, 2 * n, round % 4 != 0));
  free (bad);
}

static void
run_bundle (const uint8_t *data, size_t n, int rounds)
{
  for (size_t at = 0, length; at < n; at += length)
    {
      length = n - at >= 4 ? data[at] | data[at + 1] << 8 | data[at + 2] << 16
                                 | (size_t)data[at + 3] << 24
                           : 0;
      at += 4;
      if (length == 0 || at > n || length > n - at)
        {
          fprintf (stderr, "byte %zu: no length of a file\n", at);
          exit (1);
        }
      run_corpus (data + at, length, rounds);
    }
}

int
main (int argc, char **argv)
{
  const int rounds = fuzz_rounds (300);

  for (int i = 1; i < argc; i++)
    {
      const char *dot = strrchr (argv[i], '.');
      size_t n;
      uint8_t *data = fuzz_read (argv[i], &n, 1 << 20);

      if (dot != NULL && strcmp (dot, ".bundle") == 0)
        run_bundle (data, n, rounds / 10);
      else
        run_corpus (data, n, rounds);
      free (data);
    }
  puts ("every file was read whole or refused with one line");
  return 0;
}

#endif
