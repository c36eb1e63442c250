/* Reading and writing npy (numpy.lib.format, versions 1 to 3).
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "npy.h"
#include "npy-header.h"

#include "compute/core/core.h"
#include "../links/object.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A dtype's name in the header, least significant byte first. */
static const char *const descriptions[] = {
  [TD_F32] = "<f4", [TD_F64] = "<f8", [TD_F16] = "<f2", [TD_BF16] = "<f4",
  [TD_I32] = "<i4", [TD_I64] = "<i8", [TD_U8] = "|u1",  [TD_BOOL] = "|b1",
};

_Static_assert(TD__NPY_MAX_DIMS == TD_MAX_DIMS, "of a header and of an array");

static bool
find_dtype (const TdNpyHeader *header, TdDtype *dtype, const char **why)
{
  const char *text = header->descr;

  *why = "it holds a pickled Python object, which is not read";
  if (strchr (text, 'O') != NULL)
    return false;
  for (int i = 0; i < TD_ARRAY_LENGTH (descriptions); i++)
    if (*text != '\0' && strcmp (text + 1, descriptions[i] + 1) == 0 && text[0] != '>')
      {
        *dtype = (TdDtype)i;
        return true;
      }
  *why = text[0] == '>' ? "its elements are big-endian, which is not read"
                        : "its element type has no counterpart here";
  return false;
}

bool
td__npy_parse_first (const void *data, size_t bytes, TdNpy *npy, size_t *used, const char **why)
{
  TdNpyHeader header;
  size_t need;

  memset (npy, 0, sizeof *npy);
  if (!td__npy_header_read (data, bytes, &header, &npy->offset, why)
      || !find_dtype (&header, &npy->dtype, why))
    return false;
  npy->fortran = header.fortran;
  npy->shape.ndim = header.ndim;
  memcpy (npy->shape.dim, header.dim, sizeof npy->shape.dim);
  *why = "it has not the elements that its shape promises";
  if (!td__shape_bytes (&npy->shape, npy->dtype, &need) || need > bytes - npy->offset)
    return false;
  *used = npy->offset + need;
  return true;
}

bool
td__npy_parse (const void *data, size_t bytes, TdNpy *npy, const char **why)
{
  size_t used;

  return td__npy_parse_first (data, bytes, npy, &used, why) && used == bytes;
}

/* --- texts: one element of Unicode code points, or of bytes --- */

/* The letter and the number of a descr like <U5; false: another one. */
static bool
text_type (const char *descr, char *letter, size_t *chars)
{
  char *end;

  if (*descr != '<' && *descr != '|' && *descr != '=')
    return false;
  *letter = descr[1];
  if ((*letter != 'U' && *letter != 'S') || descr[2] < '0' || descr[2] > '9')
    return false;
  *chars = strtoul (descr + 2, &end, 10);
  return *end == '\0';
}

char
td__npy_type (const void *data, size_t bytes, size_t *offset)
{
  TdNpyHeader header;
  const char *why;

  if (!td__npy_header_read (data, bytes, &header, offset, &why))
    return '\0';
  return strchr ("|<=>", header.descr[0]) != NULL ? header.descr[header.descr[0] != '\0']
                                                  : header.descr[0];
}

static bool
put_utf8 (char *to, size_t *n, uint32_t c)
{
  unsigned char *at = (unsigned char *)to + *n;

  if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
    return false;
  if (c < 0x80)
    at[0] = (unsigned char)c;
  else if (c < 0x800)
    at[0] = (unsigned char)(0xc0 | c >> 6);
  else if (c < 0x10000)
    at[0] = (unsigned char)(0xe0 | c >> 12);
  else
    at[0] = (unsigned char)(0xf0 | c >> 18);
  *n += 1;
  for (int shift = c < 0x80 ? -6 : c < 0x800 ? 0 : c < 0x10000 ? 6 : 12; shift >= 0; shift -= 6)
    to[(*n)++] = (char)(0x80 | (c >> shift & 0x3f));
  return true;
}

