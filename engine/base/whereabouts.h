/* Where the ranks of a run are: a page for each in a file that all of them map, so that one
 * that waits can say of another why it does not come, though that one is stopped or dead.
 *
 * A page has two writers: the engine of the rank says in which call for all ranks it is, its
 * supervisor what it runs and how it ended.  Who reads takes what is there; a text may be half
 * new for the moment of its writing, and always ends.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The environment: the path of the file, and what is done about ranks that do not come. */
#define TD_WHERE_VARIABLE "TAPEDECK_RANKS_FILE"
#define TD_WHERE_HANG_VARIABLE "TAPEDECK_HANG_AFTER"
#define TD_WHERE_ON_HANG_VARIABLE "TAPEDECK_ON_HANG"

/** What `tapedeck run -n` calls that file, in the folder of the tapes. */
#define TD_WHERE_NAME "where.ranks"

enum
{
  TD_WHERE_ABI = 4, /* of this layout */
  TD_WHERE_PAGE = 4096,
  TD_WHERE_ALIKE = 196608, /* behind the pages: alike.h */
  TD_WHERE_LINE = 1600     /* of a text about ranks */
};

/** How far a program was in its iterations. */
typedef enum
{
  TD_WHERE_NOWHERE, /* nobody knows, or in none yet */
  TD_WHERE_BEGUN,   /* in one, of which no operation has run */
  TD_WHERE_INSIDE,  /* in one, of which some have */
  TD_WHERE_BEHIND   /* in none: after the one that is named */
} TdWhereProgress;

/** What a program runs, or has run last. */
typedef struct
{
  _Atomic uint32_t running; /* the operation below has begun and not ended */
  uint32_t progress;        /* TdWhereProgress */
  int64_t iteration;
  char op[128], where[256]; /* "": nobody knows */
} TdWhereNow;

typedef struct
{
  uint32_t abi;
  _Atomic int32_t pid; /* of the program; 0: it has not begun */
  char host[64];

  /* by the engine */
  _Atomic uint32_t waits;  /* in the call below; 0: that is the last that it was in */
  int32_t n_members, from; /* of its communicator; the rank that is received from, or -1 */
  int32_t line;
  uint64_t comm, seq; /* the same number on all ranks of a communicator; of the call */
  int64_t since_ns;   /* CLOCK_REALTIME: the call began, or was left */
  char call[40], file[44];
  _Atomic uint32_t n_findings; /* the text below is the n-th */
  char finding[TD_WHERE_LINE];
  _Atomic uint32_t claim; /* of rank 0's page: the rank that says what is wrong, and 1; all
                              bits: nobody else has to, for all are ended */
  _Atomic uint32_t early; /* it ended by itself while others were in a call for all */

  /* by its agent (engine/record/agent/together.h); places of the program as in alike.h */
  _Atomic uint32_t takes_part; /* in commands that are for all ranks */
  _Atomic uint32_t standing;   /* at the place `begun`, before the operation below */
  _Atomic uint64_t begun;      /* the last event that has */
  _Atomic uint64_t checked;    /* no breakpoint of its stops before this place */
  char at_op[64], at_where[160], at_path[240];
  int64_t at_iteration;
  uint32_t at_phase;

  /* by the supervisor */
  _Atomic uint32_t stands; /* at a breakpoint */
  _Atomic uint32_t ended;  /* as the two below say */
  int32_t status, signal;
  int64_t ended_ns;           /* CLOCK_REALTIME */
  _Atomic uint32_t told;      /* to end: by mpirun */
  _Atomic int32_t supervisor; /* its process; 0: none, or it has written all */
  TdWhereNow now;
  char address[108]; /* of its control socket; "": it has none */

  /* by who started mpirun, on rank 0's page */
  _Atomic int32_t ended_by; /* the signal by which the run was told to end; 0: it was not */
} TdWherePage;
_Static_assert(sizeof (TdWherePage) <= TD_WHERE_PAGE, "a rank's page is full");

typedef struct
{
  char *pages; /* n of TD_WHERE_PAGE bytes; NULL: there is no file */
  int rank, n;
  char path[4200], host[64];
} TdWhere;

/** The number that mpirun gives this process and how many there are; false: it was not started
 * by mpirun, or alone. */
bool td__where_rank (int *rank, int *n);

/** What all processes of one run of mpirun have in common, and those of no other, as text. */
void td__where_run (char *text, size_t size);

/** Map the file of this run, which is made where it is not there: the one that the environment
 * names, else one of mpirun's run in the folder of sockets.  first: this rank's page is begun
 * anew.  *Errors*: false, and the rank goes on without.
 * *Owner*: the caller, td__where_close. */
bool td__where_open (TdWhere *w, int rank, int n, bool first);
/** The same with a path. */
bool td__where_open_at (TdWhere *w, const char *path, int rank, int n, bool first);
void td__where_close (TdWhere *w);

/** The page of a rank. */
TdWherePage *td__where_page (const TdWhere *w, int rank);

/** CLOCK_REALTIME in ns. */
int64_t td__where_now (void);

/** " in linear at a.c:3, in iteration 4", where it had begun and not ended, else ", after it,
 * in iteration 5"; "": nobody knows. (whereabouts-words.c) */
void td__where_place (const TdWhereNow *now, char *text, size_t size);

/** "rank 1 (pid 7) is stopped, after td_comm_barrier (call 2, a.c:10)": where a rank is, as far
 * as this machine can tell. (whereabouts-words.c) */
void td__where_describe (const TdWhere *w, int rank, char *text, size_t size);

/** What a rank that has waited too long says: in which call, for whom, and where each of these
 * and of those that wait with it is.  members: of the communicator, by their numbers among all
 * ranks. (whereabouts-words.c) */
void td__where_finding (const TdWhere *w, const int *members, int n_members, double seconds,
                        char *text, size_t size);

/** How many of them have not come to the call that this rank waits in. (whereabouts-words.c) */
int td__where_missing (const TdWhere *w, const int *members, int n_members);

/** Is it a page of a process of this machine? */
bool td__where_is_here (const TdWhere *w, const TdWherePage *page);

/** Does some rank compute, as far as this machine can tell: it waits in no call, and is neither
 * stopped nor dead? (whereabouts-words.c) */
bool td__where_computes (const TdWhere *w);

/** Does a rank stand at a breakpoint? */
bool td__where_stands (const TdWhere *w);

/** The rank whose end is why others are ended: killed, failed or gone without having been told
 * to end, or before the others; -1: none.  A signal's handler may ask. */
int td__where_culprit (const TdWhere *w);
