/*
 * The execution order as a picture of a table.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-schedule.h"

#define ROW 24.0
#define ADVICE 36.0
#define DIGIT 7.0
#define MOST_ROWS 1000 /* of a picture that is as high as what is in it */

/* The right ends of the number columns, the left ends of the others. */
typedef struct
{
  double event, op, layer, time, output;
} Columns;

/* The playhead stands left of the numbers: longer ones than of three digits move all that is
 * right of it. */
static Columns
columns_of (double w, guint last_event)
{
  double event = 44, op;

  for (guint above = last_event / 1000; above > 0; above /= 10)
    event += DIGIT;
  op = event + 10;
  return (Columns){ .event = event,
                    .op = op,
                    .layer = op + (w - op - 168) * 0.68,
                    .time = w - 88,
                    .output = w - 14 };
}

static const char *
last_part (const char *path)
{
  const char *slash = strrchr (path, '/');

  return slash ? slash + 1 : path;
}

static void
add_header (TdSceneBuilder *b, const Columns *c)
{
  TdTextStyle left = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION };
  TdTextStyle right = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .align = 1 };

  td_scene_add_text (b, c->op, 12, "Operation", &left);
  td_scene_add_text (b, c->layer, 12, "Layer", &left);
  td_scene_add_text (b, c->time, 12, "Time", &right);
  td_scene_add_text (b, c->output, 12, "Output", &right);
}

/* Where it ran: the host's time of what runs on a device is only that of issuing it. */
static const char *
format_time (const TdScheduleRow *r, char *text)
{
  if (r->device_kind != TD_TAPE_DEVICE_TIME_NONE)
    return td_schedule_format_device (r, text);
  return r->to_come || r->captured || r->device != 0 ? "—" : td_format_ns (text, r->ns);
}

static void
add_row (TdSceneBuilder *b, const TdScheduleRow *r, const Columns *c, double y, double w,
         const TdPanelView *view)
{
  gboolean here = view->event >= 0 && r->event == (guint)view->event;
  gboolean later = r->to_come || (view->event >= 0 && r->event > (guint)view->event);
  gboolean selected = here || td_panel_is_selected (view, r->key);
  TdRole role = r->failed ? TD_ROLE_ERROR : later ? TD_ROLE_DIM : TD_ROLE_TEXT;
  TdStyle row = { .fill = selected ? TD_ROLE_SELECTED_ROW : TD_ROLE_NONE };
  TdTextStyle left = {
    .role = role, .size = TD_TEXT_CAPTION, .bold = here, .max_width = c->layer - c->op - 8
  };
  TdTextStyle right = { .role = role, .size = TD_TEXT_CAPTION, .align = 1 };
  TdTextStyle number
      = { .role = later ? TD_ROLE_DIM : role, .size = TD_TEXT_CAPTION, .align = 1 };
  char text[TD_FORMAT_SIZE];

  td_scene_mark (b, TD_TAG_ROW, r->key, r->event, r->layer);
  td_scene_add_shape (b, TD_PRIM_ROUND, (TdSceneRect){ 7, y - ROW / 2, w - 14, ROW }, 6, &row);
  td_scene_unmark (b);
  g_snprintf (text, sizeof text, "%u", r->event);
  td_scene_add_text (b, c->event, y, text, &number);
  td_scene_add_text (b, c->op, y, r->op, &left);
  left.bold = FALSE;
  left.max_width = c->time - c->layer - 50;
  td_scene_add_text (b, c->layer, y, last_part (r->layer), &left);
  td_scene_add_text (b, c->time, y, format_time (r, text), &right);
  td_scene_add_text (b, c->output, y, td_format_bytes (text, r->bytes), &right);
  if (here)
    {
      TdStyle triangle = { .fill = TD_ROLE_ACCENT };

      td_scene_add_shape (b, TD_PRIM_PLAYHEAD, (TdSceneRect){ 13, y - 4, 10, 8 }, 0, &triangle);
    }
  if (view->head >= 0 && r->event == (guint)view->head)
    td_panel_add_head (b, 18, y);
}

static void
add_advice (TdSceneBuilder *b, const char *advice, double w, double h)
{
  TdStyle box = { .fill = TD_ROLE_BUTTON };
  TdTextStyle text = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .max_width = w - 44 };

  td_scene_add_shape (b, TD_PRIM_ROUND, (TdSceneRect){ 8, h - ADVICE + 2, w - 16, ADVICE - 8 },
                      6, &box);
  td_scene_add_text (b, 20, h - ADVICE / 2 - 2, advice, &text);
}

/* What is left out must not look as if it were not there. */
static void
add_left_out (TdSceneBuilder *b, const TdSchedule *s, guint first, guint n, const Columns *c,
              double y)
{
  TdTextStyle dim = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION };
  g_autofree char *text
      = g_strdup_printf ("rows %u to %u of %u: as text, JSON and CSV it has all of them",
                         first + 1, first + n, s->n_rows);

  td_scene_add_text (b, c->op, y, text, &dim);
}

/* The first selected row while the selection is what is looked at, else the playhead's. */
static guint
row_in_middle (const TdSchedule *s, const TdPanelView *view)
{
  for (guint i = 0; view->at_selection && i < s->n_rows; i++)
    if (td_panel_is_selected (view, s->rows[i].key))
      return i;
  return view->event >= 0 ? (guint)view->event : 0;
}

TdScene *
td_schedule_scene (const TdSchedule *s, const char *advice, const TdPanelView *view)
{
  double w = view->width > 0 ? view->width : 480;
  double foot = advice && *advice ? ADVICE : 4;
  gboolean cut = view->height <= 0 && s->n_rows > MOST_ROWS;
  double natural = 26 + ROW * (MIN (s->n_rows, MOST_ROWS) + cut) + foot;
  double h = view->height > 0 ? view->height : natural;

  if (s->n_rows == 0)
    return td_panel_message (view, "Nothing has run yet",
                             "Operations appear here in the order in which they run.");
  Columns c = columns_of (w, s->rows[s->n_rows - 1].event);
  TdSceneBuilder *b = td_scene_builder_new (w, h);
  td_scene_set_background (b, TD_ROLE_VIEW);
  add_header (b, &c);
  guint room = MAX (1, (guint)((h - 26 - foot) / ROW) - cut);
  guint middle = MIN (row_in_middle (s, view), s->n_rows - 1);
  /* the playhead stands in the middle of the table, but there is no empty space at its ends */
  guint first = middle > room / 2 ? middle - room / 2 : 0;
  first = MIN (first, s->n_rows > room ? s->n_rows - room : 0);
  for (guint i = 0; i < room && first + i < s->n_rows; i++)
    add_row (b, &s->rows[first + i], &c, 26 + ROW * (i + 0.5), w, view);
  if (cut)
    add_left_out (b, s, first, room, &c, 26 + ROW * (room + 0.5));
  if (foot > 4)
    add_advice (b, advice, w, h);
  return td_scene_builder_end (b);
}
