/* Recurrent links besides LSTM.  Included by tapedeck.h.
 *
 * Stateful ones keep their state as attributes h and c, which td_link_attr borrows,
 * td_link_set_attr replaces and td_link_reset_state forgets; state is not saved.  Stateless
 * ones are given it: td_link_call with (c, h, x) or (h, x), or with x alone for a state of
 * zeros.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/** LSTM without a state of its own: in c, h, x (or x); out c, h.  Children as LSTM's.
 * *Shapes*: x (n, in), c and h (n, out).  *Source*: chainer.links.StatelessLSTM. */
TD_API TdLink *td_stateless_lstm_new_ (TdLink *parent, const char *name, int64_t in_size,
                                       int64_t out_size, const TdLstmOpt *options);
TD_API TdLink *td_stateless_lstm_new_at (TdLink *parent, const char *name, int64_t in_size,
                                         int64_t out_size, TdLstmOpt options,
                                         const TdSite *site);
/** LSTM whose gates see the cell.  Children upward (4 out, in), with bias, lateral (4 out,
 * out), peep_i, peep_f and peep_o (out, out), without.  *Source*:
 * chainer.links.StatefulPeepholeLSTM. */
TD_API TdLink *td_stateful_peephole_lstm_new (TdLink *parent, const char *name, int64_t in_size,
                                              int64_t out_size);

typedef struct
{
  TdInit init, inner_init, bias_init; /**< of W's, of U's, of all biases */
  int end_;
} TdGruOpt;
#define TD_GRU_DEFAULTS .init = { TD_INIT_DEFAULT, 0 }
/** Gated recurrent unit: r = sigmoid (W_r x + U_r h), z = sigmoid (W_z x + U_z h), h' = z tanh
 * (W x + U (r h)) + (1 - z) h.  Six Linear children of these names, all with bias.  in_size
 * TD_INFER waits for the first input.  *Shapes*: x (n, in) -> h (n, out).  *Source*:
 * chainer.links.StatefulGRU, of which GRU is another name. */
TD_API TdLink *td_stateful_gru_new_ (TdLink *parent, const char *name, int64_t in_size,
                                     int64_t out_size, const TdGruOpt *options);
TD_API TdLink *td_stateful_gru_new_at (TdLink *parent, const char *name, int64_t in_size,
                                       int64_t out_size, TdGruOpt options, const TdSite *site);
TD_API TdLink *td_gru_new_ (TdLink *parent, const char *name, int64_t in_size, int64_t out_size,
                            const TdGruOpt *options);
TD_API TdLink *td_gru_new_at (TdLink *parent, const char *name, int64_t in_size,
                              int64_t out_size, TdGruOpt options, const TdSite *site);
/** The same without a state of its own: in h, x (or x); out h.  *Source*:
 * chainer.links.StatelessGRU. */
TD_API TdLink *td_stateless_gru_new_ (TdLink *parent, const char *name, int64_t in_size,
                                      int64_t out_size, const TdGruOpt *options);
TD_API TdLink *td_stateless_gru_new_at (TdLink *parent, const char *name, int64_t in_size,
                                        int64_t out_size, TdGruOpt options, const TdSite *site);
/** Minimal gated unit: f = sigmoid (W_f (h, x)), h' = f tanh (W_h (f h, x)) + (1 - f) h.
 * Children W_f, W_h (out, out + in).  *Source*: chainer.links.StatefulMGU. */
TD_API TdLink *td_stateful_mgu_new (TdLink *parent, const char *name, int64_t in_size,
                                    int64_t out_size);

/* --- over whole sequences ----------------------------------------------------------------- */
typedef struct
{
  TdInit initialW, initial_bias;
  int end_;
} TdNStepOpt;
#define TD_N_STEP_DEFAULTS .initialW = { TD_INIT_DEFAULT, 0 }
/** Several layers over sequences of any lengths in any order.  A child "0", "1" ... for each
 * layer (and direction), with parameters w0, b0, w1 ...  Called with td_n_step_call.  *Source*:
 * chainer.links.NStepLSTM and its relatives. */
TD_API TdLink *td_n_step_lstm_new_ (TdLink *parent, const char *name, int n_layers,
                                    int64_t in_size, int64_t out_size, double dropout,
                                    const TdNStepOpt *options);
TD_API TdLink *td_n_step_lstm_new_at (TdLink *parent, const char *name, int n_layers,
                                      int64_t in_size, int64_t out_size, double dropout,
                                      TdNStepOpt options, const TdSite *site);
TD_API TdLink *td_n_step_bilstm_new_ (TdLink *parent, const char *name, int n_layers,
                                      int64_t in_size, int64_t out_size, double dropout,
                                      const TdNStepOpt *options);
TD_API TdLink *td_n_step_bilstm_new_at (TdLink *parent, const char *name, int n_layers,
                                        int64_t in_size, int64_t out_size, double dropout,
                                        TdNStepOpt options, const TdSite *site);
TD_API TdLink *td_n_step_gru_new_ (TdLink *parent, const char *name, int n_layers,
                                   int64_t in_size, int64_t out_size, double dropout,
                                   const TdNStepOpt *options);
TD_API TdLink *td_n_step_gru_new_at (TdLink *parent, const char *name, int n_layers,
                                     int64_t in_size, int64_t out_size, double dropout,
                                     TdNStepOpt options, const TdSite *site);
