/* A set of names: open addressing, no removal.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-names.h"

#include "../links/object.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a name is, or would be. */
static struct TdOnnxTaken *
slot_of (const TdOnnxNames *names, const char *text)
{
  uint64_t h = 14695981039346656037u;
  size_t at;

  for (const char *c = text; *c != '\0'; c++)
    h = (h ^ (unsigned char)*c) * 1099511628211u;
  at = (size_t)(h ^ h >> 32) & (names->capacity - 1);
  while (names->slots[at].text != NULL && strcmp (names->slots[at].text, text) != 0)
    at = (at + 1) & (names->capacity - 1);
  return &names->slots[at];
}

static void
grow (TdOnnxNames *names)
{
  const TdOnnxNames old = *names;

  names->capacity = old.capacity > 0 ? 2 * old.capacity : 256;
  names->slots = td__xcalloc (names->capacity, sizeof *names->slots);
  for (size_t i = 0; i < old.capacity; i++)
    if (old.slots[i].text != NULL)
      *slot_of (names, old.slots[i].text) = old.slots[i];
  free (old.slots);
}

const char *
td__onnx_name_take (TdOnnxNames *names, const char *wanted)
{
  char *text = td__xmalloc (strlen (wanted) + 16);
  struct TdOnnxTaken *slot, *first;

  if (2 * names->n >= names->capacity)
    grow (names);
  strcpy (text, wanted);
  slot = first = slot_of (names, text);
  while (slot->text != NULL)
    {
      sprintf (text, "%s_%u", wanted, ++first->next);
      slot = slot_of (names, text);
    }
  names->n++;
  return slot->text = text;
}

void
td__onnx_names_free (TdOnnxNames *names)
{
  for (size_t i = 0; i < names->capacity; i++)
    free (names->slots[i].text);
  free (names->slots);
  *names = (TdOnnxNames){ NULL, 0, 0 };
}
