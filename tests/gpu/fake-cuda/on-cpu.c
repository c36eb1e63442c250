/* In place of the kernels: the slots of the other test device, which run the CPU's kernels when
 * a stream comes to them; and what of the engine those slots want to be linked with.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-kernels.h"

#include "blas.h"
#include "cuda-device.h"
#include "cudnn.h"
#include "fake-remote.h"
#include "async.h"
#include "nccl-library.h"
#include "scalar-updates.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the engine, as those slots know it --- */

TdDeviceOps td__cpu_ops;

TdStatus td__fail (TdStatus status, const char *op, const TdSite *site, const char *format,
                   ...);

TdDevice *
td_device_get (const char *name)
{
  return td_cuda_host->cpu;
}

TdStatus td__fail (TdStatus status, const char *op, const TdSite *site, const char *format, ...)
    __attribute__ ((format (printf, 4, 5)));

TdStatus
td__fail (TdStatus status, const char *op, const TdSite *site, const char *format, ...)
{
  char text[512];
  va_list args;

  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  return td_cuda_host->fail (status, op, text);
}

/* --- their queue is the device's stream --- */

#define DEVICE (the_device ()) /* these slots know of one */

/* The first that is open: a rank's is not always cuda:0. */
static TdCuda *
the_device (void)
{
  int i = 0;

  while (i < TD_MAX_DEVICES - 1 && td_cuda_devices[i] == NULL)
    i++;
  return td_cuda_devices[i];
}

static TdStatus failed; /* told at the next wait */

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

char *
fake_remote_alias (FakeCall *c, const void *address)
{
  if (address != NULL && !fake_is_mapped ((CUdeviceptr)address, 1))
    c->lost = true;
  return (char *)(uintptr_t)address;
}

static void
add_tensors (FakeCall *c, const TdTensor *tensors, int n, bool writes)
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
      fake_remote_alias (c, tensors[i].size > 0 ? tensors[i].data : NULL);
    }
  if (writes)
    td_cuda_writes (DEVICE, tensors, n);
  else
    td_cuda_reads (DEVICE, tensors, n);
}

void
fake_remote_inputs (FakeCall *c, const TdTensor *in, int n)
{
  add_tensors (c, in, in != NULL ? n : 0, false);
  c->n_in += in != NULL ? n : 0;
}

void
fake_remote_outputs (FakeCall *c, const TdTensor *out, int n)
{
  add_tensors (c, out, out != NULL ? n : 0, true);
  c->n_out += out != NULL ? n : 0;
}

/* A call may run again, from a graph. */
static void
run_call (FakeCommand *command)
{
  FakeCall *c = command->data;
  TdStatus status = c->run (c, td_cuda_host->cpu);

  if (status != TD_OK && failed == TD_OK)
    failed = td__fail (status, c->name, NULL, "queued work failed on %s: %s",
                       DEVICE->device.name, td_cuda_host->status_name (status));
}

static void
free_call (FakeCommand *command)
{
  FakeCall *c = command->data;

  free (c->bytes);
  free (c);
}

TdStatus
fake_remote_enqueue (FakeCall *c)
{
  FakeCommand *command = fake_command (c->name, run_call);
  CUresult result = fake_enter ("cuLaunchKernel");

  if (result == CUDA_SUCCESS && DEVICE->lost != TD_OK)
    {
      free_call (&(FakeCommand){ .data = c });
      fake_command_take_uses (command);
      fake_command_unref (command);
      return DEVICE->lost;
    }
  command->data = c;
  command->free = free_call;
  fake_command_take_uses (command);
  if (c->lost || result != CUDA_SUCCESS)
    {
      TdStatus status = c->lost ? td__fail (TD_ERR_DEVICE, c->name, NULL,
                                            "a kernel of %s was given memory of the host",
                                            DEVICE->device.name)
                                : td_cuda_check (DEVICE, result, c->name);

      fake_command_unref (command);
      return status;
    }
  fake.n_launches++;
  result = fake_enqueue (DEVICE->stream, command);
  td_cuda_marks_made (DEVICE);
  return td_cuda_check (DEVICE, result, "cuLaunchKernel");
}

static TdStatus
take_failure (TdStatus status)
{
  if (status == TD_OK)
    status = failed;
  failed = TD_OK;
  return status;
}

/* What the two slots that answer the host do first. */
TdStatus
fake_remote_drain (void)
{
  if (td_cuda_refuses (DEVICE, "waits for the device"))
    return TD_ERR_STATE;
  return take_failure (td_cuda_check (DEVICE, td_cuda.cuStreamSynchronize (DEVICE->stream),
                                      "waiting for the device"));
}

