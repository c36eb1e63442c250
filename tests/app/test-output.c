/* What the commands write: what they do when it cannot be written, what a terminal gets to see,
 * who may read it, and names that look like options.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *
tapedeck (void)
{
  return td_test_program ("app/tapedeck");
}

static const char *
tape (void)
{
  return td_test_source ("tests/golden/tape-1.2.tdtape");
}

static void
put_text (const char *path, const char *text)
{
  FILE *f = fopen (path, "w");

  assert_non_null (f);
  assert_true (fputs (text, f) >= 0);
  assert_int_equal (fclose (f), 0);
}

static void
assert_text (const char *path, const char *expected)
{
  size_t n;
  char *text = td_test_read_file (path, &n);

  assert_int_equal (n, strlen (expected));
  assert_memory_equal (text, expected, n);
  free (text);
}

static void
commands__say_that_their_output_is_lost (void **state)
{
  static const char *const commands[] = {
    "--help",
    "help",
    "--version",
    "info %s",
    "info --json %s",
    "cat %s",
    "check %s",
    "eval --list",
#ifdef TD_WITH_VIZ
    "show %s --view graph --format text",
    "diff %s %1$s",
    "leaks %s",
    "show --help",
#endif
  };

  (void)state;
  for (unsigned i = 0; i < sizeof commands / sizeof *commands; i++)
    {
      char arguments[9000];
      const char *at = commands[i], *hole;
      TdTestChild child;

      arguments[0] = '\0';
      for (; (hole = strchr (at, '%')) != NULL; at = strchr (hole, 's') + 1)
        sprintf (arguments + strlen (arguments), "%.*s%s", (int)(hole - at), at, tape ());
      strcat (arguments, at);
      child = td_test_shell ("exec %s %s > /dev/full", tapedeck (), arguments);
      if (child.status != 2)
        fail_msg ("tapedeck %s: status %d", commands[i], child.status);
      assert_contains (child.err, "tapedeck: ");
      assert_contains (child.err, "No space left on device");
      td_test_child_clear (&child);
    }
}

/* As it is asked for elsewhere: git help log. */
static void
help__of_a_command_is_what_its_option_says (void **state)
{
  static const char *const commands[] = { "", "info", "run", "eval" };

  (void)state;
  for (unsigned i = 0; i < sizeof commands / sizeof *commands; i++)
    {
      TdTestChild help = td_test_shell ("exec %s help %s", tapedeck (), commands[i]);
      TdTestChild option = td_test_shell ("exec %s %s --help", tapedeck (), commands[i]);

      assert_int_equal (help.status, 0);
      assert_int_equal (option.status, 0);
      assert_true (strlen (option.out) > 100);
      assert_string_equal (help.out, option.out);
      td_test_child_clear (&help);
      td_test_child_clear (&option);
    }
}

static void
export__that_fails_leaves_what_was_there (void **state)
{
  const char *keep = td_test_tmp ("keep");
  TdTestChild child;

  (void)state;
  put_text (keep, "mine");
  child = TD_TEST_RUN (tapedeck (), "export", tape (), "--format", "torch-snapshot",
                       "--iteration", "123456789", "-o", keep);
  assert_int_equal (child.status, 2);
  td_test_child_clear (&child);
  assert_text (keep, "mine");
  child = TD_TEST_RUN (tapedeck (), "run", "-o", td_test_tmp ("t.tdtape"),
                       td_test_build ("tests/app/model-train"), "5");
  assert_int_equal (child.status, 0);
  td_test_child_clear (&child);
  child = td_test_shell ("ulimit -f 1; exec %s export %s --format torch-snapshot -o %s",
                         tapedeck (), td_test_tmp ("t.tdtape"), keep);
  assert_int_equal (child.status, 2);
  assert_contains (child.err, "File too large");
  td_test_child_clear (&child);
  assert_text (keep, "mine");
}

