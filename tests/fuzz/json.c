/* The reader of JSON, fed with whatever: it comes to an end, keeps to its bounds, and what it
 * takes for a text is written and read again as the same.
 * SPDX-License-Identifier: MIT */
#include "json-read.h"
#include "json.h"

#include <stdint.h>
#include "mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  N_ROUNDS = 300000,
  MAX_BYTES = 400
};

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static unsigned long n_right, n_wrong;

static void
check_text (const TdJsonReader *r)
{
  char *text = td__json_text_dup (r), *quoted, *again;
  const size_t n = r->n;
  TdJsonReader second;

  if (text == NULL || !td__json_is (r, text) || strlen (text) > n)
    abort ();
  quoted = malloc (6 * n + 3);
  if (quoted == NULL)
    abort ();
  td__json_quote (text, quoted, 6 * n + 3);
  td__json_read (&second, quoted, strlen (quoted));
  if (td__json_next (&second) != TD_JSON_STRING || td__json_next (&second) != TD_JSON_END)
    abort ();
  td__json_read (&second, quoted, strlen (quoted));
  td__json_next (&second);
  again = td__json_text_dup (&second);
  if (again == NULL || strcmp (again, text) != 0)
    abort ();
  free (again);
  free (quoted);
  free (text);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  /* of its own size, so that a sanitizer sees a byte too many */
  char *copy = malloc (n + (n == 0));
  TdJsonReader r;
  size_t n_tokens = 0;

  if (copy == NULL)
    abort ();
  memcpy (copy, data, n);
  td__json_read (&r, copy, n);
  while (td__json_next (&r) > TD_JSON_END)
    {
      uint64_t value;

      if (r.depth < 0 || r.depth > TD_JSON_MAX_DEPTH || ++n_tokens > n)
        abort ();
      if (r.token == TD_JSON_KEY || r.token == TD_JSON_STRING)
        check_text (&r);
      if (td__json_whole (&r, &value) && r.token != TD_JSON_NUMBER)
        abort ();
    }
  *(r.token == TD_JSON_END ? &n_right : &n_wrong) += 1;
  if (r.token == TD_JSON_END && r.depth != 0)
    abort ();
  if (td__json_next (&r) != TD_JSON_WRONG && r.token != TD_JSON_END)
    abort ();
  free (copy);
  return 0;
}

#ifndef TD_LIBFUZZER
static const char *const seeds[] = {
  "{\"ok\":true,\"n\":3,\"steps\":[{\"op\":\"relu\",\"shape\":[64,10]},null]}",
  "{\"__metadata__\":{},\"W\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
  "[-0.5e+10,1E5,\"\\ud83d\\ude00\\u20ac\\n\",{},[],[[[]]],false]",
};

static const char alphabet[] = "{}[]\",:\\u0019eE+-. tfn\n\x01\xe2\x82\xac\xff";

int
main (void)
{
  uint64_t random = 14;

  const int rounds = fuzz_rounds (N_ROUNDS);

  for (int round = 0; round < rounds; round++)
    {
      char text[MAX_BYTES];
      const char *seed = seeds[round % 3];
      size_t n = strlen (seed);

      memcpy (text, seed, n);
      for (int change = round % 7; change > 0 && n > 1; change--)
        {
          size_t at;

          random = random * 6364136223846793005u + 1442695040888963407u;
          at = (size_t)(random >> 33) % n;
          if (random >> 32 & 1)
            text[at] = alphabet[(random >> 20) % (sizeof alphabet - 1)];
          else if (random >> 31 & 1)
            n = at + 1;
          else
            memmove (text + at, text + at + 1, --n - at);
        }
      LLVMFuzzerTestOneInput ((const uint8_t *)text, n);
    }
  printf ("%lu right, %lu wrong\n", n_right, n_wrong);
  return n_right == 0 || n_wrong == 0;
}
#endif
