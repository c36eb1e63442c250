/* The report of memory that ran out, as text and as JSON (`tapedeck info --oom`).
 * SPDX-License-Identifier: MIT */
#include "td-tape-oom-way.h"
#include "tape-dump.h"
#include "../read/tape-oom.h"
#include "bytes-text.h"

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
  td__tape_put_dims (out, dims, ndim);
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
                 td__bytes_text (amount (oom, tries[i].at), bytes), tries[i].after);
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

  fprintf (out, "    %8s  %s", td__bytes_text (h->bytes, bytes),
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
                 td__bytes_text (oom->category_bytes[i], bytes));
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
  fprintf (out, "\n  asked         %s", td__bytes_text (oom->asked_bytes, bytes));
  put_shape (out, oom->dims, oom->ndim, oom->dtype);
  if (!(oom->flags & TD_TAPE_OOM_IMPORTED))
    fprintf (out, ": %s more than there was",
             td__bytes_text (td__tape_oom_missing (oom), bytes));
  fputc ('\n', out);
  fputs ("  memory        ", out);
  for (size_t k = 1, any = 0; k < N (amounts); k++)
    if (amount (oom, amounts[k].at) > 0)
      fprintf (out, "%s%s %s", any++ ? ", " : "", amounts[k].before,
               td__bytes_text (amount (oom, amounts[k].at), bytes));
  fputc ('\n', out);
  text_categories (out, oom);
  text_tried (out, oom);
  fprintf (out, "  held by       %" PRIu32 " of %" PRIu32 " groups of arrays\n", oom->n_holders,
           oom->n_groups);
  for (uint32_t k = 0; k < oom->n_holders; k++)
    text_holder (r, out, i, k);
  if (oom->unnamed_bytes > 0)
    fprintf (out, "    %8s  in other groups\n", td__bytes_text (oom->unnamed_bytes, bytes));
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
json_shape (TdJsonWriter *json, const int64_t *dims, unsigned ndim, unsigned dtype)
{
  if (ndim > TD_TAPE_MAX_NDIM)
    {
      td__json_member_null (json, "shape");
      td__json_member_null (json, "dtype");
      return;
    }
  td__tape_json_shape (json, dims, ndim);
  td__json_member_string (json, "dtype", td_tape_dtype_name (dtype));
}

static const char *const link_names[TD_TAPE_N_OOM_LINKS]
    = { "handle", "gradient", "operation" };

/* The chain, the root first. */
static void
json_way (const TdTapeReader *r, TdJsonWriter *json, uint32_t i, uint32_t k)
{
  uint32_t n;
  const TdTapeOomLink *links = td_tape_reader_oom_links (r, i, k, &n);

  td__json_key (json, "chain");
  td__json_begin_array (json);
  for (uint32_t j = 0; j < n; j++)
    {
      const TdTapeOomLink *l = &links[j];

      td__json_begin_object (json);
      td__json_member_string (json, "kind", link_names[l->kind]);
      td__json_member_string (json, "name", td_tape_reader_string (r, l->name));
      td__json_member_string (json, "link", td_tape_reader_path_text (r, l->path));
      td__json_member_string (json, "op", td_tape_reader_string (r, l->op));
      td__json_member_string (
          json, "holder",
          l->kind == TD_TAPE_OOM_LINK_OPERATION ? "" : td_tape_holder_name (l->holder));
      td__tape_json_site (json, r, "site", l->site);
      td__json_member_uint (json, "left_out", l->left_out);
      td__json_end_object (json);
    }
  td__json_end_array (json);
}

static void
json_holder (const TdTapeReader *r, TdJsonWriter *json, uint32_t i, uint32_t k)
{
  const TdTapeOomHolder *h = &td_tape_reader_oom_holders (r, i)[k];

  td__json_begin_object (json);
  td__json_member_uint (json, "bytes", h->bytes);
  td__json_member_uint (json, "arrays", h->n);
  td__json_member_string (json, "category", td_tape_category_name (h->category));
  td__json_member_string (json, "name", td_tape_reader_string (r, h->name));
  td__json_member_string (json, "link", td_tape_reader_path_text (r, h->path));
  td__json_member_string (json, "op", td_tape_reader_string (r, h->op));
  json_shape (json, h->dims, h->ndim, h->dtype);
  td__tape_json_site (json, r, "site", h->site);
  if (td_tape_reader_oom (r, i)->flags & TD_TAPE_OOM_IMPORTED)
    td__json_member_null (json, "holder");
  else
    td__json_member_string (
        json, "holder",
        h->flags & TD_TAPE_OOM_HOLDER_GRAPH ? "graph" : td_tape_holder_name (h->holder));
  td__tape_json_site (json, r, "holder_site", h->holder_site);
  if (h->flags & TD_TAPE_OOM_HOLDER_BEFORE)
    td__json_member_null (json, "iteration");
  else
    td__json_member_uint (json, "iteration", h->oldest);
  json_way (r, json, i, k);
  td__json_member_bool (json, "saved", h->flags & TD_TAPE_OOM_HOLDER_SAVED);
  td__json_end_object (json);
}

