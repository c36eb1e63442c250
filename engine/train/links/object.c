/* The list of live objects, and memory for small structures.
 *
 * SPDX-License-Identifier: MIT */
#include "object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TdObject *newest;

void
td__object_add (TdObject *object, void (*free_object) (void *object))
{
  object->free = free_object;
  object->prev = NULL;
  object->next = newest;
  if (newest != NULL)
    newest->prev = object;
  newest = object;
}

void
td__object_remove (TdObject *object)
{
  if (object->next != NULL)
    object->next->prev = object->prev;
  if (object->prev != NULL)
    object->prev->next = object->next;
  else if (newest == object)
    newest = object->next;
  object->next = object->prev = NULL;
}

void
td__objects_finish (void)
{
  while (newest != NULL)
    {
      TdObject *object = newest;

      td__object_remove (object);
      object->free (object);
    }
}
