/* The report of memory that ran out, as text and as JSON (`tapedeck info --oom`).
 * SPDX-License-Identifier: MIT */
#include "td-tape-oom-way.h"
#include "tape-dump.h"
#include "../read/tape-oom.h"

#include <inttypes.h>

enum
{
  N_REMEDIES = 3 /* that are printed */
};

/* Bytes by their names, in the order in which they are printed; around them their text. */
typedef struct
{
  const char *key, *before, *after;
  size_t at;
} Amount;

#define AMOUNT(field) offsetof (TdTapeOom, field)
static const Amount amounts[] = {
  { "asked_bytes", "asked", "", AMOUNT (asked_bytes) },
  { "limit_bytes", "limit", "", AMOUNT (limit_bytes) },
  { "device_bytes", "device", "", AMOUNT (device_bytes) },
  { "outside_bytes", "by others", "", AMOUNT (outside_bytes) },
  { "reserved_bytes", "reserved", "", AMOUNT (reserved_bytes) },
  { "live_bytes", "live", "", AMOUNT (live_bytes) },
  { "pending_bytes", "pending", "", AMOUNT (pending_bytes) },
  { "hole_bytes", "in holes", "", AMOUNT (hole_bytes) },
  { "largest_free_bytes", "largest free", "", AMOUNT (largest_free_bytes) },
};
static const Amount tries[] = {
  { "freed_bytes", "gave back", " that the pool had cached", AMOUNT (trimmed_bytes) },
  { "freed_others_bytes", "gave back", " that other pools had cached",
    AMOUNT (trimmed_others_bytes) },
  { "waited_bytes", "waited for", " that other work still used", AMOUNT (waited_bytes) },
  { "refused_bytes", "asked the device for", ", which it refused", AMOUNT (refused_bytes) },
};

static const char *const remedy_names[TD_TAPE_N_REMEDIES]
    = { "free", "recompute", "batch", "bfloat16" };

static uint64_t
amount (const TdTapeOom *oom, size_t at)
{
  return *(const uint64_t *)(const void *)((const char *)oom + at);
}

#define N(array) (sizeof (array) / sizeof *(array))

/* --- text --- */

static void
put_shape (FILE *out, const int64_t *dims, unsigned ndim, unsigned dtype)
{
  if (ndim > TD_TAPE_MAX_NDIM)
    return;
  fputc (' ', out);
  td__tape_put_dims (out, dims, ndim, false);
  fprintf (out, " %s", td_tape_dtype_name (dtype));
}

static void
put_place (const TdTapeReader *r, FILE *out, const char *before, uint32_t site)
{
  char text[300];

  td_tape_reader_site_text (r, site, text, sizeof text);
  if (*text == '\0')
    return;
  fputs (before, out);
  td__tape_put_line (out, text);
}

static void
text_tried (FILE *out, const TdTapeOom *oom)
{
  char bytes[32];
  bool any = false;

  if (oom->flags & TD_TAPE_OOM_IMPORTED)
    return;
  fputs ("  tried         ", out);
  for (size_t i = 0; i < N (tries); i++)
    if (amount (oom, tries[i].at) > 0)
      {
        fprintf (out, "%s%s %s%s", any ? "; " : "", tries[i].before,
                 td__tape_bytes_text (amount (oom, tries[i].at), bytes), tries[i].after);
        any = true;
      }
  if (!any)
    fputs (oom->flags & TD_TAPE_OOM_LIMITED
               ? "nothing: the limit counts what is live, and that cannot be given back"
               : "nothing",
           out);
  fputc ('\n', out);
}

