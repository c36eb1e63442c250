/*
 * Which blocks are alive at an event, by device and address: drawn as rows of one segment each.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "scene/td-json.h"
#include "tape/td-devices.h"
#include "td-memory.h"

/* A gap of this size in the addresses begins another row: segments of the pool lie apart. */
#define SEGMENT_GAP (4u << 20)

static int
by_address (gconstpointer a, gconstpointer b)
{
  const TdMemoryBlock *x = a, *y = b;

  if (x->device != y->device) /* the host's last */
    return x->device == 0 ? 1 : y->device == 0 ? -1 : (x->device > y->device ? 1 : -1);
  return (x->address > y->address) - (x->address < y->address);
}

static void
insert (GHashTable *alive, guint64 address, guint64 bytes, guint category, guint device,
        guint64 key)
{
  TdMemoryBlock *block = g_new0 (TdMemoryBlock, 1);
  guint64 *id = g_new (guint64, 1);

  *id = address;
  *block = (TdMemoryBlock){ address, bytes, key, category, device };
  g_hash_table_replace (alive, id, block);
}

GArray *
td_memory_blocks_at (const TdIteration *iteration, gint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  g_autoptr (GHashTable) alive
      = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_free);
  GArray *blocks = g_array_new (FALSE, FALSE, sizeof (TdMemoryBlock));
  GHashTableIter iter;
  gpointer value;

  for (guint i = 0; i < t->n_blocks; i++)
    insert (alive, t->blocks[i].address, t->blocks[i].bytes, t->blocks[i].category,
            t->blocks[i].device, t->blocks[i].key);
  for (guint m = 0; m < t->n_memory && (event < 0 || t->memory[m].event <= (guint)event); m++)
    {
      const TdTapeMemory *r = &t->memory[m];

      if (r->kind == TD_TAPE_MEMORY_ALLOC)
        insert (alive, r->address, r->bytes, r->category, r->device,
                r->var < t->n_vars ? t->vars[r->var].key : 0);
      else if (r->kind == TD_TAPE_MEMORY_FREE)
        g_hash_table_remove (alive, &r->address);
    }
  g_hash_table_iter_init (&iter, alive);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    g_array_append_val (blocks, *(TdMemoryBlock *)value);
  g_array_sort (blocks, by_address);
  return blocks;
}

#define BLOCK(i) g_array_index (blocks, TdMemoryBlock, i)

/* Whether block i begins a row: another segment, or another device. */
static gboolean
begins_row (const GArray *blocks, guint i)
{
  return i == 0 || BLOCK (i).device != BLOCK (i - 1).device
         || BLOCK (i).address - BLOCK (i - 1).address - BLOCK (i - 1).bytes > SEGMENT_GAP;
}

TdScene *
td_memory_scene_blocks (const TdIteration *iteration, const TdPanelView *view)
{
  g_autoptr (GArray) blocks = td_memory_blocks_at (iteration, view->event);
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
      char bytes[TD_FORMAT_SIZE];
      g_autofree char *tooltip = g_strdup_printf ("%s %s", td_category_label (k->category),
                                                  td_format_bytes (bytes, k->bytes));

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
      if (k->key != 0 && td_panel_is_selected (view, k->key))
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

char *
td_memory_blocks_print (const TdIteration *iteration, gint event, const char *format)
{
  g_autoptr (GArray) blocks = td_memory_blocks_at (iteration, event);
  GString *out = g_string_new (NULL);
  gboolean csv = g_str_equal (format, "csv");
  TdJson j;

  if (g_str_equal (format, "json"))
    {
      td_json_init (&j, out);
      td_json_begin_object (&j);
      td_json_key (&j, "blocks");
      td_json_begin_array (&j);
      for (guint i = 0; i < blocks->len; i++)
        {
          td_json_begin_object (&j);
          td_json_key (&j, "id");
          td_json_id (&j, BLOCK (i).key);
          td_json_member_int (&j, "address", (gint64)BLOCK (i).address);
          td_json_member_int (&j, "bytes", (gint64)BLOCK (i).bytes);
          td_json_member_string (&j, "category", td_tape_category_name (BLOCK (i).category));
          if (BLOCK (i).device != 0)
            {
              g_autofree char *name = td_devices_dup_name (iteration, BLOCK (i).device);

              td_json_member_string (&j, "device", name);
            }
          td_json_end_object (&j);
        }
      td_json_end_array (&j);
      td_json_end_object (&j);
      return g_string_free (out, FALSE);
    }
  g_string_append (out, csv ? "address,bytes,category\n"
                            : "           address       bytes  category\n");
  for (guint i = 0; i < blocks->len; i++)
    g_string_append_printf (out,
                            csv ? "%#" G_GINT64_MODIFIER "x,%" G_GUINT64_FORMAT ",%s\n"
                                : "%#18" G_GINT64_MODIFIER "x  %10" G_GUINT64_FORMAT "  %s\n",
                            BLOCK (i).address, BLOCK (i).bytes,
                            td_tape_category_name (BLOCK (i).category));
  return g_string_free (out, FALSE);
}
