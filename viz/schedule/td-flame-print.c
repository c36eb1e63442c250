/*
 * A flame graph in words: what a node is, and the whole as text, CSV, JSON and folded stacks.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "scene/td-json.h"
#include "td-flame.h"

/* In text, what is less than this share of the iteration is counted, not listed. */
#define LEAST_LISTED 1e-3

static const char *const lane_words[] = { "forward", "backward", "update", "all" };

/* What is said of layers, and of calls. */
typedef struct
{
  const char *time, *name, *one, *many, *count; /* of columns; of what is counted */
  const char *csv, *json_time, *json_count;
} Words;

static const Words of_layers
    = { "time",      "layer",
        "operation", "operations",
        "ops",       "depth,lane,path,name,operations,event,ns,bytes,sampled,untimed",
        "ns",        "operations" };
static const Words of_calls
    = { "held",    "call",   "block",
        "blocks",  "blocks", "depth,lane,path,name,blocks,event,byte_ms,bytes,sampled,untimed",
        "byte_ms", "blocks" };

static const Words *
words_of (const TdFlame *flame)
{
  return flame->kind == TD_FLAME_LAYERS ? &of_layers : &of_calls;
}

static double
share_of (const TdFlame *flame, gint node, gint whole, TdFlameSize size)
{
  guint64 all = flame->nodes[whole].size[size];

  return all > 0 ? (double)flame->nodes[node].size[size] / (double)all : 0;
}

/* "gpt › h3 › attn": what a node is in, and itself; `from`: the lowest depth that is said. */
static void
append_path (const TdFlame *flame, gint node, gint from, const char *between, GString *out)
{
  gint parent = flame->nodes[node].parent;

  if (parent >= 0 && flame->nodes[parent].depth >= from)
    {
      append_path (flame, parent, from, between, out);
      g_string_append (out, between);
    }
  g_string_append (out, flame->nodes[node].name);
}

/* The tape has no time at all for it, not even how long it took to issue. */
static gboolean
is_untimed (const TdFlameNode *node)
{
  return node->n_untimed == node->n_ops && node->size[TD_FLAME_TIME] == 0 && node->n_ops > 0;
}

/* Times of devices that were taken now and then say "about". */
static void
append_size (const TdFlame *flame, gint node, TdFlameSize size, GString *out)
{
  const TdFlameNode *n = &flame->nodes[node];
  char text[TD_FORMAT_SIZE];

  if (size == TD_FLAME_BYTES)
    g_string_append (out, td_format_bytes (text, n->size[size]));
  else if (flame->kind != TD_FLAME_LAYERS)
    g_string_append_printf (out, "%s·s", td_format_bytes (text, n->size[size] / 1000));
  else if (is_untimed (n))
    g_string_append (out, "not timed");
  else
    g_string_append_printf (out, "%s%s", n->n_sampled > 0 ? "≈" : "",
                            td_format_ns (text, n->size[size]));
}

/* What was not timed is no share of anything. */
static const char *
format_share (char out[TD_FORMAT_SIZE], const TdFlame *flame, gint node, TdFlameSize size)
{
  gboolean missing = size == TD_FLAME_TIME && is_untimed (&flame->nodes[node]);

  return td_format_share (out, share_of (flame, node, 0, size),
                          missing ? TD_HONEST_MISSING : TD_HONEST_EXACT);
}

static void
append_doubts (const TdFlameNode *node, GString *out)
{
  if (node->n_untimed == 0 || is_untimed (node))
    return;
  if (node->is_op)
    g_string_append (out, " · not timed where it ran: how long it took to issue");
  else
    g_string_append_printf (out, " · %u not timed where they ran", node->n_untimed);
}

