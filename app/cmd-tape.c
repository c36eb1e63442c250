/* `tapedeck info`, `cat` and `check`: what a tape says about itself.
 *
 * SPDX-License-Identifier: MIT */
#include "command.h"
#include "number.h"

#include "record/assembler.h"
#include "record/ring.h"
#include "plural.h"
#include "td-tape-notices.h"
#include "td-tape-reader.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The arguments of these commands. */
typedef struct
{
  const char *tape, *out;
  bool json, oom, help;
  uint64_t first, last;
} Arguments;

/* A:B, A:, :B, or one number. */
static bool
parse_range (const char *text, uint64_t *first, uint64_t *last)
{
  const size_t n = strcspn (text, ":");

  *first = 0;
  *last = UINT64_MAX;
  if (*text == '\0' || (n > 0 && !td_parse_number (text, n, first)))
    return false;
  if (text[n] == '\0')
    *last = *first;
  else if (text[n + 1] != '\0' && !td_parse_number (text + n + 1, strlen (text + n + 1), last))
    return false;
  return *first <= *last;
}

static int
parse (int argc, char **argv, const char *options, Arguments *a)
{
  *a = (Arguments){ .last = UINT64_MAX };
  for (int i = 1; i < argc; i++)
    {
      const char *arg = argv[i];

      if (strcmp (arg, "--help") == 0)
        a->help = true;
      else if (strcmp (arg, "--json") == 0 && strchr (options, 'j') != NULL)
        a->json = true;
      else if (strcmp (arg, "--oom") == 0 && strchr (options, 'o') != NULL)
        a->oom = true;
      else if (strcmp (arg, "--repair") == 0 && strchr (options, 'r') != NULL && i + 1 < argc)
        a->out = argv[++i];
      else if (strcmp (arg, "--iterations") == 0 && strchr (options, 'i') != NULL
               && i + 1 < argc)
        {
          if (!parse_range (argv[++i], &a->first, &a->last))
            return td_usage_error (argv[0], "--iterations %s: A:B expected", argv[i]);
        }
      else if (arg[0] == '-' && arg[1] != '\0')
        return td_usage_error (argv[0], "%s: no such option, or its value is missing", arg);
      else if (a->tape != NULL)
        return td_usage_error (argv[0], "%s: one tape expected", arg);
      else
        a->tape = arg;
    }
  if (a->tape == NULL && !a->help)
    return td_usage_error (argv[0], "a tape expected");
  return a->out == NULL ? TD_EXIT_OK : td_refuse_standard_output (argv[0], "--repair", a->out);
}

static TdTapeReader *
open_tape (const char *path)
{
  char error[256];
  TdTapeReader *r = td_tape_reader_open (path, error, sizeof error);

  if (r == NULL)
    fprintf (stderr, "tapedeck: %s: %s\n", path, error);
  return r;
}

/* Names on a tape are another's words: as text they are shown, and command no terminal.  JSON
 * escapes them. */
static int
print_plainly (TdTapeReader *r, const Arguments *a,
               void (*print) (TdTapeReader *r, FILE *out, const Arguments *a))
{
  FILE *out = a->json ? stdout : td__plain_stream (stdout);

  if (out == NULL)
    {
      fprintf (stderr, "tapedeck: %s: no memory\n", a->tape);
      return TD_EXIT_USAGE;
    }
  print (r, out, a);
  if (out != stdout)
    fclose (out); /* what stdout does not take is said at the end */
  return TD_EXIT_OK;
}

static void
print_info (TdTapeReader *r, FILE *out, const Arguments *a)
{
  (a->oom ? td_tape_oom_print : td_tape_info) (r, out, a->json);
}

static void
print_records (TdTapeReader *r, FILE *out, const Arguments *a)
{
  td_tape_dump (r, out, a->json, a->first, a->last);
}

/* Of a model the engine knows more. */
static int
info_of_model (const Arguments *a)
{
  static char program[] = "tapedeck-eval", info[] = "info", json[] = "--json";
  char *argv[5] = { program, info };
  int n = 2;

  if (a->oom)
    return td_usage_error ("info", "--oom does not go with a model");
  if (a->json)
    argv[n++] = json;
  argv[n++] = (char *)(uintptr_t)a->tape;
  argv[n] = NULL;
  return td_exec_helper (program, argv);
}

