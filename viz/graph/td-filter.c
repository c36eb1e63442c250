/* Filters: a list of terms, read once; a table says what each subject is.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-filter.h"

#include <gio/gio.h>
#include <math.h>
#include <string.h>

#include "tape/td-devices.h"

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

/* One event while it is looked at. */
typedef struct
{
  TdIteration *iteration;
  const TdTapeIteration *t;
  guint event;
  const TdTapeStats *const *stats; /* by variable */
} Look;

typedef struct
{
  const char *name;
  enum
  {
    BARE,  /* no comparison */
    NAME,  /* == and != with a word */
    NUMBER /* any comparison with a number, K, M and G allowed */
  } kind;
  gboolean (*holds) (const Term *term, const Look *look);
  gboolean (*test) (const Term *term, const TdTapeStats *stats); /* of any recorded output */
  gboolean gradients;                                            /* test gradients only */
} Subject;

struct Term
{
  const Subject *subject;
  Compare compare;
  double number;
  char *word;
  gboolean starts_alternative; /* || before this one */
};

struct TdFilter
{
  GArray *terms;
};

/* ---- what holds ---- */

static const TdTapeEvent *
event_of (const Look *l)
{
  return &l->t->events[l->event];
}

static gboolean
compare_number (const Term *term, double value)
{
  switch (term->compare)
    {
    case CMP_EQ:
      return value == term->number;
    case CMP_NE:
      return value != term->number;
    case CMP_GT:
      return value > term->number;
    case CMP_GE:
      return value >= term->number;
    case CMP_LT:
      return value < term->number;
    case CMP_LE:
    default:
      return value <= term->number;
    }
}

static gboolean
is_not (const Term *term, gboolean equal)
{
  return term->compare == CMP_NE ? !equal : equal;
}

static gboolean
holds_error (const Term *term, const Look *l)
{
  return (event_of (l)->flags & TD_TAPE_EVENT_FAILED) != 0;
}

/* Whether the subject's test holds for any recorded output. */
static gboolean
holds_of_output (const Term *term, const Look *l)
{
  const TdTapeEvent *e = event_of (l);

  if (term->subject->gradients && e->phase != TD_TAPE_PHASE_BACKWARD
      && e->phase != TD_TAPE_PHASE_ACCUMULATE)
    return FALSE;
  for (guint k = 0; k < e->n_out; k++)
    {
      const TdTapeStats *s = l->stats[l->t->outs[e->first_out + k]];

      if (s && term->subject->test (term, s))
        return TRUE;
    }
  return FALSE;
}

static gboolean
test_nan (const Term *term, const TdTapeStats *s)
{
  return s->n_nan > 0;
}

static gboolean
test_inf (const Term *term, const TdTapeStats *s)
{
  return s->n_pos_inf + s->n_neg_inf > 0;
}

static gboolean
test_norm (const Term *term, const TdTapeStats *s)
{
  return compare_number (term, s->l2);
}

static gboolean
test_mean (const Term *term, const TdTapeStats *s)
{
  return compare_number (term, s->mean);
}

static gboolean
test_min (const Term *term, const TdTapeStats *s)
{
  return compare_number (term, s->min);
}

static gboolean
test_max (const Term *term, const TdTapeStats *s)
{
  return compare_number (term, s->max);
}

static gboolean
holds_bytes (const Term *term, const Look *l)
{
  const TdTapeEvent *e = event_of (l);
  guint64 bytes = 0;

  for (guint k = 0; k < e->n_out; k++)
    bytes += l->t->vars[l->t->outs[e->first_out + k]].bytes;
  return compare_number (term, (double)bytes);
}

static gboolean
holds_ms (const Term *term, const Look *l)
{
  guint64 ns = td_devices_cost (l->iteration, l->event);

  if (!l->t->event_duration_ns || (ns == 0 && td_devices_is_work (l->iteration, l->event)))
    return FALSE; /* not timed where it ran */
  return compare_number (term, (double)ns / 1e6);
}

static gboolean
holds_op (const Term *term, const Look *l)
{
  return is_not (term,
                 strcmp (td_iteration_get_op_name (l->iteration, l->event), term->word) == 0);
}

