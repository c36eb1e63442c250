/* Data sets in CSV files: a row of numbers on each line, one column of which may be the label.
 *
 * SPDX-License-Identifier: MIT */
#include "dataset.h"
#include "host-memory.h"

#include "source.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  COLUMNS_MOST = 1 << 20
};

typedef struct
{
  const char *path;
  const TdSite *site;
  TdCsvOpt options;
  char *text, *at, *end; /* the whole file, with a final 0 */
  int64_t line;
  int n_columns, label; /* label: -1 for none */
  float *x;
  int32_t *t;
  int64_t n, room; /* rows */
} Csv;

static bool
fail_csv (const Csv *csv, int column, const char *what)
{
  if (csv->line == 0)
    td__fail (TD_ERR_IO, "td_csv_open", csv->site, "%.400s: %.300s", csv->path, what);
  else if (column < 0)
    td__fail (TD_ERR_IO, "td_csv_open", csv->site, "%.400s: line %lld: %.300s", csv->path,
              (long long)csv->line, what);
  else
    td__fail (TD_ERR_IO, "td_csv_open", csv->site, "%.400s: line %lld, column %d: %.300s",
              csv->path, (long long)csv->line, column, what);
  return false;
}

/* The file is read in pieces, so that memory follows the bytes that really come. */
static bool
read_text (Csv *csv)
{
  const char *why = NULL;
  TdSource *source = td__source_open (csv->path, &why);
  size_t n = 0, room = 0;
  int64_t k = 1;

  while (source != NULL && k > 0)
    {
      if (n + 1 >= room)
        {
          char *more = realloc (csv->text, room = 2 * room + 65536);

          why = "no memory to read it";
          if (more == NULL)
            break;
          csv->text = more;
        }
      k = td__source_read (source, csv->text + n, room - n - 1, &why);
      n += k > 0 ? (size_t)k : 0;
    }
  if (source != NULL)
    td__source_close (source);
  if (source == NULL || k != 0)
    return fail_csv (csv, -1, why);
  csv->text[n] = '\0';
  csv->at = csv->text;
  csv->end = csv->text + n;
  return memchr (csv->text, 0, n) == NULL || fail_csv (csv, -1, "a zero byte: not a text");
}

/* Cut the next line off, without its end; false at the end of the file.  Empty lines are
 * passed over. */
static bool
next_line (Csv *csv, char **line)
{
  while (csv->at < csv->end)
    {
      char *stop = memchr (csv->at, '\n', (size_t)(csv->end - csv->at));

      if (stop == NULL)
        stop = csv->end;
      *line = csv->at;
      csv->at = stop + (stop < csv->end);
      csv->line++;
      *stop = '\0';
      if (stop > *line && stop[-1] == '\r')
        stop[-1] = '\0';
      if (**line != '\0')
        return true;
    }
  return false;
}

/* Cut the next field off, without blanks and quotes; NULL behind the last. */
static char *
next_field (const Csv *csv, char **at)
{
  char *field = *at, *stop, *end;

  if (field == NULL)
    return NULL;
  while (*field == ' ' || (*field == '\t' && csv->options.delimiter != '\t'))
    field++;
  stop = *field == '"' ? strchr (field + 1, '"') : field;
  stop = stop != NULL ? strchr (stop, csv->options.delimiter) : NULL;
  *at = stop != NULL ? stop + 1 : NULL;
  end = stop != NULL ? stop : field + strlen (field);
  while (end > field && (end[-1] == ' ' || end[-1] == '\t'))
    end--;
  *end = '\0';
  if (*field == '"' && end > field + 1 && end[-1] == '"')
    {
      end[-1] = '\0';
      field++;
    }
  return field;
}

/* errno is ERANGE when it is too large or too small for a double. */
static bool
number_of (const char *field, double *value)
{
  char *end;

  if (*field == '\0')
    return false;
  errno = 0;
  *value = strtod (field, &end);
  return *end == '\0';
}

static bool
take_label (Csv *csv, int column, const char *field)
{
  double value;
  char text[200];

  if (number_of (field, &value) && value == floor (value) && fabs (value) <= 0x7fffffff)
    {
      csv->t[csv->n] = (int32_t)value;
      return true;
    }
  snprintf (text, sizeof text, "the label \"%.80s\" is not a whole number", field);
  return fail_csv (csv, column, text);
}

static bool
grow (Csv *csv)
{
  int n_x = csv->n_columns - (csv->label >= 0);
  float *x;
  int32_t *t;

  if (csv->n < csv->room)
    return true;
  csv->room = csv->room > 0 ? 2 * csv->room : 64;
  x = realloc (csv->x, ((size_t)csv->room * (size_t)n_x + 1) * sizeof *x);
  if (x != NULL)
    csv->x = x;
  t = realloc (csv->t, (size_t)csv->room * sizeof *t);
  if (t != NULL)
    csv->t = t;
  return (x != NULL && t != NULL) || fail_csv (csv, -1, "no memory for its rows");
}

/* Is it a whole number, of digits only, and another one as a float? */
static bool
is_rounded (const char *field, float value)
{
  char exact[64];
  const char *digits = field + strspn (field, "+-"), *ours = exact;

  if (*digits == '\0' || digits[strspn (digits, "0123456789")] != '\0')
    return false;
  snprintf (exact, sizeof exact, "%.0f", (double)fabsf (value));
  while (*digits == '0' && digits[1] != '\0')
    digits++;
  return strcmp (digits, ours) != 0;
}

