/* Communicators from the inside: what ranks tell each other before they send anything.
 *
 * Every call for all ranks begins with a meeting: each gives the others a TdMeet, of fixed
 * size, which says what it is about to do.  Only when all say the same are numbers sent; so a
 * difference is an error on all of them.  A rank that cannot go on comes all the same, and says
 * why; one that ends comes, too, to every communicator that it has.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/rank-notes.h"
#include "train/links/link.h"
#include "transport.h"
#include "whereabouts.h"

/** What a meeting is for. */
typedef enum
{
  TD_MEET_NEW,
  TD_MEET_SPLIT,
  TD_MEET_FREE,
  TD_MEET_BARRIER,
  TD_MEET_BCAST,
  TD_MEET_ALLREDUCE,
  TD_MEET_ALLGATHER,
  TD_MEET_ALLTOALL,
  TD_MEET_BCAST_LINK,
  TD_MEET_BCAST_OPTIMIZER,
  TD_MEET_BCAST_RANDOM,
  TD_MEET_ALLREDUCE_GRAD,
  TD_MEET_OPTIMIZER,
  TD_MEET_UPDATE,
  TD_MEET_SCATTER,
  TD_MEET_EVALUATOR,
  TD_MEET_AGGREGATOR,
  TD_MEET_ITERATOR,
  TD_MEET_SYNCHRONIZED,
  TD_MEET_CHAIN_LIST,
  TD_MEET_CHECKPOINT,
  TD_MEET_PERSISTENTS,
  TD_MEET_SEND, /**< these two are letters: letters.c */
  TD_MEET_RECV,
  TD_MEET_FINISH,
  TD_MEET_N
} TdMeetKind;

enum
{
  TD_MEET_FAILED = 1, /**< cannot take part: note says why */
  TD_MEET_WANTS = 2,  /**< a gradient */
  TD_MEET_SAME = 4,   /**< its parameters were the root's before */
  TD_MEET_HAS = 8,    /**< what is to be sent is here */
  TD_MEET_ROUND = 16, /**< it has begun to send gradients */
  TD_MEET_STALE = 32, /**< which are not those of this update, or are none */
  TD_MEET_FAR = 64    /**< what is to be sent lies on the communicator's device */
};

/** What a rank says.  kind, dtype, root, digest, ndim and dim must be the same on all. */
typedef struct TdMeet
{
  uint32_t abi;
  int32_t kind;
  uint64_t seq; /**< number of the meeting, from 1 */
  int32_t dtype, root;
  uint64_t digest;
  int64_t number;   /**< what the call makes of it; not compared */
  uint64_t sums[2]; /**< of an update: of what the last one made; 0: nobody records */
  int32_t ndim, line;
  int64_t dim[TD_MAX_DIMS];
  uint32_t flags;
  uint32_t sending, n_sent; /**< td__overlap_tell */
  char file[44];            /**< the end of its name, if it is longer */
  char note[200];
} TdMeet;
_Static_assert(sizeof (TdMeet) == 384, "TdMeet is what ranks of different builds exchange");

typedef struct TdFar TdFar; /* teams.h */

struct TdComm
{
  TdObject object;
  const TdTransport *transport;
  TdWire *wire;
  int rank, size;
  int intra_rank, intra_size, inter_rank, inter_size; /**< as TdWire's */
  int *world;  /**< its ranks by their numbers among all that were started */
  uint64_t id; /**< the same on all of them, and no other communicator's */
  uint64_t seq;
  uint64_t *n_sent, *n_received; /**< letters, by rank */
  TdMeet mine, *all;             /**< of the last meeting; all: in the order of ranks */
  TdFar *far;                    /**< its devices' teams, the functions' first; NULL: none */
  bool inert;
  int n_optimizers;    /**< that were made over it */
  bool whole;          /**< of all ranks that were started: td_comm_new */
  bool brought;        /**< this rank's part of the call has been sent */
  bool parted;         /**< ranks are at different places: nothing can be sent any more */
  const char *parting; /**< what for; static */
  uint64_t parted_at;
  TdComm *next, **link; /**< the list of all that are open */
};

/** Something usable by `call`?  False after td__fail. */
bool (td__comm_usable) (const TdComm *comm, const char *call, const TdSite *site);
#ifdef __clang_analyzer__
#define td__comm_usable(comm, ...) TD_USABLE (td__comm_usable, comm, __VA_ARGS__)
#endif
/** FNV-1a of more bytes; begins with 0. */
uint64_t td__digest (uint64_t digest, const void *bytes, size_t n);
/** The name of a public call, by its kind. */
const char *td__meet_name (TdMeetKind kind);
/** What this rank is about to do, of x unless that is NULL. */
TdMeet td__meet_of (TdMeetKind kind, const TdVar *x, const TdSite *site);
/** This rank cannot take part: for the reason of the engine's error. */
void td__meet_fail (TdMeet *mine);
/** Meet, and compare: comm->all is what the others said.  *Errors*: after td__fail on all
 * ranks, wherever one of them differs or fails. */
