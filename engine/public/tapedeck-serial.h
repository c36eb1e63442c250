/* Files of parameters and training state: npz and safetensors, and the visitor that writes and
 * reads what an object wants to keep.  Included by tapedeck.h.
 *
 * Keys are Chainer's: "l1/W" for a link, "t" and "l1/W/m" for an optimizer, "updater/..." for a
 * trainer.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/** Writes or reads the fields of one object after the other; made by the functions that save
 * and load. */
typedef struct TdSerializer TdSerializer;
/** Names each field of object to the serializer, in any order: the same function saves and
 * loads. */
typedef void (*TdSerializeFn) (void *object, TdSerializer *serializer);

/* --- whole files ---------------------------------------------------------------------------
 */
typedef struct
{
  bool compression; /**< npz only: deflate the members */
  int end_;
} TdSaveOpt;
#define TD_SAVE_DEFAULTS .compression = true
typedef struct
{
  const char *path; /**< where the object is in the file: "updater/model:main/" */
  bool strict;      /**< a key that is missing is an error; false: it is skipped */
  bool partial;     /**< take what fits: skip keys that are missing or of another shape */
  const char *ignore_names; /**< keys to leave out, separated by commas: "l3/W,l3/b"; one
                              that nothing has is an error */
  int end_;
} TdLoadOpt;
#define TD_LOAD_DEFAULTS .path = NULL, .strict = true, .partial = false, .ignore_names = NULL
TD_API TdSaveOpt td_save_options (void);
TD_API TdLoadOpt td_load_options (void);
/** Write parameters and persistents below a link as NumPy's npz: keys "l1/W", without the root;
 * a parameter without a shape is None.  A file is replaced only once the new one is whole.
 * *Sync*: blocks.  *Source*: chainer.serializers.save_npz. */
TD_API TdStatus td_save_npz (const char *path, TdLink *link);
TD_API TdStatus td_save_npz_at (const char *path, TdLink *link, TdSaveOpt options,
                                const TdSite *site);
/** Read them back; waiting parameters take the file's shapes.  What is None in the file stays
 * as it is; pickled objects are refused, never run.  *Errors*: TD_ERR_IO, TD_ERR_SHAPE or
 * TD_ERR_DTYPE naming file and key; nothing is changed then.
 * *Source*: chainer.serializers.load_npz. */
TD_API TdStatus td_load_npz (const char *path, TdLink *link);
TD_API TdStatus td_load_npz_at (const char *path, TdLink *link, TdLoadOpt options,
                                const TdSite *site);
/** The same of an optimizer: "t", "epoch", "l1/W/t", "l1/W/m" ...  td_save_npz (path, opt) is
 * this one, in C, as td_save_npz (path, trainer) is td_trainer_save_npz_at.  States whose
 * parameter waits for its shape wait with it. */
TD_API TdStatus td_opt_save_npz_at (const char *path, TdOpt *opt, TdSaveOpt options,
                                    const TdSite *site);
TD_API TdStatus td_opt_load_npz_at (const char *path, TdOpt *opt, TdLoadOpt options,
                                    const TdSite *site);
TD_API TdStatus td_opt_save_safetensors_at (const char *path, TdOpt *opt, TdSaveOpt options,
                                            const TdSite *site);
TD_API TdStatus td_opt_load_safetensors_at (const char *path, TdOpt *opt, TdLoadOpt options,
                                            const TdSite *site);
/** The same as a safetensors file, which keeps bfloat16 too. */
TD_API TdStatus td_save_safetensors (const char *path, TdLink *link);
TD_API TdStatus td_save_safetensors_at (const char *path, TdLink *link, TdSaveOpt options,
                                        const TdSite *site);
TD_API TdStatus td_load_safetensors (const char *path, TdLink *link);
TD_API TdStatus td_load_safetensors_at (const char *path, TdLink *link, TdLoadOpt options,
                                        const TdSite *site);

/** Read one array from a file of NumPy's npy format, as a new variable without gradient.
 * *Errors*: TD_ERR_IO naming the file: not there, damaged, an element type of its own. */
TD_API TdVar *td_load_npy (const char *path);
TD_API TdVar *td_load_npy_at (const char *path, const TdSite *site);
/** Write one array as npy (bf16, which NumPy has not, as float32); a file is replaced only once
 * the new one is whole.  *Sync*: blocks. */
TD_API TdStatus td_save_npy (const char *path, const TdVar *v);
TD_API TdStatus td_save_npy_at (const char *path, const TdVar *v, const TdSite *site);

/** Write what a program keeps to one file, npz or (.safetensors) safetensors: `serialize` names
 * its links, optimizers, iterators, random state and numbers by the functions below.  A loop
 * that is gone on with from the file gives the same bits as one that ran through.  A file is
 * replaced only once the new one is whole.  *Errors*: TD_ERR_IO naming the file.  *Sync*:
 * blocks. */
TD_API TdStatus td_save_object (const char *path, TdSerializeFn serialize, void *object);
TD_API TdStatus td_save_object_at (const char *path, TdSerializeFn serialize, void *object,
                                   const TdSite *site);
/** Read it back.  *Errors*: TD_ERR_IO, TD_ERR_SHAPE, TD_ERR_DTYPE naming file and key; nothing
 * is changed then. */