static void
import__that_fails_leaves_what_was_there (void **state)
{
  const char *keep = td_test_tmp ("keep"), *bad = td_test_tmp ("bad.pickle");
  TdTestChild child;

  (void)state;
  put_text (keep, "mine");
  put_text (bad, "\x80\x04\x8c\x01"
                 "a.");
  child = TD_TEST_RUN (tapedeck (), "import", bad, "-f", "-o", keep);
  assert_int_equal (child.status, 2);
  td_test_child_clear (&child);
  assert_text (keep, "mine");
}

static void
check__leaves_no_damaged_copy_on_a_full_disk (void **state)
{
  const char *copy = td_test_tmp ("copy.tdtape");
  TdTestChild child
      = td_test_shell ("ulimit -f 4; exec %s check %s --repair %s", tapedeck (), tape (), copy);

  (void)state;
  assert_int_equal (child.status, 2);
  assert_contains (child.err, "File too large");
  td_test_child_clear (&child);
  child = td_test_shell ("ls %s*", copy);
  assert_string_equal (child.out, "");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "check", tape (), "--repair", copy);
  assert_int_equal (child.status, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "check", copy);
  assert_int_equal (child.status, 0);
  td_test_child_clear (&child);
}

/* A model whose links, file and variables are named so that a terminal would change its title,
 * its colours and what was printed before. */
static void
write_model (const char *path)
{
  static const char source[]
      = "#include <tapedeck.h>\n"
        "int main (int argc, char **argv)\n{\n"
        "  td_init (&argc, &argv);\n"
        "  TdLink *net = td_chain_new (\"net\\033]0;title\\007\");\n"
        "  TdLink *l = td_linear_new (net, \"l1\\033[2J\\302\\233A\\r\", 3, 2);\n"
        "  for (int i = 0; i < 4; i++)\n    TD_ITERATION (i)\n      {\n"
        "        TdVar *x = td_randn (TD_F32, TD_SHAPE (5, 3));\n"
        "        td_retain (td_sum (td_link (l, x)));\n"
        "        td_cleargrads (net);\n"
        "        td_backward (td_sum (td_link (l, x)), 0);\n      }\n"
        "  return td_finish ();\n}\n";

  td_test_write_file (path, source, sizeof source - 1);
}

