/* A client of the control socket of `tapedeck run`; the lines are those of
 * engine/record/agent/PROTOCOL.md.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

typedef struct
{
  int fd, memory; /* memory: the descriptor that came last, -1: none */
  char buffer[65536];
  size_t used;
  char line[8192];
} TdClient;

/** Connect, as soon as somebody listens. */
void td_client_open (TdClient *c, const char *path);
void td_client_close (TdClient *c);

/** Return the next line; with a descriptor if one came with it. Borrowed: until the next. */
const char *td_client_next (TdClient *c);
/** Send a command and return its answer, passing over events. */
const char *td_client_ask (TdClient *c, const char *command);
/** Return the next event that says that the program stands. */
const char *td_client_stopped (TdClient *c);
/** Send a motion; return the event that says where the program stands then. */
const char *td_client_move (TdClient *c, const char *command);

/** Return a number of a line; the test fails where it has none of that name. */
long td_client_number (const char *json, const char *member);
