/* `tapedeck serve`: what its files share.
 *
 * Threads: those of libmicrohttpd read requests, check them and write answers, what is large of
 * that some others; the first thread of the program owns the engine, loads models and runs
 * them; one more waits for signals and looks after clients that are slow.  A request goes from
 * the first to the engine's through the queue, and back by waking its connection.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "json.h"
#include "tapedeck.h"

#include <stdatomic.h>

/** The command line. */
typedef struct TdServeOptions
{
  const char *model, *host, *record;
  uint64_t port;
  uint64_t batch;       /**< rows that are gathered at most */
  uint64_t deadline_ms; /**< that the first of them waits for others */
  uint64_t max_body;    /**< bytes */
  uint64_t queue;       /**< requests that wait, at most */
  uint64_t timeout_ms;  /**< to send a request, to wait, to take an answer */
  uint64_t connections;
  uint64_t threads; /**< of HTTP */
  uint64_t record_slow_ms;
  bool records_slow, help;
} TdServeOptions;

/** Fill in from the arguments, argv[0] the command's name.  Returns TD_EXIT_OK or the exit
 * code, with what is wrong said. */
int td_serve_options (TdServeOptions *o, int argc, char **argv);

uint64_t td_serve_now_ns (void);

/* --- arrays (serve-arrays.c) ---------------------------------------------------------------
 */

enum
{
  TD_SERVE_MOST_PORTS = 64,
  TD_SERVE_WHY = 640
};

/** An array in host memory; f16 and bf16 go over the wire as f32. */
typedef struct TdServeArray
{
  TdDtype dtype;
  TdShape shape;
  void *data;
  size_t bytes;
} TdServeArray;

/** What goes into a model and comes out. */
typedef struct TdServePorts
{
  int n_in, n_out;
  int n_needed; /**< inputs that have no default; they come first */
  TdOnnxInfo in[TD_SERVE_MOST_PORTS],
      out[TD_SERVE_MOST_PORTS]; /**< *Owner* of names: the link */
} TdServePorts;

/** What a request or an answer is written in. */
typedef enum
{
  TD_SERVE_JSON,
  TD_SERVE_NPY,
  TD_SERVE_N_FORMS
} TdServeForm;

