/* Recording of some iterations only, in a program that writes its tape itself (TAPEDECK_TAPE).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Is there a recorder in this process that writes a tape? */
bool td__record_is_there (void);
/** From here on nothing is recorded.  Between iterations, with nothing made in the meantime. */
void td__record_pause (void);
/** Record again: the next iteration, and what it is given as it is described then.  Before
 * td_finish too, which writes how the run ended. */
void td__record_resume (void);
/** Resume for something that may not come to stay, as a file that is loaded: what is allocated
 * and freed is recorded, no parameter and no error. */
void td__record_try (void);
/** Pause behind it.  kept: false: it has been freed, and nothing of it is recorded. */
void td__record_tried (bool kept);
/** Say something about the run: "program", "device" ... */
void td__record_info (const char *key, const char *value);
/** Put a word about the iteration that is open on the tape. */
void td__record_note (const char *text);
/** The number on the tape of the iteration that was recorded last. */
int64_t td__record_iteration (void);
/** Have on the tape what was recorded so far, for readers that have it open.  Returns why
 * nothing is written any more, or NULL. */
const char *td__record_flush (void);
