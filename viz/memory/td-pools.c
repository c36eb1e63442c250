/*
 * Pools as a bar, as text and as JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-pools.h"

#include "tape/td-devices.h"

static const struct
{
  TdRole role;
  TdPattern pattern;
} looks[TD_TAPE_N_POOLS] = {
  [TD_TAPE_POOL_DEFAULT] = { TD_ROLE_ACTIVATION, TD_PATTERN_NONE },
  [TD_TAPE_POOL_WORKSPACE] = { TD_ROLE_WORKSPACE, TD_PATTERN_CROSS },
  [TD_TAPE_POOL_STATIC] = { TD_ROLE_STATIC, TD_PATTERN_VERTICAL },
  [TD_TAPE_POOL_GRAPH] = { TD_ROLE_FUSED, TD_PATTERN_NONE },
  [TD_TAPE_POOL_CAPTURE] = { TD_ROLE_OTHER, TD_PATTERN_CROSS },
  [TD_TAPE_POOL_UPLOAD] = { TD_ROLE_INPUT, TD_PATTERN_HORIZONTAL },
  [TD_TAPE_POOL_PINNED] = { TD_ROLE_BUFFER, TD_PATTERN_CROSS },
  [TD_TAPE_POOL_PRIVATE] = { TD_ROLE_FUSED, TD_PATTERN_HATCH_UP },
};

gboolean
td_pools_any (const TdIteration *iteration, guint device)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);

  for (guint i = 0; i < t->n_pools; i++)
    if (t->pools[i].device == device)
      return TRUE;
  return FALSE;
}

static guint64
free_bytes (const TdTapePool *p)
{
  guint64 used = p->live_bytes + p->pending_bytes;

  return p->reserved_bytes > used ? p->reserved_bytes - used : 0;
}

static char *
dup_tooltip (const TdTapePool *p)
{
  char reserved[TD_FORMAT_SIZE], live[TD_FORMAT_SIZE], pending[TD_FORMAT_SIZE],
      split[TD_FORMAT_SIZE], largest[TD_FORMAT_SIZE];

  if (p->kind == TD_TAPE_POOL_CAPTURE)
    return g_strdup_printf ("capture: %s that recording itself takes of the device",
                            td_format_bytes (reserved, p->reserved_bytes));
  if (p->kind == TD_TAPE_POOL_PINNED)
    return g_strdup_printf ("pinned: %s of the host that devices copy from and answer to",
                            td_format_bytes (reserved, p->reserved_bytes));
  return g_strdup_printf (
      "pool %s: %s reserved · %s in use · %s given back, still read by "
      "issued work · %s free between blocks in use · largest free piece %s",
      td_tape_pool_name (p->kind), td_format_bytes (reserved, p->reserved_bytes),
      td_format_bytes (live, p->live_bytes), td_format_bytes (pending, p->pending_bytes),
      td_format_bytes (split, p->split_bytes),
      td_format_bytes (largest, p->largest_free_bytes));
}

/* One pool's part of the bar: what is in use is filled, what is on its way back hatched, what
 * is free outlined. */
static void
add_pool (TdSceneBuilder *b, const TdTapePool *p, TdSceneRect r)
{
  const guint kind = MIN (p->kind, TD_TAPE_N_POOLS - 1);
  const double unit = r.width / (double)MAX (p->reserved_bytes, 1);
  const double live = unit * (double)p->live_bytes, pending = unit * (double)p->pending_bytes;
  TdStyle filled = { .fill = looks[kind].role, .pattern = looks[kind].pattern };
  TdStyle hatched
      = { .fill = looks[kind].role, .fill_alpha = 0.4, .pattern = TD_PATTERN_HATCH_UP };
  TdStyle outline = { .stroke = looks[kind].role };
  g_autofree char *tip = dup_tooltip (p);
  g_autofree char *label = NULL;
  char bytes[TD_FORMAT_SIZE];

  td_scene_mark (b, TD_TAG_CATEGORY, 0, TD_TAPE_CATEGORY_OTHER, tip);
  td_scene_add_shape (b, TD_PRIM_RECT, r, 0, &outline);
  if (live >= 0.5)
    td_scene_add_shape (b, TD_PRIM_RECT, (TdSceneRect){ r.x, r.y, live, r.height }, 0, &filled);
  if (pending >= 0.5)
    td_scene_add_shape (b, TD_PRIM_RECT, (TdSceneRect){ r.x + live, r.y, pending, r.height }, 0,
                        &hatched);
  label = g_strdup_printf ("%s %s", td_tape_pool_name (p->kind),
                           td_format_bytes (bytes, p->reserved_bytes));
  if (td_text_width (label, TD_TEXT_AXIS, FALSE) + 8 >= r.width)
    {
      g_free (label);
      label = g_strdup (td_tape_pool_name (p->kind));
    }
  if (td_text_width (label, TD_TEXT_AXIS, FALSE) + 8 < r.width)
    {
      TdTextStyle text = { .role = TD_ROLE_TEXT, .size = TD_TEXT_AXIS };
      TdStyle under = { .fill = TD_ROLE_VIEW, .fill_alpha = 0.85 };
      double width = td_text_width (label, TD_TEXT_AXIS, FALSE) + 4;

      td_scene_add_shape (b, TD_PRIM_ROUND,
                          (TdSceneRect){ r.x + 2, r.y + 1.5, width, r.height - 3 }, 2, &under);
      td_scene_add_text (b, r.x + 4, r.y + r.height / 2, label, &text);
    }
  td_scene_unmark (b);
}

