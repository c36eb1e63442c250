/*
 * The blocks that are alive at an event, drawn by device and address as rows of one segment
 * each.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "tape/td-devices.h"
#include "tape/td-stack.h"
#include "td-memory.h"

/* A gap of this size in the addresses begins another row: segments of the pool lie apart. */
#define SEGMENT_GAP (4u << 20)

#define BLOCK(i) g_array_index (blocks, TdMemoryBlock, i)

/* Whether block i begins a row: another segment, or another device. */
static gboolean
begins_row (const GArray *blocks, guint i)
{
  return i == 0 || BLOCK (i).device != BLOCK (i - 1).device
         || BLOCK (i).address - BLOCK (i - 1).address - BLOCK (i - 1).bytes > SEGMENT_GAP;
}

/* What is selected: everything under a call may be. Owner: the caller. */
static GHashTable *
new_selected (const TdPanelView *view)
{
  GHashTable *keys = g_hash_table_new (g_int64_hash, g_int64_equal);

  for (guint i = 0; i < view->n_selected; i++)
    if (view->selected[i] != 0)
      g_hash_table_add (keys, (gpointer)&view->selected[i]);
  return keys;
}

/* "Other 2.00 MB · train.py:12". Owner: the caller. */
static char *
dup_tooltip (const TdIteration *iteration, const TdMemoryBlock *block)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  char bytes[TD_FORMAT_SIZE];
  guint32 line = 0;
  const char *file = block->var >= 0
                         ? td_iteration_get_site (iteration, t->vars[block->var].site, &line)
                         : "";
  g_autofree char *name = file ? g_path_get_basename (file) : NULL;

  td_format_bytes (bytes, block->bytes);
  return file && *file && line > 0
             ? g_strdup_printf ("%s %s · %s:%u", td_category_label (block->category), bytes,
                                name, line)
             : g_strdup_printf ("%s %s", td_category_label (block->category), bytes);
}

static gboolean
is_under (const TdIteration *iteration, const TdMemoryBlock *block, guint32 call)
{
  return call == 0
         || (block->var >= 0
             && td_stack_has (iteration, td_stack_of_var (iteration, (guint)block->var), call));
}

TdScene *
td_memory_scene_blocks (const TdIteration *iteration, const TdPanelView *view)
{
  return td_memory_scene_blocks_under (iteration, view, 0);
}

TdScene *
td_memory_scene_blocks_under (const TdIteration *iteration, const TdPanelView *view,
                              guint32 call)
{
  g_autoptr (GArray) blocks = td_memory_blocks_at (iteration, view->event);
  g_autoptr (GHashTable) selected = new_selected (view);
  double w = view->width > 0 ? view->width : 480, h = view->height > 0 ? view->height : 190;
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS };
  guint64 widest = 1, free_max = 0;
  guint rows = 0;

  if (blocks->len == 0)
    return td_panel_message (view, "No blocks on the tape",
                             "This recording has no allocation records.");
  TdSceneBuilder *b = td_scene_builder_new (w, h);
  td_scene_set_background (b, TD_ROLE_VIEW);
  for (guint i = 0, first = 0; i < blocks->len; i++)
    {
      if (begins_row (blocks, i))
        {
          first = i;
          rows++;
        }
      else
        free_max
            = MAX (free_max, BLOCK (i).address - BLOCK (i - 1).address - BLOCK (i - 1).bytes);
      widest = MAX (widest, BLOCK (i).address + BLOCK (i).bytes - BLOCK (first).address);
    }
  gboolean names = BLOCK (0).device != BLOCK (blocks->len - 1).device || BLOCK (0).device != 0;
  double row_height = MIN (34, (h - 34) / rows), y = 8, left = names ? 64 : 12;
  guint64 origin = 0;
  for (guint i = 0; i < blocks->len; i++)
    {
      const TdMemoryBlock *k = &BLOCK (i);
      TdStyle style = { .fill = td_category_role (k->category),
                        .pattern = td_category_pattern (k->category),
                        .stroke = TD_ROLE_VIEW,
                        .stroke_width = 0.8,
                        .flags = TD_PRIM_AREA };
      g_autofree char *tooltip = dup_tooltip (iteration, k);

      if (!is_under (iteration, k, call))
        {
          style.fill = TD_ROLE_HAIRLINE;
          style.pattern = TD_PATTERN_NONE;
        }
      if (i == 0)
        origin = k->address;
      else if (begins_row (blocks, i))
        {
          origin = k->address;
          y += row_height;
        }
      if (names && (i == 0 || k->device != BLOCK (i - 1).device))
        {
          g_autofree char *name = td_devices_dup_name (iteration, k->device);
          TdTextStyle label = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .max_width = 50 };

          td_scene_add_text (b, 12, y + (row_height - 6) / 2, name, &label);
        }
      if (g_hash_table_contains (selected, &k->key))
        {
          style.stroke = TD_ROLE_ACCENT;
          style.stroke_width = 3;
        }
      td_scene_mark (b, TD_TAG_ROW, k->key, i, tooltip);
      td_scene_add_shape (
          b, TD_PRIM_RECT,
          (TdSceneRect){
              left + (w - 12 - left) * (double)(k->address - origin) / (double)widest, y,
              MAX (1, (w - 12 - left) * (double)k->bytes / (double)widest), row_height - 6 },
          0, &style);
      td_scene_unmark (b);
    }
  char bytes[TD_FORMAT_SIZE];
  g_autofree char *line = g_strdup_printf ("%u %s, largest gap %s", blocks->len,
                                           td_plural (blocks->len, "block", "blocks"),
                                           td_format_bytes (bytes, free_max));
  td_scene_add_text (b, 12, h - 12, line, &text);
  return td_scene_builder_end (b);
}
