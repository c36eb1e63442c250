/*
 * A reader of C that knows tokens, braces and a few names: enough to tell a call from an
 * operation, and a write to what lies outside from one to a local variable.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-ran-once.h"

#include <string.h>

enum
{
  MAX_DEPTH = 16, /* functions that call functions */
  MAX_ROWS = 200
};

typedef struct
{
  const char *at;
  guint length, line;
  char kind; /* 'i' identifier, 'p' punctuation, 'o' other, 0 end */
} Token;

typedef struct
{
  const char *file;
  GArray *tokens; /* Token, without comments, directives, strings */
  GArray *rows;   /* TdRanOnceRow */
  GHashTable *seen;
} Scan;

/* Calls that change nothing: what they computed is in the trace already. */
static const char *const pure[]
    = { "abs",   "fabs",     "fabsf",  "sqrt",   "sqrtf",  "exp",    "expf",    "log",  "logf",
        "pow",   "powf",     "sin",    "sinf",   "cos",    "cosf",   "tan",     "tanh", "tanhf",
        "floor", "ceil",     "round",  "fmin",   "fmax",   "fminf",  "fmaxf",   "fmod", "isnan",
        "isinf", "isfinite", "strlen", "strcmp", "memcmp", "assert", "offsetof" };
static const char *const keywords[]
    = { "if",   "for", "while", "switch",   "return",    "sizeof",
        "else", "do",  "case",  "_Alignof", "__typeof__" };

static gboolean
is (const Token *t, const char *text)
{
  return t->length == strlen (text) && strncmp (t->at, text, t->length) == 0;
}

static gboolean
is_one_of (const Token *t, const char *const *words, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (is (t, words[i]))
      return TRUE;
  return FALSE;
}

/* ---- tokens ---- */

static const char *
skip_quoted (const char *p, guint *line)
{
  char quote = *p++;

  for (; *p && *p != quote; p++)
    {
      *line += *p == '\n';
      if (*p == '\\' && p[1])
        p++;
    }
  return *p ? p + 1 : p;
}

/* To the end of a comment or directive; NULL if it is none. */
static const char *
skip_comment (const char *p, gboolean line_start, guint *line)
{
  if (p[0] == '/' && p[1] == '*')
    {
      for (p += 2; *p && !(p[0] == '*' && p[1] == '/'); p++)
        *line += *p == '\n';
      return *p ? p + 2 : p;
    }
  if ((p[0] == '/' && p[1] == '/') || (*p == '#' && line_start))
    {
      for (; *p && *p != '\n'; p++)
        if (*p == '\\' && p[1] == '\n')
          {
            ++*line;
            p++;
          }
      return p;
    }
  return NULL;
}

static const char *const operators[]
    = { "<<=", ">>=", "->", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=",
        "|=",  "^=",  "==", "!=", "<=", ">=", "&&", "||", "<<", ">>" };

static GArray *
tokens_of (const char *text)
{
  GArray *tokens = g_array_new (TRUE, TRUE, sizeof (Token));
  gboolean line_start = TRUE;
  guint line = 1;

  for (const char *p = text; *p;)
    {
      const char *end = skip_comment (p, line_start, &line);
      Token t = { .at = p, .length = 1, .line = line, .kind = 'p' };

      if (end)
        {
          p = end;
          continue;
        }
      if (g_ascii_isspace (*p))
        {
          line += *p == '\n';
          line_start = line_start || *p == '\n';
          p++;
          continue;
        }
      line_start = FALSE;
      if (*p == '"' || *p == '\'')
        {
          p = skip_quoted (p, &line);
          t.kind = 'o';
          t.length = (guint)(p - t.at);
          g_array_append_val (tokens, t);
          continue;
        }
      if (g_ascii_isalnum (*p) || *p == '_')
        {
          t.kind = g_ascii_isdigit (*p) ? 'o' : 'i';
          while (g_ascii_isalnum (p[t.length]) || p[t.length] == '_')
            t.length++;
        }
      else
        for (gsize i = 0; i < G_N_ELEMENTS (operators); i++)
          if (strncmp (p, operators[i], strlen (operators[i])) == 0)
            {
              t.length = (guint)strlen (operators[i]);
              break;
            }
      g_array_append_val (tokens, t);
      p += t.length;
    }
  return tokens;
}

static const Token *
token (const Scan *s, guint i)
{
  static const Token none = { "", 0, 0, 0 };

  return i < s->tokens->len ? &g_array_index (s->tokens, Token, i) : &none;
}

