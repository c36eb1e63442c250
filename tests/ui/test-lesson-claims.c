/* What the words of the lessons claim is true of the recordings that they are about: every
 * number, file, function and key that is named there has a claim, and every claim says which
 * fact of the recording it is. data/README.md lists the facts.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <math.h>
#include <string.h>

#include <gtk/gtk.h>

#include "pages/td-lesson-picture.h"
#include "pages/td-lesson.h"
#include "schedule/td-curve.h"
#include "settings/td-keys.h"
#include "td-session.h"

typedef struct
{
  const TdLessonStep *step;
  char *path;
  TdSession *session;
  char **words; /* of the fact, its name first */
} Claim;

static gint64
number (const Claim *claim, guint word)
{
  assert_in_range (word, 1, g_strv_length (claim->words) - 1);
  return g_ascii_strtoll (claim->words[word], NULL, 10);
}

static TdIteration *
load (const Claim *claim)
{
  TdIteration *it = td_session_load_iteration (claim->session, number (claim, 1), NULL);
  assert_non_null (it);
  return it;
}

/* ---- facts: each is the text that the phrase has to hold ---- */

static char *
tell_file (const Claim *claim)
{
  return g_strconcat (td_session_get_name (claim->session), ".c", NULL);
}

static char *
tell_operation (const Claim *claim)
{
  g_autoptr (TdIteration) it = load (claim);
  guint event = (guint)number (claim, 2);
  assert_in_range (event, 0, td_iteration_get_n_events (it) - 1);
  return g_strdup (td_iteration_get_op_name (it, event));
}

static char *
tell_site (const Claim *claim)
{
  g_autoptr (TdIteration) it = load (claim);
  g_autofree char *site = td_iteration_dup_site (it, (guint)number (claim, 2));
  return g_path_get_basename (site);
}

static char *
tell_layer (const Claim *claim)
{
  g_autoptr (TdIteration) it = load (claim);
  g_autofree char *path = g_strdup (td_iteration_get_link_path (it, (guint)number (claim, 2)));
  return g_path_get_basename (path);
}

static char *
tell_twin (const Claim *claim)
{
  g_autoptr (TdIteration) it = load (claim);
  gint forward = td_iteration_get_forward (it, (guint)number (claim, 2));
  assert_true (forward >= 0);
  return g_strdup (td_iteration_get_op_name (it, (guint)forward));
}

/* Operations of a name among those of forward; without a name all of them. */
static guint
count_forward (TdIteration *it, const char *op)
{
  guint n = 0;
  const TdTapeIteration *tape = td_iteration_get_tape (it);
  for (guint e = 0; e < td_iteration_get_n_events (it); e++)
    n += tape->events[e].phase == TD_TAPE_PHASE_FORWARD
         && (!op || strcmp (td_iteration_get_op_name (it, e), op) == 0);
  return n;
}

static char *
tell_count (const Claim *claim)
{
  g_autoptr (TdIteration) it = load (claim);
  return g_strdup_printf ("%u", count_forward (it, claim->words[2]));
}

/* How many operations of forward this recording has beyond another: more TAPE ITERATION */
static char *
tell_more (const Claim *claim)
{
  g_autofree char *path = td_lesson_find_recording (claim->words[1]);
  g_autoptr (TdSession) other = td_session_open_bounded (path, NULL);
  assert_non_null (other);
  g_autoptr (TdIteration) there = td_session_load_iteration (other, number (claim, 2), NULL);
  g_autoptr (TdIteration) here
      = td_session_load_iteration (claim->session, number (claim, 2), NULL);
  return g_strdup_printf ("%u", count_forward (here, NULL) - count_forward (there, NULL));
}

static char *
tell_iterations (const Claim *claim)
{
  return g_strdup_printf ("%u", td_session_get_n_iterations (claim->session));
}

/* Rows of what the first operation was given, which is the first variable. */
static char *
tell_rows (const Claim *claim)
{
  g_autoptr (TdIteration) it = td_session_load_iteration (claim->session, 0, NULL);
  g_autofree char *shape = td_iteration_dup_shape (it, 0, FALSE);
  return g_strndup (shape + 1, strspn (shape + 1, "0123456789"));
}

