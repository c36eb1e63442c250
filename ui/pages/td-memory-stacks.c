/* A table of blocks, largest first, beside one stack.
 * SPDX-License-Identifier: MIT */
#include "pages/td-memory-stacks.h"

#include <glib/gi18n-lib.h>

#include "memory/td-memory.h"
#include "tape/td-devices.h"
#include "widgets/td-csv.h"
#include "widgets/td-hover-row.h"
#include "widgets/td-index-list.h"

struct _TdMemoryStacks
{
  TdPage parent;
  GtkWidget *card; /* weak; NULL: nobody shows it, nor what is on it */
  GtkLabel *sentence;
  GtkWidget *all, *columns;
  GtkColumnView *table;
  TdIndexList *list;
  GtkSingleSelection *selection;
  TdCallStack *stack;
  GArray *blocks; /* TdMemoryBlock, largest first; NULL: not looked at yet */
  GArray *shown;  /* guint: those in the table */
  GArray *rows;   /* guint64: the keys of those that the list has rows of */
  guint32 call;   /* that they were allocated under; 0: all */
  guint64 key;    /* of the block whose stack is on show; 0: none */
  gboolean syncing;
};

enum
{
  FILTERED,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdMemoryStacks, td_memory_stacks, TD_TYPE_PAGE)

static TdIteration *
get_iteration (TdMemoryStacks *self)
{
  return td_page_get_iteration (TD_PAGE (self));
}

/* The block of a row of the table; NULL: there is none. */
static const TdMemoryBlock *
get_block (TdMemoryStacks *self, guint row)
{
  return self->blocks && row < self->shown->len ? &g_array_index (
             self->blocks, TdMemoryBlock, g_array_index (self->shown, guint, row))
                                                : NULL;
}

static guint32
stack_of (TdMemoryStacks *self, const TdMemoryBlock *block)
{
  return block->var >= 0 ? td_stack_of_var (get_iteration (self), (guint)block->var) : 0;
}

/* ---- columns ---- */

static char *
dup_bytes (TdMemoryStacks *self, const TdMemoryBlock *block)
{
  char text[TD_FORMAT_SIZE];
  return g_strdup (td_format_bytes (text, block->bytes));
}

static char *
dup_place (TdMemoryStacks *self, const TdMemoryBlock *block)
{
  const TdTapeIteration *tape = td_iteration_get_tape (get_iteration (self));
  g_autofree char *place
      = block->var >= 0
            ? td_iteration_dup_place (get_iteration (self), tape->vars[block->var].site)
            : NULL;
  return place && *place ? g_utf8_make_valid (place, -1) : g_strdup ("no stack");
}

static char *
dup_event (TdMemoryStacks *self, const TdMemoryBlock *block)
{
  const TdTapeIteration *tape = td_iteration_get_tape (get_iteration (self));
  gint event = block->var >= 0 ? tape->vars[block->var].producer : -1;
  return event >= 0 ? g_strdup_printf ("%d", event) : g_strdup ("before");
}

static char *
dup_device (TdMemoryStacks *self, const TdMemoryBlock *block)
{
  return td_devices_dup_name (get_iteration (self), block->device);
}

static char *
dup_metadata (TdMemoryStacks *self, const TdMemoryBlock *block)
{
  const TdTapeIteration *tape = td_iteration_get_tape (get_iteration (self));
  gint event = block->var >= 0 ? tape->vars[block->var].producer : -1;
  const char *said = event >= 0 ? td_stack_metadata (get_iteration (self), (guint)event) : "";
  return g_utf8_make_valid (said, -1);
}

typedef struct
{
  const char *title;
  char *(*text) (TdMemoryStacks *self, const TdMemoryBlock *block);
  gboolean numeric, expand;
} Column;

static const Column columns[] = {
  { N_ ("Bytes"), dup_bytes, TRUE, FALSE },
  { N_ ("Allocated at"), dup_place, FALSE, TRUE },
  { N_ ("Event"), dup_event, TRUE, FALSE },
  { N_ ("Device"), dup_device, FALSE, FALSE },
  { N_ ("Metadata"), dup_metadata, FALSE, TRUE },
};

