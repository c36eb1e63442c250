/* The schedules that a static function keeps: entries, which of them go, and how much memory
 * their instances may take.
 *
 * SPDX-License-Identifier: MIT */
#include "notify.h"
#include "static.h"

#include <stdlib.h>

TdEntry *
td__entry_ref (TdEntry *e)
{
  e->refs++;
  return e;
}

void
td__entry_unref (TdEntry *e)
{
  if (--e->refs > 0)
    return;
  td__trace_free (e->trace);
  td__plan_unref (e->plan);
  td__guards_free (e->guards);
  td__schedule_free (e->schedule);
  free (e->op_out);
  free (e->reads);
  free (e->reads_out);
  free (e);
}

/* Take an entry out of the cache; instances that wait for backward live on. */
void
td__static_evict (TdStatic *s, TdEntry *e)
{
  TdEntry **at = &s->entries;

  while (*at != e)
    at = &(*at)->next;
  *at = e->next;
  s->n_entries--;
  s->info.n_evictions++;
  td__static_notify (s, TD_STATIC_EVENT_EVICTED, e, NULL, NULL);
  if (e->trace != NULL)
    {
      td__trace_free (e->trace);
      e->trace = NULL;
    }
  e->owner = NULL;
  while (e->instances != NULL)
    {
      TdInstance *i = e->instances;

      e->instances = i->next;
      td__instance_unref (i);
    }
  td__entry_unref (e);
}

void
td_static_clear (TdStatic *s)
{
  if (td__stranger ("td_static_clear"))
    return;
  while (s != NULL && s->entries != NULL)
    td__static_evict (s, s->entries);
  if (s != NULL)
    td__look_no_more (s, true);
}

size_t
td__entry_bytes (const TdEntry *e)
{
  size_t bytes = 0;

  for (const TdInstance *i = e->instances; i != NULL; i = i->next)
    bytes += i->arena != NULL ? i->arena->bytes : 0;
  return bytes;
}

void
td__cache_keep_within (TdStatic *s, const TdEntry *keep)
{
  size_t bytes = 0;

  for (const TdEntry *e = s->entries; e != NULL; e = e->next)
    bytes += td__entry_bytes (e);
  while (s->options.cache_bytes > 0 && bytes > s->options.cache_bytes && s->n_entries > 1)
    {
      TdEntry *oldest = NULL;

      for (TdEntry *e = s->entries; e != NULL; e = e->next)
        if (e != keep && (oldest == NULL || e->last_use < oldest->last_use))
          oldest = e;
      bytes -= td__entry_bytes (oldest);
      td__static_evict (s, oldest);
    }
}

/* These counts only grow. */
void
td__cache_drop_dead (TdStatic *s)
{
  for (TdEntry *e = s->entries, *next; e != NULL; e = next)
    {
      next = e->next;
      if (e->guards->links_generation != td__links_generation
          || (e->guards->reads_state
              && e->guards->state_generation != td__engine.state_generation))
        td__static_evict (s, e);
    }
}

void
td__cache_make_room (TdStatic *s, const TdEntry *next)
{
  const uint32_t most = s->keeps_several ? TD_KEYS : 1;

  if (!s->options.minimize_cache_size)
    return;
  if (!s->keeps_several && s->entries != NULL && td__keys_alternate (s, s->entries, next))
    return;
  while (s->n_entries >= most)
    {
      TdEntry *oldest = s->entries;

      for (TdEntry *e = s->entries; e != NULL; e = e->next)
        if (e->last_use < oldest->last_use)
          oldest = e;
      td__static_evict (s, oldest);
    }
}