static gboolean
holds_link (const Term *term, const Look *l)
{
  const char *path = td_iteration_get_link_path (l->iteration, l->event);
  gsize n = strlen (term->word);

  return is_not (term, strncmp (path, term->word, n) == 0 && (!path[n] || path[n] == '/'));
}

static gboolean
holds_line (const Term *term, const Look *l)
{
  g_autofree char *site = td_iteration_dup_site (l->iteration, l->event);
  gboolean equal = g_str_has_suffix (site, term->word);
  gsize before = strlen (site) - (equal ? strlen (term->word) : 0);

  return is_not (term, equal && (before == 0 || site[before - 1] == '/'));
}

static gboolean
holds_phase (const Term *term, const Look *l)
{
  return is_not (term, strcmp (td_tape_phase_name (event_of (l)->phase), term->word) == 0);
}

/* Without regard to case, as in a search. */
static gboolean
contains (const char *text, const char *word)
{
  g_autofree char *folded = g_utf8_make_valid (text, -1), *a = NULL, *b = NULL;

  a = g_utf8_casefold (folded, -1);
  b = g_utf8_casefold (word, -1);
  return strstr (a, b) != NULL;
}

static gboolean
holds_text (const Term *term, const Look *l)
{
  g_autofree char *site = td_iteration_dup_site (l->iteration, l->event);

  return contains (td_iteration_get_op_name (l->iteration, l->event), term->word)
         || contains (td_iteration_get_link_path (l->iteration, l->event), term->word)
         || contains (site, term->word);
}

// clang-format off
static const Subject subjects[] = {
  { "error", BARE, holds_error, NULL, FALSE },
  { "nan", BARE, holds_of_output, test_nan, FALSE },
  { "inf", BARE, holds_of_output, test_inf, FALSE },
  { "op", NAME, holds_op, NULL, FALSE },
  { "link", NAME, holds_link, NULL, FALSE },
  { "line", NAME, holds_line, NULL, FALSE },
  { "phase", NAME, holds_phase, NULL, FALSE },
  { "bytes", NUMBER, holds_bytes, NULL, FALSE },
  { "ms", NUMBER, holds_ms, NULL, FALSE },
  { "norm(grad)", NUMBER, holds_of_output, test_norm, TRUE },
  { "norm", NUMBER, holds_of_output, test_norm, FALSE },
  { "mean", NUMBER, holds_of_output, test_mean, FALSE },
  { "min", NUMBER, holds_of_output, test_min, FALSE },
  { "max", NUMBER, holds_of_output, test_max, FALSE },
};
// clang-format on
static const Subject text_subject = { "text", BARE, holds_text, NULL, FALSE };

/* ---- reading ---- */

static void
skip_space (const char **at)
{
  while (g_ascii_isspace (**at))
    (*at)++;
}

/* A word ends at a space or an operator; quotes hold anything. */
static char *
read_word (const char **at)
{
  const char *from = *at;

  if (*from == '"')
    {
      const char *end = strchr (from + 1, '"');
      char *word = end ? g_strndup (from + 1, (gsize)(end - from - 1)) : g_strdup (from + 1);

      *at = end ? end + 1 : from + strlen (from);
      return word;
    }
  while (**at && !g_ascii_isspace (**at) && !strchr ("<>=!&|", **at))
    (*at)++;
  return g_strndup (from, (gsize)(*at - from));
}

static gboolean
read_compare (const char **at, Compare *compare)
{
  static const struct
  {
    const char *text;
    Compare compare;
  } signs[] = { { "==", CMP_EQ }, { "!=", CMP_NE }, { ">=", CMP_GE }, { "<=", CMP_LE },
                { "=", CMP_EQ },  { ">", CMP_GT },  { "<", CMP_LT } };

  skip_space (at);
  for (guint i = 0; i < G_N_ELEMENTS (signs); i++)
    if (g_str_has_prefix (*at, signs[i].text))
      {
        *at += strlen (signs[i].text);
        *compare = signs[i].compare;
        skip_space (at);
        return TRUE;
      }
  return FALSE;
}

static gboolean
read_number (const char **at, double *number)
{
  static const struct
  {
    char letter;
    double factor;
  } units[] = { { 'K', 1e3 }, { 'k', 1e3 }, { 'M', 1e6 }, { 'G', 1e9 }, { 'T', 1e12 } };
  char *end;

  *number = g_ascii_strtod (*at, &end);
  if (end == *at)
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (units); i++)
    if (*end == units[i].letter)
      {
        *number *= units[i].factor;
        end++;
        break;
      }
  *at = end;
  return TRUE;
}

