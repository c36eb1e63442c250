/* HTTP by libmicrohttpd: a request's way from its first line to its answer.
 *
 * What is wrong with a request is known early, and said when it has come whole, so that the
 * connection can go on.  One that asks first (Expect: 100-continue) is told at once, and so is
 * one that says it is too long (of a body in chunks its end tells that), or of which nobody
 * knows where it ends: its connection is closed, and what it still sends is read for a while,
 * since it would find its connection reset else.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum
{
  BODIES_AT_ONCE = 16,      /* times --max-body, in memory, as text and as arrays */
  HEADERS_BYTES = 64 * 1024 /* of a connection, its read buffer among them */
};

static const TdServeOptions *options;
static struct MHD_Daemon *daemon_;
static int listening = -1; /* no more */
static _Atomic uint64_t n_requests, body_bytes;

/* --- a request's life ----------------------------------------------------------------------
 */

static void
drop_body (TdServeRequest *r)
{
  body_bytes -= r->room;
  free (r->body);
  r->body = NULL;
  r->n_body = r->room = 0;
}

/* Its first line is there. */
static void *
on_line (void *cls, const char *uri, struct MHD_Connection *connection)
{
  const union MHD_ConnectionInfo *info
      = MHD_get_connection_info (connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  TdServeConnection *client = info != NULL ? info->socket_context : NULL;
  TdServeRequest *r = client != NULL ? calloc (1, sizeof *r) : NULL;

  (void)cls;
  if (r == NULL)
    return NULL;
  td_serve_take_target (r, uri);
  client->status = 0;
  client->has_head = false;
  if (!td_client_go (client, TD_CLIENT_NEW, TD_CLIENT_RECEIVING))
    td_client_go (client, TD_CLIENT_IDLE, TD_CLIENT_RECEIVING);
  r->connection = connection;
  r->client = client;
  r->iteration = -1;
  r->number = n_requests++;
  r->line_ns = td_serve_now_ns ();
  return r;
}

static void
on_completed (void *cls, struct MHD_Connection *connection, void **con_cls,
              enum MHD_RequestTerminationCode how)
{
  TdServeRequest *r = *con_cls;

  (void)cls;
  (void)connection;
  (void)how;
  *con_cls = NULL;
  if (r == NULL)
    return;
  /* Answered, or broken off in the middle. */
  if (!td_client_go (r->client, TD_CLIENT_SENDING, TD_CLIENT_IDLE))
    td_client_go (r->client, TD_CLIENT_RECEIVING, TD_CLIENT_IDLE);
  drop_body (r);
  free (r->text);
  body_bytes -= r->array_bytes;
  td_serve_clear (r->in, TD_SERVE_MOST_PORTS);
  td_serve_clear (r->out, TD_SERVE_MOST_PORTS);
  if (r->model != NULL)
    td_serve_model_unref (r->model);
  free (r);
}

static void
on_connection (void *cls, struct MHD_Connection *connection, void **socket_context,
               enum MHD_ConnectionNotificationCode what)
{
  (void)cls;
  if (what == MHD_CONNECTION_NOTIFY_STARTED)
    *socket_context = td_client_new (
        MHD_get_connection_info (connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
  else if (*socket_context != NULL)
    {
      td_client_free (*socket_context);
      *socket_context = NULL;
    }
}

/* --- answers -------------------------------------------------------------------------------
 */

static char *
error_text (const char *why, size_t *n)
{
  TdJsonText text = { 0 };
  TdJsonWriter w;

  td__json_write (&w, td__json_put_text, &text, TD_JSON_TIGHT);
  td__json_begin_object (&w);
  td__json_member_string (&w, "error", why);
  td__json_end_object (&w);
  *n = text.n;
  return text.text;
}

static void
add_headers (struct MHD_Response *response, const TdServeRequest *r, const char *type)
{
  char number[32];

  MHD_add_response_header (response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  if (r->status == 405)
    MHD_add_response_header (response, MHD_HTTP_HEADER_ALLOW, r->allow);
  if (r->status == 503)
    MHD_add_response_header (response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
  if (td_serve_stops () || r->closes)
    MHD_add_response_header (response, MHD_HTTP_HEADER_CONNECTION, "close");
  if (r->iteration >= 0)
    {
      snprintf (number, sizeof number, "%lld", (long long)r->iteration);
      MHD_add_response_header (response, "X-Tapedeck-Iteration", number);
    }
}

/* Outputs, or what a path has to say. */
static void
write_text (TdServeRequest *r)
{
  r->text = r->route->text != NULL
                ? r->route->text (&r->n_text)
                : td_serve_forms[r->answer].write (&r->model->ports, r->out, &r->n_text);
  if (r->text == NULL)
    {
      r->status = 503;
      td_serve_refuse (r->why, "no memory for the answer");
    }
}

static void
observe (const TdServeRequest *r)
{
  td_serve_count_status (r->status);
  if (r->ended_ns != 0)
    {
      td_serve_observe (TD_SERVE_SECONDS_WAIT, (double)(r->began_ns - r->queued_ns) / 1e9);
      td_serve_observe (TD_SERVE_SECONDS_MODEL, (double)(r->ended_ns - r->began_ns) / 1e9);
    }
  if (r->route != NULL && r->route->text == NULL)
    td_serve_observe (TD_SERVE_SECONDS_REQUEST,
                      (double)(td_serve_now_ns () - r->line_ns) / 1e9);
}

/* Of what is in r: a text, or what is wrong. */
static enum MHD_Result
answer (TdServeRequest *r, TdClientState from)
{
  const char *type = td_serve_forms[TD_SERVE_JSON].type;
  struct MHD_Response *response;
  enum MHD_Result result;

  if (r->status == 200 && r->text == NULL)
    write_text (r);
  if (r->status != 200)
    r->text = error_text (r->why, &r->n_text);
  else
    type = r->route->text != NULL ? r->route->type : td_serve_forms[r->answer].type;
  if (!td_client_go (r->client, from, TD_CLIENT_SENDING))
    return MHD_NO; /* it has been dropped */
  response = MHD_create_response_from_buffer (r->n_text, r->text, MHD_RESPMEM_MUST_FREE);
  if (response == NULL)
    return MHD_NO;
  r->text = NULL;
  add_headers (response, r, type);
  result = MHD_queue_response (r->connection, (unsigned)r->status, response);
  MHD_destroy_response (response);
  observe (r);
  return result;
}

/* The first thing that is wrong stays. */
static void
refuse (TdServeRequest *r, int status, const char *why)
{
  if (r->status != 0)
    return;
  r->status = status;
  r->client->status = status;
  td_serve_refuse (r->why, "%s", why);
  drop_body (r);
}

/* --- headers -------------------------------------------------------------------------------
 */

static void
refuse_size (TdServeRequest *r)
{
  char why[100];

  snprintf (why, sizeof why, "a body of at most %llu bytes expected",
            (unsigned long long)options->max_body);
  refuse (r, 413, why);
}

static void
look_at_length (TdServeRequest *r)
{
  const char *length = td_serve_header (r, MHD_HTTP_HEADER_CONTENT_LENGTH);

  if (length != NULL && strtoull (length, NULL, 10) > options->max_body)
    {
      refuse_size (r);
      r->closes = true;
    }
}

static void
look_at_predict (TdServeRequest *r)
{
  const char *record = td_serve_header (r, "X-Tapedeck-Record");

  if (td_serve_header (r, MHD_HTTP_HEADER_CONTENT_LENGTH) == NULL
      && td_serve_header (r, MHD_HTTP_HEADER_TRANSFER_ENCODING) == NULL)
    {
      /* What follows would be a request of its own, whatever the client meant by it. */
      refuse (r, 411, "Content-Length, or Transfer-Encoding: chunked, expected");
      r->closes = true;
    }
  if (!td_serve_take_form (td_serve_header (r, MHD_HTTP_HEADER_CONTENT_TYPE), &r->form))
    refuse (r, 415, "Content-Type: application/json or application/x-npy expected");
  if (td_serve_header (r, MHD_HTTP_HEADER_CONTENT_ENCODING) != NULL)
    refuse (r, 415, "Content-Encoding: none expected");
  r->answer = td_serve_accepted (r);
  r->record = record != NULL && strcmp (record, "1") == 0;
  if (record != NULL && !r->record && strcmp (record, "0") != 0)
    refuse (r, 400, "X-Tapedeck-Record: 1 expected, or 0, or no such header");
  if (r->record && !td_serve_records ())
    refuse (r, 400, "X-Tapedeck-Record: the server was started without --record");
}

/* Before the body has come: the client may be sending it. */
static enum MHD_Result
answer_early (TdServeRequest *r)
{
  r->client->lingers = r->closes;
  return answer (r, TD_CLIENT_RECEIVING);
}

static enum MHD_Result
begin (TdServeRequest *r, const char *url, const char *method, const char *version)
{
  char why[TD_SERVE_WHY];
  const char *expect;
  int status = 0;

  r->began = true;
  r->client->has_head = true;
  r->closes = !td_serve_frame (r, method, version, &status, why);
  if (r->closes)
    refuse (r, status, why);
  else
    look_at_length (r);
  r->route = td_serve_route (method, url, &status, why, &r->allow);
  if (r->route == NULL)
    refuse (r, status, why);
  else if (r->route->text == NULL && !r->closes)
    look_at_predict (r);
  if (r->closes)
    return answer_early (r);
  if (td_serve_stops () && r->route != NULL && r->route->text == NULL)
    refuse (r, 503, "the server stops");
  expect = td_serve_header (r, MHD_HTTP_HEADER_EXPECT);
  if (r->status != 0 && expect != NULL && strcasecmp (expect, "100-continue") == 0)
    return answer_early (r);
  return MHD_YES;
}

/* --- body ----------------------------------------------------------------------------------
 */

static void
take_part (TdServeRequest *r, const char *part, size_t n)
{
  size_t room = r->room > 0 ? r->room : 4096;
  char *longer;

  if (r->status != 0 || r->route->text != NULL)
    return;
  if (n > options->max_body - r->n_body)
    return refuse_size (r);
  while (room < r->n_body + n)
    room *= 2;
  if (room > r->room)
    {
      if (body_bytes + (room - r->room) > BODIES_AT_ONCE * options->max_body + 65536)
        return refuse (r, 503, "too many large bodies at once");
      longer = realloc (r->body, room);
      if (longer == NULL)
        return refuse (r, 503, "no memory for the body");
      body_bytes += room - r->room;
      r->body = longer;
      r->room = room;
    }
  memcpy (r->body + r->n_body, part, n);
  r->n_body += n;
}

/* Two characters can be eight bytes. */
static void
count_arrays (TdServeRequest *r)
{
  for (int i = 0; i < r->model->ports.n_in; i++)
    r->array_bytes += r->in[i].bytes;
  body_bytes += r->array_bytes;
  if (body_bytes > BODIES_AT_ONCE * options->max_body + 65536)
    refuse (r, 503, "too many large bodies at once");
}

/* What the body says; status and why are set where it is wrong. */
static void
read_inputs (TdServeRequest *r)
{
  const TdServePorts *p;
  char why[TD_SERVE_WHY];

  r->model = td_serve_model_ref ();
  p = &r->model->ports;
  if (!td_serve_forms[r->form].read (p, r->body != NULL ? r->body : "", r->n_body, r->in, why))
    refuse (r, 400, why);
  for (int i = 0; i < p->n_in && r->status == 0; i++)
    if (r->in[i].data != NULL && !td_serve_fits (&p->in[i], &r->in[i], why))
      refuse (r, 400, why);
  if (r->status == 0 && !td_serve_sizes_agree (p->in, r->in, p->n_in, why))
    refuse (r, 400, why);
  drop_body (r);
  if (r->status == 0)
    count_arrays (r);
}

/* Its connection is suspended: woken with what is wrong, or when the model has run. */
static void
read_and_queue (TdServeRequest *r)
{
  read_inputs (r);
  r->queued_ns = td_serve_now_ns ();
  if (r->status != 0 || !td_serve_queue_put (r, options->queue))
    MHD_resume_connection (r->connection);
}

/* Everything is there: into the queue with it, or it is wrong. */
static enum MHD_Result
end (TdServeRequest *r)
{
  if (r->status == 0 && r->route->text != NULL)
    r->status = 200;
  if (r->status != 0)
    return answer (r, TD_CLIENT_RECEIVING);
  if (!td_client_go (r->client, TD_CLIENT_RECEIVING, TD_CLIENT_WORKING))
    return MHD_NO;
  r->is_ours = true;
  MHD_suspend_connection (r->connection);
  if (!td_serve_work_put (r, r->n_body, read_and_queue))
    read_and_queue (r);
  return MHD_YES;
}

static enum MHD_Result
on_request (void *cls, struct MHD_Connection *connection, const char *url, const char *method,
            const char *version, const char *part, size_t *n_part, void **con_cls)
{
  TdServeRequest *r = *con_cls;

  (void)cls;
  (void)connection;
  if (r == NULL)
    return MHD_NO; /* no memory */
  if (!r->began)
    return begin (r, url, method, version);
  if (*n_part > 0)
    {
      take_part (r, part, *n_part);
      *n_part = 0;
      return MHD_YES;
    }
  r->closes |= td_serve_has_trailer (r);
  return r->is_ours ? answer (r, TD_CLIENT_WORKING) : end (r);
}

static void
write_and_resume (TdServeRequest *r)
{
  write_text (r);
  MHD_resume_connection (r->connection);
}

void
td_serve_answer (TdServeRequest *r)
{
  size_t bytes = 0;

  for (int k = 0; k < r->model->ports.n_out && r->status == 200; k++)
    bytes += r->out[k].bytes;
  if (!td_serve_work_put (r, bytes, write_and_resume))
    MHD_resume_connection (r->connection);
}

/* --- listening -----------------------------------------------------------------------------
 */

static int
listen_at (const struct addrinfo *a)
{
  const int one = 1;
  int fd = socket (a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), wrong;

  if (fd < 0)
    return -1;
  setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind (fd, a->ai_addr, a->ai_addrlen) == 0 && listen (fd, SOMAXCONN) == 0)
    return fd;
  wrong = errno;
  close (fd);
  errno = wrong;
  return -1;
}

static int
open_socket (const TdServeOptions *o)
{
  const struct addrinfo hints
      = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
  struct addrinfo *found = NULL;
  char port[16];
  int fd = -1, wrong;

  snprintf (port, sizeof port, "%u", (unsigned)o->port);
  wrong = getaddrinfo (o->host, port, &hints, &found);
  if (wrong != 0)
    {
      fprintf (stderr, "tapedeck: serve: %s: %s\n", o->host, gai_strerror (wrong));
      return -1;
    }
  for (struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next)
    fd = listen_at (a);
  if (fd < 0)
    fprintf (stderr, "tapedeck: serve: %s port %s: %s\n", o->host, port, strerror (errno));
  freeaddrinfo (found);
  return fd;
}

static void
say_where (int fd, const TdServeOptions *o)
{
  struct sockaddr_storage at;
  socklen_t n = sizeof at;
  char host[256] = "", port[16] = "";

  getsockname (fd, (struct sockaddr *)&at, &n);
  getnameinfo ((struct sockaddr *)&at, n, host, sizeof host, port, sizeof port,
               NI_NUMERICHOST | NI_NUMERICSERV);
  printf (at.ss_family == AF_INET6 ? "%s at http://[%s]:%s\n" : "%s at http://%s:%s\n",
          o->model, host, port);
  fflush (stdout);
}

/* What clients do wrong is theirs to hear.  What libmicrohttpd answers without asking, for what
 * is no request at all, is counted: this line is all that says so. */
static void
count_refused (void *cls, const char *format, va_list args)
{
  static const char line[] = "Error processing request (HTTP response code is %u";

  (void)cls;
  if (strncmp (format, line, sizeof line - 1) == 0)
    td_serve_count_status ((int)va_arg (args, unsigned));
}

bool
td_serve_http_begin (const TdServeOptions *o)
{
  const unsigned threads
      = (unsigned)(o->threads < o->connections ? o->threads : o->connections);
  const int fd = open_socket (o);

  if (fd < 0)
    return false;
  options = o;
  td_serve_routes_begin (o);
  daemon_ = MHD_start_daemon (
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL,
      NULL, on_request, NULL, MHD_OPTION_EXTERNAL_LOGGER, count_refused, NULL,
      MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? threads : 0u,
      MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      (size_t)HEADERS_BYTES, MHD_OPTION_URI_LOG_CALLBACK, on_line, NULL,
      MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION,
      on_connection, NULL, MHD_OPTION_END);
  if (daemon_ == NULL)
    {
      fprintf (stderr, "tapedeck: serve: the server cannot be started\n");
      close (fd);
      return false;
    }
  say_where (fd, o);
  return true;
}

/* Its threads may still have the socket in hand: it is closed when they have ended. */
void
td_serve_http_quiesce (void)
{
  listening = MHD_quiesce_daemon (daemon_);
  if (listening >= 0)
    shutdown (listening, SHUT_RDWR);
}

void
td_serve_http_end (void)
{
  MHD_stop_daemon (daemon_);
  if (listening >= 0)
    close (listening);
}
