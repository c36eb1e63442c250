/* A schedule as a C program without dependencies, and its header: arrays, the kernels that are
 * called, and one function for a call, in which operations are loops or calls, in order.
 *
 * Meant to be carried to where nothing else is, and to be read.  Arrays that are not needed at
 * the same time share memory.  What cannot be written is listed before anything is.
 *
 * SPDX-License-Identifier: MIT */
#include "c-out.h"

#include "host-memory.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define P TD_C_PRINT

/* What the file needs to know of a value. */
typedef struct
{
  uint32_t node;     /* the first that shows it */
  uint32_t from, to; /* steps between which it lives */
  uint32_t argument; /* its place among them, or TD_ABSENT */
  bool named;        /* in the body */
  bool given;        /* its numbers are there before the call */
  int64_t at;        /* of floats that share memory: where */
} Array;

/* --- what the body names --- */

/* Call look with each word of C text that is not in a comment. */
static void
each_word (const char *text, void (*look) (void *user, const char *word, size_t n), void *user)
{
  while (*text != '\0')
    {
      const char *word = text;

      if (text[0] == '/' && text[1] == '*')
        {
          text = strstr (text, "*/") + 2;
          continue;
        }
      while (isalnum ((unsigned char)*text) || *text == '_')
        text++;
      if (text > word)
        look (user, word, (size_t)(text - word));
      else
        text++;
    }
}

typedef struct
{
  Array *arrays;
  uint32_t n_arrays;
  bool *kernels;
} Names;

static void
look_at_word (void *user, const char *word, size_t n)
{
  Names *names = user;

  if (n > 1 && word[0] == 'v' && isdigit ((unsigned char)word[1]) && names->arrays != NULL)
    {
      const unsigned long v = strtoul (word + 1, NULL, 10);

      if (v < names->n_arrays)
        names->arrays[v].named = true;
    }
  for (int k = 0; k < td__c_n_kernels; k++)
    if (strlen (td__c_kernels[k].name) == n && strncmp (td__c_kernels[k].name, word, n) == 0)
      names->kernels[k] = true;
}

/* Mark the arrays and kernels of the body, and the kernels that these call. */
static void
find_names (const char *body, Names *names)
{
  each_word (body, look_at_word, names);
  names->arrays = NULL;
  for (int k = td__c_n_kernels - 1; k >= 0; k--)
    if (names->kernels[k])
      each_word (td__c_kernels[k].text, look_at_word, names);
}

/* --- arrays --- */

static void
uses (TdCOut *o, Array *arrays, uint32_t node, uint32_t step)
{
  Array *a = &arrays[td__c_value (o, node)];

  if (a->node == TD_ABSENT)
    {
      a->node = node;
      a->from = step;
    }
  a->to = step;
}

/* Which array is what, and how long it lives. */
static Array *
find_arrays (TdCOut *o)
{
  const TdSchedule *s = o->s;
  Array *arrays = td__xcalloc (s->n_values + 1, sizeof *arrays);

  for (uint32_t v = 0; v < s->n_values; v++)
    {
      arrays[v].node = arrays[v].argument = TD_ABSENT;
      arrays[v].at = -1;
    }
  for (uint32_t n = 0; n < s->n_nodes; n++)
    if (td__export_is_given (s, n) && arrays[td__c_value (o, n)].node == TD_ABSENT)
      {
        arrays[td__c_value (o, n)].node = n;
        arrays[td__c_value (o, n)].given = true;
      }
  for (uint32_t i = s->n_arguments; i-- > 0;)
    {
      Array *a = &arrays[td__c_value (o, s->externals[i].node)];

      a->node = s->externals[i].node;
      a->argument = i;
    }
  for (uint32_t i = 0; i < s->forward.n; i++)
    {
      const TdStep *step = &s->forward.steps[i];

      for (uint32_t k = 0; k < step->n_in; k++)
        uses (o, arrays, td__c_in (o, step, k), i);
      for (uint32_t k = 0; k < step->n_out; k++)
        uses (o, arrays, td__c_out (o, step, k), i);
    }
  for (uint32_t k = 0; k < s->n_outputs; k++)
    uses (o, arrays, s->outputs[k].node, s->forward.n);
  return arrays;
}

