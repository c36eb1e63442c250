/*
 * Blocks of memory as text, CSV and JSON, with the stacks that allocated them where the tape
 * has any: JSON has each stack once.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "tape/td-devices.h"
#include "td-memory.h"
#include "td-stack-table.h"

/* What is known of a block beside its record. */
typedef struct
{
  const TdIteration *iteration;
  const TdTapeIteration *tape;
  TdStackTable *stacks; /* of JSON */
} Printer;

static guint32
stack_of (const Printer *p, const TdMemoryBlock *block)
{
  return block->var >= 0 ? td_stack_of_var (p->iteration, (guint)block->var) : 0;
}

/* The event that allocated it; -1: it was there before. */
static gint
event_of (const Printer *p, const TdMemoryBlock *block)
{
  return block->var >= 0 ? p->tape->vars[block->var].producer : -1;
}

static const char *
metadata_of (const Printer *p, const TdMemoryBlock *block)
{
  const gint event = event_of (p, block);

  return event >= 0 ? td_stack_metadata (p->iteration, (guint)event) : "";
}

/* "/src/train.py:12"; "": not known. Owner: the caller. */
static char *
dup_place (const Printer *p, const TdMemoryBlock *block)
{
  return block->var >= 0 ? td_iteration_dup_place (p->iteration, p->tape->vars[block->var].site)
                         : g_strdup ("");
}

static char *
dup_device (const Printer *p, const TdMemoryBlock *block)
{
  return td_devices_dup_name (p->iteration, block->device);
}

/* ---- JSON ---- */

static void
add_block (Printer *p, TdJson *j, const TdMemoryBlock *block)
{
  const guint32 stack = td_stack_table_add (p->stacks, p->iteration, stack_of (p, block));
  const char *metadata = metadata_of (p, block);

  td_json_begin_object (j);
  td_json_key (j, "id");
  td_json_id (j, block->key);
  td_json_member_int (j, "address", (gint64)block->address);
  td_json_member_int (j, "bytes", (gint64)block->bytes);
  td_json_member_string (j, "category", td_tape_category_name (block->category));
  if (block->device != 0)
    {
      g_autofree char *name = dup_device (p, block);

      td_json_member_string (j, "device", name);
    }
  if (stack > 0)
    td_json_member_int (j, "stack", stack - 1);
  if (*metadata)
    td_json_member_string (j, "metadata", metadata);
  td_json_end_object (j);
}

static void
print_json (Printer *p, const TdMemoryBlock *blocks, guint n, TdSink *sink)
{
  TdJson j;

  p->stacks = td_stack_table_new ();
  td_json_init (&j, sink->text);
  td_json_begin_object (&j);
  td_json_key (&j, "blocks");
  td_json_begin_array (&j);
  for (guint i = 0; i < n; i++)
    {
      add_block (p, &j, &blocks[i]);
      td_sink_row (sink);
    }
  td_json_end_array (&j);
  if (p->tape->n_stack_frames > 0)
    td_stack_table_write (p->stacks, &j);
  td_json_end_object (&j);
  td_stack_table_free (p->stacks);
}

/* ---- tables ---- */

static void
print_csv (const Printer *p, const TdMemoryBlock *blocks, guint n, TdSink *sink)
{
  g_string_append (sink->text, "address,bytes,category\n");
  for (guint i = 0; i < n; i++)
    {
      g_string_append_printf (sink->text, "%#" G_GINT64_MODIFIER "x,%" G_GUINT64_FORMAT ",%s\n",
                              blocks[i].address, blocks[i].bytes,
                              td_tape_category_name (blocks[i].category));
      td_sink_row (sink);
    }
}

/* Places are there where stacks are: else the operation says where. */
static void
print_text (const Printer *p, const TdMemoryBlock *blocks, guint n, TdSink *sink)
{
  const gboolean places = p->tape->n_stack_frames > 0;

  g_string_append_printf (sink->text, "           address       bytes  category%s\n",
                          places ? "       place" : "");
  for (guint i = 0; i < n; i++)
    {
      g_autofree char *place = places ? dup_place (p, &blocks[i]) : NULL;

      g_string_append_printf (sink->text,
                              "%#18" G_GINT64_MODIFIER "x  %10" G_GUINT64_FORMAT "  %*s",
                              blocks[i].address, blocks[i].bytes, places ? -13 : 0,
                              td_tape_category_name (blocks[i].category));
      g_string_append_printf (sink->text, "%s%s\n", places ? "  " : "",
                              places ? *place ? place : "?" : "");
      td_sink_row (sink);
    }
}

/* ---- one of them ---- */

static void
print_one (const Printer *p, const TdMemoryBlock *block, GString *out)
{
  g_autofree char *device = dup_device (p, block);
  g_autofree char *place = dup_place (p, block);
  g_autoptr (GArray) frames = td_stack_list (p->iteration, stack_of (p, block));
  g_autofree char *stack = td_stack_frames_print (frames, "  ");
  const gint event = event_of (p, block);
  const char *metadata = metadata_of (p, block);
  char bytes[TD_FORMAT_SIZE];

  g_string_append_printf (out, "block      %#" G_GINT64_MODIFIER "x on %s\n", block->address,
                          device);
  g_string_append_printf (out, "id         %016" G_GINT64_MODIFIER "x\n", block->key);
  g_string_append_printf (out, "bytes      %" G_GUINT64_FORMAT " (%s)\n", block->bytes,
                          td_format_bytes (bytes, block->bytes));
  g_string_append_printf (out, "category   %s\n", td_tape_category_name (block->category));
  if (event >= 0)
    g_string_append_printf (out, "allocated  event %d\n", event);
  else
    g_string_append (out, "allocated  before the first event\n");
  if (*place)
    g_string_append_printf (out, "place      %s\n", place);
  if (*metadata)
    g_string_append_printf (out, "metadata   %s\n", metadata);
  if (frames->len > 0)
    g_string_append_printf (out, "stack      %u %s, innermost first\n%s", frames->len,
                            td_plural (frames->len, "call", "calls"), stack);
  else
    g_string_append (out, "stack      not known\n");
}

gboolean
td_memory_blocks_print (const TdIteration *iteration, gint event, guint64 key,
                        const char *format, TdSink *sink)
{
  g_autoptr (GArray) blocks = td_memory_blocks_at (iteration, event);
  Printer p = { iteration, td_iteration_get_tape (iteration), NULL };
  const TdMemoryBlock *first = (const TdMemoryBlock *)(gpointer)blocks->data;
  guint n = blocks->len;

  for (; key != 0 && n > 0 && first->key != key; n--)
    first++;
  if (key != 0 && n == 0)
    return FALSE;
  if (key != 0)
    n = 1;
  if (strcmp (format, "json") == 0)
    print_json (&p, first, n, sink);
  else if (strcmp (format, "csv") == 0)
    print_csv (&p, first, n, sink);
  else if (key != 0)
    print_one (&p, first, sink->text);
  else
    print_text (&p, first, n, sink);
  return TRUE;
}
