/*
 * Aligning two sequences so that what was put in or left out costs least.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * Match equal tokens of a and b in order, with as few left over as possible: Myers' O(ND) walk.
 * Where the sequences differ in more than some thousands of places, tokens that occur once in
 * each are matched first, and the rest piece by piece. Writes the partner of each element, -1
 * for none, to b_of_a (n_a) and a_of_b (n_b). Source: E. W. Myers, "An O(ND) difference
 * algorithm and its variations", 1986.
 */
void td__align (const guint64 *a, gint n_a, const guint64 *b, gint n_b, gint32 *b_of_a,
                gint32 *a_of_b);

G_END_DECLS
