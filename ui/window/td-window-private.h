/* What the files of the window share: its parts and the table of its actions.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "window/td-window.h"

#include "live/td-control-client.h"
#include "live/td-import.h"
#include "live/td-recompute.h"
#include "live/td-runner.h"
#include "pages/td-workspace.h"
#include "td-session.h"

/** Conditions under which an action has something to act on. */
typedef enum
{
  TD_NEEDS_NOTHING = 0,
  TD_NEEDS_RECORDING = 1 << 0,
  TD_NEEDS_EVENTS = 1 << 1,
  TD_NEEDS_SELECTION = 1 << 2,
  TD_NEEDS_LIVE = 1 << 3,
  TD_NEEDS_RUNNING = 1 << 4,
  TD_NEEDS_PLAYABLE = 1 << 5,
  TD_NEEDS_PAST = 1 << 6,
  TD_NEEDS_FUTURE = 1 << 7,
  TD_NEEDS_STEPPABLE = 1 << 8,    /* operations, here or in another iteration, or a program */
  TD_NEEDS_NO_RECORDING = 1 << 9, /* starts on an empty window */
  TD_NEEDS_LESSON = 1 << 10,
  TD_NEEDS_LESSON_BEFORE = 1 << 11, /* it is not at its first step */
} TdActionNeeds;

/** One row of the table of window actions. */
typedef struct
{
  const char *name;
  void (*run) (TdWindow *self, const char *parameter);
  guint needs;
  gboolean takes_string;
} TdWindowAction;

/** What becomes of a file that may have had to be made into a tape: `tape` is NULL where that
 * did not work, and `why` says so in a line. */
typedef void (*TdImported) (TdWindow *self, const char *path, const char *tape,
                            const char *why);

/** Told when a tape is shown, or is not. */
typedef void (*TdLoaded) (TdWindow *self, const char *path, gboolean shown);

/** A lesson that is being shown: td-window-tour.c. */
typedef struct _TdTour TdTour;

struct _TdWindow
{
  AdwApplicationWindow parent;

  AdwToastOverlay *toasts;
  GtkStack *pages; /* start, record, picture, message, workspace */
  GtkWidget *header;
  AdwWindowTitle *title;
  GtkWidget *info_bar;
  GtkLabel *info_label;
  AdwStatusPage *message;
  GtkWidget *message_copy, *message_stop, *message_cancel, *message_again;
  GtkProgressBar *message_progress;
  char *message_details;
  GtkWidget *start_page;
  GtkWidget *record_page, *picture_page; /* once they were asked for */
  TdWorkspace *workspace;
  GtkWidget *open_button, *work_start, *work_end, *find_button, *perspectives, *live_mark;
  GtkProgressBar *progress;
  GtkDropDown *ranks; /* hidden where there is one */
  gboolean filling_ranks;

  const TdWindowAction *actions; /* the table, once it is filled */
  guint n_actions;

  TdSession *session;
  gint64 started;             /* when the program was; 0: nobody waits for it */
  int waited;                 /* seconds that the page says */
  gint64 next_poll, last_cpu; /* microseconds; see poll_session */
  TdProgramState last_state;  /* that the window has reacted to */
  guint poll;                 /* the timer that reads what the tape gained */

  TdNotebook *notebook;  /* of the recording; NULL: none can be kept */
  TdTour *tour;          /* the lesson that is being shown, if any */
  int lesson_step;       /* where it is, from 0 on; -1: there is none */
  TdRunner *runner;      /* the supervisor this window started, if any */
  TdJob *recompute;      /* an iteration that is run again, if any */
  GCancellable *loading; /* a tape that is read by a worker, if any */
  TdLoaded loaded;       /* told when it is */
  TdJob *import;         /* a file that is made into a tape, if any */
  char *import_path;     /* that file; the last one until there is another */
  TdImported imported;   /* told when it is */
  GtkWidget
      *import_from; /* the page that the progress of either hides; NULL: it is not shown yet */
  gboolean import_shown;    /* it was, until its file was given on */
  guint importing;          /* the source that shows it, 0: none */
  guint renewing_help;      /* the source that does, 0: none */
  TdControlClient *control; /* the connection to it, if any */
  guint asking_cost;        /* the source that asks what recording costs, 0: none */
  guint connecting;         /* the source that tries to connect again, 0: none */
  guint clearing;           /* that which keeps all runs to their budget, 0: none */
  GtkWidget *panel;         /* that had the keyboard last, outside menus; weak, or NULL */
  guint n_connects;
  guint playing;         /* timer that plays a recording */
  GPtrArray *own_breaks; /* texts of the breakpoints this window has set */
  char *stop;            /* the breakpoint that the program was started with; NULL: none */
  gint64 once;           /* the breakpoint of a run to the cursor; 0: none */
  int play_direction;    /* 1 or -1 */
  gboolean level_low;    /* `record` lowered the level */
  gboolean may_close;    /* the user has said what becomes of the program */
  char **launch_env;
  char *launch_dir;
};

