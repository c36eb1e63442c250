/* The language of breakpoints: terms joined by && and ||, && binding closer.
 *
 *   error  nan  inf                        what happened
 *   exact error                            the same, before anything else runs: an index that a
 *                                          device finds bad later is else told of when the
 *                                          program reads, or at the end of the iteration
 *   op == linear    link == mlp/l1         which event (op=linear, `op linear` too); link: that
 *                                          layer or one inside it
 *   line == mlp.c:31    phase == backward
 *   iteration >= 10    bytes > 1.5G        engine's iteration number; live bytes of the device
 *   pool > 2G    alloc > 100M              bytes the pool has of the device; that the operation
 *                                          allocated, for its outputs and for its work
 *   norm > 100    norm(grad) > 100         Euclidean norm of an output; of a gradient
 *   rank == 2                              of several processes (tapedeck run -n)
 *   graph changed                          the iteration that ends had other operations, or
 *                                          others in between, than the one before; sizes aside
 *   held after iteration                   something of the iteration before is still there at
 *                                          the end of this one, but parameters, their gradients
 *                                          and the state of optimizers
 *   growth > 10M                           live bytes since the end of the iteration before
 *   guard failed                           a static function cannot be replayed
 *   edge cut                               td_unchain, td_variable; or an operation whose input
 *                                          wants a gradient runs without backprop: the first of
 *                                          those that follow each other
 *
 * SPDX-License-Identifier: MIT */
#include "break.h"
#include "host-memory.h"
#include "td-tape.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_TERMS = 16,
  MAX_TEXT = 256
};

typedef enum
{
  CMP_EQ,
  CMP_NE,
  CMP_GT,
  CMP_GE,
  CMP_LT,
  CMP_LE
} Compare;

typedef struct Term Term;
typedef struct
{
  const char *name;
  enum
  {
    ERROR,       /* up to BARE: no comparison */
    EXACT_ERROR, /* an error, before anything else runs */
    BARE,
    NAME,   /* == and != with a word */
    NUMBER, /* any comparison with a number */
    BYTES   /* a number with K, M, G, T */
  } kind;
  enum
  {
    BEFORE, /* it is known before the event; or not at an event at all */
    AFTER,
    VALUES /* after it, if its outputs are looked at */
  } known;
  bool (*holds) (const Term *t, const TdBreakMoment *m);
  unsigned at;  /* bit for each TdBreakWhen other than events when it is asked */
  bool apart;   /* it may hold on one rank of a run and not on another */
  bool foreign; /* any program can answer */
} Subject;

struct Term
{
  const Subject *subject;
  Compare compare;
  double number;
  char word[MAX_TEXT];
  bool starts_alternative; /* || before this one */
};

struct TdBreak
{
  int id, n;
  bool disabled;
  uint64_t n_hits; /* how often the program stopped there */
  char text[MAX_TEXT];
  Term terms[MAX_TERMS];
};

static bool
compare_numbers (const Term *t, double x)
{
  switch (t->compare)
    {
    case CMP_EQ:
      return x == t->number;
    case CMP_NE:
      return x != t->number;
    case CMP_GT:
      return x > t->number;
    case CMP_GE:
      return x >= t->number;
    case CMP_LT:
      return x < t->number;
    case CMP_LE:
      return x <= t->number;
    default:
      return false;
    }
}

static bool
compare_words (const Term *t, bool equal)
{
  return t->compare == CMP_NE ? !equal : equal;
}

static bool
holds_error (const Term *t, const TdBreakMoment *m)
{
  (void)t;
  return m->failed;
}

static bool
holds_nan (const Term *t, const TdBreakMoment *m)
{
  (void)t;
  return m->measured && m->n_nan > 0;
}

static bool
holds_inf (const Term *t, const TdBreakMoment *m)
{
  (void)t;
  return m->measured && m->n_inf > 0;
}

static bool
holds_op (const Term *t, const TdBreakMoment *m)
{
  return m->place != NULL && compare_words (t, strcmp (m->place->op, t->word) == 0);
}

static bool
holds_link (const Term *t, const TdBreakMoment *m)
{
  const char *path = m->place != NULL ? m->place->path : "";
  size_t n = strlen (t->word);

  return m->place != NULL
         && compare_words (t, strncmp (path, t->word, n) == 0
                                  && (path[n] == '\0' || path[n] == '/'));
}

/* "mlp.c:31", the file by the end of its path. */
static bool
holds_line (const Term *t, const TdBreakMoment *m)
{
  char text[MAX_TEXT];
  size_t n, want = strlen (t->word);

  if (m->place == NULL || m->place->file == NULL)
    return false;
  n = (size_t)snprintf (text, sizeof text, "%s:%d", m->place->file, m->place->line);
  return compare_words (t, n < sizeof text && n >= want
                               && strcmp (text + n - want, t->word) == 0
                               && (n == want || text[n - want - 1] == '/'));
}

