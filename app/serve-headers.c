/* What the headers of a request say of forms: in which it comes, and in which the answer goes.
 * *Source*: RFC 9110, 12.5.1.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <microhttpd.h>
#include <string.h>
#include <strings.h>

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

/* Of each form, by the range that names it most closely; what no range names is wanted least.
 */
typedef struct
{
  double weight[TD_SERVE_N_FORMS];
  int closest[TD_SERVE_N_FORMS]; /* -1: no range yet */
  bool any;
} Wanted;

static void
weigh (const char *accept, const char *type, double *weight, int *closest)
{
  static const char *const wide[] = { "*/*", "application/*" };

  for (const char *at = accept; at != NULL; at = strchr (at, ','), at += at != NULL ? 1 : 0)
    {
      int close = -1;

      at += strspn (at, " \t");
      for (int i = 0; i < 2; i++)
        close = is_type (at, wide[i]) ? i : close;
      close = is_type (at, type) ? 2 : close;
      if (close > *closest)
        {
          *closest = close;
          *weight = weight_of (at);
        }
    }
}

/* Several lines are one list. */
static enum MHD_Result
take_accept (void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
  Wanted *w = user;

  (void)kind;
  if (value == NULL || strcasecmp (name, MHD_HTTP_HEADER_ACCEPT) != 0)
    return MHD_YES;
  w->any = true;
  for (int f = 0; f < TD_SERVE_N_FORMS; f++)
    weigh (value, td_serve_forms[f].type, &w->weight[f], &w->closest[f]);
  return MHD_YES;
}

TdServeForm
td_serve_accepted (const TdServeRequest *r)
{
  const double unnamed = 1e-4;
  TdServeForm best = r->form;
  Wanted w = { .any = false };

  for (int f = 0; f < TD_SERVE_N_FORMS; f++)
    {
      w.weight[f] = unnamed;
      w.closest[f] = -1;
    }
  MHD_get_connection_values (r->connection, MHD_HEADER_KIND, take_accept, &w);
  for (int f = 0; w.any && f < TD_SERVE_N_FORMS; f++)
    if (w.weight[f] > w.weight[best])
      best = (TdServeForm)f;
  return best;
}
