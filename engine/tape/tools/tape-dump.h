/* How texts and lists are printed, for the files that dump a tape or tell its facts.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "json.h"
#include "td-tape-reader.h"

/** What a dump needs to know. */
typedef struct
{
  TdTapeReader *r;
  FILE *out;
  TdJsonWriter *json;           /* to out; NULL: as text */
  const TdTapeNotice **notices; /* of the whole run, in an order of their own */
} TapeDump;

/** A text as the program gave it, but on one line. */
void td__tape_put_line (FILE *out, const char *text);
/** "(3, 4)", and the same as a member "shape". */
void td__tape_put_dims (FILE *out, const int64_t *dims, unsigned n);
void td__tape_json_shape (TdJsonWriter *json, const int64_t *dims, unsigned n);
/** A member with as many digits as the tape's numbers are worth. */
void td__tape_json_number (TdJsonWriter *json, const char *key, double value);
/** Members that tell of a parameter; the member "exit", how it ended, or null. */
void td__tape_json_parameter (TdJsonWriter *json, const TdTapeReader *r,
                              const TdTapeParameter *p);
void td__tape_json_exit (TdJsonWriter *json, TdTapeReader *r);
/** The object of one record, with its name, and the iteration that it is of; end it by
 * td__tape_end_record. */
TdJsonWriter *td__tape_begin_record (TapeDump *d, const char *record);
TdJsonWriter *td__tape_begin_record_of (TapeDump *d, const char *record, uint64_t iteration);
void td__tape_end_record (TapeDump *d);
/** A member that names a place in the program; 0: "". */
void td__tape_json_site (TdJsonWriter *json, const TdTapeReader *r, const char *key,
                         uint32_t site);

/** Notices of the whole run, and those of one iteration that are not among them. */
void td__tape_dump_notices (TapeDump *d);
void td__tape_dump_iteration_notices (TapeDump *d, const TdTapeIteration *it);
/** What `info` says of the recording itself; here as in the others: members for `json`, text to
 * `out` where that is NULL. */
void td__tape_info_recording (TdTapeReader *r, FILE *out, TdJsonWriter *json);
/** Static functions, schedules and what happened to them. */
void td__tape_dump_statics (TapeDump *d);
/** The static functions of one iteration. */
void td__tape_dump_iteration_statics (TapeDump *d, const TdTapeIteration *it);
/** What outlived the iteration. */
void td__tape_dump_held (TapeDump *d, const TdTapeIteration *it);
void td__tape_dump_objects (TapeDump *d, const TdTapeIteration *it);
/** How full devices were at the end of an iteration, and when its events ran on them. */
void td__tape_dump_devices (TapeDump *d, const TdTapeIteration *it);
/** Name a TdTapeDeviceTimeKind. */
const char *td__tape_device_time_name (unsigned kind);
/** What the host copied to devices and from them. */
void td__tape_dump_copies (TapeDump *d, const TdTapeIteration *it);
/** When it waited for other ranks, and the sums that they are held against. */
void td__tape_dump_ranks (TapeDump *d, const TdTapeIteration *it);
/** The calls of stacks, and the stacks of what was there before the iteration. */
void td__tape_dump_stacks (TapeDump *d, const TdTapeIteration *it);
/** What the events of a keyframe were given. */
void td__tape_dump_keyframe (TapeDump *d, const TdTapeIteration *it);
/** The pools of devices at the end of an iteration. */
void td__tape_dump_pools (TapeDump *d, const TdTapeIteration *it);
/** Say in `info` how full devices and their pools were at the end; nothing where there is no
 * device but the host. */
void td__tape_info_devices (TdTapeReader *r, FILE *out, TdJsonWriter *json);
/** What was found later of the events of an iteration; in `info`: of all. */
void td__tape_dump_faults (TapeDump *d, const TdTapeIteration *it);
void td__tape_info_faults (TdTapeReader *r, FILE *out, TdJsonWriter *json);
/** Memory that ran out in an iteration; in `info`: the last time. */
void td__tape_dump_ooms (TapeDump *d, uint64_t iteration);
void td__tape_info_ooms (TdTapeReader *r, FILE *out, TdJsonWriter *json);
/** Say in `info` how many static functions there are and how often they were replayed; nothing
 * where there is none. */
void td__tape_info_statics (TdTapeReader *r, FILE *out, TdJsonWriter *json);
/** Whether the tape was made of a memory snapshot; what `info` says of such a one. */
bool td__tape_is_import (const TdTapeReader *r);
void td__tape_info_import (TdTapeReader *r, FILE *out);
/** Whether it was made of a trace, which does not know memory. */
bool td__tape_is_trace (const TdTapeReader *r);
/** Say in `info` what became of a dynamic loss scale; nothing where there is none. */
void td__tape_info_scaling (TdTapeReader *r, FILE *out, TdJsonWriter *json);
