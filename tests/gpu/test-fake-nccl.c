/* The fake NCCL moves bytes between processes, and notes what it is there to note.
 *
 * Each rank is a child of the test, with a fake driver of its own; what it noted comes back
 * through a pipe.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-cuda/fake-kernels.h"

#include "nccl-library.h"
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROTOTYPE(type, name, ...) type name (__VA_ARGS__);
TD_NCCL_FUNCTIONS (PROTOTYPE)

enum
{
  MOST = 3, /* ranks */
  N = 300,  /* numbers */
  BYTES = 1 << 16
};

const TdModuleHost *td_cuda_host; /* whose CPU adds halves, of which there are none here */

const FakeKernel *
fake_kernel_find (const char *name)
{
  return NULL;
}

/* --- one rank --- */

static int told_to; /* the pipe of a child */

/* In a child nothing goes on after what is wrong. */
#define sure(what)                                                                             \
  do                                                                                           \
    if (!(what))                                                                               \
      fell_at (__LINE__);                                                                      \
  while (0)

static void
fell_at (int line)
{
  char text[200] = "";

  snprintf (text, sizeof text, "a rank failed at line %d", line);
  _exit (write (told_to, text, sizeof text) != sizeof text);
}

typedef struct
{
  int rank, size;
  TdNcclComm comm;
  CUstream stream, other;
  CUdeviceptr x, y;
  float *host; /* pinned */
} Rank;

static void
start_driver (int device)
{
  CUcontext context;

  fake_cuda_control ()->reset ();
  assert_null (td_cuda_api_open ());
  assert_int_equal (cuDevicePrimaryCtxRetain (&context, device), CUDA_SUCCESS);
  assert_int_equal (cuCtxSetCurrent (context), CUDA_SUCCESS);
}