/* The memory that arrays share, each of one type of C: others would share it with an array of
 * another type. */
typedef struct
{
  const char *name, *type;
  int64_t all; /* how many numbers; -1: no arrays */
} Memory;

enum
{
  N_MEMORIES = 3
};

/* Which memory an array lies in; -1: in its own. */
static int
memory_of (const TdCOut *o, const Array *a)
{
  const TdDtype dtype = a->node != TD_ABSENT ? td__c_dtype (o, a->node) : TD_I32;

  return !a->named || a->given || a->argument != TD_ABSENT ? -1
         : dtype == TD_F32                                 ? 0
         : dtype == TD_F64                                 ? 1
         : td__c_is_half (dtype)                           ? 2
                                                           : -1;
}

static int64_t
aligned (const TdCOut *o, const Array *a)
{
  return (td__c_count (o, a->node) + TD_C_ALIGNED - 1) / TD_C_ALIGNED * TD_C_ALIGNED;
}

/* Each at the lowest place that nobody else has while it lives, in the order of the steps. */
static void
place_arrays (const TdCOut *o, Array *arrays, uint32_t n, Memory *memories)
{
  for (uint32_t v = 0; v < n; v++)
    {
      Array *a = &arrays[v];
      const int memory = memory_of (o, a);
      int64_t size, at = 0;
      bool moved = true;

      if (memory < 0)
        continue;
      size = aligned (o, a);
      while (moved)
        {
          moved = false;
          for (uint32_t w = 0; w < v; w++)
            {
              const Array *b = &arrays[w];

              if (b->at >= 0 && memory_of (o, b) == memory && b->from <= a->to
                  && a->from <= b->to && b->at < at + size && at < b->at + aligned (o, b))
                {
                  at = b->at + aligned (o, b);
                  moved = true;
                }
            }
        }
      a->at = at;
      memories[memory].all
          = at + size > memories[memory].all ? at + size : memories[memory].all;
    }
}

/* Numbers that were there before the call: in the file, or read from the one beside it. */
static TdStatus
print_given (TdCOut *o, uint32_t value, uint32_t node, TdExportOut *out, const TdSite *site)
{
  const TdDtype dtype = td__c_dtype (o, node);
  const bool beside = out->options.weights_beside, is_state = o->s->values[value].is_state;
  const long long n = td__c_count (o, node);
  char name[300];
  void *numbers = td__export_numbers (o->s, node, site);

  if (numbers == NULL)
    return td__error_status ();
  P (o, "/* %s */\nstatic %s%s v%u[%lld]", td__export_name (o->s, node, name, sizeof name),
     is_state || beside ? "" : "const ", td__c_type (dtype), value, n > 0 ? n : 1);
  if (beside)
    td__export_bytes (&out->weights, numbers, (size_t)n * td__dtype_sizes[dtype]);
  for (long long i = 0; i < n && !beside; i++)
    {
      P (o, i == 0 ? " = {\n  " : i % 8 == 0 ? ",\n  " : ", ");
      if (td__c_is_half (dtype))
        P (o, "0x%04x", ((const uint16_t *)numbers)[i]);
      else if (dtype == TD_I64 && ((const int64_t *)numbers)[i] == INT64_MIN)
        P (o, "INT64_MIN");
      else if (dtype == TD_I64)
        P (o, "%lld", (long long)((const int64_t *)numbers)[i]);
      else
        td__c_number (o, td__export_at (numbers, dtype, i), dtype);
    }
  P (o, "%s;\n", n > 0 && !beside ? "\n}" : "");
  free (numbers);
  return TD_OK;
}

static TdStatus
print_arrays (TdCOut *o, const Array *arrays, TdExportOut *out, const TdSite *site)
{
  TdStatus status = TD_OK;

  for (uint32_t v = 0; v < o->s->n_values && status == TD_OK; v++)
    {
      const Array *a = &arrays[v];

      if (!a->named || a->argument != TD_ABSENT || a->at >= 0)
        continue;
      if (a->given)
        status = print_given (o, v, a->node, out, site);
      else
        P (o, "static %s v%u[%lld];\n", td__c_type (td__c_dtype (o, a->node)), v,
           td__c_count (o, a->node) > 0 ? td__c_count (o, a->node) : 1);
    }
  return status;
}

