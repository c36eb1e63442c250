/* NVIDIA's libraries, opened by their names when they are wanted: the module links none, and
 * works without them by its own kernels.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/** Open a library: by the loader's own ways, then where this build found the toolkit.  NULL: it
 * is not here. */
void *td_cuda_library (const char *name);

/** Say which libraries are here, with versions, in one line. */
const char *td_cuda_libraries_text (void);
