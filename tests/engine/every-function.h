/* The table of every function that the library exports, which every-function.py makes, and what
 * its rows are called with.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck.h"
#include "tapedeck-op.h"

/** A handle of each kind, and a list of them. */
#define TD_EVERY_HANDLE(H)                                                                     \
  H (var)                                                                                      \
  H (link)                                                                                     \
  H (opt)                                                                                      \
  H (opt_hook)                                                                                 \
  H (dataset)                                                                                  \
  H (iter)                                                                                     \
  H (device)                                                                                   \
  H (scope)                                                                                    \
  H (observation)                                                                              \
  H (updater)                                                                                  \
  H (trainer)                                                                                  \
  H (trigger) H (extension) H (alias) H (static_) H (hook) H (site) H (comm)

#define TD_EVERY_MEMBER(name) void *name, **name##s;
typedef struct
{
  TD_EVERY_HANDLE (TD_EVERY_MEMBER)
  void *list; /**< of anything else */
  const char *text;
  int number; /**< every size, count and amount */
  TdShape shape;
} TdEveryValues;

enum
{
  TD_EVERY_STATUS = 99 /**< of a function that returns none */
};

typedef struct
{
  const char *name;
  int (*call) (const TdEveryValues *v); /**< returns the status */
  bool takes_list;                      /**< and how many are in it */
} TdEveryFunction;

extern const TdEveryFunction td_every_function[];
extern const int td_every_n;
