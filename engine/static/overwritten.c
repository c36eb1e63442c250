/* Which values of a replay that somebody looks at are still there.  Values that do not live at
 * the same time share memory of the arena, and the nodes that events refer to outlive them: a
 * debugger that reads one later would be given another value's numbers.  Writes are counted as
 * they happen; what a read asks for is worked out when it asks.
 *
 * SPDX-License-Identifier: MIT */
#include "replay.h"
#include "host-memory.h"

#include <string.h>

/* Those that have slices. */
static TdInstance *observed;

void
td__overwritten_begin (TdInstance *i)
{
  const uint32_t n = i->plan->s->n_values;

  if (i->written == NULL)
    {
      i->written = td__xcalloc (n + 1, sizeof *i->written);
      i->next_observed = observed;
      observed = i;
    }
  memset (i->written, 0, n * sizeof *i->written);
  i->n_written = 0;
}

void
td__overwritten_end (TdInstance *i)
{
  TdInstance **p = &observed;

  while (*p != NULL && *p != i)
    p = &(*p)->next_observed;
  if (*p != NULL)
    *p = i->next_observed;
  free (i->written);
  i->written = NULL;
}

/* A step that is not run, such as a change of shape, shows what its inputs are. */
void
td__overwritten_note (TdInstance *i, const TdStep *step, bool runs)
{
  const TdSchedule *s = i->plan->s;
  uint64_t there = 0;

  if (i->written == NULL)
    return;
  for (uint32_t k = 0; !runs && k < step->n_in; k++)
    {
      const TdWritten *in = &i->written[s->nodes[td__step_in (s, step, k)].value];

      there = in->there > there ? in->there : there;
    }
  for (uint32_t k = 0; k < step->n_out; k++)
    {
      TdWritten *out = &i->written[s->nodes[td__step_out (s, step, k)].value];

      if (runs)
        *out = (TdWritten){ .by = ++i->n_written, .there = i->n_written };
      else if (out->there < there)
        out->there = there;
    }
}

static bool
overlap (const char *a, size_t n, const char *b, size_t m)
{
  return a < b + m && b < a + n;
}

/* A value outside the arena has memory of its own. */
static bool
is_in_arena (const TdInstance *i, const TdBuffer *b)
{
  return i->arena != NULL
         && overlap (b->data, b->bytes, (const char *)i->arena->data, i->arena->bytes);
}

static bool
is_lost (const TdInstance *i, uint32_t value)
{
  const TdSchedule *s = i->plan->s;
  const TdBuffer *b = i->slices[value];
  const uint64_t there = i->written[value].there;

  if (b->bytes == 0 || !is_in_arena (i, b))
    return false;
  for (uint32_t v = 0; v < s->n_values; v++)
    if (v != value && i->written[v].by > there && i->address[v] != NULL
        && overlap (b->data, b->bytes, i->address[v], s->values[v].bytes))
      return true;
  return there == 0;
}

bool
td__overwritten (const TdBuffer *b)
{
  for (const TdInstance *i = observed; i != NULL; i = i->next_observed)
    for (uint32_t v = 0; i->slices != NULL && v < i->plan->s->n_values; v++)
      if (i->slices[v] == b)
        return is_lost (i, v);
  return false;
}
