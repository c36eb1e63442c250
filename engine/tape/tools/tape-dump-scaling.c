/* What `info` says of loss scaling, from the curves that optimizers report: the scale, the
 * updates that it cost, and in which parameters' gradients overflows began.
 *
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char first_in[] = "overflows/";

/* Whether report i is the last of its key. */
static bool
is_last (const TdTapeReport *all, uint64_t n, uint64_t i)
{
  for (uint64_t k = i + 1; k < n; k++)
    if (all[k].key == all[i].key)
      return false;
  return true;
}

/* The last value of a key; false: never reported. */
static bool
last_of (TdTapeReader *r, const char *key, double *value)
{
  uint64_t n;
  const TdTapeReport *all = td_tape_reader_reports (r, &n);

  while (n-- > 0)
    if (strcmp (td_tape_reader_string (r, all[n].key), key) == 0)
      {
        *value = all[n].value;
        return true;
      }
  return false;
}

static void
put_firsts (TdTapeReader *r, FILE *out, TdJsonWriter *json)
{
  uint64_t n;
  const TdTapeReport *all = td_tape_reader_reports (r, &n);
  bool any = false;

  for (uint64_t i = 0; i < n; i++)
    {
      const char *key = td_tape_reader_string (r, all[i].key);

      if (strncmp (key, first_in, strlen (first_in)) != 0 || !is_last (all, n, i))
        continue;
      key += strlen (first_in);
      if (json)
        {
          td__json_key (json, key);
          td__json_double (json, all[i].value);
        }
      else
        fprintf (out, "%s%s %.0f", any ? ", " : ", begun in ", key, all[i].value);
      any = true;
    }
}

void
td__tape_info_scaling (TdTapeReader *r, FILE *out, TdJsonWriter *json)
{
  double scale, skipped = 0;

  if (!last_of (r, "loss_scale", &scale))
    return;
  last_of (r, "overflows", &skipped);
  if (!json)
    {
      fprintf (out, "loss scale       %.9g, %.0f updates skipped", scale, skipped);
      put_firsts (r, out, NULL);
      fputc ('\n', out);
      return;
    }
  td__json_key (json, "loss_scaling");
  td__json_begin_object (json);
  td__json_key (json, "scale");
  td__json_rounded (json, scale, 9);
  td__json_member_double (json, "skipped", skipped);
  td__json_key (json, "begun_in");
  td__json_begin_object (json);
  put_firsts (r, out, json);
  td__json_end_object (json);
  td__json_end_object (json);
}
