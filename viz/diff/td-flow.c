/*
 * Reading C sources for control flow.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-flow.h"

#include <string.h>

/* Deeper nesting is left out: sources come from tapes, which may be anything. */
#define MAX_DEPTH 100
#define MAX_BYTES (1u << 20)
/* And so is what comes after as many ifs, loops and functions, or calls of one function. */
#define MAX_NODES 5000
#define MAX_FUNCTIONS 2000
#define MAX_CALLS 64
/* A condition or one side of ?: is not longer. */
#define MAX_TERNARY 4096

typedef struct
{
  TdFlow *f;
  guint at, depth;
  guint n_ternaries; /* looked at so far */
} Parser;

static void parse_statement (Parser *p);

/* ---- blanks instead of comments, texts and directives ---- */

static guint
blank (char *s, guint from, guint to)
{
  for (; from < to; from++)
    if (s[from] != '\n')
      s[from] = ' ';
  return to;
}

static guint
end_of_quoted (const char *s, guint at, guint n)
{
  char quote = s[at++];

  while (at < n && s[at] != quote && s[at] != '\n')
    at += s[at] == '\\' && at + 1 < n ? 2 : 1;
  return MIN (at + (at < n && s[at] == quote), n);
}

static guint
end_of_directive (const char *s, guint at, guint n)
{
  while (at < n && s[at] != '\n')
    at += s[at] == '\\' && at + 1 < n ? 2 : 1;
  return MIN (at, n);
}

static guint
end_of_comment (const char *s, guint at, guint n)
{
  if (s[at + 1] == '/')
    return end_of_directive (s, at, n);
  for (at += 3; at < n && !(s[at] == '/' && s[at - 1] == '*'); at++)
    ;
  return MIN (at + 1, n);
}

static void
blank_out (char *s, guint n)
{
  gboolean line_begins = TRUE;

  for (guint i = 0; i < n;)
    if (s[i] == '/' && i + 1 < n && (s[i + 1] == '/' || s[i + 1] == '*'))
      i = blank (s, i, end_of_comment (s, i, n));
    else if (s[i] == '"' || s[i] == '\'')
      {
        i = blank (s, i, end_of_quoted (s, i, n));
        line_begins = FALSE;
      }
    else if (s[i] == '#' && line_begins)
      i = blank (s, i, end_of_directive (s, i, n));
    else
      {
        if (s[i] == '\n')
          line_begins = TRUE;
        else if (!g_ascii_isspace (s[i]))
          line_begins = FALSE;
        i++;
      }
}

/* ---- tokens ---- */

static gboolean
is_word (char c)
{
  return g_ascii_isalnum (c) || c == '_';
}

static void
skip_space (Parser *p)
{
  while (p->at < p->f->n && g_ascii_isspace (p->f->text[p->at]))
    p->at++;
}

static gboolean
at_word (const Parser *p, const char *word)
{
  gsize length = strlen (word);

  return p->at + length <= p->f->n && memcmp (p->f->text + p->at, word, length) == 0
         && (p->at + length == p->f->n || !is_word (p->f->text[p->at + length]))
         && (p->at == 0 || !is_word (p->f->text[p->at - 1]));
}

static gboolean
take_word (Parser *p, const char *word)
{
  skip_space (p);
  if (!at_word (p, word))
    return FALSE;
  p->at += (guint)strlen (word);
  return TRUE;
}

static char
peek (Parser *p)
{
  skip_space (p);
  return p->at < p->f->n ? p->f->text[p->at] : '\0';
}

/* Skips what stands in brackets, of any kind; returns the inside. */
static TdFlowRange
skip_brackets (Parser *p)
{
  TdFlowRange inside = { p->at + 1, p->at + 1 };
  guint depth = 0;

  for (; p->at < p->f->n; p->at++)
    {
      char c = p->f->text[p->at];

      if (c == '(' || c == '[' || c == '{')
        depth++;
      else if ((c == ')' || c == ']' || c == '}') && --depth == 0)
        break;
    }
  inside.to = MAX (inside.from, p->at);
  p->at = MIN (p->at + 1, p->f->n);
  return inside;
}

