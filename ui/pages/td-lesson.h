/* A lesson: steps that are read from a file, each with what it points at, what is done when it
 * begins and what the user is to do. `data/README.md` says how such a file looks.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

/** What the user is to do before a step is done; `td_lesson_deed_names` says them in a file. */
typedef enum
{
  TD_DEED_NONE,
  TD_DEED_OPERATION, /* the playhead on an operation of that name */
  TD_DEED_EVENT,     /* the playhead on the event of that number */
  TD_DEED_ITERATION, /* the playhead in that iteration */
  TD_DEED_PHASE,     /* the playhead in forward, backward or update */
  TD_DEED_BACK,      /* the playhead so many events before where it was */
  TD_DEED_SELECTED,  /* something of that name is selected */
  TD_DEED_PAGE,      /* that page is on show */
  TD_N_DEEDS
} TdLessonDeed;

typedef struct
{
  char *title, *text;
  char *recording; /* the tape it is about */
  char *page;      /* PAGE or PAGE/PICTURE that it brings to the front; NULL: none */
  char **actions;  /* detailed names, done when it begins */
  char *target;    /* what it points at: playhead, an action, or the name of a widget */
  TdLessonDeed deed;
  char *what;    /* the deed's argument */
  char *done;    /* said after the deed */
  char **claims; /* PHRASE = FACT, which tests hold against the tape */
} TdLessonStep;

typedef struct
{
  char *name; /* of the file, without its number and ending */
  char *title, *summary, *picture;
  char *needs; /* the recording without which it is not listed; NULL: it is in any case */
  TdLessonStep *steps;
  guint n_steps;
} TdLesson;

/** Read a lesson. Owner: the caller. Errors: NULL, and one line that names file and place. */
TdLesson *td_lesson_load (const char *path, GError **error);
void td_lesson_free (TdLesson *lesson);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdLesson, td_lesson_free)

/** Return the files of all lessons of this installation or build tree, in their order. Owner:
 * the caller. */
char **td_lesson_list_files (void);

/** Read the lesson of that name. Owner: the caller. Errors: as td_lesson_load, and one line
 * where there is none such. */
TdLesson *td_lesson_find (const char *name, GError **error);

/** Return the path of a recording of the lessons. Owner: the caller; NULL: it is not installed.
 */
char *td_lesson_find_recording (const char *name);

/** What a file calls the deeds. */
extern const char *const td_lesson_deed_names[TD_N_DEEDS];
