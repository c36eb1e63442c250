/*
 * Memory by category: over the events of one iteration, and over iterations. The numbers come
 * from a recount of the allocation records; nothing is estimated.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-panel.h"
#include "scene/td-sink.h"

G_BEGIN_DECLS

/* Bytes alive after each event. Step e counts every record up to and with event e; the last
 * step (n_steps - 1 == n_events) also counts what happened after the last event. */
typedef struct
{
  guint n_steps;
  guint64 *bytes[TD_TAPE_N_CATEGORIES];
  guint64 *total;
  guint64 start[TD_TAPE_N_CATEGORIES];
  guint64 most[TD_TAPE_N_CATEGORIES]; /* after any event */
  guint64 peak_bytes;                 /* highest total, also between two events */
  guint peak_event;
} TdMemoryProfile;

enum
{
  TD_MEMORY_ALL = -1, /* memory of all devices together */
  TD_MEMORY_MAX_DEVICES = 8
};

/** Recount an iteration. Owner: the caller. */
TdMemoryProfile *td_memory_profile_new (const TdIteration *iteration);
/** The same of one device, or of TD_MEMORY_ALL. */
TdMemoryProfile *td_memory_profile_new_of (const TdIteration *iteration, gint device);
/** List the devices that the recording knows, the host last (a memory snapshot has none); 0:
 * there is only the host. */
guint td_memory_list_devices (const TdTapeIteration *tape,
                              guint devices[TD_MEMORY_MAX_DEVICES]);
/** Add what each device held when the iteration began, by category; of a device of the list. */
void td_memory_start_of (const TdTapeIteration *tape, gint device,
                         guint64 bytes[TD_TAPE_N_CATEGORIES]);
void td_memory_profile_free (TdMemoryProfile *profile);

/* Peaks over the iterations; categories are those at the peak. */
typedef struct
{
  guint n;
  gint64 first, last; /* iterations; columns are equally wide between them. last < first: the
                         count began anew, columns are equally many */
  gint64 *iteration;  /* that a column shows */
  guint64 *peak;
  guint64 *bytes[TD_TAPE_N_CATEGORIES]; /* at the peak */
  gboolean *known;                      /* categories known: profile kept and loaded */
  guint n_devices;                      /* besides each other; 0: only the host */
  guint device[TD_MEMORY_MAX_DEVICES];
  char *device_name[TD_MEMORY_MAX_DEVICES];
  guint64 *of_device[TD_MEMORY_MAX_DEVICES][TD_TAPE_N_CATEGORIES]; /* bytes, by device */
  guint64 *device_total[TD_MEMORY_MAX_DEVICES];
  guint64 outside[TD_MEMORY_MAX_DEVICES]; /* of the newest iteration that was loaded */
} TdMemoryHistory;

/**
 * Read the peaks of the iterations of a range, at most `max_columns` of them, spread evenly.
 * Loads one iteration for each distinct memory profile. Owner: the caller.
 */
TdMemoryHistory *td_memory_history_new (TdTapeReader *reader, TdRange range, guint max_columns);
void td_memory_history_free (TdMemoryHistory *history);

/**
 * Draw categories over events with the legend. `pool_bytes` (0: unknown) is drawn as a line;
 * `previous` (may be NULL) is the iteration before, dashed where this one has not been yet.
 */
TdScene *td_memory_scene_events (const TdIteration *iteration, const TdMemoryProfile *profile,
                                 const TdMemoryProfile *previous, guint64 pool_bytes,
                                 const TdPanelView *view);
/* Another total beside the areas, as a line. */
typedef struct
{
  const char *label;
  const guint64 *total; /* by step of the profile */
  TdRole role;
} TdMemoryLine;

/** Draw a profile of the iteration with other totals beside it; lines that are NULL are left
 * out. */
TdScene *td_memory_scene_lines (const TdIteration *iteration, const TdMemoryProfile *profile,
                                const TdMemoryLine *lines, guint n_lines,
                                const TdPanelView *view);
/** Draw peaks by category over iterations. */
TdScene *td_memory_scene_iterations (const TdMemoryHistory *history, const TdPanelView *view);

/** The table twin: one line per event. format: "text", "csv" or "json". */
void td_memory_events_print (const TdIteration *iteration, const TdMemoryProfile *profile,
                             const char *format, TdSink *sink);

/* A block that is alive at an event, for the Blocks page. */
typedef struct
{
  guint64 address, bytes, key;
  guint category, device;
  gint var; /* of the iteration; -1: none that is known */
} TdMemoryBlock;

/** List the blocks alive after `event`, by address. Owner: the caller, g_array_unref (). */
GArray *td_memory_blocks_at (const TdIteration *iteration, gint event);
/** Find the first of them that this address lies in; -1: none. */
gint td_memory_blocks_find (const GArray *blocks, guint64 address);
TdScene *td_memory_scene_blocks (const TdIteration *iteration, const TdPanelView *view);
/** The same, with those dimmed that were not allocated under a call (td-stack.h); 0: none is.
 */
TdScene *td_memory_scene_blocks_under (const TdIteration *iteration, const TdPanelView *view,
                                       guint32 call);
/** Print them, "text", "csv" or "json"; where `key` is not 0 that one alone, with what is known
 * of it and its whole stack. FALSE: none has the key. */
gboolean td_memory_blocks_print (const TdIteration *iteration, gint event, guint64 key,
                                 const char *format, TdSink *sink);

G_END_DECLS
