/*
 * The picture of a report of memory that ran out: groups of arrays, the largest first, with
 * what made them and who keeps them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-oom.h"

#include "td-memory.h"
#include "td-tape-oom-way.h"

#define MARGIN 12.0
#define BAR 64.0
#define SHARE 38.0
#define BYTES 70.0
#define ARRAYS 52.0
#define NARROW 620.0 /* below it there is no column of what made them */

typedef struct
{
  TdSceneBuilder *b;
  TdTapeReader *reader;
  const TdTapeOom *oom;
  const TdTapeOomHolder *holders;
  guint report, cursor;
  double width, made_x, kept_x, arrays_x, bytes_x, bar_x, share_x;
} Table;

static void
add_text (const Table *t, double x, double y, const char *text, TdRole role, double align,
          double max_width)
{
  TdTextStyle style = { .role = role,
                        .size = TD_TEXT_CAPTION,
                        .align = align,
                        .middle = TRUE,
                        .max_width = max_width };

  td_scene_add_text (t->b, x, y, text, &style);
}

/* "relu, grows.c:23": the file without its folder. */
static char *
dup_at (TdTapeReader *reader, const char *what, guint32 site)
{
  char text[512];
  g_autofree char *place = NULL;

  if (!td_tape_reader_site (reader, site))
    return g_strdup (what);
  td_tape_reader_site_text (reader, site, text, sizeof text);
  place = g_path_get_basename (text);
  return g_strdup_printf ("%s%s%s", what, *what ? ", " : "", place);
}

/* By its handle; what the graph alone keeps, by the handle at the root. */
static char *
dup_kept (const Table *t, guint row)
{
  const TdTapeOomHolder *h = &t->holders[row];
  uint32_t n;
  const TdTapeOomLink *links = td_tape_reader_oom_links (t->reader, t->report, row, &n);

  if (t->oom->flags & TD_TAPE_OOM_IMPORTED)
    return g_strdup ("not in the file");
  if (!(h->flags & TD_TAPE_OOM_HOLDER_GRAPH))
    return dup_at (t->reader, td_tape_holder_name (h->holder), h->holder_site);
  if (n < 2 || links[0].kind != TD_TAPE_OOM_LINK_HANDLE)
    return g_strdup ("the graph");
  g_autofree char *root
      = dup_at (t->reader, td_tape_holder_name (links[0].holder), links[0].site);
  return g_strdup_printf ("graph of %s", root);
}

static void
add_columns (const Table *t)
{
  const double y = TD_OOM_HEAD / 2;

  add_text (t, MARGIN + 18, y, "Held", TD_ROLE_DIM, 0, 0);
  if (t->made_x > 0)
    add_text (t, t->made_x, y, "Made by", TD_ROLE_DIM, 0, 0);
  add_text (t, t->kept_x, y, "Kept by", TD_ROLE_DIM, 0, 0);
  add_text (t, t->arrays_x, y, "Arrays", TD_ROLE_DIM, 1, 0);
  add_text (t, t->bytes_x, y, "Bytes", TD_ROLE_DIM, 1, 0);
  add_text (t, t->share_x, y, "Of allocated", TD_ROLE_DIM, 1, 0);
}

static void
add_bar (const Table *t, const TdTapeOomHolder *h, double y)
{
  const double share = (double)h->bytes / (double)MAX (t->oom->live_bytes, 1);
  TdStyle all = { .fill = TD_ROLE_HAIRLINE }, part = { .fill = td_category_role (h->category) };
  char text[24];

  td_scene_add_shape (t->b, TD_PRIM_ROUND, (TdSceneRect){ t->bar_x, y - 3, BAR, 6 }, 3, &all);
  td_scene_add_shape (t->b, TD_PRIM_ROUND,
                      (TdSceneRect){ t->bar_x, y - 3, CLAMP (BAR * share, 3, BAR), 6 }, 3,
                      &part);
  if (share < 0.01)
    g_strlcpy (text, "< 1 %", sizeof text);
  else
    g_snprintf (text, sizeof text, "%.0f %%", 100 * share);
  add_text (t, t->share_x, y, text, TD_ROLE_DIM, 1, 0);
}

