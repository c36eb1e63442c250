/* The manual: topics that are read from `ui/help/NAME.md`, in Markdown as far as the topics
 * need it. SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

typedef enum
{
  TD_MANUAL_HEADING,
  TD_MANUAL_TEXT,
  TD_MANUAL_ITEM,
  TD_MANUAL_COMMANDS
} TdManualKind;

/** A paragraph. markup is Pango's: `code`, **strong**, [words](link), and {win.action}, which
 * becomes its first key; of commands it is plain text, with a line for each. */
typedef struct
{
  TdManualKind kind;
  char *markup;
} TdManualBlock;

typedef struct
{
  const char *name; /* static */
  char *title;
  char *words; /* all of it in lower case, for who searches */
  TdManualBlock *blocks;
  guint n_blocks;
} TdManualTopic;

/** Return the names of all topics in their order. Owner: static; NULL ends them. */
const char *const *td_manual_names (void);
/** Read a topic. Owner: the caller. Never NULL for a name of td_manual_names. */
TdManualTopic *td_manual_read (const char *name);
void td_manual_free (TdManualTopic *topic);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdManualTopic, td_manual_free)
