/* The fake driver notes what it is there to note, and nothing else.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-cuda/fake-kernels.h"

#include "td-test.h"

#include <pthread.h>
#include <string.h>

static CUstream a, b;
static CUevent event;
static char *pinned;
static CUdeviceptr memory;

enum
{
  BYTES = 1 << 20
};

const FakeKernel *
fake_kernel_find (const char *name)
{
  return NULL;
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
  memset (pinned, 7, BYTES);
  return 0;
}

static int
teardown (void **state)
{
  cuCtxSynchronize ();
  cuMemFree (memory);
  cuMemFreeHost (pinned);
  cuEventDestroy (event);
  cuStreamDestroy (a);
  cuStreamDestroy (b);
  return 0;
}

static void
assert_violation (const char *text)
{
  if (fake.n_violations == 0)
    fail_msg ("nothing was noted; expected: %s", text);
  assert_contains (fake.violation, text);
}

static void
fake__accepts_ordered_work (void **state)
{
  assert_int_equal (cuMemcpyHtoDAsync (memory, pinned, BYTES, a), CUDA_SUCCESS);
  assert_int_equal (cuEventRecord (event, a), CUDA_SUCCESS);
  assert_int_equal (cuStreamWaitEvent (b, event, 0), CUDA_SUCCESS);
  assert_int_equal (cuMemsetD8Async (memory, 1, 100, b), CUDA_SUCCESS);
  assert_int_equal (cuStreamSynchronize (b), CUDA_SUCCESS);
  assert_int_equal (cuMemsetD8Async (memory, 2, 100, a), CUDA_SUCCESS);
  assert_int_equal (fake.n_violations, 0);
}

static void
fake__sees_two_streams_without_an_event (void **state)
{
  cuMemcpyHtoDAsync (memory, pinned, BYTES, a);
  assert_int_equal (fake.n_violations, 0);
  cuMemcpyDtoHAsync (pinned, memory + 4096, 16, b);
  assert_violation ("uses what another stream writes, and no event is between them");
}

/* An event that was recorded before the write does not order what follows it. */
static void
fake__sees_an_event_that_came_too_early (void **state)
{
  cuEventRecord (event, a);
  cuMemcpyHtoDAsync (memory, pinned, BYTES, a);
  cuStreamWaitEvent (b, event, 0);
  cuMemsetD8Async (memory, 1, 1, b);
  assert_violation ("no event is between them");
}

/* Also while nobody waits: the driver runs what it can when there is much.  No call of a
 * program makes such an event. */
static void
fake__sees_a_stream_that_waits_for_what_never_comes (void **state)
{
  struct FakeEvent *e = (struct FakeEvent *)event;

  e->recorded++;
  cuStreamWaitEvent (b, event, 0);
  for (int i = 0; i < 500; i++)
    cuMemsetD8Async (memory, 1, 1, b);
  e->reached = e->recorded;
  assert_violation ("streams wait for each other");
}

static void
fake__lets_two_streams_read_and_use_other_places (void **state)
{
  cuMemcpyDtoHAsync (pinned, memory, 64, a);
  cuMemcpyDtoHAsync (pinned + 64, memory, 64, b);
  cuMemsetD8Async (memory + 64, 0, 64, a);
  cuMemsetD8Async (memory + 128, 0, 64, b);
  assert_int_equal (fake.n_violations, 0);
}

static void
fake__sees_memory_given_back_under_waiting_work (void **state)
{
  CUdeviceptr other;

  assert_int_equal (cuMemAlloc (&other, BYTES), CUDA_SUCCESS);
  cuMemsetD8Async (other, 0, BYTES, a);
  cuMemFree (other);
  assert_violation ("given back while work that waits uses it");
}

static void
fake__sees_copies_out_of_bounds (void **state)
{
  cuMemcpyHtoDAsync (memory + (2 << 20) - 100, pinned, 101, a);
  assert_violation ("uses 101 bytes that are not all there");
}

static void
fake__sees_copies_from_pageable_memory (void **state)
{
  char bytes[16] = { 0 };

  cuMemcpyHtoDAsync (memory, bytes, sizeof bytes, a);
  assert_violation ("from memory that is not pinned");
  cuStreamSynchronize (a);
}

