/* A model that is loaded anew, in a program that goes on.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck.h"

/** Have a root take the place of another.  Where both have one name it is the new one's, and
 * the other goes by "NAME (replaced)" until it is freed.  Tells a recorder of the parameters of
 * `link`, as if it had been made now, and of none of `old`.  old NULL: only that. */
void td__link_replace (TdLink *link, TdLink *old);