TD_API TdLink *td_n_step_bigru_new_ (TdLink *parent, const char *name, int n_layers,
                                     int64_t in_size, int64_t out_size, double dropout,
                                     const TdNStepOpt *options);
TD_API TdLink *td_n_step_bigru_new_at (TdLink *parent, const char *name, int n_layers,
                                       int64_t in_size, int64_t out_size, double dropout,
                                       TdNStepOpt options, const TdSite *site);
TD_API TdLink *td_n_step_rnn_tanh_new_ (TdLink *parent, const char *name, int n_layers,
                                        int64_t in_size, int64_t out_size, double dropout,
                                        const TdNStepOpt *options);
TD_API TdLink *td_n_step_rnn_tanh_new_at (TdLink *parent, const char *name, int n_layers,
                                          int64_t in_size, int64_t out_size, double dropout,
                                          TdNStepOpt options, const TdSite *site);
TD_API TdLink *td_n_step_rnn_relu_new_ (TdLink *parent, const char *name, int n_layers,
                                        int64_t in_size, int64_t out_size, double dropout,
                                        const TdNStepOpt *options);
TD_API TdLink *td_n_step_rnn_relu_new_at (TdLink *parent, const char *name, int n_layers,
                                          int64_t in_size, int64_t out_size, double dropout,
                                          TdNStepOpt options, const TdSite *site);
/** Run an n-step link: xs[i] (length_i, in) is a whole sequence.  hx, cx (layers * directions,
 * n, out), NULL for zeros; cx and cy are of LSTMs.  hy, cy (as hx) and ys[i] (length_i, out *
 * directions) may be NULL.  The same as td_link_call with in (hx, [cx,] xs ...) and out (hy,
 * [cy,] ys ...).  *Errors*: TD_ERR_SHAPE for an empty sequence or sizes that do not fit. */
TD_API TdStatus td_n_step_call (TdLink *link, TdVar *hx, TdVar *cx, TdVar *const *xs, int n,
                                TdVar **hy, TdVar **cy, TdVar **ys);
TD_API TdStatus td_n_step_call_at (TdLink *link, TdVar *hx, TdVar *cx, TdVar *const *xs, int n,
                                   TdVar **hy, TdVar **cy, TdVar **ys, const TdSite *site);

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_stateless_lstm_new(parent, name, in, ...) td__recurrent_new_x (td_stateless_lstm_new_at, TdLstmOpt, TD_LSTM_DEFAULTS, parent, name, in, __VA_ARGS__, .end_ = 0)
#define td_stateful_gru_new(parent, name, in, ...) td__recurrent_new_x (td_stateful_gru_new_at, TdGruOpt, TD_GRU_DEFAULTS, parent, name, in, __VA_ARGS__, .end_ = 0)
#define td_gru_new(parent, name, in, ...) td__recurrent_new_x (td_gru_new_at, TdGruOpt, TD_GRU_DEFAULTS, parent, name, in, __VA_ARGS__, .end_ = 0)
#define td_stateless_gru_new(parent, name, in, ...) td__recurrent_new_x (td_stateless_gru_new_at, TdGruOpt, TD_GRU_DEFAULTS, parent, name, in, __VA_ARGS__, .end_ = 0)
#define td__recurrent_new_x(make, Opt, defaults, parent, name, in, out, ...) TD_CALL_ (make (parent, name, in, out, TD_OPTIONS_IN_ORDER_ (Opt, defaults, .end_ = 0, __VA_ARGS__), TD_HERE))
#define td_n_step_lstm_new(parent, name, layers, in, out, ...) td__n_step_new_x (td_n_step_lstm_new_at, parent, name, layers, in, out, __VA_ARGS__, .end_ = 0)
#define td_n_step_bilstm_new(parent, name, layers, in, out, ...) td__n_step_new_x (td_n_step_bilstm_new_at, parent, name, layers, in, out, __VA_ARGS__, .end_ = 0)
#define td_n_step_gru_new(parent, name, layers, in, out, ...) td__n_step_new_x (td_n_step_gru_new_at, parent, name, layers, in, out, __VA_ARGS__, .end_ = 0)
#define td_n_step_bigru_new(parent, name, layers, in, out, ...) td__n_step_new_x (td_n_step_bigru_new_at, parent, name, layers, in, out, __VA_ARGS__, .end_ = 0)
#define td_n_step_rnn_tanh_new(parent, name, layers, in, out, ...) td__n_step_new_x (td_n_step_rnn_tanh_new_at, parent, name, layers, in, out, __VA_ARGS__, .end_ = 0)
#define td_n_step_rnn_relu_new(parent, name, layers, in, out, ...) td__n_step_new_x (td_n_step_rnn_relu_new_at, parent, name, layers, in, out, __VA_ARGS__, .end_ = 0)
#define td__n_step_new_x(make, parent, name, layers, in, out, dropout, ...) TD_CALL_ (make (parent, name, layers, in, out, dropout, TD_OPTIONS_ (TdNStepOpt, TD_N_STEP_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_n_step_call(...) td_n_step_call_at (__VA_ARGS__, TD_HERE)
/* clang-format on */
#endif

TD_END_DECLS