/** Add every action of the table and the three read-only states to the window. */
void td__window_add_actions (TdWindow *self);

/** Enable what has something to act on now, disable the rest. */
void td__window_update_actions (TdWindow *self);

/** Return what a state of the program is called in the title and in "state". */
const char *td__window_state_name (TdProgramState state);
/** Return what an event is a part of: forward, backward, update, or a memory snapshot. */
const char *td__window_phase_name (TdIteration *iteration, gint event);

/** Set the read-only state `name` (state, moment, selected). */
void td__window_set_state (TdWindow *self, const char *name, const char *value);

/** Show a line above the page until it is closed or no longer holds. */
void td__window_show_info (TdWindow *self, GtkMessageType type, const char *text);

/** Show a line for a few seconds. */
void td__window_toast (TdWindow *self, const char *text);

/** Write name, moment and state into the header bar. */
void td__window_update_title (TdWindow *self);

/** Stop playing a recording. FALSE: nothing was playing. */
gboolean td__window_stop_playing (TdWindow *self);

/** The keyboard has gone elsewhere: remember the picture or table that has it. */
void td__window_note_focus (TdWindow *self);

/** Ask from now on what recording costs, until the connection ends; ask no more. */
void td__window_ask_cost (TdWindow *self);
void td__window_end_cost (TdWindow *self);

/** Send one command to the program; an error it answers becomes a toast. */
void td__window_send (TdWindow *self, const char *command);

/** Set a breakpoint of this window's own. */
void td__window_break (TdWindow *self, const char *text);

/** Take the breakpoint `text` back if the program has it, else set it. */
void td__window_toggle_break (TdWindow *self, const char *text);

/** Let the program run until the breakpoint `text`, which holds once. */
void td__window_run_to (TdWindow *self, const char *text);

/** Take the breakpoint of td__window_run_to back: the program has stopped. */
void td__window_end_run_to (TdWindow *self);

/** Take this window's breakpoints back, let the program run and close the connection; the app
 * stays until the program has heard it. */
void td__window_let_go (TdWindow *self);

/** Start a program and show what comes of it. */
void td__window_start (TdWindow *self, const TdRunOptions *options);

/** Read what the tape gained, ten times a second. */
void td__window_look_on (TdWindow *self);

/** Connect to the socket at `address`. */
void td__window_connect (TdWindow *self, const char *address);
/** Close that connection; what was asked and not answered is answered with nothing. */
void td__window_disconnect (TdWindow *self);

/** Open the tape of the program that the window is connected to. */
void td__window_open_attached (TdWindow *self, GFile *tape);

/** Ask what becomes of a running program. FALSE: there is none, the window may close. */
gboolean td__window_ask_to_close (TdWindow *self);

