/* A small training of element-wise operations: prints a hash of its weights at the end.
 * Arguments: the number of iterations (100), microseconds to rest in each (0), a file that it
 * waits for in the middle (none).
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum
{
  N = 64
};

static TdVar *
forward (TdVar *x, TdVar *w, TdVar *b)
{
  TD_SCOPE_HERE ("forward");

  return td_scope_yield (td_mean (td_square (td_sub (td_tanh (td_add (td_mul (x, w), b)), x))));
}

static void
descend (TdVar *w)
{
  float value[N], g[N];

  td_read (w, value, sizeof value);
  td_read (td_grad (w), g, sizeof g);
  for (int i = 0; i < N; i++)
    value[i] -= 0.5f * g[i];
  td_write (w, value, sizeof value);
}

/* Ten minutes at most: whoever should have made it may be gone. */
static void
wait_for (const char *path)
{
  for (int i = 0; i < 600000 && access (path, F_OK) != 0; i++)
    usleep (1000);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  int n = argc > 1 ? atoi (argv[1]) : 100, rest = argc > 2 ? atoi (argv[2]) : 0;
  TdVar *w = td_retain (td_variable (td_randn (TD_F32, TD_SHAPE (N)), "w"));
  TdVar *b = td_retain (td_variable (td_zeros (TD_F32, TD_SHAPE (N)), "b"));
  float weights[2 * N];
  uint64_t hash = 14695981039346656037u;

  TD_ITERATIONS (i, n)
    {
      TdVar *x = td_name (td_rand (TD_F32, TD_SHAPE (N)), "x");
      TdVar *loss = forward (x, w, b);

      td_cleargrad (w);
      td_cleargrad (b);
      td_backward (loss, 0);
      descend (w);
      descend (b);
      td_report ("loss", td_item (loss));
      if (rest > 0)
        usleep ((useconds_t)rest);
      if (argc > 3 && i == n / 2)
        wait_for (argv[3]);
    }
  td_read (w, weights, sizeof weights / 2);
  td_read (b, weights + N, sizeof weights / 2);
  for (size_t i = 0; i < sizeof weights; i++)
    hash = (hash ^ ((const unsigned char *)weights)[i]) * 1099511628211u;
  printf ("weights %016llx\n", (unsigned long long)hash);
  td_release (w);
  td_release (b);
  return td_finish ();
}