static void
assert_no_controls (const char *command, const char *text)
{
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
    if ((*c < ' ' && *c != '\n' && *c != '\t') || *c == 0x7f
        || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
      fail_msg ("tapedeck %s prints the control character %02x", command, *c);
}

static void
names_on_a_tape__command_no_terminal (void **state)
{
  static const char *const commands[] = {
    "info",
    "info --json",
    "cat",
    "cat --json",
#ifdef TD_WITH_VIZ
    "show --view graph",
    "show --view graph --format json",
    "show --view graph --format dot",
    "show --view memory",
    "show --view blocks",
    "show --view gradients",
    "show --view holders",
    "show --view growth",
    "show --view retained",
    "show --view schedule",
    "leaks",
    "leaks --json",
#endif
  };
  const char *source = td_test_tmp ("red\033[31m.c"), *recording = td_test_tmp ("run.tdtape");
  TdTestChild child;
  int n_named = 0;

  (void)state;
  write_model (source);
  child = td_test_shell ("XDG_CACHE_HOME='%s' exec %s run -o %s '%s'", td_test_tmp ("cache"),
                         tapedeck (), recording, source);
  assert_int_equal (child.status, 0);
  td_test_child_clear (&child);
  for (unsigned i = 0; i < sizeof commands / sizeof *commands; i++)
    {
      child = td_test_shell ("exec %s %s %s", tapedeck (), commands[i], recording);
      if (child.status > 1)
        fail_msg ("tapedeck %s: %s", commands[i], child.err);
      assert_no_controls (commands[i], child.out);
      assert_no_controls (commands[i], child.err);
      n_named += strstr (child.out, "[2J") != NULL || strstr (child.out, "[31m") != NULL;
      td_test_child_clear (&child);
    }
  assert_true (n_named > 3); /* the names are shown */
}

/* To a compiler the first is options, the second a file of options. */
static void
run__takes_a_name_for_a_file_whatever_it_begins_with (void **state)
{
  static const char source[] = "int main (void)\n{\n  return 7;\n}\n";
  static const char *const names[] = { "-DX.c", "@x.c", "--.c" };
  char folder[4096];

  (void)state;
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    {
      const char *path = td_test_tmp (names[i]);

      td_test_write_file (path, source, sizeof source - 1);
      snprintf (folder, sizeof folder, "%.*s", (int)(strrchr (path, '/') - path), path);
      TdTestChild child = td_test_shell ("cd '%s'; XDG_CACHE_HOME='%s' exec %s run -- %s",
                                         folder, folder, tapedeck (), names[i]);
      assert_int_equal (child.status, 7);
      td_test_child_clear (&child);
    }
}

static void
tape__is_its_owners (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *pipe = td_test_tmp ("pipe");
  struct stat s;
  TdTestChild child = td_test_shell ("umask 0; exec %s run -o %s %s 5", tapedeck (), tape,
                                     td_test_build ("tests/app/model-train"));

  (void)state;
  assert_int_equal (child.status, 0);
  td_test_child_clear (&child);
  assert_int_equal (stat (tape, &s), 0);
  assert_int_equal (s.st_mode & 0777, 0600);
  assert_int_equal (mkfifo (pipe, 0600), 0);
  child = TD_TEST_RUN (tapedeck (), "run", "-f", "-o", pipe,
                       td_test_build ("tests/app/model-train"), "5");
  assert_int_equal (child.status, 2);
  assert_contains (child.err, "it is no file");
  td_test_child_clear (&child);
  assert_int_equal (stat (pipe, &s), 0);
  assert_true (S_ISFIFO (s.st_mode));
}

/* ------------------------------------------------------------------------ what is kept */

static void
folder_of (const char *path, char *folder, size_t size)
{
  snprintf (folder, size, "%.*s", (int)(strrchr (path, '/') - path), path);
}

/* A recording to lose.  Returns its bytes. */
static char *
record (const char *path, size_t *n)
{
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "-f", "-o", path,
                                   td_test_build ("tests/app/model-train"), "5");

  assert_int_equal (child.status, 0);
  td_test_child_clear (&child);
  return td_test_read_file (path, n);
}

static void
assert_bytes (const char *path, const char *bytes, size_t n)
{
  size_t n_now;
  char *now = td_test_read_file (path, &n_now);

  assert_int_equal (n_now, n);
  assert_memory_equal (now, bytes, n);
  free (now);
}

static void
run__that_cannot_start_keeps_the_old_recording (void **state)
{
  static const struct
  {
    const char *program, *text;
    int mode, status;
    const char *says;
  } cases[] = {
    { "no-such-program-anywhere", NULL, 0, 127, "No such file or directory" },
    { "./nothing-here", NULL, 0, 127, "No such file or directory" },
    { "./plain", "no program", 0600, 126, "Permission denied" },
    { "./script", "#!/no/such/interpreter\n", 0700, 127, "No such file or directory" },
    { ".", NULL, 0, 126, "Permission denied" },
  };
  const char *keep = td_test_tmp ("keep.tdtape");
  char folder[4096];
  size_t n;
  char *bytes = record (keep, &n);

  (void)state;
  folder_of (keep, folder, sizeof folder);
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      TdTestChild child;

      if (cases[i].text != NULL)
        {
          put_text (td_test_tmp (cases[i].program + 2), cases[i].text);
          assert_int_equal (chmod (td_test_tmp (cases[i].program + 2), (mode_t)cases[i].mode),
                            0);
        }
      child = td_test_shell ("cd '%s'; exec %s run -f -o keep.tdtape %s", folder, tapedeck (),
                             cases[i].program);
      assert_int_equal (child.status, cases[i].status);
      assert_contains (child.err, cases[i].says);
      td_test_child_clear (&child);
      assert_bytes (keep, bytes, n);
    }
  free (bytes);
}

