/* The small drawing on a lesson's card.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

/** Create the picture called `name`: network, branch, tiles, chain, schedule, pair, growth, nan
 * or frozen. Owner: floating. */
GtkWidget *td_lesson_picture_new (const char *name);

/** Say whether there is a picture of that name. */
gboolean td_lesson_picture_exists (const char *name);
