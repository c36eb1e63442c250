/* Memory of a real device: what the engine counts is what the driver counts, and running out of
 * it by the limit and in earnest says the same and leaves the engine usable.
 *
 *   bare-memory
 *
 * prints one JSON object per claim; the status is how many did not hold.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <string.h>

static int n_failed;

static void
claim (const char *name, bool holds, const char *text)
{
  char clean[1100];
  size_t n = 0;

  for (const char *c = text; *c != '\0' && n < sizeof clean - 1; c++)
    clean[n++] = *c == '"' || *c == '\\' || *c == '\n' ? ' ' : *c;
  clean[n] = '\0';
  printf ("{\"row\": \"memory.%s\", \"holds\": %s, \"said\": \"%s\"}\n", name,
          holds ? "true" : "false", clean);
  fflush (stdout);
  n_failed += !holds;
}

/* What the driver says is used, less what it says others use, is what the pool has taken. */
static void
counts_are_the_drivers (TdDevice *d)
{
  TdMemInfo before;
  char text[200];

  /* Once for nothing: the driver loads what it fills memory with, and that is others'. */
  TD_SCOPE ("first")
    td_zeros (TD_F32, TD_SHAPE (64 << 20));
  td_device_synchronize (d);
  td_pool_trim (d);
  before = td_mem_info (d);
  TD_SCOPE ("block")
    {
      TdMemInfo after;
      long long by_us, by_driver;

      td_zeros (TD_F32, TD_SHAPE (64 << 20));
      td_device_synchronize (d);
      after = td_mem_info (d);
      by_us = (long long)after.reserved_bytes - (long long)before.reserved_bytes;
      by_driver = by_us + (long long)after.outside_bytes - (long long)before.outside_bytes;
      snprintf (text, sizeof text, "256 MiB: reserved %lld, by the driver %lld, others' %zu",
                by_us, by_driver, (size_t)after.outside_bytes);
      claim ("counters_agree_with_the_driver", by_us >= 256 << 20 && by_us == by_driver, text);
    }
  td_pool_trim (d);
}

/* Take blocks until there are no more.  Returns how many; text gets the error. */
static int
fill (size_t block_bytes, char text[1100])
{
  int n = 0;

  text[0] = '\0';
  TD_SCOPE ("full")
    {
      while (n < 100000 && td_error () == NULL)
        {
          td_zeros (TD_F32, TD_SHAPE ((int64_t)(block_bytes / 4)));
          n += td_error () == NULL;
        }
      if (td_error () != NULL)
        snprintf (text, 1100, "%s", td_error ()->message);
    }
  td_error_clear ();
  return n;
}

static bool
works (TdDevice *d)
{
  bool ok = false;

  TD_SCOPE ("after")
    ok = td_item (td_sum (td_ones (TD_F32, TD_SHAPE (1000)))) == 1000;
  td_pool_trim (d);
  return ok && td_error () == NULL;
}

/* The kind of both texts, numbers taken out: "out of memory on cuda:0: # MB wanted ..." */
static void
without_numbers (const char *text, char *out, size_t size)
{
  size_t n = 0;
  bool number = false;

  for (; *text != '\0' && *text != '(' && n < size - 1; text++)
    {
      const bool digit = (*text >= '0' && *text <= '9') || *text == '.';

      if (!digit || !number)
        out[n++] = digit ? '#' : *text;
      number = digit;
    }
  out[n] = '\0';
}

int
main (int argc, char **argv)
{
  char simulated[1100], real[1100], a[300], b[300], text[400];
  TdDevice *d;
  TdMemInfo info;
  size_t block;
  int n;

  td_init (&argc, &argv);
  d = td_device (td_zeros (TD_F32, TD_SHAPE (1)));
  counts_are_the_drivers (d);
  info = td_mem_info (d);
  block = info.device_bytes / 200 / 4 * 4;
  td_set_mem_limit (8 * block + block / 2);
  n = fill (block, simulated);
  claim ("limit_refuses", n > 0 && n <= 8 && simulated[0] != '\0', simulated);
  claim ("usable_after_the_limit", works (d), "a sum of 1,000 ones");
  td_set_mem_limit (0);
  n = fill (block, real);
  claim ("device_refuses", n >= 100 && real[0] != '\0', real);
  claim ("usable_after_the_device_is_full", works (d), "a sum of 1,000 ones");
  without_numbers (simulated, a, sizeof a);
  without_numbers (real, b, sizeof b);
  snprintf (text, sizeof text, "%s", a);
  claim ("both_say_the_same", strcmp (a, b) == 0, text);
  td_pool_trim (d);
  snprintf (text, sizeof text, "%zu bytes reserved at the end",
            (size_t)td_mem_info (d).reserved_bytes);
  claim ("all_is_given_back", td_mem_info (d).reserved_bytes <= (4 << 20), text);
  return n_failed + (td_finish () != 0);
}
