/*
 * Numbers for people: bytes, times, values, each with its honesty.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

#include "plural.h"

G_BEGIN_DECLS

/* What a number is: plain, "≈" before it, "—" instead of it, "↻" before it. */
typedef enum
{
  TD_HONEST_EXACT,
  TD_HONEST_SAMPLED,
  TD_HONEST_MISSING,
  TD_HONEST_RECOMPUTED
} TdHonesty;

/* Room for any of the texts below. */
#define TD_FORMAT_SIZE 40

/** Write bytes in decimal units with three digits ("9.60 kB", "301 kB", "64 B"). Returns `out`.
 */
const char *td_format_bytes (char out[TD_FORMAT_SIZE], guint64 bytes);
/** Write the bytes of an axis tick, without zeros after the point ("2 MB"). Returns `out`. */
const char *td_format_tick_bytes (char out[TD_FORMAT_SIZE], guint64 bytes);
/** Write nanoseconds ("455 µs", "3.20 ms", "1.5 s"). Returns `out`. */
const char *td_format_ns (char out[TD_FORMAT_SIZE], guint64 ns);
/** Write a value with three digits and a real minus sign; NaN and infinities by name. Returns
 * `out`. */
const char *td_format_value (char out[TD_FORMAT_SIZE], double value);
/** The same with up to this many digits. */
const char *td_format_digits (char out[TD_FORMAT_SIZE], double value, int digits);
/** Write a value with its honesty mark. Returns `out`. */
const char *td_format_honest (char out[TD_FORMAT_SIZE], double value, TdHonesty honesty);
/** Write a share of 0 to 1 with its mark, in percent: "0.3 %", "<0.01 %" where it is some.
 * Returns `out`. */
const char *td_format_share (char out[TD_FORMAT_SIZE], double share, TdHonesty honesty);
/** Write an integer with thin spaces between thousands ("61 706"). Returns `out`. */
const char *td_format_count (char out[TD_FORMAT_SIZE], gint64 value);

/** Return a round step (1, 2 or 5 times a power of ten) that cuts `span` into at most `n`
 * parts. */
double td_format_step (double span, int n);
/** As td_format_step, but for bytes: whole bytes at least. */
double td_format_byte_step (double span, int n);

/** Append one CSV field, quoted where it has to be. */
void td_csv_append (GString *out, const char *text);

G_END_DECLS