/* Behind the bracket that closes the one at `i`. */
static guint
behind (const Scan *s, guint i)
{
  int depth = 0;

  for (; i < s->tokens->len; i++)
    {
      const Token *t = token (s, i);

      if (is (t, "(") || is (t, "{") || is (t, "["))
        depth++;
      else if (is (t, ")") || is (t, "}") || is (t, "]"))
        if (--depth == 0)
          return i + 1;
    }
  return i;
}

/* The place of `name (` ... `) {` outside all braces; G_MAXUINT: not defined here. */
static guint
find_function (const Scan *s, const char *name, guint length)
{
  for (guint i = 0; i + 1 < s->tokens->len;)
    {
      const Token *t = token (s, i);

      if (is (t, "{"))
        i = behind (s, i);
      else if (t->kind == 'i' && t->length == length && strncmp (t->at, name, length) == 0
               && is (token (s, i + 1), "(") && is (token (s, behind (s, i + 1)), "{"))
        return i;
      else
        i++;
    }
  return G_MAXUINT;
}

/* ---- a function ---- */

static void
declare (GHashTable *locals, const Token *name)
{
  g_hash_table_add (locals, g_strndup (name->at, name->length));
}

/* Names of a declaration from its first name on: `a = 1, *b[2], c`. */
static void
declare_list (const Scan *s, guint i, GHashTable *locals)
{
  declare (locals, token (s, i));
  for (i++; token (s, i)->kind && !is (token (s, i), ";");)
    if (is (token (s, i), "(") || is (token (s, i), "[") || is (token (s, i), "{"))
      i = behind (s, i);
    else if (is (token (s, i), ","))
      {
        while (is (token (s, ++i), "*"))
          ;
        if (token (s, i)->kind == 'i')
          declare (locals, token (s, i));
      }
    else if (is (token (s, i), ")") || is (token (s, i), "}"))
      return;
    else
      i++;
}

/* What is declared in the function: statements that begin with `type name` or `type *name`. */
static GHashTable *
locals_of (const Scan *s, guint open, guint body, guint to)
{
  GHashTable *locals = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = open + 1; i < body; i++)
    if (token (s, i)->kind == 'i'
        && (is (token (s, i + 1), ",") || is (token (s, i + 1), ")")
            || is (token (s, i + 1), "[")))
      declare (locals, token (s, i));
  for (guint i = body; i < to; i++)
    {
      const Token *t = token (s, i);
      guint k = i + 1, n = 0, stars = 0;

      if (!is (t, ";") && !is (t, "{") && !is (t, "}") && !is (t, "("))
        continue;
      if (is_one_of (token (s, k), keywords, G_N_ELEMENTS (keywords)))
        continue;
      for (; token (s, k)->kind == 'i'; k++)
        n++;
      for (; is (token (s, k), "*"); k++)
        stars++;
      if (stars > 0 && n > 0 && token (s, k)->kind == 'i')
        declare_list (s, k, locals);
      else if (stars == 0 && n >= 2 && !is (token (s, k), "("))
        declare_list (s, k - 1, locals);
    }
  return locals;
}

/* memory: what is written through, or NULL. */
static void
add_row (Scan *s, const Token *first, const Token *last, const char *memory)
{
  TdRanOnceRow row
      = { g_strdup (s->file), first->line, NULL, memory != NULL, g_strdup (memory), -1 };

  if (s->rows->len >= MAX_ROWS)
    {
      g_free (row.file);
      g_free (row.memory);
      return;
    }
  row.text = g_strndup (first->at, (gsize)(last->at + last->length - first->at));
  g_strdelimit (row.text, "\n\t", ' ');
  g_array_append_val (s->rows, row);
}

/* The left side of an assignment that ends before token `i`: its first token. */
static guint
left_side (const Scan *s, guint from, guint i)
{
  guint k = i;

  while (k > from)
    {
      const Token *t = token (s, k - 1);

      if (is (t, ")") && k < i && (token (s, k)->kind == 'i' || is (token (s, k), "*")))
        break; /* the end of `if (...)` */
      if (is (t, "]") || is (t, ")"))
        {
          int depth = 0;

          do
            {
              const Token *u = token (s, --k);

              depth += (is (u, "]") || is (u, ")")) - (is (u, "[") || is (u, "("));
            }
          while (depth > 0 && k > from);
        }
      else if (t->kind == 'i' || is (t, "->") || is (t, ".") || is (t, "*"))
        k--;
      else
        break;
    }
  return k;
}