static const char *const phases[] = { "forward", "backward", "accumulate", "update" };

static bool
holds_phase (const Term *t, const TdBreakMoment *m)
{
  return m->place != NULL && compare_words (t, strcmp (phases[m->place->phase], t->word) == 0);
}

static bool
is_phase (const char *word)
{
  for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
    if (strcmp (phases[i], word) == 0)
      return true;
  return false;
}

static bool
holds_iteration (const Term *t, const TdBreakMoment *m)
{
  return compare_numbers (t, (double)m->iteration);
}

static bool
holds_rank (const Term *t, const TdBreakMoment *m)
{
  return compare_numbers (t, (double)m->rank);
}

static bool
holds_bytes (const Term *t, const TdBreakMoment *m)
{
  return compare_numbers (t, (double)m->live_bytes);
}

static bool
holds_norm (const Term *t, const TdBreakMoment *m)
{
  return m->measured && compare_numbers (t, m->norm);
}

static bool
holds_norm_grad (const Term *t, const TdBreakMoment *m)
{
  return holds_norm (t, m) && m->place != NULL && m->place->phase != TD_TAPE_PHASE_FORWARD
         && m->place->phase != TD_TAPE_PHASE_UPDATE;
}

static bool
holds_pool (const Term *t, const TdBreakMoment *m)
{
  return compare_numbers (t, (double)m->pool_bytes);
}

static bool
holds_alloc (const Term *t, const TdBreakMoment *m)
{
  return m->after && compare_numbers (t, (double)m->allocated_bytes);
}

static bool
holds_changed (const Term *t, const TdBreakMoment *m)
{
  (void)t;
  return m->when == TD_BREAK_AT_END && m->changed;
}

static bool
holds_held (const Term *t, const TdBreakMoment *m)
{
  (void)t;
  return m->when == TD_BREAK_AT_END && m->held;
}

static bool
holds_growth (const Term *t, const TdBreakMoment *m)
{
  return m->when == TD_BREAK_AT_END && m->grows_known
         && compare_numbers (t, (double)m->grown_bytes);
}

static bool
holds_guard (const Term *t, const TdBreakMoment *m)
{
  (void)t;
  return m->when == TD_BREAK_AT_GUARD;
}

static bool
holds_cut (const Term *t, const TdBreakMoment *m)
{
  (void)t;
  return m->when == TD_BREAK_AT_CUT || (m->when == TD_BREAK_AT_EVENT && !m->after && m->cuts);
}

enum
{
  END = 1 << TD_BREAK_AT_END,
  GUARD = 1 << TD_BREAK_AT_GUARD,
  CUT = 1 << TD_BREAK_AT_CUT
};

/* Of two names that begin alike the longer one is first. */
static const Subject subjects[] = {
  { "exact error", EXACT_ERROR, BEFORE, holds_error, .foreign = true },
  { "error", ERROR, BEFORE, holds_error, .foreign = true },
  { "nan", BARE, VALUES, holds_nan, .apart = true, .foreign = true },
  { "inf", BARE, VALUES, holds_inf, .apart = true, .foreign = true },
  { "graph changed", BARE, BEFORE, holds_changed, .at = END, .foreign = true },
  { "held after iteration", BARE, BEFORE, holds_held, .at = END },
  { "guard failed", BARE, BEFORE, holds_guard, .at = GUARD },
  { "edge cut", BARE, BEFORE, holds_cut, .at = CUT },
  { "op", NAME, BEFORE, holds_op, .foreign = true },
  { "link", NAME, BEFORE, holds_link, .foreign = true },
  { "line", NAME, BEFORE, holds_line, .foreign = true },
  { "phase", NAME, BEFORE, holds_phase, .foreign = true },
  { "iteration", NUMBER, BEFORE, holds_iteration, .foreign = true },
  { "rank", NUMBER, BEFORE, holds_rank, .apart = true, .foreign = true },
  { "bytes", BYTES, BEFORE, holds_bytes, .apart = true, .foreign = true },
  { "pool", BYTES, BEFORE, holds_pool, .apart = true },
  { "alloc", BYTES, AFTER, holds_alloc, .apart = true },
  { "growth", BYTES, BEFORE, holds_growth, .at = END, .foreign = true },
  { "norm(grad)", NUMBER, VALUES, holds_norm_grad, .apart = true, .foreign = true },
  { "norm", NUMBER, VALUES, holds_norm, .apart = true, .foreign = true },
};

