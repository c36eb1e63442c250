/* Addresses in place of file names, as desktops pass them: see address.h.
 *
 * SPDX-License-Identifier: MIT */
#include "address.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int
digit (char c)
{
  static const char digits[] = "0123456789abcdef";
  const char *at = c != '\0' ? strchr (digits, c | 32) : NULL;

  return at != NULL ? (int)(at - digits) : -1;
}

bool
td_address_is_link (const char *text)
{
  return strncasecmp (text, "tapedeck:", strlen ("tapedeck:")) == 0;
}

char *
td_address_to_path (const char *text)
{
  static const char scheme[] = "file://", here[] = "localhost/";
  const char *from = text + strlen (scheme);
  char *path, *to;

  if (strncasecmp (text, scheme, strlen (scheme)) != 0)
    return NULL;
  if (strncasecmp (from, here, strlen (here)) == 0)
    from += strlen (here) - 1;
  if (*from != '/' || (path = to = malloc (strlen (from) + 1)) == NULL)
    return NULL;
  for (; *from != '\0'; from++)
    {
      const int high = *from == '%' ? digit (from[1]) : -1;
      const int low = high >= 0 ? digit (from[2]) : -1;

      if (low < 0)
        *to++ = *from;
      else if (high == 0 && low == 0) /* no file has it in its name */
        {
          free (path);
          return NULL;
        }
      else
        {
          *to++ = (char)(high << 4 | low);
          from += 2;
        }
    }
  *to = '\0';
  return path;
}
