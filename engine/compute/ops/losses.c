/* What losses and scores share.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

#include <stdio.h>
#include <string.h>

const char *const td__reduce_mean_no[] = { "mean", "no", NULL };

static size_t
room_of (const TdTensor *t)
{
  return ((size_t)t->size * td__dtype_sizes[t->dtype] + 63) / 64 * 64;
}

TdStatus
td__carve (TdOpCall *call, TdTensor *parts, int n)
{
  size_t bytes = 0;
  char *room;

  for (int i = 0; i < n; i++)
    bytes += room_of (&parts[i]);
  room = td_op_workspace (call, bytes > 0 ? bytes : 64);
  if (room == NULL)
    return TD_ERR_MEMORY;
  for (int i = 0; i < n; i++)
    {
      parts[i].data = room;
      room += room_of (&parts[i]);
    }
  return TD_OK;
}

TdTensor
td__carve_like (const TdTensor *x)
{
  return (TdTensor){ NULL, x->shape, x->size, x->dtype };
}

TdTensor
td__carve_number (TdDtype dtype)
{
  static TdShape scalar; /* never written: its zeros are its value */

  return (TdTensor){ NULL, &scalar, 1, dtype };
}

TdStatus
td__out_loss (TdOpCall *call, bool each, int i)
{
  const TdShape scalar = TD_SCALAR;

  return td_op_out (call, 0, call->in[0].dtype, each ? call->in[i].shape : &scalar);
}

TdStatus
td__infer_loss_grad (TdOpCall *call, bool each)
{
  const TdStatus status
      = each ? td__check_same_shape (call, 2, 1) : td__check_ndim (call, 2, 0);

  return status != TD_OK ? status : td__out_like (call, 0, 0);
}

int
td__choice (const char *const *choices, const char *word)
{
  for (int i = 0; choices[i] != NULL; i++)
    if (word == NULL || strcmp (choices[i], word) == 0)
      return i;
  return -1;
}

TdVar *
td__choice_fail (const char *op, const char *option, const char *const *choices,
                 const char *word, const TdSite *site)
{
  char text[200] = "";

  for (int i = 0; choices[i] != NULL; i++)
    snprintf (text + strlen (text), sizeof text - strlen (text), "%s%s",
              i == 0                   ? ""
              : choices[i + 1] == NULL ? " or "
                                       : ", ",
              choices[i]);
  td__fail (TD_ERR_ARG, op, site, "%s is %s, got '%.60s'", option, text, word);
  return td__poison ();
}