static void
setup_cell (GtkListItemFactory *factory, GtkListItem *item, TdMemoryStacks *self)
{
  const Column *column = td_index_table_column (factory);
  td_index_table_set_label (item, column->numeric, column->expand);
}

static void
bind_cell (GtkListItemFactory *factory, GtkListItem *item, TdMemoryStacks *self)
{
  const Column *column = td_index_table_column (factory);
  const TdMemoryBlock *block = get_block (self, gtk_list_item_get_position (item));
  GtkWidget *label = gtk_list_item_get_child (item);
  if (!block)
    return;
  g_autofree char *text = column->text (self, block);
  gtk_label_set_text (GTK_LABEL (label), text);
  td_hover_row_set (gtk_widget_get_parent (label), td_page_get_session (TD_PAGE (self)),
                    block->key, gtk_widget_get_parent (label));
}

static void
unbind_cell (GtkListItemFactory *factory, GtkListItem *item, TdMemoryStacks *self)
{
  td_hover_row_set (gtk_widget_get_parent (gtk_list_item_get_child (item)), NULL, 0, NULL);
}

static char *
dup_cell (gpointer self, gconstpointer column, guint row)
{
  return ((const Column *)column)->text (self, get_block (self, row));
}

static char *
dup_csv (gpointer data)
{
  TdMemoryStacks *self = data;
  return self->blocks ? td_csv_dup_table (self->table, self->shown->len, dup_cell, self) : NULL;
}

/* ---- the stack ---- */

/* The row of the block that is selected, else of the largest one; -1: there is none. */
static gint
find_row (TdMemoryStacks *self)
{
  guint n;
  const guint64 *keys = td_session_get_selection (td_page_get_session (TD_PAGE (self)), &n);
  for (guint row = 0; n > 0 && row < self->shown->len; row++)
    if (get_block (self, row)->key == keys[0] && keys[0] != 0)
      return (gint)row;
  return self->shown->len > 0 ? 0 : -1;
}

/* What is on show stays as it is: it may be unfolded, or scrolled. */
static void
show_stack (TdMemoryStacks *self)
{
  gint row = find_row (self);
  const TdMemoryBlock *block = row >= 0 ? get_block (self, (guint)row) : NULL;
  self->syncing = TRUE;
  td_index_table_select (self->table, row);
  self->syncing = FALSE;
  if (block && block->key == self->key && block->key != 0)
    return;
  self->key = block ? block->key : 0;
  g_autoptr (GArray) frames
      = block ? td_stack_list (get_iteration (self), stack_of (self, block)) : NULL;
  char bytes[TD_FORMAT_SIZE];
  g_autofree char *title
      = block ? g_strdup_printf ("%s allocated", td_format_bytes (bytes, block->bytes))
              : g_strdup ("");
  td_call_stack_set (self->stack, title, frames, td_page_get_session (TD_PAGE (self)));
  td_call_stack_select (self->stack, self->call);
}

/* ---- the table ---- */

static int
largest_first (gconstpointer a, gconstpointer b)
{
  const TdMemoryBlock *x = a, *y = b;
  if (x->bytes != y->bytes)
    return x->bytes > y->bytes ? -1 : 1;
  return (x->address > y->address) - (x->address < y->address);
}

/* Returns the bytes of those that are shown. */
static guint64
filter (TdMemoryStacks *self)
{
  guint64 bytes = 0;
  g_array_set_size (self->shown, 0);
  for (guint i = 0; i < self->blocks->len; i++)
    {
      const TdMemoryBlock *block = &g_array_index (self->blocks, TdMemoryBlock, i);
      if (self->call > 0
          && !td_stack_has (get_iteration (self), stack_of (self, block), self->call))
        continue;
      g_array_append_val (self->shown, i);
      bytes += block->bytes;
    }
  return bytes;
}

static void
say (TdMemoryStacks *self, guint64 bytes)
{
  char text[TD_FORMAT_SIZE];
  g_autofree char *frame = NULL, *words = NULL;
  td_format_bytes (text, bytes);
  if (self->call > 0)
    {
      TdStackFrame f = td_stack_frame (get_iteration (self), self->call);
      frame = td_stack_frame_dup_text (&f);
      words = g_strdup_printf ("%u of %u %s, %s, under %s", self->shown->len, self->blocks->len,
                               td_plural (self->blocks->len, "block", "blocks"), text, frame);
    }
  else
    words = g_strdup_printf (_ ("%u %s alive at the playhead, %s"), self->shown->len,
                             td_plural (self->shown->len, "block", "blocks"), text);
  gtk_label_set_text (self->sentence, words);
  gtk_widget_set_visible (self->all, self->call > 0);
}