/* The verbs of the transport and of attaching, for the table of actions. */
void td__run_play (TdWindow *self, const char *parameter);
void td__run_pause (TdWindow *self, const char *parameter);
void td__run_play_pause (TdWindow *self, const char *parameter);
void td__run_continue_back (TdWindow *self, const char *parameter);
void td__run_step_op (TdWindow *self, const char *parameter);
void td__run_reverse_step_op (TdWindow *self, const char *parameter);
void td__run_step_over (TdWindow *self, const char *parameter);
void td__run_reverse_step_over (TdWindow *self, const char *parameter);
void td__run_step_into (TdWindow *self, const char *parameter);
void td__run_reverse_step_into (TdWindow *self, const char *parameter);
void td__run_step_out (TdWindow *self, const char *parameter);
void td__run_reverse_step_out (TdWindow *self, const char *parameter);
void td__run_next_iteration (TdWindow *self, const char *parameter);
void td__run_previous_iteration (TdWindow *self, const char *parameter);
void td__run_first_event (TdWindow *self, const char *parameter);
void td__run_last_event (TdWindow *self, const char *parameter);
void td__run_next_anomaly (TdWindow *self, const char *parameter);
void td__run_previous_anomaly (TdWindow *self, const char *parameter);
void td__run_to_cursor (TdWindow *self, const char *parameter);
void td__run_to_loss (TdWindow *self, const char *parameter);
void td__run_to_backward (TdWindow *self, const char *parameter);
void td__run_to_update (TdWindow *self, const char *parameter);
void td__run_follow (TdWindow *self, const char *parameter);
void td__run_toggle_breakpoint (TdWindow *self, const char *parameter);
void td__run_record (TdWindow *self, const char *parameter);
void td__run_set_level (TdWindow *self, const char *parameter);
void td__run_verify_static (TdWindow *self, const char *parameter);
void td__run_dynamically (TdWindow *self, const char *parameter);
void td__run_statically (TdWindow *self, const char *parameter);
void td__run_range (TdWindow *self, const char *parameter);
void td__run_range_from_here (TdWindow *self, const char *parameter);
void td__run_range_to_here (TdWindow *self, const char *parameter);
void td__run_clear_range (TdWindow *self, const char *parameter);
void td__run_next_function (TdWindow *self, const char *parameter);
void td__run_previous_function (TdWindow *self, const char *parameter);
void td__run_next_schedule (TdWindow *self, const char *parameter);
void td__run_previous_schedule (TdWindow *self, const char *parameter);
void td__run_where_from (TdWindow *self, const char *parameter);
void td__run_where_used (TdWindow *self, const char *parameter);
void td__run_path (TdWindow *self, const char *parameter);
void td__run_twin (TdWindow *self, const char *parameter);
void td__run_go_to (TdWindow *self, const char *parameter);
void td__run_break_when (TdWindow *self, const char *parameter);
void td__run_copy_link (TdWindow *self, const char *parameter);
void td__run_go_to_place (TdWindow *self, const char *parameter);
void td__run_save_copy (TdWindow *self, const char *parameter);
void td__run_rank (TdWindow *self, const char *parameter);
void td__run_next_rank (TdWindow *self, const char *parameter);
void td__run_previous_rank (TdWindow *self, const char *parameter);
void td__run_attach (TdWindow *self, const char *parameter);
void td__run_detach (TdWindow *self, const char *parameter);

void td__run_compare (TdWindow *self, const char *parameter);
void td__run_compare_with (TdWindow *self, const char *parameter);
void td__run_compare_by (TdWindow *self, const char *parameter);
void td__run_compare_iteration (TdWindow *self, const char *parameter);
void td__run_compare_recording (TdWindow *self, const char *parameter);
void td__run_compare_previous (TdWindow *self, const char *parameter);
void td__run_compare_next (TdWindow *self, const char *parameter);
void td__run_next_difference (TdWindow *self, const char *parameter);
void td__run_previous_difference (TdWindow *self, const char *parameter);
void td__run_toggle_numbers (TdWindow *self, const char *parameter);
void td__run_note (TdWindow *self, const char *parameter);
void td__run_watch (TdWindow *self, const char *parameter);
void td__run_lesson_compare (TdWindow *self, const char *parameter);
void td__run_lesson (TdWindow *self, const char *name);
void td__run_lesson_next (TdWindow *self, const char *parameter);
void td__run_lesson_back (TdWindow *self, const char *parameter);
void td__run_lesson_close (TdWindow *self, const char *parameter);
void td__run_copy_differences (TdWindow *self, const char *parameter);
void td__run_slice (TdWindow *self, const char *parameter);
void td__run_evaluate (TdWindow *self, const char *parameter);
void td__run_copy_values (TdWindow *self, const char *parameter);
void td__run_recompute (TdWindow *self, const char *parameter);
/** The window of keys: made with the window, and gone before it. */
void td__window_add_help (TdWindow *self);
void td__window_drop_help (TdWindow *self);
/** The keys of the page that has the keyboard. */
void td__run_page_keys (TdWindow *self, const char *parameter);
void td__run_cancel_recompute (TdWindow *self, const char *parameter);
/** Whatever comes of it is no longer for this window. */
void td__window_forget_recompute (TdWindow *self);
/** Tell `done` of the tape of a file: the file itself, or one that a process of its own makes
 * of it. What takes over a second is on show, with its progress. */
