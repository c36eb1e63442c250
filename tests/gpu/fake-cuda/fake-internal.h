/* Between the parts of the fake driver: memory, streams, and what stands for kernels.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "fake-cuda.h"

#include "api.h"

extern FakeCuda fake;

/** Note what should not have happened; the first text is kept. */
void fake_violation (const char *format, ...) __attribute__ ((format (printf, 1, 2)));

/** Count a call of the function; CUDA_SUCCESS, or what it is to return. */
CUresult fake_enter (const char *function);
/** Set by a fault that a context does not survive; CUDA_SUCCESS: none. */
extern CUresult fake_sticky;

/** In place of td_cuda_library, by the linker. */
void *__wrap_td_cuda_library (const char *name);
/** The context is gone, and all code with it. */
void fake_kernels_unload (void);

/* memory */
bool fake_is_mapped (CUdeviceptr address, size_t bytes);
/** Let the host reach the device's memory, while kernels run; and take that away. */
void fake_memory_open (void);
void fake_memory_close (void);
bool fake_is_pinned (const void *host, size_t bytes);
/** Pinned memory and what cuMemAlloc gave go; mapped pages stay. */
void fake_memory_end_context (void);
void fake_memory_reset (void);

/* tracing (fake-cupti.c): the operation that is begun now, and that a command of one ran */
uint64_t fake_cupti_id (void);
void fake_cupti_ran (uint64_t id, bool is_kernel);

/* streams */
typedef struct FakeUse
{
  CUdeviceptr address;
  size_t bytes;
  bool writes;
} FakeUse;

typedef struct FakeCommand FakeCommand;
struct FakeCommand
{
  FakeCommand *next;
  int refs; /* of its stream, of graphs */
  const char *name;
  /** Do it; may be called again where a graph holds it.  NULL: nothing to do. */
  void (*run) (FakeCommand *command);
  void (*free) (FakeCommand *command); /**< what hangs on it; may be NULL */
  /** Can it go on?  Not where it waits for another process; NULL: it waits for none. */
  bool (*ready) (FakeCommand *command);
  bool early; /* it gives something to others: see give_early */
  FakeUse *uses;
  int n_uses;
  void *data, *to;
  const void *from;
  size_t bytes;
  unsigned char value;
  struct FakeEvent *records, *waits;
  uint64_t version; /**< of the event */
  uint64_t traced;  /**< the operation that it belongs to; 0: none */
};

enum
{
  FAKE_DEVICES = 8,  /* at most */
  FAKE_STREAMS = 16, /* 0 stands for the host */
  FAKE_TAILS = 8     /* that a node can follow directly */
};
typedef struct FakeClock
{
  uint64_t at[FAKE_STREAMS];
} FakeClock;

struct CUstream_st
{
  int number;
  FakeClock clock;
  FakeCommand *first, *last;
  struct CUgraph_st *captured; /* what commands go to instead */
  bool origin;                 /* the capture was begun here */
  int tails[FAKE_TAILS];       /* nodes that the next one follows */
  int n_tails;
  int n_grouped; /* exchanges of a group that has no end yet */
};

typedef struct FakeEvent
{
  FakeClock clock;
  uint64_t recorded, reached; /* versions */
  CUstream stream;
  bool untimed;
  uint64_t capture; /* recorded in this one, after these nodes; 0: in none */
  int tails[FAKE_TAILS];
  int n_tails;
} FakeEvent;

FakeCommand *fake_command (const char *name, void (*run) (FakeCommand *command));
void fake_command_use (FakeCommand *command, CUdeviceptr address, size_t bytes, bool writes);
/** Put it last on the stream, or into the graph that is captured from it.  *Owner*: the stream.
 */
CUresult fake_enqueue (CUstream stream, FakeCommand *command);
/** What was noted since the last launch becomes the command's. */
void fake_command_take_uses (FakeCommand *command);
/** Save the uses that were noted for another launch than the next; and restore them. */
void fake_uses_save (void);
void fake_uses_restore (void);
void fake_note_use (CUstream stream, CUdeviceptr address, size_t bytes, bool writes);
/** Whether work that waits uses these bytes. */
bool fake_is_in_use (CUdeviceptr address, size_t bytes);
void fake_drain_all (void);
/** Run what must run before an event is reached. */
void fake_drain_to (const FakeEvent *event);
/** Is this function to do nothing (FakeCuda.ignored)? */
bool fake_ignores (const char *function);
/** The device of this thread's context. */
int fake_device (void);
/** What is to be reset besides; NULL: nothing. */
extern void (*fake_reset_more) (void);
void fake_command_unref (FakeCommand *command);
/** Do what it does, if its memory is there. */
void fake_run_now (FakeCommand *command);
/** The i-th stream, used or not; NULL: there are not so many. */
CUstream fake_stream (int i);
void fake_streams_reset (void);

/* graphs */
/** True while a stream is captured: what waits is then an error. */
bool fake_is_capturing (void);
/** What allocates, loads code or asks for an event too, unless the thread has said that it
 * knows: then this is noted. */
bool fake_forbids (const char *function);
CUresult fake_graph_add (CUstream stream, FakeCommand *command);
void fake_graph_mark (CUstream stream, FakeEvent *event);
CUresult fake_graph_join (CUstream stream, FakeEvent *event);
/** Put a command of the same name in a node's place, for the launches that follow.  *Owner*: it
 * takes the command. */
CUresult fake_graph_change (CUgraphExec exec, CUgraphNode node, FakeCommand *command);
void fake_graphs_reset (void);
