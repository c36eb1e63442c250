/* Graphs as DOT, and as pictures through tapedeck-viz.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

/** Chainer's label of an operation. */
void td__op_label (const TdOpClass *cls, const void *attrs, char *text, size_t size);
/** Say whether a path ends in .png, .svg or .pdf. */
bool td__dot_is_picture (const char *path);
/** Have tapedeck-viz draw the DOT file, and remove it.  *Sync*: waits for it. */
TdStatus td__dot_draw (const char *dot, const char *picture);
