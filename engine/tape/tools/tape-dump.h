/* How texts and lists are printed, for the files that dump a tape.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape-reader.h"

/** What a dump needs to know. */
typedef struct
{
  TdTapeReader *r;
  FILE *out;
  bool json;
  const TdTapeNotice **notices; /* of the whole run, in an order of their own */
} TapeDump;

/** A text in quotes, as JSON has it. */
void td__tape_put_string (FILE *out, const char *text);
/** A text as the program gave it, but on one line. */
void td__tape_put_line (FILE *out, const char *text);
/** "(3, 4)", or "[3,4]". */
void td__tape_put_dims (FILE *out, const int64_t *dims, unsigned n, bool json);

/** Notices of the whole run, and those of one iteration that are not among them. */
void td__tape_dump_notices (TapeDump *d);
void td__tape_dump_iteration_notices (TapeDump *d, const TdTapeIteration *it);
void td__tape_info_recording (TdTapeReader *r, FILE *out, bool json);
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
/** The pools of devices at the end of an iteration. */
void td__tape_dump_pools (TapeDump *d, const TdTapeIteration *it);
/** Say in `info` how full devices and their pools were at the end; nothing where there is no
 * device but the host. */
void td__tape_info_devices (TdTapeReader *r, FILE *out, bool json);
/** What was found later of the events of an iteration; in `info`: of all. */
void td__tape_dump_faults (TapeDump *d, const TdTapeIteration *it);
void td__tape_info_faults (TdTapeReader *r, FILE *out, bool json);
/** Memory that ran out in an iteration; in `info`: the last time. */
void td__tape_dump_ooms (TapeDump *d, uint64_t iteration);
void td__tape_info_ooms (TdTapeReader *r, FILE *out, bool json);
/** Say in `info` how many static functions there are and how often they were replayed; nothing
 * where there is none. */
void td__tape_info_statics (TdTapeReader *r, FILE *out, bool json);
/** Whether the tape was made of a memory snapshot; what `info` says of such a one. */
bool td__tape_is_import (const TdTapeReader *r);
void td__tape_info_import (TdTapeReader *r, FILE *out);
/** Say in `info` what became of a dynamic loss scale; nothing where there is none. */
void td__tape_info_scaling (TdTapeReader *r, FILE *out, bool json);
