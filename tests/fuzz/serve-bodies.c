/* Bodies of requests to `tapedeck serve`, JSON and npy, that may be anything: each is read
 * whole, with as many elements as its shape says, or refused with one line.  What was read is
 * written as an answer and, with "outputs" called "inputs", read again as the same bits.
 * SPDX-License-Identifier: MIT */
#include "serve.h"

#include "mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static unsigned long n_read, n_refused;

static char names[][4] = { "x", "ids", "m", "d" };

/* Of each kind one: rows of two floats, whole numbers, truth values, any shape of doubles. */
static TdServePorts
ports (void)
{
  const TdOnnxInfo infos[] = { { names[0], TD_F32, 2, { -1, 2 } },
                               { names[1], TD_I64, 1, { -1 } },
                               { names[2], TD_BOOL, 1, { 2 } },
                               { names[3], TD_F64, -1, { 0 } } };
  TdServePorts p = { .n_in = 4, .n_out = 4 };

  memcpy (p.in, infos, sizeof infos);
  memcpy (p.out, infos, sizeof infos);
  return p;
}

static void
check_refusal (const char *why)
{
  if (why[0] == '\0' || strchr (why, '\n') != NULL || memchr (why, '\0', TD_SERVE_WHY) == NULL)
    abort ();
  n_refused++;
}

static void
check_arrays (const TdServePorts *p, const TdServeArray *in)
{
  for (int i = 0; i < p->n_in; i++)
    if (in[i].dtype != p->in[i].dtype || in[i].data == NULL
        || in[i].bytes
               != (size_t)td_serve_elements (&in[i].shape) * td_dtype_bytes (in[i].dtype))
      abort ();
}

static void
check_again (const TdServePorts *p, TdServeForm form, const TdServeArray *in)
{
  static const char from[] = "{\"outputs\":", to[] = "{\"inputs\":";
  const size_t skip = sizeof from - sizeof to;
  TdServeArray again[TD_SERVE_MOST_PORTS] = { 0 };
  char why[TD_SERVE_WHY] = "", *text, *body;
  size_t n;

  body = text = td_serve_forms[form].write (p, in, &n);
  if (text == NULL)
    abort ();
  if (form == TD_SERVE_JSON)
    {
      body = text + skip;
      n -= skip;
      memcpy (body, to, sizeof to - 1);
    }
  if (!td_serve_forms[form].read (p, body, n, again, why))
    {
      fprintf (stderr, "what was written is refused: %s\n", why);
      abort ();
    }
  for (int i = 0; i < p->n_in; i++)
    if (in[i].shape.ndim != again[i].shape.ndim
        || in[i].bytes != again[i].bytes
        /* NaNs may have other bits */
        || (in[i].dtype > TD_F64 && memcmp (in[i].data, again[i].data, in[i].bytes) != 0))
      abort ();
  td_serve_clear (again, TD_SERVE_MOST_PORTS);
  free (text);
}

static void
read_as (TdServeForm form, const char *body, size_t n)
{
  TdServeArray in[TD_SERVE_MOST_PORTS] = { 0 };
  const TdServePorts p = ports ();
  char why[TD_SERVE_WHY] = "";
  bool fits;

  if (td_serve_forms[form].read (&p, body, n, in, why))
    {
      check_arrays (&p, in);
      fits = true;
      for (int i = 0; i < p.n_in && fits; i++)
        fits = td_serve_fits (&p.in[i], &in[i], why);
      if (!fits)
        check_refusal (why);
      else
        {
          n_read++;
          check_again (&p, form, in);
        }
    }
  else
    check_refusal (why);
  td_serve_clear (in, TD_SERVE_MOST_PORTS);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  char *copy = malloc (n + (n == 0)); /* of its own size, for a sanitizer */

  if (copy == NULL)
    abort ();
  memcpy (copy, data, n);
  for (int form = 0; form < TD_SERVE_N_FORMS; form++)
    read_as ((TdServeForm)form, copy, n);
  free (copy);
  return 0;
}

#ifndef TD_LIBFUZZER

static void
run_corpus (const uint8_t *good, size_t n)
{
  const int rounds = fuzz_rounds (60000);
  uint8_t *bad = malloc (2 * n);

  if (bad == NULL)
    abort ();
  for (size_t i = 0; i <= n; i++)
    LLVMFuzzerTestOneInput (good, i);
  for (int round = 0; round < rounds; round++)
    LLVMFuzzerTestOneInput (bad, fuzz_mutate (good, n, bad, 2 * n, round % 4 != 0));
  free (bad);
}

int
main (void)
{
  static const char json[] = "{\"inputs\": {\"x\": [[1, -2.5e3], [\"nan\", 0.125]], \"ids\": "
                             "[-1, 9223372036854775807],"
                             " \"m\": [true, false], \"d\": [[[1e300], [\"-inf\"]]]}}";
  static float x[] = { 1, -2.5f, 3, 0.125f };
  static int64_t ids[] = { -1, 7, 1 };
  static uint8_t m[] = { 1, 0 };
  static double d = 0.5;
  const TdServeArray arrays[] = { { TD_F32, { 2, { 2, 2 } }, x, sizeof x },
                                  { TD_I64, { 1, { 3 } }, ids, sizeof ids },
                                  { TD_BOOL, { 1, { 2 } }, m, sizeof m },
                                  { TD_F64, { 0, { 0 } }, &d, sizeof d } };
  const TdServePorts p = ports ();
  size_t n;
  char *npy = td_serve_npy_write (&p, arrays, &n);

  run_corpus ((const uint8_t *)json, sizeof json - 1);
  run_corpus ((const uint8_t *)npy, n);
  free (npy);
  printf ("%lu bodies were read, %lu refused with one line\n", n_read, n_refused);
  return n_read == 0 || n_refused == 0;
}

#endif