/* ---- nodes ---- */

static gsize
open_node (Parser *p, TdFlowKind kind, guint from)
{
  TdFlowNode node = { .kind = kind, .all = { from, from } };

  g_array_append_val (p->f->nodes, node);
  return p->f->nodes->len - 1;
}

static TdFlowNode *
node_at (Parser *p, gsize i)
{
  return &g_array_index (p->f->nodes, TdFlowNode, i);
}

static void
set_parts (Parser *p, gsize node, const TdFlowRange *parts, guint n)
{
  TdFlowNode *self = node_at (p, node);

  self->first_part = p->f->parts->len;
  self->n_parts = n;
  g_array_append_vals (p->f->parts, parts, n);
  self->all.to = p->at;
}

/* The last statement of a part: does it leave? */
static gboolean
ends_in (const TdFlow *f, TdFlowRange part, const char *word)
{
  guint end = part.to;

  while (end > part.from && (g_ascii_isspace (f->text[end - 1]) || f->text[end - 1] == '}'))
    end--;
  if (end == part.from || f->text[end - 1] != ';')
    return FALSE;
  for (end--; end > part.from && !strchr (";{}", f->text[end - 1]); end--)
    ;
  while (end < part.to && g_ascii_isspace (f->text[end]))
    end++;
  return td__flow_find_word (f, (TdFlowRange){ end, part.to }, word) == (gint)end;
}

/* What comes after a jump in its block ends here. */
static void
end_block (Parser *p, guint first_node, guint end)
{
  for (guint i = first_node; i < p->f->nodes->len; i++)
    if (node_at (p, i)->rest == 0)
      node_at (p, i)->rest = end;
}

static TdFlowRange
statement (Parser *p)
{
  guint first_node = p->f->nodes->len;
  TdFlowRange range;

  skip_space (p);
  range.from = p->at;
  parse_statement (p);
  range.to = p->at;
  end_block (p, first_node, p->at);
  return range;
}

static void
parse_if (Parser *p, guint from)
{
  gsize node = open_node (p, TD_FLOW_IF, from);
  TdFlowRange parts[2], condition = { p->at, p->at };
  guint n = 1;
  gboolean leaves;

  if (peek (p) == '(')
    condition = skip_brackets (p);
  parts[0] = statement (p);
  if (take_word (p, "else"))
    parts[n++] = statement (p);
  leaves = ends_in (p->f, parts[0], "break") || ends_in (p->f, parts[0], "return");
  set_parts (p, node, parts, n);
  node_at (p, node)->condition = condition;
  node_at (p, node)->jumps
      = n == 1
        && (leaves || ends_in (p->f, parts[0], "continue") || ends_in (p->f, parts[0], "goto"));
  node_at (p, node)->leaves_loop = node_at (p, node)->jumps && leaves;
}

/* for, while, and do: those of iterations are no loops of the graph. */
static void
parse_loop (Parser *p, guint from)
{
  gsize node = open_node (p, TD_FLOW_LOOP, from);
  TdFlowRange body, condition = { p->at, p->at };

  if (peek (p) == '(')
    condition = skip_brackets (p);
  body = statement (p);
  set_parts (p, node, &body, 1);
  node_at (p, node)->condition = condition;
}

static void
parse_do (Parser *p, guint from)
{
  gsize node = open_node (p, TD_FLOW_LOOP, from);
  TdFlowRange body = statement (p), condition = { p->at, p->at };

  if (take_word (p, "while") && peek (p) == '(')
    condition = skip_brackets (p);
  set_parts (p, node, &body, 1);
  node_at (p, node)->condition = condition;
}

/* Cases of the switch whose body is `body`, those of inner ones left out by their brackets. */
static void
collect_cases (Parser *p, TdFlowRange body, GArray *cases)
{
  const char *s = p->f->text;
  guint depth = 0;

  for (guint i = body.from; i < body.to; i++)
    {
      depth += s[i] == '{';
      depth -= s[i] == '}';
      if (depth != 1 || (i > 0 && is_word (s[i - 1])))
        continue;
      Parser here = { .f = p->f, .at = i };
      if (!at_word (&here, "case") && !at_word (&here, "default"))
        continue;
      TdFlowRange part = { i, body.to };
      if (cases->len > 0)
        g_array_index (cases, TdFlowRange, cases->len - 1).to = i;
      g_array_append_val (cases, part);
    }
}

