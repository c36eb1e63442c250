/* A schedule as DOT: operations in order, values between them with their bytes.
 *
 * SPDX-License-Identifier: MIT */
#include "export.h"

static const char *
kind_of (const TdStep *step)
{
  return step->kind == TD_STEP_OP     ? step->cls->name
         : step->kind == TD_STEP_FILL ? "fill"
         : step->kind == TD_STEP_COPY ? "copy"
                                      : "read";
}

static bool
is_shown (const TdStep *step)
{
  return step->n_in + step->n_out > 0
         && (step->kind == TD_STEP_OP || step->kind == TD_STEP_FILL
             || step->kind == TD_STEP_COPY);
}

static void
print_list (const TdSchedule *s, const TdSteps *list, const char *prefix, TdExport *to)
{
  for (uint32_t i = 0; i < list->n; i++)
    {
      const TdStep *step = &list->steps[i];

      if (!is_shown (step))
        continue;
      td__export_print (to, "  %s%u [shape=record, label=\"%u %s\"", prefix, i, i,
                        kind_of (step));
      if (step->site != NULL)
        td__export_print (to, ", tooltip=\"%s:%d\"", step->site->file, step->site->line);
      td__export_print (to, "];\n");
      for (uint32_t k = 0; k < step->n_in; k++)
        td__export_print (to, "  n%u -> %s%u;\n", td__step_in (s, step, k), prefix, i);
      for (uint32_t k = 0; k < step->n_out; k++)
        td__export_print (to, "  %s%u -> n%u;\n", prefix, i, td__step_out (s, step, k));
    }
}

TdStatus
td__export_dot (const TdStatic *function, const TdSchedule *s, TdExport *to)
{
  char name[300], shape[160];

  td__export_print (to, "digraph \"%s\" {\n  rankdir=TB;\n", function->name);
  for (uint32_t n = 0; n < s->n_nodes; n++)
    td__export_print (to, "  n%u [shape=ellipse, label=\"%s\\n%s %s\"];\n", n,
                      td__export_name (s, n, name, sizeof name),
                      td_shape_text (&s->nodes[n].shape, shape, sizeof shape),
                      td_dtype_name ((TdDtype)s->nodes[n].dtype));
  print_list (s, &s->forward, "f", to);
  for (uint32_t b = 0; b < s->n_backwards && b < 1; b++)
    print_list (s, &s->backwards[b].list, "b", to);
  td__export_print (to, "}\n");
  return TD_OK;
}