/* Is it the function's own memory under a local name: `Net *net = self;`? */
static gboolean
is_self (const Scan *s, const Token *name)
{
  if (is (name, "self"))
    return TRUE;
  for (guint i = 0; i + 3 < s->tokens->len; i++)
    {
      const Token *t = token (s, i);

      if (t->kind == 'i' && t->length == name->length
          && strncmp (t->at, name->at, t->length) == 0 && is (token (s, i + 1), "=")
          && is (token (s, i + 2), "self")
          && (is (token (s, i + 3), ";") || is (token (s, i + 3), ",")))
        return TRUE;
    }
  return FALSE;
}

/* A write through a pointer, or to what is not declared in the function. */
static void
look_at_write (Scan *s, GHashTable *locals, guint first, guint last, const Token *result)
{
  const Token *base = NULL;
  gboolean through = FALSE;

  for (guint i = first; i < last; i++)
    {
      const Token *t = token (s, i);

      if (!base && t->kind == 'i')
        base = t;
      through |= is (t, "->") || (is (t, "*") && !base);
    }
  if (!base || first == last)
    return;
  if (last > first + 1 && token (s, first)->kind == 'i'
      && (token (s, first + 1)->kind == 'i'
          || (is (token (s, first + 1), "*") && token (s, first + 2)->kind == 'i')))
    return; /* a declaration */
  if (result && base->length == result->length
      && strncmp (base->at, result->at, base->length) == 0)
    return; /* what the function returns */
  g_autofree char *name = g_strndup (base->at, base->length);
  if (through || !g_hash_table_contains (locals, name))
    add_row (s, token (s, first), token (s, last - 1), is_self (s, base) ? "self" : name);
}

static const char *const assignments[]
    = { "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=" };

static void scan_function (Scan *s, const char *name, guint length, guint depth);

static void
look_at_call (Scan *s, guint i, guint depth)
{
  const Token *t = token (s, i);

  if (is_one_of (t, keywords, G_N_ELEMENTS (keywords))
      || is_one_of (t, pure, G_N_ELEMENTS (pure)) || g_str_has_prefix (t->at, "td_")
      || g_str_has_prefix (t->at, "TD_"))
    return;
  if (find_function (s, t->at, t->length) != G_MAXUINT)
    scan_function (s, t->at, t->length, depth + 1);
  else
    add_row (s, t, t, NULL);
}

/* The name of the parameter that takes the results: `TdVar **out`. */
static const Token *
result_parameter (const Scan *s, guint open, guint close)
{
  for (guint i = open; i + 3 < close; i++)
    if (is (token (s, i), "TdVar") && is (token (s, i + 1), "*") && is (token (s, i + 2), "*")
        && token (s, i + 3)->kind == 'i')
      return token (s, i + 3);
  return NULL;
}

static void
scan_body (Scan *s, GHashTable *locals, guint start, guint to, const Token *result, guint depth)
{
  for (guint i = start; i < to; i++)
    {
      const Token *t = token (s, i);

      if (t->kind == 'i' && is (token (s, i + 1), "("))
        {
          if (is (t, "td_static_code"))
            i = behind (s, i + 1) - 1;
          else
            look_at_call (s, i, depth);
        }
      else if (is_one_of (t, assignments, G_N_ELEMENTS (assignments)))
        look_at_write (s, locals, left_side (s, start, i), i, result);
      else if (is (t, "++") || is (t, "--"))
        {
          guint first = left_side (s, start, i), last = i + 1;

          if (first < i)
            look_at_write (s, locals, first, i, result);
          else
            {
              while (is (token (s, last), "*") || is (token (s, last), "(")
                     || token (s, last)->kind == 'i' || is (token (s, last), "->")
                     || is (token (s, last), "."))
                last++;
              look_at_write (s, locals, i + 1, last, result);
            }
        }
    }
}

static void
scan_function (Scan *s, const char *name, guint length, guint depth)
{
  guint at = find_function (s, name, length), open, body;
  char *key = g_strndup (name, length);

  if (at == G_MAXUINT || depth > MAX_DEPTH || !g_hash_table_add (s->seen, key))
    {
      if (at == G_MAXUINT || depth > MAX_DEPTH)
        g_free (key);
      return;
    }
  open = at + 1;
  body = behind (s, open);
  g_autoptr (GHashTable) locals = locals_of (s, open, body, behind (s, body));
  scan_body (s, locals, body + 1, behind (s, body), result_parameter (s, open, body), depth);
}

/* ---- the whole ---- */

static int
by_place (gconstpointer a, gconstpointer b)
{
  const TdRanOnceRow *x = a, *y = b;
  int files = strcmp (x->file, y->file);

  return files ? files : (x->line > y->line) - (x->line < y->line);
}

