/* The small drawing on a lesson's card.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

/** Create the picture called `name`: network, branch, tiles, chain or schedule. Owner:
 * floating. */
GtkWidget *td_lesson_picture_new (const char *name);
