/* jinja.h - what a chat template can write, found without running it.
 *
 * A template is read from its first byte to its last: the text between its tags and the strings in
 * them are what it can write, and in between stand values. Branches that need what a plain
 * conversation never has are left out: tools, documents, a request to think, an answer behind the
 * last question. Of all other branches each is read, taken or not.
 */
#ifndef TEXT_JINJA_H
#define TEXT_JINJA_H

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { JINJA_VALUE = '\x01', JINJA_MAX_BYTES = 256 << 10 };
struct jinja_written {
    struct buf text; /* what it writes, JINJA_VALUE for each value */
    int trims;       /* 1: white space goes off the ends of values */
};
/* text: n bytes; bos and eos: what bos_token and eos_token write, NULL: nothing. -1: *why has what
 * cannot be followed (EXIT_BAD_DATA), a line of the template in front. jinja_free is due. */
int jinja_read(struct jinja_written *w, const char *text, size_t n, const char *bos,
               const char *eos, struct err *why);
void jinja_free(struct jinja_written *w);

#endif