static void
text_holder (const TdTapeReader *r, FILE *out, uint32_t i, uint32_t k)
{
  const TdTapeOomHolder *h = &td_tape_reader_oom_holders (r, i)[k];
  const char *name = td_tape_reader_string (r, h->name),
             *path = td_tape_reader_path_text (r, h->path),
             *op = td_tape_reader_string (r, h->op);
  char bytes[32], way[1500];

  fprintf (out, "    %8s  %s", td__tape_bytes_text (h->bytes, bytes),
           td_tape_category_name (h->category));
  if (*path != '\0' || *name != '\0')
    {
      fputc (' ', out);
      td__tape_put_line (out, path);
      fputs (*path != '\0' && *name != '\0' ? "/" : "", out);
      td__tape_put_line (out, name);
    }
  put_shape (out, h->dims, h->ndim, h->dtype);
  if (h->n > 1)
    fprintf (out, " and %" PRIu32 " more", h->n - 1);
  if (*op != '\0')
    {
      fputs (", of ", out);
      td__tape_put_line (out, op);
    }
  put_place (r, out, ", made at ", h->site);
  if (h->flags & TD_TAPE_OOM_HOLDER_EARLIER)
    fprintf (out, " in iteration %" PRIu64 "%s", h->oldest, h->n > 1 ? " and later" : "");
  if (!(td_tape_reader_oom (r, i)->flags & TD_TAPE_OOM_IMPORTED))
    fprintf (out, ", kept by %s",
             h->flags & TD_TAPE_OOM_HOLDER_GRAPH ? "the graph"
                                                 : td_tape_holder_name (h->holder));
  put_place (r, out, " at ", h->holder_site);
  fputs (h->flags & TD_TAPE_OOM_HOLDER_SAVED ? ", saved for backward\n" : "\n", out);
  td_tape_oom_way (r, i, k, way, sizeof way);
  if (*way == '\0')
    return;
  fputs ("              by way of ", out);
  td__tape_put_line (out, way);
  fputc ('\n', out);
}

static void
text_categories (FILE *out, const TdTapeOom *oom)
{
  char bytes[32];
  bool any = false;

  fputs ("  live          ", out);
  for (unsigned i = 0; i < TD_TAPE_N_CATEGORIES; i++)
    if (oom->category_bytes[i] > 0)
      {
        fprintf (out, "%s%s %s", any ? ", " : "", td_tape_category_name (i),
                 td__tape_bytes_text (oom->category_bytes[i], bytes));
        any = true;
      }
  fputs (any ? "\n" : "nothing\n", out);
}

static void
text_report (TdTapeReader *r, FILE *out, uint32_t i)
{
  const TdTapeOom *oom = td_tape_reader_oom (r, i);
  TdTapeRemedy remedies[N_REMEDIES];
  const uint32_t n = td_tape_oom_remedies (r, i, remedies, N_REMEDIES);
  char sentence[700], bytes[32];

  td_tape_oom_sentence (r, i, sentence, sizeof sentence);
  fputs ("out of memory in ", out);
  td__tape_put_line (out, sentence);
  fprintf (out, "\n  asked         %s", td__tape_bytes_text (oom->asked_bytes, bytes));
  put_shape (out, oom->dims, oom->ndim, oom->dtype);
  if (!(oom->flags & TD_TAPE_OOM_IMPORTED))
    fprintf (out, ": %s more than there was",
             td__tape_bytes_text (td__tape_oom_missing (oom), bytes));
  fputc ('\n', out);
  fputs ("  memory        ", out);
  for (size_t k = 1, any = 0; k < N (amounts); k++)
    if (amount (oom, amounts[k].at) > 0)
      fprintf (out, "%s%s %s", any++ ? ", " : "", amounts[k].before,
               td__tape_bytes_text (amount (oom, amounts[k].at), bytes));
  fputc ('\n', out);
  text_categories (out, oom);
  text_tried (out, oom);
  fprintf (out, "  held by       %" PRIu32 " of %" PRIu32 " groups of arrays\n", oom->n_holders,
           oom->n_groups);
  for (uint32_t k = 0; k < oom->n_holders; k++)
    text_holder (r, out, i, k);
  if (oom->unnamed_bytes > 0)
    fprintf (out, "    %8s  in other groups\n",
             td__tape_bytes_text (oom->unnamed_bytes, bytes));
  fputs (n > 0 ? "  would help    as estimated from what was recorded\n" : "", out);
  for (uint32_t k = 0; k < n; k++)
    {
      fprintf (out, "    %" PRIu32 ". ", k + 1);
      td__tape_put_line (out, remedies[k].text);
      fputs (remedies[k].enough ? "\n" : "; not enough alone\n", out);
    }
}

/* --- JSON --- */

static void
json_string (FILE *out, const char *key, const char *text)
{
  fprintf (out, ",\"%s\":", key);
  td__tape_put_string (out, text);
}

static void
json_site (const TdTapeReader *r, FILE *out, const char *key, uint32_t site)
{
  char text[512];

  json_string (out, key, td_tape_reader_site_text (r, site, text, sizeof text));
}

