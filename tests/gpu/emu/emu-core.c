/* Fibres, barriers and warps of the kernel emulator.
 *
 * A fibre runs one thread after the other as long as none of them waits, so that kernels
 * without barriers need one fibre; those that wait keep theirs, and others are started.
 *
 * SPDX-License-Identifier: MIT */
#include "emu-core.h"

#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if defined(WITH_ASAN)
#include <sanitizer/common_interface_defs.h>
#define NOT_WATCHED __attribute__ ((noinline, no_sanitize_address))
#else
#define NOT_WATCHED __attribute__ ((noinline))
#endif

enum
{
  MAX_THREADS = 1024,
  WARP = 32,
  STACK_BYTES = 256 << 10,
  GUARD_BYTES = 64 << 10
};

typedef enum
{
  IDLE,
  RUNS,
  WAITS_BLOCK,
  WAITS_WARP
} State;

/* Where a stack goes on.  swapcontext asks the kernel about signals each time, and the address
 * sanitizer forgets the whole of a stack at each one and at each longjmp, of 256 KB that are in
 * use: so a stack is only begun by a context, and goes on by the compiler's own jumps. */
typedef struct
{
  ucontext_t context;
  void *at[5];
  bool begun;
  void *fake_stack; /* of the address sanitizer */
} Place;

typedef struct
{
  Place place;
  char *stack;
  State state;
  unsigned thread;
  const char *file;
  int line;
  TdEmuWarpOp op;
  uint32_t mask;
  uint64_t value;
  int argument;
} Fibre;

TdEmuDim threadIdx, blockIdx, blockDim, gridDim;

static TdEmuKernel *kernels;
static TdEmuArea *areas;
static TdEmuOrder order;
static long launches;

static struct
{
  TdEmuKernel *kernel;
  const void *params;
  unsigned n, started, ended;
  unsigned turn[MAX_THREADS]; /* which thread is started when */
  Fibre *of[MAX_THREADS];     /* the fibre of a thread that has started and not ended */
} block;
static Fibre fibres[MAX_THREADS], *now;
static unsigned n_fibres;
static Place main_place;
static const void *main_stack;
static size_t main_stack_bytes;

void
td_emu_register (TdEmuKernel *kernel)
{
  kernel->next = kernels;
  kernels = kernel;
}

TdEmuKernel *
td_emu_find (const char *name)
{
  TdEmuKernel *k = kernels;

  while (k != NULL && strcmp (k->name, name) != 0)
    k = k->next;
  return k;
}

TdEmuKernel *
td_emu_kernels (void)
{
  return kernels;
}

/* Before a block, shared memory holds nothing that anyone can count on. */
static void
spoil (TdEmuArea *area)
{
  memset (area->data, 0xFF, area->bytes);
  area->used = 0;
}

void
td_emu_shared (TdEmuArea *area)
{
  area->next = areas;
  areas = area;
  spoil (area);
}

__attribute__ ((noreturn)) static void
fail (const char *what)
{
  fprintf (stderr, "emulator: %s: %s, block (%u, %u, %u) of (%u, %u, %u), thread %u of %u\n",
           block.kernel->name, what, blockIdx.x, blockIdx.y, blockIdx.z, gridDim.x, gridDim.y,
           gridDim.z, threadIdx.x, blockDim.x);
  fflush (stderr);
  abort ();
}

void
td_emu_beyond (const char *name, long i, long n)
{
  char text[160];

  snprintf (text, sizeof text, "shared memory: %s[%ld] of %ld", name, i, n);
  fail (text);
}

/* --- who uses shared memory when --- */

uint32_t td_emu_epoch, td_emu_warp_epoch[MAX_THREADS / WARP];

void
td_emu_race (const char *name, long i, const char *does, unsigned thread, const char *did)
{
  char text[200];

  snprintf (text, sizeof text,
            "race: %s[%ld] is %s by this thread, %s by thread %u, and no barrier between", name,
            i, does, did, thread);
  fail (text);
}

/* --- switching --- */

static NOT_WATCHED __attribute__ ((noreturn)) void
go_on (Place *to)
{
  if (to->begun)
    __builtin_longjmp (to->at, 1);
  setcontext (&to->context);
  fail ("a stack could not be begun");
}

static NOT_WATCHED void
leave (Place *from, Place *to)
{
  from->begun = true;
  if (__builtin_setjmp (from->at) == 0)
    go_on (to);
}

static void
switch_place (Place *from, Place *to, const void *stack, size_t bytes)
{
#if defined(WITH_ASAN)
  const bool here = from == &main_place;

  __sanitizer_start_switch_fiber (&from->fake_stack, stack, bytes);
  leave (from, to);
  __sanitizer_finish_switch_fiber (from->fake_stack, here ? NULL : &main_stack,
                                   here ? NULL : &main_stack_bytes);
#else
  (void)stack;
  (void)bytes;
  leave (from, to);
#endif
}

