/* Marks beside the lines of a source: what ran only while a static function was traced, and
 * what is guarded. SPDX-License-Identifier: MIT */
#pragma once

#include <gtksourceview/gtksource.h>

#include "schedule/td-explain.h"

/** Add a column of marks to the gutter of a view. Owner: the view. */
GtkSourceGutterRenderer *td_source_marks_new (GtkSourceView *view);
/** Show the rows (of ONCE and GUARD) that stand in a file; `rows` may be NULL: none. */
void td_source_marks_set (GtkSourceGutterRenderer *self, const GArray *rows, const char *file);
/** Return what is said at a line, from 1 on; NULL: nothing. Owner: the marks. */
const char *td_source_marks_get (GtkSourceGutterRenderer *self, guint line);