/* The iteration that the step goes to. */
static char *
tell_here (const Claim *claim)
{
  for (guint a = 0; claim->step->actions[a]; a++)
    {
      const char *at = strstr (claim->step->actions[a], "go-to::i=");
      if (at)
        return g_strndup (at + 9, strspn (at + 9, "0123456789"));
    }
  return g_strdup ("nowhere");
}

static char *
tell_next (const Claim *claim)
{
  g_autofree char *here = tell_here (claim);
  return g_strdup_printf ("%" G_GINT64_FORMAT, g_ascii_strtoll (here, NULL, 10) + 1);
}

static double
find_loss (const Claim *claim, gint64 iteration)
{
  TdCurves *curves = td_session_get_curves (claim->session);
  int curve = td_curves_find (curves, "loss");
  assert_true (curve >= 0);
  double value = 0;
  gint64 at = -1;
  for (guint i = 0; i < td_curves_length (curves, (guint)curve) && at != iteration; i++)
    td_curves_get (curves, (guint)curve, i, &at, &value);
  assert_int_equal (at, iteration);
  return value;
}

static char *
tell_loss (const Claim *claim)
{
  return g_strdup_printf ("%.2f", find_loss (claim, number (claim, 1)));
}

static gint64
last_iteration (const Claim *claim)
{
  return td_session_get_n_iterations (claim->session) - 1;
}

static char *
tell_loss_below (const Claim *claim)
{
  double bound = g_ascii_strtod (claim->words[1], NULL);
  double loss = find_loss (claim, last_iteration (claim));
  return loss < bound ? g_strdup (claim->words[1]) : g_strdup_printf ("not: %g", loss);
}

/* loss-rises FROM: it is more at the end than there. */
static char *
tell_loss_rises (const Claim *claim)
{
  gboolean rises
      = find_loss (claim, last_iteration (claim)) > 2 * find_loss (claim, number (claim, 1));
  return g_strdup (rises ? "rises" : "not: it does not rise");
}

/* loss-falls FROM: at the end it is less than half of that. */
static char *
tell_loss_falls (const Claim *claim)
{
  gboolean falls
      = find_loss (claim, last_iteration (claim)) < find_loss (claim, number (claim, 1)) / 2;
  return g_strdup (falls ? "falls" : "not: it does not fall");
}

/* The last iteration before the first whose loss is NaN. */
static char *
tell_last_number (const Claim *claim)
{
  gint64 i = 0;
  while (i <= last_iteration (claim) && !isnan (find_loss (claim, i)))
    i++;
  return g_strdup_printf ("%" G_GINT64_FORMAT, i - 1);
}

/* source WORD, in the program of the recording; source WORD PROGRAM */
static char *
tell_source (const Claim *claim)
{
  g_autofree char *base
      = claim->words[2] ? g_strconcat (claim->words[2], ".c", NULL) : tell_file (claim);
  g_autofree char *inside = g_strconcat ("data/examples/clinic/", base, NULL),
                  *of_ranks = g_strconcat ("data/examples/clinic/ranks/", base, NULL),
                  *text = NULL;
  assert_true (g_file_get_contents (td_test_source (inside), &text, NULL, NULL)
               || g_file_get_contents (td_test_source (of_ranks), &text, NULL, NULL));
  return g_strdup (strstr (text, claim->words[1]) ? claim->words[1] : "not: not in the source");
}

/* The first key of an action, as the shortcuts are shown. */
static char *
tell_key (const Claim *claim)
{
  guint n, key;
  GdkModifierType modifiers;
  const TdKey *keys = td_keys_table (&n);
  for (guint i = 0; i < n; i++)
    if (strcmp (keys[i].action, claim->words[1]) == 0)
      {
        g_auto (GStrv) accels = g_strsplit (keys[i].accels, " ", -1);
        gtk_accelerator_parse (accels[0], &key, &modifiers);
        return gtk_accelerator_get_label (key, modifiers);
      }
  return g_strdup ("not: no such action");
}

