/* The log of a training loop, for extensions that show it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "text.h"
#include "trainer.h"

bool td__is_log_report (const TdExtension *extension);
/** Say whether a line of the log has a key. */
bool td__log_report_has (const TdExtension *log_report, int line, const char *key);
