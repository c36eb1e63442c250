/* What the headers of a request say: where its body ends, which two programs must never read in
 * two ways; in what form it comes, and in which the answer goes.
 * *Source*: RFC 9112, 3.2, 5.1, 6.1 and 6.3; RFC 9110, 12.5.1.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- where the body ends -------------------------------------------------------------------
 */

typedef struct
{
  int n_hosts, n_lengths, n_encodings;
  bool is_length_whole, is_chunked; /* the last of each */
  bool is_folded;
  char odd[40]; /* a header whose name is none, or whose value */
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
  value = value != NULL ? value : "";
  if (!is_name (name, n_name) || !is_value (value, n))
    snprintf (f->odd, sizeof f->odd, "\"%.30s\"", n_name > 0 ? name : "");
  else if (is_text (name, n_name, MHD_HTTP_HEADER_HOST))
    f->n_hosts++;
  else if (is_text (name, n_name, MHD_HTTP_HEADER_CONTENT_LENGTH))
    {
      f->n_lengths++;
      f->is_length_whole = n > 0 && strspn (value, "0123456789") == n;
    }
  else if (is_text (name, n_name, MHD_HTTP_HEADER_TRANSFER_ENCODING))
    {
      f->n_encodings++;
      f->is_chunked = is_text (value, n, "chunked");
    }
  return MHD_YES;
}

bool
td_serve_frame (TdServeRequest *r, const char *version, int *status, char *why)
{
  const bool is_old = strcmp (version, MHD_HTTP_VERSION_1_0) == 0;
  Frame f = { 0 };

  MHD_get_connection_values_n (r->connection, MHD_HEADER_KIND, take_header, &f);
  *status = 400;
  if (f.is_folded)
    return td_serve_refuse (why, "a header on one line expected");
  if (*f.odd != '\0')
    return td_serve_refuse (why, "header %s: a name without blanks, a colon and text expected",
                            f.odd);
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
  if (f.n_encodings > 1 || (f.n_encodings == 1 && !f.is_chunked))
    {
      *status = 501;
      return td_serve_refuse (why, "Transfer-Encoding: chunked expected, and nothing else");
    }
  return true;
}

/* --- forms ---------------------------------------------------------------------------------
 */

const char *
td_serve_header (const TdServeRequest *r, const char *name)
{
  return MHD_lookup_connection_value (r->connection, MHD_HEADER_KIND, name);
}

/* Whether a content type, whatever its parameters, is this one. */
static bool
is_type (const char *text, const char *type)
{
  const size_t n = strlen (type);

  return strncasecmp (text, type, n) == 0 && strchr (";, \t", text[n]) != NULL;
}

bool
td_serve_take_form (const char *text, TdServeForm *form)
{
  for (int f = 0; text != NULL && f < TD_SERVE_N_FORMS; f++)
    if (is_type (text, td_serve_forms[f].type))
      {
        *form = (TdServeForm)f;
        return true;
      }
  return false;
}

/* How much a range of types, to its comma, is wanted: the parameter q, 1 where there is none.
 */
static double
weight_of (const char *range)
{
  const char *end = range + strcspn (range, ",");

  for (const char *at = memchr (range, ';', (size_t)(end - range)); at != NULL;
       at = memchr (at, ';', (size_t)(end - at)))
    {
      at++;
      at += strspn (at, " \t");
      if ((*at == 'q' || *at == 'Q') && at[1] == '=')
        {
          double weight = 0, digit = 1;

          for (at += 2; at < end && ((*at >= '0' && *at <= '9') || *at == '.'); at++)
            if (*at == '.')
              digit = 0.1;
            else
              {
                weight += digit * (*at - '0');
                digit /= digit < 1 ? 10 : 1;
              }
          return weight;
        }
    }
  return 1;
}

/* Of a form, by the range that names it most closely; what no range names is wanted least. */
static double
weight_in (const char *accept, const char *type)
{
  static const char *const wide[] = { "*/*", "application/*" };
  const double unnamed = 1e-4;
  double weight = unnamed;
  int closest = -1;

  for (const char *at = accept; at != NULL; at = strchr (at, ','), at += at != NULL ? 1 : 0)
    {
      int close = -1;

      at += strspn (at, " \t");
      for (int i = 0; i < 2; i++)
        close = is_type (at, wide[i]) ? i : close;
      close = is_type (at, type) ? 2 : close;
      if (close > closest)
        {
          closest = close;
          weight = weight_of (at);
        }
    }
  return weight;
}

TdServeForm
td_serve_accepted (const TdServeRequest *r)
{
  const char *accept = td_serve_header (r, MHD_HTTP_HEADER_ACCEPT);
  TdServeForm best = r->form;

  for (int f = 0; accept != NULL && f < TD_SERVE_N_FORMS; f++)
    if (weight_in (accept, td_serve_forms[f].type)
        > weight_in (accept, td_serve_forms[best].type))
      best = (TdServeForm)f;
  return best;
}