TdStatus
fake_remote_run_now (FakeCall *c)
{
  TdStatus status = fake_remote_enqueue (c);

  return status != TD_OK ? status : fake_remote_drain ();
}

const TdSegmentProvider fake_remote_provider; /* not used: the module has its own */

/* Of cuDNN's file, which is not reached. */
TdStatus
td_cuda_binary (TdCudaLauncher *l, TdBinaryKind kind, const TdTensor *x, const TdTensor *y,
                TdTensor *z, bool accumulate)
{
  return TD_ERR_STATE;
}

const TdCudaImage td_cuda_images[] = { { NULL, NULL, 0 } };

bool
td_cuda_counting_kernel (TdCuda *c, TdCudaKernel *kernel)
{
  return false;
}

const FakeKernel *
fake_kernel_find (const char *name)
{
  return NULL;
}

/* --- the table --- */

static TdStatus
slot_gemm (TdDevice *d, const TdGemm *g, const TdTensor *a, const TdTensor *b, TdTensor *out)
{
  TdStatus status;

  td_cuda_reads (DEVICE, a, 1);
  td_cuda_reads (DEVICE, b, 1);
  td_cuda_writes (DEVICE, out, 1);
  /* Its errors come late: the other slot has them. */
  if (b->dtype == out->dtype && out->dtype <= TD_BF16
      && td_cuda_blas_gemm (d->priv, g, a, b, out, &status))
    return status;
  return fake_remote_ops.gemm (d, g, a, b, out);
}

static TdStatus
slot_download (TdDevice *d, void *host, const void *src, size_t bytes)
{
  return take_failure (td_cuda_download (d, host, src, bytes));
}

static TdStatus
slot_check_index (TdDevice *d, const TdTensor *index, int64_t limit, int64_t ignore,
                  int64_t *bad_place, int64_t *bad_value)
{
  TdStatus status;

  if (td_cuda_host_copies_check_index (DEVICE, index, limit, ignore, bad_place, bad_value,
                                       &status))
    return status;
  status = fake_remote_drain ();
  if (status != TD_OK)
    return status;
  fake_memory_open ();
  status
      = td__cpu_ops.check_index (td_cuda_host->cpu, index, limit, ignore, bad_place, bad_value);
  fake_memory_close ();
  return status;
}

static TdStatus
slot_stats (TdDevice *d, const TdTensor *x, uint64_t max_samples, uint64_t seed, TdStats *out)
{
  TdStatus status = fake_remote_drain ();

  if (status != TD_OK)
    return status;
  fake_memory_open ();
  status = td__cpu_ops.stats (td_cuda_host->cpu, x, max_samples, seed, out);
  fake_memory_close ();
  return status;
}

/* Statistics of many arrays: one launch, which looks at them when the stream comes to it. */
typedef struct
{
  TdCudaStatsOf of[64];
  int n;
} StatsLaunch;

static void
run_stats (FakeCommand *command)
{
  const StatsLaunch *l = command->data;

  for (int i = 0; i < l->n; i++)
    {
      const TdCudaStatsOf *of = &l->of[i];
      TdShape shape = { .ndim = 1, .dim = { of->size } };
      TdTensor x = { (void *)(uintptr_t)of->data, &shape, of->size, of->dtype };
      TdStats s;

      td__cpu_ops.stats (td_cuda_host->cpu, &x, of->max_samples, of->seed, &s);
      *of->result = (TdCudaStats){ .n = s.n,
                                   .n_sampled = s.n_sampled,
                                   .n_zero = s.n_zero,
                                   .n_nan = s.n_nan,
                                   .n_pos_inf = s.n_pos_inf,
                                   .n_neg_inf = s.n_neg_inf,
                                   .min = s.min,
                                   .max = s.max,
                                   .shift = s.mean,
                                   .s1 = s.sum_squares,
                                   .s2 = s.m2 };
      memcpy (of->result->exponent, s.exponent, sizeof s.exponent);
    }
}

static void
free_stats (FakeCommand *command)
{
  free (command->data);
}

TdStatus
td_cuda_stats (TdCudaLauncher *l, const TdCudaStatsOf *of, int n)
{
  FakeCommand *command = fake_command ("td_stats", run_stats);
  StatsLaunch *launch = calloc (1, sizeof *launch);

  if (launch == NULL || n > 64)
    abort ();
  memcpy (launch->of, of, (size_t)n * sizeof *of);
  launch->n = n;
  command->data = launch;
  command->free = free_stats;
  fake_command_take_uses (command);
  fake.n_launches++;
  fake.n_stats++;
  return td_cuda_check (DEVICE, fake_enqueue (DEVICE->stream, command), "cuLaunchKernel");
}

