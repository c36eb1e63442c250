/* Where a request ends, which two programs must never read in two ways.
 * *Source*: RFC 9112, 2.2, 3.2, 5.1, 6.1 and 6.3.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct
{
  int n_hosts, n_lengths, n_encodings;
  bool is_length_whole, is_chunked, is_host; /* the last of each */
  bool is_folded, is_cut;
  bool is_path;   /* what is asked for names no host itself */
  const char *at; /* where the line before ends */
  size_t ends;    /* bytes that end a line; 0: not known yet */
  char odd[40];   /* a header whose name is none, or whose value */
} Frame;

/* Letters, digits and a few signs; a blank before the colon would be part of it. */
static bool
is_name (const char *name, size_t n)
{
  for (size_t i = 0; i < n; i++)
    {
      const unsigned char c = (unsigned char)name[i];

      if (c <= ' ' || c >= 0x7f || strchr ("\"(),/:;<=>?@[\\]{}", c) != NULL)
        return false;
    }
  return n > 0;
}

/* Without a CR that may be the end of a line to others. */
static bool
is_value (const char *value, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
      return false;
  return true;
}

/* A name or an address, and a port. */
static bool
is_host (const char *value, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)value[i] <= ' ' || strchr ("@,/?#\\\"<>", value[i]) != NULL)
      return false;
  return true;
}

/* libmicrohttpd 0.9 puts NUL for each colon and each byte that ends a line, and reads texts to
 * their first NUL, so that one in the request cuts them; and it takes a line that begins with a
 * colon, or a NUL, for the empty one behind the last header.  The head lies there as it came,
 * though: where the next line does not begin where this one ends, something has been cut. */
static void
follow (Frame *f, const char *name, size_t n_name, const char *value, size_t n)
{
  const size_t ends = (size_t)(name - f->at);
  const char *text = name + n_name + 1;

  f->ends = f->ends == 0 && ends <= 2 ? ends : f->ends;
  text += strspn (text, " \t");
  f->is_cut |= ends != f->ends || (value != NULL && value != text);
  f->at = (value != NULL ? value : text) + n;
}

/* The last header and the empty line end in 2 or 4 bytes, which are no text now. */
static bool
ends_there (const Frame *f, const char *end)
{
  const size_t n = (size_t)(end - f->at);

  if (end < f->at || (f->ends != 0 ? n != 2 * f->ends : n != 2 && n != 4))
    return false;
  for (size_t i = 0; i < n; i++)
    if (f->at[i] != '\0')
      return false;
  return true;
}

static bool
is_text (const char *text, size_t n, const char *other)
{
  return n == strlen (other) && strncasecmp (text, other, n) == 0;
}

static enum MHD_Result
take_header (void *user, enum MHD_ValueKind kind, const char *name, size_t n_name,
             const char *value, size_t n)
{
  Frame *f = user;

  (void)kind;
  /* A line that goes on in the next makes libmicrohttpd 0.9.75 put that behind the name, which
   * it moves for it, and leave the value where it was: Content-Len can become Content-Length.
   */
  f->is_folded |= value != NULL && (uintptr_t)value < (uintptr_t)name;
  if (!f->is_folded)
    follow (f, name, n_name, value, n);
  value = value != NULL ? value : "";
  while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'))
    n--;
  if (!is_name (name, n_name) || !is_value (value, n))
    snprintf (f->odd, sizeof f->odd, "\"%.30s\"", n_name > 0 ? name : "");
  else if (is_text (name, n_name, MHD_HTTP_HEADER_HOST))
    {
      f->n_hosts++;
      f->is_host = is_host (value, n) && (n > 0 || f->is_path);
    }
  else if (is_text (name, n_name, MHD_HTTP_HEADER_CONTENT_LENGTH))
    {
      f->n_lengths++;
      f->is_length_whole = n > 0 && strspn (value, "0123456789") == n;
    }
  else if (is_text (name, n_name, MHD_HTTP_HEADER_TRANSFER_ENCODING))
    {
      f->n_encodings++;
      /* Blanks behind it are legal, but libmicrohttpd reads no chunks then. */
      f->is_chunked = is_text (value, strlen (value), "chunked");
    }
  return MHD_YES;
}