TdStatus td__meet (TdComm *comm, const TdMeet *mine, const TdSite *site);
/** The same, where another digest is no error but told by *differs. */
TdStatus td__meet_digest (TdComm *comm, const TdMeet *mine, bool *differs, const TdSite *site);
/** The first rank whose digest was not rank 0's, where one was not. */
int td__meet_other (const TdComm *comm);
/** Compare what all have said in a meeting of the transport. */
TdStatus td__meet_compare (TdComm *comm, bool *differs, const TdSite *site);
/** Does some rank's last TdMeet have this flag?  Do all? */
bool td__meet_any (const TdComm *comm, uint32_t flag);
bool td__meet_all (const TdComm *comm, uint32_t flag);
/** A call of the transport has failed: no other can be made. */
TdStatus td__comm_fail (TdComm *comm, const char *why, const TdSite *site);

/** This rank cannot bring its part to a call that all have agreed on: say why, and end them. */
void td__comm_abort (TdComm *comm);

/** The engine ends, or the process: meet for the last time.  1 after td__fail, if others went
 * on. */
int td__ranks_leave (void);

/* explain.c */
enum
{
  TD_LINE = 400
};
/** A rank's side of what should be the same on all; begins as zeros. */
typedef struct TdLines
{
  char (*of)[TD_LINE];
  int n;
} TdLines;

/** Add a line; what is too long is cut off. */
void td__lines_put (TdLines *lines, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
void td__lines_clear (TdLines *lines);
/** Digests differ: fail on all ranks, by the first line that is not rank 0's.  before: what
 * the message begins with, after: what it says to do; "" for nothing. */
TdStatus td__explain (TdComm *comm, const TdLines *own, const char *before, const char *after,
                      TdMeetKind kind, const TdSite *site);
/** Give all ranks rank 0's bytes, in host memory. */
TdStatus td__bcast_bytes (TdComm *comm, void *bytes, size_t n, const TdSite *site);

/* wait.c: calls of the transport, as it has them; a rank waits in them for others. */
bool td__wait_bcast (TdComm *comm, void *data, size_t bytes, int root, char *why,
                     const TdSite *site);
bool td__wait_sum (TdComm *comm, void *data, int64_t n, TdWireKind kind, char *why,
                   const TdSite *site);
bool td__wait_gather (TdComm *comm, const void *in, void *all, size_t bytes, char *why,
                      const TdSite *site);
bool td__wait_exchange (TdComm *comm, const void *in, void *out, size_t bytes, char *why,
                        const TdSite *site);
bool td__wait_send (TdComm *comm, const void *data, size_t bytes, int to, char *why,
                    const TdSite *site);
bool td__wait_receive (TdComm *comm, void *data, size_t bytes, int from, char *why,
                       const TdSite *site);
/** The same around other calls; end returns ok. */
TdWait td__wait_begin (const TdComm *comm, TdWaitKind kind, size_t bytes, int peer,
                       const TdSite *site);
bool td__wait_end (const TdComm *comm, TdWait *wait, bool ok);
/* watch.c */
/** From here on somebody looks for how long this rank waits, and what becomes of who started
 * it. False after td__fail: a setting is none. */
bool td__watch_start (const TdSite *site);
/** This rank waits for all that were started, of which it knows no communicator yet. */
void td__watch_begin (const TdSite *site);
/** This rank waits in comm->mine; it waits no more. */
void td__watch_enter (const TdComm *comm);
void td__watch_leave (void);
/** All ranks have begun. */
void td__watch_met (void);
/** This rank ends by itself while others are in a call for all. */
void td__watch_early (void);
/** Where the ranks are. */
const TdWhere *td__watch_where (void);

/* last-words.c */
/** From here on this process waits for others, in that meeting; NULL: no more.  When mpirun
 * ends it meanwhile, it says so. */
void td__last_words (const TdComm *comm);
void td__last_words_start (void);
/** A communicator cannot be had: a program that divides by its size says why. */
void td__last_words_of_error (void);
/** It has left all communicators, and ends by itself. */
void td__last_words_left (void);
/** Does it wait? */
bool td__last_words_due (void);
