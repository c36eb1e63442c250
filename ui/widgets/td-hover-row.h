/* Widgets that stand for a key of the session, as rows of lists do: they are hovered by pointer
 * or keyboard focus, and look so while the session's hover is their key, wherever the pointer
 * is. SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "td-session.h"

/** Say which key `widget` stands for (0: none), and which widget `lit` shows it by the style
 * class "td-hover": itself, or what is around it. May be called again for another key. */
void td_hover_row_set (GtkWidget *widget, TdSession *session, guint64 key, GtkWidget *lit);
