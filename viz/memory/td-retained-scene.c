/*
 * The picture of the page Holders: who would free how much, and for the open row the way of
 * references and where its arrays were made.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-growth.h"
#include "td-memory.h"

#define MARGIN 12.0
#define HEAD 24.0
#define ROW 24.0
#define NUMBERS 74.0
#define BAR 70.0

typedef struct
{
  TdSceneBuilder *b;
  const TdRetained *retained;
  double width, own_x, retained_x, bar_x, since_x;
  guint64 most;
  guint cursor; /* the line */
} List;

guint
td_retained_count_subs (const TdRetained *self, guint row)
{
  g_autoptr (GArray) sites = td_retained_list_sites (self, row);

  return MIN (sites->len, TD_RETAINED_SUBS - 1);
}

guint
td_retained_line_object (const TdRetained *self, guint line)
{
  guint row = line / TD_RETAINED_SUBS, sub = line % TD_RETAINED_SUBS;
  g_autoptr (GArray) sites = NULL;

  if (sub == 0)
    return self->rows[row].first;
  sites = td_retained_list_sites (self, row);
  return sub <= sites->len ? g_array_index (sites, TdRetainedSite, sub - 1).object
                           : self->rows[row].first;
}

/* The way that an open row shows: to what the cursor is at, or to its largest site. */
static char *
dup_way (const TdRetained *self, guint line)
{
  guint row = line / TD_RETAINED_SUBS;
  gboolean deep = line % TD_RETAINED_SUBS == 0 && td_retained_count_subs (self, row) > 0;

  return td_retained_way (
      self, td_retained_line_object (self, deep ? TD_RETAINED_LINE (row, 1) : line));
}

char *
td_retained_describe (const TdRetained *self, guint line)
{
  guint row = line / TD_RETAINED_SUBS, sub = line % TD_RETAINED_SUBS;
  g_autofree char *way = dup_way (self, line);
  g_autoptr (GArray) sites = td_retained_list_sites (self, row);
  char bytes[TD_FORMAT_SIZE];

  if (sub == 0 || sub > sites->len)
    {
      g_autofree char *title = td_retained_dup_title (self, row);

      return g_strdup_printf ("%s retains %s: %s", title,
                              td_format_bytes (bytes, self->rows[row].retained), way);
    }
  return g_strdup_printf (
      "%s in %u %s: %s",
      td_format_bytes (bytes, g_array_index (sites, TdRetainedSite, sub - 1).bytes),
      g_array_index (sites, TdRetainedSite, sub - 1).n,
      td_plural (g_array_index (sites, TdRetainedSite, sub - 1).n, "array", "arrays"), way);
}

static void
add_background (const List *l, guint line, double y, const char *words)
{
  TdStyle row = { .fill = l->cursor == line ? TD_ROLE_SELECTED_ROW : TD_ROLE_NONE };

  td_scene_mark (l->b, TD_TAG_ROW, 0, line, words);
  td_scene_add_shape (l->b, TD_PRIM_ROUND,
                      (TdSceneRect){ 4, y - ROW / 2 + 1, l->width - 8, ROW - 2 }, 6, &row);
  td_scene_unmark (l->b);
}

static void
add_bar (const List *l, guint64 bytes, double y, TdRole role)
{
  TdStyle all = { .fill = TD_ROLE_HAIRLINE }, part = { .fill = role };
  double length = BAR * (double)bytes / (double)MAX (l->most, 1);

  td_scene_add_shape (l->b, TD_PRIM_ROUND, (TdSceneRect){ l->bar_x, y - 3, BAR, 6 }, 3, &all);
  if (bytes > 0)
    td_scene_add_shape (l->b, TD_PRIM_ROUND,
                        (TdSceneRect){ l->bar_x, y - 3, MAX (length, 3), 6 }, 3, &part);
}

static void
add_row (const List *l, guint row, gboolean open, double y)
{
  const TdRetainedRow *r = &l->retained->rows[row];
  g_autofree char *title = td_retained_dup_title (l->retained, row);
  g_autofree char *words = td_retained_sentence (l->retained, row);
  TdTextStyle name = { .role = r->shared ? TD_ROLE_DIM : TD_ROLE_TEXT,
                       .size = TD_TEXT_CAPTION,
                       .bold = open,
                       .middle = TRUE,
                       .max_width = l->own_x - NUMBERS - MARGIN - 12 };
  TdTextStyle number = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .align = 1 };
  TdTextStyle dim = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .align = 1 };
  TdStyle chevron = { .stroke = TD_ROLE_DIM, .stroke_width = 1.5 };
  char text[TD_FORMAT_SIZE];

  add_background (l, TD_RETAINED_LINE (row, 0), y, words);
  td_scene_add_shape (l->b, open ? TD_PRIM_CHEVRON_DOWN : TD_PRIM_CHEVRON_RIGHT,
                      (TdSceneRect){ MARGIN, y - 4, 8, 8 }, 0, &chevron);
  td_scene_add_text (l->b, MARGIN + 16, y, title, &name);
  td_scene_add_text (l->b, l->own_x, y, r->own == 0 ? "—" : td_format_bytes (text, r->own),
                     &dim);
  td_scene_add_text (l->b, l->retained_x, y, td_format_bytes (text, r->retained), &number);
  add_bar (l, r->retained, y, r->shared ? TD_ROLE_OTHER : TD_ROLE_ACTIVATION);
  if (r->oldest >= 0)
    {
      g_snprintf (text, sizeof text, "%" G_GINT64_FORMAT, r->oldest);
      td_scene_add_text (l->b, l->since_x, y, text, &dim);
    }
}

