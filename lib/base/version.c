/* version.c - which version and which commit this is.
 *
 * The only object that changes with every commit, so that the others stay the same bytes and
 * results are not thrown away for a new commit message.
 */
#include "lib/base/cli/opt.h"

const char version_unicode[] = "16.0"; /* lib/text/utf8-newer.c */
const char version_text[] = "1.0.0";
const char version_commit[] = COMMIT;
