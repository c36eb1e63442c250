/* Reading a live array on behalf of a debugger.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/** Answer "read ID [MAX]" on a socket: metadata as JSON, the bytes as a descriptor of anonymous
 * memory.  Changes nothing in the engine: no statistics, no counts, no placement. */
void td__agent_read (int fd, const char *tag, const char *arguments);
/** Answer "inside": the operations of the fused group that the program stands at; or "inside K
 * [MAX]": what operation K of it leaves, as above. */
void td__agent_inside (int fd, const char *tag, const char *arguments);
