/*
 * What ran, in order: operation, layer, time, output bytes; totals; and whether the program
 * could run from a static schedule, as far as its recorded iterations tell.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-panel.h"
#include "scene/td-sink.h"
#include "td-staticness.h"
#include "td-host-copies.h"
#include "td-transfers.h"

G_BEGIN_DECLS

typedef struct
{
  guint event;
  guint64 key;
  guint phase; /* TdTapePhase */
  const char *op;
  const char *layer;
  guint64 start_ns;  /* since the iteration began */
  guint64 ns;        /* of the host, which issues what runs on a device */
  guint64 device_ns; /* of the device, where that was timed */
  guint64 device_start_ns;
  guint device;       /* 0: the host */
  guint8 device_kind; /* TdTapeDeviceTimeKind */
  guint8 device_stream;
  guint64 bytes; /* of the outputs */
  gboolean failed;
  gboolean to_come;  /* has not run: it is expected */
  gboolean captured; /* ran inside a CUDA graph: its time was not measured */
} TdScheduleRow;

typedef struct
{
  guint n_rows;
  TdScheduleRow *rows;
  guint64 total_ns, total_bytes;
  guint64 device_ns;       /* of all that was timed on a device */
  guint n_device, n_timed; /* events that ran on one, and those of which its time is known */
  guint64 phase_ns[TD_TAPE_N_PHASES];
  guint phase_n[TD_TAPE_N_PHASES];
  TdTransfers *transfers; /* between devices */
  GArray *scopes;         /* TdScopeTime */
  TdHostCopies *host_copies;
} TdSchedule;

/** Owner: the caller; texts belong to the iteration, which must outlive it. */
TdSchedule *td_schedule_new (const TdIteration *iteration);
void td_schedule_free (TdSchedule *schedule);

/** Format what an operation took on its device: "≈" before what was sampled, "-" for what was
 * not timed or ran on the host. `text`: TD_FORMAT_SIZE characters. */
const char *td_schedule_format_device (const TdScheduleRow *row, char *text);
/** Say what the times are of; NULL: nothing ran on a device. Owner: the caller. */
char *td_schedule_dup_device_note (const TdSchedule *schedule);

/** How many operations of an iteration ran from a static schedule. */
guint td_schedule_count_replayed (const TdIteration *iteration);
/** Whether the one could be the schedule of the other: the shapes of the one with fewer
 * variables all occur in the other, which has those between fused operations besides. */
gboolean td_schedule_same_shapes (const TdIteration *a, const TdIteration *b);
/** Return what tells the graph of a structure from others, dimensions included. What only
 * numbers differ in (a decaying step size, say) is stored as another structure but is the same
 * graph. */
guint64 td_schedule_graph_of (TdTapeReader *reader, guint32 structure);
/** Say whether two iterations have one graph, and arrays of other sizes in it. */
gboolean td_schedule_only_sizes (TdTapeReader *reader, const TdTapeSummary *a,
                                 const TdTapeSummary *b);
/** Say so in a sentence, and which sizes of `a` they are first, against those of `b` before it.
 * Owner: the caller. */
char *td_schedule_dup_sizes (TdTapeReader *reader, const TdTapeSummary *a,
                             const TdTapeSummary *b);
/** Count the iterations from one summary to another: by their numbers, since of a long run not
 * every one has a summary, and those get fewer while it runs; but where all that were recorded
 * have one, the others never were. */
guint64 td_schedule_count_between (TdTapeReader *reader, guint first, guint last);
/** Say how static the program has been up to an iteration ("119 equal iterations: ..."), of
 * whose operations n_replayed ran from a schedule already. Owner: the caller. */
char *td_schedule_advice (TdTapeReader *reader, gint64 iteration, guint n_replayed);

/** Draw the rows around the playhead as a table. */
TdScene *td_schedule_scene (const TdSchedule *schedule, const char *advice,
                            const TdPanelView *view);
/** Draw the events as bars over time, one lane a phase. */
TdScene *td_timeline_scene (const TdIteration *iteration, const TdPanelView *view);
/** format: "text", "csv" or "json"; `staticness` may be NULL. */
void td_schedule_print (const TdSchedule *schedule, const char *advice,
                        const TdStaticness *staticness, const char *format, TdSink *sink);

G_END_DECLS
