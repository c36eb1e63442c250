/* A static schedule as a file: DOT, ONNX, standalone C or npz, by the name's ending.
 *
 * What is written is the forward pass as it was traced, with the parameters' present numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "export.h"

#include "compute/core/copies.h"

#include "../links/object.h"
#include "export-npz.h"
#include "replace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
td__export_print (TdExport *e, const char *format, ...)
{
  va_list args, again;
  int n;

  va_start (args, format);
  va_copy (again, args);
  n = vsnprintf (NULL, 0, format, args);
  va_end (args);
  if (e->n + (size_t)n + 1 > e->capacity)
    {
      e->capacity = 2 * (e->n + (size_t)n + 1);
      e->bytes = td__xrealloc (e->bytes, e->capacity);
    }
  vsnprintf (e->bytes + e->n, (size_t)n + 1, format, again);
  va_end (again);
  e->n += (size_t)n;
}

void
td__export_bytes (TdExport *e, const void *bytes, size_t n)
{
  if (e->n + n > e->capacity)
    {
      e->capacity = 2 * (e->n + n);
      e->bytes = td__xrealloc (e->bytes, e->capacity);
    }
  if (n > 0)
    memcpy (e->bytes + e->n, bytes, n);
  e->n += n;
}

static const TdAttr *
find_attr (const TdStep *step, const char *name)
{
  for (int i = 0; step->cls != NULL && i < step->cls->n_attrs; i++)
    if (strcmp (step->cls->attrs[i].name, name) == 0)
      return &step->cls->attrs[i];
  return NULL;
}

double
td__export_number (const TdStep *step, const char *name, double otherwise)
{
  const TdAttr *a = find_attr (step, name);
  const char *at = a != NULL ? (const char *)step->attrs + a->offset : NULL;
  double d;
  bool b;
  int i;

  if (a == NULL)
    return otherwise;
  if (a->kind == TD_ATTR_DOUBLE)
    {
      memcpy (&d, at, sizeof d);
      return d;
    }
  if (a->kind == TD_ATTR_BOOL)
    {
      memcpy (&b, at, sizeof b);
      return b;
    }
  memcpy (&i, at, sizeof i);
  return i;
}

int
td__export_ints (const TdStep *step, const char *name, int64_t *to, int room)
{
  const TdAttr *a = find_attr (step, name);
  int n = a == NULL ? 0 : a->kind == TD_ATTR_INT ? 1 : a->count;

  if (a == NULL)
    return 0;
  if (a->n_offset > 0)
    memcpy (&n, (const char *)step->attrs + a->n_offset, sizeof n);
  for (int i = 0; i < n && i < room; i++)
    {
      int value;

      memcpy (&value, (const char *)step->attrs + a->offset + (size_t)i * sizeof value,
              sizeof value);
      to[i] = value;
    }
  return n < room ? n : room;
}

bool
td__export_has (const TdStep *step, const char *name)
{
  return find_attr (step, name) != NULL;
}

const char *
td__export_word (const TdStep *step, const char *name)
{
  const TdAttr *a = find_attr (step, name);

  return a != NULL && a->choices != NULL ? a->choices[(int)td__export_number (step, name, 0)]
                                         : "";
}

bool
td__export_is_used (const TdSchedule *s, uint32_t node)
{
  const uint32_t value = s->nodes[node].value;

  for (uint32_t k = 0; k < s->n_outputs; k++)
    if (s->nodes[s->outputs[k].node].value == value)
      return true;
  for (uint32_t i = 0; i < s->forward.n; i++)
    for (uint32_t k = 0; k < s->forward.steps[i].n_in; k++)
      if (s->nodes[td__step_in (s, &s->forward.steps[i], k)].value == value)
        return true;
  return false;
}

static uint32_t
external_of (const TdSchedule *s, uint32_t node)
{
  for (uint32_t i = 0; i < s->n_externals; i++)
    if (s->externals[i].node == node)
      return i;
  return TD_ABSENT;
}

const char *
td__export_name (const TdSchedule *s, uint32_t node, char *text, size_t size)
{
  uint32_t external = external_of (s, node);
  const TdVar *v = external != TD_ABSENT ? s->externals[external].var : NULL;

  if (external != TD_ABSENT && v == NULL)
    snprintf (text, size, "input%u", external);
  else if (v != NULL && v->node->path != NULL && v->name != NULL)
    snprintf (text, size, "%s/%s", v->node->path->text, v->name);
  else
    snprintf (text, size, "%s%u", v != NULL ? "captured" : "v", node);
  return text;
}

bool
td__export_is_given (const TdSchedule *s, uint32_t node)
{
  uint32_t external = external_of (s, node);

  return external != TD_ABSENT ? s->externals[external].var != NULL
                               : td__node_value (s, node)->kind == TD_VALUE_CONSTANT;
}

void
td__export_lack (TdExportLacks *lacks, const TdStep *step, const char *name)
{
  const TdSite *site = step->site;
  const char *slash = site != NULL ? strrchr (site->file, '/') : NULL;
  char text[300];

  if (site != NULL)
    snprintf (text, sizeof text, "%s at %s:%d", name != NULL ? name : step->cls->name,
              slash != NULL ? slash + 1 : site->file, site->line);
  else /* built without places */
    snprintf (text, sizeof text, "%s", name != NULL ? name : step->cls->name);
  lacks->n++;
  for (uint32_t i = 0; i < lacks->n_lines; i++) /* a block that comes twelve times */
    if (strcmp (lacks->lines[i], text) == 0)
      return;
  lacks->lines = td__xrealloc (lacks->lines, (lacks->n_lines + 1) * sizeof *lacks->lines);
  lacks->lines[lacks->n_lines++] = td__xstrdup (text);
}

