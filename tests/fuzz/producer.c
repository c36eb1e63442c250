/* Rows of words that a recorder has got wrong: none crashes the library, and what is on the
 * tape then is whole.  SPDX-License-Identifier: MIT */
#include "mutate.h"

#include "td-producer.h"
#include "td-tape-reader.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static char path[64];
static long n_refused, n_taken;

static TdProducer *
begin (void)
{
  TdProducerOptions o = { .size = sizeof o, .path = path, .producer = "fuzz", .overwrite = 1 };
  char error[200];
  TdProducer *p = td_producer_new (&o, error, sizeof error);

  if (p == NULL)
    abort ();
  td_producer_kind (p, "op", NULL, NULL);
  td_producer_place (p, "a.py", 1, NULL);
  td_producer_layer (p, "net", "Net");
  return p;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  static const float numbers[4] = { 1, 2, 3, 4 };
  TdProducer *p = begin ();
  TdTapeCheck check;

  td_producer_measure_ahead (p, TD_TAPE_F32, numbers, 4);
  /* twice: what is alive after the first is what the second meets */
  for (int i = 0; i < 2; i++)
    if (td_producer_words (p, (const int64_t *)(const void *)data, n / sizeof (int64_t))
        == TD_PRODUCER_OK)
      n_taken++;
    else if (td_producer_error (p)[0] == '\0' || strchr (td_producer_error (p), '\n') != NULL)
      abort ();
    else
      n_refused++;
  td_producer_end (p, 0);
  td_producer_free (p);
  if (!td_tape_check (path, &check) || !check.whole)
    {
      fprintf (stderr, "a damaged tape: %s at %llu\n", check.what,
               (unsigned long long)check.first_bad);
      abort ();
    }
  return 0;
}

#ifndef TD_LIBFUZZER

/* An iteration of two operations. */
static const int64_t good[] = {
  TD_PRODUCER_WORD_ALLOC,
  7,
  1,
  4096,
  16,
  1,
  0,
  TD_PRODUCER_WORD_VARIABLE,
  17,
  1,
  1,
  0,
  0,
  0,
  1,
  8,
  0,
  1,
  1,
  1,
  1,
  2,
  2,
  2,
  TD_PRODUCER_WORD_BEGIN,
  5,
  0,
  0,
  0,
  TD_PRODUCER_WORD_ALLOC,
  7,
  2,
  8192,
  16,
  3,
  0,
  TD_PRODUCER_WORD_VARIABLE,
  19,
  2,
  2,
  0,
  0,
  0,
  3,
  0,
  0,
  0,
  0,
  0,
  0,
  2,
  2,
  2,
  1,
  2,
  TD_PRODUCER_WORD_OPERATION,
  15,
  1,
  0,
  1,
  1,
  0,
  1,
  1,
  0,
  0,
  0,
  1,
  1,
  2,
  TD_PRODUCER_WORD_MEASURED,
  4,
  2,
  0,
  TD_PRODUCER_WORD_GRADIENT,
  4,
  1,
  2,
  TD_PRODUCER_WORD_OPERATION,
  15,
  1,
  3,
  1,
  1,
  0,
  0,
  0,
  0,
  0,
  0,
  1,
  2,
  1,
  TD_PRODUCER_WORD_REPORT,
  4,
  1,
  0x3ff0000000000000,
  TD_PRODUCER_WORD_NOTICE,
  3,
  1,
  TD_PRODUCER_WORD_SUM,
  12,
  4,
  1,
  0,
  2,
  7,
  8,
  0x3ff0000000000000,
  0,
  2,
  0,
  TD_PRODUCER_WORD_WAIT,
  15,
  TD_TAPE_WAIT_SUM,
  7,
  1,
  64,
  0,
  0,
  1,
  1,
  0,
  2,
  -1,
  TD_TAPE_COLLECTIVE_WHOLE | TD_TAPE_COLLECTIVE_BEHIND,
  0,
  TD_PRODUCER_WORD_FORGET,
  3,
  2,
  TD_PRODUCER_WORD_RELEASE,
  3,
  2,
  TD_PRODUCER_WORD_END,
  3,
  0,
};

int
main (void)
{
  enum
  {
    N = sizeof good / sizeof *good
  };
  const int rounds = fuzz_rounds (400);

  snprintf (path, sizeof path, "/tmp/td-fuzz-producer-%ld", (long)getpid ());
  LLVMFuzzerTestOneInput ((const uint8_t *)good, sizeof good);
  if (n_taken != 1)
    abort ();
  for (int round = 0; round < rounds; round++)
    {
      int64_t words[N];
      const uint32_t n = fuzz_below (8) == 0 ? fuzz_below (N + 1) : N;

      memcpy (words, good, sizeof words);
      for (uint32_t i = 1 + fuzz_below (4); i > 0; i--)
        if (fuzz_below (2) == 0)
          words[fuzz_below (N)] = (int64_t)fuzz_below (20) - 1;
        else
          fuzz_number ((uint8_t *)&words[fuzz_below (N)], sizeof *words);
      LLVMFuzzerTestOneInput ((const uint8_t *)words, n * sizeof *words);
    }
  unlink (path);
  printf ("%ld rows taken, %ld refused\n", n_taken, n_refused);
  return n_taken > 0 && n_refused > 0 ? 0 : 1;
}

#endif
