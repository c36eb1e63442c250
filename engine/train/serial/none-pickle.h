/* None as NumPy stores it: a pickled array of one object.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** An npy file of numpy.array (None), as numpy.save writes it. */
extern const unsigned char td__none_npy[];
extern const size_t td__none_npy_bytes;

/** Say whether a pickle is NumPy's of a 0-d array of None, of protocols 2 to 5.  It is compared
 * word for word with what NumPy writes: nothing of it is executed, whatever it asks for. */
bool td__pickle_is_none (const unsigned char *pickle, size_t bytes);