TD_API TdStatus td_load_object (const char *path, TdSerializeFn serialize, void *object);
TD_API TdStatus td_load_object_at (const char *path, TdSerializeFn serialize, void *object,
                                   const TdSite *site);

/* --- in a TdSerializeFn -------------------------------------------------------------------
 * Saving copies the fields at once.  Loading reads and checks them at once, but puts them in
 * place only after every object has been read without error: until the callbacks of
 * td_serializer_finally run, fields hold their old values.  The first error stays; later calls
 * do nothing then. */
/** Say whether fields are read from a file. */
TD_API bool td_serializer_loading (const TdSerializer *s);
/** Go down into a child: keys get the prefix "name/" until td_serializer_leave. */
TD_API void td_serializer_enter (TdSerializer *s, const char *name);
TD_API void td_serializer_leave (TdSerializer *s);
/** Say whether the file has the key, in this place; when saving, false. */
TD_API bool td_serializer_has (TdSerializer *s, const char *key);
/** A whole number, NumPy's int64 scalar. */
TD_API void td_serialize_int (TdSerializer *s, const char *key, int64_t *value);
/** A number, float64 scalar; every bit comes back. */
TD_API void td_serialize_double (TdSerializer *s, const char *key, double *value);
/** A truth value, NumPy's bool scalar. */
TD_API void td_serialize_bool (TdSerializer *s, const char *key, bool *value);
/** A text in UTF-8, NumPy's unicode scalar; NULL is None.  *Owner*: the object, free (). */
TD_API void td_serialize_text (TdSerializer *s, const char *key, char **text);
/** An array in host memory; NULL is None.  Loading replaces shape and memory, and converts to
 * dtype.  *Owner*: the object, free (). */
TD_API void td_serialize_array (TdSerializer *s, const char *key, TdDtype dtype, TdShape *shape,
                                void **data);
/** A variable, overwritten in place.  *Errors*: another shape than the variable's. */
TD_API void td_serialize_var (TdSerializer *s, const char *key, TdVar *v);
/** Parameters and persistents below a link, under "name/". */
TD_API void td_serialize_link (TdSerializer *s, const char *name, TdLink *link);
/** An optimizer's t, epoch and states, under "name/".  Its link comes first: states take the
 * shapes of parameters. */
TD_API void td_serialize_opt (TdSerializer *s, const char *name, TdOpt *opt);
/** Where an iterator stands, and the order of what it still gives, under "name/". */
TD_API void td_serialize_iter (TdSerializer *s, const char *name, TdIter *iter);
/** The state of the engine's random numbers (td_set_seed, dropout, td_randn ...). */
TD_API void td_serialize_random (TdSerializer *s);
/** Read a number now, to decide by it what else is read.  False: saving, missing or failed. */
TD_API bool td_serializer_look_int (TdSerializer *s, const char *key, int64_t *value);
/** Have apply called when all fields are in place; saving ignores it. */
TD_API void td_serializer_finally (TdSerializer *s, void (*apply) (void *object), void *object);
/** Refuse the file: nothing of it is put in place.  key may be NULL. */
TD_API void td_serializer_refuse (TdSerializer *s, const char *key, const char *why);

/* clang-format off */
#if !defined(TD_NO_SITES)
#if defined(__cplusplus)
#define TD_OF_OBJECT_(object, name) td_##name##_at
#else
#define TD_OF_OBJECT_(object, name) _Generic ((object), TdOpt *: td_opt_##name##_at, TdTrainer *: td_trainer_##name##_at, default: td_##name##_at)
#endif
#define td_save_npz(path, ...) td__save_npz_x (path, __VA_ARGS__, .end_ = 0)
#define td__save_npz_x(path, object, ...) TD_CALL_ (TD_OF_OBJECT_ (object, save_npz) (path, object, TD_OPTIONS_ (TdSaveOpt, TD_SAVE_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_load_npz(path, ...) td__load_npz_x (path, __VA_ARGS__, .end_ = 0)
#define td__load_npz_x(path, object, ...) TD_CALL_ (TD_OF_OBJECT_ (object, load_npz) (path, object, TD_OPTIONS_ (TdLoadOpt, TD_LOAD_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_save_safetensors(path, ...) td__save_safetensors_x (path, __VA_ARGS__, .end_ = 0)
#define td__save_safetensors_x(path, object, ...) TD_CALL_ (TD_OF_OBJECT_ (object, save_safetensors) (path, object, TD_OPTIONS_ (TdSaveOpt, TD_SAVE_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_load_safetensors(path, ...) td__load_safetensors_x (path, __VA_ARGS__, .end_ = 0)
#define td__load_safetensors_x(path, object, ...) TD_CALL_ (TD_OF_OBJECT_ (object, load_safetensors) (path, object, TD_OPTIONS_ (TdLoadOpt, TD_LOAD_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_load_npy(...) td_load_npy_at (__VA_ARGS__, TD_HERE)
#define td_save_object(...) td_save_object_at (__VA_ARGS__, TD_HERE)
#define td_load_object(...) td_load_object_at (__VA_ARGS__, TD_HERE)
#define td_save_npy(...) td_save_npy_at (__VA_ARGS__, TD_HERE)
#endif
/* clang-format on */

TD_END_DECLS
