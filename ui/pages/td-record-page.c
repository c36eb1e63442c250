/* Rows named by a table. What stands in them is judged by `tapedeck run` itself, so that page
 * and command line never disagree; only what the shell would judge is judged here.
 * SPDX-License-Identifier: MIT */
#include "pages/td-record-page.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "settings/td-settings.h"

struct _TdRecordPage
{
  AdwBin parent;
  GtkEditable *fields[TD_N_RECORD_FIELDS];
  AdwComboRow *level, *device;
  GtkLabel *command, *error;
  GtkWidget *start;
  char **environment; /* what programs inherit */
  char *directory;

  /* what `options` points to */
  TdRunOptions options;
  char *texts[TD_N_RECORD_FIELDS];
  char *values_budget;
  char **args, **all_environment;
};

enum
{
  START,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdRecordPage, td_record_page, ADW_TYPE_BIN)

static const struct
{
  const char *key; /* in the settings */
  const char *id;  /* in the template */
  gboolean is_path;
  const char *bytes; /* it is a number of them: the usual one, where there are no settings */
} rows[TD_N_RECORD_FIELDS] = {
  [TD_RECORD_PROGRAM] = { "record-program", "program", TRUE },
  [TD_RECORD_ARGUMENTS] = { "record-arguments", "arguments" },
  [TD_RECORD_DIRECTORY] = { "record-directory", "directory", TRUE },
  [TD_RECORD_ENVIRONMENT] = { "record-environment", "environment" },
  [TD_RECORD_BUDGET] = { "tape-budget", "budget", .bytes = "512M" },
  [TD_RECORD_RATE] = { "tape-rate", "rate", .bytes = "1M" },
  [TD_RECORD_STOP] = { "record-stop", "stop" },
  [TD_RECORD_ITERATIONS] = { "record-iterations", "iterations" },
  [TD_RECORD_SEED] = { "record-seed", "seed" },
  [TD_RECORD_KEYFRAMES] = { "record-keyframes", "keyframes" },
};

/* `name` is what `tapedeck run` calls it. */
typedef struct
{
  const char *name, *title, *text;
} Choice;

static const Choice levels[] = {
  { "graph", N_ ("Graph"), N_ ("Structure, memory, times and reports") },
  { "stats", N_ ("Statistics"), N_ ("Also moments, NaN and Inf of every tensor") },
  { "values", N_ ("Values"), N_ ("Also the tensors of the newest iterations") },
};

static const Choice devices[] = {
  { "cpu", N_ ("Processor"), N_ ("Computes on this machine’s cores") },
  { "cuda:0", N_ ("First GPU"), N_ ("cuda:0, when a driver for it is there") },
  { "null", N_ ("Null"), N_ ("Shapes and memory only: nothing is computed") },
};

/* ---- what stands there ---- */

static char *
dup_text (TdRecordPage *self, TdRecordField field)
{
  return g_strstrip (g_strdup (gtk_editable_get_text (self->fields[field])));
}

static char *
dup_path (TdRecordPage *self, TdRecordField field)
{
  g_autofree char *text = dup_text (self, field);
  const char *home = g_get_home_dir ();
  if (!*text || g_path_is_absolute (text))
    return g_steal_pointer (&text);
  if (text[0] == '~' && (text[1] == '/' || !text[1]))
    return g_build_filename (home, text + 1, NULL);
  return g_canonicalize_filename (text, self->directory ? self->directory : home);
}

static gboolean
parse_words (const char *text, const char *what, char ***words, GError **error)
{
  g_autoptr (GError) wrong = NULL;
  *words = NULL;
  if (!*text || g_shell_parse_argv (text, NULL, words, &wrong))
    return TRUE;
  g_strdelimit (wrong->message, "\n", ' ');
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "%s: %s", what, wrong->message);
  return FALSE;
}

static gboolean
read_environment (TdRecordPage *self, GError **error)
{
  g_auto (GStrv) words = NULL;
  g_clear_pointer (&self->all_environment, g_strfreev);
  if (!parse_words (self->texts[TD_RECORD_ENVIRONMENT], "Environment", &words, error))
    return FALSE;
  if (self->environment || words)
    self->all_environment
        = self->environment ? g_strdupv (self->environment) : g_get_environ ();
  for (char **word = words; word && *word; word++)
    {
      char *equals = strchr (*word, '=');
      if (!equals || equals == *word)
        {
          g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                       "Environment: %s: NAME=VALUE expected", *word);
          return FALSE;
        }
      *equals = '\0';
      self->all_environment = g_environ_setenv (self->all_environment, *word, equals + 1, TRUE);
    }
  return TRUE;
}

