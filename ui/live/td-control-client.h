/* One connection to a supervisor's control socket: a command is a line, its answer one line of
 * JSON, in order. Lines that answer nothing are events. The protocol is
 * engine/record/agent/PROTOCOL.md. SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>
#include <json-glib/json-glib.h>

#define TD_TYPE_CONTROL_CLIENT (td_control_client_get_type ())
G_DECLARE_FINAL_TYPE (TdControlClient, td_control_client, TD, CONTROL_CLIENT, GObject)

/** Receives one answer; `answer` is NULL when the connection ended first. */
typedef void (*TdControlAnswer) (TdControlClient *client, JsonObject *answer, gpointer data);

/** Name the folder of control sockets, as `tapedeck run` chooses it. Owner: caller. */
char *td_control_folder (void);

/** Connect to the socket at `address`. Owner: caller. Errors: NULL and `error`. */
TdControlClient *td_control_client_new (const char *address, GError **error);

/** Send one command line; `answer` may be NULL. Errors: an answer of NULL. */
void td_control_client_send (TdControlClient *self, const char *command, TdControlAnswer answer,
                             gpointer data);

/** Take the descriptor that came with the answer that is being handled; -1: none. Owner:
 * caller. */
int td_control_client_take_fd (TdControlClient *self);

/** Say whether the connection still stands. */
gboolean td_control_client_is_open (TdControlClient *self);

/** Close the connection; pending answers are called with NULL. */
void td_control_client_close (TdControlClient *self);
