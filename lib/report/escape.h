/* escape.h - texts of records made plain text in five forms. Control characters are replaced and
 * what is longer than ESCAPE_MAX characters is cut (format.h), so nothing that a record says can
 * be more than text in the place where it stands.
 */
#ifndef REPORT_ESCAPE_H
#define REPORT_ESCAPE_H

#include "lib/base/buf.h"

enum { ESCAPE_MAX = 4000 };

void escape_html(struct buf *b, const char *s);     /* between tags, and inside quotes */
void escape_markdown(struct buf *b, const char *s); /* inside a line, and at its start */
/* Inside a paragraph or a cell; characters beyond ASCII that TeX has no name for stay UTF-8. */
void escape_latex(struct buf *b, const char *s);
/* One field, quoted where it has to be. A text that a spreadsheet would take for a formula gets an
 * apostrophe in front. */
void escape_csv(struct buf *b, const char *s);
/* A relative file name as a link: one with a colon in its first part cannot become a scheme. */
void escape_link(struct buf *b, const char *s);
/* A file as a link that holds it: "data:text/csv;charset=utf-8,...". */
void escape_data_link(struct buf *b, const char *type, const char *bytes);

#endif
