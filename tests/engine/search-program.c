/* Random programs: drawing, printing, and what is smaller by one thing.
 *
 * SPDX-License-Identifier: MIT */
#include "search-program.h"

#include <stdint.h>
#include <string.h>

#define TEXT(x) #x,
static const char *const kind_names[] = { STATEMENTS (TEXT) };
static const char *const event_names[] = { EVENTS (TEXT) };

static uint32_t stream;

static unsigned
draw (unsigned below)
{
  stream = stream * 1664525u + 1013904223u;
  return (stream >> 9) % below;
}

/* What keeps a function from being replayed, or ends an iteration, is drawn now and then only:
 * else nothing else would be looked at. */
static Kind
draw_kind (void)
{
  const Kind kind = (Kind)draw (OTHER_DTYPE); /* those after it have a draw of their own */

  switch ((int)kind)
    {
    case FAIL:
    case READ:
    case FORGET:
    case HIDDEN_SCALE:
    case SELF_SCALE:
      return draw (5) != 0 ? LAYER : kind;
    case STATEFUL:
      return draw (16) != 0 ? ADD : kind;
    default:
      return kind;
    }
}

Program
program_generate (unsigned seed)
{
  Program p = { .seed = seed };

  stream = 2654435761u * (seed + 1);
  p.n = 2 + (int)draw (MAX_STATEMENTS - 2);
  for (int i = 0; i < p.n; i++)
    p.list[i] = (Statement){ draw_kind (), draw (6), draw (6), draw (64), draw (4) == 0 };
  p.n_events = (int)draw (MAX_EVENTS);
  for (int i = 0; i < p.n_events; i++)
    p.events[i] = (Event){ (EventKind)draw (N_EVENTS), (int)draw (ITERATIONS) };
  p.results[1] = draw (6);
  p.optimizer = draw (N_OPTIMIZERS);
  p.second = draw (2) == 0 ? draw (N_OPTIMIZERS) : N_OPTIMIZERS;
  p.opt_hook = draw (2) == 0 ? draw (N_OPT_HOOKS) : 0;
  p.passes = 1 + draw ((1u << N_PASSES) - 1);
  p.level = draw (3);
  p.frozen_arguments = draw (4) == 0;
  for (int i = 0; i < p.n_events; i++)
    p.double_backprop |= p.events[i].kind == DOUBLE_BACKWARD;
  p.double_backprop |= draw (2) == 0;
  p.trainer = draw (3) == 0;
  p.snapshot = draw (2) == 0;
  p.loss_scaling = draw (6) == 0;
  p.stop_at = 1 + (int)draw (ITERATIONS - 1);
  p.file = (FileKind)draw (N_FILES);
  return p;
}

Program
program_generate_more (unsigned seed)
{
  Program p = program_generate (seed);

  p.other_dtypes = draw (3) == 0;
  for (int i = 0; i < p.n && p.other_dtypes; i++)
    if (draw (2) == 0)
      p.list[i].kind = OTHER_DTYPE;
  if (draw (8) == 0)
    {
      p.list[draw ((unsigned)p.n)].kind = OWN_HIDDEN;
      p.events[0] = (Event){ HIDDEN_CHANGES, (int)draw (ITERATIONS) };
      p.n_events += p.n_events == 0;
    }
  p.goes_on = draw (6) == 0;
  for (int i = 0; i < p.n_events; i++) /* td_forget refuses it, where it is on the way */
    p.goes_on &= p.events[i].kind != DOUBLE_BACKWARD;
  p.loss_scaling |= p.goes_on && draw (2) == 0;
  if (draw (4) == 0)
    for (int i = 0; i < p.n; i++)
      if (draw (3) == 0)
        p.list[i].kind = draw (2) == 0 ? REMEMBER : EVALUATED;
  return p;
}

bool
program_has (const Program *p, EventKind kind, int iteration)
{
  for (int i = 0; i < p->n_events; i++)
    if (p->events[i].kind == kind && p->events[i].iteration == iteration)
      return true;
  return false;
}

void
program_print (FILE *to, const Program *p)
{
  fprintf (to,
           "seed %u: results %u %u, optimizer %u, second %u, hook %u, passes off %u, level %u, "
           "stop at %d, file %d%s%s%s%s%s%s%s\n",
           p->seed, p->results[0], p->results[1], p->optimizer, p->second, p->opt_hook,
           p->passes, p->level, p->stop_at, (int)p->file,
           p->frozen_arguments ? ", frozen arguments" : "",
           p->double_backprop ? ", double backprop" : "", p->trainer ? ", trainer" : "",
           p->snapshot ? ", snapshot" : "", p->loss_scaling ? ", loss scaling" : "",
           p->other_dtypes ? ", other dtypes" : "", p->goes_on ? ", goes on" : "");
  for (int i = 0; i < p->n; i++)
    fprintf (to, "  %-12s a %u, b %u, which %u%s\n", kind_names[p->list[i].kind], p->list[i].a,
             p->list[i].b, p->list[i].which, p->list[i].no_backprop ? ", no backprop" : "");
  for (int i = 0; i < p->n_events; i++)
    fprintf (to, "  in iteration %d: %s\n", p->events[i].iteration,
             event_names[p->events[i].kind]);
}

static void
drop_statement (Program *p, int i)
{
  memmove (&p->list[i], &p->list[i + 1], (size_t)(--p->n - i) * sizeof *p->list);
}

static void
drop_event (Program *p, int i)
{
  memmove (&p->events[i], &p->events[i + 1], (size_t)(--p->n_events - i) * sizeof *p->events);
}

/* One of the properties, to what is simplest; false: it is that already. */
static bool
simpler_property (Program *p, int k)
{
  const Program before = *p;
  bool *const switches[]
      = { &p->frozen_arguments, &p->trainer, &p->snapshot, &p->loss_scaling, &p->goes_on };

  if (k < 5)
    *switches[k] = false;
  else if (k == 5)
    p->optimizer = 0;
  else if (k == 6)
    p->second = N_OPTIMIZERS;
  else if (k == 7)
    p->opt_hook = 0;
  else if (k == 8)
    p->file = FILE_OBJECT;
  else if (k == 9)
    p->results[1] = 0;
  else if (k - 10 < N_PASSES && (p->passes & (p->passes - 1)) != 0)
    p->passes &= ~(1u << (k - 10));
  return memcmp (&before, p, sizeof before) != 0;
}

bool
program_smaller (const Program *p, int k, Program *smaller)
{
  const int properties = 10 + N_PASSES;

  *smaller = *p;
  if (k < p->n_events)
    {
      drop_event (smaller, p->n_events - 1 - k);
      return true;
    }
  k -= p->n_events;
  if (k < p->n)
    {
      if (p->n > 1)
        drop_statement (smaller, p->n - 1 - k);
      return true;
    }
  k -= p->n;
  if (k < p->n)
    {
      smaller->list[k].no_backprop = false;
      return true;
    }
  k -= p->n;
  if (k < p->n)
    {
      smaller->list[k].a = smaller->list[k].b = smaller->list[k].which = 0;
      return true;
    }
  k -= p->n;
  if (k >= properties)
    return false;
  simpler_property (smaller, k);
  return true;
}
