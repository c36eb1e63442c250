/* The arrays of a schedule as npz, under the names that the other exports give them.
 *
 * SPDX-License-Identifier: MIT */
#include "export-npz.h"

#include "compute/core/copies.h"

#include "../links/object.h"
#include "serializer.h"

#include <stdlib.h>

static void
serialize (void *object, TdSerializer *s)
{
  const TdNamedArrays *a = object;

  for (int i = 0; i < a->n; i++)
    {
      TdVar *v = a->vars[i];
      TdBuffer *b = v->buffer;
      void *numbers = td__xcalloc (b->bytes + 1, 1);
      TdRecord value
          = { TD_RECORD_ARRAY, (TdDtype)v->node->dtype, v->node->shape, numbers, b->bytes };

      if (b->device->computes
          && td__layout_download (v->node, b, numbers, TD_COPY_READ, NULL) == TD_OK)
        td__serializer_write (s, a->names[i], &value);
      else
        td__serializer_fail (s, TD_ERR_DEVICE, a->names[i], "its numbers cannot be read");
      free (numbers);
    }
}

TdStatus
td__export_npz (const char *path, const TdNamedArrays *arrays, const TdSite *site)
{
  return td__save_object (path, TD_FILE_NPZ, false, serialize, (void *)(uintptr_t)arrays,
                          "td_static_save", site);
}
