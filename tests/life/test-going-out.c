/* What a program of real size calls through static functions is written as ONNX and as C, as it
 * is trained and as it is used: either the file gives the same numbers elsewhere, or the format
 * is refused with the list of what stands in the way.
 *
 *     test-going-out PROGRAM NAME=VALUE...
 *
 * ONNX runs in onnxruntime and in onnx's reference where a Python has them; C is compiled with
 * warnings as errors.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum
{
  MOST_WORDS = 16,
  MOST_ARRAYS = 8,
  MOST_PATH = 600
};

static const char *program;
static const char *const *sizes; /* to NULL */
static char *printed;            /* "function PATH", then a line for each format */
static char *of_graphs;          /* the same, for the graphs that ran */

/* Nothing of these goes out, and why. */
static const char *const nothing_static[][2] = {
  { "l05-seq2seq", "sentences of other lengths in each iteration" },
};

/* Each run of these draws other numbers. */
static const char *const drawing[] = { "l15-vae-trainer" };

static bool
draws (void)
{
  for (size_t k = 0; k < sizeof drawing / sizeof *drawing; k++)
    if (strstr (program, drawing[k]) != NULL)
      return true;
  return false;
}

static const char *
why_nothing (void)
{
  for (size_t k = 0; k < sizeof nothing_static / sizeof *nothing_static; k++)
    if (strstr (program, nothing_static[k][0]) != NULL)
      return nothing_static[k][1];
  return NULL;
}

/* What the program prints that writes what it calls, or its graph.  *Owner*: free. */
static char *
run_program (const char *how)
{
  const char *folder = td_test_tmp (".");
  const char *argv[MOST_WORDS + 5] = { program };
  char export[MOST_PATH],
      out_folder[MOST_PATH]; /* of a trainer, which is one of the programs */
  int n = 1;
  TdTestChild child;
  char *said;

  snprintf (export, sizeof export, "export=%s", folder);
  /* each run's own: a trainer goes on where it finds one */
  snprintf (out_folder, sizeof out_folder, "out=%s/%s", folder, how);
  assert_int_equal (mkdir (out_folder + strlen ("out="), 0777), 0);
  for (int i = 0; sizes[i] != NULL; i++)
    argv[n++] = sizes[i];
  argv[n++] = how;
  argv[n++] = export;
  argv[n++] = out_folder;
  child = td_test_run (argv, NULL, NULL);
  assert_child_status (child, 0);
  said = strdup (child.out);
  td_test_child_clear (&child);
  return said;
}

/* It runs once through static functions, and writes in every format; and once as it is. */
static int
export_all (void **state)
{
  if (td_test_setup (state) != 0)
    return -1;
  printed = run_program ("static=1");
  of_graphs = run_program ("static=0");
  return printed != NULL && of_graphs != NULL ? 0 : -1;
}

static int
forget (void **state)
{
  free (printed);
  free (of_graphs);
  return td_test_teardown (state);
}

/* Each line "FORMAT said" goes to look with the path of its function; returns how many. */
static int
each (const char *text, const char *format, void (*look) (const char *path, const char *said))
{
  const size_t n = strlen (format);
  char path[MOST_PATH] = "", *lines = strdup (text);
  int n_functions = 0;

  assert_non_null (lines);
  for (char *line = strtok (lines, "\n"); line != NULL; line = strtok (NULL, "\n"))
    if (strncmp (line, "function ", 9) == 0)
      snprintf (path, sizeof path, "%s", line + 9);
    else if (strncmp (line, format, n) == 0 && line[n] == ' ')
      {
        n_functions++;
        print_message ("%s %s: %s\n", strrchr (path, '/') + 1, format, line + n + 1);
        look (path, line + n + 1);
      }
  free (lines);
  return n_functions;
}

static bool
is_there (const char *path, const char *format)
{
  char name[MOST_PATH + 8];
  FILE *f;

  snprintf (name, sizeof name, "%s.%s", path, format);
  f = fopen (name, "rb");
  if (f != NULL)
    fclose (f);
  return f != NULL;
}

/* A refusal names operations with their lines, or says why there is no schedule, and leaves no
 * file. */
static void
check_refusal (const char *path, const char *format, const char *said)
{
  const char *line = strstr (said, " at l"); /* "gelu at l03-gpt.c:78" */

  if (strstr (said, " has no schedule to write: ") == NULL
      && (strstr (said, " does not have ") == NULL || line == NULL
          || strstr (line, ".c:") == NULL))
    fail_msg ("no list of what stands in the way: %s", said);
  if (is_there (path, format))
    fail_msg ("%s.%s was written although it was refused", path, format);
}

/* --- ONNX --- */

static const char *python;