char *
td__npy_parse_text (const void *data, size_t bytes, size_t *text_bytes, const char **why)
{
  size_t offset = 0, chars = 0, n = 0, width;
  char *text, letter = '\0';
  TdNpyHeader header;
  bool ok = td__npy_header_read (data, bytes, &header, &offset, why)
            && text_type (header.descr, &letter, &chars);

  width = letter == 'U' ? 4 : 1;
  *why = "it is not a single text";
  if (!ok || header.ndim != 0 || chars > bytes || chars * width != bytes - offset)
    return NULL;
  text = td__xcalloc (chars + 1, 4);
  while (chars > 0 && ((const char *)data)[offset + chars * width - 1] == '\0'
         && memcmp ((const char *)data + offset + (chars - 1) * width, "\0\0\0", width - 1)
                == 0)
    chars--; /* NumPy fills short texts up */
  for (size_t i = 0; i < chars && ok; i++)
    {
      const unsigned char *p = (const unsigned char *)data + offset + i * width;

      ok = put_utf8 (text, &n,
                     width == 1 ? p[0]
                                : (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16
                                      | (uint32_t)p[3] << 24);
    }
  *text_bytes = n + 1;
  *why = "its text is not Unicode";
  if (ok)
    return text;
  free (text);
  return NULL;
}

/* The next code point of UTF-8; false: it is none. */
static bool
get_utf8 (const unsigned char **at, uint32_t *c)
{
  static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
  int more = **at < 0x80       ? 0
             : **at >> 5 == 6  ? 1
             : **at >> 4 == 14 ? 2
             : **at >> 3 == 30 ? 3
                               : -1;

  if (more < 0)
    return false;
  *c = more == 0 ? **at : **at & (0x3fu >> more);
  (*at)++;
  for (int i = 0; i < more; i++, (*at)++)
    if (**at >> 6 == 2)
      *c = *c << 6 | (**at & 0x3f);
    else
      return false;
  return *c >= least[more] && *c <= 0x10ffff && (*c < 0xd800 || *c >= 0xe000);
}

static void
shape_text (const TdShape *shape, char *text, size_t size)
{
  size_t used = 1;

  snprintf (text, size, "(");
  for (int i = 0; i < shape->ndim; i++)
    used += (size_t)snprintf (text + used, size - used, i > 0 ? ", %lld" : "%lld",
                              (long long)shape->dim[i]);
  snprintf (text + used, size - used, shape->ndim == 1 ? ",)" : ")");
}

/* A whole file but for its elements: descr and sizes are Python's texts. */
static char *
format_head (const char *descr, const char *sizes, size_t data_bytes, size_t *head_bytes)
{
  char head[512] = "\x93NUMPY\x01", *out;
  size_t length;
  int n = snprintf (head + 10, sizeof head - 10,
                    "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, sizes);

  length = ((size_t)n + 11 + 63) / 64 * 64; /* elements begin at a multiple of 64 */
  memset (head + 10 + n, ' ', length - 11 - (size_t)n);
  head[length - 1] = '\n';
  head[8] = (char)((length - 10) & 0xff);
  head[9] = (char)((length - 10) >> 8);
  out = td__xcalloc (1, length + data_bytes);
  memcpy (out, head, length);
  *head_bytes = length;
  return out;
}

void *
td__npy_format (TdDtype dtype, const TdShape *shape, const void *elements, size_t *bytes)
{
  TdNpy npy = { .dtype = dtype, .shape = *shape };
  TdDtype stored = dtype == TD_BF16 ? TD_F32 : dtype;
  size_t length, data_bytes = (size_t)td_shape_size (shape) * td_dtype_bytes (stored);
  char sizes[240], *out;

  shape_text (shape, sizes, sizeof sizes);
  out = format_head (descriptions[dtype], sizes, data_bytes, &length);
  td__npy_convert (&npy, elements, stored, out + length);
  *bytes = length + data_bytes;
  return out;
}

void *
td__npy_format_text (const char *text, size_t *bytes)
{
  const unsigned char *at = (const unsigned char *)text;
  size_t n = 0, length;
  uint32_t c;
  char descr[32], *out;

  while (*at != '\0')
    {
      if (!get_utf8 (&at, &c))
        return NULL;
      n++;
    }
  snprintf (descr, sizeof descr, "<U%zu", n > 0 ? n : 1); /* NumPy has no text of no room */
  out = format_head (descr, "()", (n > 0 ? n : 1) * 4, &length);
  *bytes = length + (n > 0 ? n : 1) * 4;
  at = (const unsigned char *)text;
  for (size_t i = 0; i < n && get_utf8 (&at, &c); i++)
    for (int k = 0; k < 4; k++)
      out[length + 4 * i + (size_t)k] = (char)(c >> (8 * k));
  return out;
}

/* binary16 of f, to nearest even. */
static uint16_t
half_of (float f)
{
  uint32_t bits, sign, rounded;
  float magnitude = f < 0 ? -f : f;

  memcpy (&bits, &f, sizeof bits);
  sign = bits >> 16 & 0x8000;
  if (f != f)
    return (uint16_t)(sign | 0x7e00);
  if (magnitude >= 65520.0f)
    return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x1p-14f) /* subnormal: adding 0.5 leaves the rounded half in the low bits */
    {
      magnitude += 0.5f;
      memcpy (&bits, &magnitude, sizeof bits);
      return (uint16_t)(sign | (bits - 0x3f000000));
    }
  memcpy (&bits, &magnitude, sizeof bits);
  rounded = bits + 0xfff + (bits >> 13 & 1);
  return (uint16_t)(sign | ((rounded >> 13) - (112 << 10)));
}

static void
set_element (void *dst, TdDtype dtype, int64_t i, double value)
{
  float f = (float)value;
  uint32_t bits;

  memcpy (&bits, &f, sizeof bits);
  switch (dtype)
    {
    case TD_F32:
      ((float *)dst)[i] = f;
      break;
    case TD_F64:
      ((double *)dst)[i] = value;
      break;
    case TD_I32:
      ((int32_t *)dst)[i] = (int32_t)value;
      break;
    case TD_I64:
      ((int64_t *)dst)[i] = (int64_t)value;
      break;
    case TD_U8:
    case TD_BOOL:
      ((uint8_t *)dst)[i] = (uint8_t)value;
      break;
    case TD_BF16: /* to nearest even */
      ((uint16_t *)dst)[i]
          = value != value ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
      break;
    case TD_F16:
      ((uint16_t *)dst)[i] = half_of (f);
      break;
    }
}

/* Largest finite number of a float; integers up to exact are all numbers of it. */
static const struct
{
  double largest, exact;
} floats[] = {
  [TD_F32] = { 0x1.fffffep127, 0x1p24 },
  [TD_F64] = { 0x1.fffffffffffffp1023, 0x1p53 },
  [TD_F16] = { 65504, 0x1p11 },
  [TD_BF16] = { 0x1.fep127, 0x1p8 },
};
/* Integers: the numbers from low to below high. */
static const struct
{
  double low, high;
} integers[] = {
  [TD_I32] = { -0x1p31, 0x1p31 },
  [TD_I64] = { -0x1p63, 0x1p63 },
  [TD_U8] = { 0, 256 },
  [TD_BOOL] = { 0, 2 },
};

static bool
is_float (TdDtype dtype)
{
  return dtype == TD_F32 || dtype == TD_F64 || dtype == TD_F16 || dtype == TD_BF16;
}

/* A number as a float, and back. */
static double
as_float (double value, TdDtype to)
{
  union
  {
    double f64;
    float f32;
    uint16_t half;
  } room;

  set_element (&room, to, 0, value);
  return td__host_element (&room, to, 0);
}

/* An integer of 64 bits as a float: is it the same number? */
static bool
float_holds (int64_t value, TdDtype to)
{
  double back;

  if (fabs ((double)value) <= floats[to].exact)
    return true;
  back = as_float ((double)value, to);
  return back >= -0x1p63 && back < 0x1p63 && (int64_t)back == value;
}

bool
td__npy_misfit (TdDtype from, const void *elements, int64_t n, TdDtype to, int64_t *at)
{
  bool from_float = is_float (from), to_float = is_float (to);

  for (int64_t i = 0; from != to && i < n; i++)
    {
      double value = td__host_element (elements, from, i);
      bool fits;

      if (!to_float) /* NaN is in no range */
        fits = value >= integers[to].low && value < integers[to].high && value == floor (value);
      else if (from_float)
        fits = !isfinite (value) || value == 0
               || (fabs (value) <= floats[to].largest && as_float (value, to) != 0);
      else
        fits = float_holds (from == TD_I64 ? ((const int64_t *)elements)[i] : (int64_t)value,
                            to);
      if (fits)
        continue;
      *at = i;
      return true;
    }
  return false;
}

void
td__npy_convert (const TdNpy *npy, const void *elements, TdDtype dtype, void *dst)
{
  int64_t n = td_shape_size (&npy->shape), index[TD_MAX_DIMS] = { 0 };
  int ndim = npy->shape.ndim;

  if (npy->dtype == dtype && (!npy->fortran || ndim < 2))
    {
      memcpy (dst, elements, (size_t)n * td_dtype_bytes (dtype));
      return;
    }
  for (int64_t i = 0; i < n; i++)
    {
      int64_t from = i;

      if (npy->fortran)
        {
          from = 0;
          for (int d = ndim - 1; d >= 0; d--)
            from = from * npy->shape.dim[d] + index[d];
        }
      set_element (dst, dtype, i, td__host_element (elements, npy->dtype, from));
      for (int d = ndim - 1; d >= 0 && ++index[d] == npy->shape.dim[d]; d--)
        index[d] = 0;
    }
}
