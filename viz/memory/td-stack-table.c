/*
 * Stacks of several tapes as one tree of calls, as each tape has its own.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-stack-table.h"

#include <string.h>

/* What makes two frames the same. */
typedef struct
{
  const char *function, *file;
  guint32 line;
} Frame;

/* Its number is its place plus 1. */
typedef struct
{
  guint32 frame, outer; /* numbers; outer 0: none */
} Call;

/* What is known already of an iteration's own numbers. */
typedef struct
{
  guint32 *calls;    /* of this table, by call of the iteration; 0: not yet */
  GHashTable *sites; /* site -> frame */
} Known;

struct TdStackTable
{
  GStringChunk *texts;
  GArray *frames, *calls, *stacks; /* Frame, Call, guint32: the innermost call of each */
  GHashTable *frame_of, *call_of, *stack_of; /* Frame, Call, call -> number */
  GHashTable *known;                         /* iteration -> Known */
};

static guint
frame_hash (gconstpointer p)
{
  const Frame *f = p;

  return g_str_hash (f->function) * 31 + g_str_hash (f->file) * 7 + f->line;
}

static gboolean
frame_equal (gconstpointer p, gconstpointer q)
{
  const Frame *a = p, *b = q;

  return a->line == b->line && strcmp (a->function, b->function) == 0
         && strcmp (a->file, b->file) == 0;
}

static guint
call_hash (gconstpointer p)
{
  const Call *c = p;

  return c->frame * 0x9e3779b1u ^ c->outer * 0x85ebca6bu;
}

static gboolean
call_equal (gconstpointer p, gconstpointer q)
{
  const Call *a = p, *b = q;

  return a->frame == b->frame && a->outer == b->outer;
}

static void
known_free (gpointer p)
{
  Known *known = p;

  g_free (known->calls);
  g_hash_table_unref (known->sites);
  g_free (known);
}

TdStackTable *
td_stack_table_new (void)
{
  TdStackTable *self = g_new0 (TdStackTable, 1);

  self->texts = g_string_chunk_new (4096);
  self->frames = g_array_new (FALSE, FALSE, sizeof (Frame));
  self->calls = g_array_new (FALSE, FALSE, sizeof (Call));
  self->stacks = g_array_new (FALSE, FALSE, sizeof (guint32));
  self->frame_of = g_hash_table_new_full (frame_hash, frame_equal, g_free, NULL);
  self->call_of = g_hash_table_new_full (call_hash, call_equal, g_free, NULL);
  self->stack_of = g_hash_table_new (NULL, NULL);
  self->known = g_hash_table_new_full (NULL, NULL, NULL, known_free);
  return self;
}

void
td_stack_table_free (TdStackTable *self)
{
  if (!self)
    return;
  g_hash_table_unref (self->known);
  g_hash_table_unref (self->stack_of);
  g_hash_table_unref (self->call_of);
  g_hash_table_unref (self->frame_of);
  g_array_unref (self->stacks);
  g_array_unref (self->calls);
  g_array_unref (self->frames);
  g_string_chunk_free (self->texts);
  g_free (self);
}

/* ---- adding ---- */

static Known *
known_of (TdStackTable *self, const TdIteration *iteration)
{
  Known *known = g_hash_table_lookup (self->known, iteration);

  if (known)
    return known;
  known = g_new0 (Known, 1);
  known->calls = g_new0 (guint32, td_iteration_get_tape (iteration)->n_stack_frames + 1ul);
  known->sites = g_hash_table_new (NULL, NULL);
  g_hash_table_insert (self->known, (gpointer)iteration, known);
  return known;
}

static guint32
frame_of (TdStackTable *self, Known *known, const TdStackFrame *frame)
{
  gpointer site = GUINT_TO_POINTER (frame->site);
  guint32 number = GPOINTER_TO_UINT (g_hash_table_lookup (known->sites, site));
  Frame wanted = { frame->function, frame->file, frame->line };

  if (number > 0)
    return number;
  number = GPOINTER_TO_UINT (g_hash_table_lookup (self->frame_of, &wanted));
  if (number == 0)
    {
      wanted.function = g_string_chunk_insert_const (self->texts, wanted.function);
      wanted.file = g_string_chunk_insert_const (self->texts, wanted.file);
      g_array_append_val (self->frames, wanted);
      number = self->frames->len;
      g_hash_table_insert (self->frame_of, g_memdup2 (&wanted, sizeof wanted),
                           GUINT_TO_POINTER (number));
    }
  g_hash_table_insert (known->sites, site, GUINT_TO_POINTER (number));
  return number;
}