/* Take the fields into `options`. Errors: FALSE when words do not parse; the options hold what
 * did. */
static gboolean
read_fields (TdRecordPage *self, GError **error)
{
  for (int i = 0; i < TD_N_RECORD_FIELDS; i++)
    {
      g_free (self->texts[i]);
      self->texts[i] = rows[i].is_path ? dup_path (self, i) : dup_text (self, i);
    }
  g_clear_pointer (&self->args, g_strfreev);
  g_free (self->values_budget);
  self->values_budget = td_settings_get () ? td_settings_dup_bytes ("values-budget") : NULL;
  gboolean good
      = parse_words (self->texts[TD_RECORD_ARGUMENTS], "Arguments", &self->args, error)
        && read_environment (self, error);
  guint level = MIN (adw_combo_row_get_selected (self->level), G_N_ELEMENTS (levels) - 1);
  guint device = MIN (adw_combo_row_get_selected (self->device), G_N_ELEMENTS (devices) - 1);
  self->options = (TdRunOptions){
    .program = self->texts[TD_RECORD_PROGRAM],
    .args = (const char *const *)self->args,
    .level = levels[level].name,
    .tape_budget = self->texts[TD_RECORD_BUDGET],
    .tape_rate = self->texts[TD_RECORD_RATE],
    .values_budget = level == 2 ? self->values_budget : NULL,
    .device = device ? devices[device].name : NULL,
    .stop = self->texts[TD_RECORD_STOP],
    .seed = self->texts[TD_RECORD_SEED],
    .iterations = self->texts[TD_RECORD_ITERATIONS],
    .keyframes = self->texts[TD_RECORD_KEYFRAMES],
    .environment = (const char *const *)self->all_environment,
    .directory = self->texts[TD_RECORD_DIRECTORY],
  };
  return good;
}

static gboolean
check_program (const char *path, GError **error)
{
  const char *wrong = NULL;
  if (!*path)
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                           "Choose a model or a program first.");
      return FALSE;
    }
  if (!g_file_test (path, G_FILE_TEST_EXISTS))
    wrong = "does not exist";
  else if (g_file_test (path, G_FILE_TEST_IS_DIR))
    wrong = "is a folder";
  else if (!g_str_has_suffix (path, ".c") && !td_runner_is_script (path)
           && !td_runner_is_model (path) && !g_file_test (path, G_FILE_TEST_IS_EXECUTABLE))
    wrong = "is neither a model in C (.c) nor a program that can be executed nor a PyTorch "
            "script (.py) nor an ONNX model (.onnx)";
  if (wrong)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "%s %s.", path, wrong);
  return !wrong;
}

static gboolean
check_directory (const char *path, GError **error)
{
  if (!*path || g_file_test (path, G_FILE_TEST_IS_DIR))
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
               "The working folder %s does not exist.", path);
  return FALSE;
}

static void
show_command (TdRecordPage *self)
{
  read_fields (self, NULL);
  TdRunOptions shown = self->options;
  if (!*shown.program)
    shown.program = "MODEL";
  g_autofree char *base = g_path_get_basename (shown.program);
  char *dot = strrchr (base, '.');
  if (dot && dot != base)
    *dot = '\0';
  g_autofree char *tape = g_strconcat (base, ".tdtape", NULL);
  g_autofree char *line = td_runner_dup_command (&shown, tape);
  g_autofree char *valid = g_utf8_make_valid (line, -1);
  gtk_label_set_text (self->command, valid);
}

static void
show_error (TdRecordPage *self, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  gtk_label_set_text (self->error, valid);
}

static void
changed (TdRecordPage *self)
{
  if (!self->command || !self->start) /* not built yet */
    return;
  const Choice *level = &levels[MIN (adw_combo_row_get_selected (self->level), 2)];
  const Choice *device = &devices[MIN (adw_combo_row_get_selected (self->device), 2)];
  adw_action_row_set_subtitle (ADW_ACTION_ROW (self->level), _ (level->text));
  adw_action_row_set_subtitle (ADW_ACTION_ROW (self->device), _ (device->text));
  show_error (self, "");
  show_command (self);
}

