/* escape.h - escapes texts of records for HTML, Markdown, LaTeX, CSV and links. Control characters
 * are replaced and texts are cut at ESCAPE_MAX characters (display.h), so that a record cannot put
 * code or markup into a page. */
#pragma once

#include "lib/base/buf.h"

enum { ESCAPE_MAX = 4000 };

void escape_html(struct buf *text, const char *bytes);     /* between tags, and inside quotes */
void escape_markdown(struct buf *text, const char *bytes); /* inside a line, and at its start */
/* For a paragraph or a cell; characters beyond ASCII without a TeX name stay UTF-8. */
void escape_latex(struct buf *text, const char *bytes);
/* One field, quoted if necessary. A text that a spreadsheet would read as a formula gets an
 * apostrophe in front. */
void escape_csv(struct buf *text, const char *bytes);
/* A relative file name as a link. A colon in its first part cannot become a scheme. */
void escape_link(struct buf *text, const char *bytes);
/* The bytes of a file as a link: "data:text/csv;charset=utf-8,...". */
void escape_data_link(struct buf *text, const char *type, const char *bytes);
