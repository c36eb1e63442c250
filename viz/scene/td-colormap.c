/*
 * Colour scales by linear interpolation between tabled anchors.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-colormap.h"

/* Ten evenly spaced colours of cividis (Nunez, Anderton, Renslow 2018, PLOS ONE 13(7)). */
static const guint32 cividis[] = { 0x00204d, 0x00336f, 0x39486b, 0x575c6d, 0x707173,
                                   0x8a8779, 0xa69d75, 0xc4b56c, 0xe4cf5b, 0xffea46 };
static const guint32 diverging[] = { 0x0b4f8a, 0xf6f5f4, 0xb3470b };

static const struct
{
  const char *name;
  const guint32 *anchors;
  int n;
} maps[] = {
  [TD_COLORMAP_CIVIDIS] = { "cividis", cividis, G_N_ELEMENTS (cividis) },
  [TD_COLORMAP_DIVERGING] = { "diverging", diverging, G_N_ELEMENTS (diverging) },
};

static TdColor
unpack (guint32 rgb)
{
  return (TdColor){ ((rgb >> 16) & 255) / 255.0, ((rgb >> 8) & 255) / 255.0,
                    (rgb & 255) / 255.0, 1.0 };
}

TdColor
td_colormap_at (TdColormap map, double t)
{
  int last = maps[map].n - 1;

  t = t > 0 ? (t < 1 ? t : 1) : 0; /* a NaN becomes 0: callers mark it before they come here */
  int i = MIN ((int)(t * last), last - 1);
  return td_color_mix (unpack (maps[map].anchors[i]), unpack (maps[map].anchors[i + 1]),
                       t * last - i);
}

const char *
td_colormap_name (TdColormap map)
{
  return maps[map].name;
}