static guint32
call_of (TdStackTable *self, Call wanted)
{
  guint32 number = GPOINTER_TO_UINT (g_hash_table_lookup (self->call_of, &wanted));

  if (number > 0)
    return number;
  g_array_append_val (self->calls, wanted);
  number = self->calls->len;
  g_hash_table_insert (self->call_of, g_memdup2 (&wanted, sizeof wanted),
                       GUINT_TO_POINTER (number));
  return number;
}

/* A stack may be thousands of calls deep: from the outermost that is not known yet inwards. */
static guint32
find_call (TdStackTable *self, const TdIteration *iteration, guint32 stack)
{
  Known *known = known_of (self, iteration);
  g_autoptr (GArray) fresh = g_array_new (FALSE, FALSE, sizeof (guint32));
  guint32 call = stack, number;

  for (; call > 0 && known->calls[call] == 0; call = td_stack_outer (iteration, call))
    g_array_append_val (fresh, call);
  number = call > 0 ? known->calls[call] : 0;
  for (guint i = fresh->len; i-- > 0;)
    {
      TdStackFrame frame;

      call = g_array_index (fresh, guint32, i);
      frame = td_stack_frame (iteration, call);
      number = call_of (self, (Call){ frame_of (self, known, &frame), number });
      known->calls[call] = number;
    }
  return number;
}

guint32
td_stack_table_add (TdStackTable *self, const TdIteration *iteration, guint32 stack)
{
  guint32 call, number;

  if (stack == 0 || stack > td_iteration_get_tape (iteration)->n_stack_frames)
    return 0;
  call = find_call (self, iteration, stack);
  number = GPOINTER_TO_UINT (g_hash_table_lookup (self->stack_of, GUINT_TO_POINTER (call)));
  if (number == 0)
    {
      g_array_append_val (self->stacks, call);
      number = self->stacks->len;
      g_hash_table_insert (self->stack_of, GUINT_TO_POINTER (call), GUINT_TO_POINTER (number));
    }
  return number;
}

/* ---- asking ---- */

static guint32
innermost (const TdStackTable *self, guint32 stack)
{
  return stack > 0 && stack <= self->stacks->len
             ? g_array_index (self->stacks, guint32, stack - 1)
             : 0;
}

static const Call *
get_call (const TdStackTable *self, guint32 call)
{
  return &g_array_index (self->calls, Call, call - 1);
}

GArray *
td_stack_table_list (const TdStackTable *self, guint32 stack)
{
  GArray *frames = g_array_new (FALSE, FALSE, sizeof (TdStackFrame));

  for (guint32 call = innermost (self, stack); call > 0; call = get_call (self, call)->outer)
    {
      const Frame *f = &g_array_index (self->frames, Frame, get_call (self, call)->frame - 1);
      TdStackFrame frame = { call, 0, f->line, f->function, f->file };

      g_array_append_val (frames, frame);
    }
  return frames;
}

/* Goes outwards as long as both have the same frames. Returns how many these are. */
static guint
walk_common (const TdStackTable *self, guint32 *x, guint32 *y)
{
  guint n = 0;

  for (; *x > 0 && *y > 0 && get_call (self, *x)->frame == get_call (self, *y)->frame; n++)
    {
      *x = get_call (self, *x)->outer;
      *y = get_call (self, *y)->outer;
    }
  return n;
}

guint
td_stack_table_common (const TdStackTable *self, guint32 a, guint32 b)
{
  guint32 x = innermost (self, a), y = innermost (self, b);

  return walk_common (self, &x, &y);
}

gint
td_stack_table_order (const TdStackTable *self, guint32 a, guint32 b)
{
  guint32 x = innermost (self, a), y = innermost (self, b);
  guint32 of_x, of_y;

  walk_common (self, &x, &y);
  of_x = x > 0 ? get_call (self, x)->frame : 0;
  of_y = y > 0 ? get_call (self, y)->frame : 0;
  return (of_x > of_y) - (of_x < of_y);
}

void
td_stack_table_write (const TdStackTable *self, TdJson *json)
{
  td_json_key (json, "frames");
  td_json_begin_array (json);
  for (guint i = 0; i < self->frames->len; i++)
    {
      const Frame *f = &g_array_index (self->frames, Frame, i);

      td_json_begin_object (json);
      if (*f->function)
        td_json_member_string (json, "function", f->function);
      if (*f->file)
        td_json_member_string (json, "file", f->file);
      if (f->line > 0)
        td_json_member_int (json, "line", f->line);
      td_json_end_object (json);
    }
  td_json_end_array (json);
  td_json_key (json, "stacks");
  td_json_begin_array (json);
  for (guint i = 0; i < self->stacks->len; i++)
    {
      td_json_begin_array (json);
      for (guint32 call = innermost (self, i + 1); call > 0;
           call = get_call (self, call)->outer)
        td_json_int (json, get_call (self, call)->frame - 1);
      td_json_end_array (json);
    }
  td_json_end_array (json);
}
