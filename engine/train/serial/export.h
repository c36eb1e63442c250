/* Static schedules as files of others: what their writers share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "static/entry.h"

/** Attributes of a step by name. */
double td__export_number (const TdStep *step, const char *name, double otherwise);
/** Whole numbers by name; returns how many, at most room. */
int td__export_ints (const TdStep *step, const char *name, int64_t *to, int room);
/** A name for every node: "mlp/l1/W", "input0", "v12".  *Owner*: text. */
const char *td__export_name (const TdSchedule *s, uint32_t node, char *text, size_t size);
/** The numbers of an external or constant, in host memory.  *Owner*: free; NULL after td__fail.
 */
void *td__export_numbers (const TdSchedule *s, uint32_t node, const TdSite *site);
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

/** The operations of a schedule that a format does not have. */
typedef struct TdExportLacks
{
  uint32_t n; /**< how many */
  char
      text[300]; /**< each name and line once, as many as fit: "huber_loss at loss.c:12, ..." */
} TdExportLacks;
/** One more: name, or NULL for that of the operation itself. */
void td__export_lack (TdExportLacks *lacks, const TdStep *step, const char *name);

TdStatus td__export_dot (const TdStatic *function, const TdSchedule *s, TdExport *to);
TdStatus td__export_onnx (const TdStatic *function, const TdSchedule *s, bool custom_domains,
                          TdExport *to, const TdSite *site);
TdStatus td__export_c (const TdStatic *function, const TdSchedule *s, TdExport *to,
                       const TdSite *site);
