/*
 * The picture of who holds memory: groups as bars.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-holders.h"
#include "td-memory.h"

#define ROW_HEIGHT 34.0
#define MARGIN 14.0
#define BYTES_WIDTH 70.0

static void
add_bar (TdSceneBuilder *b, const TdHolders *self, const TdTapeHeld *row, guint64 most,
         double y, double width)
{
  double length
      = (width - 2 * MARGIN - BYTES_WIDTH) * (double)row->bytes / (double)MAX (most, 1);
  TdStyle fill = { .fill = td_category_role (row->category),
                   .pattern = td_category_pattern (row->category),
                   .flags = TD_PRIM_AREA };
  TdTextStyle name
      = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .max_width = width - 2 * MARGIN };
  TdTextStyle value = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION };
  char bytes[TD_FORMAT_SIZE], text[600], site[320] = "", at[320] = "";
  guint32 where = row->holder_site != 0 ? row->holder_site : row->held_site;

  if (td_tape_reader_site (self->reader, row->site))
    td_tape_reader_site_text (self->reader, row->site, site, sizeof site);
  if (td_tape_reader_site (self->reader, where))
    td_tape_reader_site_text (self->reader, where, at, sizeof at);
  if (row->flags & TD_TAPE_HELD_OTHERS)
    g_snprintf (text, sizeof text, "%u %s in smaller groups", row->n_objects,
                td_plural (row->n_objects, "array", "arrays"));
  else
    g_snprintf (text, sizeof text, "%u x %s %s, kept by %s%s %s", row->n_objects,
                td_tape_reader_opdef (self->reader, row->opdef)
                    ? td_tape_reader_op_name (self->reader, row->opdef)
                    : td_tape_category_name (row->category),
                site, row->flags & TD_TAPE_HELD_IN_GRAPH ? "the graph of a " : "",
                td_tape_holder_name (row->holder), at);
  td_scene_add_text (b, MARGIN, y + 8, text, &name);
  td_scene_add_shape (b, TD_PRIM_ROUND, (TdSceneRect){ MARGIN, y + 16, MAX (length, 2), 10 }, 2,
                      &fill);
  td_scene_add_text (b, MARGIN + MAX (length, 2) + 6, y + 21,
                     td_format_bytes (bytes, row->bytes), &value);
}

TdScene *
td_holders_scene (const TdHolders *self, const TdPanelView *view)
{
  const TdHoldersMark *mark = &self->marks[self->n_marks - 1];
  double width = view->width > 0 ? view->width : 560, y = 30;
  double height = view->height > 0 ? view->height : 40 + ROW_HEIGHT * mark->n_rows;
  TdTextStyle title = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .bold = TRUE };
  TdSceneBuilder *b;
  guint64 most = 0;
  char bytes[TD_FORMAT_SIZE], text[160];

  if (mark->n_objects == 0)
    return td_panel_message (view, "Nothing outlived its iteration",
                             "Arrays that are still there appear here with who keeps them.");
  b = td_scene_builder_new (width, height);
  td_scene_set_background (b, TD_ROLE_VIEW);
  g_snprintf (text, sizeof text,
              "After iteration %" G_GINT64_FORMAT ": %" G_GUINT64_FORMAT " %s, %s",
              mark->iteration, mark->n_objects, td_plural (mark->n_objects, "array", "arrays"),
              td_format_bytes (bytes, mark->bytes));
  td_scene_add_text (b, MARGIN, 14, text, &title);
  for (guint i = 0; i < mark->n_rows; i++)
    most = MAX (most, mark->rows[i].bytes);
  for (guint i = 0; i < mark->n_rows && y + ROW_HEIGHT <= height; i++)
    if (mark->rows[i].n_objects > 0)
      {
        add_bar (b, self, &mark->rows[i], most, y, width);
        y += ROW_HEIGHT;
      }
  return td_scene_builder_end (b);
}
