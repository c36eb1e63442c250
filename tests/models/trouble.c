/* Ends in the way its argument says: segv, abort, exit3, oom, nan, error, hang, spin; update:
 * an optimizer makes infinities, and in the next iteration NaN, in a parameter alone; print:
 * leaves text in its buffer and spins; fork: a child of it computes and ends with 5; outside:
 * computes outside iterations and prints how many of 100 it ran; save: takes 3.5 s over an
 * interrupt and ends with 7; names: odd names; files: 0 if 3 and 4 are open as they were.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int n_iterations;
static volatile sig_atomic_t interrupted;

static void
count_outside (void)
{
  printf ("%d iterations\n", n_iterations);
}

static void
run_outside (void)
{
  atexit (count_outside);
  TD_ITERATIONS (i, 100)
    {
      td_tanh (td_full (TD_F32, TD_SHAPE (4), 1.0));
      n_iterations++;
    }
}

static void
on_interrupt (int number)
{
  interrupted = number;
}

/* Names that no sane program gives, and an end that comes twice. */
static int
run_names (void)
{
  static char longest[10001];

  memset (longest, 'n', sizeof longest - 1);
  TD_ITERATIONS (i, 3)
    {
      TdVar *x = td_name (td_full (TD_F32, TD_SHAPE (4), 1.0), longest);

      td_sum (td_name (td_tanh (x), "two\nlines"));
      td_report ("three\nlines", 3);
    }
  return td_finish () + td_finish ();
}

/* Steps that are no number: down to minus infinity, and back up from there, which is NaN.
 */
static int
run_updates (void)
{
  TdLink *net = td_chain_new ("net");
  TdVar *w = td_link_add_param (net, "w", TD_SHAPE (4), .initializer = td_init_one ());
  TdOpt *opt = td_sgd_new (net, .lr = 1e300);

  TD_ITERATIONS (i, 3)
    {
      td_cleargrads (net);
      td_backward (td_mul_scalar (td_sum (w), i == 0 ? 1 : -1), 0);
      td_opt_update (opt);
    }
  td_opt_free (opt);
  td_link_free (net);
  return td_finish ();
}

/* A child computes as its parent does. */
static void
fork_once (void)
{
  pid_t pid = fork ();
  int status = 0;

  if (pid == 0)
    {
      for (int i = 0; i < 10000; i++)
        td_tanh (td_full (TD_F32, TD_SHAPE (4), 1.0));
      exit (5 + td_finish ());
    }
  waitpid (pid, &status, 0);
  printf ("child ended with %d\n", WEXITSTATUS (status));
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  const char *how = argc > 1 ? argv[1] : "";
  volatile int *nowhere = NULL;

  signal (SIGINT, strcmp (how, "save") == 0 ? on_interrupt : SIG_DFL);
  if (strcmp (how, "files") == 0)
    return fcntl (3, F_GETFD) != 0 || fcntl (4, F_GETFD) != 0;
  if (strcmp (how, "names") == 0)
    return run_names ();
  if (strcmp (how, "update") == 0)
    return run_updates ();
  if (strcmp (how, "print") == 0)
    printf ("printed before");
  if (strcmp (how, "outside") == 0)
    {
      td_tanh (td_full (TD_F32, TD_SHAPE (4), 1.0));
      run_outside ();
      return td_finish ();
    }

  TD_ITERATIONS (i, 1000000)
    {
      TdVar *x = td_variable (td_full (TD_F32, TD_SHAPE (4), 2.0), "x");
      TdVar *y = td_sum (td_exp (x));

      td_backward (y, 0);
      if (i < 3)
        continue;
      if (strcmp (how, "segv") == 0)
        *nowhere = 1;
      else if (strcmp (how, "abort") == 0)
        abort ();
      else if (strcmp (how, "exit3") == 0)
        exit (3);
      else if (strcmp (how, "exit2") == 0)
        exit (2);
      else if (strcmp (how, "oom") == 0)
        td_zeros (TD_F32, TD_SHAPE (1 << 20, 1 << 20));
      else if (strcmp (how, "nan") == 0)
        td_log (td_neg (x));
      else if (strcmp (how, "error") == 0)
        td_add (x, td_zeros (TD_F32, TD_SHAPE (5)));
      else if (strcmp (how, "hang") == 0)
        pause ();
      else if (strcmp (how, "fork") == 0)
        {
          fork_once ();
          break;
        }
      else if (interrupted)
        {
          usleep (3500000);
          exit (7);
        }
      else if (strcmp (how, "spin") != 0 && strcmp (how, "print") != 0
               && strcmp (how, "save") != 0)
        break;
    }
  return td_finish ();
}
