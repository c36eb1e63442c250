/* Hooks that measure: time and memory, of operations or of links.
 *
 * Calls nest (a link in a link, the operations of a backward), so each running call stands on a
 * stack and takes its time off the one that it runs in.
 *
 * SPDX-License-Identifier: MIT */
#include "hooks.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct
{
  char *name;
  TdHookTotals totals[2]; /* forward, backward */
} Row;

typedef struct
{
  double seconds;
  int64_t used, acquired;
} Reading;

typedef struct
{
  int row, direction;
  Reading start, inner; /* inner: what measured calls inside took */
} Running;

typedef struct
{
  Row *rows;
  int n_rows;
  Running *stack;
  int depth, capacity;
  TdHookTotals totals;
  bool memory;
} Profile;

static Reading
reading (const Profile *p)
{
  Reading r = { 0 };
  struct timespec t;

  if (p->memory)
    {
      TdMemInfo info = td__mem_info_whole (td__engine.device);

      r.used = (int64_t)info.live_bytes;
      r.acquired = (int64_t)info.reserved_bytes;
    }
  else
    td_device_synchronize (td__engine.device);
  clock_gettime (CLOCK_MONOTONIC, &t);
  r.seconds = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
  return r;
}

static int
row_of (Profile *p, const char *name)
{
  for (int i = 0; i < p->n_rows; i++)
    if (strcmp (p->rows[i].name, name) == 0)
      return i;
  p->rows = td__xrealloc (p->rows, (size_t)(p->n_rows + 1) * sizeof *p->rows);
  p->rows[p->n_rows] = (Row){ .name = td__xstrdup (name) };
  return p->n_rows++;
}

static void
start (Profile *p, const char *name, int direction)
{
  if (p->depth == p->capacity)
    {
      p->capacity = p->capacity > 0 ? 2 * p->capacity : 16;
      p->stack = td__xrealloc (p->stack, (size_t)p->capacity * sizeof *p->stack);
    }
  p->stack[p->depth] = (Running){ .row = row_of (p, name), .direction = direction };
  p->stack[p->depth++].start = reading (p);
}

static void
add (TdHookTotals *t, const Reading *whole, const Reading *inner)
{
  t->n_calls++;
  t->seconds += whole->seconds;
  t->self_seconds += whole->seconds - inner->seconds;
  t->used_bytes += whole->used;
  t->self_used_bytes += whole->used - inner->used;
  t->acquired_bytes += whole->acquired;
}

/* Registered in the middle of a call, a hook hears its end alone: that counts nothing. */
static void
stop (Profile *p, const char *name, int direction)
{
  Running *r = p->depth > 0 ? &p->stack[p->depth - 1] : NULL;
  Reading whole;

  if (r == NULL || r->direction != direction || strcmp (p->rows[r->row].name, name) != 0)
    return;
  whole = reading (p);
  whole.seconds -= r->start.seconds;
  whole.used -= r->start.used;
  whole.acquired -= r->start.acquired;
  add (&p->rows[r->row].totals[direction], &whole, &r->inner);
  if (--p->depth == 0)
    {
      add (&p->totals, &whole, &r->inner);
      return;
    }
  p->stack[p->depth - 1].inner.seconds += whole.seconds;
  p->stack[p->depth - 1].inner.used += whole.used;
  p->stack[p->depth - 1].inner.acquired += whole.acquired;
}

#define MOMENT(name, Call, what, text, direction)                                              \
  static void name (TdHook *hook, void *self, const Call *call)                                \
  {                                                                                            \
    (void)hook;                                                                                \
    what (self, call->text, direction);                                                        \
  }
MOMENT (function_forward_pre, TdFunctionCall, start, label, 0)
MOMENT (function_forward_post, TdFunctionCall, stop, label, 0)
MOMENT (function_backward_pre, TdFunctionCall, start, label, 1)
MOMENT (function_backward_post, TdFunctionCall, stop, label, 1)
MOMENT (link_forward_pre, TdLinkCall, start, path, 0)
MOMENT (link_forward_post, TdLinkCall, stop, path, 0)
MOMENT (link_backward_pre, TdLinkCall, start, path, 1)
MOMENT (link_backward_post, TdLinkCall, stop, path, 1)

static void
profile_free (void *self)
{
  Profile *p = self;

  for (int i = 0; i < p->n_rows; i++)
    free (p->rows[i].name);
  free (p->rows);
  free (p->stack);
}

#define FUNCTION_MOMENTS                                                                       \
  .self_bytes = sizeof (Profile), .forward_preprocess = function_forward_pre,                  \
  .forward_postprocess = function_forward_post, .backward_preprocess = function_backward_pre,  \
  .backward_postprocess = function_backward_post, .free = profile_free
