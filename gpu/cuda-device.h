/* One GPU as the module sees it: its context, its streams, the staging memory that copies go
 * through, and what all parts of the module share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "api.h"
#include "device.h"
#include "kernels.h"

enum
{
  TD_CUDA_STAGES = 4,
  TD_CUDA_HOST_COPIES = 16,
  TD_CUDA_SCRATCH = 8,
  TD_CUDA_MARKS = 8,
  TD_CUDA_FENCES = 16,
  TD_CUDA_UPDATES = 128, /* of one launch: no fewer than TD_UPDATE_MANY */
  TD_CUDA_UPDATE_ARRAYS = 5
};
#define TD_CUDA_STAGE_BYTES ((size_t)4 << 20)

/** A piece of pinned host memory on its way to or from the device. */
typedef struct TdCudaStage
{
  char *host;
  CUevent done; /**< after the last copy of it that was issued */
  bool busy;
} TdCudaStage;

/** A small array as it was sent; valid till something writes there. */
typedef struct TdCudaHostCopy
{
  CUdeviceptr address;
  size_t bytes;
  char *host; /**< NULL: none */
} TdCudaHostCopy;

/** Pinned memory that uploads on one stream go through. */
typedef struct TdCudaStages
{
  CUstream stream;
  TdCudaStage stage[TD_CUDA_STAGES];
  int at;      /**< that is being filled */
  size_t used; /**< bytes of it */
} TdCudaStages;

/** Where a single number was written last, and when; valid till something writes there. */
typedef struct TdCudaMark
{
  CUdeviceptr address; /**< 0: none */
  CUevent event;
  bool waits; /**< for the launch that writes it */
} TdCudaMark;

struct TdCudaVmm;
struct TdCudaBlas;
struct TdCudnn;
struct TdCudaUpdates;
struct TdCudaStatsAsync;
struct TdCudaFusedStats;
struct TdCudaTiming;
struct TdCudaIndexAsync;

typedef struct TdCuda
{
  TdDevice device;
  TdDeviceOps ops; /**< td_cuda_ops with the provider that works here */
  CUdevice handle;
  CUcontext context;
  CUstream stream;         /**< all computing is on this one */
  CUstream uploads;        /**< copies to memory that no work uses */
  CUstream downloads;      /**< copies to the host */
  TdCudaStages up, up_new; /**< on stream, on uploads: made for the first of these */
  TdCudaStage down[2];
  size_t pinned_bytes; /**< of the host, by td_cuda_pin */
  CUevent computed;    /**< what a download waits for where there is no mark */
  CUevent ahead;       /**< after the last upload of what is computed with later; or NULL */
  bool ahead_reads;    /**< it may not have passed */
  CUevent before;      /**< a capture: all that was issued; NULL till the first one */
  TdCudaMark marks[TD_CUDA_MARKS];
  int next_mark;
  bool marks_wait;                /**< some of them, for a launch */
  CUevent fences[TD_CUDA_FENCES]; /**< that are not in use */
  int n_fences;
  int major, minor; /**< compute capability */
  TdCudaLauncher launcher;
  TdStatus lost; /**< a fault that the context does not survive; TD_ERR_STATE: what is captured
                    can be no graph */
  struct TdCudaCapture *capture; /**< NULL: launches run */
  struct TdRepeat *repeat;       /**< launches that come again are noted there; or NULL */
  TdCudaHostCopy host_copies[TD_CUDA_HOST_COPIES];
  int next_host_copy;
  struct TdCudaVmm *vmm;
  struct TdCudaBlas *blas;                  /**< NULL till the first product */
  struct TdCudnn *cudnn;                    /**< NULL till the first convolution */
  struct TdBlock *scratch[TD_CUDA_SCRATCH]; /**< what the kernels of this call share */
  int n_scratch;
  struct TdCudaUpdates *updates;        /**< NULL till there are some */
  struct TdCudaStatsAsync *stats;       /**< NULL till they are asked for */
  bool no_stats;                        /**< they cannot be had here */
  struct TdCudaFusedStats *fused_stats; /**< comes and goes with stats */
  struct TdCudaTiming *timing;          /**< NULL till an operation is timed */
  struct TdCudaIndexAsync *indices;     /**< NULL till some are checked without waiting */
  bool no_indices;                      /**< that cannot be had here */
  CUdeviceptr own_room; /**< workspace that is none of the pool's, for recording */
  size_t own_room_bytes;
  bool in_own_room;                 /**< launches take their workspace from there */
  struct TdTeamMark *team_marks;    /**< that are not in use */
  struct TdTeamMark *last_exchange; /**< of any team; NULL: there was none */
  char model[64];                   /**< device.model */
} TdCuda;

