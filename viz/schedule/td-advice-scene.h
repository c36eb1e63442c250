/*
 * The staticness advice as a picture: the sentence, then one row for each function.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-panel.h"
#include "td-staticness.h"

G_BEGIN_DECLS

/** Draw what the advisor found, as many functions as there is room for; what may be one
 * schedule comes first. Owner: the caller. */
TdScene *td_advice_scene (const TdStaticness *staticness, const TdPanelView *view);

G_END_DECLS
