/* train [PIDFILE [END]]: a tiny network that trains for ever, or ends after 20 iterations as
 * END says: exit3, abort, segv, memory, nan. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tapedeck.h>

static void
write_pid (const char *path)
{
  FILE *f = fopen (path, "w");

  if (f == NULL)
    exit (9);
  fprintf (f, "%d\n", (int)getpid ());
  fclose (f);
}

static void
end_as (const char *how)
{
  fprintf (stderr, "train: ending by %s\n", how);
  if (strcmp (how, "exit3") == 0)
    exit (3);
  if (strcmp (how, "abort") == 0)
    abort ();
  if (strcmp (how, "segv") == 0)
    *(volatile int *)8 = 1;
  if (strcmp (how, "memory") == 0)
    {
      TdVar *big = td_zeros (TD_F32, TD_SHAPE (1 << 20, 1 << 20, 4));

      td_item (td_sum (big));
    }
}

int
main (int argc, char **argv)
{
  const char *end = argc > 2 ? argv[2] : "";
  float x[8], w[8];

  td_init (&argc, &argv);
  if (argc > 1)
    write_pid (argv[1]);
  for (int i = 0; i < 8; i++)
    {
      x[i] = 0.25f * (float)(i - 3);
      w[i] = 0.1f * (float)i;
    }
  TdVar *weight = td_retain (td_variable (td_tensor (TD_F32, TD_SHAPE (8), w), "w"));
  TdVar *input = td_retain (td_tensor (TD_F32, TD_SHAPE (8), x));

  for (int i = 0; td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *h = td_relu (td_mul (weight, input));
        TdVar *loss = td_sum (td_mul (h, h));

        td_cleargrad (weight);
        td_backward (loss, 0);
        td_report ("loss", td_item (loss));
        if (i % 1000 == 0)
          printf ("iteration %d\n", i), fflush (stdout);
        if (*end && i == 20)
          end_as (end);
      }
  return td_finish ();
}
