/*
 * The static functions at a session's moment.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-session.h"
#include "td-statics.h"

G_BEGIN_DECLS

/** Return the functions at the moment; NULL: there are none. Owner: the session, until the
 * moment moves to another iteration or that one grows. */
TdStatics *td_session_get_statics (TdSession *session);

G_END_DECLS
