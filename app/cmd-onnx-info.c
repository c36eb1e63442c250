/* `tapedeck info MODEL.onnx`: what a model of another program says of itself, what of it is not
 * there, and what is trained of it.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "command.h"
#include "eval.h"

#include "json.h"
#include "plural.h"
#include "train/onnx/look.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is trained; n -1: the model cannot be loaded. */
typedef struct
{
  int n;
  int64_t numbers;
} Trained;

static void
add_param (const char *path, TdVar *param, void *user)
{
  Trained *t = user;

  (void)path;
  t->n++;
  t->numbers += td_size (param);
}

/* Data that lies outside may not be there, or damaged: this is said, and the rest is true. */
static Trained
load (const char *path)
{
  Trained trained = { 0, 0 };
  TdLink *link = td_onnx_load (path);

  if (td_error () == NULL)
    {
      td_link_each_param (link, add_param, &trained);
      return trained;
    }
  td_eval_say_error ();
  return (Trained){ -1, 0 };
}

/* --- text --- */

static void
print_shape (FILE *out, const TdOnnxInfo *info)
{
  if (info->ndim < 0)
    fputs (" of any shape", out);
  for (int d = 0; d < info->ndim; d++)
    {
      fputs (d == 0 ? " (" : ", ", out);
      if (info->dim[d] >= 0)
        fprintf (out, "%" PRId64, info->dim[d]);
      else
        fputs (info->symbol[d] != NULL ? info->symbol[d] : "?", out);
    }
  if (info->ndim >= 0)
    fputs (info->ndim == 0 ? " ()" : ")", out);
}

static void
print_ends (FILE *out, const char *what, const TdOnnxEnd *ends, int n)
{
  for (int i = 0; i < n; i++)
    {
      fprintf (out, "%-16s %s %s", what, ends[i].info.name, ends[i].type);
      print_shape (out, &ends[i].info);
      fputs (ends[i].info.is_optional ? ", has a default\n" : "\n", out);
    }
}

/* Each line of a text behind its label. */
static void
print_lines (FILE *out, const char *label, const char *text)
{
  for (size_t n; *text != '\0'; text += n + (text[n] == '\n'))
    {
      n = strcspn (text, "\n");
      fprintf (out, "%-16s %.*s\n", label, (int)n, text);
    }
}

static void
print (FILE *out, const char *path, const TdOnnxLook *look, Trained trained)
{
  fprintf (out, "%-16s %s\n", "model", path);
  if (look->producer[0] != '\0')
    fprintf (out, "%-16s %s %s\n", "producer", look->producer, look->producer_version);
  fprintf (out, "%-16s %" PRId64 " (IR version %" PRId64 ")\n", "opset", look->opset,
           look->ir_version);
  fprintf (out, "%-16s %s\n", "graph", look->name);
  print_ends (out, "input", look->in, look->n_in);
  print_ends (out, "output", look->out, look->n_out);
  fprintf (out, "%-16s %" PRId64 ", %" PRId64 " numbers, %" PRId64 " bytes\n", "initializers",
           look->n_initializers, look->n_numbers, look->initializer_bytes);
  if (trained.n >= 0)
    fprintf (out, "%-16s %d, %" PRId64 " numbers\n", "parameters", trained.n, trained.numbers);
  fprintf (out, "%-16s %d\n", "nodes", look->n_nodes);
  for (int i = 0; i < look->n_operators; i++)
    fprintf (out, "%8d         %s%s%s\n", look->operators[i].n, look->operators[i].name,
             look->operators[i].domain[0] != '\0' ? " of domain " : "",
             look->operators[i].domain);
  print_lines (out, "fixed", look->fixed);
  print_lines (out, "assumed", look->assumed);
  if (look->n_lacks == 0)
    fprintf (out, "%-16s nothing\n", "not there");
  for (int i = 0; i < look->n_lacks; i++)
    fprintf (out, "%-16s %s\n", "not there", look->lacks[i]);
}

/* --- JSON --- */