/* ---- phrases ---- */

static const char *const words_of[]
    = { "no",    "one",   "two",  "three", "four",   "five",  "six",
        "seven", "eight", "nine", "ten",   "eleven", "twelve" };

/* Whether the text is a word of the phrase; small numbers may be spelled out. */
static gboolean
holds (const char *phrase, const char *text)
{
  char *end;
  guint64 n = g_ascii_strtoull (text, &end, 10);
  g_autofree char *lower = g_ascii_strdown (phrase, -1);
  const char *const wanted[]
      = { text, *text && !*end && n < G_N_ELEMENTS (words_of) ? words_of[n] : text };
  for (guint i = 0; i < G_N_ELEMENTS (wanted); i++)
    {
      g_autofree char *escaped = g_regex_escape_string (wanted[i], -1);
      g_autofree char *pattern = g_strdup_printf ("(?<![\\w.])%s(?![\\w]|\\.\\d)", escaped);
      if (g_regex_match_simple (pattern, phrase, 0, 0)
          || g_regex_match_simple (pattern, lower, 0, 0))
        return TRUE;
    }
  return FALSE;
}

/* What tapedeck prints. says COMMAND ...: the phrase, where @ is the tape and @NAME that of
 * another; prints TEXT COMMAND ...: a text with _ for its spaces, whatever the phrase is. */
static char *
tell_output (const Claim *claim, const char *phrase)
{
  g_autoptr (GPtrArray) argv = g_ptr_array_new_with_free_func (g_free);
  guint first = strcmp (claim->words[0], "prints") == 0 ? 2 : 1;
  g_autofree char *wanted = g_strdup (first == 2 ? claim->words[1] : phrase);
  if (first == 2)
    g_strdelimit (wanted, "_", ' ');
  g_ptr_array_add (argv, g_strdup (td_test_program ("app/tapedeck")));
  for (guint i = first; claim->words[i]; i++)
    {
      const char *word = claim->words[i];
      g_auto (GStrv) parts = g_strsplit (word, ":", 2); /* @NAME:ITERATION */
      g_autofree char *path = NULL;
      if (*word == '@')
        path = parts[0][1] ? td_lesson_find_recording (parts[0] + 1) : g_strdup (claim->path);
      g_ptr_array_add (argv, !path      ? g_strdup (word)
                             : parts[1] ? g_strconcat (path, ":", parts[1], NULL)
                                        : g_strdup (path));
    }
  g_ptr_array_add (argv, NULL);
  TdTestChild child = td_test_run ((const char *const *)argv->pdata, NULL, NULL);
  g_autofree char *printed = g_strdelimit (g_strdup (child.out), "_", ' ');
  gboolean said = strstr (first == 2 ? printed : child.out, wanted) != NULL;
  char *text = said ? g_strdup (phrase) : g_strdup_printf ("not: %.300s", child.out);
  td_test_child_clear (&child);
  return text;
}

static const struct
{
  const char *name;
  char *(*tell) (const Claim *claim);
} facts[] = {
  { "file", tell_file },
  { "operation", tell_operation },
  { "site", tell_site },
  { "layer", tell_layer },
  { "twin", tell_twin },
  { "count", tell_count },
  { "more", tell_more },
  { "iterations", tell_iterations },
  { "rows", tell_rows },
  { "here", tell_here },
  { "next", tell_next },
  { "loss", tell_loss },
  { "loss-below", tell_loss_below },
  { "loss-rises", tell_loss_rises },
  { "loss-falls", tell_loss_falls },
  { "last-number", tell_last_number },
  { "source", tell_source },
  { "key", tell_key },
};

