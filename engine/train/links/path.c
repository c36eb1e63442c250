/* Link paths, interned: one TdPath per text for the life of the process, so that a recorder can
 * know them by pointer or id.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

static TdPath **table; /* open addressing, a power of two */
static size_t n_slots, n_paths;

static uint32_t
hash_text (const char *text)
{
  uint32_t h = 2166136261u;

  for (; *text != '\0'; text++)
    h = (h ^ (unsigned char)*text) * 16777619u;
  return h;
}

static TdPath **
find_slot (const char *text, const char *link_class)
{
  size_t i = hash_text (text) & (n_slots - 1);

  while (
      table[i] != NULL
      && (strcmp (table[i]->text, text) != 0 || strcmp (table[i]->link_class, link_class) != 0))
    i = (i + 1) & (n_slots - 1);
  return &table[i];
}

static void
grow (void)
{
  TdPath **old = table;
  size_t n_old = n_slots;

  n_slots = n_old > 0 ? n_old * 2 : 64;
  table = td__xcalloc (n_slots, sizeof *table);
  for (size_t i = 0; i < n_old; i++)
    if (old[i] != NULL)
      *find_slot (old[i]->text, old[i]->link_class) = old[i];
  free (old);
}

const TdPath *
td__path_intern (const char *text, const char *link_class)
{
  TdPath **slot;

  if (2 * (n_paths + 1) > n_slots)
    grow ();
  slot = find_slot (text, link_class);
  if (*slot == NULL)
    {
      *slot = td__xcalloc (1, sizeof **slot);
      (*slot)->id = (uint32_t)++n_paths;
      (*slot)->text = td__xstrdup (text);
      (*slot)->link_class = td__xstrdup (link_class);
    }
  return *slot;
}
