/* A process of its own for what may end it: what it wrote, and how it ended.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-test.h"

/* What a child said, and its exit status; -signal if one ended it. */
typedef struct
{
  char said[4000];
  int status;
} TdChild;

/** Run body (which) in a child; what it returns is the exit status. */
TdChild td_child_of (int (*body) (int which), int which);
/** How often a word is in a text. */
int td_count_of (const char *text, const char *word);