static void
force__writes_over_no_file_but_a_tape (void **state)
{
  const char *text = td_test_tmp ("thesis.txt"), *model = td_test_tmp ("m.c"),
             *empty = td_test_tmp ("empty"), *train = td_test_build ("tests/app/model-train");
  TdTestChild child;

  (void)state;
  put_text (text, "mine");
  put_text (model, "int main (void)\n{\n  return 0;\n}\n");
  put_text (empty, "");
  child = TD_TEST_RUN (tapedeck (), "run", "-f", "-o", text, train, "5");
  assert_int_equal (child.status, 2);
  assert_contains (child.err, "it is no tape, and is not written over");
  td_test_child_clear (&child);
  assert_text (text, "mine");
  child = TD_TEST_RUN (tapedeck (), "run", "-f", "-o", model, model);
  assert_int_equal (child.status, 2);
  assert_contains (child.err, "m.c: it is what is run, and is not written over");
  td_test_child_clear (&child);
  assert_text (model, "int main (void)\n{\n  return 0;\n}\n");
  child = TD_TEST_RUN (tapedeck (), "run", "-f", "-o", empty, train, "5");
  assert_int_equal (child.status, 0);
  td_test_child_clear (&child);
}

/* By whatever name: the second is a link. */
static void
commands__never_write_over_what_they_read (void **state)
{
  static const char *const commands[] = {
    "export t.tdtape --format torch-snapshot -o %s",
    "check t.tdtape --repair %s",
    "import t.tdtape -f -o %s",
#ifdef TD_WITH_VIZ
    "show t.tdtape --view graph -o %s",
    "diff t.tdtape t.tdtape -o %s",
    "diff t.tdtape:0 t.tdtape:1 -o %s",
#endif
  };
  const char *keep = td_test_tmp ("t.tdtape");
  char folder[4096], command[256];
  size_t n;
  char *bytes = record (keep, &n);

  (void)state;
  assert_int_equal (symlink ("t.tdtape", td_test_tmp ("link")), 0);
  folder_of (keep, folder, sizeof folder);
  for (unsigned i = 0; i < 2 * sizeof commands / sizeof *commands; i++)
    {
      TdTestChild child;

      snprintf (command, sizeof command, "%.*s%s",
                (int)(strchr (commands[i / 2], '%') - commands[i / 2]), commands[i / 2],
                i % 2 ? "link" : "t.tdtape");
      child = td_test_shell ("cd '%s'; exec %s %s", folder, tapedeck (), command);
      if (child.status != 2 || strstr (child.err, "it is what is read") == NULL)
        fail_msg ("tapedeck %s: status %d, %s", command, child.status, child.err);
      td_test_child_clear (&child);
      assert_bytes (keep, bytes, n);
    }
  free (bytes);
}

static void
eval__never_writes_over_an_array_that_it_reads (void **state)
{
  const char *in = td_test_tmp ("out0.npy");
  char folder[4096];
  TdTestChild child;
  char *bytes;
  size_t n;

  (void)state;
  folder_of (in, folder, sizeof folder);
  /* 3 numbers of '<f4' */
  td_test_write_file (
      in,
      "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
      "                                                            \n"
      "\0\0\x80?\0\0\0@\0\0@@",
      128 + 12);
  bytes = td_test_read_file (in, &n);
  child = TD_TEST_RUN (tapedeck (), "eval", "neg", "--in", in, "-o", folder);
  assert_int_equal (child.status, 2);
  assert_contains (child.err, "out0.npy: it is what is read, and is not written over");
  td_test_child_clear (&child);
  assert_bytes (in, bytes, n);
  free (bytes);
}

