/* The commands of `tapedeck`: one file each, one row each in main.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Exit codes of API.md. */
enum
{
  TD_EXIT_OK = 0,
  TD_EXIT_FINDING = 1,
  TD_EXIT_USAGE = 2,
  TD_EXIT_BREAK = 3,
  TD_EXIT_NOT_EXECUTABLE = 126,
  TD_EXIT_NOT_FOUND = 127
};

/* argv[0] is the command's own name. */
int td_command_run (int argc, char **argv);
int td_command_info (int argc, char **argv);
int td_command_cat (int argc, char **argv);
int td_command_eval (int argc, char **argv);      /* in tapedeck-eval */
int td_command_recompute (int argc, char **argv); /* the same */
int td_command_onnx_info (int argc, char **argv); /* the same */
int td_command_onnx_run (int argc, char **argv);  /* the same: argv[0] is the model */
int td_command_export (int argc, char **argv);
int td_command_import (int argc, char **argv);
int td_command_check (int argc, char **argv);

/** Replace arguments that are snapshots by the tapes made of them, which are kept in the user's
 * cache; returns the exit code of the first that cannot be read. */
int td_import_arguments (int argc, char **argv);

/** Do both names lead to one file that is there? */
bool td_same_file (const char *a, const char *b);

/** Is what follows this option the name of an output: -o, --repair? */
bool td_names_output (const char *option);

/** Refuse arguments, argv[0] the command's name, that name a file both for reading and for
 * writing (-o, --repair); returns TD_EXIT_OK or the exit code. */
int td_refuse_own_input (int argc, char **argv);

/** What is written to `out` is a tape, which goes to no terminal or pipe: refuse "-". */
int td_refuse_standard_output (const char *command, const char *option, const char *out);

/** Print "tapedeck: ..." and, where there is one, a line of advice; returns TD_EXIT_USAGE. */
int td_usage_error (const char *command, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/** Does that name an ONNX model? */
bool td_is_onnx (const char *name);

/** Write the path of another program of this installation or build tree to `out`.  *Errors*:
 * false; a line has been printed. */
bool td_find_helper (const char *name, char *out, unsigned long size);

/** Execute another program of this installation or build tree; returns only when that fails,
 * with the exit code. */
int td_exec_helper (const char *name, char *const argv[]);

/** Write the folder of this executable (without a slash at its end) to `out`. */
bool td_own_folder (char *out, unsigned long size);

/** Be a program's main: `run` begins with what a caller may have left undone (closed
 * descriptors, ignored signals) made up for, and standard output that could not be written is
 * an error. */
int td_command_main (int argc, char **argv, int (*run) (int argc, char **argv));