static void
write_ends (TdJsonWriter *w, const char *key, const TdOnnxEnd *ends, int n)
{
  td__json_key (w, key);
  td__json_begin_array (w);
  for (int i = 0; i < n; i++)
    {
      const TdOnnxInfo *info = &ends[i].info;

      td__json_begin_object (w);
      td__json_member_string (w, "name", info->name);
      td__json_member_string (w, "type", ends[i].type);
      td__json_key (w, "shape");
      if (info->ndim < 0)
        td__json_null (w);
      else
        td__json_begin_array (w);
      for (int d = 0; d < info->ndim; d++)
        if (info->dim[d] >= 0)
          td__json_int (w, info->dim[d]);
        else
          td__json_string (w, info->symbol[d]);
      if (info->ndim >= 0)
        td__json_end_array (w);
      td__json_member_bool (w, "optional", info->is_optional);
      td__json_end_object (w);
    }
  td__json_end_array (w);
}

static void
write_operators (TdJsonWriter *w, const TdOnnxLook *look)
{
  td__json_key (w, "operators");
  td__json_begin_array (w);
  for (int i = 0; i < look->n_operators; i++)
    {
      td__json_begin_object (w);
      td__json_member_string (w, "name", look->operators[i].name);
      td__json_member_string (w, "domain", look->operators[i].domain);
      td__json_member_int (w, "count", look->operators[i].n);
      td__json_end_object (w);
    }
  td__json_end_array (w);
}

static void
write_lines (TdJsonWriter *w, const char *key, const char *text)
{
  char *line;

  td__json_key (w, key);
  td__json_begin_array (w);
  for (size_t n; *text != '\0'; text += n + (text[n] == '\n'))
    {
      n = strcspn (text, "\n");
      line = strndup (text, n);
      td__json_string (w, line);
      free (line);
    }
  td__json_end_array (w);
}

static void
write_json (const char *path, const TdOnnxLook *look, Trained trained)
{
  TdJsonWriter w;

  td__json_write (&w, td__json_put_file, stdout, TD_JSON_LINES);
  td__json_begin_object (&w);
  td__json_member_string (&w, "model", path);
  td__json_member_string (&w, "producer", look->producer);
  td__json_member_string (&w, "producer_version", look->producer_version);
  td__json_member_int (&w, "ir_version", look->ir_version);
  td__json_member_int (&w, "opset", look->opset);
  td__json_member_string (&w, "graph", look->name);
  write_ends (&w, "inputs", look->in, look->n_in);
  write_ends (&w, "outputs", look->out, look->n_out);
  td__json_member_int (&w, "initializers", look->n_initializers);
  td__json_member_int (&w, "initializer_numbers", look->n_numbers);
  td__json_member_int (&w, "initializer_bytes", look->initializer_bytes);
  if (trained.n >= 0)
    {
      td__json_member_int (&w, "parameters", trained.n);
      td__json_member_int (&w, "parameter_numbers", trained.numbers);
    }
  else
    {
      td__json_member_null (&w, "parameters");
      td__json_member_null (&w, "parameter_numbers");
    }
  td__json_member_int (&w, "nodes", look->n_nodes);
  write_operators (&w, look);
  write_lines (&w, "fixed", look->fixed);
  write_lines (&w, "assumed", look->assumed);
  td__json_key (&w, "not_there");
  td__json_begin_array (&w);
  for (int i = 0; i < look->n_lacks; i++)
    td__json_string (&w, look->lacks[i]);
  td__json_end_array (&w);
  td__json_end_object (&w);
  putchar ('\n');
}

int
td_command_onnx_info (int argc, char **argv)
{
  const bool json = argc == 3 && strcmp (argv[1], "--json") == 0;
  const char *path = argv[argc - 1];
  Trained trained = { -1, 0 };
  TdOnnxLook *look;
  char why[400];
  FILE *plain;

  if (argc != 2 + json)
    return td_usage_error (argv[0], "one model expected");
  if (td_init (NULL, NULL) != TD_OK)
    return td_finish ();
  look = td__onnx_look (path, why, sizeof why);
  if (look == NULL)
    {
      fprintf (stderr, "tapedeck: %s: %s\n", path, why);
      td_finish ();
      return TD_EXIT_USAGE;
    }
  if (look->n_lacks == 0)
    trained = load (path);
  plain = json ? NULL : td__plain_stream (stdout); /* its names are another's words */
  if (json)
    write_json (path, look, trained);
  else if (plain != NULL)
    print (plain, path, look, trained);
  if (plain != NULL)
    fclose (plain);
  td__onnx_look_free (look);
  return td_finish () == 0 ? TD_EXIT_OK : TD_EXIT_FINDING;
}