static void
commands__take_names_behind_two_dashes (void **state)
{
  static const char *const commands[] = {
    "info -- -t.tdtape",
    "info --json -- -t.tdtape",
    "cat -- -t.tdtape",
    "check -- -t.tdtape",
    "export --format torch-snapshot -o out -- -t.tdtape",
#ifdef TD_WITH_VIZ
    "show --view graph -- -t.tdtape",
    "diff -- -t.tdtape:1 -t.tdtape:1",
    "leaks -- -t.tdtape",
#endif
  };
  size_t n;
  char folder[4096], *bytes = record (td_test_tmp ("-t.tdtape"), &n);
  TdTestChild child;

  (void)state;
  folder_of (td_test_tmp ("x"), folder, sizeof folder);
  for (unsigned i = 0; i < sizeof commands / sizeof *commands; i++)
    {
      child = td_test_shell ("cd '%s'; exec %s %s", folder, tapedeck (), commands[i]);
      if (child.status > 1 || child.err[0] != '\0')
        fail_msg ("tapedeck %s: status %d, %s", commands[i], child.status, child.err);
      td_test_child_clear (&child);
    }
  child = td_test_shell ("cd '%s'; exec %s info -- -t.tdtape --json", folder, tapedeck ());
  assert_int_equal (child.status, 2);
  assert_contains (child.err, "--json: one tape expected");
  td_test_child_clear (&child);
  free (bytes);
}

static void
tapes__go_to_files_only (void **state)
{
  char folder[4096];
  TdTestChild child;

  (void)state;
  folder_of (td_test_tmp ("x"), folder, sizeof folder);
  child = td_test_shell ("cd '%s'; exec %s run -o - %s 5", folder, tapedeck (),
                         td_test_build ("tests/app/model-train"));
  assert_int_equal (child.status, 2);
  assert_contains (child.err, "a tape goes to a file");
  td_test_child_clear (&child);
  assert_int_not_equal (access (td_test_tmp ("-"), F_OK), 0);
}

/* Desktops pass addresses; the app is not reached without a display. */
static void
app__takes_addresses_of_files (void **state)
{
  static const struct
  {
    const char *address, *said;
  } rows[]
      = { { "file:///none%20of%C3%A4.tdtape", "tapedeck: /none of\xc3\xa4.tdtape: No such" },
          { "file://localhost/none.tdtape", "tapedeck: /none.tdtape: No such" },
          { "file:///none%00.tdtape", "tapedeck: file:///none%00.tdtape: No such" },
          { "file:///none%2.tdtape", "tapedeck: /none%2.tdtape: No such" },
          { "file://elsewhere/x.tdtape", "tapedeck: file://elsewhere/x.tdtape: No such" } };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    {
      TdTestChild child = TD_TEST_RUN (tapedeck (), rows[i].address);

      assert_child_status (child, 2);
      assert_contains (child.err, rows[i].said);
      td_test_child_clear (&child);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (app__takes_addresses_of_files),
    td_test (commands__say_that_their_output_is_lost),
    td_test (help__of_a_command_is_what_its_option_says),
    td_test (export__that_fails_leaves_what_was_there),
    td_test (import__that_fails_leaves_what_was_there),
    td_test (names_on_a_tape__command_no_terminal),
    td_test (run__takes_a_name_for_a_file_whatever_it_begins_with),
    td_test (tape__is_its_owners),
    td_test (check__leaves_no_damaged_copy_on_a_full_disk),
    td_test (run__that_cannot_start_keeps_the_old_recording),
    td_test (force__writes_over_no_file_but_a_tape),
    td_test (commands__never_write_over_what_they_read),
    td_test (eval__never_writes_over_an_array_that_it_reads),
    td_test (commands__take_names_behind_two_dashes),
    td_test (tapes__go_to_files_only),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