/** The engine's side; set before any device is opened. */
extern const TdModuleHost *td_cuda_host;

/** Take pinned memory of the host, or give it back; its bytes are counted. */
CUresult td_cuda_pin (TdCuda *c, void **host, size_t bytes);
void td_cuda_unpin (TdCuda *c, void *host, size_t bytes);
/** The slot pinned_bytes. */
size_t td_cuda_pinned_bytes (TdDevice *d);

/** Those that are open, by number. */
extern TdCuda *td_cuda_devices[TD_MAX_DEVICES];

/** The vtable; its provider is only a proposal. */
const TdDeviceOps *td_cuda_slots (void);

extern const TdSegmentProvider td_cuda_vmm_provider, td_cuda_malloc_provider;

/** Make the device's context the thread's, where another is. */
TdCuda *td_cuda_thread (TdDevice *d);
/** The same, to issue work or to wait: updates and launches that were noted are sent. */
TdCuda *td_cuda_enter (TdDevice *d);
/** The same, only to launch kernels of ours: launches may stay noted. */
TdCuda *td_cuda_enter_launch (TdDevice *d);

/** Turn what a function of CUDA returned into a status.
 * *Errors*: TD_ERR_MEMORY, TD_ERR_DEVICE after fail, with CUDA's name for it. */
TdStatus td_cuda_check (TdCuda *c, CUresult result, const char *what);

/** Take memory for this call of a slot; the work that uses it goes to the stream before
 * td_cuda_scratch_end.  *Errors*: NULL after fail. */
void *td_cuda_scratch (TdCuda *c, size_t bytes);
void td_cuda_scratch_end (TdCuda *c);

/* launches (launch.c) */
/** What kernels.h launches through, on the compute stream of c. */
void td_cuda_launcher_init (TdCuda *c);
/** Say what the next launch reads and writes; NULL or 0 is nothing.  Updates that wait go out
 * before it, and what the host knew of arrays that are written is forgotten. */
void td_cuda_reads (TdCuda *c, const TdTensor *tensors, int n);
void td_cuda_writes (TdCuda *c, const TdTensor *tensors, int n);
/** Room for one more item behind n, of what is kept of launches; it grows at powers of two.
 * *Owner*: free.  *Errors*: NULL, and the items are as they were. */
void *td_cuda_room_for (void *items, uint32_t n, size_t bytes);

/* channels-last convolutions where no library has them (layout.c) */
TdStatus td_cuda_conv_reordered (TdCuda *c, TdConvKind kind, const TdConv *attrs,
                                 const TdTensor *in, int n_in, TdTensor *out);

/** Let slots that refuse halves compute in floats (halves.c). */
void td_cuda_halves_begin (TdDeviceOps *ops);

/* updates of many parameters by few launches (updates.c) */
/** The slot update.  It is launched when something else is entered, or another rule comes. */
TdStatus td_cuda_updates_add (TdDevice *d, TdUpdateKind kind, const TdUpdate *u,
                              TdTensor *const *arrays, int n);
/** The slot updates_end. */
void td_cuda_updates_end (TdDevice *d);
/** Launch those that wait; nothing when there are none. */
void td_cuda_updates_send (TdCuda *c);
void td_cuda_updates_close (TdCuda *c);

/** The marks of teams, when none is in use any more. (nccl.c) */
void td_cuda_team_marks_close (TdCuda *c);

/* graphs (graph.c) */
extern const TdDeviceGraphs td_cuda_graphs;
/** While launches are captured: they can be no graph, for this reason; nothing more is
 * captured. Returns false otherwise. */
bool td_cuda_refuses (TdCuda *c, const char *why);
/** Exchange how strict the driver is with this thread while launches are captured, and not
 * else: *mode is CU_STREAM_CAPTURE_MODE_RELAXED before what may allocate, load code, or ask for
 * events of before the capture, and what was there before after it. */
static inline void
td_cuda_exchange_mode (const TdCuda *c, CUstreamCaptureMode *mode)
{
  if (c->capture != NULL)
    td_cuda.cuThreadExchangeStreamCaptureMode (mode);
}
/** Wait for all that was issued to the compute stream; what is captured is no part of that. */
CUresult td_cuda_wait_issued (TdCuda *c);
/** A launch of one of our kernels, while launches are captured. */
CUresult td_cuda_graph_kernel (TdCuda *c, TdCudaKernel *kernel, const unsigned grid[3],
                               unsigned block, size_t shared_bytes, void **values);

