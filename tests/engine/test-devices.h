/* The two halves of the test of devices.
 * SPDX-License-Identifier: MIT */
#pragma once

/** Run every row of the op-case tables on cpu and fake-remote.  Returns how many tests failed.
 */
int devices_run_rows (const char *filter);
