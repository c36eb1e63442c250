/* Graphs of the fake driver: what it notes, and in what order it runs them.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-cuda/fake-kernels.h"

#include "td-test.h"

#include <string.h>

static CUstream a, b;
static CUevent event;
static char *pinned;
static CUdeviceptr memory;

enum
{
  BYTES = 1 << 20
};

/* --- a kernel --- */

typedef struct
{
  unsigned char *at;
  int add;
} AddParams;

static void
run_add (const FakeKernel *kernel, const unsigned grid[3], unsigned block, size_t shared_bytes,
         const void *params)
{
  const AddParams *p = params;

  *p->at = (unsigned char)(*p->at * 2 + p->add);
}

static const FakeKernel add_kernel
    = { .name = "add", .params_bytes = sizeof (AddParams), .run = run_add };

const FakeKernel *
fake_kernel_find (const char *name)
{
  return strcmp (name, "add") == 0 ? &add_kernel : NULL;
}

static CUresult
launch_add (CUstream stream, size_t at, int n)
{
  AddParams params = { (unsigned char *)(uintptr_t)(memory + at), n };
  void *values[] = { &params };

  fake_note_use (stream, memory + at, 1, true);
  return cuLaunchKernel ((CUfunction)(uintptr_t)&add_kernel, 1, 1, 1, 1, 1, 1, 0, stream,
                         values, NULL);
}