void
td__export_lacks_free (TdExportLacks *lacks)
{
  for (uint32_t i = 0; i < lacks->n_lines; i++)
    free (lacks->lines[i]);
  free (lacks->lines);
  *lacks = (TdExportLacks){ 0, NULL, 0 };
}

TdStatus
td__export_lacks_end (TdExportLacks *lacks, const char *call, const char *who,
                      const char *advice, void (*hear) (const char *line, void *user),
                      void *user, const TdSite *site)
{
  TdStatus status = TD_OK;
  char text[620] = "", rest[40] = "";
  size_t n = 0;
  uint32_t i = 0;

  for (uint32_t k = 0; k < lacks->n_lines && hear != NULL; k++)
    hear (lacks->lines[k], user);
  for (; i < lacks->n_lines && n + strlen (lacks->lines[i]) + 3 < sizeof text; i++)
    n += (size_t)snprintf (text + n, sizeof text - n, "%s%s", i > 0 ? ", " : "",
                           lacks->lines[i]);
  if (i < lacks->n_lines)
    snprintf (rest, sizeof rest, ", and %u more", lacks->n_lines - i);
  if (lacks->n > 0)
    status
        = td__fail (TD_ERR_ARG, call, site, "%s does not have %s%s%s", who, text, rest, advice);
  td__export_lacks_free (lacks);
  return status;
}

void
td__export_lack_outside (TdExportLacks *lacks, const TdStep *step)
{
  if (step->kind == TD_STEP_HOST_READ)
    td__export_lack (lacks, step, "numbers that the code reads");
  else if (step->kind == TD_STEP_EFFECT && strcmp (step->effect.name, "report") != 0)
    td__export_lack (lacks, step, step->effect.name);
}

double
td__export_at (const void *numbers, TdDtype dtype, int64_t i)
{
  if (dtype == TD_F32)
    return (double)((const float *)numbers)[i];
  if (dtype == TD_F64)
    return ((const double *)numbers)[i];
  if (dtype == TD_I32)
    return ((const int32_t *)numbers)[i];
  return dtype == TD_I64 ? (double)((const int64_t *)numbers)[i]
                         : ((const uint8_t *)numbers)[i];
}

static const TdBuffer *
buffer_of (const TdSchedule *s, uint32_t node)
{
  const uint32_t external = external_of (s, node);

  return external != TD_ABSENT ? s->externals[external].var->buffer
                               : s->constants[td__node_value (s, node)->index].buffer;
}

const TdBuffer *
td__export_host (const TdSchedule *s, uint32_t node)
{
  const uint32_t external = external_of (s, node);
  const TdBuffer *b = buffer_of (s, node);
  const uint8_t layout = external != TD_ABSENT ? s->externals[external].var->node->layout
                                               : s->nodes[node].layout;

  return b->device->ops == &td__cpu_ops && b->device->computes && layout == TD_ROW_MAJOR ? b
                                                                                         : NULL;
}

void *
td__export_numbers (const TdSchedule *s, uint32_t node, const TdSite *site)
{
  const uint32_t external = external_of (s, node);
  const TdBuffer *b = buffer_of (s, node);
  void *numbers = td__xcalloc (b->bytes + 1, 1);

  if (!b->device->computes
      || (external != TD_ABSENT
              ? td__layout_download (s->externals[external].var->node, b, numbers, TD_COPY_READ,
                                     site)
              : td__copy_out (b->device, numbers, b->data, b->bytes, TD_COPY_READ, NULL, site))
             != TD_OK)
    {
      td__fail (TD_ERR_DEVICE, "save", site, "device %s keeps no numbers to write",
                b->device->name);
      free (numbers);
      return NULL;
    }
  return numbers;
}

/* The arrays that the schedule reads besides its arguments. */
static TdStatus
save_npz (const TdSchedule *s, const char *path, const TdSite *site)
{
  uint32_t n = s->n_externals - s->n_arguments;
  char (*texts)[300] = td__xcalloc (n, sizeof *texts);
  TdNamedArrays a
      = { td__xcalloc (n, sizeof *a.vars), td__xcalloc (n, sizeof *a.names), (int)n };
  TdStatus status;

  for (uint32_t i = 0; i < n; i++)
    {
      a.vars[i] = s->externals[s->n_arguments + i].var;
      a.names[i] = td__export_name (s, s->externals[s->n_arguments + i].node, texts[i],
                                    sizeof texts[i]);
    }
  status = td__export_npz (path, &a, site);
  free (texts);
  free (a.vars);
  free (a.names);
  return status;
}

