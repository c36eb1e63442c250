/* What functions made of operations share.
 *
 * SPDX-License-Identifier: MIT */
#include "compose.h"
#include "../core/operand-text.h"

#include <stdio.h>
#include <string.h>

TdVar *
td__compose_fail (TdStatus status, const char *op, const TdSite *site, const char *const *names,
                  TdVar *const *operands, int n, const char *format, ...)
{
  const char *before = ": ";
  char text[768];
  va_list args;

  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  for (int i = 0; i < n; i++)
    if (operands[i] != NULL)
      {
        const TdShape shape = td_shape (operands[i]);
        const size_t used = strlen (text);
        char shape_text[160], name[100];

        td__operand_text (names[i], operands[i]->name, name, sizeof name);
        snprintf (text + used, sizeof text - used, "%s%s %s %s", before, name,
                  td_shape_text (&shape, shape_text, sizeof shape_text),
                  td_dtype_name (td_dtype (operands[i])));
        before = ", ";
      }
  td__fail (status, op, site, "%s", text);
  return td__poison ();
}
