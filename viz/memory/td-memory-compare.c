/*
 * Blocks of two snapshots by the stacks that allocated them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-memory-compare.h"

#include "tape/td-devices.h"

#include <string.h>

/* What blocks are gathered by. */
typedef struct
{
  const char *device,
      *place; /* the comparison's texts, each there once; place NULL: the stack says it */
  guint32 stack;
} RowKey;

/* A block that is looked for on the other side. */
typedef struct
{
  guint64 address, bytes;
  guint row; /* says the device, too */
} BlockKey;

typedef struct
{
  TdMemoryCompare *self;
  GHashTable *row_of; /* RowKey -> row plus 1 */
  GArray *rows;       /* TdMemoryCompareRow */
} Builder;

static guint
row_key_hash (gconstpointer p)
{
  const RowKey *k = p;

  return g_direct_hash (k->device) * 31 + g_direct_hash (k->place) * 7 + k->stack * 0x9e3779b1u;
}

static gboolean
row_key_equal (gconstpointer p, gconstpointer q)
{
  const RowKey *a = p, *b = q;

  return a->device == b->device && a->place == b->place && a->stack == b->stack;
}

static guint
block_key_hash (gconstpointer p)
{
  const BlockKey *k = p;

  return (guint)(((k->address ^ k->bytes << 40) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15))
                 >> 32)
         + k->row;
}

static gboolean
block_key_equal (gconstpointer p, gconstpointer q)
{
  const BlockKey *a = p, *b = q;

  return a->address == b->address && a->bytes == b->bytes && a->row == b->row;
}

/* The whole path: two files of one name are two places. */
static const char *
place_of (const Builder *b, const TdIteration *iteration, const TdMemoryBlock *block)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  guint32 line = 0;
  const char *file = block->var >= 0
                         ? td_iteration_get_site (iteration, t->vars[block->var].site, &line)
                         : "";
  g_autofree char *text
      = file && *file ? g_strdup_printf ("%s:%u", file, line) : g_strdup ("?");

  return g_string_chunk_insert_const (b->self->texts, text);
}

static const char *
device_of (const Builder *b, const TdIteration *iteration, const TdMemoryBlock *block)
{
  g_autofree char *name = td_devices_dup_name (iteration, block->device);

  return g_string_chunk_insert_const (b->self->texts, name);
}

/* The place of the row. */
static guint
find_row (const Builder *b, const TdIteration *iteration, const TdMemoryBlock *block)
{
  RowKey key = { .device = device_of (b, iteration, block) };
  TdMemoryCompareRow fresh = { .device = key.device };
  guint known;

  if (b->self->by_stack && block->var >= 0)
    key.stack = td_stack_table_add (b->self->stacks, iteration,
                                    td_stack_of_var (iteration, (guint)block->var));
  if (key.stack == 0)
    key.place = place_of (b, iteration, block);
  known = GPOINTER_TO_UINT (g_hash_table_lookup (b->row_of, &key));
  if (known > 0)
    return known - 1;
  fresh.stack = key.stack;
  fresh.place = key.place ? key.place : place_of (b, iteration, block);
  g_array_append_val (b->rows, fresh);
  g_hash_table_insert (b->row_of, g_memdup2 (&key, sizeof key),
                       GUINT_TO_POINTER (b->rows->len));
  return b->rows->len - 1;
}

static TdMemoryCompareRow *
get_row (const Builder *b, guint i)
{
  return &g_array_index (b->rows, TdMemoryCompareRow, i);
}

/* Blocks of one side by what makes two the same; and its bytes, which are added to the rows. */
static GHashTable *
take_side (const Builder *b, const TdIteration *iteration, guint side)
{
  g_autoptr (GArray) blocks = td_memory_blocks_at (iteration, -1);
  GHashTable *known = g_hash_table_new_full (block_key_hash, block_key_equal, g_free, NULL);

  for (guint i = 0; i < blocks->len; i++)
    {
      const TdMemoryBlock *block = &g_array_index (blocks, TdMemoryBlock, i);
      const BlockKey key = { block->address, block->bytes, find_row (b, iteration, block) };
      TdMemoryCompareRow *row = get_row (b, key.row);

      row->bytes[side] += block->bytes;
      b->self->bytes[side] += block->bytes;
      *(side == 1 ? &row->n_new : &row->n_gone) += 1;
      *(side == 1 ? &row->new_bytes : &row->gone_bytes) += block->bytes;
      g_hash_table_add (known, g_memdup2 (&key, sizeof key));
    }
  return known;
}

