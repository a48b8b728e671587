/* jinja.h - finds the text that a chat template can write, without running it.
 *
 * The template is scanned from its first byte to its last. It can write the text between its tags
 * and the strings in them, with values in between. Branches for features that a plain conversation
 * lacks are skipped: tools, documents, a request to think, an answer after the last question. All
 * other branches are read, taken or not.
 */
#ifndef TEXT_JINJA_H
#define TEXT_JINJA_H

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { JINJA_VALUE = '\x01', JINJA_MAX_BYTES = 256 << 10 };
struct jinja_written {
    struct buf text; /* the text it can write, with JINJA_VALUE for each value */
    int trims;       /* 1: it trims white space from values */
};
/* text: n bytes; bos and eos: the texts of bos_token and eos_token, NULL: none. -1 (EXIT_BAD_DATA):
 * *why has the line of the template and the part that is not supported. Call jinja_free in any
 * case.
 */
int jinja_read(struct jinja_written *w, const char *text, size_t n, const char *bos,
               const char *eos, struct err *why);
void jinja_free(struct jinja_written *w);

#endif
