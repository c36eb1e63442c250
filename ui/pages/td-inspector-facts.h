/* The inspector's pages that are lists: what the operation is, how its output lives, what is
 * before and after it.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "td-session.h"

typedef enum
{
  TD_FACTS_OP,
  TD_FACTS_LIFE,
  TD_FACTS_LINKS,
  TD_N_FACT_PAGES
} TdFactsPage;

/** What the pages are about. */
typedef struct
{
  TdSession *session;
  TdIteration *iteration; /* NULL: nothing */
  gint event, var;        /* -1: none */
} TdFactsSubject;

typedef struct TdFacts TdFacts;

TdFacts *td_facts_new (TdFactsPage page);
void td_facts_free (TdFacts *self);
const char *td_facts_get_name (TdFactsPage page);
const char *td_facts_get_title (TdFactsPage page);
/** Return the page's widget. Owner: its parent. */
GtkWidget *td_facts_get_widget (TdFacts *self);
/** Fill the page. */
void td_facts_show (TdFacts *self, const TdFactsSubject *subject);
/** Return the value beside `name`, NULL if there is no such line. */
const char *td_facts_find (TdFacts *self, const char *name);

/** Write the heading and the line below it for a subject. Owner: caller. */
char *td_facts_dup_title (TdIteration *iteration, gint event, gint var);
char *td_facts_dup_subtitle (TdIteration *iteration, gint event, gint var);