static void
look_at_onnx (const char *path, const char *said)
{
  TdTestChild child;

  if (strcmp (said, "OK") != 0)
    {
      check_refusal (path, "onnx", said);
      return;
    }
  child = TD_TEST_RUN (python, td_test_source ("tests/support/onnx-same.py"), path,
                       draws () ? "draws" : NULL);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
onnx__gives_the_same_numbers_or_a_list (void **state)
{
  (void)state;
  python = td_test_python ("onnxruntime");
  if (why_nothing () == NULL)
    assert_true (each (printed, "onnx", look_at_onnx) >= 2);
  else
    assert_null (strstr (printed, "onnx "));
}

/* Numbers that the program does not give again itself: spectral normalization turns its vectors
 * in each call. */
static const char *const changing[][2] = {
  { "l07-dcgan", "graph1-train" },
};

static bool
changes (const char *path)
{
  for (size_t k = 0; k < sizeof changing / sizeof *changing; k++)
    if (strstr (program, changing[k][0]) != NULL && strstr (path, changing[k][1]) != NULL)
      {
        print_message ("its state has changed\n");
        return true;
      }
  return false;
}

static void
look_at_graph (const char *path, const char *said)
{
  if (!changes (path))
    look_at_onnx (path, said);
}

static void
onnx__of_the_graph_that_ran_gives_the_same_numbers_or_a_list (void **state)
{
  (void)state;
  python = td_test_python ("onnxruntime");
  assert_true (each (of_graphs, "onnx", look_at_graph) >= 1);
}

/* --- C --- */

/* The numbers of PATH.WHAT0.npy, PATH.WHAT1.npy, ..., one after the other.  *Owner*: free. */
static char *
numbers_of (const char *path, const char *what, size_t *bytes)
{
  char *all = NULL;

  *bytes = 0;
  for (int i = 0; i < MOST_ARRAYS; i++)
    {
      char name[MOST_PATH + 16], *file;
      size_t n, head;

      snprintf (name, sizeof name, "%s%d", what, i);
      if (!is_there (path, strcat (name, ".npy")))
        break;
      snprintf (name, sizeof name, "%s.%s%d.npy", path, what, i);
      file = td_test_read_file (name, &n);
      assert_true (n > 10 && file[6] == 1); /* NumPy's format 1.0: a length of 16 bits */
      head = 10 + (size_t)(unsigned char)file[8] + 256 * (size_t)(unsigned char)file[9];
      assert_true (head <= n);
      all = realloc (all, *bytes + n);
      assert_non_null (all);
      memcpy (all + *bytes, file + head, n - head);
      *bytes += n - head;
      free (file);
    }
  return all;
}

static void
look_at_c (const char *path, const char *said)
{
  size_t n_in, n_out, n_got;
  char *in, name[MOST_PATH + 8];
  float *want, *got;
  TdTestChild child;

  if (strcmp (said, "OK") != 0)
    {
      check_refusal (path, "c", said);
      return;
    }
  in = numbers_of (path, "in", &n_in);
  want = (float *)numbers_of (path, "out", &n_out);
  snprintf (name, sizeof name, "%s.raw", path);
  td_test_write_file (name, in, n_in);
  child = td_test_shell (
      "cc -DMAIN -std=c99 -Wall -Wextra -Werror -O1 -o '%s.program' '%s.c' -lm "
      "&& '%s.program' < '%s.raw' > '%s.got'",
      path, path, path, path, path);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  snprintf (name, sizeof name, "%s.got", path);
  got = (float *)td_test_read_file (name, &n_got);
  assert_int_equal (n_got, n_out);
  assert_true (n_out > 0);
  for (size_t i = 0; i < n_out / sizeof *got; i++)
    if (!(fabsf (got[i] - want[i]) <= 1e-5F * (1 + fabsf (want[i]))))
      fail_msg ("number %zu of %s: %g, expected %g", i, path, (double)got[i], (double)want[i]);
  free (got), free (want), free (in);
}

static void
c__gives_the_same_numbers_or_a_list (void **state)
{
  (void)state;
  if (why_nothing () == NULL)
    assert_true (each (printed, "c", look_at_c) >= 2);
  else
    {
      print_message ("nothing static: %s\n", why_nothing ());
      assert_null (strstr (printed, "function "));
    }
}

/* --- ONNX and in again --- */

static int n_compared; /* files that came in again */

/* The numbers of out0.npy ... that `tapedeck eval` makes of in0.npy ... */
static void
look_at_onnx_in (const char *path, const char *said)
{
  size_t n_out, n_got;
  float *want, *got;
  TdTestChild child;

  if (strcmp (said, "OK") != 0 || draws () || changes (path))
    return;
  n_compared++;
  child = td_test_shell (
      "p='%s'; i=0; set --; "
      "while [ -f \"$p.in$i.npy\" ]; do set -- \"$@\" --in \"$p.in$i.npy\"; i=$((i + 1)); "
      "done; "
      "'%s' eval \"$p.onnx\" \"$@\" -o \"$p-back\" && "
      "for f in \"$p-back\"/out*.npy; do mv \"$f\" \"$p.back${f##*out}\"; done",
      path, td_test_build ("app/tapedeck"));
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  want = (float *)numbers_of (path, "out", &n_out);
  got = (float *)numbers_of (path, "back", &n_got);
  assert_int_equal (n_got, n_out);
  assert_true (n_out > 0);
  for (size_t i = 0; i < n_out / sizeof *got; i++)
    if (!(fabsf (got[i] - want[i]) <= 1e-5F * (1 + fabsf (want[i]))))
      fail_msg ("number %zu of %s: %g, expected %g", i, path, (double)got[i], (double)want[i]);
  free (got), free (want);
}

static void
onnx__comes_in_again_with_the_same_numbers (void **state)
{
  (void)state;
  each (printed, "onnx", look_at_onnx_in);
  each (of_graphs, "onnx", look_at_onnx_in);
  print_message ("%d files came in again\n", n_compared);
  assert_true (n_compared > 0 || draws ());
}

int
main (int argc, char **argv)
{
  static char path[512];
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (onnx__gives_the_same_numbers_or_a_list),
    cmocka_unit_test (onnx__of_the_graph_that_ran_gives_the_same_numbers_or_a_list),
    cmocka_unit_test (onnx__comes_in_again_with_the_same_numbers),
    cmocka_unit_test (c__gives_the_same_numbers_or_a_list),
  };

  if (argc < 2 || argc > MOST_WORDS)
    {
      fprintf (stderr, "usage: test-going-out PROGRAM NAME=VALUE...\n");
      return 2;
    }
  snprintf (path, sizeof path, "tests/life/%s", argv[1]);
  program = strdup (td_test_build (path));
  sizes = (const char *const *)argv + 2;
  return cmocka_run_group_tests_name (argv[1], tests, export_all, forget);
}