static TdRanOnce *
found_of (GArray *rows)
{
  TdRanOnce *found = g_new0 (TdRanOnce, 1);

  g_array_sort (rows, by_place);
  found->n = rows->len;
  found->rows = (TdRanOnceRow *)(gpointer)g_array_free (rows, FALSE);
  return found;
}

static void
scan_text (GArray *rows, GHashTable *seen, const char *file, const char *text,
           const char *function)
{
  Scan s = { .file = file, .tokens = tokens_of (text), .rows = rows, .seen = seen };

  scan_function (&s, function, (guint)strlen (function), 0);
  g_array_free (s.tokens, TRUE);
}

static GHashTable *
seen_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
}

TdRanOnce *
td_ran_once_new_text (const char *file, const char *text, const char *function)
{
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (TdRanOnceRow));
  g_autoptr (GHashTable) seen = seen_new ();

  scan_text (rows, seen, file, text, function);
  return found_of (rows);
}

TdRanOnce *
td_ran_once_new (TdTapeReader *reader, const TdTapeSchedule *schedule)
{
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (TdRanOnceRow));
  g_autoptr (GHashTable) seen = seen_new (), places = seen_new ();

  for (guint i = 0; i < schedule->n_steps && schedule->steps[i].list == 0; i++)
    {
      const TdTapeStep *step = &schedule->steps[i];
      const TdTapeSite *site = td_tape_reader_site (reader, step->site);
      const char *file, *function;
      char *place;

      /* the scope of the function has the site of its call, which is not its code */
      if (!site || step->kind == TD_TAPE_STEP_SCOPE_OPEN
          || step->kind == TD_TAPE_STEP_SCOPE_CLOSE)
        continue;
      file = td_tape_reader_string (reader, site->file);
      function = td_tape_reader_string (reader, site->function);
      place = g_strdup_printf ("%u %u", site->file, site->function);
      if (!g_hash_table_add (places, place))
        continue;
      for (guint k = 0; k < td_tape_reader_n_sources (reader); k++)
        {
          TdTapeSource source = td_tape_reader_source (reader, k);

          if (g_str_equal (source.path, file) || g_str_has_suffix (file, source.path))
            scan_text (rows, seen, source.path, source.text, function);
        }
    }
  return found_of (rows);
}

void
td_ran_once_free (TdRanOnce *found)
{
  if (!found)
    return;
  for (guint i = 0; i < found->n; i++)
    {
      g_free (found->rows[i].file);
      g_free (found->rows[i].text);
      g_free (found->rows[i].memory);
    }
  g_free (found->rows);
  g_free (found);
}

/* Calls that write to the standard output. */
static const char *const printing[]
    = { "printf", "puts", "putchar", "putc", "fputs", "fputc", "fprintf", "vprintf", "fwrite" };

static gboolean
proves (const TdRanOnceRow *row, const char *what)
{
  if (row->is_write)
    return g_str_equal (what, row->memory);
  if (!g_str_equal (what, "stdout"))
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (printing); i++)
    if (g_str_equal (row->text, printing[i]))
      return TRUE;
  return FALSE;
}

/* Which of several it was cannot be told from bytes: then none of them is proved. */
static void
prove (TdRanOnce *found, const char *what, gint64 iteration)
{
  TdRanOnceRow *row = NULL;

  for (guint i = 0; i < found->n; i++)
    if (proves (&found->rows[i], what))
      {
        if (row && !g_str_equal (row->text, found->rows[i].text))
          return;
        row = &found->rows[i];
      }
  for (guint i = 0; row && i < found->n; i++)
    if (proves (&found->rows[i], what) && found->rows[i].proved_in < 0)
      found->rows[i].proved_in = iteration;
}

void
td_ran_once_prove (TdRanOnce *found, TdTapeReader *reader, guint function, gint64 iteration)
{
  for (guint i = 0; i < td_tape_reader_n_static_events (reader); i++)
    {
      const TdTapeStaticEvent *e = td_tape_reader_static_event (reader, i);

      if (e->chain == function && e->what == TD_TAPE_STATIC_PROVED
          && (gint64)e->iteration <= iteration)
        prove (found, td_tape_reader_string (reader, e->guard), (gint64)e->iteration);
    }
}

char *
td_ran_once_text (const TdRanOnceRow *row)
{
  const char *did = !row->is_write        ? "ran once"
                    : row->proved_in >= 0 ? "is set once"
                                          : "is possibly set once";

  if (row->proved_in < 0)
    return g_strdup_printf ("%s %s", row->text, did);
  return g_strdup_printf ("%s %s, proved in iteration %" G_GINT64_FORMAT, row->text, did,
                          row->proved_in);
}
