/* Static schedules as files of others: what their writers share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "static/entry.h"

/** Attributes of a step by name. */
double td__export_number (const TdStep *step, const char *name, double otherwise);
/** Whole numbers by name, or one; returns how many, at most room; below 0: all axes. */
int td__export_ints (const TdStep *step, const char *name, int64_t *to, int room);
/** Say whether there is an attribute of that name. */
bool td__export_has (const TdStep *step, const char *name);
/** The word of a choice, "" without one.  *Owner*: the class. */
const char *td__export_word (const TdStep *step, const char *name);
/** Is the node's array read, by a step or as a result? */
bool td__export_is_used (const TdSchedule *s, uint32_t node);
/** A name for every node: "mlp/l1/W", "input0", "v12".  *Owner*: text. */
const char *td__export_name (const TdSchedule *s, uint32_t node, char *text, size_t size);
/** The numbers of an external or constant, in host memory.  *Owner*: free; NULL after td__fail.
 */
void *td__export_numbers (const TdSchedule *s, uint32_t node, const TdSite *site);
/** The buffer of an external or constant that has its numbers in host memory, in the order of
 * its axes; NULL for others. */
const TdBuffer *td__export_host (const TdSchedule *s, uint32_t node);
/** Number i of what td__export_numbers gives. */
double td__export_at (const void *numbers, TdDtype dtype, int64_t i);
/** Is the node's array there before the call: a parameter, a constant? */
bool td__export_is_given (const TdSchedule *s, uint32_t node);

/** A file as bytes in memory: what the writers make. */
typedef struct TdExport
{
  char *bytes;
  size_t n, capacity;
} TdExport;
void td__export_print (TdExport *e, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

void td__export_bytes (TdExport *e, const void *bytes, size_t n);

/** What a function is as files. */
typedef struct TdExportOut
{
  TdStaticSaveOpt options;
  TdExport main, header, weights; /**< header and weights: NULL where there are none */
} TdExportOut;

/** The operations of a schedule that a format does not have.  All zero: none. */
typedef struct TdExportLacks
{
  uint32_t n;   /**< how many */
  char **lines; /**< each name and line once, in the order of the code: "huber_loss at
                   loss.c:12" */
  uint32_t n_lines;
} TdExportLacks;
/** One more: name, or NULL for that of the operation itself. */
void td__export_lack (TdExportLacks *lacks, const TdStep *step, const char *name);
/** Tell hear (may be NULL) of every line, and fail with as many as a message holds and the
 * number of the others: "a C program does not have huber_loss at loss.c:12, and 30 more".
 * TD_OK where there are none.  *Owner*: the lines are freed. */
TdStatus td__export_lacks_end (TdExportLacks *lacks, const char *call, const char *who,
                               const char *advice, void (*hear) (const char *line, void *user),
                               void *user, const TdSite *site);
void td__export_lacks_free (TdExportLacks *lacks);

/** The same for a step that is no operation: numbers that the code reads, code of its own that
 * runs at each call; nothing for those that a file needs not. */
void td__export_lack_outside (TdExportLacks *lacks, const TdStep *step);

TdStatus td__export_dot (const TdStatic *function, const TdSchedule *s, TdExport *to);
/** Write an ONNX model to a file; call: for messages.  A schedule may be one that only has
 * externals, constants, a forward and outputs. */
TdStatus td__export_onnx (const char *call, const char *name, const TdSchedule *s,
                          const TdOnnxOpt *options, const char *path, const TdSite *site);
/** A program and its header; name: of the file, without folder and ending. */
TdStatus td__export_c (const TdStatic *function, const TdSchedule *s, const char *name,
                       TdExportOut *out, const TdSite *site);
