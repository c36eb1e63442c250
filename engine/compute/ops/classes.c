/* The table of operations: every class of ops.def, by place and by name.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

#include <string.h>

const TdOpClass *const td__op_classes[] = {
#define TD_OP(name) &td__##name##_class,
#include "ops.def"
#undef TD_OP
  NULL,
};

const TdOpClass *
td_op_class_find (const char *name)
{
  for (int i = 0; td__op_classes[i] != NULL && name != NULL; i++)
    if (strcmp (td__op_classes[i]->name, name) == 0)
      return td__op_classes[i];
  return NULL;
}

int
td_op_class_count (void)
{
  return TD_ARRAY_LENGTH (td__op_classes) - 1;
}

const TdOpClass *
td_op_class_at (int i)
{
  return i >= 0 && i < td_op_class_count () ? td__op_classes[i] : NULL;
}