static void
to_main (Fibre *f)
{
  switch_place (&f->place, &main_place, main_stack, main_stack_bytes);
}

static void
resume (Fibre *f)
{
  now = f;
  threadIdx.x = f->thread;
  switch_place (&main_place, &f->place, f->stack, STACK_BYTES);
  now = NULL;
}

/* A fibre's life: threads, as long as there are any; then it waits for the next block. */
static void
fibre_main (void)
{
  Fibre *f = now;

#if defined(WITH_ASAN)
  __sanitizer_finish_switch_fiber (NULL, &main_stack, &main_stack_bytes);
#endif
  for (;;)
    {
      while (block.started < block.n)
        {
          f->state = RUNS;
          f->thread = block.turn[block.started++];
          block.of[f->thread] = f;
          threadIdx.x = f->thread;
          block.kernel->thread (block.params);
          block.of[f->thread] = NULL;
          block.ended++;
        }
      f->state = IDLE;
      to_main (f);
    }
}

static Fibre *
new_fibre (void)
{
  Fibre *f = &fibres[n_fibres++];
  char *room = mmap (NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  if (room == MAP_FAILED || mprotect (room, GUARD_BYTES, PROT_NONE) != 0)
    fail ("no memory for stacks");
  f->stack = room + GUARD_BYTES;
  getcontext (&f->place.context);
  f->place.context.uc_stack.ss_sp = f->stack;
  f->place.context.uc_stack.ss_size = STACK_BYTES;
  f->place.context.uc_link = NULL;
  makecontext (&f->place.context, fibre_main, 0);
  f->state = IDLE;
  return f;
}

/* --- waiting --- */

void
td_emu_barrier (const char *file, int line)
{
  Fibre *f = now;

  f->state = WAITS_BLOCK;
  f->file = file;
  f->line = line;
  to_main (f);
}

uint64_t
td_emu_warp (TdEmuWarpOp op, uint32_t mask, uint64_t value, int argument, const char *file,
             int line)
{
  Fibre *f = now;

  f->state = WAITS_WARP;
  f->file = file;
  f->line = line;
  f->op = op;
  f->mask = mask;
  f->value = value;
  f->argument = argument;
  if ((mask >> f->thread % WARP & 1) == 0)
    fail ("a warp's mask leaves out the thread that calls");
  to_main (f);
  return f->value;
}

static const char *
base_name (const char *path)
{
  const char *slash = strrchr (path, '/');

  return slash != NULL ? slash + 1 : path;
}

static void
describe (const Fibre *f, char *text, size_t size)
{
  if (f == NULL)
    snprintf (text, size, "has ended");
  else
    snprintf (text, size, "waits at the %s of %s:%d",
              f->state == WAITS_BLOCK ? "barrier" : "shuffle", base_name (f->file), f->line);
}

/* Thread `a` cannot go on because of `b`. */
__attribute__ ((noreturn)) static void
diverged (unsigned a, unsigned b)
{
  char one[200], other[200], text[512];

  describe (block.of[a], one, sizeof one);
  describe (block.of[b], other, sizeof other);
  snprintf (text, sizeof text, "divergence: thread %u %s, thread %u %s", a, one, b, other);
  threadIdx.x = a;
  fail (text);
}

/* The value that lane `lane` takes away. */
static uint64_t
taken (Fibre *const *lanes, int lane)
{
  const Fibre *f = lanes[lane];
  int from = lane;
  uint64_t ballot = 0;

  switch (f->op)
    {
    case TD_EMU_XOR:
      from = lane ^ f->argument;
      break;
    case TD_EMU_DOWN:
      from = lane + f->argument;
      break;
    case TD_EMU_UP:
      from = lane - f->argument;
      break;
    case TD_EMU_FROM:
      from = f->argument & (WARP - 1);
      break;
    case TD_EMU_BALLOT:
      for (int k = 0; k < WARP; k++)
        if (lanes[k] != NULL)
          ballot |= (uint64_t)(lanes[k]->value != 0) << k;
      return ballot;
    case TD_EMU_MEET:
      return 0;
    }
  if (from < 0 || from >= WARP)
    return f->value;
  if (lanes[from] == NULL)
    fail ("a shuffle reads a lane that takes no part");
  return lanes[from]->value;
}

/* Let the threads of a warp go on that wait for each other; false if none does. */
static int
warp_meets (unsigned first)
{
  const unsigned end = first + WARP < block.n ? first + WARP : block.n;
  int met = 0;

  for (unsigned t = first; t < end; t++)
    {
      Fibre *f = block.of[t], *lanes[WARP] = { NULL };
      uint64_t values[WARP];

      if (f == NULL || f->state != WAITS_WARP)
        continue;
      for (unsigned k = first; k < end; k++)
        if (f->mask >> (k - first) & 1)
          {
            Fibre *g = block.of[k];

            if (g == NULL || g->state != WAITS_WARP || g->line != f->line || g->op != f->op
                || g->mask != f->mask || strcmp (g->file, f->file) != 0)
              diverged (t, k);
            lanes[k - first] = g;
          }
      for (int k = 0; k < WARP; k++)
        if (lanes[k] != NULL)
          values[k] = taken (lanes, k);
      for (int k = 0; k < WARP; k++)
        if (lanes[k] != NULL)
          {
            lanes[k]->value = values[k];
            lanes[k]->state = RUNS;
          }
      td_emu_warp_epoch[first / WARP] += f->op == TD_EMU_MEET;
      met = 1;
    }
  return met;
}

/* All threads that have not ended wait. */
static void
meet (void)
{
  int met = 0;

  for (unsigned first = 0; first < block.n; first += WARP)
    met |= warp_meets (first);
  if (met)
    return;
  for (unsigned t = 0; t < block.n; t++)
    for (unsigned k = 0; k < block.n; k += t == 0 ? 1 : block.n)
      {
        const Fibre *f = block.of[t], *g = block.of[k];

        if (f == NULL && g == NULL)
          continue;
        if (f == NULL || g == NULL || f->line != g->line || strcmp (f->file, g->file) != 0)
          diverged (f != NULL ? t : k, f != NULL ? k : t);
      }
  for (unsigned t = 0; t < block.n; t++)
    block.of[t]->state = RUNS;
  td_emu_epoch++;
}

/* --- blocks --- */

static uint32_t
scramble (uint32_t v)
{
  v = (v ^ v >> 16) * 0x7FEB352Du;
  v = (v ^ v >> 15) * 0x846CA68Bu;
  return v ^ v >> 16;
}

/* A permutation of 0 .. n - 1 that belongs to the order. */
static void
make_turns (unsigned *turn, unsigned n, uint32_t seed)
{
  for (unsigned i = 0; i < n; i++)
    turn[i] = order == TD_EMU_BACKWARD ? n - 1 - i : i;
  for (unsigned i = n; order == TD_EMU_SHUFFLED && i > 1; i--)
    {
      const unsigned k = scramble (seed + i) % i, other = turn[k];

      turn[k] = turn[i - 1];
      turn[i - 1] = other;
    }
}

static void
run_block (void)
{
  for (TdEmuArea *area = areas; area != NULL; area = area->next)
    if (area->used)
      spoil (area);
  td_emu_epoch++;
  block.started = block.ended = 0;
  make_turns (block.turn, block.n, scramble (blockIdx.x + 31 * blockIdx.y));
  while (block.ended < block.n)
    {
      int any = 0;

      for (unsigned i = 0; i < block.started; i++)
        {
          Fibre *f = block.of[block.turn[i]];

          if (f != NULL && f->state == RUNS)
            {
              any = 1;
              resume (f);
            }
        }
      if (block.started < block.n)
        {
          Fibre *f = NULL;

          for (unsigned i = 0; i < n_fibres && f == NULL; i++)
            f = fibres[i].state == IDLE ? &fibres[i] : NULL;
          resume (f != NULL ? f : new_fibre ());
          any = 1;
        }
      if (!any)
        meet ();
    }
}

void
td_emu_order (TdEmuOrder new_order)
{
  order = new_order;
}

void
td_emu_run (TdEmuKernel *kernel, const unsigned grid[3], unsigned threads, const void *params)
{
  const unsigned n_blocks = grid[0] * grid[1] * grid[2];
  void *copy = malloc (kernel->params_bytes);

  block.kernel = kernel;
  gridDim = (TdEmuDim){ grid[0], grid[1], grid[2] };
  blockDim = (TdEmuDim){ threads, 1, 1 };
  threadIdx = blockIdx = (TdEmuDim){ 0, 0, 0 };
  if (copy == NULL || threads == 0 || threads > MAX_THREADS || threads % WARP != 0
      || n_blocks == 0)
    fail ("a launch that no GPU would take");
  memcpy (copy, params, kernel->params_bytes);
  block.params = copy;
  block.n = threads;
  launches++;
  kernel->runs++;
  for (unsigned i = 0; i < n_blocks; i++)
    {
      const unsigned b = order == TD_EMU_FORWARD ? i : n_blocks - 1 - i;

      blockIdx = (TdEmuDim){ b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1] };
      run_block ();
    }
  free (copy);
}

long
td_emu_launches (void)
{
  return launches;
}

/* --- faults --- */

static void
fault (int number, siginfo_t *info, void *context)
{
  (void)number;
  (void)context;
  if (now == NULL)
    {
      signal (SIGSEGV, SIG_DFL);
      return;
    }
  fprintf (stderr, "emulator: bad address %p: ", info->si_addr);
  fail ("outside every array");
}

void
td_emu_report_faults (void)
{
  static char room[64 << 10];
  const stack_t stack = { .ss_sp = room, .ss_size = sizeof room };
  struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

  sigaltstack (&stack, NULL);
  sigaction (SIGSEGV, &action, NULL);
}
