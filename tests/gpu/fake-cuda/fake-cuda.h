/* A CUDA driver for tests: host memory behind addresses that the host cannot touch, streams
 * that run late and out of order as far as events allow, graphs that run in any order
 * of their dependencies.
 *
 * It notes what a real driver would let pass or fault on much later: work that uses memory that
 * is not there, two streams that use the same bytes with no event between them, waiting while a
 * stream is captured, copies out of bounds, copies from memory that is not pinned, graphs that
 * are launched after they were destroyed, nodes of a graph that use the same bytes in no
 * order; and of exchanges between processes what fake-nccl.c says.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a test sees of the driver; of the module that has it, by dlsym. */
typedef struct FakeCuda
{
  long n_waits;          /**< times that the host waited for a stream or an event */
  long n_launches;       /**< kernels, and what stands for them */
  long n_stats;          /**< of those, statistics of many arrays */
  long n_stats_of;       /**< arrays that those were of; by our own kernels, as the next two */
  long n_stats_read;     /**< blocks that read some of an array for that */
  long n_counting;       /**< kernels that count what they write */
  long n_compiled;       /**< kernels of our files that were compiled at run time */
  long n_counting_fused; /**< of those, kernels made at run time */
  long n_updates;        /**< of those, updates of many parameters */
  long n_copies[3];      /**< to the device, to the host, within it */
  long copied_bytes[3];
  long n_products;      /**< by the matrix library */
  long n_rnn;           /**< calls of recurrent layers */
  long n_exchanges;     /**< with other processes, by NCCL */
  long exchanged_bytes; /**< that this one gave */
  long n_graph_launches;
  long n_captures;
  long n_graph_changes[2]; /**< nodes by themselves, graphs as a whole */
  long n_graphs;           /**< that can be launched, now */
  long n_pending;          /**< commands that no stream has run yet */
  long n_violations;
  char violation[200];  /**< the first one */
  size_t total_bytes;   /**< memory of the device; a test may change it while none is used */
  size_t used_bytes;    /**< of it, what is mapped or allocated */
  size_t outside_bytes; /**< used by others */
  int driver_version;
  int n_devices;
  int capability;      /**< 90: compute capability 9.0 */
  bool no_vmm;         /**< the device maps no pages */
  size_t advised;      /**< granularity of pages; 0: the least */
  bool no_nvrtc;       /**< it is not here */
  bool no_compiling;   /**< it is, and fails */
  bool relu_loses_nan; /**< the matrix library's is the larger of the two that is a number */
  long miscount;       /**< added to the numbers of every exchange: what a program would be that
                          counts wrongly */
  char ignored[40]; /**< a function of streams, or a group's of NCCL, that says that all is well
                       and does nothing: what a program would be that forgot the call */
} FakeCuda;

typedef struct FakeCudaControl
{
  FakeCuda *state;
  /** All counters and settings as at the beginning; no device may be open. */
  void (*reset) (void);
  /** The n-th next call of this function (1: the next) returns the code. */
  void (*fail_call) (const char *function, int n, int code);
  /** Say whether the host may touch this address now. */
  bool (*host_can_touch) (const void *address);
} FakeCudaControl;

__attribute__ ((visibility ("default"))) const FakeCudaControl *fake_cuda_control (void);
typedef const FakeCudaControl *(*FakeCudaControlEntry) (void);