static void
add_row (const Table *t, guint row, double y)
{
  const TdTapeOomHolder *h = &t->holders[row];
  const gboolean chosen = t->cursor == row + 1;
  g_autofree char *title
      = t->made_x > 0 ? td_oom_dup_label (t->reader, h) : td_oom_dup_title (t->reader, h);
  g_autofree char *words = td_oom_describe (t->reader, t->report, row);
  g_autofree char *made = dup_at (t->reader, td_tape_reader_string (t->reader, h->op), h->site);
  g_autofree char *kept = dup_kept (t, row);
  TdStyle ground = { .fill = chosen ? TD_ROLE_SELECTED_ROW : TD_ROLE_NONE };
  TdStyle swatch = { .fill = td_category_role (h->category),
                     .pattern = td_category_pattern (h->category) };
  char text[TD_FORMAT_SIZE];

  td_scene_mark (t->b, TD_TAG_ROW, 0, row, words);
  td_scene_add_shape (t->b, TD_PRIM_ROUND,
                      (TdSceneRect){ 4, y - TD_OOM_ROW / 2 + 1, t->width - 8, TD_OOM_ROW - 2 },
                      6, &ground);
  td_scene_unmark (t->b);
  td_scene_add_shape (t->b, TD_PRIM_ROUND, (TdSceneRect){ MARGIN, y - 5, 10, 10 }, 2, &swatch);
  add_text (t, MARGIN + 18, y, title, TD_ROLE_TEXT, 0,
            (t->made_x > 0 ? t->made_x : t->kept_x) - MARGIN - 30);
  if (t->made_x > 0)
    add_text (t, t->made_x, y, made, TD_ROLE_DIM, 0, t->kept_x - t->made_x - 12);
  add_text (t, t->kept_x, y, kept, TD_ROLE_DIM, 0, t->arrays_x - ARRAYS - t->kept_x);
  g_snprintf (text, sizeof text, "%u", h->n);
  add_text (t, t->arrays_x, y, text, TD_ROLE_DIM, 1, 0);
  add_text (t, t->bytes_x, y, td_format_bytes (text, h->bytes), TD_ROLE_TEXT, 1, 0);
  add_bar (t, h, y);
}

static void
add_rest (const Table *t, double y)
{
  char bytes[TD_FORMAT_SIZE];
  g_autofree char *text
      = g_strdup_printf ("in %u more groups of arrays", t->oom->n_groups - t->oom->n_holders);

  add_text (t, MARGIN + 18, y, text, TD_ROLE_DIM, 0, t->bytes_x - BYTES - MARGIN - 18);
  add_text (t, t->bytes_x, y, td_format_bytes (bytes, t->oom->unnamed_bytes), TD_ROLE_DIM, 1,
            0);
}

TdScene *
td_oom_scene (TdTapeReader *reader, guint i, const TdPanelView *view)
{
  const TdTapeOom *oom = td_tape_reader_oom (reader, i);
  const guint n = oom ? oom->n_holders : 0;
  const gboolean rest = oom && oom->unnamed_bytes > 0 && oom->n_groups > n;
  const double width = view->width > 0 ? view->width : 900;
  const double height
      = view->height > 0 ? view->height : TD_OOM_HEAD + TD_OOM_ROW * (n + (rest ? 1 : 0));
  const guint room = (guint)MAX (1, (height - TD_OOM_HEAD) / TD_OOM_ROW);
  Table t = { .reader = reader,
              .oom = oom,
              .holders = td_tape_reader_oom_holders (reader, i),
              .report = i,
              .cursor = MIN (view->cursor, n),
              .width = width };
  guint from;

  if (n == 0)
    return td_panel_message (view, "No array was allocated",
                             "What was asked for is more than the device has.");
  t.share_x = width - MARGIN;
  t.bar_x = t.share_x - SHARE - BAR;
  t.bytes_x = t.bar_x - 14;
  t.arrays_x = t.bytes_x - BYTES;
  t.kept_x = MARGIN + (t.arrays_x - ARRAYS - MARGIN) * (width >= NARROW ? 0.72 : 0.55);
  t.made_x = width >= NARROW ? MARGIN + (t.arrays_x - ARRAYS - MARGIN) * 0.44 : 0;
  t.b = td_scene_builder_new (width, height);
  td_scene_set_background (t.b, TD_ROLE_VIEW);
  add_columns (&t);
  from = t.cursor > room ? t.cursor - room : 0;
  for (guint k = from; k < n && k < from + room; k++)
    add_row (&t, k, TD_OOM_HEAD + TD_OOM_ROW * (k - from + 0.5));
  if (rest && n - from < room)
    add_rest (&t, TD_OOM_HEAD + TD_OOM_ROW * (n - from + 0.5));
  return td_scene_builder_end (t.b);
}