int
td_command_info (int argc, char **argv)
{
  Arguments a;
  TdTapeReader *r;
  int status = parse (argc, argv, "jo", &a);

  if (status != TD_EXIT_OK)
    return status;
  if (a.help)
    return puts (
               "Usage: tapedeck info TAPE [--oom] [--json]\n"
               "       tapedeck info MODEL.onnx [--json]\n\nIterations, distinct graphs, "
               "operations, parameters, reports, exit, versions.\n--oom says where memory ran "
               "out, what was tried, who held it, and what would help.\nOf an ONNX model: "
               "producer, opset, inputs, outputs, parameters, operators by number,\nand what "
               "of "
               "it is not there."),
           TD_EXIT_OK;
  if (td_is_onnx (a.tape))
    return info_of_model (&a);
  r = open_tape (a.tape);
  if (r == NULL)
    return TD_EXIT_USAGE;
  status = print_plainly (r, &a, print_info);
  td_tape_reader_free (r);
  return status;
}

int
td_command_cat (int argc, char **argv)
{
  Arguments a;
  TdTapeReader *r;
  int status = parse (argc, argv, "ji", &a);

  if (status != TD_EXIT_OK)
    return status;
  if (a.help)
    return puts (
               "Usage: tapedeck cat TAPE [--iterations A:B] [--json]\n\nThe tape's records as "
               "text, or as one JSON object a line."),
           TD_EXIT_OK;
  r = open_tape (a.tape);
  if (r == NULL)
    return TD_EXIT_USAGE;
  status = print_plainly (r, &a, print_records);
  td_tape_reader_free (r);
  return status;
}

/* A tape can be whole and still hold less than the program did: it says so. */
static void
print_recording (const char *tape)
{
  TdTapeReader *r = open_tape (tape);
  TdTapeNoticeSort sorts[TD_TAPE_MOST_NOTICE_SORTS];
  const uint32_t n = r != NULL ? td_tape_notice_sorts (r, sorts) : 0;

  for (uint32_t k = 0; k < n; k++)
    {
      char *text = td__plain_text (td_tape_reader_string (r, sorts[k].first->text)),
           *others = td_tape_notice_others (r, &sorts[k]),
           *plain = others != NULL ? td__plain_text (others) : NULL;

      if (text != NULL)
        printf ("%s: iteration %" PRIu64 ": %s%s\n", tape, sorts[k].first->iteration, text,
                plain != NULL ? plain : "");
      free (text);
      free (others);
      free (plain);
    }
  td_tape_reader_free (r);
}

int
td_command_check (int argc, char **argv)
{
  Arguments a;
  TdTapeCheck check;
  char error[256], ring[4200];
  bool recorded;
  int status = parse (argc, argv, "r", &a);

  if (status != TD_EXIT_OK)
    return status;
  if (a.help)
    return puts (
               "Usage: tapedeck check TAPE [--repair OUT]\n\nIs it whole; what is the first "
               "bad "
               "offset.  --repair copies what is good to OUT,\nwith what a ring that was left "
               "behind still holds.\nExit status: 0 whole, 1 damaged, 2 unreadable."),
           TD_EXIT_OK;
  if (!td_tape_check (a.tape, &check))
    {
      fprintf (stderr, "tapedeck: %s: %s\n", a.tape, check.what);
      return TD_EXIT_USAGE;
    }
  snprintf (ring, sizeof ring, "%s.ring", a.tape);
  recorded = td_ring_is_locked (ring);
  if (check.whole)
    printf ("%s: whole, %" PRIu64 " %s, %" PRIu64 " bytes%s%s%s%s\n", a.tape, check.n_frames,
            td_plural (check.n_frames, "record", "records"), check.n_bytes,
            check.thinned[0] != '\0' ? "; of its iterations " : "", check.thinned,
            check.ended ? ""
            : recorded  ? "; it is being recorded"
                        : "; the recording was cut: nobody wrote how the program ended",
            !recorded && access (ring, F_OK) == 0 ? "; a ring beside it holds more (--repair)"
                                                  : "");
  else
    printf ("%s: damaged at offset %" PRIu64 ": %s; %" PRIu64 " of its %" PRIu64
            " iterations can be loaded\n",
            a.tape, check.first_bad, check.what, check.n_loadable, check.n_iterations);
  print_recording (a.tape);
  if (a.out == NULL)
    return check.whole ? TD_EXIT_OK : TD_EXIT_FINDING;
  if (!td_assembler_recover (a.tape, NULL, a.out, error, sizeof error))
    {
      fprintf (stderr, "tapedeck: %s: %s\n", a.out, error);
      return TD_EXIT_USAGE;
    }
  printf ("%s: written\n", a.out);
  return check.whole ? TD_EXIT_OK : TD_EXIT_FINDING;
}
