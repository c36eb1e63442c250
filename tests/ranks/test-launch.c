/* `tapedeck run -n N`: ranks, their folder of tapes, their output, and how they end.
 *
 * test-launch TAPEDECK MODEL: MODEL is tests/ranks/planted.c, built.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "mpi-here.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char tapedeck_path[PATH_MAX], model_path[PATH_MAX];
static const char *tapedeck, *model;

/* A program that prints and ends; its last argument is the rank that ends with 5. */
static const char talks[]
    = "#include <tapedeck.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
      "int main (int argc, char **argv)\n{\n"
      "  td_init (&argc, &argv);\n"
      "  TdComm *comm = td_comm_new (\"mpi\");\n"
      "  int rank = td_comm_rank (comm);\n"
      "  for (int i = 0; i < 3000; i++)\n"
      "    {\n      printf (\"rank %d says \", rank);\n"
      "      for (int k = 0; k < i % 97; k++)\n        putchar ('x');\n"
      "      printf (\" %d\\n\", i);\n    }\n"
      "  fflush (stdout);\n"
      "  fprintf (stderr, \"[0,\\n[[1,9]<std\\nrank %d complains\\n\", rank);\n"
      "  printf (\"rank %d has no end of line\", rank);\n"
      "  int status = td_finish ();\n"
      "  return argc > 1 && atoi (argv[1]) == rank ? 5 : status;\n}\n";

static const char *
source (void)
{
  const char *path = td_test_tmp ("talks.c");

  td_test_write_file (path, talks, sizeof talks - 1);
  return path;
}

/* It has ended with this status, and has said this on standard error. */
static void
assert_says (const TdTestChild *c, int status, const char *text)
{
  if (c->status != status || strstr (c->err, text) == NULL)
    fail_msg ("status %d and \"%s\" expected, got %d:\n%s\n%s", status, text, c->status, c->out,
              c->err);
}

/* The same, in one line that begins with who says it; of wrong options it adds where to read
 * on, and nothing else. */
static void
assert_refused (const TdTestChild *c, const char *text)
{
  const char *rest;

  assert_says (c, 2, text);
  assert_string_equal (c->out, "");
  assert_int_equal (strncmp (c->err, "tapedeck: ", 10), 0);
  rest = strchr (c->err, '\n');
  assert_non_null (rest);
  assert_true (strstr (c->err, text) < rest);
  if (rest[1] != '\0')
    assert_string_equal (rest + 1, "tapedeck run --help says more\n");
}

static bool
is_there (const char *folder, int rank)
{
  char path[4300];

  snprintf (path, sizeof path, "%s/rank-%d.tdtape", folder, rank);
  return access (path, F_OK) == 0;
}

/* What `tapedeck COMMAND` prints about a rank's tape. */
static void
expect_on_tape (const char *command, const char *folder, int rank, const char *text)
{
  char path[4300];
  TdTestChild c;

  snprintf (path, sizeof path, "%s/rank-%d.tdtape", folder, rank);
  c = TD_TEST_RUN (tapedeck, command, path);
  if (c.status != 0 || strstr (c.out, text) == NULL)
    fail_msg ("%s: \"%s\" expected in:\n%s\n%s", path, text, c.out, c.err);
  td_test_child_clear (&c);
}

static void
run_n__writes_a_folder_of_tapes_and_says_so_in_one_line (void **state)
{
  const char *file = source (), *folder = td_test_tmp ("talks.ranks");
  TdTestChild c
      = td_test_shell ("cd $(dirname %s) && %s run -n 3 --level stats talks.c", file, tapedeck);
  char line[200];

  (void)state;
  assert_says (&c, 0, "tapedeck: 3 ranks ended well; tapes in talks.ranks\n");
  td_test_child_clear (&c);
  for (int rank = 0; rank < 3; rank++)
    {
      snprintf (line, sizeof line, "rank             %d of 3", rank);
      expect_on_tape ("info", folder, rank, line);
      expect_on_tape ("info", folder, rank, "program          talks.c");
      expect_on_tape ("info", folder, rank, "level            stats");
      expect_on_tape ("check", folder, rank, "whole, ");
    }
  assert_false (is_there (folder, 3));
  assert_int_not_equal (access (td_test_tmp ("talks.ranks/where.ranks"), F_OK), 0);
}