/** Give launch k of a graph, a kernel of ours, other numbers.  False: that cannot be. */
bool td_cuda_graph_set (TdCuda *c, TdGraph *g, uint32_t k, const TdCudaKernel *kernel,
                        const unsigned grid[3], unsigned block, size_t shared_bytes,
                        void *params);
/** Launch it, after what it writes was announced. */
TdStatus td_cuda_graph_go (TdCuda *c, TdGraph *g);

/* launches that come again (repeat.c) */
/** The slots of TdDeviceGraphs. */
bool td_cuda_repeat_begin (TdDevice *d, TdRepeat **repeat);
TdStatus td_cuda_repeat_end (TdDevice *d);
void td_cuda_repeat_free (TdDevice *d, TdRepeat *repeat);
/** Launch a kernel while launches are noted. */
TdStatus td_cuda_repeat_launch (TdCuda *c, TdCudaKernel *kernel, const unsigned grid[3],
                                unsigned block, size_t shared_bytes, const void *params);
/** Something else comes: what was noted is sent. */
void td_cuda_repeat_interrupt (TdCuda *c);
/** The same, and till the end nothing more is noted: each launch is looked at by itself. */
void td_cuda_repeat_leave (TdCuda *c);

/* programs of element-by-element kernels as one kernel (programs.c) */
void *td_cuda_program_new (TdDevice *d, const TdProgram *program);
void td_cuda_program_free (TdDevice *d, void *program);
TdStatus td_cuda_program_run (TdDevice *d, void *program, const TdTensor *operands,
                              const bool *adds, const TdRngKey *keys);

/* what the host knows of the device's arrays (host-copies.c) */
void td_cuda_host_copies_keep (TdCuda *c, const void *address, const void *host, size_t bytes);
void td_cuda_host_copies_written (TdCuda *c, const void *address, size_t bytes);
void td_cuda_host_copies_close (TdCuda *c);
/** The same for statistics that are still to be made (stats-async.c). */
void td_cuda_stats_written (TdCuda *c, const void *address, size_t bytes);
/** Does the host know this array's numbers? */
bool td_cuda_host_copies_have (const TdCuda *c, const TdTensor *index);
/** The slot check_index, where the host knows the indices; false: it does not. */
bool td_cuda_host_copies_check_index (TdCuda *c, const TdTensor *index, int64_t limit,
                                      int64_t ignore, int64_t *bad_place, int64_t *bad_value,
                                      TdStatus *status);

/* what a read of one number waits for (marks.c) */
/** The kernel that is launched next writes here. */
void td_cuda_marks_wanted (TdCuda *c, const void *address);
/** It has been launched. */
void td_cuda_marks_made (TdCuda *c);
/** Something writes there, or may have. */
void td_cuda_marks_written (TdCuda *c, const void *address, size_t bytes);
void td_cuda_marks_forget (TdCuda *c);
void td_cuda_marks_close (TdCuda *c);
/** After what is there was written; NULL: not known. */
CUevent td_cuda_marks_find (const TdCuda *c, const void *address, size_t bytes);

/* memory (transfer.c) */
TdStatus td_cuda_upload (TdDevice *d, void *dst, const void *host, size_t bytes);
TdStatus td_cuda_upload_new (TdDevice *d, void *dst, const void *host, size_t bytes);
extern const TdDeviceAhead td_cuda_ahead;
extern const TdDeviceScaling td_cuda_scaling; /* scaling.c */
TdStatus td_cuda_download (TdDevice *d, void *host, const void *src, size_t bytes);
TdStatus td_cuda_copy (TdDevice *d, void *dst, const void *src, size_t bytes);
TdStatus td_cuda_zero (TdDevice *d, void *dst, size_t bytes);
void td_cuda_synchronize (TdDevice *d);
/** Pinned memory and events for copies.  *Errors*: false after fail. */
bool td_cuda_stages_open (TdCuda *c);
void td_cuda_stages_close (TdCuda *c);

/* providers (memory.c) */
/** False where TAPEDECK_CUDA_ALLOCATOR says cuda_malloc. */
bool td_cuda_vmm_wanted (void);
/** Address space for the device's memory; false: not here, take cuda_malloc. */
bool td_cuda_vmm_open (TdCuda *c);
void td_cuda_vmm_close (TdCuda *c);
/** The events that fences are made of, after the pool is gone. */
void td_cuda_fences_close (TdCuda *c);
