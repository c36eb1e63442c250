/* What the engine's other parts ask of static functions as a whole.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/core.h"
#include "compute/core/inside.h"

/** Let a debugger ask: sets TdEngine.statics. */
void td__static_attach (void);
/** Verify the next replay of every static function; says how many there are. */
int td__statics_verify_next (void);
/** Free what is left: td_finish. */
void td__statics_finish (void);
/** Take "as-is", "off", "verify" or "verify=K"; says false for anything else. */
bool td__static_option (const char *value);
/** s belongs to whoever has this pointer to it, which is set to NULL when s is freed. */
void td__static_owned (TdStatic *s, TdStatic **owner);

/* expand.c, as in TdStaticTable */
void td__static_expand (TdOp *call);
/* inside.c, as in TdStaticTable */
uint32_t td__inside_n (void);
TdInsideStep td__inside_step (uint32_t k);
bool td__inside_ran (void);
bool td__inside_run (uint32_t k, TdInsideArray *array, char *why, size_t size);
uint32_t td__inside_first_nan (void);