void td__window_import (TdWindow *self, const char *path, TdImported done);
/** As above. */
void td__window_forget_import (TdWindow *self);
/** Show that the file `import_path` is being opened, and what is done with it; then what was on
 * show before. */
void td__window_show_opening (TdWindow *self, const char *doing);
void td__window_hide_opening (TdWindow *self);
void td__run_cancel_import (TdWindow *self, const char *parameter);
void td__run_import_again (TdWindow *self, const char *parameter);
void td__run_save_values (TdWindow *self, const char *path);
void td__run_export_values (TdWindow *self, const char *parameter);

/** Open what was written down about the session's recording. */
void td__window_open_notebook (TdWindow *self);
/** Write a note at the playhead; "" takes it away. FALSE: it was not kept, which a line says.
 */
gboolean td__window_write_note (TdWindow *self, const char *text);

/** Save both pictures of the compare page as NAME-a and NAME-b. Errors: one line. */
gboolean td__window_save_compare (TdWindow *self, const char *format, const char *path,
                                  GError **error);

/** Ask the program for the values of a variable and show them in the inspector. */
void td__window_read_live (TdInspector *inspector, guint64 id, TdWindow *self);
/** Read an array of the live program for the line that is evaluated. */
void td__window_read_to_evaluate (TdEvaluatePage *page, guint64 id, TdWindow *self);

/* More values than any heat map shows; larger tensors are cut, and the scene says so. */
#define TD_READ_MAX_BYTES (4u << 20)
/** Make a tensor of an answer and the descriptor that came with it; NULL: it is none. Owner:
 * the caller. */
TdTensor *td__window_take_tensor (JsonObject *answer, int fd);
/** Ask the program which fused group it stands at (k is -1), or what member k leaves. */
void td__window_look_inside (TdInsidePage *page, int k, guint token, TdWindow *self);

/** Open a recording and show it. FALSE: it cannot be read, which the message page then says. */
gboolean td__window_open_tape (TdWindow *self, const char *path);
/** Have all pages follow a session of the tape `path`, or show why there is none. FALSE: there
 * is none. Then show what it begins with. */
gboolean td__window_take_session (TdWindow *self, const char *path, TdSession *session,
                                  const GError *error);
void td__window_show_session (TdWindow *self);

/** Open a tape as td__window_open_tape () does, a large one by a worker; `path` is what the
 * user opened. */
void td__window_load (TdWindow *self, const char *path, const char *tape, TdLoaded done);
/** Forget a tape that is read: nobody is told. */
void td__window_forget_load (TdWindow *self);

/** Open a folder of recordings of ranks, on the first of them and the page that compares them.
 * FALSE: there are none, which the message page then says. */
gboolean td__window_open_ranks (TdWindow *self, const char *folder);
/** Return which rank the recording on show is of, and how many there were; 0: no recording. */
guint td__window_get_rank (TdWindow *self);
guint td__window_get_n_ranks (TdWindow *self);
/** Make the list of ranks of the header bar; show in it what is on show. */
GtkWidget *td__window_new_rank_list (TdWindow *self);
void td__window_update_rank_list (TdWindow *self);

/** Copy the recording to `path` in a thread; a line says how that went. */
void td__window_save_copy (TdWindow *self, const char *path);

typedef void (*TdWindowSave) (TdWindow *self, const char *path);
/** Ask for a file, `name` by default, and save there, if there is a recording then. */
void td__window_ask_where (TdWindow *self, const char *title, const char *name,
                           TdWindowSave save);

/** Go to what somebody typed: an iteration's number, a link, words. FALSE: there is no such. */
gboolean td__window_go_to_text (TdWindow *self, const char *text);

/** Show the program's breakpoints on their page, if that is on show. */
void td__window_list_breaks (TdWindow *self);
/** Let that page ask the program. */
void td__window_connect_breaks (TdWindow *self);

/** The link to the moment on show and what is selected there. Owner: the caller. */
char *td__window_dup_link (TdWindow *self);

/** Put a recording on the desktop's list of recent files. */
void td__window_remember (GFile *file);