char *
td_flame_describe (const TdFlame *flame, gint node, TdFlameSize size)
{
  const TdFlameNode *n = &flame->nodes[node];
  TdFlameSize other = size == TD_FLAME_TIME ? TD_FLAME_BYTES : TD_FLAME_TIME;
  GString *out = g_string_new (NULL);
  char share[TD_FORMAT_SIZE], count[TD_FORMAT_SIZE];

  /* Of a stack of sixty calls the innermost two say more than all. */
  append_path (flame, node,
               flame->kind == TD_FLAME_LAYERS ? MIN (n->depth, 2)
                                              : MAX (n->depth - 1, MIN (n->depth, 1)),
               " › ", out);
  if (n->depth > 1 && flame->kind == TD_FLAME_LAYERS)
    g_string_append_printf (out, " · %s", lane_words[n->lane]);
  g_string_append (out, " · ");
  append_size (flame, node, size, out);
  g_string_append_printf (out, ", %s", format_share (share, flame, node, size));
  g_string_append (out, " · ");
  append_size (flame, node, other, out);
  g_string_append_printf (out, ", %s", format_share (share, flame, node, other));
  if (n->is_op && n->event >= 0)
    g_string_append_printf (out, " · event %d", n->event);
  else
    g_string_append_printf (
        out, " · %s %s", td_format_count (count, n->n_ops),
        td_plural (n->n_ops, words_of (flame)->one, words_of (flame)->many));
  append_doubts (n, out);
  return g_string_free (out, FALSE);
}

/* "1.5 GB at the peak in 45 blocks". */
static void
append_whole_of_calls (const TdFlame *flame, TdFlameSize size, GString *out)
{
  const TdFlameNode *n = &flame->nodes[0];
  char text[TD_FORMAT_SIZE];

  append_size (flame, 0, size, out);
  if (size == TD_FLAME_TIME)
    g_string_append (out, " over the whole trace");
  else
    g_string_append_printf (out, " at %s in %s %s", n->name, td_format_count (text, n->n_ops),
                            td_plural (n->n_ops, "block", "blocks"));
}

/* "62.5 µs in 45 operations, 3.5 µs between them". */
static void
append_whole (const TdFlame *flame, TdFlameSize size, GString *out)
{
  const TdTapeIteration *t = td_iteration_get_tape (flame->iteration);
  const TdFlameNode *n = &flame->nodes[0];
  const char *between = size == TD_FLAME_BYTES ? " in outputs of"
                        : is_untimed (n)       ? ":"
                                               : " in";
  char text[TD_FORMAT_SIZE];

  append_size (flame, 0, size, out);
  g_string_append_printf (out, "%s %s %s", between, td_format_count (text, n->n_ops),
                          td_plural (n->n_ops, "operation", "operations"));
  if (size == TD_FLAME_TIME && !is_untimed (n) && t->duration_ns > n->size[size])
    g_string_append_printf (out, ", %s between them",
                            td_format_ns (text, t->duration_ns - n->size[size]));
}

char *
td_flame_title (const TdFlame *flame, gint zoom, TdFlameSize size)
{
  const TdFlameNode *n = &flame->nodes[zoom];
  GString *out = g_string_new (NULL);
  char text[TD_FORMAT_SIZE];

  if (zoom == 0 && flame->kind != TD_FLAME_LAYERS)
    append_whole_of_calls (flame, size, out);
  else if (zoom == 0)
    append_whole (flame, size, out);
  else
    {
      append_size (flame, zoom, size, out);
      g_string_append_printf (out, ", %s of %s · ", format_share (text, flame, zoom, size),
                              flame->nodes[0].name);
      append_path (flame, zoom, MIN (n->depth, 1), " › ", out);
    }
  append_doubts (n, out);
  return g_string_free (out, FALSE);
}

/* ---- text ---- */

/* "µ" has two bytes and "…" three: pad by characters. */
static void
append_padded (GString *out, const char *text, gint width)
{
  g_string_append_printf (out, "%*s%s", (int)MAX (0, width - g_utf8_strlen (text, -1)), "",
                          text);
}

static void
print_text_node (const TdFlame *flame, gint i, TdFlameSize size, GString *out)
{
  const TdFlameNode *n = &flame->nodes[i];
  char text[TD_FORMAT_SIZE];

  for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
    {
      g_autoptr (GString) words = g_string_new (NULL);

      append_size (flame, i, (TdFlameSize)s, words);
      append_padded (out, words->str, 10);
    }
  append_padded (out, format_share (text, flame, i, size), 9);
  append_padded (out, td_format_count (text, n->n_ops), 8);
  g_string_append_printf (out, "  %*s%s%s\n", n->depth * 2, "", n->name,
                          n->n_untimed > 0 && !is_untimed (n) ? " (not timed where it ran)"
                                                              : "");
}