static void
json_shape (FILE *out, const int64_t *dims, unsigned ndim, unsigned dtype)
{
  if (ndim > TD_TAPE_MAX_NDIM)
    {
      fputs (",\"shape\":null,\"dtype\":null", out);
      return;
    }
  fputs (",\"shape\":", out);
  td__tape_put_dims (out, dims, ndim, true);
  json_string (out, "dtype", td_tape_dtype_name (dtype));
}

static const char *const link_names[TD_TAPE_N_OOM_LINKS]
    = { "handle", "gradient", "operation" };

/* The chain, the root first. */
static void
json_way (const TdTapeReader *r, FILE *out, uint32_t i, uint32_t k)
{
  uint32_t n;
  const TdTapeOomLink *links = td_tape_reader_oom_links (r, i, k, &n);

  fputs (",\"chain\":[", out);
  for (uint32_t j = 0; j < n; j++)
    {
      const TdTapeOomLink *l = &links[j];

      fprintf (out, "%s{\"kind\":\"%s\"", j ? "," : "", link_names[l->kind]);
      json_string (out, "name", td_tape_reader_string (r, l->name));
      json_string (out, "link", td_tape_reader_path_text (r, l->path));
      json_string (out, "op", td_tape_reader_string (r, l->op));
      json_string (out, "holder",
                   l->kind == TD_TAPE_OOM_LINK_OPERATION ? ""
                                                         : td_tape_holder_name (l->holder));
      json_site (r, out, "site", l->site);
      fprintf (out, ",\"left_out\":%u}", l->left_out);
    }
  fputc (']', out);
}

static void
json_holder (const TdTapeReader *r, FILE *out, uint32_t i, uint32_t k)
{
  const TdTapeOomHolder *h = &td_tape_reader_oom_holders (r, i)[k];

  fprintf (out, "{\"bytes\":%" PRIu64 ",\"arrays\":%" PRIu32, h->bytes, h->n);
  json_string (out, "category", td_tape_category_name (h->category));
  json_string (out, "name", td_tape_reader_string (r, h->name));
  json_string (out, "link", td_tape_reader_path_text (r, h->path));
  json_string (out, "op", td_tape_reader_string (r, h->op));
  json_shape (out, h->dims, h->ndim, h->dtype);
  json_site (r, out, "site", h->site);
  if (td_tape_reader_oom (r, i)->flags & TD_TAPE_OOM_IMPORTED)
    fputs (",\"holder\":null", out);
  else
    json_string (out, "holder",
                 h->flags & TD_TAPE_OOM_HOLDER_GRAPH ? "graph"
                                                     : td_tape_holder_name (h->holder));
  json_site (r, out, "holder_site", h->holder_site);
  if (h->flags & TD_TAPE_OOM_HOLDER_BEFORE)
    fputs (",\"iteration\":null", out);
  else
    fprintf (out, ",\"iteration\":%" PRIu64, h->oldest);
  json_way (r, out, i, k);
  fprintf (out, ",\"saved\":%s}", h->flags & TD_TAPE_OOM_HOLDER_SAVED ? "true" : "false");
}

static void
json_remedy (FILE *out, const TdTapeRemedy *m)
{
  fprintf (out, "{\"kind\":\"%s\",\"saved_bytes\":%" PRIu64 ",\"enough\":%s,\"estimate\":true",
           remedy_names[m->kind], m->saved_bytes, m->enough ? "true" : "false");
  if (m->kind == TD_TAPE_REMEDY_BATCH)
    fprintf (out, ",\"batch\":%" PRIu64 ",\"before\":%" PRIu64 ",\"whole\":%s", m->batch,
             m->before, m->whole ? "true" : "false");
  if (m->kind == TD_TAPE_REMEDY_RECOMPUTE)
    fprintf (out, ",\"cost_ns\":%" PRIu64, m->cost_ns);
  json_string (out, "text", m->text);
  fputc ('}', out);
}

static void
json_tried (FILE *out, const TdTapeOom *oom)
{
  if (oom->flags & TD_TAPE_OOM_IMPORTED)
    {
      fputs (",\"missing_bytes\":null,\"tried\":null", out);
      return;
    }
  fprintf (out, ",\"missing_bytes\":%" PRIu64 ",\"tried\":{\"limited\":%s",
           td__tape_oom_missing (oom), oom->flags & TD_TAPE_OOM_LIMITED ? "true" : "false");
  for (size_t k = 0; k < N (tries); k++)
    fprintf (out, ",\"%s\":%" PRIu64, tries[k].key, amount (oom, tries[k].at));
  fputc ('}', out);
}

