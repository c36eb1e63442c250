/* A model with an error in line 9. SPDX-License-Identifier: MIT */
#include <tapedeck.h>

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);
  TdVar *x = td_zeros (TD_F32, TD_SHAPE (2));
  td_relu (undeclared_name);
  return td_item (x) > 0;
}
