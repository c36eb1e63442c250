/* Clock, medians and hashes of the programs of a GPU run.
 *
 * SPDX-License-Identifier: MIT */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum
{
  MAX_SAMPLES = 64
};

double
measure_now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int
ascending (const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

double
measure_median (double *x, int n)
{
  qsort (x, (size_t)n, sizeof *x, ascending);
  return n % 2 == 1 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

MeasureOptions
measure_options (int argc, char **argv)
{
  MeasureOptions o = { .seconds = 0.2, .flat = 1000 };

  o.names = argv;
  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--small") == 0)
      o.small = true;
    else if (strcmp (argv[i], "--seconds") == 0 && i + 1 < argc)
      o.seconds = atof (argv[++i]);
    else if (strcmp (argv[i], "--flat") == 0 && i + 1 < argc)
      o.flat = atoi (argv[++i]);
    else
      o.names[o.n_names++] = argv[i];
  return o;
}

bool
measure_wanted (const MeasureOptions *o, const char *row)
{
  for (int i = 0; i < o->n_names; i++)
    {
      size_t n = strlen (o->names[i]);

      if (strcmp (o->names[i], row) == 0
          || (n > 0 && o->names[i][n - 1] == '*' && strncmp (o->names[i], row, n - 1) == 0))
        return true;
    }
  return o->n_names == 0;
}

static double
time_calls (TdDevice *d, void (*run) (void *context), void *context, int n)
{
  double start;

  td_device_synchronize (d);
  start = measure_now ();
  for (int i = 0; i < n; i++)
    TD_SCOPE (NULL)
      run (context);
  td_device_synchronize (d);
  return (measure_now () - start) / n;
}

double
measure_call (const MeasureOptions *o, TdDevice *d, void (*run) (void *context), void *context)
{
  double samples[MAX_SAMPLES], once, end;
  int n = 0, calls;

  time_calls (d, run, context, 3); /* plans, kernels, memory */
  once = time_calls (d, run, context, 3);
  calls = once > 0 ? (int)(o->seconds / 12 / once) + 1 : 1;
  if (calls > 2000)
    calls = 2000;
  for (end = measure_now () + o->seconds; n < 5 || (measure_now () < end && n < MAX_SAMPLES);
       n++)
    samples[n] = time_calls (d, run, context, calls);
  return td_error () != NULL ? -1 : measure_median (samples, n) * 1e6;
}

unsigned long long
measure_hash (unsigned long long hash, const void *bytes, size_t n)
{
  const unsigned char *b = bytes;

  for (size_t i = 0; i < n; i++)
    hash = (hash ^ b[i]) * 0x100000001b3u;
  return hash;
}

static void
hash_param (const char *path, TdVar *param, void *user)
{
  unsigned long long *hash = user;
  size_t bytes = (size_t)td_size (param) * td_dtype_bytes (td_dtype (param));
  void *values = malloc (bytes + 1);

  (void)path;
  if (values != NULL && td_read (param, values, bytes) == TD_OK)
    *hash = measure_hash (*hash, values, bytes);
  free (values);
}

unsigned long long
measure_params_hash (TdLink *root)
{
  unsigned long long hash = MEASURE_HASH;

  td_link_each_param (root, hash_param, &hash);
  return hash;
}

int
measure_end (void)
{
  int failed = td_error () != NULL;

  if (failed)
    fprintf (stderr, "%s\n", td_error ()->message);
  td_error_clear ();
  return (td_finish () != 0 && !failed) || failed;
}
