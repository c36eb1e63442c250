/*
 * The table of what makes a static function run its code, and what helps.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-explain-private.h"

#include <string.h>

// clang-format off
/* The first row that fits is meant. */
static const TdExplainCause causes[] = {
  { "argument", " arguments, ", "number of arguments",
    "Pass the same number of arguments at every call, or make a static function for each." },
  { "argument", " has shape ", "shape of an argument",
    "Drop the last short batch or pad it; .minimize_cache_size = false keeps a schedule for each shape." },
  { "argument", " gradient, ", "gradient of an argument",
    "Let the argument want a gradient at every call or at none; .minimize_cache_size = false keeps a schedule for both." },
  { "argument", " in another order in memory", "layout of an argument",
    "Make the argument in the same layout at every call." },
  { "argument", " is on ", "device of an argument",
    "Move the argument to its device before the call." },
  { "argument", " shares its memory ", "memory of an argument",
    "Pass the same array twice at every call or at none." },
  { "argument", " is ", "dtype of an argument",
    "Cast the argument before the call: td_cast." },
  { "argument identity", "another variable", "which variable an argument is",
    "Let the code use its arguments only by in[], not by another way too." },
  { "argument identity", "", "an argument that the code also uses",
    "Let the code use it as an argument only." },
  { "results", "", "number of results",
    "Ask for the same number of results at every call." },
  { "config", "config.train", "training or test",
    "Training and test are two schedules: .minimize_cache_size = false keeps both." },
  { "config", "config.enable_backprop", "with or without backprop",
    "With and without backprop are two schedules: .minimize_cache_size = false keeps both." },
  { "config", "td_forget", "run again for backward",
    "Call the function outside of td_forget, or all of it inside." },
  { "config", "", "configuration",
    "Set the configuration before the first call and leave it." },
  { "links", "", "links and parameters",
    "Make, replace and remove links and parameters before the first call." },
  { "link state", "", "state of a recurrent link",
    "td_stateless_lstm_new and td_stateless_gru_new take the state as an argument." },
  { "host memory", "by the code itself", "memory that the code sets",
    "Set it in td_static_code, which is done at a replay too." },
  { "host memory", "", "memory that the program registered",
    "What changes at every call should be an array, passed as an argument." },
  { "captured variable", " is gone", "a variable that the code used",
    "Keep the variable with td_retain, or pass it as an argument." },
  { "captured variable", " has shape ", "shape of a variable that the code uses",
    "Pass the variable as an argument." },
  { "captured variable", " gradient, ", "gradient of a variable that the code uses",
    "Let the variable want a gradient before the first call." },
  { "captured variable", "", "a variable that the code uses",
    "Pass the variable as an argument." },
  { "host read", "", "numbers that the code reads",
    "Keep td_item, td_read and branches on them outside, or use td_where, whose choice is an operation." },
  { "trace", "keeps the state of a recurrent link", "state of a recurrent link",
    "td_stateless_lstm_new and td_stateless_gru_new take the state as an argument." },
  { "trace", "was made outside", "a variable from outside",
    "Pass the variable as an argument." },
  { "trace", "reads numbers", "numbers that the code reads",
    "Keep td_item and td_read outside of the function." },
  { "trace", "failed", "an operation failed",
    "Cure the error: the code of a static function has to succeed." },
  { "trace", "devices", "two devices",
    "Make a static function for the part on each device." },
  { "trace", "cannot be in a schedule", "an operation without a schedule",
    "Call it outside of the function." },
  { "trace", "", "it cannot be traced",
    "Take what is named out of the function." },
  { "verify", "", "its code is not what it was",
    "td_static_watch guards memory that the code reads; what changes should be an argument." },
  { TD_EXPLAIN_FIRST, "", "first call: it is traced",
    "Once for each schedule; nothing to do." },
  { TD_EXPLAIN_WAITS, "", "the trace waits for its backward",
    "Run the backward of the first call before the second, or call it with enable_backprop off." },
  { TD_EXPLAIN_DOUBT, "", "in doubt after a difference",
    "Cure the difference: the code runs until it has been the same for a while." },
  { TD_EXPLAIN_NESTED, "", "inside another static function",
    "It is part of the outer one, which is replayed: make only that one static." },
  { TD_EXPLAIN_ASIDE, "hooks", "hooks are set",
    "Hooks see every operation of the code: remove them for speed." },
  { TD_EXPLAIN_ASIDE, "use_static_graph", "static graphs are off",
    "td_config_set (use_static_graph, 1), and no --static off." },
  { TD_EXPLAIN_ASIDE, "force_test_define_by_run", "forced to run by code in test",
    "Leave .force_test_define_by_run off." },
  { TD_EXPLAIN_ASIDE, "", "no schedule was asked for",
    "Hooks, use_static_graph off, and checks of large schedules run the code." },
  { TD_EXPLAIN_VERIFIED, "", "code ran beside its schedule",
    "It is how changed code is found: .verify = 0 and --static as-is switch it off." },
};
// clang-format on

const TdExplainCause *
td__explain_cause (const char *guard, const char *text)
{
  static const TdExplainCause unknown
      = { "", "", NULL, "Keep what is named as it was when the code was traced." };

  for (gsize i = 0; i < G_N_ELEMENTS (causes); i++)
    if (strcmp (causes[i].guard, guard) == 0 && strstr (text, causes[i].needle))
      return &causes[i];
  return &unknown;
}

const char *
td__explain_guard_of (TdTapeReader *reader, const TdTapeStaticEvent *e)
{
  const char *guard = td_tape_reader_string (reader, e->guard);

  if (*guard)
    return guard;
  return e->what == TD_TAPE_STATIC_REFUSED   ? "trace"
         : e->what == TD_TAPE_STATIC_DIFFERS ? "verify"
         : e->what == TD_TAPE_STATIC_ASIDE   ? TD_EXPLAIN_ASIDE
                                             : "guard";
}
