/* Scopes of the program over time.
 * SPDX-License-Identifier: MIT */
#include "schedule/td-scope-times.h"

static gboolean
is_named (const TdIteration *iteration, const TdTapeSpan *span)
{
  return span->kind == TD_TAPE_SPAN_SCOPE
         && *td_iteration_get_string (iteration, span->name) != '\0';
}

static guint
count_around (const TdIteration *iteration, guint span)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  guint n = 0;

  for (guint32 at = t->spans[span].parent; at < t->n_spans && at < span;
       span = at, at = t->spans[at].parent) /* what is around was opened before */
    n += is_named (iteration, &t->spans[at]);
  return n;
}

GArray *
td_scope_times_new (const TdIteration *iteration)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  GArray *scopes = g_array_new (FALSE, TRUE, sizeof (TdScopeTime));

  for (guint i = 0; t->event_start_ns && i < t->n_spans; i++)
    {
      const TdTapeSpan *span = &t->spans[i];
      guint end = MIN (span->end, t->n_events);
      guint64 end_ns = 0;
      TdScopeTime scope = { .name = td_iteration_get_string (iteration, span->name),
                            .key = span->key,
                            .first_event = span->begin,
                            .start_ns = G_MAXUINT64 };

      if (!is_named (iteration, span) || span->begin >= end)
        continue;
      scope.last_event = end - 1;
      scope.depth = count_around (iteration, i);
      for (guint e = span->begin; e < end; e++)
        {
          scope.start_ns = MIN (scope.start_ns, t->event_start_ns[e]);
          end_ns = MAX (end_ns, t->event_start_ns[e] + t->event_duration_ns[e]);
        }
      scope.ns = end_ns - MIN (scope.start_ns, end_ns);
      g_array_append_val (scopes, scope);
    }
  return scopes;
}
