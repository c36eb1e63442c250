/* Gradients that are a formula of ONNX's operators: recipes, in the notation of onnx-recipes.c.
 * What moves elements is in onnx-gradients.c, what covers windows in onnx-maps.c.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-recipes.h"

#include <stddef.h>

/* Of labels: those that count (k), and a place for each (i). */
#define LABELS(T) "t=Cast(" T ";to=I);k=Not(Equal(t,:@ignore_label));i=Where(k,t,:0);"
#define ENTROPY(SCALE)                                                                         \
  LABELS ("b")                                                                                 \
  "h=Cast(OneHot(i,:#1,[0,1];axis=1);to=F);"                                                   \
  "Where(Unsqueeze(k,[1]),Mul(Sub(a,h)," SCALE "),0)"
#define BATCH "Max(#0,1)"
#define ROWS LABELS ("a") "w=Cast(k;to=T);"
#define PICKED "Where(k,Gather(b,i),Cast(0;to=T))"
#define ROWS_COUNTED "Max(ReduceSum(w;keepdims=0),Cast(1;to=T))"
#define ROWS_BATCH "Max(Cast(#0;to=T),Cast(1;to=T))"
#define SIGMOID "t=Cast(b;to=F);k=GreaterOrEqual(t,0);u=Where(k,Sub(Sigmoid(a),t),0);"
/* With p the gradient of the normalised h, and s = 1 / deviation. */
#define THROUGH_SQUARES(P, AXES) "Mul(s,Sub(" P ",Mul(h,ReduceMean(Mul(p,h);axes=" AXES "))))"
#define THROUGH_MOMENTS(AXES) THROUGH_SQUARES ("Sub(p,ReduceMean(p;axes=" AXES "))", AXES)
#define LSTM_GATE(I) "Gather(g,:" I ";axis=2)"
#define LSTM_PART(X) "Unsqueeze(" X ",[2])"
/* The weights P are made of the scores u and the logarithm of each row's sum. */
#define ATTENTION                                                                              \
  "P=Exp(Sub(u,Unsqueeze(f,[2])));w=MatMul(d,Transpose(c;perm=[0,2,1]));"                      \
  "s=Mul(Mul(P,Sub(w,ReduceSum(Mul(d,e);axes=[2]))),!scale);"                                  \
  "MatMul(s,b)|MatMul(Transpose(s;perm=[0,2,1]),a)|MatMul(Transpose(P;perm=[0,2,1]),d)"
#define HIDDEN "u=" TD_ONNX_HIDDEN (TD_ONNX_SCORES) ";" ATTENTION