static void
judge_claim (const TdLesson *lesson, Claim *claim, const char *text, GString *faults)
{
  g_auto (GStrv) parts = g_strsplit (text, " = ", 2);
  g_autofree char *fact = NULL;
  if (!parts[0] || !parts[1])
    {
      g_string_append_printf (faults, "\n%s: not PHRASE = FACT: %s", lesson->name, text);
      return;
    }
  const char *phrase = g_strstrip (parts[0]);
  claim->words = g_strsplit (g_strstrip (parts[1]), " ", -1);
  for (guint i = 0; i < G_N_ELEMENTS (facts); i++)
    if (strcmp (facts[i].name, claim->words[0]) == 0)
      fact = facts[i].tell (claim);
  if (strcmp (claim->words[0], "says") == 0 || strcmp (claim->words[0], "prints") == 0)
    fact = tell_output (claim, phrase);
  if (!strstr (claim->step->text, phrase)
      && !(claim->step->done && strstr (claim->step->done, phrase)))
    g_string_append_printf (faults, "\n%s, %s: does not say “%s”", lesson->name,
                            claim->step->title, phrase);
  if (!fact || !holds (phrase, fact))
    g_string_append_printf (faults, "\n%s, %s: says “%s”, but %s", lesson->name,
                            claim->step->title, phrase, fact ? fact : "there is no such fact");
  g_strfreev (claim->words);
}

/* ---- what needs a claim ---- */

/* Numbers, and whatever is spelled as only code and keys are. */
#define NAMES                                                                                  \
  "\\b[A-Z][a-z]+\\+[\\w+]+|\\bF\\d+\\b|\\b\\w+\\.c(:\\d+)?\\b|\\b[a-z]\\w*_\\w+\\b|\\d[\\d.]" \
  "*(?<!\\.)"

static void
judge_words (const TdLesson *lesson, const TdLessonStep *step, const char *text,
             GString *faults)
{
  g_autoptr (GRegex) regex = g_regex_new (NAMES, 0, 0, NULL);
  g_autoptr (GMatchInfo) match = NULL;
  g_regex_match (regex, text, 0, &match);
  for (; g_match_info_matches (match); g_match_info_next (match, NULL))
    {
      g_autofree char *name = g_match_info_fetch (match, 0);
      gboolean claimed = FALSE;
      for (guint i = 0; step->claims[i]; i++)
        {
          g_auto (GStrv) parts = g_strsplit (step->claims[i], " = ", 2);
          claimed = claimed || holds (parts[0], name);
        }
      if (!claimed)
        g_string_append_printf (faults, "\n%s, %s: nothing says why it is “%s”", lesson->name,
                                step->title, name);
    }
}

static void
judge_step (const TdLesson *lesson, const TdLessonStep *step, GString *faults)
{
  Claim claim = { .step = step, .path = td_lesson_find_recording (step->recording) };
  if (!claim.path)
    {
      g_string_append_printf (faults, "\n%s: no recording %s", lesson->name, step->recording);
      return;
    }
  claim.session = td_session_open_bounded (claim.path, NULL);
  assert_non_null (claim.session);
  for (guint i = 0; step->claims[i]; i++)
    if (*step->claims[i])
      judge_claim (lesson, &claim, step->claims[i], faults);
  judge_words (lesson, step, step->text, faults);
  if (step->done)
    judge_words (lesson, step, step->done, faults);
  g_object_unref (claim.session);
  g_free (claim.path);
}

static void
claims__of_every_lesson_are_true_of_its_recordings (void **state)
{
  g_auto (GStrv) files = td_lesson_list_files ();
  g_autoptr (GString) faults = g_string_new (NULL);
  guint n = 0;
  for (guint i = 0; files[i]; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (TdLesson) lesson = td_lesson_load (files[i], &error);
      if (!lesson)
        fail_msg ("%s", error->message);
      if (!td_lesson_picture_exists (lesson->picture))
        g_string_append_printf (faults, "\n%s: no picture %s", lesson->name, lesson->picture);
      for (guint s = 0; s < lesson->n_steps; s++)
        {
          judge_step (lesson, &lesson->steps[s], faults);
          n += g_strv_length (lesson->steps[s].claims);
        }
    }
  print_message ("%u lessons, %u claims\n", g_strv_length (files), n);
  if (faults->len)
    fail_msg ("%s", faults->str);
}