/* What run_stats has left. */
void
td_cuda_stats_finish (const TdCudaStats *r, TdStats *out)
{
  *out = (TdStats){ .n = r->n,
                    .n_sampled = r->n_sampled,
                    .n_zero = r->n_zero,
                    .n_nan = r->n_nan,
                    .n_pos_inf = r->n_pos_inf,
                    .n_neg_inf = r->n_neg_inf,
                    .min = r->min,
                    .max = r->max,
                    .mean = r->shift,
                    .m2 = r->s2,
                    .sum_squares = r->s1 };
  memcpy (out->exponent, r->exponent, sizeof out->exponent);
}

/* The same update of many parameters: one launch. */
typedef struct
{
  TdUpdateKind kind;
  TdUpdate u;
  int n, n_params;
  TdTensor arrays[TD_CUDA_UPDATES * TD_CUDA_UPDATE_ARRAYS];
  TdShape shapes[TD_CUDA_UPDATES * TD_CUDA_UPDATE_ARRAYS];
} UpdateLaunch;

static void
run_update (FakeCommand *command)
{
  UpdateLaunch *l = command->data;
  TdTensor *arrays[TD_CUDA_UPDATE_ARRAYS];

  for (int k = 0; k < l->n_params; k++)
    {
      for (int i = 0; i < l->n; i++)
        {
          arrays[i] = &l->arrays[k * l->n + i];
          l->shapes[k * l->n + i] = (TdShape){ .ndim = 1, .dim = { arrays[i]->size } };
          arrays[i]->shape = &l->shapes[k * l->n + i];
        }
      td__cpu_ops.update (td_cuda_host->cpu, l->kind, &l->u, arrays, l->n);
    }
}

TdStatus
td_cuda_update_check (TdUpdateKind kind, TdTensor *const *arrays, int n, int n_params)
{
  for (int k = 0; k < n * n_params; k++)
    {
      if (arrays[k]->dtype > TD_BF16 || arrays[k]->dtype != arrays[0]->dtype)
        return TD_ERR_DTYPE;
      if (arrays[k]->size != arrays[k / n * n]->size)
        return TD_ERR_SHAPE;
    }
  return TD_OK;
}

TdStatus
td_cuda_update (TdCudaLauncher *l, TdUpdateKind kind, const TdUpdate *u,
                TdTensor *const *arrays, int n, int n_params)
{
  FakeCommand *command = fake_command ("update", run_update);
  UpdateLaunch *launch = calloc (1, sizeof *launch);
  CUresult result = fake_enter ("cuLaunchKernel");

  if (launch == NULL || n_params > TD_CUDA_UPDATES)
    abort ();
  launch->kind = kind;
  launch->u = *u;
  launch->n = n;
  launch->n_params = n_params;
  for (int k = 0; k < n * n_params; k++)
    launch->arrays[k] = *arrays[k];
  command->data = launch;
  command->free = free_stats;
  fake_command_take_uses (command);
  if (result == CUDA_SUCCESS)
    {
      fake.n_launches++;
      fake.n_updates++;
      result = fake_enqueue (DEVICE->stream, command);
    }
  else
    fake_command_unref (command);
  return td_cuda_check (DEVICE, result, "update");
}

/* A check that leaves what it finds. */
typedef struct
{
  TdTensor index;
  TdShape shape;
  int64_t limit, ignore, *found, *any_bad;
  uint64_t *runs;
} CheckLaunch;

static void
run_check (FakeCommand *command)
{
  const CheckLaunch *l = command->data;
  int64_t at, value;
  const uint64_t run = ++*l->runs;

  td__cpu_ops.check_index (td_cuda_host->cpu, &l->index, l->limit, l->ignore, &at, &value);
  if (at < 0 || l->found[0] != 0)
    return;
  l->found[1] = at;
  l->found[2] = value;
  l->found[0] = (int64_t)run;
  *l->any_bad = 1;
}

TdStatus
td_cuda_check_index_async (TdCudaLauncher *l, const TdTensor *index, int64_t limit,
                           int64_t ignore, int64_t *found, int64_t *any_bad, uint64_t *runs)
{
  FakeCommand *command = fake_command ("td_check_index_async", run_check);
  CheckLaunch *launch = malloc (sizeof *launch);

  if (launch == NULL)
    abort ();
  *launch = (CheckLaunch){ *index, *index->shape, limit, ignore, found, any_bad, runs };
  launch->index.shape = &launch->shape;
  command->data = launch;
  command->free = free_stats;
  fake_command_take_uses (command);
  fake.n_launches++;
  return td_cuda_check (DEVICE, fake_enqueue (DEVICE->stream, command), "cuLaunchKernel");
}

