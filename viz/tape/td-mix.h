/* Hashing shared by the parts of viz that make keys.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

/** Mix a number into a hash (the finaliser of splitmix64; also good for small integers). */
static inline guint64
td__mix (guint64 hash, guint64 value)
{
  guint64 x = hash * 0x9e3779b97f4a7c15u + value + 0x632be59bd9b4e019u;

  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static inline guint64
td__mix_text (guint64 hash, const char *text)
{
  guint64 h = 0xcbf29ce484222325u;

  for (; *text; text++)
    h = (h ^ (guint8)*text) * 0x100000001b3u;
  return td__mix (hash, h);
}