static const struct
{
  const char *text;
  Compare compare;
} comparisons[] = {
  { "==", CMP_EQ }, { "!=", CMP_NE }, { ">=", CMP_GE }, { "<=", CMP_LE },
  { "=", CMP_EQ },  { ">", CMP_GT },  { "<", CMP_LT },
};

static const char *
skip_space (const char *s)
{
  while (isspace ((unsigned char)*s))
    s++;
  return s;
}

static const char *
parse_subject (const char *s, Term *t)
{
  for (int i = 0; i < (int)(sizeof subjects / sizeof *subjects); i++)
    {
      size_t n = strlen (subjects[i].name);
      unsigned char after = (unsigned char)s[strncmp (s, subjects[i].name, n) == 0 ? n : 0];

      if (strncmp (s, subjects[i].name, n) == 0 && !isalnum (after) && after != '_'
          && after != '(')
        {
          t->subject = &subjects[i];
          return s + n;
        }
    }
  return NULL;
}

static const char *
parse_word (const char *s, char *word)
{
  char quote = *s == '"' || *s == '\'' ? *s++ : '\0';
  size_t n = 0;

  while (
      *s != '\0' && n < MAX_TEXT - 1
      && (quote != '\0' ? *s != quote : !isspace ((unsigned char)*s) && *s != '&' && *s != '|'))
    word[n++] = *s++;
  word[n] = '\0';
  if (quote != '\0')
    s = *s == quote ? s + 1 : NULL;
  return n > 0 ? s : NULL;
}

static const char *
parse_number (const char *s, Term *t)
{
  static const char units[] = "KMGT";
  char *end;
  const char *unit;

  t->number = strtod (s, &end);
  if (end == s)
    return NULL;
  unit = t->subject->kind == BYTES && *end != '\0'
             ? strchr (units, toupper ((unsigned char)*end))
             : NULL;
  if (unit != NULL)
    {
      t->number *= (double)((uint64_t)1 << (10 * (unit - units + 1)));
      end++;
    }
  return end;
}

/* One term; NULL with `error` set if it is none. */
static const char *
parse_term (const char *s, Term *t, char *error, size_t size)
{
  const char *at = parse_subject (s = skip_space (s), t);
  bool compared = false;

  if (at == NULL)
    {
      snprintf (
          error, size,
          "breakpoint: error, exact error, nan, inf, graph changed, held after iteration, "
          "guard failed, edge cut, op, link, line, phase, iteration, rank, bytes, pool, alloc, "
          "growth, norm or norm(grad) expected at \"%.40s\"",
          s);
      return NULL;
    }
  if (t->subject->kind <= BARE)
    return at;
  at = skip_space (at);
  for (int i = 0; i < (int)(sizeof comparisons / sizeof *comparisons) && !compared; i++)
    if (strncmp (at, comparisons[i].text, strlen (comparisons[i].text)) == 0)
      {
        t->compare = comparisons[i].compare;
        at = skip_space (at + strlen (comparisons[i].text));
        compared = true;
      }
  s = at;
  if (t->subject->kind == NAME)
    at = t->compare > CMP_NE ? NULL : parse_word (at, t->word);
  else
    at = parse_number (at, t);
  if (at == NULL)
    snprintf (error, size, "breakpoint: %s wants %s, not \"%.40s\"", t->subject->name,
              t->subject->kind == NAME ? "== or != and a name" : "a comparison with a number",
              s);
  else if (t->subject->holds == holds_phase && !is_phase (t->word))
    {
      snprintf (error, size,
                "breakpoint: phase is forward, backward, accumulate or update, not \"%.40s\"",
                t->word);
      return NULL;
    }
  return at;
}

TdBreak *
td__break_parse (const char *text, char *error, size_t size)
{
  TdBreak *b = td__xcalloc (1, sizeof *b);
  const char *s = text;
  bool alternative = false;

  snprintf (b->text, sizeof b->text, "%.250s", skip_space (text));
  for (;;)
    {
      if (b->n == MAX_TERMS)
        {
          snprintf (error, size, "breakpoint: at most %d terms", MAX_TERMS);
          break;
        }
      b->terms[b->n].starts_alternative = alternative;
      s = parse_term (s, &b->terms[b->n], error, size);
      if (s == NULL)
        break;
      b->n++;
      s = skip_space (s);
      if (*s == '\0')
        return b;
      if (strncmp (s, "&&", 2) != 0 && strncmp (s, "||", 2) != 0)
        {
          snprintf (error, size, "breakpoint: && or || expected at \"%.40s\"", s);
          break;
        }
      alternative = *s == '|';
      s += 2;
    }
  free (b);
  return NULL;
}

void
td__break_free (TdBreak *b)
{
  free (b);
}

