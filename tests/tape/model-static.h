/* The static function of the model of the tape's tests.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "model.h"

/** A schedule of 8 steps: a group of two, one pruned, a backward of three. */
TdTapeSchedule model_schedule (void);

/** Say that there is function 1. */
void model_function (Model *m);

/** Say the schedule as the program's number `number`, in parts of at most `part` bytes. */
void model_plan (Model *m, uint32_t number, uint32_t part);

/** An event of function 1. */
void model_static_event (Model *m, unsigned what, uint32_t schedule, const char *text);

/** A run of function 1 begins, ends, or was thrown away: moment is TD_RAW_RUN_... */
void model_run (Model *m, unsigned moment, unsigned kind, uint32_t schedule, uint32_t list);

/** A step of function 1 was traced; opdef is the model's. */
void model_entry (Model *m, uint32_t list, uint32_t number, unsigned kind, uint32_t opdef);

/** Where function 1 stands; before model_end. */
void model_static_state (Model *m, unsigned state, uint32_t schedule, uint32_t replays,
                         uint64_t all_replays);