static void
run_n__of_one_is_a_rank_alone (void **state)
{
  TdTestChild c = td_test_shell ("%s run -n 1 -o %s %s none 0 0 0", tapedeck,
                                 td_test_tmp ("well"), model);

  (void)state;
  assert_says (&c, 0, "tapedeck: 1 rank ended well; tapes in ");
  td_test_child_clear (&c);
  expect_on_tape ("info", td_test_tmp ("well"), 0, "exit             status 0");
  c = td_test_shell ("%s run -n 1 -o %s %s failed 0 3 0", tapedeck, td_test_tmp ("ill"), model);
  assert_says (&c, 7, "tapedeck: 1 rank: ended with status 7; tapes in ");
  td_test_child_clear (&c);
}

/* Is text made of whole lines of each rank in their order, behind "[rank N] "? */
static void
expect_whole_lines (const char *text, int n_ranks)
{
  int next[8] = { 0 }, n_ends = 0;

  for (const char *at = text; *at != '\0'; at += strcspn (at, "\n") + 1)
    {
      int rank = -1, same = -1, number = -1, n = 0, x;

      if (sscanf (at, "[rank %d] rank %d has no end of line%n", &rank, &same, &n) == 2 && n > 0)
        {
          n_ends += rank == same && at[n] == '\n';
          continue;
        }
      n = 0;
      sscanf (at, "[rank %d] rank %d says %n", &rank, &same, &n);
      x = n > 0 ? (int)strspn (at + n, "x") : 0;
      if (n > 0)
        number = atoi (at + n + x);
      if (rank < 0 || rank >= n_ranks || same != rank || number != next[rank]
          || x != number % 97)
        fail_msg ("not a line of a rank: %.*s", (int)strcspn (at, "\n"), at);
      next[rank]++;
    }
  assert_int_equal (n_ends, n_ranks);
  for (int rank = 0; rank < n_ranks; rank++)
    assert_int_equal (next[rank], 3000);
}

static void
output__of_ranks_comes_by_whole_lines_with_the_rank_before_each (void **state)
{
  TdTestChild c
      = td_test_shell ("%s run -q -n 4 -o %s %s", tapedeck, td_test_tmp ("tapes"), source ());

  (void)state;
  assert_child_status (c, 0);
  expect_whole_lines (c.out, 4);
  for (int rank = 0; rank < 4; rank++)
    {
      char text[100];

      snprintf (text, sizeof text, "[rank %d] [[1,9]<std\n", rank);
      assert_says (&c, 0, text);
      snprintf (text, sizeof text, "[rank %d] rank %d complains\n", rank, rank);
      assert_says (&c, 0, text);
    }
  td_test_child_clear (&c);
}

static void
status__is_the_worst_of_the_ranks_and_one_line_says_whose (void **state)
{
  TdTestChild c
      = td_test_shell ("%s run -q -n 3 -o %s %s 2", tapedeck, td_test_tmp ("tapes"), source ());

  (void)state;
  assert_says (&c, 5, "tapedeck: 3 ranks: rank 2 has ended with status 5; tapes in ");
  td_test_child_clear (&c);
  c = td_test_shell ("%s run -q -n 2 -o %s --break 'iteration == 3' %s none 0 0 0", tapedeck,
                     td_test_tmp ("stopped"), model);
  assert_says (&c, 3, "tapedeck: stopped at ");
  td_test_child_clear (&c);
}

/* The others fail when it leaves, with 1, and mpirun ends it for that before it has ended. */
static void
status__of_a_rank_that_leaves_is_its_own_though_the_others_fail_first (void **state)
{
  (void)state;
  for (int i = 0; i < 4; i++)
    {
      TdTestChild c = td_test_shell ("%s run -q -f -n 3 -o %s %s left 1 3 1", tapedeck,
                                     td_test_tmp ("tapes"), model);

      assert_says (
          &c, 3,
          "tapedeck: 3 ranks: rank 1 has ended with status 3 (exit or td_finish) while "
          "others went on");
      td_test_child_clear (&c);
    }
}

/* As somebody, or the kernel's keeper of memory, ends one of them from outside while it waits.
 */