static void
parse_switch (Parser *p, guint from)
{
  gsize node = open_node (p, TD_FLOW_SWITCH, from);
  g_autoptr (GArray) cases = g_array_new (FALSE, FALSE, sizeof (TdFlowRange));
  TdFlowRange condition = { p->at, p->at }, body;

  if (peek (p) == '(')
    condition = skip_brackets (p);
  body = statement (p);
  collect_cases (p, body, cases);
  set_parts (p, node, (const TdFlowRange *)(void *)cases->data, cases->len);
  node_at (p, node)->condition = condition;
}

/* The ?: operators of an expression. */
static void
find_ternaries (Parser *p, TdFlowRange range)
{
  const char *s = p->f->text;

  for (guint q = range.from; q < range.to; q++)
    {
      TdFlowRange parts[2];
      guint from = q, depth = 0, nested = 0, at;

      if (s[q] != '?')
        continue;
      if (p->n_ternaries++ > MAX_NODES)
        return;
      for (; from > range.from && q - from < MAX_TERNARY; from--)
        {
          char c = s[from - 1];

          if (depth == 0
              && (strchr ("([{,;?:", c)
                  || (c == '=' && from >= 2 && !strchr ("=<>!", s[from - 2])
                      && s[from] != '=')))
            break;
          depth += c == ')' || c == ']';
          depth -= depth > 0 && (c == '(' || c == '[');
        }
      parts[0].from = q + 1;
      parts[1].from = 0;
      depth = 0;
      for (at = q + 1; at < range.to && at - q < MAX_TERNARY; at++)
        {
          char c = s[at];

          if (depth == 0 && strchr (",;)]}", c))
            break;
          depth += c == '(' || c == '[' || c == '{';
          depth -= c == ')' || c == ']' || c == '}';
          nested += depth == 0 && c == '?';
          if (depth == 0 && c == ':' && nested-- == 0)
            {
              parts[1].from = at + 1;
              nested = G_MAXUINT / 2; /* further colons are somebody else's */
            }
        }
      if (parts[1].from == 0)
        continue;
      parts[0].to = parts[1].from - 1;
      parts[1].to = at;
      guint keep = p->at;
      gsize node = open_node (p, TD_FLOW_IF, from);
      p->at = at;
      set_parts (p, node, parts, 2);
      node_at (p, node)->condition = (TdFlowRange){ from, q };
      p->at = keep;
    }
}

static void
parse_block (Parser *p)
{
  guint first_node = p->f->nodes->len;

  p->at++;
  while (peek (p) != '}' && p->at < p->f->n)
    parse_statement (p);
  end_block (p, first_node, p->at);
  p->at = MIN (p->at + 1, p->f->n);
}

/* An expression, a declaration, or a macro with a block: TD_SCOPE ("step") { ... }. */
static void
parse_simple (Parser *p)
{
  TdFlowRange range = { p->at, p->at };

  while (p->at < p->f->n)
    {
      char c = p->f->text[p->at];

      if (c == '(' || c == '[')
        skip_brackets (p);
      else if (c == '{')
        {
          guint before = p->at;

          while (before > range.from && g_ascii_isspace (p->f->text[before - 1]))
            before--;
          if (before > range.from && p->f->text[before - 1] == ')')
            {
              range.to = before;
              find_ternaries (p, range);
              parse_block (p);
              return;
            }
          skip_brackets (p);
        }
      else if (c == '}')
        break;
      else
        {
          p->at++;
          if (c == ';')
            break;
        }
    }
  range.to = p->at;
  find_ternaries (p, range);
}