/* The first that fits is taken. */
const TdOnnxRecipe td__onnx_gradient_recipes[] = {
  { "elu_grad", "Where(Greater(a,0),b,Mul(Mul(b,@alpha),Exp(a)))" },
  { "softplus_grad", "Mul(b,Sigmoid(Mul(a,@beta)))" },
  { "clipped_relu_grad", "Where(And(Greater(a,0),Less(a,@z)),b," TD_ONNX_NOTHING ")" },
  { "hard_sigmoid_grad", "Where(Less(Abs(a),2.5),Mul(b,0.2)," TD_ONNX_NOTHING ")" },
  { "silu_grad", "s=Sigmoid(a);Mul(Mul(b,s),Add(Mul(a,Sub(1,s)),1))" },
  { "gelu_grad?approximate",
    "t=Tanh(Mul(Add(a,Mul(Mul(Mul(a,a),a),0.044715)),0.7978845608028654));"
    "Mul(b,Add(Mul(Add(t,1),0.5),Mul(Mul(Mul(a,Sub(1,Mul(t,t))),0.3989422804014327),"
    "Add(Mul(Mul(a,a),0.134145),1))))" },
  { "gelu_grad", "Mul(b,Add(Mul(Add(Erf(Mul(a,0.7071067811865476)),1),0.5),"
                 "Mul(Mul(a,Exp(Mul(Mul(a,a),-0.5))),0.3989422804014327)))" },
  { "erf_grad", "Mul(b,Mul(Exp(Neg(Mul(a,a))),1.1283791670955126))" },
  { "log1p_grad", "Div(b,Add(a,1))" },
  { "expm1_grad", "Mul(b,Exp(a))" },
  { "rsqrt_grad", "Mul(Div(b,Mul(a,Sqrt(a))),-0.5)" },
  { "hinge_signs", TD_ONNX_HINGE_SIGNS },
  { "softmax_cross_entropy_grad?#4?reduce", ENTROPY ("Unsqueeze(Mul(Gather(d,i),c),[1])") },
  { "softmax_cross_entropy_grad?#4?normalize",
    ENTROPY ("Unsqueeze(Mul(Gather(d,i),Div(c," TD_ONNX_COUNTED ")),[1])") },
  { "softmax_cross_entropy_grad?#4",
    ENTROPY ("Unsqueeze(Mul(Gather(d,i),Div(c," BATCH ")),[1])") },
  { "softmax_cross_entropy_grad?reduce", ENTROPY ("Unsqueeze(c,[1])") },
  { "softmax_cross_entropy_grad?normalize", ENTROPY ("Div(c," TD_ONNX_COUNTED ")") },
  { "softmax_cross_entropy_grad", ENTROPY ("Div(c," BATCH ")") },
  { "softmax_cross_entropy_rows?#2?reduce", ROWS PICKED },
  { "softmax_cross_entropy_rows?#2?normalize", ROWS "Div(" PICKED "," ROWS_COUNTED ")" },
  { "softmax_cross_entropy_rows?#2", ROWS "Div(" PICKED "," ROWS_BATCH ")" },
  { "softmax_cross_entropy_rows?reduce", ROWS "w" },
  { "softmax_cross_entropy_rows?normalize", ROWS "Div(w," ROWS_COUNTED ")" },
  { "softmax_cross_entropy_rows", ROWS "Div(w," ROWS_BATCH ")" },
  { "sigmoid_cross_entropy_grad?reduce", SIGMOID "Mul(u,c)" },
  { "sigmoid_cross_entropy_grad?normalize", SIGMOID "Mul(u,Div(c," TD_ONNX_COUNTED "))" },
  { "sigmoid_cross_entropy_grad", SIGMOID "Mul(u,Div(c," BATCH "))" },
  { "select_item_grad", "Where(Cast(OneHot(Cast(a;to=I),:@n_columns,[0,1]);to=B),"
                        "Unsqueeze(b,[1]),Cast(0;to=T))" },
  { "embed_id_grad", "ScatterND(!zeros,Reshape(Cast(a;to=I),[-1,1]),Flatten(b;axis=-1);"
                     "reduction=add)" },
  { "layer_normalization_grad",
    "y=Flatten(c;axis=-1);s=Unsqueeze(e,[1]);"
    "h=Mul(Sub(Flatten(a;axis=-1),Unsqueeze(d,[1])),s);p=Mul(y,b);"
    "Reshape(" THROUGH_MOMENTS (
        "[1]") ",^0)|"
               "ReduceSum(Mul(y,h);axes=[0],keepdims=0)|ReduceSum(y;axes=[0],keepdims=0)" },
  { "rms_normalization_grad",
    "y=Flatten(c;axis=-1);s=Unsqueeze(d,[1]);h=Mul(Flatten(a;axis=-1),s);p=Mul(y,b);"
    "Reshape(" THROUGH_SQUARES ("p", "[1]") ",^0)|ReduceSum(Mul(y,h);axes=[0],keepdims=0)" },
  { "group_normalization_grad",
    "s=Reshape(e,[-1,@groups,1]);"
    "h=Mul(Sub(Reshape(a,[0,@groups,-1]),Reshape(d,[-1,@groups,1])),s);"
    "p=Reshape(Mul(c,Reshape(b,~1)),[0,@groups,-1]);"
    "Reshape(" THROUGH_MOMENTS ("[2]") ",^0)|"
                                       "ReduceSum(Mul(c,Reshape(h,^0));axes=C,keepdims=0)|"
                                       "ReduceSum(c;axes=C,keepdims=0)" },
  { "batch_normalization_grad",
    "s=Reshape(e,~4);h=Mul(Sub(a,Reshape(d,~3)),s);p=Mul(c,Reshape(b,~1));" THROUGH_MOMENTS (
        "C") "|ReduceSum(Mul(c,h);axes=C,keepdims=0)|ReduceSum(c;axes=C,keepdims=0)" },
  { "lstm_grad",
    "g=Reshape(b,[0,-1,4]);t=Tanh(" LSTM_GATE ("0") ");i=Sigmoid(" LSTM_GATE (
        "1") ");"
             "f=Sigmoid(" LSTM_GATE ("2") ");o=Sigmoid(" LSTM_GATE (
                 "3") ");k=Tanh(c);"
                      "u=Add(d,Mul(Mul(e,o),Sub(1,Mul(k,k))));Mul(u,f)|Reshape("
                      "Concat(" LSTM_PART ("Mul(Mul(u,i),Sub(1,Mul(t,t)))") "," LSTM_PART (
                          "Mul"
                          "(Mu"
                          "l("
                          "u,"
                          "t),"
                          "Mul"
                          "(i,"
                          "Sub"
                          "(1,"
                          "i))"
                          ")") "," LSTM_PART ("Mul(Mul(u,a),Mul(f,Sub(1,f)))") "," LSTM_PART ("Mul(Mul(e,k),Mul(o,"
                                                                                              "Sub(1,o)))") ";axis="
                                                                                                            "2),$"
                                                                                                            "1)" },
  { "scaled_dot_product_attention_grad?#6?!causal", "u=" TD_ONNX_SCORES ";" ATTENTION },
  { "scaled_dot_product_attention_grad?#6", "k=!causal;" HIDDEN },
  { "scaled_dot_product_attention_grad?#7?!causal", "k=" TD_ONNX_SEEN ("g") ";" HIDDEN },
  { "scaled_dot_product_attention_grad?#7", "k=Mul(" TD_ONNX_SEEN ("g") ",!causal);" HIDDEN },
  { NULL, NULL },
};