/* A file that computes would give the numbers of one call for ever. */
static TdStatus
refuse_drawn (const TdSchedule *s, const char *who, const TdStaticSaveOpt *options,
              const TdSite *site)
{
  TdExportLacks lacks = { 0, NULL, 0 };

  for (uint32_t n = 0; n < s->n_nodes; n++)
    {
      const TdValue *value = td__node_value (s, n);

      if (value->kind == TD_VALUE_CONSTANT && s->constants[value->index].drawn
          && td__export_is_used (s, n))
        td__export_lack (&lacks, &(TdStep){ .site = s->constants[value->index].site },
                         "random numbers that the host draws (td_walker_alias_sample)");
    }
  return td__export_lacks_end (&lacks, "td_static_save", who, ": give them as an argument",
                               options->lack, options->user, site);
}

/* Why a function that was called has no schedule, or "". */
static const char *
why_none (const TdStatic *function)
{
  return function->aside != NULL ? function->aside : function->miss_text;
}

/* The file, and beside it, under the same name, what goes with it; the file comes last. */
static TdStatus
write_files (const TdExportOut *out, const char *path, const char *ending, const TdSite *site)
{
  const struct
  {
    const TdExport *bytes;
    const char *ending;
  } files[] = { { &out->weights, ".bin" }, { &out->header, ".h" }, { &out->main, ending } };

  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    {
      char *name;
      bool written;

      if (files[i].bytes->bytes == NULL)
        continue;
      name = td__xmalloc ((size_t)(ending - path) + strlen (files[i].ending) + 1);
      sprintf (name, "%.*s%s", (int)(ending - path), path, files[i].ending);
      written = td__replace_file (name, files[i].bytes->bytes, files[i].bytes->n);
      free (name);
      if (!written)
        return td__fail (TD_ERR_IO, "td_static_save", site, "%s: %s", path, strerror (errno));
    }
  return TD_OK;
}

/* The program's name is the file's. */
static TdStatus
export_c (const TdStatic *function, const TdSchedule *s, const char *path, const char *ending,
          TdExportOut *out, const TdSite *site)
{
  const char *slash = strrchr (path, '/'), *first = slash != NULL ? slash + 1 : path;
  char *name = td__xmalloc ((size_t)(ending - first) + 1);
  TdStatus status;

  sprintf (name, "%.*s", (int)(ending - first), first);
  status = td__export_c (function, s, name, out, site);
  free (name);
  return status;
}

TdStatus
td_static_save_at (TdStatic *function, const char *path, TdStaticSaveOpt options,
                   const TdSite *site)
{
  const char *ending = path != NULL ? strrchr (path, '.') : NULL;
  const TdEntry *entry = function != NULL ? function->entries : NULL;
  TdExportOut out = { .options = options };
  TdStatus status;

  if (entry == NULL && function != NULL && why_none (function)[0] != '\0')
    return td__fail (TD_ERR_STATE, "td_static_save", site, "%s has no schedule to write: %s",
                     function->name, why_none (function));
  if (entry == NULL || ending == NULL)
    return td__fail (entry == NULL ? TD_ERR_STATE : TD_ERR_ARG, "td_static_save", site,
                     entry == NULL
                         ? "a static function that was called, and so has a schedule, expected"
                         : "a name that ends in .dot, .onnx, .npz or .c expected");
  if (strcmp (ending, ".npz") == 0)
    return save_npz (entry->schedule, path, site);
  if (strcmp (ending, ".c") == 0 || strcmp (ending, ".onnx") == 0)
    {
      status = refuse_drawn (entry->schedule, ending[1] == 'c' ? "a C program" : "ONNX",
                             &options, site);
      if (status != TD_OK)
        return status;
    }
  if (strcmp (ending, ".dot") == 0)
    status = td__export_dot (function, entry->schedule, &out.main);
  else if (strcmp (ending, ".onnx") == 0)
    return td__export_onnx ("td_static_save", function->name, entry->schedule,
                            &(TdOnnxOpt){ .opset = options.opset,
                                          .axes = options.axes,
                                          .custom_domains = options.custom_domains,
                                          .weights_beside = options.weights_beside,
                                          .lack = options.lack,
                                          .fixed = options.fixed,
                                          .assumed = options.assumed,
                                          .user = options.user },
                            path, site);
  else if (strcmp (ending, ".c") == 0)
    status = export_c (function, entry->schedule, path, ending, &out, site);
  else
    status = td__fail (TD_ERR_ARG, "td_static_save", site,
                       "a name that ends in .dot, .onnx, .npz or .c expected, got %s", path);
  if (status == TD_OK)
    status = write_files (&out, path, ending, site);
  free (out.main.bytes), free (out.header.bytes), free (out.weights.bytes);
  return status;
}

TdStaticSaveOpt
td_static_save_options (void)
{
  return (TdStaticSaveOpt){ TD_STATIC_SAVE_DEFAULTS };
}

TdStatus (td_static_save) (TdStatic *function, const char *path)
{
  return td_static_save_at (function, path, td_static_save_options (), NULL);
}
