/* The control socket: clients that send lines and get lines.  PROTOCOL.md of
 * engine/record/agent says what.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json-line.h"
#include "record/agent/agent.h"
#include "record/assembler.h"
#include "whereabouts.h"

typedef struct TdControlServer TdControlServer;

/** What the server needs to know of the run. */
typedef struct
{
  int model_fd; /**< the socket pair's end, -1 once the model is gone */
  int32_t model_pid;
  TdControlPage *page;
  const TdRing *ring;
  const TdAssembler *assembler;
  const TdTapeWriter *writer; /**< NULL when nothing is recorded here */
  const char *tape, *program;
  const TdWhere *ranks;      /**< of the run; without pages there is one */
  void (*stop) (void *user); /**< a client asks to end the model */
  /** An event of the model, JSON. */
  void (*event) (void *user, const char *json);
  void *user;
} TdControlRun;

/** Listen at `path`; NULL: no clients, only the model is listened to.  *Errors*: one line on
 * stderr, and no clients; NULL without memory. */
TdControlServer *td_control_server_new (const char *path, TdControlRun *run);
/** Where it listens; "": nowhere.  Borrowed. */
const char *td_control_server_address (const TdControlServer *s);
void td_control_server_free (TdControlServer *s);

/** Fill `fds` (at least 40) with what poll must watch; returns how many. */
struct pollfd;
int td_control_server_poll_fds (TdControlServer *s, struct pollfd *fds);
/** Serve what poll found ready, and what timed out.  Returns ms until it wants to be called
 * again though nothing is ready, -1: never. */
int td_control_server_serve (TdControlServer *s, const struct pollfd *fds, int n);
/** Send an event line to every client. */
void td_control_server_notify (TdControlServer *s, const char *json);
/** Write an event line that says something; returned is the line. */
const char *td_control_notice (TdJsonLine *line, const char *text);
/** Say what the program runs, or has run last, and how far it is. */
void td_control_where (const TdControlRun *run, TdWhereNow *now);
/** Say what the operation is that runs, or ran last: "mlp.c:12". */
void td_control_now (const TdControlRun *run, char *op, size_t op_size, char *where,
                     size_t where_size);