static void
start_rank (Rank *r)
{
  void *host;

  sure (cuStreamCreate (&r->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  sure (cuStreamCreate (&r->other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  sure (cuMemAlloc (&r->x, BYTES) == CUDA_SUCCESS);
  sure (cuMemAlloc (&r->y, BYTES) == CUDA_SUCCESS);
  sure (cuMemAllocHost (&host, BYTES) == CUDA_SUCCESS);
  r->host = host;
  for (int i = 0; i < N * MOST; i++)
    r->host[i] = (float)(1000 * r->rank + i);
  sure (cuMemcpyHtoDAsync (r->x, r->host, N * MOST * sizeof (float), r->stream)
        == CUDA_SUCCESS);
}

static void
assert_y (Rank *r, int i, double want)
{
  sure (cuMemcpyDtoHAsync (r->host, r->y, N * MOST * sizeof (float), r->stream)
        == CUDA_SUCCESS);
  sure (cuStreamSynchronize (r->stream) == CUDA_SUCCESS);
  sure ((double)r->host[i] - want == 0);
}

static const void *
at (CUdeviceptr p, size_t numbers)
{
  return (const void *)(uintptr_t)(p + numbers * sizeof (float));
}

static void *
out (CUdeviceptr p, size_t numbers)
{
  return (void *)(uintptr_t)(p + numbers * sizeof (float));
}

static int
sum (Rank *r, size_t n, CUstream stream)
{
  return ncclAllReduce (at (r->x, 0), out (r->y, 0), n, TD_NCCL_FLOAT32, TD_NCCL_SUM, r->comm,
                        stream);
}

/* --- all of them --- */

typedef void (*Body) (Rank *r);

static void
be_rank (Body body, int rank, int size, bool one_device, const TdTeamId *id, int to)
{
  Rank r = { .rank = rank, .size = size };
  char text[200] = "refused";

  told_to = to;
  start_driver (one_device ? 0 : rank);
  start_rank (&r);
  if (ncclCommInitRank (&r.comm, size, *id, rank) == TD_NCCL_SUCCESS)
    {
      body (&r);
      cuCtxSynchronize ();
      ncclCommDestroy (r.comm);
      snprintf (text, sizeof text, "%s", fake_cuda_control ()->state->violation);
    }
  _exit (write (to, text, sizeof text) != sizeof text);
}

/* Run ranks; noted[r] is what rank r noted first, "" for nothing. */
static void
run_ranks (int n, bool one_device, Body body, char noted[MOST][200])
{
  int ends[MOST][2], status;
  TdTeamId id;

  start_driver (0);
  assert_int_equal (ncclGetUniqueId (&id), TD_NCCL_SUCCESS);
  for (int r = 0; r < n; r++)
    {
      assert_int_equal (pipe (ends[r]), 0);
      if (fork () == 0)
        be_rank (body, r, n, one_device, &id, ends[r][1]);
      close (ends[r][1]);
    }
  for (int r = 0; r < n; r++)
    {
      noted[r][0] = '\0';
      if (read (ends[r][0], noted[r], 200) != 200)
        snprintf (noted[r], 200, "rank %d failed", r);
      close (ends[r][0]);
    }
  for (int r = 0; r < n; r++)
    wait (&status);
}

static void
assert_noted (int n, Body body, const char *text)
{
  char noted[MOST][200];
  bool found = false;

  run_ranks (n, false, body, noted);
  for (int r = 0; r < n; r++)
    found = found || strstr (noted[r], text) != NULL;
  if (!found)
    fail_msg ("noted: \"%s\", \"%s\"; \"%s\" expected", noted[0], noted[1], text);
}

static void
assert_clean (int n, Body body)
{
  char noted[MOST][200];

  run_ranks (n, false, body, noted);
  for (int r = 0; r < n; r++)
    assert_string_equal (noted[r], "");
}

static int
setup (void **state)
{
  td_test_setup (state);
  setenv ("FAKE_NCCL_SECONDS", "1", 1);
  return 0;
}

static int
teardown (void **state)
{
  unsetenv ("FAKE_NCCL_SECONDS");
  return td_test_teardown (state);
}

/* --- what is right --- */

static void
everything (Rank *r)
{
  const int n = r->size;

  sure (sum (r, N, r->stream) == TD_NCCL_SUCCESS);
  assert_y (r, 7, n == 2 ? 1014 : 3021);
  sure (
      ncclBroadcast (at (r->x, 0), out (r->y, 0), N, TD_NCCL_FLOAT32, n - 1, r->comm, r->stream)
      == TD_NCCL_SUCCESS);
  assert_y (r, 7, 1000 * (n - 1) + 7);
  sure (ncclAllGather (at (r->x, 0), out (r->y, 0), N, TD_NCCL_FLOAT32, r->comm, r->stream)
        == TD_NCCL_SUCCESS);
  assert_y (r, N * (n - 1) + 7, 1000 * (n - 1) + 7);
  sure (ncclGroupStart () == TD_NCCL_SUCCESS);
  for (int to = 0; to < n; to++)
    {
      sure (ncclSend (at (r->x, (size_t)(N * to)), N, TD_NCCL_FLOAT32, to, r->comm, r->stream)
            == TD_NCCL_SUCCESS);
      sure (ncclRecv (out (r->y, (size_t)(N * to)), N, TD_NCCL_FLOAT32, to, r->comm, r->stream)
            == TD_NCCL_SUCCESS);
    }
  sure (ncclGroupEnd () == TD_NCCL_SUCCESS);
  assert_y (r, N * (n - 1) + 7, 1000 * (n - 1) + N * r->rank + 7);
}

static void
exchanges__move_real_bytes_between_processes (void **state)
{
  (void)state;
  assert_clean (2, everything);
  assert_clean (3, everything);
}

static void
send_one_way (Rank *r)
{
  if (r->rank == 0)
    ncclSend (at (r->x, 0), N, TD_NCCL_FLOAT32, 1, r->comm, r->stream);
  else
    {
      ncclRecv (out (r->y, 0), N, TD_NCCL_FLOAT32, 0, r->comm, r->stream);
      assert_y (r, 5, 5);
    }
}

static void
send__to_who_receives_needs_no_group (void **state)
{
  (void)state;
  assert_clean (2, send_one_way);
}

/* Many are issued before any is looked at; each uses what the one before has made. */
static void
many (Rank *r)
{
  for (int i = 0; i < 100; i++)
    {
      sum (r, N, r->stream);
      cuMemcpyDtoDAsync (r->x, r->y, N * sizeof (float), r->stream);
      cuMemsetD8Async (r->x, 0, sizeof (float), r->stream);
    }
  assert_y (r, 0, 0);
}

static void
hosts__wait_for_no_other_rank (void **state)
{
  (void)state;
  assert_clean (2, many);
}

/* --- what is not --- */

static void
other_order (Rank *r)
{
  for (int i = 0; i < 2; i++)
    if (i == r->rank)
      sum (r, N, r->stream);
    else
      ncclAllGather (at (r->x, 0), out (r->y, 0), N, TD_NCCL_FLOAT32, r->comm, r->stream);
}

static void
order__that_differs_is_found (void **state)
{
  (void)state;
  assert_noted (2, other_order,
                "exchange 1 of the communicator is ncclAllReduce of 300 numbers on rank 0 and "
                "ncclAllGather of 300 on rank 1");
}

static void
other_size (Rank *r)
{
  sum (r, (size_t)(N - r->rank), r->stream);
}

static void
other_type (Rank *r)
{
  ncclAllReduce (at (r->x, 0), out (r->y, 0), N, r->rank == 0 ? TD_NCCL_FLOAT32 : TD_NCCL_INT32,
                 TD_NCCL_SUM, r->comm, r->stream);
}

static void
other_root (Rank *r)
{
  ncclBroadcast (at (r->x, 0), out (r->y, 0), N, TD_NCCL_FLOAT32, r->rank, r->comm, r->stream);
}

static void
receive_less (Rank *r)
{
  if (r->rank == 0)
    ncclSend (at (r->x, 0), N, TD_NCCL_FLOAT32, 1, r->comm, r->stream);
  else
    ncclRecv (out (r->y, 0), N - 1, TD_NCCL_FLOAT32, 0, r->comm, r->stream);
}

static void
beyond_memory (Rank *r)
{
  sum (r, (size_t)64 << 20, r->stream);
}

static void
size__type_and_root_that_differ_are_found (void **state)
{
  (void)state;
  assert_noted (2, other_size, "of 300 numbers on rank 0 and ncclAllReduce of 299 on rank 1");
  assert_noted (2, other_type, "exchange 1 of the communicator");
  assert_noted (2, other_root, "exchange 1 of the communicator");
  assert_noted (2, receive_less, "rank 1 receives 299 numbers where rank 0 sends 300");
  assert_noted (2, beyond_memory, "bytes that are not all there");
}

static void
no_end (Rank *r)
{
  ncclGroupStart ();
  sum (r, N, r->stream);
}

static void
no_end_and_an_event (Rank *r)
{
  CUevent event;

  sure (cuEventCreate (&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  ncclGroupStart ();
  sum (r, N, r->stream);
  cuEventRecord (event, r->stream);
}

/* Each sends first, and waits till the other takes it. */
static void
no_group (Rank *r)
{
  ncclSend (at (r->x, 0), N, TD_NCCL_FLOAT32, 1 - r->rank, r->comm, r->stream);
  ncclRecv (out (r->y, 0), N, TD_NCCL_FLOAT32, 1 - r->rank, r->comm, r->stream);
}

static void
group__without_an_end_or_none_at_all_is_found (void **state)
{
  (void)state;
  assert_noted (2, no_end, "in an open group: ncclGroupEnd is missing");
  assert_noted (2, no_end_and_an_event, "cuEventRecord behind exchanges of an open group");
  assert_noted (2, no_group, "waits in ncclSend for another rank, which does not come");
}

static void
other_stream (Rank *r)
{
  sum (r, N, r->other); /* x is being written by r->stream */
}

static void
default_stream (Rank *r)
{
  sum (r, N, NULL);
}

static void
stream__that_follows_nothing_is_found (void **state)
{
  (void)state;
  assert_noted (2, other_stream,
                "ncclAllReduce uses what another stream writes, and no event is between them");
  assert_noted (2, default_stream, "ncclAllReduce on the default stream");
}

/* Of a communicator of this rank alone. */
static void
at_once (Rank *r)
{
  TdNcclComm first = r->comm;
  TdTeamId id;

  cuCtxSynchronize ();
  sure (ncclGetUniqueId (&id) == TD_NCCL_SUCCESS);
  sum (r, N, r->stream);
  sure (ncclCommInitRank (&r->comm, 1, id, 0) == TD_NCCL_SUCCESS);
  ncclAllReduce (at (r->x, N), out (r->y, N), N, TD_NCCL_FLOAT32, TD_NCCL_SUM, r->comm,
                 r->other);
  cuCtxSynchronize ();
  ncclCommDestroy (r->comm);
  r->comm = first;
}

static void
communicators__that_exchange_at_once_are_found (void **state)
{
  (void)state;
  assert_noted (2, at_once,
                "ncclAllReduce while an exchange of another communicator may run: no event is "
                "between them");
}

static void
stays_away (Rank *r)
{
  if (r->rank == 0)
    sum (r, N, r->stream);
}

static void
rank__that_does_not_come_is_noted (void **state)
{
  (void)state;
  assert_noted (2, stays_away, "rank 0 waits in ncclAllReduce for another rank");
}

static void
other_device (Rank *r)
{
  CUcontext context;

  sure (cuDevicePrimaryCtxRetain (&context, 2) == CUDA_SUCCESS);
  sure (cuCtxSetCurrent (context) == CUDA_SUCCESS);
  sum (r, N, r->stream);
}

static void
device__of_two_ranks_or_of_none_is_found (void **state)
{
  char noted[MOST][200];

  (void)state;
  run_ranks (2, true, everything, noted);
  assert_string_equal (noted[0], "refused");
  assert_string_equal (noted[1], "refused");
  assert_noted (2, other_device, "on another device than the communicator's");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (exchanges__move_real_bytes_between_processes, setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (send__to_who_receives_needs_no_group, setup, teardown),
    cmocka_unit_test_setup_teardown (hosts__wait_for_no_other_rank, setup, teardown),
    cmocka_unit_test_setup_teardown (order__that_differs_is_found, setup, teardown),
    cmocka_unit_test_setup_teardown (size__type_and_root_that_differ_are_found, setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (group__without_an_end_or_none_at_all_is_found, setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (stream__that_follows_nothing_is_found, setup, teardown),
    cmocka_unit_test_setup_teardown (communicators__that_exchange_at_once_are_found, setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (rank__that_does_not_come_is_noted, setup, teardown),
    cmocka_unit_test_setup_teardown (device__of_two_ranks_or_of_none_is_found, setup, teardown),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
