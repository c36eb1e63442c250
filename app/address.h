/* Addresses in place of file names, as desktops pass them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/** Is this a link to a moment of a recording (tapedeck:...), which only the app knows? */
bool td_address_is_link (const char *text);
/** The path of a file of this machine that file://... names.  NULL: it is no such address.
 * Owner: the caller. */
char *td_address_to_path (const char *text);