/** Write one line to why, of TD_SERVE_WHY bytes; returns false. */
bool td_serve_refuse (char *why, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
/** The element type of the wire. */
TdDtype td_serve_wire (TdDtype dtype);
int64_t td_serve_elements (const TdShape *shape);
/** "(?, 784)"; ndim -1: "(...)". */
const char *td_serve_shape_text (int ndim, const int64_t *dim, char *text, size_t size);
/** Does an array fit the input?  False: why. */
bool td_serve_fits (const TdOnnxInfo *port, const TdServeArray *a, char *why);
/** Sizes that have one name in the model are one size in a request, whose arrays fit? */
bool td_serve_sizes_agree (const TdOnnxInfo *ports, const TdServeArray *arrays, int n,
                           char *why);
/** Rows along the first axis that all n arrays have; 0: they differ, or have none. */
int64_t td_serve_rows (const TdServeArray *arrays, int n);
/** The rows of what a request gives; 0: it has none, or gives what may be left out. */
int64_t td_serve_rows_given (const TdServePorts *p, const TdServeArray *in);
void td_serve_clear (TdServeArray *arrays, int n);

/** Read the inputs of a request.  *Owner* of what is in `in`: the caller, td_serve_clear (),
 * also after a failure.  False: why. */
typedef bool (*TdServeRead) (const TdServePorts *p, const char *body, size_t n,
                             TdServeArray *in, char *why);
/** Write outputs.  *Owner*: the caller, free ().  NULL: no memory. */
typedef char *(*TdServeWrite) (const TdServePorts *p, const TdServeArray *out, size_t *n);

bool td_serve_json_read (const TdServePorts *p, const char *body, size_t n, TdServeArray *in,
                         char *why);
char *td_serve_json_write (const TdServePorts *p, const TdServeArray *out, size_t *n);
bool td_serve_npy_read (const TdServePorts *p, const char *body, size_t n, TdServeArray *in,
                        char *why);
char *td_serve_npy_write (const TdServePorts *p, const TdServeArray *out, size_t *n);

/** The forms, by TdServeForm. */
typedef struct TdServeFormRow
{
  const char *type; /**< of the content */
  TdServeRead read;
  TdServeWrite write;
} TdServeFormRow;
extern const TdServeFormRow td_serve_forms[TD_SERVE_N_FORMS];

/* --- models (serve-model.c, serve-gather.c): the engine's thread
 * ------------------------------ */

/** May requests be gathered? */
typedef enum
{
  TD_SERVE_GATHERS_UNKNOWN, /**< to be tried at the first that could be */
  TD_SERVE_GATHERS,
  TD_SERVE_GATHERS_NOT
} TdServeGathers;

/** When gathered calls are held against requests alone. */
typedef struct TdServeCheck
{
  uint64_t n_calls, next, gap; /**< gathered ones; that is held, and its gap */
  double least[TD_SERVE_MOST_PORTS],
      most[TD_SERVE_MOST_PORTS]; /**< of the inputs that were held so far */
} TdServeCheck;

typedef struct TdServeModel
{
  TdLink *link;
  TdServePorts ports;
  _Atomic int gathers;      /**< a TdServeGathers */
  const char *why_not;      /**< with TD_SERVE_GATHERS_NOT; set before it */
  _Atomic uint64_t n_tried; /**< requests that were run gathered and alone */
  TdServeCheck check;
  /* Under the queue's lock: */
  int refs;
  struct TdServeModel *older; /**< replaced, and still some request's */
} TdServeModel;

/** Load a file.  NULL: why, and nothing has changed; "": it has been said on stderr. */
TdServeModel *td_serve_model_load (const char *path, char *why);
void td_serve_model_free (TdServeModel *m);
/** Run it.  *Owner* of what is in `out`: the caller, td_serve_clear ().  Returns 200, or the
 * status of the answer with why. */
int td_serve_model_call (TdServeModel *m, uint64_t label, const char *note,
                         const TdServeArray *in, TdServeArray *out, char *why);

/* --- requests ------------------------------------------------------------------------------
 */

struct MHD_Connection;

typedef struct TdServeRequest
{
  struct TdServeRequest *next; /**< in the queue */
  struct MHD_Connection *connection;
  struct TdServeConnection *client;
  const struct TdServeRoute *route;
  void (*job) (struct TdServeRequest *r); /**< what a thread that works has to do */
  uint64_t number;
  TdServeModel *model; /**< that its inputs were checked for; NULL: not yet */
  TdServeArray in[TD_SERVE_MOST_PORTS], out[TD_SERVE_MOST_PORTS];
  TdServeForm form, answer;
  char *body, *text; /**< text: of the answer, if it has been written already */
  size_t n_body, room, array_bytes, n_text;
  const char *target; /**< what is asked for, as it came */
  size_t n_target;
  bool is_target_odd;
  int status; /**< of the answer; 0: not known */
  char why[TD_SERVE_WHY];
  const char *allow; /**< methods, with status 405 */
  bool began, record;
  bool closes;       /**< its connection, with the answer */
  bool is_ours;      /**< its connection is suspended, or was: what comes is the answer */
  int64_t iteration; /**< on the tape, -1: none */
  uint64_t line_ns, queued_ns, began_ns, ended_ns;
} TdServeRequest;

/* --- the queue (serve-queue.c) ---------------------------------------------------------------
 */

/** Borrow the newest model, kept until td_serve_model_unref. */
TdServeModel *td_serve_model_ref (void);
void td_serve_model_unref (TdServeModel *m);
/** Take the place of the newest model.  The engine's thread. */
void td_serve_model_swap (TdServeModel *m);
/** Free models that nobody has any more.  The engine's thread. */
void td_serve_models_collect (void);

/** Put a request into the queue; its connection must be suspended.  False: it is full, or there
 * is no more to come: status and why of the request say so. */
bool td_serve_queue_put (TdServeRequest *r, uint64_t most);
uint64_t td_serve_queue_length (void);
/** No request may come any more. */
void td_serve_queue_close (void);
/** Wake the engine's thread. */
void td_serve_queue_wake (void);
/** Take what can run together, `rows` at most, the first of which waits for others; at most
 * `most` requests.  0: nothing came; somebody woke the thread. */
int td_serve_queue_take (TdServeRequest **batch, int most, const TdServeOptions *o);

/* --- running (serve-run.c, serve-check.c, serve-close.c) -----------------------------------
 */

/** Run a batch: every request has its answer.  Returns whether it was one call. */
bool td_serve_run (TdServeRequest **batch, int n);
/** Try whether rows of one call are computed for themselves; sets m->gathers.  With the inputs
 * of a request. */
void td_serve_try_gathering (TdServeModel *m, const TdServeArray *in);
/** Begin to hold gathered calls of a model against requests alone, now and then. */
void td_serve_check_begin (TdServeModel *m);
/** Is this gathered call, which has its answers, to be held against requests alone?  How many
 * of them: all where numbers come in that are beyond those of all calls that were held, one of
 * every n-th call besides, 0 else. */
int td_serve_check_wants (TdServeModel *m, TdServeRequest *const *batch, int n);
/** Run `wanted` of them alone.  False: the answers are others; gathering ends, which is said.
 */
bool td_serve_check_holds (TdServeModel *m, TdServeRequest *const *batch, int n, int wanted);
/** Element i of an array of the wire. */
double td_serve_element (const TdServeArray *a, size_t i);
/** How large the outputs of a batch are, for each output and each place along its axes. */
typedef struct TdServeSizes
{
  double *of[TD_SERVE_MOST_PORTS];
} TdServeSizes;
/** Of the answers of n requests.  *Owner*: the caller, td_serve_sizes_clear ().  False: no
 * memory. */
bool td_serve_sizes_of (TdServeSizes *sizes, TdServeRequest *const *batch, int n);
void td_serve_sizes_clear (TdServeSizes *sizes);
/** Are the n outputs a of a request the same as b, its part of that batch, up to how sums of
 * other lengths are rounded? */
bool td_serve_are_close (const TdServeArray *a, const TdServeArray *b,
                         const TdServeSizes *sizes, int n);
/** Put the inputs of n requests behind each other, along the first axis.  False: no memory. */
bool td_serve_gather (TdServeRequest *const *batch, int n, TdServeArray *in);
/** Hand out the rows of the outputs.  False: they are not as many as went in. */
bool td_serve_scatter (TdServeRequest *const *batch, int n, const TdServeArray *out);

/* --- recording (serve-record.c) ------------------------------------------------------------
 */

/** Have the engine record to o->record, before td_init.  False, said on stderr: it cannot be.
 */
bool td_serve_record_begin (const TdServeOptions *o);
bool td_serve_records (void);
/** Behind td_init: say what runs, by the arguments from the command's name on; nothing more is
 * recorded until a request is. */
void td_serve_record_ready (int argc, char **argv);
/** td_serve_model_load, with its parameters on the tape, and the name of the one that it
 * replaces; old NULL: none. */
TdServeModel *td_serve_record_load (const char *path, TdServeModel *old, char *why);
/** td_serve_model_free, on the tape too. */
void td_serve_record_free (TdServeModel *m);
/** Run a request and record it.  Returns what td_serve_model_call does. */
int td_serve_record_call (TdServeRequest *r);
/** Keep what a batch was given if it took long, and none was kept lately. */
void td_serve_slow_keep (TdServeRequest *const *batch, int n, bool gathered,
                         const TdServeOptions *o);
/** Run what was kept once more, recorded. */
void td_serve_slow_record (void);
/** Before td_finish. */
void td_serve_record_end (void);

/* --- work (serve-work.c) -------------------------------------------------------------------
 */

/** Begin the threads.  False, said on stderr. */
bool td_serve_work_begin (const TdServeOptions *o);
/** Have a job done, which gives the request away.  False: the caller is to do it, it is small,
 * or the threads have ended.  *Units*: bytes, to be read or written. */
bool td_serve_work_put (TdServeRequest *r, size_t bytes, void (*job) (TdServeRequest *r));
/** Do what is there, and end. */
void td_serve_work_end (void);

/* --- HTTP (serve-http.c, serve-frame.c, serve-headers.c, serve-routes.c, serve-clients.c,
 * serve-linger.c) ----------------------------------------------------------------------------
 */

/** What there is, by method and path. */
typedef struct TdServeRoute
{
  const char *path, *method;
  const char *type;          /**< of what text makes */
  char *(*text) (size_t *n); /**< *Owner*: the caller, free (); NULL: it is /predict */
} TdServeRoute;
/** The route of a request; NULL: status and why of the answer, and *allow: the methods that
 * there are instead. */
const TdServeRoute *td_serve_route (const char *method, const char *target, int *status,
                                    char *why, const char **allow);
/** Look at what is asked for, as it came.  *Owner* of target: the connection. */
void td_serve_take_target (TdServeRequest *r, const char *target);
/** Is it said in one way where the request's head and body end?  False: status and why of the
 * answer, behind which the connection must be closed.  method, version: as libmicrohttpd gives
 * them, where they came; "HTTP/1.1". */
bool td_serve_frame (TdServeRequest *r, const char *method, const char *version, int *status,
                     char *why);
/** Came headers behind its chunks?  Where these end cannot be told for sure. */
bool td_serve_has_trailer (const TdServeRequest *r);
/** A header, or NULL.  *Owner*: the connection. */
const char *td_serve_header (const TdServeRequest *r, const char *name);
/** Find the form of a content type.  False: it is none of them. */
bool td_serve_take_form (const char *text, TdServeForm *form);
/** The form in which the client wants its answer, by its header Accept; as it sent if it wants
 * that as much, or none of those there are. */
TdServeForm td_serve_accepted (const TdServeRequest *r);
/** Say where the model came from, for /model. */
void td_serve_routes_begin (const TdServeOptions *o);

/** Begin to listen, and say where.  False, said on stderr. */
bool td_serve_http_begin (const TdServeOptions *o);
/** Take no more connections. */
void td_serve_http_quiesce (void);
void td_serve_http_end (void);
/** A request has its status: wake its connection. */
void td_serve_answer (TdServeRequest *r);

/** What a connection is doing. */
typedef enum
{
  TD_CLIENT_NEW,       /**< nothing came yet */
  TD_CLIENT_IDLE,      /**< between two requests */
  TD_CLIENT_RECEIVING, /**< a request has begun */
  TD_CLIENT_WORKING,   /**< it is in the queue, or runs */
  TD_CLIENT_SENDING,   /**< the answer is on its way */
  TD_CLIENT_DROPPED
} TdClientState;

enum
{
  TD_MOST_LINGER = 64
};

struct pollfd;

typedef struct TdServeConnection
{
  struct TdServeConnection *before, *after;
  int fd;
  _Atomic int state;
  _Atomic bool has_head; /**< while it receives: the headers came whole */
  _Atomic uint64_t since_ns;
  bool lingers;       /**< it may still send when its connection is closed */
  _Atomic int status; /**< that the request will be answered with whatever else comes; 0 */
} TdServeConnection;

TdServeConnection *td_client_new (int fd);
void td_client_free (TdServeConnection *c);
/** Go over from one state to another.  False: it is not in the first, and was dropped. */
bool td_client_go (TdServeConnection *c, TdClientState from, TdClientState to);
/** Drop those that take longer than they may; when `most` are there, also those that have had
 * no request for a second. */
void td_clients_look (uint64_t timeout_ms, uint64_t most);
/** The server stops: drop those whose headers have not come whole, with `bodies` those whose
 * body has not, and with `answers` those that have not taken their answer. */
void td_clients_stop (bool bodies, bool answers);
/** The connection is closed with an answer that its client may not have read: read what it
 * sends for a while, and forget it. */
void td_linger_begin (int fd);
/** Fill in what to wait for, TD_MOST_LINGER at most.  Returns how many.  One thread. */
int td_linger_polls (struct pollfd *p);
/** Read from those n, which were waited for, and close the ones that have ended. */
void td_linger_read (const struct pollfd *p, int n);
void td_linger_end (void);
/** How many there are, and how many of them have a request under way. */
void td_clients_count (int *n, int *n_busy);

/* --- signals (serve-signals.c) -------------------------------------------------------------
 */

bool td_serve_signals_begin (const TdServeOptions *o);
void td_serve_signals_end (void);
bool td_serve_stops (void);
/** Was it told twice to stop? */
bool td_serve_hurries (void);
/** Was a reload asked for since the last call? */
bool td_serve_reload_wanted (void);

/* --- metrics (serve-metrics.c) -------------------------------------------------------------
 */

typedef enum
{
  TD_SERVE_RELOADS,
  TD_SERVE_RELOADS_FAILED,
  TD_SERVE_RECORDED,
  TD_SERVE_BATCHES,
  TD_SERVE_DROPPED, /**< clients that were too slow */
  TD_SERVE_HELD,
  TD_SERVE_DIFFERED,
  TD_SERVE_N_COUNTERS
} TdServeCounter;

typedef enum
{
  TD_SERVE_SECONDS_REQUEST,
  TD_SERVE_SECONDS_WAIT,
  TD_SERVE_SECONDS_MODEL,
  TD_SERVE_BATCH_REQUESTS,
  TD_SERVE_N_HISTOGRAMS
} TdServeHistogram;

void td_serve_count (TdServeCounter counter);
void td_serve_count_status (int status);
/** *Units*: seconds, or requests. */
void td_serve_observe (TdServeHistogram histogram, double value);
/** Prometheus' text format 0.0.4.  *Owner*: the caller, free ().  NULL: no memory. */
char *td_serve_metrics_text (size_t *n);