static void
remember (TdRecordPage *self)
{
  GSettings *settings = td_settings_get ();
  if (!settings)
    return;
  for (int i = 0; i < TD_N_RECORD_FIELDS; i++)
    if (rows[i].bytes)
      td_settings_set_bytes (rows[i].key, self->texts[i]);
    else
      g_settings_set_string (settings, rows[i].key, self->texts[i]);
  g_settings_set_enum (settings, "level", (int)adw_combo_row_get_selected (self->level));
  g_settings_set_string (settings, "record-device",
                         devices[adw_combo_row_get_selected (self->device)].name);
}

void
td_record_page_start (TdRecordPage *self)
{
  g_autoptr (GError) error = NULL;
  if (read_fields (self, &error) && check_program (self->options.program, &error)
      && check_directory (self->options.directory, &error)
      && td_runner_check (&self->options, &error))
    {
      show_error (self, "");
      remember (self);
      g_signal_emit (self, signals[START], 0);
      return;
    }
  show_error (self, error->message);
  if (!*self->options.program)
    gtk_widget_grab_focus (GTK_WIDGET (self->fields[TD_RECORD_PROGRAM]));
}

/* ---- choosing ---- */

static void
file_chosen (GtkNativeDialog *dialog, int response, GtkEditable *field)
{
  if (response == GTK_RESPONSE_ACCEPT)
    {
      g_autoptr (GFile) file = gtk_file_chooser_get_file (GTK_FILE_CHOOSER (dialog));
      g_autofree char *path = file ? g_file_get_path (file) : NULL;
      if (path)
        gtk_editable_set_text (field, path);
    }
  g_object_unref (dialog);
}

static void
choose_file (GtkButton *button, GtkEditable *field)
{
  TdRecordPage *self
      = TD_RECORD_PAGE (gtk_widget_get_ancestor (GTK_WIDGET (button), TD_TYPE_RECORD_PAGE));
  gboolean folder = field == self->fields[TD_RECORD_DIRECTORY];
  GtkFileChooserNative *dialog = gtk_file_chooser_native_new (
      gtk_widget_get_tooltip_text (GTK_WIDGET (button)),
      GTK_WINDOW (gtk_widget_get_root (GTK_WIDGET (button))),
      folder ? GTK_FILE_CHOOSER_ACTION_SELECT_FOLDER : GTK_FILE_CHOOSER_ACTION_OPEN,
      _ ("_Choose"), _ ("_Cancel"));
  g_autofree char *path = dup_path (self, folder ? TD_RECORD_DIRECTORY : TD_RECORD_PROGRAM);
  g_autoptr (GFile) file = *path ? g_file_new_for_path (path) : NULL;
  if (file && g_file_query_exists (file, NULL))
    gtk_file_chooser_set_file (GTK_FILE_CHOOSER (dialog), file, NULL);
  gtk_native_dialog_set_modal (GTK_NATIVE_DIALOG (dialog), TRUE);
  g_signal_connect_object (dialog, "response", G_CALLBACK (file_chosen), field, 0);
  gtk_native_dialog_show (GTK_NATIVE_DIALOG (dialog));
}

static void
copy_command (GtkButton *button, TdRecordPage *self)
{
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)),
                          gtk_label_get_text (self->command));
}

/* ---- building ---- */

static void
set_choices (AdwComboRow *row, const Choice *choices, guint n)
{
  g_autoptr (GtkStringList) list = gtk_string_list_new (NULL);
  for (guint i = 0; i < n; i++)
    gtk_string_list_append (list, _ (choices[i].title));
  adw_combo_row_set_model (row, G_LIST_MODEL (list));
}

/* As it was left. */
static void
fill (TdRecordPage *self)
{
  GSettings *settings = td_settings_get ();
  gtk_editable_set_text (self->fields[TD_RECORD_STOP], "error");
  for (int i = 0; i < TD_N_RECORD_FIELDS; i++)
    if (rows[i].bytes)
      gtk_editable_set_text (self->fields[i], rows[i].bytes);
  adw_combo_row_set_selected (self->level, 1);
  for (int i = 0; settings && i < TD_N_RECORD_FIELDS; i++)
    {
      g_autofree char *text = rows[i].bytes ? td_settings_dup_bytes (rows[i].key)
                                            : g_settings_get_string (settings, rows[i].key);
      gtk_editable_set_text (self->fields[i], text);
    }
  g_autofree char *device
      = settings ? g_settings_get_string (settings, "record-device") : g_strdup ("cpu");
  for (guint i = 0; i < G_N_ELEMENTS (devices); i++)
    if (strcmp (devices[i].name, device) == 0)
      adw_combo_row_set_selected (self->device, i);
  if (settings)
    adw_combo_row_set_selected (self->level, (guint)g_settings_get_enum (settings, "level"));
}