static void
json_report (TdTapeReader *r, FILE *out, uint32_t i)
{
  const TdTapeOom *oom = td_tape_reader_oom (r, i);
  const bool known = oom->flags & TD_TAPE_OOM_ITERATION,
             imported = oom->flags & TD_TAPE_OOM_IMPORTED;
  TdTapeRemedy remedies[N_REMEDIES];
  const uint32_t n = td_tape_oom_remedies (r, i, remedies, N_REMEDIES);

  if (known)
    fprintf (out, "{\"iteration\":%" PRIu64 ",\"event\":%" PRIu32, oom->iteration, oom->event);
  else
    fputs ("{\"iteration\":null,\"event\":null", out);
  json_string (out, "device", td_tape_reader_string (r, oom->device_name));
  if (imported)
    fputs (",\"phase\":null", out);
  else
    json_string (out, "phase", td_tape_phase_name (oom->phase));
  json_string (out, "op", td_tape_reader_string (r, oom->op));
  json_string (out, "link", td_tape_reader_path_text (r, oom->path));
  json_site (r, out, "site", oom->site);
  json_shape (out, oom->dims, oom->ndim, oom->dtype);
  for (size_t k = 0; k < N (amounts); k++)
    fprintf (out, ",\"%s\":%" PRIu64, amounts[k].key, amount (oom, amounts[k].at));
  json_tried (out, oom);
  fputs (",\"categories\":{", out);
  for (unsigned k = 0; k < TD_TAPE_N_CATEGORIES; k++)
    fprintf (out, "%s\"%s\":%" PRIu64, k ? "," : "", td_tape_category_name (k),
             oom->category_bytes[k]);
  fprintf (out, "},\"groups\":%" PRIu32 ",\"other_bytes\":%" PRIu64 ",\"holders\":[",
           oom->n_groups, oom->unnamed_bytes);
  for (uint32_t k = 0; k < oom->n_holders; k++)
    {
      fputs (k ? "," : "", out);
      json_holder (r, out, i, k);
    }
  fputs ("],\"remedies\":[", out);
  for (uint32_t k = 0; k < n; k++)
    {
      fputs (k ? "," : "", out);
      json_remedy (out, &remedies[k]);
    }
  fputs ("]}", out);
}

void
td_tape_oom_print (TdTapeReader *r, FILE *out, bool json)
{
  const uint32_t n = td_tape_reader_n_ooms (r);

  if (!json && n == 0)
    fputs ("memory did not run out\n", out);
  fputs (json ? "{\"out_of_memory\":[" : "", out);
  for (uint32_t i = 0; i < n; i++)
    {
      fputs (i == 0 ? "" : json ? "," : "\n", out);
      (json ? json_report : text_report) (r, out, i);
    }
  fputs (json ? "]}\n" : "", out);
}

void
td__tape_info_ooms (TdTapeReader *r, FILE *out, bool json)
{
  const uint32_t n = td_tape_reader_n_ooms (r);
  char text[700];

  if (n == 0)
    return;
  td_tape_oom_sentence (r, n - 1, text, sizeof text);
  if (json)
    {
      fprintf (out, ",\"n_out_of_memory\":%" PRIu32 ",\"last_out_of_memory\":", n);
      td__tape_put_string (out, text);
      return;
    }
  fputs ("out of memory    ", out);
  td__tape_put_line (out, text);
  fputs (n > 1 ? "; the last of " : "", out);
  if (n > 1)
    fprintf (out, "%" PRIu32, n);
  fputs ("; --oom says more\n", out);
}

void
td__tape_dump_ooms (TapeDump *d, uint64_t iteration)
{
  char text[700];

  for (uint32_t i = 0; i < td_tape_reader_n_ooms (d->r); i++)
    {
      const TdTapeOom *oom = td_tape_reader_oom (d->r, i);

      if (!(oom->flags & TD_TAPE_OOM_ITERATION) || oom->iteration != iteration)
        continue;
      if (d->json)
        {
          fputs ("{\"record\":\"out of memory\",\"report\":", d->out);
          json_report (d->r, d->out, i);
          fputs ("}\n", d->out);
          continue;
        }
      td_tape_oom_sentence (d->r, i, text, sizeof text);
      fputs ("  out of memory ", d->out);
      td__tape_put_line (d->out, text);
      fputc ('\n', d->out);
    }
}