/* A test of the test: what is false is found. */
static void
claims__that_are_false_are_found (void **state)
{
  static const struct
  {
    const char *text, *claims, *said;
  } cases[] = {
    { "The loss is 0.25.", "0.25 = loss 0", "but 0.67" },
    { "The loss is 0.25.", NULL, "nothing says why it is “0.25”" },
    { "Press F11.", "F11 = key win.step-op", "but F12" },
    { "This is nan.c.", "nan.c = file", "but xor.c" },
    { "It is tanh.", "tanh = operation 59 0", "but linear" },
    { "Five layers.", "Five layers = count 59 linear", "but 2" },
    { "It grows.", "It grows = says leaks @", "but not: nothing grows" },
    { "It grows.", "It shrinks = says leaks @", "does not say “It shrinks”" },
    { "It is so.", "so = because", "there is no such fact" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GString) faults = g_string_new (NULL);
      TdLesson lesson = { .name = (char *)"lesson" };
      char *claims[] = { (char *)cases[i].claims, NULL };
      TdLessonStep step = { .title = (char *)"step",
                            .text = (char *)cases[i].text,
                            .recording = (char *)"xor",
                            .actions = (char *[]){ NULL },
                            .claims = claims };
      judge_step (&lesson, &step, faults);
      if (!strstr (faults->str, cases[i].said))
        fail_msg ("%s: %s", cases[i].text, faults->str);
    }
}

/* ---- files ---- */

#define HEAD "[Lesson]\nTitle=T\nSummary=S\nPicture=chain\n"
#define STEP "[Step 1]\nTitle=T\nText=X\nRecording=xor\nTarget=playhead\n"

static void
file__with_a_mistake_is_one_line_that_says_where (void **state)
{
  static const struct
  {
    const char *text, *said;
  } cases[] = {
    { "", "x.lesson: [Lesson] is not what the file begins with" },
    { "words\n", "x.lesson: " },
    { HEAD, "x.lesson: [Lesson] has no steps" },
    { "[Lesson]\nTitle=T\nPicture=chain\n" STEP, "x.lesson: [Lesson] has no Summary" },
    { "[Lesson]\nTitle=T\nSummary=S\nPicture=elephant\n" STEP,
      "x.lesson: [Lesson] has a Picture elephant, which nobody can draw" },
    { HEAD "[Step 2]\nTitle=T\n", "x.lesson: [Step 2] stands where [Step 1] belongs" },
    { HEAD "[Step 1]\nTitle=T\nText=X\nTarget=playhead\n", "[Step 1] has no Recording" },
    { HEAD STEP "Txet=X\n", "x.lesson: [Step 1] has a key Txet, which no lesson has" },
    { HEAD STEP "Until=dance now\nDone=D\n", "waits until dance, which nobody can do" },
    { HEAD STEP "Until=iteration\nDone=D\n", "waits until iteration, without saying which" },
    { HEAD STEP "Until=iteration 3\n", "has something to do, and no Done after it" },
    { HEAD STEP "Done=D\n", "has Done, but nothing to do before it" },
    { HEAD "[Step 1]\nText=\xff\xfe\n", "x.lesson: " },
  };
  const char *path = td_test_tmp ("x.lesson");
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      assert_true (g_file_set_contents (path, cases[i].text, -1, NULL));
      g_autoptr (TdLesson) lesson = td_lesson_load (path, &error);
      assert_null (lesson);
      if (!strstr (error->message, cases[i].said) || strchr (error->message, '\n'))
        fail_msg ("%u: %s", i, error->message);
    }
  g_autoptr (GError) error = NULL;
  assert_true (g_file_set_contents (path, HEAD STEP, -1, NULL));
  g_autoptr (TdLesson) lesson = td_lesson_load (path, &error);
  assert_non_null (lesson);
  assert_string_equal (lesson->name, "x");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (claims__of_every_lesson_are_true_of_its_recordings),
    td_test (claims__that_are_false_are_found),
    td_test (file__with_a_mistake_is_one_line_that_says_where),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