static void
add_site (const List *l, const TdRetainedSite *s, guint line, double y)
{
  g_autofree char *words = td_retained_describe (l->retained, line);
  TdTextStyle name = { .role = TD_ROLE_TEXT,
                       .size = TD_TEXT_CAPTION,
                       .middle = TRUE,
                       .max_width = l->retained_x - NUMBERS - MARGIN - 44 };
  TdTextStyle number = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .align = 1 };
  TdStyle swatch = { .fill = td_category_role (s->category),
                     .pattern = td_category_pattern (s->category) };
  const char *op = td_tape_reader_opdef (l->retained->reader, s->opdef)
                       ? td_tape_reader_op_name (l->retained->reader, s->opdef)
                       : td_tape_category_name (s->category);
  char site[320] = "", bytes[TD_FORMAT_SIZE];
  g_autofree char *at = NULL, *text = NULL;

  if (td_tape_reader_site (l->retained->reader, s->site))
    td_tape_reader_site_text (l->retained->reader, s->site, site, sizeof site);
  at = *site ? g_path_get_basename (site) : NULL;
  text = g_strdup_printf ("%u × %s%s%s%s", s->n, op, at ? " (" : "", at ? at : "",
                          at ? ")" : "");
  add_background (l, line, y, words);
  td_scene_add_shape (l->b, TD_PRIM_ROUND, (TdSceneRect){ MARGIN + 18, y - 5, 10, 10 }, 2,
                      &swatch);
  td_scene_add_text (l->b, MARGIN + 34, y, text, &name);
  td_scene_add_text (l->b, l->retained_x, y, td_format_bytes (bytes, s->bytes), &number);
  add_bar (l, s->bytes, y, td_category_role (s->category));
}

static void
add_way (const List *l, double y)
{
  g_autofree char *way = dup_way (l->retained, l->cursor);
  TdTextStyle style = { .role = TD_ROLE_DIM,
                        .size = TD_TEXT_CAPTION,
                        .middle = TRUE,
                        .max_width = l->width - 2 * MARGIN - 18 };

  td_scene_mark (l->b, TD_TAG_ROW, 0, l->cursor, way);
  td_scene_add_text (l->b, MARGIN + 18, y, way, &style);
  td_scene_unmark (l->b);
}

static void
add_head (const List *l)
{
  TdTextStyle left = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION };
  TdTextStyle right = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .align = 1 };
  char text[120];

  g_snprintf (text, sizeof text, "Holder, after iteration %" G_GINT64_FORMAT "%s",
              l->retained->iteration, l->retained->cut ? "; nearest objects only" : "");
  td_scene_add_text (l->b, MARGIN + 16, HEAD / 2, text, &left);
  td_scene_add_text (l->b, l->own_x, HEAD / 2, "Own", &right);
  td_scene_add_text (l->b, l->retained_x, HEAD / 2, "Retained", &right);
  td_scene_add_text (l->b, l->since_x, HEAD / 2, "Since it.", &right);
}

/* Rows above the open one are left out until its cursor has room. */
static guint
first_row (const List *l, guint open, guint n_subs, double height)
{
  double room = height - HEAD - ROW * (2 + MIN (n_subs, l->cursor % TD_RETAINED_SUBS + 1));

  if (ROW * open <= room)
    return 0;
  return open - (guint)(MAX (room, 0) / ROW);
}

TdScene *
td_retained_scene (const TdRetained *self, const TdPanelView *view)
{
  guint open = view->cursor > 0 ? (view->cursor - 1) / TD_RETAINED_SUBS : 0;
  double width = view->width > 0 ? view->width : 640, y = HEAD, height;
  List l = { .retained = self, .width = width };
  g_autoptr (GArray) sites = NULL;
  guint n_subs;

  if (self->n_rows == 0)
    return td_panel_message (view, "Nothing outlived its iteration",
                             "Who keeps what appears here.");
  open = MIN (open, self->n_rows - 1);
  l.cursor = view->cursor > 0 && (view->cursor - 1) / TD_RETAINED_SUBS == open
                 ? view->cursor - 1
                 : TD_RETAINED_LINE (open, 0);
  sites = td_retained_list_sites (self, open);
  n_subs = MIN (sites->len, TD_RETAINED_SUBS - 1);
  height = view->height > 0 ? view->height : HEAD + ROW * (self->n_rows + n_subs + 2);
  l.since_x = width - MARGIN;
  l.bar_x = l.since_x - 58 - BAR;
  l.retained_x = l.bar_x - 10;
  l.own_x = l.retained_x - NUMBERS;
  l.most = self->rows[0].retained;
  l.b = td_scene_builder_new (width, height);
  td_scene_set_background (l.b, TD_ROLE_VIEW);
  add_head (&l);
  for (guint i = first_row (&l, open, n_subs, height); i < self->n_rows && y + ROW <= height;
       i++)
    {
      add_row (&l, i, i == open, y + ROW / 2);
      y += ROW;
      if (i != open)
        continue;
      if (y + ROW <= height)
        add_way (&l, y + ROW / 2);
      y += ROW;
      for (guint k = 0; k < n_subs && y + ROW <= height; k++, y += ROW)
        add_site (&l, &g_array_index (sites, TdRetainedSite, k), TD_RETAINED_LINE (open, k + 1),
                  y + ROW / 2);
    }
  return td_scene_builder_end (l.b);
}
