/* Where a rank lies, and whether all are on one machine: said on one line each.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>

int
main (int argc, char **argv)
{
  TdComm *all, *near;

  td_init (&argc, &argv);
  all = td_comm_new ("mpi");
  printf ("rank %d is %d of %d on machine %d of %d\n", td_comm_rank (all),
          td_comm_intra_rank (all), td_comm_intra_size (all), td_comm_inter_rank (all),
          td_comm_inter_size (all));
  near = td_comm_new ("shm");
  printf ("shm has %d: %s\n", td_comm_size (near),
          td_error () != NULL ? td_error ()->message : "no error");
  td_error_clear ();
  td_comm_barrier (all); /* which goes on as before */
  return td_finish ();
}