/* --- the frame --- */

/* A name of C, of the file's. */
static void
make_name (const char *file, char *text, size_t size)
{
  size_t n = 0;

  if (!isalpha ((unsigned char)file[0]))
    n = (size_t)snprintf (text, size, "net_");
  for (; *file != '\0' && n + 1 < size; file++)
    text[n++] = isalnum ((unsigned char)*file) ? *file : '_';
  text[n] = '\0';
}

/* The first argument that is this one. */
static bool
is_first (const TdCOut *o, uint32_t i)
{
  for (uint32_t j = 0; j < i; j++)
    if (o->s->externals[j].node == o->s->externals[i].node)
      return false;
  return true;
}

/* "const float *input0, float *output0". */
static void
print_parameters (TdCOut *o)
{
  const TdSchedule *s = o->s;
  bool any = false;

  for (uint32_t i = 0; i < s->n_arguments; i++)
    if (is_first (o, i))
      {
        P (o, "%sconst %s *input%u", any ? ", " : "",
           td__c_type (td__c_dtype (o, s->externals[i].node)), i);
        any = true;
      }
  for (uint32_t k = 0; k < s->n_outputs; k++)
    {
      P (o, "%s%s *output%u", any ? ", " : "", td__c_type (td__c_dtype (o, s->outputs[k].node)),
         k);
      any = true;
    }
  if (!any)
    P (o, "void");
}

static void
print_shape (TdCOut *o, const char *what, uint32_t i, uint32_t node)
{
  char text[160];

  P (o, " *   %s%u %s %s\n", what, i, td_shape_text (td__c_shape (o, node), text, sizeof text),
     td_dtype_name (td__c_dtype (o, node)));
}

static void
print_header (TdCOut *o, const char *function, const char *name, bool beside)
{
  const TdSchedule *s = o->s;

  P (o,
     "/* Static function %s, written by tapedeck %s; bool is uint8_t, 0 or 1; f16 and bf16 are "
     "their\n * bits, in uint16_t.\n *\n",
     function, td_version ());
  for (uint32_t i = 0; i < s->n_arguments; i++)
    if (is_first (o, i))
      print_shape (o, "input", i, s->externals[i].node);
    else
      P (o, " *   input%u is the same array as an input before it, and not taken\n", i);
  for (uint32_t k = 0; k < s->n_outputs; k++)
    print_shape (o, "output", k, s->outputs[k].node);
  P (o, " *\n * One call at a time: arrays are static.  With -DWITH_BLAS products are "
        "those of cblas.  "
        "*/\n#pragma once\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern "
        "\"C\"\n{\n#endif\n\n");
  if (beside)
    P (o,
       "/* Read the weights, once, before the first call.  0, or -1 where they cannot be read. "
       "*/\nint %s_load (const char *path);\n\n",
       name);
  if (o->draws)
    P (o,
       "/* Set the place in the random stream: without this it is where the traced call began. "
       "*/\nvoid %s_random (uint64_t seed, uint64_t offset);\n\n",
       name);
  P (o,
     "/* One call.  0, or 1 where an index was out of range, and 0 was taken for it%s. */\nint "
     "%s_run (",
     beside ? "; -1, and nothing is\n * computed, while no weights are loaded" : "", name);
  print_parameters (o);
  P (o, ");\n\n#ifdef __cplusplus\n}\n#endif\n");
}

static void
print_load (TdCOut *o, const Array *arrays, const char *name)
{
  P (o,
     "\nstatic int loaded;\n\nint\n%s_load (const char *path)\n{\n  FILE *f = fopen (path, "
     "\"rb\");\n  int ok = f != "
     "0;\n\n",
     name);
  for (uint32_t v = 0; v < o->s->n_values; v++)
    if (arrays[v].named && arrays[v].given && arrays[v].argument == TD_ABSENT
        && td__c_count (o, arrays[v].node) > 0)
      P (o, "  ok = ok && fread (v%u, sizeof v%u, 1, f) == 1;\n", v, v);
  P (o, "  if (f != 0)\n    fclose (f);\n  loaded = ok;\n  return ok ? 0 : -1;\n}\n");
}