/* Of an iteration that has no size operations are counted. */
static gboolean
is_listed (const TdFlame *flame, gint node, TdFlameSize size)
{
  const TdFlameNode *n = &flame->nodes[node], *all = &flame->nodes[0];
  double share = all->size[size] > 0 ? share_of (flame, node, 0, size)
                                     : (double)n->n_ops / (double)MAX (all->n_ops, 1);

  return node == 0 || share >= LEAST_LISTED;
}

/* What is too little to be listed is counted where the last of it was. */
static void
print_text (const TdFlame *flame, TdFlameSize size, GString *out)
{
  g_autofree char *title = td_flame_title (flame, 0, size);
  guint n_left_out = 0;

  g_string_append_printf (out, "%s: %s\n%10s%10s%9s%8s  %s\n", flame->nodes[0].name, title,
                          words_of (flame)->time, "bytes", "share", words_of (flame)->count,
                          words_of (flame)->name);
  for (gint i = 0; i < (gint)flame->n;)
    {
      gboolean listed = is_listed (flame, i, size);

      if (listed)
        print_text_node (flame, i, size, out);
      else
        n_left_out += flame->nodes[i].n_ops;
      i = listed ? i + 1 : flame->nodes[i].end;
    }
  if (n_left_out > 0)
    g_string_append_printf (
        out, "%u %s in boxes of less than 0.1 %% %s not listed\n", n_left_out,
        td_plural (n_left_out, words_of (flame)->one, words_of (flame)->many),
        td_plural (n_left_out, "is", "are"));
}

/* ---- other programs ---- */

static char *
dup_path (const TdFlame *flame, gint node)
{
  GString *path = g_string_new (NULL);

  append_path (flame, node,
               MIN (flame->nodes[node].depth, flame->kind == TD_FLAME_LAYERS ? 2 : 1), "/",
               path);
  return g_string_free (path, FALSE);
}

static void
print_csv (const TdFlame *flame, TdSink *sink)
{
  GString *out = sink->text;

  g_string_append_printf (out, "%s\n", words_of (flame)->csv);
  for (guint i = 0; i < flame->n; i++)
    {
      const TdFlameNode *n = &flame->nodes[i];
      g_autofree char *path = dup_path (flame, (gint)i);

      g_string_append_printf (out, "%d,%s,", n->depth, lane_words[n->lane]);
      td_csv_append (out, path);
      g_string_append_c (out, ',');
      td_csv_append (out, n->name);
      g_string_append_printf (out, ",%u,", n->n_ops);
      if (n->is_op && n->event >= 0)
        g_string_append_printf (out, "%d", n->event);
      g_string_append_printf (out, ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%u,%u\n",
                              n->size[TD_FLAME_TIME], n->size[TD_FLAME_BYTES], n->n_sampled,
                              n->n_untimed);
      td_sink_row (sink);
    }
}

static void
print_json (const TdFlame *flame, TdFlameSize size, TdSink *sink)
{
  TdJson j;

  td_json_init (&j, sink->text);
  td_json_begin_object (&j);
  td_json_member_int (&j, "iteration", td_iteration_get_number (flame->iteration));
  td_json_member_string (&j, "by", td_flame_size_name (size));
  if (flame->kind != TD_FLAME_LAYERS)
    td_json_member_string (&j, "at", flame->nodes[0].name);
  td_json_key (&j, "nodes");
  td_json_begin_array (&j);
  for (guint i = 0; i < flame->n; i++)
    {
      const TdFlameNode *n = &flame->nodes[i];

      td_json_begin_object (&j);
      td_json_member_int (&j, "parent", n->parent);
      td_json_member_string (&j, "lane", lane_words[n->lane]);
      td_json_member_string (&j, "name", n->name);
      td_json_member_string (&j, "link", n->path);
      if (n->key)
        {
          td_json_key (&j, "id");
          td_json_id (&j, n->key);
        }
      if (n->is_op && n->event >= 0)
        td_json_member_int (&j, "event", n->event);
      td_json_member_int (&j, words_of (flame)->json_count, n->n_ops);
      td_json_member_int (&j, words_of (flame)->json_time, (gint64)n->size[TD_FLAME_TIME]);
      td_json_member_int (&j, "bytes", (gint64)n->size[TD_FLAME_BYTES]);
      td_json_member_share (&j, "share", share_of (flame, (gint)i, 0, size));
      td_json_member_int (&j, "sampled", n->n_sampled);
      td_json_member_int (&j, "untimed", n->n_untimed);
      td_json_end_object (&j);
      td_sink_row (sink);
    }
  td_json_end_array (&j);
  td_json_end_object (&j);
}