static gboolean
any_metadata (TdMemoryStacks *self)
{
  for (guint i = 0; i < self->blocks->len; i++)
    {
      g_autofree char *said
          = dup_metadata (self, &g_array_index (self->blocks, TdMemoryBlock, i));
      if (*said)
        return TRUE;
    }
  return FALSE;
}

/* Rows up to the first that is another block stay: a table makes some hundred widgets anew for
 * what changes, and most blocks are there before and after a step. */
static void
renew_rows (TdMemoryStacks *self)
{
  guint same = 0;
  while (same < MIN (self->rows->len, self->shown->len)
         && g_array_index (self->rows, guint64, same) == get_block (self, same)->key
         && get_block (self, same)->key != 0)
    same++;
  if (same == self->rows->len && same == self->shown->len)
    return;
  g_array_set_size (self->rows, self->shown->len);
  for (guint i = same; i < self->shown->len; i++)
    g_array_index (self->rows, guint64, i) = get_block (self, i)->key;
  td_index_list_resize (self->list, self->shown->len, same);
}

/* Blocks are all there, and `call` says which are shown. */
static void
show_rows (TdMemoryStacks *self)
{
  GListModel *made = gtk_column_view_get_columns (self->table);
  guint64 bytes = filter (self);
  g_autoptr (GtkColumnViewColumn) metadata
      = g_list_model_get_item (made, g_list_model_get_n_items (made) - 1);
  self->syncing = TRUE;
  gtk_column_view_column_set_visible (metadata, any_metadata (self));
  renew_rows (self);
  self->syncing = FALSE;
  say (self, bytes);
  show_stack (self);
}

static void
set_call (TdMemoryStacks *self, guint32 call)
{
  if (self->call == call)
    return;
  self->call = call;
  show_rows (self);
  td_call_stack_select (self->stack, call);
  g_signal_emit (self, signals[FILTERED], 0);
}

static void
frame_chosen (TdCallStack *stack, guint call, TdMemoryStacks *self)
{
  set_call (self, call);
}

static void
all_clicked (GtkButton *button, TdMemoryStacks *self)
{
  set_call (self, 0);
}

static void
row_selected (TdMemoryStacks *self)
{
  const TdMemoryBlock *block
      = get_block (self, gtk_single_selection_get_selected (self->selection));
  TdSession *session = td_page_get_session (TD_PAGE (self));
  if (!self->syncing && session && block && block->key != 0)
    td_session_select (session, block->key);
}

guint32
td_memory_stacks_get_call (TdMemoryStacks *self)
{
  return self->call;
}

/* ---- moment and selection ---- */

void
td_memory_stacks_look (TdMemoryStacks *self)
{
  TdIteration *iteration = get_iteration (self);
  gboolean any = iteration && td_iteration_get_tape (iteration)->n_stack_frames > 0;
  if (!self->card)
    return;
  gtk_widget_set_visible (self->card, any);
  if (!any || self->blocks || !gtk_widget_get_mapped (self->card))
    return;
  self->blocks = td_memory_blocks_at (
      iteration, td_session_get_moment (td_page_get_session (TD_PAGE (self))).event);
  g_array_sort (self->blocks, largest_first);
  show_rows (self);
}

static void
forget_blocks (TdMemoryStacks *self)
{
  g_clear_pointer (&self->blocks, g_array_unref);
  g_array_set_size (self->shown, 0);
}

/* The playhead moved, perhaps within the iteration: other blocks are there, and calls are the
 * same. */
static void
moment_shown (TdPage *page)
{
  TdMemoryStacks *self = TD_MEMORY_STACKS (page);
  forget_blocks (self);
  td_memory_stacks_look (self);
}

/* Calls have other numbers in another iteration. */
static void
forget_moment (TdPage *page)
{
  TdMemoryStacks *self = TD_MEMORY_STACKS (page);
  forget_blocks (self);
  g_array_set_size (self->rows, 0);
  if (self->card)
    td_index_list_reset (self->list, 0);
  self->call = 0;
  self->key = 0;
}