/* A number as the data set holds it.  That a fraction is rounded is no loss: see
 * td__npy_misfit, whose rule this is. */
static bool
take_number (Csv *csv, int column, const char *field, float *to)
{
  const char *why = NULL;
  char text[200];
  double value;

  if (!number_of (field, &value))
    why = "is not a number";
  else if (isinf ((float)value) && strpbrk (field, "0123456789") != NULL)
    why = "is more than float32 can hold";
  else if ((float)value == 0 && (value != 0 || errno == ERANGE))
    why = "is too small for float32: it would become 0";
  else if (is_rounded (field, (float)value))
    why = "is a whole number that float32 would round";
  if (why == NULL)
    {
      *to = (float)value;
      return true;
    }
  snprintf (text, sizeof text, "\"%.80s\" %s", field, why);
  return fail_csv (csv, column, text);
}

static bool
take_row (Csv *csv, char *line)
{
  int n_x = csv->n_columns - (csv->label >= 0), column = 0, k = 0;
  char *field, text[200];

  if (!grow (csv))
    return false;
  for (; (field = next_field (csv, &line)) != NULL; column++)
    {
      if (column >= csv->n_columns)
        continue; /* counted only */
      if (column == csv->label)
        {
          if (!take_label (csv, column, field))
            return false;
          continue;
        }
      if (!take_number (csv, column, field, &csv->x[csv->n * n_x + k++]))
        return false;
    }
  if (column != csv->n_columns)
    {
      snprintf (text, sizeof text, "%d columns, the lines before have %d", column,
                csv->n_columns);
      return fail_csv (csv, -1, text);
    }
  csv->n++;
  return true;
}

/* The first line tells the columns, and whether it names them only. */
static bool
first_line (Csv *csv, char *line, bool *names)
{
  char *copy = td__xstrdup (line), *at = copy, *field, text[200];
  int n_numbers = 0, first_name = -1;
  double value;

  while ((field = next_field (csv, &at)) != NULL && csv->n_columns < COLUMNS_MOST)
    {
      if (number_of (field, &value))
        n_numbers++;
      else if (first_name < 0)
        {
          first_name = csv->n_columns;
          snprintf (text, sizeof text,
                    "\"%.80s\" is not a number, beside numbers: skip_lines passes names over",
                    field);
        }
      csv->n_columns++;
    }
  free (copy);
  *names = first_name >= 0;
  if (*names && n_numbers > 0)
    return fail_csv (csv, first_name, text);
  csv->label = -1;
  if (csv->options.label_column == TD_CSV_NO_LABEL)
    return true;
  csv->label = csv->options.label_column < 0 ? csv->options.label_column + csv->n_columns
                                             : csv->options.label_column;
  if (csv->label >= 0 && csv->label < csv->n_columns && csv->n_columns > 1)
    return true;
  snprintf (text, sizeof text,
            "there is no label in column %d beside others: it has %d columns",
            csv->options.label_column, csv->n_columns);
  return fail_csv (csv, -1, text);
}

static bool
read_rows (Csv *csv)
{
  bool names = false, ok;
  char *line;

  for (int64_t i = 0; i < csv->options.skip_lines; i++)
    if (!next_line (csv, &line))
      break;
  if (!next_line (csv, &line))
    return fail_csv (csv, -1, "there is no line of numbers in it");
  ok = first_line (csv, line, &names) && (names || take_row (csv, line));
  while (ok && next_line (csv, &line))
    ok = take_row (csv, line);
  return ok && (csv->n > 0 || fail_csv (csv, -1, "there is no line of numbers in it"));
}

static TdDataset *
dataset_of (Csv *csv)
{
  int n_x = csv->n_columns - (csv->label >= 0);
  TdColumn columns[2] = { { .dtype = TD_F32, .row = { 1, { n_x } } }, { .dtype = TD_I32 } };

  columns[0].row_bytes = (size_t)n_x * sizeof (float);
  columns[0].data = (char *)csv->x;
  columns[1].row_bytes = sizeof (int32_t);
  columns[1].data = (char *)csv->t;
  csv->x = NULL;
  if (csv->label >= 0)
    csv->t = NULL;
  return td__dataset_of_columns (columns, 1 + (csv->label >= 0), csv->n);
}

TdDataset *
td_csv_open_at (const char *path, TdCsvOpt options, const TdSite *site)
{
  Csv csv = { .path = path, .site = site, .options = options };
  TdDataset *d = td__dataset_inert ();

  td__ensure_started ();
  if (td__stranger ("td_csv_open"))
    return d;
  if (path == NULL)
    td__fail (TD_ERR_ARG, "td_csv_open", site, "the path is NULL");
  else if (read_text (&csv) && read_rows (&csv))
    d = dataset_of (&csv);
  free (csv.text);
  free (csv.x);
  free (csv.t);
  return d;
}

TdDataset *
td_csv_open_ (const char *path, const TdCsvOpt *options)
{
  static const TdCsvOpt defaults = { TD_CSV_DEFAULTS };

  return td_csv_open_at (path, options != NULL ? *options : defaults, NULL);
}
