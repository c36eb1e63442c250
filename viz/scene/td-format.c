/*
 * Numbers for people. Three significant digits: what a glance can take.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-format.h"

/* Writes v (below 1000 after scaling) with three digits and its unit. */
static const char *
scaled (char *out, double v, const char *const *units, int n_units)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  int u = 0;

  while (v >= 999.5 && u + 1 < n_units)
    {
      v /= 1000;
      u++;
    }
  const char *format = v < 9.995 ? "%.2f" : v < 99.95 ? "%.1f" : "%.0f";
  g_ascii_formatd (number, sizeof number, u == 0 ? "%.0f" : format, v);
  g_snprintf (out, TD_FORMAT_SIZE, "%s %s", number, units[u]);
  return out;
}

const char *
td_format_bytes (char out[TD_FORMAT_SIZE], guint64 bytes)
{
  static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };

  return scaled (out, (double)bytes, units, G_N_ELEMENTS (units));
}

const char *
td_format_tick_bytes (char out[TD_FORMAT_SIZE], guint64 bytes)
{
  char *unit, *end;

  td_format_bytes (out, bytes);
  unit = end = strchr (out, ' ');
  if (!strchr (out, '.'))
    return out;
  while (end[-1] == '0')
    end--;
  if (end[-1] == '.')
    end--;
  memmove (end, unit, strlen (unit) + 1);
  return out;
}

const char *
td_format_ns (char out[TD_FORMAT_SIZE], guint64 ns)
{
  static const char *const units[] = { "ns", "µs", "ms", "s" };

  return scaled (out, (double)ns, units, G_N_ELEMENTS (units));
}

/* Replaces the hyphens of a number by minus signs. */
static void
real_minus (char out[TD_FORMAT_SIZE], const char *number)
{
  gsize n = 0;

  for (; *number && n + 4 < TD_FORMAT_SIZE; number++)
    if (*number == '-')
      {
        memcpy (out + n, "−", 3);
        n += 3;
      }
    else if (*number != '+')
      out[n++] = *number;
  out[n] = '\0';
}

/* 1.2e-04 becomes 1.2e-4: the leading zero only costs width. */
static void
drop_zero (char *number)
{
  char *e = strchr (number, 'e');

  if (e && (e[1] == '-' || e[1] == '+') && e[2] == '0')
    memmove (e + 2, e + 3, strlen (e + 3) + 1);
}

const char *
td_format_value (char out[TD_FORMAT_SIZE], double value)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];

  if (isnan (value))
    return strcpy (out, "NaN");
  if (isinf (value))
    return strcpy (out, value > 0 ? "+Inf" : "−Inf");
  if (fabs (value) >= 1000 && fabs (value) < 1e5)
    g_ascii_formatd (number, sizeof number, "%.0f", value);
  else if (fabs (value) < 1e-3 && value != 0)
    g_ascii_formatd (number, sizeof number, "%.1e", value);
  else
    g_ascii_formatd (number, sizeof number, "%.3g", value);
  drop_zero (number);
  real_minus (out, number);
  return out;
}

const char *
td_format_digits (char out[TD_FORMAT_SIZE], double value, int digits)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE], format[16];

  if (!isfinite (value))
    return td_format_value (out, value);
  gboolean small = fabs (value) < 1e-3 && value != 0;
  digits = CLAMP (digits, 1, 17);
  g_snprintf (format, sizeof format, small ? "%%.%de" : "%%.%dg", small ? digits - 1 : digits);
  g_ascii_formatd (number, sizeof number, format, value);
  drop_zero (number);
  real_minus (out, number);
  return out;
}

static const char *const marks[] = { "", "≈", "—", "↻" };

const char *
td_format_honest (char out[TD_FORMAT_SIZE], double value, TdHonesty honesty)
{
  char number[TD_FORMAT_SIZE];

  if (honesty == TD_HONEST_MISSING)
    return strcpy (out, marks[honesty]);
  g_snprintf (out, TD_FORMAT_SIZE, "%s%s", marks[honesty], td_format_value (number, value));
  return out;
}

const char *
td_format_share (char out[TD_FORMAT_SIZE], double share, TdHonesty honesty)
{
  char number[TD_FORMAT_SIZE];

  if (honesty == TD_HONEST_MISSING)
    return strcpy (out, marks[honesty]);
  if (share > 0 && share < 1e-4)
    strcpy (number, "<0.01");
  else
    td_format_digits (number, round (share * 1e4) / 100, 3);
  g_snprintf (out, TD_FORMAT_SIZE, "%s%s %%", marks[honesty], number);
  return out;
}

const char *
td_format_count (char out[TD_FORMAT_SIZE], gint64 value)
{
  char digits[24];
  gsize n = 0;
  int len = g_snprintf (digits, sizeof digits, "%" G_GUINT64_FORMAT,
                        value < 0 ? -(guint64)value : (guint64)value);

  if (value < 0)
    {
      memcpy (out, "−", 3);
      n = 3;
    }
  for (int i = 0; i < len; i++)
    {
      if (i > 0 && (len - i) % 3 == 0)
        {
          memcpy (out + n, "\xe2\x80\xaf", 3); /* narrow no-break space */
          n += 3;
        }
      out[n++] = digits[i];
    }
  out[n] = '\0';
  return out;
}

double
td_format_step (double span, int n)
{
  double raw = span / MAX (n, 1);

  if (!(raw > 0) || !isfinite (raw))
    return 1;
  double power = pow (10, floor (log10 (raw))), m = raw / power;
  return power * (m <= 1.0001 ? 1 : m <= 2.0001 ? 2 : m <= 5.0001 ? 5 : 10);
}

double
td_format_byte_step (double span, int n)
{
  return MAX (1, td_format_step (span, n));
}

void
td_csv_append (GString *out, const char *text)
{
  if (!strpbrk (text, "\",\n\r") && *text != '=' && *text != '+' && *text != '@')
    {
      g_string_append (out, text);
      return;
    }
  g_string_append_c (out, '"');
  for (const char *p = text; *p; p++)
    {
      if (*p == '"')
        g_string_append_c (out, '"');
      g_string_append_c (out, *p);
    }
  g_string_append_c (out, '"');
}
