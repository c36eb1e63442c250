"""What C files of the window show to people: the literals that calls of GTK, Adwaita and our own get, and
which of them are marked for gettext.

SPDX-License-Identifier: MIT
"""
import ast
import re

# Which arguments of a call people get to see, from 0; EVEN: each second one from 2 on.
EVEN = range(2, 40, 2)
SHOWN = {
    "td__window_toast": [1], "td_window_show_message": [2, 3], "td__window_show_info": [2],
    "td__window_show_opening": [1], "td_tip_set": [1], "td_panel_message": [1, 2],
    "gtk_label_new": [0], "gtk_label_set_text": [1], "gtk_label_set_label": [1],
    "gtk_button_new_with_label": [0], "gtk_button_new_with_mnemonic": [0], "gtk_button_set_label": [1],
    "gtk_check_button_new_with_label": [0], "gtk_check_button_set_label": [1],
    "gtk_toggle_button_new_with_label": [0], "gtk_menu_button_set_label": [1],
    "gtk_widget_set_tooltip_text": [1], "gtk_tooltip_set_text": [1], "gtk_window_set_title": [1],
    "gtk_stack_add_titled": [3], "gtk_column_view_column_new": [0], "g_menu_append": [1],
    "gtk_entry_set_placeholder_text": [1], "gtk_search_entry_set_placeholder_text": [1],
    "gtk_file_chooser_native_new": [0, 3, 4], "adw_message_dialog_new": [1, 2],
    "adw_message_dialog_add_response": [2], "adw_message_dialog_add_responses": EVEN,
    "adw_message_dialog_set_body": [1], "adw_message_dialog_set_heading": [1],
    "adw_status_page_set_title": [1], "adw_status_page_set_description": [1],
    "adw_preferences_row_set_title": [1], "adw_action_row_set_subtitle": [1],
    "adw_window_title_set_title": [1], "adw_window_title_set_subtitle": [1],
    "adw_button_content_set_label": [1], "adw_toast_new": [0],
    "gtk_accessible_update_property": range(1, 40), "gtk_file_filter_set_name": [1],
    "td_scene_view_new": [0], "td_index_table_new": [1], "td_find_bar_new": [0], "td_tensor_panel_new": [0, 1, 2],
    "td_compare_layers_show": [2], "td__window_ask_where": [1], "show_reason": [1], "add_fact": [1, 2],
    "add_link": [1], "name_step": [1], "name_widget": [1], "icon_button": [2], "add_filter": [1],
    "show_chooser": [1, 2], "begin_section": [2], "begin_group": [1],
}
# A format is shown if it reads like a sentence; one that a macro is a part of (G_GINT64_FORMAT) cannot be
# translated as it stands. So is what is copied.
FORMATS = {"g_strdup_printf": [0], "g_strdup": [0], "add_factf": [1, 2]}
SENTENCE = re.compile(r"^[A-Z][a-z]+:? |[a-z]{3}[:,]? (?:.* )?[a-z]{3}[ .:,]")
NOT_SHOWN = {"Step %u"}  # what files of lessons have
# Titles of pages and columns, and names of keys, stand in tables: what reads like one in an initializer or a macro.
TABLE = re.compile(r"\b(\w+)(?:\[[^\]=]*\])*\s*=\s*\{|#define (\w+)\s+(?=[{\"])")
ASSIGNED = re.compile(r"->(?:title|subtitle|label) = (?=\")")
NOT_TITLES = {"lesson_keys", "step_keys", "phrases"}  # words of files and of conditions
TITLE = re.compile(r"^\W{0,2}_?[A-Z][A-Za-z]*_?[a-z]+[.?…]?(?:$|[ ,:(])|^\w_[a-z]+$|^Op$|[a-z]{2}[,:]? [a-z]{2}")
KEY = r"(?:<\w+>)*(?:F\d+|[A-Za-z0-9]|KP_\w+|Page_\w+|%s)" % "|".join((
    "Up Down Left Right Home End Return Tab Escape BackSpace Delete space period comma plus minus equal slash less "
    "greater question bracketleft bracketright").split())
