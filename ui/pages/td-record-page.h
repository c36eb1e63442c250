/* The page on which a recording is prepared: program, arguments, how much is recorded, where it
 * stops. Remembers what was started last. SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "live/td-runner.h"

#define TD_TYPE_RECORD_PAGE (td_record_page_get_type ())
G_DECLARE_FINAL_TYPE (TdRecordPage, td_record_page, TD, RECORD_PAGE, AdwBin)

/** The fields of the page, from top to bottom; Detail and Device are lists. */
typedef enum
{
  TD_RECORD_PROGRAM,
  TD_RECORD_ARGUMENTS,
  TD_RECORD_DIRECTORY,
  TD_RECORD_ENVIRONMENT,
  TD_RECORD_BUDGET,
  TD_RECORD_RATE,
  TD_RECORD_STOP,
  TD_RECORD_ITERATIONS,
  TD_RECORD_SEED,
  TD_RECORD_KEYFRAMES,
  TD_N_RECORD_FIELDS
} TdRecordField;

/** Create the page, filled as it was left last. Emits "start" once what stands in it can be
 * started. Owner: floating. */
GtkWidget *td_record_page_new (void);

/** Say what programs inherit: environment (NULL: the app's own), and the folder that relative
 * paths start in (NULL: the user's home). */
void td_record_page_set_launch (TdRecordPage *self, const char *const *environment,
                                const char *directory);

/** Return what is to be run, as of the last "start". Owner: the page, until the next. */
const TdRunOptions *td_record_page_get_options (TdRecordPage *self);

/** Read and write a field, choose in the lists (-1 leaves a list), press Start. For tests. */
const char *td_record_page_get_text (TdRecordPage *self, TdRecordField field);
void td_record_page_set_text (TdRecordPage *self, TdRecordField field, const char *text);
void td_record_page_choose (TdRecordPage *self, int level, int device);
void td_record_page_start (TdRecordPage *self);

/** Return the line that says what is wrong, "" when nothing is. Owner: the page. */
const char *td_record_page_get_error (TdRecordPage *self);

/** Return the command line that does the same in a terminal. Owner: the page. */
const char *td_record_page_get_command (TdRecordPage *self);