static void
print_run (TdCOut *o, const Array *arrays, const Memory *memories, const char *body,
           const char *name, bool checks, bool beside)
{
  const TdSchedule *s = o->s;

  P (o, "\nint\n%s_run (", name);
  print_parameters (o);
  P (o, ")\n{\n");
  for (uint32_t v = 0; v < s->n_values; v++)
    if (arrays[v].named && arrays[v].argument != TD_ABSENT)
      P (o, "  const %s *const v%u = input%u;\n", td__c_type (td__c_dtype (o, arrays[v].node)),
         v, arrays[v].argument);
    else if (arrays[v].named && arrays[v].at >= 0)
      {
        const Memory *m = &memories[memory_of (o, &arrays[v])];

        P (o, "  %s *const v%u = %s + %lld;\n", m->type, v, m->name, (long long)arrays[v].at);
      }
  for (uint32_t i = 0; i < s->n_arguments; i++)
    if (is_first (o, i) && !arrays[td__c_value (o, s->externals[i].node)].named)
      P (o, "  (void)input%u;\n", i);
  if (beside)
    P (o, "  if (!loaded)\n    return -1;\n");
  if (checks)
    P (o, "  out_of_range = 0;\n");
  P (o, "%s\n", body);
  if (o->draws && s->random_total > 0)
    P (o, "  random_offset += %llu;\n", (unsigned long long)s->random_total);
  P (o, "  return %s;\n}\n", checks ? "out_of_range" : "0");
}

/* A program around it for a pipe. */
static void
print_main (TdCOut *o, const char *name, bool beside)
{
  const TdSchedule *s = o->s;

  P (o, "\n#ifdef MAIN\n#include <stdio.h>\n\nint\nmain (%s)\n{\n",
     beside ? "int argc, char **argv" : "void");
  for (uint32_t i = 0; i < s->n_arguments; i++)
    P (o, "  static %s in%u[%lld];\n", td__c_type (td__c_dtype (o, s->externals[i].node)), i,
       td__c_count (o, s->externals[i].node) > 0 ? td__c_count (o, s->externals[i].node) : 1);
  for (uint32_t k = 0; k < s->n_outputs; k++)
    P (o, "  static %s out%u[%lld];\n", td__c_type (td__c_dtype (o, s->outputs[k].node)), k,
       td__c_count (o, s->outputs[k].node) > 0 ? td__c_count (o, s->outputs[k].node) : 1);
  P (o, "\n");
  if (beside)
    P (o, "  if (argc != 2 || %s_load (argv[1]) != 0)\n    return 2;\n", name);
  for (uint32_t i = 0; i < s->n_arguments; i++)
    if (td__c_count (o, s->externals[i].node) > 0)
      P (o, "  if (fread (in%u, sizeof in%u, 1, stdin) != 1)\n    return 1;\n", i, i);
  P (o, "  if (%s_run (", name);
  for (uint32_t i = 0, any = 0; i < s->n_arguments; i++)
    if (is_first (o, i))
      P (o, "%sin%u", any++ > 0 || i > 0 ? ", " : "", i);
  for (uint32_t k = 0; k < s->n_outputs; k++)
    P (o, "%sout%u", k > 0 || s->n_arguments > 0 ? ", " : "", k);
  P (o, ") != 0)\n    return 3;\n");
  for (uint32_t k = 0; k < s->n_outputs; k++)
    if (td__c_count (o, s->outputs[k].node) > 0)
      P (o, "  if (fwrite (out%u, sizeof out%u, 1, stdout) != 1)\n    return 1;\n", k, k);
  P (o, "  return 0;\n}\n#endif\n");
}

