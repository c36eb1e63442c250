/* Names of the numbers on a tape, for people and for JSON.  Included by td-tape.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#ifndef TD_API
#define TD_API __attribute__ ((visibility ("default")))
#endif

/** "float32" ... ; "?" if unknown.  The same for the other tables. */
TD_API const char *td_tape_dtype_name (unsigned dtype);
TD_API const char *td_tape_phase_name (unsigned phase);
TD_API const char *td_tape_category_name (unsigned category);
TD_API const char *td_tape_holder_name (unsigned holder);
TD_API const char *td_tape_level_name (unsigned level);
TD_API const char *td_tape_chain_state_name (unsigned state);
TD_API const char *td_tape_static_event_name (unsigned what);
TD_API const char *td_tape_run_kind_name (unsigned kind);
TD_API const char *td_tape_step_kind_name (unsigned kind);
TD_API const char *td_tape_fate_name (unsigned fate);
TD_API const char *td_tape_value_kind_name (unsigned kind);
TD_API const char *td_tape_pool_name (unsigned kind);
TD_API const char *td_tape_copy_way_name (unsigned way);
TD_API const char *td_tape_copy_why_name (unsigned why);
TD_API const char *td_tape_wait_name (unsigned wait);
TD_API const char *td_tape_rank_sum_name (unsigned kind);

/** Bytes of one element of `dtype`; 0 if unknown. */
TD_API size_t td_tape_dtype_bytes (unsigned dtype);
