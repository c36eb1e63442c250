/* What a program makes and td_finish releases: links, optimizers, datasets, iterators.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "host-memory.h"

#include <stdbool.h>
#include <stddef.h>

/** One entry of the list of live objects; the first member of each of them. */
typedef struct TdObject
{
  struct TdObject *next, *prev;
  void (*free) (void *object);
  bool freed; /**< a shell: td__shell_keep */
} TdObject;

/** Have `free` called with the object at td_finish, unless it is removed before. */
void td__object_add (TdObject *object, void (*free) (void *object));
void td__object_remove (TdObject *object);
/** Free everything that is left, newest first. */
void td__objects_finish (void);