static gboolean
td_record_page_grab_focus (GtkWidget *widget)
{
  return gtk_widget_grab_focus (
      GTK_WIDGET (TD_RECORD_PAGE (widget)->fields[TD_RECORD_PROGRAM]));
}

static void
td_record_page_finalize (GObject *object)
{
  TdRecordPage *self = TD_RECORD_PAGE (object);
  for (int i = 0; i < TD_N_RECORD_FIELDS; i++)
    g_free (self->texts[i]);
  g_free (self->values_budget);
  g_strfreev (self->args);
  g_strfreev (self->all_environment);
  g_strfreev (self->environment);
  g_free (self->directory);
  G_OBJECT_CLASS (td_record_page_parent_class)->finalize (object);
}

static void
td_record_page_class_init (TdRecordPageClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  G_OBJECT_CLASS (klass)->finalize = td_record_page_finalize;
  widget_class->grab_focus = td_record_page_grab_focus;
  gtk_widget_class_set_template_from_resource (
      widget_class, "/io/github/tapedeck/Tapedeck/pages/td-record-page.ui");
  for (guint i = 0; i < TD_N_RECORD_FIELDS; i++)
    gtk_widget_class_bind_template_child_full (widget_class, rows[i].id, FALSE,
                                               G_STRUCT_OFFSET (TdRecordPage, fields)
                                                   + (gssize)(i * sizeof (GtkEditable *)));
  gtk_widget_class_bind_template_child (widget_class, TdRecordPage, level);
  gtk_widget_class_bind_template_child (widget_class, TdRecordPage, device);
  gtk_widget_class_bind_template_child (widget_class, TdRecordPage, command);
  gtk_widget_class_bind_template_child (widget_class, TdRecordPage, error);
  gtk_widget_class_bind_template_child (widget_class, TdRecordPage, start);
  gtk_widget_class_bind_template_callback (widget_class, td_record_page_start);
  gtk_widget_class_bind_template_callback (widget_class, changed);
  gtk_widget_class_bind_template_callback (widget_class, choose_file);
  gtk_widget_class_bind_template_callback (widget_class, copy_command);
  signals[START] = g_signal_new ("start", TD_TYPE_RECORD_PAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                 NULL, G_TYPE_NONE, 0);
}

/* Who does not see a row hears its title at its text. */
static void
name_text (GtkEditable *row)
{
  gtk_accessible_update_property (
      GTK_ACCESSIBLE (gtk_editable_get_delegate (row)), GTK_ACCESSIBLE_PROPERTY_LABEL,
      adw_preferences_row_get_title (ADW_PREFERENCES_ROW (row)), -1);
}

static void
td_record_page_init (TdRecordPage *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  for (guint i = 0; i < TD_N_RECORD_FIELDS; i++)
    name_text (self->fields[i]);
  set_choices (self->device, devices, G_N_ELEMENTS (devices));
  set_choices (self->level, levels, G_N_ELEMENTS (levels));
  g_object_bind_property (self->error, "label", self->error, "tooltip-text", G_BINDING_DEFAULT);
  fill (self);
  changed (self);
}

GtkWidget *
td_record_page_new (void)
{
  return g_object_new (TD_TYPE_RECORD_PAGE, NULL);
}

/* ---- from outside ---- */

void
td_record_page_set_launch (TdRecordPage *self, const char *const *environment,
                           const char *directory)
{
  g_strfreev (self->environment);
  self->environment = g_strdupv ((char **)environment);
  g_free (self->directory);
  self->directory = g_strdup (directory);
  changed (self);
}

const TdRunOptions *
td_record_page_get_options (TdRecordPage *self)
{
  return &self->options;
}

const char *
td_record_page_get_text (TdRecordPage *self, TdRecordField field)
{
  return gtk_editable_get_text (self->fields[field]);
}

void
td_record_page_set_text (TdRecordPage *self, TdRecordField field, const char *text)
{
  gtk_editable_set_text (self->fields[field], text);
}

void
td_record_page_choose (TdRecordPage *self, int level, int device)
{
  if (level >= 0)
    adw_combo_row_set_selected (self->level, (guint)level);
  if (device >= 0)
    adw_combo_row_set_selected (self->device, (guint)device);
}

const char *
td_record_page_get_error (TdRecordPage *self)
{
  return gtk_label_get_text (self->error);
}

const char *
td_record_page_get_command (TdRecordPage *self)
{
  return gtk_label_get_text (self->command);
}