static void
status__of_a_rank_that_is_told_to_end_names_it (void **state)
{
  static const char code[]
      = "#include <tapedeck.h>\n#include <signal.h>\n#include <unistd.h>\n"
        "int main (int argc, char **argv)\n{\n"
        "  td_init (&argc, &argv);\n"
        "  TdComm *comm = td_comm_new (\"mpi\");\n"
        "  td_comm_barrier (comm);\n"
        "  pid_t told = argc > 1 ? getppid () : getpid ();\n"
        "  if (td_comm_rank (comm) == 1 && fork () == 0)\n    {\n"
        "      usleep (300000);\n      kill (told, SIGTERM);\n      _exit (0);\n    }\n"
        "  if (td_comm_rank (comm) == 0)\n    sleep (20);\n"
        "  td_comm_barrier (comm);\n"
        "  return td_finish ();\n}\n";
  const char *path = td_test_tmp ("waits.c");
  TdTestChild c;

  (void)state;
  td_test_write_file (path, code, sizeof code - 1);
  for (int i = 0; i < 2; i++) /* the model, or what records it */
    {
      c = td_test_shell ("%s run -q -f -n 3 -o %s %s %s", tapedeck, td_test_tmp ("tapes"), path,
                         i > 0 ? "recorder" : "");
      assert_says (&c, 143,
                   "tapedeck: 3 ranks: rank 1 was ended by signal 15 (Terminated) in ");
      td_test_child_clear (&c);
    }
}