/* What both have is neither new nor gone. */
static void
take_same (const Builder *b, GHashTable *first, GHashTable *second)
{
  GHashTableIter iter;
  gpointer key;

  g_hash_table_iter_init (&iter, first);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    if (g_hash_table_contains (second, key))
      {
        const BlockKey *same = key;
        TdMemoryCompareRow *row = get_row (b, same->row);

        row->n_new--;
        row->n_gone--;
        row->new_bytes -= same->bytes;
        row->gone_bytes -= same->bytes;
      }
}

static int
grown_first (gconstpointer a, gconstpointer b)
{
  const TdMemoryCompareRow *x = a, *y = b;
  gint64 grown[2]
      = { (gint64)(x->bytes[1] - x->bytes[0]), (gint64)(y->bytes[1] - y->bytes[0]) };

  if (grown[0] != grown[1])
    return grown[0] > grown[1] ? -1 : 1;
  if (x->place != y->place)
    return strcmp (x->place, y->place);
  return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* ---- which of a place ---- */

/* In the order of their frames from the innermost on, those that begin alike are neighbours. */
static int
by_frames (gconstpointer a, gconstpointer b, gpointer data)
{
  const TdMemoryCompare *self = data;
  const TdMemoryCompareRow *x = &self->rows[*(const guint *)a],
                           *y = &self->rows[*(const guint *)b];

  if (x->device != y->device)
    return strcmp (x->device, y->device);
  if (x->place != y->place)
    return strcmp (x->place, y->place);
  return td_stack_table_order (self->stacks, x->stack, y->stack);
}

static void
find_apart (TdMemoryCompare *self)
{
  g_autofree guint *order = g_new (guint, self->n + 1ul);

  for (guint i = 0; i < self->n; i++)
    order[i] = i;
  g_qsort_with_data (order, (gint)self->n, sizeof *order, by_frames, self);
  for (guint i = 1; i < self->n; i++)
    {
      TdMemoryCompareRow *x = &self->rows[order[i - 1]], *y = &self->rows[order[i]];
      guint common;

      if (x->device != y->device || x->place != y->place || x->stack == 0 || y->stack == 0)
        continue;
      common = td_stack_table_common (self->stacks, x->stack, y->stack);
      x->apart = MAX (x->apart, common);
      y->apart = MAX (y->apart, common);
    }
}

char *
td_memory_compare_apart (const TdMemoryCompare *self, guint i, gboolean is_short)
{
  const TdMemoryCompareRow *row = &self->rows[i];
  g_autoptr (GArray) frames = td_stack_table_list (self->stacks, row->stack);

  if (row->apart == 0)
    return NULL;
  if (row->apart >= frames->len) /* the others go on outwards */
    return g_strdup ("no other call");
  const TdStackFrame *frame = &g_array_index (frames, TdStackFrame, row->apart);
  return is_short ? td_stack_frame_dup_short (frame) : td_stack_frame_dup_text (frame);
}

/* ---- life ---- */

static void
keep_differing (const Builder *b)
{
  GArray *differ = g_array_new (FALSE, FALSE, sizeof (TdMemoryCompareRow));

  for (guint i = 0; i < b->rows->len; i++)
    if (get_row (b, i)->n_new > 0 || get_row (b, i)->n_gone > 0)
      g_array_append_vals (differ, get_row (b, i), 1);
    else
      b->self->n_same++;
  g_array_sort (differ, grown_first);
  b->self->n = differ->len;
  b->self->rows = (TdMemoryCompareRow *)(gpointer)g_array_free (differ, FALSE);
}

TdMemoryCompare *
td_memory_compare_new (const TdIteration *a, const TdIteration *b)
{
  TdMemoryCompare *self = g_new0 (TdMemoryCompare, 1);
  g_autoptr (GHashTable) row_of
      = g_hash_table_new_full (row_key_hash, row_key_equal, g_free, NULL);
  g_autoptr (GArray) rows = g_array_new (FALSE, FALSE, sizeof (TdMemoryCompareRow));
  const Builder builder = { self, row_of, rows };

  self->stacks = td_stack_table_new ();
  self->texts = g_string_chunk_new (1024);
  self->by_stack = td_iteration_get_tape (a)->n_stack_frames > 0
                   && td_iteration_get_tape (b)->n_stack_frames > 0;
  g_autoptr (GHashTable) first = take_side (&builder, a, 0);
  g_autoptr (GHashTable) second = take_side (&builder, b, 1);
  take_same (&builder, first, second);
  keep_differing (&builder);
  find_apart (self);
  return self;
}

void
td_memory_compare_free (TdMemoryCompare *self)
{
  if (!self)
    return;
  td_stack_table_free (self->stacks);
  g_string_chunk_free (self->texts);
  g_free (self->rows);
  g_free (self);
}