/* What is asked for: no blanks, no NUL, and in its path none that is escaped, which would end
 * it. */
void
td_serve_take_target (TdServeRequest *r, const char *target)
{
  const char *nul = target != NULL ? strstr (target, "%00") : NULL;

  r->target = target;
  r->n_target = target != NULL ? strlen (target) : 0;
  r->is_target_odd = nul != NULL && nul < target + strcspn (target, "?");
  for (size_t i = 0; i < r->n_target; i++)
    r->is_target_odd |= (unsigned char)target[i] <= ' ' || target[i] == 0x7f;
}

static void
read_head (const TdServeRequest *r, const char *method, const char *version, Frame *f)
{
  const union MHD_ConnectionInfo *size
      = MHD_get_connection_info (r->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  const bool lies_there = MHD_get_version ()[0] == '0'; /* from 1.0 on it looks itself */

  f->at = version + strlen (version);
  f->is_path = r->target != NULL && *r->target == '/';
  MHD_get_connection_values_n (r->connection, MHD_HEADER_KIND, take_header, f);
  f->is_cut = lies_there
              && (f->is_cut || (r->target != NULL && version != r->target + r->n_target + 1)
                  || size == NULL || !ends_there (f, method + size->header_size));
}

bool
td_serve_frame (TdServeRequest *r, const char *method, const char *version, int *status,
                char *why)
{
  const bool is_old = strcmp (version, MHD_HTTP_VERSION_1_0) == 0;
  Frame f = { 0 };

  read_head (r, method, version, &f);
  *status = 400;
  if (r->is_target_odd)
    return td_serve_refuse (why, "a path without blanks and NUL expected");
  if (f.is_folded)
    return td_serve_refuse (why, "a header on one line expected");
  if (*f.odd != '\0')
    return td_serve_refuse (why, "header %s: a name without blanks, a colon and text expected",
                            f.odd);
  if (f.is_cut)
    return td_serve_refuse (why, "lines that all end in CR LF, without NUL and with a name "
                                 "before each colon, expected");
  if (f.n_lengths > 1)
    return td_serve_refuse (why, "Content-Length: one expected, got %d", f.n_lengths);
  if (f.n_lengths > 0 && f.n_encodings > 0)
    return td_serve_refuse (why, "Content-Length and Transfer-Encoding: one of the two "
                                 "expected");
  if (f.n_lengths > 0 && !f.is_length_whole)
    return td_serve_refuse (why, "Content-Length: a whole number expected");
  if (f.n_encodings > 0 && is_old)
    return td_serve_refuse (why, "Transfer-Encoding: HTTP/1.1 expected");
  if (!is_old && f.n_hosts != 1)
    return td_serve_refuse (why, "Host: one expected, got %d", f.n_hosts);
  if (f.n_hosts > 0 && !f.is_host)
    return td_serve_refuse (why, "Host: a name or an address expected");
  if (f.n_encodings > 1 || (f.n_encodings == 1 && !f.is_chunked))
    {
      *status = 501;
      return td_serve_refuse (why, "Transfer-Encoding: chunked expected, and nothing else");
    }
  return true;
}

typedef struct
{
  struct MHD_Connection *connection;
  const char *name; /* of the trailer that is looked at */
  bool is_header;   /* it lies where a header does */
  int n;
} Trailers;

static enum MHD_Result
compare_place (void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
  Trailers *t = user;

  (void)kind;
  (void)value;
  t->is_header |= name == t->name;
  return MHD_YES;
}

static enum MHD_Result
count_trailer (void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
  Trailers *t = user;

  (void)kind;
  (void)value;
  t->name = name;
  t->is_header = false;
  MHD_get_connection_values (t->connection, MHD_HEADER_KIND, compare_place, t);
  t->n += !t->is_header;
  return MHD_YES;
}

/* libmicrohttpd 0.9.75 lists the last header again, as a trailer, where the CR of the last line
 * came without its LF. */
bool
td_serve_has_trailer (const TdServeRequest *r)
{
  Trailers t = { .connection = r->connection };

  MHD_get_connection_values (r->connection, MHD_FOOTER_KIND, count_trailer, &t);
  return t.n > 0;
}
