/* ONNX models given where a tape is expected: a call of them, recorded without arithmetic.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/** Replace arguments that are ONNX models by tapes of one call on the device null, which are
 * kept in the user's cache; returns the exit code of the first that cannot run. */
int td_model_arguments (int argc, char **argv);