/* --- loss scales --- */

enum
{
  GRADIENTS = 256 /* of a launch */
};

/* Of looking, with gradients, or of deciding. */
typedef struct
{
  TdTensor gradients[GRADIENTS];
  int n;
  double *numbers, growth;
  int64_t *report, run;
} ScaleLaunch;

static void
run_look (FakeCommand *command)
{
  const ScaleLaunch *l = command->data;
  TdStats stats;

  for (int k = 0; k < l->n; k++)
    if (l->gradients[k].size > 0
        && td__cpu_ops.stats (td_cuda_host->cpu, &l->gradients[k], 1, 0, &stats) == TD_OK
        && stats.n_nan + stats.n_pos_inf + stats.n_neg_inf > 0)
      l->numbers[TD_SCALE_FLAGS + k] = 1;
}

static void
run_decide (FakeCommand *command)
{
  const ScaleLaunch *l = command->data;
  int first = -1;

  for (int k = l->n; k-- > 0; l->numbers[TD_SCALE_FLAGS + k] = 0)
    if (l->numbers[TD_SCALE_FLAGS + k] != 0)
      first = k;
  td_scale_next (l->numbers, first >= 0, l->growth);
  l->report[0] = first;
  l->report[1] = l->run;
}

static TdStatus
launch_scale (const char *name, void (*run) (FakeCommand *command), const ScaleLaunch *launch)
{
  FakeCommand *command = fake_command (name, run);

  command->data = malloc (sizeof *launch);
  if (command->data == NULL)
    abort ();
  *(ScaleLaunch *)command->data = *launch;
  command->free = free_stats;
  fake_command_take_uses (command);
  fake.n_launches++;
  return td_cuda_check (DEVICE, fake_enqueue (DEVICE->stream, command), "cuLaunchKernel");
}

TdStatus
td_cuda_scale_look (TdCudaLauncher *l, const TdTensor *gradients, int n, double *numbers)
{
  ScaleLaunch launch = { .n = n, .numbers = numbers };

  if (n > GRADIENTS)
    abort ();
  for (int k = 0; k < n; k++)
    launch.gradients[k] = gradients[k]; /* their shapes are not looked at */
  return launch_scale ("td_scale_look", run_look, &launch);
}

TdStatus
td_cuda_scale_decide (TdCudaLauncher *l, int n, double growth, double *numbers, int64_t *report,
                      int64_t run)
{
  return launch_scale (
      "td_scale_decide", run_decide,
      &(ScaleLaunch){
          .n = n, .numbers = numbers, .growth = growth, .report = report, .run = run });
}

const TdDeviceOps *
td_cuda_slots (void)
{
  static TdDeviceOps ops;
  static TdDeviceGraphs graphs;

  td__cpu_ops = *td_cuda_host->cpu->ops;
  ops = fake_remote_ops;
  ops.provider = &td_cuda_vmm_provider;
  ops.upload = td_cuda_upload;
  ops.upload_new = td_cuda_upload_new;
  ops.ahead = &td_cuda_ahead;
  ops.download = slot_download;
  ops.copy = td_cuda_copy;
  ops.zero = td_cuda_zero;
  ops.synchronize = td_cuda_synchronize;
  ops.ends_products |= 1u << TD_F16 | 1u << TD_BF16; /* by the library alone */
  ops.gemm = slot_gemm;
  ops.rnn = &td_cudnn_rnn;
  ops.check_index = slot_check_index;
  ops.update = td_cuda_updates_add;
  ops.updates_end = td_cuda_updates_end;
  /* What is on the stream already is not to be sent together. */
  graphs = td_cuda_graphs;
  graphs.repeat_begin = NULL;
  ops.graphs = &graphs;
  ops.stats = slot_stats;
  ops.stats_async = td_cuda_stats_async;
  ops.time_zero = td_cuda_time_zero;
  ops.scaling = &td_cuda_scaling;
  ops.time_op = td_cuda_time_op;
  ops.time_copy = td_cuda_time_copy;
  ops.poll_async = td_cuda_poll_async;
  ops.teams = &td_cuda_teams;
  ops.own_bytes = td_cuda_own_bytes;
  ops.pinned_bytes = td_cuda_pinned_bytes;
  ops.check_index_async = td_cuda_index_async;
  ops.bad_index = td_cuda_bad_index;
  return &ops;
}
