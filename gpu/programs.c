/* Programs of element-by-element kernels on the device: one kernel each, made at run time.
 *
 * Programs of one form share a kernel, which is compiled once for a device, or found on disk.
 * Where NVRTC is not here, or a program has no text, there is no program: its kernels run one
 * by one.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"
#include "fused-source.h"
#include "kernels/launch.h"
#include "nvrtc-code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  PACK_BYTES = 16 /* of the widest operand at most */
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
  struct Made *next;
} Made;

static Made *all_made;

typedef struct
{
  Made *made;
  int64_t size;
  int n_operands, n_draws, pack;
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
kernel_for (TdCuda *c, const TdFused *f)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  Made *made = all_made;
  TdCudaCode code = { 0 };

  while (made != NULL
         && (made->major != c->major || made->minor != c->minor
             || strcmp (made->text, f->text) != 0))
    made = made->next;
  if (made != NULL)
    return made;
  made = calloc (1, sizeof *made);
  if (made == NULL)
    return NULL;
  made->major = c->major;
  made->minor = c->minor;
  memcpy (made->name, f->name, sizeof made->name);
  made->text = strdup (f->text);
  td_cuda_exchange_mode (c, &mode);
  if (made->text == NULL || !td_cuda_nvrtc_compile (f->text, c->major, c->minor, &code)
      || !load (made, &code))
    {
      made_free (made);
      made = NULL;
    }
  td_cuda_exchange_mode (c, &mode);
  td_cuda_code_clear (&code);
  return made;
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
      *made = (Program){ .made = kernel_for (c, &f),
                         .size = p->size,
                         .n_operands = f.n_operands,
                         .n_draws = f.n_draws,
                         .pack = f.pack,
                         .repeated = f.repeated,
                         .reads = f.reads,
                         .writes = f.writes };
      memcpy (made->number, f.number, sizeof made->number);
      memcpy (made->period, f.period, sizeof made->period);
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

TdStatus
td_cuda_program_run (TdDevice *d, void *program, const TdTensor *operands, const bool *adds,
                     const TdRngKey *keys)
{
  const Program *p = program;
  TdCuda *c = td_cuda_enter (d);
  TdFusedParams a = { .n = p->size, .packs = 1 };
  unsigned grid[3] = { 1, 1, 1 };

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
  grid[0] = (unsigned)td__blocks (
      &c->launcher, a.packs ? (p->size + p->pack - 1) / p->pack : p->size, TD_FUSED_BLOCK);
  return c->launcher.launch (&c->launcher, &p->made->kernel, grid, TD_FUSED_BLOCK, 0, &a);
}