static void
parse_statement (Parser *p)
{
  static const struct
  {
    const char *word;
    void (*parse) (Parser *p, guint from);
  } words[] = { { "if", parse_if },
                { "for", parse_loop },
                { "while", parse_loop },
                { "do", parse_do },
                { "switch", parse_switch } };
  guint from;
  char c = peek (p);

  from = p->at;
  if (p->depth > MAX_DEPTH || p->f->nodes->len > MAX_NODES)
    {
      p->at = p->f->n;
      return;
    }
  p->depth++;
  if (c == '{')
    parse_block (p);
  else
    {
      guint i = 0;

      while (i < G_N_ELEMENTS (words) && !take_word (p, words[i].word))
        i++;
      if (i < G_N_ELEMENTS (words))
        words[i].parse (p, from);
      else
        parse_simple (p);
    }
  if (p->at == from) /* a stray bracket */
    p->at = MIN (p->at + 1, p->f->n);
  p->depth--;
}

/* ---- the file ---- */

/* Functions are "name (...) {" outside of everything. */
static void
parse_file (Parser *p)
{
  TdFlowRange name = { 0, 0 };
  gboolean called = FALSE;

  while (peek (p) != '\0' && p->f->functions->len < MAX_FUNCTIONS)
    {
      char c = p->f->text[p->at];

      if (is_word (c))
        {
          guint from = p->at;

          while (p->at < p->f->n && is_word (p->f->text[p->at]))
            p->at++;
          if (!called)
            name = (TdFlowRange){ from, p->at };
          continue;
        }
      if (c == '{' && called)
        {
          TdFlowFunction function
              = { name, { p->at, p->at }, g_array_new (FALSE, FALSE, sizeof (guint)) };

          parse_block (p);
          function.body.to = p->at;
          g_array_append_val (p->f->functions, function);
          called = FALSE;
        }
      else if (c == '{' || c == '(' || c == '[')
        {
          called = c == '(';
          skip_brackets (p);
        }
      else
        {
          called = FALSE;
          p->at++;
        }
    }
}

/* Where an if jumps away, the rest of its block is its else part. */
static void
add_rests (TdFlow *f)
{
  for (guint i = 0; i < f->nodes->len; i++)
    {
      TdFlowNode *node = &g_array_index (f->nodes, TdFlowNode, i);

      if (!node->jumps || node->rest <= node->all.to)
        continue;
      TdFlowRange parts[2] = { g_array_index (f->parts, TdFlowRange, node->first_part),
                               { node->all.to, node->rest } };
      node->first_part = f->parts->len;
      node->n_parts = 2;
      node->all.to = node->rest;
      g_array_append_vals (f->parts, parts, 2);
    }
}

/* Finds each function's name in the bodies of others. */
static void
find_calls (TdFlow *f)
{
  g_autoptr (GHashTable) by_name
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = 0; i < f->functions->len; i++)
    {
      const TdFlowFunction *function = &g_array_index (f->functions, TdFlowFunction, i);

      g_hash_table_insert (
          by_name,
          g_strndup (f->text + function->name.from, function->name.to - function->name.from),
          GUINT_TO_POINTER (i + 1));
    }
  for (guint i = 0; i < f->n;)
    {
      guint from = i;
      g_autofree char *word = NULL;

      while (i < f->n && is_word (f->text[i]))
        i++;
      if (i == from)
        {
          i++;
          continue;
        }
      word = g_strndup (f->text + from, i - from);
      guint at = GPOINTER_TO_UINT (g_hash_table_lookup (by_name, word));
      if (at == 0)
        continue;
      const TdFlowFunction *function = &g_array_index (f->functions, TdFlowFunction, at - 1);
      if ((from < function->name.from || from >= function->body.to)
          && function->calls->len < MAX_CALLS)
        g_array_append_val (function->calls, from);
    }
}