static void
fake__sees_waiting_while_captured (void **state)
{
  CUgraph graph;

  assert_int_equal (cuStreamBeginCapture (a, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  assert_int_equal (cuStreamSynchronize (b), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  assert_violation ("cuStreamSynchronize while a stream is captured");
  assert_int_equal (cuStreamEndCapture (a, &graph), CUDA_SUCCESS);
  cuGraphDestroy (graph);
}

static void
fake__runs_nothing_before_somebody_waits (void **state)
{
  memset (pinned, 1, 64);
  cuMemcpyHtoDAsync (memory, pinned, 64, a);
  memset (pinned, 2, 64); /* too early: the copy sees this */
  cuMemcpyDtoHAsync (pinned + 64, memory, 64, a);
  assert_int_equal (pinned[64], 7);
  assert_int_equal (cuStreamSynchronize (a), CUDA_SUCCESS);
  assert_int_equal (pinned[64], 2);
}

/* --- order --- */

static char order[16];
static int n_order;

static void
run_mark (FakeCommand *command)
{
  order[n_order++] = (char)command->value;
}

static void
mark (CUstream stream, char name)
{
  FakeCommand *c = fake_command ("mark", run_mark);

  c->value = (unsigned char)name;
  fake_enqueue (stream, c);
}

/* Over some trials both orders come; within a stream there is one. */
static void
fake__runs_streams_in_any_order_and_each_in_its_own (void **state)
{
  int first_a = 0, first_b = 0;

  for (int trial = 0; trial < 50; trial++)
    {
      memset (order, 0, sizeof order);
      n_order = 0;
      mark (a, 'a');
      mark (a, 'A');
      mark (b, 'b');
      mark (b, 'B');
      cuCtxSynchronize ();
      assert_int_equal (n_order, 4);
      assert_true (strchr (order, 'a') < strchr (order, 'A'));
      assert_true (strchr (order, 'b') < strchr (order, 'B'));
      first_a += order[0] == 'a';
      first_b += order[0] == 'b';
    }
  assert_true (first_a > 5 && first_b > 5);
}

static void
fake__keeps_the_order_that_events_ask_for (void **state)
{
  for (int trial = 0; trial < 50; trial++)
    {
      n_order = 0;
      mark (a, 'a');
      cuEventRecord (event, a);
      cuStreamWaitEvent (b, event, 0);
      mark (b, 'b');
      cuCtxSynchronize ();
      assert_memory_equal (order, "ab", 2);
    }
}

/* --- graphs --- */

static void
fake__replays_what_was_captured (void **state)
{
  CUgraph graph;
  CUgraphExec exec;

  cuStreamBeginCapture (a, CU_STREAM_CAPTURE_MODE_RELAXED);
  cuMemcpyHtoDAsync (memory, pinned, 16, a);
  cuMemcpyDtoHAsync (pinned + 16, memory, 16, a);
  assert_int_equal (cuStreamEndCapture (a, &graph), CUDA_SUCCESS);
  assert_int_equal (cuGraphInstantiate (&exec, graph, 0), CUDA_SUCCESS);
  cuGraphDestroy (graph);
  for (char value = 1; value < 4; value++)
    {
      pinned[0] = value;
      assert_int_equal (cuGraphLaunch (exec, a), CUDA_SUCCESS);
      cuStreamSynchronize (a);
      assert_int_equal (pinned[16], value);
    }
  assert_int_equal (cuGraphExecDestroy (exec), CUDA_SUCCESS);
  assert_int_equal (fake.n_violations, 0);
}

static void
fake__updates_a_graph_of_the_same_shape_only (void **state)
{
  CUgraphExecUpdateResultInfo info;
  CUgraph graphs[3];
  CUgraphExec exec;

  for (int i = 0; i < 3; i++)
    {
      cuStreamBeginCapture (a, CU_STREAM_CAPTURE_MODE_RELAXED);
      cuMemsetD8Async (memory, (unsigned char)i, 4, a);
      if (i == 2)
        cuMemsetD8Async (memory + 4, 9, 4, a);
      cuStreamEndCapture (a, &graphs[i]);
    }
  cuGraphInstantiate (&exec, graphs[0], 0);
  assert_int_equal (cuGraphExecUpdate (exec, graphs[1], &info), CUDA_SUCCESS);
  cuGraphLaunch (exec, a);
  cuMemcpyDtoHAsync (pinned, memory, 1, a);
  cuStreamSynchronize (a);
  assert_int_equal (pinned[0], 1);
  assert_int_equal (cuGraphExecUpdate (exec, graphs[2], &info),
                    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  assert_int_equal (info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  for (int i = 0; i < 3; i++)
    cuGraphDestroy (graphs[i]);
  cuGraphExecDestroy (exec);
}

/* --- memory and faults --- */

static void
fake__has_no_more_memory_than_it_says (void **state)
{
  CUdeviceptr more;
  size_t left, total;

  fake.total_bytes = (size_t)16 << 20;
  cuMemGetInfo (&left, &total);
  assert_int_equal (total, 16 << 20);
  assert_int_equal (left, 14 << 20); /* memory took a page of 2 MiB */
  assert_int_equal (cuMemAlloc (&more, left + 1), CUDA_ERROR_OUT_OF_MEMORY);
  assert_int_equal (cuMemAlloc (&more, left), CUDA_SUCCESS);
  cuMemFree (more);
  cuMemGetInfo (&left, &total);
  assert_int_equal (left, 14 << 20);
}

static void
fake__memory_is_out_of_the_hosts_reach (void **state)
{
  assert_false (fake_cuda_control ()->host_can_touch ((void *)memory));
  assert_true (fake_cuda_control ()->host_can_touch (pinned));
}

static void
fake__sees_pages_that_nobody_was_given_access_to (void **state)
{
  const size_t bytes = (size_t)2 << 20;
  const CUmemAllocationProp pages
      = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location.type = CU_MEM_LOCATION_TYPE_DEVICE };
  const CUmemAccessDesc access
      = { .location = pages.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  CUmemGenericAllocationHandle handle;
  CUdeviceptr at;

  assert_int_equal (cuMemAddressReserve (&at, bytes, 3 << 20, 0, 0), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal (cuMemAddressReserve (&at, bytes + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal (cuMemAddressReserve (&at, bytes, bytes, 0, 0), CUDA_SUCCESS);
  assert_int_equal (cuMemCreate (&handle, bytes, &(CUmemAllocationProp){ 0 }, 0),
                    CUDA_ERROR_INVALID_VALUE);
  assert_int_equal (cuMemCreate (&handle, bytes, &pages, 0), CUDA_SUCCESS);
  assert_int_equal (cuMemMap (at, bytes, 0, handle, 0), CUDA_SUCCESS);
  cuMemsetD8Async (at, 1, 100, a);
  assert_violation ("cuMemsetD8Async uses 100 bytes that are not all there");
  cuStreamSynchronize (a);
  fake.n_violations = 0;
  assert_int_equal (cuMemSetAccess (at, bytes, &access, 1), CUDA_SUCCESS);
  cuMemsetD8Async (at, 1, 100, a);
  cuStreamSynchronize (a);
  assert_int_equal (cuMemUnmap (at, bytes), CUDA_SUCCESS);
  assert_int_equal (cuMemRelease (handle), CUDA_SUCCESS);
  assert_int_equal (cuMemAddressFree (at, bytes), CUDA_SUCCESS);
  assert_int_equal (fake.n_violations, 0);
}

static void
fake__has_no_times_of_events_that_were_made_without (void **state)
{
  CUevent timed;
  float ms;

  assert_int_equal (cuEventCreate (&timed, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  cuEventRecord (timed, a);
  cuEventRecord (event, a);
  cuStreamSynchronize (a);
  assert_int_equal (cuEventElapsedTime (&ms, timed, timed), CUDA_SUCCESS);
  assert_int_equal (cuEventElapsedTime (&ms, timed, event), CUDA_ERROR_INVALID_HANDLE);
  assert_violation ("cuEventElapsedTime of events that have no times");
  fake.n_violations = 0;
  cuEventDestroy (timed);
}

static void
fake__fails_the_call_it_was_told_to (void **state)
{
  fake_cuda_control ()->fail_call ("cuMemsetD8Async", 2, CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal (cuMemsetD8Async (memory, 0, 1, a), CUDA_SUCCESS);
  assert_int_equal (cuMemsetD8Async (memory, 0, 1, a), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal (cuStreamSynchronize (a), CUDA_ERROR_ILLEGAL_ADDRESS); /* and ever after */
  assert_int_equal (cuDevicePrimaryCtxReset (0), CUDA_SUCCESS);
  setup (state); /* streams, events and memory went with the context */
  assert_int_equal (cuStreamSynchronize (a), CUDA_SUCCESS);
}

static void *
without_context (void *result)
{
  *(CUresult *)result = cuMemsetD8Async (memory, 0, 1, a);
  return NULL;
}

static void
fake__sees_a_thread_without_a_context (void **state)
{
  CUresult result = CUDA_SUCCESS;
  pthread_t thread;

  assert_int_equal (pthread_create (&thread, NULL, without_context, &result), 0);
  assert_int_equal (pthread_join (thread, NULL), 0);
  assert_int_equal (result, CUDA_ERROR_INVALID_CONTEXT);
  assert_violation ("cuMemsetD8Async in a thread without a context");
  fake.n_violations = 0;
  assert_int_equal (cuMemsetD8Async (memory, 0, 1, a), CUDA_SUCCESS);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (fake__accepts_ordered_work),
    row (fake__sees_two_streams_without_an_event),
    row (fake__sees_an_event_that_came_too_early),
    row (fake__sees_a_stream_that_waits_for_what_never_comes),
    row (fake__lets_two_streams_read_and_use_other_places),
    row (fake__sees_memory_given_back_under_waiting_work),
    row (fake__sees_copies_out_of_bounds),
    row (fake__sees_copies_from_pageable_memory),
    row (fake__sees_waiting_while_captured),
    row (fake__runs_nothing_before_somebody_waits),
    row (fake__runs_streams_in_any_order_and_each_in_its_own),
    row (fake__keeps_the_order_that_events_ask_for),
    row (fake__replays_what_was_captured),
    row (fake__updates_a_graph_of_the_same_shape_only),
    row (fake__has_no_more_memory_than_it_says),
    row (fake__memory_is_out_of_the_hosts_reach),
    row (fake__sees_pages_that_nobody_was_given_access_to),
    row (fake__has_no_times_of_events_that_were_made_without),
    row (fake__fails_the_call_it_was_told_to),
    row (fake__sees_a_thread_without_a_context),
  };

  return cmocka_run_group_tests_name ("fake-cuda", tests, NULL, NULL);
}
