/* Choice of the inner loops by what the processor can do.
 * SPDX-License-Identifier: MIT */
#include "vector.h"

#include <string.h>

static TdVector chosen;
const TdVector *td__vector = &chosen;

static bool
has_avx2 (void)
{
#if defined(__x86_64__)
  return __builtin_cpu_supports ("avx2");
#else
  return false;
#endif
}

static bool
has_avx512 (void)
{
#if defined(__x86_64__)
  return __builtin_cpu_supports ("avx512f") && __builtin_cpu_supports ("avx512vl")
         && __builtin_cpu_supports ("avx512bw") && __builtin_cpu_supports ("avx512dq");
#else
  return false;
#endif
}

static bool
always (void)
{
  return true;
}

enum
{
  N_FILLS = 6
};

#define FILLS(isa)                                                                             \
  {                                                                                            \
    td__vector_fill_##isa, td__vector_fill_sums_##isa, td__vector_fill_stats_##isa,            \
        td__vector_fill_random_##isa, td__vector_fill_updates_##isa,                           \
        td__vector_fill_halves_##isa                                                           \
  }

static const struct
{
  const char *name;
  bool (*usable) (void);
  void (*fill[N_FILLS]) (TdVector *v);
} choices[] = {
/* best first */
#if defined(__x86_64__)
  { "avx512", has_avx512, FILLS (avx512) },
  { "avx2", has_avx2, FILLS (avx2) },
#endif
  { "base", always, FILLS (base) },
};

bool
td__vector_use (const char *name)
{
  for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
    if ((name == NULL || strcmp (choices[i].name, name) == 0) && choices[i].usable ())
      {
        memset (&chosen, 0, sizeof chosen);
        for (int k = 0; k < N_FILLS; k++)
          choices[i].fill[k](&chosen);
        chosen.name = choices[i].name;
        return true;
      }
  return false;
}

__attribute__ ((constructor)) static void
choose (void)
{
#if defined(__x86_64__)
  __builtin_cpu_init ();
#endif
  td__vector_use (NULL);
}