/* The body of a call: TD_ERR_ARG with the list of what a C program does not have. */
static TdStatus
print_body (TdCOut *o, const TdStaticSaveOpt *options, const TdSite *site)
{
  const TdSchedule *s = o->s;

  for (uint32_t i = 0; i < s->forward.n; i++)
    td__c_step (o, &s->forward.steps[i]);
  for (uint32_t k = 0; k < s->n_outputs; k++)
    P (o, "%s  memcpy (output%u, v%u, %lld * sizeof *output%u);\n", k == 0 ? "\n" : "", k,
       td__c_value (o, s->outputs[k].node), td__c_count (o, s->outputs[k].node), k);
  return td__export_lacks_end (&o->lacks, "td_static_save", "a C program", "", options->lack,
                               options->user, site);
}

/* Everything but the header; the body is there. */
static TdStatus
print_program (TdCOut *o, const char *file, const char *name, const char *body, Array *arrays,
               bool *kernels, TdExportOut *out, const TdSite *site)
{
  const bool beside = out->options.weights_beside;
  Memory memories[N_MEMORIES] = { { "memory", "float", -1 },
                                  { "memory_f64", "double", -1 },
                                  { "memory_halves", "uint16_t", -1 } };
  bool checks = false;
  TdStatus status;

  place_arrays (o, arrays, o->s->n_values, memories);

  P (o,
     "/* See %s.h.  Link with -lm; with -DWITH_BLAS also with a BLAS that has cblas.h.  With\n"
     " * -DMAIN: a program that reads raw inputs from its standard input%s and writes raw "
     "outputs. */\n#include \"%s.h\"\n\n#include <math.h>\n#include <string.h>\n%s#ifdef "
     "WITH_BLAS\n#include <cblas.h>\n#endif\n\n",
     file, beside ? ", weights from the file named," : "", file,
     beside ? "#include <stdio.h>\n" : "");
  for (int k = 0; k < td__c_n_kernels; k++)
    if (kernels[k])
      {
        P (o, "%s\n", td__c_kernels[k].text);
        checks = checks || strcmp (td__c_kernels[k].name, "out_of_range") == 0;
      }
  if (beside)
    td__export_print (&out->weights, "%s", ""); /* a file, if only an empty one */
  status = print_arrays (o, arrays, out, site);
  for (int k = 0; k < N_MEMORIES; k++)
    if (memories[k].all >= 0)
      P (o, "static %s %s[%lld];\n", memories[k].type, memories[k].name,
         (long long)(memories[k].all > 0 ? memories[k].all : 1));
  if (o->floats > 0)
    P (o, "static float floats[%lld];\n", (long long)o->floats);
  if (o->room[0] > 0)
    P (o, "static float workspace[%lld];\n", (long long)o->room[0]);
  if (o->room[1] > 0)
    P (o, "static double workspace_f64[%lld];\n", (long long)o->room[1]);
  if (o->draws)
    P (o,
       "static uint64_t random_seed = %lluu, random_offset = %lluu;\n\nvoid\n%s_random "
       "(uint64_t "
       "seed, uint64_t offset)\n{\n  random_seed = seed;\n  random_offset = offset;\n}\n",
       (unsigned long long)o->seed, (unsigned long long)o->offset, name);
  if (beside)
    print_load (o, arrays, name);
  print_run (o, arrays, memories, body, name, checks, beside);
  print_main (o, name, beside);
  return status;
}

TdStatus
td__export_c (const TdStatic *function, const TdSchedule *s, const char *file, TdExportOut *out,
              const TdSite *site)
{
  TdExport body = { NULL, 0, 0 };
  TdCOut o = { .s = s, .to = &body };
  char name[200];
  TdStatus status = print_body (&o, &out->options, site); /* before millions of weights are */

  make_name (file, name, sizeof name);
  if (status == TD_OK)
    {
      Names names = { .arrays = find_arrays (&o),
                      .n_arrays = s->n_values,
                      .kernels = td__xcalloc ((size_t)td__c_n_kernels, sizeof (bool)) };
      Array *arrays = names.arrays;

      if (body.bytes != NULL)
        find_names (body.bytes, &names);
      o.to = &out->main;
      status = print_program (&o, file, name, body.bytes != NULL ? body.bytes : "", arrays,
                              names.kernels, out, site);
      o.to = &out->header;
      print_header (&o, function->name, name, out->options.weights_beside);
      free (arrays);
      free (names.kernels);
    }
  free (body.bytes);
  return status;
}
