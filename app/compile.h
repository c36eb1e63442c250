/* Compiling a model: a C file to a program in the cache.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/** Compile `source` unless the same text was compiled with the same flags before; the program's
 * path goes to `out`.  The compiler's messages go to stderr.
 * *Errors*: false; one line has been printed to stderr that names the first error's place. */
bool td_compile_model (const char *source, bool quiet, char *out, unsigned long size);
