/* What the forward functions and constructors of the kinds of link share.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

static const char *const counts[] = { "no", "one", "two", "three", "four" };

static const char *
count_text (int n)
{
  return n >= 0 && n < TD_ARRAY_LENGTH (counts) ? counts[n] : "several";
}

TdStatus
td__link_arity (const TdLink *link, int n_in, int want_in, int n_out, int want_out)
{
  if (n_in == want_in && n_out == want_out)
    return TD_OK;
  return td__fail (TD_ERR_ARG, link->cls->name, td__engine.site,
                   "%s input%s and %s output%s expected, got %d and %d", count_text (want_in),
                   want_in == 1 ? "" : "s", count_text (want_out), want_out == 1 ? "" : "s",
                   n_in, n_out);
}

TdStatus
td__link_status (const TdVar *y)
{
  if (!td_poisoned (y))
    return TD_OK;
  return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
}

TdVar *
td__link_child_call (TdLink *link, int child, TdVar *x)
{
  return td_link_at (link->children[child], x, td__engine.site);
}

bool
td__link_add (TdLink *link, const char *name, TdShape shape, TdInit init, TdInit fallback,
              const TdSite *site)
{
  return td__param_add (link, name, &shape, -1, init, fallback, site) != NULL;
}

TdStatus
td__link_settle (TdLink *link, int param, TdShape shape)
{
  return link->params[param]->var != NULL ? TD_OK
                                          : td__param_start (link->params[param], &shape);
}

void
td__link_keep (TdLink *link, const char *name, TdVar *value)
{
  td__param_keep (link, name, TD_PARAM_ATTR, value, td__engine.site);
}

void
td__link_forget (TdLink *link, const char *name)
{
  if (td__param_find (link, name) != NULL)
    td__link_keep (link, name, NULL);
}
