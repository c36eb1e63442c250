/* A process for mpirun, and one that works: see keeper.h.  SPDX-License-Identifier: MIT */
#include "keeper.h"
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile pid_t kept;
static pid_t behind, starter; /* who stays behind, and what started it; 0: nobody does */

static void
pass_on (int number)
{
  const int before = errno;

  if (kept > 0)
    kill (kept, number);
  errno = before;
}

/* Blocked until it is known to whom they go. */
static const int passed[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT };

static _Noreturn void
stay_behind (pid_t child, const sigset_t *before)
{
  struct sigaction action = { .sa_handler = pass_on, .sa_flags = SA_RESTART };
  int status;

  kept = child;
  for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
    sigaction (passed[i], &action, NULL);
  sigprocmask (SIG_SETMASK, before, NULL);
  while (waitpid (child, &status, 0) < 0 && errno == EINTR)
    ;
  _exit (WIFSIGNALED (status) ? 128 + WTERMSIG (status) : WEXITSTATUS (status));
}

bool
td_keep_apart (void)
{
  const pid_t parent = getpid (), grandparent = getppid ();
  sigset_t set, before;
  pid_t child;

  sigemptyset (&set);
  for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
    sigaddset (&set, passed[i]);
  sigprocmask (SIG_BLOCK, &set, &before);
  child = fork ();
  if (child > 0)
    stay_behind (child, &before);
  if (child == 0)
    {
      behind = parent;
      starter = grandparent;
      setpgid (0, 0);
      prctl (PR_SET_PDEATHSIG, SIGTERM);
      if (getppid () != parent)
        raise (SIGTERM);
    }
  sigprocmask (SIG_SETMASK, &before, NULL);
  return child == 0;
}

/* Whoever has lost its parent has another one at once, though that one is not waited for yet.
 */
bool
td_keep_lost (void)
{
  TdProcess process;

  if (starter <= 1 || getppid () != behind) /* it has ended: a signal says that */
    return false;
  return td__process_read ((int)behind, &process) && process.state != 'Z'
         && process.parent != starter;
}
