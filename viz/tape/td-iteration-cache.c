/* Least recently used cache of iterations.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-iteration-cache.h"

typedef struct
{
  gint64 number;
  TdIteration *iteration;
  gsize bytes;
  gboolean stale;
  GList link; /* in `order` */
} Entry;

struct TdIterationCache
{
  gsize budget, bytes;
  GHashTable *entries; /* gint64 * in the entry -> Entry */
  GQueue order;        /* newest first */
};

static void
entry_free (gpointer data)
{
  Entry *entry = data;

  td_iteration_unref (entry->iteration);
  g_free (entry);
}

TdIterationCache *
td__iteration_cache_new (gsize budget)
{
  TdIterationCache *self = g_new0 (TdIterationCache, 1);

  self->budget = budget;
  self->entries = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, entry_free);
  g_queue_init (&self->order);
  return self;
}

void
td__iteration_cache_free (TdIterationCache *self)
{
  g_hash_table_unref (self->entries);
  g_free (self);
}

static void
remove_entry (TdIterationCache *self, Entry *entry)
{
  g_queue_unlink (&self->order, &entry->link);
  self->bytes -= entry->bytes;
  g_hash_table_remove (self->entries, &entry->number);
}

void
td__iteration_cache_set_budget (TdIterationCache *self, gsize budget)
{
  self->budget = budget;
}

void
td__iteration_cache_put (TdIterationCache *self, TdIteration *iteration)
{
  gint64 number = td_iteration_get_number (iteration);
  Entry *entry = g_hash_table_lookup (self->entries, &number);

  td_iteration_ref (iteration);
  if (entry)
    remove_entry (self, entry);
  entry = g_new0 (Entry, 1);
  entry->number = number;
  entry->iteration = iteration;
  entry->bytes = td_iteration_get_size (iteration);
  entry->link.data = entry;
  self->bytes += entry->bytes;
  g_hash_table_insert (self->entries, &entry->number, entry);
  g_queue_push_head_link (&self->order, &entry->link);
  while (self->bytes > self->budget && self->order.length > 1)
    remove_entry (self, self->order.tail->data);
}

TdIteration *
td__iteration_cache_get (TdIterationCache *self, gint64 number, gboolean *stale)
{
  Entry *entry = g_hash_table_lookup (self->entries, &number);

  if (stale)
    *stale = entry && entry->stale;
  if (!entry)
    return NULL;
  g_queue_unlink (&self->order, &entry->link);
  g_queue_push_head_link (&self->order, &entry->link);
  return entry->iteration;
}

void
td__iteration_cache_set_stale (TdIterationCache *self, gint64 number)
{
  Entry *entry = g_hash_table_lookup (self->entries, &number);

  if (entry)
    entry->stale = TRUE;
}

gsize
td__iteration_cache_get_bytes (const TdIterationCache *self)
{
  return self->bytes;
}