TdFlow *
td__flow_new (const char *text, gsize n)
{
  TdFlow *f = g_new0 (TdFlow, 1);
  Parser p = { .f = f };
  guint zero = 0;

  f->n = (guint)MIN (n, MAX_BYTES);
  f->text = g_malloc (f->n + 1);
  memcpy (f->text, text, f->n);
  f->text[f->n] = '\0';
  for (guint i = 0; i < f->n; i++) /* parsers stop at 0 */
    if (f->text[i] == '\0')
      f->text[i] = ' ';
  f->lines = g_array_new (FALSE, FALSE, sizeof (guint));
  f->nodes = g_array_new (FALSE, FALSE, sizeof (TdFlowNode));
  f->parts = g_array_new (FALSE, FALSE, sizeof (TdFlowRange));
  f->functions = g_array_new (FALSE, FALSE, sizeof (TdFlowFunction));
  g_array_append_val (f->lines, zero);
  for (guint i = 0; i < f->n; i++)
    if (f->text[i] == '\n')
      {
        guint next = i + 1;

        g_array_append_val (f->lines, next);
      }
  g_array_append_val (f->lines, f->n);
  blank_out (f->text, f->n);
  parse_file (&p);
  add_rests (f);
  find_calls (f);
  return f;
}

void
td__flow_free (TdFlow *f)
{
  if (!f)
    return;
  g_array_unref (f->lines);
  g_array_unref (f->nodes);
  g_array_unref (f->parts);
  for (guint i = 0; i < f->functions->len; i++)
    g_array_unref (g_array_index (f->functions, TdFlowFunction, i).calls);
  g_array_unref (f->functions);
  g_free (f->text);
  g_free (f);
}

guint
td__flow_line (const TdFlow *f, guint at)
{
  guint lo = 0, hi = f->lines->len - 1;

  while (hi - lo > 1)
    {
      guint middle = (lo + hi) / 2;

      if (g_array_index (f->lines, guint, middle) <= at)
        lo = middle;
      else
        hi = middle;
    }
  return lo + 1;
}

TdFlowRange
td__flow_line_range (const TdFlow *f, guint line)
{
  if (line == 0 || line >= f->lines->len)
    return (TdFlowRange){ f->n, f->n };
  return (TdFlowRange){ g_array_index (f->lines, guint, line - 1),
                        g_array_index (f->lines, guint, line) };
}

char *
td__flow_dup_text (const char *text, TdFlowRange range, guint max)
{
  GString *s = g_string_new (NULL);

  for (guint i = range.from; i < range.to; i++)
    if (text[i] == '/' && i + 1 < range.to && (text[i + 1] == '/' || text[i + 1] == '*'))
      i = end_of_comment (text, i, range.to) - 1;
    else if (!g_ascii_isspace (text[i]))
      g_string_append_c (s, (guint8)text[i] < 0x20 ? '?' : text[i]);
    else if (s->len > 0 && s->str[s->len - 1] != ' ')
      g_string_append_c (s, ' ');
  while (s->len > 0 && s->str[s->len - 1] == ' ')
    g_string_truncate (s, s->len - 1);
  if (s->len > max)
    {
      while (max > 0 && ((guint8)s->str[max] & 0xc0) == 0x80) /* not within a character */
        max--;
      g_string_truncate (s, max);
      g_string_append (s, "…");
    }
  return g_string_free (s, FALSE);
}

gint
td__flow_find_word (const TdFlow *f, TdFlowRange range, const char *word)
{
  gsize length = strlen (word);

  for (guint i = range.from; length > 0 && i + length <= range.to; i++)
    if (memcmp (f->text + i, word, length) == 0 && (i == 0 || !is_word (f->text[i - 1]))
        && (i + length == f->n || !is_word (f->text[i + length])))
      return (gint)i;
  return -1;
}

gint
td__flow_function_at (const TdFlow *f, guint at)
{
  guint lo = 0, hi = f->functions->len;

  while (lo < hi)
    {
      guint middle = (lo + hi) / 2;
      const TdFlowFunction *function = &g_array_index (f->functions, TdFlowFunction, middle);

      if (at < function->body.from)
        hi = middle;
      else if (at >= function->body.to)
        lo = middle + 1;
      else
        return (gint)middle;
    }
  return -1;
}

const guint *
td__flow_calls (const TdFlow *f, guint function, guint *n)
{
  const GArray *calls = g_array_index (f->functions, TdFlowFunction, function).calls;

  *n = calls->len;
  return (const guint *)(const void *)calls->data;
}