/* ';' parts the boxes of a stack, a line is a stack. */
static char
letter_of (char c)
{
  return c == ';' ? ',' : (guchar)c < ' ' ? ' ' : c;
}

static void
append_frames (const TdFlame *flame, gint node, GString *out)
{
  const TdFlameNode *n = &flame->nodes[node];

  if (n->parent >= 0)
    {
      append_frames (flame, n->parent, out);
      g_string_append_c (out, ';');
    }
  for (const char *at = n->name; *at; at++)
    g_string_append_c (out, letter_of (*at));
}

/* Nodes with one line: their names read the same, and so do the stacks they stand on. */
typedef struct
{
  const char *name;
  guint below; /* the stack it stands on, plus 1; 0: none */
  gint first;  /* operation; -1: it is a layer, or a loop */
  guint64 sum;
} Stack;

static guint
hash_stack (gconstpointer data)
{
  const Stack *s = data;
  guint h = s->below * 2654435761u;

  for (const char *at = s->name; *at; at++)
    h = h * 33 + (guchar)letter_of (*at);
  return h;
}

static gboolean
is_same_stack (gconstpointer x, gconstpointer y)
{
  const Stack *a = x, *b = y;
  gsize i = 0;

  while (a->name[i] && letter_of (a->name[i]) == letter_of (b->name[i]))
    i++;
  return a->below == b->below && (a->first < 0) == (b->first < 0) && a->name[i] == b->name[i];
}

/* Equal stacks are one line, where the first of them is. Texts of a million of them would take
 * more memory than the tree: a stack is known by its last name and the stack below. */
static void
print_folded (const TdFlame *flame, TdFlameSize size, TdSink *sink)
{
  g_autoptr (GHashTable) known = g_hash_table_new (hash_stack, is_same_stack);
  g_autofree Stack *stacks = g_new (Stack, MAX (flame->n, 1));
  g_autofree guint *stack_of = g_new (guint, MAX (flame->n, 1)); /* plus 1 */
  guint n = 0;

  for (guint i = 0; i < flame->n; i++)
    {
      const TdFlameNode *node = &flame->nodes[i];
      guint below = node->parent >= 0 ? stack_of[node->parent] : 0;
      Stack *same;

      if (node->is_op && node->size[size] == 0)
        continue;
      stacks[n] = (Stack){ node->name, below, node->is_op ? (gint)i : -1, 0 };
      same = g_hash_table_lookup (known, &stacks[n]);
      if (!same)
        {
          same = &stacks[n++];
          g_hash_table_add (known, same);
        }
      stack_of[i] = (guint)(same - stacks) + 1;
      if (node->is_op)
        same->sum += node->size[size];
    }
  for (guint k = 0; k < n; k++)
    if (stacks[k].sum > 0)
      {
        append_frames (flame, stacks[k].first, sink->text);
        g_string_append_printf (sink->text, " %" G_GUINT64_FORMAT "\n", stacks[k].sum);
        td_sink_row (sink);
      }
}

void
td_flame_print (const TdFlame *flame, TdFlameSize size, const char *format, TdSink *sink)
{
  if (g_str_equal (format, "json"))
    print_json (flame, size, sink);
  else if (g_str_equal (format, "csv"))
    print_csv (flame, sink);
  else if (g_str_equal (format, "folded"))
    print_folded (flame, size, sink);
  else
    print_text (flame, size, sink->text);
}