static void
json_remedy (TdJsonWriter *json, const TdTapeRemedy *m)
{
  td__json_begin_object (json);
  td__json_member_string (json, "kind", remedy_names[m->kind]);
  td__json_member_uint (json, "saved_bytes", m->saved_bytes);
  td__json_member_bool (json, "enough", m->enough);
  td__json_member_bool (json, "estimate", true);
  if (m->kind == TD_TAPE_REMEDY_BATCH)
    {
      td__json_member_uint (json, "batch", m->batch);
      td__json_member_uint (json, "before", m->before);
      td__json_member_bool (json, "whole", m->whole);
    }
  if (m->kind == TD_TAPE_REMEDY_RECOMPUTE)
    td__json_member_uint (json, "cost_ns", m->cost_ns);
  td__json_member_string (json, "text", m->text);
  td__json_end_object (json);
}

static void
json_tried (TdJsonWriter *json, const TdTapeOom *oom)
{
  if (oom->flags & TD_TAPE_OOM_IMPORTED)
    {
      td__json_member_null (json, "missing_bytes");
      td__json_member_null (json, "tried");
      return;
    }
  td__json_member_uint (json, "missing_bytes", td__tape_oom_missing (oom));
  td__json_key (json, "tried");
  td__json_begin_object (json);
  td__json_member_bool (json, "limited", oom->flags & TD_TAPE_OOM_LIMITED);
  for (size_t k = 0; k < N (tries); k++)
    td__json_member_uint (json, tries[k].key, amount (oom, tries[k].at));
  td__json_end_object (json);
}

/* Where it happened, and for what. */
static void
json_place (const TdTapeReader *r, TdJsonWriter *json, const TdTapeOom *oom)
{
  if (oom->flags & TD_TAPE_OOM_ITERATION)
    {
      td__json_member_uint (json, "iteration", oom->iteration);
      td__json_member_uint (json, "event", oom->event);
    }
  else
    {
      td__json_member_null (json, "iteration");
      td__json_member_null (json, "event");
    }
  td__json_member_string (json, "device", td_tape_reader_string (r, oom->device_name));
  td__json_member_string (json, "phase",
                          oom->flags & TD_TAPE_OOM_IMPORTED ? NULL
                                                            : td_tape_phase_name (oom->phase));
  td__json_member_string (json, "op", td_tape_reader_string (r, oom->op));
  td__json_member_string (json, "link", td_tape_reader_path_text (r, oom->path));
  td__tape_json_site (json, r, "site", oom->site);
  json_shape (json, oom->dims, oom->ndim, oom->dtype);
}

static void
json_report (TdTapeReader *r, TdJsonWriter *json, uint32_t i)
{
  const TdTapeOom *oom = td_tape_reader_oom (r, i);
  TdTapeRemedy remedies[N_REMEDIES];
  const uint32_t n = td_tape_oom_remedies (r, i, remedies, N_REMEDIES);

  td__json_begin_object (json);
  json_place (r, json, oom);
  for (size_t k = 0; k < N (amounts); k++)
    td__json_member_uint (json, amounts[k].key, amount (oom, amounts[k].at));
  json_tried (json, oom);
  td__json_key (json, "categories");
  td__json_begin_object (json);
  for (unsigned k = 0; k < TD_TAPE_N_CATEGORIES; k++)
    td__json_member_uint (json, td_tape_category_name (k), oom->category_bytes[k]);
  td__json_end_object (json);
  td__json_member_uint (json, "groups", oom->n_groups);
  td__json_member_uint (json, "other_bytes", oom->unnamed_bytes);
  td__json_key (json, "holders");
  td__json_begin_array (json);
  for (uint32_t k = 0; k < oom->n_holders; k++)
    json_holder (r, json, i, k);
  td__json_end_array (json);
  td__json_key (json, "remedies");
  td__json_begin_array (json);
  for (uint32_t k = 0; k < n; k++)
    json_remedy (json, &remedies[k]);
  td__json_end_array (json);
  td__json_end_object (json);
}

void
td_tape_oom_print (TdTapeReader *r, FILE *out, bool json)
{
  const uint32_t n = td_tape_reader_n_ooms (r);

  TdJsonWriter writer;

  if (!json)
    {
      fputs (n == 0 ? "memory did not run out\n" : "", out);
      for (uint32_t i = 0; i < n; i++)
        {
          fputs (i == 0 ? "" : "\n", out);
          text_report (r, out, i);
        }
      return;
    }
  td__json_write (&writer, td__json_put_file, out, TD_JSON_TIGHT);
  td__json_begin_object (&writer);
  td__json_key (&writer, "out_of_memory");
  td__json_begin_array (&writer);
  for (uint32_t i = 0; i < n; i++)
    json_report (r, &writer, i);
  td__json_end_array (&writer);
  td__json_end_object (&writer);
  fputc ('\n', out);
}

void
td__tape_info_ooms (TdTapeReader *r, FILE *out, TdJsonWriter *json)
{
  const uint32_t n = td_tape_reader_n_ooms (r);
  char text[700];

  if (n == 0)
    return;
  td_tape_oom_sentence (r, n - 1, text, sizeof text);
  if (json)
    {
      td__json_member_uint (json, "n_out_of_memory", n);
      td__json_member_string (json, "last_out_of_memory", text);
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
          td__json_key (td__tape_begin_record (d, "out of memory"), "report");
          json_report (d->r, d->json, i);
          td__tape_end_record (d);
          continue;
        }
      td_tape_oom_sentence (d->r, i, text, sizeof text);
      fputs ("  out of memory ", d->out);
      td__tape_put_line (d->out, text);
      fputc ('\n', d->out);
    }
}