static int
setup (void **state)
{
  CUcontext context;
  void *host;

  fake_cuda_control ()->reset ();
  assert_null (td_cuda_api_open ());
  assert_int_equal (cuDevicePrimaryCtxRetain (&context, 0), CUDA_SUCCESS);
  assert_int_equal (cuCtxSetCurrent (context), CUDA_SUCCESS);
  assert_int_equal (cuStreamCreate (&a, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  assert_int_equal (cuStreamCreate (&b, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  assert_int_equal (cuEventCreate (&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  assert_int_equal (cuMemAllocHost (&host, BYTES), CUDA_SUCCESS);
  assert_int_equal (cuMemAlloc (&memory, BYTES), CUDA_SUCCESS);
  pinned = host;
  assert_int_equal (launch_add (a, 0, 1), CUDA_SUCCESS); /* it is loaded */
  cuMemsetD8Async (memory, 0, 4096, a);
  cuStreamSynchronize (a);
  return 0;
}

static int
teardown (void **state)
{
  cuCtxSynchronize ();
  if (memory != 0)
    cuMemFree (memory);
  cuMemFreeHost (pinned);
  cuEventDestroy (event);
  cuStreamDestroy (a);
  cuStreamDestroy (b);
  fake_cuda_control ()->reset ();
  return 0;
}

static void
assert_violation (const char *text)
{
  if (fake.n_violations == 0)
    fail_msg ("nothing was noted; expected: %s", text);
  assert_contains (fake.violation, text);
}

/* The number there, once all is done. */
static int
byte_at (size_t at)
{
  cuStreamSynchronize (a);
  cuMemcpyDtoHAsync (pinned, memory + at, 1, a);
  cuStreamSynchronize (a);
  return (unsigned char)pinned[0];
}

static CUgraphExec
graph_of_add (int n, CUgraphNode *node, CUgraph *graph)
{
  CUstreamCaptureStatus status;
  const CUgraphNode *nodes;
  const CUgraphEdgeData *edges;
  size_t n_nodes;
  CUgraphExec exec;

  assert_int_equal (cuStreamBeginCapture (a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                    CUDA_SUCCESS);
  assert_int_equal (launch_add (a, 0, n), CUDA_SUCCESS);
  assert_int_equal (cuStreamGetCaptureInfo (a, &status, NULL, NULL, &nodes, NULL, &n_nodes),
                    CUDA_ERROR_LOSSY_QUERY);
  assert_int_equal (cuStreamGetCaptureInfo (a, &status, NULL, NULL, &nodes, &edges, &n_nodes),
                    CUDA_SUCCESS);
  assert_int_equal (status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  assert_int_equal (n_nodes, 1);
  *node = nodes[0];
  assert_int_equal (cuStreamEndCapture (a, graph), CUDA_SUCCESS);
  assert_int_equal (cuGraphInstantiate (&exec, *graph, 0), CUDA_SUCCESS);
  return exec;
}

static void
fake__changes_a_node_for_later_launches_only (void **state)
{
  AddParams params = { (unsigned char *)(uintptr_t)memory, 5 };
  void *values[] = { &params };
  CUDA_KERNEL_NODE_PARAMS p = { .kern = (CUkernel)(uintptr_t)&add_kernel,
                                .gridDimX = 1,
                                .gridDimY = 1,
                                .gridDimZ = 1,
                                .blockDimX = 1,
                                .blockDimY = 1,
                                .blockDimZ = 1,
                                .kernelParams = values };
  CUgraphNode node;
  CUgraph graph;
  CUgraphExec exec = graph_of_add (1, &node, &graph);

  assert_int_equal (cuGraphLaunch (exec, a), CUDA_SUCCESS); /* waits, with 1 */
  fake_note_use (a, memory, 1, true);
  assert_int_equal (cuGraphExecKernelNodeSetParams (exec, node, &p), CUDA_SUCCESS);
  assert_int_equal (cuGraphLaunch (exec, a), CUDA_SUCCESS);
  assert_int_equal (byte_at (0), (0 * 2 + 1) * 2 + 5);
  assert_int_equal (fake.n_graph_changes[0], 1);
  assert_int_equal (cuGraphExecKernelNodeSetParams (exec, (CUgraphNode)(uintptr_t)&p, &p),
                    CUDA_ERROR_INVALID_VALUE);
  cuGraphExecDestroy (exec);
  cuGraphDestroy (graph);
  assert_int_equal (fake.n_violations, 0);
}

static void
assert_launch (unsigned x, unsigned y, unsigned z, unsigned shared_bytes, CUresult expected)
{
  AddParams params = { (unsigned char *)(uintptr_t)memory, 1 };
  void *values[] = { &params };

  fake.n_violations = 0;
  assert_int_equal (cuLaunchKernel ((CUfunction)(uintptr_t)&add_kernel, x, y, z, 32, 1, 1,
                                    shared_bytes, a, values, NULL),
                    expected);
  assert_int_equal (fake.n_violations, expected == CUDA_SUCCESS ? 0 : 1);
}

static void
fake__takes_no_launch_beyond_the_limits_of_a_device (void **state)
{
  CUkernel kernel = (CUkernel)(uintptr_t)&add_kernel;

  assert_launch (2147483647, 1, 1, 0, CUDA_SUCCESS);
  assert_launch (1, 65535, 65535, 48 << 10, CUDA_SUCCESS);
  assert_launch (2147483648u, 1, 1, 0, CUDA_ERROR_INVALID_VALUE);
  assert_launch (1, 65536, 1, 0, CUDA_ERROR_INVALID_VALUE);
  assert_launch (1, 1, 65536, 0, CUDA_ERROR_INVALID_VALUE);
  assert_launch (1, 1, 1, 100 << 10, CUDA_ERROR_INVALID_VALUE);
  assert_int_equal (cuKernelSetAttribute (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          100 << 10, kernel, 0),
                    CUDA_SUCCESS);
  assert_launch (1, 1, 1, 100 << 10, CUDA_SUCCESS);
  fake.n_violations = 0;
}

static void
fake__sees_the_launch_of_a_destroyed_graph (void **state)
{
  CUgraphNode node;
  CUgraph graph;
  CUgraphExec exec = graph_of_add (1, &node, &graph);

  assert_int_equal (fake.n_graphs, 1);
  cuGraphDestroy (graph);
  cuGraphLaunch (exec, a);
  cuGraphExecDestroy (exec); /* while it waits: that is allowed */
  assert_int_equal (fake.n_graphs, 0);
  assert_int_equal (byte_at (0), 1);
  assert_int_equal (fake.n_violations, 0);
  assert_int_equal (cuGraphLaunch (exec, a), CUDA_ERROR_INVALID_HANDLE);
  assert_violation ("cuGraphLaunch of a graph that was destroyed");
}

static void
fake__sees_a_graph_whose_memory_was_given_back (void **state)
{
  CUgraphNode node;
  CUgraph graph;
  CUgraphExec exec = graph_of_add (1, &node, &graph);

  cuGraphDestroy (graph);
  cuMemFree (memory);
  assert_int_equal (fake.n_violations, 0);
  cuGraphLaunch (exec, a);
  assert_violation ("cuGraphLaunch uses 1 bytes that are not all there");
  cuStreamSynchronize (a);
  cuGraphExecDestroy (exec);
  memory = 0;
}

static void
fake__allocates_during_a_capture_only_where_that_is_known (void **state)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUdeviceptr more;
  CUgraph graph;

  cuStreamBeginCapture (a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  assert_int_equal (cuMemAlloc (&more, 100), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  assert_violation ("cuMemAlloc while a stream is captured");
  fake.n_violations = 0;
  cuThreadExchangeStreamCaptureMode (&mode);
  assert_int_equal (cuMemAlloc (&more, 100), CUDA_SUCCESS);
  cuThreadExchangeStreamCaptureMode (&mode);
  assert_int_equal (mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  assert_int_equal (cuStreamEndCapture (a, &graph), CUDA_SUCCESS);
  cuGraphDestroy (graph);
  assert_int_equal (cuMemFree (more), CUDA_SUCCESS);
  assert_int_equal (fake.n_violations, 0);
}

static void
fake__loads_a_kernel_during_a_capture_only_where_that_is_known (void **state)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUgraph graph;

  fake_kernels_unload ();
  cuStreamBeginCapture (a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  assert_int_equal (launch_add (a, 0, 1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  assert_violation ("the first launch of add while a stream is captured");
  fake.n_violations = 0;
  cuThreadExchangeStreamCaptureMode (&mode);
  assert_int_equal (launch_add (a, 0, 1), CUDA_SUCCESS);
  cuThreadExchangeStreamCaptureMode (&mode);
  assert_int_equal (launch_add (a, 0, 1), CUDA_SUCCESS); /* it is there now */
  assert_int_equal (cuStreamEndCapture (a, &graph), CUDA_SUCCESS);
  cuGraphDestroy (graph);
  assert_int_equal (fake.n_violations, 0);
}

static void
assert_refused (CUresult result, const char *function)
{
  assert_int_equal (result, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  assert_violation (function);
  fake.n_violations = 0;
}

static void
fake__asks_and_waits_during_a_capture_only_where_that_is_known (void **state)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUlibrary library;
  CUgraph graph;

  cuEventRecord (event, a);
  cuStreamBeginCapture (a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  assert_refused (cuEventQuery (event), "cuEventQuery while");
  assert_refused (cuEventSynchronize (event), "cuEventSynchronize while");
  assert_refused (cuStreamSynchronize (b), "cuStreamSynchronize while");
  assert_refused (cuMemFree (memory), "cuMemFree while");
  assert_refused (cuMemFreeHost (pinned), "cuMemFreeHost while");
  assert_refused (cuLibraryLoadData (&library, "", NULL, NULL, 0, NULL, NULL, 0),
                  "cuLibraryLoadData while");
  cuThreadExchangeStreamCaptureMode (&mode);
  assert_int_equal (cuEventQuery (event), CUDA_ERROR_NOT_READY);
  assert_int_equal (cuEventSynchronize (event), CUDA_SUCCESS);
  assert_int_equal (cuEventQuery (event), CUDA_SUCCESS);
  assert_int_equal (cuStreamSynchronize (b), CUDA_SUCCESS);
  assert_int_equal (fake.n_violations, 0);
  assert_refused (cuStreamSynchronize (a), "cuStreamSynchronize while");
  assert_refused (cuCtxSynchronize (), "cuCtxSynchronize while");
  cuThreadExchangeStreamCaptureMode (&mode);
  assert_int_equal (cuStreamEndCapture (a, &graph), CUDA_SUCCESS);
  cuGraphDestroy (graph);
}

/* Stream b is captured by waiting for an event of a; whether a waits for b again is the test's.
 */
static CUresult
capture_two (bool join, size_t at_b, CUgraph *graph)
{
  cuStreamBeginCapture (a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  launch_add (a, 0, 1);
  cuEventRecord (event, a);
  assert_int_equal (cuStreamWaitEvent (b, event, 0), CUDA_SUCCESS);
  assert_int_equal (cuEventQuery (event), CUDA_ERROR_CAPTURED_EVENT);
  launch_add (b, at_b, 3);
  launch_add (a, 0, 7);
  if (join)
    {
      cuEventRecord (event, b);
      assert_int_equal (cuStreamWaitEvent (a, event, 0), CUDA_SUCCESS);
    }
  return cuStreamEndCapture (a, graph);
}

static void
fake__refuses_a_capture_that_is_not_joined (void **state)
{
  CUgraph graph;

  assert_int_equal (capture_two (false, 256, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  assert_null (graph);
  assert_int_equal (launch_add (b, 256, 1), CUDA_SUCCESS); /* captured no more */
  cuStreamSynchronize (b);
  assert_int_equal (byte_at (256), 1);
}

static void
fake__captures_two_streams_that_are_joined (void **state)
{
  CUgraph graph;
  CUgraphExec exec;

  assert_int_equal (capture_two (true, 256, &graph), CUDA_SUCCESS);
  assert_int_equal (cuGraphInstantiate (&exec, graph, 0), CUDA_SUCCESS);
  for (int i = 0; i < 20; i++)
    {
      cuMemsetD8Async (memory, 0, 4096, a);
      cuGraphLaunch (exec, a);
      assert_int_equal (byte_at (0), 1 * 2 + 7);
      assert_int_equal (byte_at (256), 3);
    }
  cuGraphExecDestroy (exec);
  cuGraphDestroy (graph);
  assert_int_equal (fake.n_violations, 0);
}

static void
fake__sees_nodes_that_use_the_same_bytes_in_no_order (void **state)
{
  CUgraph graph;

  assert_int_equal (capture_two (true, 0, &graph), CUDA_SUCCESS);
  assert_violation ("use the same bytes, and none follows the other");
  cuGraphDestroy (graph);
}

static void
fake__sees_a_capture_that_waits_for_what_is_outside (void **state)
{
  CUgraph graph;

  launch_add (b, 256, 1);
  cuEventRecord (event, b);
  cuStreamBeginCapture (a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  assert_int_equal (cuStreamWaitEvent (a, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  assert_violation ("waits for what is not captured with it");
  cuStreamEndCapture (a, &graph);
  cuGraphDestroy (graph);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (fake__changes_a_node_for_later_launches_only),
    row (fake__sees_the_launch_of_a_destroyed_graph),
    row (fake__sees_a_graph_whose_memory_was_given_back),
    row (fake__allocates_during_a_capture_only_where_that_is_known),
    row (fake__loads_a_kernel_during_a_capture_only_where_that_is_known),
    row (fake__asks_and_waits_during_a_capture_only_where_that_is_known),
    row (fake__takes_no_launch_beyond_the_limits_of_a_device),
    row (fake__refuses_a_capture_that_is_not_joined),
    row (fake__captures_two_streams_that_are_joined),
    row (fake__sees_nodes_that_use_the_same_bytes_in_no_order),
    row (fake__sees_a_capture_that_waits_for_what_is_outside),
  };

  return cmocka_run_group_tests_name ("fake-graphs", tests, NULL, NULL);
}