static bool
holds (const TdBreak *b, const TdBreakMoment *m, bool any_values)
{
  bool all = true;

  if (b->disabled)
    return false;
  for (int i = 0; i < b->n; i++)
    {
      if (b->terms[i].starts_alternative)
        {
          if (all)
            return true;
          all = true;
        }
      all = all
            && ((any_values && b->terms[i].subject->known >= AFTER)
                || b->terms[i].subject->holds (&b->terms[i], m));
    }
  return all;
}

bool
td__break_holds (const TdBreak *b, const TdBreakMoment *m)
{
  return holds (b, m, false);
}

bool
td__break_may_hold (const TdBreak *b, const TdBreakMoment *m)
{
  return holds (b, m, true);
}

/* Does one of the terms fulfil this? */
static bool
any_term (const TdBreak *b, bool (*is) (const Subject *s, unsigned what), unsigned what)
{
  for (int i = 0; i < b->n; i++)
    if (is (b->terms[i].subject, what))
      return true;
  return false;
}

static bool
is_known (const Subject *s, unsigned when)
{
  return (unsigned)s->known >= when;
}

static bool
is_asked_at (const Subject *s, unsigned when)
{
  return (s->at & 1u << when) != 0;
}

static bool
is_apart (const Subject *s, unsigned unused)
{
  (void)unused;
  return s->apart;
}

static bool
needs_events (const Subject *s, unsigned unused)
{
  (void)unused;
  return s->kind != ERROR && s->kind != EXACT_ERROR
         && ((s->at & (END | GUARD)) == 0 || s->holds == holds_changed);
}

bool
td__break_needs_values (const TdBreak *b)
{
  return any_term (b, is_known, VALUES);
}

bool
td__break_comes_after (const TdBreak *b)
{
  return any_term (b, is_known, AFTER);
}

bool
td__break_asked_at (const TdBreak *b, TdBreakWhen when)
{
  return when == TD_BREAK_AT_EVENT || any_term (b, is_asked_at, when);
}

bool
td__break_tells_ranks_apart (const TdBreak *b)
{
  return any_term (b, is_apart, 0);
}

bool
td__break_looks_at_events (const TdBreak *b)
{
  return any_term (b, needs_events, 0);
}

static bool
has_subject (const TdBreak *b, bool (*asks) (const Term *t, const TdBreakMoment *m))
{
  for (int i = 0; i < b->n; i++)
    if (b->terms[i].subject->holds == asks)
      return true;
  return false;
}

bool
td__break_compares_graphs (const TdBreak *b)
{
  return has_subject (b, holds_changed);
}

bool
td__break_asks_for_held (const TdBreak *b)
{
  return has_subject (b, holds_held);
}

const char *
td__break_of_engine (const TdBreak *b)
{
  for (int i = 0; i < b->n; i++)
    if (!b->terms[i].subject->foreign)
      return b->terms[i].subject->name;
  return NULL;
}

/* Terms joined by && that are of this rank, among alternatives. */
static bool
names_rank (const TdBreak *b, int rank)
{
  const TdBreakMoment m = { .rank = rank };
  bool all = true;

  for (int i = 0; i < b->n; i++)
    {
      if (b->terms[i].starts_alternative && all)
        return true;
      all = (all || b->terms[i].starts_alternative)
            && (b->terms[i].subject->holds != holds_rank || holds_rank (&b->terms[i], &m));
    }
  return all;
}

bool
td__break_has_rank (const TdBreak *b, int n_ranks)
{
  bool any = false;

  for (int r = 0; r < n_ranks && !any; r++)
    any = names_rank (b, r);
  return any;
}

bool
td__break_exactly (const TdBreak *b)
{
  for (int i = 0; i < b->n; i++)
    if (b->terms[i].subject->kind == EXACT_ERROR)
      return true;
  return false;
}

bool
td__break_on_error (const TdBreak *b)
{
  for (int i = 0; i < b->n; i++)
    if (b->terms[i].subject->kind == ERROR)
      return true;
  return td__break_exactly (b);
}

const char *
td__break_text (const TdBreak *b)
{
  return b->text;
}

int
td__break_id (const TdBreak *b)
{
  return b->id;
}

void
td__break_set_id (TdBreak *b, int id)
{
  b->id = id;
}

bool
td__break_enabled (const TdBreak *b)
{
  return !b->disabled;
}

void
td__break_enable (TdBreak *b, bool enabled)
{
  b->disabled = !enabled;
}

uint64_t
td__break_hits (const TdBreak *b)
{
  return b->n_hits;
}

void
td__break_hit (TdBreak *b)
{
  b->n_hits++;
}

void
td__break_take_over (TdBreak *b, const TdBreak *old)
{
  b->id = old->id;
  b->disabled = old->disabled;
}
