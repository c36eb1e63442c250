/* Links from the inside: the tree, its parameters, and what the kinds of link share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/core.h"
#include "object.h"

typedef enum
{
  TD_PARAM_TRAINED,
  TD_PARAM_PERSISTENT,
  TD_PARAM_ATTR /**< recurrent state: kept, neither trained nor saved */
} TdParamKind;

/** A parameter, persistent or attribute; var is NULL while its shape is not known. */
typedef struct TdParam
{
  char *name;
  TdParamKind kind;
  TdVar *var; /**< held by the link */
  TdInit init;
  TdShape fan_shape; /**< what the initialiser computes its fans from; ndim -1: the shape */
  TdDtype dtype;
  bool fixed;       /**< updates are switched off */
  TdDevice *device; /**< where td_link_to_device put the link; NULL: nowhere yet, the default */
  const TdPath *path;
  uint64_t id; /**< never reused */
  const TdSite *site;
} TdParam;

struct TdLink
{
  TdObject object; /**< listed while it is a root */
  const TdLinkClass *cls;
  char *name;
  const TdPath *path;
  const TdSite *site;
  TdLink *parent;
  TdLink **children;
  int n_children;
  TdParam **params;
  int n_params;
  int *by_name, n_by_name; /**< slots: index + 1 of a parameter; none while they are few */
  void *self;
  uint64_t id;
  bool inert;
  bool in_static;     /**< its static function runs its code */
  int n_running;      /**< calls of it that have not returned */
  TdStatic *function; /**< td_link_set_static, or NULL */
};

extern const TdLinkClass td__sequential_class;

/** What is put together from names on the way down a tree; begins as zeros. */
typedef struct
{
  char *text; /**< *Owner*: who walks, free () */
  size_t room;
} TdKey;

/** Put a name, and one character more unless it is 0, behind the first `used` bytes.  Returns
 * how many are used then.  key->text may have moved. */
size_t td__key_put (TdKey *key, size_t used, const char *name, char more);

/* path.c */
const TdPath *td__path_intern (const char *text, const char *link_class);

/* common.c: what the forward functions of the kinds share */
/** TD_OK, or td__fail that so many inputs and outputs are expected. */
TdStatus td__link_arity (const TdLink *link, int n_in, int want_in, int n_out, int want_out);
/** The status of a forward that ends in y. */
TdStatus td__link_status (const TdVar *y);
/** Call a child by its place. */
TdVar *td__link_child_call (TdLink *link, int child, TdVar *x);
/** Add a parameter; says false after td__fail. */
bool td__link_add (TdLink *link, const char *name, TdShape shape, TdInit init, TdInit fallback,
                   const TdSite *site);
/** Give the parameter its shape and numbers, unless it has them. */
TdStatus td__link_settle (TdLink *link, int param, TdShape shape);
/** A state of the link: kept as attribute, not saved. */
void td__link_keep (TdLink *link, const char *name, TdVar *value);
/** Forget an attribute, if there is one. */
void td__link_forget (TdLink *link, const char *name);

/* link.c */
/** Take a link from its parent: a root from now on. */
void td__link_detach (TdLink *link);
/** Change a link's name; its paths and its parameters' change with it. */
void td__link_rename (TdLink *link, const char *name);
/** Free every link, optimizer, dataset and iterator, and forget the reports: td_finish. */
void td__links_finish (void);
/** A link goes: called where it is set, by whoever keeps something under the link's id. */
extern void (*td__link_gone) (TdLink *link, uint64_t link_id);
TdLink *td__link_inert (void);
/** Free a half-made link; returns the inert one. */
TdLink *td__link_abandon (TdLink *link);
/** Make a link; inert after td__fail. */
TdLink *td__link_make (const TdLinkClass *cls, TdLink *parent, const char *name,
                       const TdSite *site);
/** False for NULL and inert links, after td__fail. */
bool (td__link_usable) (const TdLink *link, const char *call, const TdSite *site);
#ifdef __clang_analyzer__
#define td__link_usable(link, ...) TD_USABLE (td__link_usable, link, __VA_ARGS__)
#endif
/** False after td__fail. */
static inline bool
td__function_there (bool there, const char *call)
{
  if (!there)
    td__fail (TD_ERR_ARG, call, NULL, "a function expected, got NULL");
  return there;
}
bool td__link_name_free (const TdLink *link, const char *name, const char *call,
                         const TdSite *site);
/** The link of this id, if it lives; searches all roots. */
TdLink *td__link_by_id (uint64_t id);
/** Call visit for every parameter below link, children after own, in order of creation. */
void td__link_visit (TdLink *link,
                     void (*visit) (TdLink *owner, TdParam *param, const char *key, void *user),
                     void *user);
/** The sequential hears of a new child. */
void td__sequential_child_added (TdLink *link);

/* param.c */
/** Declare a parameter; a known shape is filled at once.  NULL after td__fail. */
TdParam *td__param_add (TdLink *link, const char *name, const TdShape *shape, int dtype,
                        TdInit init, TdInit fallback, const TdSite *site);
/** Give it memory and its first numbers. */
TdStatus td__param_start (TdParam *param, const TdShape *shape);
/** The array that it will have, without numbers.  *Owner*: the caller, TD_HOLD_ENGINE.  NULL
 * after td__fail. */
TdVar *td__param_leaf (TdParam *param, const TdShape *shape);
/** Start with an array of td__param_leaf that is filled already. */
void td__param_adopt (TdParam *param, TdVar *v);
TdParam *td__param_find (const TdLink *link, const char *name);
void td__param_free (TdParam *param);
/** Take a parameter, persistent or attribute away from its link; no such name: nothing. */
void td__param_remove (TdLink *link, const char *name);
/** Put an array in a parameter's place. */
void td__param_hold (TdParam *param, TdVar *var);
/** Set or clear the attribute, by name; kind TD_PARAM_ATTR or _PERSISTENT. */
TdParam *td__param_keep (TdLink *link, const char *name, TdParamKind kind, TdVar *value,
                         const TdSite *site);
void td__param_announce (const TdParam *param);
void td__param_set_path (const TdLink *link, TdParam *param);
/** An attribute that no call changes (what stands in for a parameter that is switched off):
 * copies have it too. */
static inline bool
td__param_constant (const TdParam *param)
{
  return param->kind == TD_PARAM_ATTR && param->init.kind != TD_INIT_DEFAULT;
}
/** Put v's array on a device, keeping its handle. */
TdStatus td__var_move (TdVar *v, TdDevice *device);

/* lstm.c */
/** Make the children upward and lateral of an LSTM, with Chainer's biases. */
bool td__lstm_children (TdLink *link, int64_t in_size, int64_t size, const TdLstmOpt *options,
                        const TdSite *site);

/* init.c */
/** Fill v; fans come from fan_shape.  *Errors*: TD_ERR_SHAPE when the shape does not suit. */
TdStatus td__init_fill (TdInit init, TdVar *v, const TdShape *fan_shape, const TdSite *site);
static inline TdInit
td__init_or (TdInit init, TdInit fallback)
{
  return init.kind != TD_INIT_DEFAULT ? init : fallback;
}

/** Elements of one row: product of all sizes but the first. */
static inline int64_t
td__row_size (const TdShape *shape)
{
  int64_t n = 1;

  for (int i = 1; i < shape->ndim; i++)
    n *= shape->dim[i];
  return n;
}
