/* A rank that waits for others for too long: what it says, and whether it is to end. It is
 * asked from time to time, from a thread that goes on while the program waits; entering and
 * leaving a call is the program's. Whoever has both takes a lock around them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "whereabouts.h"

/** A call for several ranks, which this one begins to wait in. */
typedef struct
{
  uint64_t comm, seq;      /**< the same on all its ranks */
  const char *call, *file; /**< "td_comm_barrier", "a.c" */
  int line, from;          /**< from: the rank that is received from; -1: it is for all */
  const int *members;      /**< their numbers among all ranks; borrowed until it is left */
  int n_members;
} TdHangCall;

typedef enum
{
  TD_HANG_NOTHING,
  TD_HANG_SAID, /**< now, on standard error and on this rank's page */
  TD_HANG_ENDS  /**< this process has to, and mpirun ends the others for it */
} TdHangAnswer;

/** Of one process. Begins as zeros. */
typedef struct
{
  TdWhere where;
  const int *members; /* of the call that it waits in */
  int n_members;      /* 0: it waits in none */
  uint64_t n_waits;   /* begun until now */

  double limit_s; /* 0: none */
  bool stay;      /* what does not get on is left as it is */
  bool spares;    /* nothing is ended while some rank computes */

  uint64_t seen;
  double waited_s;
  bool said;
} TdHang;

/** Take what the environment says of the time, and of what is done then. *Errors*: false, and
 * why in one line. */
bool td__hang_set (TdHang *h, char *why, size_t size);
void td__hang_enter (TdHang *h, const TdHangCall *call);
void td__hang_leave (TdHang *h);
/** passed_s: seconds since it was asked last. */
TdHangAnswer td__hang_look (TdHang *h, double passed_s);