NO_TITLE = re.compile(r"^(?:%s(?: |$))+$|==|^Td[A-Z]|\.[a-z]|^[a-z:-]+$" % KEY)
MACRO = re.compile(r"\s*[A-Z]")
CALL = re.compile(r"\b(%s) \(" % "|".join([*SHOWN, *FORMATS]))
WORDS = re.compile(r"[A-Za-z]{2}")


def skip_literal(text, at):
    """Past the literal, of a string or a character, that begins here."""
    quote, at = text[at], at + 1
    while text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at + 1


def blank_comments(text):
    """The same text, of the same length, without what comments say."""
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|//[^\n]*',
                  lambda m: m.group() if m.group()[0] == '"' else re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def literals(text, at):
    """The literals of a call whose arguments begin here, each with the number of the argument and whether it is
    in a call within it: (argument, first, end, within)."""
    depth, argument, row = 0, 0, []
    while depth >= 0:
        c = text[at]
        if c == '"':
            end = skip_literal(text, at)
            while re.match(r'\s*"', text[end:]):  # neighbours are one
                end = skip_literal(text, text.index('"', end))
            row.append((argument, at, end, depth > 0))
            at = end
            continue
        if c == "'":
            at = skip_literal(text, at)
            continue
        depth += (c in "([{") - (c in ")]}")
        argument += c == "," and depth == 0
        at += 1
    return row


def value(text):
    return "".join(ast.literal_eval(part) for part in re.findall(r'"(?:[^"\\]|\\.)*"', text))


def in_table(text, at, is_macro):
    """The literals of an initializer that begins here, or of a macro, but those that calls in it get."""
    depth, within, found = 0 if is_macro else 1, 0, []
    while at < len(text) and (depth > 0 or is_macro):
        if text[at] == '"':
            end = skip_literal(text, at)
            while re.match(r'\s*"', text[end:]) and not is_macro:
                end = skip_literal(text, text.index('"', end))
            if within == 0:
                found.append((at, end))
            at = end
            continue
        if text[at] == "'":
            at = skip_literal(text, at)
            continue
        if is_macro and text[at] == "\n" and text[at - 1] != "\\":
            break
        within += (text[at] == "(") - (text[at] == ")")
        depth += (text[at] == "{") - (text[at] == "}")
        at += 1
    return found


def titles(text):
    """Where literals of tables, and of fields that are set, are that people see, and that are not marked."""
    fields = {(field.end(), skip_literal(text, field.end())) for field in ASSIGNED.finditer(text)}
    return sorted(fields | {(first, end) for table in TABLE.finditer(text)
                   if (table.group(1) or table.group(2)) not in NOT_TITLES
                   for first, end in in_table(text, table.end(), table.group(1) is None)
                   if TITLE.search(value(text[first:end])) and not NO_TITLE.search(value(text[first:end]))})


def unmarked(text):
    """Where literals are that people see and that no translator gets: (first, end)."""
    text = blank_comments(text)
    found = titles(text)
    for call in CALL.finditer(text):
        shown = SHOWN.get(call.group(1)) or FORMATS[call.group(1)]
        seen = SENTENCE if call.group(1) in FORMATS else WORDS
        found += [(first, end) for argument, first, end, within in literals(text, call.end())
                  if argument in shown and not within and seen.search(value(text[first:end]))
                  and value(text[first:end]) not in NOT_SHOWN and not MACRO.match(text[end:])
                  and not re.search(r"[A-Z]\s*$", text[:first])]
    return sorted(set(found))


def marked(text):
    """What translators get of the file."""
    text = blank_comments(text)
    return {value(text[first:end]) for call in re.finditer(r"\b(?:_|N_|ngettext) \(", text)
            for argument, first, end, _ in literals(text, call.end()) if argument == 0}
