/* Fused groups of element-by-element operations (a static schedule's) as one kernel each,
 * compiled at run time.
 *
 * fused-source.c writes the source, nvrtc.c compiles it or finds it on disk; groups of the
 * same operations share a kernel.  Dropout draws its mask in the kernel from keys given to
 * each launch.  Where NVRTC is missing, or a group has more than 24 arrays, 64 parameters, 8
 * masks or 256 operations, there is no program, and the engine runs the operations one by one.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"
#include "fused-source.h"
#include "kernels/launch.h"
#include "async.h"
#include "nvrtc-code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  PACK_BYTES = 16,  /* of the widest operand at most */
  COUNTS_OF_SM = 13 /* operands that the shared memory of a multiprocessor has room for */
};

_Static_assert((int)TD_FUSED_DRAWS == (int)TD_TILE_MAX_DRAWS,
               "a program's keys fit its kernel");

/* A kernel that was made.  It belongs to no context and stays loaded, as the images do. */
typedef struct Made
{
  TdCudaKernel kernel;
  int major, minor;
  char *text;
  char name[32];
  struct Made *twin; /* that counts; NULL: not made yet, or cannot be had */
  bool twin_tried;
  struct Made *next;
} Made;

static Made *all_made;

typedef struct
{
  Made *made;
  int64_t size;
  int n_operands, n_draws, pack, n_with_stats;
  uint8_t with_stats[TD_FUSED_COUNTS];
  uint32_t repeated, reads, writes;
  uint32_t period[TD_FUSED_ROWS];
  double number[TD_FUSED_NUMBERS];
} Program;

static bool
load (Made *made, const TdCudaCode *code)
{
  CUlibrary library;
  CUkernel kernel;
  CUresult result
      = td_cuda.cuLibraryLoadData (&library, code->data, NULL, NULL, 0, NULL, NULL, 0);

  if (result == CUDA_SUCCESS)
    result = td_cuda.cuLibraryGetKernel (&kernel, library, made->name);
  if (result != CUDA_SUCCESS)
    return false;
  made->kernel = (TdCudaKernel){ made->name, kernel };
  made->next = all_made;
  all_made = made;
  return true;
}

static void
made_free (Made *made)
{
  free (made->text);
  free (made);
}

/* The kernel of a text; NULL: it cannot be had. */
static Made *
kernel_for (TdCuda *c, const char *text, const char *name)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  Made *made = all_made;
  TdCudaCode code = { 0 };
  TdCudaSource source;

  while (
      made != NULL
      && (made->major != c->major || made->minor != c->minor || strcmp (made->text, text) != 0))
    made = made->next;
  if (made != NULL)
    return made;
  made = calloc (1, sizeof *made);
  if (made == NULL)
    return NULL;
  made->major = c->major;
  made->minor = c->minor;
  memcpy (made->name, name, sizeof made->name);
  made->text = strdup (text);
  source = (TdCudaSource){ text, td_fused_texts, c->major, c->minor };
  td_cuda_exchange_mode (c, &mode);
  if (made->text == NULL || !td_cuda_nvrtc_compile (&source, &code) || !load (made, &code))
    {
      made_free (made);
      made = NULL;
    }
  td_cuda_exchange_mode (c, &mode);
  td_cuda_code_clear (&code);
  return made;
}

/* The kernel that counts what it writes, made when it is wanted first; NULL: it cannot be had,
 * and what is written is read again. */
static Made *
twin_of (TdCuda *c, Made *made)
{
  char name[32], *text;

  if (made->twin_tried)
    return made->twin;
  made->twin_tried = true;
  text = td_cuda_fused_twin (made->text, made->name, name);
  if (text != NULL)
    made->twin = kernel_for (c, text, name);
  free (text);
  return made->twin;
}

void *
td_cuda_program_new (TdDevice *d, const TdProgram *p)
{
  TdCuda *c = td_cuda_enter (d);
  Program *made = NULL;
  TdFused f;

  if (c->lost != TD_OK || !td_cuda_nvrtc_here () || !td_cuda_fused_write (p, &f))
    return NULL;
  made = calloc (1, sizeof *made);
  if (made != NULL)
    {
      *made = (Program){ .made = kernel_for (c, f.text, f.name),
                         .size = p->size,
                         .n_operands = f.n_operands,
                         .n_draws = f.n_draws,
                         .pack = f.pack,
                         .n_with_stats = f.n_with_stats,
                         .repeated = f.repeated,
                         .reads = f.reads,
                         .writes = f.writes };
      memcpy (made->number, f.number, sizeof made->number);
      memcpy (made->period, f.period, sizeof made->period);
      memcpy (made->with_stats, f.with_stats, sizeof made->with_stats);
    }
  td_cuda_fused_clear (&f);
  if (made != NULL && made->made != NULL)
    return made;
  free (made);
  return NULL;
}

void
td_cuda_program_free (TdDevice *d, void *program)
{
  free (program);
}

/* Places for what each of `blocks` counts, where somebody will ask; they are fewer then, as
 * counters need shared memory.  Returns the kernel. */
static Made *
count (TdCuda *c, const Program *p, const TdTensor *operands, TdFusedParams *a, int64_t *blocks)
{
  const int64_t most = (int64_t)c->launcher.n_sms * (COUNTS_OF_SM / TD_FUSED_COUNTS);
  int64_t n = *blocks < most ? *blocks : most;
  bool counts = false;
  Made *twin;

  if (p->n_with_stats == 0 || !td_cuda_fused_stats_wanted (c)
      || (twin = twin_of (c, p->made)) == NULL)
    return p->made;
  for (int i = 0; i < p->n_with_stats; i++)
    {
      a->parts[i] = td__count (&c->launcher, &twin->kernel, &operands[p->with_stats[i]], &n);
      counts |= a->parts[i] != NULL;
    }
  if (counts)
    *blocks = n;
  return counts ? twin : p->made;
}

TdStatus
td_cuda_program_run (TdDevice *d, void *program, const TdTensor *operands, const bool *adds,
                     const TdRngKey *keys)
{
  const Program *p = program;
  TdCuda *c = td_cuda_enter (d);
  TdFusedParams a = { .n = p->size, .packs = 1 };
  size_t shared;
  int64_t blocks;
  Made *made;

  for (int k = 0; k < p->n_operands; k++)
    {
      a.data[k] = operands[k].data;
      if (!(p->repeated >> k & 1) && ((p->reads | p->writes) >> k & 1)
          && (uintptr_t)operands[k].data % PACK_BYTES != 0)
        a.packs = 0;
      if (adds != NULL && (p->writes >> k & 1) && adds[k])
        a.adds |= 1u << k;
      if (p->reads >> k & 1)
        td_cuda_reads (c, &operands[k], 1);
      if (p->writes >> k & 1)
        td_cuda_writes (c, &operands[k], 1);
    }
  if (p->size == 0)
    return TD_OK;
  memcpy (a.number, p->number, sizeof a.number);
  memcpy (a.period, p->period, sizeof a.period);
  for (int k = 0; k < p->n_draws; k++)
    a.key[k] = (TdFusedKey){ keys[k].seed, keys[k].offset };
  blocks = td__blocks (&c->launcher, a.packs ? (p->size + p->pack - 1) / p->pack : p->size,
                       TD_BLOCK);
  made = count (c, p, operands, &a, &blocks);
  shared = made != p->made ? (size_t)p->n_with_stats * TD_FUSED_COUNT_BYTES : 0;
  return c->launcher.launch (&c->launcher, &made->kernel,
                             (unsigned[]){ (unsigned)blocks, 1, 1 }, TD_BLOCK, shared, &a);
}
