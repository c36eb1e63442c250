/*
 * A difference as a sentence, as text and as JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-diff.h"
#include "td-node-json.h"
#include "td-tape.h"

#define ITEM(d, i) (&g_array_index ((d)->items, TdDiffItem, (i)))

/* The side and event at which an item is shown: A's where it has one. */
static const TdIteration *
shown (const TdDiff *d, const TdDiffItem *item, guint *event)
{
  *event = (guint)(item->a >= 0 ? item->a : item->b);
  return item->a >= 0 ? d->a : d->b;
}

static void
count (const TdDiff *d, guint n[4])
{
  n[0] = n[1] = n[2] = n[3] = 0;
  for (guint i = 0; i < d->items->len; i++)
    n[ITEM (d, i)->kind == TD_DIFF_CHANGED && !ITEM (d, i)->structural
          ? 3
          : (guint)ITEM (d, i)->kind]++;
}

char *
td_diff_sentence (const TdDiff *d)
{
  static const char *const kinds[]
      = { "only in A", "only in B", "changed", "with other numbers" };
  GString *s = g_string_new (NULL);
  guint n[4], event;

  count (d, n);
  if (d->items->len == 0)
    {
      g_string_append_printf (s, "The same %u operations%s.", d->n_same,
                              d->has_numbers ? " with the same numbers" : "");
      return g_string_free (s, FALSE);
    }
  for (int k = 0; k < 4; k++)
    if (n[k] > 0)
      g_string_append_printf (s, "%s%u operation%s %s", s->len > 0 ? ", " : "", n[k],
                              n[k] == 1 ? "" : "s", kinds[k]);
  const TdIteration *side = shown (d, ITEM (d, 0), &event);
  g_autofree char *site = td_iteration_dup_site (side, event);
  g_string_append_printf (s, "; first %s%s%s", td_iteration_get_op_name (side, event),
                          *site ? " at " : "", site);
  if (d->n_followers > 0)
    g_string_append_printf (s, "; %u more follow from it", d->n_followers);
  g_string_append_c (s, '.');
  return g_string_free (s, FALSE);
}

static void
print_list (const TdDiff *d, TdJson *j, const char *key, TdDiffKind kind)
{
  td_json_key (j, key);
  td_json_begin_array (j);
  for (guint i = 0; i < d->items->len; i++)
    {
      const TdDiffItem *item = ITEM (d, i);
      guint event;

      if (item->kind != kind)
        continue;
      const TdIteration *side = shown (d, item, &event);
      td_node_json_begin_event (j, side, event);
      if (item->what)
        {
          td_json_member_bool (j, "structural", item->structural);
          td_json_member_string (j, "what", item->what);
        }
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

static char *
print_json (const TdDiff *d)
{
  GString *out = g_string_new (NULL);
  g_autofree char *sentence = td_diff_sentence (d);
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_key (&j, "versions");
  td_json_begin_array (&j);
  for (char **v = d->versions; v && *v; v += 3)
    {
      td_json_begin_object (&j);
      td_json_member_string (&j, "key", v[0]);
      td_json_member_string (&j, "a", v[1]);
      td_json_member_string (&j, "b", v[2]);
      td_json_end_object (&j);
    }
  td_json_end_array (&j);
  td_json_member_bool (&j, "same", d->items->len == 0);
  td_json_member_string (&j, "sentence", sentence);
  print_list (d, &j, "only_a", TD_DIFF_ONLY_A);
  print_list (d, &j, "only_b", TD_DIFF_ONLY_B);
  print_list (d, &j, "changed", TD_DIFF_CHANGED);
  td_json_key (&j, "first_divergence");
  if (d->items->len == 0)
    td_json_null (&j);
  else
    {
      guint event;
      const TdIteration *side = shown (d, ITEM (d, 0), &event);
      g_autofree char *site = td_iteration_dup_site (side, event);

      td_json_begin_object (&j);
      td_json_member_string (&j, "site", site);
      td_json_member_string (&j, "op", td_iteration_get_op_name (side, event));
      td_json_end_object (&j);
    }
  td_json_member_int (&j, "followers", d->n_followers);
  td_json_member_int (&j, "matched", d->n_same);
  td_json_member_bool (&j, "numbers_compared", d->has_numbers);
  td_json_end_object (&j);
  return g_string_free (out, FALSE);
}

char *
td_diff_print (const TdDiff *d, const char *format)
{
  static const char marks[] = { '-', '+', '~' };
  GString *out;
  g_autofree char *sentence = NULL;

  if (g_str_equal (format, "json"))
    return print_json (d);
  sentence = td_diff_sentence (d);
  out = g_string_new (NULL);
  for (char **v = d->versions; v && *v; v += 3)
    g_string_append_printf (out, "%s: %s in A, %s in B\n", v[0], *v[1] ? v[1] : "unknown",
                            *v[2] ? v[2] : "unknown");
  g_string_append (out, sentence);
  g_string_append_c (out, '\n');
  for (guint i = 0; i < d->items->len; i++)
    {
      const TdDiffItem *item = ITEM (d, i);
      guint event;
      const TdIteration *side = shown (d, item, &event);
      g_autofree char *site = td_iteration_dup_site (side, event);

      g_string_append_printf (
          out, "%c %-10s %5u  %-28s %-24s %s%s%s\n", marks[item->kind],
          td_tape_phase_name (td_iteration_get_tape (side)->events[event].phase), event,
          td_iteration_get_op_name (side, event), td_iteration_get_link_path (side, event),
          site, item->what ? "  " : "", item->what ? item->what : "");
    }
  return g_string_free (out, FALSE);
}
