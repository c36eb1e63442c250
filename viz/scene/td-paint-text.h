/*
 * Text of scenes through Pango, with layouts kept between frames.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <pango/pangocairo.h>

#include "td-scene-private.h"

G_BEGIN_DECLS

/** Prepare this thread's Pango context for the current matrix of cr: once a frame. */
void td__paint_text_begin (cairo_t *cr, const TdTheme *theme);
/** Paint one text primitive; `scale` decides between glyphs and a bar. */
void td__paint_text (const TdScene *scene, const TdPrim *p, cairo_t *cr, double scale,
                     const TdTheme *theme);
/** Return `text` cut with an ellipsis to max_width units. Owner: the caller. */
char *td__text_fit (const char *text, TdTextSize size, gboolean bold, double max_width);

G_END_DECLS