static void
selection_changed (TdPage *page)
{
  TdMemoryStacks *self = TD_MEMORY_STACKS (page);
  if (self->card && self->blocks && get_iteration (self))
    show_stack (self);
}

/* ---- building ---- */

void
td_memory_stacks_build (TdMemoryStacks *self, GtkBuilder *builder)
{
  GtkWidget *scroller = gtk_scrolled_window_new ();
  self->sentence = GTK_LABEL (gtk_builder_get_object (builder, "stacks-sentence"));
  self->all = GTK_WIDGET (gtk_builder_get_object (builder, "stacks-all"));
  g_signal_connect_object (self->all, "clicked", G_CALLBACK (all_clicked), self, 0);
  self->selection = td_index_list_new_selection (self->list, G_CALLBACK (row_selected), self);
  self->table = td_index_table_new (self->selection, _ ("Blocks of memory at the playhead"));
  td_csv_provide (GTK_WIDGET (self->table), dup_csv, self);
  gtk_widget_set_name (GTK_WIDGET (self->table), "stacks-table");
  gtk_widget_add_css_class (GTK_WIDGET (self->table), "td-compare-table");
  for (guint i = 0; i < G_N_ELEMENTS (columns); i++)
    td_index_table_add (self->table, _ (columns[i].title), columns[i].expand, &columns[i],
                        G_CALLBACK (setup_cell), G_CALLBACK (bind_cell),
                        G_CALLBACK (unbind_cell), self);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), GTK_WIDGET (self->table));
  gtk_widget_set_vexpand (scroller, TRUE);
  gtk_widget_add_css_class (scroller, "td-card-table");
  self->stack = TD_CALL_STACK (td_call_stack_new ());
  gtk_widget_set_name (GTK_WIDGET (self->stack), "stacks-stack");
  g_signal_connect_object (self->stack, "chosen", G_CALLBACK (frame_chosen), self, 0);
  self->columns = GTK_WIDGET (gtk_builder_get_object (builder, "stacks-columns"));
  gtk_box_append (GTK_BOX (self->columns), scroller);
  gtk_box_append (GTK_BOX (self->columns), GTK_WIDGET (self->stack));
  g_set_weak_pointer (&self->card, GTK_WIDGET (gtk_builder_get_object (builder, "stacks")));
  g_signal_connect_object (self->card, "map", G_CALLBACK (td_memory_stacks_look), self,
                           G_CONNECT_SWAPPED | G_CONNECT_AFTER);
}

static void
td_memory_stacks_finalize (GObject *object)
{
  TdMemoryStacks *self = TD_MEMORY_STACKS (object);
  if (self->selection)
    g_signal_handlers_disconnect_by_data (self->selection, self);
  g_clear_object (&self->selection);
  g_clear_object (&self->list);
  g_clear_weak_pointer (&self->card);
  g_clear_pointer (&self->blocks, g_array_unref);
  g_array_unref (self->shown);
  g_array_unref (self->rows);
  G_OBJECT_CLASS (td_memory_stacks_parent_class)->finalize (object);
}

static void
td_memory_stacks_class_init (TdMemoryStacksClass *klass)
{
  TdPageClass *class = TD_PAGE_CLASS (klass);
  G_OBJECT_CLASS (klass)->finalize = td_memory_stacks_finalize;
  class->name = "stacks";
  class->title = N_ ("Stacks");
  class->forget_moment = forget_moment;
  class->moment_shown = moment_shown;
  class->selection_changed = selection_changed;
  signals[FILTERED] = g_signal_new ("filtered", TD_TYPE_MEMORY_STACKS, G_SIGNAL_RUN_LAST, 0,
                                    NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
td_memory_stacks_init (TdMemoryStacks *self)
{
  self->list = td_index_list_new ();
  self->shown = g_array_new (FALSE, FALSE, sizeof (guint));
  self->rows = g_array_new (FALSE, FALSE, sizeof (guint64));
}

TdMemoryStacks *
td_memory_stacks_new (void)
{
  return g_object_new (TD_TYPE_MEMORY_STACKS, NULL);
}