void
td_pools_add_band (TdSceneBuilder *b, const TdIteration *iteration, guint device,
                   TdSceneRect place)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  TdTextStyle name = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 1 };
  double x = place.x;
  guint64 all = 0;

  for (guint i = 0; i < t->n_pools; i++)
    all += t->pools[i].device == device ? t->pools[i].reserved_bytes : 0;
  if (all == 0)
    return;
  td_scene_add_text (b, place.x - 6, place.y + place.height / 2, "pools", &name);
  for (guint i = 0; i < t->n_pools; i++)
    {
      const TdTapePool *p = &t->pools[i];
      double width = place.width * (double)p->reserved_bytes / (double)all;

      if (p->device != device)
        continue;
      add_pool (b, p, (TdSceneRect){ x, place.y, MAX (width - 1, 0.5), place.height });
      x += width;
    }
}

void
td_pools_append_text (GString *out, const TdIteration *iteration)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);

  if (t->n_pools == 0)
    return;
  g_string_append_printf (out, "\n%-8s  %-13s  %9s  %9s  %9s  %9s  %12s\n", "device", "pool",
                          "reserved", "in use", "pending", "in holes", "largest free");
  for (guint i = 0; i < t->n_pools; i++)
    {
      const TdTapePool *p = &t->pools[i];
      g_autofree char *device = td_devices_dup_name (iteration, p->device);
      const guint64 numbers[]
          = { p->reserved_bytes, p->live_bytes, p->pending_bytes, p->split_bytes };
      char text[TD_FORMAT_SIZE];

      g_string_append_printf (out, "%-8s  %-13s", device, td_tape_pool_name (p->kind));
      for (guint k = 0; k < G_N_ELEMENTS (numbers); k++)
        g_string_append_printf (out, "  %9s", td_format_bytes (text, numbers[k]));
      g_string_append_printf (out, "  %12s\n", td_format_bytes (text, p->largest_free_bytes));
    }
  for (guint i = 0; i < t->n_devices; i++)
    {
      g_autofree char *device = td_devices_dup_name (iteration, t->devices[i].device);
      char text[TD_FORMAT_SIZE];

      if (t->devices[i].total_bytes > 0)
        g_string_append_printf (out, "%-8s  %-13s  %9s\n", device, "outside",
                                td_format_bytes (text, t->devices[i].outside_bytes));
    }
}

void
td_pools_add_json (TdJson *j, const TdIteration *iteration)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);

  if (t->n_pools == 0)
    return;
  td_json_key (j, "pools");
  td_json_begin_array (j);
  for (guint i = 0; i < t->n_pools; i++)
    {
      const TdTapePool *p = &t->pools[i];
      g_autofree char *device = td_devices_dup_name (iteration, p->device);

      td_json_begin_object (j);
      td_json_member_string (j, "device", device);
      td_json_member_string (j, "pool", td_tape_pool_name (p->kind));
      td_json_member_int (j, "reserved_bytes", (gint64)p->reserved_bytes);
      td_json_member_int (j, "live_bytes", (gint64)p->live_bytes);
      td_json_member_int (j, "pending_bytes", (gint64)p->pending_bytes);
      td_json_member_int (j, "free_bytes", (gint64)free_bytes (p));
      td_json_member_int (j, "split_bytes", (gint64)p->split_bytes);
      td_json_member_int (j, "largest_free_bytes", (gint64)p->largest_free_bytes);
      td_json_end_object (j);
    }
  td_json_end_array (j);
}