#define LINK_MOMENTS                                                                           \
  .self_bytes = sizeof (Profile), .link_forward_preprocess = link_forward_pre,                 \
  .link_forward_postprocess = link_forward_post,                                               \
  .link_backward_preprocess = link_backward_pre,                                               \
  .link_backward_postprocess = link_backward_post, .free = profile_free

static const TdHookClass timer_class
    = { .size = sizeof (TdHookClass), .name = "TimerHook", FUNCTION_MOMENTS };
static const TdHookClass link_timer_class
    = { .size = sizeof (TdHookClass), .name = "LinkTimerHook", LINK_MOMENTS };
static const TdHookClass memory_class
    = { .size = sizeof (TdHookClass), .name = "MemoryHook", FUNCTION_MOMENTS };
static const TdHookClass link_memory_class
    = { .size = sizeof (TdHookClass), .name = "LinkMemoryHook", LINK_MOMENTS };

static TdHook *
profile_new (const TdHookClass *cls, bool memory)
{
  TdHook *hook = td_hook_new (cls);

  if (hook->self != NULL)
    ((Profile *)hook->self)->memory = memory;
  return hook;
}

TdHook *
td_timer_hook_new (void)
{
  return profile_new (&timer_class, false);
}

TdHook *
td_link_timer_hook_new (void)
{
  return profile_new (&link_timer_class, false);
}

TdHook *
td_memory_hook_new (void)
{
  return profile_new (&memory_class, true);
}

TdHook *
td_link_memory_hook_new (void)
{
  return profile_new (&link_memory_class, true);
}

static Profile *
profile_of (const TdHook *hook, const char *call)
{
  if (!td__asked (call) && hook != NULL && hook->cls->free == profile_free)
    return hook->self;
  td__fail (TD_ERR_ARG, call, td__engine.site, "%s is no hook that measures",
            hook != NULL ? hook->name : "NULL");
  return NULL;
}

int
td_hook_n_rows (const TdHook *hook)
{
  const Profile *p = profile_of (hook, "td_hook_n_rows");

  return p != NULL ? p->n_rows : 0;
}

TdHookRow
td_hook_row (const TdHook *hook, int i)
{
  const Profile *p = profile_of (hook, "td_hook_row");

  if (p == NULL)
    return (TdHookRow){ .name = "" };
  if (i < 0 || i >= p->n_rows)
    {
      td__fail (TD_ERR_ARG, "td_hook_row", td__engine.site, "%s has %d rows, no row %d",
                hook->name, p->n_rows, i);
      return (TdHookRow){ .name = "" };
    }
  return (TdHookRow){ p->rows[i].name, p->rows[i].totals[0], p->rows[i].totals[1] };
}

TdHookTotals
td_hook_totals (const TdHook *hook)
{
  const Profile *p = profile_of (hook, "td_hook_totals");

  return p != NULL ? p->totals : (TdHookTotals){ 0 };
}

void
td_hook_clear (TdHook *hook)
{
  Profile *p = profile_of (hook, "td_hook_clear");

  if (p == NULL)
    return;
  for (int i = 0; i < p->n_rows; i++)
    {
      memset (p->rows[i].totals, 0, sizeof p->rows[i].totals);
      if (p->depth == 0)
        free (p->rows[i].name);
    }
  if (p->depth == 0)
    p->n_rows = 0;
  p->totals = (TdHookTotals){ 0 };
}

static void
print_totals (const TdHookTotals *t, bool memory)
{
  if (memory)
    printf ("%14lld%14lld%8lld", (long long)t->used_bytes, (long long)t->acquired_bytes,
            (long long)t->n_calls);
  else
    printf ("%12.3fms%12.3fms%8lld", 1e3 * t->seconds, 1e3 * t->self_seconds,
            (long long)t->n_calls);
}

void
td_hook_print_report (const TdHook *hook)
{
  const Profile *p = profile_of (hook, "td_hook_print_report");

  if (p == NULL)
    return;
  printf ("%32s%14s%14s%8s%14s%14s%8s\n", hook->cls == &link_timer_class ? "Link" : "Function",
          p->memory ? "UsedBytes" : "Forward", p->memory ? "AcqBytes" : "ForwardSelf", "Calls",
          p->memory ? "UsedBytes" : "Backward", p->memory ? "AcqBytes" : "BackwardSelf",
          "Calls");
  for (int i = 0; i < p->n_rows; i++)
    {
      printf ("%32s", p->rows[i].name);
      print_totals (&p->rows[i].totals[0], p->memory);
      print_totals (&p->rows[i].totals[1], p->memory);
      printf ("\n");
    }
}
