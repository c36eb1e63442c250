/* The memory and the queue of the test device; its slots are in fake-remote-slots.c.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-remote.h"

#include "compute/core/core.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGION_BYTES ((size_t)4 << 30) /* of addresses; pages come as they are written */

enum
{
  QUEUE_MAX = 200
};

static struct
{
  int fd;
  char *device; /* no permissions: the addresses everybody sees */
  char *alias;  /* the same pages for the kernels */
  size_t used;
  int n_segments;
  FakeCall *queue[QUEUE_MAX];
  int n_queue;
  long n_queued;
  TdStatus failed;
} remote = { .fd = -1 };

static TdDevice device
    = { .name = FAKE_REMOTE_NAME, .ops = &fake_remote_ops, .computes = true };

/* --- memory --- */

static bool
region_open (void)
{
  if (remote.fd >= 0)
    return true;
  remote.fd = memfd_create ("fake-remote", MFD_CLOEXEC);
  if (remote.fd < 0 || ftruncate (remote.fd, (off_t)REGION_BYTES) != 0)
    return false;
  remote.device = mmap (NULL, REGION_BYTES, PROT_NONE, MAP_SHARED, remote.fd, 0);
  remote.alias = mmap (NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, remote.fd, 0);
  return remote.device != MAP_FAILED && remote.alias != MAP_FAILED;
}

static void *
segment_new (void *context, size_t bytes)
{
  size_t at = remote.used;

  (void)context;
  if (bytes > REGION_BYTES - at)
    return NULL;
  remote.used += bytes;
  remote.n_segments++;
  memset (remote.alias + at, 0xFF, bytes); /* NaN in every floating-point dtype */
  return remote.device + at;
}

static void
segment_free (void *context, void *address, size_t bytes)
{
  (void)context;
  fake_remote_drain ();
  fallocate (remote.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
             (off_t)((char *)address - remote.device), (off_t)bytes);
  if (--remote.n_segments == 0)
    remote.used = 0;
}

const TdSegmentProvider fake_remote_provider = { "fake-remote", segment_new, segment_free };

char *
fake_remote_alias (FakeCall *c, const void *address)
{
  uintptr_t at = (uintptr_t)address - (uintptr_t)remote.device;

  if (address == NULL)
    return NULL;
  if (at >= REGION_BYTES)
    {
      c->lost = true;
      return NULL;
    }
  return remote.alias + at;
}

/* --- the queue --- */

FakeCall *
fake_remote_call (const char *name, TdStatus (*run) (FakeCall *c, TdDevice *cpu))
{
  FakeCall *c = calloc (1, sizeof *c);

  if (c == NULL)
    abort ();
  c->name = name;
  c->run = run;
  return c;
}

static void
add_tensors (FakeCall *c, const TdTensor *tensors, int n)
{
  for (int i = 0; i < n; i++)
    {
      int at = c->n_in + c->n_out + i;

      if (at >= FAKE_REMOTE_TENSORS)
        abort ();
      c->t[at] = tensors[i];
      if (tensors[i].shape != NULL)
        c->shapes[at] = *tensors[i].shape;
      c->t[at].shape = &c->shapes[at];
      c->t[at].data = fake_remote_alias (c, tensors[i].data);
    }
}

void
fake_remote_inputs (FakeCall *c, const TdTensor *in, int n)
{
  add_tensors (c, in, in != NULL ? n : 0);
  c->n_in += in != NULL ? n : 0;
}

void
fake_remote_outputs (FakeCall *c, const TdTensor *out, int n)
{
  add_tensors (c, out, out != NULL ? n : 0);
  c->n_out += out != NULL ? n : 0;
}

static void
call_free (FakeCall *c)
{
  free (c->bytes);
  free (c);
}

static TdStatus
refuse (FakeCall *c)
{
  TdStatus status = td__fail (TD_ERR_DEVICE, c->name, NULL,
                              "a kernel of %s was given memory of the host", device.name);

  call_free (c);
  return status;
}

static TdStatus
run (FakeCall *c)
{
  TdStatus status = c->run (c, td_device_get ("cpu"));

  call_free (c);
  return status;
}

TdStatus
fake_remote_drain (void)
{
  TdStatus status;

  for (int i = 0; i < remote.n_queue; i++)
    {
      const char *name = remote.queue[i]->name;

      status = run (remote.queue[i]);
      if (status != TD_OK && remote.failed == TD_OK)
        remote.failed = td__fail (status, name, NULL, "queued work failed on %s: %s",
                                  device.name, td_status_name (status));
    }
  remote.n_queue = 0;
  status = remote.failed;
  remote.failed = TD_OK;
  return status;
}

TdStatus
fake_remote_enqueue (FakeCall *c)
{
  if (c->lost)
    return refuse (c);
  if (remote.n_queue == QUEUE_MAX)
    remote.failed = fake_remote_drain (); /* told at the next wait */
  remote.queue[remote.n_queue++] = c;
  remote.n_queued++;
  return TD_OK;
}

TdStatus
fake_remote_run_now (FakeCall *c)
{
  TdStatus before = fake_remote_drain (), status;

  if (c->lost)
    return refuse (c);
  status = run (c);
  return before != TD_OK ? before : status;
}

int
fake_remote_pending (void)
{
  return remote.n_queue;
}

long
fake_remote_queued (void)
{
  return remote.n_queued;
}

TdDevice *
fake_remote_start (void)
{
  remote.n_queued = 0;
  return region_open () && td__device_register (&device) == TD_OK ? &device : NULL;
}
