/* One operation, in a source file with quotes and a backslash in its name; then the program is
 * busy with other things until it is ended.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <unistd.h>

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);
#line 12 "a \"b\\c\".c"
  td_relu (td_randn (TD_F32, TD_SHAPE (4)));
  for (;;)
    pause ();
}