static const Subject *
find_subject (const char *word)
{
  for (guint i = 0; i < G_N_ELEMENTS (subjects); i++)
    if (strcmp (subjects[i].name, word) == 0)
      return &subjects[i];
  return NULL;
}

static gboolean
fail (GError **error, const char *what, const char *word)
{
  g_autofree char *valid = g_utf8_make_valid (word, -1);

  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "%s %s", what, valid);
  return FALSE;
}

static gboolean
read_term (const char **at, Term *term, GError **error)
{
  gboolean quoted = **at == '"';
  g_autofree char *word = read_word (at);

  if (!*word)
    return fail (error, "Something is missing before", **at ? *at : "the end");
  term->subject = quoted ? NULL : find_subject (word);
  term->compare = CMP_EQ;
  if (!term->subject)
    {
      Compare compare;
      const char *after = *at;

      if (read_compare (&after, &compare))
        return fail (error, "There is nothing to compare called", word);
      term->subject = &text_subject;
      term->word = g_steal_pointer (&word);
      return TRUE;
    }
  if (term->subject->kind == BARE)
    return TRUE;
  gboolean compared = read_compare (at, &term->compare);
  if (term->subject->kind == NUMBER)
    return (compared && read_number (at, &term->number))
           || fail (error, "A comparison with a number is missing after", word);
  if (compared && term->compare != CMP_EQ && term->compare != CMP_NE)
    return fail (error, "Only == and != go with", word);
  skip_space (at);
  term->word = read_word (at);
  return *term->word || fail (error, "A name is missing after", word);
}

static void
term_clear (gpointer term)
{
  g_free (((Term *)term)->word);
}

TdFilter *
td_filter_new (const char *text, GError **error)
{
  g_autoptr (TdFilter) self = g_new0 (TdFilter, 1);
  const char *at = text;
  gboolean alternative = FALSE;

  self->terms = g_array_new (FALSE, TRUE, sizeof (Term));
  g_array_set_clear_func (self->terms, term_clear);
  skip_space (&at);
  while (*at)
    {
      Term term = { .starts_alternative = alternative };
      gboolean good = read_term (&at, &term, error);

      g_array_append_val (self->terms, term);
      if (!good)
        return NULL;
      skip_space (&at);
      alternative = g_str_has_prefix (at, "||");
      if (alternative || g_str_has_prefix (at, "&&"))
        {
          at += 2;
          skip_space (&at);
          if (!*at)
            {
              fail (error, "Something is missing after", alternative ? "||" : "&&");
              return NULL;
            }
        }
      else if (*at && strchr ("<>=!&|", *at)) /* two words without a sign are both asked for */
        {
          fail (error, "What is meant by", at);
          return NULL;
        }
    }
  return g_steal_pointer (&self);
}

void
td_filter_free (TdFilter *self)
{
  if (!self)
    return;
  g_array_unref (self->terms);
  g_free (self);
}

/* ---- applying ---- */

static gboolean
holds (const TdFilter *self, const Look *look)
{
  gboolean all = TRUE; /* of the alternative so far */

  for (guint i = 0; i < self->terms->len; i++)
    {
      const Term *term = &g_array_index (self->terms, Term, i);

      if (term->starts_alternative)
        {
          if (all)
            return TRUE;
          all = TRUE;
        }
      all = all && term->subject->holds (term, look);
    }
  return all;
}

GArray *
td_filter_apply (const TdFilter *self, TdIteration *iteration)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  GArray *found = g_array_new (FALSE, FALSE, sizeof (gint32));
  g_autofree const TdTapeStats **stats = g_new0 (const TdTapeStats *, MAX (t->n_vars, 1));
  Look look = { .iteration = iteration, .t = t, .stats = stats };

  for (guint i = 0; i < t->n_stats; i++)
    if (t->stats[i].var < t->n_vars)
      stats[t->stats[i].var] = &t->stats[i];
  for (look.event = 0; look.event < t->n_events; look.event++)
    if (holds (self, &look))
      {
        gint32 event = (gint32)look.event;

        g_array_append_val (found, event);
      }
  return found;
}
