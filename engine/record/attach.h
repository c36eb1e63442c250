/* How td_init reaches the recorder, which takes from the environment what it is to do.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/** Take TAPEDECK_TAPE and friends from the environment; record if they ask for it. */
void td__record_attach (void);