/* Which ranks there are, mpirun's own or none, is known before anything is started. */
static void
break__that_names_no_rank_is_refused_and_one_that_may_name_one_is_not (void **state)
{
  static const struct
  {
    const char *start, *condition, *said;
    int status;
  } rows[] = {
    { "-n 3", "rank == 5", "--break rank == 5: it holds on no rank, as these are 0 to 2", 2 },
    { "-n 3", "rank == -1", "it holds on no rank", 2 },
    { "-n 3", "nan && rank == 7 || rank > 2", "it holds on no rank", 2 },
    { "-n 3", "rank == 1 && rank == 2", "it holds on no rank", 2 },
    { "-n 3", "rank == 3 || iteration == 2", "tapedeck: stopped at ", 3 },
    { "-n 3", "iteration == 2 && rank != 5", "tapedeck: stopped at ", 3 },
    { "-n 1", "rank == 1", "it holds on no rank, as this one is 0 of 1", 2 },
    { "", "rank == 1", "it holds on no rank, as this one is 0 of 1", 2 },
    { "-n 3", "nan && rank == 2", "", 0 },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    {
      char folder[4300];
      TdTestChild c;

      snprintf (folder, sizeof folder, "%s%zu", td_test_tmp ("tapes"), i);
      c = td_test_shell ("%s run -q -f %s -o %s --break '%s' %s none 0 0 0", tapedeck,
                         rows[i].start, folder, rows[i].condition, model);

      if (rows[i].status == 2)
        assert_refused (&c, rows[i].said);
      else
        assert_says (&c, rows[i].status, rows[i].said);
      /* refused before anything is started: no tape of it */
      assert_int_equal (access (folder, F_OK) == 0, rows[i].status != 2);
      td_test_child_clear (&c);
    }
}

static void
options__go_to_each_rank (void **state)
{
  const char *folder = td_test_tmp ("tapes");
  TdTestChild c = td_test_shell ("%s run -q -n 2 --iterations 4 --seed=7 -o %s %s none 0 0 0",
                                 tapedeck, folder, model);

  (void)state;
  assert_child_status (c, 0);
  td_test_child_clear (&c);
  for (int rank = 0; rank < 2; rank++)
    expect_on_tape ("info", folder, rank, "exit             status 0");
  c = td_test_shell ("%s info %s/rank-0.tdtape | grep '^iterations'", tapedeck, folder);
  assert_true (atoi (c.out + strcspn (c.out, "0123456789")) <= 5);
  td_test_child_clear (&c);
}

static void
tapes__that_are_there_are_kept_or_replaced_by_f (void **state)
{
  const char *folder = td_test_tmp ("tapes");
  TdTestChild c = td_test_shell ("%s run -q -n 3 --iterations 2 -o %s %s none 0 0 0", tapedeck,
                                 folder, model);

  (void)state;
  assert_child_status (c, 0);
  td_test_child_clear (&c);
  c = td_test_shell ("%s run -q -n 2 --iterations 2 -o %s %s none 0 0 0", tapedeck, folder,
                     model);
  assert_says (&c, 2, "exists already; -f overwrites it");
  td_test_child_clear (&c);
  assert_true (is_there (folder, 2));
  c = td_test_shell ("%s run -q -f -n 2 --iterations 2 -o %s %s none 0 0 0", tapedeck, folder,
                     model);
  assert_child_status (c, 0);
  td_test_child_clear (&c);
  assert_true (is_there (folder, 1));
  assert_false (is_there (folder, 2)); /* of a run that had more ranks */
  td_test_write_file (td_test_tmp ("tapes/rank-2.tdtape"), "mine", 4);
  c = td_test_shell ("%s run -q -f -n 2 --iterations 2 -o %s %s none 0 0 0", tapedeck, folder,
                     model);
  assert_child_status (c, 2); /* no tape: it is not ours to remove */
  td_test_child_clear (&c);
  assert_true (is_there (folder, 2));
}

static void
nonsense__is_one_line_and_status_2 (void **state)
{
  static const struct
  {
    const char *options, *said;
  } rows[] = {
    { "-n 0", "--ranks 0: a number of processes from 1 to 65536 expected" },
    { "-n -1", "--ranks -1: a number of processes from 1 to 65536 expected" },
    { "-n two", "--ranks two: a number of processes from 1 to 65536 expected" },
    { "-n 65537", "--ranks 65537: a number of processes from 1 to 65536 expected" },
    { "-n 2 --hosts dos", "dos:1: the line ends in CR and LF: mpirun reads LF only" },
    { "-n 2 --hang-after soon", "--hang-after soon: a number of seconds expected" },
    { "-n 2 --hang-after .", "--hang-after .: a number of seconds expected" },
    { "-n 2 --on-hang pray", "--on-hang pray: abort, stuck or stop expected" },
    { "-n 2 --window", "--window does not go with -n" },
    { "-n 2 --control x", "--control does not go with -n" },
    { "-n 2 --hosts none", "none: No such file or directory" },
    { "-n 2 --hosts empty", "empty: no machine in it" },
    { "-n 2 --hosts words", "words:3: \"slots=many\": a line is NAME [slots=N]" },
    { "-n 2 --hosts signs", "signs:1: \";;;\": a line is NAME [slots=N]" },
    { "-n 2 --hosts zero", "zero:1: \"slots=0\": a line is NAME [slots=N]" },
    { "-n 3 --hosts two", "two has 2 slots, and 3 ranks are asked for" },
    { "--hosts two", "--hosts needs -n" },
    { "-n 2 -o two", "two: Not a directory" },
    { "-n 2 -o /proc/none", "/proc/none: No such file or directory" },
  };

  (void)state;
  td_test_write_file (td_test_tmp ("empty"), "# nobody\n\n", 10);
  td_test_write_file (td_test_tmp ("words"), "a\n\nb slots=many\n", 16);
  td_test_write_file (td_test_tmp ("signs"), ";;;\n", 4);
  td_test_write_file (td_test_tmp ("zero"), "a slots=0\n", 10);
  td_test_write_file (td_test_tmp ("dos"), "localhost slots=2\r\n", 19);
  td_test_write_file (td_test_tmp ("two"), "localhost slots=2\n", 18);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    {
      TdTestChild c = td_test_shell ("cd $(dirname %s) && %s run %s %s none 0 0 0",
                                     td_test_tmp ("two"), tapedeck, rows[i].options, model);

      assert_refused (&c, rows[i].said);
      td_test_child_clear (&c);
    }
}

static void
hosts__of_this_machine_with_enough_slots_run (void **state)
{
  TdTestChild c;

  (void)state;
  td_test_write_file (td_test_tmp ("two"), "localhost slots=2 # here\n", 25);
  c = td_test_shell ("%s run -n 2 --iterations 2 --hosts %s -o %s %s none 0 0 0", tapedeck,
                     td_test_tmp ("two"), td_test_tmp ("tapes"), model);
  assert_says (&c, 0, "tapedeck: 2 ranks ended well");
  td_test_child_clear (&c);
  for (int rank = 0; rank < 3; rank++)
    assert_int_equal (is_there (td_test_tmp ("tapes"), rank), rank < 2);
}

/* What mpirun itself refuses it says itself. */
static void
hosts__that_mpirun_refuses_are_told_in_its_words (void **state)
{
  const char *twice = "localhost slots=2\n127.0.0.1 slots=2\n";
  TdTestChild c;

  (void)state;
  td_test_write_file (td_test_tmp ("twice"), twice, strlen (twice));
  c = td_test_shell ("%s run -n 2 --hosts %s -o %s %s none 0 0 0", tapedeck,
                     td_test_tmp ("twice"), td_test_tmp ("tapes"), model);
  assert_says (&c, 1, "mpirun: ");
  assert_says (&c, 1, "multiple definitions");
  assert_says (&c, 1, "tapedeck: 2 ranks: 0 of 2 ranks have begun (mpirun: status 1)");
  td_test_child_clear (&c);
}

static const char *
script (const char *name, const char *text)
{
  const char *path = td_test_tmp (name);

  td_test_write_file (path, text, strlen (text));
  assert_int_equal (chmod (path, 0755), 0);
  return path;
}

/* A script that runs something else, or nothing. */
static void
rank__that_ended_well_before_is_told_with_whether_it_has_recorded_anything (void **state)
{
  const char *leaves
      = script ("leaves.sh", "#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 1 ] && exit 0\n"
                             "sleep 0.5; exit 4\n");
  TdTestChild c
      = td_test_shell ("%s run -q -n 2 -o %s %s", tapedeck, td_test_tmp ("left"), leaves);

  (void)state;
  assert_says (&c, 4,
               "rank 0 has ended with status 4; rank 1 had ended before, with status 0 and "
               "nothing on its tape;");
  td_test_child_clear (&c);
}

static void
mpirun__that_is_not_open_mpi_is_refused_in_one_line (void **state)
{
  static const struct
  {
    const char *says, *said;
  } rows[] = {
    { "HYDRA build details:",
      "is not Open MPI's, whose library the ranks use: it says \"HYDRA" },
    { "Intel(R) MPI Library for Linux* OS, Version 2021.9", "it says \"Intel(R) MPI Library" },
    { "mpirun (Open MPI) 3.1.3", "Open MPI 4 or newer expected" },
  };
  TdTestChild c;

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    {
      char text[300];

      snprintf (text, sizeof text, "#!/bin/sh\necho '%s'\n", rows[i].says);
      c = td_test_shell ("TAPEDECK_MPIRUN=%s %s run -n 2 -o %s %s none 0 0 0",
                         script ("mpirun", text), tapedeck, td_test_tmp ("tapes"), model);
      assert_refused (&c, rows[i].said);
      td_test_child_clear (&c);
    }
  c = td_test_shell ("TAPEDECK_MPIRUN=/none/mpirun %s run -n 2 -o %s %s none 0 0 0", tapedeck,
                     td_test_tmp ("tapes"), model);
  assert_refused (&c, "/none/mpirun: not found; -n needs Open MPI");
  td_test_child_clear (&c);
  assert_int_not_equal (access (td_test_tmp ("tapes"), F_OK), 0);
}

static void
rank__whose_tape_cannot_be_made_ends_all_and_is_named (void **state)
{
  TdTestChild c;
  const char *folder = td_test_tmp ("tapes");

  (void)state;
  assert_int_equal (mkdir (folder, 0755), 0);
  assert_int_equal (mkdir (td_test_tmp ("tapes/rank-1.tdtape.ring"), 0755), 0);
  c = td_test_shell ("%s run -q -n 2 -o %s %s none 0 0 0", tapedeck, folder, model);
  assert_says (&c, 2, "[rank 1] tapedeck: ");
  assert_says (&c, 2, "tapedeck: 2 ranks: ");
  td_test_child_clear (&c);
}

/* A limit of the size of files is a disk of that size. */
static void
disk__that_is_full_on_one_rank_costs_its_recording_only (void **state)
{
  char folder[4200], line[9000];
  TdTestChild c;

  (void)state;
  snprintf (folder, sizeof folder, "%s", td_test_tmp ("full.tdtape"));
  snprintf (line, sizeof line, "%s run -q --level values -o %s %s none 0 0 0 3000", tapedeck,
            folder, model);
  c = td_test_shell (
      "mpirun --allow-run-as-root --oversubscribe -n 1 %s : -n 1 sh -c 'ulimit -f "
      "33000; exec %s'",
      line, line);
  assert_says (&c, 1, "full-rank-1.tdtape: ");
  assert_says (&c, 1, "the program runs on unrecorded");
  assert_null (strstr (c.err, "full-rank-0.tdtape"));
  td_test_child_clear (&c);
  c = TD_TEST_RUN (tapedeck, "info", td_test_tmp ("full-rank-0.tdtape"));
  assert_child_status (c, 0);
  assert_contains (c.out, "exit             status 0");
  td_test_child_clear (&c);
}

static void
programs__that_differ_are_an_error_on_all_ranks (void **state)
{
  char other[4300];
  TdTestChild c;

  (void)state;
  snprintf (other, sizeof other, "%s", td_test_tmp ("another"));
  c = td_test_shell (
      "cp %s %s && export LD_LIBRARY_PATH=$(dirname %s)/../../engine && mpirun "
      "--allow-run-as-root --oversubscribe -n 1 %s none 0 0 0 : -n 1 %s none 0 0 0",
      model, other, model, model, other);
  assert_int_not_equal (c.status, 0);
  assert_says (&c, c.status, "rank 0 of 2: rank 0 runs ");
  assert_says (&c, c.status, "rank 1 of 2: rank 0 runs ");
  assert_says (&c, c.status, ", rank 1 another of Tapedeck ");
  td_test_child_clear (&c);
}

/* No communicator has size 0, by which programs divide. */
static void
communicator__that_cannot_be_had_says_why_where_the_program_divides_by_its_size (void **state)
{
  const char *file = td_test_tmp ("divides.c");
  static const char divides[]
      = "#include <tapedeck.h>\n#include <stdlib.h>\n#include <stdio.h>\n"
        "int main (int argc, char **argv)\n{\n  td_init (&argc, &argv);\n"
        "  TdComm *comm = td_comm_new (getenv (\"OMPI_COMM_WORLD_RANK\")[0] == '1'"
        " ? \"mpj\" : \"mpi\");\n"
        "  printf (\"%d\\n\", 24 / td_comm_size (comm));\n  return td_finish ();\n}\n";
  TdTestChild c;

  (void)state;
  td_test_write_file (file, divides, sizeof divides - 1);
  c = td_test_shell ("%s run -q -n 2 -o %s %s", tapedeck, td_test_tmp ("divided"), file);
  assert_says (&c, 136,
               "tapedeck: ended by a division (no communicator has size 0) after an error: ");
  assert_says (&c, 136, "mpj");
  td_test_child_clear (&c);
  c = TD_TEST_RUN (tapedeck, "ranks", td_test_tmp ("divided"));
  assert_contains (c.out, ", after an error: ");
  assert_contains (c.out, "mpj");
  td_test_child_clear (&c);
}

/* Run a line till it says that a rank waits, and a second longer; then end it.  What it has
 * said is in err. */
static TdTestChild
run_till_said (const char *line)
{
  char said[4300];

  snprintf (said, sizeof said, "%s", td_test_tmp ("said"));
  return td_test_shell ("%s 2>%s & pid=$!\n"
                        "until grep -q 'has waited' %s; do sleep 0.05; done\n"
                        "sleep 1; kill -0 $pid && echo still there\n"
                        "kill $pid; wait $pid; cat %s >&2; exit 0",
                        line, said, said, said);
}

static void
hang__is_left_as_it_is_where_that_is_asked_for (void **state)
{
  const char *folder = td_test_tmp ("tapes");
  char line[14000];
  TdTestChild c;

  (void)state;
  snprintf (line, sizeof line,
            "%s run -q -n 2 --hang-after 1 --on-hang stop -o %s %s asleep 1 3 0", tapedeck,
            folder, model);
  c = run_till_said (line);
  assert_says (&c, 0, "for rank 1; rank 1 (pid ");
  assert_says (&c, 0, "; all are left as they are");
  assert_string_equal (c.out, "still there\n");
  td_test_child_clear (&c);
  for (int rank = 0; rank < 2; rank++)
    expect_on_tape ("cat", folder, rank, "rank 0 of 2 has waited 1 s in ");
}

static void
rank_that_computes_for_long__is_named_and_waited_for_where_that_is_asked_for (void **state)
{
  TdTestChild c = td_test_shell (
      "timeout -s TERM 60 %s run -q -n 2 --hang-after 1 --on-hang stuck -o %s %s late 1 3 0",
      tapedeck, td_test_tmp ("late"), model);

  (void)state;
  assert_says (&c, 0, "rank 0 of 2 has waited 1 s in td_opt_update (call ");
  assert_says (&c, 0, "; it is waited for");
  td_test_child_clear (&c);
  /* nobody computes: each waits for the others in another call */
  c = td_test_shell (
      "timeout -s TERM 60 %s run -q -n 3 --hang-after 1 --on-hang stuck -o %s %s in-part 1 3 0",
      tapedeck, td_test_tmp ("stuck"), model);
  assert_int_not_equal (c.status, 0);
  assert_int_not_equal (c.status, 124);
  assert_says (&c, c.status, "; all are ended");
  td_test_child_clear (&c);
}

/* By a signal to all processes, or to one; whatever ranks were in then. */
static void
run_n__that_is_told_to_end_says_so_and_is_no_finding (void **state)
{
  static const struct
  {
    const char *way;
    const char *says;
    int status;
  } ends[] = {
    { "-s TERM", "told to end by signal 15 (Terminated)", 143 },
    { "--foreground -s TERM", "told to end by signal 15 (Terminated)", 143 },
    { "--foreground -s INT", "told to end by signal 2 (Interrupt)", 130 },
  };

  (void)state;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    {
      TdTestChild c = td_test_shell (
          "timeout --preserve-status %s 3 %s run -f -q -n 2 -o %s %s asleep 1 3 0", ends[i].way,
          tapedeck, td_test_tmp ("told"), model);

      assert_says (&c, ends[i].status, ends[i].says);
      td_test_child_clear (&c);
      c = TD_TEST_RUN (tapedeck, "ranks", td_test_tmp ("told"));
      assert_null (strstr (c.out, "error:"));
      td_test_child_clear (&c);
      expect_on_tape ("cat", td_test_tmp ("told"), 0, "the run was told to end (");
    }
}

static void
hang_after__0_is_for_ever_and_nonsense_in_the_environment_an_error (void **state)
{
  TdTestChild c
      = td_test_shell ("timeout -s TERM 4 %s run -q -n 2 --hang-after 0 -o %s %s asleep 1 3 0",
                       tapedeck, td_test_tmp ("tapes"), model);

  (void)state;
  assert_int_equal (c.status, 124);
  assert_null (strstr (c.err, "has waited"));
  td_test_child_clear (&c);
  c = td_test_shell (
      "TAPEDECK_HANG_AFTER=soon mpirun --allow-run-as-root --oversubscribe -n 2 %s none "
      "0 0 0",
      model);
  assert_non_null (strstr (
      c.err, "TAPEDECK_HANG_AFTER is \"soon\": a number of seconds expected, 0 for no limit"));
  td_test_child_clear (&c);
}

/* Without `tapedeck`, which sets no limit then. */
static void
program__that_mpirun_starts_alone_takes_its_limit_from_the_environment (void **state)
{
  TdTestChild c = td_test_shell (
      "TAPEDECK_HANG_AFTER=1 mpirun --allow-run-as-root --oversubscribe -n 3 %s "
      "stopped 2 5 1",
      model);

  (void)state;
  assert_int_not_equal (c.status, 124);
  assert_says (&c, c.status, " has waited 1 s in td_opt_update (call ");
  assert_says (&c, c.status, " for rank 2; rank 2 (pid ");
  assert_says (&c, c.status,
               " is stopped (by a signal or a debugger), after td_opt_update (call ");
  td_test_child_clear (&c);
  c = td_test_shell ("mpirun --allow-run-as-root --oversubscribe -n 3 %s killed 2 5 1", model);
  assert_says (&c, c.status, ": rank 2 has died\n");
  td_test_child_clear (&c);
}

static void
script__of_python_has_a_tape_for_each_rank (void **state)
{
  const char *python = td_test_python ("torch");
  char folder[4200];
  TdTestChild c;

  (void)state;
#ifdef __SANITIZE_ADDRESS__
  skip (); /* Python cannot load a library of sanitizers late */
#endif
  script ("net.py",
          "import torch\nx = torch.ones(3, requires_grad=True)\n(x * x).sum().backward()\n"
          "print('done')\n");
  snprintf (folder, sizeof folder, "%s", td_test_tmp ("net.ranks"));
  c = td_test_shell ("cd $(dirname %s) && TAPEDECK_PYTHON=%s %s run -n 2 net.py", folder,
                     python, tapedeck);
  assert_says (&c, 0, "tapedeck: 2 ranks ended well; tapes in net.ranks");
  assert_non_null (strstr (c.out, "[rank 0] done\n"));
  assert_non_null (strstr (c.out, "[rank 1] done\n"));
  td_test_child_clear (&c);
  expect_on_tape ("info", folder, 0, "rank             0 of 2");
  expect_on_tape ("info", folder, 1, "rank             1 of 2");
  c = td_test_shell (
      "cd $(dirname %s) && TAPEDECK_PYTHON=%s mpirun --allow-run-as-root --oversubscribe "
      "-n 2 %s run net.py",
      folder, python, tapedeck);
  assert_child_status (c, 0);
  td_test_child_clear (&c);
  assert_int_equal (access (td_test_tmp ("net-rank-0.tdtape"), F_OK), 0);
  assert_int_equal (access (td_test_tmp ("net-rank-1.tdtape"), F_OK), 0);
}

/* Nothing says that a rank was: rank 1's supervisor is a child of one of mpirun's. */
static void
mpirun__that_is_killed_is_named_and_no_rank (void **state)
{
  static const char code[]
      = "#include <tapedeck.h>\n#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        "static int parent_of (int pid)\n{\n"
        "  char name[64];\n  int parent = 0;\n"
        "  snprintf (name, sizeof name, \"/proc/%d/stat\", pid);\n"
        "  FILE *f = fopen (name, \"r\");\n"
        "  if (f && fscanf (f, \"%*d (%*[^)]) %*c %d\", &parent) == 1)\n    fclose (f);\n"
        "  return parent;\n}\n"
        "int main (int argc, char **argv)\n{\n"
        "  td_init (&argc, &argv);\n"
        "  TdComm *comm = td_comm_new (\"mpi\");\n"
        "  TD_ITERATIONS (i, 3)\n    td_item (td_ones (TD_F32, TD_SHAPE (1)));\n"
        "  td_comm_barrier (comm);\n"
        "  if (td_comm_rank (comm) == 1)\n"
        "    kill (parent_of (parent_of (getppid ())), SIGKILL);\n"
        "  sleep (60);\n"
        "  return td_finish ();\n}\n";
  const char *path = td_test_tmp ("orphans.c"), *folder = td_test_tmp ("lost");
  TdTestChild c;

  (void)state;
  td_test_write_file (path, code, sizeof code - 1);
  c = td_test_shell ("%s run -q -f -n 2 -o %s %s", tapedeck, folder, path);
  assert_says (&c, 137, "tapedeck: 2 ranks: mpirun was ended by signal 9 (Killed)");
  assert_null (strstr (c.err, "rank 0 has ended"));
  td_test_child_clear (&c);
  for (int rank = 0; rank < 2; rank++)
    {
      c = td_test_shell ("%s cat %s/rank-%d.tdtape", tapedeck, folder, rank);
      assert_non_null (strstr (c.out, "the run has lost mpirun"));
      td_test_child_clear (&c);
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (run_n__writes_a_folder_of_tapes_and_says_so_in_one_line),
    td_test (run_n__of_one_is_a_rank_alone),
    td_test (output__of_ranks_comes_by_whole_lines_with_the_rank_before_each),
    td_test (status__is_the_worst_of_the_ranks_and_one_line_says_whose),
    td_test (status__of_a_rank_that_leaves_is_its_own_though_the_others_fail_first),
    td_test (status__of_a_rank_that_is_told_to_end_names_it),
    td_test (mpirun__that_is_killed_is_named_and_no_rank),
    td_test (break__that_names_no_rank_is_refused_and_one_that_may_name_one_is_not),
    td_test (options__go_to_each_rank),
    td_test (tapes__that_are_there_are_kept_or_replaced_by_f),
    td_test (nonsense__is_one_line_and_status_2),
    td_test (hosts__of_this_machine_with_enough_slots_run),
    td_test (hosts__that_mpirun_refuses_are_told_in_its_words),
    td_test (rank__that_ended_well_before_is_told_with_whether_it_has_recorded_anything),
    td_test (mpirun__that_is_not_open_mpi_is_refused_in_one_line),
    td_test (rank__whose_tape_cannot_be_made_ends_all_and_is_named),
    td_test (disk__that_is_full_on_one_rank_costs_its_recording_only),
    td_test (programs__that_differ_are_an_error_on_all_ranks),
    td_test (communicator__that_cannot_be_had_says_why_where_the_program_divides_by_its_size),
    td_test (hang__is_left_as_it_is_where_that_is_asked_for),
    td_test (rank_that_computes_for_long__is_named_and_waited_for_where_that_is_asked_for),
    td_test (run_n__that_is_told_to_end_says_so_and_is_no_finding),
    td_test (hang_after__0_is_for_ever_and_nonsense_in_the_environment_an_error),
    td_test (program__that_mpirun_starts_alone_takes_its_limit_from_the_environment),
    td_test (script__of_python_has_a_tape_for_each_rank),
  };

  if (argc != 3)
    return 1;
  if (!mpi_here ())
    return 77;
  tapedeck = realpath (argv[1], tapedeck_path); /* some run elsewhere */
  model = realpath (argv[2], model_path);
  if (tapedeck == NULL || model == NULL)
    return 1;
  return cmocka_run_group_tests (tests, NULL, NULL);
}
